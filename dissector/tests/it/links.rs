//! These tests check how the dissector reads the link layer and the IP layer: link types, VLAN
//! tags, fragments and extension headers. The frames follow the layouts of IEEE 802.3 and 802.1Q,
//! the tcpdump link types, RFC 791 and RFC 8200.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use crate::common::{ACK, RAW, SYN, TestDissector, hex, tcp, tcp_header, unit_fields};

/// Reads frames of one link type. Returns the source, the length and the frame number of each unit.
fn read(link_type: u16, frames: &[Vec<u8>]) -> Vec<String> {
    let mut dissector = TestDissector::default();
    for frame in frames {
        dissector.frame(link_type, frame, frame.len());
    }
    let units = dissector.finish();
    units.iter().map(|unit| format!("{} {} in {}", unit["src"].as_str().unwrap(), unit["len"], unit["frame"])).collect()
}

/// A SYN and a segment with five octets, each with the header `link`.
fn with_link(link: &str) -> Vec<Vec<u8>> {
    [tcp(0, 999, SYN, b""), tcp(0, 1000, ACK, b"hello")].map(|packet| [hex(link), packet].concat()).to_vec()
}

const READ: [&str; 1] = ["10.0.0.1:49152 5 in 2"];

#[test]
fn every_link_type_leads_to_the_packet() {
    for (link_type, link) in [
        (1, "020000000001 020000000002 0800"),
        (1, "020000000001 020000000002 8100 0064 0800"),
        (1, "020000000001 020000000002 88a8 0064 8100 0065 0800"),
        (1, "020000000001 020000000002 9100 0064 8100 0065 0800"),
        (113, "0000 0001 0006 020000000001 0000 0800"),
        (113, "0000 0001 0006 020000000001 0000 8100 0064 0800"),
        (276, "0800 0000 00000001 0001 00 06 0200000000010000"),
        (0, "02000000"),
        (108, "00000002"),
        (12, ""),
        (14, ""),
        (101, ""),
        (228, ""),
    ] {
        assert_eq!(read(link_type, &with_link(link)), READ, "link type {link_type}, {link}");
    }
}

#[test]
fn other_frames_are_passed_over() {
    for (link_type, link) in [
        (1, "020000000001 020000000002 0806"),
        (1, "020000000001 020000000002"),
        (9999, ""),
        (276, "0806 0000"),
        (0, "02"),
    ] {
        assert_eq!(read(link_type, &with_link(link)), Vec::<String>::new(), "link type {link_type}, {link}");
    }
}

/// Ethernet pads short frames to 60 octets. The IP header has the real length of the packet.
#[test]
fn padding_after_the_packet_is_no_payload() {
    let mut frames = with_link("");
    frames[1].extend([0; 6]);
    assert_eq!(read(RAW, &frames), READ);
}

/// With segmentation offload, the total length in the IP header can be 0. The packet then ends at
/// the end of the frame.
#[test]
fn a_total_length_of_zero_means_all_of_the_frame() {
    let mut frames = with_link("");
    frames[1][2..4].copy_from_slice(&[0, 0]);
    assert_eq!(read(RAW, &frames), READ);
}

#[test]
fn options_of_ip_and_tcp_are_passed() {
    let mut packet = tcp(0, 1000, ACK, b"hello");
    // Insert three 32-bit words of TCP options, and then one word of IP options.
    packet[32] = 0x80;
    packet.splice(40..40, [1; 12]);
    packet[0] = 0x46;
    packet.splice(20..20, [1; 4]);
    packet[2..4].copy_from_slice(&61u16.to_be_bytes());
    assert_eq!(read(RAW, &[tcp(0, 999, SYN, b""), packet]), READ);
}

