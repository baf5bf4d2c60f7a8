//! Tests three interruptions in the middle of a case: the tester is suspended, the clock of the
//! tester jumps, or the tester loses its link to the target. The case then runs again; without a
//! link, it is inconclusive. If the connection ends in the same way without an interruption, the
//! case fails.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crate::skip::skip;
use crate::target_check::{Server, server};

/// The time for which the tester is suspended. A pause of more than 2 s counts as a standstill of
/// the tester (`suites/src/run/standstill.rs`).
const STANDSTILL: Duration = Duration::from_millis(2500);
/// This environment variable is set if the test runs in the network namespace.
const INSIDE: &str = "WEFT_LOST_LINK";
/// The target's address in the network namespace.
const ADDRESS: &str = "10.77.0.1";

/// A case, and the point at which it is interrupted. `connection` is the number of the connection,
/// from 0. On this connection, the relay receives the tester's bytes in pieces. `piece` is the
/// number of the first piece that the relay does not pass on, from 1.
struct Interrupted {
    case: &'static str,
    connection: usize,
    piece: usize,
}

/// Connection 0 is the good exchange. On connection 1, the tester sends the Request in pieces.
const SPLIT_REQUEST: Interrupted = Interrupted { case: "mpa/7.1.2-startup/split-request", connection: 1, piece: 1 };
/// The first pieces of connection 0 are a Request, a Send that the target returns, and the first of
/// two segments.
const LAST: Interrupted = Interrupted { case: "ddp/4.1-control/last[first=4]", connection: 0, piece: 3 };

/// A relay between the tester and the target, which is `weft serve`.
struct Relay {
    _server: Server,
    address: String,
    /// The process of the tester.
    tester: Arc<OnceLock<u32>>,
}

impl Relay {
    /// Starts the relay. At the point of interruption, it calls `interrupt` with the tester's
    /// process and connection, and then relays nothing more.
    fn start(ip: &str, at: &Interrupted, interrupt: impl Fn(u32, &TcpStream) + Send + 'static) -> Self {
        let server = server(&["serve"]);
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let (address, target) = (listener.local_addr().unwrap().to_string(), server.address.clone());
        let (at, tester) = ((at.connection, at.piece), Arc::new(OnceLock::new()));
        let pid = tester.clone();
        thread::spawn(move || {
            // Keep the connections open until the end of the test.
            let mut kept = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                let (mut stream, mut target) = (stream.unwrap(), TcpStream::connect(&target).unwrap());
                let (mut from, mut to) = (target.try_clone().unwrap(), stream.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
                let (mut piece, mut count) = ([0; 4096], 0);
                while let Ok(len @ 1..) = stream.read(&mut piece) {
                    count += 1;
                    if (number, count) == at {
                        interrupt(*pid.wait(), &stream);
                        break;
                    }
                    target.write_all(&piece[..len]).unwrap();
                }
                match (number, count) == at {
                    true => kept.push((stream, target)),
                    false => drop(target.shutdown(Shutdown::Write)),
                }
            }
        });
        Relay { _server: server, address, tester }
    }

    /// Returns the verdict of the case, and its explanation.
    fn verdict(&self, case: &str) -> (String, String) {
        self.verdict_with(&[], case)
    }

    /// Does the same as [`Relay::verdict`]. The tester has these environment variables.
    fn verdict_with(&self, environment: &[(&str, &Path)], case: &str) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let (file, out) = (folder.path().join("nic.toml"), folder.path().join("out"));
        let text = format!(
            "name = \"nic\"\nkind = \"tcp\"\naddress = \"{}\"\nservice = \"echo\"\ncapabilities = []\n\
             time_scale = 0.3\n",
            self.address
        );
        fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.env_remove("WEFT_STORE").arg("test").arg(file).arg("--out").arg(&out).arg(case).stdout(Stdio::null());
        let mut process = command.envs(environment.iter().copied()).spawn().unwrap();
        self.tester.set(process.id()).unwrap();
        process.wait().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&fs::read(out.join("report.json")).unwrap()).unwrap();
        let word = |name: &str| report["results"][0][name].as_str().unwrap().to_owned();
        (word("verdict"), word("explanation"))
    }
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// The connection closes while the tester is suspended, as if a timer of the target had closed it.
#[test]
fn a_standstill_of_the_tester_is_no_failure() {
    for case in [SPLIT_REQUEST, LAST] {
        let relay = Relay::start("127.0.0.1", &case, |tester, stream| {
            signal("-STOP", tester);
            thread::sleep(STANDSTILL);
            stream.shutdown(Shutdown::Both).unwrap();
            signal("-CONT", tester);
        });
        let (verdict, explanation) = relay.verdict(case.case);
        assert_eq!(verdict, "pass", "{}: {explanation}", case.case);
        assert!(explanation.contains("ran again, because the tester did not run for 2 s"), "{explanation}");

        let relay = Relay::start("127.0.0.1", &case, |_, stream| stream.shutdown(Shutdown::Both).unwrap());
        let (verdict, explanation) = relay.verdict(case.case);
        assert_eq!(verdict, "fail", "{}: {explanation}", case.case);
    }
}

