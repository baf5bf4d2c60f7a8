//! `weft ping` with itself: both roles as processes, and what each saw of the wire under the monitor.
#![allow(clippy::unwrap_used, reason = "a helper of a test may stop it")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// A server for one client; gives its process and its port.
fn server(options: &[&str]) -> (std::process::Child, String) {
    let listen = ["ping", "-s", "-a", "127.0.0.1", "-p", "0"];
    let mut server =
        Command::new(WEFT).args(listen).args(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    server.stderr = Some(stderr.into_inner());
    let port = line.trim().rsplit_once(':').unwrap().1.to_owned();
    (server, port)
}

#[test]
fn both_sides_see_a_clean_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (mine, its) = (folder.path().join("client.pcapng"), folder.path().join("server.pcapng"));
    let (server, port) = server(&["-v", "--write", its.to_str().unwrap()]);
    let client = ["ping", "-c", "-a", "127.0.0.1", "-p", &port, "-V", "-C", "100", "-S", "500", "--json", "--trace"];
    let client = Command::new(WEFT).args(client).arg("--write").arg(&mine).output().unwrap();
    let trace = String::from_utf8(client.stderr).unwrap();
    assert!(client.status.success(), "{trace}");
    let summary: Value = serde_json::from_slice(&client.stdout).unwrap();
    assert_eq!((&summary["rounds"], &summary["validated"]), (&Value::from(100), &Value::from(true)));
    // Request and Reply, then each round's Send, Read Request, Read Response, Send, Send, Write, Send.
    let count = |what: &str| trace.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count("MPA Request"), count("MPA Reply")), (1, 1));
    assert_eq!((count("  Send  QN 0"), count("RDMA Read Request"), count("16 octets")), (400, 100, 400));
    let server = server.wait_with_output().unwrap();
    assert!(server.status.success());
    assert_eq!(String::from_utf8(server.stdout).unwrap().lines().count(), 100);
    for capture in [mine, its] {
        let lint = Command::new(WEFT).args(["lint", "--json"]).arg(capture).output().unwrap();
        let summary: Value = serde_json::from_slice(lint.stdout.trim_ascii()).unwrap();
        let counts = [&summary["error"], &summary["warning"], &summary["note"]];
        assert_eq!(counts, [&Value::from(0); 3], "{summary}");
    }
}

#[test]
fn exit_codes_tell_usage_from_an_unreachable_peer() {
    let status = |arguments: &[&str]| Command::new(WEFT).arg("ping").args(arguments).output().unwrap().status.code();
    assert_eq!(status(&["-c", "-a", "127.0.0.1", "-S", "22"]), Some(2));
    assert_eq!(status(&["-c"]), Some(2));
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    assert_eq!(status(&["-c", "-a", "127.0.0.1", "-p", &port]), Some(3));
}
