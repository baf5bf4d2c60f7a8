//! Reads headers that a capture program inserts before the frame: Per-Packet Information (PPI),
//! pktap of Apple, netfilter log of Linux, and ERF of Endace.

use super::header::{Header, Step, u8_at, u32_le};
use super::skip_reason::SkipReason;
use crate::link_type;

/// Reads a PPI header. It contains the length of the header and the link type of the frame, in
/// little-endian order.
pub(super) fn ppi(bytes: &[u8]) -> Step {
    let length = u16::from_le_bytes([u8_at(bytes, 2)?, u8_at(bytes, 3)?]);
    after(u32_le(bytes, 4)?, usize::from(length), 8)
}

/// Reads a pktap header. It contains the length of the header, the record type (1 for a packet) and
/// the link type, in little-endian order.
pub(super) fn pktap(bytes: &[u8]) -> Step {
    if u32_le(bytes, 4)? != 1 {
        return Err(SkipReason::TunnelControl);
    }
    let length = usize::try_from(u32_le(bytes, 0)?).map_err(|_| SkipReason::Malformed)?;
    after(u32_le(bytes, 8)?, length, 12)
}

/// Returns the step to the frame after the header. `link_type` is the link type of the frame, and
/// `length` is the length of the header. If `length` is less than `least`, the header is malformed.
fn after(link_type: u32, length: usize, least: usize) -> Step {
    // Reject a PPI or pktap header after another PPI or pktap header. No real capture has two such
    // headers, and reading them could loop.
    match u16::try_from(link_type) {
        Ok(link_type) if length >= least && link_type != link_type::PPI && link_type != link_type::PKTAP => {
            Ok((Header::Link(link_type), length))
        }
        _ => Err(SkipReason::Malformed),
    }
}

/// Reads a netfilter log header: address family, version and resource, and then attributes. One
/// attribute contains the packet.
pub(super) fn nflog(bytes: &[u8]) -> Step {
    const PAYLOAD: u16 = 9;
    // Attributes have the byte order of the capturing host. This byte order is unknown, so both
    // byte orders are tried. In the wrong byte order, the length of an attribute exceeds the frame.
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
    Err(SkipReason::Malformed)
}

/// Reads the headers of an ERF record, as in an ERF file.
pub(super) fn erf(bytes: &[u8]) -> Step {
    match crate::source::erf::packet(bytes) {
        Some((link_type, at)) => Ok((Header::Link(link_type), at)),
        None => Err(SkipReason::TunnelControl),
    }
}
