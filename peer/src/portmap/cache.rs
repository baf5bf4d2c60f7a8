//! Answers that a PM Client keeps for as long as their PmTime allows (section 7.3.1.4).
//!
//! An answer is valid for one port mapper, service and connecting address. If there are already
//! [`Cache::MOST`] answers, a new answer replaces the one that expires first. If several expire at
//! the same time, it replaces the one with the lowest addresses.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use weft_core::wire::portmap::{self, PmTime};

use super::Ask;
use crate::time::Instant;

type Key = (SocketAddr, SocketAddr, IpAddr);

#[derive(Debug, Clone, Copy)]
struct Kept {
    address: SocketAddr,
    pm_time: PmTime,
    /// Expiry. `None`: never.
    until: Option<Instant>,
}

/// The stored answers.
#[derive(Debug, Default)]
pub(super) struct Cache(BTreeMap<Key, Kept>);

fn key(ask: &Ask) -> Key {
    (ask.mapper, ask.service, ask.connecting.ip())
}

impl Cache {
    /// Maximum number of stored answers.
    pub(super) const MOST: usize = 1024;

    /// Stores an answer that arrived at `now`, unless its PmTime is 0.
    pub(super) fn keep(&mut self, now: Instant, ask: &Ask, address: SocketAddr, pm_time: PmTime) {
        let until = match pm_time.cache() {
            portmap::Cache::Once => return,
            portmap::Cache::For(time) => Some(now + time),
            portmap::Cache::Forever => None,
        };
        if self.0.len() >= Self::MOST && !self.0.contains_key(&key(ask)) {
            let soonest = |(_, kept): &(&Key, &Kept)| kept.until.map_or(u64::MAX, Instant::as_nanos);
            if let Some(first) = self.0.iter().min_by_key(soonest).map(|(key, _)| *key) {
                self.0.remove(&first);
            }
        }
        self.0.insert(key(ask), Kept { address, pm_time, until });
    }

    /// Returns the stored answer to `ask`, if there is one.
    pub(super) fn answer(&self, now: Instant, ask: &Ask) -> Option<(SocketAddr, PmTime)> {
        let kept = self.0.get(&key(ask))?;
        kept.until.is_none_or(|until| now < until).then_some((kept.address, kept.pm_time))
    }

    /// Removes the answer to `ask`.
    pub(super) fn forget(&mut self, ask: &Ask) {
        self.0.remove(&key(ask));
    }

    /// Removes all answers that have expired.
    pub(super) fn flush(&mut self, now: Instant) {
        self.0.retain(|_, kept| kept.until.is_none_or(|until| now < until));
    }

    /// Returns when the next answer expires.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|kept| kept.until).min()
    }
}
