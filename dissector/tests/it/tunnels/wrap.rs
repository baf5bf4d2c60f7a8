//! Encapsulates packets in link layers and tunnels, as the specifications of these layers define.
//! Each function puts headers before an Ethernet frame or an IP packet.

use crate::common::hex;

/// The EtherType of a packet, which depends on the IP version in its first byte.
fn ether_type(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [0x08, 0x00] }
}

fn length(len: usize) -> [u8; 2] {
    u16::try_from(len).expect("a packet of at most 65,535 bytes").to_be_bytes()
}

fn join(head: &str, rest: &[u8]) -> Vec<u8> {
    [&hex(head)[..], rest].concat()
}

/// Returns an Ethernet II frame with an IP packet.
pub(crate) fn ethernet(packet: &[u8]) -> Vec<u8> {
    [&hex("02aa00000001 02aa00000002")[..], &ether_type(packet), packet].concat()
}

/// Returns an IPv4 packet with a payload.
pub(super) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut head = hex("4500 0000 0007 4000 40 00 0000 c0a80001 c0a80002");
    head[2..4].copy_from_slice(&length(20 + payload.len()));
    head[9] = protocol;
    [&head, payload].concat()
}

/// Returns an IPv6 packet with a payload.
pub(super) fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut head = hex("60000000 0000 00 40");
    head[4..6].copy_from_slice(&length(payload.len()));
    head[6] = protocol;
    head.extend(hex("fd00 0000 0000 0000 0000 0000 0000 0a01 fd00 0000 0000 0000 0000 0000 0000 0a02"));
    [&head, payload].concat()
}

/// Inserts an authentication header of 24 bytes (RFC 4302) after the IP header of a packet, as in
/// transport mode. The IP header must have no options.
pub(super) fn authenticated(packet: &[u8]) -> Vec<u8> {
    let (length_at, protocol_at, head) = if packet[0] >> 4 == 6 { (4, 6, 40) } else { (2, 9, 20) };
    let mut out = packet[..head].to_vec();
    let len = u16::from_be_bytes([packet[length_at], packet[length_at + 1]]);
    out[length_at..length_at + 2].copy_from_slice(&length(usize::from(len) + 24));
    out[protocol_at] = 51;
    out.push(packet[protocol_at]);
    out.extend(hex("04 0000 00000001 00000001 000000000000000000000000"));
    out.extend_from_slice(&packet[head..]);
    out
}

/// Returns a UDP header and a payload. `port` is the destination port. The source port is
/// ephemeral.
pub(super) fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    [&[0xc3, 0x50][..], &port.to_be_bytes(), &length(8 + payload.len()), &[0, 0], payload].concat()
}

