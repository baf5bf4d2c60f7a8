//! Tests markers. A target over TCP requests them, or all cases run with markers.

use std::sync::Arc;

use weft_peer::Settings;
use weft_peer::driver::serve::{Server, ServerSettings};
use weft_suites::Filter;
use weft_suites::model::{Event, Tier, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::{MarkerDirections, Target, check};

use crate::common::{CASE, run};

/// Starts an echo service that requests markers (M=1). Also returns a target with this service.
/// `declares` is a line of the target file.
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
async fn a_target_that_requests_markers_passes_cases_about_markers_and_others() {
    let (server, target) = asking(", \"asks-for-markers\"");
    let stop = server.stop_handle();
    let serving = tokio::spawn(server.run());
    let probes = check(&target, Arc::new(|_: &Event| {})).await.unwrap();
    assert!(probes[..2].iter().all(|probe| probe.works == Some(true)), "{probes:?}");
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["mpa/4.3-received", "mpa/4-basic", "ddp/5.2-segmentation", CASE]);
    let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    stop.stop();
    serving.await.unwrap();
    for result in report.results.iter().filter(|result| result.verdict != Verdict::NotApplicable) {
        assert_eq!(result.verdict, Verdict::Pass, "{}: {}", result.key, result.explanation);
    }
    assert!(report.summary.counts.pass >= 60, "{:?}", report.summary.counts);
}

/// The tester sends markers whether or not the target file declares that the target requests them.
#[tokio::test]
async fn markers_need_no_declaration() {
    let (server, target) = asking("");
    let stop = server.stop_handle();
    let serving = tokio::spawn(server.run());
    let out = tempfile::tempdir().unwrap();
    let (report, _) = run(target, Suites::embedded().unwrap(), Filter::of(["mpa/4-basic"]), out.path()).await;
    stop.stop();
    serving.await.unwrap();
    let ran: Vec<_> = report.results.iter().filter(|result| result.verdict != Verdict::NotApplicable).collect();
    assert!(ran.len() > 5 && ran.iter().all(|result| result.verdict == Verdict::Pass), "{ran:?}");
}

/// The cases of every protocol layer pass with markers in both directions.
#[tokio::test]
async fn any_case_can_run_with_markers() {
    // SDP does not depend on the direction of markers, so its cases run once.
    for (directions, filter) in [
        (MarkerDirections::FromTarget, Filter::of(["mpa", "mpa-p2p", "ddp", "rdmap"])),
        (MarkerDirections::ToTarget, Filter::of(["mpa", "mpa-p2p", "ddp", "rdmap"])),
        (MarkerDirections::Both, Filter::everything()),
    ] {
        let target = Target::builtin().with_markers(directions).unwrap();
        let out = tempfile::tempdir().unwrap();
        let filter = filter.tier(Tier::Smoke);
        let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
        for result in &report.results {
            let is_clean = result.verdict <= Verdict::Pass && result.failing().next().is_none();
            assert!(is_clean, "{directions:?}: {}: {}", result.key, result.explanation);
        }
        assert!(report.summary.counts.pass > 300, "{:?}", report.summary.counts);
    }
}

/// The target sends markers that point to a wrong place. Only a run with markers shows this fault.
#[tokio::test]
async fn a_wrong_marker_fails_a_run_with_markers() {
    let target = || Target::builtin().with_deviations(["mpa.marker-modulo"]).unwrap();
    for (target, fails) in [(target(), false), (target().with_markers(MarkerDirections::FromTarget).unwrap(), true)] {
        let out = tempfile::tempdir().unwrap();
        let (report, _) =
            run(target, Suites::embedded().unwrap(), Filter::of([CASE, "ddp/5.2-segmentation"]), out.path()).await;
        assert_eq!(report.results.iter().any(|result| result.failing().next().is_some()), fails);
    }
}

#[test]
fn a_target_that_sends_no_markers_cannot_run_with_them() {
    let text = "name = \"nic\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\nservice = \"echo\"\n";
    for (directions, capability) in
        [(MarkerDirections::FromTarget, "markers"), (MarkerDirections::ToTarget, "asks-for-markers")]
    {
        let error = Target::from_toml("nic.toml", text).unwrap().with_markers(directions).unwrap_err().to_string();
        assert!(error.contains(&format!("does not declare the capability {capability};")), "{error}");
    }
}

/// The target file demands the markers, so the wrong marker is found without an option.
#[tokio::test]
async fn a_target_file_can_demand_markers_in_all_cases() {
    let file = |markers: &str| {
        let lines = [
            "name = \"m\"",
            "kind = \"builtin\"",
            "capabilities = [\"crc\", \"markers\"]",
            "deviations = [\"mpa.marker-modulo\"]",
            "[startup]",
            markers,
        ];
        Target::from_toml("m.toml", &lines.join("\n"))
    };
    for (markers, fails) in [("", false), ("markers = \"from-target\"", true), ("markers = \"both\"", true)] {
        let target = file(markers).unwrap();
        assert_eq!(target.name(), "m");
        let out = tempfile::tempdir().unwrap();
        let filter = Filter::of([CASE, "ddp/5.2-segmentation"]);
        let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
        assert_eq!(report.results.iter().any(|result| result.failing().next().is_some()), fails, "{markers}");
    }
    let error = file("markers = \"none\"").unwrap_err().to_string();
    assert!(error.contains("from-target") && error.contains("to-target"), "{error}");
    let text = "name = \"n\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\n[startup]\nmarkers = \"to-target\"\n";
    let error = Target::from_toml("n.toml", text).unwrap_err().to_string();
    assert!(
        error.starts_with("n.toml: startup.markers: n does not declare the capability asks-for-markers"),
        "{error}"
    );
}
