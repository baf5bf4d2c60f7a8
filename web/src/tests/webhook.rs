//! Tests of the messages about changed verdicts.

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

use super::logs::Log;
use super::*;
use crate::Webhook;
use crate::webhook::send_messages;

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

/// Stores a finished run with the results of `report`.
async fn add(site: &Site, report: &RunReport) {
    let keys: Vec<CaseKey> = report.results.iter().map(|result| result.key.clone()).collect();
    site.store.begin(&report.run, &report.cases, &keys).await.unwrap();
    site.store.finish(&report.run.id, &report.summary).await.unwrap();
}

#[tokio::test]
async fn posts_each_change_of_the_verdict_of_a_target() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (pages::passing_run(folder.path()).await, failing_run(folder.path()).await);
    let site = site(folder.path()).await;
    // A rerun that passes is no run of the same cases.
    let mut rerun = good.clone();
    (rerun.run.id, rerun.run.rerun_of) = ("29990101-1".into(), Some(good.run.id.clone()));
    let (mut same, mut down) = (bad.clone(), bad.clone());
    same.run.id = "29990101-2".into();
    down.run.id = "29990101-3".into();
    down.summary.target_down = Some("target is down: 192.0.2.7:7174 refused the connection".into());
    for report in [&rerun, &same, &down] {
        add(&site, report).await;
    }
    let (listener, webhook) = receiver().await;
    let (ends, ended) = RunEnds::channel();
    let (_stop, stopped) = watch::channel(false);
    let sender = tokio::spawn(send_messages(Some(webhook), site.store.clone(), ended, stopped));
    for report in [&good, &bad, &rerun, &same, &down] {
        ends.note(report.run.id.clone());
    }
    let failed = receive(&listener, 204).await;
    assert_eq!(
        (&failed["target"], &failed["before"], &failed["after"]),
        (&"builtin".into(), &"passed".into(), &"failed".into())
    );
    assert_eq!((failed["run"].as_str(), failed["previous"].as_str()), (Some(&*bad.run.id), Some(&*good.run.id)));
    assert!(failed["reasons"][0].as_str().unwrap().starts_with("the target fails 16 cases"), "{failed}");
    let down = receive(&listener, 200).await;
    assert_eq!((down["before"].as_str(), down["after"].as_str()), (Some("failed"), Some("down")));
    assert_eq!(down["previous"], "29990101-2");
    drop(ends);
    sender.await.unwrap();
}

#[tokio::test]
async fn tries_again_and_then_logs_the_error() {
    let (log, _guard) = Log::begin();
    let folder = tempfile::tempdir().unwrap();
    pages::passing_run(folder.path()).await;
    let bad = failing_run(folder.path()).await.run.id;
    let site = site(folder.path()).await;
    let (listener, webhook) = receiver().await;
    log.lines();
    let (ends, ended) = RunEnds::channel();
    let (_stop, stopped) = watch::channel(false);
    let sender = tokio::spawn(send_messages(Some(webhook), site.store.clone(), ended, stopped));
    ends.note(bad.clone());
    ends.note(bad);
    for status in [500, 302, 404, 503, 200] {
        receive(&listener, status).await;
    }
    drop(ends);
    sender.await.unwrap();
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
async fn notes_the_end_of_each_started_run() {
    let folder = tempfile::tempdir().unwrap();
    let url = Store::url(&folder.path().join(FILE_NAME)).unwrap();
    let (ends, mut ended) = RunEnds::channel();
    let starter = Starter::new(Some(runs::start()), folder.path(), &url, &Live::default(), &ends).unwrap();
    let wanted = starter.request(&["mpa/7.1.1-key"], Default::default(), None).unwrap();
    let (_, begins) = starter.start("bad", wanted).unwrap();
    let run = begins.await.unwrap();
    assert_eq!(ended.recv().await, Some(run.clone()));
    let store = Store::connect(&url).await.unwrap();
    assert!(store.record(&run).await.unwrap().unwrap().summary.is_some(), "the run is over");
}
