//! One endpoint of a run, with or without an RNIC.

use fastrand::Rng;

use super::{MemoryViolation, Remote};
use crate::connection::Transmit;
use crate::time::Instant;

/// One endpoint of a run.
pub(super) trait Endpoint {
    /// Handles bytes, FIN or reset from the peer.
    fn arrived(&mut self, now: Instant, arrived: &Transmit);

    /// Returns whether the endpoint would read more bytes.
    fn reads(&self) -> bool;

    fn poll_timeout(&self) -> Option<Instant>;

    fn handle_timeout(&mut self, now: Instant);

    /// Returns the endpoint's next action on TCP.
    fn transmit(&mut self, now: Instant, rng: &mut Rng) -> Option<Transmit>;

    /// Lets the endpoint's user perform an action.
    fn perform_action(&mut self, rng: &mut Rng, peer: Option<&Remote>);

    /// Lets the endpoint's user close the connection.
    fn close(&mut self, now: Instant);

    /// Returns whether the connection of the endpoint is over.
    fn is_over(&self) -> bool;

    /// Returns the memory that the peer may address. Returns `None` if the endpoint has no such
    /// memory.
    fn remote(&self) -> Option<Remote> {
        None
    }

    /// Checks that the patterns in memory are unchanged.
    fn check(&self) -> Result<(), MemoryViolation> {
        Ok(())
    }

    /// Frees all resources. An error means that a resource could not be freed.
    fn release(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}
