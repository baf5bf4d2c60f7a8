//! Tests the builtin responder and initiator over real TCP on the loopback interface.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy};
use weft_peer::driver::serve::{Server, ServerSettings, StopHandle};
use weft_peer::driver::{Link, LinkError, Received, TcpLink, initiate};
use weft_peer::mpa::{EnhancedUse, MpaSettings, PrivateData};

const LIMIT: Duration = Duration::from_secs(60);

struct Running {
    address: std::net::SocketAddr,
    stop: StopHandle,
    task: JoinHandle<()>,
}

fn start(settings: ServerSettings) -> Running {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let (address, stop) = (server.local_addr(), server.stop_handle());
    assert_ne!(address.port(), 0);
    Running { address, stop, task: tokio::spawn(server.run()) }
}

impl Running {
    async fn stop(self) {
        self.stop.stop();
        tokio::time::timeout(LIMIT, self.task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn initiator_and_responder_exchange_a_send() {
    let reply = PrivateData::new(&b"hello back"[..]).unwrap();
    let connection = Settings { private_data: reply.clone(), ..Settings::default() };
    let server = start(ServerSettings { connection, ..ServerSettings::default() });
    for (length, crc) in [(0, true), (1, false), (1436, true), (65_536, true)] {
        let message: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let outcome = initiate(server.address, with_crc(crc), message.clone(), LIMIT);
        let outcome = outcome.await.unwrap();
        assert_eq!(outcome.received.as_deref(), Some(&message[..]));
        assert_eq!(outcome.reply.unwrap().private_data, reply);
        // The responder always requests CRCs.
        assert!(outcome.negotiated.unwrap().crc);
        assert_eq!(outcome.closed, Some(Closed { by: ClosedBy::User, why: CloseCause::Requested }));
    }
    server.stop().await;
}

/// P2P-10-5: a responder that does not support the enhanced set-up closes. The initiator then sends
/// a Request of revision 1 on a new connection.
#[tokio::test]
async fn an_enhanced_request_falls_back_to_revision_1() {
    let with = |enhanced| Settings { mpa: MpaSettings { enhanced, ..MpaSettings::default() }, ..Settings::default() };
    for (responder, enhanced) in [(EnhancedUse::Answer, true), (EnhancedUse::Off, false)] {
        let server = start(ServerSettings { connection: with(responder), ..ServerSettings::default() });
        let outcome = initiate(server.address, with(EnhancedUse::Request), &b"echo"[..], LIMIT).await.unwrap();
        assert_eq!(outcome.received.as_deref(), Some(&b"echo"[..]));
        assert_eq!(outcome.negotiated.unwrap().enhanced.is_some(), enhanced);
        assert_eq!(outcome.reply.unwrap().revision, if enhanced { 2 } else { 1 });
        server.stop().await;
    }
}

/// If the responder cannot accept a message, it sends a Terminate, which ends the exchange. The
/// initiator reports this Terminate.
#[tokio::test]
async fn a_send_that_is_too_long_is_terminated() {
    let server = start(ServerSettings::default());
    let outcome = initiate(server.address, Settings::default(), vec![0; 65_537], LIMIT).await.unwrap();
    let Some(Closed { by: ClosedBy::Peer, why: CloseCause::TerminateReceived(error) }) = outcome.closed else {
        panic!("{outcome:?}")
    };
    assert_eq!((error.layer.0, error.error_type, error.code), (1, 2, 5));
    assert_eq!(outcome.received, None);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_connections_at_once_and_more_than_are_served() {
    let server = start(ServerSettings { max_connections: 8, ..ServerSettings::default() });
    let mut tasks = JoinSet::new();
    for i in 0..64u8 {
        tasks.spawn(initiate(server.address, Settings::default(), vec![i; 10_000], LIMIT));
    }
    let mut echoed = 0;
    while let Some(outcome) = tasks.join_next().await {
        let received = outcome.unwrap().unwrap().received.unwrap();
        assert_eq!(received.len(), 10_000);
        echoed += 1;
    }
    assert_eq!(echoed, 64);
    server.stop().await;
}

/// A graceful stop of the server closes its open connections. If a peer does not answer, the server
/// resets the connection after the close time-out.
#[tokio::test]
async fn stopping_closes_open_connections() {
    let connection = Settings { close_timeout: Duration::from_millis(50), ..Settings::default() };
    let server = start(ServerSettings { connection, ..ServerSettings::default() });
    let mut link = Link::Tcp(TcpLink::new(server.address));
    let mut tester = link.connect().await.unwrap();
    tester.send(b"MPA ID Req Frame\x40\x01\x00\x00").await.unwrap();
    let deadline = tester.now() + LIMIT;
    assert!(matches!(tester.receive(deadline).await.unwrap(), Received::Octets(_)));
    let stopped = tokio::spawn(server.stop());
    // The tester does not close its side of the connection.
    assert_eq!(tester.receive(deadline).await.unwrap(), Received::Fin);
    stopped.await.unwrap();
    assert!(link.connect().await.is_err());
}

/// The start-up time-outs of the endpoint also work over real TCP.
#[tokio::test]
async fn a_silent_peer_is_closed() {
    let connection = Settings { startup_timeout: Duration::from_millis(30), ..Settings::default() };
    let server = start(ServerSettings { connection, ..ServerSettings::default() });
    let mut link = Link::Tcp(TcpLink::new(server.address));
    let start = link.now();
    let mut tester = link.connect().await.unwrap();
    assert_eq!(tester.receive(start + LIMIT).await.unwrap(), Received::Fin);
    assert!(tester.now() >= start + Duration::from_millis(30), "closed at {}", tester.now());
    drop(tester);
    server.stop().await;
}

/// The peer sends many octets before it reads. TCP delays the echo, neither side closes the
/// connection, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_reads_late_loses_nothing() {
    const SENDS: u32 = 200;
    let server = start(ServerSettings { connection: with_crc(false), ..ServerSettings::default() });
    let mut link = Link::Tcp(TcpLink::new(server.address)).with_send_timeout(LIMIT);
    let mut tester = link.connect().await.unwrap();
    tester.send(b"MPA ID Req Frame\x00\x01\x00\x00").await.unwrap();
    let deadline = tester.now() + LIMIT;
    assert!(matches!(tester.receive(deadline).await.unwrap(), Received::Octets(_)));
    let mut sent = Vec::new();
    for msn in 1..=SENDS {
        let ulpdu = [b"\x41\x43\0\0\0\0\0\0\0\0", &msn.to_be_bytes()[..], &[0; 4], &[msn as u8; 16_000]].concat();
        sent.extend_from_slice(&[&16_018u16.to_be_bytes()[..], &ulpdu, &[0; 4]].concat());
    }
    tester.send(&sent).await.unwrap();
    tester.finish().await.unwrap();
    let mut back = Vec::new();
    loop {
        match tester.receive(deadline).await.unwrap() {
            Received::Octets(octets) => back.extend_from_slice(&octets),
            Received::Fin => break,
            other => panic!("{other:?} after {} bytes", back.len()),
        }
    }
    // With the segment size of the loopback interface, each message fits in one FPDU. So the octets
    // of the echo equal the sent octets.
    assert_eq!(back.len(), sent.len());
    assert!(back == sent);
    server.stop().await;
}

/// The peer sends and never reads. TCP stops the peer, so the memory that the server uses does not
/// grow. The peer cannot delay a stop of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_reads_is_held_back() {
    let connection = Settings { close_timeout: Duration::from_millis(50), ..with_crc(false) };
    let server = start(ServerSettings { connection, ..ServerSettings::default() });
    let mut link = Link::Tcp(TcpLink::new(server.address)).with_send_timeout(Duration::from_millis(500));
    let mut tester = link.connect().await.unwrap();
    tester.send(b"MPA ID Req Frame\x00\x01\x00\x00").await.unwrap();
    let deadline = tester.now() + LIMIT;
    assert!(matches!(tester.receive(deadline).await.unwrap(), Received::Octets(_)));
    // The tester tries to send far more octets than the buffers of the sockets and the queue of the
    // echo can hold. The receives of the echo would accept all of them.
    let mut refused = None;
    for msn in 1..=3500u32 {
        let ulpdu = [b"\x41\x43\0\0\0\0\0\0\0\0", &msn.to_be_bytes()[..], &[0; 4], &[0; 16_000]].concat();
        let fpdu = [&16_018u16.to_be_bytes()[..], &ulpdu, &[0; 4]].concat();
        if let Err(error) = tester.send(&fpdu).await {
            refused = Some(error);
            break;
        }
    }
    assert!(matches!(refused, Some(LinkError::SendTimeout { .. })), "{refused:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_connection_over_the_limit_waits() {
    let server = start(ServerSettings { max_connections: 1, ..ServerSettings::default() });
    let mut link = Link::Tcp(TcpLink::new(server.address));
    let mut first = link.connect().await.unwrap();
    first.send(b"MPA ID Req Frame\x40\x01\x00\x00").await.unwrap();
    let deadline = first.now() + LIMIT;
    assert!(matches!(first.receive(deadline).await.unwrap(), Received::Octets(_)));
    let mut second = link.connect().await.unwrap();
    second.send(b"MPA ID Req Frame\x40\x01\x00\x00").await.unwrap();
    assert_eq!(second.receive(second.now() + Duration::from_millis(50)).await.unwrap(), Received::TimedOut);
    first.finish().await.unwrap();
    assert!(matches!(second.receive(deadline).await.unwrap(), Received::Octets(_)));
    drop(second);
    server.stop().await;
}

fn with_crc(crc: bool) -> Settings {
    Settings { mpa: MpaSettings { crc, ..MpaSettings::default() }, ..Settings::default() }
}

/// The tester's own port is in use, so no packet reaches the target: the target is not at fault.
#[tokio::test]
async fn a_port_in_use_is_an_error_of_the_tester() {
    let server = start(ServerSettings::default());
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut link = Link::Tcp(TcpLink::new(server.address));
    let error = link.connect_to(server.address, Some(other.local_addr().unwrap())).await.unwrap_err();
    assert!(matches!(&error, LinkError::Io { .. }), "{error}");
}
