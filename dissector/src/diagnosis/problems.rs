//! Groups the findings of a connection into problems.
//!
//! All findings about one frame and one endpoint are one problem: for example, a malformed
//! Terminate can violate ten requirements. If the endpoint violates one of these requirements again
//! in another frame, this is the same problem.
//!
//! **Memory.** At most [`MAX_PROBLEMS`] problems are kept. Further findings are only counted.

use serde::Serialize;
use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::direction::Direction;
use crate::finding::Finding;
use crate::frame_number::FrameNumber;

use super::problem_kind::{ProblemKind, is_fatal};

/// Maximum number of problems that are kept for each connection.
const MAX_PROBLEMS: usize = 32;
/// Maximum number of requirements that are listed for a problem.
const MAX_REQUIREMENTS: usize = 64;
/// Maximum number of frames that are kept for a problem.
const MAX_FRAMES: usize = 16;

/// A problem: the findings with one root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Number of the direction in which the violating endpoint sends: 0 or 1.
    pub direction: u8,
    /// The kind of the root.
    pub kind: ProblemKind,
    /// The highest severity of the findings.
    pub severity: Severity,
    /// The first frames with the problem, at most 16.
    pub frames: Vec<FrameNumber>,
    /// The last frame with the problem.
    pub last_frame: FrameNumber,
    /// Number of frames with the problem.
    pub count: u64,
    /// The requirement at the root.
    pub requirement: RequirementId,
    /// All violated requirements, at most 64.
    pub requirements: Vec<RequirementId>,
    /// The behaviour that `requirement` requires, at the first frame.
    pub expected: String,
    /// The observed behaviour at the first frame.
    pub found: String,
    /// Whether the problem is the cause of the connection's end.
    pub is_cause: bool,
    /// Whether every receiver must end the connection because of the problem.
    #[serde(skip)]
    pub(super) is_fatal: bool,
}

/// The problems of a connection.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) list: Vec<Problem>,
    /// Number of findings that belong to no problem in `list`.
    pub(super) further: u64,
}

impl Problem {
    fn new(finding: &Finding) -> Self {
        Problem {
            direction: finding.direction.min(1),
            kind: ProblemKind::of(finding.requirement),
            severity: finding.severity,
            frames: vec![finding.frame],
            last_frame: finding.frame,
            count: 1,
            requirement: finding.requirement,
            requirements: vec![finding.requirement],
            expected: finding.expected.clone(),
            found: finding.found.clone(),
            is_cause: false,
            is_fatal: finding.severity == Severity::Error && is_fatal(finding.requirement),
        }
    }

    /// Returns whether the problem has a finding about frame `frame`.
    pub(super) fn is_in(&self, frame: FrameNumber) -> bool {
        self.last_frame == frame || self.frames.contains(&frame)
    }

    /// The first frame with the problem.
    pub(super) fn first(&self) -> FrameNumber {
        self.frames.first().copied().unwrap_or(self.last_frame)
    }

    /// Adds a finding about a frame of the problem.
    fn add(&mut self, finding: &Finding) {
        let is_lower = || ProblemKind::is_root(finding.requirement, self.requirement);
        let is_root = finding.severity > self.severity || finding.severity == self.severity && is_lower();
        if is_root && self.count == 1 {
            self.kind = ProblemKind::of(finding.requirement);
            self.requirement = finding.requirement;
            self.expected.clone_from(&finding.expected);
            self.found.clone_from(&finding.found);
        }
        self.severity = self.severity.max(finding.severity);
        self.is_fatal |= finding.severity == Severity::Error && is_fatal(finding.requirement);
        if !self.requirements.contains(&finding.requirement) && self.requirements.len() < MAX_REQUIREMENTS {
            self.requirements.push(finding.requirement);
        }
    }

    /// Adds a finding about a further frame.
    fn repeat(&mut self, finding: &Finding) {
        self.add(finding);
        self.count += 1;
        self.last_frame = self.last_frame.max(finding.frame);
        if self.frames.len() < MAX_FRAMES {
            self.frames.push(finding.frame);
        }
    }
}

