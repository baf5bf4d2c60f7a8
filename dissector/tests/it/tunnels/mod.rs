//! These tests read a captured connection in every supported encapsulation. The dissector must find
//! the same units (start-up frames, FPDUs) as without encapsulation.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod wrap;

use std::path::Path;

use serde_json::Value;
use weft_dissector::source::{Capture, Frame};
use weft_dissector::{Dissector, SkipReason};

use crate::common::{RAW, Units, hex};
use wrap::{LINKS, authenticated, ipv4, udp};
pub(crate) use wrap::{TUNNELS, ethernet};

/// Returns the IP packets of a real capture of Ethernet frames.
fn packets(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw").join(name);
    let mut capture = Capture::open(&path).unwrap();
    let mut packets = Vec::new();
    while let Some(frame) = capture.next_frame() {
        if frame.octets[12..14] == [8, 0] {
            packets.push(frame.octets[14..].to_vec());
        }
    }
    packets
}

/// Returns an IPv6 packet with the TCP segment of the IPv4 packet `packet`.
fn in_ipv6(packet: &[u8]) -> Vec<u8> {
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let mut out = hex("60000000 0000 06 40");
    out[4..6].copy_from_slice(&u16::try_from(total - 20).unwrap().to_be_bytes());
    for address in [&packet[12..16], &packet[16..20]] {
        out.extend(hex("fd00 0000 0000 0000 0000 0000"));
        out.extend_from_slice(address);
    }
    out.extend_from_slice(&packet[20..total]);
    out
}

/// The bytes of a frame, and its length on the wire.
type Framed = (Vec<u8>, usize);

/// Reads frames. Returns their units without the offsets in the frames, because an encapsulation
/// changes these offsets. Also returns the counts of skipped frames by reason.
fn units(link_type: u16, frames: &[Framed]) -> (Vec<Value>, Vec<(SkipReason, u64)>) {
    let mut dissector = Dissector::default();
    let mut units = Units::default();
    for (number, (octets, wire_len)) in (1_u64..).zip(frames) {
        let wire_len = u32::try_from(*wire_len).unwrap();
        let time = number * 1000;
        dissector.frame(&Frame { number: number.into(), time, interface: 0, link_type, octets, wire_len }, &mut units);
    }
    dissector.finish(&mut units);
    units.all.iter_mut().for_each(without_offsets);
    let unread = dissector.unread();
    (units.all, unread)
}

pub(crate) fn without_offsets(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("offset");
            object.values_mut().for_each(without_offsets);
        }
        Value::Array(array) => array.iter_mut().for_each(without_offsets),
        _ => {}
    }
}

fn complete(frames: impl Iterator<Item = Vec<u8>>) -> Vec<Framed> {
    frames
        .map(|frame| {
            let len = frame.len();
            (frame, len)
        })
        .collect()
}

/// Returns the packets of the connection in a capture, over IPv4 and over IPv6, each with the units
/// of the connection. Asserts that the capture has at least `fpdus` FPDUs.
pub(crate) fn connections(name: &str, fpdus: usize) -> [(Vec<Vec<u8>>, Vec<Value>); 2] {
    let v4 = packets(name);
    let v6 = v4.iter().map(|packet| in_ipv6(packet)).collect::<Vec<_>>();
    [v4, v6].map(|packets| {
        let (units, _) = units(RAW, &complete(packets.iter().cloned()));
        assert!(units.iter().filter(|unit| unit["kind"] == "fpdu").count() >= fpdus, "{name} has too few FPDUs");
        (packets, units)
    })
}

