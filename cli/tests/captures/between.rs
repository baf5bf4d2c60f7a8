//! Tests `weft between`: as a TCP proxy on the loopback interface, and as a bridge of two
//! interfaces in new network namespaces. If a needed right or program is missing, a test prints the
//! reason and skips itself.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use socket2::SockRef;
use weft_between::frame::TcpFrame;
use weft_dissector::source::Capture;

use crate::skip::skip;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// After this time, a client that does not end is killed.
const MAX_PING_TIME: Duration = Duration::from_secs(10);

/// A child process. It is killed if it still runs at the end of the test.
struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts a command, and waits for a line with `word` on standard error. Also returns this
    /// line.
    fn start(command: &mut Command, word: &str) -> (Running, String) {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut running = Running { child, stderr };
        let mut printed = String::new();
        loop {
            let start = printed.len();
            let length = running.stderr.read_line(&mut printed).unwrap();
            assert!(length > 0, "{command:?} ended before it printed '{word}':\n{printed}");
            if printed[start..].contains(word) {
                let line = printed[start..].to_owned();
                return (running, line);
            }
        }
    }

    /// Interrupts the process, and returns its exit status, standard output and standard error.
    fn interrupt(mut self) -> (i32, String, String) {
        let killed = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code().unwrap(), stdout, stderr)
    }
}

fn weft(arguments: &[&str]) -> Command {
    let mut command = Command::new(WEFT);
    command.args(arguments);
    command
}

/// The port at the end of the first address in `line`.
fn port_in(line: &str) -> String {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect();
    digits(line.split_once("127.0.0.1:").unwrap().1)
}

/// Runs `weft ping` through a proxy with the options `impairments`. Returns the exit status of
/// `weft between` and its JSON. The client has the options `client`, and the server `server`.
fn ping_through(impairments: &[&str], server: &[&str], client: &[&str]) -> (i32, Value) {
    let arguments = [&["ping", "-s", "-d", "-a", "127.0.0.1", "-p", "0"], server].concat();
    let (_server, line) = Running::start(&mut weft(&arguments), "listening on");
    let target = format!("127.0.0.1:{}", port_in(&line));
    let arguments = [&["between", "127.0.0.1:0", &target, "--json"], impairments].concat();
    let (between, line) = Running::start(&mut weft(&arguments), "listening on");
    let port = port_in(&line);
    let arguments = [&["ping", "-c", "-a", "127.0.0.1", "-p", &port, "-C", "30", "-V"], client].concat();
    // The ping fails if a fault ends its connection. Without CRC, a corrupted length lets both ends
    // wait for each other without end.
    let command = &mut weft(&arguments);
    let mut client = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while client.try_wait().unwrap().is_none() && begin.elapsed() < MAX_PING_TIME {
        thread::sleep(Duration::from_millis(5));
    }
    let _ = client.kill();
    client.wait().unwrap();
    let (code, stdout, stderr) = between.interrupt();
    let json = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}\n{stderr}"));
    (code, json)
}

/// The outcomes of the faults with `kind`.
fn outcomes<'a>(json: &'a Value, kind: &str) -> Vec<&'a str> {
    let faults = json["faults"].as_array().unwrap();
    faults.iter().filter(|fault| fault["kind"] == kind).map(|fault| fault["outcome"].as_str().unwrap()).collect()
}

/// The requirements in a list of violations, without notes.
fn requirements(list: &Value) -> Vec<&str> {
    let violations = list.as_array().unwrap().iter().filter(|violation| violation["severity"] != "note");
    violations.map(|violation| violation["requirement"].as_str().unwrap()).collect()
}

#[test]
fn a_proxy_without_impairments_is_silent() {
    let (code, json) = ping_through(&[], &[], &[]);
    assert_eq!((code, json["faults"].as_array().unwrap().len()), (0, 0));
    // A round has seven FPDUs.
    assert_eq!((&json["fpdus"]["a"], &json["fpdus"]["b"]), (&Value::from(210), &Value::from(210)));
    assert_eq!(json["network"], Value::Array(Vec::new()));
}

#[test]
fn a_run_without_traffic_is_no_success() {
    let (between, _) = Running::start(&mut weft(&["between", "127.0.0.1:0", "127.0.0.1:9"]), "listening on");
    let (code, stdout, _) = between.interrupt();
    assert!(code == 2 && stdout.starts_with("nothing was judged"), "{code}: {stdout}");
}

