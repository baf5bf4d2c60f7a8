//! Tests the results that represent a target. They are the results of its newest complete run, in
//! which reruns have replaced the results of their cases.

use std::path::Path;
use std::sync::Arc;

use sqlx::{AnyConnection, Connection, Executor};
use weft_suites::model::{CaseKey, Event, ExitCode, RunReport, RunStatus, Summary, Verdict};
use weft_suites::script::Suites;
use weft_suites::store::{FILE_NAME, Latest, Store, VerdictChange};
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions, Schedule};

const CASE: &str = "mpa/x/one";

/// Suites with one case of four variants. `fails` is a condition in Lua. If it is true for a
/// variant, this variant fails, because it expects a close after a correct Request.
fn suites(folder: &Path, fails: &str) -> Suites {
    let script = format!(
        "case {{ id = '{CASE}', version = 1, title = 'One', requirements = {{ 'MPA-7.1.1-2' }}, roles = {{ 'responder' }},\n\
         parameters = {{ n = range(1, 4) }},\nrun = function(t, p)\nt:good_exchange()\nlocal c = t:connect()\n\
         if {fails} then c:send(t:request()) else c:send(t:request():flip(0)) end\n\
         c:expect_close {{ requirement = 'MPA-7.1.1-2' }}\nt:liveness()\nend }}\n"
    );
    std::fs::create_dir_all(folder.join("mpa")).unwrap();
    std::fs::write(folder.join("mpa/x.lua"), script).unwrap();
    Suites::from_folder(folder).unwrap()
}

struct Lab {
    folder: tempfile::TempDir,
    store: Store,
    /// The URL of the store, if the store is not in the folder.
    url: Option<String>,
}

impl Lab {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join(FILE_NAME)).await.unwrap();
        Lab { folder, store, url: None }
    }

    /// Creates a lab whose store is a new database on a server.
    async fn on_server(url: &str, name: &'static str) -> Self {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(url).await.unwrap();
        connection.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
        connection.close().await.unwrap();
        let url = format!("{}/{name}", url.rsplit_once('/').unwrap().0);
        let (folder, store) = (tempfile::tempdir().unwrap(), Store::connect(&url).await.unwrap());
        Lab { folder, store, url: Some(url) }
    }

    async fn play(&self, target: Target, fails: &str, filter: Filter) -> RunReport {
        let suites = suites(&self.folder.path().join("suites"), fails);
        let out = self.folder.path().to_owned();
        let options = RunOptions { target, suites, filter, out, seed: Some(7), cancel: None };
        let schedule = Schedule { store: self.url.clone(), ..Schedule::default() };
        weft_suites::run_with(options, schedule, Arc::new(|_: &Event| {})).await.unwrap()
    }

    async fn latest(&self) -> Latest {
        self.store.latest("builtin").await.unwrap().unwrap()
    }
}

fn key(n: i64) -> CaseKey {
    format!("{CASE}[n={n}]").parse().unwrap()
}

/// Returns the number of passed cases, the number of failed cases, and the exit code.
fn sum(latest: &Latest) -> (u64, u64, ExitCode) {
    let summary = latest.record.summary.as_ref().unwrap();
    (summary.counts.pass, summary.counts.fail, summary.exit_code)
}

#[tokio::test]
async fn newest_complete_run_represents_its_target() {
    represents(&Lab::new().await).await;
}

async fn represents(lab: &Lab) {
    let one = Filter::of([key(1).to_string()]);
    let first = lab.play(Target::builtin(), "false", one.clone()).await;
    let latest = lab.latest().await;
    assert_eq!((latest.record.info.id.as_str(), latest.record.is_partial()), (first.run.id.as_str(), true));
    let full = lab.play(Target::builtin(), "p.n > 2", Filter::everything()).await;
    lab.play(Target::builtin(), "false", one).await;
    let latest = lab.latest().await;
    assert_eq!((latest.record.info.id.as_str(), latest.record.is_partial()), (full.run.id.as_str(), false));
    assert_eq!(sum(&latest), (2, 2, ExitCode::Unexpected));
    assert_eq!((latest.score.must.met, latest.score.must.violated), (0, 1));
    assert_eq!(lab.store.targets().await.unwrap()[0].last, full.run.id);
    let next = lab.play(Target::builtin(), "false", Filter::everything()).await;
    let latest = lab.latest().await;
    assert_eq!((latest.record.info.id, latest.score.must.met), (next.run.id, 1));
}

#[tokio::test]
async fn rerun_replaces_its_cases_of_the_run_that_it_names() {
    replaces(&Lab::new().await).await;
}

