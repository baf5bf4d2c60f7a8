//! Bytes that a script has sent and that TCP has not accepted yet, because the target does not
//! read. The tester sends them while it receives. So a script can continue while both directions
//! are blocked.

use std::time::Duration;

use weft_peer::Instant;
use weft_peer::driver::{LinkError, Received, TesterConnection};

/// How long the tester waits for an event of the target before it tries to send again.
const RETRY: Duration = Duration::from_millis(20);

/// The bytes that TCP has not accepted yet, in their order.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    octets: Vec<u8>,
    /// Number of bytes in `octets` that TCP has accepted.
    accepted: usize,
}

impl Unsent {
    pub(super) fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Appends bytes, and sends as many as TCP accepts now.
    pub(super) async fn send(&mut self, end: &mut TesterConnection, octets: &[u8]) -> Result<(), LinkError> {
        self.octets.extend_from_slice(octets);
        self.continue_on(end).await
    }

    /// Sends as many bytes as TCP accepts now.
    async fn continue_on(&mut self, end: &mut TesterConnection) -> Result<(), LinkError> {
        if !self.is_empty() {
            self.accepted += end.send_now(&self.octets[self.accepted..]).await?;
            if self.accepted == self.octets.len() {
                self.octets.clear();
                self.accepted = 0;
            }
        }
        Ok(())
    }

    /// Waits until `deadline` for an event from the target, and sends bytes meanwhile. Reads at most
    /// `most` bytes.
    pub(super) async fn receive(
        &mut self,
        end: &mut TesterConnection,
        deadline: Instant,
        most: usize,
    ) -> Result<Received, LinkError> {
        loop {
            match self.continue_on(end).await {
                // The receive returns the reset.
                Ok(()) | Err(LinkError::Reset) => {}
                Err(error) => return Err(error),
            }
            let next = if self.is_empty() { deadline } else { deadline.min(end.now() + RETRY) };
            let received = end.receive_at_most(next, most).await?;
            if received != Received::TimedOut || next >= deadline {
                return Ok(received);
            }
        }
    }
}
