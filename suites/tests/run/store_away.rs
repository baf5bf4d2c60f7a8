//! Tests with a results store that weft cannot write to for some time, or not at all. The run and
//! its reports are nevertheless complete.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sqlx::{AnyConnection, Connection, Executor};
use tokio::sync::mpsc::UnboundedReceiver;
use weft_suites::model::{Event, ExitCode, RunReport, RunStatus};
use weft_suites::script::Suites;
use weft_suites::store::{FILE_NAME, Store};
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions, Schedule};

use crate::common::CASE;
use crate::warnings;

/// Runs the 16 variants of [`CASE`]. Each time that a variant finishes, calls `at` with the number
/// of finished variants.
async fn run(out: &Path, schedule: Schedule, at: impl Fn(usize) + Send + Sync + 'static) -> RunReport {
    let finished = Mutex::new(0);
    let sink = move |event: &Event| {
        if let Event::CaseFinished { .. } = event {
            let mut finished = finished.lock().unwrap();
            *finished += 1;
            at(*finished);
        }
    };
    let options = RunOptions {
        target: Target::builtin(),
        suites: Suites::embedded().unwrap(),
        filter: Filter::of([CASE]),
        out: out.to_owned(),
        seed: Some(7),
        cancel: None,
    };
    let report = weft_suites::run_with(options, schedule, Arc::new(sink)).await.unwrap();
    assert_eq!((report.results.len(), report.summary.status), (16, RunStatus::Done));
    report
}

/// Executes statements in a separate thread, which does not belong to the run.
fn execute(url: String, statements: &'static str) {
    let work = async move {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&url).await.unwrap();
        connection.execute(statements).await.unwrap();
        connection.close().await.unwrap();
    };
    std::thread::spawn(|| block_on(work)).join().unwrap();
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Behaves like a full disk.
const BREAK: &str = "CREATE TRIGGER full BEFORE UPDATE ON results BEGIN SELECT RAISE(FAIL, 'no room'); END";
const REPAIR: &str = "DROP TRIGGER full";

fn without_patience() -> Schedule {
    Schedule { store_retry_time: Some(Duration::ZERO), ..Schedule::default() }
}

#[tokio::test]
async fn a_store_that_stays_away_costs_no_result() {
    let out = tempfile::tempdir().unwrap();
    let url = Store::url(&out.path().join(FILE_NAME)).unwrap();
    let mut log = warnings::with("the run continues without the results store");
    let report = run(out.path(), without_patience(), move |finished| {
        if finished == 3 {
            execute(url.clone(), BREAK);
        }
    });
    let report = report.await;
    // The reports show that the run is not in the store.
    assert_eq!(report.summary.exit_code, ExitCode::HarnessError);
    let why = report.summary.not_stored.unwrap();
    assert!(why.starts_with("the results store lacks 13 of the 16 results of this run: "), "{why}");
    assert_eq!(report.summary.reasons, [why]);
    let line = log.try_recv().unwrap();
    assert!(line.starts_with("results store: ") && line.contains("no room"), "{line}");
}

#[tokio::test]
async fn a_store_that_returns_gets_what_it_missed() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join(FILE_NAME);
    let url = Store::url(&file).unwrap();
    let report = run(out.path(), without_patience(), move |finished| match finished {
        3 => execute(url.clone(), BREAK),
        16 => execute(url.clone(), REPAIR),
        _ => {}
    });
    let report = report.await;
    assert_eq!((report.summary.exit_code, &report.summary.not_stored), (ExitCode::AsExpected, &None));
    let store = Store::open(&file).await.unwrap();
    assert_eq!(store.report(&report.run.id).await.unwrap(), Some(report));
}

/// Another program, such as a backup or an SQLite shell, locks the file.
///
/// The run tries to write for one minute. The test does not wait that long. It reads the remaining
/// time from the warning of the run, and then ends the lock. A test in `recorder.rs` checks, with a
/// paused clock, that the run tries again until the end of this time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_for_a_file_that_another_program_locks() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join(FILE_NAME);
    let url = Store::url(&file).unwrap();
    let warnings = Mutex::new(Some(warnings::with("locked")));
    let (waits, waited) = channel();
    let report = run(out.path(), Schedule::default(), move |_| {
        if let Some(warned) = warnings.lock().unwrap().take() {
            lock_until(url.clone(), warned, waits.clone());
        }
    });
    let report = report.await;
    assert_eq!(report.summary.exit_code, ExitCode::AsExpected);
    let (since, warning) = waited.recv().unwrap();
    let (_, left) = warning.split_once("trying again for ").unwrap();
    let left: u64 = left.split_once(" s").unwrap().0.parse().unwrap();
    // The minute begins after the lock, so the age of the lock and the remaining time are together
    // more than a minute. This is also true on a slow machine. The warning rounds the remaining
    // time down, so add a second.
    assert!(since + Duration::from_secs(left + 1) > Duration::from_secs(60), "after {since:?}: {warning}");
    let store = Store::open(&file).await.unwrap();
    assert_eq!(store.report(&report.run.id).await.unwrap(), Some(report));
}

/// Locks the file until the run reports that it waits. Sends the age of the lock at that time, and
/// the warning of the run.
fn lock_until(url: String, mut warned: UnboundedReceiver<String>, waits: Sender<(Duration, String)>) {
    let (locked, is_locked) = channel();
    std::thread::spawn(move || {
        block_on(async move {
            sqlx::any::install_default_drivers();
            let mut connection = AnyConnection::connect(&url).await.unwrap();
            connection.execute("BEGIN IMMEDIATE").await.unwrap();
            let since = Instant::now();
            locked.send(()).unwrap();
            let warning = warned.recv().await.unwrap();
            waits.send((since.elapsed(), warning)).unwrap();
            connection.execute("COMMIT").await.unwrap();
        });
    });
    is_locked.recv().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_for_postgresql_that_restarts() {
    let Some(server) = crate::postgres::Server::start() else {
        assert!(std::env::var_os("WEFT_POSTGRESQL").is_none(), "WEFT_POSTGRESQL wants a server, and there is none");
        eprintln!("SKIPPED: there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let url = server.url.clone();
    let server = Arc::new(Mutex::new(server));
    let restarted = Arc::clone(&server);
    let warnings = Mutex::new(Some(warnings::with("trying again")));
    let schedule = Schedule { store: Some(url.clone()), ..Schedule::default() };
    let report = run(out.path(), schedule, move |finished| {
        if finished == 3
            && let Some(mut warned) = warnings.lock().unwrap().take()
        {
            restarted.lock().unwrap().stop();
            let restarted = Arc::clone(&restarted);
            std::thread::spawn(move || {
                block_on(warned.recv()).unwrap();
                restarted.lock().unwrap().restart();
            });
        }
    });
    let report = report.await;
    assert_eq!((report.summary.exit_code, &report.summary.not_stored), (ExitCode::AsExpected, &None));
    let store = Store::connect(&url).await.unwrap();
    assert_eq!(store.report(&report.run.id).await.unwrap(), Some(report));
    store.close().await;
}
