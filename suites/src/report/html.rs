//! The HTML report: one file with everything in it, readable without a network and without scripts.

use askama::Template;

use super::hex::{self, HexRow};
use super::sections::{Section, sections};
use super::{ReportError, ladder};
use crate::clock;
use crate::model::{CaseResult, EvidenceKind, ExpectedResult, RunReport, Verdict};

/// Octets of a step that the page shows.
const SHOWN: usize = 256;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a RunReport,
    started: String,
    took: String,
    counts: Vec<(&'static str, u64)>,
    requirements: Vec<Requirement>,
    sections: Vec<Section>,
    groups: Vec<Group<'a>>,
}

/// A requirement with its worst verdict in this run.
struct Requirement {
    row: &'static weft_core::Requirement,
    verdict: Verdict,
    seen_on_the_way: bool,
}

/// The results of one case.
struct Group<'a> {
    id: &'a str,
    title: &'a str,
    source: String,
    results: Vec<Entry<'a>>,
}

struct Entry<'a> {
    result: &'a CaseResult,
    /// Why the baseline expects it.
    expected: Option<&'a ExpectedResult>,
    name: String,
    anchor: String,
    took: String,
    requirements: Vec<Requirement>,
    ladder: String,
    steps: Vec<StepView<'a>>,
    pcapng: Option<String>,
    transcript: Option<String>,
    open: bool,
}

struct StepView<'a> {
    heading: String,
    len: u64,
    text: &'a str,
    rows: Vec<HexRow>,
    more: u64,
}

/// The report as HTML.
///
/// # Errors
/// None that this model is known to have.
pub fn html(report: &RunReport) -> Result<String, ReportError> {
    let counts = Verdict::ALL.into_iter().map(|verdict| (verdict.as_str(), report.summary.counts.of(verdict)));
    let page = Page {
        report,
        started: clock::rfc3339(report.run.started_unix_ms),
        took: clock::duration(report.summary.duration_us),
        counts: counts.filter(|(_, count)| *count > 0).collect(),
        requirements: ledger(report.results.iter()),
        sections: sections(report),
        groups: report.cases.iter().map(|case| group(report, case)).collect(),
    };
    page.render().map_err(|error| ReportError::Make { format: "HTML", error: error.to_string() })
}

/// The requirements of results with the worst verdict of each, in the order of the catalogue.
fn ledger<'a>(results: impl Iterator<Item = &'a CaseResult>) -> Vec<Requirement> {
    let mut worst = std::collections::BTreeMap::new();
    for judged in results.flat_map(|result| &result.requirements) {
        let entry = worst.entry(judged.requirement).or_insert((judged.verdict, judged.seen_on_the_way));
        *entry = (entry.0.max(judged.verdict), entry.1 && judged.seen_on_the_way);
    }
    let requirement = |(id, (verdict, seen_on_the_way)): (weft_core::RequirementId, _)| Requirement {
        row: id.row(),
        verdict,
        seen_on_the_way,
    };
    worst.into_iter().map(requirement).collect()
}

fn group<'a>(report: &'a RunReport, case: &'a crate::model::CaseInfo) -> Group<'a> {
    let results = report.results.iter().filter(|result| result.key.case == case.id);
    let mut results: Vec<Entry<'_>> = results.map(|result| entry(report, result)).collect();
    // Failures first; a stable sort keeps the plan's order among equals.
    results.sort_by_key(|entry| std::cmp::Reverse(entry.result.verdict));
    // The first failure is unfolded: that is what somebody opens a report for.
    if let Some(first) = results.first_mut() {
        first.open = first.result.verdict > Verdict::Pass;
    }
    Group { id: &case.id, title: &case.title, source: case.source.to_string(), results }
}

fn entry<'a>(report: &'a RunReport, result: &'a CaseResult) -> Entry<'a> {
    let with_octets = result.steps.iter().filter_map(|step| Some((step, step.octets.as_ref()?)));
    let steps = with_octets.map(|(step, octets)| StepView {
        heading: format!("{:?}, connection {}", step.direction, step.connection).to_lowercase(),
        len: octets.len,
        text: &step.text,
        rows: hex::rows(octets, SHOWN),
        more: octets.len.saturating_sub(SHOWN as u64),
    });
    Entry {
        result,
        expected: report.summary.expects(result),
        name: result.key.to_string(),
        anchor: result.key.path(),
        took: clock::duration(result.duration_us),
        requirements: ledger(std::iter::once(result)),
        ladder: ladder(&result.steps).svg(),
        steps: steps.collect(),
        pcapng: result.evidence.path(EvidenceKind::Pcapng).map(link),
        transcript: result.evidence.path(EvidenceKind::Transcript).map(link),
        open: false,
    }
}

/// A path as a relative link: `%` begins an escape there.
fn link(path: &str) -> String {
    path.replace('%', "%25")
}
