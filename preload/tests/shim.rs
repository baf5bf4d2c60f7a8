//! Runs programs with the shim and with a scripted agent. The tests check which requests each call
//! of a program causes, what the program observes, and that its descriptors are ordinary kernel
//! descriptors.
//!
//! The program is the binary of this test, started with the shim. It runs the function [`program`].
#![allow(clippy::unwrap_used, reason = "a helper of a test may stop it")]

#[path = "shim/families.rs"]
mod families;
#[path = "shim/later.rs"]
mod later;
#[path = "shim/readiness.rs"]
mod readiness;
#[path = "shim/urgent.rs"]
mod urgent;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};

use tokio::io::AsyncReadExt;

/// The environment variable with the role of the program.
const ROLE: &str = "WEFT_PRELOAD_TEST_ROLE";
/// The environment variable with the address that the program uses.
const AT: &str = "WEFT_PRELOAD_TEST_AT";

/// No host has this address. A program can connect to it only through the shim.
const SERVICE: &str = "192.0.2.17:80";

/// Returns the path of the shim. Cargo builds it into the folder of this test.
fn shim() -> PathBuf {
    let shim = env::current_exe().unwrap().with_file_name("libweft_preload.so");
    assert!(shim.exists(), "the shim {} does not exist", shim.display());
    shim
}

/// An agent that runs `script`, and the rules for it.
struct Script {
    folder: tempfile::TempDir,
    agent: JoinHandle<Vec<String>>,
}

