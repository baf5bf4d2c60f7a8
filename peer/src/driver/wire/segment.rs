//! Builds frames with TCP segments. The headers come from a frame that TCP has sent.

use smoltcp::wire::{
    ETHERNET_HEADER_LEN, IPV4_HEADER_LEN, IPV6_HEADER_LEN, IpProtocol, Ipv4Packet, Ipv6Packet, TCP_HEADER_LEN,
    TcpSeqNumber,
};

use super::frame::TcpFrame;
use crate::driver::fragments::Fragments;

/// Length of the fragment header of IPv6 (RFC 8200 section 4.5).
const FRAGMENT_HEADER_LEN: usize = 8;
/// The length of each fragment except the last is a multiple of this number (RFC 791 section 3.2).
const FRAGMENT_UNIT: u16 = 8;

/// The headers of a frame, without options of TCP.
#[derive(Debug, Clone)]
pub(super) struct Headers {
    octets: Vec<u8>,
    location: TcpFrame,
}

impl Headers {
    /// Returns the headers of a frame that TCP has sent.
    pub(super) fn of(frame: &[u8], location: &TcpFrame) -> Self {
        let octets = frame[..location.tcp + TCP_HEADER_LEN].to_vec();
        Headers { octets, location: *location }
    }

    /// Returns the acknowledgment number and the window.
    pub(super) fn acknowledgment(&self) -> (u32, u16) {
        let location = TcpFrame { end: self.octets.len(), ..self.location };
        let segment = location.segment(&self.octets);
        (segment.ack_number().0.cast_unsigned(), segment.window_len())
    }

    /// Returns the offset of the TCP header in each frame.
    pub(super) fn tcp(&self) -> usize {
        self.location.tcp
    }

    /// Builds a frame with a segment. It has the flag ACK, and PSH if it has bytes.
    pub(super) fn segment(&self, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = self.octets.clone();
        frame.extend_from_slice(payload);
        let location = TcpFrame { end: frame.len(), ..self.location };
        let mut segment = location.segment_mut(&mut frame);
        // This is TCP_HEADER_LEN as a `u8`. The headers have no options.
        segment.set_header_len(20);
        segment.clear_flags();
        segment.set_ack(true);
        segment.set_psh(!payload.is_empty());
        segment.set_seq_number(TcpSeqNumber(sequence.cast_signed()));
        segment.set_urgent_at(0);
        location.fill_checksum(&mut frame);
        set_ip_len(&mut frame);
        frame
    }
}

fn is_v4(frame: &[u8]) -> bool {
    frame.get(ETHERNET_HEADER_LEN).is_some_and(|first| first >> 4 == 4)
}

/// Sets the length in the IP header to the length of the frame.
fn set_ip_len(frame: &mut [u8]) {
    let is_v4 = is_v4(frame);
    let packet = &mut frame[ETHERNET_HEADER_LEN..];
    // No interface has an MTU above 65,535 bytes, so this frame is not sent if it is longer.
    let len = |len: usize| u16::try_from(len).unwrap_or(u16::MAX);
    if is_v4 {
        let total = len(packet.len());
        let mut ip = Ipv4Packet::new_unchecked(packet);
        ip.set_total_len(total);
        ip.fill_checksum();
    } else {
        let payload = len(packet.len().saturating_sub(IPV6_HEADER_LEN));
        Ipv6Packet::new_unchecked(packet).set_payload_len(payload);
    }
}

/// Divides the IP packet of a frame into fragments. Returns them in the order in which they leave.
/// `tcp` is the offset of the TCP header, and `identification` is a number that no other recent
/// packet has.
pub(super) fn divide(frame: &[u8], tcp: usize, fragments: Fragments, identification: u16) -> Vec<Vec<u8>> {
    let Fragments { most, last_first } = fragments;
    let step = usize::from((most - most % FRAGMENT_UNIT).max(FRAGMENT_UNIT));
    let (headers, payload) = frame.split_at(tcp);
    if payload.len() <= step {
        return vec![frame.to_vec()];
    }
    let is_v4 = is_v4(frame);
    let fragment = |(index, chunk): (usize, &[u8])| {
        let begin = index * step;
        let has_more = begin + chunk.len() < payload.len();
        // The payload of an IP packet has at most 65,535 bytes.
        let offset = u16::try_from(begin).unwrap_or(u16::MAX - u16::MAX % FRAGMENT_UNIT);
        let mut frame = headers.to_vec();
        if is_v4 {
            frame.extend_from_slice(chunk);
            let mut ip = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_HEADER_LEN..]);
            ip.set_ident(identification);
            ip.set_dont_frag(false);
            ip.set_more_frags(has_more);
            ip.set_frag_offset(offset);
        } else {
            frame.extend_from_slice(&fragment_header(offset, has_more, identification));
            frame.extend_from_slice(chunk);
            Ipv6Packet::new_unchecked(&mut frame[ETHERNET_HEADER_LEN..]).set_next_header(IpProtocol::Ipv6Frag);
        }
        set_ip_len(&mut frame);
        frame
    };
    let mut frames: Vec<Vec<u8>> = payload.chunks(step).enumerate().map(fragment).collect();
    if last_first {
        frames.reverse();
    }
    frames
}

