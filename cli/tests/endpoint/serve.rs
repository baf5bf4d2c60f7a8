//! Tests `weft serve`: the lines that it reports, and the errors if it cannot listen.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A Request of RFC 5044 section 7.1.1, with C=1, revision 1 and no private data.
const REQUEST: &[u8] = b"MPA ID Req Frame\x40\x01\x00\x00";

/// The text before the address of the workloads.
const SERVING: &str = "serving ping, probe, bench and cat on ";

/// A responder. It is killed at the end of the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(arguments: &[&str]) -> Serving {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.arg("serve").args(["--listen", "127.0.0.1:0"]).args(arguments);
    Serving(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

impl Serving {
    fn address(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim_end().strip_prefix("listening on ").unwrap().to_owned()
    }
}

/// Opens a connection, sends `octets`, and closes the sending half of the connection. Returns all
/// bytes that the responder sends.
fn connection(address: &str, octets: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(octets).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    back
}

#[test]
fn connections_are_reported_on_standard_error() {
    let mut serving = serve(&[]);
    let address = serving.address();
    assert!(connection(&address, REQUEST).starts_with(b"MPA ID Rep Frame"));
    let wrong_key = REQUEST.to_ascii_lowercase();
    assert_eq!(connection(&address, &wrong_key), b"");
    let log = BufReader::new(serving.0.stderr.take().unwrap());
    let mut lines: Vec<String> = log.lines().take(5).map(Result::unwrap).collect();
    // The lines about the end of a connection and about the beginning of the next can have any
    // order.
    lines.sort_by_key(|line| line[..4].to_owned());
    for (line, words) in lines.iter().zip([
        ["   1  127.0.0.1:", "TCP connected"],
        ["   1  127.0.0.1:", "MPA revision 1: CRC on, markers to the peer off, from the peer off"],
        ["   1  127.0.0.1:", "closed by the peer: FIN; 0 Sends received"],
        ["   2  127.0.0.1:", "TCP connected"],
        ["   2  127.0.0.1:", "(MPA-7.1.1-2); 0 Sends received"],
    ]) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
    }
}

/// Returns each listening command, with the arguments that set its address.
fn listening(host: &str, port: u16) -> Vec<Vec<String>> {
    let (address, port) = (format!("{host}:{port}"), port.to_string());
    let commands: [&[&str]; 6] = [
        &["serve", "--listen", &address],
        &["serve", "--listen", "127.0.0.1:0", "--workloads", &address],
        &["cat", "--listen", "-a", host, "-p", &port],
        &["ping", "-s", "-a", host, "-p", &port],
        &["probe", "-s", "-a", host, "-p", &port],
        &["sdp", "serve", "--listen", &address],
    ];
    commands.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
}

/// Returns the error of each listening command. The user can fix each of these errors.
fn refusals(host: &str, port: u16) -> Vec<String> {
    let refusal = |arguments: Vec<String>| {
        let run = Command::new(env!("CARGO_BIN_EXE_weft")).args(&arguments).output().unwrap();
        let text = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {text}");
        text
    };
    listening(host, port).into_iter().map(refusal).collect()
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let in_use =
        format!("weft: cannot listen on 127.0.0.1:{port}: port {port} is in use; use port 0 for a free port\n");
    for text in refusals("127.0.0.1", port) {
        assert_eq!(text, in_use);
    }
}

/// The default port of `weft ping` is the default port on which `weft serve` listens.
#[test]
fn its_clients_connect_to_its_port_by_default() {
    let help = |command: &str| {
        let run = Command::new(env!("CARGO_BIN_EXE_weft")).args([command, "--help"]).output().unwrap();
        String::from_utf8(run.stdout).unwrap()
    };
    assert!(help("serve").contains("serves ping, probe, bench and cat. The default is 127.0.0.1:7174"));
    for client in ["ping", "probe", "bench", "cat"] {
        let text = help(client);
        let port = text.split("--port").nth(1).and_then(|rest| rest.split("[default: ").nth(1)).unwrap();
        assert!(port.starts_with("7174]"), "{client}: {}", port.lines().next().unwrap());
    }
}

/// An echo service answers each Send, but performs no RDMA Reads and Writes. So a ping of this
/// service fails.
#[test]
fn a_ping_of_the_echo_is_no_success() {
    let mut serving = serve(&["--quiet"]);
    let address = serving.address();
    let port = address.rsplit_once(':').unwrap().1;
    let ping = ["ping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "2"];
    let run = Command::new(env!("CARGO_BIN_EXE_weft")).args(ping).output().unwrap();
    let text = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.code() == Some(1) && text.contains("it is an echo server, not a ping server"), "{text}");
}

/// RFC 5737: no host has an address of 192.0.2.0/24.
#[test]
fn an_address_of_another_machine_is_named() {
    for text in refusals("192.0.2.1", 7174) {
        assert_eq!(text, "weft: cannot listen on 192.0.2.1:7174: this machine does not have that address\n");
    }
}