async fn replaces(lab: &Lab) {
    let full = lab.play(Target::builtin(), "p.n > 2", Filter::everything()).await;
    let rerun = |n: i64| Filter::everything().rerun(&full.run.id, [key(n)]);
    let third = lab.play(Target::builtin(), "false", rerun(3)).await;
    let latest = lab.latest().await;
    assert_eq!(latest.record.info.id, full.run.id);
    assert_eq!(sum(&latest), (3, 1, ExitCode::Unexpected));
    assert_eq!((latest.run_of(&key(3)), latest.run_of(&key(1))), (third.run.id.as_str(), full.run.id.as_str()));
    let verdicts: Vec<_> = lab.store.latest_cases(&latest).await.unwrap().iter().map(|case| case.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Pass, Verdict::Pass, Verdict::Fail].map(Some));
    // A target with a deviation has the same name, but is a different target. Its results replace
    // nothing.
    lab.play(crate::common::deviating(), "false", rerun(4)).await;
    assert_eq!(lab.latest().await, latest);
    // Variant 1 passed earlier and fails in its rerun. Variant 4 failed earlier and passes in its
    // rerun.
    lab.play(Target::builtin(), "true", rerun(1)).await;
    lab.play(Target::builtin(), "false", rerun(4)).await;
    assert_eq!(sum(&lab.latest().await), (3, 1, ExitCode::Unexpected));
    lab.play(Target::builtin(), "false", rerun(1)).await;
    let latest = lab.latest().await;
    assert_eq!((sum(&latest), latest.score.must.met), ((4, 0, ExitCode::AsExpected), 1));
    let report = lab.store.latest_outcomes("builtin").await.unwrap().unwrap();
    assert_eq!((report.run.id, report.results.len(), Some(report.summary)), (full.run.id, 4, latest.record.summary));
}

/// Pages show the results of many targets, so each combination of results is read only once.
#[tokio::test]
async fn results_with_reruns_are_read_once() {
    let lab = Lab::new().await;
    let full = lab.play(Target::builtin(), "p.n > 2", Filter::everything()).await;
    let rerun = |n: i64| Filter::everything().rerun(&full.run.id, [key(n)]);
    lab.play(Target::builtin(), "false", rerun(3)).await;
    let latest = lab.latest().await;
    let url = Store::url(&lab.folder.path().join(FILE_NAME)).unwrap();
    let mut connection = AnyConnection::connect(&url).await.unwrap();
    connection.execute("UPDATE results SET result = '{'").await.unwrap();
    connection.close().await.unwrap();
    assert_eq!(lab.latest().await, latest);
    let target = &lab.store.targets().await.unwrap()[0];
    assert_eq!(lab.store.latest_of(target).await.unwrap().unwrap(), latest);
    // With another rerun, the results are combined again.
    lab.play(Target::builtin(), "false", rerun(4)).await;
    lab.store.latest("builtin").await.expect_err("the results are damaged");
}

#[tokio::test]
async fn a_rerun_that_reaches_the_target_removes_its_headline() {
    let lab = Lab::new().await;
    let mut down = lab.play(Target::builtin(), "false", Filter::everything()).await;
    down.run.id = "19700101T000001.000Z-0000".into();
    // Variant 1 had connections, and variant 2 had none.
    down.results[0].verdict = Verdict::Inconclusive;
    down.results[1].verdict = Verdict::Inconclusive;
    down.results[1].steps.clear();
    let headline = "target is down: 192.0.2.7:7174 refused the connection".to_owned();
    down.summary = Summary::of(RunStatus::Done, 4, &down.results, 0);
    down.summary.target_down = Some(headline.clone());
    let keys: Vec<CaseKey> = down.results.iter().map(|result| result.key.clone()).collect();
    assert_eq!(keys, [key(1), key(2), key(3), key(4)]);
    lab.store.begin(&down.run, &down.cases, &keys).await.unwrap();
    for result in &down.results {
        lab.store.finish_case(&down.run.id, result).await.unwrap();
    }
    lab.store.finish(&down.run.id, &down.summary).await.unwrap();
    let target_down = async || lab.latest().await.record.summary.unwrap().target_down;
    assert_eq!(target_down().await.as_ref(), Some(&headline));
    // Variant 2 still shows that the target is down.
    lab.play(Target::builtin(), "false", Filter::everything().rerun(&down.run.id, [key(3)])).await;
    assert_eq!(target_down().await.as_ref(), Some(&headline));
    lab.play(Target::builtin(), "false", Filter::everything().rerun(&down.run.id, [key(2)])).await;
    assert_eq!(target_down().await, None);
    assert_eq!(sum(&lab.latest().await), (3, 0, ExitCode::Inconclusive));
}

