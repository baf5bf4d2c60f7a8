//! Compares RDMA Writes and Reads of an end with the advertisements that it may use.
//!
//! An RDMA Write or a Read Request does not show what its sender had received; the next SDP message
//! of the same end does. Until then, [`MOST`] of them are kept. The reason why an advertisement
//! ended is kept for the last [`MOST_GONE`] of each kind.

use std::collections::VecDeque;

use super::advert::{Advert, End as Why};
use crate::parse::Located;

const MOST: usize = 64;
const MOST_GONE: usize = 32;

/// An access to the peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Act {
    /// An RDMA Write, not a Read Request?
    pub write: bool,
    /// The STag in the segment.
    pub stag: u32,
    /// The address of the first octet.
    pub from: u64,
    /// The number of octets.
    pub len: u64,
    /// Where the STag is.
    pub place: Located,
}

/// An access that no received and usable advertisement allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stray {
    /// The access.
    pub act: Act,
    /// Why the previous advertisement of the STag ended; `None` if there was none.
    pub why: Option<Why>,
    /// A usable advertisement of the STag, whose buffer does not have all of the octets.
    pub outside: Option<Advert>,
}

/// The accesses of an end since its last message.
#[derive(Debug, Clone, Default)]
pub(super) struct Acts(Vec<Act>);

/// The same, for rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Done {
    /// Its first RDMA Write.
    pub write: Option<Act>,
    /// Its first Read Request.
    pub read: Option<Act>,
    /// Its first RDMA Write or Read Request that no advertisement allowed.
    pub stray: Option<Stray>,
}

impl Act {
    /// Do the buffers of its STag have all of the octets? Two buffers may be adjacent.
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
    /// Adds an access. An access that begins where an earlier one of the same kind ended extends
    /// that one.
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

    /// Compares the accesses with the SinkAvails and SrcAvails that the end may use.
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

    /// The first access that matches `is_it`.
    pub(super) fn find(&self, is_it: impl Fn(&Act) -> bool) -> Option<Act> {
        self.0.iter().copied().find(is_it)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Advertisements that ended, from the view of the end that could have used them.
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

    /// What ended the last advertisement of `stag`.
    pub(super) fn of(&self, stag: u32) -> Option<Why> {
        self.0.iter().rev().find(|(of, _)| *of == stag).map(|(_, why)| *why)
    }

    /// What ended the last advertisement.
    pub(super) fn last(&self) -> Option<Why> {
        self.0.back().map(|(_, why)| *why)
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(u32, Why)>()
    }
}
