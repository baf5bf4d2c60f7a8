//! Finds the next FPDU after octets in which no FPDU was found. A correct CRC, correct markers, or
//! the boundaries of a TCP segment prove the position of the next FPDU.

use super::choose::{check_markers, crc_good, header_at};
use super::reader::Reader;
use crate::tcp::{DirectionStream, Pending};

impl Reader {
    /// The position of the first proven FPDU in the unread octets. Returns `None` at the end of the
    /// capture if there is no such FPDU.
    pub(super) fn resync(&mut self, half: &mut DirectionStream) -> Result<Option<u64>, Pending> {
        // If no octets are skipped yet, the first unread octet was already checked, and no FPDU was
        // found there. So start after this octet. If octets are skipped, the first unread octet is
        // not checked yet. So start at this octet.
        let from = half.consumed() + u64::from(self.skipped.is_empty());
        let captured: Vec<_> = half.spans(from, half.settled()).filter(|span| span.captured).collect();
        for span in captured {
            let mut at = span.start + (self.origin.wrapping_sub(span.start)) % 4;
            while at + 4 <= span.end {
                match self.try_at(half, at) {
                    Ok(true) => return Ok(Some(at)),
                    Ok(false) => {}
                    Err(_) if half.is_finished() => {}
                    Err(pending) => {
                        // No FPDU starts before `at`. Keep the octets from `at` on until further
                        // octets arrive.
                        if at > half.consumed() {
                            self.skip_to(half, at);
                        }
                        return Err(pending);
                    }
                }
                at += 4;
            }
        }
        if half.is_finished() {
            return Ok(None);
        }
        let to = half.settled().saturating_sub(8);
        if to > half.consumed() + 1 {
            let to = to - to.wrapping_sub(self.origin) % 4;
            if to > half.consumed() {
                self.skip_to(half, to);
            }
        }
        Err(Pending::NEXT)
    }

    fn try_at(&mut self, half: &DirectionStream, at: u64) -> Result<bool, Pending> {
        let (Some(ulpdu_length), Some(true)) = header_at(half, at, self.phase)? else { return Ok(false) };
        let allowed = self.budget.allows(at, u64::from(ulpdu_length)) || half.segment_starts_at(at);
        if allowed { self.is_proven(half, at, ulpdu_length) } else { Ok(false) }
    }

    fn is_proven(&self, half: &DirectionStream, at: u64, ulpdu_length: u16) -> Result<bool, Pending> {
        let layout = self.layout(at, ulpdu_length, self.phase, self.without_crc);
        let fpdu = half.octets(at, layout.end)?;
        if layout.end > half.end() {
            return Ok(false);
        }
        if let Some(octets) = fpdu
            && self.settings.crc == Some(true)
        {
            return Ok(crc_good(octets));
        }
        let markers = check_markers(half, &layout)?;
        if markers.seen > 0 {
            return Ok(markers.right);
        }
        Ok(half.segment_starts_at(at)
            && (half.segment_ends_at(layout.end) || self.may_end_at(half, layout.end, self.phase)?))
    }
}
