//! Sends back each Send as it came.

use super::Service;
use crate::connection::{Connection, Event};
use crate::mpa::PrivateData;
use crate::time::Instant;

/// The echo service: keeps receives posted, sends back what arrives, and closes when its peer does.
///
/// A receive is posted again when the echo of its message was sent. There are more receives than
/// the shortest FPDUs that one read of a driver can hold, so that no peer runs into Terminate 12 02
/// by sending fast. Memory is bounded by [`BACKLOG`](Self::BACKLOG), [`ANSWERS`](Self::ANSWERS) and
/// one read, not by depth times length.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo;

impl Echo {
    /// Receives that are posted: [`ANSWERS`](Self::ANSWERS), and the 2,731 FPDUs of 24 octets that
    /// a read of 64 KiB holds.
    pub const DEPTH: usize = 4096;
    /// Octets of each: the longest Send that is echoed.
    pub const LENGTH: u32 = 1 << 16;
    /// Octets that wait to go back before no more is read.
    pub const BACKLOG: usize = 1 << 20;
    /// Messages that wait to go back before no more is read.
    pub const ANSWERS: usize = 1024;
}

impl Service for Echo {
    fn handle_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        // A command is refused only when the connection is ending, and then there is nothing left
        // to serve.
        let _ = match event {
            Event::Established { .. } => (0..Self::DEPTH).try_for_each(|_| connection.post_receive(Self::LENGTH)),
            Event::Received { octets, .. } => connection.post_send(octets).map(|_| ()),
            Event::SendCompleted(_) => connection.post_receive(Self::LENGTH),
            Event::Request(_) => connection.accept(now, &PrivateData::default()),
            Event::HalfClosed | Event::Rejected(_) => {
                connection.close(now);
                Ok(())
            }
            Event::Streamed(_)
            | Event::Unusable(_)
            | Event::TerminateSent(_)
            | Event::TerminateReceived(_)
            | Event::Closed(_) => Ok(()),
        };
    }

    fn is_ready(&self, connection: &Connection) -> bool {
        connection.outstanding_octets() < Self::BACKLOG && connection.outstanding_sends() < Self::ANSWERS
    }
}
