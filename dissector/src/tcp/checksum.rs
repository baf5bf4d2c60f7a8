//! Checks the TCP checksum (RFC 9293 section 3.1). A wrong checksum shows that a segment was
//! damaged in transit, and that the receiver dropped the segment.
//!
//! Often the network card of the sender inserts the checksum (checksum offload). If the capture was
//! made on such a sender, the checksum field is then 0, or has only the sum of the pseudo-header.
//! Such a value does not show whether the segment was damaged.

use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;

use crate::ip::Segment;

/// Length of the TCP header without options, in octets.
const FIXED: usize = 20;
/// Offset of the checksum in the TCP header.
const FIELD: usize = 16;
const PROTOCOL: u8 = 6;

/// Result of checking the TCP checksum of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// The checksum is correct, so the octets are unchanged.
    Right,
    /// The checksum is wrong, so octets were changed in transit.
    Wrong,
    /// Not all octets were captured, or the network card inserted the checksum after the capture.
    Unknown,
}

impl Checksum {
    /// Checks the checksum of a segment. This is slow, because the function reads all octets.
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        let Segment { src, dst, packet, octets, .. } = segment;
        let is_captured = octets.len() == segment.wire_len as usize && packet.len() >= FIXED + octets.len();
        let addresses = match (src.ip(), dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                Sum16BitWords::new().add_4bytes(src.octets()).add_4bytes(dst.octets())
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                Sum16BitWords::new().add_16bytes(src.octets()).add_16bytes(dst.octets())
            }
            _ => return Checksum::Unknown,
        };
        let (Some(field), Ok(len)) = (packet.get(FIELD..FIELD + 2), u32::try_from(packet.len())) else {
            return Checksum::Unknown;
        };
        let without_length = addresses.add_2bytes([0, PROTOCOL]);
        let pseudo = without_length.clone().add_4bytes(len.to_be_bytes());
        let field = u16::from_ne_bytes([field[0], field[1]]);
        let is_left_out = [0, !without_length.ones_complement(), !pseudo.ones_complement()].contains(&field);
        if !is_captured || is_left_out {
            Checksum::Unknown
        } else if pseudo.add_slice(packet).ones_complement() == 0 {
            Checksum::Right
        } else {
            Checksum::Wrong
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;

    use super::super::testing::{captured, packet};
    use super::*;
    use crate::testing::{Wire, fpdu, reply_frame, send_of, startup_frame};

    #[test]
    fn distinguishes_damaged_octets_from_an_offloaded_checksum() {
        let good = packet(5, b"octets");
        assert_eq!(Checksum::of(&captured(&good)), Checksum::Right);
        let mut damaged = good.clone();
        damaged[23] ^= 0x10;
        assert_eq!(Checksum::of(&captured(&damaged)), Checksum::Wrong);
        let cut = Segment { wire_len: 7, ..captured(&damaged) };
        assert_eq!(Checksum::of(&cut), Checksum::Unknown);
        // The first value is the sum of 10.0.0.1, 10.0.0.2 and protocol 6. The second value also
        // includes the length 26. If a network card inserts the checksum, a capture has such
        // partial sums.
        for field in [0x1409_u16, 0x1409 + 26, 0] {
            damaged[16..18].copy_from_slice(&field.to_be_bytes());
            assert_eq!(Checksum::of(&captured(&damaged)), Checksum::Unknown, "{field:#x}");
        }
    }

    fn started(crc: bool) -> Wire {
        let flags = if crc { 0x40 } else { 0 };
        let mut wire = Wire::started_as(&startup_frame(flags, 1, &[]), &reply_frame(flags, 1, &[]));
        wire.send(0, &fpdu(&send_of(1, 30)));
        wire
    }

    #[test]
    fn a_damaged_segment_gives_way_to_its_retransmission() {
        // Each offset belongs to an octet of the length, the opcode, the MSN or the payload.
        for (crc, at) in [(true, 0), (true, 3), (true, 15), (true, 25), (false, 0), (false, 3), (false, 15)] {
            let mut wire = started(crc);
            let two = [fpdu(&send_of(2, 30)), fpdu(&send_of(3, 30))].concat();
            wire.send_damaged(0, &two, 36 + at);
            wire.send_damaged(0, &two, at);
            wire.send(1, &[]);
            wire.send(0, &two[..40]);
            wire.send(0, &two[40..]);
            wire.send(1, &[]);
            wire.send(0, &fpdu(&send_of(4, 30)));
            assert_eq!(wire.errors(), [], "octet {at}, CRC {crc}");
        }
    }

    /// The receiver later received correct octets that are missing in the capture.
    #[test]
    fn a_bad_crc_of_damaged_octets_is_a_note() {
        let mut wire = started(true);
        wire.send(1, &fpdu(&send_of(1, 30)));
        let octets = fpdu(&send_of(2, 30));
        wire.send_damaged(0, &octets, 25);
        wire.lose(0, &octets);
        let found = |wire: &Wire| {
            let found = wire.findings();
            found.iter().map(|finding| (finding.requirement, finding.severity, finding.frame)).collect::<Vec<_>>()
        };
        let expected = [(requirement!("MPA-4.1-6"), Severity::Note, 7.into())];
        assert_eq!(found(&wire), expected, "at the end");
        wire.send(1, &fpdu(&send_of(2, 30)));
        wire.fin(0);
        wire.fin(1);
        assert_eq!(found(&wire), expected, "the octets were acknowledged, and no Terminate came before the close");
    }
}
