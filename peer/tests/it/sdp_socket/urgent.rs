//! Tests two relays between two TCP programs. Urgent octets (MSG_OOB) pass through both relays.

use std::future::pending;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use rustix::event::{PollFd, PollFlags, poll};
use socket2::SockRef;
use weft_peer::driver::sdp::{SdpSettings, Side, relay};

use crate::sdp_socket::pair;

/// A TCP connection between a program and a relay.
fn tcp() -> (TcpStream, Side) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let program = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (relayed, _) = listener.accept().unwrap();
    relayed.set_nonblocking(true).unwrap();
    (program, Side::Tcp(tokio::net::TcpStream::from_std(relayed).unwrap()))
}

/// Runs the test with two programs. Each program has a TCP connection to its own relay, and SDP
/// connects the two relays.
async fn with_programs(what: impl FnOnce(&TcpStream, &TcpStream) + Send + 'static) {
    let settings = SdpSettings { oob_inline: true, ..SdpSettings::default() };
    let (near, far) = pair(settings).await;
    let ((here, first), (there, second)) = (tcp(), tcp());
    tokio::spawn(relay(first, Side::Sdp(near), pending()));
    tokio::spawn(relay(Side::Sdp(far), second, pending()));
    tokio::task::spawn_blocking(move || what(&here, &there)).await.unwrap();
}

/// Waits until an urgent octet has arrived.
fn wait_for_urgent(program: &TcpStream) {
    poll(&mut [PollFd::new(program, PollFlags::PRI)], None).unwrap();
}

fn read(mut program: &TcpStream) -> Vec<u8> {
    let mut got = [0; 16];
    let len = program.read(&mut got).unwrap();
    got[..len].to_vec()
}

fn write(mut program: &TcpStream, octets: &[u8]) {
    program.write_all(octets).unwrap();
}

fn write_urgent(program: &TcpStream, octet: u8) {
    assert_eq!(SockRef::from(program).send_out_of_band(&[octet]).unwrap(), 1);
}

/// Takes the urgent octet, which is outside the stream.
fn take_urgent(program: &TcpStream) {
    assert_eq!(SockRef::from(program).recv_out_of_band(&mut [MaybeUninit::uninit()]).unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_urgent_octet_keeps_its_place_beside_the_stream() {
    with_programs(|here, there| {
        for (from, to) in [(here, there), (there, here)] {
            write(from, b"ab");
            write_urgent(from, b'!');
            write(from, b"cd");
            wait_for_urgent(to);
            take_urgent(to);
            // A read ends at the position of the urgent octet.
            assert_eq!(read(to), b"ab");
            let mut rest = read(to);
            while rest.len() < 2 {
                rest.extend(read(to));
            }
            assert_eq!(rest, b"cd");
        }
        // A single urgent octet passes at once. It does not wait for later data.
        write_urgent(here, b'?');
        wait_for_urgent(there);
        take_urgent(there);
        here.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read(there), b"");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_urgent_octet_keeps_its_place_in_the_stream() {
    with_programs(|here, there| {
        SockRef::from(there).set_out_of_band_inline(true).unwrap();
        write(here, b"ab");
        write_urgent(here, b'!');
        write(here, b"cd");
        here.shutdown(Shutdown::Write).unwrap();
        wait_for_urgent(there);
        assert_eq!(read(there), b"ab");
        let mut rest = Vec::new();
        (&*there).read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"!cd");
    })
    .await;
}
