//! Tests runs whose target file has no capabilities. Such a run probes the target, and stores what
//! the probes found out. A run that is resumed or repeated uses these facts without new probes. If
//! the target later lacks a capability, the run fails.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use weft_peer::driver::serve::{Server, ServerSettings, StopHandle};
use weft_peer::{Deviations, Settings};
use weft_suites::model::{Capability, Event, EventSink, ExitCode, RunReport, RunStatus};
use weft_suites::script::Suites;
use weft_suites::store::{FILE_NAME, Store};
use weft_suites::targets::{MarkerDirections, Target};
use weft_suites::{Filter, RunOptions, Schedule, report};

use crate::common::{CASE, run};

/// A deviation of a target that has no markers: it rejects a Request with M=1.
const WITHOUT_MARKERS: &str = "mpa.refuses-markers";

/// An echo service over TCP.
struct Echo {
    /// The text of a target file without capabilities.
    file: String,
    stop: StopHandle,
    serving: JoinHandle<()>,
}

impl Echo {
    fn start(deviations: &[&'static str]) -> Self {
        let deviations = Deviations::from_names(deviations.iter().copied()).unwrap();
        let connection = Settings { deviations, ..Settings::default() };
        let settings = ServerSettings { connection, ..ServerSettings::default() };
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
        let file = format!("name = \"nic\"\nkind = \"tcp\"\naddress = \"{}\"\n", server.local_addr());
        let stop = server.stop_handle();
        Echo { file, stop, serving: tokio::spawn(server.run()) }
    }

    /// Stops the service. After that, its address refuses connections.
    async fn stop(self) {
        self.stop.stop();
        self.serving.await.unwrap();
    }
}

fn quiet() -> Arc<dyn EventSink> {
    Arc::new(|_: &Event| {})
}

/// Returns the target of a file, with the capabilities that probes find out, or with those that the
/// earlier run used.
async fn completed(file: &str, markers: Option<MarkerDirections>, earlier: Option<&RunReport>) -> Target {
    let target = Target::from_toml("nic.toml", file).unwrap();
    let target = match earlier {
        Some(report) => target.complete_like(&report.run.target, quiet()).await,
        None => target.complete(quiet()).await,
    };
    match markers {
        Some(directions) => target.with_markers(directions).unwrap(),
        None => target,
    }
}

fn options(target: Target, out: &Path, cancel: Option<watch::Receiver<bool>>) -> RunOptions {
    let suites = Suites::embedded().unwrap();
    RunOptions { target, suites, filter: Filter::of([CASE]), out: out.to_owned(), seed: Some(7), cancel }
}

/// The service is stopped before the run resumes, so new probes would find out nothing. With other
/// capabilities, the run could not be resumed.
#[tokio::test]
async fn a_resumed_run_needs_no_new_probes() {
    for markers in [None, Some(MarkerDirections::FromTarget)] {
        let (echo, out) = (Echo::start(&[]), tempfile::tempdir().unwrap());
        let (cancel, receiver) = watch::channel(false);
        let sink = move |event: &Event| {
            if let Event::CaseStarted { index: 2, .. } = event {
                cancel.send_replace(true);
            }
        };
        let target = completed(&echo.file, markers, None).await;
        let first = options(target, out.path(), Some(receiver));
        let first = weft_suites::run_with(first, Schedule::default(), Arc::new(sink)).await.unwrap();
        assert_eq!((first.results.len(), first.summary.status), (2, RunStatus::Cancelled));
        let file = echo.file.clone();
        echo.stop().await;

        let store = Store::open(&out.path().join(FILE_NAME)).await.unwrap();
        let id = store.unfinished(&first.run.target.name).await.unwrap().unwrap();
        assert_eq!(store.record(&id).await.unwrap().unwrap().info, first.run);
        let target = completed(&file, markers, Some(&first)).await;
        assert_eq!(target.info(), first.run.target);
        let schedule = Schedule { resume: true, ..Schedule::default() };
        let resumed = weft_suites::run_with(options(target, out.path(), None), schedule, quiet()).await.unwrap();
        assert_eq!((&resumed.run, resumed.results.len()), (&first.run, 16));
        assert_eq!(resumed.results[..2], first.results[..]);
    }
}

/// The service is stopped before the rerun. The result of the rerun replaces that of the run,
/// because both have the same target.
#[tokio::test]
async fn a_rerun_replaces_the_results_of_a_probed_target() {
    let (echo, out) = (Echo::start(&["mpa.accepts-wrong-key"]), tempfile::tempdir().unwrap());
    let target = completed(&echo.file, None, None).await;
    let (first, _) = run(target, Suites::embedded().unwrap(), Filter::of([CASE]), out.path()).await;
    assert_eq!(first.summary.counts.fail, 16);
    let file = echo.file.clone();
    echo.stop().await;

    let target = completed(&file, None, Some(&first)).await;
    let key = first.results[3].key.clone();
    let filter = Filter::everything().rerun(&first.run.id, [key.clone()]);
    let (rerun, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    let store = Store::open(&out.path().join(FILE_NAME)).await.unwrap();
    let latest = store.latest("nic").await.unwrap().unwrap();
    assert_eq!((&latest.record.info.id, latest.run_of(&key)), (&first.run.id, rerun.run.id.as_str()));
    let summary = latest.record.summary.unwrap();
    assert_eq!((summary.counts.fail, summary.counts.inconclusive), (15, 1));
}

/// Checks that each report shows that the target lost markers, although all cases pass.
fn shows_lost_markers(report: &RunReport, events: &[Event], out: &Path) {
    assert_eq!((report.summary.counts.pass, report.summary.exit_code), (16, ExitCode::Unexpected));
    let mut printed = Vec::new();
    let terminal = report::Terminal::new(&mut printed, false);
    events.iter().for_each(|event| terminal.event(event));
    drop(terminal);
    let printed = String::from_utf8(printed).unwrap();
    let lost = "the target lost the capability markers";
    let (warning, reason) = (format!("\nwarning: {lost} since an earlier run"), format!("\nexit code 1: {lost}\n"));
    assert!(printed.contains(&warning) && printed.contains(&reason), "{printed}");
    let html = report::html(report, out).unwrap();
    let line = "<p class=\"line fail\">The target lost the capability markers. The target passes 16 of 16 cases.</p>";
    assert!(html.contains(line) && html.contains("<li class=\"fail\">markers</li>"), "{html}");
    let markdown = report::markdown(report).unwrap();
    assert!(
        markdown.contains("\n**The target lost the capability markers. The target passes 16 of 16 cases.**\n"),
        "{markdown}"
    );
    let json = serde_json::from_str::<serde_json::Value>(&report::json(report).unwrap()).unwrap();
    assert_eq!(json["summary"]["lost_capabilities"], serde_json::json!(["markers"]));
    let junit = report::junit(report).unwrap();
    assert!(junit.contains("errors=\"1\"") && junit.contains(" type=\"lost-capability\""), "{junit}");
    crate::reports::is_valid(&junit);
    let tap = report::tap(report).unwrap();
    assert_eq!(tap.matches("\nnot ok ").count(), 1, "{tap}");
    let sarif = serde_json::from_str::<serde_json::Value>(&report::sarif(report).unwrap()).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["ruleId"]), (1, &serde_json::Value::from("lost-capability")));
}

