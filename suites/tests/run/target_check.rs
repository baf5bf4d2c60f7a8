//! Tests the results of `weft target check`.

use std::sync::Arc;

use weft_suites::Filter;
use weft_suites::model::{Event, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::{DiscoverError, Probe, Target, check, discover};

use crate::common::run;

fn text<'a>(probes: &'a [Probe], what: &str) -> &'a str {
    &probes.iter().find(|probe| probe.what == what).unwrap().text
}

#[tokio::test]
async fn the_builtin_responder_is_known_as_it_is() {
    for target in [Target::builtin(), Target::builtin_tcp()] {
        let probes = check(&target, Arc::new(|_: &Event| {})).await.unwrap();
        assert!(probes[..2].iter().all(|probe| probe.works == Some(true)), "{probes:?}");
        assert_eq!(text(&probes, "revision 1, C=1"), "Reply, revision 1, M=0 C=1 R=0");
        assert!(text(&probes, "revision 2, enhanced").starts_with("Reply, revision 2, M=0 C=1 R=0, IRD "));
        assert!(text(&probes, "revision 2, peer to peer").contains("ready to receive by "));
    }
}

#[tokio::test]
async fn facts_about_the_builtin_responder_are_found_out() {
    for target in [Target::builtin(), Target::builtin_tcp()] {
        let facts = discover(&target, Arc::new(|_: &Event| {})).await.unwrap();
        assert_eq!(facts.to_string(), "crc, markers, revision-1, revision-2; service echo");
        assert!(facts.has_known_service());
        assert_eq!(text(&facts.probes, "revision 1, C=1"), "Reply, revision 1, M=0 C=1 R=0");
    }
    let plain = discover(&Target::builtin_plain(), Arc::new(|_: &Event| {})).await.unwrap();
    assert_eq!(plain.to_string(), "crc, markers, revision-1; service echo");
}

/// The time-outs are reduced to a tenth, to make the test fast.
#[tokio::test]
async fn a_silent_target_has_no_facts() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let file = format!("name = \"silent\"\nkind = \"tcp\"\naddress = \"{address}\"\ntime_scale = 0.1\n");
    let target = Target::from_toml("silent.toml", &file).unwrap();
    let error = discover(&target, Arc::new(|_: &Event| {})).await.unwrap_err();
    assert!(matches!(error, DiscoverError::Silent(_)), "{error}");
    // A run reports this, and continues.
    let probed = target.complete(Arc::new(|_: &Event| {})).await.info().probed.unwrap();
    assert_eq!(probed, format!("nothing, because {error}"));
    drop(silent);
    let target = Target::from_toml("silent.toml", &file).unwrap();
    let error = discover(&target, Arc::new(|_: &Event| {})).await.unwrap_err().to_string();
    assert_eq!(error, format!("target is down: {address} refused the connection"));
    assert_eq!(target.clone().complete(Arc::new(|_: &Event| {})).await.info(), target.info());
}

#[tokio::test]
async fn an_unreachable_target_is_reported() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = format!("name = \"gone\"\nkind = \"tcp\"\naddress = \"{address}\"\n");
    let probes = check(&Target::from_toml("gone.toml", &file).unwrap(), Arc::new(|_: &Event| {})).await.unwrap();
    assert_eq!((probes.len(), probes[0].works), (1, Some(false)));
    assert!(probes[0].text.contains("cannot connect"), "{probes:?}");
}

/// If a driven socket does not execute a command, a case with this command is unimplemented.
#[tokio::test]
async fn a_command_that_the_driven_socket_lacks_is_named() {
    let text = "name = \"b\"\nkind = \"builtin\"\n[sdp]\ncommands = [\"send\"]\n";
    let out = tempfile::tempdir().unwrap();
    let (target, filter) = (Target::from_toml("b.toml", text).unwrap(), Filter::of(["sdp/9-transfer/target-writes"]));
    let report = run(target, Suites::embedded().unwrap(), filter, out.path()).await.0;
    let [result] = &report.results[..] else { panic!("{}", report.results.len()) };
    assert_eq!(result.verdict, Verdict::Unimplemented);
    assert_eq!(result.explanation, "The driven socket does not execute the command `mode`.");
}

/// The examples of the guide are valid target files.
#[test]
fn the_examples_of_the_guide_are_targets() {
    let guide = include_str!("../../suites/TARGETS.md");
    let examples: Vec<&str> = guide.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 8);
    for example in &examples {
        Target::from_toml("guide.toml", example).unwrap();
    }
    assert!(examples[1].contains("[[baseline]]"));
}
