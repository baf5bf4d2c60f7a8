//! Tests the exploration, which runs random sessions against a target. The builtin targets pass
//! every session. The exploration finds a target that deviates after several segments, after
//! several messages or after an error, and reduces the session to a case that fails again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weft_suites::Filter;
use weft_suites::explore::{Exploration, ExploreError, ExploreOptions, Outcome, explore};
use weft_suites::model::{Direction, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

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
    let targets = [(Target::builtin(), 40), (Target::builtin_initiator(), 20), (Target::builtin_tcp(), 8)];
    for (target, sessions) in targets {
        let out = tempfile::tempdir().unwrap();
        let found = explored(target, out.path(), sessions).await;
        let explanations: Vec<&str> = found.failures.iter().map(|found| found.result.explanation.as_str()).collect();
        assert!(explanations.is_empty(), "{explanations:?}");
        assert_eq!((found.progress.sessions, found.progress.undecided), (sessions, 0), "{:?}", found.stopped);
        assert!(found.progress.steps > sessions);
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
        ("mpa.accepts-bad-crc", 40, 1),
        // Only the monitor (the dissector with its rules) notices that MO is wrong.
        ("ddp.mo-constant", 15, 3),
        // To find this deviation, a session needs an SDP message with a wrong format.
        ("sdp.overlooks-malformed", 100, 1),
        // A session without steps also repeats a PMReq.
        ("pm.gives-anew", 2, 0),
        // To find this deviation, a session needs a PMReq with a reserved IPV.
        ("pm.takes-any-ipv", 25, 1),
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

/// The process of an endpoint in `interop/mutants` that other authors wrote only from the
/// specifications. The process ends when this value is dropped.
struct Endpoint {
    child: Child,
    target: Target,
}

impl Endpoint {
    /// Starts `interop/mutants/FOLDER/endpoint.py` with these arguments, and with this bug or
    /// without a bug. `fields` are further lines of the target file.
    fn start(folder: &str, arguments: &[&str], bug: Option<&str>, fields: &str) -> Self {
        let mutants = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../interop/mutants");
        let mut command = Command::new("python3");
        command.arg(mutants.join(folder).join("endpoint.py")).args(["--listen", "127.0.0.1:0"]).args(arguments);
        command.args(bug.map(|bug| ["--bug", bug]).iter().flatten()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let text = format!(
            "name = \"endpoint\"\nkind = \"tcp\"\naddress = \"{}\"\ntime_scale = 0.3\n{fields}",
            address.trim()
        );
        Endpoint { child, target: Target::from_toml("endpoint.toml", &text).unwrap() }
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
