//! Tests of deleting runs: by an operator, and by the limits of the server.

use super::access::{OPERATOR, ask, guarded, signed_in};
use super::logs::Log;
use super::*;
use crate::retention;

const HOUR_MS: u64 = 3_600_000;
const DAY: Duration = Duration::from_secs(86_400);

/// Sends `DELETE` as a program does.
async fn delete(site: &Site, path: &str) -> StatusCode {
    let request = Request::delete(path).header(header::HOST, "localhost").body(Body::empty()).unwrap();
    site.router.clone().oneshot(request).await.unwrap().status()
}

/// Returns whether the store and the folder have the run.
async fn exists(site: &Site, folder: &Path, run: &str) -> (bool, bool) {
    let in_store = site.store.record(run).await.unwrap().is_some();
    (in_store, weft_suites::folder::size_of_run(folder, run) > 0)
}

#[tokio::test]
async fn an_operator_deletes_a_run_from_its_page_and_by_the_api() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (failing_run(folder.path()).await, failing_run(folder.path()).await);
    let third = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let page = format!("/runs/{}", first.run.id);
    let answer = site.post(&page, &format!("{page}/delete"), "").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(answer.headers()[header::LOCATION], "/targets/builtin");
    assert_eq!(exists(&site, folder.path(), &first.run.id).await, (false, false));
    assert_eq!(site.get(&page).await.status(), StatusCode::NOT_FOUND);
    // The files of the newest run are at the top of the folder.
    let path = format!("/api/runs/{}", third.run.id);
    assert_eq!(delete(&site, &path).await, StatusCode::NO_CONTENT);
    assert_eq!(delete(&site, &path).await, StatusCode::NOT_FOUND);
    assert_eq!(exists(&site, folder.path(), &third.run.id).await, (false, false));
    assert_eq!(exists(&site, folder.path(), &second.run.id).await, (true, true));
    assert!(site.store.result(&first.run.id, &first.results[0].key).await.unwrap().is_none());
}

#[tokio::test]
async fn rejects_the_deletion_of_a_run_in_progress() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    report.run.id = "29990101".into();
    site.store.begin(&report.run, &[], &[]).await.unwrap();
    assert!(!site.text("/runs/29990101").await.contains("Delete this run"));
    assert_eq!(delete(&site, "/api/runs/29990101").await, StatusCode::CONFLICT);
    assert!(site.store.record("29990101").await.unwrap().is_some());
}

#[tokio::test]
async fn a_deletion_by_an_operator_is_one_line_of_the_log() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = guarded(folder.path()).await;
    let (cookie, key) = signed_in(&site, OPERATOR).await;
    log.lines();
    let path = format!("/runs/{}/delete", report.run.id);
    let post = format!("POST {path}");
    assert_eq!(ask(&site, &post, &[&cookie], "", "192.0.2.1").await.status(), StatusCode::FORBIDDEN);
    assert!(site.store.record(&report.run.id).await.unwrap().is_some(), "the request has no form key");
    let answer = ask(&site, &post, &[&cookie], &format!("key={key}"), "192.0.2.1").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(log.lines(), [format!("INFO audit: operator at 192.0.2.1: {post}")]);
}

/// Lets the limits act once, at a time `later_ms` after the start of the newest run.
async fn keep_once(site: &Site, folder: &Path, limits: Retention, later_ms: u64) {
    let newest = site.store.runs(1).await.unwrap().remove(0).info.started_unix_ms;
    let (_time, now) = watch::channel(newest + later_ms);
    // The server stops after the first search.
    let (_stop, stopped) = watch::channel(true);
    retention::keep(limits, site.store.clone(), folder.to_owned(), Clock::Manual(now), stopped).await;
}

#[tokio::test]
async fn the_limits_delete_all_but_the_newest_run_and_log_it() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(failing_run(folder.path()).await.run.id);
    }
    let site = site(folder.path()).await;
    log.lines();
    let all = Retention { age: Some(DAY), size: Some(u64::MAX) };
    keep_once(&site, folder.path(), all, 0).await;
    assert_eq!(log.lines(), [""; 0]);
    let most = weft_suites::folder::size_of_run(folder.path(), &runs[2]);
    let size = Retention { age: None, size: Some(most * 5 / 2) };
    keep_once(&site, folder.path(), size, 0).await;
    let line = |run: &str, why: &str| format!("INFO audit: retention: deletes run {run} of builtin, because {why}");
    assert_eq!(log.lines(), [line(&runs[0], "the files of all runs are too large")]);
    assert_eq!(exists(&site, folder.path(), &runs[0]).await, (false, false));
    let age = Retention { age: Some(DAY), size: None };
    keep_once(&site, folder.path(), age, 48 * HOUR_MS).await;
    assert_eq!(log.lines(), [line(&runs[1], "it is too old")]);
    assert_eq!(exists(&site, folder.path(), &runs[1]).await, (false, false));
    assert_eq!(exists(&site, folder.path(), &runs[2]).await, (true, true));
}

#[tokio::test]
async fn the_limits_act_again_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (failing_run(folder.path()).await, failing_run(folder.path()).await);
    let site = site(folder.path()).await;
    let (time, now) = watch::channel(second.run.started_unix_ms);
    let (_stop, stopped) = watch::channel(false);
    let age = Retention { age: Some(DAY), size: None };
    let kept =
        tokio::spawn(retention::keep(age, site.store.clone(), folder.path().to_owned(), Clock::Manual(now), stopped));
    while site.store.record(&first.run.id).await.unwrap().is_some() {
        time.send_modify(|now| *now += HOUR_MS);
        tokio::task::yield_now().await;
    }
    kept.abort();
    assert!(site.store.record(&second.run.id).await.unwrap().is_some());
}
