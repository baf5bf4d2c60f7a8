//! The page with the findings of a capture: one line for each problem, with its rules folded below.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_dissector::browse::index::IndexedFinding;
use weft_dissector::browse::{ProblemEntry, Survey};
use weft_dissector::output::text::counted;

use super::common::{Head, Links, class, part};
use crate::view::url;

/// The maximum number of rules in the fold of a problem.
const MAX_RULES: usize = 64;

#[derive(Template)]
#[template(path = "capture_findings.html")]
struct Page<'a> {
    head: Head,
    severity: Option<Severity>,
    rows: Vec<Line<'a>>,
    first: usize,
    last: usize,
    total: usize,
    /// The numbers of problems, findings and rules in all lines, as text.
    counts: String,
    left_out: u64,
    pages: Links,
}

/// A problem, or a finding that belongs to no problem.
struct Line<'a> {
    /// The first finding about the requirement at the root.
    root: Rule<'a>,
    severity: Severity,
    class: &'static str,
    /// The numbers of findings and packets. `None` for a single finding.
    extent: Option<String>,
    /// The other violated requirements.
    rules: Vec<Rule<'a>>,
    /// The number of these requirements, as text.
    fold: String,
    /// Number of the requirements that are not in `rules`.
    more: usize,
}

/// A violated requirement of a problem.
struct Rule<'a> {
    /// The first finding about the requirement.
    finding: &'a IndexedFinding,
    summary: &'static str,
    /// Address of the packet.
    href: String,
    class: &'static str,
    /// Number of further findings about the requirement.
    further: u64,
}

/// Renders the page with the problems that have a finding of this severity, or with all problems if
/// `severity` is `None`. `from` is the index of the first line to show.
pub(crate) fn findings(
    head: Head,
    survey: &Survey,
    severity: Option<Severity>,
    from: usize,
) -> Result<String, askama::Error> {
    let all = survey.index.findings();
    let is_wanted = |entry: &&ProblemEntry| {
        severity.is_none_or(|wanted| findings_of(entry, all).any(|finding| finding.severity == wanted))
    };
    let wanted: Vec<&ProblemEntry> = survey.problems.entries().iter().filter(is_wanted).collect();
    let base = head.base.clone();
    let (range, pages) = part(from, wanted.len(), |from| url::findings(&base, severity, from));
    let page = Page {
        severity,
        rows: wanted[range.clone()].iter().filter_map(|entry| line(&base, entry, all)).collect(),
        first: range.start + 1,
        last: range.end,
        total: wanted.len(),
        counts: count(&wanted, all),
        left_out: survey.index.counts().iter().sum::<u64>().saturating_sub(all.len() as u64),
        pages,
        head,
    };
    page.render()
}

/// The findings of an entry.
fn findings_of<'a>(entry: &ProblemEntry, all: &'a [IndexedFinding]) -> impl Iterator<Item = &'a IndexedFinding> {
    entry.findings.iter().filter_map(move |place| all.get(*place))
}

/// Makes the line of an entry.
fn line<'a>(base: &str, entry: &ProblemEntry, all: &'a [IndexedFinding]) -> Option<Line<'a>> {
    let root = rule(base, all.get(entry.root)?);
    let mut rules: Vec<Rule<'a>> = Vec::new();
    let mut place_of: BTreeMap<RequirementId, usize> = BTreeMap::new();
    for finding in findings_of(entry, all).filter(|finding| finding.requirement != entry.requirement) {
        let place = *place_of.entry(finding.requirement).or_insert(rules.len());
        match rules.get_mut(place) {
            Some(known) => known.further += 1,
            None => rules.push(rule(base, finding)),
        }
    }
    let fold = counted(rules.len() as u64, "more rule");
    let more = rules.len().saturating_sub(MAX_RULES);
    rules.truncate(MAX_RULES);
    let extent = match entry.findings.len() {
        1 => None,
        count => Some(format!("{} in {}", counted(count as u64, "finding"), counted(entry.frames, "packet"))),
    };
    Some(Line { root, severity: entry.severity, class: class(entry.severity), extent, rules, fold, more })
}

