//! Tests of starting, stopping and repeating runs from a page, and of runs of a killed server.

use sqlx::{Connection, Executor};
use weft_suites::baseline::BaselineEntry;
use weft_suites::model::{Counts, ExitCode};

use super::*;

/// Two configured targets: the correct one, and one that deviates.
pub(super) fn start() -> Start {
    let bad = "name = \"bad\"\nkind = \"builtin\"\ndeviations = [\"mpa.accepts-wrong-key\"]\n";
    let targets = vec![Target::builtin(), Target::from_toml("bad.toml", bad).unwrap()];
    Start { targets, suites: Suites::embedded().unwrap() }
}

pub(super) async fn startable(folder: &Path) -> Site {
    site_for(folder, Access::default(), Some(start())).await
}

impl Site {
    /// Posts a form of the page at `page`, with its key.
    pub(super) async fn post(&self, page: &str, action: &str, form: &str) -> Response<Body> {
        let html = self.text(page).await;
        let key = html.split("name=\"key\" value=\"").nth(1).expect(page).split('"').next().unwrap();
        let request = Request::post(action).header(header::HOST, "localhost:1");
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.body(Body::from(format!("key={key}&{form}"))).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Starts a run. Returns the id of the run.
    pub(super) async fn begin(&self, target: &str, form: &str) -> String {
        let page = format!("/targets/{target}");
        let answer = self.post(&page, &format!("{page}/start"), form).await;
        led(&answer).strip_prefix("/runs/").expect("it begins at once").to_owned()
    }

    /// Waits for the end of a run. Returns the counts of the run.
    pub(super) async fn counts(&self, run: &str) -> Counts {
        Events::new(self, run).await.all().await;
        self.store.record(run).await.unwrap().unwrap().summary.unwrap().counts
    }
}

fn led(answer: &Response<Body>) -> String {
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    answer.headers()[header::LOCATION].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn starts_a_run_from_a_page_and_finds_its_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let site = startable(folder.path()).await;
    let run = site.begin("bad", "select=mpa/7.1.1-key&tier=default&seed=1").await;
    let counts = site.counts(&run).await;
    assert_eq!(counts.fail, 16);
    site.starter.close().await;
    let page = site.text(&format!("/runs/{run}")).await;
    assert!(page.contains("Rerun all cases") && page.contains("Rerun cases that did not pass (16)"), "{page}");
    assert!(page.contains("<dt>Requirements met</dt>"), "{page}");
    let failed = site.store.run(&run).await.unwrap().unwrap().planned;
    let failed = failed.iter().find(|case| case.verdict == Some(Verdict::Fail)).unwrap();
    let case = case_page(&run, &failed.key);
    assert!(site.text(&case).await.contains("Rerun this case"));
    let evidence = site.get(&case.replace("/cases/", "/evidence/pcapng/")).await;
    assert_eq!(evidence.status(), StatusCode::OK);
    assert!(octets(evidence).await.starts_with(b"\x0a\x0d\x0d\x0a"));
    assert!(folder.path().join("targets/bad/report.html").is_file(), "reports are written as from the command line");
}

#[tokio::test]
async fn a_rerun_has_the_same_cases_and_seed() {
    let folder = tempfile::tempdir().unwrap();
    let site = startable(folder.path()).await;
    let first = site.begin("bad", "select=mpa/7.1.1-key&seed=7").await;
    site.counts(&first).await;
    let plan = site.store.run(&first).await.unwrap().unwrap();
    let one = plan.planned.iter().find(|case| case.verdict == Some(Verdict::Fail)).unwrap().key.clone();
    let path: String = form_urlencoded::byte_serialize(one.path().as_bytes()).collect();
    for (form, number) in [
        ("which=all".to_owned(), plan.planned.len()),
        ("which=failed".into(), 16),
        (format!("which=case&case={path}"), 1),
    ] {
        let page = format!("/runs/{first}");
        let answer = site.post(&page, &format!("{page}/again"), &form).await;
        let again = led(&answer).strip_prefix("/runs/").expect("it begins at once").to_owned();
        site.counts(&again).await;
        let detail = site.store.run(&again).await.unwrap().unwrap();
        assert_eq!((detail.planned.len(), detail.record.info.seed), (number, 7), "{form}");
    }
    let page = format!("/runs/{first}");
    for (form, status) in [("which=none", 400), ("which=case&case=mpa/none/default", 404), ("", 400)] {
        assert_eq!(site.post(&page, &format!("{page}/again"), form).await.status().as_u16(), status, "{form}");
    }
}

#[tokio::test]
async fn a_stopped_run_keeps_its_results_and_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let site = startable(folder.path()).await;
    let run = site.begin("builtin", "select=mpa&tier=full").await;
    let mut events = Events::new(&site, &run).await;
    while !events.next().await.expect("it continues").starts_with("finished") {}
    let page = site.text(&format!("/runs/{run}")).await;
    assert!(page.contains("Stop the run") && page.contains("data-events"), "{page}");
    let answer = site.post(&format!("/runs/{run}"), "/targets/builtin/stop", "job=0").await;
    assert_eq!(led(&answer), format!("/runs/{run}"));
    let rest = events.all().await;
    assert!(rest.last().unwrap().starts_with("done"), "{rest:?}");
    let record = site.store.record(&run).await.unwrap().unwrap();
    assert_eq!(record.status, RunStatus::Cancelled);
    assert!((1..record.planned).contains(&record.finished), "{} of {}", record.finished, record.planned);
    site.starter.idle("builtin").await;
    let page = site.text("/targets/builtin").await;
    assert!(page.contains("did not finish"), "{page}");
    let answer = site.post("/targets/builtin", "/targets/builtin/start", "resume=1").await;
    assert_eq!(led(&answer), format!("/runs/{run}"), "the same run");
    let counts = site.counts(&run).await;
    assert_eq!(counts.total(), record.planned);
    site.starter.idle("builtin").await;
    let answer = site.post("/targets/builtin", "/targets/builtin/start", "resume=1").await;
    assert_eq!(answer.status(), StatusCode::CONFLICT, "nothing is left");
}

