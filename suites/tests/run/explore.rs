//! Tests the exploration, which runs random sessions against a target. The builtin targets pass
//! every session. The exploration finds a target that deviates after several segments, after
//! several messages or after an error, and reduces the session to a case that fails again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use weft_suites::Filter;
use weft_suites::explore::{Exploration, ExploreError, ExploreOptions, Outcome, explore};
use weft_suites::model::{CaseResult, Direction, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::{MarkerDirections, Target};

use crate::common::{has, run};

async fn explored(target: Target, out: &Path, sessions: u64) -> Exploration {
    let options = ExploreOptions {
        target,
        out: out.to_owned(),
        seed: Some(1),
        // The exploration ends after this number of sessions, because the time is long.
        time: Duration::from_secs(3600),
        sessions: Some(sessions),
        connections: 4,
        until_fail: false,
        cancel: None,
    };
    explore(&options, |_| {}).await.unwrap()
}

fn deviating(deviation: &str) -> Target {
    Target::builtin().with_deviations([deviation]).unwrap()
}

#[tokio::test]
async fn the_builtin_targets_pass_every_session() {
    // Of this target, only the SDP sockets and the port mapper are explored.
    let text = "name = \"driven\"\nkind = \"builtin\"\nservice = \"sdp-drive\"\n";
    let driven = Target::from_toml("driven.toml", text).unwrap();
    let targets =
        [(Target::builtin(), 40), (Target::builtin_initiator(), 20), (Target::builtin_tcp(), 8), (driven, 60)];
    for (target, sessions) in targets {
        let out = tempfile::tempdir().unwrap();
        let found = explored(target, out.path(), sessions).await;
        let explanations: Vec<&str> = found.failures.iter().map(|found| found.result.explanation.as_str()).collect();
        assert!(explanations.is_empty(), "{explanations:?}");
        assert_eq!((found.progress.sessions, found.progress.undecided), (sessions, 0), "{:?}", found.stopped);
        assert!(found.progress.steps > sessions);
        // The monitor also checks the tester. In a session without illegal steps, it finds no fault.
        assert_eq!(found.tester_errors, Vec::<String>::new());
        // The exploration has deleted the evidence of the sessions.
        assert!(!out.path().join(".session").exists());
    }
}

#[tokio::test]
async fn the_failure_of_an_initiator_is_reduced_too() {
    let out = tempfile::tempdir().unwrap();
    let target = Target::builtin_initiator().with_deviations(["ddp.refuses-later-segments"]).unwrap();
    let found = explored(target.clone(), out.path(), 15).await;
    let failure = found.failures.first().unwrap();
    // With echo, this is a Send. With rping, it is a Write and a Read.
    assert!(failure.steps[1] <= 2, "{:?}", failure.steps);
    let suites = Suites::from_folder(out.path()).unwrap();
    let again = tempfile::tempdir().unwrap();
    let report = run(target, suites, Filter::everything(), again.path()).await.0;
    assert_eq!(report.results[0].verdict, Verdict::Fail, "{}", report.results[0].explanation);
}

#[tokio::test]
async fn failures_are_reduced_to_cases_that_fail_again() {
    for (deviation, sessions, most_steps) in [
        // To find this deviation, a Send needs a second segment.
        ("ddp.refuses-later-segments", 15, 2),
        // To find this deviation, a session needs two Writes to the same address.
        ("ddp.refuses-second-write", 80, 4),
        // To find this deviation, a session needs an FPDU with a wrong CRC.
        ("mpa.accepts-bad-crc", 80, 2),
        // Only the monitor (the dissector with its rules) notices that MO is wrong.
        ("ddp.mo-constant", 15, 3),
        // To find this deviation, a session needs an SDP message with a wrong format.
        ("sdp.overlooks-malformed", 100, 1),
        // A session without steps also repeats a PMReq.
        ("pm.gives-anew", 2, 0),
        // To find this deviation, a session needs a PMReq with a reserved IPV.
        ("pm.takes-any-ipv", 60, 1),
    ] {
        let out = tempfile::tempdir().unwrap();
        let found = explored(deviating(deviation), out.path(), sessions).await;
        assert!(!found.failures.is_empty(), "{deviation}");
        for failure in &found.failures {
            assert!(failure.steps[1] <= most_steps, "{deviation}: {:?}", failure.steps);
        }
        let suites = Suites::from_folder(out.path()).unwrap();
        assert_eq!(suites.cases().len(), found.failures.len());
        let again = tempfile::tempdir().unwrap();
        let report = run(deviating(deviation), suites.clone(), Filter::everything(), again.path()).await.0;
        for result in &report.results {
            assert_eq!(result.verdict, Verdict::Fail, "{deviation}: {}: {}", result.key, result.explanation);
        }
        // A target without the deviation passes the same cases.
        let report = run(Target::builtin(), suites, Filter::everything(), again.path()).await.0;
        for result in &report.results {
            assert_eq!(result.verdict, Verdict::Pass, "{deviation}: {}: {}", result.key, result.explanation);
        }
    }
}

#[tokio::test]
async fn the_seed_repeats_an_exploration() {
    let mut texts = Vec::new();
    for _ in 0..2 {
        let out = tempfile::tempdir().unwrap();
        let found = explored(deviating("ddp.refuses-later-segments"), out.path(), 10).await;
        let file = out.path().join(format!("{}.lua", found.failures[0].case));
        texts.push((found.progress, std::fs::read_to_string(file).unwrap()));
    }
    assert_eq!(texts[0], texts[1]);
}

/// With `until_fail`, the exploration ends when the first failure is saved.
#[tokio::test]
async fn the_first_failure_can_end_an_exploration() {
    let out = tempfile::tempdir().unwrap();
    let options = ExploreOptions {
        target: deviating("ddp.mo-constant"),
        out: out.path().to_owned(),
        seed: Some(1),
        time: Duration::from_secs(3600),
        sessions: None,
        connections: 4,
        until_fail: true,
        cancel: None,
    };
    let found = explore(&options, |_| {}).await.unwrap();
    assert_eq!((found.failures.len(), found.stopped.as_deref()), (1, Some("weft found a failure")));
    assert_eq!(found.failures[0].outcome, Outcome::Reduced);
}

/// The endpoint accepts no connection after eight failed set-ups. Then no session can be played
/// again, so the saved case is a good exchange, which fails.
#[tokio::test]
async fn a_target_that_no_longer_works_is_a_failure() {
    if has("python3") {
        let fields = "service = \"echo\"\ncapabilities = [\"crc\"]\n";
        let endpoint = Endpoint::start("iwarp", &["--service", "echo"], Some("refused-leak"), fields);
        let out = tempfile::tempdir().unwrap();
        let found = explored(endpoint.target.clone(), out.path(), 200).await;
        let [failure] = &found.failures[..] else { panic!("{:?}", found.stopped) };
        assert_eq!((failure.outcome, failure.steps[1]), (Outcome::Damaged, 0));
        assert_eq!(found.stopped.as_deref(), Some("the target no longer works; restart it before you continue"));
        let suites = Suites::from_folder(out.path()).unwrap();
        let again = tempfile::tempdir().unwrap();
        let report = run(endpoint.target.clone(), suites.clone(), Filter::everything(), again.path()).await.0;
        assert_eq!(report.results[0].verdict, Verdict::Fail);
        // A new process of the endpoint works, and passes the case.
        let restarted = Endpoint::start("iwarp", &["--service", "echo"], Some("refused-leak"), fields);
        let report = run(restarted.target.clone(), suites, Filter::everything(), again.path()).await.0;
        assert_eq!(report.results[0].verdict, Verdict::Pass, "{}", report.results[0].explanation);
    }
}

/// In a flood, the tester sends all Sends before it receives the first echo.
#[tokio::test]
async fn a_flood_reads_no_echo_before_its_last_send() {
    let out = tempfile::tempdir().unwrap();
    let suites = out.path().join("suites");
    std::fs::create_dir_all(suites.join("rdmap")).unwrap();
    let script = "case { id = 'rdmap/flood/one', title = 'A flood', requirements = session.requirements(session.ECHO), \
                  capabilities = { 'echo' }, run = function(t) local s = session.echo(t) \
                  s:flood(1, 3, { size = 3000, segment = 1000 }) s:finish() end }\n";
    std::fs::write(suites.join("rdmap/flood.lua"), script).unwrap();
    let suites = Suites::from_folder(&suites).unwrap();
    let report = run(Target::builtin(), suites, Filter::everything(), out.path()).await.0;
    let [result] = &report.results[..] else { panic!("{} results", report.results.len()) };
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    // Connection 1 is the good exchange before the session.
    let steps = result.steps.iter().filter(|step| step.connection == 2 && step.octets.is_some());
    let directions: Vec<Direction> = steps.map(|step| step.direction).collect();
    let sends = directions.iter().rev().skip_while(|it| **it == Direction::Received);
    assert_eq!(sends.take_while(|it| **it == Direction::Sent).count(), 3, "{directions:?}");
}

/// Runs the only case of a script with the name `rdmap/one/one`. `service` is a capability, `list`
/// has the requirements, and `body` is the body of the function.
async fn result_of(target: Target, service: &str, list: &str, body: &str) -> CaseResult {
    let out = tempfile::tempdir().unwrap();
    let suites = out.path().join("suites");
    std::fs::create_dir_all(suites.join("rdmap")).unwrap();
    let script = format!(
        "case {{ id = 'rdmap/one/one', title = 'One', requirements = session.requirements({list}), \
         roles = {{ 'responder', 'initiator' }}, capabilities = {{ '{service}' }}, \
         run = function(t, _, target)\n{body}\nend }}\n"
    );
    std::fs::write(suites.join("rdmap/one.lua"), script).unwrap();
    let suites = Suites::from_folder(&suites).unwrap();
    run(target, suites, Filter::everything(), out.path()).await.0.results.remove(0)
}

/// Plays a session with these steps. `rows` are further arguments of `session.requirements`.
async fn played(target: Target, service: &str, rows: &str, steps: &str) -> CaseResult {
    let list = format!("session.{}{rows}", service.to_uppercase());
    result_of(target, service, &list, &format!("local s = session.{service}(t) {steps} s:finish()")).await
}

const EMPTY: &str = ", session.EMPTY[1]";
const PADDED: &str = ", session.PADDED[1]";

/// The steps in which the target owes answers, in which messages of several kinds mix, or in which
/// a FIN or a marker is at a special place.
#[tokio::test]
async fn unusual_steps_pass_with_the_builtin_target() {
    for (service, rows, steps) in [
        (
            "echo",
            EMPTY,
            "s:empty(1, true) s:message(1, { size = 3000, segment = 1000 }) s:segments(1, 1) \
             s:empty(1, true) s:empty(1, false) s:segments(1, 5)",
        ),
        // The Response arrives after the reset, so the session has one more Read.
        ("echo", EMPTY, "s:empty(1, true) s:reset(1)"),
        ("echo", PADDED, "s:pad(1, 5, 0xff) s:pad(1, 8, 0x01) s:send(1, { size = 7 })"),
        ("echo", "", "s:burst(1, 20, 4, 60) s:batch(1, 300, 200) s:send(1, { size = 9 })"),
        ("echo", "", "s:send(1, { size = 600 }) s:fin(1, 3000, 0) s:send(1, { size = 5 }) s:fin(1, 0, 0.2)"),
        ("echo", "", "s:flood(1, 3, { size = 3000, segment = 1000 }) s:fin(1, 40, 0)"),
        ("echo", ", 'wrong-crc'", "s:batch(1, 100, 600) s:fault_now(1, 'wrong-crc')"),
        ("echo", ", 'wrong-crc-middle'", "s:flood(1, 8, { size = 4000 }) s:fault_now(1, 'wrong-crc-middle')"),
        ("echo", ", 'gap'", "s:batch(1, 8, 600) s:fault_now(1, 'gap')"),
        (
            "echo",
            ", 'wrong-crc-pad'",
            "s:message(1, { size = 3000, segment = 1000 }) s:segments(1, 2) s:fault_now(1, 'wrong-crc-pad')",
        ),
        ("echo", ", 'wrong-queue'", "s:open(1, { markers = true }) s:align(1, 12, true) s:fault(1, 'wrong-queue')"),
        ("echo", "", "s:align(1, 12, true) s:align(1, 12, false)"),
        // A reduced session can have loops.
        ("echo", "", "for _ = 1, 20 do s:send(1, { size = 5 }) s:reset(1) end s:send(1, { size = 5 })"),
        ("rping", ", 'wrong-crc-read'", "s:reads(1, 5, 40) s:fault_now(1, 'wrong-crc-read')"),
        ("rping", ", 'invalidated'", "s:reads(1, 5, 40) s:fault_now(1, 'invalidated')"),
        ("rping", ", 'wrong-crc-response'", "s:reads(1, 5, 40) s:fault_now(1, 'wrong-crc-response')"),
        ("rping", ", 'response-again'", "s:reads(1, 5, 40) s:fault_now(1, 'response-again')"),
        ("rping", ", 'response-short'", "s:write(1, { at = 0, size = 9 }) s:fault(1, 'response-short')"),
        ("rping", ", 'response-misplaced'", "s:read(1, { at = 0, size = 9 }) s:fault(1, 'response-misplaced')"),
        ("rping", ", 'response-reversed'", "s:fault(1, 'response-reversed') s:read(1, { at = 0, size = 9 })"),
        ("rping", ", 'neighbour-read'", "s:open(2) s:write(2, { at = 0, size = 9 }) s:fault(1, 'neighbour-read')"),
        ("rping", ", 'neighbour-write'", "s:fault(3, 'neighbour-write')"),
        ("rping", ", 'neighbour-invalidate'", "s:read(1, { at = 0, size = 8 }) s:fault_now(1, 'neighbour-invalidate')"),
        ("rping", "", "s:open(1, { markers = true }) s:align(1, 0, true) s:read(1, { at = 0, size = 40 })"),
    ] {
        let result = played(Target::builtin(), service, rows, steps).await;
        assert_eq!(result.verdict, Verdict::Pass, "{steps}: {}", result.explanation);
        assert_eq!(result.failing().next(), None, "{steps}");
    }
    let both = Target::builtin().with_markers(MarkerDirections::Both).unwrap();
    let steps = "s:align(1, 24, false) s:send(1, { size = 4 }) s:align(1, 0, true) s:send(1, { size = 4 })";
    let result = played(both, "echo", "", steps).await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
}

/// Illegal FPDUs and aligned markers while a Read of rping's server is outstanding, on the same
/// connection or on the neighbour.
#[tokio::test]
async fn unusual_steps_pass_while_a_read_of_the_server_is_outstanding() {
    for (fault, steps) in [
        (
            "wrong-queue",
            "s:open(1, { enhanced = true }) s:announce(1, { size = 100, segment = 30 }) s:respond(1, 1) \
             s:reads(1, 5, 9) s:fault_now(1, 'wrong-queue')",
        ),
        // A Send of the tester may follow only after the Read.
        (
            "neighbour-invalidate",
            "s:announce(1, { size = 9000, segment = 1000 }) s:respond(1, 2) s:read(1, { at = 0, size = 8 }) \
             s:fault_now(1, 'neighbour-invalidate')",
        ),
        ("invalidated", "s:announce(1, { size = 9000, segment = 1000 }) s:respond(1, 2) s:fault(1, 'invalidated')"),
        // The Response to the outstanding Read is correct. That to the next Read is too long.
        (
            "response-overlong",
            "s:announce(1, { size = 100, segment = 30 }) s:respond(1, 1) s:reads(1, 5, 9) \
             s:fault_now(1, 'response-overlong')",
        ),
        (
            "neighbour-write",
            "s:announce(2, { size = 100, segment = 30 }) s:respond(2, 1) s:fault(1, 'neighbour-write') \
             s:write(2, { at = 0, size = 9 }) s:respond(2) s:read(2, { at = 0, size = 100 })",
        ),
        (
            "wrong-crc",
            "s:open(1, { markers = true }) s:announce(1, { size = 300 }) s:align(1, 12, true) \
             s:announce(1, { size = 40 }) s:fault_now(1, 'wrong-crc')",
        ),
    ] {
        let rows = format!(", '{fault}', table.unpack(session.ANNOUNCED)");
        let result = played(Target::builtin(), "rping", &rows, steps).await;
        assert_eq!(result.verdict, Verdict::Pass, "{steps}: {}", result.explanation);
        assert_eq!(result.failing().next(), None, "{steps}");
    }
}

/// With C=0 in the tester's frame, the builtin target sends C=1, and the plain target sends C=0. A
/// fault with a wrong CRC needs a connection with CRCs.
#[tokio::test]
async fn connections_without_crc_pass() {
    let steps = "s:open(1, { crc = false }) s:send(1, { size = 600 }) s:answers(1) s:fault(1, 'wrong-crc') \
                 s:open(2, { crc = false }) s:message(2, { size = 3000, segment = 1000 }) s:segments(2, 1) \
                 s:open(3, { crc = true }) s:send(3, { size = 9 })";
    for target in [Target::builtin(), Target::builtin_plain()] {
        let result = played(target, "echo", ", 'wrong-crc'", steps).await;
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
        assert_eq!(result.failing().next(), None);
    }
}

/// Plays steps of a session with an agent. `faults` are the illegal FPDUs of the steps.
async fn played_with_agent(target: Target, faults: &[&str], steps: &str) -> CaseResult {
    let faults: String = faults.iter().map(|fault| format!(", '{fault}'")).collect();
    let body = format!("local s = session.agent(t, target) {steps} s:finish()");
    result_of(target, "agent", &format!("session.AGENT{faults}"), &body).await
}

/// While a connection ends with an error, another has an incomplete Send, and regions with written
/// bytes.
#[tokio::test]
async fn illegal_fpdus_pass_in_sessions_with_an_agent() {
    let faults =
        ["wrong-crc", "wrong-crc-write", "used-msn-pieces", "gap", "write-beyond", "no-write-right", "no-read-right"];
    let before = "s:receive(2, 3, { size = 100 }) s:write(2, { size = 90 })";
    let each: Vec<String> = faults.iter().map(|fault| format!("{before} s:fault(2, '{fault}')")).collect();
    let begin = "s:write(1, { size = 700 }) s:answers(1) s:message(1, { size = 3000 }) s:segments(1, 1)";
    let steps = format!("{begin} {} s:segments(1, 2) s:post(2, 'send', {{ size = 40 }})", each.join(" "));
    for target in [Target::builtin(), Target::builtin_initiator(), Target::builtin_tcp()] {
        let name = target.name().to_owned();
        let result = played_with_agent(target, &faults, &steps).await;
        assert_eq!(result.verdict, Verdict::Pass, "{name}: {}", result.explanation);
        assert_eq!(result.failing().next(), None, "{name}");
    }
}

#[tokio::test]
async fn illegal_fpdus_in_sessions_with_an_agent_show_deviations() {
    for (deviation, fault, row) in [
        // The target reports the error, but part of the Write is in memory.
        ("ddp.places-refused", "write-beyond", "DDP-7.1-13"),
        ("ddp.overlooks-rights", "no-write-right", "DDP-7.1-11"),
        ("rdmap.overlooks-read-rights", "no-read-right", "RDMAP-8.1.1-5"),
        ("ddp.delivers-gaps", "gap", "DDP-5.4-3"),
        ("mpa.accepts-bad-crc", "wrong-crc-write", "MPA-4.4-19"),
    ] {
        let steps = format!("s:fault(1, '{fault}')");
        let result = played_with_agent(deviating(deviation), &[fault], &steps).await;
        assert!(result.failing().any(|failed| failed.as_str() == row), "{deviation}: {}", result.explanation);
    }
}

/// A target that drops an FPDU with a wrong CRC has checked the CRC. But it must not use the
/// following FPDUs.
#[tokio::test]
async fn a_dropped_fpdu_and_a_used_fpdu_violate_different_requirements() {
    for (deviation, service, fault, violated) in [
        ("mpa.goes-on-after-error", "echo", "wrong-crc", "MPA-8-13"),
        ("mpa.goes-on-after-error", "echo", "wrong-crc-second", "MPA-8-13"),
        // The next FPDU is sent only after the target has not reacted.
        ("mpa.goes-on-after-error", "echo", "wrong-crc-late", "MPA-8-13"),
        ("mpa.accepts-bad-crc", "echo", "wrong-crc", "MPA-4.4-19"),
        ("mpa.accepts-bad-crc", "echo", "wrong-crc-second", "MPA-4.4-19"),
        ("mpa.accepts-bad-crc", "echo", "wrong-crc-middle", "MPA-4.4-19"),
        // The next FPDU is a Read, which returns the bytes of the Write.
        ("mpa.accepts-bad-crc", "rping", "wrong-crc-write", "MPA-4.4-19"),
        ("mpa.accepts-bad-crc", "rping", "wrong-crc-read", "MPA-4.4-19"),
    ] {
        let (rows, steps) = (format!(", '{fault}'"), format!("s:fault(1, '{fault}')"));
        let result = played(deviating(deviation), service, &rows, &steps).await;
        let failing: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
        for row in ["MPA-8-13", "MPA-4.4-19", "MPA-4.4-20"] {
            assert_eq!(failing.contains(&row), row == violated, "{deviation}, {fault}: {failing:?}");
        }
    }
}

/// The messages of long steps have several MiB.
#[tokio::test]
async fn long_messages_pass_in_sessions_with_an_agent() {
    let size = (2 << 20) + 5;
    let steps = format!(
        "s:region(1, 1, {size}) s:write(1, {{ size = {size}, segment = 1400 }}) s:read(1, {{ size = {size} }}) \
         s:answers(1) s:post(1, 'write', {{ size = {size}, parts = 2 }}) \
         s:message(1, {{ size = {size}, segment = 1400 }})"
    );
    let result = played_with_agent(Target::builtin(), &[], &steps).await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
}

/// Each of these deviations shows only in an unusual step.
#[tokio::test]
async fn unusual_steps_show_deviations() {
    for (deviation, service, rows, steps, row) in [
        ("mpa.refuses-pad", "echo", PADDED, "s:pad(1, 5, 0xff)", "MPA-4.1-4"),
        ("ddp.checks-empty-write", "echo", "", "s:empty(1, false) s:send(1, { size = 8 })", "RDMAP-5.3-5"),
        (
            "ddp.refuses-write-in-send",
            "echo",
            "",
            "s:message(1, { size = 30, segment = 10 }) s:segments(1, 1) s:empty(1, false)",
            "RDMAP-5.3-5",
        ),
        (
            "rdmap.overlooks-read-association",
            "rping",
            ", 'neighbour-read'",
            "s:fault(1, 'neighbour-read')",
            "RDMAP-7.2-5",
        ),
        (
            "rdmap.overlooks-invalidate",
            "rping",
            ", 'neighbour-invalidate'",
            "s:fault(1, 'neighbour-invalidate')",
            "RDMAP-7.2-14",
        ),
        (
            "rdmap.overlooks-read-response",
            "rping",
            ", 'response-short'",
            "s:fault(1, 'response-short')",
            "RDMAP-5.2.2-6",
        ),
        ("rdmap.appends-responses", "rping", ", 'response-reversed'", "s:fault(1, 'response-reversed')", "DDP-5.2-4"),
        // In an FPDU with 4 bytes of payload, 24 bytes precede the CRC.
        (
            "mpa.crc-without-trailing-marker",
            "echo",
            "",
            "s:open(1, { markers = true }) s:align(1, 24, true) s:send(1, { size = 4 })",
            "MPA-4.4-16",
        ),
    ] {
        let result = played(deviating(deviation), service, rows, steps).await;
        assert!(result.failing().any(|failed| failed.as_str() == row), "{deviation}: {}", result.explanation);
    }
}

/// While Reads of rping's server are outstanding on two connections, the tester writes, reads, and
/// answers the Reads in another order. Then connections end with an outstanding Read, and the next
/// connections work.
#[tokio::test]
async fn a_server_of_rping_serves_other_steps_during_its_reads() {
    let body = "local s = session.rping(t)
        s:announce(1, { size = 100, segment = 30, to = 0x1000 })
        s:announce(2, { size = 5000, segment = 1000, to = 0xfffffff0, empty = true })
        s:write(1, { at = 0, size = 50 })
        s:read(1, { at = 0, size = 50 })
        s:respond(2, 2)
        s:respond(1)
        s:write(2, { at = 3, size = 40 })
        s:respond(2, 1)
        s:reads(2, 3, 20)
        s:respond(2)
        s:write(1, { at = 10, size = 20 })
        s:read(1, { at = 0, size = 60 })
        s:respond(1)
        s:announce(1, { size = 65535 })
        s:respond(1, 1)
        s:fault(1, 'wrong-queue')
        s:announce(1, { size = 2 })
        s:reset(1)
        s:rounds(1, 1, { size = 30 })
        s:announce(2, { size = 64 })
        s:close(2)
        s:announce(2, { size = 64 })
        s:finish()";
    let list = "session.RPING, 'wrong-queue', table.unpack(session.ANNOUNCED)";
    for target in [Target::builtin(), Target::builtin_tcp()] {
        let result = result_of(target, "rping", list, body).await;
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
        assert_eq!(result.failing().next(), None);
    }
}

/// The target completes its Read when the first segment of the Response arrives.
#[tokio::test]
async fn a_read_that_completes_before_its_response_is_found() {
    let body = "local s = session.rping(t)
        s:announce(1, { size = 100, segment = 30 })
        s:respond(1, 1)
        s:write(1, { at = 0, size = 5 })
        s:finish()";
    let list = "session.RPING, table.unpack(session.ANNOUNCED)";
    let result = result_of(deviating("rdmap.completes-reads-early"), "rping", list, body).await;
    let rows: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
    assert!(rows.contains(&"RDMAP-5.5-21"), "{rows:?} {}", result.explanation);
}

/// The monitor judges the Replies. In this test, it finds nothing.
#[tokio::test]
async fn a_request_may_be_rejected_but_not_left_unanswered() {
    let body = "local s = session.echo(t, { 'MPA-7.1.2-25', 'P2P-10-2' })
        s:request { private = 512 }
        s:request { ird = 0, ord = 0x3ffe, private = 508, rtr_send = true, rtr_write = true, rtr_read = true }
        s:request { ird = 0x3fff, ord = 0, markers = true }
        s:open(1, { private = 508, enhanced = true })
        s:finish()";
    let list = "session.ECHO, 'MPA-7.1.2-25', 'P2P-10-2'";
    let result = result_of(Target::builtin(), "echo", list, body).await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    for (deviation, row) in [("mpa.refuses-long-private-data", "MPA-7.1.2-25"), ("p2p.closes-enhanced", "P2P-10-2")] {
        let result = result_of(deviating(deviation), "echo", list, body).await;
        let rows: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
        assert!(rows.contains(&row), "{deviation}: {rows:?} {}", result.explanation);
    }
}

/// What a target does with its third connection, after a good exchange and the first connection of
/// a session.
#[derive(Debug, Clone, Copy)]
enum Third {
    /// It sends nothing.
    Waits,
    /// It closes the connection after the Request.
    Closes,
    /// It sends a Reply with R=1.
    Rejects,
}

/// Starts a target that sends back all FPDUs.
async fn echoing(third: Third) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 1.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 20];
                if stream.read_exact(&mut request).await.is_err() {
                    return;
                }
                let reply = match third {
                    Third::Waits if number == 3 => return std::mem::forget(stream),
                    Third::Closes if number == 3 => return,
                    Third::Rejects if number == 3 => b"MPA ID Rep Frame\x60\x01\0\0",
                    _ => b"MPA ID Rep Frame\x40\x01\0\0",
                };
                let (mut reader, mut writer) = stream.split();
                let _ = writer.write_all(reply).await;
                // The MSNs of both directions are equal, so each FPDU is its own echo.
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            });
        }
    });
    let fields = "kind = \"tcp\"\nservice = \"echo\"\ncapabilities = [\"crc\"]\ntime_scale = 0.1\n";
    Target::from_toml("third.toml", &format!("name = \"third\"\naddress = \"{address}\"\n{fields}")).unwrap()
}

