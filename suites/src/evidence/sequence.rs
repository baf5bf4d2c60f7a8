//! TCP headers of frames, and the relative sequence numbers that Wireshark shows.

use std::net::SocketAddr;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use super::Frames;

/// The fields of a TCP segment that the evidence needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TcpSegment {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) seq: u32,
    /// Number of payload bytes.
    pub(super) len: u32,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
}

impl TcpSegment {
    /// Parses an Ethernet frame. Returns `None` if the frame has no TCP segment.
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let packet = SlicedPacket::from_ethernet(frame).ok()?;
        let Some(TransportSlice::Tcp(tcp)) = &packet.transport else { return None };
        let (from, to) = match &packet.net {
            Some(NetSlice::Ipv4(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            Some(NetSlice::Ipv6(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            _ => return None,
        };
        Some(TcpSegment {
            from: SocketAddr::new(from, tcp.source_port()),
            to: SocketAddr::new(to, tcp.destination_port()),
            seq: tcp.sequence_number(),
            len: u32::try_from(tcp.payload().len()).ok()?,
            syn: tcp.syn(),
            fin: tcp.fin(),
            rst: tcp.rst(),
        })
    }
}

/// Returns the relative sequence numbers of the first and the last payload byte of a frame. The SYN
/// of the direction has the relative sequence number 0. `number` is the number of the frame, from
/// 1. Returns `None` if the frame has no TCP payload, or if the SYN is missing.
pub(crate) fn sequence_numbers(frames: &Frames, number: u64) -> Option<[u64; 2]> {
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    let segment = TcpSegment::parse(&frames.list.get(index)?.octets)?;
    let is_syn = |other: &TcpSegment| other.syn && (other.from, other.to) == (segment.from, segment.to);
    let mut earlier = frames.list[..index].iter().rev().filter_map(|frame| TcpSegment::parse(&frame.octets));
    let syn = earlier.find(is_syn)?;
    let first = u64::from(segment.seq.wrapping_sub(syn.seq));
    (segment.len > 0).then(|| [first, first + u64::from(segment.len) - 1])
}

#[cfg(test)]
mod tests {
    use weft_peer::Instant;
    use weft_peer::driver::{Direction, EventContent, TrafficEvent};

    use super::*;
    use crate::evidence::synthesize_frames;

    /// Frames 1 to 3 are the handshake. Frames 5 and 6 are segments of one event of 1,500 bytes. A
    /// segment has at most 1,460 bytes.
    #[test]
    fn numbers_begin_at_the_syn() {
        let [tester, target] = [(2, 50_000), (1, 7174)].map(|(last, port)| SocketAddr::from(([192, 0, 2, last], port)));
        let event = |direction, content| TrafficEvent { at: Instant::from_nanos(5), connection: 0, direction, content };
        let octets = |len: usize| EventContent::Octets(vec![7; len].into());
        let frames = synthesize_frames(&[
            event(Direction::ToTarget, EventContent::Connected { tester, target }),
            event(Direction::ToTarget, octets(20)),
            event(Direction::FromTarget, octets(1500)),
            event(Direction::FromTarget, EventContent::Fin),
        ]);
        let numbers: Vec<_> = (0..=8).map(|number| sequence_numbers(&frames, number)).collect();
        let expected = [None, None, None, None, Some([1, 20]), Some([1, 1460]), Some([1461, 1500]), None, None];
        assert_eq!(numbers, expected);
    }
}
