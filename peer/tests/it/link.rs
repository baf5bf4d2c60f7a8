//! Tests the tester's link, which connects the tester to its target. The same cases run over the
//! virtual link (in one process, with a virtual clock) and over real TCP on the loopback interface.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;
use weft_peer::driver::serve::{Server, ServerSettings, StopHandle};
use weft_peer::driver::{Direction, EventContent, Link, LinkError, Received, TcpLink, TesterConnection, VirtualLink};
use weft_peer::hostile::mangle::Mangling;
use weft_peer::mpa::MpaSettings;
use weft_peer::service::Echo;
use weft_peer::{Deviations, Settings};

const REQUEST: &[u8; 20] = b"MPA ID Req Frame\x40\x01\x00\x00";
const REPLY: &[u8; 20] = b"MPA ID Rep Frame\x40\x01\x00\x00";
/// An FPDU with its CRC, of a Send with MSN 1 and without payload.
const SEND: &[u8] = b"\x00\x12\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\x58\x7b\xe8\xc4";

/// A target, and the objects that keep it alive.
struct Target {
    link: Link,
    server: Option<(StopHandle, JoinHandle<()>)>,
}

impl Target {
    fn new(tcp: bool, connection: Settings) -> Self {
        if !tcp {
            return Target { link: Link::Virtual(VirtualLink::echo(connection)), server: None };
        }
        let settings = ServerSettings { connection, ..ServerSettings::default() };
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
        let link = Link::Tcp(TcpLink::new(server.local_addr()));
        let stop = server.stop_handle();
        Target { link, server: Some((stop, tokio::spawn(server.run()))) }
    }

    /// Stops the server. All connections must be dropped first, because the server waits for its
    /// connections.
    async fn stop(self) {
        if let Some((stop, task)) = self.server {
            stop.stop();
            task.await.unwrap();
        }
    }
}

async fn next(connection: &mut TesterConnection) -> Received {
    let deadline = connection.now() + Duration::from_secs(20);
    connection.receive(deadline).await.unwrap()
}

/// Receives exactly these octets. They can arrive in any pieces.
async fn expect(connection: &mut TesterConnection, expected: &[u8]) {
    let mut got = Vec::new();
    while got.len() < expected.len() {
        match next(connection).await {
            Received::Octets(octets) => got.extend_from_slice(&octets),
            other => panic!("{other:?} after {got:02x?}"),
        }
    }
    assert_eq!(got, expected);
}

#[tokio::test]
async fn start_up_send_and_close_each_way() {
    for tcp in [false, true] {
        let mut target = Target::new(tcp, Settings::default());
        let mut connection = target.link.connect().await.unwrap();
        connection.send(REQUEST).await.unwrap();
        expect(&mut connection, REPLY).await;
        connection.send(SEND).await.unwrap();
        expect(&mut connection, SEND).await;
        connection.finish().await.unwrap();
        assert!(matches!(connection.send(b"x").await, Err(LinkError::Finished)));
        assert_eq!(next(&mut connection).await, Received::Fin);
        assert_eq!(next(&mut connection).await, Received::Fin);
        drop(connection);

        let events = target.link.traffic().events();
        let seen: Vec<_> = events.iter().map(|event| (event.direction, event.content.clone())).collect();
        let octets = |octets: &'static [u8]| EventContent::Octets(Bytes::from_static(octets));
        assert!(matches!(seen[0], (Direction::ToTarget, EventContent::Connected { target: at, .. })
                if at == target.link.target()));
        assert_eq!(
            seen[1..],
            [
                (Direction::ToTarget, octets(REQUEST)),
                (Direction::FromTarget, octets(REPLY)),
                (Direction::ToTarget, octets(SEND)),
                (Direction::FromTarget, octets(SEND)),
                (Direction::ToTarget, EventContent::Fin),
                (Direction::FromTarget, EventContent::Fin),
            ]
        );
        assert!(events.is_sorted_by_key(|event| event.at));
        target.stop().await;
    }
}

