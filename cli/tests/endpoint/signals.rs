//! Tests signals that stop a command. The tests check the exit status, also if weft is process 1 of
//! a container, and that the capture is complete.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::skip::skip;
use crate::wait::wait_for;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");
/// Numbers of signals (signal(7)).
const HUP: u32 = 1;
const INT: u32 = 2;
const TERM: u32 = 15;

/// A process. It is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns whether process `pid` has a handler for the signal.
fn catches(pid: u32, signal: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 == 1)
}

fn send(signal: u32, pid: u32) {
    assert!(Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap().success());
}

impl Running {
    fn start(command: &mut Command) -> Self {
        Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits until process `pid` has a handler, and sends the signal to it. Returns the exit status
    /// of this process.
    fn stop(mut self, signal: u32, pid: u32) -> Option<i32> {
        // Keep the standard input of the process open, because the process can end when its input
        // is closed.
        let _input = self.0.stdin.take();
        wait_for("a handler", || catches(pid, signal).then_some(()));
        send(signal, pid);
        self.0.wait().unwrap().code()
    }
}

/// Returns the options of `unshare` that start a program as process 1 of a PID namespace. Returns
/// `None` if this user cannot create such a namespace on this machine.
fn unshare() -> Option<Vec<&'static str>> {
    let ways =
        [vec!["--pid", "--fork", "--kill-child"], vec!["--user", "--map-root-user", "--pid", "--fork", "--kill-child"]];
    ways.into_iter().find(|way| {
        let tried = Command::new("unshare").args(way).arg("true").stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    })
}

/// Starts weft as process 1 of a PID namespace. Returns the process `unshare`, and the number of
/// weft's process outside of the namespace.
fn as_process_1(way: &[&str], arguments: &[&str]) -> (Running, u32) {
    let running = Running::start(Command::new("unshare").args(way).arg(WEFT).args(arguments));
    let parent = running.0.id();
    let child = wait_for("the process", || {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let child: u32 = children.split_whitespace().next()?.parse().ok()?;
        let name = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
        name.starts_with("weft").then_some(child)
    });
    (running, child)
}

#[test]
fn process_1_stops() {
    let Some(way) = unshare() else {
        return skip("no PID namespace for this user, or no unshare (Debian package: util-linux)");
    };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (arguments, line, status) in [
        (&["agent", "--soft", "--listen", "127.0.0.1:0"][..], Some("weft: listening on "), 0),
        (&["serve", "--listen", "127.0.0.1:0"], Some("listening on "), 0),
        (&["cat", "--listen", "-p", "0"], None, 128 + 15),
        (&["soak", "--over", "virtual"], None, 128 + 15),
        (&["demo", "-o", out], None, 128 + 15),
        (&["lint", "-"], None, 128 + 15),
    ] {
        let (mut running, pid) = as_process_1(&way, arguments);
        if let Some(line) = line {
            ready(&mut running, line);
        }
        assert_eq!(running.stop(TERM, pid), Some(status), "{arguments:?}");
    }
}

/// Waits for a line that begins with `begin`, which shows that a command is ready.
fn ready(running: &mut Running, begin: &str) -> String {
    let Running(child) = running;
    let out: Box<dyn Read + Send> = match begin.starts_with("weft: ") {
        true => Box::new(child.stderr.take().unwrap()),
        false => Box::new(child.stdout.take().unwrap()),
    };
    let mut lines = BufReader::new(out).lines();
    let line = lines.find_map(|line| line.unwrap().strip_prefix(begin).map(str::to_owned)).unwrap();
    // Read further lines of the command, so that it never waits for a full pipe.
    thread::spawn(move || lines.for_each(drop));
    line
}

#[test]
fn servers_that_are_stopped_exit_with_0() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    for signal in [HUP, INT, TERM] {
        for (arguments, line) in [
            (&["serve", "--listen", "127.0.0.1:0"][..], "listening on "),
            (&["agent", "--soft", "--listen", "127.0.0.1:0"], "weft: listening on "),
            (&["pm", "serve", "--map", "127.0.0.1:5001=127.0.0.1:7174", "--listen", "127.0.0.1:0"], "listening on "),
            (&["sdp", "serve", "--listen", "127.0.0.1:0"], "listening on "),
            (&["sdp", "agent", "--socket", socket.to_str().unwrap()], "listening on "),
            (&["ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"], "weft: listening on "),
        ] {
            let mut running = Running::start(Command::new(WEFT).args(arguments));
            ready(&mut running, line);
            let pid = running.0.id();
            assert_eq!(running.stop(signal, pid), Some(0), "{arguments:?}, signal {signal}");
        }
    }
}

#[test]
fn a_command_that_is_stopped_too_early_exits_with_128_and_the_signal() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mapper = silent.local_addr().unwrap().to_string();
    for (signal, status) in [(HUP, 129), (INT, 130), (TERM, 143)] {
        for arguments in [
            &["pm", "ask", "127.0.0.1:5001", "--mapper", &mapper, "--wait", "60000"][..],
            &["sdp", "serve", "--once", "--listen", "127.0.0.1:0"],
            &["ping", "-s", "-a", "127.0.0.1", "-p", "0"],
            &["probe", "-s", "-a", "127.0.0.1", "-p", "0"],
        ] {
            let running = Running::start(Command::new(WEFT).args(arguments));
            let pid = running.0.id();
            assert_eq!(running.stop(signal, pid), Some(status), "{arguments:?}");
        }
    }
}

/// `nohup` makes a command ignore SIGHUP. weft does not change this, so it continues when its
/// terminal closes.
#[test]
fn sighup_stays_ignored() {
    let script = format!("trap '' HUP; exec {WEFT} serve --listen 127.0.0.1:0");
    let mut running = Running::start(Command::new("sh").args(["-c", &script]));
    ready(&mut running, "listening on ");
    let pid = running.0.id();
    assert!(catches(pid, TERM) && !catches(pid, HUP));
    send(HUP, pid);
    assert_eq!(running.stop(TERM, pid), Some(0));
}

/// `weft cat` waits for its input when the terminal closes.
#[test]
fn a_capture_is_complete_when_the_terminal_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cat.pcapng");
    let mut listening = Running::start(Command::new(WEFT).args(["cat", "--listen", "-a", "127.0.0.1", "-p", "0"]));
    let address = ready(&mut listening, "weft: listening on ");
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    let arguments = ["cat", "-a", "127.0.0.1", "-p", &port, "--write", file.to_str().unwrap(), "--trace"];
    let mut sending = Running::start(Command::new(WEFT).args(arguments));
    // The line with the Reply in the trace shows that the start-up is in the capture.
    let trace = BufReader::new(sending.0.stderr.take().unwrap());
    let mut lines = trace.lines();
    assert!(lines.any(|line| line.unwrap().contains("MPA Reply")));
    thread::spawn(move || lines.for_each(drop));
    let pid = sending.0.id();
    assert_eq!(sending.stop(HUP, pid), Some(129));
    let read = Command::new(WEFT).args(["dissect", file.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8(read.stdout).unwrap();
    assert!(text.contains("MPA Request") && text.contains("MPA Reply"), "{text}");
    assert_eq!(String::from_utf8(read.stderr).unwrap(), "");
}
