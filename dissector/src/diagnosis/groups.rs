//! [`ProblemGroups`]: groups the findings of a capture into problems, without diagnoses.
//!
//! **Memory.** The problems of at most [`MAX_CONNECTIONS`] connections, and of at most
//! [`MAX_DATAGRAMS`] datagrams, are kept.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use weft_core::RequirementId;

use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::stream_id::StreamId;

use super::problems::{Problem, Problems};

/// Maximum number of connections whose problems are kept.
const MAX_CONNECTIONS: usize = 1024;
/// Maximum number of datagrams whose problems are kept.
const MAX_DATAGRAMS: usize = 1024;
/// Estimated memory of a problem, in bytes.
const PROBLEM_MEMORY: usize = 1 << 10;

/// The problems of a capture.
///
/// All findings about one frame and one endpoint are one problem. If the endpoint violates one of
/// the requirements again on the same connection, this is the same problem. Notes, except those
/// about a CRC, belong to no problem.
#[derive(Debug, Default)]
pub struct ProblemGroups {
    groups: BTreeMap<Origin, Group>,
    /// Number of connections in `groups`.
    connections: usize,
    /// Number of datagrams in `groups`.
    datagrams: usize,
    /// The number of the next problem.
    next: u64,
    /// The requirements with a finding that belongs to no kept problem.
    loose: BTreeSet<RequirementId>,
}

/// A problem of a capture.
#[derive(Debug, Clone, Copy)]
pub struct NumberedProblem<'a> {
    /// The number of the problem. The first problem of a capture has the number 0.
    pub number: u64,
    /// The TCP connection; `None` for a datagram.
    pub stream: Option<StreamId>,
    /// The problem.
    pub problem: &'a Problem,
}

/// The messages whose findings can share a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// All messages of a connection.
    Connection(StreamId),
    /// A datagram. Its frame is known, but no connection relates it to other datagrams.
    Datagram(FrameNumber),
}

/// The problems with one origin.
#[derive(Debug, Default)]
struct Group {
    problems: Problems,
    /// For each problem, its number.
    numbers: Vec<u64>,
}

impl Origin {
    fn of(finding: &Finding) -> Self {
        finding.stream.map_or(Origin::Datagram(finding.frame), Origin::Connection)
    }

    fn stream(self) -> Option<StreamId> {
        match self {
            Origin::Connection(stream) => Some(stream),
            Origin::Datagram(_) => None,
        }
    }
}

impl Group {
    /// The problem at `index`.
    fn problem(&self, origin: Origin, index: usize) -> Option<NumberedProblem<'_>> {
        let (number, problem) = (*self.numbers.get(index)?, self.problems.list.get(index)?);
        Some(NumberedProblem { number, stream: origin.stream(), problem })
    }
}

