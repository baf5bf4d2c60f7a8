//! Tests the verdicts. The case about the key of an MPA Request gives the right verdict and
//! explains the verdict. It does so over the virtual link (in one process, with a virtual clock)
//! and over TCP.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::common::{CASE, deviating, key_case, one_case, run};
use weft_core::requirement;
use weft_suites::model::{CaseResult, Event, ExitCode, MarkKind, RunReport, Step, StepKind, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions};

fn verdicts(report: &RunReport) -> Vec<(String, Verdict)> {
    report.results.iter().map(|result| (result.key.to_string(), result.verdict)).collect()
}

/// The result of one case.
async fn result_of(target: Target, case: &str) -> CaseResult {
    let out = tempfile::tempdir().unwrap();
    run(target, Suites::embedded().unwrap(), Filter::of([case]), out.path()).await.0.results.remove(0)
}

fn assert_all(report: &RunReport, verdict: Verdict) {
    for result in &report.results {
        assert_eq!(result.verdict, verdict, "{}: {}", result.key, result.explanation);
    }
    assert_eq!(report.results.len(), 16);
}

#[tokio::test]
async fn the_correct_responder_passes_in_process() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::builtin(), out.path()).await;
    assert_all(&report, Verdict::Pass);
    assert_eq!(report.summary.exit_code, ExitCode::AsExpected);
    assert_eq!(report.summary.failing, []);
    let result = &report.results[3];
    assert_eq!(result.key.to_string(), format!("{CASE}[octet=3]"));
    assert!(result.actual.as_ref().unwrap().contains("no byte before"), "{result:?}");
    // The transcript marks the bytes that are the stimulus.
    let stimulus = |step: &&Step| {
        step.octets
            .iter()
            .flat_map(|octets| &octets.marks)
            .any(|mark| mark.kind == MarkKind::Stimulus && mark.start == 3)
    };
    assert_eq!(result.steps.iter().filter(stimulus).count(), 1);
    // There is a good exchange before and after the stimulus. Each of the three has its own
    // connection.
    assert_eq!(result.steps.iter().filter(|step| step.kind == StepKind::Connected).count(), 3);
}

#[tokio::test]
async fn the_correct_responder_passes_over_tcp() {
    let out = tempfile::tempdir().unwrap();
    assert_all(&key_case(Target::builtin_tcp(), out.path()).await, Verdict::Pass);
}

#[tokio::test]
async fn the_deviating_responder_fails_and_the_requirement_is_named() {
    let tcp = Target::builtin_tcp().with_deviations(["mpa.accepts-wrong-key"]).unwrap();
    for target in [deviating(), tcp] {
        let out = tempfile::tempdir().unwrap();
        let report = key_case(target, out.path()).await;
        assert_all(&report, Verdict::Fail);
        assert_eq!(report.summary.exit_code, ExitCode::Unexpected);
        assert_eq!(report.summary.failing, [requirement!("MPA-7.1.1-2")]);
        for result in &report.results {
            assert_eq!(result.requirements[0].requirement, requirement!("MPA-7.1.1-2"));
            assert_eq!(result.requirements[0].verdict, Verdict::Fail);
            assert!(result.explanation.contains("MPA-7.1.1-2"), "{}", result.explanation);
            assert!(result.actual.as_ref().unwrap().contains("MPA Reply"), "{:?}", result.actual);
            assert_eq!(result.decided_at.as_ref().unwrap().file, "mpa/7.1.1-key.lua");
            // The monitor (the dissector with its rules) has found the same violation
            // independently.
            let key = requirement!("MPA-7.1.1-2");
            assert!(result.findings.iter().any(|finding| finding.by_target && finding.requirement == key));
        }
    }
}

