//! Tests runs that are stopped and resumed. A run resumes at the case at which it was stopped.
//! Other tests check that the store keeps the earlier results of a case on a target, in SQLite and
//! in PostgreSQL.

use std::sync::{Arc, Mutex};

use crate::common::{CASE, key_case};
use tokio::sync::watch;
use weft_suites::model::{Event, ExitCode, RunStatus, Verdict};
use weft_suites::script::Suites;
use weft_suites::store::{FILE_NAME, Store};
use weft_suites::targets::Target;
use weft_suites::{Filter, RunError, RunOptions, Schedule};

fn options(out: &std::path::Path, target: Target, cancel: Option<watch::Receiver<bool>>) -> RunOptions {
    let suites = Suites::embedded().unwrap();
    RunOptions { target, suites, filter: Filter::of([CASE]), out: out.to_owned(), seed: Some(7), cancel }
}

/// Starts a run that runs one case at a time, and stops it when the script of `count` cases has
/// ended. The evidence of the last of these cases is not on the disk then. The run keeps the
/// results of all these cases nevertheless.
async fn stopped_after(count: usize, out: &std::path::Path, schedule: Schedule) {
    let (cancel, receiver) = watch::channel(false);
    let finished = Arc::new(Mutex::new(0));
    let counted = finished.clone();
    let sink = move |event: &Event| match event {
        Event::CaseStarted { index, .. } if *index == count as u64 => cancel.send(true).unwrap(),
        Event::CaseFinished { .. } => *counted.lock().unwrap() += 1,
        _ => {}
    };
    let report = weft_suites::run_with(options(out, Target::builtin(), Some(receiver)), schedule, Arc::new(sink)).await;
    let report = report.unwrap();
    assert_eq!((report.results.len(), report.summary.status), (count, RunStatus::Cancelled));
    assert_eq!(*finished.lock().unwrap(), count, "each of these cases has its event");
}

#[tokio::test]
async fn a_stopped_run_goes_on_where_it_was() {
    let out = tempfile::tempdir().unwrap();
    stopped_after(5, out.path(), Schedule::default()).await;
    let store = Store::open(&out.path().join(FILE_NAME)).await.unwrap();
    let first = store.runs(1).await.unwrap().remove(0);
    assert_eq!(first.finished, 5);

    let schedule = Schedule { resume: true, ..Schedule::default() };
    let events = Arc::new(Mutex::new(Vec::new()));
    let into = events.clone();
    let sink = Arc::new(move |event: &Event| into.lock().unwrap().push(event.clone()));
    let report = weft_suites::run_with(options(out.path(), Target::builtin(), None), schedule.clone(), sink).await;
    let report = report.unwrap();
    assert_eq!((report.run.id.as_str(), report.run.seed), (first.info.id.as_str(), first.info.seed));
    assert_eq!((report.results.len(), report.summary.status), (16, RunStatus::Done));
    assert_eq!(report.summary.exit_code, ExitCode::AsExpected);
    // The five finished cases did not run again. The events nevertheless report all sixteen cases.
    let of = |wanted: fn(&Event) -> bool| events.lock().unwrap().iter().filter(|event| wanted(event)).count();
    assert_eq!(of(|event| matches!(event, Event::CaseFinished { .. })), 16);
    let stepped: std::collections::BTreeSet<String> = events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| if let Event::CaseStep { key, .. } = event { Some(key.to_string()) } else { None })
        .collect();
    assert_eq!(stepped.len(), 11);
    assert_eq!(store.report(&first.info.id).await.unwrap(), Some(report));

    // No run can be resumed any more.
    let sink = Arc::new(|_: &Event| {});
    let error = weft_suites::run_with(options(out.path(), Target::builtin(), None), schedule, sink).await.unwrap_err();
    assert!(matches!(&error, RunError::Resume(why) if why.contains("builtin")), "{error}");
}

/// The duration of a resumed run is the sum of the durations of its two parts. It is not the sum of
/// the durations of the cases, which overlap because the cases run in parallel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resumed_run_took_as_long_as_its_parts() {
    for is_killed in [false, true] {
        let out = tempfile::tempdir().unwrap();
        let began = std::time::Instant::now();
        let schedule = Schedule { jobs: 8, ..Schedule::default() };
        let (cancel, receiver) = watch::channel(false);
        let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
        // The run stops when the thirteenth of the 16 cases starts. So the last three never start.
        let sink = move |event: &Event| {
            if let Event::CaseStarted { index: 12, .. } = event {
                cancel.send_replace(!is_killed);
                sender.send(()).unwrap();
            }
        };
        let first = options(out.path(), Target::builtin_tcp(), Some(receiver));
        let run = tokio::spawn(weft_suites::run_with(first, schedule.clone(), Arc::new(sink)));
        started.recv().await.unwrap();
        if is_killed {
            run.abort();
        }
        let _ = run.await;
        let sink = Arc::new(|_: &Event| {});
        let schedule = Schedule { resume: true, ..schedule };
        let second = options(out.path(), Target::builtin_tcp(), None);
        let report = weft_suites::run_with(second, schedule, sink).await.unwrap();
        let took = u64::try_from(began.elapsed().as_micros()).unwrap();
        assert_eq!(report.results.len(), 16);
        let cases: u64 = report.results.iter().map(|result| result.duration_us).sum();
        let reported = report.summary.duration_us;
        assert!(reported <= took, "reported {reported} us, took {took} us; the cases took {cases} us in all");
    }
}

