//! Tests what `select`, `poll` and `epoll` report for a descriptor that is connected to the agent:
//! the result of a non-blocking connect, writable, readable, and hang-up.
#![allow(unsafe_code, reason = "a program calls the C library")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::mpsc;
use std::thread;

use super::{SERVICE, Script, stdout_of};

/// The state of a descriptor, in the terms of this test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ready {
    read: bool,
    write: bool,
    /// The peer has sent FIN. `select` does not report this. It reports the descriptor as readable,
    /// and a read then returns no bytes.
    hang_up: bool,
}

/// Queries the state of a descriptor with the call `by`. If `wait` is set, waits without a time
/// limit until one of the requested states is true.
fn ask(by: &str, fd: RawFd, read: bool, write: bool, wait: bool) -> Ready {
    match by {
        "select" => by_select(fd, read, write, wait),
        "poll" => by_poll(fd, read, write, wait),
        _ => by_epoll(fd, read, write, wait),
    }
}

fn by_select(fd: RawFd, read: bool, write: bool, wait: bool) -> Ready {
    // SAFETY: sets of descriptors are plain bits, `fd` is below their size, and all pointers are to
    // local variables.
    unsafe {
        let (mut reads, mut writes): (libc::fd_set, libc::fd_set) = (std::mem::zeroed(), std::mem::zeroed());
        assert!((fd as usize) < libc::FD_SETSIZE);
        if read {
            libc::FD_SET(fd, &raw mut reads);
        }
        if write {
            libc::FD_SET(fd, &raw mut writes);
        }
        let mut now = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let limit = if wait { std::ptr::null_mut() } else { &raw mut now };
        assert!(libc::select(fd + 1, &raw mut reads, &raw mut writes, std::ptr::null_mut(), limit) >= 0);
        Ready {
            read: libc::FD_ISSET(fd, &raw const reads),
            write: libc::FD_ISSET(fd, &raw const writes),
            hang_up: false,
        }
    }
}

fn by_poll(fd: RawFd, read: bool, write: bool, wait: bool) -> Ready {
    let events = if read { libc::POLLIN | libc::POLLRDHUP } else { 0 } | if write { libc::POLLOUT } else { 0 };
    let mut one = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: the structure is a local variable.
    assert!(unsafe { libc::poll(&raw mut one, 1, if wait { -1 } else { 0 }) } >= 0);
    let has = |bit| one.revents & bit != 0;
    Ready { read: has(libc::POLLIN), write: has(libc::POLLOUT), hang_up: has(libc::POLLRDHUP | libc::POLLHUP) }
}

fn by_epoll(fd: RawFd, read: bool, write: bool, wait: bool) -> Ready {
    let events = if read { libc::EPOLLIN | libc::EPOLLRDHUP } else { 0 } | if write { libc::EPOLLOUT } else { 0 };
    // SAFETY: the structures are local variables. The descriptor of the set is closed before they
    // end.
    let reported = unsafe {
        let set = libc::epoll_create1(0);
        let mut one = libc::epoll_event { events: events.cast_unsigned(), u64: 7 };
        assert_eq!(libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd, &raw mut one), 0);
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        assert!(libc::epoll_wait(set, &raw mut event, 1, if wait { -1 } else { 0 }) >= 0);
        libc::close(set);
        event.events.cast_signed()
    };
    let has = |bit| reported & bit != 0;
    Ready { read: has(libc::EPOLLIN), write: has(libc::EPOLLOUT), hang_up: has(libc::EPOLLRDHUP | libc::EPOLLHUP) }
}

/// Starts to connect a new non-blocking descriptor. Returns the descriptor, and the result of the
/// call.
pub(super) fn connecting(at: SocketAddr) -> (TcpStream, std::io::Result<()>) {
    let SocketAddr::V4(at) = at else { panic!("{at}") };
    // SAFETY: a new descriptor has one owner, and the name is a local variable.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0);
        let stream = TcpStream::from_raw_fd(fd);
        let mut name: libc::sockaddr_in = std::mem::zeroed();
        name.sin_family = libc::AF_INET as libc::sa_family_t;
        name.sin_port = at.port().to_be();
        name.sin_addr.s_addr = u32::from(*at.ip()).to_be();
        let size = libc::socklen_t::try_from(size_of::<libc::sockaddr_in>()).unwrap();
        let done = match libc::connect(fd, (&raw const name).cast(), size) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        };
        (stream, done)
    }
}

