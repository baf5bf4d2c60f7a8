//! The value that replaces payload.

/// The value of each replaced byte: the letter `V`.
///
/// weft must not recognise replaced bytes as anything. As the first bytes of an FPDU, the value
/// sets reserved bits of DDP. As the start of a tunnel header, it has a wrong version or wrong
/// flags. It is not the start of an SDP Hello, of a marker, or of an IP header.
pub(super) const FILL: u8 = 0x56;