/// Returns the fragment header of IPv6 before a part of a TCP segment (RFC 8200 section 4.5).
fn fragment_header(offset: u16, has_more: bool, identification: u16) -> [u8; FRAGMENT_HEADER_LEN] {
    // The offset is a multiple of 8. Its three low bits are two reserved bits and the flag M.
    let [high, low] = (offset | u16::from(has_more)).to_be_bytes();
    let [id_high, id_low] = identification.to_be_bytes();
    [u8::from(IpProtocol::Tcp), 0, high, low, 0, 0, id_high, id_low]
}

/// Maximum number of payload bytes in a segment without options, on an interface with this MTU.
pub(super) fn max_payload(mtu: usize, is_v4: bool) -> usize {
    let header = if is_v4 { IPV4_HEADER_LEN } else { IPV6_HEADER_LEN };
    mtu.saturating_sub(header + TCP_HEADER_LEN).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TARGET, TESTER, checked, frame, v6};
    use super::*;

    #[test]
    fn a_built_segment_has_the_addresses_the_acknowledgment_and_correct_checksums() {
        for (tester, target) in [(TESTER, TARGET), (v6(TESTER), v6(TARGET))] {
            let sent = frame(tester, target, 1000, 77, b"sent before");
            let location = TcpFrame::find(&sent).unwrap();
            let headers = Headers::of(&sent, &location);
            assert_eq!(headers.acknowledgment().0, 77);
            let built = headers.segment(u32::MAX, b"abc");
            let (found, segment) = checked(&built);
            assert_eq!((found.source, found.destination), (tester, target));
            assert_eq!((segment.seq_number().0.cast_unsigned(), segment.ack_number().0), (u32::MAX, 77));
            assert_eq!((segment.payload(), segment.psh(), segment.syn()), (&b"abc"[..], true, false));
        }
    }

    fn in_order(most: u16) -> Fragments {
        Fragments { most, last_first: false }
    }

    #[test]
    fn fragments_together_are_the_packet() {
        let sent = frame(TESTER, TARGET, 1, 2, &[7; 50]);
        let location = TcpFrame::find(&sent).unwrap();
        // The segment has 70 bytes: 24 + 24 + 22.
        let parts = divide(&sent, location.tcp, in_order(31), 5);
        let mut joined = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            assert_eq!(TcpFrame::find(part), None, "a fragment is not a complete segment");
            let ip = Ipv4Packet::new_checked(&part[ETHERNET_HEADER_LEN..]).unwrap();
            assert!(ip.verify_checksum() && !ip.dont_frag());
            assert_eq!((ip.ident(), usize::from(ip.frag_offset())), (5, joined.len()));
            assert_eq!(ip.more_frags(), index + 1 < parts.len());
            joined.extend_from_slice(ip.payload());
        }
        assert_eq!((parts.len(), &joined[..]), (3, &sent[location.tcp..]));
        let mut reversed = divide(&sent, location.tcp, Fragments { most: 31, last_first: true }, 5);
        reversed.reverse();
        assert_eq!(reversed, parts);
    }

    #[test]
    fn fragments_of_ipv6_have_a_fragment_header() {
        let sent = frame(v6(TESTER), v6(TARGET), 1, 2, &[7; 20]);
        let location = TcpFrame::find(&sent).unwrap();
        let parts = divide(&sent, location.tcp, in_order(32), 0x0102);
        let ip = Ipv6Packet::new_checked(&parts[1][ETHERNET_HEADER_LEN..]).unwrap();
        assert_eq!((parts.len(), ip.next_header()), (2, IpProtocol::Ipv6Frag));
        // RFC 8200 section 4.5: next header TCP (6), reserved, offset 32 without M, identification.
        assert_eq!(ip.payload()[..8], [6, 0, 0, 32, 0, 0, 1, 2]);
        assert_eq!(ip.payload().len(), 8 + 8);
        let first = Ipv6Packet::new_checked(&parts[0][ETHERNET_HEADER_LEN..]).unwrap();
        assert_eq!(first.payload()[2..4], [0, 1]);
    }

    #[test]
    fn a_short_packet_is_not_divided() {
        let sent = frame(TESTER, TARGET, 1, 2, b"abc");
        assert_eq!(divide(&sent, 34, in_order(24), 5), [sent]);
    }
}
