//! The page of one run. Like the HTML report, the page of a finished run begins with the overview
//! of the run, and folds its cases. A finished run with many cases has several pages.

use std::collections::HashMap;
use std::ops::Range;

use askama::Template;
use weft_core::RequirementId;
use weft_suites::clock;
use weft_suites::model::{
    CaseInfo, CaseKey, CaseResult, Counts, ExitCode, ExpectedResult, RunInfo, RunStatus, Score, Summary, Verdict,
};
use weft_suites::report::{Bar, CauseList, Overview, SkippedCases};
use weft_suites::store::{PlannedCase, RunDetail};

use super::captures::{Links, part};
use super::counts::{Count, counts, partial};
use super::operator::OperatorForms;
use super::{runs, time, url};
use crate::live::LiveState;

#[derive(Template)]
#[template(path = "run.html")]
struct Page<'a> {
    info: &'a RunInfo,
    status: RunStatus,
    /// If the run is over: the class and the text of the verdict line.
    line: Option<(&'static str, String)>,
    notes: Vec<String>,
    bars: Vec<Bar>,
    causes: Vec<CauseList>,
    skipped: Vec<SkippedCases>,
    finished: u64,
    planned: u64,
    /// Why the run is partial. `None` if the run is complete, or not yet over.
    partial: Option<&'static str>,
    /// If the run is a rerun: the address of the original run.
    rerun_of: Option<String>,
    started: String,
    took: Option<String>,
    exit_code: Option<u8>,
    /// The reasons for the exit code.
    reasons: &'a [String],
    /// CSS class of the progress bar: the outcome of the run, or the worst verdict so far.
    outcome: &'static str,
    counts: Vec<Count>,
    /// Address of the run's events. `None` if the run is over.
    events: Option<String>,
    failing: Vec<RequirementId>,
    /// Results that the target's baseline expects.
    expected: Vec<Expected<'a>>,
    /// Stale entries of the baseline.
    stale: &'a [String],
    /// The cases in folded parts.
    parts: Vec<Part<'a>>,
    /// The part of the list of cases on this page. The list is in the order of the parts.
    range: Range<usize>,
    /// The links to the other parts of the list. Empty if this page has all cases.
    pages: Links,
    /// The labels as `KEY=VALUE`, each with the address of the runs that have it.
    labels: Vec<(String, String)>,
    /// The numbers of met requirements, by level.
    score: String,
    /// The instruction for the user, and the seconds that the run still waits for the user.
    waits: Option<(String, u64)>,
    /// The estimated remaining time.
    left: Option<String>,
    target_href: String,
    self_href: String,
    actions: Option<RunActions<'a>>,
    /// For an operator, if the run is over: the address that deletes the run, and the form key.
    delete: Option<(String, &'a str)>,
}

/// The actions of an operator on a run.
struct RunActions<'a> {
    key: &'a str,
    /// Number of the job to stop, if this server executes the run.
    stop: Option<u64>,
    run_href: String,
    /// Number of cases that did not pass. `None` until the run is over.
    failed: Option<u64>,
}

/// The data of the page of a run.
pub(crate) struct RunPage<'a> {
    pub(crate) detail: &'a RunDetail,
    /// If the run is over: the results that did not pass.
    pub(crate) results: &'a [CaseResult],
    pub(crate) score: Option<Score>,
    pub(crate) live_state: Option<LiveState>,
    /// Number of the job, if this server started the run and the run is not over.
    pub(crate) job: Option<u64>,
    /// The rights of an operator, if the server can start runs against the target.
    pub(crate) forms: Option<OperatorForms<'a>>,
    /// The rights of an operator.
    pub(crate) operator: Option<OperatorForms<'a>>,
    /// Index of the first case in the list of cases, if the run is over.
    pub(crate) from: usize,
}

struct Expected<'a> {
    key: String,
    href: String,
    reason: &'a str,
    /// The link for details, and whether the page is allowed to make the link clickable.
    link: Option<(&'a str, bool)>,
}

/// Cases with similar verdicts.
struct Part<'a> {
    title: &'static str,
    /// Number of cases, including those on other pages.
    cases: usize,
    /// The cases on this page.
    groups: Vec<Group<'a>>,
    /// If this page has none of the cases: the address of the first page that has some.
    elsewhere: Option<String>,
}

/// The titles of the parts.
const PARTS: [&str; 4] =
    ["Cases that did not pass", "Cases that passed", "Cases that did not run", "Cases without a verdict"];

/// Variants of one case that are adjacent in the plan.
struct Group<'a> {
    id: &'a str,
    case: Option<&'a CaseInfo>,
    lines: Vec<Line>,
}

struct Line {
    key: String,
    href: String,
    verdict: Option<Verdict>,
    took: String,
}

