//! Framing was lost where an FPDU was due: which simple mistake of a sender would explain it?
//!
//! This changes nothing in how octets become units; it is told beside the octets that belong to none ([`Misread`]).

use weft_core::crc::CRC_LEN;
use weft_core::wire::mpa::Layout;
use weft_core::wire::mpa::fpdu::{LENGTH_LEN, header_position, pad_len};

use crate::tcp::Half;
use crate::unit::Misread;

use super::Reader;
use super::choose::{crc_good, plausible};

/// What `ULPDU_Length` may count too much: itself, CRC, both, PAD, markers.
const COUNTED: [u8; 9] = [2, 4, 6, 1, 3, 8, 12, 16, 20];

impl Reader {
    /// What explains that no FPDU was found at `start`; `None` when octets there were not captured.
    pub(super) fn explain(&self, half: &Half, start: u64) -> Option<Misread> {
        let header = header_position(start, self.phase);
        let captured = |from: u64, to: u64| half.octets(from, to).ok().flatten();
        let head = captured(header, header + 4)?;
        let ulpdu_length = u16::from_be_bytes([head[0], head[1]]);
        let swapped = [head[1], head[0], head[2], head[3]];
        // With CRC the octets prove a guess; without, the header that stands where the guess leads does.
        let ends_at = |crc: u64| {
            if self.settings.crc == Some(true) {
                captured(start, crc + CRC_LEN as u64).is_some_and(crc_good)
            } else {
                captured(crc + CRC_LEN as u64, crc + CRC_LEN as u64 + 4).is_some_and(plausible)
            }
        };
        if self.phase.is_none()
            && captured(start, start + 8).is_some_and(|octets| octets[..4] == [0; 4] && plausible(&octets[4..]))
        {
            return Some(Misread::MarkerNotAskedFor);
        }
        if plausible(&swapped) && ends_at(Layout::new(start, ulpdu_length.swap_bytes(), self.phase).crc) {
            return Some(Misread::LengthSwapped);
        }
        if !plausible(head) {
            return Some(Misread::Unexplained);
        }
        // A header that makes sense, of an FPDU that was not captured whole, needs no explanation.
        captured(start, Layout::new(start, ulpdu_length, self.phase).crc)?;
        if self.phase.is_none() {
            let body = header + (LENGTH_LEN + usize::from(ulpdu_length)) as u64;
            let mut wrong = (0..8u8).filter(|pad| usize::from(*pad) != pad_len(ulpdu_length));
            if let Some(pad) = wrong.find(|pad| ends_at(body + u64::from(*pad))) {
                return Some(Misread::Pad(pad));
            }
        }
        let counts = |counted: &u8| {
            let real = ulpdu_length.checked_sub(u16::from(*counted));
            real.is_some_and(|real| ends_at(Layout::new(start, real, self.phase).crc))
        };
        if let Some(counted) = COUNTED.into_iter().find(counts) {
            return Some(Misread::LengthCounts(counted));
        }
        let field = Layout::new(start, ulpdu_length, self.phase).crc;
        let left_out = self.settings.crc == Some(true) && captured(field, field + 4).is_some_and(plausible);
        Some(if left_out { Misread::NoCrcField } else { Misread::Unexplained })
    }
}
