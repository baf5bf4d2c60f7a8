//! Tests of the runs that the server starts by itself.

use super::logs::Log;
use super::*;
use crate::starter::QueueState;
use std::collections::BTreeMap;

const HOUR_MS: u64 = 3_600_000;

fn schedule(text: &str) -> RunSchedule {
    text.parse().unwrap()
}

/// Lets the other tasks of the test work until a condition is met.
async fn until(mut is_met: impl FnMut() -> bool) {
    while !is_met() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn starts_runs_at_their_times_and_leaves_out_times_during_a_run() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let site = runs::startable(folder.path()).await;
    // A run of all cases takes far longer than the rest of this test.
    let text = "[[run]]\ntarget = \"builtin\"\nevery = \"1h\"\ntier = \"full\"\nlabels = { purpose = \"watch\" }\n";
    let (time, now) = watch::channel(HOUR_MS / 2);
    let (stop, stopped) = watch::channel(false);
    let keep = tokio::spawn(schedule(text).keep(site.starter.clone(), Clock::Manual(now), stopped));
    let job = |site: &Site| site.starter.state("builtin").unwrap().1.running.map(|job| job.id);
    log.lines();
    tokio::task::yield_now().await;
    assert_eq!(job(&site), None, "its time has not come");
    time.send_replace(HOUR_MS);
    until(|| job(&site) == Some(0)).await;
    assert_eq!(log.lines(), ["INFO schedule: builtin: starts a run of all cases, tier full"]);
    // Several times pass during the run.
    time.send_replace(5 * HOUR_MS);
    let mut lines = Vec::new();
    until(|| {
        lines.extend(log.lines());
        !lines.is_empty()
    })
    .await;
    assert_eq!(lines, ["WARN schedule: builtin: the previous run is not over, so this time is left out"]);
    let run = || site.starter.state("builtin").unwrap().1.running.and_then(|job| job.run);
    until(|| run().is_some()).await;
    let first = run().unwrap();
    site.starter.stop("builtin", 0).unwrap();
    site.starter.idle("builtin").await;
    assert!(site.starter.state("builtin").unwrap().1.waiting.is_empty(), "no run has piled up");
    assert_eq!(site.store.record(&first).await.unwrap().unwrap().info.labels["purpose"], "watch");
    time.send_replace(6 * HOUR_MS);
    until(|| job(&site) == Some(1)).await;
    stop.send_replace(true);
    keep.await.unwrap();
    site.starter.close().await;
}

#[tokio::test]
async fn rejects_entries_that_cannot_start() {
    let folder = tempfile::tempdir().unwrap();
    let site = runs::startable(folder.path()).await;
    let good = "[[run]]\ntarget = \"bad\"\nat = \"02:30\"\nselect = [\"mpa\"]\n";
    assert_eq!(schedule(good).fault(&site.starter), None);
    for (entry, fault) in [
        ("target = \"none\"\nat = \"02:30\"", "target \"none\": This server is not allowed to start runs"),
        ("target = \"bad\"\nat = \"02:30\"\nselect = [\"no/such\"]", "target \"bad\": \"no/such\" selects no case."),
    ] {
        let found = schedule(&format!("{good}[[run]]\n{entry}\n")).fault(&site.starter).unwrap();
        assert!(found.starts_with(fault), "{found}");
    }
    for (text, fault) in [
        ("[[run]]\ntarget = \"bad\"\n", "target \"bad\": expected either `every` or `at`"),
        ("[[run]]\ntarget = \"bad\"\nat = \"02:30\"\nevery = \"1h\"\n", "target \"bad\": expected either"),
        ("[[run]]\ntarget = \"bad\"\nat = \"2h\"\n", "target \"bad\": at = \"2h\": expected a time of day"),
        ("[[run]]\ntarget = \"bad\"\nevery = \"1s\"\n", "target \"bad\": every = \"1s\": expected a number"),
        (
            "[[run]]\ntarget = \"bad\"\nat = \"02:30\"\nlabels = { \"a b\" = \"c\" }\n",
            "target \"bad\": \"a b\": expected",
        ),
        ("[[run]]\ntarget = \"bad\"\nevry = \"1h\"\n", "unknown field `evry`"),
        ("[run]\n", "invalid type"),
    ] {
        let found = text.parse::<RunSchedule>().unwrap_err();
        assert!(found.starts_with(fault), "{found}");
    }
}

#[test]
fn shows_the_next_time_of_each_target() {
    let schedule =
        schedule("[[run]]\ntarget = \"builtin\"\nevery = \"7d\"\n[[run]]\ntarget = \"builtin\"\nat = \"12:00\"\n");
    let (targets, now_ms) = ([Target::builtin()], 1_769_817_600_001);
    let states: Vec<_> = targets.iter().map(|target| (target, QueueState::default())).collect();
    let shown = crate::view::TargetsPage {
        now_ms,
        configured: &states,
        stored: &[],
        newest: &[],
        recent: &BTreeMap::new(),
        next: &|target: &str| schedule.next_ms(target, now_ms),
        forms: None,
    };
    let page = crate::view::targets(&shown).unwrap();
    assert!(page.contains("idle, next at 2026-01-31 12:00:00 UTC"), "{page}");
    assert_eq!(schedule.next_ms("other", now_ms), None);
}
