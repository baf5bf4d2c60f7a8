//! The echo service: sends back each received Send unchanged.

use super::Service;
use crate::connection::{Connection, Event};
use crate::mpa::PrivateData;
use crate::time::Instant;

/// The echo service. It posts receives, sends back each message that arrives, and closes when its
/// peer closes.
///
/// When the echo of a message was sent, the service posts the receive of this message again. There
/// are more posted receives than FPDUs in one read of a driver, even if all FPDUs have the shortest
/// length. Therefore a fast peer never causes Terminate 12 02 (no buffer available). The memory of
/// the service has a limit, which depends on [`BACKLOG`](Self::BACKLOG),
/// [`ANSWERS`](Self::ANSWERS) and the size of one read. The limit is much less than `DEPTH` times
/// `LENGTH`, because a posted receive uses no memory before data arrives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo;

impl Echo {
    /// Number of posted receives. It must be at least [`ANSWERS`](Self::ANSWERS) plus 2,731. A read
    /// of 64 KiB contains at most 2,731 FPDUs, because each FPDU has at least 24 bytes.
    pub const DEPTH: usize = 4096;
    /// Size of each receive in bytes. This is the size of the longest Send that the service echoes.
    pub const LENGTH: u32 = 1 << 16;
    /// While at least this number of bytes waits to be sent back, the service reads nothing.
    pub const BACKLOG: usize = 1 << 20;
    /// While at least this number of messages waits to be sent back, the service reads nothing.
    pub const ANSWERS: usize = 1024;
}

impl Service for Echo {
    fn handle_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        // A command fails only if the connection is ending. In this case the service has nothing
        // more to do.
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