/// RFC 6581 section 10: an enhanced Responder answers an enhanced Request with an enhanced Reply. A
/// Responder without the enhanced set-up closes. It must not be charged with a violation of the
/// requirement about the Reply.
#[tokio::test]
async fn a_responder_without_the_enhanced_set_up_is_charged_with_its_own_rule_alone() {
    let target = Target::builtin_plain().with_deviations(["p2p.takes-enhanced-as-unenhanced"]).unwrap();
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["mpa-p2p/6-frames/not-supported"]);
    let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    assert!(!report.results.is_empty());
    for result in &report.results {
        assert_eq!(result.verdict, Verdict::Fail, "{}: {}", result.key, result.explanation);
    }
    assert_eq!(report.summary.failing, [requirement!("P2P-10-4")]);
}

#[tokio::test]
async fn three_runs_give_the_same() {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let out = tempfile::tempdir().unwrap();
        let report = key_case(Target::builtin(), out.path()).await;
        let steps: Vec<_> = report.results.iter().map(|result| result.steps.clone()).collect();
        seen.push((verdicts(&report), steps));
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
}

/// The target file of kind `tcp` names no service above MPA. So the good exchange is only the
/// start-up.
#[tokio::test]
async fn a_target_with_nothing_above_mpa_is_judged() {
    let server = weft_peer::driver::serve::Server::bind("127.0.0.1:0".parse().unwrap(), Default::default()).unwrap();
    let (address, stop) = (server.local_addr(), server.stop_handle());
    let serving = tokio::spawn(server.run());
    let text = format!("name = \"bare\"\nkind = \"tcp\"\naddress = \"{address}\"\nservice = \"none\"\n");
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::from_toml("t.toml", &text).unwrap(), out.path()).await;
    assert_all(&report, Verdict::Pass);
    assert!(report.results[0].steps.iter().all(|step| !step.text.contains("FPDU")));
    stop.stop();
    serving.await.unwrap();
}

/// A target is allowed to split its echo into more segments than the tester's Send had. The
/// target's segments can be shorter, because TCP options use some space.
#[tokio::test]
async fn a_target_with_shorter_segments_passes() {
    let out = tempfile::tempdir().unwrap();
    let target = Target::builtin().with_deviations(["mpa.mulpdu-below-128"]).unwrap();
    let (report, _) = run(target, Suites::embedded().unwrap(), Filter::of(["mpa/4.1-fpdu/long"]), out.path()).await;
    assert_eq!(report.results.len(), 3);
    for result in &report.results {
        assert_eq!(result.verdict, Verdict::Pass, "{}: {}", result.key, result.explanation);
    }
}

#[tokio::test]
async fn a_target_that_is_not_there_is_inconclusive() {
    // The listener was dropped, so no server answers at its address.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!("name = \"gone\"\nkind = \"tcp\"\naddress = \"{address}\"\n");
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::from_toml("t.toml", &text).unwrap(), out.path()).await;
    assert_all(&report, Verdict::Inconclusive);
    assert_eq!(report.summary.exit_code, ExitCode::Inconclusive);
    assert!(report.results[0].explanation.contains("not reached"));
    let headline = format!("target is down: {address} refused the connection");
    assert_eq!(report.summary.target_down.as_ref(), Some(&headline));
    assert_eq!(report.summary.reasons.first(), Some(&headline));
    // Only the first case tries to connect. The other cases use its result.
    let tried = report.results.iter().filter(|result| !result.steps.is_empty()).count();
    assert_eq!((tried, report.results.len()), (1, 16));
    let other = &report.results[15];
    assert!(other.explanation.contains("unreachable") && other.explanation.contains(&address.to_string()), "{other:?}");
    assert!(other.evidence.folder.is_empty());
    // The reports for CI systems have one error, not 16.
    let junit = weft_suites::report::junit(&report).unwrap();
    assert!(junit.contains(&format!("<error message=\"{headline}\" type=\"target-down\"")), "{junit}");
    assert_eq!((junit.matches("<error ").count(), junit.matches("<skipped ").count()), (1, 15));
    let tap = weft_suites::report::tap(&report).unwrap();
    assert!(tap.starts_with(&format!("TAP version 13\n1..16\n# {headline}\nnot ok 1 - ")), "{tap}");
    assert_eq!((tap.matches("\nnot ok ").count(), tap.matches(&format!(" # SKIP {headline}\n")).count()), (1, 15));
    let markdown = weft_suites::report::markdown(&report).unwrap();
    assert!(markdown.starts_with(&format!("# weft: gone\n\n**{headline}. ")), "{markdown}");
}

