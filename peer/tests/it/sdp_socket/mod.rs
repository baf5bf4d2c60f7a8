//! Tests SDP sockets between two devices over real TCP. The tests use every profile (sequence of
//! start-up frames), every Mode, large and small pieces, and every way to end a connection.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod api;
mod closing;
mod failover;
mod urgent;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpError, SdpListener, SdpSettings, SdpStream};
use weft_peer::sdp::{Half, Policy, Profile, Settings};
use weft_peer::verbs::{Node, RnicSettings};

fn device() -> Device {
    Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0)
}

fn settings(profile: Profile, order: FieldOrder) -> SdpSettings {
    let policy = Policy { source_threshold: 5000, sink_threshold: 0, ..Policy::default() };
    SdpSettings { sdp: Settings { profile, order, policy, ..Settings::default() }, ..SdpSettings::default() }
}

async fn pair(settings: SdpSettings) -> (SdpStream, SdpStream) {
    pair_of([device(), device()], settings).await
}

async fn pair_of([here, there]: [Device; 2], settings: SdpSettings) -> (SdpStream, SdpStream) {
    let listener = SdpListener::bind(&there, SocketAddr::from(([127, 0, 0, 1], 0)), settings).unwrap();
    let address = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(SdpStream::connect(&here, address, settings), listener.accept());
    (connected.unwrap(), accepted.unwrap())
}

/// Several start-ups run at the same time.
#[tokio::test]
async fn a_silent_connection_blocks_no_other() {
    let settings = settings(Profile::Swapped, FieldOrder::Figure);
    let listener = SdpListener::bind(&device(), SocketAddr::from(([127, 0, 0, 1], 0)), settings).unwrap();
    let address = listener.local_addr().unwrap();
    let _silent = TcpStream::connect(address).await.unwrap();
    let here = device();
    let (connected, accepted) = tokio::join!(SdpStream::connect(&here, address, settings), listener.accept());
    assert_eq!(accepted.unwrap().peer_addr(), connected.unwrap().local_addr());
}

/// Two listeners can share a port, one for IPv4 and one for IPv6, as the two sockets of a TCP
/// server can.
#[tokio::test]
async fn a_listener_of_ipv6_leaves_ipv4_to_another_one() {
    let both = SdpSettings::default();
    let alone = SdpSettings { only_v6: true, ..both };
    let bind =
        |at: &str, port, settings| SdpListener::bind(&device(), SocketAddr::new(at.parse().unwrap(), port), settings);
    // Another program on this host can already use the port for IPv6. The loop then tries another
    // port.
    let (v4, port) = loop {
        let v4 = bind("0.0.0.0", 0, both).unwrap();
        let port = v4.local_addr().unwrap().port();
        if bind("::", port, alone).is_ok() {
            break (v4, port);
        }
    };
    assert_eq!(bind("::", port, both).unwrap_err().kind(), ErrorKind::AddrInUse);
    let v6 = bind("::", port, alone).unwrap();
    for (listener, ip) in [(&v4, "127.0.0.1"), (&v6, "::1")] {
        let here = device();
        let connecting = SdpStream::connect(&here, SocketAddr::new(ip.parse().unwrap(), port), both);
        let (connected, accepted) = tokio::join!(connecting, listener.accept());
        assert_eq!(accepted.unwrap().peer_addr(), connected.unwrap().local_addr());
    }
}

