//! Finds the IPv4 and TCP headers of a frame. The IPv4 header follows the Ethernet header or its
//! VLAN tags, or is at the start of the frame.

pub(super) use weft_dissector::link_type::RAW_IP;

use super::CapturedFrame;

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

/// Returns the offset of the IPv4 header. Returns `None` if there is no IPv4 header, or for a
/// fragment.
pub(super) fn ipv4_at(frame: &CapturedFrame) -> Option<usize> {
    let octets = &frame.octets;
    let at = if frame.link_type == RAW_IP {
        0
    } else {
        let mut ethertype = 12;
        while matches!(octets.get(ethertype..ethertype + 2)?, [0x81, 0x00] | [0x88, 0xa8]) {
            ethertype += 4;
        }
        (octets.get(ethertype..ethertype + 2)? == [8, 0]).then_some(ethertype + 2)?
    };
    let fragment = octets.get(at + 6..at + 8)?;
    (octets[at] >> 4 == 4 && fragment[0] & 0x3f == 0 && fragment[1] == 0).then_some(at)
}

/// The offsets of a TCP segment and its parts in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tcp {
    pub(super) ip: usize,
    pub(super) header: usize,
    pub(super) payload: usize,
    /// The offset after the payload. It is beyond the end of the frame if a part of the payload was
    /// not captured.
    pub(super) end: usize,
}

/// Returns the TCP segment of a frame, if the TCP header was captured.
pub(super) fn tcp_at(frame: &CapturedFrame) -> Option<Tcp> {
    let ip = ipv4_at(frame)?;
    let octets = &frame.octets;
    let header = ip + usize::from(octets[ip] & 0xf) * 4;
    let length = octets.get(header + 12).filter(|_| octets[ip + 9] == 6)?;
    let payload = header + usize::from(length >> 4) * 4;
    let end = ip + usize::from(u16::from_be_bytes([octets[ip + 2], octets[ip + 3]]));
    octets.get(..payload)?;
    Some(Tcp { ip, header, payload, end })
}

impl Tcp {
    pub(super) fn flags(self, frame: &CapturedFrame) -> u8 {
        frame.octets[self.header + 13]
    }

    pub(super) fn has_payload(self) -> bool {
        self.payload < self.end
    }

    fn word(self, frame: &CapturedFrame, at: usize) -> u32 {
        let octets = &frame.octets[self.header + at..self.header + at + 4];
        octets.iter().fold(0, |word, octet| word << 8 | u32::from(*octet))
    }

    pub(super) fn seq(self, frame: &CapturedFrame) -> u32 {
        self.word(frame, 4)
    }

    pub(super) fn ack(self, frame: &CapturedFrame) -> u32 {
        self.word(frame, 8)
    }

    pub(super) fn set_seq(self, frame: &mut CapturedFrame, seq: u32) {
        frame.octets[self.header + 4..self.header + 8].copy_from_slice(&seq.to_be_bytes());
    }

    pub(super) fn set_ack(self, frame: &mut CapturedFrame, ack: u32) {
        frame.octets[self.header + 8..self.header + 12].copy_from_slice(&ack.to_be_bytes());
    }

    /// Returns the address and the port of the sender, and then those of the receiver.
    pub(super) fn ends(self, frame: &CapturedFrame) -> ([u8; 6], [u8; 6]) {
        let (ip, ports) = (&frame.octets[self.ip + 12..], &frame.octets[self.header..]);
        let end = |at: usize, port: usize| [ip[at], ip[at + 1], ip[at + 2], ip[at + 3], ports[port], ports[port + 1]];
        (end(0, 0), end(4, 2))
    }
}

/// Sets the length field of the IPv4 header at offset `ip`. The new length is the number of octets
/// from `ip` to the end of the frame.
pub(super) fn set_ip_length(frame: &mut CapturedFrame, ip: usize) {
    let length = u16::try_from(frame.octets.len() - ip).unwrap();
    frame.octets[ip + 2..ip + 4].copy_from_slice(&length.to_be_bytes());
    frame.wire_len = u32::try_from(frame.octets.len()).unwrap();
}