/// The program. Each step waits for its event with the tested call, and prints what the program
/// observed.
pub(super) fn waits(by: &str, at: SocketAddr) {
    let (mut stream, done) = connecting(at);
    if let Err(error) = done {
        assert_eq!(error.raw_os_error(), Some(libc::EINPROGRESS));
    }
    let fd = stream.as_raw_fd();
    let ready = ask(by, fd, false, true, true);
    println!("connected: {} {:?}", ready.write, stream.take_error().unwrap());
    println!("peer {}", stream.peer_addr().unwrap());
    // Nothing has arrived, and the buffer has space.
    let ready = ask(by, fd, true, true, false);
    println!("idle: read {} write {} hang-up {}", ready.read, ready.write, ready.hang_up);
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    // The peer reads nothing until it gets the number of bytes, so the buffer fills up.
    let (mut given, piece) = (0_u64, [0x5a; 65_536]);
    let full = loop {
        match stream.write(&piece) {
            Ok(len) => given += len as u64,
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(full, ErrorKind::WouldBlock);
    println!("full: write {}", ask(by, fd, true, true, false).write);
    // Now the peer reads all these bytes, and the buffer has space again.
    let peer_reads = std::env::var("WEFT_PRELOAD_TEST_FIFO").unwrap();
    std::fs::write(peer_reads, given.to_string()).unwrap();
    println!("drained: write {}", ask(by, fd, false, true, true).write);
    // The peer answers.
    println!("answered: read {}", ask(by, fd, true, false, true).read);
    let mut got = [0; 4];
    stream.read_exact(&mut got).unwrap();
    println!("got {}", String::from_utf8_lossy(&got));
    stream.write_all(b"!").unwrap();
    // The peer has read the last byte, and sends FIN.
    let ready = ask(by, fd, true, false, true);
    println!("ended: read {} hang-up {} octets {}", ready.read, ready.hang_up, stream.read(&mut [0]).unwrap());
}

#[test]
fn select_poll_and_epoll_report_sdp_readiness() {
    for by in ["select", "poll", "epoll"] {
        let (results, received) = mpsc::channel();
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("reads");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let given = fifo.clone();
        let script = Script::run("connect *:80 sdp 7080", move |mut it| {
            if !it.first.starts_with("connect") {
                return it.send(&format!("names 192.0.2.99:4000 {SERVICE}"));
            }
            let (mut stream, _) = it.meet("127.83.68.80");
            let (results, given) = (results.clone(), given.clone());
            thread::spawn(move || {
                // Waits until the program writes to the FIFO how many bytes filled the buffer.
                let given: u64 = std::fs::read_to_string(given).unwrap().parse().unwrap();
                let taken = std::io::copy(&mut (&mut stream).take(given), &mut std::io::sink()).unwrap();
                stream.write_all(b"pong").unwrap();
                let mut last = [0];
                stream.read_exact(&mut last).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                // Reads until the program has ended.
                let rest = std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
                results.send((given, taken, last, rest)).unwrap();
            });
        });
        let stdout =
            stdout_of(&script.program_with(by, SERVICE, &[("WEFT_PRELOAD_TEST_FIFO", fifo.to_str().unwrap())]));
        let hang_up = by != "select";
        for line in [
            "connected: true None",
            "peer 192.0.2.17:80",
            "idle: read false write true hang-up false",
            "full: write false",
            "drained: write true",
            "answered: read true",
            "got pong",
            &format!("ended: read true hang-up {hang_up} octets 0"),
        ] {
            assert!(stdout.contains(line), "{by}: {line}: {stdout}");
        }
        let (given, taken, last, rest) = received.recv().unwrap();
        assert!(given > 0 && (taken, last, rest) == (given, *b"!", 0), "{by}: {given} {taken} {last:?} {rest}");
        assert_eq!(script.requests()[0], "connect 192.0.2.17:80 sdp 192.0.2.17:7080 no-wait");
    }
}

#[test]
fn a_refusal_becomes_the_error_of_a_non_blocking_connect() {
    for by in ["select", "poll", "epoll"] {
        let script = Script::run("connect *:80 sdp 7080", |mut it| it.send("failed refused because"));
        let output = script.program(by, SERVICE);
        assert!(!output.status.success(), "{by}");
        let text = super::text(&[output.stdout, output.stderr].concat());
        assert!(text.contains(&format!("left: Some({})", libc::ECONNREFUSED)), "{by}: {text}");
        assert_eq!(script.requests().len(), 1);
    }
}
