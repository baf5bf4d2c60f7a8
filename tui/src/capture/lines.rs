//! Lines of the lists over the panels, and the kinds of these lists.

use weft_core::requirement::Severity;
use weft_dissector::StreamId;

/// The kind of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Findings,
    /// Connections with the numbers of their findings.
    Connections,
    /// The messages of both endpoints of a connection, in order.
    Ladder,
    /// Reads and atomic operations with their latency.
    Operations,
    /// The output of `weft stats`.
    Statistics,
    /// The messages of a connection with their bytes, as in `weft follow`.
    Messages,
    /// Only the payload of these messages.
    Payload,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// The frame that it links to.
    pub(crate) frame: Option<u64>,
    /// The connection that it describes.
    pub(crate) stream: Option<StreamId>,
    pub(crate) severity: Option<Severity>,
}
