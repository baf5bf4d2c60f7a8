//! Random sessions. The builtin targets pass them. A deviation that needs several segments, several
//! messages or a fault is found, and reduced to a case that fails again.

use std::path::Path;
use std::time::Duration;

use weft_suites::Filter;
use weft_suites::explore::{Exploration, ExploreError, ExploreOptions, explore};
use weft_suites::model::Verdict;
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::run;

async fn explored(target: Target, out: &Path, sessions: u64) -> Exploration {
    let options = ExploreOptions {
        target,
        out: out.to_owned(),
        seed: Some(1),
        // The number of sessions ends the exploration, and not the time.
        time: Duration::from_secs(3600),
        sessions: Some(sessions),
        connections: 4,
        cancel: None,
    };
    explore(&options, |_| {}).await.unwrap()
}

fn deviating(deviation: &str) -> Target {
    Target::builtin().with_deviations([deviation]).unwrap()
}

#[tokio::test]
async fn the_builtin_targets_pass_every_session() {
    for (target, sessions) in [(Target::builtin(), 40), (Target::builtin_tcp(), 8)] {
        let out = tempfile::tempdir().unwrap();
        let found = explored(target, out.path(), sessions).await;
        let explanations: Vec<&str> = found.failures.iter().map(|found| found.result.explanation.as_str()).collect();
        assert!(explanations.is_empty(), "{explanations:?}");
        assert_eq!((found.progress.sessions, found.progress.undecided), (sessions, 0), "{:?}", found.stopped);
        assert!(found.progress.steps > sessions);
        // The evidence of the sessions is deleted.
        assert!(!out.path().join(".session").exists());
    }
}

#[tokio::test]
async fn failures_are_reduced_to_cases_that_fail_again() {
    for (deviation, sessions, most_steps) in [
        // The second segment of a Send.
        ("ddp.refuses-later-segments", 15, 1),
        // Two Writes to the same address.
        ("ddp.refuses-second-write", 80, 4),
        // An FPDU with a wrong CRC.
        ("mpa.accepts-bad-crc", 25, 1),
        // Only the monitor notices that MO is wrong.
        ("ddp.mo-constant", 15, 1),
    ] {
        let out = tempfile::tempdir().unwrap();
        let found = explored(deviating(deviation), out.path(), sessions).await;
        assert!(!found.failures.is_empty(), "{deviation}");
        for failure in &found.failures {
            assert!(failure.steps[1] <= most_steps, "{deviation}: {:?}", failure.steps);
        }
        let suites = Suites::from_folder(out.path()).unwrap();
        assert_eq!(suites.cases().len(), found.failures.len());
        let again = tempfile::tempdir().unwrap();
        let report = run(deviating(deviation), suites.clone(), Filter::everything(), again.path()).await.0;
        for result in &report.results {
            assert_eq!(result.verdict, Verdict::Fail, "{deviation}: {}: {}", result.key, result.explanation);
        }
        // A target without the deviation passes the same cases.
        let report = run(Target::builtin(), suites, Filter::everything(), again.path()).await.0;
        for result in &report.results {
            assert_eq!(result.verdict, Verdict::Pass, "{deviation}: {}: {}", result.key, result.explanation);
        }
    }
}

#[tokio::test]
async fn the_seed_repeats_an_exploration() {
    let mut texts = Vec::new();
    for _ in 0..2 {
        let out = tempfile::tempdir().unwrap();
        let found = explored(deviating("ddp.refuses-later-segments"), out.path(), 10).await;
        let file = out.path().join(format!("{}.lua", found.failures[0].case));
        texts.push((found.progress, std::fs::read_to_string(file).unwrap()));
    }
    assert_eq!(texts[0], texts[1]);
}

#[tokio::test]
async fn a_target_without_echo_and_rping_is_refused() {
    let text = "name = \"nic\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\n";
    let out = tempfile::tempdir().unwrap();
    let options = ExploreOptions {
        target: Target::from_toml("nic.toml", text).unwrap(),
        out: out.path().to_owned(),
        seed: None,
        time: Duration::from_secs(1),
        sessions: None,
        connections: 1,
        cancel: None,
    };
    let error = explore(&options, |_| {}).await.unwrap_err();
    assert!(matches!(error, ExploreError::Service(..)) && error.to_string().contains("echo or rping"), "{error}");
}
