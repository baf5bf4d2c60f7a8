//! `weft sdp agent` by hand: its socket, and what it answers to lines that the shim would send, or would not.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use crate::sdp::process::{Listening, WEFT};

fn start(socket: &Path) -> Listening {
    Listening::start(&["agent", "--socket", socket.to_str().unwrap()])
}

/// The answer to one line.
fn ask(socket: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer.trim_end().to_owned()
}

#[test]
fn a_socket_that_cannot_be_had_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let refused = |socket: &Path| {
        let told = Command::new(WEFT).args(["sdp", "agent", "--socket"]).arg(socket).output().unwrap();
        assert_eq!(told.status.code(), Some(2), "{told:?}");
        String::from_utf8(told.stderr).unwrap()
    };
    fs::write(at("file"), "something").unwrap();
    for (socket, why) in [
        (at("no/folder"), "its folder does not exist"),
        (at(&"x".repeat(120)), "107 octets at most"),
        (at("file"), "no socket is there"),
        (folder.path().to_owned(), "no socket is there"),
    ] {
        let told = refused(&socket);
        assert!(told.contains(why), "{told}");
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "something");
    let mut agent = start(&at("agent"));
    assert!(refused(&at("agent")).contains("another agent is there"));
    // What one that was killed left behind is no obstacle.
    agent.kill();
    assert!(at("agent").exists());
    let _agent = start(&at("agent"));
    assert_eq!(ask(&at("agent"), "names 127.0.0.1:1 127.0.0.1:2"), "unknown");
}

#[test]
fn what_is_no_request_is_answered_as_that_and_the_agent_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let agent = start(&socket);
    let idle = agent.descriptors();
    let long = "names ".repeat(1000);
    for line in ["", "hello", "from 127.0.0.1:5", "connect 127.0.0.1:5", "listen 127.0.0.1:5 sdp", &long, "\u{fffd}\0"]
    {
        assert_eq!(ask(&socket, line), "failed other no request", "{line:?}");
    }
    // Who goes away in the midst of a line is gone.
    let mut half = UnixStream::connect(&socket).unwrap();
    half.write_all(b"listen 127.0").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    half.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "failed other no request\n");
    drop(half);
    while agent.descriptors() != idle {
        std::thread::yield_now();
    }
    agent.end();
    assert!(!socket.exists());
}

/// sshd and nginx have a socket for each family.
#[test]
fn a_program_may_listen_with_a_socket_for_each_family() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    // A port that both families have free, as far as anybody can know.
    let free = || TcpListener::bind("[::]:0").unwrap().local_addr().unwrap().port();
    let (first, other) = (free(), free());
    let listen = |ip: &str, sdp: u16, more: &str| ask(&socket, &format!("listen {ip}:80 sdp {ip}:{sdp}{more}"));
    assert_eq!(listen("0.0.0.0", first, ""), "done");
    assert_eq!(listen("[::]", first, " only-v6"), "done");
    assert_eq!(listen("[::]", first, " only-v6"), "done", "once more, as at a reload");
    assert_eq!(listen("[::]", other, " only-v6"), "done");
    assert_eq!(listen("0.0.0.0", other, ""), "done");
    assert!(ask(&socket, &format!("listen 127.0.0.1:81 sdp 0.0.0.0:{other}")).starts_with("failed in-use"));
}
