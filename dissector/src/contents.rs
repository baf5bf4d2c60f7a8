//! Names the protocols in a capture, except iWARP. The names help a user who captured the wrong
//! connection or the wrong interface.
//!
//! The first bytes of a connection identify TLS, SSH, HTTP and SMB. Ports identify all other
//! protocols. The names are guesses: this module does not check more than these bytes and ports.

use std::collections::BTreeMap;
use std::fmt;

use crate::format::counted;
use crate::link::SkipReason;
use crate::packet::{Packet, TransportKind};
use crate::unit::{Kind, Unit};

/// Maximum number of connections whose protocol is stored (one byte for each connection). Further
/// connections count as [`OTHER`].
const MAX_CONNECTIONS: usize = 1 << 20;

/// TCP ports of storage protocols, and of protocols that users often capture by mistake.
const TCP_PORTS: [(u16, &str); 9] = [
    (22, "SSH"),
    (80, "HTTP"),
    (443, "TLS"),
    (445, "SMB"),
    (860, "iSCSI"),
    (2049, "NFS"),
    (3260, "iSCSI"),
    (4420, "NVMe/TCP"),
    (8009, "NVMe/TCP discovery"),
];
const UDP_PORTS: [(u16, &str); 6] =
    [(53, "DNS"), (67, "DHCP"), (123, "NTP"), (443, "QUIC"), (4791, "RoCE v2"), (5353, "mDNS")];
/// The name of connections with an unknown protocol.
const OTHER: &str = "other";

/// Counts connections and datagrams by protocol, and unread frames by reason.
#[derive(Debug, Default)]
pub struct Contents {
    /// The protocol of each connection, as an index into [`NAMES`].
    connections: Vec<u8>,
    further_connections: u64,
    datagrams: BTreeMap<&'static str, u64>,
    /// For each reason, the number of frames in which no TCP segment or UDP datagram was found, as
    /// returned by [`crate::Dissector::unread`].
    pub unread: Vec<(SkipReason, u64)>,
}

/// Protocol names of connections.
const NAMES: [&str; 9] = [OTHER, "TLS", "SSH", "HTTP", "SMB", "iSCSI", "NFS", "NVMe/TCP", "NVMe/TCP discovery"];

fn index(name: &str) -> u8 {
    NAMES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok()).unwrap_or(0)
}

impl Contents {
    /// Counts the packet of a frame.
    pub fn packet(&mut self, packet: &Packet) {
        let ports = [packet.dst.port(), packet.src.port()];
        let named = |known: &[(u16, &'static str)]| {
            let name = ports.iter().find_map(|port| known.iter().find(|(number, _)| number == port));
            name.map_or(OTHER, |(_, name)| name)
        };
        match packet.transport {
            // Connections are numbered from 0 in the order of their first packets.
            TransportKind::Tcp { stream, .. } if stream.index() >= self.connections.len() => {
                if self.connections.len() < MAX_CONNECTIONS {
                    self.connections.push(index(named(&TCP_PORTS)));
                } else {
                    self.further_connections = u64::from(stream.next()) - MAX_CONNECTIONS as u64;
                }
            }
            TransportKind::Tcp { .. } => {}
            TransportKind::Udp => *self.datagrams.entry(named(&UDP_PORTS)).or_default() += 1,
        }
    }

    /// Determines the protocol from the first bytes of a connection that is not iWARP.
    pub fn unit(&mut self, unit: &Unit<'_>) {
        let (Kind::Streaming { head, .. }, Some(stream)) = (&unit.kind, unit.stream) else { return };
        if let (Some(name), Some(connection)) = (by_bytes(head), self.connections.get_mut(stream.index())) {
            *connection = index(name);
        }
    }
}

/// Lists the unread frames that may contain connections, for example "3 frames of IPsec ESP
/// (encrypted)". Returns `None` if there are no such frames. `unread` is the result of
/// [`crate::Dissector::unread`].
#[must_use]
pub fn hidden(unread: &[(SkipReason, u64)]) -> Option<String> {
    let hidden = unread.iter().filter(|(why, _)| why.may_hide_connections());
    let parts: Vec<_> = hidden.map(|(why, count)| format!("{} of {why}", counted(*count, "frame"))).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The protocol whose messages start with the bytes `head`.
fn by_bytes(head: &[u8]) -> Option<&'static str> {
    match head {
        // A TLS record of version 3.0 to 3.4. The first byte is the record type, for example
        // handshake, alert or data.
        [0x14..=0x17, 3, 0..=4, ..] => Some("TLS"),
        [b'S', b'S', b'H', b'-', ..] => Some("SSH"),
        [b'H', b'T', b'T', b'P', b'/', ..] | [b'G', b'E', b'T', b' ', ..] | [b'P', b'O', b'S', b'T', b' ', ..] => {
            Some("HTTP")
        }
        [0xfe | 0xff, b'S', b'M', b'B', ..] | [_, _, _, _, 0xfe | 0xff, b'S', b'M', b'B', ..] => Some("SMB"),
        _ => None,
    }
}

/// Formats the counts, for example "3 TCP connections (2 TLS, 1 iSCSI), 10 UDP datagrams (10 RoCE
/// v2), 4 other frames (4 ARP)".
impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut connections: BTreeMap<&str, u64> = BTreeMap::new();
        for connection in &self.connections {
            *connections.entry(NAMES[usize::from(*connection)]).or_default() += 1;
        }
        if self.further_connections > 0 {
            *connections.entry(OTHER).or_default() += self.further_connections;
        }
        let connections: Vec<_> = connections.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        let datagrams: Vec<_> = self.datagrams.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let unread: Vec<_> = self.unread.iter().map(|(why, count)| (why.to_string(), *count)).collect();
        let mut begun = false;
        for (what, mut kinds) in [("TCP connection", connections), ("UDP datagram", datagrams), ("other frame", unread)]
        {
            group(f, what, &mut kinds, &mut begun)?;
        }
        if begun { Ok(()) } else { f.write_str("nothing") }
    }
}

