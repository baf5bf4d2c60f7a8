//! Octets that RDMA moves: the parts of the peer's memory that an end's RDMA Writes and Read
//! Requests name.
//!
//! Memory: [`MOST`] ranges for each end and kind. Above that limit, ranges are no longer followed.

use std::collections::VecDeque;
use std::ops::Range;

use super::advert::Advert;

/// Ranges that are kept. Adjacent ranges are joined, so a correct sender needs one for each buffer.
const MOST: usize = 1024;

/// Octets that RDMA moved for the sender of a message, and that none of its messages has reported
/// yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moved {
    /// Octets that its RDMA Writes put into the buffer of `usable.oldest`.
    pub written: u64,
    /// Octets that its RDMA Reads requested from the buffer of `sources.oldest`, without payload
    /// and reported octets.
    pub read: u64,
    /// The part of them that came; `None` if Responses may be missing.
    pub returned: Option<u64>,
    /// Has it written or requested octets anywhere that no RdmaWrCompl or RdmaRdCompl reported?
    pub in_process: bool,
    /// Has it written any?
    pub writing: bool,
}

/// Ranges of buffers, in the order in which they were named.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges {
    list: VecDeque<(u32, Range<u128>)>,
    lost: bool,
}

impl Ranges {
    /// Adds `len` octets at `to` of the buffer of `stag`.
    pub(super) fn add(&mut self, stag: u32, to: u64, len: u32) {
        let from = u128::from(to);
        let end = from + u128::from(len);
        if self.lost || len == 0 {
            return;
        }
        if let Some((_, last)) = self.list.back_mut().filter(|(of, last)| *of == stag && last.end == from) {
            last.end = end;
        } else if self.list.len() < MOST {
            self.list.push_back((stag, from..end));
        } else {
            self.lose();
        }
    }

    /// Octets are missing: nothing is known any more.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.list.clear();
    }

    /// Is the record incomplete?
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Is there no range?
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many octets after the first `skip` octets of the buffer of `advert` were named. Octets
    /// named twice count twice.
    pub(super) fn within(&self, advert: &Advert, skip: u32) -> u64 {
        let buffer = buffer(advert, skip);
        let overlaps = self.list.iter().filter(|(stag, _)| *stag == advert.stag).map(|(_, range)| {
            let (from, to) = (range.start.max(buffer.start), range.end.min(buffer.end));
            u64::try_from(to.saturating_sub(from)).unwrap_or(u64::MAX)
        });
        overlaps.fold(0, u64::saturating_add)
    }

    /// Are there octets outside the buffer of `advert`?
    pub(super) fn are_elsewhere(&self, advert: Option<&Advert>) -> bool {
        let inside = |stag: u32, range: &Range<u128>, advert: &Advert| {
            let buffer = buffer(advert, 0);
            stag == advert.stag && range.start >= buffer.start && range.end <= buffer.end
        };
        self.list.iter().any(|(stag, range)| advert.is_none_or(|advert| !inside(*stag, range, advert)))
    }

    /// Removes the buffer of `advert`.
    pub(super) fn forget(&mut self, advert: &Advert) {
        let buffer = buffer(advert, 0);
        let touches = |range: &Range<u128>, stag: u32| {
            stag == advert.stag && range.start < buffer.end && buffer.start < range.end
        };
        self.list.retain(|(stag, range)| !touches(range, *stag));
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.list.capacity() * size_of::<(u32, Range<u128>)>()
    }
}

fn buffer(advert: &Advert, skip: u32) -> Range<u128> {
    let from = u128::from(advert.va);
    from + u128::from(skip)..from + u128::from(advert.len)
}
