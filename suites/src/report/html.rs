//! The HTML report: one file that contains everything, so that it can be sent alone.
//!
//! The page begins with the overview of the run ([`Overview`]). All results are folded below it, by
//! case. Long lists are folded, too, so that the page is short until the reader unfolds a part.
//!
//! Text that people read and search is plain (not compressed): requirements, verdicts, expected and
//! actual, and findings about the target. The first failed result of each case also has plain
//! details: its diagram and its bytes. The details of the other results are similar and large, some
//! 20 kB each. So these details are packed (compressed, [`super::pack`]), together with the
//! statements of the requirements and the findings about the tester. The capture of each result is
//! packed, too. A small script unpacks all packed parts. Without scripts the rest is still
//! readable, and the links lead to the files next to the page.
//!
//! Compression finds repetitions within 32 kB (RFC 1951). Packed pieces are short enough that the
//! details of neighbouring results lie within this distance. On average, a result takes some 3.5 kB
//! of the page. A third of these bytes is plain text, less than a third are the packed details, and
//! the rest is the packed capture.

mod lists;

use std::io;
use std::path::Path;

use askama::Template;
use weft_core::text::visible;

use super::cause_list::CauseList;
use super::command::command;
use super::evidence::{Sources, evidence_path, read_evidence};
use super::hex::{self, HexRow};
use super::overview::{Bar, Overview, SkippedCases};
use super::pack::{Pack, Packer, Piece};
use super::sections::{Section, sections};
use super::violations::{ViolatedRequirement, violated_requirements};
use super::{ReportError, ladder};
use crate::clock;
use crate::model::skip::{Remedy, remedy};
use crate::model::{
    CaseKey, CaseResult, EvidenceKind, ExpectedResult, MonitorFinding, RunReport, Verdict, labels_text,
};
use lists::LineList;

/// Maximum number of bytes that are shown for a step.
const MAX_SHOWN: usize = 256;
/// Maximum number of results with plain details.
const MAX_PLAIN: usize = 50;
/// Maximum size in bytes of a capture that the page includes. A larger capture stays next to the
/// page.
const MAX_CAPTURE: u64 = 4 << 20;
/// Maximum size in bytes of an included capture if the case passed and the monitor observed no
/// violation. Without this limit, long sessions that pass would need more space in the page than
/// all other cases together.
const MAX_PASSED_CAPTURE: u64 = 12 << 10;
/// The script that unpacks the packs.
const SCRIPT: &str = include_str!("../../templates/report.js");

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a RunReport,
    started: String,
    took: String,
    /// Name of the verdict that decides the colour of `line`.
    class: &'static str,
    /// The verdict of the run in one sentence.
    line: String,
    notes: Vec<String>,
    bars: Vec<Bar>,
    counts: Vec<(&'static str, u64)>,
    /// Causes of failures, errors and inconclusive results.
    causes: Vec<CauseList>,
    lists: Vec<LineList>,
    skipped: Vec<SkippedCases>,
    /// Results that the baseline expects, each with its link in the page.
    known: Vec<(String, &'a ExpectedResult)>,
    /// Numbers of met requirements, by strength.
    score: String,
    /// The labels of the run.
    labels: String,
    violated: Vec<ViolatedRequirement>,
    requirements: Vec<Requirement>,
    sections: Vec<Section>,
    /// Descriptions of the evidence's sources.
    evidence: Vec<String>,
    /// Whether the evidence has several sources. If it has, each result names its source.
    mixed: bool,
    parts: Vec<Part<'a>>,
    packs: Vec<Pack>,
    script: &'static str,
}

/// The details of a result: its events as a diagram, and its bytes.
#[derive(Template)]
#[template(path = "story.html")]
struct Details<'a> {
    /// The requirements that the page names only by id.
    requirements: Vec<Requirement>,
    /// The monitor's findings about the tester. Most of these findings are about the stimulus.
    about_tester: Vec<&'a MonitorFinding>,
    ladder: String,
    steps: Vec<StepView<'a>>,
}

/// A requirement with its worst verdict in this run.
struct Requirement {
    row: &'static weft_core::Requirement,
    verdict: Verdict,
    also_observed: bool,
}

/// A folded part of the page: cases with similar results.
struct Part<'a> {
    title: &'static str,
    groups: Vec<Group<'a>>,
}

/// The titles of the parts.
const PARTS: [&str; 4] =
    ["Cases that did not pass", "Cases that passed", "Cases that did not run", "Cases for another kind of target"];

/// The results of one case.
struct Group<'a> {
    /// Index of the part in [`PARTS`].
    part: usize,
    id: &'a str,
    title: &'a str,
    source: String,
    results: Vec<Entry<'a>>,
}

