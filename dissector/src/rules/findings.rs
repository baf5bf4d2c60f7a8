//! Collects the findings of rules.

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::direction::Direction;
use crate::finding::Finding;
use crate::follow::Remark;
use crate::frame_number::FrameNumber;
use crate::parse::{Location, Unit};
use crate::stream_id::StreamId;

/// How the level of a requirement in the catalogue (for example MUST or SHOULD) determines the
/// severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeverityPolicy {
    /// For requirements that define a format or a value. The severity depends on the level. A
    /// violated lower-case "must" is an error.
    Format,
    /// For requirements that describe behaviour. The severity depends on the level. A violated
    /// lower-case "must" is a warning.
    Behaviour,
    /// For ambiguous or informative requirements, and for requirements about defaults. The severity
    /// is always note.
    Note,
}

/// Location of a violation, for rules that do not report a range of octets of the current unit.
pub(crate) struct Evidence {
    /// Number of the frame that shows the violation.
    frame: FrameNumber,
    /// Location of the octets that show the violation, if any.
    octets: Option<Location>,
}

impl From<FrameNumber> for Evidence {
    fn from(frame: FrameNumber) -> Self {
        Evidence { frame, octets: None }
    }
}

impl From<Location> for Evidence {
    fn from(located: Location) -> Self {
        Evidence { frame: located.frame, octets: (located.len > 0).then_some(located) }
    }
}

/// Collects the findings about one connection.
pub(crate) struct Findings<'f> {
    stream: Option<StreamId>,
    found: &'f mut Vec<Finding>,
    severity_policy: SeverityPolicy,
}

impl<'f> Findings<'f> {
    /// Creates a collector that appends findings about connection `stream` to `found`.
    pub(crate) fn new(stream: Option<StreamId>, found: &'f mut Vec<Finding>) -> Self {
        Findings { stream, found, severity_policy: SeverityPolicy::Format }
    }

    /// Returns a collector for requirements that describe behaviour. In this collector, a violated
    /// lower-case "must" is a warning.
    pub(crate) fn as_behaviour(&mut self) -> Findings<'_> {
        Findings { stream: self.stream, found: self.found, severity_policy: SeverityPolicy::Behaviour }
    }

    /// Returns a collector whose findings are notes. Used for ambiguous or informative
    /// requirements, and for requirements about defaults.
    pub(crate) fn as_note(&mut self) -> Findings<'_> {
        self.as_note_if(true)
    }

    /// Like [`Findings::as_note`] if `is_note`. Otherwise the returned collector keeps the
    /// severities of this collector.
    pub(crate) fn as_note_if(&mut self, is_note: bool) -> Findings<'_> {
        let severity_policy = if is_note { SeverityPolicy::Note } else { self.severity_policy };
        Findings { stream: self.stream, found: self.found, severity_policy }
    }

    /// Adds the finding that octets `range` of `unit` violate `requirement`.
    pub(crate) fn report(
        &mut self,
        requirement: RequirementId,
        unit: &Unit<'_>,
        range: Range<usize>,
        expected: &str,
        found: impl Into<String>,
    ) {
        let located = unit.locate(range.clone());
        let frame = located.iter().map(|l| l.frame).max().unwrap_or(unit.frame);
        self.push(requirement, unit.direction, frame, (range, located), expected, found.into());
    }

    /// Adds the finding that the sender of `direction` violates `requirement`. `evidence` is the
    /// frame or the octets that show the violation.
    pub(crate) fn report_in_frame(
        &mut self,
        requirement: RequirementId,
        direction: Direction,
        evidence: impl Into<Evidence>,
        expected: &str,
        found: impl Into<String>,
    ) {
        let Evidence { frame, octets } = evidence.into();
        let located = octets.into_iter().collect();
        self.push(requirement, u8::from(direction), frame, (0..0, located), expected, found.into());
    }

    /// Adds one finding for each of `requirements`. Octets `range` of `unit` violate all of them.
    pub(crate) fn report_each(
        &mut self,
        requirements: &[RequirementId],
        unit: &Unit<'_>,
        range: Range<usize>,
        expected: &str,
        found: &str,
    ) {
        for requirement in requirements {
            self.report(*requirement, unit, range.clone(), expected, found);
        }
    }

    /// Adds one finding for each of `requirements`. The sender of `direction` violates all of them.
    pub(crate) fn report_each_in_frame(
        &mut self,
        requirements: &[RequirementId],
        direction: Direction,
        evidence: impl Into<Evidence> + Copy,
        expected: &str,
        found: &str,
    ) {
        for requirement in requirements {
            self.report_in_frame(*requirement, direction, evidence, expected, found);
        }
    }

    /// Adds one finding for each of `requirements`. The octets of `remark` violate all of them. The
    /// monitor made the remark when it processed `unit`.
    pub(crate) fn report_remark(
        &mut self,
        requirements: &[RequirementId],
        unit: &Unit<'_>,
        remark: &Remark,
        expected: &str,
        found: &str,
    ) {
        if remark.range.is_empty() {
            self.report_each_in_frame(requirements, remark.direction, remark.octets, expected, found);
        } else {
            self.report_each(requirements, unit, remark.range.clone(), expected, found);
        }
    }

    fn push(
        &mut self,
        requirement: RequirementId,
        direction: u8,
        frame: FrameNumber,
        (range, locations): (Range<usize>, Vec<Location>),
        expected: &str,
        found: String,
    ) {
        let by_level = |format| requirement.row().level.severity(format).unwrap_or(Severity::Note);
        let severity = match self.severity_policy {
            SeverityPolicy::Format => by_level(true),
            SeverityPolicy::Behaviour => by_level(false),
            SeverityPolicy::Note => Severity::Note,
        };
        let (stream, expected) = (self.stream, expected.to_owned());
        self.found.push(Finding { requirement, severity, stream, direction, frame, range, locations, expected, found });
    }
}