/// A target that has served a connection must also answer the Request of the next connection. It
/// may refuse a connection.
#[tokio::test]
async fn the_next_connection_of_a_session_must_be_served() {
    let body = "local s = session.echo(t)
        s:send(1, { size = 40 })
        s:answers(1)
        s:reset(1)
        s:send(1, { size = 40 })
        s:finish()";
    for (third, verdict) in
        [(Third::Waits, Verdict::Fail), (Third::Closes, Verdict::Inconclusive), (Third::Rejects, Verdict::Inconclusive)]
    {
        let result = result_of(echoing(third).await, "echo", "session.ECHO", body).await;
        assert_eq!(result.verdict, verdict, "{third:?}: {}", result.explanation);
        let rows: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
        let expected: &[&str] = if verdict == Verdict::Fail { &["RDMAP-5.3-5"] } else { &[] };
        assert_eq!(rows, expected, "{third:?}: {}", result.explanation);
    }
}

#[tokio::test]
async fn a_target_without_echo_and_rping_is_refused() {
    let text = "name = \"nic\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\n";
    let out = tempfile::tempdir().unwrap();
    let options = ExploreOptions {
        target: Target::from_toml("nic.toml", text).unwrap(),
        out: out.path().to_owned(),
        seed: None,
        time: Duration::from_secs(1),
        sessions: None,
        connections: 1,
        until_fail: false,
        cancel: None,
    };
    let error = explore(&options, |_| {}).await.unwrap_err();
    assert!(matches!(error, ExploreError::Service(..)) && error.to_string().contains("`echo` or `rping`"), "{error}");
}