struct Entry<'a> {
    result: &'a CaseResult,
    /// The baseline entry that expects the result, if there is one.
    expected: Option<&'a ExpectedResult>,
    name: String,
    anchor: String,
    took: String,
    requirements: Vec<Requirement>,
    /// Whether each requirement has its statement in this entry, and not only its id.
    has_statements: bool,
    /// The monitor's findings about the target.
    about_target: Vec<&'a MonitorFinding>,
    /// The plain details as HTML.
    plain: Option<String>,
    /// The packed details.
    packed: Option<Piece>,
    /// The signature that a baseline entry needs, for a failed result.
    signature: Option<String>,
    /// The command that runs the variant again, for a failed result.
    again: Option<String>,
    capture: Option<Capture>,
    transcript: Option<String>,
}

/// The capture of a result.
struct Capture {
    /// Path of the capture, relative to the page.
    href: String,
    packed: Option<Piece>,
}

/// Fills the packs while it makes the page.
struct PageBuilder<'a> {
    report: &'a RunReport,
    out: &'a Path,
    details: Packer,
    captures: Packer,
    plain: usize,
}

struct StepView<'a> {
    heading: String,
    len: u64,
    text: &'a str,
    rows: Vec<HexRow>,
    more: u64,
}

/// Returns the report as HTML. Captures are read from the run's folder `out`. A missing capture is
/// omitted.
///
/// # Errors
/// The template of the page fails. No known report causes this error.
pub fn html(report: &RunReport, out: &Path) -> Result<String, ReportError> {
    let failed = |error: &dyn std::fmt::Display| ReportError::Make { format: "HTML", error: error.to_string() };
    let counts = Verdict::ALL.into_iter().map(|verdict| (verdict.as_str(), report.summary.counts.of(verdict)));
    let overview = Overview::of(&report.summary, &report.run.target.service, report.results.iter());
    let (details, captures) = (Packer::new("stories"), Packer::new("captures"));
    let mut builder = PageBuilder { report, out, details, captures, plain: 0 };
    let groups: Result<Vec<_>, _> = report.cases.iter().map(|case| builder.group(case)).collect();
    let groups = groups.map_err(|error| failed(&error))?;
    let mut packs = builder.details.finish().map_err(|error| failed(&error))?;
    packs.extend(builder.captures.finish().map_err(|error| failed(&error))?);
    let evidence: Vec<String> = Sources::of(report.results.iter().map(|result| &result.evidence)).lines().collect();
    let page = Page {
        report,
        started: clock::rfc3339(report.run.started_unix_ms),
        took: clock::duration(report.summary.duration_us),
        causes: overview.cause_lists(anchor),
        class: overview.class,
        line: overview.line,
        notes: overview.notes,
        bars: overview.bars,
        lists: lists::lines(&report.summary),
        skipped: overview.skipped,
        known: report.summary.expected.iter().map(|known| (anchor(&known.key), known)).collect(),
        counts: counts.filter(|(_, count)| *count > 0).collect(),
        labels: labels_text(&report.run.labels),
        score: report.summary.score.map(|score| score.to_string()).unwrap_or_default(),
        violated: violated_requirements(report, |result| anchor(&result.key)),
        requirements: ledger(report.results.iter()),
        sections: sections(report),
        mixed: evidence.len() > 1,
        evidence,
        parts: parts(groups),
        packs,
        script: SCRIPT,
    };
    let page = page.render().map_err(|error| failed(&error))?;
    Ok(visible(&page).into_owned())
}

/// Divides the cases into the parts of the page. Empty parts are left out.
fn parts(groups: Vec<Group<'_>>) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = PARTS.into_iter().map(|title| Part { title, groups: Vec::new() }).collect();
    for group in groups {
        if let Some(part) = parts.get_mut(group.part) {
            part.groups.push(group);
        }
    }
    parts.retain(|part| !part.groups.is_empty());
    parts
}

/// Returns the index in [`PARTS`] for a case with these results.
fn part_of(results: &[&CaseResult], service: &str) -> usize {
    let is_other = |result: &&CaseResult| remedy(&result.explanation, service) == Remedy::OtherTarget;
    match results.first() {
        _ if results.iter().any(|result| has_violation(result)) => 0,
        _ if results.iter().any(|result| result.verdict == Verdict::Pass) => 1,
        Some(first) if is_other(first) => 3,
        _ => 2,
    }
}

/// Returns the link to a result in the page.
fn anchor(key: &CaseKey) -> String {
    format!("#{}", link(&key.path()))
}

