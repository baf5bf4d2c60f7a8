//! Timer for the empty messages (Data without payload) that a side sends to get or give credit.
//!
//! A side with exactly two credits must not send payload. The draft requires an update from the
//! peer only when this side has one credit left. An empty message uses one of the two credits, so
//! the peer then has to send an update.
//!
//! This side waits before it sends the empty message, because an update from the peer is usually on
//! its way. The empty message is also an update for the peer. If both sides answered each update at
//! once, one message would always be in flight. Then neither side would get the three credits that
//! payload needs. For the same reason, the first waits of the two sides have different lengths.
//! Each wait is twice as long as the previous wait, so a peer without a free buffer gets fewer and
//! fewer empty messages.

use core::time::Duration;

use super::Role;
use crate::time::Instant;

/// First wait of a Connecting Peer, and first wait of an Accepting Peer.
const FIRST_WAITS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(8)];
/// Longest wait.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Decides when an empty message is due. A connection has two of these timers: one for payload that
/// waits for credit, and one for updates that only answer an update of the peer.
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

    /// Returns whether the empty message that the caller wants to send is due now. If the message
    /// is not due and the timer does not run, starts the timer.
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
