//! Tests that this version of weft opens the data of version 0.1: the results store, the folder of
//! a run, and target files.
//!
//! `tests/data/v0.1` has a store in the schema of version 0.1, with three runs against `builtin`:
//! one that is done, one that was cancelled and one that was killed. It also has the folder of the
//! run that is done, and two target files.

use std::path::{Path, PathBuf};

use sqlx::{AnyConnection, Connection, Executor};
use weft_dissector::source::Capture;
use weft_suites::model::{CaseResult, EvidenceKind, ExitCode, RunReport, RunStatus, Verdict};
use weft_suites::store::{FILE_NAME, Store};
use weft_suites::targets::Target;

const DONE: &str = "20261124T114733.374Z-6cb9";
const CANCELLED: &str = "20261124T114733.789Z-d825";
const KILLED: &str = "20261124T114734.334Z-f097";
const ROWS: &str = include_str!("../data/v0.1/rows.sql");
const SQLITE: &str = include_str!("../data/v0.1/sqlite.sql");
const POSTGRES: &str = include_str!("../data/v0.1/postgres.sql");

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/v0.1").join(name)
}

async fn execute(url: &str, statements: &'static str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(url).await.unwrap();
    connection.execute(statements).await.unwrap();
    connection
}

/// A store of version 0.1 in a file.
async fn sqlite(folder: &Path) -> String {
    let url = Store::url(&folder.join(FILE_NAME)).unwrap();
    for statements in [SQLITE, ROWS] {
        execute(&format!("{url}?mode=rwc"), statements).await.close().await.unwrap();
    }
    url
}

/// Checks that the runs are unchanged, and that the killed run does not have the status "running".
async fn assert_all_runs_are_kept(store: &Store) {
    let runs = store.runs(10).await.unwrap();
    let runs: Vec<_> = runs.iter().map(|run| (run.info.id.as_str(), run.status, run.finished, run.planned)).collect();
    let wanted =
        [(KILLED, RunStatus::Broken, 1, 2), (CANCELLED, RunStatus::Cancelled, 1, 2), (DONE, RunStatus::Done, 1, 1)];
    assert_eq!(runs, wanted);
    let done = store.report(DONE).await.unwrap().unwrap();
    let text = std::fs::read(data("run/report.json")).unwrap();
    assert_eq!(done, serde_json::from_slice::<RunReport>(&text).unwrap());
    let killed = store.report(KILLED).await.unwrap().unwrap();
    assert_eq!((killed.summary.status, killed.summary.exit_code), (RunStatus::Broken, ExitCode::Inconclusive));
    let counts = store.counts().await.unwrap();
    assert_eq!(counts, [(RunStatus::Broken, 1), (RunStatus::Cancelled, 1), (RunStatus::Done, 1)]);
    // All runs planned the same case. The run that was not stopped represents the target.
    let latest = store.latest("builtin").await.unwrap().unwrap().record;
    assert_eq!((latest.info.id.as_str(), latest.is_partial()), (DONE, false));
    assert_eq!(store.unfinished("builtin").await.unwrap().as_deref(), Some(KILLED));
    let requirement = weft_core::requirement!("MPA-7.1.1-2");
    assert_eq!(store.judged(DONE).await.unwrap().get(&requirement), Some(&Verdict::Fail));
    // A new run can begin in this store.
    let run = weft_suites::model::RunInfo { id: "29990101T000000.000Z-0000".into(), ..done.run };
    store.begin(&run, &done.cases, &[done.results[0].key.clone()]).await.unwrap();
    assert_eq!(store.record(&run.id).await.unwrap().unwrap().status, RunStatus::Planned);
}

#[tokio::test]
async fn store_opens_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite(folder.path()).await;
    let store = Store::connect(&url).await.unwrap();
    assert_all_runs_are_kept(&store).await;
}

#[tokio::test]
async fn store_opens_in_postgresql() {
    let Some(server) = crate::postgres::Server::start() else {
        assert!(std::env::var_os("WEFT_POSTGRESQL").is_none(), "WEFT_POSTGRESQL wants a server, and there is none");
        eprintln!("SKIPPED: there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)");
        return;
    };
    for statements in [POSTGRES, ROWS] {
        execute(&server.url, statements).await.close().await.unwrap();
    }
    fails_and_is_completed(&server.url).await;
    let store = Store::connect(&server.url).await.unwrap();
    assert_all_runs_are_kept(&store).await;
    store.close().await;
}

