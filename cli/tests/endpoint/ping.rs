//! Tests `weft ping`. Both roles, client and server, run as processes. The monitor (`weft lint`)
//! reads the captures that both processes write.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use serde_json::Value;
use weft_peer::driver::Device;
use weft_peer::driver::cm::CmSettings;
use weft_peer::memory::Access;
use weft_peer::mpa::PrivateData;
use weft_peer::verbs::{CompletedOperation, Node, RnicSettings};
use weft_peer::workload::ping::Advertisement;
use weft_peer::workload::{Endpoint, EndpointSettings, WorkloadError};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// Starts a server for one client. Returns its process and its port.
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
    // The trace first has the Request and the Reply. Each of the 100 rounds then has a Send, a Read
    // Request, a Read Response, two Sends, a Write and a Send.
    let count = |what: &str| trace.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count("MPA Request"), count("MPA Reply")), (1, 1));
    assert_eq!((count("  Send  QN 0"), count("RDMA Read Request"), count("16 bytes")), (400, 100, 400));
    let server = server.wait_with_output().unwrap();
    assert!(server.status.success());
    assert_eq!(String::from_utf8(server.stdout).unwrap().lines().count(), 100);
    // weft merges both captures. Together they are one complete connection.
    let both = Command::new(WEFT).args(["dissect", "-q"]).args([&mine, &its]).output().unwrap();
    let stderr = String::from_utf8(both.stderr).unwrap();
    assert!(stderr.contains(" 1 TCP connection, 2 start-up frames, "), "{stderr}");
    assert!(!stderr.contains("incomplete") && !stderr.contains("not captured"), "{stderr}");
    for capture in [mine, its] {
        let lint = Command::new(WEFT).args(["lint", "--json"]).arg(capture).output().unwrap();
        let summary: Value = serde_json::from_slice(lint.stdout.trim_ascii()).unwrap();
        let counts = [&summary["error"], &summary["warning"], &summary["note"]];
        assert_eq!(counts, [&Value::from(0); 3], "{summary}");
    }
}

/// Runs a client that performs two exchanges of rping, in which the server reads `data`.
async fn send_data(address: SocketAddr, data: &[u8]) -> Result<(), WorkloadError> {
    let (rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
    let mut client = Endpoint::new(&Device::new(rnic), EndpointSettings::default())?;
    let length = u32::try_from(data.len()).unwrap();
    let (region, received) = (client.register(data.len(), Access::ALL)?, client.register(32, Access::LOCAL)?);
    client.with_mut(region, |octets| octets.copy_from_slice(data))?;
    (0..2).try_for_each(|slot| client.post_receive(slot, received.part(slot * 16, 16)))?;
    client.connect(address, CmSettings::default(), &PrivateData::default()).await?;
    for _ in 0..2 {
        let place = Advertisement { address: region.remote(0), size: length };
        client.send(place.emit().to_vec())?;
        while client.completion().await?.operation != CompletedOperation::Receive {}
    }
    client.disconnect().await
}

#[test]
fn control_characters_of_the_data_are_shown() {
    let (server, port) = server(&["-v"]);
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    let data = b"one\nserver ping data: two\x1b[2J\t\xffthree\0";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(send_data(address, data)).unwrap();
    let output = server.wait_with_output().unwrap();
    let shown = "server ping data: one\\x0aserver ping data: two\\x1b[2J\\x09\u{fffd}three\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), shown);
}

#[test]
fn exit_codes_distinguish_usage_from_an_unreachable_peer() {
    let status = |arguments: &[&str]| Command::new(WEFT).arg("ping").args(arguments).output().unwrap().status.code();
    assert_eq!(status(&["-c", "-a", "127.0.0.1", "-S", "22"]), Some(2));
    assert_eq!(status(&["-c"]), Some(2));
    // This port was free a moment ago, so it has no listener.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    assert_eq!(status(&["-c", "-a", "127.0.0.1", "-p", &port]), Some(3));
}