#[tokio::test]
async fn a_name_without_an_address_is_the_headline() {
    // RFC 6761 section 6.4: a name that ends with `.invalid` never resolves.
    let text = "name = \"gone\"\nkind = \"tcp\"\naddress = \"nic.invalid:7174\"\n";
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::from_toml("t.toml", text).unwrap(), out.path()).await;
    assert_all(&report, Verdict::Inconclusive);
    let headline = report.summary.target_down.as_deref().unwrap();
    assert!(headline.starts_with("target is down: nic.invalid:7174 cannot be resolved: "), "{headline}");
    assert!(report.results.iter().all(|result| result.steps.is_empty()));
}

/// If a target goes away in the middle of a run, each case tries to connect to it, because the
/// target can come back.
#[tokio::test]
async fn a_target_that_goes_away_is_tried_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let text = format!("name = \"mortal\"\nkind = \"tcp\"\naddress = \"{address}\"\n");
    let once = tokio::spawn(async move { drop(listener.accept().await.unwrap()) });
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::from_toml("t.toml", &text).unwrap(), out.path()).await;
    once.await.unwrap();
    assert_all(&report, Verdict::Inconclusive);
    assert!(report.results.iter().all(|result| !result.steps.is_empty()));
    let headline = report.summary.target_down.unwrap();
    let begin = format!("target is down: {address} refused the connection after {CASE}[octet=");
    assert!(headline.starts_with(&begin), "{headline}");
}

/// A server that closes each connection immediately.
struct ClosingServer {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl ClosingServer {
    fn start(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = ends.clone();
        let thread = std::thread::spawn(move || {
            while !is_over.load(Relaxed) {
                drop(listener.accept().unwrap());
            }
        });
        ClosingServer { address, ends, thread }
    }

