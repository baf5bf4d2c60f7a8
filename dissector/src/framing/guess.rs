//! Starts to read FPDUs at a known position. If the start-up frame of the peer is not in the
//! capture, the first FPDU determines markers and CRC.

use super::choose::plausible;
use super::reader::{Reader, State, WAIT};
use super::settings::{PeerView, negotiate};
use super::target::Target;
use crate::tcp::{Half, Later};

impl Reader {
    pub(super) fn start(&mut self, half: &mut Half, peer: &PeerView, out: &mut Target<'_>) -> Result<(), Later> {
        let unread = half.end().saturating_sub(half.consumed());
        if peer.startup.is_none() && peer.undecided && (unread < WAIT as u64 || half.is_finished()) {
            return Err(Later::NEXT);
        }
        self.settings = negotiate(self.startup.as_ref(), peer.startup.as_ref());
        if self.startup.is_some() && self.settings.rejected {
            self.state = State::Outside;
            return Ok(());
        }
        if half.is_end(self.origin)? {
            return Err(Later::NEXT);
        }
        match (self.settings.markers, self.settings.crc) {
            (Some(markers), Some(_)) => self.phase = markers.then_some((self.origin % 512) as u16),
            _ if self.guess(half)? => {}
            _ => {
                // No FPDU was recognised at the start. Search later octets for FPDUs with a correct
                // CRC.
                let lock = self.lock(half, half.consumed(), half.settled());
                if lock.to <= half.consumed() && !lock.found {
                    return Err(lock.later.unwrap_or(Later::NEXT));
                }
                self.passed.absorb(half, half.consumed(), lock.to);
                half.consume(lock.to);
                if lock.found {
                    self.passed.unread(half, out);
                    self.state = State::InStep;
                } else {
                    self.origin = lock.to;
                }
                return Ok(());
            }
        }
        self.state = State::InStep;
        Ok(())
    }

    /// Determines markers and CRC from the first FPDUs. Tries the variants with and without
    /// markers, and takes the variant with more consecutive FPDUs that have correct CRCs and
    /// markers. If there is no such FPDU, accepts a plausible header without CRC. Returns whether a
    /// variant was found.
    fn guess(&mut self, half: &Half) -> Result<bool, Later> {
        if !self.passed.is_empty() {
            return Ok(false);
        }
        let start = self.origin;
        let on = (start % 512) as u16;
        let phases: &[Option<u16>] = match self.settings.markers {
            None => &[None, Some(on)],
            Some(true) => &[Some(on)],
            Some(false) => &[None],
        };
        if self.settings.crc != Some(false) {
            let rows: Vec<_> =
                phases.iter().map(|phase| (self.chain(half, start, phase.map(|p| vec![p])), *phase)).collect();
            let promising = rows.iter().filter(|(row, _)| row.count > 0 || row.more.is_some()).count();
            let undecided = rows.iter().filter(|(row, _)| promising > 1 || row.count == 0);
            if let Some(later) = undecided.filter_map(|(row, _)| row.more).next() {
                return Err(later);
            }
            let best = rows.iter().rev().max_by_key(|(row, _)| row.count);
            if let Some((row, phase)) = best
                && row.count > 0
            {
                self.phase = *phase;
                self.settings.crc = Some(true);
                self.guesses_no_markers = phase.is_none() && self.settings.markers.is_none();
                self.settings.markers = Some(phase.is_some());
                return Ok(true);
            }
        }
        if self.settings.crc != Some(true) {
            for phase in phases {
                let lead = if phase.is_some() { 4 } else { 0 };
                let zero = half.octets(start, start + lead)?.is_some_and(|octets| octets.iter().all(|o| *o == 0));
                if zero && half.octets(start + lead, start + lead + 4)?.is_some_and(plausible) {
                    self.phase = *phase;
                    self.settings.crc = Some(false);
                    self.guesses_no_markers = phase.is_none() && self.settings.markers.is_none();
                    self.settings.markers = Some(phase.is_some());
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
