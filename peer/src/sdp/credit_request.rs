//! Timer for the empty messages (Data without payload) that a side sends to get or give credit.
//!
//! At exactly two credits a side may not send payload, and its peer is required to send an update
//! only at one credit. An empty message uses one credit and so makes the peer send its update.
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
const FIRST_WAITS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(8)];
/// Longest wait.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Decides when an empty message is due. A connection has two of these timers: one for payload that
/// waits for credit, and one for updates that would only answer updates.
#[derive(Debug)]
pub(super) struct CreditRequest {
    first: Duration,
    wait: Duration,
    pub(super) deadline: Option<Instant>,
    due: bool,
}

impl CreditRequest {
    pub(super) fn new(role: Role) -> Self {
        let first = FIRST_WAITS[usize::from(role == Role::Accepting)];
        CreditRequest { first, wait: first, deadline: None, due: false }
    }

    /// Runs the timer, because payload waits at exactly two credits. Returns whether the empty
    /// message is due now.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.due) {
            self.wait = (self.wait * 2).min(MAX_WAIT);
            self.deadline = None;
            return true;
        }
        self.deadline.get_or_insert(now + self.wait);
        false
    }

    /// Stops the timer.
    pub(super) fn stop(&mut self) {
        (self.deadline, self.due) = (None, false);
    }

    /// Stops the timer and resets the wait to its first value.
    pub(super) fn reset(&mut self) {
        self.stop();
        self.wait = self.first;
    }

    /// Updates the timer to the current time.
    pub(super) fn advance(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            (self.deadline, self.due) = (None, true);
        }
    }
}
