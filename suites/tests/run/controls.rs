//! Tests controls. If a case fails, weft runs its control: the same script with a plain exchange in
//! place of the step that deviates. If the control also fails, the case is inconclusive. If the
//! control works, the verdict stays "fail".

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::net::UdpSocket;
use weft_peer::driver::serve::{ConnectionEvent, Server, ServerSettings};
use weft_peer::{Deviations, Settings};
use weft_suites::Filter;
use weft_suites::model::{CaseResult, StepKind, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::run;

/// The note in the transcript if the control works.
const WORKS: &str = "control: the script works if a correct exchange replaces the step that deviates";

async fn results(target: Target, case: &str) -> Vec<CaseResult> {
    let out = tempfile::tempdir().unwrap();
    run(target, Suites::embedded().unwrap(), Filter::of([case]), out.path()).await.0.results
}

fn deviating(deviation: &str) -> Target {
    Target::builtin().with_deviations([deviation]).unwrap()
}

/// The echo of an SDP Data message lacks its PAD. This is a fault of MPA, and proves nothing about
/// the reserved flags of SDP.
#[tokio::test]
async fn a_case_of_sdp_that_fails_by_a_basic_fault_is_inconclusive() {
    for result in results(deviating("mpa.pad-left-out-later"), "sdp/6-tolerated/reserved-flags").await {
        assert_eq!(result.verdict, Verdict::Inconclusive, "{}: {}", result.key, result.explanation);
        assert!(
            result
                .explanation
                .starts_with("The control run (the case without its unusual step) fails, too, so nothing is decided."),
            "{}",
            result.explanation
        );
        // The ULPDU has 18 bytes of DDP's header, 16 bytes of SDP's header, and 3 bytes of
        // payload.
        let expected =
            " In the control run, in a correct exchange with a ULPDU of 37 bytes, the answer to Data is missing: ";
        assert!(result.explanation.contains(expected), "{}", result.explanation);
    }
}

/// The port mapper receives datagrams and never answers. So the case about PmTime is inconclusive.
#[tokio::test]
async fn a_port_mapper_that_answers_nothing_breaks_no_rule_about_a_field() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let text = format!(
        "name = \"mute\"\nkind = \"tcp\"\naddress = \"{}\"\nservice = \"port-mapper\"\n\
         time_scale = 0.1\n[portmap]\nservice = \"127.0.0.1:5001\"\n",
        socket.local_addr().unwrap()
    );
    let target = Target::from_toml("mute.toml", &text).unwrap();
    let results = results(target, "sdp-pm/7.4-exchange/any-pm-time").await;
    let [result] = results.as_slice() else { panic!("{} results", results.len()) };
    assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.explanation);
    let expected = "In the control run, it does not answer a correct PMReq.";
    assert!(result.explanation.contains(expected), "{}", result.explanation);
}

/// A sink and a source do not answer Data. They answer only a DisConn, and the good exchange of the
/// failed case already contains a DisConn. So a control would show nothing new.
#[tokio::test]
async fn a_failure_of_a_sink_or_source_has_no_control() {
    for service in ["sdp-sink", "sdp-source"] {
        let text = format!("name = \"{service}\"\nkind = \"builtin\"\nservice = \"{service}\"\n");
        let target = Target::from_toml("socket.toml", &text).unwrap();
        let target = target.with_deviations(["sdp.overlooks-unmatched"]).unwrap();
        let results = results(target, "sdp/8.2.2-violations/ack-of-nothing").await;
        let [result] = results.as_slice() else { panic!("{} results", results.len()) };
        assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
        let sentence = format!(
            " weft made no control run (the case without its unusual step), because a target with the service \
             {service} sends no answers."
        );
        assert!(result.explanation.ends_with(&sentence), "{}", result.explanation);
    }
}

