//! Tests `weft pm`. Both roles, `weft pm ask` (the client) and `weft pm serve` (the server), run as
//! processes.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

struct Server {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn server(listen: &str, options: &[&str]) -> Server {
    let mut process = Command::new(WEFT)
        .args(["pm", "serve", "--listen", listen])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let address = lines.next().unwrap().unwrap().rsplit(' ').next().unwrap().to_owned();
    Server { process, lines, address }
}

fn ask(arguments: &[&str]) -> Output {
    Command::new(WEFT).args(["pm", "ask"]).args(arguments).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

#[test]
fn a_mapping_is_requested_explained_and_kept() {
    let mut server = server("127.0.0.1:0", &["--map", "127.0.0.1:80=127.0.0.9:7080", "--pm-time", "255", "--json"]);
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("pm.pcapng");
    let capture = capture.to_str().unwrap();
    let output = ask(&[
        "127.0.0.1:80",
        "--mapper",
        &server.address,
        "--from",
        "127.0.0.1:0",
        "--count",
        "2",
        "--json",
        "--trace",
        "--write",
        capture,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let objects: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |field: &str| objects.iter().map(|object| object[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("result"), ["sdp", "sdp"]);
    assert_eq!(of("address"), ["127.0.0.9:7080", "127.0.0.9:7080"]);
    assert_eq!((of("cached"), of("requests")), (vec![false.into(), true.into()], vec![1.into(), 0.into()]));
    let trace = text(&output.stderr);
    let lines: Vec<&str> = trace.lines().collect();
    assert_eq!(lines.len(), 3, "{trace}");
    for (line, name) in lines.iter().zip(["PMReq", "PMAccept", "PMAck"]) {
        assert!(line.contains(name), "{line}");
    }
    for kind in ["pm_accepted", "pm_acknowledged"] {
        let event: Value = serde_json::from_str(&server.lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((event["kind"].as_str(), event["address"].as_str()), (Some(kind), Some("127.0.0.9:7080")));
    }
    let lint = Command::new(WEFT).args(["lint", "--json", capture]).output().unwrap();
    let summary: Value = serde_json::from_slice(lint.stdout.trim_ascii()).unwrap();
    let counts = [&summary["error"], &summary["warning"], &summary["note"]];
    assert_eq!(counts, [&Value::from(0); 3], "{summary}");
}

#[test]
fn exit_codes_distinguish_denied_from_silent_and_from_usage() {
    let server = server("[::1]:0", &["--map", "[::1]:80=7080"]);
    let denied = ask(&["[::1]:81", "--mapper", &server.address]);
    assert_eq!(denied.status.code(), Some(1), "{}", text(&denied.stderr));
    assert!(text(&denied.stdout).contains("the port mapper denied the request (1 request"), "{}", text(&denied.stdout));
    let mapped = ask(&["[::1]:80", "--mapper", &server.address]);
    assert_eq!(mapped.status.code(), Some(0));
    assert!(text(&mapped.stdout).contains("SDP at [::1]:7080; this answer is valid"), "{}", text(&mapped.stdout));
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mapper = nobody.local_addr().unwrap().to_string();
    let silent = ask(&["127.0.0.1:80", "--mapper", &mapper, "--wait", "10", "--repeats", "2"]);
    assert_eq!(silent.status.code(), Some(3));
    assert!(text(&silent.stdout).contains("the port mapper did not answer (3 requests"), "{}", text(&silent.stdout));
    for wrong in
        [&["127.0.0.1"][..], &["127.0.0.1:80", "--deviate", "pm.nonsense"], &["127.0.0.1:80", "--from", "::1"], &[]]
    {
        assert_eq!(ask(wrong).status.code(), Some(2), "{wrong:?}");
    }
    for wrong in [&["80=80"][..], &["10.0.0.1:80=9009-9000"], &["10.0.0.1:80=7080", "10.0.0.1:80=7081"]] {
        let maps = wrong.iter().flat_map(|map| ["--map", map]);
        let misread = Command::new(WEFT).args(["pm", "serve"]).args(maps).output().unwrap();
        assert_eq!(misread.status.code(), Some(2), "{wrong:?}");
    }
}

/// The port mapper reports an SDP Address that resets the connection. The client then connects to
/// the service by plain TCP.
#[test]
fn a_reset_leads_to_plain_tcp() {
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = service.local_addr().unwrap().to_string();
    // This address is bound, but has no listener.
    let gone = weft_peer::driver::portmap::socket_at;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let (_held, gone) = gone("127.0.0.1:0".parse().unwrap()).unwrap();
    let server = server("127.0.0.1:0", &["--map", &format!("{at}={gone}")]);
    let output = ask(&[&at, "--mapper", &server.address, "--connect"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the SDP Address reset the connection"), "{}", text(&output.stderr));
    assert!(service.accept().is_ok());
}

#[test]
fn a_twin_that_deviates_is_found_in_the_trace() {
    let server = server("127.0.0.1:0", &["--map", "127.0.0.1:80=7080", "--deviate", "pm.accept-reserved"]);
    let output = ask(&["127.0.0.1:80", "--mapper", &server.address, "--trace"]);
    assert!(text(&output.stderr).contains("PM-7.3.1.5-1"), "{}", text(&output.stderr));
}

/// `weft test` runs cases of the suites against a client of the port mapper, and starts this client
/// with a command. The client connects to the tester over UDP and TCP. A correct client passes. A
/// client that violates a requirement fails.
#[test]
fn the_suites_judge_a_client() {
    let folder = tempfile::tempdir().unwrap();
    let judge = |more: &str, cases: &[&str]| {
        let target = format!(
            "name = \"client\"\nkind = \"tcp\"\nrole = \"initiator\"\nservice = \"port-mapper\"\nlisten = \"127.0.0.1:0\"\n\
             capabilities = [\"pm-connect\"]\nstart = [\"{WEFT}\", \"pm\", \"ask\", \"{{address}}:{{port}}\", \"--mapper\", \
             \"{{mapper_address}}:{{mapper_port}}\", \"--connect\"{more}]\n"
        );
        let file = folder.path().join("client.toml");
        std::fs::write(&file, target).unwrap();
        let out = folder.path().join("out");
        let run = Command::new(WEFT).arg("test").arg(&file).args(cases).arg("--out").arg(&out).output().unwrap();
        (run.status.code(), text(&run.stdout))
    };
    let cases = [
        "sdp-pm/7.4-client/asks",
        "sdp-pm/7.4-client/acknowledges",
        "sdp-pm/7.1-client/denied",
        "sdp-pm/7.1-client/reset",
    ];
    let (code, printed) = judge("", &cases);
    assert!(code == Some(0) && printed.contains("cases: 5 pass"), "{printed}");
    let (code, printed) = judge(", \"--deviate\", \"pm.ack-time\"", &cases[1..2]);
    assert!(code == Some(1) && printed.contains("PM-7.4-36"), "{printed}");
}
