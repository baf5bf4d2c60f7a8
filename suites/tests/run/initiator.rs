//! Tests with targets that connect to the tester. The target is weft's own initiator, or a command
//! or a person starts it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weft_peer::Settings;
use weft_peer::driver::initiate::echo_client;
use weft_peer::driver::portmap::PmClient;
use weft_peer::hostile::Deviations;
use weft_peer::portmap::{ClientSettings, Query};
use weft_suites::model::{Capability, Event, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions, run};

use crate::common;

const REQUEST: &str = "mpa/7.1.1-request/fields";

/// Returns the verdicts of a run against the target, with their explanations. Leaves out cases that
/// do not apply.
async fn verdicts(target: Target, words: &[&str]) -> Vec<(String, Verdict, String)> {
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(words.iter().copied());
    let (report, _) = common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    let run = report.results.into_iter().filter(|result| result.verdict != Verdict::NotApplicable);
    run.map(|result| (result.key.to_string(), result.verdict, result.explanation)).collect()
}

#[tokio::test]
async fn the_builtin_initiator_passes_all_that_applies() {
    let results = verdicts(Target::builtin_initiator(), &["mpa", "mpa-p2p", "ddp", "rdmap"]).await;
    let wrong: Vec<_> = results.iter().filter(|result| result.1 > Verdict::Pass).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(results.iter().filter(|result| result.1 == Verdict::Pass).count() > 300);
}

/// The cases need the echo service or rping, with or without RFC 6581.
#[tokio::test]
async fn the_builtin_initiator_is_the_same_over_tcp() {
    let target = Target::resolve("builtin-initiator-tcp").unwrap();
    let cases = [REQUEST, "mpa/7.1.2-reply/accepted", "mpa-p2p/9-initiator/ready", "rdmap/5.2-read/bounds"];
    let results = verdicts(target, &cases).await;
    let wrong: Vec<_> = results.iter().filter(|result| result.1 != Verdict::Pass).collect();
    assert!(wrong.is_empty() && results.len() > 10, "{wrong:?}");
}

#[tokio::test]
async fn a_deviating_initiator_is_caught() {
    let target = Target::builtin_initiator().with_deviations(["mpa.request-key"]).unwrap();
    let results = verdicts(target, &[REQUEST]).await;
    assert_eq!(results.iter().map(|result| result.1).collect::<Vec<_>>(), [Verdict::Fail]);
}

/// An SDP socket that connects has the role initiator in its target file, so these cases must judge
/// this role.
#[tokio::test]
async fn cases_for_a_connecting_sdp_socket_judge_initiators() {
    let suites = Suites::embedded().unwrap();
    let of_socket = suites.cases().filter(|case| case.capabilities.contains(&Capability::SdpConnect));
    let cases: Vec<&str> = of_socket.map(|case| case.id.as_str()).collect();
    let results = verdicts(Target::builtin_initiator(), &cases).await;
    let wrong: Vec<_> = results.iter().filter(|result| result.1 != Verdict::Pass).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // The cases have no parameters.
    assert!(cases.len() == results.len() && cases.len() > 15, "{} of {cases:?}", results.len());
}

#[tokio::test]
async fn the_builtin_client_of_a_port_mapper_passes_all_that_applies() {
    let results = verdicts(Target::builtin_initiator(), &["sdp-pm"]).await;
    let wrong: Vec<_> = results.iter().filter(|result| result.1 != Verdict::Pass).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(results.len() > 20, "{}", results.len());
}

