//! One end of a run, whatever it is made of.

use fastrand::Rng;

use super::builtin::BuiltinEnd;
use super::rnic::RnicEnd;
use super::{Remote, Spoilt};
use crate::connection::Transmit;
use crate::time::Instant;

/// An end, as its driver sees it.
#[derive(Debug)]
pub(super) enum End {
    Builtin(Box<BuiltinEnd>),
    Rnic(Box<RnicEnd>),
}

/// Calls the same on either.
macro_rules! either {
    ($end:expr, $name:ident($($argument:expr),*)) => {
        match $end {
            End::Builtin(end) => end.$name($($argument),*),
            End::Rnic(end) => end.$name($($argument),*),
        }
    };
}

impl End {
    /// Something arrived.
    pub(super) fn arrived(&mut self, now: Instant, arrived: &Transmit) {
        either!(self, arrived(now, arrived));
    }

    /// It would read on.
    pub(super) fn reads(&self) -> bool {
        either!(self, reads())
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        either!(self, poll_timeout())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        either!(self, handle_timeout(now));
    }

    /// What it does to the wire next.
    pub(super) fn transmit(&mut self, now: Instant, rng: &mut Rng) -> Option<Transmit> {
        either!(self, transmit(now, rng))
    }

    /// Its user does something.
    pub(super) fn act(&mut self, rng: &mut Rng, peer: Option<&Remote>) {
        either!(self, act(rng, peer));
    }

    /// Its user closes.
    pub(super) fn close(&mut self, now: Instant) {
        either!(self, close(now));
    }

    /// Nothing more happens at it.
    pub(super) fn is_over(&self) -> bool {
        either!(self, is_over())
    }

    /// Its memory, for the peer.
    pub(super) fn remote(&self) -> Option<Remote> {
        match self {
            End::Builtin(_) => None,
            End::Rnic(end) => Some(end.remote()),
        }
    }

    /// Its memory is as it must be.
    pub(super) fn check(&self) -> Result<(), Spoilt> {
        match self {
            End::Builtin(_) => Ok(()),
            End::Rnic(end) => end.check(),
        }
    }

    /// Everything that it had can be given back.
    pub(super) fn give_back(self) -> Result<(), String> {
        match self {
            End::Builtin(_) => Ok(()),
            End::Rnic(end) => end.give_back(),
        }
    }
}