/// The process of an endpoint in `interop` that other authors wrote only from the specifications.
/// The process ends when this value is dropped.
struct Endpoint {
    child: Child,
    target: Target,
    /// The endpoint could not print any more if this end of the pipe were closed.
    _output: BufReader<ChildStdout>,
}

impl Endpoint {
    /// Starts `interop/mutants/FOLDER/endpoint.py` with these arguments, and with this bug or
    /// without a bug. `fields` are further lines of the target file.
    fn start(folder: &str, arguments: &[&str], bug: Option<&str>, fields: &str) -> Self {
        let mutants = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../interop/mutants");
        let mut command = Command::new("python3");
        command.arg(mutants.join(folder).join("endpoint.py")).args(["--listen", "127.0.0.1:0"]).args(arguments);
        command.args(bug.map(|bug| ["--bug", bug]).iter().flatten());
        Self::of(command, fields)
    }

    /// Starts the driven SDP socket of `interop/sdp-peer`.
    fn start_driven() -> Self {
        let peer = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../interop/sdp-peer/serve_each.py");
        let mut command = Command::new("python3");
        command.arg(peer).args(["--port", "0", "--limit", "60", "drive"]);
        Self::of(command, "service = \"sdp-drive\"\n")
    }

    /// Starts a program whose first line is its address, or `listening on PORT`.
    fn of(mut command: Command, fields: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim().replace("listening on ", "127.0.0.1:");
        let text = format!("name = \"endpoint\"\nkind = \"tcp\"\naddress = \"{address}\"\ntime_scale = 0.3\n{fields}");
        Endpoint { child, target: Target::from_toml("endpoint.toml", &text).unwrap(), _output: output }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Explores the endpoint once without a bug, and once with each bug. `bugs` has pairs of a bug and
/// a requirement. With a bug, a session must violate the requirement. Without a bug, no session may
/// fail.
async fn finds(start: impl Fn(Option<&str>) -> Endpoint, sessions: u64, bugs: &[(&str, &str)]) {
    let bugs = bugs.iter().map(|(bug, row)| (Some(*bug), *row));
    for (bug, row) in std::iter::once((None, "")).chain(bugs) {
        let endpoint = start(bug);
        let out = tempfile::tempdir().unwrap();
        let found = explored(endpoint.target.clone(), out.path(), sessions).await;
        let rows: Vec<&str> = found
            .failures
            .iter()
            .flat_map(|found| found.result.failing())
            .map(weft_core::RequirementId::as_str)
            .collect();
        assert_eq!(rows.contains(&row), bug.is_some(), "{bug:?}: {rows:?}, {:?}", found.undecided);
        assert!(bug.is_some() || rows.is_empty(), "{rows:?}");
        assert_eq!(found.progress.undecided, 0, "{bug:?}: {:?}", found.undecided);
    }
}

/// The test uses only some of the bugs. The other bugs need more time, or markers.
#[tokio::test]
async fn an_independent_endpoint_passes_and_some_of_its_bugs_are_found() {
    if has("python3") {
        let fields = "service = \"echo\"\ncapabilities = [\"crc\"]\n";
        let start = |bug: Option<&str>| Endpoint::start("iwarp", &["--service", "echo"], bug, fields);
        finds(start, 10, &[("len-16bit", "DDP-5.2-4"), ("fpdu-32k", "RDMAP-5.3-5")]).await;
    }
}

/// The endpoint begins its SDP messages with MSeq 0. This is the other possible interpretation of
/// section 6.1.5 of the draft.
#[tokio::test]
async fn an_independent_sdp_endpoint_passes_and_some_of_its_bugs_are_found() {
    if has("python3") {
        let arguments = ["--service", "echo", "--sinkavail", "20000", "--hello-ack", "reply"];
        let fields = "service = \"sdp-echo\"\n[sdp]\nstart = \"private-data\"\nfirst_mseq = 0\n";
        let start = |bug: Option<&str>| Endpoint::start("sdp", &arguments, bug, fields);
        finds(start, 12, &[("close-unsent", "SDP-8.2-1"), ("exact-fit", "SDP-8.2-1")]).await;
    }
}

/// The socket executes the commands of docs/sdp-driver.md.
#[tokio::test]
async fn an_independent_driven_socket_passes() {
    if has("python3") {
        let endpoint = Endpoint::start_driven();
        let out = tempfile::tempdir().unwrap();
        let found = explored(endpoint.target.clone(), out.path(), 10).await;
        // The socket keeps the connection open after some violations of the tester. Only a SHOULD
        // forbids this.
        for found in &found.failures {
            let violated: Vec<String> = found.result.failing().map(|id| id.to_string()).collect();
            assert_eq!(violated, ["SDP-8.2.2-8"], "{}", found.result.explanation);
        }
        assert_eq!((found.progress.sessions, found.stopped), (10, None));
        assert!(found.progress.undecided < 5, "{:?}", found.undecided);
        assert_eq!(found.tester_errors, Vec::<String>::new());
    }
}