/// Writes a total and its parts, the largest part first. If the only part is [`OTHER`], writes the
/// total alone.
fn group(f: &mut fmt::Formatter<'_>, what: &str, kinds: &mut [(String, u64)], begun: &mut bool) -> fmt::Result {
    let total: u64 = kinds.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return Ok(());
    }
    if std::mem::replace(begun, true) {
        f.write_str(", ")?;
    }
    write!(f, "{}", counted(total, what))?;
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if matches!(&kinds[..], [(name, _)] if name == OTHER) {
        return Ok(());
    }
    let parts: Vec<_> = kinds.iter().map(|(name, count)| format!("{count} {name}")).collect();
    write!(f, " ({})", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::frame_number::FrameNumber;

    fn packet(ports: [u16; 2], transport: TransportKind) -> Packet {
        let [src, dst] = ports.map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        Packet { frame: FrameNumber::FIRST, src, dst, payload_len: 0, transport }
    }

    fn tcp(stream: u32, port: u16) -> Packet {
        let stream = stream.into();
        let transport = TransportKind::Tcp { stream, seq: 0, syn: false, fin: false, rst: false, ack: false };
        packet([port, 50_000], transport)
    }

    #[test]
    fn counts_connections_datagrams_and_other_frames_by_name() {
        let mut contents = Contents::default();
        for (stream, port) in [(0, 3260), (0, 3260), (1, 7777), (2, 3260)] {
            contents.packet(&tcp(stream, port));
        }
        contents.packet(&packet([50_000, 4791], TransportKind::Udp));
        contents.unread = vec![(SkipReason::EtherType(0x0806), 2)];
        assert_eq!(
            contents.to_string(),
            "3 TCP connections (2 iSCSI, 1 other), 1 UDP datagram (1 RoCE v2), 2 other frames (2 ARP)"
        );
    }

    #[test]
    fn unnamed_connections_are_only_counted() {
        let mut contents = Contents::default();
        contents.packet(&tcp(0, 7777));
        assert_eq!(contents.to_string(), "1 TCP connection");
        assert_eq!(Contents::default().to_string(), "nothing");
    }

    #[test]
    fn first_bytes_name_a_protocol_on_any_port() {
        assert_eq!(by_bytes(&[0x16, 3, 1, 2, 0, 1]), Some("TLS"));
        assert_eq!(by_bytes(b"SSH-2.0-x"), Some("SSH"));
        assert_eq!(by_bytes(b"HTTP/1.1 200"), Some("HTTP"));
        assert_eq!(by_bytes(b"\0\0\0\x90\xfeSMB"), Some("SMB"));
        assert_eq!(by_bytes(b"MPA ID"), None);
    }
}
