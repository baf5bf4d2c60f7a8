//! Tests connections that end, ports that are reused, and captures with more open connections than
//! the dissector can read at the same time.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::collections::BTreeMap;

use weft_core::requirement::Severity;
use weft_dissector::source::Frame;
use weft_dissector::unit::{Kind, Unit};
use weft_dissector::{Dissector, DroppedState, Finding, Sink};

use crate::common::{ACK, FIN, RAW, RST, SYN, TestDissector, fpdus, send, startup, tcp, unit_fields};

fn streams(units: &[serde_json::Value]) -> Vec<u64> {
    units.iter().map(|unit| unit["stream"].as_u64().unwrap()).collect()
}

/// Sends the frames of a complete connection from port `port`. If `iwarp` is true, the connection
/// has start-up frames and one FPDU. Otherwise, it has a GET request. `end` is the flag that ends
/// the connection.
fn short_lived(dissector: &mut TestDissector, port: u16, iwarp: bool, end: u8) {
    let from = |from: usize, seq, flags, payload: &[u8]| {
        let mut packet = tcp(from, seq, flags, payload);
        let at = if from == 0 { 20 } else { 22 };
        packet[at..at + 2].copy_from_slice(&port.to_be_bytes());
        packet
    };
    dissector.packet(&from(0, 999, SYN, &[]));
    dissector.packet(&from(1, 1999, SYN | ACK, &[]));
    let mut next = [1000, 2000];
    let mut sends = |sender: usize, payload: &[u8]| {
        dissector.packet(&from(sender, next[sender], ACK, payload));
        next[sender] += payload.len() as u32;
    };
    if iwarp {
        sends(0, &startup(false, 0x40, 1, b""));
        sends(1, &startup(true, 0x40, 1, b""));
        sends(0, &fpdus(&[send(1, b"hi")], false, true));
    } else {
        sends(0, b"GET /");
    }
    (0..2).for_each(|sender| dissector.packet(&from(sender, next[sender], end | ACK, &[])));
}

#[test]
fn many_short_connections_keep_their_numbers_and_units() {
    let mut dissector = TestDissector::default();
    let ports = 10_000..12_500u16;
    for port in ports.clone() {
        short_lived(&mut dissector, port, port % 2 == 0, if port % 3 == 0 { RST } else { FIN });
    }
    let units = dissector.finish();
    let mut of_stream = std::collections::BTreeMap::<u64, Vec<_>>::new();
    for unit in &units {
        of_stream.entry(unit["stream"].as_u64().unwrap()).or_default().push(unit);
    }
    for (number, port) in (0..).zip(ports) {
        let mine = &of_stream[&number];
        let kinds: Vec<&str> = mine.iter().map(|unit| unit["kind"].as_str().unwrap()).collect();
        let expected: &[&str] = if port % 2 == 0 { &["mpa_request", "mpa_reply", "fpdu"] } else { &["streaming"] };
        let mut sorted = kinds.clone();
        sorted.sort_by_key(|kind| expected.iter().position(|e| e == kind));
        assert_eq!(sorted, expected, "stream {number}");
        assert!(mine[0]["src"].as_str().unwrap().ends_with(&format!(":{port}")));
    }
}

#[test]
fn a_repetition_long_after_the_end_is_no_new_connection() {
    let mut dissector = TestDissector::default();
    short_lived(&mut dissector, 9999, false, FIN);
    for port in 10_000..12_000 {
        short_lived(&mut dissector, port, false, FIN);
    }
    let again = |flags, seq, octets: &[u8]| {
        let mut packet = tcp(0, seq, flags, octets);
        packet[20..22].copy_from_slice(&9999u16.to_be_bytes());
        packet
    };
    dissector.packet(&again(ACK, 1000, b"GET /"));
    dissector.packet(&again(SYN, 999, b""));
    dissector.packet(&again(FIN | ACK, 1100, b""));
    // The first connection does not have these octets yet, so they continue this connection. The
    // SYN with a new sequence number opens another connection.
    dissector.packet(&again(ACK, 5000, b"more"));
    dissector.packet(&again(SYN, 77, b""));
    dissector.packet(&again(ACK, 78, b"new"));
    let units = dissector.finish();
    let of_first: Vec<_> = units.iter().filter(|u| u["src"].as_str().unwrap().ends_with(":9999")).collect();
    let lengths: Vec<_> =
        of_first.iter().map(|u| (u["stream"].as_u64().unwrap(), u["len"].as_u64().unwrap())).collect();
    assert_eq!(lengths, [(0, 5), (0, 4), (2001, 3)]);
}