#[test]
fn every_link_layer_leads_to_the_same_units() {
    for (packets, expected) in connections("probe-ops-mpa1-crc.pcap", 20) {
        for (name, link_type, wrap) in LINKS {
            let (found, unread) = units(*link_type, &complete(packets.iter().map(|packet| wrap(packet))));
            assert_eq!(unread, [], "{name}");
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn every_tunnel_leads_to_the_same_units() {
    for (packets, expected) in connections("probe-ops-mpa1-crc.pcap", 20) {
        for (name, wrap) in TUNNELS {
            let (found, unread) = units(1, &complete(packets.iter().map(|packet| ethernet(&wrap(packet)))));
            assert_eq!(unread, [], "{name}");
            assert_eq!(found, expected, "{name}");
        }
    }
}

/// In transport mode, the authentication header (AH) comes directly before the TCP header. There is
/// no tunnel.
#[test]
fn authentication_in_transport_mode_leads_to_the_same_units() {
    for (packets, expected) in connections("probe-ops-mpa1-crc.pcap", 20) {
        let frames = complete(packets.iter().map(|packet| ethernet(&authenticated(packet))));
        assert_eq!(units(1, &frames), (expected.clone(), Vec::new()));
        for (name, wrap) in TUNNELS {
            let frames = complete(packets.iter().map(|packet| ethernet(&wrap(&authenticated(packet)))));
            let (found, unread) = units(1, &frames);
            assert_eq!(unread, [], "{name}");
            assert!(found == expected, "{name}");
        }
    }
}

#[test]
fn tunnels_within_tunnels_lead_to_the_same_units() {
    for (packets, expected) in connections("rdma-client-server-mpa1.pcap", 2) {
        for (outer_name, outer) in TUNNELS {
            for (inner_name, inner) in TUNNELS {
                let frames = complete(packets.iter().map(|packet| ethernet(&outer(&inner(packet)))));
                let (found, unread) = units(1, &frames);
                assert_eq!(unread, [], "{inner_name} in {outer_name}");
                assert!(found == expected, "{inner_name} in {outer_name}");
            }
            for (name, link_type, wrap) in LINKS {
                let frames = complete(packets.iter().map(|packet| wrap(&outer(packet))));
                let (found, unread) = units(*link_type, &frames);
                assert_eq!(unread, [], "{outer_name} in {name}");
                assert!(found == expected, "{outer_name} in {name}");
            }
        }
    }
}

/// A snap length removes the same bytes of the payload in every encapsulation.
#[test]
fn truncated_frames_lead_to_the_units_of_truncated_packets() {
    for (packets, _) in connections("probe-ops-mpa1-crc.pcap", 20) {
        let long: Vec<&Vec<u8>> = packets.iter().filter(|packet| packet.len() > 400).collect();
        for snapped in [1, 40, 300] {
            let cut = |frame: Vec<u8>| {
                let len = frame.len();
                (frame[..len - snapped].to_vec(), len)
            };
            let (expected, _) = units(RAW, &long.iter().map(|packet| cut((*packet).clone())).collect::<Vec<_>>());
            assert!(
                expected.iter().any(|unit| unit["incomplete"] == 1 || unit["incomplete"] == true),
                "nothing was cut"
            );
            for (name, wrap) in TUNNELS {
                let frames: Vec<_> = long.iter().map(|packet| cut(ethernet(&wrap(packet)))).collect();
                assert_eq!(units(1, &frames).0, expected, "{name}, {snapped} bytes cut");
            }
            // Skip link layers that have a check value at the end of the frame. For them, the snap
            // length could cut only this value.
            for (name, link_type, wrap) in LINKS.iter().filter(|(name, ..)| !name.starts_with("MACsec")) {
                let frames: Vec<_> = long.iter().map(|packet| cut(wrap(packet))).collect();
                assert_eq!(units(*link_type, &frames).0, expected, "{name}, {snapped} bytes cut");
            }
        }
    }
}

/// The outer packets of the tunnel are fragmented, and not the inner packets.
#[test]
fn fragments_of_a_tunnels_packets_are_reassembled() {
    let [(packets, expected), _] = connections("probe-ops-mpa1-crc.pcap", 20);
    let mut frames = Vec::new();
    let mut last = Vec::new();
    for (identification, packet) in (1u16..).zip(&packets) {
        let payload = udp(4789, &[&hex("08000000 00006400")[..], &ethernet(packet)].concat());
        let (first, second) = payload.split_at(40);
        for (part, offset) in [(first, 0x2000u16), (second, 5)] {
            let mut fragment = ipv4(17, part);
            fragment[4..6].copy_from_slice(&identification.to_be_bytes());
            fragment[6..8].copy_from_slice(&offset.to_be_bytes());
            frames.push(ethernet(&fragment));
        }
        last.push(frames.len());
    }
    let (mut found, unread) = units(1, &complete(frames.into_iter()));
    assert_eq!(unread, []);
    // Each packet becomes complete in the second of two frames.
    let renumber = |value: &mut Value| *value = Value::from(value.as_u64().unwrap() / 2);
    for unit in &mut found {
        renumber(&mut unit["frame"]);
    }
    let frames_of =
        |units: &[Value]| units.iter().map(|unit| (unit["frame"].clone(), unit["len"].clone())).collect::<Vec<_>>();
    assert_eq!(frames_of(&found), frames_of(&expected));
    assert_eq!(last.len(), packets.len());
}

#[test]
fn frames_that_are_not_read_are_counted_by_kind() {
    let packet = &packets("rping-crc.pcap")[0];
    for (link_type, frame, why) in [
        (1, [&hex("02aa00000001 02aa00000002 88e5 0c 00 00000001")[..], packet].concat(), "MACsec (encrypted)"),
        (1, ethernet(&ipv4(50, packet)), "IPsec ESP (encrypted)"),
        (
            1,
            ethernet(&ipv4(17, &udp(4500, &[&hex("00000007 00000001")[..], packet].concat()))),
            "IPsec ESP (encrypted)",
        ),
        (1, hex("02aa00000001 02aa00000002 0806 0001 0800 06 04 0001"), "ARP"),
        (1, ethernet(&ipv4(1, &hex("0800 0000"))), "ICMP"),
        (1, hex("02aa00000001 02aa00000002 0026 42 42 03 0000"), "IEEE 802.2 (spanning tree and others)"),
        (1, hex("02aa00000001 02aa00000002 8915 00"), "RoCE v1"),
        (105, hex("0842 0000 02aa00000001 02aa00000002 02aa00000003 1000 00"), "802.11 (encrypted)"),
        (105, hex("8000 0000 02aa00000001 02aa00000002 02aa00000003 1000 00"), "802.11 management and control"),
        (247, hex("00"), "InfiniBand"),
        (9999, hex("00"), "link type 9999"),
        (1, ethernet(&hex("4500 0020 0001 2000 40 06 0000 0a000001 0a000002 0000000000000000")), "IP fragments"),
        (1, ethernet(&packet[..12]), "truncated header"),
    ] {
        let len = frame.len();
        let (_, unread) = units(link_type, &[(frame, len)]);
        let reasons: Vec<_> = unread.iter().map(|(why, count)| (why.to_string(), *count)).collect();
        assert_eq!(reasons, [(why.to_owned(), 1)]);
    }
}

/// Other programs can use the UDP ports of tunnels. If a datagram does not have the header of the
/// tunnel, the dissector does not treat it as a tunnel.
#[test]
fn a_datagram_to_a_tunnels_port_that_is_no_tunnel_is_a_datagram() {
    for port in [2152, 4789, 4790, 6081, 6635, 8472] {
        let frame = ethernet(&ipv4(17, &udp(port, b"")));
        let len = frame.len();
        assert_eq!(units(1, &[(frame, len)]).1, [], "port {port}");
    }
}

/// The dissector reads nested tunnels only up to a limit. It counts the frames that exceed the
/// limit.
#[test]
fn endless_tunnels_end() {
    let mut packet = packets("rping-crc.pcap").swap_remove(0);
    for _ in 0..100 {
        packet = ipv4(4, &packet);
    }
    let len = packet.len();
    assert_eq!(units(RAW, &[(packet, len)]).1, [(SkipReason::TooDeep, 1)]);
}

proptest::proptest! {
    #[test]
    fn changed_bytes_do_not_panic(tunnel in 0..TUNNELS.len(), link in 0..LINKS.len(), at in 0usize..120, to: u8, keep in 0usize..400) {
        let packet = &packets("rping-stock.pcap")[5];
        let (_, link_type, wrap) = LINKS[link];
        let mut frame = wrap(&TUNNELS[tunnel].1(packet));
        let len = frame.len();
        if let Some(octet) = frame.get_mut(at) {
            *octet = to;
        }
        frame.truncate(keep);
        units(link_type, &[(frame, len)]);
    }
}
