//! A finding: a requirement that the captured traffic violates.

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::parse::Located;
use crate::stream_id::StreamId;

/// The result of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The violated requirement.
    pub requirement: RequirementId,
    /// Its severity.
    pub severity: Severity,
    /// Number of the TCP connection; `None` for datagrams.
    pub stream: Option<StreamId>,
    /// The direction of the end that violated it: 0 or 1.
    pub direction: u8,
    /// The frame that shows it.
    pub frame: u64,
    /// The octets that show it, in coordinates of its unit ([`crate::grammar`]); empty if there are
    /// none.
    pub range: Range<usize>,
    /// Location of those octets in the capture.
    pub located: Vec<Located>,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}
