//! `--rerun`, `--repeat` and `--until-fail`: runs that depend on the results of earlier runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weft_suites::model::{CaseKey, ExitCode, Verdict};
use weft_suites::store::Store;
use weft_suites::{RunOptions, Schedule, random_seed};

use super::{Arguments, play_by};
use crate::exit::{BadInput, print_line, reject};
use crate::results::terminal;

/// Returns the id and the seed of the run that `--rerun` repeats, and the cases that failed in this
/// run. If a case was rerun later, the result of the rerun decides.
pub(super) async fn failed_cases(store: &Store, target: &str) -> anyhow::Result<(String, u64, Vec<CaseKey>)> {
    let nothing = || BadInput(format!("the store has no run against {target}; run `weft test` without --rerun first"));
    let report = store.latest_outcomes(target).await?.ok_or_else(nothing)?;
    store.close().await;
    let wrong =
        report.results.into_iter().filter(|result| result.verdict > Verdict::Pass || result.failing().next().is_some());
    let keys: Vec<CaseKey> = wrong.map(|result| result.key).collect();
    if keys.is_empty() {
        reject!("no case failed in run {} against {target}; remove --rerun to run all cases", report.run.id);
    }
    Ok((report.run.id, report.run.seed, keys))
}

/// How many times to repeat a run.
pub(super) struct Repetition {
    /// Maximum number of runs. `None` means no limit.
    pub(super) most: Option<u32>,
    /// Whether to stop after the first run with an unexpected result.
    pub(super) until_fail: bool,
    /// Whether each run has a new random seed.
    pub(super) draws: bool,
}

/// Repeats the run, and prints the verdicts that change from run to run. Returns the worst exit
/// code ([`rank`]).
pub(super) async fn run(
    arguments: &Arguments,
    mut options: RunOptions,
    schedule: Schedule,
    repetition: Repetition,
) -> anyhow::Result<ExitCode> {
    let mut seen: BTreeMap<CaseKey, BTreeSet<Verdict>> = BTreeMap::new();
    let mut worst = ExitCode::AsExpected;
    let mut count = 0;
    while repetition.most.is_none_or(|most| count < most) {
        count += 1;
        if repetition.draws {
            options.seed = Some(random_seed());
        }
        print_line!("-- run {count}");
        let sink = Arc::new(terminal(arguments.verbose, arguments.quiet, &arguments.out));
        let report = play_by(arguments, options.clone(), schedule.clone(), sink).await?;
        for result in &report.results {
            seen.entry(result.key.clone()).or_default().insert(result.verdict);
        }
        let code = report.summary.exit_code;
        if rank(code) > rank(worst) {
            worst = code;
        }
        let stopped = options.cancel.as_ref().is_some_and(|cancel| *cancel.borrow());
        if stopped || repetition.until_fail && code != ExitCode::AsExpected {
            break;
        }
    }
    let unstable = seen.iter().filter(|(_, verdicts)| verdicts.len() > 1);
    for (key, verdicts) in unstable {
        let verdicts: Vec<&str> = verdicts.iter().map(|verdict| verdict.as_str()).collect();
        print_line!("the verdict of {key} changes from run to run: {}", verdicts.join(", "));
    }
    print_line!("{count} {}", if count == 1 { "run" } else { "runs" });
    Ok(worst)
}

/// Returns how bad an exit code is. The order from the worst code to the best is 4, 1, 3, 2, 0.
fn rank(code: ExitCode) -> u8 {
    match code {
        ExitCode::AsExpected => 0,
        ExitCode::NothingRun => 1,
        ExitCode::Inconclusive => 2,
        ExitCode::Unexpected => 3,
        ExitCode::HarnessError => 4,
    }
}