impl ProblemGroups {
    /// Adds a finding. Returns its problem; `None` if the finding belongs to no kept problem.
    pub fn add(&mut self, finding: &Finding) -> Option<NumberedProblem<'_>> {
        let origin = Origin::of(finding);
        let Some(index) = self.add_to_problem(origin, finding) else {
            self.loose.insert(finding.requirement);
            return None;
        };
        self.groups.get(&origin)?.problem(origin, index)
    }

    /// Adds a finding to a problem with this origin. Returns the index of the problem; `None` if
    /// the finding belongs to no kept problem.
    fn add_to_problem(&mut self, origin: Origin, finding: &Finding) -> Option<usize> {
        let (kept, most) = match origin {
            Origin::Connection(_) => (&mut self.connections, MAX_CONNECTIONS),
            Origin::Datagram(_) => (&mut self.datagrams, MAX_DATAGRAMS),
        };
        let (group, index) = match self.groups.entry(origin) {
            Entry::Occupied(group) => {
                let group = group.into_mut();
                let index = group.problems.add(finding)?;
                (group, index)
            }
            Entry::Vacant(place) if *kept < most => {
                let mut group = Group::default();
                // Without a problem, the group takes no place.
                let index = group.problems.add(finding)?;
                *kept += 1;
                (place.insert(group), index)
            }
            Entry::Vacant(_) => return None,
        };
        if index == group.numbers.len() {
            group.numbers.push(self.next);
            self.next += 1;
        }
        Some(index)
    }

    /// The problems. Those of connections come first, ordered by the number of the connection.
    pub fn problems(&self) -> impl Iterator<Item = NumberedProblem<'_>> {
        let all = self.groups.iter();
        all.flat_map(|(origin, group)| (0..group.numbers.len()).filter_map(move |index| group.problem(*origin, index)))
    }

    /// Number of problems.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.next
    }

    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let problems = usize::try_from(self.next).unwrap_or(usize::MAX);
        problems.saturating_mul(PROBLEM_MEMORY)
    }

    /// The requirements that are violated only as a part of problems with one other requirement at
    /// the root. The map contains this other requirement.
    #[must_use]
    pub fn roots(&self) -> BTreeMap<RequirementId, RequirementId> {
        // `None` is for a requirement that is a root, or that has several roots.
        let mut roots: BTreeMap<RequirementId, Option<RequirementId>> = BTreeMap::new();
        for NumberedProblem { problem, .. } in self.problems() {
            roots.insert(problem.requirement, None);
            for id in problem.requirements.iter().filter(|id| **id != problem.requirement) {
                match roots.entry(*id) {
                    Entry::Vacant(place) => {
                        place.insert(Some(problem.requirement));
                    }
                    Entry::Occupied(mut root) if *root.get() != Some(problem.requirement) => {
                        root.insert(None);
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        let is_grouped = |id: &RequirementId| !self.loose.contains(id);
        roots.into_iter().filter(|(id, _)| is_grouped(id)).filter_map(|(id, root)| Some((id, root?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;

    use super::*;

    fn finding(stream: Option<u32>, frame: u64, requirement: RequirementId) -> Finding {
        Finding {
            requirement,
            severity: Severity::Error,
            stream: stream.map(StreamId::from),
            direction: 0,
            frame: frame.into(),
            range: 0..0,
            locations: Vec::new(),
            expected: String::new(),
            found: String::new(),
        }
    }

    const LAYOUT: RequirementId = requirement!("RDMAP-4.8-37");
    const RESERVED: RequirementId = requirement!("RDMAP-4.8-6");
    const CODE: RequirementId = requirement!("RDMAP-4.8-3");

    fn add_all(groups: &mut ProblemGroups, stream: Option<u32>, frame: u64, ids: &[RequirementId]) {
        for id in ids {
            groups.add(&finding(stream, frame, *id));
        }
    }

    #[test]
    fn requirements_of_one_frame_have_one_root() {
        let mut groups = ProblemGroups::default();
        for stream in [0, 1] {
            add_all(&mut groups, Some(stream), 7, &[RESERVED, LAYOUT, CODE]);
        }
        assert_eq!((groups.problems().count(), groups.count()), (2, 2));
        assert_eq!(groups.roots(), BTreeMap::from([(RESERVED, LAYOUT), (CODE, LAYOUT)]));
    }

    #[test]
    fn a_requirement_that_is_violated_alone_has_no_root() {
        let mut groups = ProblemGroups::default();
        add_all(&mut groups, Some(0), 7, &[RESERVED, LAYOUT, CODE]);
        groups.add(&finding(Some(1), 9, RESERVED));
        groups.add(&finding(None, 11, CODE));
        assert!(groups.roots().is_empty(), "{:?}", groups.roots());
    }

    #[test]
    fn problems_are_numbered_in_the_order_of_their_first_findings() {
        let mut groups = ProblemGroups::default();
        let mut number = |stream, frame, id| groups.add(&finding(stream, frame, id)).map(|problem| problem.number);
        assert_eq!(number(Some(1), 7, RESERVED), Some(0));
        assert_eq!(number(Some(0), 8, RESERVED), Some(1));
        assert_eq!(number(Some(1), 7, CODE), Some(0));
        // The endpoint repeats the violation in another frame.
        assert_eq!(number(Some(1), 9, CODE), Some(0));
        let numbers: Vec<u64> = groups.problems().map(|problem| problem.number).collect();
        assert_eq!(numbers, [1, 0], "ordered by the connection");
    }

    #[test]
    fn the_findings_about_a_datagram_are_one_problem() {
        let mut groups = ProblemGroups::default();
        add_all(&mut groups, None, 7, &[RESERVED, CODE]);
        // Other endpoints can have sent another datagram.
        add_all(&mut groups, None, 8, &[RESERVED]);
        let found: Vec<_> = groups.problems().map(|one| (one.stream, one.problem.requirements.len())).collect();
        assert_eq!(found, [(None, 2), (None, 1)]);
    }

    #[test]
    fn a_note_belongs_to_no_problem() {
        let mut groups = ProblemGroups::default();
        let note = Finding { severity: Severity::Note, ..finding(Some(0), 7, requirement!("DDP-A-2")) };
        assert!(groups.add(&note).is_none() && groups.count() == 0);
    }

    #[test]
    fn problems_beyond_the_limit_are_not_grouped() {
        let mut groups = ProblemGroups::default();
        for stream in 0..=MAX_CONNECTIONS as u32 {
            add_all(&mut groups, Some(stream), 7, &[LAYOUT, CODE]);
        }
        assert_eq!(groups.problems().count(), MAX_CONNECTIONS);
        assert!(groups.roots().is_empty());
        // Datagrams have a limit of their own.
        assert!(groups.add(&finding(None, 8, CODE)).is_some());
    }

    #[test]
    fn notes_take_no_place_of_problems() {
        let mut groups = ProblemGroups::default();
        for frame in 0..=MAX_CONNECTIONS.max(MAX_DATAGRAMS) as u64 {
            let stream = u32::try_from(frame).unwrap();
            for stream in [Some(stream), None] {
                let note = Finding { severity: Severity::Note, ..finding(stream, frame, requirement!("DDP-A-2")) };
                assert!(groups.add(&note).is_none());
            }
        }
        for stream in [Some(9), None] {
            assert!(groups.add(&finding(stream, 5000, CODE)).is_some(), "{stream:?}");
        }
    }
}
