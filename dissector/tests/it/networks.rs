//! Tests with connections that have equal addresses and ports, but are in different VLANs or
//! tunnels, or on different interfaces. The dissector must decide whether they are copies of one
//! connection.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::collections::BTreeMap;

use crate::common::{ACK, SYN, TestDissector, fpdus, hex, send, startup, tcp};

/// A point at which packets are captured. For a packet, the function returns the captured frame,
/// and the number of the interface that captures it.
type Network = fn(&[u8]) -> (u32, Vec<u8>);

fn ethernet(tags: &str, packet: &[u8]) -> Vec<u8> {
    [&hex("02aa00000001 02aa00000002")[..], &hex(tags), &hex("0800"), packet].concat()
}

fn vxlan(header: &str, packet: &[u8]) -> Vec<u8> {
    let inner = [&hex(header)[..], &ethernet("", packet)].concat();
    let length = |len: usize| u16::try_from(len).unwrap().to_be_bytes();
    let udp = [&hex("c350 12b5")[..], &length(8 + inner.len()), &[0, 0], &inner].concat();
    let head = hex("4500 0000 0007 4000 40 11 0000 c0a80001 c0a80002");
    let mut outer = [head, udp].concat();
    let total = length(outer.len());
    outer[2..4].copy_from_slice(&total);
    ethernet("", &outer)
}

const PLAIN: Network = |packet| (0, ethernet("", packet));
const OTHER_INTERFACE: Network = |packet| (1, ethernet("", packet));
const VLAN_7: Network = |packet| (0, ethernet("8100 0007", packet));
const VLAN_8: Network = |packet| (0, ethernet("8100 0008", packet));
const VNI_100: Network = |packet| (0, vxlan("08000000 00006400", packet));
const VNI_200: Network = |packet| (0, vxlan("08000000 0000c800", packet));

const PAIRS: [(&str, Network, Network); 5] = [
    ("VLANs", VLAN_7, VLAN_8),
    ("a VLAN and none", PLAIN, VLAN_8),
    ("VNIs", VNI_100, VNI_200),
    ("before and in a tunnel", PLAIN, VNI_100),
    ("interfaces", PLAIN, OTHER_INTERFACE),
];

/// Number of FPDUs of each connection.
const FPDUS: u32 = 28;

/// Returns the packets of a connection with [`FPDUS`] FPDUs. Each packet has its sender (0 or 1).
/// The SYNs have the sequence numbers `isn` and `isn + 1000`. Sends carry `payload`.
fn connection(isn: u32, payload: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let first = [isn.wrapping_add(1), isn.wrapping_add(1001)];
    let packet = |from: usize, offset: u32, flags, octets: &[u8]| {
        let mut packet = tcp(from, first[from].wrapping_add(offset), flags, octets);
        packet[28..32].copy_from_slice(&first[1 - from].to_be_bytes());
        (from, packet)
    };
    let mut packets = vec![
        packet(0, u32::MAX, SYN, &[]),
        packet(1, u32::MAX, SYN | ACK, &[]),
        packet(0, 0, ACK, &startup(false, 0x40, 1, payload)),
        packet(1, 0, ACK, &startup(true, 0x40, 1, b"")),
    ];
    let mut offset = 20 + u32::try_from(payload.len()).unwrap();
    for msn in 1..=FPDUS {
        let octets = fpdus(&[send(msn, payload)], false, true);
        packets.push(packet(0, offset, ACK, &octets));
        offset += u32::try_from(octets.len()).unwrap();
    }
    packets
}

fn capture(dissector: &mut TestDissector, network: Network, packet: &[u8]) {
    let (interface, frame) = network(packet);
    dissector.frame_on(interface, 1, &frame, frame.len());
}

/// The number of FPDUs of each connection, and the number of joined copies.
fn fpdus_and_copies(dissector: TestDissector) -> (BTreeMap<u64, u32>, u64) {
    let joined = dissector.joined();
    let mut fpdus = BTreeMap::new();
    for unit in dissector.finish().iter().filter(|unit| unit["kind"] == "fpdu") {
        *fpdus.entry(unit["stream"].as_u64().unwrap()).or_default() += 1;
    }
    (fpdus, joined)
}

#[test]
fn connections_with_equal_ports_in_two_networks_are_two() {
    // The second connection has different sequence numbers, or the same sequence numbers and
    // different octets.
    for isn in [70_000_000, 5000] {
        let (one, other) = (connection(5000, b"one"), connection(isn, b"two"));
        for (name, here, there) in PAIRS {
            let mut dissector = TestDissector::default();
            for ((_, packet), (_, second)) in one.iter().zip(&other) {
                capture(&mut dissector, here, packet);
                capture(&mut dissector, there, second);
            }
            assert_eq!(fpdus_and_copies(dissector), (BTreeMap::from([(0, FPDUS), (1, FPDUS)]), 0), "{name}, SYN {isn}");
        }
    }
}

/// The capture of each connection starts after its start-up frames.
#[test]
fn connections_with_equal_ports_of_which_the_beginning_is_missing_are_two() {
    let (one, other) = (connection(5000, b"one"), connection(70_000_000, b"two"));
    for (name, here, there) in PAIRS {
        let mut dissector = TestDissector::default();
        for ((_, packet), (_, second)) in one.iter().zip(&other).skip(6) {
            capture(&mut dissector, here, packet);
            capture(&mut dissector, there, second);
        }
        assert_eq!(fpdus_and_copies(dissector), (BTreeMap::from([(0, FPDUS - 2), (1, FPDUS - 2)]), 0), "{name}");
    }
}

#[test]
fn copies_of_a_connection_in_two_networks_are_one() {
    let packets = connection(5000, b"one");
    for (name, here, there) in PAIRS {
        let both = |order: &mut dyn Iterator<Item = (Network, usize)>| {
            let mut dissector = TestDissector::default();
            order.for_each(|(network, at)| capture(&mut dissector, network, &packets[at].1));
            fpdus_and_copies(dissector)
        };
        let expected = (BTreeMap::from([(0, FPDUS)]), 1);
        let count = packets.len();
        let beside = both(&mut (0..count).flat_map(|at| [(here, at), (there, at)]));
        assert_eq!(beside, expected, "{name}, copy by copy");
        let appended = both(&mut (0..count).map(|at| (here, at)).chain((0..count).map(|at| (there, at))));
        assert_eq!(appended, expected, "{name}, one after the other");
        let each_way = both(&mut (0..count).map(|at| (if packets[at].0 == 0 { here } else { there }, at)));
        assert_eq!(each_way, expected, "{name}, a direction each");
        let lossy = both(&mut (0..count).map(|at| (if at % 3 == 1 { there } else { here }, at)));
        assert_eq!(lossy, expected, "{name}, each packet in one of them");
    }
}

/// Two connections with different sequence numbers use the same ports, one after the other. Each
/// network has a copy of both connections.
#[test]
fn copies_of_a_connection_whose_ports_are_used_again_are_one() {
    let mut dissector = TestDissector::default();
    for (_, packet) in connection(5000, b"one").iter().chain(&connection(9_000_000, b"two")) {
        capture(&mut dissector, VLAN_7, packet);
        capture(&mut dissector, VLAN_8, packet);
    }
    assert_eq!(fpdus_and_copies(dissector), (BTreeMap::from([(0, FPDUS), (1, FPDUS)]), 1));
}