impl Script {
    /// Starts the agent, which calls `script` for each connection.
    fn run(rules: &str, mut script: impl FnMut(Conversation) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agent");
        let listener = UnixListener::bind(&socket).unwrap();
        fs::write(folder.path().join("rules"), format!("agent {}\n{rules}\n", socket.display())).unwrap();
        let agent = thread::spawn(move || {
            let mut requests = Vec::new();
            loop {
                let (stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut first = String::new();
                lines.read_line(&mut first).unwrap();
                if first == "end\n" {
                    return requests;
                }
                requests.push(first.trim_end().to_owned());
                script(Conversation { first: first.trim_end().to_owned(), lines, stream });
            }
        });
        Script { folder, agent }
    }

    fn program(&self, role: &str, at: &str) -> Output {
        self.program_with(role, at, &[])
    }

    fn program_with(&self, role: &str, at: &str, more: &[(&str, &str)]) -> Output {
        let rules = self.folder.path().join("rules").display().to_string();
        command(&rules, role, at).envs(more.iter().copied()).output().unwrap()
    }

    /// The requests that the agent received.
    fn requests(self) -> Vec<String> {
        UnixStream::connect(self.folder.path().join("agent")).unwrap().write_all(b"end\n").unwrap();
        self.agent.join().unwrap()
    }
}

struct Conversation {
    first: String,
    lines: BufReader<UnixStream>,
    stream: UnixStream,
}

impl Conversation {
    fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Answers a connect request as the agent does. Returns the program's connection, and the
    /// program's address that the shim reported.
    fn meet(&mut self, ip: &str) -> (TcpStream, SocketAddr) {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        self.send(&format!("at {}", listener.local_addr().unwrap()));
        let from: SocketAddr = self.next().strip_prefix("from ").unwrap().parse().unwrap();
        let (stream, peer) = listener.accept().unwrap();
        assert_eq!(peer, from);
        if !self.first.ends_with(" no-wait") {
            self.send("done");
        }
        (stream, from)
    }
}

/// Runs a program with the shim and these rules.
fn under(rules: &str, role: &str, at: &str) -> Output {
    command(rules, role, at).output().unwrap()
}

fn command(rules: &str, role: &str, at: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "program", "--nocapture", "--test-threads=1"]);
    command.env("LD_PRELOAD", shim()).env("WEFT_SDP_RULES", rules).env(ROLE, role).env(AT, at);
    command
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// The standard output of a program that succeeded.
fn stdout_of(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The program. If it runs as a test, it does nothing.
#[test]
fn program() {
    let Ok(role) = env::var(ROLE) else { return };
    let at: SocketAddr = env::var(AT).unwrap().parse().unwrap();
    match role.as_str() {
        "connect" => match TcpStream::connect(at) {
            Ok(mut stream) => {
                println!("peer {}", stream.peer_addr().unwrap());
                println!("local {}", stream.local_addr().unwrap());
                stream.write_all(b"hello").unwrap();
                let mut got = String::new();
                stream.read_to_string(&mut got).unwrap();
                println!("got {got}");
            }
            Err(error) => println!("error {:?}", error.kind()),
        },
        // Another program inherits the descriptor. This other program runs without the shim.
        "exec" => {
            let stream = TcpStream::connect(at).unwrap();
            let script = "read line <&0; echo \"got $line\" >&1; echo from-cat >&0";
            let output = Command::new("sh")
                .args(["-c", script])
                .env_remove("LD_PRELOAD")
                .stdin(std::os::fd::OwnedFd::from(stream))
                .output()
                .unwrap();
            print!("{}", text(&output.stdout));
        }
        "listen" => {
            let listener = match TcpListener::bind(at) {
                Ok(listener) => listener,
                Err(error) => return println!("error {:?}", error.kind()),
            };
            println!("listening on {}", listener.local_addr().unwrap());
            let (mut stream, peer) = listener.accept().unwrap();
            println!("accepted {peer}, {}, {}", stream.peer_addr().unwrap(), stream.local_addr().unwrap());
            stream.write_all(b"served").unwrap();
        }
        "listen-v6" => families::listens(true),
        "listen-both" => families::listens(false),
        "nonblocking" => nonblocking(at),
        "later" => later::connects(at),
        "bound" => later::connects_from("127.0.0.9:0".parse().unwrap(), at),
        "select" | "poll" | "epoll" => readiness::waits(&role, at),
        "urgent" => urgent::reads(at),
        _ => panic!("{role}"),
    }
}

/// Connects in an event loop. Another program inherits the descriptor, and writes to it.
fn nonblocking(at: SocketAddr) {
    in_event_loop(async {
        let one = tokio::net::TcpStream::connect(at).await.unwrap();
        println!("peer {}", one.peer_addr().unwrap());
        let one = one.into_std().unwrap();
        let two = OwnedFd::from(one.try_clone().unwrap());
        assert!(Command::new("printf").arg("hello").stdout(two).status().unwrap().success());
        let mut one = tokio::net::TcpStream::from_std(one).unwrap();
        let mut got = [0; 10];
        one.read_exact(&mut got).await.unwrap();
        println!("got {}", text(&got));
    });
}

fn in_event_loop(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap().block_on(work);
}

/// Returns the script of an agent. The agent accepts connections of a program, and echoes five
/// octets on each connection. It also answers requests for the names of these connections.
fn echoes(ip: &'static str) -> impl FnMut(Conversation) + Send + 'static {
    move |mut it| {
        if !it.first.starts_with("connect") {
            assert!(it.first.starts_with("names "), "{}", it.first);
            return it.send(&format!("names 192.0.2.99:4000 {SERVICE}"));
        }
        let (mut stream, _) = it.meet(ip);
        thread::spawn(move || {
            let mut got = [0; 5];
            stream.read_exact(&mut got).unwrap();
            stream.write_all(&[b"echo ", &got[..]].concat()).unwrap();
        });
    }
}

#[test]
fn a_connect_leads_to_the_agent_and_reports_true_names() {
    for ip in ["127.83.68.80", "::1"] {
        let script = Script::run("connect 192.0.2.0/24:80 sdp 7080\nconnect [2001:db8::]:* sdp 7080", echoes(ip));
        let at = if ip == "::1" { "[2001:db8::]:80" } else { SERVICE };
        let stdout = stdout_of(&script.program("connect", at));
        // An IPv6 socket shows an IPv4 address as an IPv4-mapped address.
        let (peer, local) = if ip == "::1" {
            ("peer [::ffff:192.0.2.17]:80", "local [::ffff:192.0.2.99]:4000")
        } else {
            ("peer 192.0.2.17:80", "local 192.0.2.99:4000")
        };
        for line in [peer, local, "got echo hello"] {
            assert!(stdout.contains(line), "{stdout}");
        }
        let requests = script.requests();
        let sdp = at.replace(":80", ":7080");
        assert_eq!(requests[0], format!("connect {at} sdp {sdp}"));
        assert!(requests[1..].iter().all(|line| line.starts_with("names ")) && requests.len() > 2, "{requests:?}");
    }
}

#[test]
fn a_non_blocking_connect_polls_and_its_descriptor_is_inherited() {
    let script = Script::run("connect *:80 pm 192.0.2.1:3935 sdp-only", echoes("127.83.68.80"));
    let stdout = stdout_of(&script.program("nonblocking", SERVICE));
    assert!(stdout.contains("peer 192.0.2.17:80") && stdout.contains("got echo hello"), "{stdout}");
    assert_eq!(script.requests()[0], "connect 192.0.2.17:80 pm 192.0.2.1:3935 sdp-only no-wait");
}

#[test]
fn another_program_can_inherit_a_descriptor() {
    let script = Script::run("connect *:80 sdp 7080", |mut it| {
        let (mut stream, _) = it.meet("127.83.68.80");
        stream.write_all(b"line\n").unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).unwrap();
        assert_eq!(got, "from-cat\n");
    });
    assert!(stdout_of(&script.program("exec", SERVICE)).contains("got line"));
    script.requests();
}

#[test]
fn a_refusal_of_the_agent_becomes_the_error_of_the_call() {
    for (word, kind) in [
        ("refused", ErrorKind::ConnectionRefused),
        ("timed-out", ErrorKind::TimedOut),
        ("unreachable", ErrorKind::HostUnreachable),
        ("other", ErrorKind::ConnectionAborted),
    ] {
        let script = Script::run("connect *:80 sdp 7080", move |mut it| {
            it.send(&format!("failed {word} because"));
        });
        let stdout = stdout_of(&script.program("connect", SERVICE));
        assert!(stdout.contains(&format!("error {kind:?}")), "{word}: {stdout}");
    }
    let script = Script::run("listen *:* sdp 7080", |mut it| {
        it.send("failed in-use because");
    });
    let output = script.program("listen", "127.0.0.1:0");
    assert!(stdout_of(&output).contains("error AddrInUse"), "{output:?}");
    assert!(text(&output.stderr).contains("because"), "{output:?}");
}

#[test]
fn a_listener_accepts_connections_of_the_agent_with_the_true_peer() {
    let script = Script::run("listen 127.0.0.1:* sdp 192.0.2.99:7080", move |mut it| {
        if it.first.starts_with("listen") {
            let service: SocketAddr = it.first.split(' ').nth(1).unwrap().parse().unwrap();
            it.send("done");
            thread::spawn(move || {
                // Connect from the agent's address, as the agent does. The program sends its
                // request before it listens. So repeat the attempt while the connection is refused.
                in_event_loop(async {
                    let mut one = loop {
                        let one = tokio::net::TcpSocket::new_v4().unwrap();
                        one.bind("127.83.68.80:0".parse().unwrap()).unwrap();
                        match one.connect(service).await {
                            Ok(one) => break one,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionRefused),
                        }
                    };
                    let mut got = Vec::new();
                    one.read_to_end(&mut got).await.unwrap();
                    assert_eq!(got, b"served");
                });
            });
            return;
        }
        it.send("names 192.0.2.99:80 203.0.113.5:4000");
    });
    let stdout = stdout_of(&script.program("listen", "127.0.0.1:0"));
    assert!(stdout.contains("accepted 203.0.113.5:4000, 203.0.113.5:4000, 192.0.2.99:80"), "{stdout}");
    let requests = script.requests();
    assert!(requests[0].ends_with(" sdp 192.0.2.99:7080"), "{requests:?}");
}