/// In Pipelined Mode, large writes go directly into receives that the peer advertises. When the
/// user writes single octets, the peer stops advertising, and each octet is sent in a Data message.
/// Later large writes go into advertised receives again.
#[tokio::test]
async fn few_octets_are_not_worth_an_advertisement() {
    let (mut here, mut there) = pair(SdpSettings::default()).await;
    here.set_mode(Half::Out, Mode::Pipelined).unwrap();
    let writes = |stream: &SdpStream| stream.statistics().sending.moved.write_zcopy.operations;
    for _ in 0..2 {
        let before = writes(&here);
        // The first send can begin before a receive is advertised. In this case, the peer reads the
        // octets of this send.
        while writes(&here) == before {
            let (octets, mut got) = (vec![7; 1 << 20], vec![0; 1 << 20]);
            let (wrote, read) = tokio::join!(here.write_all(&octets), there.read_exact(&mut got));
            wrote.unwrap();
            read.unwrap();
            assert!(got == octets);
        }
        let mut by_then = 0;
        for turn in 0..40 {
            here.write_all(&[1]).await.unwrap();
            there.read_exact(&mut [0]).await.unwrap();
            if turn == 20 {
                by_then = writes(&here);
            }
        }
        assert_eq!((writes(&here), there.statistics().receiving.adverts), (by_then, 0));
    }
}

async fn echo(mut stream: SdpStream) {
    let mut buffer = vec![0; 9_999];
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        if read == 0 {
            break;
        }
        stream.write_all(&buffer[..read]).await.unwrap();
    }
    stream.shutdown().await.unwrap();
    stream.closed().await;
}

/// Sends octets in pieces to an echo, and returns the octets that come back.
async fn round(stream: SdpStream, octets: &[u8], piece: usize) -> Vec<u8> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let octets = octets.to_vec();
    let writing = tokio::spawn(async move {
        for piece in octets.chunks(piece) {
            writer.write_all(piece).await.unwrap();
        }
        writer.shutdown().await.unwrap();
        writer
    });
    let mut got = Vec::new();
    reader.read_to_end(&mut got).await.unwrap();
    let stream = reader.unsplit(writing.await.unwrap());
    stream.closed().await;
    got
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_octets_in_every_profile_and_mode() {
    let octets: Vec<u8> = (0..300_000u32).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect();
    let profiles = [Profile::Swapped, Profile::Bare, Profile::Natural, Profile::Enhanced, Profile::PrivateData];
    for (index, profile) in profiles.into_iter().enumerate() {
        let order = if index % 2 == 0 { FieldOrder::Figure } else { FieldOrder::Mirrored };
        for mode in [Mode::Combined, Mode::Pipelined, Mode::Buffered] {
            let (here, there) = pair(settings(profile, order)).await;
            if mode != Mode::Combined {
                here.set_mode(Half::Out, mode).unwrap();
                there.set_mode(Half::Out, mode).unwrap();
            }
            let echo = tokio::spawn(echo(there));
            let got = round(here, &octets, 33_333).await;
            let same = got.iter().zip(&octets).take_while(|(got, sent)| got == sent).count();
            assert_eq!((same, got.len()), (octets.len(), octets.len()), "{profile:?} {mode}");
            echo.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_is_reported_on_the_other_side() {
    let (here, mut there) = pair(settings(Profile::Swapped, FieldOrder::Figure)).await;
    here.abort();
    here.closed().await;
    let error = there.read(&mut [0; 10]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(there.write_all(&[1]).await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn written_data_is_sent_after_the_socket_is_dropped() {
    let (mut here, mut there) = pair(settings(Profile::Swapped, FieldOrder::Figure)).await;
    here.write_all(&[7; 100_000]).await.unwrap();
    drop(here);
    let mut got = Vec::new();
    there.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, vec![7; 100_000]);
    there.shutdown().await.unwrap();
    there.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_a_peer_with_another_protocol() {
    let there = device();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = SdpListener::bind(&there, any, SdpSettings::default()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n").await.unwrap();
    assert!(matches!(listener.accept().await, Err(SdpError::Refused(_))));
    // This listener does not answer the Hello.
    let mute = TcpListener::bind(any).await.unwrap();
    let sdp = Settings { startup_timeout: Duration::from_millis(50), ..Settings::default() };
    let settings = SdpSettings { sdp, ..SdpSettings::default() };
    let error = SdpStream::connect(&device(), mute.local_addr().unwrap(), settings).await.unwrap_err();
    assert!(matches!(error, SdpError::Refused(weft_peer::sdp::Refusal::TimedOut)), "{error}");
}
