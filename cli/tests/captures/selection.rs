//! Tests `weft lint` with options that select a part of a capture.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const CAPTURE: &str = "host-matrix.pcap";

fn lint(arguments: &[&str]) -> Output {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["lint", CAPTURE, "--json"]).args(arguments).current_dir(captures).output().unwrap()
}

/// Returns the findings of the output, without the line of counts after them.
fn findings(arguments: &[&str]) -> Vec<Value> {
    let output = lint(arguments);
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counts = objects.pop().unwrap();
    let sum: u64 = ["error", "warning", "note"].iter().map(|severity| counts[severity].as_u64().unwrap()).sum();
    let shown: u64 =
        objects.len() as u64 + if arguments.contains(&"note") { 0 } else { counts["note"].as_u64().unwrap() };
    assert_eq!(sum, shown, "{counts}");
    assert_eq!(output.status.code(), Some(i32::from(!objects.is_empty())));
    // The numbers of the problems depend on the other findings of the output.
    for object in &mut objects {
        object.as_object_mut().unwrap().remove("problem");
    }
    objects
}

#[test]
fn only_the_findings_of_the_selection_count() {
    let of_41 = |finding: &Value| finding["stream"] == 41;
    let expected: Vec<Value> = findings(&["--level", "note"]).into_iter().filter(of_41).collect();
    assert!(expected.len() > 3);
    assert_eq!(findings(&["--level", "note", "--stream", "41"]), expected);
    assert_eq!(findings(&["--level", "note", "-Y", "tcp.stream == 41"]), expected);
    let expected: Vec<Value> = expected.into_iter().filter(|finding| finding["requirement"] == "DDP-4.1-12").collect();
    let filter = "finding.requirement == \"DDP-4.1-12\"";
    assert_eq!(findings(&["--level", "note", "--stream", "41", "-Y", filter]), expected);
    // Frame 453 has a wrong version. The connection has other findings, too.
    let of_453 = findings(&["-Y", "frame.number == 453"]);
    assert!(of_453.len() > 1 && of_453.iter().all(|finding| finding["frame"] == 453), "{of_453:?}");
}

#[test]
fn a_selection_without_anything_to_judge_has_no_verdict() {
    for arguments in [["--stream", "999"], ["-Y", "tcp.port == 1"]] {
        let output = lint(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        let why = "nothing to judge, because the selection has no iWARP, SDP or port mapper messages";
        let line = format!("weft: {CAPTURE}: {why}\n");
        assert_eq!(stderr, line);
    }
    let output = lint(&["-Y", "tcp.strem == 1"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
}
