//! Tests the SDP port mapper (draft-pinkerton-iwarp-sdp-01 section 7) over UDP on the loopback
//! interface. The client and the server are the real drivers. In one test, a relay between them
//! loses, repeats and reorders datagrams. The tests also check the TCP connections that follow.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::requirement;
use weft_core::wire::portmap::{PmTime, UDP_PORT};
use weft_peer::driver::portmap::{PmClient, PmServer, connect, socket_at};
use weft_peer::driver::{Direction, EventContent, TrafficLog};
use weft_peer::portmap::{
    ClientSettings, Fallback, Mapping, Query, Resolution, ServerEvent, ServerSettings, Table, Target,
};

const LOCAL: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Time-outs that suit the loopback interface.
fn quick() -> ClientSettings {
    ClientSettings {
        wait: Duration::from_millis(50),
        longest_wait: Duration::from_millis(50),
        ..ClientSettings::default()
    }
}

fn server(local: &str, mappings: &[(SocketAddr, SocketAddr)]) -> PmServer {
    let mut table = Table::default();
    for (service, sdp) in mappings {
        table.insert(Mapping { service: *service, target: Target::Fixed(vec![*sdp]), pm_time: PmTime(0) }).unwrap();
    }
    PmServer::bind(&[at(local)], ServerSettings::default(), table, None).unwrap()
}

async fn listener(local: &str) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(local).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Returns a port without a listener. The returned socket reserves the port.
fn nobody(local: &str) -> (tokio::net::TcpSocket, SocketAddr) {
    socket_at(at(local)).unwrap()
}

/// Returns whether the client connected to the SDP address. Also returns the client's address in
/// the PMReq, in the PMAck and in the TCP connection.
async fn mapped(local: &str) -> (bool, [SocketAddr; 3]) {
    let (sdp, sdp_address) = listener(local).await;
    let (_held, service) = nobody(local);
    let mut server = server(local, &[(service, sdp_address)]);
    let client = PmClient::bind(quick(), None).unwrap();
    let mapped = connect(&client, server.local_addrs()[0], service).await.unwrap();
    let (_, from) = sdp.accept().await.unwrap();
    let mut named = Vec::new();
    for _ in 0..2 {
        match server.next_event().await.unwrap() {
            ServerEvent::Accepted { connecting, .. } | ServerEvent::Acknowledged { connecting, .. } => {
                named.push(connecting);
            }
            other => panic!("{other:?}"),
        }
    }
    let at_sdp = mapped.resolution == Resolution::Sdp { address: sdp_address, pm_time: PmTime(0), cached: false }
        && mapped.stream.peer_addr().unwrap() == sdp_address;
    (at_sdp, [named[0], named[1], from])
}

#[tokio::test]
async fn a_mapped_service_is_connected_to_at_its_sdp_address() {
    let (at_sdp, [requested, acknowledged, from]) = mapped(LOCAL[0]).await;
    let mut proof = Coverage::new(CoverageKind::Test);
    proof.verify(requirement!("PM-7-2"), || assert!(at_sdp));
    // The connection comes from the address in the PMReq.
    proof.verify(requirement!("PM-7.4-11"), || assert_eq!(requested.port(), from.port()));
    proof.verify(requirement!("PM-7.4-13"), || assert_eq!(requested.ip(), from.ip()));
    proof.verify(requirement!("PM-7.4-30"), || assert_eq!(acknowledged, from));
    let (at_sdp, [requested, acknowledged, from]) = mapped(LOCAL[1]).await;
    proof.verify(requirement!("PM-7.2-6"), || assert_eq!((at_sdp, requested, acknowledged), (true, from, from)));
}

#[tokio::test]
async fn a_denied_service_is_connected_to_in_plain_tcp() {
    for local in LOCAL {
        let (plain, service) = listener(local).await;
        let server = server(local, &[]);
        let client = PmClient::bind(quick(), None).unwrap();
        let mapped = connect(&client, server.local_addrs()[0], service).await.unwrap();
        plain.accept().await.unwrap();
        let mut proof = Coverage::new(CoverageKind::Test);
        proof.verify(requirement!("PM-7-3"), || {
            assert_eq!(mapped.resolution, Resolution::Conventional { address: service, why: Fallback::Denied });
        });
        proof.verify(requirement!("PM-7.1-1"), || assert_eq!(mapped.stream.peer_addr().unwrap(), service));
    }
}

