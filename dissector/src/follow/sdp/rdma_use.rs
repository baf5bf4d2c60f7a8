//! Compares RDMA Writes and Reads of an endpoint with the advertisements that the endpoint is
//! allowed to use.
//!
//! An RDMA Write or a Read Request does not show which messages its sender had received. The next
//! SDP message of the same endpoint shows this. Until this message, at most [`MAX_ACCESSES`]
//! accesses are kept. For the last [`MAX_ENDED`] ended advertisements of each kind, the module also
//! keeps the reason why they ended.

use std::collections::VecDeque;

use super::advert::{Advert, EndReason};
use crate::parse::Location;

const MAX_ACCESSES: usize = 64;
const MAX_ENDED: usize = 32;

/// An access to the peer's memory: an RDMA Write, or an RDMA Read Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RdmaAccess {
    /// Whether the access is an RDMA Write. If false, it is a Read Request.
    pub write: bool,
    /// The STag of the peer's buffer.
    pub stag: u32,
    /// The tagged offset of the first octet.
    pub from: u64,
    /// Number of octets.
    pub len: u64,
    /// Location of the STag in the capture.
    pub stag_location: Location,
}

/// An access that was not allowed, because not all accessed octets are in an advertised buffer. An
/// advertisement counts only if the sender had received it and could still use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnadvertisedAccess {
    /// The access.
    pub access: RdmaAccess,
    /// The reason why the earlier advertisement of the STag ended, if there was an earlier
    /// advertisement.
    pub reason: Option<EndReason>,
    /// The usable advertisement with this STag, if the sender had one. Its buffer does not contain
    /// all accessed octets.
    pub outside: Option<Advert>,
}

/// The accesses of an endpoint since its last SDP message.
#[derive(Debug, Clone, Default)]
pub(super) struct RdmaUse(Vec<RdmaAccess>);

/// A summary of [`RdmaUse`] for rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RdmaUseSummary {
    /// The first RDMA Write.
    pub write: Option<RdmaAccess>,
    /// The first Read Request.
    pub read: Option<RdmaAccess>,
    /// The first RDMA Write or Read Request that no advertisement allowed.
    pub unadvertised: Option<UnadvertisedAccess>,
}

impl RdmaAccess {
    /// Returns whether the advertised buffers with the STag of this access contain all accessed
    /// octets. An access can include octets of several adjacent buffers.
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

impl RdmaUse {
    /// Adds an access. If the access begins where an earlier access of the same kind and STag
    /// ended, the earlier access is extended.
    pub(super) fn add(&mut self, access: RdmaAccess) {
        let continues = |seen: &&mut RdmaAccess| {
            (seen.write, seen.stag, seen.from.checked_add(seen.len)) == (access.write, access.stag, Some(access.from))
        };
        if let Some(seen) = self.0.iter_mut().find(continues) {
            seen.len = seen.len.saturating_add(access.len);
        } else if self.0.len() < MAX_ACCESSES {
            self.0.push(access);
        }
    }

    /// Compares the accesses with the advertisements that the endpoint is allowed to use. For RDMA
    /// Writes, these are the SinkAvails in `sinks`. For Reads, these are the SrcAvails in
    /// `sources`. `ended` has the ended SinkAvails and the ended SrcAvails.
    pub(super) fn summary(
        &self,
        sinks: &VecDeque<Advert>,
        sources: &VecDeque<Advert>,
        ended: [&EndedAdverts; 2],
    ) -> RdmaUseSummary {
        let of = |write: bool| self.0.iter().find(|access| access.write == write).copied();
        let adverts = |access: &RdmaAccess| if access.write { sinks } else { sources };
        let unadvertised =
            self.0.iter().find(|access| !access.is_within(adverts(access))).copied().map(|access| UnadvertisedAccess {
                access,
                reason: ended[usize::from(!access.write)].reason_of(access.stag),
                outside: adverts(&access).iter().find(|advert| advert.stag == access.stag).copied(),
            });
        RdmaUseSummary { write: of(true), read: of(false), unadvertised }
    }

    /// Returns the first access that matches `is_it`.
    pub(super) fn find(&self, is_it: impl Fn(&RdmaAccess) -> bool) -> Option<RdmaAccess> {
        self.0.iter().copied().find(is_it)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The STags of ended advertisements that one endpoint was allowed to use. Each STag has the reason
/// why its advertisement ended. The list contains an advertisement as soon as this endpoint knows
/// that the advertisement ended.
#[derive(Debug, Clone, Default)]
pub(super) struct EndedAdverts(VecDeque<(u32, EndReason)>);

impl EndedAdverts {
    pub(super) fn add(&mut self, advert: &Advert, reason: EndReason) {
        if self.0.len() == MAX_ENDED {
            self.0.pop_front();
        }
        self.0.push_back((advert.stag, reason));
    }

    pub(super) fn add_all<'a>(&mut self, adverts: impl IntoIterator<Item = &'a Advert>, reason: EndReason) {
        adverts.into_iter().for_each(|advert| self.add(advert, reason));
    }

    /// Returns why the last advertisement of `stag` ended.
    pub(super) fn reason_of(&self, stag: u32) -> Option<EndReason> {
        self.0.iter().rev().find(|(of, _)| *of == stag).map(|(_, reason)| *reason)
    }

    /// Returns why the latest ended advertisement ended.
    pub(super) fn last_reason(&self) -> Option<EndReason> {
        self.0.back().map(|(_, reason)| *reason)
    }

    /// Memory in use, in octets.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(u32, EndReason)>()
    }
}
