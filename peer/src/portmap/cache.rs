//! Answers that a PM Client keeps until their PmTime ends (section 7.3.1.4 of the SDP draft). The
//! PmTime of an answer is the time for which clients may use the answer.
//!
//! An answer is valid for one port mapper, service and connecting address. If there are already
//! [`Cache::MAX_ANSWERS`] answers, a new answer replaces the answer that expires next. If several
//! answers expire at that time, the new answer replaces the answer with the lowest addresses.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use weft_core::wire::portmap::{self, PmTime};

use super::Query;
use crate::time::Instant;

type Key = (SocketAddr, SocketAddr, IpAddr);

#[derive(Debug, Clone, Copy)]
struct CachedAnswer {
    address: SocketAddr,
    pm_time: PmTime,
    /// Time at which the answer expires. `None` if it never expires.
    until: Option<Instant>,
}

/// The stored answers.
#[derive(Debug, Default)]
pub(super) struct Cache(BTreeMap<Key, CachedAnswer>);

fn key(query: &Query) -> Key {
    (query.mapper, query.service, query.connecting.ip())
}

impl Cache {
    /// Maximum number of stored answers.
    pub(super) const MAX_ANSWERS: usize = 1024;

    /// Stores an answer that arrived at `now`. Ignores an answer whose PmTime is 0, because clients
    /// may use such an answer only once.
    pub(super) fn keep(&mut self, now: Instant, query: &Query, address: SocketAddr, pm_time: PmTime) {
        let until = match pm_time.cache() {
            portmap::Cache::Once => return,
            portmap::Cache::For(time) => Some(now + time),
            portmap::Cache::Forever => None,
        };
        if self.0.len() >= Self::MAX_ANSWERS && !self.0.contains_key(&key(query)) {
            let soonest = |(_, cached): &(&Key, &CachedAnswer)| cached.until.map_or(u64::MAX, Instant::as_nanos);
            if let Some(first) = self.0.iter().min_by_key(soonest).map(|(key, _)| *key) {
                self.0.remove(&first);
            }
        }
        self.0.insert(key(query), CachedAnswer { address, pm_time, until });
    }

    /// Returns the stored answer to `query`. `None` if there is no such answer.
    pub(super) fn answer(&self, now: Instant, query: &Query) -> Option<(SocketAddr, PmTime)> {
        let cached = self.0.get(&key(query))?;
        cached.until.is_none_or(|until| now < until).then_some((cached.address, cached.pm_time))
    }

    /// Removes the answer to `query`.
    pub(super) fn forget(&mut self, query: &Query) {
        self.0.remove(&key(query));
    }

    /// Removes all answers that have expired.
    pub(super) fn flush(&mut self, now: Instant) {
        self.0.retain(|_, cached| cached.until.is_none_or(|until| now < until));
    }

    /// Returns the time at which the next answer expires.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|cached| cached.until).min()
    }
}