/// Source of a library that replaces `clock_gettime`. If the file in the variable `CLOCK_JUMP`
/// exists, the calendar clock is a minute ahead.
#[cfg(target_os = "linux")]
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int status = syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && clock == CLOCK_REALTIME && access(getenv("CLOCK_JUMP"), F_OK) == 0)
        now->tv_sec += 60;
    return status;
}
"#;

/// When a suspended machine resumes, its calendar clock jumps, and its monotonic clock does not.
#[cfg(target_os = "linux")]
#[test]
fn a_jump_of_the_testers_clock_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let [source, library, jump] = ["clock.c", "clock.so", "jump"].map(|name| folder.path().join(name));
    fs::write(&source, CLOCK).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap();
    assert!(compiled.success());
    let environment = [("LD_PRELOAD", library.as_path()), ("CLOCK_JUMP", jump.as_path())];
    for case in [SPLIT_REQUEST, LAST] {
        let relay = Relay::start("127.0.0.1", &case, |_, stream| stream.shutdown(Shutdown::Both).unwrap());
        let (verdict, explanation) = relay.verdict_with(&environment, case.case);
        assert_eq!(verdict, "fail", "{}: {explanation}", case.case);

        let file = jump.clone();
        let relay = Relay::start("127.0.0.1", &case, move |_, stream| {
            fs::write(&file, "").unwrap();
            stream.shutdown(Shutdown::Both).unwrap();
        });
        let (verdict, explanation) = relay.verdict_with(&environment, case.case);
        assert_eq!(verdict, "pass", "{}: {explanation}", case.case);
        // The jump is 60 s. On a busy machine, the tester can report a second more, because it has
        // not read the clocks for that time.
        assert!(explanation.contains("ran again, because the tester did not run for 6"), "{explanation}");
        fs::remove_file(&jump).unwrap();
    }
}

/// The test removes the address of the target's host, so that the tester can no longer reach it.
#[test]
fn a_lost_link_is_no_failure() {
    if env::var_os(INSIDE).is_none() {
        return in_a_network_namespace("interrupted::a_lost_link_is_no_failure");
    }
    // Interrupt the second case at its last segment. If the target is silent after this segment,
    // the case fails.
    for case in [SPLIT_REQUEST, Interrupted { piece: 4, ..LAST }] {
        let relay = Relay::start(ADDRESS, &case, |_, _| {});
        let (verdict, explanation) = relay.verdict(case.case);
        assert_eq!(verdict, "fail", "{}: {explanation}", case.case);

        let relay = Relay::start(ADDRESS, &case, |_, _| address("del"));
        let (verdict, explanation) = relay.verdict(case.case);
        assert_eq!(verdict, "inconclusive", "{}: {explanation}", case.case);
        assert!(explanation.contains("The host 10.77.0.1 does not answer"), "{explanation}");
        address("add");
    }
}

fn address(change: &str) {
    let command = ["addr", change, &format!("{ADDRESS}/32"), "dev", "lo"];
    assert!(Command::new("ip").args(command).status().unwrap().success());
}

/// Runs this test again in a new network namespace, because the test has to change addresses.
fn in_a_network_namespace(test: &str) {
    const UNSHARE: [&str; 3] = ["--user", "--map-root-user", "--net"];
    let can = Command::new("unshare").args(UNSHARE).args(["ip", "link", "set", "lo", "up"]).output();
    if !can.is_ok_and(|can| can.status.success()) {
        return skip("no network namespace for this user, or no iproute2");
    }
    let line =
        format!("ip link set lo up && ip addr add {ADDRESS}/32 dev lo && exec \"$0\" --exact {test} --nocapture");
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["sh", "-c", &line]).arg(env::current_exe().unwrap()).env(INSIDE, "1");
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}
