//! Tests a non-blocking connect that the agent rejects while the program waits for its result, and
//! a connect of a bound socket.
#![allow(unsafe_code, reason = "the agent and the program call the C library")]

use std::io::Error;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::readiness::connecting;
use super::{SERVICE, Script, in_event_loop, stdout_of};

/// The program. It starts a connection, waits for the result, and queries the result.
pub(super) fn connects(at: SocketAddr) {
    let (stream, begun) = connecting(at);
    println!("begun: {:?}", begun.unwrap_err().raw_os_error());
    let mut one = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: the structure is a local variable.
    assert_eq!(unsafe { libc::poll(&raw mut one, 1, -1) }, 1);
    println!("SO_ERROR: {:?}", stream.take_error().unwrap().and_then(|error| error.raw_os_error()));
}

/// The program. It binds its socket before it connects.
pub(super) fn connects_from(source: SocketAddr, at: SocketAddr) {
    in_event_loop(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(source).unwrap();
        println!("bound to {}", socket.local_addr().unwrap());
        socket.connect(at).await.unwrap();
    });
}

/// Makes a socket. Several such sockets can have the same address, as in the agent.
fn socket() -> OwnedFd {
    // SAFETY: a new descriptor has one owner.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)) };
    set(&fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, &1);
    fd
}

fn set<T>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) {
    let size = libc::socklen_t::try_from(size_of::<T>()).unwrap();
    // SAFETY: the option is a reference of the caller, and has the given length.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const *value).cast(), size) };
    assert_eq!(done, 0, "{}", Error::last_os_error());
}

/// A call that takes a socket's name: the C library's `bind` or `connect`.
type Naming = unsafe extern "C" fn(libc::c_int, *const libc::sockaddr, libc::socklen_t) -> libc::c_int;

fn name(fd: &OwnedFd, call: Naming, to: SocketAddr) {
    let SocketAddr::V4(to) = to else { panic!("{to}") };
    let size = libc::socklen_t::try_from(size_of::<libc::sockaddr_in>()).unwrap();
    // SAFETY: all zeros is a valid name.
    let mut name: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    name.sin_family = libc::AF_INET as libc::sa_family_t;
    name.sin_port = to.port().to_be();
    name.sin_addr.s_addr = u32::from(*to.ip()).to_be();
    // SAFETY: the name is a local variable.
    assert_eq!(unsafe { call(fd.as_raw_fd(), (&raw const name).cast(), size) }, 0, "{}", Error::last_os_error());
}

/// Makes a listener that drops all packets. Returns the listener and its address.
fn gate() -> (std::net::TcpListener, SocketAddr) {
    let fd = socket();
    let mut drop_all = libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 };
    set(&fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &libc::sock_fprog { len: 1, filter: &raw mut drop_all });
    name(&fd, libc::bind, "127.83.68.80:0".parse().unwrap());
    // SAFETY: this call takes no pointer.
    assert_eq!(unsafe { libc::listen(fd.as_raw_fd(), 1) }, 0);
    let gate = std::net::TcpListener::from(fd);
    let at = gate.local_addr().unwrap();
    (gate, at)
}

/// Resets the connection that the program has started from the address `from` to the address `at`.
/// The connection is not established yet.
fn refuse(at: SocketAddr, from: SocketAddr) {
    let fd = socket();
    set(&fd, libc::IPPROTO_TCP, libc::TCP_QUICKACK, &0);
    set(&fd, libc::SOL_SOCKET, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: 0 });
    name(&fd, libc::bind, at);
    name(&fd, libc::connect, from);
}

#[test]
fn a_connection_that_fails_later_reports_the_agents_error() {
    for (word, number) in [
        ("refused", libc::ECONNREFUSED),
        ("timed-out", libc::ETIMEDOUT),
        ("unreachable", libc::EHOSTUNREACH),
        ("in-use", libc::EADDRINUSE),
        ("not-available", libc::EADDRNOTAVAIL),
        ("other", libc::ECONNABORTED),
    ] {
        let mut program = None;
        let script = Script::run("connect *:80 sdp 7080", move |mut it| {
            if it.first.starts_with("why ") {
                assert_eq!(it.first, format!("why {}", program.unwrap()));
                return it.send(&format!("failed {word} because"));
            }
            let (_gate, at) = gate();
            it.send(&format!("at {at}"));
            let from: SocketAddr = it.next().strip_prefix("from ").unwrap().parse().unwrap();
            program = Some(from);
            refuse(at, from);
        });
        let stdout = stdout_of(&script.program("later", SERVICE));
        assert!(stdout.contains(&format!("begun: Some({})", libc::EINPROGRESS)), "{word}: {stdout}");
        assert!(stdout.contains(&format!("SO_ERROR: Some({number})")), "{word}: {stdout}");
        let requests = script.requests();
        let expected = "connect 192.0.2.17:80 sdp 192.0.2.17:7080 no-wait";
        assert_eq!((requests.len(), requests[0].as_str()), (2, expected), "{word}: {requests:?}");
    }
}

#[test]
fn reports_the_bound_address_to_the_agent() {
    let script = Script::run("connect *:80 sdp 7080", |mut it| {
        if it.first.starts_with("connect") {
            it.meet("127.83.68.80");
        } else {
            it.send("unknown");
        }
    });
    let stdout = stdout_of(&script.program("bound", SERVICE));
    let bound = stdout.split_once("bound to ").unwrap().1.split_whitespace().next().unwrap();
    assert!(bound.starts_with("127.0.0.9:"), "{stdout}");
    let requests = script.requests();
    let expected = format!("connect 192.0.2.17:80 sdp 192.0.2.17:7080 source {bound} no-wait");
    assert!(requests.contains(&expected), "{requests:?}");
}
