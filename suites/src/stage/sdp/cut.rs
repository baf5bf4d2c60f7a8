//! How an SDP socket divides its bytes into TCP segments, and the limits for this.
//!
//! The segments are separate because the socket pauses after each of them.

use std::time::Duration;

/// Pause between two TCP segments of a socket with a [`Cut`]. The target reads the segments one by
/// one.
pub(super) const CUT_PAUSE: Duration = Duration::from_millis(1);
/// Maximum number of these pauses of a socket. Afterwards, the socket does not cut its bytes any
/// more, because the pauses of a long session would take minutes.
pub(super) const MAX_CUTS: usize = 300;

/// How a socket divides its bytes into TCP segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Cut {
    /// No cuts: TCP alone divides the bytes.
    #[default]
    None,
    /// Each FPDU is a TCP segment.
    Fpdus,
    /// Each TCP segment has at most this number of bytes, at least 1.
    Octets(usize),
}

/// Returns the length in bytes of the FPDU at the beginning of `octets`, with padding and CRC
/// field. An endpoint writes only complete FPDUs without markers.
pub(super) fn fpdu_len(octets: &[u8]) -> usize {
    let [high, low, ..] = *octets else { return octets.len() };
    (2 + usize::from(u16::from_be_bytes([high, low]))).next_multiple_of(4) + 4
}

#[cfg(test)]
mod tests {
    use super::fpdu_len;

    #[test]
    fn the_length_of_an_fpdu_includes_padding_and_crc() {
        assert_eq!([0u8, 1, 2, 3, 18].map(|len| fpdu_len(&[0, len, 9])), [8, 8, 8, 12, 24]);
        assert_eq!(fpdu_len(&[7]), 1);
    }
}
