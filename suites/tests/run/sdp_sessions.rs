//! Tests steps of sessions with an SDP socket (`suites/library/sdp_session.lua`) against weft's own
//! SDP sockets. Each correct socket passes. A socket with a deviation (a named fault) fails.

use weft_suites::Filter;
use weft_suites::model::{CaseResult, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::run;

/// Plays a session. `service` is "echo", "sink" or "source". `rows` are further arguments of
/// `session.requirements`, and `steps` are calls in Lua with the session in `s`.
async fn session(target: Target, service: &str, rows: &str, steps: &str) -> CaseResult {
    let out = tempfile::tempdir().unwrap();
    let suites = out.path().join("suites");
    std::fs::create_dir_all(suites.join("sdp")).unwrap();
    let script = format!(
        "case {{ id = 'sdp/steps/one', title = 'Steps', requirements = session.requirements(session.SDP{rows}), \
         capabilities = {{ 'sdp-{service}' }}, run = function(t) local s = session.sdp_{service}(t) {steps} \
         s:finish() end }}\n"
    );
    std::fs::write(suites.join("sdp/steps.lua"), script).unwrap();
    let suites = Suites::from_folder(&suites).unwrap();
    let mut report = run(target, suites, Filter::everything(), out.path()).await.0;
    report.results.remove(0)
}

async fn passes(service: &str, rows: &str, steps: &str) {
    let result = session(Target::builtin(), service, rows, steps).await;
    assert_eq!(result.verdict, Verdict::Pass, "{service}, {steps}: {}", result.explanation);
    let failing: Vec<_> = result.failing().collect();
    assert!(failing.is_empty(), "{service}, {steps}: {failing:?}");
}

#[tokio::test]
async fn each_socket_passes_the_steps() {
    let steps = "s:open(1, { data_first = true }) s:send(1, { size = 3000 }) s:grow(1, 20000, 3) \
                 s:hold(1, 0.05) s:send(1, { size = 20000 }) s:answers(1) \
                 s:late_answer(1, 0.1, 20000) s:answers(1) s:answer(1, 'read') \
                 s:huge(1, 1100000, 40) s:answers(1)";
    for service in ["echo", "sink", "source"] {
        passes(service, "", steps).await;
    }
}

/// The data of the source keeps one of the tester's three Private Buffers. So the source has two
/// credits for its updates.
#[tokio::test]
async fn a_source_updates_a_tester_that_takes_no_data() {
    passes("source", "", "s:open(1, { max_received = 0, bufs = 3 }) s:burst(1, 60, 9) s:answers(1)").await;
}

#[tokio::test]
async fn each_socket_accepts_many_updates() {
    for service in ["echo", "sink", "source"] {
        passes(service, ", 'updates'", "s:fault(1, 'updates')").await;
    }
}

#[tokio::test]
async fn each_socket_ends_correctly() {
    for service in ["echo", "sink"] {
        for fault in ["fin", "suspend"] {
            passes(service, &format!(", '{fault}'"), &format!("s:fault(1, '{fault}')")).await;
        }
    }
}

#[tokio::test]
async fn the_steps_find_deviations() {
    for (deviation, fault, steps, row) in [
        ("sdp.updates-left-out", "updates", "s:fault(1, 'updates')", "SDP-10.5-9"),
        ("sdp.ignores-susp-comm", "suspend", "s:fault(1, 'suspend')", "SDP-13.1.1-11"),
        // Only the monitor (the dissector with its rules) notices the RdmaRdCompl after the
        // SuspCommAck.
        ("sdp.susp-comm-ack-early", "suspend", "s:fault(1, 'suspend')", "SDP-13.1.1-12"),
    ] {
        let target = Target::builtin().with_deviations([deviation]).unwrap();
        let result = session(target, "echo", &format!(", '{fault}'"), steps).await;
        let failing: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
        assert!(failing.contains(&row), "{deviation}: {failing:?}, {}", result.explanation);
    }
}

/// A socket reads and writes many bytes at once, so several packets can share the bytes of one step.
#[tokio::test]
async fn a_failure_has_its_line_and_its_packet() {
    for missing in [false, true] {
        let check = format!("{{ requirement = 'SDP-8.2-1', expected = 'x', actual = 'y', missing = {missing} }}");
        let steps = format!("s:send(1, {{ size = 20000 }}) s:answers(1) t:check(false, {check})");
        let result = session(Target::builtin(), "echo", "", &steps).await;
        assert_eq!((result.verdict, result.decided_at.is_some()), (Verdict::Fail, true), "{}", result.explanation);
        assert!(result.decided_packet.is_some() && result.decided_sequence.is_some(), "missing = {missing}");
    }
}

/// If the tester ends a connection because of a violation, the target has lost no data, and owes no
/// DisConn.
#[tokio::test]
async fn an_end_by_the_tester_is_no_lost_data() {
    for (deviation, row) in [("sdp.mseq-skips", "SDP-6.1.5-2"), ("sdp.dis-conn-long", "SDP-6.2.3-1")] {
        let target = Target::builtin().with_deviations([deviation]).unwrap();
        let result = session(target, "echo", "", "s:send(1, { size = 100 }) s:answers(1)").await;
        let failing: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
        assert!(failing.contains(&row), "{deviation}: {failing:?}, {}", result.explanation);
        for other in ["SDP-8.2-1", "SDP-8.2.1-30", "SDP-8.2.1-32"] {
            assert!(!failing.contains(&other), "{deviation}: {failing:?}, {}", result.explanation);
        }
    }
}