/// Serves one connection by plain TCP.
fn plain(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    stream.write_all(b"plain").unwrap();
}

#[test]
fn calls_without_a_matching_rule_are_unchanged() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let serving = thread::spawn(move || plain(&listener));
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    fs::write(&rules, "agent /nonexistent/agent\nconnect 192.0.2.0/24:* sdp 7080\nconnect *:* sdp 7080 for nginx*")
        .unwrap();
    let output = under(rules.to_str().unwrap(), "connect", &at.to_string());
    let stdout = stdout_of(&output);
    assert!(stdout.contains(&format!("peer {at}")) && stdout.contains("got plain"), "{stdout}");
    assert!(text(&output.stderr).is_empty(), "{output:?}");
    serving.join().unwrap();
}

#[test]
fn without_an_agent_the_rules_decide() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules");
    let run = |more: &str| {
        fs::write(&path, format!("agent /nonexistent/agent\n{more}\nconnect *:* sdp 7080\n")).unwrap();
        under(path.to_str().unwrap(), "connect", &at)
    };
    for closed in ["", "unreachable closed"] {
        let output = run(closed);
        assert!(stdout_of(&output).contains("error ConnectionRefused"), "{output:?}");
        assert!(text(&output.stderr).contains("no agent at /nonexistent/agent"), "{output:?}");
    }
    let serving = thread::spawn(move || plain(&listener));
    let output = run("unreachable open");
    assert!(stdout_of(&output).contains("got plain"), "{output:?}");
    assert!(text(&output.stderr).contains("plain TCP, as the rules require"), "{output:?}");
    serving.join().unwrap();
    // If the rules cannot be parsed, it is unknown which connections need SDP. So all connections
    // fail.
    let output = run("connect everywhere");
    assert!(stdout_of(&output).contains("error PermissionDenied"), "{output:?}");
    assert!(text(&output.stderr).contains("line 2"), "{output:?}");
    // All connections also fail if the file is missing, endless, or a folder.
    for nowhere in ["/nonexistent/rules", "/dev/zero", "/"] {
        let output = under(nowhere, "connect", &at);
        assert!(stdout_of(&output).contains("error PermissionDenied"), "{output:?}");
    }
}
