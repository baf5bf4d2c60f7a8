//! One run.

use askama::Template;
use weft_core::RequirementId;
use weft_suites::clock;
use weft_suites::model::{CaseInfo, Counts, ExitCode, ExpectedResult, RunInfo, RunStatus, Score, Summary, Verdict};
use weft_suites::store::{PlannedCase, RunDetail};

use super::counts::{Count, counts, partial};
use super::hand::Hand;
use super::{time, url};
use crate::live::Moment;

#[derive(Template)]
#[template(path = "run.html")]
struct Page<'a> {
    info: &'a RunInfo,
    status: RunStatus,
    finished: u64,
    planned: u64,
    /// Why the run is partial, once it is over.
    partial: Option<&'static str>,
    /// Address of the run whose cases it reruns.
    rerun_of: Option<String>,
    started: String,
    took: Option<String>,
    exit_code: Option<u8>,
    /// The reasons for the exit code.
    reasons: &'a [String],
    /// The class of the bar: the outcome of the run, or the worst verdict so far.
    outcome: &'static str,
    counts: Vec<Count>,
    /// Address of the run's events; `None` if the run is over.
    events: Option<String>,
    failing: Vec<RequirementId>,
    /// Results that the target's baseline expects.
    expected: Vec<Expected<'a>>,
    /// Stale entries of the baseline.
    stale: &'a [String],
    /// If the run is over: the first [`UNSOUND`] cases that neither passed nor were skipped.
    unsound: Vec<Line>,
    /// The number of further such cases.
    unsound_more: usize,
    groups: Vec<Group<'a>>,
    /// Requirements that are met, by level.
    score: String,
    /// The instruction to the user, and the seconds that the run still waits for it.
    waits: Option<(String, u64)>,
    /// The estimated remaining time.
    left: Option<String>,
    target_href: String,
    self_href: String,
    acts: Option<Acts<'a>>,
}

/// The actions of an operator on a run.
struct Acts<'a> {
    key: &'a str,
    /// Number of the job that can be stopped.
    stop: Option<u64>,
    run_href: String,
    /// Number of cases that did not pass, once the run is over.
    failed: Option<u64>,
}

/// The data of the page of a run.
pub(crate) struct RunPage<'a> {
    pub(crate) detail: &'a RunDetail,
    pub(crate) score: Option<Score>,
    pub(crate) moment: Option<Moment>,
    /// Number of the job, if this server started the run and it is not over.
    pub(crate) job: Option<u64>,
    /// The rights of an operator, if the server may run against the target.
    pub(crate) hand: Option<Hand<'a>>,
}

struct Expected<'a> {
    key: String,
    href: String,
    reason: &'a str,
    /// The link for details, and whether it may be clickable.
    link: Option<(&'a str, bool)>,
}

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

/// The maximum number of failed cases at the top of the page.
const UNSOUND: usize = 60;

/// The page.
pub(crate) fn run(shown: RunPage<'_>) -> Result<String, askama::Error> {
    let RunPage { detail, score, moment, job, hand } = shown;
    let record = &detail.record;
    let mut so_far = Counts::default();
    for verdict in detail.planned.iter().filter_map(|case| case.verdict) {
        so_far.add(verdict);
    }
    let summary = record.summary.as_ref();
    let moment = moment.unwrap_or_default();
    // A run reports that it waits before the store has that status.
    let status = if moment.waits.is_some() { RunStatus::WaitingForTarget } else { record.status };
    let is_live = summary.is_none() && status != RunStatus::Broken;
    let is_unsound = |case: &&PlannedCase| case.verdict.is_some_and(|verdict| verdict > Verdict::Pass);
    let unsound: Vec<&PlannedCase> = detail.planned.iter().filter(is_unsound).filter(|_| summary.is_some()).collect();
    let page = Page {
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
        unsound_more: unsound.len().saturating_sub(UNSOUND),
        unsound: unsound.into_iter().take(UNSOUND).map(|case| line(&record.info.id, case)).collect(),
        groups: groups(detail),
        score: score.as_ref().map(ToString::to_string).unwrap_or_default(),
        waits: moment.waits,
        left: moment.left,
        target_href: url::target(&record.info.target.name),
        self_href: url::run(&record.info.id),
        acts: hand.map(|hand| Acts {
            key: hand.key,
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
        // Other schemes (`javascript:`) stay text.
        link: expected.link.as_deref().map(|link| (link, link.starts_with("https://") || link.starts_with("http://"))),
    };
    summary.expected.iter().map(one).collect()
}

/// The class of the bar. Only a run with the expected results is green.
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

fn groups(detail: &RunDetail) -> Vec<Group<'_>> {
    let group = |planned: &'_ [PlannedCase]| planned.iter().map(|case| line(&detail.record.info.id, case)).collect();
    let chunks = detail.planned.chunk_by(|a, b| a.key.case == b.key.case);
    chunks
        .filter_map(|planned| Some((planned, planned.first()?.key.case.as_str())))
        .map(|(planned, id)| Group { id, case: detail.cases.iter().find(|case| case.id == id), lines: group(planned) })
        .collect()
}
