//! MPA markers: their positions and octets (RFC 5044 section 4.3).
//!
//! A marker is four octets, `RESERVED (16 bits, zero) | FPDUPTR (16 bits)`, at every stream position that is a multiple of
//! 512 from the first octet after the sender's start-up frame; markers count as stream octets
//! themselves. Positions here are offsets from that octet, so that TCP's wrap (2^32 is a multiple
//! of 512) never shows.
//!
//! The layout of FPDUs defines the markers that belong to an FPDU
//! ([`crate::wire::mpa::fpdu::Layout`]). The direction that carries markers is negotiated, and not
//! known here.

/// Distance between the first octets of two markers, in stream octets.
pub const INTERVAL: u64 = 512;
/// Octets of one marker.
pub const MARKER_LEN: usize = 4;

/// The four octets of a marker that points `fpduptr` octets back to the FPDU's `ULPDU_Length`.
#[must_use]
pub fn to_octets(fpduptr: u16) -> [u8; MARKER_LEN] {
    let [high, low] = fpduptr.to_be_bytes();
    [0, 0, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5044 Figure 6: FPDUPTR 0x0014.
    #[test]
    fn reserved_precedes_the_pointer() {
        assert_eq!(to_octets(0x14), [0, 0, 0, 0x14]);
    }
}