#[tokio::test]
async fn changes_are_those_since_an_earlier_run_of_the_same_kind() {
    changes(&Lab::new().await).await;
}

async fn changes(lab: &Lab) {
    let mut old = lab.play(Target::builtin(), "false", Filter::everything()).await;
    assert_eq!(lab.store.earlier(&lab.latest().await, u64::MAX).await.unwrap(), None);
    (old.run.id, old.run.started_unix_ms) = ("19700101T000001.000Z-0000".into(), 1000);
    let keys: Vec<CaseKey> = old.results.iter().map(|result| result.key.clone()).collect();
    lab.store.begin(&old.run, &old.cases, &keys).await.unwrap();
    let active = lab.store.active(9).await.unwrap();
    assert_eq!(active.iter().map(|record| &record.info.id).collect::<Vec<_>>(), [&old.run.id]);
    for result in &old.results {
        lab.store.finish_case(&old.run.id, result).await.unwrap();
    }
    lab.store.finish(&old.run.id, &old.summary).await.unwrap();
    assert!(lab.store.active(9).await.unwrap().is_empty());
    let middle = lab.play(Target::builtin(), "p.n > 2", Filter::everything()).await;
    let new = lab.play(Target::builtin(), "p.n == 1", Filter::everything()).await;
    // A selection is not compared with a complete run.
    lab.play(Target::builtin(), "true", Filter::of([key(2).to_string()])).await;
    let latest = lab.latest().await;
    let earlier = async |until| lab.store.earlier(&latest, until).await.unwrap().unwrap().info.id;
    assert_eq!((earlier(2000).await, earlier(0).await), (old.run.id.clone(), middle.run.id.clone()));
    let change = |n, before, after| VerdictChange { key: key(n), before, after };
    let fails = change(1, Verdict::Pass, Verdict::Fail);
    assert_eq!(lab.store.changes(&old.run.id, &latest).await.unwrap(), std::slice::from_ref(&fails));
    let fixed = [3, 4].map(|n| change(n, Verdict::Fail, Verdict::Pass));
    let [third, fourth] = fixed;
    assert_eq!(lab.store.changes(&middle.run.id, &latest).await.unwrap(), [fails, third, fourth]);
    let rerun = Filter::everything().rerun(&new.run.id, [key(1)]);
    lab.play(Target::builtin(), "false", rerun).await;
    assert!(lab.store.changes(&old.run.id, &lab.latest().await).await.unwrap().is_empty());
    // Neither the selection nor the rerun counts.
    let recent = lab.store.recent_counts(2).await.unwrap();
    assert_eq!(recent["builtin"].iter().map(|counts| counts.pass).collect::<Vec<_>>(), [2, 3]);
}

#[tokio::test]
async fn postgresql_is_the_same() {
    let Some(server) = crate::postgres::Server::start() else {
        assert!(std::env::var_os("WEFT_POSTGRESQL").is_none(), "WEFT_POSTGRESQL wants a server, and there is none");
        eprintln!("SKIPPED: there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)");
        return;
    };
    for name in ["represents", "replaces", "changes", "ordered"] {
        let lab = Lab::on_server(&server.url, name).await;
        match name {
            "represents" => represents(&lab).await,
            "replaces" => replaces(&lab).await,
            "changes" => changes(&lab).await,
            _ => is_ordered(&lab).await,
        }
        assert!(!lab.folder.path().join(FILE_NAME).exists());
        lab.store.close().await;
    }
}

/// It is possible that the clock of a host is years ahead, and is corrected later.
#[tokio::test]
async fn runs_are_ordered_by_the_store_and_not_by_clocks() {
    is_ordered(&Lab::new().await).await;
}

async fn is_ordered(lab: &Lab) {
    let mut future = lab.play(Target::builtin(), "p.n > 2", Filter::everything()).await;
    future.run.id = "29990101T000000.000Z-0000".into();
    future.run.started_unix_ms = 32_472_144_000_000;
    let keys: Vec<CaseKey> = future.results.iter().map(|result| result.key.clone()).collect();
    lab.store.begin(&future.run, &future.cases, &keys).await.unwrap();
    lab.store.finish(&future.run.id, &future.summary).await.unwrap();
    assert_eq!(lab.latest().await.record.info.id, future.run.id);
    let now = lab.play(Target::builtin(), "false", Filter::everything()).await;
    assert_eq!(lab.latest().await.record.info.id, now.run.id);
    let order: Vec<String> = lab.store.runs(9).await.unwrap().into_iter().map(|record| record.info.id).collect();
    assert_eq!((order.len(), &order[0], &order[1]), (3, &now.run.id, &future.run.id));
    assert_eq!(lab.store.history("builtin", CASE, 1).await.unwrap()[0].run, now.run.id);
}
