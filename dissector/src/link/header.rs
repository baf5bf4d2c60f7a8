//! The kinds of headers, and the step from one header to the next header.

use super::skip_reason::SkipReason;

/// The kind of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// The first header of a frame with this link type.
    Link(u16),
    /// Ethernet II or IEEE 802.3.
    Ethernet,
    /// The header that this EtherType announces.
    EtherType(u16),
    /// IEEE 802.2.
    Llc,
    /// PPP, with or without address and control fields.
    Ppp,
    /// IEEE 802.11. `padded` is set if the 802.11 header is padded to a multiple of four bytes.
    Wifi { padded: bool },
    /// MPLS labels.
    Mpls,
    /// GRE.
    Gre,
    /// VXLAN.
    Vxlan,
    /// VXLAN with a next-protocol field (VXLAN-GPE).
    VxlanGpe,
    /// GENEVE.
    Geneve,
    /// GTP-U.
    Gtp,
    /// EtherIP (RFC 3378).
    EtherIp,
    /// IPv4 or IPv6.
    Ip,
}

/// The next header, and its offset in bytes from the start of the current header. If the rest of
/// the frame cannot be read, the error has the reason.
pub(crate) type Step = Result<(Header, usize), SkipReason>;

/// The two bytes at offset `at` as a big-endian number.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, SkipReason> {
    let field = bytes.get(at..at + 2).ok_or(SkipReason::Truncated)?;
    Ok(u16::from_be_bytes([field[0], field[1]]))
}

/// The byte at offset `at`.
pub(super) fn u8_at(bytes: &[u8], at: usize) -> Result<u8, SkipReason> {
    bytes.get(at).copied().ok_or(SkipReason::Truncated)
}

/// Reads a little-endian field.
pub(super) fn u32_le(bytes: &[u8], at: usize) -> Result<u32, SkipReason> {
    let field = bytes.get(at..at + 4).ok_or(SkipReason::Truncated)?;
    Ok(u32::from_le_bytes([field[0], field[1], field[2], field[3]]))
}
