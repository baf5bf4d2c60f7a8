//! Out-Of-Band bytes to send (section 9.5.3 of the SDP draft). The flag OOB_PEND of a message
//! announces an Out-Of-Band byte. Each byte is announced exactly once. This module decides which
//! message may carry the flag. Positions count the bytes of the stream from 0.

use std::collections::VecDeque;

/// Maximum number of bytes between OOB_PEND and its Out-Of-Band byte. This number does not include
/// the Out-Of-Band byte.
const DISTANCE: u64 = 65535;

/// The Out-Of-Band bytes that are posted and not sent yet.
#[derive(Debug, Default)]
pub(super) struct Urgent {
    marks: VecDeque<Mark>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Position of the Out-Of-Band byte in the stream.
    at: u64,
    announced: bool,
}

impl Urgent {
    /// Adds the Out-Of-Band byte at this position. Positions must increase.
    pub(super) fn mark(&mut self, at: u64) {
        self.marks.push_back(Mark { at, announced: false });
    }

    /// Returns whether the next message may carry OOB_PEND. `base` is the position of the first
    /// byte that has not been sent.
    pub(super) fn can_announce(&self, base: u64) -> bool {
        self.first_silent().is_some_and(|mark| mark.at.saturating_sub(base) <= DISTANCE)
    }

    /// Returns whether the message that is sent now carries OOB_PEND, and notes that the byte is
    /// announced. One message announces one byte.
    pub(super) fn announce(&mut self, base: u64) -> bool {
        let can = self.can_announce(base);
        if can && let Some(mark) = self.marks.iter_mut().find(|mark| !mark.announced) {
            mark.announced = true;
        }
        can
    }

    /// Returns how many of the `len` bytes from position `start` a message may carry. Because of
    /// this limit, a later message can still announce the next Out-Of-Band byte in time.
    pub(super) fn limit(&self, start: u64, len: u64) -> u64 {
        match self.first_silent() {
            Some(mark) if mark.at >= start && mark.at - start > DISTANCE => len.min(mark.at - start - DISTANCE),
            _ => len,
        }
    }

    /// Drops the Out-Of-Band bytes before `position`, because all bytes before `position` have been
    /// sent or canceled.
    pub(super) fn passed(&mut self, position: u64) {
        while self.marks.pop_front_if(|mark| mark.at < position).is_some() {}
    }

    fn first_silent(&self) -> Option<Mark> {
        self.marks.iter().find(|mark| !mark.announced).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;

    #[test]
    fn each_octet_is_announced_once_and_not_too_early() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut urgent = Urgent::default();
        urgent.mark(100_000);
        urgent.mark(100_001);
        proof.verify(requirement!("SDP-9.5.3-6"), || {
            assert!(!urgent.can_announce(34_464), "65,536 bytes would be before the first Out-Of-Band byte");
            assert!(urgent.can_announce(34_465));
            assert_eq!(urgent.limit(0, 50_000), 34_465, "the next message can announce the first Out-Of-Band byte");
        });
        proof.verify(requirement!("SDP-9.5.3-4"), || {
            assert!(urgent.announce(50_000));
            assert!(urgent.announce(50_000), "the second announcement is for the second byte");
            assert!(!urgent.announce(50_000));
        });
        urgent.passed(100_001);
        assert_eq!(urgent.marks.len(), 1);
    }
}
