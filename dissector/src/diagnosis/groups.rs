//! [`ProblemGroups`]: groups the findings of a capture into problems, without diagnoses.
//!
//! **Memory.** The problems of at most [`MAX_CONNECTIONS`] connections are kept.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use weft_core::RequirementId;

use crate::finding::Finding;
use crate::stream_id::StreamId;

use super::problems::{Problem, Problems};

/// Maximum number of connections whose problems are kept.
const MAX_CONNECTIONS: usize = 1024;

/// The problems of a capture. All findings about one frame and one endpoint are one problem.
#[derive(Debug, Default)]
pub struct ProblemGroups {
    connections: BTreeMap<StreamId, Problems>,
    /// The requirements with a finding that belongs to no kept problem.
    loose: BTreeSet<RequirementId>,
}

impl ProblemGroups {
    /// Adds a finding.
    pub fn add(&mut self, finding: &Finding) {
        if !self.is_added(finding) {
            self.loose.insert(finding.requirement);
        }
    }

    /// Adds a finding to a problem. Returns `false` if it belongs to no kept problem.
    fn is_added(&mut self, finding: &Finding) -> bool {
        let Some(stream) = finding.stream else { return false };
        let is_full = self.connections.len() >= MAX_CONNECTIONS;
        match self.connections.get_mut(&stream) {
            Some(problems) => problems.add(finding),
            None if is_full => false,
            None => self.connections.entry(stream).or_default().add(finding),
        }
    }

    /// The problems, with the numbers of their connections.
    pub fn problems(&self) -> impl Iterator<Item = (StreamId, &Problem)> {
        let all = self.connections.iter();
        all.flat_map(|(stream, problems)| problems.list.iter().map(move |problem| (*stream, problem)))
    }

    /// The requirements that are violated only as a part of problems with one other requirement at
    /// the root. The map contains this other requirement.
    #[must_use]
    pub fn roots(&self) -> BTreeMap<RequirementId, RequirementId> {
        // `None` is for a requirement that is a root, or that has several roots.
        let mut roots: BTreeMap<RequirementId, Option<RequirementId>> = BTreeMap::new();
        for (_, problem) in self.problems() {
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

    #[test]
    fn requirements_of_one_frame_have_one_root() {
        let mut groups = ProblemGroups::default();
        for stream in [0, 1] {
            [RESERVED, LAYOUT, CODE].into_iter().for_each(|id| groups.add(&finding(Some(stream), 7, id)));
        }
        assert_eq!(groups.problems().count(), 2);
        assert_eq!(groups.roots(), BTreeMap::from([(RESERVED, LAYOUT), (CODE, LAYOUT)]));
    }

    #[test]
    fn a_requirement_that_is_violated_alone_has_no_root() {
        let mut groups = ProblemGroups::default();
        [RESERVED, LAYOUT, CODE].into_iter().for_each(|id| groups.add(&finding(Some(0), 7, id)));
        groups.add(&finding(Some(1), 9, RESERVED));
        // A finding about a datagram belongs to no connection.
        groups.add(&finding(None, 11, CODE));
        assert!(groups.roots().is_empty(), "{:?}", groups.roots());
    }

    #[test]
    fn problems_beyond_the_limit_are_not_grouped() {
        let mut groups = ProblemGroups::default();
        for stream in 0..=MAX_CONNECTIONS as u32 {
            [LAYOUT, CODE].into_iter().for_each(|id| groups.add(&finding(Some(stream), 7, id)));
        }
        assert_eq!(groups.problems().count(), MAX_CONNECTIONS);
        assert!(groups.roots().is_empty());
    }
}
