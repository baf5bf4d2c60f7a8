//! Where MPA markers stand (RFC 5044 section 4.3).
//!
//! A marker is four octets, `RESERVED (16 bits, zero) | FPDUPTR (16 bits)`, at every stream position that is a multiple of
//! 512 from the first octet behind the sender's start-up frame; markers count as stream octets themselves. Positions here
//! are offsets from that octet, so that TCP's wrap (2^32 is a multiple of 512) never shows.
//!
//! Which direction carries markers is a matter of negotiation and not known here.

/// Distance between the first octets of two markers, in stream octets.
pub const INTERVAL: u64 = 512;
/// Octets of one marker.
pub const MARKER_LEN: usize = 4;

/// Does a marker stand at stream position `position`?
#[must_use]
pub fn is_due(position: u64) -> bool {
    position.is_multiple_of(INTERVAL)
}

/// Octets from `position` up to the next marker (1 to 512; 512 when `position` itself is a marker's).
#[must_use]
pub fn until_next(position: u64) -> u64 {
    INTERVAL - position % INTERVAL
}

/// The four octets of a marker that points `fpduptr` octets back to the FPDU's `ULPDU_Length`.
#[must_use]
pub fn to_octets(fpduptr: u16) -> [u8; MARKER_LEN] {
    let [high, low] = fpduptr.to_be_bytes();
    [0, 0, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5044 4.3: initial sequence number 11 (first octet behind the frame) puts markers at 11, 523, 1035.
    #[test]
    fn positions_count_from_the_first_octet_behind_the_frame() {
        let start = 11u64;
        let due: Vec<u64> = (start..1100).filter(|seq| is_due(seq - start)).collect();
        assert_eq!(due, [11, 523, 1035]);
        assert_eq!(until_next(0), 512);
        assert_eq!(until_next(508), 4);
    }

    /// RFC 5044 Figure 6: FPDUPTR 0x0014.
    #[test]
    fn reserved_stands_before_the_pointer() {
        assert_eq!(to_octets(0x14), [0, 0, 0, 0x14]);
    }
}
