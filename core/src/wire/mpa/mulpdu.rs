//! MULPDU: the largest ULPDU whose FPDU fits in one TCP segment (RFC 5044 section 4.5).
//!
//! This module does not measure the EMSS (effective maximum segment size). The caller passes the
//! EMSS.

use super::fpdu::{LENGTH_LEN, MAX_ULPDU};
use crate::crc::CRC_LEN;
use crate::marker::{INTERVAL, MARKER_LEN};

/// Minimum MULPDU in octets, even for a smaller EMSS (MPA-4.5-8).
pub const MIN_MULPDU: u16 = 128;

/// Returns the MULPDU in octets (128 to 64768) if the effective maximum segment size is `emss`
/// octets.
///
/// If `markers` is set, the MULPDU leaves space for the largest possible number of markers
/// (MPA-4.5-2). The FPDU therefore fits at every stream position.
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

    /// Each row has an EMSS, its MULPDU without markers, and its MULPDU with markers. The values
    /// were computed manually from the formulas of RFC 5044 section 4.5.
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

    /// RFC 5044 section 4.5 defines the MULPDU. If a ULPDU has MULPDU octets, its FPDU fits in a
    /// TCP segment of EMSS octets. This is true at every distance from a marker.
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