    /// Returns when the address refuses connections.
    fn stop(self) {
        self.ends.store(true, Relaxed);
        // The thread waits for a connection. If it has just ended, the connection is refused.
        let _ = TcpStream::connect(self.address);
        self.thread.join().unwrap();
    }
}

/// The target refuses connections only while the last case runs. So it is not down.
#[tokio::test]
async fn a_target_that_is_back_at_the_end_is_not_down() {
    let server = ClosingServer::start(SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = server.address;
    let server = Arc::new(Mutex::new(Some(server)));
    let [first, last] = ["0", "1"].map(|octet| format!("{CASE}[octet={octet}]"));
    let (server_of_run, last_of_run) = (server.clone(), last.clone());
    let sink = move |event: &Event| match event {
        Event::CaseStarted { key, .. } if key.to_string() == last_of_run => {
            let stopped = server_of_run.lock().unwrap().take();
            stopped.unwrap().stop();
        }
        Event::CaseFinished { result } if result.key.to_string() == last_of_run => {
            *server_of_run.lock().unwrap() = Some(ClosingServer::start(address));
        }
        _ => {}
    };
    let text = format!("name = \"mortal\"\nkind = \"tcp\"\naddress = \"{address}\"\n");
    let out = tempfile::tempdir().unwrap();
    let options = RunOptions {
        target: Target::from_toml("t.toml", &text).unwrap(),
        suites: Suites::embedded().unwrap(),
        filter: Filter::of([first, last]),
        out: out.path().to_owned(),
        seed: Some(7),
        cancel: None,
    };
    let report = weft_suites::run(options, Arc::new(sink)).await.unwrap();
    server.lock().unwrap().take().unwrap().stop();
    let [reached, refused] = &report.results[..] else { panic!("{report:?}") };
    assert!(reached.steps.iter().any(|step| step.connection > 0), "{reached:?}");
    assert!(refused.explanation.contains("not reached"), "{}", refused.explanation);
    assert_eq!(report.summary.target_down, None);
    assert_eq!(report.summary.exit_code, ExitCode::Inconclusive);
}

#[tokio::test]
async fn a_case_for_initiators_is_not_applicable() {
    let out = tempfile::tempdir().unwrap();
    let folder = one_case(out.path(), "");
    let script = std::fs::read_to_string(folder.join("mpa/x.lua")).unwrap().replace("responder", "initiator");
    std::fs::write(folder.join("mpa/x.lua"), script).unwrap();
    let suites = Suites::from_folder(&folder).unwrap();
    let (report, _) = run(Target::builtin(), suites, Filter::everything(), out.path()).await;
    assert_eq!(report.results[0].verdict, Verdict::NotApplicable);
    assert_eq!(report.summary.exit_code, ExitCode::NothingRun);
}

#[tokio::test]
async fn an_empty_selection_is_reported() {
    let out = tempfile::tempdir().unwrap();
    let suites = Suites::embedded().unwrap();
    let (report, events) = run(Target::builtin(), suites, Filter::of(["no-such-case"]), out.path()).await;
    assert_eq!((report.results.len(), report.summary.exit_code), (0, ExitCode::NothingRun));
    assert!(matches!(&events[..], [Event::RunStarted { .. }, Event::RunFinished { .. }]));
}

#[tokio::test]
async fn events_report_the_complete_run_in_order() {
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of([format!("{CASE}[octet=0]"), format!("{CASE}[octet=1]")]);
    let (report, events) = run(Target::builtin(), Suites::embedded().unwrap(), filter, out.path()).await;
    let (mut started, mut finished) = (Vec::new(), Vec::new());
    let mut steps = 0;
    for event in &events {
        match event {
            Event::RunStarted { planned, .. } => assert_eq!(planned.len(), 2),
            Event::CaseStarted { index, key } => {
                assert_eq!(*index, started.len() as u64);
                started.push(key);
            }
            Event::CaseStep { key, .. } => {
                assert_eq!(started.last(), Some(&key), "one case at a time");
                steps += 1;
            }
            // It is possible that the next case has begun while weft wrote the evidence of this
            // case to the disk.
            Event::CaseFinished { result } => {
                assert_eq!(started.get(finished.len()), Some(&&result.key));
                finished.push((**result).clone());
            }
            Event::RunFinished { summary } => assert_eq!(*summary, report.summary),
            Event::TargetWaiting { .. } => panic!("nobody waits here"),
            Event::TargetDown { headline } => panic!("{headline}"),
        }
    }
    assert_eq!(steps, report.results.iter().map(|result| result.steps.len()).sum::<usize>());
    assert_eq!(finished, report.results);
}

/// RFC 5040 section 7.1: a Terminate reports an error in an incoming message.
#[tokio::test]
async fn a_read_request_that_is_refused_without_a_terminate_fails_its_rule() {
    let target = Target::builtin().with_deviations(["rdmap.skips-terminate"]).unwrap();
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["rdmap/5.2-read/size-of-request"]);
    let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    assert_eq!(report.results.len(), 6);
    for result in &report.results {
        let failing: Vec<_> = result.failing().collect();
        assert_eq!(failing, [requirement!("RDMAP-7.1-2")], "{}: {}", result.key, result.explanation);
    }
}

/// If an STag cannot be invalidated, the Terminate must come before the answer to the next message.
/// A Terminate that comes when the connection ends is too late.
#[tokio::test]
async fn a_read_after_an_invalid_invalidate_is_not_answered() {
    for deviation in ["rdmap.overlooks-invalidate", "rdmap.delays-terminate"] {
        let target = Target::builtin().with_deviations([deviation]).unwrap();
        let out = tempfile::tempdir().unwrap();
        let filter = Filter::of(["rdmap/7.2-messages/invalidate[opcode=4,stag=unknown]"]);
        let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
        let result = &report.results[0];
        assert_eq!(result.verdict, Verdict::Fail, "{deviation}: {}", result.explanation);
        assert!(result.failing().any(|row| row == requirement!("RDMAP-5.3-10")), "{deviation}: {}", result.explanation);
        assert_eq!(result.actual.as_deref(), Some("it sent an FPDU with RDMA Read Response (24 bytes)"), "{deviation}");
    }
}

/// The target sends its Terminate too late: after the answer, and after the tester has closed.
#[tokio::test]
async fn a_delayed_terminate_comes_when_the_tester_closes() {
    let body = "local conn, op = t:operate()\n\
        conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = ('w'):rep(16), msn = op.msn, opcode = 4, invalidate_stag = op.stag ~ 0xffffffff } }\n\
        .. mpa.fpdu { ulpdu = rdmap.read_request { sink_stag = 7, rdmardsz = 4, src_stag = op.stag, src_to = op.to } })\n\
        conn:expect_fpdu { opcode = 2 } conn:finish() conn:expect_fpdu { opcode = 7 } conn:expect_close()\n\
        t:check(true, { requirement = 'MPA-7.1.1-2', expected = 'x', actual = 'y' }) t:liveness()";
    let folder = tempfile::tempdir().unwrap();
    let suites = one_case(folder.path(), body);
    let script = std::fs::read_to_string(suites.join("mpa/x.lua")).unwrap();
    let roles = "roles = { 'responder' }";
    std::fs::write(suites.join("mpa/x.lua"), script.replace(roles, &format!("{roles}, capabilities = {{ 'rping' }}")))
        .unwrap();
    let target = Target::builtin().with_deviations(["rdmap.delays-terminate"]).unwrap();
    let suites = Suites::from_folder(&suites).unwrap();
    let (report, _) = run(target, suites, Filter::everything(), &folder.path().join("out")).await;
    assert_eq!(report.results[0].verdict, Verdict::Pass, "{}", report.results[0].explanation);
}

/// An e-mail of 2007 proposed rules that RFC 6581 later replaced. So if a target violates only a
/// rule of the e-mail, no case fails.
#[tokio::test]
async fn a_breach_of_the_proposal_alone_fails_nothing() {
    let target = Target::builtin().with_deviations(["mpa.never-times-out-fpdu"]).unwrap();
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["P2P-mail.6-1"]);
    let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    let result = &report.results[0];
    assert_eq!(result.verdict, Verdict::Unimplemented, "{}", result.explanation);
    assert!(result.explanation.ends_with("a note, not a failure."), "{}", result.explanation);
    assert_eq!((report.summary.failing.len(), report.summary.counts.fail), (0, 0));
}