#[test]
fn divided_segments_violate_nothing() {
    let (code, json) = ping_through(&["--split", "100", "--delay", "1ms", "--seed", "1"], &[], &[]);
    let faults = outcomes(&json, "split");
    assert!(code == 0 && faults.len() > 100, "{json}");
    assert!(faults.iter().all(|outcome| *outcome == "left_to_tcp"), "{json}");
    assert_eq!((&json["fpdus"]["a"], requirements(&json["network"])), (&Value::from(210), Vec::new()));
}

#[test]
fn segments_divided_at_a_place_of_an_fpdu_violate_nothing() {
    for place in ["header", "before-crc", "crc", "7"] {
        let options = ["--split", "100", "--split-at", place, "--delay", "1ms", "--seed", "1"];
        let (code, json) = ping_through(&options, &[], &[]);
        let faults = outcomes(&json, "split");
        assert!(code == 0 && faults.len() > 50, "{place}: {json}");
        assert!(faults.iter().all(|outcome| *outcome == "left_to_tcp"), "{place}: {json}");
    }
}

#[test]
fn a_corrupted_crc_field_is_detected() {
    let options = ["--corrupt", "100", "--corrupt-in", "crc", "--after", "50ms", "--delay", "10ms", "--faults", "1"];
    let (code, json) = ping_through(&options, &[], &[]);
    assert_eq!((code, outcomes(&json, "corrupt")), (0, vec!["detected_by_crc"]), "{json}");
    assert_eq!(requirements(&json["network"]), ["MPA-4.1-6"], "{json}");
}

/// The outcome if the corrupted byte is in the length of an FPDU. Which byte it is depends on how TCP
/// divides the stream.
const LENGTH_CORRUPTED: &str = "framing_lost";

#[test]
fn a_corrupted_byte_is_the_fault_of_the_network() {
    for seed in ["1", "2", "3", "4", "5"] {
        // The start-up frames have no CRC, so they are not corrupted here.
        let options = ["--corrupt", "10", "--after", "50ms", "--delay", "10ms", "--faults", "1", "--seed", seed];
        let (code, json) = ping_through(&options, &[], &[]);
        assert_eq!(
            (code, Side::BOTH.map(|side| requirements(&json["violations"][side]))),
            (0, [vec![], vec![]]),
            "{json}"
        );
        if outcomes(&json, "corrupt") == [LENGTH_CORRUPTED] {
            continue;
        }
        assert_eq!(outcomes(&json, "corrupt"), ["detected_by_crc"], "{json}");
        assert_eq!(
            (requirements(&json["network"]), &json["network"][0]["fault"]),
            (vec!["MPA-4.1-6"], &Value::from(1))
        );
    }
}

/// The names of the sides in JSON.
struct Side;

impl Side {
    const BOTH: [&str; 2] = ["a", "b"];
}

#[test]
fn a_corrupted_byte_without_crc_is_reported_as_undetectable() {
    for seed in ["1", "2", "3", "4", "5"] {
        let options = ["--corrupt", "10", "--after", "50ms", "--delay", "10ms", "--faults", "1", "--seed", seed];
        let (code, json) = ping_through(&options, &["--no-crc"], &["--no-crc"]);
        let outcome = outcomes(&json, "corrupt");
        assert!(outcome == ["undetectable_without_crc"] || outcome == [LENGTH_CORRUPTED], "{json}");
        assert_eq!(
            (code, Side::BOTH.map(|side| requirements(&json["violations"][side]))),
            (0, [vec![], vec![]]),
            "{json}"
        );
    }
}

#[test]
fn a_hostile_side_is_named() {
    // The number after `@` selects a PDU that is a Send. The duplicate of a Send has a wrong MSN.
    for (side, pdu) in [("a", "duplicate@4"), ("b", "duplicate@3")] {
        let damage = ["--mangle", pdu];
        let (server, client): (&[&str], &[&str]) = if side == "b" { (&damage, &[]) } else { (&[], &damage) };
        let (code, json) = ping_through(&[], server, client);
        let other = if side == "a" { "b" } else { "a" };
        assert!(code == 1 && !requirements(&json["violations"][side]).is_empty(), "{side}: {json}");
        assert_eq!(
            (requirements(&json["violations"][other]), requirements(&json["network"])),
            (vec![], vec![]),
            "{json}"
        );
    }
}