/// MPA-7.1.1-2: for each changed octet of the key, the correct Responder closes without a Reply.
/// The deviating Responder replies. After each of these attempts, the test can open a new
/// connection.
#[tokio::test]
async fn a_wrong_key_is_closed_unless_the_responder_deviates() {
    for tcp in [false, true] {
        for deviates in [false, true] {
            let deviations =
                if deviates { Deviations::from_names(["mpa.accepts-wrong-key"]).unwrap() } else { Deviations::NONE };
            let mut target = Target::new(tcp, Settings { deviations, ..Settings::default() });
            for at in 0..16 {
                let mut request = *REQUEST;
                request[at] ^= 0x20;
                let mut connection = target.link.connect().await.unwrap();
                connection.send(&request).await.unwrap();
                if deviates {
                    expect(&mut connection, REPLY).await;
                } else {
                    let end = next(&mut connection).await;
                    assert!(matches!(end, Received::Fin | Received::Reset), "key octet {at}: {end:?}");
                }
                let mut alive = target.link.connect().await.unwrap();
                alive.send(REQUEST).await.unwrap();
                expect(&mut alive, REPLY).await;
                assert_eq!(alive.number(), 2 * at as u32 + 1);
            }
            target.stop().await;
        }
    }
}

#[tokio::test]
async fn a_reset_ends_both_ends() {
    for tcp in [false, true] {
        let mut target = Target::new(tcp, Settings::default());
        let mut connection = target.link.connect().await.unwrap();
        connection.send(REQUEST).await.unwrap();
        connection.reset().await.unwrap();
        assert_eq!(next(&mut connection).await, Received::Reset);
        assert!(matches!(connection.send(b"x").await, Err(LinkError::Finished)));
        let last = target.link.traffic().events().pop().unwrap();
        assert_eq!((last.direction, last.content), (Direction::ToTarget, EventContent::Reset));
        // The graceful stop returns, because the server has no connection left.
        drop(connection);
        target.stop().await;
    }
}

/// With the virtual clock, time-outs of more than a minute take no real time. The Responder closes
/// at its start-up time-out. If the tester does not close, the Responder then resets.
#[tokio::test]
async fn time_outs_cost_no_time_on_the_virtual_link() {
    let began = std::time::Instant::now();
    for _ in 0..100 {
        let settings = Settings { startup_timeout: Duration::from_secs(60), ..Settings::default() };
        let mut link = Link::Virtual(VirtualLink::echo(settings));
        let mut connection = link.connect().await.unwrap();
        let start = connection.now();
        connection.send(&REQUEST[..19]).await.unwrap();
        assert_eq!(connection.receive(start + Duration::from_secs(59)).await.unwrap(), Received::TimedOut);
        assert_eq!(connection.now(), start + Duration::from_secs(59));
        assert_eq!(next(&mut connection).await, Received::Fin);
        assert_eq!(connection.now(), start + Duration::from_secs(60));
        link.pause(start + Duration::from_secs(70)).await;
        assert_eq!(link.now(), start + Duration::from_secs(70));
    }
    assert!(began.elapsed() < Duration::from_secs(60), "6,000 virtual seconds took {:?}", began.elapsed());
}

#[tokio::test]
async fn the_same_case_has_the_same_traffic_events() {
    let mut logs = Vec::new();
    for _ in 0..3 {
        let mut link = Link::Virtual(VirtualLink::echo(Settings::default()));
        for cut in [3, 16, 20] {
            let mut connection = link.connect().await.unwrap();
            connection.send(&REQUEST[..cut]).await.unwrap();
            link.pause(link.now() + Duration::from_millis(1)).await;
            connection.send(&REQUEST[cut..]).await.unwrap();
            expect(&mut connection, REPLY).await;
        }
        logs.push(link.traffic().events());
    }
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[1], logs[2]);
}

