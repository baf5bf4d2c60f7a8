//! Out-Of-Band octets on their way out (section 9.5.3): the flag that announces each, once, and
//! where it may be.

use std::collections::VecDeque;

/// Most octets between OOB_PEND and its octet; the octet itself does not count (C24).
const DISTANCE: u64 = 65535;

/// The Out-Of-Band octets that were posted and not sent.
#[derive(Debug, Default)]
pub(super) struct Urgent {
    marks: VecDeque<Mark>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Where in the stream the octet is.
    at: u64,
    announced: bool,
}

impl Urgent {
    /// The octet at this place of the stream is Out-Of-Band; places only grow.
    pub(super) fn mark(&mut self, at: u64) {
        self.marks.push_back(Mark { at, announced: false });
    }

    /// Could a message carry OOB_PEND, where `base` is the first octet of the stream that is not
    /// out yet?
    pub(super) fn can_announce(&self, base: u64) -> bool {
        self.first_silent().is_some_and(|mark| mark.at.saturating_sub(base) <= DISTANCE)
    }

    /// OOB_PEND of the message that goes out now. One message announces one octet.
    pub(super) fn announce(&mut self, base: u64) -> bool {
        let can = self.can_announce(base);
        if can && let Some(mark) = self.marks.iter_mut().find(|mark| !mark.announced) {
            mark.announced = true;
        }
        can
    }

    /// How many of `len` octets from `start` on a message may carry, so that OOB_PEND does not come
    /// too late. A message never carries octets of two sends, and so not two Out-Of-Band octets.
    pub(super) fn limit(&self, start: u64, len: u64) -> u64 {
        match self.first_silent() {
            Some(mark) if mark.at >= start && mark.at - start > DISTANCE => len.min(mark.at - start - DISTANCE),
            _ => len,
        }
    }

    /// All octets before `position` are out, or will never be.
    pub(super) fn passed(&mut self, position: u64) {
        while self.marks.front().is_some_and(|mark| mark.at < position) {
            self.marks.pop_front();
        }
    }

    fn first_silent(&self) -> Option<Mark> {
        self.marks.iter().find(|mark| !mark.announced).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{By, Proof};
    use weft_core::requirement;

    #[test]
    fn each_octet_is_announced_once_and_not_too_early() {
        let mut proof = Proof::new(By::Test);
        let mut urgent = Urgent::default();
        urgent.mark(100_000);
        urgent.mark(100_001);
        proof.shows(requirement!("SDP-9.5.3-6"), || {
            assert!(!urgent.can_announce(34_464), "65,536 bytes would be between");
            assert!(urgent.can_announce(34_465));
            assert_eq!(urgent.limit(0, 50_000), 34_465, "the next message can announce it");
        });
        proof.shows(requirement!("SDP-9.5.3-4"), || {
            assert!(urgent.announce(50_000));
            assert!(urgent.announce(50_000), "the second one's");
            assert!(!urgent.announce(50_000));
        });
        urgent.passed(100_001);
        assert_eq!(urgent.marks.len(), 1);
    }
}