#[test]
fn wrong_command_lines_are_explained() {
    for (arguments, wanted) in [
        (&["127.0.0.1:0", "eth0"][..], "two interfaces or two addresses"),
        (&["127.0.0.1:0", "127.0.0.1:1", "--loss", "1"], "cannot use --loss between two addresses"),
        (&["127.0.0.1:0", "127.0.0.1:1", "--mtu", "1280", "--reorder", "1"], "--reorder and --mtu"),
        (&["weft-none0", "weft-none0"], "cannot be both sides"),
        (&["127.0.0.1:0", "weft.invalid:1"], "cannot resolve weft.invalid:1"),
        (&["127.0.0.1:0", "127.0.0.1:1", "--split", "101"], "not a percentage"),
        (&["127.0.0.1:0", "127.0.0.1:1", "--delay", "5"], "not a time"),
        (&["127.0.0.1:0", "127.0.0.1:1", "--split", "5", "--split-at", "middle"], "not a place"),
        (&["127.0.0.1:0", "127.0.0.1:1", "--close-window", "2s"], "cannot use --close-window between two addresses"),
        (&["weft-none0", "weft-none1", "--close-window", "20s"], "is not shorter than --close-every"),
    ] {
        let output = weft(&[&["between"], arguments].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(wanted), "{arguments:?}: {text}");
    }
}

/// A script that runs in a new user and network namespace. Its arguments are WEFT, FOLDER, the
/// options of `weft between`, and the options of the client. The script makes two more network
/// namespaces, one for each side.
const BRIDGED: &str = r#"
set -eu
weft=$1 folder=$2 options=$3 client=$4
unshare --net sleep 300 >/dev/null 2>&1 & a=$!
unshare --net sleep 300 >/dev/null 2>&1 & b=$!
started="$a $b"
trap 'kill $started 2>/dev/null || true' EXIT
other() { [ "$(readlink /proc/$1/ns/net 2>/dev/null)" != "$(readlink /proc/self/ns/net)" ]; }
until other $a && other $b; do sleep 0.01; done
for side in a b; do
    ip link add weft-$side type veth peer name end-$side
    ip link set weft-$side up
done
ip link set end-a netns $a
ip link set end-b netns $b
within() { pid=$1; shift; nsenter --net=/proc/$pid/ns/net "$@"; }
within $a ip address add 10.9.0.1/24 dev end-a
within $b ip address add 10.9.0.2/24 dev end-b
within $a ip link set end-a up
within $b ip link set end-b up
"$weft" between weft-a weft-b -w "$folder" --json $options >"$folder/shown" 2>"$folder/stderr" & between=$!
started="$started $between"
until grep -q forwarding "$folder/stderr"; do kill -0 $between || { cat "$folder/stderr"; exit 9; }; sleep 0.01; done
nsenter --net=/proc/$b/ns/net "$weft" ping -s -d -a 10.9.0.2 >/dev/null 2>"$folder/server" & started="$started $!"
until grep -q listening "$folder/server"; do sleep 0.01; done
within $a "$weft" ping -c -a 10.9.0.2 -V $client || echo "client: $?"
kill -INT $between
status=0
wait $between || status=$?
echo "between: $status"
"#;

/// Runs [`BRIDGED`]. Returns its output, and the JSON of `weft between`.
fn bridged(folder: &Path, options: &str, client: &str) -> (String, Value) {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--kill-child", "sh", "-c", BRIDGED, "sh", WEFT])
        .args([folder.to_str().unwrap(), options, client])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let shown = std::fs::read_to_string(folder.join("shown")).unwrap_or_default();
    (text.clone(), serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}\n{text}")))
}

/// Returns whether this user can capture in a new network namespace. Otherwise skips the test.
pub(crate) fn can_bridge() -> bool {
    let interfaces = weft(&["dissect", "-D"]).output().unwrap();
    if String::from_utf8_lossy(&interfaces.stderr).contains("built without libpcap") {
        println!("built without libpcap: not tried");
        return false;
    }
    let succeeds = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let is_possible = succeeds("unshare", &["--user", "--map-root-user", "--net", "ip", "link"])
        && succeeds("nsenter", &["--version"]);
    if !is_possible {
        skip("no network namespace for this user, or no nsenter or ip (Debian: util-linux, iproute2)");
    }
    is_possible
}

