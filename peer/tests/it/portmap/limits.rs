//! Tests floods of Requests to a PM Server.

use weft_core::requirement;
use weft_peer::portmap::{Denial, Server, ServerEvent, ServerSettings};

use crate::portmap::octets::{
    ACCEPT, ACK, DENY, Fields, REQ, answer, answers, answers_to, at, events, fields, fixed, millis, proves, table,
};

fn small() -> Server {
    let settings = ServerSettings { max_requests: 8, max_per_host: 4, alarm: 10, ..ServerSettings::default() };
    Server::new(settings, table([fixed("10.0.0.1:5001", &["10.0.0.1:7001"], 0)]))
}

fn from(host: u8, cp_port: u16) -> Fields {
    Fields { cp: std::net::IpAddr::from([10, 0, 0, host]), cp_port, ..fields(REQ) }
}

/// Sends a request from the address of `host`, with the same address in the request. Returns the
/// first octet of the answer.
fn asks(server: &mut Server, now: u64, host: u8, cp_port: u16) -> u8 {
    let source = std::net::SocketAddr::from(([10, 0, 0, host], 33333));
    let answers = answers_to(server, source, millis(now), &from(host, cp_port).octets());
    assert_eq!(answers.len(), 1);
    answers[0].first
}

#[test]
fn one_host_cannot_use_up_the_limits_of_others() {
    let mut server = small();
    let got: Vec<u8> = (1..=6).map(|port| asks(&mut server, 0, 2, port)).collect();
    assert_eq!(got, [ACCEPT, ACCEPT, ACCEPT, ACCEPT, DENY, DENY]);
    let is_denied = |event: &ServerEvent| matches!(event, ServerEvent::Denied { why: Denial::Full, .. });
    assert_eq!(events(&mut server).iter().filter(|event| is_denied(event)).count(), 2);
    let other = asks(&mut server, 0, 3, 1);
    let hosts: Vec<u8> = (4..=9).map(|host| asks(&mut server, 0, host, 1)).collect();
    let known = server.stored_requests();
    server.handle_timeout(millis(10_000));
    let later = asks(&mut server, 10_000, 9, 2);
    proves([(requirement!("PM-15.2.1-1"), &|| {
        assert_eq!(other, ACCEPT);
        assert_eq!(hosts, [ACCEPT, ACCEPT, ACCEPT, DENY, DENY, DENY]);
        assert_eq!((known, later), (8, ACCEPT));
    })]);
}

/// A host sends requests that contain the addresses of other hosts. The requests also count towards
/// the limit of the sender.
#[test]
fn synthetic_hosts_count_as_one() {
    let mut server = small();
    let got: Vec<u8> = (2..=8).map(|host| answer(&mut server, millis(0), &from(host, 1).octets()).first).collect();
    assert_eq!(got, [ACCEPT, ACCEPT, ACCEPT, ACCEPT, DENY, DENY, DENY]);
    assert_eq!(asks(&mut server, 0, 9, 1), ACCEPT);
}

/// A mapping that the client has acknowledged does not prevent further Requests. The number of
/// stored Requests stays within the limit of one host.
#[test]
fn acknowledged_mappings_free_their_entry() {
    let mut server = small();
    for round in 0..100 {
        let accept = answer(&mut server, millis(round), &from(2, 1000 + u16::try_from(round).unwrap()).octets());
        assert_eq!(accept.first, ACCEPT, "{round}");
        answers(&mut server, millis(round), &Fields { first: ACK, ..accept }.octets());
        assert!(server.stored_requests() <= 4);
    }
}

#[test]
fn a_flood_raises_an_alarm() {
    let mut server = small();
    for port in 1..=30 {
        answers(&mut server, millis(0), &from(2, port).octets());
    }
    let alarms = events(&mut server).iter().filter(|event| matches!(event, ServerEvent::Alarm)).count();
    proves([(requirement!("PM-15.2.1-2"), &|| assert_eq!(alarms, 1))]);
}

/// The server receives datagrams of arbitrary octets. It does not panic, stores no more Requests
/// than its limits allow, and sends at most one answer for each datagram.
#[test]
fn noise_does_no_harm() {
    let mut server = small();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..20_000 {
        let mut octets = from(2, 1).octets();
        let len = (random() % 70) as usize;
        if random() % 2 == 0 {
            octets.resize(len, 0);
        }
        for _ in 0..random() % 4 {
            let place = random() as usize % octets.len().max(1);
            if let Some(octet) = octets.get_mut(place) {
                *octet = random() as u8;
            }
        }
        server.handle_datagram(millis(round), at("10.0.0.2:33333"), &octets);
        let answers = std::iter::from_fn(|| server.poll_datagram()).count();
        assert!(answers <= 1 && server.stored_requests() <= 8);
    }
    assert!(events(&mut server).len() <= 4096);
}
