//! Sends one message, waits for one answer, and closes.

use bytes::Bytes;

use super::Service;
use crate::connection::{Closed, Connection, Event};
use crate::mpa::{Negotiated, PeerFrame};
use crate::time::Instant;

/// The initiator's side of an echo exchange.
#[derive(Debug)]
pub struct Exchange {
    message: Bytes,
    outcome: Outcome,
}

/// What happened during an [`Exchange`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The results of MPA start-up. `None` if start-up did not succeed.
    pub negotiated: Option<Negotiated>,
    /// The Responder's Reply, which accepts or rejects the connection.
    pub reply: Option<PeerFrame>,
    /// The message that the Responder sent back.
    pub received: Option<Bytes>,
    /// How the connection ended. `None` while it has not ended.
    pub closed: Option<Closed>,
}

impl Exchange {
    /// Creates an exchange that sends `message`, and accepts an answer of at most the same length.
    #[must_use]
    pub fn new(message: impl Into<Bytes>) -> Self {
        Exchange { message: message.into(), outcome: Outcome::default() }
    }

    /// Returns the [`Outcome`] so far.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }
}

impl Service for Exchange {
    fn handle_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::Established { negotiated, peer } => {
                self.outcome.negotiated = Some(negotiated);
                self.outcome.reply = Some(peer);
                let length = u32::try_from(self.message.len()).unwrap_or(u32::MAX);
                let posted = connection.post_receive(length).and_then(|()| connection.post_send(self.message.clone()));
                if posted.is_err() {
                    connection.close(now);
                }
            }
            Event::Received { octets, .. } => {
                self.outcome.received = Some(octets);
                connection.close(now);
            }
            Event::Rejected(reply) => {
                self.outcome.reply = Some(reply);
                connection.close(now);
            }
            Event::Unusable(reply) => self.outcome.reply = Some(reply),
            Event::HalfClosed | Event::Request(_) | Event::Streamed(_) => connection.close(now),
            Event::Closed(closed) => self.outcome.closed = Some(closed),
            Event::SendCompleted(_) | Event::TerminateSent(_) | Event::TerminateReceived(_) => {}
        }
    }
}