/// The target file in README.md is sufficient to find a firmware that does not check CRCs.
#[tokio::test]
async fn the_target_file_of_the_readme_finds_unchecked_crcs() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let (_, block) = readme.split_once("```toml\nname = \"nic-17\"").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let connection = weft_peer::Settings {
        deviations: weft_peer::hostile::Deviations::from_names(["mpa.accepts-bad-crc"]).unwrap(),
        ..weft_peer::Settings::default()
    };
    let settings = weft_peer::driver::serve::ServerSettings { connection, ..Default::default() };
    let server = weft_peer::driver::serve::Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let (address, stop) = (server.local_addr(), server.stop_handle());
    let serving = tokio::spawn(server.run());
    let text = format!("name = \"nic-17\"{block}").replace("192.0.2.17:7174", &address.to_string());
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["mpa/4.4-crc/bad-first", "mpa/4.4-crc/bad-later"]);
    let target = Target::from_toml("nic-17.toml", &text).unwrap();
    let (report, _) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    stop.stop();
    serving.await.unwrap();
    assert_eq!(report.summary.counts.fail, 8, "{:?}", report.summary);
}

/// If no service runs on the target, a Read of zero bytes shows that the target does not check
/// CRCs.
#[tokio::test]
async fn unchecked_crcs_are_found_without_a_service() {
    let case = "mpa/4.4-crc/bad-read";
    let good = result_of(Target::builtin(), case).await;
    assert_eq!(good.verdict, Verdict::Pass, "{}", good.explanation);
    let bad = result_of(Target::builtin().with_deviations(["mpa.accepts-bad-crc"]).unwrap(), case).await;
    assert_eq!(bad.verdict, Verdict::Fail, "{}", bad.explanation);
    assert!(bad.failing().any(|row| row == requirement!("MPA-4.4-19")), "{}", bad.explanation);
}
