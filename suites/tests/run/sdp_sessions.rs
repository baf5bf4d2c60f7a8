//! Tests steps of sessions with an SDP socket (`suites/library/sdp_session.lua`) against weft's own
//! SDP sockets. Each correct socket passes. A socket with a deviation (a named fault) fails.

use weft_suites::Filter;
use weft_suites::model::{CaseResult, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::run;

/// Plays a session. `service` is "echo", "sink", "source", "drive" or "connect". `rows` are further
/// arguments of `session.requirements`, and `steps` are calls in Lua with the session in `s`.
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

#[tokio::test]
async fn each_socket_passes_the_rare_steps() {
    let steps = "s:open(2, { source_threshold = 500 }) s:send(2, { size = 3000 }) s:fill(1, 2, -1) s:fill(1, 1, 2) \
                 s:fault(3, 'len-short') s:use_others(3) s:stop_reading(1, 0.05) s:send(1, { size = 30000 }) \
                 s:run(1, 0.01) s:close(1) s:send(1, { size = 9 })";
    for service in ["echo", "sink", "source"] {
        passes(service, ", 'len-short'", steps).await;
    }
}

/// No byte is lost or repeated if the connection is suspended during a transfer.
#[tokio::test]
async fn suspended_connections_resume() {
    let steps = "s:open(1, { source_threshold = 500 }) s:send(1, { size = 30000 }) s:run(1, 0.005) s:resume(1) \
                 s:send(1, { size = 3000 }) s:resume(1) s:send(1, { size = 20000 }) s:answers(1) \
                 s:send(2, { size = 9 })";
    let rows = ", table.unpack(session.RESUMED)";
    for service in ["echo", "sink"] {
        passes(service, rows, steps).await;
    }
    let target = Target::builtin().with_deviations(["sdp.reconnects-elsewhere"]).unwrap();
    let result = session(target, "echo", rows, "s:resume(1)").await;
    let failing: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
    assert!(failing.contains(&"SDP-13.1.1-16"), "{failing:?}, {}", result.explanation);
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

const SHUT: &str = ", session.SHUT[1]";
const ABORTED: &str = ", session.ABORTED[1]";

/// Each step of a driven socket, alone and after others. The content of the bytes of a `read` must
/// not disturb the commands after them.
#[tokio::test]
async fn driven_sockets_pass_the_steps() {
    for (rows, steps) in [
        ("", "s:target_send(1, { size = 1 }) s:target_send(1, { size = 30000, urgent = true }) s:answers(1)"),
        (
            "",
            "s:target_read(1, { size = 300 }) s:target_send(1, { size = 7 }) \
             s:target_read(1, { size = 1, count = 4, piece = 30 }) s:target_send(1, { size = 7 }) \
             s:target_read(1, { size = 5000, count = 3, piece = 700 }) s:target_send(1, { size = 7 })",
        ),
        // While the user waits, the command `read` and its bytes arrive together.
        (
            "",
            "s:command(1, 'wait 50') s:target_read(1, { size = 100, count = 2 }) s:target_send(1, { size = 7 }) \
             s:command(1, 'wait 50') s:target_read(1, { size = 20, count = 2 }) s:target_send(1, { size = 7 })",
        ),
        (
            "",
            "s:open(1, { source_threshold = 0 }) s:mode(1, 'pipelined') \
             s:target_read(1, { size = 5000, count = 2, piece = 700 }) s:run(1, 0.05) \
             s:target_read(1, { size = 5000, count = 2 }) s:target_send(1, { size = 7 })",
        ),
        (
            "",
            "s:mode(1, 'pipelined') s:target_cancel_receive(1, { size = 5000, wait = 10, piece = 700 }) \
             s:target_send(1, { size = 7 }) s:target_cancel_receive(1, { size = 200 }) s:target_send(1, { size = 7 }) \
             s:target_cancel_receive(1, { size = 20000, wait = 20 }) s:run(1, 0.05) s:target_send(1, { size = 7 })",
        ),
        (
            "",
            "s:stop_reading(1, 0.05) s:target_send(1, { size = 30000 }) s:target_read(1, { size = 1000, count = 2 }) \
             s:command(1, 'wait 50') s:target_send(1, { size = 600 }) s:close_early(1) s:target_send(1, { size = 9 })",
        ),
        (
            ", 'len-short', session.SHUT[1]",
            "s:target_send(1, { size = 30000 }) s:target_send(2, { size = 9 }) s:target_shut(2) \
             s:fault(3, 'len-short') s:use_others(3)",
        ),
        (
            "",
            "s:stop_reading(1, 0.1) s:target_send(1, { size = 30000 }) s:run(1, 0.02) s:target_cancel(1) \
             s:target_send(1, { size = 20 }) s:run(1, 0.2) s:answers(1) s:target_cancel(1) \
             s:target_send(1, { size = 20 })",
        ),
        (
            "",
            "s:command(1, 'mode out pipelined') s:target_send(1, { size = 9000 }) s:command(1, 'mode out buffered') \
             s:target_send(1, { size = 9000 }) s:run(1, 0.05) s:unbuffer(1) s:target_send(1, { size = 9000 }) \
             s:command(1, 'resize 500') s:resize(1, 3000) s:target_send(1, { size = 3000 }) s:hold(1, 0.1) \
             s:target_send(1, { size = 3000 })",
        ),
        (
            SHUT,
            "s:hold(1, 0.1) s:target_send(1, { size = 30000 }) s:target_shut(1) s:target_send(1, { size = 5 }) \
             s:target_read(1, { size = 3000, count = 2 }) s:hold(1, 0.1) s:run(1, 0.1) s:target_shut(1)",
        ),
        (SHUT, "s:target_send(1, { size = 30000 }) s:target_shut(1) s:reset(1) s:target_shut(2) s:abort(2)"),
        (
            ABORTED,
            "s:stop_reading(1, 0.1) s:target_send(1, { size = 30000 }) s:target_abort(1) \
             s:target_send(1, { size = 9 }) s:target_abort(1) s:target_abort(2)",
        ),
        (", session.SHUT[1], session.ABORTED[1]", "s:target_send(1, { size = 9 }) s:target_shut(1) s:target_abort(1)"),
    ] {
        for service in ["drive", "connect"] {
            passes(service, rows, steps).await;
        }
    }
}

/// A fault follows each kind of command. If the user has shut down the sending half, the fault
/// follows on another connection.
#[tokio::test]
async fn driven_sockets_pass_the_faults() {
    let faults = ["len-short", "send-sm-payload", "mode-skipped", "left-pipelined", "rd-compl-too-long", "fin"];
    for fault in faults.into_iter().chain(["reserved-flags", "req-pipe-in-data", "updates"]) {
        let steps = format!(
            "s:command(1, 'follow') s:command(1, 'mode out pipelined') s:target_send(1, {{ size = 9000 }}) \
             s:target_cancel(1) s:fault(1, '{fault}') s:target_read(1, {{ size = 3000 }}) s:target_shut(1) \
             s:fault(1, '{fault}') s:target_send(1, {{ size = 7 }})"
        );
        for service in ["drive", "connect"] {
            passes(service, &format!(", session.SHUT[1], '{fault}'"), &steps).await;
        }
    }
    passes("drive", ", 'suspend'", "s:target_send(1, { size = 9 }) s:fault(1, 'suspend')").await;
}

#[tokio::test]
async fn a_driven_socket_suspends_connections() {
    let steps = "s:target_send(1, { size = 9 }) s:answers(1) s:target_suspend(1, 7200) \
                 s:stop_reading(1, 0.05) s:target_send(1, { size = 30000 }) s:target_read(1, { size = 3000 }) \
                 s:target_suspend(1, 7201) s:target_shut(1) s:target_suspend(1, 7202) s:target_send(1, { size = 9 })";
    passes("drive", ", session.SHUT[1], session.SUSPENDED[1]", steps).await;
}

/// Only the user of a driven socket, or a fault, leads to these violations.
#[tokio::test]
async fn the_steps_of_driven_sockets_find_deviations() {
    for (deviation, rows, steps, row) in [
        // Only the monitor notices the SrcAvail.
        (
            "sdp.src-avail-after-cancel",
            "",
            "s:stop_reading(1, 0.1) s:target_send(1, { size = 30000 }) s:run(1, 0.02) s:target_cancel(1) s:run(1, 0.2)",
            "SDP-9.5.4-10",
        ),
        (
            "sdp.mode-change-buffered-to-pipelined",
            "",
            "s:command(1, 'mode out buffered') s:target_send(1, { size = 100 }) s:run(1, 0.05)",
            "SDP-12-7",
        ),
        // The target closes TCP directly after its DisConn.
        (
            "sdp.dis-conn-and-end",
            SHUT,
            "s:target_send(1, { size = 10 }) s:target_shut(1) s:run(1, 0.05) s:answers(1)",
            "SDP-8.2-1",
        ),
        // The target loses the bytes for its receives, so its user executes no more commands.
        (
            "sdp.loses-long-data",
            "",
            "s:target_read(1, { size = 300, count = 2 }) s:target_send(1, { size = 10 }) s:answers(1)",
            "SDP-8.2-1",
        ),
        ("sdp.susp-comm-port-0", ", session.SUSPENDED[1]", "s:target_suspend(1, 7200)", "SDP-13.1.1-6"),
        ("sdp.updates-left-out", ", 'updates'", "s:fault(1, 'updates')", "SDP-10.5-9"),
        ("sdp.ignores-susp-comm", ", 'suspend'", "s:fault(1, 'suspend')", "SDP-13.1.1-11"),
    ] {
        let target = Target::builtin().with_deviations([deviation]).unwrap();
        let result = session(target, "drive", rows, steps).await;
        let failing: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
        assert!(failing.contains(&row), "{deviation}: {failing:?}, {}", result.explanation);
    }
}

/// A saved case can run against a target that executes fewer commands.
#[tokio::test]
async fn a_command_that_the_socket_does_not_execute_is_unimplemented() {
    let file = "name = \"d\"\nkind = \"builtin\"\nservice = \"sdp-drive\"\n[sdp]\ncommands = [\"send\"]\n";
    let target = Target::from_toml("d.toml", file).unwrap();
    let result = session(target, "drive", "", "s:target_send(1, { size = 10 }) s:command(1, 'wait 5')").await;
    assert_eq!(result.verdict, Verdict::Unimplemented, "{}", result.explanation);
    assert!(result.explanation.contains("`wait`"), "{}", result.explanation);
}

/// The sessions of cases have no `shut` and no `abort`.
#[tokio::test]
async fn driven_sockets_pass_sessions_with_random_steps() {
    let steps = "for number = 1, 12 do t:drawn_session('sdp-drive', number, 2)(s) s:close(1) s:close(2) end";
    passes("drive", "", steps).await;
}
