//! Where rules put what they find.

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::finding::Finding;
use crate::follow::Remark;
use crate::unit::{Located, Unit};

/// How a breach weighs beside the level of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// By level; a lower-case row fixes a format or a value.
    Format,
    /// By level; a lower-case row asks for a manner.
    Manner,
    /// A reading of an ambiguity, an informative text, a default: a note.
    Note,
}

/// What shows a breach, where the unit is not at hand.
pub(crate) enum Shown {
    /// A frame.
    Frame(u64),
    /// Octets that were located when their unit was at hand; only their frame, if it was not known where they are.
    Octets(Located),
}

impl From<u64> for Shown {
    fn from(frame: u64) -> Self {
        Shown::Frame(frame)
    }
}

impl From<Located> for Shown {
    fn from(located: Located) -> Self {
        Shown::Octets(located)
    }
}

/// Collects what rules find about one connection.
pub(crate) struct Findings<'f> {
    stream: Option<u32>,
    found: &'f mut Vec<Finding>,
    weight: Weight,
}

impl<'f> Findings<'f> {
    /// Of connection `stream`, behind what `found` holds already.
    pub(crate) fn new(stream: Option<u32>, found: &'f mut Vec<Finding>) -> Self {
        Findings { stream, found, weight: Weight::Format }
    }

    /// For rows that ask for a manner: a lower-case one is a warning.
    pub(crate) fn manner(&mut self) -> Findings<'_> {
        Findings { stream: self.stream, found: self.found, weight: Weight::Manner }
    }

    /// For readings of ambiguities, informative texts, defaults: whatever the level, a note.
    pub(crate) fn note(&mut self) -> Findings<'_> {
        Findings { stream: self.stream, found: self.found, weight: Weight::Note }
    }

    /// Octets `range` of `unit` break `requirement`.
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

    /// What direction `direction` did in a frame, or in octets of an earlier unit, breaks `requirement`.
    pub(crate) fn in_frame(
        &mut self,
        requirement: RequirementId,
        direction: usize,
        shown: impl Into<Shown>,
        expected: &str,
        found: String,
    ) {
        let (frame, located) = match shown.into() {
            Shown::Frame(frame) => (frame, Vec::new()),
            Shown::Octets(located) => {
                (located.frame, Some(located).filter(|located| located.len > 0).into_iter().collect())
            }
        };
        self.push(requirement, u8::from(direction == 1), frame, (0..0, located), expected, found);
    }

    /// Octets `range` of `unit` break each of `requirements`.
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

    /// What `remark`, made at `unit`, is about breaks each of `requirements`.
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