#[test]
fn a_syn_with_another_sequence_number_is_another_connection() {
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, b"one");
    dissector.packet(&tcp(0, 999, SYN, &[]));
    dissector.packet(&tcp(0, 70_000, SYN, &[]));
    dissector.packet(&tcp(0, 70_001, ACK, b"three"));
    let units = dissector.finish();
    assert_eq!(streams(&units), [0, 1]);
    assert_eq!(unit_fields(&units, 0, "len"), ["streaming 3", "streaming 5"]);
}

#[test]
fn octets_captured_after_fin_and_reset_still_count() {
    let mut dissector = TestDissector::opened();
    dissector.data(0, 3, b"de");
    dissector.packet(&tcp(0, 1005, FIN | ACK, &[]));
    dissector.packet(&tcp(1, 2000, FIN | ACK, &[]));
    dissector.packet(&tcp(1, 2001, RST, &[]));
    dissector.data(0, 0, b"abc");
    assert_eq!(unit_fields(&dissector.finish(), 0, "len"), ["streaming 5"]);
}

#[test]
fn octets_with_numbers_far_away_are_of_a_connection_without_captured_syn() {
    let mut dissector = TestDissector::default();
    short_lived(&mut dissector, 9999, false, FIN);
    let again = |seq: u32| {
        let mut packet = tcp(0, seq, ACK, b"GET /");
        packet[20..22].copy_from_slice(&9999_u16.to_be_bytes());
        packet
    };
    // Octets whose sequence numbers are close to the end belong to the same connection, even if
    // they arrive after its FIN.
    dissector.packet(&again(1101));
    dissector.packet(&again(1101 + (2 << 20)));
    let units = dissector.finish();
    let lengths: Vec<u64> = units.iter().map(|unit| unit["len"].as_u64().unwrap()).collect();
    assert_eq!((streams(&units), lengths), (vec![0, 1], vec![106, 5]));
}

/// The capture has all frames of one endpoint before the frames of its peer. This happens if two
/// taps have skewed clocks, or if two files were appended.
#[test]
fn a_syn_captured_after_its_octets_belongs_to_the_same_connection() {
    let request = startup(false, 0x40, 1, b"");
    let fpdu = fpdus(&[send(1, b"hi")], false, true);
    let from = [
        vec![tcp(0, 999, SYN, &[]), tcp(0, 1000, ACK, &request), tcp(0, 1020, ACK, &fpdu)],
        vec![tcp(1, 1999, SYN | ACK, &[]), tcp(1, 2000, ACK, &startup(true, 0x40, 1, b""))],
    ];
    // The SYN-ACK and the Reply acknowledge the SYN and the Request.
    let mut from = from;
    from[1][0][28..32].copy_from_slice(&1000_u32.to_be_bytes());
    from[1][1][28..32].copy_from_slice(&1020_u32.to_be_bytes());
    let [forth, back] = &from;
    let orders: [Vec<&Vec<u8>>; 3] = [
        back.iter().chain(forth).collect(),
        // The SYN is captured last, and the octets that follow it in the stream are out of order.
        vec![&back[0], &forth[2], &forth[1], &back[1], &forth[0]],
        vec![&forth[1], &back[0], &forth[0], &forth[2], &back[1]],
    ];
    for order in orders {
        let mut dissector = TestDissector::default();
        order.into_iter().for_each(|packet| dissector.packet(packet));
        let units = dissector.finish();
        let mut kinds: Vec<&str> = units.iter().map(|unit| unit["kind"].as_str().unwrap()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["fpdu", "mpa_reply", "mpa_request"]);
        assert_eq!(streams(&units), [0, 0, 0]);
    }
    // A SYN with a higher sequence number belongs to another connection.
    let mut dissector = TestDissector::default();
    dissector.packet(&tcp(0, 1000, ACK, b"GET /"));
    dissector.packet(&tcp(0, 5000, SYN, &[]));
    dissector.packet(&tcp(0, 5001, ACK, b"GET /"));
    assert_eq!(streams(&dissector.finish()), [0, 1]);
}

