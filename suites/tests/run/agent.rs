//! Tests cases that need an agent (a program that uses an RNIC for the tester). The agent runs in
//! the same process, or is not reachable, or is written in another language.

use crate::common::{has, run, with_all_steps};
use weft_suites::Filter;
use weft_suites::model::{CaseResult, Direction, StepKind, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

const RECEIVED: &str = "rdmap/3.2-delivered/length[size=1023]";
const POSTED: &str = "rdmap/5.1-posted/write[size=4096,to=5]";

/// The builtin targets in each role, inside weft's process and over TCP.
fn targets() -> [Target; 4] {
    ["builtin", "builtin-initiator", "builtin-tcp", "builtin-initiator-tcp"].map(|name| Target::resolve(name).unwrap())
}

async fn result(target: Target, key: &str) -> CaseResult {
    let out = tempfile::tempdir().unwrap();
    let (report, _) = run(target, Suites::embedded().unwrap(), Filter::of([key]), out.path()).await;
    let [result] = &report.results[..] else { panic!("{key}: {} results", report.results.len()) };
    with_all_steps(result, out.path())
}

#[tokio::test]
async fn all_builtin_targets_have_one() {
    for target in targets() {
        for key in [RECEIVED, POSTED] {
            let result = result(target.clone(), key).await;
            assert_eq!(result.verdict, Verdict::Pass, "{}: {key}: {}", target.name(), result.explanation);
        }
    }
}

#[tokio::test]
async fn steps_have_the_requests_and_events_of_the_agent_beside_the_wire() {
    let result = result(Target::builtin(), RECEIVED).await;
    let has_step = |direction, text: &str| {
        let mut steps = result.steps.iter().filter(|step| step.kind == StepKind::Agent && step.direction == direction);
        steps.any(|step| step.text.contains(text))
    };
    assert!(has_step(Direction::Sent, "post_receive"));
    assert!(has_step(Direction::Received, "\"operation\":\"receive\",\"octets\":1023"));
    let times: Vec<u64> = result.steps.iter().map(|step| step.at_ns).collect();
    assert!(times.is_sorted());
}

#[tokio::test]
async fn a_nic_that_reports_a_wrong_length_fails() {
    for target in targets() {
        let target = target.with_deviations(["rdmap.reports-one-byte-more"]).unwrap();
        let result = result(target, RECEIVED).await;
        assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
        assert!(result.explanation.contains("1024 bytes"), "{}", result.explanation);
    }
}

#[tokio::test]
async fn a_nic_that_writes_elsewhere_fails() {
    let target = Target::builtin().with_deviations(["ddp.to-overlaps"]).unwrap();
    let result = result(target, POSTED).await;
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
    let failed = result.requirements.iter().filter(|it| it.verdict == Verdict::Fail && !it.also_observed);
    assert_eq!(failed.map(|it| it.requirement.to_string()).collect::<Vec<_>>(), ["DDP-5.2-6"]);
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_no_verdict_on_the_target() {
    // Usually no server listens on the discard port of this host's loopback interface. If there is
    // one, it does not send JSON.
    let text = "name = \"nic\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\nagent = \"127.0.0.1:9\"\n";
    let result = result(Target::from_toml("nic.toml", text).unwrap(), RECEIVED).await;
    assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.explanation);
    assert!(result.explanation.starts_with("The agent "), "{}", result.explanation);
}

#[tokio::test]
async fn an_agent_whose_command_ends_has_its_exit_status() {
    let text = "name = \"nic\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\nagent = [\"/bin/sh\", \"-c\", \"exit 3\"]\n";
    let result = result(Target::from_toml("nic.toml", text).unwrap(), RECEIVED).await;
    assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.explanation);
    let ending = "has closed the control connection (the command that runs the agent has ended, exit status: 3)";
    assert!(result.explanation.contains(ending), "{}", result.explanation);
}

/// A line of an agent can have 1 MiB. The results of a run do not repeat it in each case.
#[tokio::test]
async fn a_long_reason_of_an_agent_is_shortened() {
    let answer = r#"read hello; printf '{"at":1,"answer":{"id":1,"failed":{"what":"%0100000d"}}}\n' 0; read end"#;
    let text = format!(
        "name = \"nic\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\nagent = [\"/bin/sh\", \"-c\", '''{answer}''']\n"
    );
    let result = result(Target::from_toml("nic.toml", &text).unwrap(), RECEIVED).await;
    assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.explanation);
    assert!(result.explanation.starts_with("The agent rejects the request: 000"), "{}", result.explanation);
    assert!(result.explanation.len() < 2000, "{}", result.explanation.len());
}

#[tokio::test]
async fn target_check_reports_the_agent() {
    let probe_agent = async |target: Target| {
        let probes =
            weft_suites::targets::check(&target, std::sync::Arc::new(|_: &weft_suites::model::Event| {})).await;
        let probes = probes.unwrap().into_iter().filter(|probe| probe.what.contains("agent"));
        probes.map(|probe| (probe.works, probe.text)).collect::<Vec<_>>()
    };
    for target in targets() {
        let [device, exchange] = probe_agent(target).await.try_into().unwrap();
        assert!(device.1.starts_with("weft0 (weft, firmware "), "{device:?}");
        assert_eq!((device.0, exchange), (Some(true), (Some(true), "works".to_owned())));
    }
    let text = "name = \"nic\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\nagent = [\"/nowhere/weft\"]\n";
    let [device] = probe_agent(Target::from_toml("nic.toml", text).unwrap()).await.try_into().unwrap();
    assert!(device.0 == Some(false) && device.1.contains("/nowhere/weft"), "{device:?}");
}

/// This agent is in another language, and was written only from docs/agent.md. The test shows that
/// the page is sufficient, and that weft requests nothing that the page does not describe.
#[tokio::test]
async fn an_agent_of_another_hand_is_driven() {
    if !has("python3") {
        return;
    }
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/../interop/agent-py/agent.py");
    let text = format!(
        "name = \"py\"\nkind = \"tcp\"\naddress = \"127.0.0.1:1\"\ncapabilities = [\"atomics\"]\nagent = [\"python3\", {agent:?}]\n"
    );
    let target = Target::from_toml("py.toml", &text).unwrap();
    let out = tempfile::tempdir().unwrap();
    let (report, _) = run(target.clone(), Suites::embedded().unwrap(), Filter::of([RECEIVED]), out.path()).await;
    assert_eq!(report.results[0].verdict, Verdict::Pass, "{}", report.results[0].explanation);
    // The agent serves no Atomic Operations, but the target file declares them.
    let differs = ["the target file declares atomics, but the device py0 has no Atomic Operations"];
    assert_eq!(report.summary.declared_otherwise, differs);
    assert_eq!(report.summary.exit_code.code(), 0);
    // The agent knows no driver.
    let facts: Vec<(&str, &str)> =
        report.run.target.device.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(facts[..2], [("device", "py0"), ("firmware", "1")]);
    assert!(facts.len() == 3 && facts[2].0 == "kernel", "{facts:?}");
    let probes = weft_suites::targets::check(&target, std::sync::Arc::new(|_: &weft_suites::model::Event| {})).await;
    let probes = probes.unwrap().into_iter().filter(|probe| probe.what == "device differs");
    assert_eq!(probes.map(|probe| probe.text).collect::<Vec<_>>(), differs);
}
