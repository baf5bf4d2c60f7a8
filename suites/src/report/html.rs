//! The HTML report: one file that contains everything, so that it can be sent alone.
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

use std::path::{Component, Path};
use std::{fs, io};

use askama::Template;
use weft_core::text::visible;

use super::command::command;
use super::evidence::Sources;
use super::hex::{self, HexRow};
use super::pack::{Pack, Packer, Piece};
use super::sections::{Section, sections};
use super::violations::{ViolatedRequirement, violated_requirements};
use super::{ReportError, ladder};
use crate::clock;
use crate::evidence::CASES;
use crate::model::{CaseResult, EvidenceKind, ExpectedResult, MonitorFinding, RunReport, Verdict};

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
    counts: Vec<(&'static str, u64)>,
    /// Numbers of met requirements, by strength.
    score: String,
    violated: Vec<ViolatedRequirement>,
    requirements: Vec<Requirement>,
    sections: Vec<Section>,
    /// Descriptions of the evidence's sources.
    evidence: Vec<String>,
    /// Whether the evidence has several sources. If it has, each result names its source.
    mixed: bool,
    groups: Vec<Group<'a>>,
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

/// The results of one case.
struct Group<'a> {
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
    open: bool,
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
        counts: counts.filter(|(_, count)| *count > 0).collect(),
        score: report.summary.score.map(|score| score.to_string()).unwrap_or_default(),
        violated: violated_requirements(report, |result| format!("#{}", link(&result.key.path()))),
        requirements: ledger(report.results.iter()),
        sections: sections(report),
        mixed: evidence.len() > 1,
        evidence,
        groups,
        packs,
        script: SCRIPT,
    };
    let page = page.render().map_err(|error| failed(&error))?;
    Ok(visible(&page).into_owned())
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
        let entry = |(index, result): (usize, &'a CaseResult)| {
            // The first failed result is unfolded, because readers look for it.
            self.entry(result, index == 0 && has_violation(result))
        };
        let results = results.into_iter().enumerate().map(entry).collect::<io::Result<_>>()?;
        Ok(Group { id: &case.id, title: &case.title, source: case.source.to_string(), results })
    }

    fn entry(&mut self, result: &'a CaseResult, open: bool) -> io::Result<Entry<'a>> {
        let (mut plain, mut packed) = (None, None);
        if !result.steps.is_empty() {
            if open && self.plain < MAX_PLAIN {
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
            open,
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

/// Returns the path of a file of evidence, if it is in the folder of the cases. A result of another
/// host could name any file or address.
fn evidence_path(result: &CaseResult, kind: EvidenceKind) -> Option<&str> {
    let path = result.evidence.path(kind)?;
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    (is_plain && Path::new(path).starts_with(CASES)).then_some(path)
}

/// Returns the content of the file `path` in `out`, if it is a regular file of at most `most`
/// bytes. Links below `out` are not followed, because they could lead to any file.
fn read_evidence(out: &Path, path: &str, most: u64) -> Option<Vec<u8>> {
    let mut file = out.to_owned();
    for part in Path::new(path) {
        file.push(part);
        if fs::symlink_metadata(&file).ok()?.is_symlink() {
            return None;
        }
    }
    let fits = fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= most);
    if fits { fs::read(&file).ok() } else { None }
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
