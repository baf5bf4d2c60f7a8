//! Compares RDMA Writes and Reads of an endpoint with the advertisements that the endpoint may use.
//!
//! An RDMA Write or a Read Request does not show which messages its sender had received. The next
//! SDP message of the same endpoint shows that. Until then, at most [`MOST`] accesses are kept. For
//! the last [`MOST_GONE`] ended advertisements of each kind, the reason of the end is kept.

use std::collections::VecDeque;

use super::advert::{Advert, End as Why};
use crate::parse::Located;

const MOST: usize = 64;
const MOST_GONE: usize = 32;

/// An access to the peer's memory: an RDMA Write, or an RDMA Read Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Act {
    /// Whether the access is an RDMA Write. Otherwise it is a Read Request.
    pub write: bool,
    /// The STag of the peer's buffer.
    pub stag: u32,
    /// The tagged offset of the first octet.
    pub from: u64,
    /// Number of octets.
    pub len: u64,
    /// Location of the STag in the capture.
    pub place: Located,
}

/// An access that no advertisement allowed. Only advertisements count that the sender had received
/// and could still use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stray {
    /// The access.
    pub act: Act,
    /// Why the previous advertisement of the STag ended; `None` if there was none.
    pub why: Option<Why>,
    /// A usable advertisement of the STag whose buffer does not contain all accessed octets; `None`
    /// if no usable advertisement has the STag.
    pub outside: Option<Advert>,
}

/// The accesses of an endpoint since its last SDP message.
#[derive(Debug, Clone, Default)]
pub(super) struct Acts(Vec<Act>);

/// A summary of [`Acts`] for rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Done {
    /// The first RDMA Write.
    pub write: Option<Act>,
    /// The first Read Request.
    pub read: Option<Act>,
    /// The first RDMA Write or Read Request that no advertisement allowed.
    pub stray: Option<Stray>,
}

impl Act {
    /// Returns whether the advertised buffers with the same STag contain all accessed octets. An
    /// access may span adjacent buffers.
    fn is_within(&self, adverts: &VecDeque<Advert>) -> bool {
        let end = u128::from(self.from) + u128::from(self.len);
        let mut from = u128::from(self.from);
        while from < end {
            let reaches = |advert: &Advert| {
                let start = u128::from(advert.va);
                let stop = start + u128::from(advert.len);
                (advert.stag == self.stag && start <= from && from < stop).then_some(stop)
            };
            match adverts.iter().filter_map(reaches).max() {
                Some(stop) => from = stop,
                None => return false,
            }
        }
        true
    }
}

impl Acts {
    /// Adds an access. If the access begins where an earlier access of the same kind and STag
    /// ended, the earlier access is extended.
    pub(super) fn add(&mut self, act: Act) {
        let goes_on = |seen: &&mut Act| {
            (seen.write, seen.stag, seen.from.checked_add(seen.len)) == (act.write, act.stag, Some(act.from))
        };
        if let Some(seen) = self.0.iter_mut().find(goes_on) {
            seen.len = seen.len.saturating_add(act.len);
        } else if self.0.len() < MOST {
            self.0.push(act);
        }
    }

    /// Compares the accesses with the advertisements that the endpoint may use: the SinkAvails
    /// `sinks` for RDMA Writes, the SrcAvails `sources` for Reads. `gone` has the ended
    /// advertisements of both kinds, in the same order.
    pub(super) fn done(&self, sinks: &VecDeque<Advert>, sources: &VecDeque<Advert>, gone: [&Gone; 2]) -> Done {
        let of = |write: bool| self.0.iter().find(|act| act.write == write).copied();
        let adverts = |act: &Act| if act.write { sinks } else { sources };
        let stray = self.0.iter().find(|act| !act.is_within(adverts(act))).copied().map(|act| Stray {
            act,
            why: gone[usize::from(!act.write)].of(act.stag),
            outside: adverts(&act).iter().find(|advert| advert.stag == act.stag).copied(),
        });
        Done { write: of(true), read: of(false), stray }
    }

    /// Returns the first access that matches `is_it`.
    pub(super) fn find(&self, is_it: impl Fn(&Act) -> bool) -> Option<Act> {
        self.0.iter().copied().find(is_it)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Ended advertisements, as known to the endpoint that could have used them: STag and reason.
#[derive(Debug, Clone, Default)]
pub(super) struct Gone(VecDeque<(u32, Why)>);

impl Gone {
    pub(super) fn add(&mut self, advert: &Advert, why: Why) {
        if self.0.len() == MOST_GONE {
            self.0.pop_front();
        }
        self.0.push_back((advert.stag, why));
    }

    pub(super) fn all<'a>(&mut self, adverts: impl IntoIterator<Item = &'a Advert>, why: Why) {
        adverts.into_iter().for_each(|advert| self.add(advert, why));
    }

    /// Returns why the last advertisement of `stag` ended.
    pub(super) fn of(&self, stag: u32) -> Option<Why> {
        self.0.iter().rev().find(|(of, _)| *of == stag).map(|(_, why)| *why)
    }

    /// Returns why the advertisement that ended last did so.
    pub(super) fn last(&self) -> Option<Why> {
        self.0.back().map(|(_, why)| *why)
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(u32, Why)>()
    }
}
