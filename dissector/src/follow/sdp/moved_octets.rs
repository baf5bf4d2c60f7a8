//! Records the octets that RDMA moves. An endpoint accesses parts of its peer's memory by RDMA
//! Writes and Read Requests. This module records these parts.
//!
//! **Memory.** At most [`MAX_RANGES`] ranges are kept for each endpoint and kind. If there are more
//! ranges, the monitor no longer tracks ranges.

use std::collections::VecDeque;
use std::ops::Range;

use super::advert::Advert;

/// Maximum number of ranges that are kept. If an access continues the previous range, it extends
/// this range. So if a sender accesses each buffer from its start to its end, each buffer needs one
/// range.
const MAX_RANGES: usize = 1024;

/// Octets that the sender of a message has transferred by RDMA and has not reported yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MovedOctets {
    /// Number of octets that the sender's RDMA Writes put into the buffer of the oldest usable
    /// SinkAvail.
    pub written: u64,
    /// Number of octets that the sender's RDMA Reads requested from the buffer of the oldest
    /// SrcAvail. This number includes neither the octets that the SrcAvail carried as payload, nor
    /// reported octets.
    pub read: u64,
    /// The part of `read` that Read Responses returned; `None` if Responses may be missing.
    pub returned: Option<u64>,
    /// Whether the sender has written or requested octets, and has sent no RdmaWrCompl or
    /// RdmaRdCompl about these octets. Len of the RdmaRdCompl does not matter.
    pub in_process: bool,
    /// Whether the sender has written octets, and has sent no RdmaWrCompl about these octets.
    pub writing: bool,
}

/// Accessed ranges of buffers, in the order of access. Each element has the STag and the range of
/// tagged offsets.
#[derive(Debug, Clone, Default)]
pub(super) struct AccessedRanges {
    list: VecDeque<(u32, Range<u128>)>,
    lost: bool,
}

impl AccessedRanges {
    /// Adds `len` octets at tagged offset `to` of the buffer `stag`.
    pub(super) fn add(&mut self, stag: u32, to: u64, len: u32) {
        let from = u128::from(to);
        let end = from + u128::from(len);
        if self.lost || len == 0 {
            return;
        }
        if let Some((_, last)) = self.list.back_mut().filter(|(of, last)| *of == stag && last.end == from) {
            last.end = end;
        } else if self.list.len() < MAX_RANGES {
            self.list.push_back((stag, from..end));
        } else {
            self.record_loss();
        }
    }

    /// Drops all ranges, because octets are missing. Later ranges are not recorded.
    pub(super) fn record_loss(&mut self) {
        self.lost = true;
        self.list.clear();
    }

    /// Returns whether ranges are missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.lost
    }

    /// Returns whether any range has an STag that matches `which`.
    pub(super) fn has_stag(&self, which: impl Fn(u32) -> bool) -> bool {
        self.list.iter().any(|(stag, _)| which(*stag))
    }

    /// Returns the number of accessed octets in the buffer of `advert`. The result does not include
    /// the first `skip` octets of the buffer. Octets that were accessed twice count twice.
    pub(super) fn octets_within(&self, advert: &Advert, skip: u32) -> u64 {
        let buffer = buffer(advert, skip);
        let overlaps = self.list.iter().filter(|(stag, _)| *stag == advert.stag).map(|(_, range)| {
            let (from, to) = (range.start.max(buffer.start), range.end.min(buffer.end));
            u64::try_from(to.saturating_sub(from)).unwrap_or(u64::MAX)
        });
        overlaps.fold(0, u64::saturating_add)
    }

    /// Returns whether any range is completely or partly outside the buffer of `advert`.
    pub(super) fn has_range_outside(&self, advert: Option<&Advert>) -> bool {
        let inside = |stag: u32, range: &Range<u128>, advert: &Advert| {
            let buffer = buffer(advert, 0);
            stag == advert.stag && range.start >= buffer.start && range.end <= buffer.end
        };
        self.list.iter().any(|(stag, range)| advert.is_none_or(|advert| !inside(*stag, range, advert)))
    }

    /// Removes all ranges that overlap the buffer of `advert`.
    pub(super) fn remove_overlapping(&mut self, advert: &Advert) {
        let buffer = buffer(advert, 0);
        let overlaps = |range: &Range<u128>, stag: u32| {
            stag == advert.stag && range.start < buffer.end && buffer.start < range.end
        };
        self.list.retain(|(stag, range)| !overlaps(range, *stag));
    }

    /// Memory in use, in octets.
    pub(super) fn memory(&self) -> usize {
        self.list.capacity() * size_of::<(u32, Range<u128>)>()
    }
}

fn buffer(advert: &Advert, skip: u32) -> Range<u128> {
    let from = u128::from(advert.va);
    from + u128::from(skip)..from + u128::from(advert.len)
}
