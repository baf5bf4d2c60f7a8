//! Collects the findings of rules.

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::direction::Direction;
use crate::finding::Finding;
use crate::follow::Remark;
use crate::parse::{Located, Unit};
use crate::stream_id::StreamId;

/// How the severity of a finding follows from the level of its requirement in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// By level. The requirement defines a format or a value, so a lower-case "must" is an error.
    Format,
    /// By level. The requirement describes behaviour, so a lower-case "must" is a warning.
    Manner,
    /// Always a note: the requirement is ambiguous, informative or a default.
    Note,
}

/// Location of a violation in an earlier unit than the current one.
pub(crate) enum Evidence {
    /// Number of the frame that shows the violation.
    Frame(u64),
    /// Location of the octets that show the violation. If the location has no octets, only its
    /// frame is used.
    Octets(Located),
}

impl From<u64> for Evidence {
    fn from(frame: u64) -> Self {
        Evidence::Frame(frame)
    }
}

impl From<Located> for Evidence {
    fn from(located: Located) -> Self {
        Evidence::Octets(located)
    }
}

/// Collects the findings about one connection.
pub(crate) struct Findings<'f> {
    stream: Option<StreamId>,
    found: &'f mut Vec<Finding>,
    weight: Weight,
}

impl<'f> Findings<'f> {
    /// Creates a collector that appends findings about connection `stream` to `found`.
    pub(crate) fn new(stream: Option<StreamId>, found: &'f mut Vec<Finding>) -> Self {
        Findings { stream, found, weight: Weight::Format }
    }

    /// Returns a collector for requirements that describe behaviour. A violated lower-case "must"
    /// is then a warning.
    pub(crate) fn manner(&mut self) -> Findings<'_> {
        Findings { stream: self.stream, found: self.found, weight: Weight::Manner }
    }

    /// Returns a collector whose findings are notes. Used for ambiguous or informative
    /// requirements, and for defaults.
    pub(crate) fn note(&mut self) -> Findings<'_> {
        Findings { stream: self.stream, found: self.found, weight: Weight::Note }
    }

    /// Adds a finding: octets `range` of `unit` violate `requirement`.
    pub(crate) fn at(
        &mut self,
        requirement: RequirementId,
        unit: &Unit<'_>,
        range: Range<usize>,
        expected: &str,
        found: String,
    ) {
        let located = unit.locate(range.clone());
        let frame = located.iter().map(|l| l.frame).max().unwrap_or(unit.frame);
        self.push(requirement, unit.direction, frame, (range, located), expected, found);
    }

    /// Adds a finding: the sender of `direction` violates `requirement` in a frame, or with octets
    /// of an earlier unit.
    pub(crate) fn in_frame(
        &mut self,
        requirement: RequirementId,
        direction: Direction,
        evidence: impl Into<Evidence>,
        expected: &str,
        found: String,
    ) {
        let (frame, located) = match evidence.into() {
            Evidence::Frame(frame) => (frame, Vec::new()),
            Evidence::Octets(located) => {
                (located.frame, Some(located).filter(|located| located.len > 0).into_iter().collect())
            }
        };
        self.push(requirement, u8::from(direction), frame, (0..0, located), expected, found);
    }

    /// Adds one finding for each of `requirements`: octets `range` of `unit` violate it.
    pub(crate) fn each(
        &mut self,
        requirements: &[RequirementId],
        unit: &Unit<'_>,
        range: Range<usize>,
        expected: &str,
        found: &str,
    ) {
        for requirement in requirements {
            self.at(*requirement, unit, range.clone(), expected, found.to_owned());
        }
    }

    /// Adds one finding for each of `requirements`: the octets of `remark`, which the monitor made
    /// at `unit`, violate it.
    pub(crate) fn remarked(
        &mut self,
        requirements: &[RequirementId],
        unit: &Unit<'_>,
        remark: &Remark,
        expected: &str,
        found: &str,
    ) {
        for requirement in requirements {
            if remark.range.is_empty() {
                self.in_frame(*requirement, remark.direction, remark.octets, expected, found.to_owned());
            } else {
                self.at(*requirement, unit, remark.range.clone(), expected, found.to_owned());
            }
        }
    }

    fn push(
        &mut self,
        requirement: RequirementId,
        direction: u8,
        frame: u64,
        (range, located): (Range<usize>, Vec<Located>),
        expected: &str,
        found: String,
    ) {
        let by_level = |format| requirement.row().level.severity(format).unwrap_or(Severity::Note);
        let severity = match self.weight {
            Weight::Format => by_level(true),
            Weight::Manner => by_level(false),
            Weight::Note => Severity::Note,
        };
        let (stream, expected) = (self.stream, expected.to_owned());
        self.found.push(Finding { requirement, severity, stream, direction, frame, range, located, expected, found });
    }
}