/// Returns the requirements of results in catalogue order, each with its worst verdict.
fn ledger<'a>(results: impl Iterator<Item = &'a CaseResult>) -> Vec<Requirement> {
    let mut worst = std::collections::BTreeMap::new();
    for judged in results.flat_map(|result| &result.requirements) {
        let entry = worst.entry(judged.requirement).or_insert((judged.verdict, judged.also_observed));
        *entry = (entry.0.max(judged.verdict), entry.1 && judged.also_observed);
    }
    let requirement = |(id, (verdict, also_observed)): (weft_core::RequirementId, _)| Requirement {
        row: id.row(),
        verdict,
        also_observed,
    };
    worst.into_iter().map(requirement).collect()
}

impl Entry<'_> {
    /// Returns the ids of the requirements, grouped by verdict. Ids are enough, because the packed
    /// details have the statements.
    fn ids(&self) -> impl Iterator<Item = (Verdict, String)> {
        let by = self.requirements.chunk_by(|a, b| a.verdict == b.verdict);
        by.filter_map(|alike| {
            let ids = alike.iter().map(|requirement| requirement.row.id).collect::<Vec<_>>().join(" ");
            Some((alike.first()?.verdict, ids))
        })
    }
}

impl<'a> PageBuilder<'a> {
    fn group(&mut self, case: &'a crate::model::CaseInfo) -> io::Result<Group<'a>> {
        let mut results: Vec<&CaseResult> =
            self.report.results.iter().filter(|result| result.key.case == case.id).collect();
        // Failures come first. A stable sort keeps the plan's order among equal results.
        results.sort_by_key(|result| std::cmp::Reverse((result.verdict, has_violation(result))));
        let part = part_of(&results, &self.report.run.target.service);
        let entry = |(index, result): (usize, &'a CaseResult)| {
            // Readers look for the first failed result, so it is readable without scripts.
            self.entry(result, index == 0 && has_violation(result))
        };
        let results = results.into_iter().enumerate().map(entry).collect::<io::Result<_>>()?;
        Ok(Group { part, id: &case.id, title: &case.title, source: case.source.to_string(), results })
    }

    fn entry(&mut self, result: &'a CaseResult, is_plain: bool) -> io::Result<Entry<'a>> {
        let (mut plain, mut packed) = (None, None);
        if !result.steps.is_empty() {
            if is_plain && self.plain < MAX_PLAIN {
                self.plain += 1;
                plain = Some(details(result, Vec::new())?);
            } else {
                let details = details(result, ledger(std::iter::once(result)))?;
                packed = Some(self.details.put(details.as_bytes())?);
            }
        }
        Ok(Entry {
            result,
            expected: self.report.summary.expects(result),
            name: result.key.to_string(),
            anchor: result.key.path(),
            took: clock::duration(result.duration_us),
            requirements: ledger(std::iter::once(result)),
            about_target: result.findings.iter().filter(|finding| finding.by_target).collect(),
            has_statements: packed.is_none() && has_violation(result),
            plain,
            packed,
            signature: has_violation(result).then(|| result.signature()),
            again: (result.verdict == Verdict::Fail).then(|| command(&self.report.run, &result.key)),
            capture: self.capture(result)?,
            transcript: evidence_path(result, EvidenceKind::Transcript).map(link),
        })
    }

    fn capture(&mut self, result: &CaseResult) -> io::Result<Option<Capture>> {
        let Some(path) = evidence_path(result, EvidenceKind::Pcapng) else { return Ok(None) };
        let most = if has_violation(result) { MAX_CAPTURE } else { MAX_PASSED_CAPTURE };
        let octets = read_evidence(self.out, path, most);
        let packed = octets.map(|octets| self.captures.put(&octets)).transpose()?;
        Ok(Some(Capture { href: link(path), packed }))
    }
}

/// Returns whether the result is worse than a pass, or is a pass in which the monitor observed a
/// violation of another requirement.
fn has_violation(result: &CaseResult) -> bool {
    result.verdict > Verdict::Pass || result.failing().next().is_some()
}

fn details(result: &CaseResult, requirements: Vec<Requirement>) -> io::Result<String> {
    let with_octets = result.steps.iter().filter_map(|step| Some((step, step.octets.as_ref()?)));
    let steps = with_octets.map(|(step, octets)| StepView {
        heading: format!("{:?}, connection {}", step.direction, step.connection).to_lowercase(),
        len: octets.len,
        text: &step.text,
        rows: hex::rows(octets, MAX_SHOWN),
        more: octets.len.saturating_sub(MAX_SHOWN as u64),
    });
    let about_tester = result.findings.iter().filter(|finding| !finding.by_target).collect();
    let details = Details { requirements, about_tester, ladder: ladder(&result.steps).svg(), steps: steps.collect() };
    let details = details.render().map_err(io::Error::other)?;
    Ok(visible(&details).into_owned())
}

/// Returns a path as a relative link. `%` is escaped, because it starts an escape sequence.
fn link(path: &str) -> String {
    path.replace('%', "%25")
}