/// Splits an IPv4 packet into fragments. `cuts` are offsets in its payload. Each offset must be a
/// multiple of 8.
fn fragments(packet: &[u8], identification: u16, cuts: &[usize]) -> Vec<Vec<u8>> {
    let payload = &packet[20..];
    let ends = cuts.iter().copied().chain([payload.len()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let fragment = |(start, end): (usize, usize)| {
        let mut fragment = packet[..20].to_vec();
        let more = u16::from(end < payload.len()) << 13;
        fragment[2..4].copy_from_slice(&u16::try_from(20 + end - start).unwrap().to_be_bytes());
        fragment[4..6].copy_from_slice(&identification.to_be_bytes());
        fragment[6..8].copy_from_slice(&(u16::try_from(start / 8).unwrap() | more).to_be_bytes());
        fragment.extend_from_slice(&payload[start..end]);
        fragment
    };
    starts.zip(ends).map(fragment).collect()
}

#[test]
fn ipv4_fragments_in_any_order_make_the_packet() {
    let packet = tcp(0, 1000, ACK, &[7; 100]);
    let parts = fragments(&packet, 5, &[24, 64]);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let mut frames = vec![tcp(0, 999, SYN, b"")];
        frames.extend(order.iter().map(|index| parts[*index].clone()));
        assert_eq!(read(RAW, &frames), ["10.0.0.1:49152 100 in 4"], "{order:?}");
    }
}

#[test]
fn a_packet_in_the_smallest_fragments_is_put_together() {
    let packet = tcp(0, 1000, ACK, &vec![7; 40_000]);
    let cuts: Vec<usize> = (8..packet.len() - 20).step_by(8).collect();
    let parts = fragments(&packet, 5, &cuts);
    let frames: Vec<_> = [tcp(0, 999, SYN, b"")].into_iter().chain(parts.into_iter().rev()).collect();
    assert_eq!(read(RAW, &frames), [format!("10.0.0.1:49152 40000 in {}", frames.len())]);
}

#[test]
fn fragments_of_several_packets_are_kept_apart() {
    let (a, b) = (fragments(&tcp(0, 1000, ACK, &[1; 60]), 5, &[40]), fragments(&tcp(0, 1060, ACK, &[2; 60]), 6, &[40]));
    let frames = [tcp(0, 999, SYN, b""), a[0].clone(), b[0].clone(), b[1].clone(), a[1].clone()];
    assert_eq!(read(RAW, &frames), ["10.0.0.1:49152 120 in 5"]);
    // If the last fragment of a packet is missing, there is no unit for the packet.
    assert_eq!(read(RAW, &frames[..4]), ["10.0.0.1:49152 120 in 4"]);
}

/// An IPv6 packet with extension headers. `first` is the number of the first header: hop-by-hop
/// options (0), routing (43), fragment (44), authentication (51) or destination options (60).
fn ipv6(extensions: &str, first: u8, payload: &[u8]) -> Vec<u8> {
    let extensions = hex(extensions);
    let mut packet = hex("60000000");
    packet.extend(u16::try_from(extensions.len() + payload.len()).unwrap().to_be_bytes());
    packet.extend([first, 64]);
    packet.extend(hex("fd00 0000 0000 0000 0000 0000 0000 0001 fd00 0000 0000 0000 0000 0000 0000 0002"));
    packet.extend(extensions);
    packet.extend_from_slice(payload);
    packet
}

fn in_tcp(flags: u8, seq: u32, octets: &[u8]) -> Vec<u8> {
    [tcp_header(0, seq, flags), octets.to_vec()].concat()
}

#[test]
fn ipv6_extension_headers_are_passed() {
    let (syn, data) = (in_tcp(SYN, 999, b""), in_tcp(ACK, 1000, b"hello"));
    for (extensions, first) in [
        ("", 6),
        ("06 00 000000000000", 0),
        ("2b 00 000000000000 06 01 0000000000000000000000000000", 0),
        ("06 00 000000000000", 60),
        ("06 04 0000 00000000 00000000 000000000000000000000000", 51),
        // An atomic fragment, which has offset 0 and is the only fragment of its packet.
        ("06 00 0000 00000001", 44),
    ] {
        let frames = [ipv6("", 6, &syn), ipv6(extensions, first, &data)];
        assert_eq!(read(RAW, &frames), ["[fd00::1]:49152 5 in 2"], "{extensions}");
    }
}

#[test]
fn ipv6_fragments_make_the_packet() {
    let data = in_tcp(ACK, 1000, &[3; 30]);
    let frames = [
        ipv6("", 6, &in_tcp(SYN, 999, b"")),
        ipv6("06 00 0018 00000009", 44, &data[24..]),
        ipv6("06 00 0001 00000009", 44, &data[..24]),
    ];
    assert_eq!(read(RAW, &frames), ["[fd00::1]:49152 30 in 3"]);
}

/// Two headers between IP and TCP are in the fragmented part of the packet: the authentication
/// header, and the destination options of IPv6. A fragment can end inside such a header.
#[test]
fn fragments_with_headers_before_tcp_make_the_packet() {
    let after = |header: &str| [hex(header), in_tcp(ACK, 1000, &[3; 30])].concat();
    let authentication = after("06 04 0000 00000001 00000001 000000000000000000000000");
    let mut packet = [&tcp(0, 1000, ACK, b"")[..20], &authentication].concat();
    packet[9] = 51;
    for cuts in [&[40][..], &[8, 16, 32]] {
        let frames = [vec![tcp(0, 999, SYN, b"")], fragments(&packet, 5, cuts)].concat();
        assert_eq!(read(RAW, &frames), [format!("10.0.0.1:49152 30 in {}", frames.len())], "{cuts:?}");
    }
    for (first, payload) in [("33", authentication), ("3c", after("06 00 000000000000"))] {
        let frames = [
            ipv6("", 6, &in_tcp(SYN, 999, b"")),
            ipv6(&format!("{first} 00 0018 00000009"), 44, &payload[24..]),
            ipv6(&format!("{first} 00 0001 00000009"), 44, &payload[..24]),
        ];
        assert_eq!(read(RAW, &frames), ["[fd00::1]:49152 30 in 3"], "{first}");
    }
}

#[test]
fn octets_beyond_the_snap_length_are_counted() {
    let mut dissector = TestDissector::opened();
    let packet = tcp(0, 1000, ACK, &[1; 100]);
    dissector.frame(RAW, &packet[..60], packet.len());
    dissector.data(0, 100, b"beyond");
    let units = dissector.finish();
    assert_eq!(unit_fields(&units, 0, "len"), ["streaming 106"]);
    assert_eq!(unit_fields(&units, 0, "incomplete"), ["streaming 1"]);
}

proptest::proptest! {
    #[test]
    fn no_octets_panic(
        link_type in proptest::sample::select(vec![0u16, 1, 12, 101, 108, 113, 276]), frames: Vec<Vec<u8>>, version in 3u8..8,
        more in 0usize..100,
    ) {
        let mut dissector = TestDissector::default();
        for mut frame in frames {
            if link_type == 101 && let Some(first) = frame.first_mut() {
                *first = version << 4 | 5;
            }
            dissector.frame(link_type, &frame, frame.len() + more);
        }
        dissector.finish();
    }
}
