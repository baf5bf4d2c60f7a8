//! Tests the rules for SDP port mappers (draft-pinkerton-iwarp-sdp-01 section 7). In a real
//! capture, two port mapper daemons of Linux exchange messages. The dissector must find the
//! violations that `captures/README.md` describes. Other tests build captures in which other
//! programs use the port of port mappers.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use etherparse::PacketBuilder;
use weft_core::requirement::Severity;
use weft_core::{RequirementId, requirement};
use weft_dissector::exchange::{Exchange, State};
use weft_dissector::source::{Capture, Frame};
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Sink};

use crate::common::{RAW, hex};

type Frames = BTreeMap<RequirementId, BTreeSet<FrameNumber>>;

#[derive(Default)]
struct Collect {
    units: usize,
    findings: Vec<Finding>,
    exchanges: Vec<Exchange>,
}

impl Sink for Collect {
    fn unit(&mut self, _: &Unit<'_>) {
        self.units += 1;
    }

    fn finding(&mut self, finding: &Finding) {
        self.findings.push(finding.clone());
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if over {
            self.exchanges.push(exchange.clone());
        }
    }
}

fn read() -> Collect {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/portmap/iwpmd-two-daemons.pcap");
    let mut capture = Capture::open(&path).unwrap();
    let (mut found, mut dissector) = (Collect::default(), Dissector::default());
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut found);
    }
    dissector.finish(&mut found);
    found
}

fn frames(findings: &[Finding], severity: Severity) -> Frames {
    let mut frames = Frames::new();
    for finding in findings.iter().filter(|finding| finding.severity == severity) {
        frames.entry(finding.requirement).or_default().insert(finding.frame);
    }
    frames
}

/// There are three departures from the draft. The requests have 64 octets. They have a port in
/// Reserved. From frame 10 on, remains of an IPv6 message follow the IPv4 addresses.
#[test]
fn its_three_departures_are_found_and_nothing_else() {
    let found = read().findings;
    let requests = BTreeSet::from_iter([1, 4, 7, 10, 13, 15].into_iter().chain(18..=27).map(FrameNumber::from));
    let expected = Frames::from([
        (requirement!("PM-7.3-1"), requests.clone()),
        (requirement!("PM-7.3.1.3-2"), (10..=27).map(FrameNumber::from).collect()),
        (requirement!("PM-7.3.1.5-1"), requests),
    ]);
    assert_eq!(frames(&found, Severity::Error), expected);
    assert_eq!(frames(&found, Severity::Warning), Frames::new());
    // The PMDeny has the requested port. Two sections of the draft contradict each other about
    // this port, and one of the sections requires the requested port.
    assert_eq!(
        frames(&found, Severity::Note),
        Frames::from([(requirement!("PM-7.3.1.6-4"), BTreeSet::from([14.into()]))])
    );
}

#[test]
fn its_exchanges_are_reported() {
    let exchanges: Vec<_> = read()
        .exchanges
        .iter()
        .map(|exchange| (exchange.state(), exchange.requested.unwrap().port(), exchange.repeats[0]))
        .collect();
    use State::{Acknowledged, Denied, Requested};
    let expected = [
        (Acknowledged, 7000, 0),
        (Acknowledged, 7001, 0),
        (Acknowledged, 7000, 0),
        (Acknowledged, 7002, 0),
        (Denied, 7999, 0),
        (Acknowledged, 7000, 0),
        (Requested, 7000, 9),
    ];
    assert_eq!(exchanges, expected);
}

/// The address of a host, and a UDP port.
type Endpoint = ([u8; 4], u16);

/// Reads UDP datagrams. Each datagram has a sender, a receiver and a payload.
fn read_datagrams(datagrams: &[(Endpoint, Endpoint, &[u8])]) -> Collect {
    let (mut found, mut dissector) = (Collect::default(), Dissector::default());
    for ((from, to, payload), number) in datagrams.iter().zip(1_u64..) {
        let mut octets = Vec::new();
        PacketBuilder::ipv4(from.0, to.0, 64).udp(from.1, to.1).write(&mut octets, payload).unwrap();
        let (time, wire_len) = (number * 1_000_000, u32::try_from(octets.len()).unwrap());
        let frame = Frame { number: number.into(), time, interface: 0, link_type: RAW, octets: &octets, wire_len };
        dissector.frame(&frame, &mut found);
    }
    dissector.finish(&mut found);
    found
}

/// A DNS client or a DNS server can use the port of port mappers. It is possible that a query gets
/// no answer.
#[test]
fn dns_datagrams_at_the_port_of_port_mappers_are_not_checked() {
    // A query for the address of example.com, and its answer (RFC 1035 section 4.1).
    let query = hex("2a2a 0100 0001 0000 0000 0000 07 6578616d706c65 03 636f6d 00 0001 0001");
    let answer = hex("2a2a 8180 0001 0001 0000 0000 07 6578616d706c65 03 636f6d 00 0001 0001
        c00c 0001 0001 00000e10 0004 5db8d822");
    let (query, answer) = (&query[..], &answer[..]);
    let at = |port: u16| [([10, 0, 0, 1], port), ([10, 0, 0, 2], 53)];
    let ([client, server], [other_client, _]) = (at(3935), at(40_000));
    let odd_server = (server.0, 3935);
    for datagrams in [
        &[(client, server, query)][..],
        &[(client, server, query), (server, client, answer)],
        &[(other_client, odd_server, query)],
        &[(client, odd_server, query)],
    ] {
        let found = read_datagrams(datagrams);
        assert_eq!((found.units, found.findings), (0, Vec::new()), "{datagrams:?}");
    }
    // If a client has sent a PMReq, the dissector expects that the client's next datagram is also a
    // message of the port mapper.
    let zeros = "00".repeat(12);
    let request = hex(&format!("0400 0000 1389 9c41 1122334455667788 0a000001 {zeros} 0a000002 {zeros}"));
    let found = read_datagrams(&[(client, odd_server, &request[..]), (client, server, query)]);
    assert_eq!(found.units, 2);
    let is_wrong_length = |it: &Finding| it.requirement == requirement!("PM-7.3-1") && it.frame == FrameNumber::from(2);
    assert!(found.findings.iter().any(is_wrong_length), "{:?}", found.findings);
}