/// A tester sends many octets to an echo and never reads. TCP back pressure stops the tester, and
/// the tester gets an error that explains the cause.
#[tokio::test]
async fn a_tester_that_does_not_read_is_held_back() {
    let mut link = Link::Virtual(VirtualLink::echo(without_crc()));
    let mut connection = link.connect().await.unwrap();
    connection.send(b"MPA ID Req Frame\x00\x01\x00\x00").await.unwrap();
    expect(&mut connection, b"MPA ID Rep Frame\x00\x01\x00\x00").await;
    let mut sent = 0;
    for msn in 1u32.. {
        let ulpdu = [b"\x41\x43\0\0\0\0\0\0\0\0", &msn.to_be_bytes()[..], &[0; 4], &[7; 60_000]].concat();
        let fpdu = [&60_018u16.to_be_bytes()[..], &ulpdu, &[0; 4]].concat();
        match connection.send(&fpdu).await {
            Ok(()) => sent += fpdu.len(),
            Err(error) => {
                assert!(matches!(error, LinkError::SendTimeout { .. }), "{error:?}");
                break;
            }
        }
        assert!(sent < 4 * VirtualLink::WINDOW, "{sent} bytes went out");
    }
    // After the tester has read, it can send again.
    assert!(matches!(next(&mut connection).await, Received::Octets(_)));
}

/// The tester sends a Request and two Sends in segments that it chooses: in reverse order, twice,
/// and with other bytes after the delivery. The target answers once, and the traffic log has the
/// stream in its order.
#[tokio::test]
async fn the_target_brings_segments_into_order() {
    let mut link = Link::Virtual(VirtualLink::echo(Settings::default()));
    let mut connection = link.connect().await.unwrap();
    connection.withhold(REQUEST).await.unwrap();
    for (begin, end) in [(18, 20), (3, 18), (18, 20)] {
        connection.send_segment(begin as i64, &REQUEST[begin..end], None).await.unwrap();
    }
    let deadline = connection.now() + Duration::from_secs(1);
    assert_eq!(connection.receive(deadline).await.unwrap(), Received::TimedOut);
    connection.send_withheld().await.unwrap();
    expect(&mut connection, REPLY).await;

    connection.send(SEND).await.unwrap();
    expect(&mut connection, SEND).await;
    let changed = [0xff; SEND.len()];
    connection.send_segment(-(SEND.len() as i64), &changed, None).await.unwrap();
    let deadline = connection.now() + Duration::from_secs(1);
    assert_eq!(connection.receive(deadline).await.unwrap(), Received::TimedOut);
    connection.finish().await.unwrap();
    assert_eq!(next(&mut connection).await, Received::Fin);

    let sent = link.traffic().events().into_iter().filter(|event| event.direction == Direction::ToTarget);
    let octets = sent.filter_map(|event| match event.content {
        EventContent::Octets(octets) => Some(octets),
        _ => None,
    });
    assert_eq!(octets.collect::<Vec<_>>().concat(), [&REQUEST[..], SEND].concat());
}

#[tokio::test]
async fn only_the_virtual_link_lets_the_tester_choose_segments() {
    let mut target = Target::new(true, Settings::default());
    assert!(matches!(target.link.set_first_sequence(1), Err(LinkError::NoSegments)));
    let mut connection = target.link.connect().await.unwrap();
    assert!(matches!(connection.withhold(REQUEST).await, Err(LinkError::NoSegments)));
    assert!(matches!(connection.send_segment(0, REQUEST, None).await, Err(LinkError::NoSegments)));
    // Nothing was sent, so the connection still works.
    connection.send(REQUEST).await.unwrap();
    expect(&mut connection, REPLY).await;
    drop(connection);
    target.stop().await;
}

#[tokio::test]
async fn a_closed_port_refuses_the_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = Link::Tcp(TcpLink::new(address)).connect().await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot connect to {address}: ")), "{error}");
}

