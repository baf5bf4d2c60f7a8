//! Looks for a simple error of the sender if no FPDU was found at the expected position.
//!
//! The result ([`Misread`]) does not change how octets are split into units. It is delivered with
//! the octets that belong to no FPDU.

use weft_core::crc::CRC_LEN;
use weft_core::wire::mpa::Layout;
use weft_core::wire::mpa::fpdu::{LENGTH_LEN, header_position, pad_len};

use super::again::may_begin;
use super::choose::{crc_good, plausible};
use super::reader::Reader;
use crate::parse::Misread;
use crate::tcp::{Half, Later};

/// Numbers of octets that a sender may wrongly count in `ULPDU_Length`: the field itself, CRC, both
/// of them, PAD, markers.
const COUNTED: [u8; 9] = [2, 4, 6, 1, 3, 8, 12, 16, 20];

impl Reader {
    /// The probable error of the sender at `start`. Returns `None` if missing octets may be the
    /// reason that no FPDU was found.
    pub(super) fn explain(&self, half: &Half, start: u64) -> Option<Misread> {
        if self.fpdus == 0 && self.peer_startup_follows_hole && may_begin(half.contiguous(start), true) {
            // This may be a second start-up frame, which the captured Reply answers. The capture
            // may lack the Reply that rejected the first start-up frame.
            return None;
        }
        if self.guesses_phase || self.doubts_end || self.may_contain_marker(half, start) {
            return None;
        }
        let header = header_position(start, self.phase);
        let captured = |from: u64, to: u64| half.octets(from, to).ok().flatten();
        let is_rest = start < half.end() && half.end() - start < 4 && half.ends_with_fin();
        if is_rest && captured(start, half.end()).is_some() {
            // An FPDU has at least eight octets, and a marker four.
            return Some(Misread::Unexplained);
        }
        let head = captured(header, header + 4)?;
        let ulpdu_length = u16::from_be_bytes([head[0], head[1]]);
        let swapped = [head[1], head[0], head[2], head[3]];
        let ends_at = |crc: u64| self.crc_field_proves(half, start, crc) == Ok(true);
        if self.phase.is_none()
            && captured(start, start + 8).is_some_and(|octets| octets[..4] == [0; 4] && plausible(&octets[4..]))
        {
            return Some(Misread::UnrequestedMarker);
        }
        if plausible(&swapped) && ends_at(Layout::new(start, ulpdu_length.swap_bytes(), self.phase).crc) {
            return Some(Misread::LengthSwapped);
        }
        if !plausible(head) {
            return Some(Misread::Unexplained);
        }
        // A plausible header of an FPDU that was not captured completely needs no explanation.
        captured(start, Layout::new(start, ulpdu_length, self.phase).crc)?;
        if let Ok(Some(pad)) = self.wrong_pad(half, start) {
            return Some(Misread::Pad(pad));
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

    /// Returns whether the CRC field of the FPDU at `start` is at position `crc`. If CRC is in use,
    /// the CRC must be correct. Otherwise a plausible header must follow the field.
    fn crc_field_proves(&self, half: &Half, start: u64, crc: u64) -> Result<bool, Later> {
        let end = crc + CRC_LEN as u64;
        Ok(if self.settings.crc == Some(true) {
            half.octets(start, end)?.is_some_and(crc_good)
        } else {
            half.octets(end, end + 4)?.is_some_and(plausible)
        })
    }

    /// The number of PAD octets of the FPDU at `start`, if it is wrong: it does not lead to a
    /// multiple of four. Returns `None` if the number is correct or unknown. With markers it is
    /// unknown.
    pub(super) fn wrong_pad(&self, half: &Half, start: u64) -> Result<Option<u8>, Later> {
        let Some(&[high, low]) = half.octets(start, start + 2)? else { return Ok(None) };
        if self.phase.is_some() {
            return Ok(None);
        }
        let ulpdu_length = u16::from_be_bytes([high, low]);
        let body = start + (LENGTH_LEN + usize::from(ulpdu_length)) as u64;
        for pad in (0..8u8).filter(|pad| usize::from(*pad) != pad_len(ulpdu_length)) {
            if self.crc_field_proves(half, start, body + u64::from(pad))? {
                return Ok(Some(pad));
            }
        }
        Ok(None)
    }
}