/// The port mapper grants a port on which no program listens (draft section 7.5.1). TCP answers
/// with a reset (section 7.5.2).
#[tokio::test]
async fn a_reset_leads_to_plain_tcp() {
    for local in LOCAL {
        let (plain, service) = listener(local).await;
        let (_held, gone) = nobody(local);
        let server = server(local, &[(service, gone)]);
        let client = PmClient::bind(quick(), None).unwrap();
        let mapped = connect(&client, server.local_addrs()[0], service).await.unwrap();
        plain.accept().await.unwrap();
        let mut proof = Coverage::new(CoverageKind::Test);
        for id in [requirement!("PM-7.5.1-9"), requirement!("PM-7.5.2-11")] {
            proof.verify(id, || {
                assert_eq!(mapped.resolution, Resolution::Conventional { address: service, why: Fallback::Reset });
                assert_eq!(mapped.stream.peer_addr().unwrap(), service);
            });
        }
    }
}

#[tokio::test]
async fn a_dead_port_mapper_leads_to_plain_tcp() {
    // The test never reads from this socket. So the socket is as silent as a host that no longer
    // exists.
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (_closed, closed) = nobody("127.0.0.1:0");
    // If no socket has the port, the kernel answers with an ICMP message. The answer arrives before
    // the client repeats its request.
    let patient = ClientSettings { wait: Duration::from_secs(3600), ..ClientSettings::default() };
    for (mapper, why, settings) in
        [(silent.local_addr().unwrap(), Fallback::Silent, quick()), (closed, Fallback::Absent, patient)]
    {
        let (plain, service) = listener("127.0.0.1:0").await;
        let client = PmClient::bind(settings, None).unwrap();
        let mapped = connect(&client, mapper, service).await.unwrap();
        plain.accept().await.unwrap();
        let mut proof = Coverage::new(CoverageKind::Test);
        proof.verify(requirement!("PM-7.5.1-8"), || {
            assert_eq!(mapped.resolution, Resolution::Conventional { address: service, why });
        });
    }
}

/// The port mapper can be on another host than the service.
#[tokio::test]
async fn the_port_mapper_may_be_on_another_host() {
    let mut server = server("127.0.0.2:0", &[(at("127.0.0.1:5001"), at("127.0.0.3:7001"))]);
    let client = PmClient::bind(quick(), None).unwrap();
    let ask =
        Query { mapper: server.local_addrs()[0], service: at("127.0.0.1:5001"), connecting: at("127.0.0.1:40001") };
    let resolved = client.resolve(ask).await.unwrap();
    assert_eq!(resolved.resolution.address(), at("127.0.0.3:7001"));
    assert!(matches!(server.next_event().await, Some(ServerEvent::Accepted { .. })));
    assert!(matches!(server.next_event().await, Some(ServerEvent::Acknowledged { .. })));
    // The listener at this address reports its connection to the server.
    assert_eq!(server.connected(ask.connecting, at("127.0.0.3:7001")), Some(ask.service));
    assert_eq!(server.connected(at("127.0.0.1:40002"), at("127.0.0.3:7001")), None);
}

#[tokio::test]
async fn unacknowledged_mappings_expire() {
    let mut table = Table::default();
    let target = Target::PortRange { at: at("127.0.0.1:0"), ports: 9001..=9001 };
    table.insert(Mapping { service: at("127.0.0.1:5001"), target, pm_time: PmTime(0) }).unwrap();
    let settings = ServerSettings { hold: Duration::from_millis(50), ..ServerSettings::default() };
    let mut server = PmServer::bind(&[at("127.0.0.1:0")], settings, table, None).unwrap();
    let deviations = weft_peer::Deviations::from_names(["pm.ack-left-out"]).unwrap();
    let client = PmClient::bind(ClientSettings { deviations, ..quick() }, None).unwrap();
    let ask =
        Query { mapper: server.local_addrs()[0], service: at("127.0.0.1:5001"), connecting: at("127.0.0.1:40001") };
    client.resolve(ask).await.unwrap();
    let address = at("127.0.0.1:9001");
    let connecting = ask.connecting;
    let accepted = ServerEvent::Accepted { connecting, service: ask.service, address, again: false };
    for expected in [accepted, ServerEvent::Expired { connecting, address }, ServerEvent::Released { address }] {
        assert_eq!(server.next_event().await, Some(expected));
    }
}