/// Renders the page.
pub(crate) fn run(shown: RunPage<'_>) -> Result<String, askama::Error> {
    let RunPage { detail, results, score, live_state, job, forms, operator, from } = shown;
    let record = &detail.record;
    let mut so_far = Counts::default();
    for verdict in detail.planned.iter().filter_map(|case| case.verdict) {
        so_far.add(verdict);
    }
    let summary = record.summary.as_ref();
    let live_state = live_state.unwrap_or_default();
    // The events of a run report the wait for the target earlier than the store does.
    let status = if live_state.waits.is_some() { RunStatus::WaitingForTarget } else { record.status };
    let is_live = summary.is_none() && status != RunStatus::Broken;
    let overview = summary.map(|summary| Overview::of(summary, &record.info.target.service, results.iter()));
    let href = |key: &CaseKey| url::case(&record.info.id, key);
    let causes = overview.as_ref().map(|overview| overview.cause_lists(href)).unwrap_or_default();
    let (line, notes, bars, skipped) = match overview {
        Some(Overview { class, line, notes, bars, skipped, .. }) => (Some((class, line)), notes, bars, skipped),
        None => Default::default(),
    };
    let total = detail.planned.len();
    // The script of a live page needs the lines of all cases.
    let (range, pages) = match is_live {
        true => (0..total, Links::new()),
        false => part(from, total, |from| url::run_part(&record.info.id, from)),
    };
    let page = Page {
        line,
        notes,
        bars,
        causes,
        skipped,
        info: &record.info,
        status,
        finished: record.finished,
        planned: record.planned,
        partial: partial(record).filter(|_| !is_live),
        rerun_of: record.info.rerun_of.as_deref().map(url::run),
        started: time::utc(record.info.started_unix_ms),
        took: summary.map(|summary| clock::duration(summary.duration_us)),
        exit_code: summary.map(|summary| summary.exit_code.code()),
        reasons: summary.map_or(&[], |summary| &summary.reasons),
        outcome: outcome(summary, &so_far),
        counts: counts(&so_far),
        events: is_live.then(|| format!("{}/events", url::run(&record.info.id))),
        failing: summary.map(|summary| summary.failing.clone()).unwrap_or_default(),
        expected: summary.map(|summary| expected(&record.info.id, summary)).unwrap_or_default(),
        stale: summary.map_or(&[], |summary| &summary.stale),
        parts: parts(detail, &range),
        range,
        pages,
        labels: runs::labels(&record.info),
        score: score.as_ref().map(ToString::to_string).unwrap_or_default(),
        waits: live_state.waits,
        left: live_state.left,
        target_href: url::target(&record.info.target.name),
        self_href: url::run(&record.info.id),
        delete: operator.filter(|_| !is_live).map(|forms| (url::delete(&record.info.id), forms.key)),
        actions: forms.map(|forms| RunActions {
            key: forms.key,
            stop: job,
            run_href: url::run(&record.info.id),
            failed: summary.map(|_| so_far.fail + so_far.error + so_far.inconclusive),
        }),
    };
    page.render()
}

fn expected<'a>(run: &str, summary: &'a Summary) -> Vec<Expected<'a>> {
    let one = |expected: &'a ExpectedResult| Expected {
        key: expected.key.to_string(),
        href: url::case(run, &expected.key),
        reason: &expected.reason,
        // Links with other schemes (for example `javascript:`) stay text.
        link: expected.link.as_deref().map(|link| (link, link.starts_with("https://") || link.starts_with("http://"))),
    };
    summary.expected.iter().map(one).collect()
}

/// Returns the CSS class of the progress bar. A finished run is green only if its results are as
/// expected.
fn outcome(summary: Option<&Summary>, so_far: &Counts) -> &'static str {
    let worst = || {
        [Verdict::Error, Verdict::Fail, Verdict::Inconclusive, Verdict::Pass].into_iter().find(|v| so_far.of(*v) > 0)
    };
    match summary.map(|summary| summary.exit_code) {
        None => worst().map_or("", Verdict::as_str),
        Some(ExitCode::AsExpected) => Verdict::Pass.as_str(),
        Some(ExitCode::Unexpected) => Verdict::Fail.as_str(),
        Some(ExitCode::NothingRun) => "",
        Some(ExitCode::Inconclusive) => Verdict::Inconclusive.as_str(),
        Some(ExitCode::HarnessError) => Verdict::Error.as_str(),
    }
}

fn line(run: &str, planned: &PlannedCase) -> Line {
    Line {
        key: planned.key.to_string(),
        href: url::case(run, &planned.key),
        verdict: planned.verdict,
        took: planned.duration_us.map(clock::duration).unwrap_or_default(),
    }
}

/// Divides the cases into the parts of the page. Empty parts are left out. `range` is the part of
/// the list of cases on this page.
fn parts<'a>(detail: &'a RunDetail, range: &Range<usize>) -> Vec<Part<'a>> {
    let run = detail.record.info.id.as_str();
    let infos: HashMap<&str, &CaseInfo> = detail.cases.iter().map(|case| (case.id.as_str(), case)).collect();
    let mut cases: Vec<Vec<&[PlannedCase]>> = vec![Vec::new(); PARTS.len()];
    for variants in detail.planned.chunk_by(|a, b| a.key.case == b.key.case) {
        if let Some(part) = cases.get_mut(part_of(variants)) {
            part.push(variants);
        }
    }
    let mut parts = Vec::new();
    let mut at = 0;
    for (title, cases) in PARTS.into_iter().zip(cases).filter(|(_, cases)| !cases.is_empty()) {
        let (begin, count) = (at, cases.len());
        let mut groups = Vec::new();
        for variants in cases {
            let [from, to] = [range.start, range.end].map(|end| end.saturating_sub(at).min(variants.len()));
            at += variants.len();
            let shown = variants.get(from..to).unwrap_or_default();
            let Some(id) = shown.first().map(|case| case.key.case.as_str()) else { continue };
            let lines = shown.iter().map(|case| line(run, case)).collect();
            groups.push(Group { id, case: infos.get(id).copied(), lines });
        }
        let elsewhere = groups.is_empty().then(|| url::run_part(run, begin));
        parts.push(Part { title, cases: count, groups, elsewhere });
    }
    parts
}

/// Returns the index in [`PARTS`] for the variants of a case.
fn part_of(variants: &[PlannedCase]) -> usize {
    match variants.iter().filter_map(|case| case.verdict).max() {
        Some(verdict) if verdict > Verdict::Pass => 0,
        _ if variants.iter().any(|case| case.verdict.is_none()) => 3,
        Some(Verdict::Pass) => 1,
        _ => 2,
    }
}
