//! Tests the results of `weft target check`.

use std::sync::Arc;

use weft_suites::model::Event;
use weft_suites::targets::{Probe, Target, check};

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
async fn an_unreachable_target_is_reported() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = format!("name = \"gone\"\nkind = \"tcp\"\naddress = \"{address}\"\n");
    let probes = check(&Target::from_toml("gone.toml", &file).unwrap(), Arc::new(|_: &Event| {})).await.unwrap();
    assert_eq!((probes.len(), probes[0].works), (1, Some(false)));
    assert!(probes[0].text.contains("cannot connect"), "{probes:?}");
}

/// The examples of the guide are valid target files.
#[test]
fn the_examples_of_the_guide_are_targets() {
    let guide = include_str!("../../suites/TARGETS.md");
    let examples: Vec<&str> = guide.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 6);
    for example in &examples {
        Target::from_toml("guide.toml", example).unwrap();
    }
    assert!(examples[1].contains("[[baseline]]"));
}
