//! [`ProblemList`]: the listed findings of a capture as problems.

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::Finding;
use crate::diagnosis::{NumberedProblem, ProblemGroups};

use super::index::MAX_FINDINGS;

/// Groups the findings of an [`Index`](super::Index) into problems.
///
/// Add each finding to the list and to the index, in the same order. An entry of the list names the
/// findings by their places in [`Index::findings`](super::Index::findings).
#[derive(Debug, Default)]
pub struct ProblemList {
    groups: ProblemGroups,
    entries: Vec<ProblemEntry>,
    /// For each problem, the place of its entry in `entries`.
    entry_of_problem: Vec<usize>,
    /// For each listed finding, the place of its entry in `entries`.
    entry_of_finding: Vec<usize>,
}

/// A problem with its listed findings, or a finding that belongs to no problem.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProblemEntry {
    /// The number of the problem, as in [`ProblemGroups`]; `None` for a finding that belongs to no
    /// problem.
    pub number: Option<u64>,
    /// The highest severity of the findings.
    pub severity: Severity,
    /// The requirement at the root.
    pub requirement: RequirementId,
    /// The place of the first finding about this requirement.
    pub root: usize,
    /// The places of all findings, in ascending order. Not empty.
    pub findings: Vec<usize>,
    /// Number of frames with the problem.
    pub frames: u64,
}

impl ProblemList {
    /// Adds the next finding. After [`MAX_FINDINGS`] findings, further findings are not listed, but
    /// they still change the problems in [`ProblemList::groups`].
    pub fn add(&mut self, finding: &Finding) {
        let place = self.entry_of_finding.len();
        let problem = self.groups.add(finding);
        if place >= MAX_FINDINGS {
            return;
        }
        let known = problem.and_then(|problem| {
            let number = usize::try_from(problem.number).ok()?;
            self.entry_of_problem.get(number).copied()
        });
        let entry = known.unwrap_or(self.entries.len());
        self.entry_of_finding.push(entry);
        match self.entries.get_mut(entry) {
            Some(entry) => entry.add(place, problem),
            None => {
                if problem.is_some() {
                    self.entry_of_problem.push(entry);
                }
                self.entries.push(ProblemEntry::new(place, finding, problem));
            }
        }
    }

    /// The problems, and the findings that belong to no problem, in the order of their first
    /// findings.
    #[must_use]
    pub fn entries(&self) -> &[ProblemEntry] {
        &self.entries
    }

    /// The entry of a listed finding. `place` is the place of the finding in the index.
    #[must_use]
    pub fn entry_of(&self, place: usize) -> Option<&ProblemEntry> {
        self.entries.get(*self.entry_of_finding.get(place)?)
    }

    /// The problems of all findings, also of those that are not listed.
    #[must_use]
    pub fn groups(&self) -> &ProblemGroups {
        &self.groups
    }

    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let places = self.entry_of_problem.len() + 2 * self.entry_of_finding.len();
        self.groups.memory() + self.entries.len() * size_of::<ProblemEntry>() + places * size_of::<usize>()
    }
}

impl ProblemEntry {
    fn new(place: usize, finding: &Finding, problem: Option<NumberedProblem<'_>>) -> Self {
        let Finding { severity, requirement, .. } = *finding;
        let number = problem.map(|problem| problem.number);
        ProblemEntry { number, severity, requirement, root: place, findings: vec![place], frames: 1 }
    }

    /// Adds a finding about the problem.
    fn add(&mut self, place: usize, problem: Option<NumberedProblem<'_>>) {
        self.findings.push(place);
        let Some(NumberedProblem { problem, .. }) = problem else { return };
        (self.severity, self.frames) = (problem.severity, problem.count);
        // The root of a problem changes only to the requirement of the added finding.
        if self.requirement != problem.requirement {
            (self.requirement, self.root) = (problem.requirement, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::*;
    use crate::stream_id::StreamId;

    const LAYOUT: RequirementId = requirement!("RDMAP-4.8-37");
    const RESERVED: RequirementId = requirement!("RDMAP-4.8-6");

    fn finding(frame: u64, requirement: RequirementId, severity: Severity) -> Finding {
        Finding {
            requirement,
            severity,
            stream: Some(StreamId::FIRST),
            direction: 0,
            frame: frame.into(),
            range: 0..0,
            locations: Vec::new(),
            expected: String::new(),
            found: String::new(),
        }
    }

    #[test]
    fn an_entry_has_the_findings_of_a_problem() {
        let mut list = ProblemList::default();
        for (frame, requirement, severity) in [
            (7, RESERVED, Severity::Warning),
            (8, requirement!("DDP-A-2"), Severity::Note),
            (7, LAYOUT, Severity::Error),
            (9, RESERVED, Severity::Warning),
        ] {
            list.add(&finding(frame, requirement, severity));
        }
        let [problem, note] = list.entries() else { panic!("{list:?}") };
        assert_eq!((problem.number, problem.severity, problem.frames), (Some(0), Severity::Error, 2));
        assert_eq!((problem.requirement, problem.root, &problem.findings[..]), (LAYOUT, 2, &[0, 2, 3][..]));
        assert_eq!((note.number, note.severity, &note.findings[..]), (None, Severity::Note, &[1][..]));
        assert_eq!((list.entry_of(3), list.entry_of(1), list.entry_of(4)), (Some(problem), Some(note), None));
        assert_eq!(list.groups().count(), 1);
    }
}
