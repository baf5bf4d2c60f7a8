//! MPA markers: their positions and octets (RFC 5044 section 4.3).
//!
//! A marker consists of four octets: `RESERVED (16 bits, zero) | FPDUPTR (16 bits)`. A sender that
//! uses markers inserts a marker at every stream position that is a multiple of 512. Position 0 is
//! the first octet after the start-up frame of the sender. Positions also count the octets of
//! markers. TCP sequence numbers wrap at 2^32. Because 2^32 is a multiple of 512, the wrap does not
//! move the markers.
//!
//! [`crate::wire::mpa::fpdu::Layout`] computes which markers belong to an FPDU. The peers negotiate
//! which directions carry markers. This module does not know the result of the negotiation.

/// Distance in octets between the first octets of two consecutive markers.
pub const INTERVAL: u64 = 512;
/// Length of a marker in octets.
pub const MARKER_LEN: usize = 4;

/// Returns the four octets of a marker that points back by `fpduptr` octets to the `ULPDU_Length`
/// of its FPDU.
#[must_use]
pub fn to_octets(fpduptr: u16) -> [u8; MARKER_LEN] {
    let [high, low] = fpduptr.to_be_bytes();
    [0, 0, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In RFC 5044 Figure 6, FPDUPTR is 0x0014.
    #[test]
    fn reserved_precedes_the_pointer() {
        assert_eq!(to_octets(0x14), [0, 0, 0, 0x14]);
    }
}