/// Runs [`CASE`] against an echo service with these deviations. `more` has further lines of the
/// target file.
async fn play(deviations: &[&'static str], more: &str, out: &Path) -> (RunReport, Vec<Event>) {
    let echo = Echo::start(deviations);
    let target = completed(&format!("{}{more}", echo.file), None, None).await;
    let done = run(target, Suites::embedded().unwrap(), Filter::of([CASE]), out).await;
    echo.stop().await;
    done
}

#[tokio::test]
async fn a_run_fails_while_the_target_lacks_what_it_had() {
    let out = tempfile::tempdir().unwrap();
    let (first, _) = play(&[], "", out.path()).await;
    assert!(first.run.target.capabilities.contains(&Capability::Markers), "{:?}", first.run.target);
    assert_eq!(first.summary.exit_code, ExitCode::AsExpected);
    let mut last = first;
    // The third run fails, too, although the second run did not find markers either.
    for _ in 0..2 {
        let (report, events) = play(&[WITHOUT_MARKERS], "", out.path()).await;
        assert_eq!(report.run.target.lost_capabilities, [Capability::Markers]);
        shows_lost_markers(&report, &events, out.path());
        last = report;
    }
    // So does a run that was killed before its first case.
    last.run.id.push('x');
    let store = Store::open(&out.path().join(FILE_NAME)).await.unwrap();
    store.begin(&last.run, &last.cases, &[]).await.unwrap();
    let killed = store.report(&last.run.id).await.unwrap().unwrap().summary;
    assert_eq!((killed.lost_capabilities.len(), killed.exit_code), (1, ExitCode::Unexpected));
    store.close().await;
    // A file with capabilities accepts the loss.
    let (accepted, _) = play(&[WITHOUT_MARKERS], "capabilities = [\"crc\", \"revision-1\"]\n", out.path()).await;
    assert_eq!((accepted.run.target.lost_capabilities, accepted.summary.exit_code), (vec![], ExitCode::AsExpected));
    let (fixed, _) = play(&[], "", out.path()).await;
    assert_eq!((fixed.run.target.lost_capabilities, fixed.summary.exit_code), (vec![], ExitCode::AsExpected));
}