/// Runs of version 0.1 have no sequence number, and do not record whether cases were selected.
#[tokio::test]
async fn runs_get_their_order_and_selections_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite(folder.path()).await;
    let extend = "INSERT INTO runs SELECT 'later-' || id, started_unix_ms + 9, 'nic', status, info, summary FROM runs; \
                  INSERT INTO cases SELECT 'later-' || run_id, id, info FROM cases; \
                  INSERT INTO cases SELECT id, 'mpa/x/more', '{}' FROM runs WHERE target = 'nic';";
    execute(&url, extend).await.close().await.unwrap();
    let store = Store::connect(&url).await.unwrap();
    // The info documents of the copied runs still have the ids of the original runs.
    let runs = store.runs(10).await.unwrap();
    let ids: Vec<&str> = runs.iter().map(|run| run.info.id.as_str()).collect();
    assert_eq!(ids, [KILLED, KILLED, CANCELLED, CANCELLED, DONE, DONE]);
    assert_eq!(
        runs.iter().map(|run| run.info.is_selection).collect::<Vec<_>>(),
        [false, true, false, true, false, true]
    );
    assert!(!store.latest("nic").await.unwrap().unwrap().record.is_partial());
    assert!(store.latest("builtin").await.unwrap().unwrap().record.is_partial());
}

/// A migration stops in the middle, for example because its process is killed. It then changes
/// nothing, and the next start completes it. In this test, the last statement of the migration
/// cannot be executed.
async fn fails_and_is_completed(url: &str) {
    let mut connection = execute(url, "ALTER TABLE runs ADD COLUMN spent_us BIGINT").await;
    let error = Store::connect(url).await.unwrap_err();
    assert!(error.to_string().contains("spent_us"), "{error}");
    // The first statement of the migration was undone.
    assert!(connection.execute("SELECT alive_unix_s FROM runs").await.is_err());
    connection.execute("ALTER TABLE runs DROP COLUMN spent_us").await.unwrap();
    // Do the same with the next migration, whose last statement makes this index.
    connection.execute("CREATE INDEX runs_by_sequence ON runs (id)").await.unwrap();
    let error = Store::connect(url).await.unwrap_err();
    assert!(error.to_string().contains("runs_by_sequence"), "{error}");
    assert!(connection.execute("SELECT sequence FROM runs").await.is_err());
    connection.execute("DROP INDEX runs_by_sequence").await.unwrap();
    connection.close().await.unwrap();
    Store::connect(url).await.unwrap().close().await;
}

#[tokio::test]
async fn interrupted_migration_is_completed_by_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite(folder.path()).await;
    fails_and_is_completed(&url).await;
    assert_all_runs_are_kept(&Store::connect(&url).await.unwrap()).await;
}

#[test]
fn evidence_of_a_run_opens() {
    let text = std::fs::read(data("run/report.json")).unwrap();
    let report: RunReport = serde_json::from_slice(&text).unwrap();
    let [result] = &report.results[..] else { panic!("one result") };
    let transcript = std::fs::read(data("run").join(result.evidence.path(EvidenceKind::Transcript).unwrap())).unwrap();
    assert_eq!(serde_json::from_slice::<CaseResult>(&transcript).unwrap(), *result);
    let mut capture = Capture::open(&data("run").join(result.evidence.path(EvidenceKind::Pcapng).unwrap())).unwrap();
    let mut frames = 0;
    while capture.next_frame().is_some() {
        frames += 1;
    }
    assert!(frames > 10 && capture.note().is_none(), "{frames}");
    // The folder of the case still has the name that version 0.1 gave it.
    assert_eq!(format!("cases/{}", result.key.path()), result.evidence.folder);
}

#[test]
fn target_files_are_read() {
    let nic = Target::from_file(&data("nic.toml")).unwrap();
    assert_eq!((nic.name(), nic.baseline().len()), ("nic", 1));
    assert_eq!(Target::from_file(&data("initiator.toml")).unwrap().name(), "initiator");
}