fn rule<'a>(base: &str, finding: &'a IndexedFinding) -> Rule<'a> {
    Rule {
        finding,
        summary: finding.requirement.row().summary,
        href: url::packet(base, finding.frame, ""),
        class: class(finding.severity),
        further: 0,
    }
}

/// Counts problems with their findings and rules, and findings that belong to no problem. Returns
/// for example "2 problems with 12 findings about 11 rules, and 3 single findings".
fn count(entries: &[&ProblemEntry], all: &[IndexedFinding]) -> String {
    let (mut problems, mut findings, mut singles) = (0, 0, 0);
    let mut rules: BTreeSet<RequirementId> = BTreeSet::new();
    for entry in entries {
        if entry.number.is_none() {
            singles += 1;
            continue;
        }
        problems += 1;
        findings += entry.findings.len() as u64;
        rules.extend(findings_of(entry, all).map(|finding| finding.requirement));
    }
    let singles_text = counted(singles, "single finding");
    if problems == 0 {
        return singles_text;
    }
    let (problems, findings) = (counted(problems, "problem"), counted(findings, "finding"));
    let text = format!("{problems} with {findings} about {}", counted(rules.len() as u64, "rule"));
    if singles == 0 { text } else { format!("{text}, and {singles_text}") }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_dissector::browse::ProblemList;
    use weft_dissector::{Finding, FrameNumber, StreamId};

    use super::*;

    /// Makes a problem with three rules in the frames 7 and 9 of a connection, and a note about a
    /// datagram.
    fn listed() -> (ProblemList, Vec<IndexedFinding>) {
        let (mut problems, mut indexed) = (ProblemList::default(), Vec::new());
        for (stream, frame, requirement, severity) in [
            (Some(0), 7, requirement!("RDMAP-4.8-6"), Severity::Error),
            (Some(0), 7, requirement!("RDMAP-4.8-37"), Severity::Error),
            (Some(0), 9, requirement!("RDMAP-4.8-6"), Severity::Error),
            (Some(0), 9, requirement!("DDP-A-2"), Severity::Note),
            (None, 11, requirement!("DDP-A-2"), Severity::Note),
        ] {
            let (frame, stream) = (FrameNumber::from(frame), stream.map(StreamId::from));
            problems.add(&Finding {
                requirement,
                severity,
                stream,
                direction: 0,
                frame,
                range: 0..0,
                locations: Vec::new(),
                expected: String::new(),
                found: String::new(),
            });
            let (expected, found) = (String::new(), String::new());
            indexed.push(IndexedFinding { frame, stream, requirement, severity, expected, found });
        }
        (problems, indexed)
    }

    #[test]
    fn a_problem_has_one_line_with_its_rules() {
        let (problems, all) = listed();
        let lines: Vec<Line<'_>> = problems.entries().iter().filter_map(|entry| line("", entry, &all)).collect();
        let [problem, single] = &lines[..] else { panic!("{} lines", lines.len()) };
        assert_eq!(problem.root.finding.requirement, requirement!("RDMAP-4.8-37"));
        assert_eq!(problem.extent.as_deref(), Some("4 findings in 2 packets"));
        let rules = problem.rules.iter().map(|rule| (rule.finding.requirement.as_str(), rule.further));
        assert_eq!(rules.collect::<Vec<_>>(), [("RDMAP-4.8-6", 1), ("DDP-A-2", 0)]);
        assert_eq!((problem.fold.as_str(), problem.more), ("2 more rules", 0));
        assert!(single.extent.is_none() && single.rules.is_empty());
    }

    #[test]
    fn counts_problems_findings_and_rules() {
        let (problems, all) = listed();
        let entries: Vec<&ProblemEntry> = problems.entries().iter().collect();
        assert_eq!(count(&entries, &all), "1 problem with 4 findings about 3 rules, and 1 single finding");
        assert_eq!(count(&entries[..1], &all), "1 problem with 4 findings about 3 rules");
        assert_eq!(count(&entries[1..], &all), "1 single finding");
    }
}