#[tokio::test]
async fn a_target_has_one_run_at_a_time_and_a_bounded_queue() {
    let folder = tempfile::tempdir().unwrap();
    let site = startable(folder.path()).await;
    // A run of all cases takes far longer than the rest of this test, which stops the run.
    let run = site.begin("builtin", "select=&tier=full").await;
    for number in 1..=8usize {
        let words = ["mpa/7.1.1-key", ["MPA-7.1.1-1", "MPA-7.1.1-2"][number % 2]];
        let wanted = site.starter.request(&words, Default::default(), None).unwrap();
        site.starter.start("builtin", wanted).unwrap();
    }
    let answer = site.post("/targets/builtin", "/targets/builtin/start", "select=mpa").await;
    assert_eq!(answer.status(), StatusCode::CONFLICT);
    assert!(String::from_utf8(octets(answer).await).unwrap().contains("8 runs are waiting"));
    // Another target has another queue.
    let other = site.begin("bad", "select=mpa/7.1.1-key").await;
    assert_eq!(site.counts(&other).await.fail, 16);
    // The last run is removed from the queue, and the first run is stopped. Then the other runs
    // start in order.
    let answer = site.post("/targets/builtin", "/targets/builtin/stop", "job=8").await;
    assert_eq!(led(&answer), "/targets/builtin");
    site.starter.stop("builtin", 0).unwrap();
    site.starter.idle("builtin").await;
    assert_eq!(site.store.record(&run).await.unwrap().unwrap().status, RunStatus::Cancelled);
    let records = site.store.runs(20).await.unwrap();
    assert_eq!(records.iter().filter(|record| record.info.target.name == "builtin").count(), 8, "1 run and 7 more");
    for job in [0, 8, 99] {
        let status = site.post("/targets/builtin", "/targets/builtin/stop", &format!("job={job}")).await.status();
        assert_eq!(status, StatusCode::CONFLICT, "{job} is over");
    }
}

