//! Tests the data that the results store has about finished and unfinished runs.

use std::sync::Arc;

use crate::common::{CASE, key_case};
use tokio::sync::watch;
use weft_suites::model::{CaseKey, Event, ExitCode, RunStatus, Verdict};
use weft_suites::script::Suites;
use weft_suites::store::{FILE_NAME, Store};
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions};

#[tokio::test]
async fn a_finished_run_is_read_back_completely() {
    let out = tempfile::tempdir().unwrap();
    let first = key_case(Target::builtin(), out.path()).await;
    let second = key_case(crate::common::deviating(), out.path()).await;
    let store = Store::open(&out.path().join(FILE_NAME)).await.unwrap();

    let runs = store.runs(10).await.unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(store.runs(1).await.unwrap().len(), 1);
    let record = runs.iter().find(|record| record.info.id == second.run.id).unwrap();
    assert_eq!((record.status, record.finished, record.planned), (RunStatus::Done, 16, 16));
    assert_eq!(record.summary.as_ref(), Some(&second.summary));

    let detail = store.run(&first.run.id).await.unwrap().unwrap();
    assert_eq!(detail.cases, first.cases);
    assert_eq!(detail.planned[3].key, first.results[3].key);
    assert!(detail.planned.iter().all(|planned| planned.verdict == Some(Verdict::Pass)));

    let key: CaseKey = format!("{CASE}[octet=3]").parse().unwrap();
    assert_eq!(store.result(&first.run.id, &key).await.unwrap().as_ref(), Some(&first.results[3]));
    assert_eq!(store.report(&second.run.id).await.unwrap().as_ref(), Some(&second));

    assert_eq!(store.run("no-such-run").await.unwrap(), None);
    assert_eq!(store.report("no-such-run").await.unwrap(), None);
    assert_eq!(store.result(&first.run.id, &CaseKey::new("no/such/case")).await.unwrap(), None);
}

/// A killed run cannot clean up. So every case that was reported as finished must already be in the
/// store.
#[tokio::test]
async fn finished_cases_are_stored_before_they_are_reported() {
    let out = tempfile::tempdir().unwrap();
    let database = out.path().join(FILE_NAME);
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let sink = move |event: &Event| {
        if let Event::CaseFinished { result } = event {
            sender.send(result.key.clone()).unwrap();
        }
    };
    let run = tokio::spawn(weft_suites::run(options(out.path(), None), Arc::new(sink)));
    let reported = receiver.recv().await.unwrap();
    // The abort is like a kill: after it, the run cannot write anything.
    run.abort();
    let _ = run.await;
    let store = Store::open(&database).await.unwrap();
    let record = store.runs(1).await.unwrap().remove(0);
    assert!(record.status == RunStatus::Running && record.finished >= 1 && record.finished < 16, "{record:?}");
    assert_eq!(store.result(&record.info.id, &reported).await.unwrap().unwrap().verdict, Verdict::Pass);
    let report = store.report(&record.info.id).await.unwrap().unwrap();
    assert_eq!((report.results.len() as u64, report.summary.planned), (record.finished, 16));
    let left = store.run(&record.info.id).await.unwrap().unwrap().planned;
    assert_eq!(left.iter().filter(|planned| planned.verdict.is_none()).count() as u64, 16 - record.finished);
}

