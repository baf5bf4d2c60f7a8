//! Tests of the log of `weft web`.

use std::io;

use tracing::subscriber::DefaultGuard;
use weft_suites::model::Tier;

use super::access::{OPERATOR, VIEWER, ask, guarded, signed_in};
use super::runs::{after_killed_server, startable};
use super::*;

/// The log of this thread, which runs all tasks of the test.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Collects the log of this thread until the guard is dropped.
    pub(super) fn begin() -> (Self, DefaultGuard) {
        let log = Log::default();
        let writer = log.clone();
        // Only lines of weft: the lines of libraries depend on the speed of the machine.
        let log_of_weft = tracing_subscriber::fmt().with_env_filter("weft_web=info,weft_suites=info");
        let log_of_weft = log_of_weft.without_time().with_target(false).with_ansi(false);
        let guard = tracing::subscriber::set_default(log_of_weft.with_writer(move || writer.clone()).finish());
        (log, guard)
    }

    /// Returns the lines since the last call.
    pub(super) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        text.lines().map(|line| line.trim_start().to_owned()).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn each_wrong_token_is_one_line_with_its_address() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    log.lines();
    let wrong = "authorization: Bearer viewer-token-0123456780";
    ask(&site, "GET /api/runs", &[wrong], "", "198.51.100.7").await;
    assert_eq!(log.lines(), ["WARN wrong token from 198.51.100.7 for /api/runs"]);
    ask(&site, "POST /login", &[], "token=x", "2001:db8::1").await;
    assert_eq!(log.lines(), ["WARN wrong token from 2001:db8::1 for /login"]);
}

#[tokio::test]
async fn a_client_that_guesses_does_not_fill_the_disk() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    log.lines();
    let wrong = "authorization: Bearer viewer-token-0123456780";
    for _ in 0..100 {
        ask(&site, "GET /", &[wrong], "", "198.51.100.7").await;
    }
    assert_eq!(log.lines().len(), 10);
    for host in 0..200 {
        ask(&site, "GET /", &[wrong], "", &format!("192.0.2.{host}")).await;
    }
    assert_eq!(log.lines().len(), 50, "60 lines a minute in all");
}

#[tokio::test]
async fn each_action_of_an_operator_is_one_line() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    log.lines();
    let (cookie, key) = signed_in(&site, OPERATOR).await;
    assert_eq!(log.lines(), ["INFO audit: operator at 192.0.2.1: signs in"]);
    // Sign in again while signed in.
    let form = format!("token={OPERATOR}&key={key}");
    assert_eq!(ask(&site, "POST /login", &[&cookie], &form, "192.0.2.1").await.status(), StatusCode::SEE_OTHER);
    assert_eq!(log.lines(), ["INFO audit: operator at 192.0.2.1: signs in"]);
    let (cookie, key) = signed_in(&site, OPERATOR).await;
    log.lines();
    ask(&site, "POST /targets/none/start", &[&cookie], &format!("key={key}"), "192.0.2.1").await;
    assert_eq!(log.lines(), ["INFO audit: operator at 192.0.2.1: POST /targets/none/start"]);
    ask(&site, "GET /", &[&cookie], "", "192.0.2.1").await;
    signed_in(&site, VIEWER).await;
    assert_eq!(log.lines(), [""; 0], "reading and the sign-in of a viewer add no lines");
}

#[tokio::test]
async fn a_run_that_fails_is_one_line() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let site = startable(folder.path()).await;
    // The run cannot create its folder, because a file has the name of the folder.
    std::fs::create_dir(folder.path().join("targets")).unwrap();
    std::fs::write(folder.path().join("targets/bad"), "").unwrap();
    log.lines();
    let wanted = site.starter.request(&["mpa/7.1.1-key"], Default::default(), None).unwrap();
    let (_, begins) = site.starter.start("bad", wanted).unwrap();
    assert!(begins.await.is_err(), "it does not begin");
    site.starter.idle("bad").await;
    let lines = log.lines();
    assert!(lines.len() == 1 && lines[0].starts_with("ERROR bad: "), "{lines:?}");
}

#[tokio::test]
async fn a_run_that_fails_after_it_began_is_one_line() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let site = startable(folder.path()).await;
    log.lines();
    // A run of all cases takes far longer than the rest of this test.
    let wanted = site.starter.request(&[], Tier::Full, None).unwrap();
    let (_, begins) = site.starter.start("builtin", wanted).unwrap();
    let run = begins.await.unwrap();
    let mut events = Events::new(&site, &run).await;
    while !events.next().await.expect("it continues").starts_with("finished") {}
    assert_eq!(log.lines(), [""; 0], "the run works");
    // Replace the folder `cases` by a file, so that the run cannot write the evidence of a further
    // case. A running case can create the folder again before the file exists. So try again.
    let cases = folder.path().join("targets/builtin/cases");
    for number in 0.. {
        let _ = std::fs::rename(&cases, folder.path().join(format!("cases-{number}")));
        if std::fs::File::create_new(&cases).is_ok() {
            break;
        }
    }
    site.starter.idle("builtin").await;
    let (lines, failure) = (log.lines(), format!("ERROR builtin: cannot write {}", cases.display()));
    assert!(lines.len() == 1 && lines[0].starts_with(&failure), "{lines:?}");
}

#[tokio::test]
async fn a_run_of_a_killed_server_is_one_line() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let (site, report) = after_killed_server(folder.path()).await;
    log.lines();
    site.starter.finish_killed(&site.store).await;
    let (run, planned) = (&report.run.id, report.results.len());
    assert_eq!(log.lines(), [format!("INFO run {run} was interrupted; 1 of {planned} cases are finished")]);
    // A summary that exists is not written again.
    site.starter.finish_killed(&site.store).await;
    assert_eq!(log.lines(), [""; 0]);
}

#[tokio::test]
async fn a_failure_of_the_store_is_one_line() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    site.store.close().await;
    log.lines();
    site.get("/").await;
    let lines = log.lines();
    assert!(lines.len() == 1 && lines[0].starts_with("ERROR results store: "), "{lines:?}");
    // Repeated health checks add no lines.
    for _ in 0..3 {
        assert_eq!(site.get("/healthz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    let lines = log.lines();
    assert!(lines.len() == 1 && lines[0].starts_with("ERROR results store: "), "{lines:?}");
}
