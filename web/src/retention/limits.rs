//! Selects the runs to delete.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_suites::store::{StoredRun, TargetRecord};

/// Which runs the server keeps. Without a limit, the server keeps all runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retention {
    /// Delete runs that started longer ago.
    pub age: Option<Duration>,
    /// Delete the oldest runs until the files of all runs have at most this size in bytes.
    pub size: Option<u64>,
}

impl Retention {
    /// Returns whether there is a limit.
    pub(crate) fn is_limited(self) -> bool {
        self.age.is_some() || self.size.is_some()
    }

    /// Returns the ids of the runs to delete, each with the reason. `runs` has all runs with the
    /// sizes of their files, oldest first. `kept` has the ids of runs that no limit deletes.
    pub(super) fn surplus<'a>(
        self,
        runs: &'a [(StoredRun, u64)],
        kept: &BTreeSet<&str>,
        now_ms: u64,
    ) -> Vec<(&'a StoredRun, &'static str)> {
        let age_ms = self.age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let is_old = |run: &StoredRun| age_ms.is_some_and(|age| now_ms.saturating_sub(run.started_unix_ms) > age);
        let mut total: u64 = runs.iter().map(|(_, size)| size).sum();
        let mut surplus = Vec::new();
        // Old runs are first, so that the size counts only what remains.
        for (run, size) in runs.iter().filter(|(run, _)| is_old(run) && !kept.contains(run.id.as_str())) {
            total = total.saturating_sub(*size);
            surplus.push((run, "it is too old"));
        }
        for (run, size) in runs.iter().filter(|(run, _)| !is_old(run) && !kept.contains(run.id.as_str())) {
            // To delete a run without files would free nothing.
            if *size > 0 && self.size.is_some_and(|most| total > most) {
                total -= size;
                surplus.push((run, "the files of all runs are too large"));
            }
        }
        surplus
    }
}

/// Returns the ids of the runs that no limit deletes: runs that are not over, the newest run of
/// each target, and the runs whose results represent a target. `runs` has all runs, oldest first.
pub(super) fn kept<'a>(runs: &'a [(StoredRun, u64)], targets: &'a [TargetRecord]) -> BTreeSet<&'a str> {
    let mut kept: BTreeSet<&str> = targets.iter().map(|target| target.last.as_str()).collect();
    // The results of a rerun replace results of the run that it repeats.
    let is_rerun = |run: &StoredRun| run.rerun_of.as_deref().is_some_and(|of| kept.contains(of));
    let reruns: Vec<&str> = runs.iter().filter(|(run, _)| is_rerun(run)).map(|(run, _)| run.id.as_str()).collect();
    kept.extend(reruns);
    // Later runs replace earlier runs of the same target.
    let newest: BTreeMap<&str, &StoredRun> = runs.iter().map(|(run, _)| (run.target.as_str(), run)).collect();
    let active = runs.iter().map(|(run, _)| run).filter(|run| !run.is_over);
    for run in newest.into_values().chain(active) {
        kept.insert(&run.id);
        kept.extend(run.rerun_of.as_deref());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that started in this second and has files of 10 bytes.
    fn run(target: &str, second: u64) -> (StoredRun, u64) {
        let run = StoredRun {
            id: format!("{target}-{second}"),
            target: target.to_owned(),
            started_unix_ms: second * 1000,
            rerun_of: None,
            is_over: true,
        };
        (run, 10)
    }

    fn surplus(runs: &[(StoredRun, u64)], last: &str, retention: Retention) -> Vec<String> {
        let targets = [TargetRecord { name: "a".into(), runs: 1, last: last.into() }];
        let found = retention.surplus(runs, &kept(runs, &targets), 100_000);
        found.into_iter().map(|(run, _)| run.id.clone()).collect()
    }

    fn older_than(seconds: u64) -> Retention {
        Retention { age: Some(Duration::from_secs(seconds)), size: None }
    }

    #[test]
    fn deletes_old_runs_except_the_newest_of_each_target() {
        let runs = [run("a", 1), run("b", 2), run("a", 3), run("a", 60), run("a", 90)];
        assert_eq!(surplus(&runs, "a-90", older_than(50)), ["a-1", "a-3"]);
        assert_eq!(surplus(&runs, "a-90", older_than(40)), ["a-1", "a-3"], "exactly as old");
        assert_eq!(surplus(&runs, "a-90", older_than(39)), ["a-1", "a-3", "a-60"]);
        assert!(surplus(&runs, "a-90", Retention::default()).is_empty());
    }

    #[test]
    fn deletes_the_oldest_runs_with_files_until_the_rest_fits() {
        let mut runs = [run("a", 1), run("b", 2), run("a", 3), run("a", 60), run("a", 90)];
        runs[0].1 = 0;
        let most = |size| Retention { age: None, size: Some(size) };
        assert!(surplus(&runs, "a-90", most(40)).is_empty());
        assert_eq!(surplus(&runs, "a-90", most(39)), ["a-3"]);
        assert_eq!(surplus(&runs, "a-90", most(0)), ["a-3", "a-60"], "the newest runs stay");
        let both = Retention { age: Some(Duration::from_secs(50)), size: Some(30) };
        assert_eq!(surplus(&runs, "a-90", both), ["a-1", "a-3"], "without a-3, the rest fits");
    }

    #[test]
    fn keeps_active_runs_and_the_runs_whose_results_count() {
        let mut runs = [run("a", 1), run("a", 2), run("a", 3), run("a", 4), run("a", 5), run("a", 6)];
        // The newest complete run, and a rerun of some of its cases.
        runs[2].0.rerun_of = Some("a-2".into());
        runs[3].0.is_over = false;
        // The newest run is a rerun of the first run.
        runs[5].0.rerun_of = Some("a-1".into());
        assert_eq!(surplus(&runs, "a-2", older_than(1)), ["a-5"]);
    }
}
