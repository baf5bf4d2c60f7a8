//! Timer for the empty messages (Data without payload) that a side sends to get or give credit.
//!
//! At exactly two credits a side may not send payload, and the peer must send an update only at one
//! credit (C41). An empty message uses one credit and so makes the peer send its update.
//!
//! This side waits before it sends the empty message, because an update is usually on its way. The
//! empty message is also an update for the peer. If both sides answered each update at once, one
//! message would always be in flight, and no side would reach the three credits that payload needs.
//! For the same reason the two sides wait for different times. The wait doubles each time, so a
//! peer without a free buffer receives empty messages less and less often.

use core::time::Duration;

use super::Role;
use crate::time::Instant;

/// First wait of a Connecting Peer and of an Accepting Peer.
const WAITS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(8)];
/// Longest wait.
const MOST: Duration = Duration::from_secs(1);

/// Decides when an empty message is due. A connection has two: one for payload that waits for
/// credit, and one for updates that would only answer updates.
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

    /// Payload waits at exactly two credits. Returns whether the empty message is due now.
    pub(super) fn waits(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.due) {
            self.wait = (self.wait * 2).min(MOST);
            self.deadline = None;
            return true;
        }
        self.deadline.get_or_insert(now + self.wait);
        false
    }

    /// Stops the timer.
    pub(super) fn rests(&mut self) {
        (self.deadline, self.due) = (None, false);
    }

    /// Stops the timer and resets the wait to its first value.
    pub(super) fn ends(&mut self) {
        self.rests();
        self.wait = self.first;
    }

    /// Updates the timer to the current time.
    pub(super) fn pass(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            (self.deadline, self.due) = (None, true);
        }
    }
}