/// One capture has the traffic of both ports: the echo service and the workloads.
#[test]
fn both_ports_are_written_to_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("served.pcapng").display().to_string();
    let mut serving = serve(&["--workloads", "127.0.0.1:0", "--write", &file]);
    let mut lines = BufReader::new(serving.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut after = |words: &str| lines.find_map(|line| line.strip_prefix(words).map(str::to_owned)).unwrap();
    let (echo, workloads) = (after("listening on "), after(SERVING));
    assert!(connection(&echo, REQUEST).starts_with(b"MPA ID Rep Frame"));
    let (host, port) = workloads.rsplit_once(':').unwrap();
    let weft = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).output().unwrap();
    assert!(weft(&["ping", "-c", "-a", host, "-p", port, "-C", "1"]).status.success());
    let killed = Command::new("kill").args(["-TERM", &serving.0.id().to_string()]).status().unwrap();
    assert!(killed.success() && serving.0.wait().unwrap().success());
    let text = String::from_utf8(weft(&["dissect", &file]).stdout).unwrap();
    let ports = [&echo, &workloads].map(|address| address.rsplit_once(':').unwrap().1);
    for port in ports {
        for (frame, from) in [("MPA Request", ""), ("MPA Reply", port)] {
            let is_it = |line: &str| line.contains(frame) && line.contains(&format!(":{port}")) && line.contains(from);
            assert!(text.lines().any(is_it), "{frame} on {port}: {text}");
        }
    }
}

/// Many silent clients use all descriptors. The responder waits until a client disconnects, and
/// then serves the next client.
#[test]
fn a_responder_out_of_descriptors_serves_on() {
    let script = format!("ulimit -n 24; exec {} serve --listen 127.0.0.1:0", env!("CARGO_BIN_EXE_weft"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut serving = Serving(command.spawn().unwrap());
    let address = serving.address();
    // Clients for which the responder has no descriptor wait in TCP's queue.
    let crowd: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(&address).unwrap()).collect();
    drop(crowd);
    assert!(connection(&address, REQUEST).starts_with(b"MPA ID Rep Frame"));
}

#[test]
fn the_software_rnic_deviates_too() {
    let mut serving = serve(&["--workloads", "127.0.0.1:0", "--deviate", "rdmap.version-0"]);
    let mut lines = BufReader::new(serving.0.stdout.take().unwrap()).lines();
    let address = lines.find_map(|line| line.unwrap().strip_prefix(SERVING).map(str::to_owned)).unwrap();
    let (host, port) = address.rsplit_once(':').unwrap();
    let ping = ["ping", "-c", "-a", host, "-p", port, "-C", "1", "--trace"];
    let run = Command::new(env!("CARGO_BIN_EXE_weft")).args(ping).output().unwrap();
    let text = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{text}");
    assert!(text.contains("RDMAP-4.1-3"), "{text}");
}

#[test]
fn a_seed_mangles_the_same_way_each_time() {
    let reply = |arguments: &[&str]| {
        let mut serving = serve(arguments);
        let address = serving.address();
        connection(&address, REQUEST)
    };
    let mangled = |seed| reply(&["--mangle", "flip=1", "--seed", seed]);
    assert_eq!(reply(&[]).len(), 20);
    assert_eq!(mangled("1"), mangled("1"));
    assert_ne!(mangled("1"), reply(&[]));
    assert_ne!(mangled("1"), mangled("2"));
    assert_eq!(reply(&["--mangle", "duplicate=1"]), reply(&[]).repeat(2));
    // Without `--seed`, the responder prints its random seed. The option `--seed` with this number
    // repeats the changes.
    let mut serving = serve(&["--mangle", "insert=1,cut=2"]);
    let address = serving.address();
    let back = connection(&address, REQUEST);
    let message = BufReader::new(serving.0.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(message.starts_with("weft: damaging the sent traffic with --mangle insert=1,cut=2 --seed "), "{message}");
    let seed = message.rsplit(' ').next().unwrap();
    assert_eq!(reply(&["--mangle", "insert=1,cut=2", "--seed", seed]), back);
}

/// The responder cuts its data into pieces and delays them, but both sides receive all data.
#[test]
fn cut_and_late_segments_arrive() {
    let mut serving = serve(&["--workloads", "127.0.0.1:0", "--mangle", "cut=1,delay=10", "--seed", "5"]);
    let mut lines = BufReader::new(serving.0.stdout.take().unwrap()).lines();
    let address = lines.find_map(|line| line.unwrap().strip_prefix(SERVING).map(str::to_owned)).unwrap();
    let (host, port) = address.rsplit_once(':').unwrap();
    let ping = ["ping", "-c", "-a", host, "-p", port, "-C", "3", "-S", "5000", "-V", "--mangle", "cut=1,delay=10"];
    let run = Command::new(env!("CARGO_BIN_EXE_weft")).args(ping).output().unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
}
