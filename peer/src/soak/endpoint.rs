//! One endpoint of a run, with or without an RNIC.

use fastrand::Rng;

use super::builtin::BuiltinEndpoint;
use super::rnic::RnicEndpoint;
use super::{MemoryViolation, Remote};
use crate::connection::Transmit;
use crate::time::Instant;

/// One endpoint of a run.
#[derive(Debug)]
pub(super) enum Endpoint {
    Builtin(Box<BuiltinEndpoint>),
    Rnic(Box<RnicEndpoint>),
}

/// Calls the same method on either kind of endpoint.
macro_rules! either {
    ($end:expr, $name:ident($($argument:expr),*)) => {
        match $end {
            Endpoint::Builtin(end) => end.$name($($argument),*),
            Endpoint::Rnic(end) => end.$name($($argument),*),
        }
    };
}

impl Endpoint {
    /// Handles bytes, FIN or reset from the peer.
    pub(super) fn arrived(&mut self, now: Instant, arrived: &Transmit) {
        either!(self, arrived(now, arrived));
    }

    /// Returns whether the endpoint would read more bytes.
    pub(super) fn reads(&self) -> bool {
        either!(self, reads())
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        either!(self, poll_timeout())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        either!(self, handle_timeout(now));
    }

    /// The endpoint's next action on TCP.
    pub(super) fn transmit(&mut self, now: Instant, rng: &mut Rng) -> Option<Transmit> {
        either!(self, transmit(now, rng))
    }

    /// Lets the endpoint's user perform an action.
    pub(super) fn perform_action(&mut self, rng: &mut Rng, peer: Option<&Remote>) {
        either!(self, perform_action(rng, peer));
    }

    /// Lets the endpoint's user close the connection.
    pub(super) fn close(&mut self, now: Instant) {
        either!(self, close(now));
    }

    /// Returns whether the endpoint is finished.
    pub(super) fn is_over(&self) -> bool {
        either!(self, is_over())
    }

    /// The memory that the peer may address. `None` if the endpoint has no such memory.
    pub(super) fn remote(&self) -> Option<Remote> {
        match self {
            Endpoint::Builtin(_) => None,
            Endpoint::Rnic(end) => Some(end.remote()),
        }
    }

    /// Checks that the patterns in memory are unchanged.
    pub(super) fn check(&self) -> Result<(), MemoryViolation> {
        match self {
            Endpoint::Builtin(_) => Ok(()),
            Endpoint::Rnic(end) => end.check(),
        }
    }

    /// Frees all resources. An error means that a resource could not be freed.
    pub(super) fn release(self) -> Result<(), String> {
        match self {
            Endpoint::Builtin(_) => Ok(()),
            Endpoint::Rnic(end) => end.release(),
        }
    }
}