#[test]
fn a_bridge_without_impairments_changes_no_byte() {
    if !can_bridge() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // 400 bytes fit into one segment, so no offload divides them.
    let (text, json) = bridged(folder.path(), "", "-C 50 -S 400");
    assert!(text.contains("between: 0") && !text.contains("client:"), "{text}");
    assert_eq!((json["faults"].as_array().unwrap().len(), requirements(&json["network"])), (0, vec![]), "{json}");
    assert_eq!((&json["fpdus"]["a"], &json["fpdus"]["b"]), (&Value::from(350), &Value::from(350)));
    // Each frame of one side is also a frame of the other side. The order of frames in opposite
    // directions can differ.
    let [a, b] = ["a.pcapng", "b.pcapng"].map(|name| {
        let mut capture = Capture::open(&folder.path().join(name)).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = capture.next_frame() {
            frames.extend(TcpFrame::find(frame.octets).map(|_| frame.octets.to_vec()));
        }
        frames.sort();
        frames
    });
    assert!(a.len() > 200 && a == b, "{} frames, {} frames", a.len(), b.len());
}

#[test]
fn tcp_repairs_what_a_bridge_does_to_segments() {
    if !can_bridge() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = "--loss 1 --duplicate 3 --reorder 5 --split 5 --mtu 1400 --window 20000 --seed 7";
    let (text, json) = bridged(folder.path(), options, "-C 40 -S 30000");
    assert!(text.contains("between: 0") && !text.contains("client:"), "{text}");
    for kind in ["loss", "duplicate", "reorder", "split"] {
        let outcomes = outcomes(&json, kind);
        assert!(!outcomes.is_empty() && outcomes.iter().all(|outcome| *outcome == "left_to_tcp"), "{kind}: {json}");
    }
    assert!(!outcomes(&json, "too_long").is_empty(), "{json}");
    assert_eq!(requirements(&json["network"]), [""; 0], "{json}");
    for side in Side::BOTH {
        assert_eq!(requirements(&json["violations"][side]), [""; 0], "{json}");
    }
}

#[test]
fn a_bridge_corrupts_bytes_that_only_the_crc_protects() {
    if !can_bridge() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = "--corrupt 5 --from b --faults 1 --after 30ms --delay 5ms --seed 1";
    let (text, json) = bridged(folder.path(), options, "-C 100 -S 400");
    assert!(text.contains("between: 0") && text.contains("client:"), "{text}");
    assert_eq!(outcomes(&json, "corrupt"), ["detected_by_crc"], "{json}");
    assert_eq!((requirements(&json["network"]), &json["network"][0]["tap"]), (vec!["MPA-4.1-6"], &Value::from("A")));
}

/// Starts a proxy in front of a listener of this test. Returns the listener, the proxy, and the
/// address for clients.
fn proxy(listen: &str, options: &[&str]) -> (TcpListener, Running, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap().to_string();
    let (between, line) = Running::start(&mut weft(&[&["between", listen, &server], options].concat()), "listening on");
    let address = line.split_once("listening on ").unwrap().1.split(' ').next().unwrap().to_owned();
    (listener, between, address)
}

#[test]
fn a_proxy_forwards_a_reset_and_survives_clients_that_vanish() {
    let (listener, _between, address) = proxy("127.0.0.1:0", &[]);
    for _ in 0..20 {
        let client = TcpStream::connect(&address).unwrap();
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    }
    let mut client = TcpStream::connect(&address).unwrap();
    client.write_all(b"bytes").unwrap();
    let mut served = loop {
        // Connections of the vanished clients come first, and end without bytes.
        let (mut server, _) = listener.accept().unwrap();
        let mut received = [0; 5];
        if server.read_exact(&mut received).is_ok() {
            break server;
        }
    };
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    let ended = served.read(&mut [0; 1]);
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_proxy_connects_ipv6_with_ipv4() {
    if TcpListener::bind("[::1]:0").is_err() {
        return println!("no IPv6 on this machine: not tried");
    }
    let (listener, _between, address) = proxy("[::1]:0", &[]);
    let mut client = TcpStream::connect(&address).unwrap();
    client.write_all(b"bytes").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let mut received = [0; 5];
    server.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"bytes");
}
