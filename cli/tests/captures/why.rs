//! Tests `weft why` with captures of the project.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const TERMINATE: &str = "rping-size-mismatch-terminate.pcap";

/// Runs `weft why` in the folder of the captures. Returns its exit code and its output.
fn why(arguments: &[&str]) -> (i32, String) {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = command.arg("why").args(arguments).current_dir(captures).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_first_line_is_the_answer() {
    let (code, text) = why(&[TERMINATE]);
    assert_eq!(code, 1, "{text}");
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("connection 0, 10.1.0.2:"), "{text}");
    assert!(text.contains("(frame 13)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert!(text.lines().last().unwrap().starts_with(&format!("{TERMINATE}: 1 connection, 1 problem")), "{text}");
}

#[test]
fn json_has_an_object_per_connection_and_the_counts() {
    let (code, text) = why(&["--json", TERMINATE, "refused-no-listener.pcap"]);
    assert_eq!(code, 1, "{text}");
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["connection", "summary", "connection", "summary"]);
    assert_eq!((&objects[0]["cause"], &objects[2]["cause"]), (&"own_read_request".into(), &"refused".into()));
}

#[test]
fn options_select_connections() {
    assert_eq!(why(&["--stream", "0", TERMINATE]).0, 1);
    assert_eq!(why(&["--connection", "9", TERMINATE]).0, 2);
    assert_eq!(why(&["-Y", "ip.src == 10.1.0.1", TERMINATE]).0, 1);
    assert_eq!(why(&["-Y", "ip.src == 10.9.9.9", TERMINATE]).0, 2);
}