/// Observes, from a plain TCP socket, how reset() and a target's RST look on the wire.
#[tokio::test]
async fn a_reset_is_rst_on_the_wire_both_ways() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut link = Link::Tcp(TcpLink::new(listener.local_addr().unwrap()));

    let mut tester = link.connect().await.unwrap();
    let (mut target, _) = listener.accept().await.unwrap();
    tester.reset().await.unwrap();
    let error = target.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);

    let mut tester = link.connect().await.unwrap();
    let (target, _) = listener.accept().await.unwrap();
    target.set_zero_linger().unwrap();
    drop(target);
    assert_eq!(next(&mut tester).await, Received::Reset);
    assert!(matches!(tester.send(b"x").await, Err(LinkError::Reset)));
    let last = link.traffic().events().pop().unwrap();
    assert_eq!((last.connection, last.direction, last.content), (1, Direction::FromTarget, EventContent::Reset));
}

/// The target detects that a tester has dropped its connection. The number of connections at a time
/// is limited, but the total number of connections is not.
#[tokio::test]
async fn dropped_connections_free_everything() {
    let mut link = Link::Virtual(VirtualLink::echo(Settings::default()));
    for i in 0..2 * VirtualLink::MAX_CONNECTIONS {
        let mut connection = link.connect().await.unwrap();
        if i % 2 == 0 {
            connection.send(REQUEST).await.unwrap();
            link.pause(link.now() + Duration::from_millis(1)).await;
            // The Reply stays unread.
        }
    }
    let mut open = Vec::new();
    let refused = loop {
        match link.connect().await {
            Ok(connection) => open.push(connection),
            Err(error) => break error,
        }
    };
    assert_eq!(open.len(), VirtualLink::MAX_CONNECTIONS);
    assert!(refused.to_string().ends_with("too many connections are open"), "{refused}");
}

/// The echo posts its receives again, so it serves more Sends than it has receives.
#[tokio::test]
async fn the_echo_does_not_run_out_of_receives() {
    let mut link = Link::Virtual(VirtualLink::echo(without_crc()));
    let mut connection = link.connect().await.unwrap();
    connection.send(b"MPA ID Req Frame\x00\x01\x00\x00").await.unwrap();
    expect(&mut connection, b"MPA ID Rep Frame\x00\x01\x00\x00").await;
    for msn in 1..=2 * Echo::DEPTH as u32 {
        let send = [&b"\x00\x12\x41\x43\0\0\0\0\0\0\0\0"[..], &msn.to_be_bytes(), &[0; 8]].concat();
        connection.send(&send).await.unwrap();
        expect(&mut connection, &send).await;
    }
}

/// Checks the exchange of rping in octets of RFC 5040 and 5041, with a Read of three octets and
/// without CRCs.
#[tokio::test]
async fn rping_reads_and_writes() {
    let mut link = Link::Virtual(VirtualLink::rping(without_crc()).unwrap());
    let mut connection = link.connect().await.unwrap();
    connection.send(b"MPA ID Req Frame\0\x01\0\0").await.unwrap();
    expect(&mut connection, b"MPA ID Rep Frame\0\x01\0\0").await;
    // A Send of 16 octets advertises a buffer: TO 0x10, the STag, and 3 octets.
    let advertisement = |msn: u8, stag: u8| {
        let header = [0, 34, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, msn, 0, 0, 0, 0];
        [&header[..], &[0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, stag, 0, 0, 0, 3, 0, 0, 0, 0]].concat()
    };
    connection.send(&advertisement(1, 7)).await.unwrap();
    let Received::Octets(request) = next(&mut connection).await else { panic!("a Read Request was due") };
    assert_eq!(request[..20], *b"\0\x2e\x41\x41\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0");
    assert_eq!(request[32..], *b"\0\0\0\x03\0\0\0\x07\0\0\0\0\0\0\0\x10\0\0\0\0");
    let sink = &request[20..32];
    connection.send(&[b"\0\x11\xc1\x42", sink, b"ab\0\0\0\0\0\0"].concat()[..]).await.unwrap();
    let go_ahead = |msn: u8| {
        let header = [0, 34, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, msn, 0, 0, 0, 0];
        [&header[..], &[0; 20]].concat()
    };
    expect(&mut connection, &go_ahead(1)).await;
    connection.send(&advertisement(2, 8)).await.unwrap();
    let write = b"\0\x11\xc1\x40\0\0\0\x08\0\0\0\0\0\0\0\x10ab\0\0\0\0\0\0";
    expect(&mut connection, &[&write[..], &go_ahead(2)].concat()).await;
    connection.finish().await.unwrap();
    assert_eq!(next(&mut connection).await, Received::Fin);
}

