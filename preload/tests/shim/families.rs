//! Some servers, such as sshd and nginx, have one socket for IPv6 only and another socket for IPv4.
//! The tests check that the request to the agent contains whether a socket is for IPv6 only.
#![allow(unsafe_code, reason = "a program calls the C library")]

use std::io::Error;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::FromRawFd;

use super::{Script, stdout_of};

/// The program. It listens on all IPv6 addresses, at a port that the kernel selects.
pub(super) fn listens(only_v6: bool) {
    let only = libc::c_int::from(only_v6);
    // SAFETY: a new descriptor has one owner. The option and the name are local variables with the
    // given lengths.
    let listener = unsafe {
        let fd = libc::socket(libc::AF_INET6, libc::SOCK_STREAM, 0);
        let listener = TcpListener::from_raw_fd(fd);
        let size = libc::socklen_t::try_from(size_of_val(&only)).unwrap();
        let set = libc::setsockopt(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, (&raw const only).cast(), size);
        assert_eq!(set, 0, "{}", Error::last_os_error());
        let mut name: libc::sockaddr_in6 = std::mem::zeroed();
        name.sin6_family = libc::AF_INET6 as libc::sa_family_t;
        let size = libc::socklen_t::try_from(size_of_val(&name)).unwrap();
        assert_eq!(libc::bind(fd, (&raw const name).cast(), size), 0, "{}", Error::last_os_error());
        assert_eq!(libc::listen(fd, 1), 0, "{}", Error::last_os_error());
        listener
    };
    println!("at port {}", listener.local_addr().unwrap().port());
}

#[test]
fn reports_a_socket_of_one_family_as_such() {
    for (role, more) in [("listen-v6", " only-v6"), ("listen-both", "")] {
        let script = Script::run("listen *:* sdp 7080", |mut it| it.send("done"));
        let stdout = stdout_of(&script.program(role, "[::]:0"));
        let port = stdout.split_once("at port ").unwrap().1.split_whitespace().next().unwrap();
        let service: SocketAddr = format!("[::]:{port}").parse().unwrap();
        assert_eq!(script.requests(), [format!("listen {service} sdp [::]:7080{more}")]);
    }
}
