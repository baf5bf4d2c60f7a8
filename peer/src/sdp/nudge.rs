//! Payload that waits at exactly two credits (C41). It may not be sent, and the peer's duty to
//! widen the window begins at one: an empty message leads there.
//!
//! It is sent when some time has passed, since an update is mostly on its way, and since it is an
//! update itself: two sides that each answered the other's at once would keep a message in flight
//! for ever, and so never have the three credits that payload needs. For the same reason the two
//! sides wait differently long. A peer that has no buffer to give gets requests less and less
//! often.

use core::time::Duration;

use super::Role;
use crate::time::Instant;

/// The first wait of a Connecting Peer, and of an Accepting one.
const WAITS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(8)];
/// No wait is longer.
const MOST: Duration = Duration::from_secs(1);

/// When an empty message is due. A connection has another one for updates that answer nothing but
/// updates.
#[derive(Debug)]
pub(super) struct Nudge {
    first: Duration,
    wait: Duration,
    pub(super) deadline: Option<Instant>,
    due: bool,
}

impl Nudge {
    pub(super) fn new(role: Role) -> Self {
        let first = WAITS[usize::from(role == Role::Accepting)];
        Nudge { first, wait: first, deadline: None, due: false }
    }

    /// Payload waits at two credits; gives whether the empty message is due now.
    pub(super) fn waits(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.due) {
            self.wait = (self.wait * 2).min(MOST);
            self.deadline = None;
            return true;
        }
        self.deadline.get_or_insert(now + self.wait);
        false
    }

    /// Payload waits for something else.
    pub(super) fn rests(&mut self) {
        (self.deadline, self.due) = (None, false);
    }

    /// Payload went out.
    pub(super) fn ends(&mut self) {
        self.rests();
        self.wait = self.first;
    }

    /// Time has come to here.
    pub(super) fn pass(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            (self.deadline, self.due) = (None, true);
        }
    }
}
