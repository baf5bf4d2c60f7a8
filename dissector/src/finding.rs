//! [`Finding`]: a violation of a requirement in the captured traffic.

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::frame_number::FrameNumber;
use crate::parse::Location;
use crate::stream_id::StreamId;

/// A violation of a requirement, found by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The violated requirement.
    pub requirement: RequirementId,
    /// The severity of the finding.
    pub severity: Severity,
    /// Number of the TCP connection; `None` for datagrams.
    pub stream: Option<StreamId>,
    /// Number of the direction in which the violating endpoint sends: 0 or 1.
    pub direction: u8,
    /// The frame that shows the violation.
    pub frame: FrameNumber,
    /// The octets that show the violation, as a range within the unit (see [`crate::grammar`]).
    /// Empty if no particular octets show the violation.
    pub range: Range<usize>,
    /// Locations in the capture of the octets in `range`.
    pub locations: Vec<Location>,
    /// Description of the required behaviour.
    pub expected: String,
    /// Description of the observed behaviour.
    pub found: String,
}