#[tokio::test]
async fn only_the_same_target_and_suites_go_on() {
    let out = tempfile::tempdir().unwrap();
    stopped_after(5, out.path(), Schedule::default()).await;
    let schedule = Schedule { resume: true, ..Schedule::default() };
    let sink = Arc::new(|_: &Event| {});
    let other = options(out.path(), crate::common::deviating(), None);
    let error = weft_suites::run_with(other, schedule.clone(), sink.clone()).await.unwrap_err();
    assert!(error.to_string().contains("the description of builtin has changed"), "{error}");
    let mut suites = options(out.path(), Target::builtin(), None);
    suites.suites = Suites::from_folder(&crate::common::one_case(out.path(), "")).unwrap();
    let error = weft_suites::run_with(suites, schedule, sink).await.unwrap_err();
    assert!(error.to_string().contains(CASE), "{error}");
}

async fn remembers(store: &Store, out: &std::path::Path, url: Option<String>) {
    for target in [Target::builtin(), crate::common::deviating()] {
        let sink = Arc::new(|_: &Event| {});
        let schedule = Schedule { store: url.clone(), ..Schedule::default() };
        let report = weft_suites::run_with(options(out, target, None), schedule, sink).await.unwrap();
        assert_eq!(store.report(&report.run.id).await.unwrap(), Some(report));
    }
    let one = store.history("builtin", &format!("{CASE}[octet=3]"), 10).await.unwrap();
    assert_eq!(one.iter().map(|past| past.verdict).collect::<Vec<_>>(), [Verdict::Fail, Verdict::Pass]);
    assert!(one[0].started_unix_ms >= one[1].started_unix_ms && one[0].run != one[1].run);
    assert_eq!(store.history("builtin", CASE, 100).await.unwrap().len(), 32);
    assert_eq!(store.history("builtin", CASE, 5).await.unwrap().len(), 5);
    assert!(store.history("builtin", "mpa/7.1.1-key/wrong", 10).await.unwrap().is_empty());
    assert!(store.history("another", CASE, 10).await.unwrap().is_empty());
    let latest = store.latest("builtin").await.unwrap().unwrap();
    assert_eq!(latest.record.info.id, one[0].run);
    assert_eq!(store.unfinished("builtin").await.unwrap(), None);
}

#[tokio::test]
async fn the_store_remembers_each_result() {
    let out = tempfile::tempdir().unwrap();
    // This path has characters that have a special meaning in a URL.
    let folder = out.path().join("a b?c#d%20e&ü");
    std::fs::create_dir(&folder).unwrap();
    let store = Store::open(&folder.join(FILE_NAME)).await.unwrap();
    remembers(&store, &folder, None).await;
    assert!(folder.join(FILE_NAME).is_file());
}

#[tokio::test]
async fn no_other_address_is_taken() {
    for url in ["mysql://localhost/x", "results.sqlite", ""] {
        assert!(Store::connect(url).await.is_err(), "{url}");
    }
}

/// Checks the same as the previous tests, with a PostgreSQL server.
#[tokio::test]
async fn postgresql_is_the_same() {
    let Some(server) = crate::postgres::Server::start() else {
        assert!(std::env::var_os("WEFT_POSTGRESQL").is_none(), "WEFT_POSTGRESQL wants a server, and there is none");
        eprintln!("SKIPPED: there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let store = Store::connect(&server.url).await.unwrap();
    remembers(&store, out.path(), Some(server.url.clone())).await;
    assert!(!out.path().join(FILE_NAME).exists());
    stopped_after(5, out.path(), Schedule { store: Some(server.url.clone()), ..Schedule::default() }).await;
    let schedule = Schedule { resume: true, store: Some(server.url.clone()), jobs: 2, store_retry_time: None };
    let sink = Arc::new(|_: &Event| {});
    let report = weft_suites::run_with(options(out.path(), Target::builtin(), None), schedule, sink).await.unwrap();
    assert_eq!((report.results.len(), report.summary.status), (16, RunStatus::Done));
    assert_eq!(store.runs(10).await.unwrap().len(), 3);
    // Opening the store again does not change the schema.
    Store::connect(&server.url).await.unwrap().close().await;
    store.close().await;
    let key = key_case(Target::builtin(), out.path()).await;
    assert!(out.path().join(FILE_NAME).exists() && key.results.len() == 16);
}
