//! The largest ULPDU that fits an FPDU in an empty TCP segment (RFC 5044 section 4.5).
//!
//! How the EMSS is found, and when it changes, is not known here.

use super::fpdu::{LENGTH_LEN, MAX_ULPDU};
use crate::crc::CRC_LEN;
use crate::marker::{INTERVAL, MARKER_LEN};

/// Least MULPDU, however small the EMSS (MPA-4.5-8).
pub const MIN_MULPDU: u16 = 128;

/// MULPDU in octets, 128 to 64768, for an effective maximum segment size of `emss` octets.
///
/// With `markers` the worst-case number of them is left room for (MPA-4.5-2), so that the FPDU fits
/// wherever it starts.
#[must_use]
pub fn mulpdu(emss: u32, markers: bool) -> u16 {
    let emss = u64::from(emss);
    let marker_octets = if markers { MARKER_LEN as u64 * emss.div_ceil(INTERVAL) } else { 0 };
    let overhead = (LENGTH_LEN + CRC_LEN) as u64 + marker_octets + emss % 4;
    let mulpdu = emss.saturating_sub(overhead).clamp(u64::from(MIN_MULPDU), u64::from(MAX_ULPDU));
    u16::try_from(mulpdu).unwrap_or(MAX_ULPDU)
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::*;

    /// Computed manually from the formulas of RFC 5044 4.5: EMSS, without markers, with markers.
    #[test]
    fn table() {
        for (emss, plain, with_markers) in [
            (0, 128, 128),
            (128, 128, 128),
            (140, 134, 130),
            (512, 506, 502),
            (536, 530, 522),
            (1220, 1214, 1202),
            (1448, 1442, 1430),
            (1460, 1454, 1442),
            (1461, 1454, 1442),
            (1463, 1454, 1442),
            (8948, 8942, 8870),
            (8960, 8954, 8882),
            (65_415, 64_768, 64_768),
            (u32::MAX, 64_768, 64_768),
        ] {
            assert_eq!((mulpdu(emss, false), mulpdu(emss, true)), (plain, with_markers), "EMSS {emss}");
        }
    }

    /// RFC 5044 4.5: such an FPDU fits the segment at every place between two markers.
    #[test]
    fn an_fpdu_of_mulpdu_fits_at_every_marker_phase() {
        for emss in 140u32..2_200 {
            for start in (0..512).step_by(4) {
                let layout = Layout::new(start, mulpdu(emss, true), Some(0));
                assert!(layout.end - layout.start <= u64::from(emss), "EMSS {emss}, start {start}");
            }
            let layout = Layout::new(0, mulpdu(emss, false), None);
            assert!(layout.end <= u64::from(emss), "EMSS {emss}");
        }
    }
}
