//! The initiator that echoes: one Send first, as MPA asks of an Initiator, then as [`Echo`].

use bytes::Bytes;

use super::{Echo, Service};
use crate::connection::{Connection, Event};
use crate::time::Instant;

/// Sends one message when start-up is done, which lets the Responder speak, and sends back each
/// Send that comes.
#[derive(Debug, Clone)]
pub struct EchoClient {
    opening: Bytes,
}

impl EchoClient {
    /// What the builtin initiator sends first.
    pub const OPENING: &'static [u8] = b"weft opens";

    /// Will open with this.
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
            // Refused only when the connection is ending, and then there is nothing left to open.
            let _ = connection.post_send(self.opening.clone());
        }
    }

    fn is_ready(&self, connection: &Connection) -> bool {
        Echo.is_ready(connection)
    }
}