/// Counts the complete FPDUs of each connection, all incomplete FPDUs, and all errors and warnings.
#[derive(Default)]
struct Tally {
    complete: BTreeMap<u32, u64>,
    incomplete: u64,
    alarms: Vec<String>,
}

impl Sink for Tally {
    fn unit(&mut self, unit: &Unit<'_>) {
        if let (Kind::Fpdu(_), Some(stream)) = (&unit.kind, unit.stream) {
            *self.complete.entry(stream.into()).or_default() += u64::from(!unit.incomplete);
            self.incomplete += u64::from(unit.incomplete);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        if finding.severity > Severity::Note {
            self.alarms.push(finding.requirement.to_string());
        }
    }
}

/// A dissector of very many connections.
#[derive(Default)]
struct Crowd {
    dissector: Dissector,
    tally: Tally,
    frames: u64,
}

impl Crowd {
    /// Passes a segment of the connection of port `port` of host `host` to the dissector. `from` is
    /// 0 if this host sends the segment, and 1 if this host receives it.
    fn segment(&mut self, (host, port): (u8, u16), from: usize, seq: u32, flags: u8, payload: &[u8]) {
        let mut octets = tcp(from, seq, flags, payload);
        let (address, at) = if from == 0 { (12, 20) } else { (16, 22) };
        octets[address + 2] = host;
        octets[at..at + 2].copy_from_slice(&port.to_be_bytes());
        // Each endpoint acknowledges the start of the peer's data: 2000 or 1000.
        let ack = if from == 0 { 2000_u32 } else { 1000 };
        octets[28..32].copy_from_slice(&ack.to_be_bytes());
        self.frames += 1;
        let (number, wire_len) = (self.frames.into(), u32::try_from(octets.len()).unwrap());
        let time = self.frames * 1000;
        let frame = Frame { number, time, interface: 0, link_type: RAW, octets: &octets, wire_len };
        self.dissector.frame(&frame, &mut self.tally);
    }

    fn handshake(&mut self, end: (u8, u16)) {
        self.segment(end, 0, 999, SYN, &[]);
        self.segment(end, 1, 1999, SYN | ACK, &[]);
    }

    fn start(&mut self, end: (u8, u16), flags: u8) {
        self.segment(end, 0, 1000, ACK, &startup(false, flags, 1, b""));
        self.segment(end, 1, 2000, ACK, &startup(true, flags, 1, b""));
    }

