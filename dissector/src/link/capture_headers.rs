//! Headers that a capture program puts before the frame: per-packet information (PPI), Apple's
//! pktap, Linux' netfilter log, Endace's ERF.

use super::header::{Header, Step, u8_at};
use super::unread::Unread;

/// Length of its header, and the link type after it; both little-endian.
pub(super) fn ppi(bytes: &[u8]) -> Step {
    let length = u16::from_le_bytes([u8_at(bytes, 2)?, u8_at(bytes, 3)?]);
    after(u32_le(bytes, 4)?, usize::from(length), 8)
}

/// Length of its header, record type (1: a packet), link type; little-endian.
pub(super) fn pktap(bytes: &[u8]) -> Step {
    if u32_le(bytes, 4)? != 1 {
        return Err(Unread::TunnelControl);
    }
    let length = usize::try_from(u32_le(bytes, 0)?).map_err(|_| Unread::Malformed)?;
    after(u32_le(bytes, 8)?, length, 12)
}

/// A frame of link type `link_type` begins at `length`; the header has at least `least` bytes.
fn after(link_type: u32, length: usize, least: usize) -> Step {
    // A header within a header of the same kind is not a real capture, and would loop.
    match u16::try_from(link_type) {
        Ok(link_type) if length >= least && link_type != super::types::PPI && link_type != super::types::PKTAP => {
            Ok((Header::Link(link_type), length))
        }
        _ => Err(Unread::Malformed),
    }
}

/// Address family, version, resource; then attributes, of which one is the packet.
pub(super) fn nflog(bytes: &[u8]) -> Step {
    const PAYLOAD: u16 = 9;
    // Attributes are in the byte order of the capturing host. A length in the wrong order exceeds
    // the frame.
    for read in [u16::from_le_bytes, u16::from_be_bytes] {
        let mut at = 4_usize;
        while let Some(&[a, b, c, d]) = bytes.get(at..at + 4) {
            let (length, kind) = (usize::from(read([a, b])), read([c, d]) & 0x7fff);
            if length < 4 {
                break;
            }
            if kind == PAYLOAD {
                return Ok((Header::Ip, at + 4));
            }
            at += length.next_multiple_of(4);
        }
    }
    Err(Unread::Malformed)
}

/// A record of ERF, as in a file of that format.
pub(super) fn erf(bytes: &[u8]) -> Step {
    match crate::source::erf::packet(bytes) {
        Some((link_type, at)) => Ok((Header::Link(link_type), at)),
        None => Err(Unread::TunnelControl),
    }
}

fn u32_le(bytes: &[u8], at: usize) -> Result<u32, Unread> {
    let field = bytes.get(at..at + 4).ok_or(Unread::Truncated)?;
    Ok(u32::from_le_bytes([field[0], field[1], field[2], field[3]]))
}