impl Problems {
    /// Adds a finding. Returns the index of its problem; `None` if it belongs to no kept problem.
    pub(super) fn add(&mut self, finding: &Finding) -> Option<usize> {
        let direction = finding.direction.min(1);
        let mut own = self.list.iter_mut().enumerate().filter(|(_, problem)| problem.direction == direction);
        if let Some((index, problem)) = own.find(|(_, problem)| problem.is_in(finding.frame)) {
            problem.add(finding);
            return Some(index);
        }
        let mut own = self.list.iter_mut().enumerate().filter(|(_, problem)| problem.direction == direction);
        if let Some((index, problem)) = own.find(|(_, problem)| problem.requirements.contains(&finding.requirement)) {
            problem.repeat(finding);
            return Some(index);
        }
        // A note about a CRC shows that TCP repaired the FPDU. Other notes are not problems.
        let is_note = finding.severity == Severity::Note;
        if is_note && ProblemKind::of(finding.requirement) != ProblemKind::Crc {
            return None;
        }
        let index = self.list.len();
        if index >= MAX_PROBLEMS {
            self.further += 1;
            return None;
        }
        self.list.push(Problem::new(finding));
        Some(index)
    }

    /// The problems of an endpoint that are errors, with their indices.
    pub(super) fn errors_of(&self, direction: Direction) -> impl Iterator<Item = (usize, &Problem)> {
        let number = u8::from(direction);
        let all = self.list.iter().enumerate();
        all.filter(move |(_, problem)| problem.direction == number && problem.severity == Severity::Error)
    }

    /// The error of an endpoint in frame `frame`.
    pub(super) fn error_in(&self, direction: Direction, frame: FrameNumber) -> Option<(usize, &Problem)> {
        self.errors_of(direction).find(|(_, problem)| problem.is_in(frame))
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::*;

    fn finding(frame: u64, requirement: RequirementId, severity: Severity) -> Finding {
        Finding {
            requirement,
            severity,
            stream: None,
            direction: 1,
            frame: frame.into(),
            range: 0..0,
            locations: Vec::new(),
            expected: "x".to_owned(),
            found: requirement.to_string(),
        }
    }

    #[test]
    fn findings_about_one_frame_are_one_problem() {
        let mut problems = Problems::default();
        let ids = [requirement!("DDP-4.3-6"), requirement!("RDMAP-4.8-8"), requirement!("RDMAP-4.8-10")];
        for id in ids {
            problems.add(&finding(7, id, Severity::Error));
        }
        problems.add(&finding(9, requirement!("RDMAP-4.8-8"), Severity::Error));
        problems.add(&finding(9, requirement!("RDMAP-7.1-6"), Severity::Error));
        let [one] = &problems.list[..] else { panic!("{problems:?}") };
        assert_eq!((one.count, one.requirements.len()), (2, 4));
        assert_eq!(one.frames, [7, 9].map(FrameNumber::from));
    }

    #[test]
    fn the_root_is_the_lowest_layer() {
        let mut problems = Problems::default();
        problems.add(&finding(7, requirement!("DDP-7-1"), Severity::Error));
        problems.add(&finding(7, requirement!("MPA-4.1-6"), Severity::Error));
        let problem = &problems.list[0];
        assert_eq!((problem.kind, problem.requirement), (ProblemKind::Crc, requirement!("MPA-4.1-6")));
        assert!(problem.is_fatal);
    }

    #[test]
    fn the_root_has_the_strongest_level() {
        let mut problems = Problems::default();
        problems.add(&finding(7, requirement!("DDP-1.2-5"), Severity::Error));
        problems.add(&finding(7, requirement!("DDP-4.3-10"), Severity::Error));
        assert_eq!(problems.list[0].requirement, requirement!("DDP-4.3-10"));
    }

    #[test]
    fn a_note_is_no_problem() {
        let mut problems = Problems::default();
        problems.add(&finding(7, requirement!("DDP-A-2"), Severity::Note));
        assert!(problems.list.is_empty() && problems.further == 0);
    }
}