/// The name of a tunnel, and a function that puts a packet into the tunnel.
pub(crate) type Tunnel = (&'static str, fn(&[u8]) -> Vec<u8>);

/// The tunnels. Each converts an IP packet into an IP packet.
pub(crate) const TUNNELS: &[Tunnel] = &[
    ("IP in IPv4", |p| ipv4(if p[0] >> 4 == 6 { 41 } else { 4 }, p)),
    ("IP in IPv6", |p| ipv6(if p[0] >> 4 == 6 { 41 } else { 4 }, p)),
    ("GRE", |p| ipv4(47, &[&hex("0000")[..], &ether_type(p), p].concat())),
    ("GRE with checksum, key and sequence number, IPv6", |p| {
        ipv6(47, &[&hex("b000")[..], &ether_type(p), &hex("12340000 00000007 00000001"), p].concat())
    }),
    ("NVGRE", |p| ipv4(47, &join("2000 6558 00006401", &ethernet(p)))),
    ("PPTP", |p| ipv4(47, &[&hex("3081 880b 0000 0001 00000001 00000002 ff03")[..], &ppp(p)].concat())),
    ("ERSPAN I", |p| ipv4(47, &join("0000 88be", &ethernet(p)))),
    ("ERSPAN II", |p| ipv4(47, &join("1000 88be 00000001 1064 1800 00000003", &ethernet(p)))),
    ("ERSPAN III", |p| ipv4(47, &join("1000 22eb 00000001 2064 1800 00000000 0000 0000", &ethernet(p)))),
    ("ERSPAN III with a platform field, IPv6", |p| {
        ipv6(47, &join("1000 22eb 00000001 2064 1800 00000000 0000 0001 0000000000000000", &ethernet(p)))
    }),
    ("ERSPAN III of IP", |p| ipv4(47, &join("1000 22eb 00000001 2064 1800 00000000 0000 0800", p))),
    ("VXLAN", |p| ipv4(17, &udp(4789, &join("08000000 00006400", &ethernet(p))))),
    ("VXLAN at Linux' first port, IPv6", |p| ipv6(17, &udp(8472, &join("08000000 00006400", &ethernet(p))))),
    ("VXLAN-GPE", |p| {
        let next = if p[0] >> 4 == 6 { "0c000002 00006400" } else { "0c000001 00006400" };
        ipv4(17, &udp(4790, &join(next, p)))
    }),
    ("VXLAN-GPE with NSH", |p| ipv4(17, &udp(4790, &join("0c000004 00006400 0fc2 01 03 00000aff", &ethernet(p))))),
    ("GENEVE", |p| ipv4(17, &udp(6081, &join("0000 6558 00006400", &ethernet(p))))),
    ("GENEVE with options, IPv6", |p| {
        ipv6(17, &udp(6081, &join("0300 6558 00006400 0102 80 02 00000000 00000000", &ethernet(p))))
    }),
    ("GENEVE of IP", |p| ipv4(17, &udp(6081, &[&hex("0000")[..], &ether_type(p), &hex("00006400"), p].concat()))),
    ("GTP-U", |p| ipv4(17, &udp(2152, &[&hex("30 ff")[..], &length(p.len()), &hex("00000001"), p].concat()))),
    ("GTP-U with extensions, IPv6", |p| {
        let head = hex("00000001 0000 00 85 01 0009 c0 01 1234 00");
        ipv6(17, &udp(2152, &[&hex("34 ff")[..], &length(12 + p.len()), &head, p].concat()))
    }),
    ("EtherIP", |p| ipv4(97, &join("3000", &ethernet(p)))),
    ("MPLS in IP", |p| ipv6(137, &join("00064140", p))),
    ("MPLS in UDP", |p| ipv4(17, &udp(6635, &join("00064140", p)))),
    ("AH in tunnel mode", |p| {
        let next = if p[0] >> 4 == 6 { "29 04 0000" } else { "04 04 0000" };
        ipv4(51, &join(next, &join("00000001 00000001 000000000000000000000000", p)))
    }),
    ("hop-by-hop options before IP", |p| {
        ipv6(0, &join(if p[0] >> 4 == 6 { "29 00 01040000 0000" } else { "04 00 01040000 0000" }, p))
    }),
];

/// Puts a PPP protocol number before a packet.
fn ppp(packet: &[u8]) -> Vec<u8> {
    join(if packet[0] >> 4 == 6 { "0057" } else { "0021" }, packet)
}

/// Puts an LLC header and a SNAP header before a packet.
fn snap(packet: &[u8]) -> Vec<u8> {
    [&hex("aaaa03 000000")[..], &ether_type(packet), packet].concat()
}

/// Returns two attributes of the netfilter log. The first attribute is a text (the prefix), and the
/// second contains the packet.
fn nflog(packet: &[u8], number: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let attribute = |kind: u16, value: &[u8]| {
        let len = u16::try_from(4 + value.len()).expect("a packet that NFLOG can carry");
        let mut out = [&number(len)[..], &number(kind), value].concat();
        out.resize(out.len().next_multiple_of(4), 0);
        out
    };
    [&hex("02 00 0005")[..], &attribute(10, b"iwarp\0"), &attribute(9, packet)].concat()
}

/// The name of a link layer, its link type, and a function that puts an IP packet into a frame.
pub(super) type Link = (&'static str, u16, fn(&[u8]) -> Vec<u8>);

/// The link layers. Each puts an IP packet into a frame.
pub(super) const LINKS: &[Link] = &[
    ("Ethernet", 1, |p| ethernet(p)),
    ("802.1Q", 1, |p| [&hex("02aa00000001 02aa00000002 8100 0064")[..], &ether_type(p), p].concat()),
    ("802.1ad", 1, |p| [&hex("02aa00000001 02aa00000002 88a8 0064 8100 0065")[..], &ether_type(p), p].concat()),
    ("802.1ah", 1, |p| join("02aa00000001 02aa00000002 88e7 00000064", &ethernet(p))),
    ("LLC and SNAP", 1, |p| {
        let payload = snap(p);
        [&hex("02aa00000001 02aa00000002")[..], &length(payload.len().min(1500)), &payload].concat()
    }),
    ("MPLS", 1, |p| join("02aa00000001 02aa00000002 8847 00064140", p)),
    ("three MPLS labels", 1, |p| join("02aa00000001 02aa00000002 8847 00064040 00065040 00066140", p)),
    ("pseudowire with control word", 1, |p| join("02aa00000001 02aa00000002 8847 00064140 00000000", &ethernet(p))),
    ("pseudowire without control word", 1, |p| join("02aa00000001 02aa00000002 8847 00064140", &ethernet(p))),
    ("PPPoE", 1, |p| {
        let payload = ppp(p);
        let head = [&hex("02aa00000001 02aa00000002 8864 1100 0001")[..], &length(payload.len())].concat();
        [head, payload].concat()
    }),
    ("MACsec", 1, |p| {
        [&hex("02aa00000001 02aa00000002 88e5 00 00 00000001")[..], &ether_type(p), p, &[0x5a; 16]].concat()
    }),
    ("MACsec with channel", 1, |p| {
        let head = hex("02aa00000001 02aa00000002 88e5 20 00 00000001 02aa000000020001");
        [&head[..], &ether_type(p), p, &[0x5a; 16]].concat()
    }),
    ("NSH", 1, |p| join("02aa00000001 02aa00000002 894f 0fc2 01 03 00000aff", &ethernet(p))),
    ("PPP", 9, |p| join("ff03", &ppp(p))),
    ("PPP without address", 9, |p| ppp(p)),
    ("PPP with short protocol numbers", 50, |p| join(if p[0] >> 4 == 6 { "57" } else { "21" }, p)),
    ("PPPoE link", 51, |p| {
        let payload = ppp(p);
        [&hex("1100 0001")[..], &length(payload.len()), &payload].concat()
    }),
    ("Cisco HDLC", 104, |p| [&hex("0f00")[..], &ether_type(p), p].concat()),
    ("802.11", 105, |p| join("0802 0000 02aa00000001 02aa00000002 02aa00000003 1000", &snap(p))),
    ("802.11 with QoS", 105, |p| join("8801 0000 02aa00000001 02aa00000002 02aa00000003 1000 0000", &snap(p))),
    ("802.11 between access points", 105, |p| {
        join("0803 0000 02aa00000001 02aa00000002 02aa00000003 1000 02aa00000004", &snap(p))
    }),
    ("radiotap", 127, |p| {
        let head = "0000 0a00 02000000 00 00";
        join(head, &join("0802 0000 02aa00000001 02aa00000002 02aa00000003 1000", &snap(p)))
    }),
    ("radiotap with time stamp and padding", 127, |p| {
        let head = "0000 1900 030000a0 00000080 00000000 0102030405060708 20";
        join(head, &join("8801 0000 02aa00000001 02aa00000002 02aa00000003 1000 0000 0000", &snap(p)))
    }),
    ("Prism", 119, |p| {
        let head = [&hex("44000000 90000000")[..], &[0; 136]].concat();
        [&head[..], &hex("0802 0000 02aa00000001 02aa00000002 02aa00000003 1000"), &snap(p)].concat()
    }),
    ("AVS", 163, |p| {
        let head = [&hex("80211001 00000040")[..], &[0; 56]].concat();
        [&head[..], &hex("0802 0000 02aa00000001 02aa00000002 02aa00000003 1000"), &snap(p)].concat()
    }),
    ("PPP with direction", 204, |p| join("00 ff03", &ppp(p))),
    ("PPP of pppd", 166, |p| join("01 03", &ppp(p))),
    ("PPI", 192, |p| join("00 00 0c00 01000000 deadbeef", &ethernet(p))),
    ("MPLS link", 219, |p| join("00064140", p)),
    ("NFLOG, little-endian", 239, |p| nflog(p, u16::to_le_bytes)),
    ("NFLOG, big-endian", 239, |p| nflog(p, u16::to_be_bytes)),
    ("IPoIB", 242, |p| [&ether_type(p)[..], &[0, 0], p].concat()),
    ("IPoIB with a route header", 242, |p| [&[0; 40][..], &ether_type(p), &[0, 0], p].concat()),
    ("IPoIB with an address", 242, |p| [&[0xfe; 20][..], &ether_type(p), &[0, 0], p].concat()),
    ("pktap", 258, |p| {
        let mut head = hex("6c000000 01000000 01000000");
        head.resize(108, 0);
        [head, ethernet(p)].concat()
    }),
    ("ERF in pcap", 197, |p| {
        let frame = ethernet(p);
        let lengths = [length(18 + frame.len()), [0, 0], length(frame.len())].concat();
        [&hex("00000080 00105e5f 02 04")[..], &lengths, &[0, 0], &frame].concat()
    }),
    ("Linux cooked", 113, |p| [&hex("0000 0001 0006 02aa000000010000")[..], &ether_type(p), p].concat()),
    ("Linux cooked 2", 276, |p| [&ether_type(p)[..], &hex("0000 00000001 0001 00 06 02aa000000010000"), p].concat()),
    ("raw IP", 101, |p| p.to_vec()),
];
