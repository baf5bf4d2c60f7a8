//! Tests `weft probe` as client and as server: messages and exit codes. The monitor (`weft lint`)
//! reads the captures.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

fn server(options: &[&str]) -> (Child, String) {
    server_for_people(&[&["--json"], options].concat())
}

/// Starts a server that prints text for people instead of JSON. Returns its process and its port.
fn server_for_people(options: &[&str]) -> (Child, String) {
    let listen = ["probe", "-s", "-a", "127.0.0.1", "-p", "0"];
    let mut server =
        Command::new(WEFT).args(listen).args(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit_once(':').unwrap().1.to_owned();
    (server, port)
}

fn client(port: &str, options: &[&str]) -> Output {
    let connect = ["probe", "-c", "-a", "127.0.0.1", "-p", port, "--json"];
    Command::new(WEFT).args(connect).args(options).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn is_clean(capture: &Path) -> bool {
    Command::new(WEFT).arg("lint").arg(capture).output().unwrap().status.success()
}

#[test]
fn both_sides_report_the_same_and_the_wire_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("client.pcapng");
    let (server, port) = server(&["--echo", "--text", "hello"]);
    let ops = ["send:65536", "recv", "write:65536:7", "read:65536:7", "--write", capture.to_str().unwrap()];
    let client = client(&port, &ops);
    let server = server.wait_with_output().unwrap();
    assert_eq!((client.status.code(), server.status.code()), (Some(0), Some(0)), "{client:?} {server:?}");
    let (mine, its) = (lines(&client), lines(&server));
    assert_eq!((&mine[0]["kind"], &mine[0]["text"]), (&Value::from("connected"), &Value::from("hello")));
    let of = |all: &[Value], kind: &str| all.iter().filter(|line| line["kind"] == kind).cloned().collect::<Vec<_>>();
    // The FNV-1a hash of 65,536 bytes, of which byte i is 13 i + 5. The value comes from a run of
    // siwprobe (the same probe with libibverbs) on siw.
    let hash = Value::from("b8d228a3e2982325");
    assert_eq!((&of(&mine, "received")[0]["fnv"], &of(&its, "received")[0]["fnv"]), (&hash, &hash));
    assert_eq!(of(&mine, "operation").last().unwrap()["fnv"], hash, "what was written is read back");
    assert!(is_clean(&capture));
}

#[test]
fn a_refusal_is_reported_with_its_terminate() {
    let (server, port) = server(&["--rights", "r"]);
    let client = client(&port, &["write:100", "end"]);
    let server = server.wait_with_output().unwrap();
    assert_eq!((client.status.code(), server.status.code()), (Some(1), Some(1)));
    for (output, sent) in [(client, false), (server, true)] {
        let ended = lines(&output).pop().unwrap();
        let terminate = &ended["terminate"];
        let code = ["layer", "type", "code"].map(|part| terminate[part].as_u64().unwrap());
        assert_eq!((code, terminate["sent"].as_bool()), ([1, 1, 2], Some(sent)), "{ended}");
    }
}

/// A peer that neither sends nor closes does not stop the client forever.
#[test]
fn waiting_for_the_peer_has_a_limit() {
    for (options, operations, message) in [
        (&["--echo"][..], &["send:100", "end"][..], "the peer sent the same bytes back, and did not end"),
        (&[], &["send:100", "end"], "the peer did not end the connection within 1 s; --wait changes this limit"),
        (&[], &["recv"], "no message arrived within 1 s; --wait changes this limit"),
    ] {
        let (server, port) = server(options);
        let client = client(&port, &[operations, &["--wait", "1"]].concat());
        let server = server.wait_with_output().unwrap();
        assert_eq!((client.status.code(), server.status.code()), (Some(1), Some(0)), "{client:?} {server:?}");
        let stderr = String::from_utf8_lossy(&client.stderr);
        assert!(stderr.contains(message), "{stderr}");
    }
}

/// Private data comes from the peer. It must not begin a line or control the terminal.
#[test]
fn control_characters_of_private_data_are_shown() {
    let line = "the connection ended by a close of both sides";
    let (shown, hostile) = (format!("busy\\x0a{line}\\x1b[2J"), format!("busy\n{line}\x1b[2J"));
    let (server, port) = server_for_people(&["--reject", "--text", &hostile]);
    let client = ["probe", "-c", "-a", "127.0.0.1", "-p", &port, "send:1", "--text", &hostile];
    let client = Command::new(WEFT).args(client).output().unwrap();
    let server = server.wait_with_output().unwrap();
    let text = |output: Output| String::from_utf8(output.stdout).unwrap();
    assert_eq!(text(client), format!("rejected by the peer: {shown}\n"));
    assert_eq!(text(server), format!("request rejected: {shown}\n"));
}

#[test]
fn a_rejection_brings_its_text() {
    let (server, port) = server(&["--reject", "--text", "busy"]);
    let client = client(&port, &["send:1", "--text", "hello"]);
    let server = server.wait_with_output().unwrap();
    assert_eq!((client.status.code(), server.status.code()), (Some(3), Some(0)));
    assert_eq!(lines(&client)[0], serde_json::json!({ "kind": "rejected", "text": "busy" }));
    assert_eq!(lines(&server)[0], serde_json::json!({ "kind": "requested", "text": "hello" }));
}

/// The server is killed while the client runs a workload that never ends. The client reports that
/// the connection ended. The test repeats this, because the server dies at a different point each
/// time.
#[test]
fn a_killed_peer_ends_the_connection() {
    for _ in 0..4 {
        let (mut server, port) = server(&[]);
        let connect = ["probe", "-c", "-a", "127.0.0.1", "-p", &port, "--json", "burst:write:60000:4294967295"];
        let mut client =
            Command::new(WEFT).args(connect).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut connected = String::new();
        BufReader::new(client.stdout.as_mut().unwrap()).read_line(&mut connected).unwrap();
        assert!(connected.contains("connected"), "{connected}");
        server.kill().unwrap();
        server.wait().unwrap();
        let client = client.wait_with_output().unwrap();
        assert_eq!(client.status.code(), Some(1), "{client:?}");
        assert!(String::from_utf8_lossy(&client.stderr).contains("the connection ended"), "{client:?}");
    }
}

#[test]
fn words_that_are_no_operation_are_usage() {
    for wrong in ["sent:1", "send:", "write:1:2:3:4"] {
        let output = client("1", &[wrong]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(wrong));
    }
}