/// This test runs in real time, so it uses only cases without long waits.
#[tokio::test]
async fn the_builtin_client_of_a_port_mapper_is_the_same_over_udp() {
    let target = Target::resolve("builtin-initiator-tcp").unwrap();
    let (connects, asks, repeats) = ("sdp-pm/7.1-client/", "sdp-pm/7.4-client/", "sdp-pm/7.5-client/");
    let cases = [
        (connects, "sdp-address"),
        (connects, "denied"),
        (connects, "reset"),
        (connects, "not-kept"),
        (connects, "kept-1-s"),
        (asks, "asks"),
        (asks, "acknowledges"),
        (asks, "two-at-once"),
        (repeats, "unanswered"),
        (repeats, "accept-then-deny"),
    ];
    let cases: Vec<String> = cases.iter().map(|(file, name)| format!("{file}{name}")).collect();
    let results = verdicts(target, &cases.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let wrong: Vec<_> = results.iter().filter(|result| result.1 != Verdict::Pass).collect();
    assert!(wrong.is_empty() && results.len() == 12, "{wrong:?} of {}", results.len());
}

/// A target violates one requirement. The case about this requirement fails.
#[tokio::test]
async fn a_deviating_client_of_a_port_mapper_is_caught() {
    for (deviation, case, row) in [
        ("pm.request-time", "sdp-pm/7.4-client/asks", "PM-7.4-8"),
        ("pm.ack-left-out", "sdp-pm/7.4-client/acknowledges", "PM-7.4-30"),
        ("pm.connects-after-deny", "sdp-pm/7.1-client/denied", "PM-7.1-2"),
        ("pm.keeps-for-ever", "sdp-pm/7.1-client/kept-1-s", "PM-7.3.1.4-2"),
        ("pm.never-stops", "sdp-pm/7.5-client/gives-up", "PM-7.5.1-4"),
    ] {
        let target = Target::builtin_initiator().with_deviations([deviation]).unwrap();
        let results = verdicts(target, &[case]).await;
        assert!(results.iter().any(|result| result.1 == Verdict::Fail && result.2.contains(row)), "{results:?}");
    }
}

/// The target sends requests to the port mapper and does not connect. The user gets the addresses
/// of the port mapper and of the service. Cases that need a connection do not apply.
#[tokio::test]
async fn a_user_who_starts_a_client_gets_the_address_of_the_port_mapper() {
    let text =
        "name = \"nic\"\nkind = \"tcp\"\nrole = \"initiator\"\nlisten = \"127.0.0.1:0\"\nservice = \"port-mapper\"\n";
    let target = Target::from_toml("nic.toml", text).unwrap();
    assert_eq!(target.info().reached_by, "it sends port mapper requests to UDP 127.0.0.1:0");
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let into = prompts.clone();
    let client = PmClient::bind(ClientSettings::default(), None).unwrap();
    let person = move |event: &Event| {
        let Event::TargetWaiting { what, .. } = event else { return };
        into.lock().unwrap().push(what.clone());
        let ports: Vec<u16> =
            what.split("port ").skip(1).filter_map(|rest| rest.split(',').next()?.parse().ok()).collect();
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let ask = Query { mapper: at(*ports.last().unwrap()), service: at(ports[0]), connecting: at(40_001) };
        let client = client.clone();
        tokio::spawn(async move { client.resolve(ask).await.unwrap() });
    };
    let out = tempfile::tempdir().unwrap();
    let options = RunOptions {
        target,
        suites: Suites::embedded().unwrap(),
        filter: Filter::of(["sdp-pm/7.4-client/asks", "sdp-pm/7.1-client/denied"]),
        out: out.path().to_owned(),
        seed: Some(7),
        cancel: None,
    };
    let report = tokio::time::timeout(Duration::from_secs(60), run(options, Arc::new(person))).await.unwrap().unwrap();
    let verdicts: Vec<Verdict> = report.results.iter().map(|result| result.verdict).collect();
    assert_eq!(verdicts, [Verdict::NotApplicable, Verdict::Pass], "{:?}", report.results[1].explanation);
    let prompts = prompts.lock().unwrap();
    let expected = "start nic, which has to connect to address 127.0.0.1, port ";
    assert!(
        prompts.iter().all(|what| what.starts_with(expected))
            && prompts[0].contains(", and to query the port mapper at ")
    );
}

fn by_command(start: &str) -> Target {
    let text = format!("name = \"nic\"\nkind = \"tcp\"\nrole = \"initiator\"\nlisten = \"127.0.0.1:0\"\n{start}\n");
    Target::from_toml("nic.toml", &text).unwrap()
}

#[tokio::test]
async fn a_command_that_does_not_connect_is_reported() {
    for (start, word) in [
        ("start = [\"/nowhere/rping\"]", "the target's command does not start: /nowhere/rping"),
        ("start = [\"/bin/sh\", \"-c\", \"exit 3\"]", "ended, exit status: 3"),
    ] {
        let results = verdicts(by_command(start), &["mpa/7.1.2-reply/wrong-key", REQUEST]).await;
        assert!(results.iter().all(|result| result.1 == Verdict::Inconclusive), "{results:?}");
        assert!(results.iter().any(|result| result.2.contains(word)), "{word}: {results:?}");
    }
}

/// Each time that the run needs a connection, it shows the address to which the target must
/// connect.
#[tokio::test]
async fn each_connection_prompts_the_user() {
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let into = prompts.clone();
    let person = move |event: &Event| {
        let Event::TargetWaiting { what, seconds } = event else { return };
        assert!(*seconds > 0);
        into.lock().unwrap().push(what.clone());
        let port = what.rsplit_once("port ").unwrap().1.parse().unwrap();
        tokio::spawn(echo_client(([127, 0, 0, 1], port).into(), Settings::default()));
    };
    let out = tempfile::tempdir().unwrap();
    let options = RunOptions {
        target: by_command("service = \"echo\""),
        suites: Suites::embedded().unwrap(),
        filter: Filter::of(["mpa/7.1.2-reply/accepted[pieces=false]"]),
        out: out.path().to_owned(),
        seed: Some(7),
        cancel: None,
    };
    let report = tokio::time::timeout(Duration::from_secs(60), run(options, Arc::new(person))).await.unwrap().unwrap();
    assert_eq!(report.results[0].verdict, Verdict::Pass, "{}", report.results[0].explanation);
    let prompts = prompts.lock().unwrap();
    assert!(
        prompts.len() >= 2 && prompts[0].starts_with("start nic, which has to connect to address 127.0.0.1, port "),
        "{prompts:?}"
    );
}

/// Runs cases against `interop/basic/responder.py`, which is an initiator with a basic fault.
/// Returns `None` if this machine has no Python.
async fn verdicts_of_faulty(fault: &str, words: &[&str]) -> Option<Vec<(String, Verdict, String)>> {
    if !common::has("python3") {
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../interop/basic/responder.py");
    let start =
        format!("[\"python3\", \"{script}\", \"--connect\", \"{{address}}:{{port}}\", \"--fault\", \"{fault}\"]");
    let lines = format!("start = {start}\nservice = \"echo\"\ncapabilities = [\"crc\"]\ntime_scale = 0.3");
    Some(verdicts(by_command(&lines), words).await)
}

/// weft starts the initiator once more for the control. The basic case names the fault in the PAD,
/// and no other requirement fails.
#[tokio::test]
async fn a_failure_of_an_initiator_that_is_started_has_a_control() {
    let words = ["mpa/4-basic/pad[pad=1]", "ddp/4.1-control/last[first=4]", "mpa/7.1.2-reply/reserved[bits=1]"];
    let Some(results) = verdicts_of_faulty("none", &words).await else { return };
    assert!(results.iter().all(|result| result.1 == Verdict::Pass), "{results:?}");

    let Some(results) = verdicts_of_faulty("pad", &words).await else { return };
    let found: Vec<Verdict> = results.iter().map(|result| result.1).collect();
    assert_eq!(found, [Verdict::Fail, Verdict::Inconclusive, Verdict::Pass], "{results:?}");
    let explanation = &results[1].2;
    assert!(explanation.contains("The control run ") && explanation.contains("mpa/4-basic/pad"), "{explanation}");
}

/// The case sends a Reply with reserved bits. Its control sends a legal Reply instead.
#[tokio::test]
async fn a_reply_that_deviates_has_a_control() {
    let Some(results) = verdicts_of_faulty("mute", &["mpa/7.1.2-reply/reserved[bits=1]"]).await else { return };
    let (_, verdict, explanation) = &results[0];
    assert_eq!(*verdict, Verdict::Inconclusive, "{explanation}");
    assert!(explanation.contains("In the control run, after a legal MPA Reply, it "), "{explanation}");
}

/// A client of the port mapper never acknowledges. So a case cannot conclude that the client
/// rejects reserved fields.
#[tokio::test]
async fn an_answer_of_the_port_mapper_that_deviates_has_a_control() {
    // The client sends a PMReq from port 12345 for a service at 127.0.0.1, and then nothing.
    let client = r#"
        port=$(printf '%04x' "$3")
        rest=$(printf '\\x00%.0s' {1..12})
        handle='\x00\x00\x00\x00\x00\x00\x00\x01' local='\x7f\x00\x00\x01'
        printf "\x04\x00\x00\x00\x${port:0:2}\x${port:2:2}\x30\x39$handle$local$rest$local$rest" >"/dev/udp/$1/$2"
    "#;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("client.sh");
    std::fs::write(&script, client).unwrap();
    let start =
        format!("[\"bash\", \"{}\", \"{{mapper_address}}\", \"{{mapper_port}}\", \"{{port}}\"]", script.display());
    let target = by_command(&format!("start = {start}\nservice = \"port-mapper\"\ntime_scale = 0.1"));
    let results = verdicts(target, &["sdp-pm/7.4-client/any-reserved"]).await;
    let (_, verdict, explanation) = &results[0];
    assert_eq!(*verdict, Verdict::Inconclusive, "{explanation}");
    assert!(explanation.contains("In the control run, after a correct PMAccept, nothing"), "{explanation}");
}

/// A person starts the target, and a control would need another start. weft does not prompt for
/// this start. The report states that no control was run.
#[tokio::test]
async fn a_failure_of_a_target_that_a_person_starts_has_no_control() {
    let person = |event: &Event| {
        let Event::TargetWaiting { what, .. } = event else { return };
        let port = what.rsplit_once("port ").unwrap().1.parse().unwrap();
        let deviations = Deviations::from_names(["ddp.refuses-reserved-bits"]).unwrap();
        let settings = Settings { deviations, ..Settings::default() };
        tokio::spawn(echo_client(([127, 0, 0, 1], port).into(), settings));
    };
    let out = tempfile::tempdir().unwrap();
    let options = RunOptions {
        target: by_command("service = \"echo\""),
        suites: Suites::embedded().unwrap(),
        filter: Filter::of(["ddp/4.1-control/reserved[bits=4]"]),
        out: out.path().to_owned(),
        seed: Some(7),
        cancel: None,
    };
    let report = tokio::time::timeout(Duration::from_secs(60), run(options, Arc::new(person))).await.unwrap().unwrap();
    let result = &report.results[0];
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
    let expected =
        "weft made no control run (the case without its unusual step), because the target file has no `start`.";
    assert!(result.explanation.ends_with(expected), "{}", result.explanation);
}