    fn finish(mut self) -> (Tally, DroppedState) {
        self.dissector.finish(&mut self.tally);
        (self.tally, self.dissector.dropped())
    }
}

/// More connections than the dissector reads at the same time.
const CROWD: u16 = 8_400;

#[test]
fn a_port_scan_costs_the_connection_beside_it_nothing() {
    let mut crowd = Crowd::default();
    let mine = (9, 4000);
    let fpdu = |msn| fpdus(&[send(msn, b"beside a scan")], false, true);
    let mut seq = 1020;
    crowd.handshake(mine);
    crowd.start(mine, 0x40);
    for msn in 1..=50 {
        // Two scans open very many connections. When a scan starts, no other connection has been
        // idle for longer than `mine`.
        if msn % 20 == 0 {
            (0..CROWD).for_each(|n| crowd.segment((u8::try_from(msn).unwrap(), 10_000 + n), 0, 7, SYN, &[]));
        }
        crowd.segment(mine, 0, seq, ACK, &fpdu(msn));
        seq += u32::try_from(fpdu(msn).len()).unwrap();
    }
    let (tally, dropped) = crowd.finish();
    assert_eq!((tally.complete, dropped), (BTreeMap::from([(0, 50)]), DroppedState::default()));
    assert_eq!(tally.alarms, [""; 0]);
}

/// The connections do not use CRC, so only their start-up frames show that the octets are iWARP.
#[test]
fn more_connections_than_are_kept_lose_no_fpdu() {
    let mut crowd = Crowd::default();
    let fpdu = |msn| fpdus(&[send(msn, b"of a crowd, without CRC")], false, false);
    let len = u32::try_from(fpdu(1).len()).unwrap();
    let ends: Vec<(u8, u16)> = (0..CROWD).map(|n| (1, 10_000 + n)).collect();
    // All connections send one segment before any connection sends its next segment. So when the
    // next segment of a connection arrives, no other connection has been idle for longer.
    ends.iter().for_each(|end| crowd.segment(*end, 0, 999, SYN, &[]));
    ends.iter().for_each(|end| crowd.segment(*end, 1, 1999, SYN | ACK, &[]));
    ends.iter().for_each(|end| crowd.segment(*end, 0, 1000, ACK, &startup(false, 0, 1, b"")));
    ends.iter().for_each(|end| crowd.segment(*end, 1, 2000, ACK, &startup(true, 0, 1, b"")));
    for msn in 1..=2 {
        ends.iter().for_each(|end| crowd.segment(*end, 0, 1020 + (msn - 1) * len, ACK, &fpdu(msn)));
    }
    let (tally, dropped) = crowd.finish();
    assert_eq!(tally.complete.len(), usize::from(CROWD));
    assert!(tally.complete.values().all(|count| *count == 2));
    assert_eq!(tally.alarms, [""; 0]);
    assert!(dropped.interruptions > u64::from(CROWD), "{dropped:?}");
    assert_eq!((dropped.incomplete_units, dropped.other_interruptions, dropped.forgotten), (0, 0, 0));
}

/// 90 connections wait for missing octets. Each connection stores less than its own limit, but all
/// together store more than the common limit.
#[test]
fn without_crc_a_connection_that_gave_up_its_hole_goes_on() {
    let mut crowd = Crowd::default();
    let fpdu = |msn| fpdus(&[send(msn, &vec![7; 59_000])], false, false);
    let (small, len) = (fpdus(&[send(1, b"small")], false, false), fpdu(1).len());
    let at = |fpdus: u32| 1020 + fpdus * u32::try_from(len).unwrap();
    let ends: Vec<(u8, u16)> = (0..90).map(|n| (1, 10_000 + n)).collect();
    ends.iter().for_each(|end| {
        crowd.handshake(*end);
        crowd.start(*end, 0);
    });
    // Half an FPDU of this connection arrives now. The other half arrives after the dissector has
    // evicted the connection.
    let halved = (2, 9_999);
    crowd.handshake(halved);
    crowd.start(halved, 0);
    crowd.segment(halved, 0, at(0), ACK, &fpdu(1)[..30_000]);
    for msn in (1..=15).filter(|msn| *msn != 2) {
        ends.iter().for_each(|end| crowd.segment(*end, 0, at(msn - 1), ACK, &fpdu(msn)));
    }
    ends.iter().for_each(|end| crowd.segment(*end, 0, at(15), ACK, &small));
    ends.iter().for_each(|end| crowd.segment(*end, 0, at(15) + 32, ACK, &small));
    crowd.segment(halved, 0, at(0) + 30_000, ACK, &fpdu(1)[30_000..]);
    crowd.segment(halved, 0, at(1), ACK, &fpdu(2));
    let (tally, dropped) = crowd.finish();
    assert_eq!(small.len(), 32);
    let expected: BTreeMap<u32, u64> = (0..90).map(|stream| (stream, 16)).chain([(90, 1)]).collect();
    assert_eq!((tally.complete, tally.incomplete), (expected, 1));
    assert!(dropped.interruptions > 30 && dropped.incomplete_units > 30, "{dropped:?}");
    assert_eq!((dropped.other_interruptions, dropped.forgotten), (0, 0));
}

/// Opens `mine`, and then more connections with MPA than the dissector reads at the same time. So
/// the dissector evicts `mine`.
fn evict(crowd: &mut Crowd, mine: (u8, u16)) {
    crowd.handshake(mine);
    crowd.start(mine, 0);
    crowd.segment(mine, 0, 1020, ACK, &before());
    for end in (0..CROWD).map(|n| (1, 10_000 + n)) {
        crowd.handshake(end);
        crowd.start(end, 0);
    }
}

/// The dissector stops waiting for missing octets when it evicts the connection. The octets arrive
/// later.
#[test]
fn late_and_later_segments_of_a_connection_without_iwarp_are_reported() {
    let mut crowd = Crowd::default();
    let (mine, other) = ((9, 4000), (9, 4001));
    for end in [mine, other] {
        crowd.handshake(end);
        crowd.segment(end, 0, 1000, ACK, b"GET /");
        crowd.segment(end, 0, 1009, ACK, b"after a hole");
    }
    for end in (0..CROWD).map(|n| (1, 10_000 + n)) {
        crowd.handshake(end);
        crowd.start(end, 0);
    }
    // Send the missing octets, a retransmission, a segment without octets, and further octets.
    crowd.segment(mine, 0, 1005, ACK, b"1234");
    crowd.segment(mine, 0, 1000, ACK, b"GET /");
    crowd.segment(mine, 0, 1021, ACK, b"");
    crowd.segment(mine, 0, 1021, ACK, b"more");
    crowd.segment(other, 0, 1005, ACK, b"1234");
    let Crowd { mut dissector, mut tally, .. } = crowd;
    dissector.finish(&mut tally);
    let remarks = dissector.remarks();
    let expected = "weft interrupted its reading 1 time on connections in which it had found no iWARP or SDP, \
                so weft may miss iWARP there; weft did not read 2 late segments of connections without iWARP or SDP";
    assert_eq!(
        remarks,
        [format!(
            "there were too many connections or waiting bytes at the same time, so weft dropped state: {expected}"
        )]
    );
}

fn before() -> Vec<u8> {
    fpdus(&[send(1, b"before it was put aside")], false, false)
}

/// The connection does not use CRC. So after its eviction, only the stored record of the connection
/// shows that the octets are FPDUs.
#[test]
fn a_stray_syn_or_segment_costs_an_evicted_connection_nothing() {
    let mut crowd = Crowd::default();
    let mine = (9, 4000);
    evict(&mut crowd, mine);
    let next = 1020 + u32::try_from(before().len()).unwrap();
    // Send two SYNs with other sequence numbers, an ACK that answers the second SYN (a challenge
    // ACK), and octets with a distant sequence number.
    crowd.segment(mine, 0, 0x4000_0000, SYN, &[]);
    crowd.segment(mine, 1, 0x6000_0000, SYN, &[]);
    crowd.segment(mine, 0, next, ACK, &[]);
    crowd.segment(mine, 0, 0x7000_0000, ACK, b"stray");
    crowd.segment(mine, 0, next, ACK, &fpdus(&[send(2, b"after that")], false, false));
    let (tally, dropped) = crowd.finish();
    assert_eq!((tally.complete, tally.incomplete), (BTreeMap::from([(0, 2)]), 0));
    assert_eq!(tally.alarms, [""; 0]);
    let counts = (dropped.interruptions, dropped.incomplete_units, dropped.other_interruptions);
    assert_eq!(counts, (1, 0, 0), "{dropped:?}");
}

#[test]
fn the_ports_of_an_evicted_connection_are_used_again() {
    let mut crowd = Crowd::default();
    let mine = (9, 4000);
    evict(&mut crowd, mine);
    crowd.segment(mine, 0, 0x4000_0000, SYN, &[]);
    crowd.segment(mine, 0, 0x4000_0001, ACK, &startup(false, 0, 1, b""));
    crowd.segment(mine, 1, 0x6000_0000, ACK, &startup(true, 0, 1, b""));
    crowd.segment(mine, 0, 0x4000_0015, ACK, &fpdus(&[send(1, b"of another one")], false, false));
    let (tally, dropped) = crowd.finish();
    let another = u32::from(CROWD) + 1;
    assert_eq!((tally.complete, tally.incomplete), (BTreeMap::from([(0, 1), (another, 1)]), 0));
    assert_eq!(tally.alarms, [""; 0]);
    let counts = (dropped.interruptions, dropped.incomplete_units, dropped.other_interruptions);
    assert_eq!(counts, (0, 0, 0), "{dropped:?}");
}
