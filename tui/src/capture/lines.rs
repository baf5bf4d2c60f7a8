//! The lists that cover the panels: their kinds and their lines.

use weft_core::requirement::Severity;
use weft_dissector::{FrameNumber, StreamId};

/// The kind of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Findings,
    /// Connections, with the number of findings of each connection.
    Connections,
    /// The messages of both endpoints of a connection, in order.
    Ladder,
    /// RDMA Reads and atomic operations with their latency.
    Operations,
    /// Storage commands with their latency, as in `weft io`.
    Commands,
    /// The output of `weft stats`.
    Statistics,
    /// The messages of a connection with their bytes, as in `weft follow`.
    Messages,
    /// The payload of the messages of a connection.
    Payload,
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Number of the frame that the line links to.
    pub(crate) frame: Option<FrameNumber>,
    /// The connection that the line describes.
    pub(crate) stream: Option<StreamId>,
    pub(crate) severity: Option<Severity>,
}