/// In these cases, no step is marked as the step that deviates. So there is no step that a control
/// could replace.
#[tokio::test]
async fn a_failure_without_a_marked_step_has_no_control() {
    for (deviation, case) in [
        ("mpa.pad-left-out-later", "mpa/4-basic/pad"),
        ("mpa.pad-left-out-later", "mpa/4-basic/sizes"),
        ("mpa.accepts-wrong-key", "mpa/7.1.1-key/wrong-octet"),
    ] {
        let results = results(deviating(deviation), case).await;
        assert!(results.iter().any(|result| result.verdict == Verdict::Fail), "{deviation}: {results:?}");
        for result in &results {
            let is_noted =
                result.steps.iter().any(|step| step.kind == StepKind::Note && step.text.starts_with("control"));
            assert!(!is_noted && !result.explanation.contains("control"), "{}: {}", result.key, result.explanation);
        }
    }
}

/// Runs a variant against an echo service over TCP. Returns its result, and the number of
/// connections that the service accepted.
async fn with_connections(deviation: &str, key: &str) -> (CaseResult, usize) {
    let deviations = Deviations::from_names([deviation]).unwrap();
    let connection = Settings { deviations, ..Settings::default() };
    let settings = ServerSettings { connection, ..ServerSettings::default() };
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let (address, stop) = (server.local_addr(), server.stop_handle());
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    let serving = tokio::spawn(server.run_reporting(move |report| {
        if report.event == ConnectionEvent::Accepted {
            count.fetch_add(1, Relaxed);
        }
    }));
    let text = format!("name = \"echo\"\nkind = \"tcp\"\naddress = \"{address}\"\nservice = \"echo\"\n");
    let mut results = results(Target::from_toml("echo.toml", &text).unwrap(), key).await;
    stop.stop();
    serving.await.unwrap();
    assert_eq!(results.len(), 1, "{key}");
    (results.remove(0), accepted.load(Relaxed))
}

/// A control opens connections of its own. The transcript has the connections of the case, but not
/// the connections of its control.
#[tokio::test]
async fn only_a_failure_by_a_marked_step_connects_for_a_control() {
    for (deviation, key, has_control) in [
        ("mpa.accepts-wrong-key", "mpa/7.1.1-key/wrong-octet[octet=3]", false),
        ("ddp.refuses-reserved-bits", "ddp/4.1-control/reserved[bits=4]", true),
    ] {
        let (result, accepted) = with_connections(deviation, key).await;
        assert_eq!(result.verdict, Verdict::Fail, "{key}: {}", result.explanation);
        let connected = result.steps.iter().filter(|step| step.kind == StepKind::Connected).count();
        assert!(connected > 0, "{key}");
        assert_eq!(accepted > connected, has_control, "{key}: {accepted} connections, {connected} of the case");
        let is_noted = result.steps.iter().any(|step| step.kind == StepKind::Note && step.text == WORKS);
        assert_eq!(is_noted, has_control, "{key}: {:?}", result.steps);
    }
}

/// For each kind of control, there is one case: SDP with an echo, SDP with a socket that the tester
/// controls, markers, RFC 7306, an agent, and a port mapper.
#[tokio::test]
async fn a_failure_by_the_marked_step_stays_one() {
    for (deviation, case) in [
        ("sdp.refuses-flags", "sdp/6-tolerated/reserved-flags"),
        ("sdp.overlooks-mode", "sdp/8.2.2-violations/buffered-buffered"),
        ("mpa.refuses-marker-reserved", "mpa/4.3-received/reserved-half"),
        ("rdmap.aligns-atomics", "rdmap/7306-extensions/misaligned"),
        ("ddp.overlooks-association", "ddp/8.3-rights/write-domain"),
        ("pm.checks-request-time", "sdp-pm/7.4-exchange/any-pm-time"),
    ] {
        let results = results(deviating(deviation), case).await;
        assert!(results.iter().any(|result| result.verdict == Verdict::Fail), "{deviation}: {results:?}");
        for result in results.iter().filter(|result| result.verdict != Verdict::Pass) {
            assert_eq!(result.verdict, Verdict::Fail, "{deviation}: {}: {}", result.key, result.explanation);
            let is_noted = result.steps.iter().any(|step| step.kind == StepKind::Note && step.text == WORKS);
            assert!(is_noted, "{deviation}: {}: {}", result.key, result.explanation);
        }
    }
}
