//! Tests every way in which an SDP connection can end. No acknowledged byte is lost, and no
//! resource remains allocated.
//!
//! weft's SDP API acknowledges bytes to the writer in three ways:
//!
//! - A successful `flush` or `shutdown` shows that SDP has sent all bytes. The payload of messages
//!   is then in TCP, and the data of RDMA operations is then in the peer's memory.
//! - A graceful close of both sides shows that the peer has received the bytes. It does not show
//!   that the peer's user has read them.
//! - An answer of the peer's program shows that it has read the bytes.
//!
//! A successful write alone shows nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::process::Child;
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;
use weft_core::wire::sdp::Mode;
use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpListener, SdpSettings, SdpStream};
use weft_peer::sdp::{Half, Policy, Settings};
use weft_peer::verbs::{InUse, Node, RnicSettings};

use crate::sdp::faults::connect;
use crate::sdp::process::{Listening, octets};
use crate::wait::LONG;

const MODES: [Mode; 3] = [Mode::Combined, Mode::Pipelined, Mode::Buffered];

fn device() -> Device {
    Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0)
}

/// Returns settings with which the connection uses every mechanism.
fn settings() -> SdpSettings {
    let policy = Policy { source_threshold: 5000, sink_threshold: 0, ..Policy::default() };
    SdpSettings { sdp: Settings { policy, ..Settings::default() }, ..SdpSettings::default() }
}

fn listener(device: &Device) -> SdpListener {
    SdpListener::bind(device, SocketAddr::from(([127, 0, 0, 1], 0)), settings()).unwrap()
}

async fn pair(device: &Device, mode: Mode) -> (SdpStream, SdpStream) {
    let listener = listener(device);
    let at = listener.local_addr().unwrap();
    let (here, there) = tokio::join!(SdpStream::connect(device, at, settings()), listener.accept());
    let (here, there) = (here.unwrap(), there.unwrap());
    if mode != Mode::Combined {
        here.set_mode(Half::Out, mode).unwrap();
    }
    (here, there)
}

/// Returns the number of tasks of this runtime, and the used resources of a device. The tests in
/// `faults` count descriptors.
fn all_that_is(device: &Device) -> (usize, InUse) {
    (Handle::current().metrics().num_alive_tasks(), device.verbs(|rnic| rnic.in_use()))
}

