//! A target over TCP that requests markers. Cases that can judge it run, and the other cases do not
//! apply.

use std::sync::Arc;

use weft_peer::Settings;
use weft_peer::driver::serve::{Server, ServerSettings};
use weft_suites::Filter;
use weft_suites::model::{Event, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::{Target, check};

use crate::common::{CASE, run};

/// An echo service that has M=1, and its description.
fn asking(declares: &str) -> (Server, Target) {
    let mut connection = Settings::default();
    connection.mpa.markers = true;
    let settings = ServerSettings { connection, ..ServerSettings::default() };
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let text = format!(
        "name = \"nic\"\nkind = \"tcp\"\naddress = \"{}\"\nservice = \"echo\"\ncapabilities = [\"crc\"{declares}]\n",
        server.local_addr()
    );
    (server, Target::from_toml("nic.toml", &text).unwrap())
}

#[tokio::test]
async fn markers_are_judged_and_cases_without_them_do_not_apply() {
    let (server, target) = asking(", \"asks-for-markers\"");
    let stop = server.stop_handle();
    let serving = tokio::spawn(server.run());
    let probes = check(&target, Arc::new(|_: &Event| {})).await.unwrap();
    assert!(probes[..2].iter().all(|probe| probe.works == Some(true)), "{probes:?}");
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["mpa/4.3-received", CASE]);
    let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    stop.stop();
    serving.await.unwrap();
    for result in &report.results {
        let verdict = if result.key.case == CASE { Verdict::NotApplicable } else { Verdict::Pass };
        assert_eq!(result.verdict, verdict, "{}: {}", result.key, result.explanation);
    }
    assert!(report.summary.counts.pass >= 20 && report.summary.counts.not_applicable == 16);
}

/// If the target file does not declare that the target requests markers, the tester sends none, and
/// no case fails because of that.
#[tokio::test]
async fn a_target_without_declared_markers_is_not_blamed() {
    let (server, target) = asking("");
    let stop = server.stop_handle();
    let serving = tokio::spawn(server.run());
    let probes = check(&target, Arc::new(|_: &Event| {})).await.unwrap();
    assert_eq!((probes[0].works, &probes[0].text[..19]), (Some(false), "in the good exchange"[..19].into()));
    let out = tempfile::tempdir().unwrap();
    let (report, _) = run(target, Suites::embedded().unwrap(), Filter::of([CASE]), out.path()).await;
    stop.stop();
    serving.await.unwrap();
    assert!(report.results.iter().all(|result| result.verdict == Verdict::Inconclusive));
    assert!(report.results[0].explanation.contains("it requests markers"), "{}", report.results[0].explanation);
}
