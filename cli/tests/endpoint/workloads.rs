//! Tests the workloads ping, probe, bench and cat. One process `weft serve` is the server for all
//! of them. Other tests run `weft cat` on both sides.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn weft(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).output().unwrap()
}

fn spawn(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns the port at the end of a line.
fn port(line: &str) -> String {
    line.trim().rsplit_once(':').unwrap().1.to_owned()
}

/// A server. It is killed at the end of the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server. Returns it with the port of its workloads.
fn server() -> (Server, String) {
    let mut server = spawn(&["serve", "--quiet", "--listen", "127.0.0.1:0", "--workloads", "127.0.0.1:0"]);
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let port = port(&lines.next().unwrap().unwrap());
    (Server(server), port)
}

#[test]
fn one_server_does_its_part_of_each() {
    let (_server, port) = server();
    let at = ["-a", "127.0.0.1", "-p", &port];
    let ping = weft(&[&["ping", "-c", "-V", "-C", "10"], &at[..]].concat());
    assert!(ping.status.success(), "{ping:?}");
    let probe = weft(&[&["probe", "-c", "send:100", "recv", "write:5", "read:5"], &at[..]].concat());
    assert!(probe.status.success(), "{probe:?}");
    let bench = ["bench", "--json", "--samples", "2", "--total", "1", "--both-ways"];
    let bench = weft(&[&bench[..], &at[..]].concat());
    let lines: Vec<Value> =
        String::from_utf8(bench.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let what: Vec<&str> = lines.iter().map(|line| line["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["write", "read", "send"]);
    assert!(lines.iter().all(|line| line["median"].as_f64().unwrap() > 0.0 && line["unit"] == "MB/s"), "{lines:?}");
    let latency = ["bench", "--json", "--samples", "1", "--rounds", "10", "--latency", "--op", "send"];
    let latency = weft(&[&latency[..], &at[..]].concat());
    let line: Value = serde_json::from_slice(&latency.stdout).unwrap();
    assert_eq!((&line["octets"], &line["unit"]), (&Value::from(4), &Value::from("us")));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let cat = weft(&[&["cat", file], &at[..]].concat());
    assert!(cat.status.success(), "{cat:?}");
    let length = fs::metadata(file).unwrap().len();
    assert!(String::from_utf8(cat.stderr).unwrap().contains(&format!("{length} bytes sent")));
    // The server has no data to send, and rejects the request.
    let pull = weft(&[&["cat", "--pull"], &at[..]].concat());
    assert_eq!(pull.status.code(), Some(3), "{pull:?}");
}

#[test]
fn bench_beside_tcp_reports_ratios() {
    let bench = weft(&["bench", "--json", "--samples", "1", "--total", "4", "--compare", "tcp", "--op", "write"]);
    let lines: Vec<Value> =
        String::from_utf8(bench.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["what"].as_str(), lines[1]["what"].as_str()), (Some("tcp"), Some("write")));
    let ratio = lines[1]["median"].as_f64().unwrap() / lines[0]["median"].as_f64().unwrap();
    assert!((lines[1]["of_tcp"].as_f64().unwrap() - ratio).abs() < 1e-9, "{lines:?}");
}

/// A measurement without messages is a usage error. The error for an unreachable peer names the
/// peer.
#[test]
fn a_measurement_of_nothing_is_refused() {
    for nothing in [["--total", "0"], ["--rounds", "0"], ["--size", "0"]] {
        let bench = weft(&[&["bench", "--samples", "1"], &nothing[..]].concat());
        assert_eq!((bench.status.code(), bench.stdout.len()), (Some(2), 0), "{bench:?}");
    }
    // The listener at this port is already closed.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    for command in ["bench", "cat"] {
        let run = weft(&[command, "-a", "127.0.0.1", "-p", &nobody]);
        let message = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(3), "{message}");
        assert!(message.starts_with(&format!("weft: cannot connect to 127.0.0.1:{nobody}: ")), "{message}");
    }
}

/// RFC 5044 section 7.1.1: if the ULP of the Responder rejects, the Reply has R=1.
#[test]
fn cat_rejects_a_peer_that_requests_no_stream() {
    let mut listening = spawn(&["cat", "--listen", "-p", "0"]);
    let mut line = String::new();
    let mut stderr = BufReader::new(listening.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let port = port(&line);
    let _listening = Server(listening);
    let mut peer = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    peer.write_all(b"MPA ID Req Frame\x40\x01\0\0").unwrap();
    let mut reply = Vec::new();
    peer.read_to_end(&mut reply).unwrap();
    assert_eq!(reply, b"MPA ID Rep Frame\x60\x01\0\x0bno weft cat");
    line.clear();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("the Request is not from `weft cat`"), "{line}");
}

/// The server of rping begins with an RDMA Read of the client's memory. An IRD of 0 forbids this
/// Read.
#[test]
fn an_impossible_ping_reports_the_reason() {
    let (_server, port) = server();
    let ping = weft(&["ping", "-c", "-C", "1", "--ird", "0", "--ord", "0", "-a", "127.0.0.1", "-p", &port]);
    let message = String::from_utf8(ping.stderr).unwrap();
    assert_eq!(ping.status.code(), Some(1), "{message}");
    assert!(message.starts_with("weft: IRD is 0: the server cannot Read at the start of each round"), "{message}");
}

/// The private data of a bench client is a plan of a few bytes, for which the server reserves two
/// regions of 64 MiB. Without a limit, 32 such plans use all memory of the device. So the server
/// rejects plans for which the memory has no room, and still serves smaller requests.
#[test]
fn a_peer_without_room_is_rejected() {
    let (_server, port) = server();
    let ask = |private_data: &[u8]| {
        let mut peer = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let length = u16::try_from(private_data.len()).unwrap().to_be_bytes();
        peer.write_all(&[b"MPA ID Req Frame\x40\x01", &length[..], private_data].concat()).unwrap();
        let mut reply = [0; 20];
        peer.read_exact(&mut reply).unwrap();
        (peer, reply)
    };
    let plan = b"weft-bench/1 write 67108864 1 bandwidth to 0@1";
    let answers: Vec<_> = (0..32).map(|_| ask(plan)).collect();
    let (served, rejected) = answers.split_at(7);
    assert!(served.iter().all(|(_, reply)| reply[16] & 0x20 == 0), "a plan that there is room for is rejected");
    for (peer, reply) in rejected {
        assert_eq!(*reply, *b"MPA ID Rep Frame\x60\x01\0\x07");
        let mut reason = String::new();
        (&mut &*peer).read_to_string(&mut reason).unwrap();
        assert_eq!(reason, "no room");
    }
    let at = ["-a", "127.0.0.1", "-p", &port];
    let ping = weft(&[&["ping", "-c", "-V", "-C", "1"], &at[..]].concat());
    assert!(ping.status.success(), "{ping:?}");
    let cat = weft(&[&["cat", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], &at[..]].concat());
    assert!(cat.status.success(), "{cat:?}");
}

/// The number of connections exceeds the number of start-ups that a listener accepts at the same
/// time.
#[test]
fn many_connections_move_data_at_once() {
    let bench = weft(&["bench", "--json", "--connections", "300", "--op", "send", "--size", "65536"]);
    let line: Value = serde_json::from_slice(&bench.stdout).unwrap();
    assert_eq!((&line["connections"], &line["count"]), (&Value::from(300), &Value::from(16)), "{bench:?}");
    assert!(line["kib_per_idle_end"].as_f64().unwrap() > 0.0);
}

#[test]
fn cat_carries_a_file_either_way_and_the_monitor_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let octets: Vec<u8> = (0..1_000_003u32).map(|n| (n % 253) as u8).collect();
    fs::write(path("original"), &octets).unwrap();
    for by in ["send", "write", "read"] {
        for pull in [false, true] {
            let (mine, its) = if pull { ("copy", "original") } else { ("original", "copy") };
            let (mine, its, capture) = (path(mine), path(its), path("capture.pcapng"));
            let mut listening = spawn(&["cat", "--listen", "-p", "0", &its]);
            let mut line = String::new();
            let mut stderr = BufReader::new(listening.stderr.take().unwrap());
            stderr.read_line(&mut line).unwrap();
            let port = port(&line);
            let mut arguments = vec!["cat", "-p", &port, "--by", by, "--write", &capture, &mine];
            arguments.extend(pull.then_some("--pull"));
            let cat = weft(&arguments);
            assert!(cat.status.success(), "{cat:?}");
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).unwrap();
            assert!(listening.wait().unwrap().success(), "{rest}");
            assert!(fs::read(path("copy")).unwrap() == octets, "{by} {pull}");
            fs::remove_file(path("copy")).unwrap();
            let lint = weft(&["lint", &capture]);
            assert!(lint.status.success(), "{by} {pull}: {}", String::from_utf8_lossy(&lint.stdout));
        }
    }
}
