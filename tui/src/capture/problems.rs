//! Groups the findings of a list into problems, so that each problem has one line. A line with
//! several findings unfolds.
//!
//! The findings about one frame of a connection are one problem: for example, a malformed Terminate
//! can violate ten requirements. If one of these requirements is violated again on the connection,
//! this is the same problem. The list does not know the sender of a frame, so both endpoints of a
//! connection can share a problem.

use std::collections::{HashMap, HashSet};

use weft_core::RequirementId;
use weft_dissector::browse::packed::ListedFinding;
use weft_dissector::diagnosis::ProblemKind;
use weft_dissector::output::text::counted;
use weft_dissector::{FrameNumber, StreamId};

use super::lines::Line;

/// One problem. The fields with findings are indexes.
#[derive(Debug)]
struct Problem {
    findings: Vec<usize>,
    /// The finding with the highest severity. Of several in the first frame, the root as in
    /// `weft lint`.
    root: usize,
    /// Number of frames with the problem.
    frames: u64,
    last_frame: FrameNumber,
}

/// The findings of a list, and their problems in the order of their first finding.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    findings: Vec<ListedFinding>,
    list: Vec<Problem>,
    of_frame: HashMap<(Option<StreamId>, FrameNumber), usize>,
    of_requirement: HashMap<(Option<StreamId>, RequirementId), usize>,
    unfolded: HashSet<usize>,
}

impl Problems {
    /// Returns the number of problems.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the number of findings.
    pub(crate) fn findings(&self) -> usize {
        self.findings.len()
    }

    /// Adds the next finding.
    pub(crate) fn add(&mut self, finding: ListedFinding) {
        let ListedFinding { frame, stream, requirement, severity } = finding;
        let index = self.findings.len();
        self.findings.push(finding);
        let of_frame = self.of_frame.get(&(stream, frame)).copied();
        let place = of_frame.or_else(|| self.of_requirement.get(&(stream, requirement)).copied());
        let place = place.unwrap_or_else(|| {
            self.list.push(Problem { findings: Vec::new(), root: index, frames: 0, last_frame: frame });
            self.list.len() - 1
        });
        self.of_frame.entry((stream, frame)).or_insert(place);
        self.of_requirement.entry((stream, requirement)).or_insert(place);
        let problem = &mut self.list[place];
        problem.findings.push(index);
        problem.frames += u64::from(of_frame.is_none());
        problem.last_frame = problem.last_frame.max(frame);
        let root = &self.findings[problem.root];
        let is_lower = || problem.frames == 1 && ProblemKind::is_root(requirement, root.requirement);
        if severity > root.severity || severity == root.severity && is_lower() {
            problem.root = index;
        }
    }

    /// Returns the index of the first problem in `frame` or in a later frame, or 0.
    pub(crate) fn near(&self, frame: FrameNumber) -> usize {
        self.list.iter().position(|problem| problem.last_frame >= frame).unwrap_or(0)
    }

    /// Unfolds (`Some(true)`), folds (`Some(false)`) or toggles a problem.
    pub(crate) fn turn(&mut self, problem: usize, unfold: Option<bool>) {
        let is_unfolded = self.unfolded.remove(&problem);
        if unfold.unwrap_or(!is_unfolded) {
            self.unfolded.insert(problem);
        }
    }

    /// Returns the lines of the list. The second value of a line is the problem that the line folds
    /// or unfolds, if it has several findings.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Line, Option<usize>)> {
        self.list.iter().enumerate().flat_map(move |(place, problem)| {
            let is_unfolded = self.unfolded.contains(&place);
            let members = if is_unfolded { problem.findings.as_slice() } else { &[] };
            let members = members.iter().map(move |index| (line(&self.findings[*index], "    ", ""), None));
            std::iter::once(self.head(place, problem, is_unfolded)).chain(members)
        })
    }

    fn head(&self, place: usize, problem: &Problem, is_unfolded: bool) -> (Line, Option<usize>) {
        let root = &self.findings[problem.root];
        let count = problem.findings.len() as u64;
        if count == 1 {
            return (line(root, "  ", ""), None);
        }
        let counts = format!("{} in {}: ", counted(count, "finding"), counted(problem.frames, "frame"));
        (line(root, if is_unfolded { "▾ " } else { "▸ " }, &counts), Some(place))
    }
}