#[tokio::test]
async fn a_cancelled_run_ends_as_cancelled() {
    let out = tempfile::tempdir().unwrap();
    let (cancel, receiver) = watch::channel(false);
    let sink = move |event: &Event| {
        if let Event::CaseStarted { index: 2, .. } = event {
            cancel.send(true).unwrap();
        }
    };
    let report = weft_suites::run(options(out.path(), Some(receiver)), Arc::new(sink)).await.unwrap();
    assert_eq!((report.results.len(), report.summary.status), (2, RunStatus::Cancelled));
    assert_eq!(report.summary.exit_code, ExitCode::Inconclusive);
    let store = Store::open(&out.path().join(FILE_NAME)).await.unwrap();
    assert_eq!(store.runs(1).await.unwrap()[0].status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join(FILE_NAME);
    std::fs::write(&path, "this is no database, despite its name; it is only text").unwrap();
    assert!(Store::open(&path).await.is_err());
}

fn options(out: &std::path::Path, cancel: Option<watch::Receiver<bool>>) -> RunOptions {
    RunOptions {
        target: Target::builtin(),
        suites: Suites::embedded().unwrap(),
        filter: Filter::of([CASE]),
        out: out.to_owned(),
        seed: Some(7),
        cancel,
    }
}

/// The dashboard and the run can open the store of a new folder at about the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_database_is_opened_by_many_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let file = folder.path().join(round.to_string());
        let opened: Vec<_> = (0..6)
            .map(|_| {
                tokio::spawn({
                    let file = file.clone();
                    async move { Store::open(&file).await }
                })
            })
            .collect();
        for store in opened {
            let store = store.await.unwrap().unwrap();
            assert_eq!(store.runs(1).await.unwrap(), []);
            store.close().await;
        }
    }
}

/// Sets the time of the last sign of life of a run back, as if its process had been killed some
/// time ago.
async fn kill_long_ago(url: &str, run: &str) {
    use sqlx::{AnyConnection, Connection};
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(url).await.unwrap();
    let query = sqlx::query("UPDATE runs SET alive_unix_s = alive_unix_s - 100 WHERE id = $1").bind(run);
    query.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn breaks(url: &str) {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::builtin(), out.path()).await;
    let store = Store::connect(url).await.unwrap();
    let keys: Vec<CaseKey> = report.results.iter().map(|result| result.key.clone()).collect();
    let run = &report.run.id;
    store.begin(&report.run, &report.cases, &keys).await.unwrap();
    store.set_status(run, RunStatus::Running).await.unwrap();
    store.finish_case(run, &report.results[0]).await.unwrap();
    let status = async || store.record(run).await.unwrap().unwrap().status;
    assert_eq!(status().await, RunStatus::Running);
    kill_long_ago(url, run).await;
    assert_eq!(status().await, RunStatus::Broken);
    assert_eq!(store.counts().await.unwrap(), [(RunStatus::Broken, 1)]);
    let summary = store.report(run).await.unwrap().unwrap().summary;
    assert_eq!((summary.status, summary.exit_code), (RunStatus::Broken, ExitCode::Inconclusive));
    // A broken run can still be resumed. Its status is then "running" again.
    assert_eq!(store.unfinished("builtin").await.unwrap().as_ref(), Some(run));
    store.set_status(run, RunStatus::Running).await.unwrap();
    assert_eq!(status().await, RunStatus::Running);
    store.finish(run, &report.summary).await.unwrap();
    kill_long_ago(url, run).await;
    assert_eq!(status().await, RunStatus::Done);
    store.close().await;
}

#[tokio::test]
async fn a_run_whose_process_is_gone_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    breaks(&Store::url(&folder.path().join(FILE_NAME)).unwrap()).await;
}

#[tokio::test]
async fn a_run_whose_process_is_gone_is_broken_in_postgresql() {
    if let Some(server) = crate::postgres::Server::start() {
        breaks(&server.url).await;
    }
}

/// One case can take minutes. During this time, the run writes only signs of life to the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_in_a_long_case_shows_that_it_lives() {
    let out = tempfile::tempdir().unwrap();
    let suites = crate::common::one_case(out.path(), "t:pause(3600)");
    let mut options = options(out.path(), None);
    options.target = Target::builtin_tcp();
    options.suites = Suites::from_folder(&suites).unwrap();
    options.filter = Filter::everything();
    let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
    let sink = move |event: &Event| {
        if let Event::RunStarted { run, .. } = event {
            sender.send(run.id.clone()).unwrap();
        }
    };
    let run = tokio::spawn(weft_suites::run(options, Arc::new(sink)));
    let id = started.recv().await.unwrap();
    let file = out.path().join(FILE_NAME);
    kill_long_ago(&Store::url(&file).unwrap(), &id).await;
    let store = Store::open(&file).await.unwrap();
    while store.record(&id).await.unwrap().unwrap().status != RunStatus::Running {}
    run.abort();
}