#[tokio::test]
async fn only_operators_start_runs_and_only_against_configured_targets() {
    let folder = tempfile::tempdir().unwrap();
    let site = startable(folder.path()).await;
    for target in ["none", "builtin-tcp", "..%2Fbad", "%2Fetc%2Fpasswd"] {
        let action = format!("/targets/{target}/start");
        assert_eq!(
            site.post("/targets/builtin", &action, "select=mpa").await.status(),
            StatusCode::NOT_FOUND,
            "{target}"
        );
    }
    let long = format!("select={}", "a+".repeat(65));
    for (form, status) in
        [("select=no/such/case", 404), ("tier=huge", 400), ("seed=x", 400), ("seed=-1", 400), (long.as_str(), 400)]
    {
        let answer = site.post("/targets/builtin", "/targets/builtin/start", form).await;
        assert_eq!(answer.status().as_u16(), status, "{form}");
    }
    let bare = Request::post("/targets/builtin/start").header(header::HOST, "localhost");
    let bare = bare.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(Body::from("select=mpa"));
    let status = site.router.clone().oneshot(bare.unwrap()).await.unwrap().status();
    assert_eq!(status, StatusCode::FORBIDDEN, "no key");
    assert!(site.store.runs(1).await.unwrap().is_empty(), "nothing was started");

    let tokens = crate::Tokens::parse("viewer viewer-token-0123456789").unwrap();
    let site = site_for(folder.path(), Access { tokens, names: Vec::new() }, Some(start())).await;
    let token = (header::AUTHORIZATION, "Bearer viewer-token-0123456789");
    let ask = |request: axum::http::request::Builder| {
        let request = request.header(header::HOST, "localhost").header(token.0.clone(), token.1);
        site.router.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    let page = ask(Request::get("/targets/builtin")).await.unwrap();
    let page = String::from_utf8(octets(page).await).unwrap();
    assert!(page.contains("No run is active") && !page.contains("<form"), "a viewer sees no forms: {page}");
    assert_eq!(ask(Request::post("/targets/builtin/start")).await.unwrap().status(), StatusCode::FORBIDDEN);
}

/// A run of a killed `weft test` has no summary.
#[tokio::test]
async fn shows_a_run_whose_process_is_gone_as_broken() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(&folder.path().join("out")).await;
    let site = site(folder.path()).await;
    let keys: Vec<CaseKey> = report.results.iter().map(|result| result.key.clone()).collect();
    let id = &report.run.id;
    site.store.begin(&report.run, &report.cases, &keys).await.unwrap();
    site.store.set_status(id, RunStatus::Running).await.unwrap();
    let page = site.text(&format!("/runs/{id}")).await;
    assert!(page.contains(r#"<strong id="status">running</strong>"#) && page.contains("data-events"), "{page}");
    let url = Store::url(&folder.path().join(FILE_NAME)).unwrap();
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    connection.execute("UPDATE runs SET alive_unix_s = alive_unix_s - 100").await.unwrap();
    // An open page gets no more events, and a new page does not wait.
    let page = site.text(&format!("/runs/{id}")).await;
    assert!(page.contains(r#"<strong id="status">broken</strong>"#) && !page.contains("data-events"), "{page}");
    assert!(site.text("/runs").await.contains("<td>broken <span class=\"faint\">partial: "));
    assert!(site.text("/metrics").await.contains("weft_runs{status=\"broken\"} 1"));
    let stream = site.text(&format!("/runs/{id}/events")).await;
    assert!(!stream.contains("done"), "{stream}");
}

/// A site whose previous server was killed after one case of a run. Also returns the report of the
/// complete run.
pub(super) async fn after_killed_server(folder: &Path) -> (Site, RunReport) {
    let site = startable(folder).await;
    let report = killed_server(&site, folder).await;
    (site, report)
}

/// Leaves the run of a server that was killed after one case. Returns the report of the complete
/// run.
async fn killed_server(site: &Site, folder: &Path) -> RunReport {
    let report = failing_run(&folder.join("targets/builtin")).await;
    let keys: Vec<CaseKey> = report.results.iter().map(|result| result.key.clone()).collect();
    let id = &report.run.id;
    site.store.begin(&report.run, &report.cases, &keys).await.unwrap();
    site.store.set_status(id, RunStatus::Running).await.unwrap();
    site.store.finish_case(id, &report.results[0]).await.unwrap();
    report
}

#[tokio::test]
async fn writes_the_summary_of_a_run_of_a_killed_server() {
    let folder = tempfile::tempdir().unwrap();
    let (site, report) = after_killed_server(folder.path()).await;
    let id = &report.run.id;
    site.starter.finish_killed(&site.store).await;
    let record = site.store.record(id).await.unwrap().unwrap();
    let planned = report.results.len() as u64;
    assert_eq!((record.status, record.finished, record.planned), (RunStatus::Cancelled, 1, planned));
    // A finished run does not change.
    site.store.finish(id, &report.summary).await.unwrap();
    site.starter.finish_killed(&site.store).await;
    assert_eq!(site.store.record(id).await.unwrap().unwrap().status, RunStatus::Done);
}

#[tokio::test]
async fn a_run_of_a_killed_server_gets_its_baseline_and_its_reports() {
    let folder = tempfile::tempdir().unwrap();
    let entry = BaselineEntry {
        case: "mpa/*".into(),
        outcome: Verdict::Fail,
        signature: "MPA-7.1.1-2".into(),
        reason: "firmware 1.2".into(),
        link: None,
    };
    let targets = vec![Target::builtin().with_baseline(vec![entry])];
    let start = Start { targets, suites: Suites::embedded().unwrap() };
    let site = site_for(folder.path(), Access::default(), Some(start)).await;
    let report = killed_server(&site, folder.path()).await;
    let out = folder.path().join("targets/builtin");
    assert!(!out.join("report.json").exists(), "the server was killed before the reports");
    site.starter.finish_killed(&site.store).await;
    let summary = site.store.record(&report.run.id).await.unwrap().unwrap().summary.unwrap();
    // The failure is expected, but the other cases have no result.
    assert_eq!(summary.exit_code, ExitCode::Inconclusive);
    let expected: Vec<&CaseKey> = summary.expected.iter().map(|expected| &expected.key).collect();
    assert_eq!(expected, [&report.results[0].key]);
    let written: RunReport = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    assert_eq!((&written.run, &written.summary), (&report.run, &summary));
    assert_eq!(written.results.len(), 1);
    for name in ["report.html", "junit.xml", "report.tap", "report.sarif", "summary.md"] {
        assert!(out.join(name).is_file(), "{name}");
    }
}

#[tokio::test]
async fn a_run_with_all_results_is_done_although_its_server_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (site, report) = after_killed_server(folder.path()).await;
    let id = &report.run.id;
    for result in &report.results {
        site.store.finish_case(id, result).await.unwrap();
    }
    site.starter.finish_killed(&site.store).await;
    let record = site.store.record(id).await.unwrap().unwrap();
    assert_eq!(record.status, RunStatus::Done);
    assert_eq!(record.summary.unwrap().counts, report.summary.counts);
}
