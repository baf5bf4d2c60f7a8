//! A finding: a requirement that what was captured breaks.

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::unit::Located;

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The requirement that is broken.
    pub requirement: RequirementId,
    /// How loudly it is reported.
    pub severity: Severity,
    /// Number of the TCP connection; `None` for datagrams.
    pub stream: Option<u32>,
    /// The direction of the one who broke it: 0 or 1.
    pub direction: u8,
    /// The frame that shows it.
    pub frame: u64,
    /// The octets that show it, in coordinates of the unit it stands beside ([`crate::grammar`]);
    /// empty where none do.
    pub range: Range<usize>,
    /// Where those octets stand in the capture.
    pub located: Vec<Located>,
    /// What would have been right.
    pub expected: String,
    /// What was there.
    pub found: String,
}
