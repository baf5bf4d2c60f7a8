//! Finds the sender and the receiver of the traffic that a finding is about. If an output receives
//! a finding without its unit, it can get the addresses and ports here.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use weft_core::wire::portmap::UDP_PORT;

use crate::finding::Finding;
use crate::packet::{Packet, TransportKind};
use crate::stream_id::StreamId;

/// Maximum number of connections with stored addresses. The connection with the smallest number is
/// dropped first.
pub const MAX_CONNECTIONS: usize = 1 << 16;

/// Maximum number of datagrams with stored addresses.
const DATAGRAMS: usize = 1024;

/// The addresses and ports of connections, and of datagrams of port mappers.
#[derive(Debug, Default)]
pub struct Senders {
    /// The sender and the receiver of each connection's first frame.
    ends: BTreeMap<StreamId, (SocketAddr, SocketAddr)>,
    /// All connections with smaller numbers than this number were already recorded.
    next: StreamId,
    /// The latest datagrams from and to port mappers. These datagrams are stored because a finding
    /// about a datagram can arrive seconds after the datagram.
    datagrams: VecDeque<Packet>,
}

impl Senders {
    /// Records a packet.
    pub fn packet(&mut self, packet: &Packet) {
        match packet.transport {
            // Connection numbers increase in the order of the first frames.
            TransportKind::Tcp { stream, .. } if stream < self.next => {}
            TransportKind::Tcp { stream, .. } => {
                if self.ends.len() == MAX_CONNECTIONS {
                    self.ends.pop_first();
                }
                self.ends.insert(stream, (packet.src, packet.dst));
                self.next = stream.next();
            }
            TransportKind::Udp => {
                if [packet.src.port(), packet.dst.port()].contains(&UDP_PORT) {
                    self.datagrams.push_back(*packet);
                    self.datagrams.drain(..self.datagrams.len().saturating_sub(DATAGRAMS));
                }
            }
        }
    }

    /// The sender and the receiver of the traffic that the finding is about; `None` if the
    /// addresses are not stored.
    #[must_use]
    pub fn of(&self, finding: &Finding) -> Option<(SocketAddr, SocketAddr)> {
        let Some(stream) = finding.stream else {
            let datagram = self.datagrams.iter().rev().find(|datagram| datagram.frame == finding.frame)?;
            return Some((datagram.src, datagram.dst));
        };
        let (first, other) = *self.ends.get(&stream)?;
        Some(if finding.direction == 0 { (first, other) } else { (other, first) })
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;

    use super::*;
    use crate::frame_number::FrameNumber;

    fn end(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn tcp(stream: u32, src: u16, dst: u16) -> Packet {
        let stream = stream.into();
        let transport = TransportKind::Tcp { stream, seq: 0, syn: false, fin: false, rst: false, ack: true };
        Packet { frame: FrameNumber::FIRST, src: end(src), dst: end(dst), payload_len: 0, transport }
    }

    fn finding(stream: Option<u32>, direction: u8, frame: u64) -> Finding {
        Finding {
            requirement: requirement!("MPA-7.1.1-2"),
            severity: Severity::Error,
            stream: stream.map(StreamId::from),
            direction,
            frame: frame.into(),
            range: 0..0,
            locations: Vec::new(),
            expected: String::new(),
            found: String::new(),
        }
    }

    #[test]
    fn direction_0_is_that_of_the_first_frame() {
        let mut senders = Senders::default();
        [tcp(0, 1, 2), tcp(0, 2, 1), tcp(1, 4, 3)].iter().for_each(|packet| senders.packet(packet));
        assert_eq!(senders.of(&finding(Some(0), 0, 1)), Some((end(1), end(2))));
        assert_eq!(senders.of(&finding(Some(0), 1, 1)), Some((end(2), end(1))));
        assert_eq!(senders.of(&finding(Some(1), 1, 1)), Some((end(3), end(4))));
        assert_eq!(senders.of(&finding(Some(2), 0, 1)), None);
    }

    #[test]
    fn a_datagram_is_that_of_the_frame() {
        let mut senders = Senders::default();
        let udp =
            |frame: u64, src, dst| Packet { frame: frame.into(), transport: TransportKind::Udp, ..tcp(0, src, dst) };
        senders.packet(&udp(7, 5, 3935));
        // This datagram is not stored, because only datagrams of port mappers have findings.
        senders.packet(&udp(8, 5, 6));
        senders.packet(&udp(9, 3935, 5));
        assert_eq!(senders.of(&finding(None, 0, 7)), Some((end(5), end(3935))));
        assert_eq!(senders.of(&finding(None, 0, 8)), None);
        (0..DATAGRAMS as u64).for_each(|more| senders.packet(&udp(10 + more, 5, 3935)));
        assert_eq!(senders.of(&finding(None, 1, 9)), None);
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let mut senders = Senders::default();
        (0..=MAX_CONNECTIONS as u32).for_each(|stream| senders.packet(&tcp(stream, 1, 2)));
        assert_eq!(senders.ends.len(), MAX_CONNECTIONS);
        assert_eq!(senders.of(&finding(Some(0), 0, 1)), None);
    }
}
