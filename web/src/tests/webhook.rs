//! Tests of the messages about changed verdicts.

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use weft_suites::model::Summary;

use super::logs::Log;
use super::*;
use crate::Webhook;
use crate::webhook::{INTERVAL_MS, Messages, send_messages};

/// A receiver of messages, and its address.
async fn receiver() -> (TcpListener, Webhook) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook?lab=1", listener.local_addr().unwrap());
    (listener, address.parse().unwrap())
}

/// Reads a request. Only its document has a brace.
async fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"}") {
        assert!(stream.read_buf(&mut text).await.unwrap() > 0, "the request is complete");
    }
    String::from_utf8(text).unwrap()
}

/// Receives one request, and answers with `status`. Returns the document of the request.
async fn receive(listener: &TcpListener, status: u16) -> Value {
    let (mut stream, _) = listener.accept().await.unwrap();
    let text = request(&mut stream).await;
    let (head, document) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook?lab=1 HTTP/1.1\r\nHost: 127.0.0.1:"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", document.len())), "{head}");
    stream.write_all(format!("HTTP/1.1 {status} x\r\n\r\n").as_bytes()).await.unwrap();
    serde_json::from_str(document).unwrap()
}

/// A server that sends messages about the runs in the store of `site`.
struct Server {
    ends: RunEnds,
    time: watch::Sender<u64>,
    stop: watch::Sender<bool>,
    work: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(webhook: &Webhook, site: &Site) -> Self {
        let ends = RunEnds::default();
        let ((time, now), (stop, stopped)) = (watch::channel(0), watch::channel(false));
        let messages = Messages::new(webhook.clone(), site.store.clone(), Clock::Manual(now)).await.unwrap();
        let work = tokio::spawn(send_messages(Some(messages), ends.clone(), stopped));
        Server { ends, time, stop, work }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        self.work.await.unwrap();
    }
}

/// Stores the begin of a run with the plan of `report`.
async fn begin(site: &Site, report: &RunReport) {
    let keys: Vec<CaseKey> = report.results.iter().map(|result| result.key.clone()).collect();
    site.store.begin(&report.run, &report.cases, &keys).await.unwrap();
}

/// Stores a finished run with the results of `report`.
async fn add(site: &Site, report: &RunReport) {
    begin(site, report).await;
    site.store.finish(&report.run.id, &report.summary).await.unwrap();
}

/// Returns the same report for another run.
fn renamed(report: &RunReport, id: &str) -> RunReport {
    let mut report = report.clone();
    report.run.id = id.into();
    report
}

/// Returns the fields of a message that are text.
fn texts<'a>(message: &'a Value, names: [&str; 4]) -> [&'a str; 4] {
    names.map(|name| message[name].as_str().unwrap_or_default())
}

#[tokio::test]
async fn posts_each_change_of_the_verdict_of_a_target() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (pages::passing_run(folder.path()).await, failing_run(folder.path()).await);
    let site = site(folder.path()).await;
    let (listener, webhook) = receiver().await;
    let server = Server::start(&webhook, &site).await;
    // A rerun that passes is no run of the same cases.
    let mut rerun = renamed(&good, "29990101-3");
    rerun.run.rerun_of = Some(good.run.id.clone());
    let mut down = renamed(&bad, "29990101-5");
    down.summary.target_down = Some("target is down: 192.0.2.7:7174 refused the connection".into());
    let (fixed, failed) = (renamed(&good, "29990101-1"), renamed(&bad, "29990101-2"));
    for report in [&fixed, &failed, &rerun, &renamed(&bad, "29990101-4"), &down] {
        add(&site, report).await;
    }
    server.ends.note();
    let names = ["target", "before", "after", "run"];
    // The run that failed before the server started causes no message, but its verdict counts.
    let fixed = receive(&listener, 200).await;
    assert_eq!(texts(&fixed, names), ["builtin", "failed", "passed", "29990101-1"]);
    assert_eq!(fixed["previous"].as_str(), Some(&*bad.run.id));
    let failed = receive(&listener, 204).await;
    assert_eq!(texts(&failed, names), ["builtin", "passed", "failed", "29990101-2"]);
    assert!(failed["reasons"][0].as_str().unwrap().starts_with("the target fails 16 cases"), "{failed}");
    let down = receive(&listener, 200).await;
    assert_eq!(texts(&down, names), ["builtin", "failed", "down", "29990101-5"]);
    assert_eq!(down["previous"], "29990101-4");
    server.stop().await;
}

