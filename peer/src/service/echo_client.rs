//! The initiator that echoes. First it sends one message, because MPA requires that the Initiator
//! sends the first message. Then it acts like [`Echo`].

use bytes::Bytes;

use super::{Echo, Service};
use crate::connection::{Connection, Event};
use crate::time::Instant;

/// Sends one message after start-up, because MPA permits the Responder to send only after such a
/// message. Then sends back each Send that it receives.
#[derive(Debug, Clone)]
pub struct EchoClient {
    opening: Bytes,
}

impl EchoClient {
    /// The first message of the builtin initiator.
    pub const OPENING: &'static [u8] = b"weft opens";

    /// Creates a client whose first message is `opening`.
    #[must_use]
    pub fn new(opening: impl Into<Bytes>) -> Self {
        EchoClient { opening: opening.into() }
    }
}

impl Default for EchoClient {
    fn default() -> Self {
        EchoClient::new(Self::OPENING)
    }
}

impl Service for EchoClient {
    fn handle_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        let is_established = matches!(event, Event::Established { .. });
        Echo.handle_event(now, connection, event);
        if is_established {
            // The post fails only if the connection is ending.
            let _ = connection.post_send(self.opening.clone());
        }
    }

    fn is_ready(&self, connection: &Connection) -> bool {
        Echo.is_ready(connection)
    }
}