async fn comes_back_to(device: &Device, before: (usize, InUse)) {
    let is_back = async {
        while all_that_is(device) != before {
            tokio::task::yield_now().await;
        }
    };
    if tokio::time::timeout(LONG, is_back).await.is_err() {
        assert_eq!(all_that_is(device), before, "after {LONG:?}");
    }
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Both sides close. One side closes before it has read anything, and reads the data after the
/// close.
#[tokio::test]
async fn octets_sent_before_a_graceful_close_are_read_after_it() {
    let (device, sent) = (device(), octets(150_000));
    for mode in MODES {
        let before = all_that_is(&device);
        let (mut here, mut there) = pair(&device, mode).await;
        here.write_all(&sent).await.unwrap();
        here.shutdown().await.unwrap();
        there.shut_down(Half::Out);
        here.closed().await;
        assert_eq!(here.read(&mut [0]).await.unwrap(), 0, "{mode}: graceful");
        drop(here);
        let mut got = Vec::new();
        there.read_to_end(&mut got).await.unwrap();
        assert!(got == sent, "{mode}: {} bytes", got.len());
        drop(there);
        comes_back_to(&device, before).await;
    }
}

/// The sender closes its half of the connection, and then its process dies. The receiver can still
/// read all data of this half.
#[tokio::test]
async fn octets_sent_before_a_half_close_are_read_after_the_death_of_their_sender() {
    let (device, sent) = (device(), octets(150_000));
    let listener = listener(&device);
    let before = all_that_is(&device);
    let mut child = connect(&listener.local_addr().unwrap().to_string());
    let mut stream = listener.accept().await.unwrap();
    let (mut stdin, given) = (child.0.stdin.take().unwrap(), sent.clone());
    let writing = thread::spawn(move || stdin.write_all(&given));
    let mut got = vec![0; 1000];
    stream.read_exact(&mut got).await.unwrap();
    // The end of its input makes the child process close its half of the connection.
    writing.join().unwrap().unwrap();
    assert!(!stream.urgent().await, "the half has ended, and nobody has read the rest");
    kill(&mut child.0);
    stream.broken().await;
    let end = stream.read_to_end(&mut got).await;
    assert!(got == sent);
    assert!(end.is_ok() || end.unwrap_err().kind() == ErrorKind::ConnectionReset);
    drop(stream);
    drop(child);
    comes_back_to(&device, before).await;
}

/// A peer that returns all data is killed. The reader gets a prefix of the sent bytes, and then a
/// reset. Later writes fail, and a flush of unsent bytes also fails.
#[tokio::test]
async fn answers_before_the_death_of_a_peer_are_a_prefix_of_the_sent_octets() {
    let (device, sent) = (device(), octets(8_000_000));
    for mode in MODES {
        let mut echo = Listening::start(&["serve", "--listen", "127.0.0.1:0"]);
        let before = all_that_is(&device);
        let stream = SdpStream::connect(&device, echo.at.parse().unwrap(), settings()).await.unwrap();
        if mode != Mode::Combined {
            stream.set_mode(Half::Out, mode).unwrap();
        }
        let writing = async {
            let mut writer = &stream;
            loop {
                if let Err(error) = writer.write_all(&sent).await {
                    return error.kind();
                }
            }
        };
        let reading = async {
            let (mut reader, mut got, mut piece) = (&stream, Vec::new(), vec![0; 100_000]);
            loop {
                match reader.read(&mut piece).await {
                    Ok(read) => got.extend_from_slice(&piece[..read]),
                    Err(error) => return (got, error.kind()),
                }
                if got.len() > 500_000 {
                    let _ = echo.process.kill();
                }
            }
        };
        let (written, (got, end)) = tokio::join!(writing, reading);
        assert!(got.len() > 500_000 && got.chunks(sent.len()).all(|got| got == &sent[..got.len()]), "{mode}");
        assert_eq!(end, ErrorKind::ConnectionReset, "{mode}");
        assert!([ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&written), "{mode}: {written}");
        let flushed = (&stream).flush().await.unwrap_err().kind();
        assert!([ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&flushed), "{mode}: {flushed}");
        stream.closed().await;
        drop(stream);
        comes_back_to(&device, before).await;
    }
}

/// An abort drops bytes in flight. The writer notices the abort because its flush fails. The reader
/// gets a reset after the first bytes.
#[tokio::test]
async fn an_abort_takes_no_read_octets_back_and_fails_the_flush() {
    let (device, sent) = (device(), octets(2_000_000));
    for (mode, by_writer) in MODES.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let before = all_that_is(&device);
        let (here, mut there) = pair(&device, mode).await;
        let writing = async { ((&here).write_all(&sent).await, (&here).flush().await) };
        let reading = async {
            let mut got = vec![0; 100_000];
            there.read_exact(&mut got).await.unwrap();
            if by_writer {
                here.abort();
            } else {
                there.abort();
            };
            let end = there.read_to_end(&mut got).await.unwrap_err().kind();
            (got, end)
        };
        let ((_, flushed), (got, end)) = tokio::join!(writing, reading);
        assert!(flushed.is_err(), "{mode}, by its writer: {by_writer}");
        assert!(got[..] == sent[..got.len()], "{mode}, by its writer: {by_writer}");
        assert_eq!(end, ErrorKind::ConnectionReset, "{mode}, by its writer: {by_writer}");
        drop((here, there));
        comes_back_to(&device, before).await;
    }
}

/// The peer can read flushed bytes even if the writer no longer exists.
#[tokio::test]
async fn flushed_octets_are_read_after_their_writer_is_gone() {
    let (device, sent) = (device(), octets(150_000));
    for mode in MODES {
        let before = all_that_is(&device);
        let (mut here, mut there) = pair(&device, mode).await;
        let writing = async {
            here.write_all(&sent).await.unwrap();
            here.flush().await.unwrap();
            drop(here);
        };
        let reading = async {
            let mut got = Vec::new();
            there.read_to_end(&mut got).await.unwrap();
            drop(there);
            got
        };
        let ((), got) = tokio::join!(writing, reading);
        assert!(got == sent, "{mode}");
        comes_back_to(&device, before).await;
    }
}

/// A start-up can fail in three ways: the peer rejects it, a peer with another protocol closes the
/// connection, or the caller cancels it. In all three cases, no resources remain.
#[tokio::test]
async fn a_start_up_that_fails_leaves_nothing() {
    let device = device();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let before = all_that_is(&device);
    let given_up = async {
        let connecting = SdpStream::connect(&device, at, settings());
        let taken = tokio::task::spawn_blocking(move || {
            let (mut stream, _) = silent.accept().unwrap();
            // The Hello has arrived, so the start-up is in progress.
            stream.read_exact(&mut [0; 32]).unwrap();
            // Keep the stream open until the other side has cancelled the start-up.
            stream
        });
        tokio::select! {
            _ = connecting => panic!("nobody answers"),
            taken = taken => taken.unwrap(),
        }
    };
    let taken = given_up.await;
    drop(taken);
    let refused = SdpStream::connect(&device, at, settings()).await;
    assert!(refused.is_err());
    comes_back_to(&device, before).await;
}
