//! The home page. It answers three questions about all targets: what is not as expected, what
//! changed since yesterday, and what is running.

use askama::Template;
use weft_suites::model::{ExitCode, Verdict};
use weft_suites::store::{Latest, RunRecord, VerdictChange};
use weft_suites::targets::Target;

use super::counts::{Count, counts, outcome, partial};
use super::{time, url};
use crate::starter::QueueState;

/// The maximum number of cases in one list of changes. The comparison of the runs has all cases.
const MAX_CASES: usize = 5;
/// The number of lists of changes that a target can have.
const LISTS: usize = 3;
/// The approximate maximum number of cases in all lists of changes. With more, a page about many
/// targets would be larger than 200 kB.
const MAX_LINKS: usize = 240;

/// Results that are older than this, in milliseconds, are old: three days, so that a target with a
/// run each working day has no old results after a weekend.
const OLD_MS: u64 = 3 * 86_400_000;

/// The data of the page.
pub(crate) struct HomePage<'a> {
    /// The current time, in milliseconds since 1970-01-01 UTC.
    pub(crate) now_ms: u64,
    /// The results that represent each target.
    pub(crate) newest: &'a [Latest],
    /// Number of targets that are not in `newest`, because there are too many.
    pub(crate) left_out: usize,
    /// The targets with a run in the last 24 hours.
    pub(crate) compared: &'a [ComparedTarget<'a>],
    /// The runs in progress.
    pub(crate) active: &'a [RunRecord],
    /// The targets against which the server can start runs.
    pub(crate) configured: &'a [(&'a Target, QueueState)],
}

/// The changes of one target.
pub(crate) struct ComparedTarget<'a> {
    pub(crate) latest: &'a Latest,
    /// The run to compare with. `None` if the target has no earlier run of the same kind.
    pub(crate) before: Option<RunRecord>,
    pub(crate) changes: Vec<VerdictChange>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct Page<'a> {
    /// Whether the store has no run.
    is_empty: bool,
    /// The CSS class and the text of the first line. `None` if no run has finished.
    line: Option<(&'static str, String)>,
    red: Vec<RedTarget<'a>>,
    changed: Vec<ChangedTarget<'a>>,
    /// Number of targets without a change since yesterday.
    same: usize,
    /// Number of targets without a run since yesterday.
    idle: usize,
    active: Vec<ActiveRun<'a>>,
    queues: Vec<Queue<'a>>,
    left_out: usize,
    can_start: bool,
}

/// A target that is not as expected.
struct RedTarget<'a> {
    name: &'a str,
    href: String,
    run: String,
    age: String,
    class: &'static str,
    words: &'static str,
    counts: Vec<Count>,
    /// Why the run is partial.
    partial: Option<&'static str>,
    /// The most important reason for the outcome.
    reason: &'a str,
}

struct ChangedTarget<'a> {
    name: &'a str,
    href: String,
    age: String,
    /// The age of the run to compare with, and the address of the comparison. `None` for the first
    /// run of a target.
    before: Option<(String, String)>,
    lists: Vec<ChangeList>,
}

/// Cases with the same kind of change.
struct ChangeList {
    class: &'static str,
    words: &'static str,
    number: usize,
    /// The first cases: key and address.
    cases: Vec<(String, String)>,
}

struct ActiveRun<'a> {
    record: &'a RunRecord,
    href: String,
    target: String,
    age: String,
}

/// The jobs of a target that have no run yet.
struct Queue<'a> {
    name: &'a str,
    href: String,
    is_starting: bool,
    waiting: usize,
}

/// Renders the page.
pub(crate) fn home(shown: &HomePage<'_>) -> Result<String, askama::Error> {
    let with_lists = shown.compared.iter().filter(|target| !target.changes.is_empty()).count();
    let most = (MAX_LINKS / (LISTS * with_lists.max(1))).clamp(1, MAX_CASES);
    let changed = shown.compared.iter().filter_map(|target| changed_target(target, shown.now_ms, most));
    let changed: Vec<_> = changed.collect();
    let page = Page {
        is_empty: shown.newest.is_empty(),
        line: line(shown.newest, shown.now_ms),
        red: red_targets(shown),
        same: shown.compared.len() - changed.len(),
        idle: shown.newest.len() - shown.compared.len(),
        changed,
        active: shown.active.iter().map(|record| active_run(record, shown.now_ms)).collect(),
        queues: shown.configured.iter().filter_map(|(target, state)| queue(target, state)).collect(),
        left_out: shown.left_out,
        can_start: !shown.configured.is_empty(),
    };
    page.render()
}

/// Returns how important an outcome is. 0 is the most important. `None` if the target is as
/// expected, or has no finished run.
fn rank(record: &RunRecord) -> Option<u8> {
    match record.summary.as_ref()?.exit_code {
        ExitCode::Unexpected => Some(0),
        ExitCode::HarnessError => Some(1),
        ExitCode::Inconclusive => Some(2),
        ExitCode::NothingRun => Some(3),
        ExitCode::AsExpected => None,
    }
}

