//! Tests of the pages with the results in a PostgreSQL server.

#[allow(unreachable_pub, reason = "the tests of another crate also use this file")]
#[path = "../../../suites/tests/run/postgres.rs"]
mod postgres;

use std::collections::BTreeSet;

use super::runs::start;
use super::*;

/// The links to this server on a page.
fn leads(page: &str) -> impl Iterator<Item = String> {
    let all = page.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next());
    all.map(|path| format!("/{}", path.replace("&#38;", "&").split('#').next().unwrap_or_default()))
}

/// A PostgreSQL server, if the machine has one.
fn server() -> Option<postgres::Server> {
    let server = postgres::Server::start();
    if server.is_none() {
        assert!(std::env::var_os("WEFT_POSTGRESQL").is_none(), "WEFT_POSTGRESQL is set, but there is no PostgreSQL");
        eprintln!("SKIPPED: there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)");
    }
    server
}

#[tokio::test]
async fn starts_a_run_and_serves_every_linked_page() {
    let Some(server) = server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let site = site_on(
        &server.url,
        folder.path(),
        Access::default(),
        Some(start()),
        CaptureOptions::default(),
        Exports::default(),
    )
    .await;
    for target in ["bad", "builtin"] {
        let run = site.begin(target, "select=mpa/7.1.1-key&seed=1").await;
        site.counts(&run).await;
        site.starter.idle(target).await;
    }
    assert!(!folder.path().join(FILE_NAME).exists(), "the store is elsewhere");
    let runs: Vec<String> = site.store.runs(9).await.unwrap().into_iter().map(|record| record.info.id).collect();
    let [second, first] = runs.as_slice() else { panic!("{runs:?}") };
    let finished = site.store.finished_runs().await.unwrap();
    let done = |id: &String| (id.clone(), RunStatus::Done);
    assert_eq!(finished, [done(first), done(second)]);
    let mut wanted: Vec<String> =
        ["/", "/runs", "/matrix?show=differing", "/pairs", "/metrics", "/api/runs", "/api/targets", "/api/matrix"]
            .map(ToOwned::to_owned)
            .into();
    wanted.push(format!("/compare?before={first}&after={second}"));
    wanted.push(format!("/runs?before={second}&target=bad"));
    wanted.push(format!("/api/compare?before={first}&after={second}"));
    let mut seen = BTreeSet::new();
    while let Some(path) = wanted.pop() {
        if path.starts_with("/assets/") || !seen.insert(path.clone()) {
            continue;
        }
        let answer = site.get(&path).await;
        // The status is 503 while the server reads a capture.
        let status = answer.status();
        assert!(status == StatusCode::OK || status == StatusCode::SERVICE_UNAVAILABLE, "{path}: {status}");
        let is_page = answer.headers()[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/html");
        let octets = octets(answer).await;
        if is_page && !path.starts_with("/captures/") {
            wanted.extend(leads(&String::from_utf8(octets).unwrap()));
        }
    }
    let count = |part: &str| seen.iter().filter(|path| path.contains(part)).count();
    let cases = site.store.planned(first).await.unwrap().len();
    assert!(count("/cases/") >= 2 * cases && count("/evidence/") > 0 && count("/export.zip") == 2, "{seen:?}");
    assert!(site.text(&format!("/compare?before={first}&after={second}")).await.contains("<h2>fixed (16)</h2>"));
    // PostgreSQL cannot store a name with a zero byte. The server must answer 404 for such a name,
    // and not report an error of the store.
    for path in [
        "/runs?target=%00",
        "/runs?before=%00",
        "/runs/%00",
        "/targets/%00",
        "/compare?before=%00&after=%00",
        "/api/runs?target=%00",
    ] {
        assert_eq!(site.get(path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    assert!(site.text("/targets/bad").await.contains("<h2 id=\"trend\">History</h2>"));
    site.store.close().await;
}

#[tokio::test]
async fn reports_soon_that_the_server_is_gone() {
    let Some(server) = server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (access, captures) = (Access::default(), CaptureOptions::default());
    let site = site_on(&server.url, folder.path(), access, None, captures, Exports::default()).await;
    site.text("/").await;
    assert_eq!(site.get("/healthz").await.status(), StatusCode::OK);
    drop(server);
    store_gone::answers_soon(&site, &["/", "/runs/x", "/api/runs", "/metrics"]).await;
}