/// rping never sends a Send without octets, so the server closes after such a Send. The server also
/// closes at once after an invalid first frame. If no frame arrives in time, it closes the silent
/// connection.
#[tokio::test]
async fn rping_closes_on_messages_that_it_does_not_use() {
    let mut link = Link::Virtual(VirtualLink::rping(without_crc()).unwrap());
    let mut strange = link.connect().await.unwrap();
    strange.send(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(next(&mut strange).await, Received::Fin);
    let mut silent = link.connect().await.unwrap();
    let deadline = silent.now() + Duration::from_secs(11);
    assert_eq!(silent.receive(deadline).await.unwrap(), Received::Fin);
    let mut other = link.connect().await.unwrap();
    other.send(b"MPA ID Req Frame\0\x01\0\0").await.unwrap();
    expect(&mut other, b"MPA ID Rep Frame\0\x01\0\0").await;
    other.send(b"\0\x12\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0").await.unwrap();
    assert_eq!(next(&mut other).await, Received::Fin);
}

fn without_crc() -> Settings {
    Settings { mpa: MpaSettings { crc: false, ..MpaSettings::default() }, ..Settings::default() }
}

/// A mangler changes the octets that the target sends. It sends everything twice (also the Reply of
/// RFC 5044 section 7.1.1), cuts the stream in the middle, or makes random changes. In each case,
/// both links deliver the same octets.
#[tokio::test]
async fn mangling_gives_the_same_octets_over_both_links() {
    let of = async |plan: &str, seed| {
        let mangling = Mangling::new(plan.parse().unwrap(), seed);
        let settings = ServerSettings { mangling: Some(mangling.clone()), ..ServerSettings::default() };
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
        let links = [
            Link::Virtual(VirtualLink::echo(Settings::default()).mangled(mangling)),
            Link::Tcp(TcpLink::new(server.local_addr())),
        ];
        let stop = server.stop_handle();
        let running = tokio::spawn(server.run());
        let mut both = Vec::new();
        for mut link in links {
            let mut connection = link.connect().await.unwrap();
            connection.send(REQUEST).await.unwrap();
            let mut octets = Vec::new();
            let end = loop {
                match next(&mut connection).await {
                    Received::Octets(more) if octets.is_empty() => {
                        octets.extend_from_slice(&more);
                        // It is possible that the target has closed after its Reply, so the results
                        // are ignored.
                        let _ = connection.send(SEND).await;
                        let _ = connection.finish().await;
                    }
                    Received::Octets(more) => octets.extend_from_slice(&more),
                    end => break end,
                }
            };
            both.push((octets, end));
        }
        stop.stop();
        running.await.unwrap();
        let [virtually, tcp] = both.try_into().unwrap();
        assert_eq!(virtually, tcp, "{plan}, seed {seed}");
        virtually
    };
    let twice = |octets: &[u8]| [octets, octets].concat();
    assert_eq!(of("duplicate=1", 1).await, ([twice(REPLY), twice(SEND)].concat(), Received::Fin));
    let (cut_short, end) = of("half-close=1", 1).await;
    assert_eq!(end, Received::Fin);
    assert!(cut_short.len() < REPLY.len() && REPLY.starts_with(&cut_short), "{cut_short:?}");
    for seed in 0..20 {
        of("mutate=3,cut=2,delay=9", seed).await;
    }
}