/// Returns the first line of the page: how many targets are not as expected. Old results are not
/// green, and the line names their age.
fn line(newest: &[Latest], now_ms: u64) -> Option<(&'static str, String)> {
    let judged: Vec<&RunRecord> = newest.iter().map(Latest::deciding).filter(|run| run.summary.is_some()).collect();
    let red = judged.iter().filter(|record| rank(record).is_some()).count();
    let worst = judged.iter().filter(|record| rank(record).is_some()).min_by_key(|record| rank(record));
    let is_partial = judged.iter().any(|record| record.is_partial());
    let oldest = judged.iter().map(|record| record.info.started_unix_ms).min().unwrap_or(now_ms);
    let (class, stale) = match now_ms.saturating_sub(oldest) {
        age if age > OLD_MS => ("inconclusive", format!(" The oldest result is from {}.", time::ago(now_ms, oldest))),
        _ if is_partial => ("", String::new()),
        _ => ("pass", String::new()),
    };
    match (judged.len(), worst) {
        (0, _) => None,
        (1, None) => Some((class, format!("The only target is as expected.{stale}"))),
        (all, None) => Some((class, format!("All {all} targets are as expected.{stale}"))),
        (1, Some(worst)) => Some((outcome(worst).0, "The only target is not as expected.".to_owned())),
        (all, Some(worst)) => {
            let verb = if red == 1 { "is" } else { "are" };
            Some((outcome(worst).0, format!("{red} of {all} targets {verb} not as expected.")))
        }
    }
}

/// Returns the targets that are not as expected. Targets that fail are first.
fn red_targets<'a>(shown: &HomePage<'a>) -> Vec<RedTarget<'a>> {
    let mut ranked: Vec<(u8, &Latest)> =
        shown.newest.iter().filter_map(|latest| Some((rank(latest.deciding())?, latest))).collect();
    // The sort is stable, so targets of the same rank stay in the order of their names.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, latest)| red_target(latest.deciding(), shown.now_ms)).collect()
}

fn red_target(record: &RunRecord, now_ms: u64) -> RedTarget<'_> {
    let (class, words) = outcome(record);
    let summary = record.summary.as_ref();
    RedTarget {
        name: &record.info.target.name,
        href: url::target(&record.info.target.name),
        run: url::run(&record.info.id),
        age: time::ago(now_ms, record.info.started_unix_ms),
        class,
        words,
        counts: summary.map(|summary| counts(&summary.counts)).unwrap_or_default(),
        partial: partial(record),
        reason: summary.and_then(|summary| summary.reasons.first()).map(String::as_str).unwrap_or_default(),
    }
}

/// Returns the changes of a target, with at most `most` cases in a list. `None` if nothing changed.
fn changed_target<'a>(target: &'a ComparedTarget<'a>, now_ms: u64, most: usize) -> Option<ChangedTarget<'a>> {
    let ComparedTarget { latest, before, changes } = target;
    if before.is_some() && changes.is_empty() {
        return None;
    }
    let info = &latest.record.info;
    let compare =
        |before: &RunRecord| (time::ago(now_ms, before.info.started_unix_ms), url::compare(&before.info.id, &info.id));
    Some(ChangedTarget {
        name: &info.target.name,
        href: url::target(&info.target.name),
        age: time::ago(now_ms, info.started_unix_ms),
        before: before.as_ref().map(compare),
        lists: change_lists(latest, changes, most),
    })
}

fn change_lists(latest: &Latest, changes: &[VerdictChange], most: usize) -> Vec<ChangeList> {
    let fails = |change: &VerdictChange| change.after == Verdict::Fail;
    let fixed = |change: &VerdictChange| change.before == Verdict::Fail && change.after == Verdict::Pass;
    let other = |change: &VerdictChange| !fails(change) && !fixed(change);
    let lists: [ChangeList; LISTS] = [
        change_list(latest, changes, most, ("fail", "newly failing"), &fails),
        change_list(latest, changes, most, ("pass", "fixed"), &fixed),
        change_list(latest, changes, most, ("inconclusive", "with another verdict"), &other),
    ];
    lists.into_iter().filter(|list| list.number > 0).collect()
}

fn change_list(
    latest: &Latest,
    changes: &[VerdictChange],
    most: usize,
    (class, words): (&'static str, &'static str),
    is_in: &dyn Fn(&VerdictChange) -> bool,
) -> ChangeList {
    let listed: Vec<&VerdictChange> = changes.iter().filter(|change| is_in(change)).collect();
    let case = |change: &&VerdictChange| {
        let VerdictChange { key, before, after } = change;
        (format!("{key}: {before} to {after}"), url::case(latest.run_of(key), key))
    };
    ChangeList { class, words, number: listed.len(), cases: listed.iter().take(most).map(case).collect() }
}

fn active_run(record: &RunRecord, now_ms: u64) -> ActiveRun<'_> {
    ActiveRun {
        record,
        href: url::run(&record.info.id),
        target: url::target(&record.info.target.name),
        age: time::ago(now_ms, record.info.started_unix_ms),
    }
}

/// Returns the jobs of a target that have no run yet. `None` if there are none.
fn queue<'a>(target: &'a Target, state: &QueueState) -> Option<Queue<'a>> {
    let is_starting = state.running.as_ref().is_some_and(|job| job.run.is_none());
    let waiting = state.waiting.len();
    let queue = Queue { name: target.name(), href: url::target(target.name()), is_starting, waiting };
    (is_starting || waiting > 0).then_some(queue)
}
