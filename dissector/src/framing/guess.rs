//! Starts to read FPDUs at a known position. If the start-up frame of the peer is not in the
//! capture, this module derives from the first FPDUs whether markers and CRC are in use.

use super::choose::plausible;
use super::reader::{MAX_BUFFERED_OCTETS, Reader, State};
use super::settings::negotiate;
use super::unit_output::UnitOutput;
use crate::tcp::{DirectionStream, Pending};

impl Reader {
    /// Sets how the reader reads FPDUs from now on. `phase` is the remainder of the marker
    /// positions modulo 512. If `phase` is `None`, the FPDUs have no markers. `crc` determines
    /// whether CRCs are checked.
    pub(super) fn assume(&mut self, phase: Option<u16>, crc: bool) {
        self.phase = phase;
        self.guesses_no_markers = phase.is_none() && self.settings.markers.is_none();
        (self.settings.markers, self.settings.crc) = (Some(phase.is_some()), Some(crc));
    }

    pub(super) fn start(&mut self, half: &mut DirectionStream, out: &mut UnitOutput<'_>) -> Result<(), Pending> {
        let unread = half.end().saturating_sub(half.consumed());
        if self.peer.startup.is_none()
            && self.peer.undecided
            && (unread < MAX_BUFFERED_OCTETS as u64 || half.is_finished())
        {
            return Err(Pending::NEXT);
        }
        self.settings = negotiate(self.startup.as_ref(), self.peer.startup.as_ref());
        if self.startup.is_some() && self.settings.rejected {
            self.state = State::Rejected;
            return Ok(());
        }
        if half.is_end(self.origin)? {
            return Err(Pending::NEXT);
        }
        match (self.settings.markers, self.settings.crc) {
            (Some(markers), Some(_)) => self.phase = markers.then_some((self.origin % 512) as u16),
            _ if self.guess(half)? => {}
            _ => {
                // No FPDU was recognised at the start. Search later octets for FPDUs with a correct
                // CRC.
                let lock = self.lock(half, half.consumed(), half.settled());
                if lock.to <= half.consumed() && !lock.found {
                    return Err(lock.pending.unwrap_or(Pending::NEXT));
                }
                if lock.found {
                    self.sync_at(half, lock.to, out);
                } else {
                    self.skip_to(half, lock.to);
                    self.origin = lock.to;
                }
                return Ok(());
            }
        }
        self.state = State::InSync;
        Ok(())
    }

    /// Determines markers and CRC from the first FPDUs. Tries the layout with markers and the
    /// layout without markers. Takes the layout in which more consecutive FPDUs have correct CRCs
    /// and markers. If there is no such FPDU, accepts a plausible header without CRC. Returns
    /// whether a layout was found.
    fn guess(&mut self, half: &DirectionStream) -> Result<bool, Pending> {
        if !self.skipped.is_empty() {
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
            let runs: Vec<_> =
                phases.iter().map(|phase| (self.fpdu_run(half, start, phase.map(|p| vec![p])), *phase)).collect();
            let promising = runs.iter().filter(|(run, _)| run.count > 0 || run.more.is_some()).count();
            let undecided = runs.iter().filter(|(run, _)| promising > 1 || run.count == 0);
            if let Some(pending) = undecided.filter_map(|(run, _)| run.more).next() {
                return Err(pending);
            }
            let best = runs.iter().rev().max_by_key(|(run, _)| run.count);
            if let Some((run, phase)) = best
                && run.count > 0
            {
                self.assume(*phase, true);
                return Ok(true);
            }
        }
        if self.settings.crc != Some(true) {
            for phase in phases {
                let lead = if phase.is_some() { 4 } else { 0 };
                let zero = half.octets(start, start + lead)?.is_some_and(|octets| octets.iter().all(|o| *o == 0));
                if zero && half.octets(start + lead, start + lead + 4)?.is_some_and(plausible) {
                    self.assume(*phase, false);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