/// A traffic log records the port that the specification defines. A program that reads the log
/// recognises the protocol by this port.
#[tokio::test]
async fn a_tape_has_each_datagram() {
    let server = server("127.0.0.1:0", &[(at("127.0.0.1:5001"), at("127.0.0.1:7001"))]);
    let traffic = TrafficLog::default();
    let client = PmClient::bind_to(&[at("127.0.0.1:0")], quick(), Some(&traffic)).unwrap();
    let ask =
        Query { mapper: server.local_addrs()[0], service: at("127.0.0.1:5001"), connecting: at("127.0.0.1:40001") };
    client.resolve(ask).await.unwrap();
    let datagrams: Vec<_> = traffic
        .events()
        .into_iter()
        .map(|event| match event.content {
            EventContent::Datagram { target, octets, .. } => (event.direction, target, octets[0], octets.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    let mapper = at("127.0.0.1:3935");
    let (to, from) = (Direction::ToTarget, Direction::FromTarget);
    assert_eq!(datagrams, [(to, mapper, 0x04, 48), (from, mapper, 0x14, 48), (to, mapper, 0x24, 48)]);
}

/// Forwards datagrams between one client and a server. Depending on the seed, loses, repeats and
/// reorders them.
async fn relay(server: SocketAddr, seed: u64) -> (SocketAddr, JoinHandle<()>) {
    let (front, back) = (UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = front.local_addr().unwrap();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let task = tokio::spawn(async move {
        let (mut one, mut other) = ([0; 2048], [0; 2048]);
        let mut client = None;
        let mut held: Option<(bool, Vec<u8>)> = None;
        loop {
            let (to_server, octets) = tokio::select! {
                got = front.recv_from(&mut one) => {
                    let (len, from) = got.unwrap();
                    client = Some(from);
                    (true, one[..len].to_vec())
                }
                got = back.recv_from(&mut other) => (false, other[..got.unwrap().0].to_vec()),
            };
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let mut passed = match state % 10 {
                0..=2 => vec![],
                3 => vec![(to_server, octets.clone()), (to_server, octets)],
                // This datagram is sent after the next datagram.
                4 | 5 if held.is_none() => {
                    held = Some((to_server, octets));
                    continue;
                }
                _ => vec![(to_server, octets)],
            };
            passed.extend(held.take());
            for (to_server, octets) in passed {
                if to_server {
                    back.send_to(&octets, server).await.unwrap();
                } else if let Some(client) = client {
                    front.send_to(&octets, client).await.unwrap();
                }
            }
        }
    });
    (address, task)
}

#[tokio::test]
async fn a_relay_that_loses_repeats_and_reorders_changes_nothing() {
    const SEEDS: u64 = 8;
    const QUESTIONS: u16 = 12;
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let server = server("127.0.0.1:0", &[(at("127.0.0.1:5001"), at("127.0.0.1:7001"))]);
        let (mapper, task) = relay(server.local_addrs()[0], seed).await;
        let wait = Duration::from_millis(20);
        let settings = ClientSettings { wait, longest_wait: wait, repeats: 100, ..ClientSettings::default() };
        let client = PmClient::bind(settings, None).unwrap();
        let questions = (0..QUESTIONS).map(|number| {
            let client = client.clone();
            let service = SocketAddr::from(([127, 0, 0, 1], 5001 + number % 2));
            let connecting = SocketAddr::from(([127, 0, 0, 1], 40_000 + number));
            tokio::spawn(async move { client.resolve(Query { mapper, service, connecting }).await.unwrap() })
        });
        for question in questions.collect::<Vec<_>>() {
            let resolved = question.await.unwrap();
            let mapped = resolved.query.service.port() == 5001;
            let expected = if mapped {
                Resolution::Sdp { address: at("127.0.0.1:7001"), pm_time: PmTime(0), cached: false }
            } else {
                Resolution::Conventional { address: resolved.query.service, why: Fallback::Denied }
            };
            assert_eq!(resolved.resolution, expected, "seed {seed}");
        }
        task.abort();
    }
}

/// Section 7.5.1: the first AssocHandle of each start is random, so that it cannot be guessed.
#[tokio::test]
async fn each_start_begins_with_another_handle() {
    let mapper = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut handles = std::collections::BTreeSet::new();
    for _ in 0..16 {
        let client = PmClient::bind(quick(), None).unwrap();
        let (service, connecting) = (at("127.0.0.1:5001"), at("127.0.0.1:40001"));
        let ask = Query { mapper: mapper.local_addr().unwrap(), service, connecting };
        let question = tokio::spawn(async move { client.resolve(ask).await });
        let mut octets = [0; 64];
        assert_eq!(mapper.recv_from(&mut octets).await.unwrap().0, 48);
        question.abort();
        let _ = question.await;
        handles.insert(<[u8; 8]>::try_from(&octets[8..16]).unwrap());
    }
    let mut proof = Coverage::new(CoverageKind::Test);
    // These are sixteen random values of 64 bits. Two equal values or few different high octets
    // occur by chance in fewer than one in 2^50 runs.
    proof.verify(requirement!("PM-7.5.1-6"), || {
        assert_eq!(handles.len(), 16);
        let high: std::collections::BTreeSet<u8> = handles.iter().map(|handle| handle[0]).collect();
        assert!(high.len() > 4, "{handles:x?}");
    });
}

/// The test is the port mapper, with the messages of draft Figure 17. It receives one PMAck, and
/// the client's connection follows.
#[tokio::test]
async fn a_connection_follows_the_pm_ack() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mapper = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (sdp, address) = listener("127.0.0.1:0").await;
    let (_held, service) = nobody("127.0.0.1:0");
    let client = PmClient::bind(quick(), None).unwrap();
    let to = mapper.local_addr().unwrap();
    let connecting = tokio::spawn(async move { connect(&client, to, service).await.unwrap() });
    let mut octets = [0; 64];
    let (len, from) = mapper.recv_from(&mut octets).await.unwrap();
    proof.verify(requirement!("PM-7.4-3"), || assert_eq!((len, octets[0]), (48, 0x04)));
    // PMAccept, PmTime 0, ApPort and ApIPAddr of the SDP Address.
    octets[..2].copy_from_slice(&[0x14, 0]);
    octets[4..6].copy_from_slice(&address.port().to_be_bytes());
    octets[32..36].copy_from_slice(&[127, 0, 0, 1]);
    mapper.send_to(&octets[..48], from).await.unwrap();
    let (len, _) = mapper.recv_from(&mut octets).await.unwrap();
    let acknowledged = (len, octets[0]);
    // The client connects without any further step of the port mapper.
    let (_, peer) = sdp.accept().await.unwrap();
    let mapped = connecting.await.unwrap();
    proof.verify(requirement!("PM-7.3.1.4-6"), || {
        assert_eq!((acknowledged, mapped.stream.local_addr().unwrap()), ((48, 0x24), peer));
    });
}

/// The port mapper has port 3935. The test uses an address of the loopback interface that no other
/// program uses.
#[tokio::test]
async fn the_port_of_the_port_mapper() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let _server = server("127.39.35.1:3935", &[(at("127.0.0.1:5001"), at("127.0.0.1:7001"))]);
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    // PMReq: ApPort 5001, CpPort 40001, a handle, both addresses.
    let mut octets = [0; 48];
    octets[0] = 0x04;
    octets[4..8].copy_from_slice(&[0x13, 0x89, 0x9c, 0x41]);
    octets[8..16].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    octets[16..20].copy_from_slice(&[127, 0, 0, 1]);
    octets[32..36].copy_from_slice(&[127, 0, 0, 1]);
    client.send_to(&octets, (std::net::Ipv4Addr::new(127, 39, 35, 1), UDP_PORT)).await.unwrap();
    let mut answer = [0; 64];
    let (len, from) = client.recv_from(&mut answer).await.unwrap();
    proof.verify(requirement!("PM-16-1"), || {
        assert_eq!((UDP_PORT, from, len, answer[0]), (3935, at("127.39.35.1:3935"), 48, 0x14));
    });
}