#[tokio::test]
async fn posts_the_changes_of_other_processes_once() {
    let folder = tempfile::tempdir().unwrap();
    let good = pages::passing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let (listener, webhook) = receiver().await;
    let server = Server::start(&webhook, &site).await;
    // The server gets no note of the ends of these runs.
    let bad = failing_run(folder.path()).await;
    server.time.send_replace(INTERVAL_MS);
    let names = ["run", "previous", "before", "after"];
    let failed = receive(&listener, 200).await;
    assert_eq!(texts(&failed, names), [&*bad.run.id, &*good.run.id, "passed", "failed"]);
    server.time.send_replace(2 * INTERVAL_MS);
    let fixed = pages::passing_run(folder.path()).await;
    server.time.send_replace(3 * INTERVAL_MS);
    let passed = receive(&listener, 200).await;
    assert_eq!(texts(&passed, names), [&*fixed.run.id, &*bad.run.id, "failed", "passed"]);
    server.stop().await;
}

#[tokio::test]
async fn a_restart_repeats_no_message_and_misses_no_run_that_finishes_later() {
    let folder = tempfile::tempdir().unwrap();
    let good = pages::passing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let (listener, webhook) = receiver().await;
    let server = Server::start(&webhook, &site).await;
    let bad = failing_run(folder.path()).await;
    server.ends.note();
    assert_eq!(receive(&listener, 200).await["run"].as_str(), Some(&*bad.run.id));
    server.stop().await;
    let (active, stopped) = (renamed(&good, "29990101-1"), renamed(&bad, "29990101-2"));
    begin(&site, &active).await;
    begin(&site, &stopped).await;
    let cancelled = Summary::of(RunStatus::Cancelled, bad.summary.planned, std::iter::empty(), 0);
    site.store.finish(&stopped.run.id, &cancelled).await.unwrap();

    let server = Server::start(&webhook, &site).await;
    site.store.finish(&active.run.id, &active.summary).await.unwrap();
    // The cancelled run is resumed, and finishes before the next search.
    site.store.set_status(&stopped.run.id, RunStatus::Running).await.unwrap();
    site.store.finish(&stopped.run.id, &stopped.summary).await.unwrap();
    server.ends.note();
    let names = ["run", "previous", "before", "after"];
    let first = receive(&listener, 200).await;
    assert_eq!(texts(&first, names), ["29990101-1", &*bad.run.id, "failed", "passed"]);
    let second = receive(&listener, 200).await;
    assert_eq!(texts(&second, names), ["29990101-2", "29990101-1", "passed", "failed"]);
    server.stop().await;
}

#[tokio::test]
async fn tries_again_and_then_logs_the_error() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let (bad, good) = (failing_run(folder.path()).await, pages::passing_run(folder.path()).await);
    let site = site(folder.path()).await;
    let (listener, webhook) = receiver().await;
    let server = Server::start(&webhook, &site).await;
    for report in [renamed(&bad, "29990101-1"), renamed(&good, "29990101-2")] {
        add(&site, &report).await;
    }
    log.lines();
    server.ends.note();
    for status in [500, 302, 404, 503, 200] {
        receive(&listener, status).await;
    }
    server.stop().await;
    let address = listener.local_addr().unwrap();
    let line = |level: &str, status: u16, rest: &str| {
        format!("{level} webhook {address}: the answer is \"HTTP/1.1 {status}\"{rest}")
    };
    let again = "; trying again";
    assert_eq!(
        log.lines(),
        [line("WARN", 500, again), line("WARN", 302, again), line("ERROR", 404, ""), line("WARN", 503, again)]
    );
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_one_line() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let (_, webhook) = receiver().await;
    let mut messages = Messages::new(webhook, site.store.clone(), Clock::default()).await.unwrap();
    site.store.close().await;
    log.lines();
    for _ in 0..3 {
        messages.send_new().await;
    }
    let lines = log.lines();
    assert!(lines.len() == 1 && lines[0].starts_with("ERROR webhook: results store: "), "{lines:?}");
}

#[tokio::test]
async fn notes_the_end_of_each_started_run() {
    let folder = tempfile::tempdir().unwrap();
    let url = Store::url(&folder.path().join(FILE_NAME)).unwrap();
    let ends = RunEnds::default();
    let starter = Starter::new(Some(runs::start()), folder.path(), &url, &Live::default(), &ends).unwrap();
    let wanted = starter.request(&["mpa/7.1.1-key"], Default::default(), None).unwrap();
    let (_, begins) = starter.start("bad", wanted).unwrap();
    let run = begins.await.unwrap();
    ends.ended().await;
    let store = Store::connect(&url).await.unwrap();
    assert!(store.record(&run).await.unwrap().unwrap().summary.is_some(), "the run is over");
}
