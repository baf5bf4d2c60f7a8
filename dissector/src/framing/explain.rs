//! Looks for a simple error of the sender if no FPDU was found at the expected position.
//!
//! The result ([`SenderError`]) does not change how octets are split into units. It is delivered
//! with the octets in which no FPDU was found.

use weft_core::crc::CRC_LEN;
use weft_core::wire::mpa::Layout;
use weft_core::wire::mpa::fpdu::{LENGTH_LEN, header_position, pad_len};

use super::choose::{crc_good, plausible};
use super::reader::Reader;
use super::second_startup::may_begin;
use crate::parse::SenderError;
use crate::tcp::{DirectionStream, Pending};

/// Numbers of octets that some senders wrongly include in `ULPDU_Length`. 2 is the length field
/// itself, 4 is the CRC, and 6 is the length field and the CRC. 1 and 3 are PAD, and 8 to 20 are
/// markers.
const COUNTED: [u8; 9] = [2, 4, 6, 1, 3, 8, 12, 16, 20];

impl Reader {
    /// The probable error of the sender at `start`. Returns `None` if missing octets are a possible
    /// reason that no FPDU was found.
    pub(super) fn explain(&self, half: &DirectionStream, start: u64) -> Option<SenderError> {
        if self.fpdus == 0 && self.peer_startup_follows_hole && may_begin(half.contiguous(start), true) {
            // These octets can be a second start-up frame, which the captured Reply answers. In
            // this case, the Reply that rejected the first frame is missing in the capture.
            return None;
        }
        if self.guesses_phase || self.guesses_end || self.may_contain_marker(half, start) {
            return None;
        }
        let header = header_position(start, self.phase);
        let captured = |from: u64, to: u64| half.octets(from, to).ok().flatten();
        let is_rest = start < half.end() && half.end() - start < 4 && half.ends_with_fin();
        if is_rest && captured(start, half.end()).is_some() {
            // These octets are too short for an FPDU (eight octets) and for a marker (four octets).
            return Some(SenderError::Unexplained);
        }
        let head = captured(header, header + 4)?;
        let ulpdu_length = u16::from_be_bytes([head[0], head[1]]);
        let swapped = [head[1], head[0], head[2], head[3]];
        let ends_at = |crc: u64| self.crc_field_proves(half, start, crc) == Ok(true);
        if self.phase.is_none()
            && captured(start, start + 8).is_some_and(|octets| octets[..4] == [0; 4] && plausible(&octets[4..]))
        {
            return Some(SenderError::UnrequestedMarker);
        }
        if plausible(&swapped) && ends_at(Layout::new(start, ulpdu_length.swap_bytes(), self.phase).crc) {
            return Some(SenderError::LengthSwapped);
        }
        if !plausible(head) {
            return Some(SenderError::Unexplained);
        }
        // If the header is plausible and the FPDU was not captured completely, no explanation is
        // needed.
        captured(start, Layout::new(start, ulpdu_length, self.phase).crc)?;
        if let Ok(Some(pad)) = self.wrong_pad(half, start) {
            return Some(SenderError::Pad(pad));
        }
        let counts = |counted: &u8| {
            let real = ulpdu_length.checked_sub(u16::from(*counted));
            real.is_some_and(|real| ends_at(Layout::new(start, real, self.phase).crc))
        };
        if let Some(counted) = COUNTED.into_iter().find(counts) {
            return Some(SenderError::LengthCounts(counted));
        }
        let field = Layout::new(start, ulpdu_length, self.phase).crc;
        let left_out = self.settings.crc == Some(true) && captured(field, field + 4).is_some_and(plausible);
        Some(if left_out { SenderError::NoCrcField } else { SenderError::Unexplained })
    }

    /// Returns whether the CRC field of the FPDU at `start` is at position `crc`. If CRC is in use,
    /// a correct CRC proves this. Otherwise, a plausible header after the field proves this.
    fn crc_field_proves(&self, half: &DirectionStream, start: u64, crc: u64) -> Result<bool, Pending> {
        let end = crc + CRC_LEN as u64;
        Ok(if self.settings.crc == Some(true) {
            half.octets(start, end)?.is_some_and(crc_good)
        } else {
            half.octets(end, end + 4)?.is_some_and(plausible)
        })
    }

    /// If the number of PAD octets of the FPDU at `start` is wrong, returns this number. Returns
    /// `None` if the number is correct or unknown. In an FPDU with markers, the number is always
    /// unknown.
    pub(super) fn wrong_pad(&self, half: &DirectionStream, start: u64) -> Result<Option<u8>, Pending> {
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
