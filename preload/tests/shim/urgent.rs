//! Sends urgent octets (MSG_OOB) to a program, through two relays with SDP between them. SIOCATMARK
//! shows the program the positions of these octets.
#![allow(unsafe_code, reason = "a program calls the C library")]

use std::future::pending;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpListener, SdpSettings, SdpStream, Side, relay};
use weft_peer::verbs::{Node, RnicSettings};

use super::{SERVICE, Script, stdout_of};

/// Reads all input octet by octet, including urgent octets. Prints `|` at the position of the mark.
pub(super) fn reads(at: SocketAddr) {
    let mut stream = TcpStream::connect(at).unwrap();
    let on: libc::c_int = 1;
    let len = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the option is an int in a local variable.
    let set = unsafe {
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_OOBINLINE, (&raw const on).cast(), len)
    };
    assert_eq!(set, 0);
    stream.write_all(b"go").unwrap();
    let mut urgent = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
    // SAFETY: the structure is a local variable.
    assert_eq!(unsafe { libc::poll(&raw mut urgent, 1, -1) }, 1);
    let mut got = String::new();
    loop {
        let mut at_mark: libc::c_int = -1;
        // SAFETY: the kernel stores an int (Linux: sockios.h), and `at_mark` is an int.
        assert_eq!(unsafe { libc::ioctl(stream.as_raw_fd(), SIOCATMARK, &raw mut at_mark) }, 0);
        let mut octet = [0];
        if stream.read(&mut octet).unwrap() == 0 {
            break;
        }
        got.push_str(if at_mark == 1 { "|" } else { "" });
        got.push(char::from(octet[0]));
    }
    println!("got {got}");
}

/// The value is from Linux, include/uapi/asm-generic/sockios.h. The package `libc` does not define
/// this constant.
const SIOCATMARK: libc::Ioctl = 0x8905;

fn device() -> Device {
    Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0)
}

/// Joins two TCP connections by two relays with SDP between them, until both connections end.
fn join(near: TcpStream, far: TcpStream) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let settings = SdpSettings { oob_inline: true, ..SdpSettings::default() };
        let listener = SdpListener::bind(&device(), SocketAddr::from(([127, 0, 0, 1], 0)), settings).unwrap();
        let (here, address) = (device(), listener.local_addr().unwrap());
        let (connected, accepted) = tokio::join!(SdpStream::connect(&here, address, settings), listener.accept());
        let tcp = |stream: TcpStream| {
            stream.set_nonblocking(true).unwrap();
            Side::Tcp(tokio::net::TcpStream::from_std(stream).unwrap())
        };
        tokio::join!(
            relay(tcp(near), Side::Sdp(connected.unwrap()), pending()),
            relay(Side::Sdp(accepted.unwrap()), tcp(far), pending())
        );
    });
}

#[test]
fn a_program_finds_the_mark_of_an_urgent_octet() {
    let script = Script::run(&format!("connect {SERVICE} sdp 127.0.0.1:9"), |mut it| {
        let (near, _) = it.meet("127.0.0.1");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut served, _) = listener.accept().unwrap();
        let serving = std::thread::spawn(move || {
            served.read_exact(&mut [0; 2]).unwrap();
            served.write_all(b"ab").unwrap();
            // SAFETY: the pointer is to one octet.
            let sent = unsafe { libc::send(served.as_raw_fd(), b"!".as_ptr().cast(), 1, libc::MSG_OOB) };
            assert_eq!(sent, 1);
            served.write_all(b"cd").unwrap();
        });
        join(near, far);
        serving.join().unwrap();
    });
    let stdout = stdout_of(&script.program("urgent", SERVICE));
    assert!(stdout.contains("got ab|!cd"), "{stdout}");
}