/// Returns the line of a finding. `sign` is the begin of the line, and `counts` comes before the
/// summary of the requirement.
fn line(finding: &ListedFinding, sign: &str, counts: &str) -> Line {
    let requirement = finding.requirement.row();
    let stream = finding.stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string());
    Line {
        text: format!(
            "{sign}{:>6} {stream:>3}  {:<8}{:<14}{counts}{}",
            finding.frame,
            finding.severity.to_string(),
            requirement.id,
            requirement.summary
        ),
        frame: Some(finding.frame),
        stream: finding.stream,
        severity: Some(finding.severity),
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement::Severity;

    use super::*;

    fn finding(frame: u64, id: &str, severity: Severity) -> ListedFinding {
        let requirement = id.parse().unwrap();
        ListedFinding { frame: frame.into(), stream: Some(StreamId::FIRST), requirement, severity }
    }

    fn shown(problems: &Problems) -> Vec<(String, Option<u64>, Option<usize>)> {
        let first = |line: &Line| line.text.chars().take(2).collect::<String>();
        problems.lines().map(|(line, problem)| (first(&line), line.frame.map(u64::from), problem)).collect()
    }

    #[test]
    fn one_problem_is_one_line_until_it_is_unfolded() {
        let mut problems = Problems::default();
        for (frame, id, severity) in [
            (7, "DDP-4.3-6", Severity::Warning),
            (7, "RDMAP-4.8-8", Severity::Error),
            (9, "RDMAP-4.8-8", Severity::Error),
            (9, "RDMAP-7.1-6", Severity::Error),
            (20, "MPA-4.1-6", Severity::Note),
        ] {
            problems.add(finding(frame, id, severity));
        }
        assert_eq!((problems.len(), problems.findings()), (2, 5));
        let folded = [("▸ ".to_owned(), Some(7), Some(0)), ("  ".to_owned(), Some(20), None)];
        assert_eq!(shown(&problems), folded);
        let (head, _) = problems.lines().next().unwrap();
        assert!(head.text.contains("RDMAP-4.8-8   4 findings in 2 frames: "), "{}", head.text);
        assert_eq!(head.severity, Some(Severity::Error));
        problems.turn(0, None);
        let frames: Vec<Option<u64>> = shown(&problems).into_iter().map(|(_, frame, _)| frame).collect();
        assert_eq!(frames, [7, 7, 7, 9, 9, 20].map(Some));
        problems.turn(0, Some(true));
        assert_eq!(shown(&problems).len(), 6);
        problems.turn(0, None);
        assert_eq!(shown(&problems), folded);
        assert_eq!([1, 8, 10, 21].map(|frame: u64| problems.near(frame.into())), [0, 0, 1, 0]);
    }

    #[test]
    fn the_root_of_the_first_frame_is_that_of_lint() {
        let mut problems = Problems::default();
        for (frame, id) in [(7, "RDMAP-4.8-6"), (7, "RDMAP-4.8-37"), (7, "RDMAP-4.8-3")] {
            problems.add(finding(frame, id, Severity::Error));
        }
        let (head, _) = problems.lines().next().unwrap();
        assert!(head.text.contains("RDMAP-4.8-37  3 findings in 1 frame: "), "{}", head.text);
    }

    #[test]
    fn connections_share_no_problem() {
        let mut problems = Problems::default();
        let other = ListedFinding { stream: None, ..finding(8, "MPA-4.1-6", Severity::Error) };
        [finding(7, "MPA-4.1-6", Severity::Error), other].into_iter().for_each(|finding| problems.add(finding));
        assert_eq!(problems.len(), 2);
    }
}
