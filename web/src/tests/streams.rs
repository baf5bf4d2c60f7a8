//! Tests of many browsers on one run: nothing is lost or repeated, and slow browsers take no
//! memory.

use std::time::Instant;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use weft_suites::model::Summary;

use super::*;
use crate::connections::{self, Limits};

/// The numbers of browsers and of cases. Each case has eight steps.
const BROWSERS: usize = 200;
const CASES: usize = 250;

/// A received event: its id and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReceivedEvent {
    id: Option<String>,
    data: serde_json::Value,
}

/// A browser that reads `/runs/{run}/events` over its own connection.
struct Browser(BufReader<TcpStream>);

impl Browser {
    async fn open(address: std::net::SocketAddr, run: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let last = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        let head = format!("GET /runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n{last}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        Browser(BufReader::new(stream))
    }

    /// Returns the next event, or `None` at the end. Headers and chunk sizes between the lines do
    /// not look like the fields of an event, so they are skipped.
    async fn next(&mut self) -> Option<ReceivedEvent> {
        let mut id = None;
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(LONG, self.0.read_line(&mut line)).await.expect("the stream continues");
            if read.ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("data", value)) => return Some(ReceivedEvent { id, data: serde_json::from_str(value).unwrap() }),
                _ if line.trim_end() == "0" => return None,
                _ => {}
            }
        }
    }
}

/// The resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) * 1024
}

/// Compares the events of a browser with the expected events.
struct Sequence {
    expected: Arc<Vec<String>>,
    /// The number of expected cases that are finished so far.
    finished: usize,
    last: Option<u64>,
    events: usize,
    is_done: bool,
}

impl Sequence {
    fn from(expected: &Arc<Vec<String>>, finished: usize) -> Self {
        Sequence { expected: expected.clone(), finished, last: None, events: 0, is_done: false }
    }

    fn take(&mut self, event: &ReceivedEvent) {
        assert!(!self.is_done, "nothing follows the end");
        self.events += 1;
        if let Some(id) = &event.id {
            let number: u64 = id.split_once('-').unwrap().1.parse().unwrap();
            assert!(self.last.is_none_or(|last| number == last + 1), "{number} after {:?}", self.last);
            self.last = Some(number);
        }
        match event.data["event"].as_str().unwrap() {
            "finished" => {
                assert_eq!(event.data["key"].as_str(), self.expected.get(self.finished).map(String::as_str));
                self.finished += 1;
            }
            "done" => self.is_done = true,
            _ => {}
        }
    }

    fn is_complete(&self) -> bool {
        self.is_done && self.finished == self.expected.len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_browsers_lose_no_event_and_a_slow_one_reconnects() {
    let (folder, recorded) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (report, events) = recorded_run(recorded.path()).await;
    let site = site(folder.path()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server =
        tokio::spawn(connections::accept(listener, site.router.clone(), Limits::default(), site.stop.subscribe()));

    let step = events.iter().find(|event| matches!(event, Event::CaseStep { .. })).unwrap().clone();
    let results: Vec<_> = (0..CASES)
        .map(|number| {
            let mut result = report.results[0].clone();
            result.key.case = format!("scale/case-{number}");
            result.steps.clear();
            result
        })
        .collect();
    let keys: Vec<CaseKey> = results.iter().map(|result| result.key.clone()).collect();
    let run = report.run.clone();
    let id = run.id.clone();
    site.store.begin(&run, &report.cases, &keys).await.unwrap();
    let sink = site.live.sink();
    sink.event(&Event::RunStarted { run, cases: report.cases.clone(), planned: keys.clone() });

    let expected: Arc<Vec<String>> = Arc::new(keys.iter().map(ToString::to_string).collect());
    let mut browsers = JoinSet::new();
    for _ in 0..BROWSERS {
        let (id, mut sequence) = (id.clone(), Sequence::from(&expected, 0));
        browsers.spawn(async move {
            let mut browser = Browser::open(address, &id, None).await;
            while let Some(event) = browser.next().await {
                sequence.take(&event);
            }
            sequence
        });
    }
    // This browser reads one line, and nothing more until it loses the connection.
    let mut slow = Browser::open(address, &id, None).await;

    let (mut first, mut pages) = (None, Vec::with_capacity(CASES));
    let before = resident();
    for (at, result) in results.iter().enumerate() {
        // Another client requests pages meanwhile.
        let begun = Instant::now();
        let page = site.text(if at % 2 == 0 { "/" } else { "/matrix" }).await;
        pages.push(begun.elapsed());
        assert!(page.contains("</html>"));
        sink.event(&Event::CaseStarted { key: result.key.clone(), index: at as u64 });
        for _ in 0..8 {
            let Event::CaseStep { step, .. } = &step else { unreachable!() };
            sink.event(&Event::CaseStep { key: result.key.clone(), step: step.clone() });
        }
        site.store.finish_case(&id, result).await.unwrap();
        sink.event(&Event::CaseFinished { result: Box::new(result.clone()) });
        if at == 20 {
            first = slow.next().await;
        }
    }
    let summary = Summary::of(RunStatus::Done, CASES as u64, &results, 1);
    site.store.finish(&id, &summary).await.unwrap();
    sink.event(&Event::RunFinished { summary });

    let (mut number, mut events) = (0, 0);
    while let Some(sequence) = browsers.join_next().await {
        let sequence = sequence.unwrap();
        assert!(sequence.is_complete(), "{} of {CASES}", sequence.finished);
        number += 1;
        events += sequence.events;
    }
    assert_eq!(number, BROWSERS);
    let grown = resident().saturating_sub(before);
    pages.sort_unstable();
    let [half, p99] = [pages.len() / 2, pages.len() * 99 / 100].map(|at| pages[at].as_secs_f64() * 1e3);
    eprintln!("{BROWSERS} browsers, {events} events, resident memory grew by {} KiB", grown / 1024);
    eprintln!("{} pages meanwhile: {half:.1} ms, 99 of 100 within {p99:.1} ms", pages.len());
    assert!(grown < 64 << 20, "{grown}");

    // The slow browser reads a few lines. Then it continues after the last line over another
    // connection.
    let first_finished = usize::from(first.unwrap().data["event"] == "finished");
    let mut sequence = Sequence::from(&expected, first_finished);
    let mut last = None;
    while last.is_none() || sequence.events < 40 {
        let event = slow.next().await.unwrap();
        sequence.take(&event);
        last = event.id.or(last);
    }
    drop(slow);
    let mut again = Browser::open(address, &id, last.as_deref()).await;
    while let Some(event) = again.next().await {
        sequence.take(&event);
    }
    assert!(sequence.is_complete(), "nothing repeated, nothing missing: {}", sequence.finished);

    site.stop.send_replace(true);
    tokio::time::timeout(LONG, server).await.expect("it ends").unwrap();
}
