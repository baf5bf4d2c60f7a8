//! The Requests that a PM Server has accepted (section 7.5.2 of the SDP draft): sender, SDP Address
//! and expiry of each Request.
//!
//! **Limits.** The server stores at most `max` Requests, and at most `max_per_host` Requests of one
//! host. A Request counts for the connecting address that it contains, and also for the source
//! address of its datagram. The reason is that a sender can forge either address. If a limit is
//! reached, the server removes an acknowledged Request whose port does not come from a range
//! ([`super::table`]). If there is no such Request, the server denies the new Request. The server
//! stores nothing about a denied Request.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeSet, HashMap};

use super::table::Assignment;
use crate::time::Instant;

/// A Request's ApIPAddr with ApPort, and its CpIPAddr with CpPort. These four fields and the
/// AssocHandle form the five-tuple of section 7.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FourTuple {
    pub(super) accepting: SocketAddr,
    pub(super) connecting: SocketAddr,
}

/// State of a Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server has sent a PMAccept.
    Offered,
    /// The PMAck, or the connection, has arrived.
    Confirmed,
}

/// A stored Request.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredRequest {
    pub(super) handle: u64,
    /// Source address of the datagram with the Request.
    pub(super) from: IpAddr,
    pub(super) assignment: Assignment,
    pub(super) phase: Phase,
    /// Time at which the Request expires.
    pub(super) until: Instant,
}

/// All stored Requests of a server.
#[derive(Debug)]
pub(super) struct Requests {
    max: usize,
    max_per_host: usize,
    stored: HashMap<FourTuple, StoredRequest>,
    by_time: BTreeSet<(Instant, FourTuple)>,
    /// Index by connecting address and port, then by SDP Address.
    by_addresses: BTreeSet<(SocketAddr, SocketAddr, FourTuple)>,
    /// The Requests that the server can remove to make space, ordered by expiry.
    spare: BTreeSet<(Instant, FourTuple)>,
    per_host: HashMap<IpAddr, usize>,
}

impl Requests {
    pub(super) fn new(max: usize, max_per_host: usize) -> Self {
        Requests {
            max,
            max_per_host,
            stored: HashMap::new(),
            by_time: BTreeSet::new(),
            by_addresses: BTreeSet::new(),
            spare: BTreeSet::new(),
            per_host: HashMap::new(),
        }
    }

    pub(super) fn get(&self, tuple: &FourTuple) -> Option<&StoredRequest> {
        self.stored.get(tuple)
    }

    /// The Requests that name `connecting` as the connecting address and port, and that were
    /// answered by a PMAccept with `address`. There can be more than one such Request only if
    /// several services have the same SDP Address.
    pub(super) fn by_addresses(
        &self,
        connecting: SocketAddr,
        address: SocketAddr,
    ) -> impl Iterator<Item = (FourTuple, StoredRequest)> {
        let first = FourTuple { accepting: SocketAddr::from(([0; 4], 0)), connecting: SocketAddr::from(([0; 4], 0)) };
        let from = self.by_addresses.range((connecting, address, first)..);
        let fits = from.take_while(move |(end, at, _)| (*end, *at) == (connecting, address));
        fits.filter_map(|(_, _, tuple)| Some((*tuple, *self.stored.get(tuple)?)))
    }

    /// The Requests that name this host and any port, and that were answered by a PMAccept with
    /// `address`.
    pub(super) fn by_host(
        &self,
        connecting: IpAddr,
        address: SocketAddr,
    ) -> impl Iterator<Item = (FourTuple, StoredRequest)> {
        let least = SocketAddr::from(([0; 4], 0));
        let first = FourTuple { accepting: least, connecting: least };
        let from = self.by_addresses.range((SocketAddr::new(connecting, 0), least, first)..);
        let fits = from.take_while(move |(end, ..)| end.ip() == connecting).filter(move |(_, at, _)| *at == address);
        fits.filter_map(|(_, _, tuple)| Some((*tuple, *self.stored.get(tuple)?)))
    }

    /// Returns whether a Request with the connecting address `connecting`, in a datagram from
    /// `from`, can be stored. Removes other Requests if necessary.
    pub(super) fn make_room(&mut self, connecting: IpAddr, from: IpAddr) -> bool {
        for host in hosts(connecting, from) {
            if self.per_host.get(&host).is_some_and(|count| *count >= self.max_per_host) {
                let is_of = |tuple: &FourTuple| {
                    tuple.connecting.ip() == host || self.stored.get(tuple).is_some_and(|stored| stored.from == host)
                };
                let own = self.spare.iter().map(|(_, tuple)| *tuple).find(is_of);
                if own.and_then(|tuple| self.remove(&tuple)).is_none() {
                    return false;
                }
            }
        }
        if self.stored.len() < self.max {
            return true;
        }
        let first = self.spare.first().map(|(_, tuple)| *tuple);
        first.is_some_and(|tuple| self.remove(&tuple).is_some())
    }

    /// Stores a Request. Replaces a stored Request that has the same `tuple`.
    pub(super) fn put(&mut self, tuple: FourTuple, stored: StoredRequest) {
        self.remove(&tuple);
        self.stored.insert(tuple, stored);
        self.by_time.insert((stored.until, tuple));
        self.by_addresses.insert((tuple.connecting, stored.assignment.address, tuple));
        if stored.phase == Phase::Confirmed && !stored.assignment.from_range {
            self.spare.insert((stored.until, tuple));
        }
        for host in hosts(tuple.connecting.ip(), stored.from) {
            *self.per_host.entry(host).or_default() += 1;
        }
    }

    /// Removes a Request.
    pub(super) fn remove(&mut self, tuple: &FourTuple) -> Option<StoredRequest> {
        let stored = self.stored.remove(tuple)?;
        self.by_time.remove(&(stored.until, *tuple));
        self.by_addresses.remove(&(tuple.connecting, stored.assignment.address, *tuple));
        self.spare.remove(&(stored.until, *tuple));
        for host in hosts(tuple.connecting.ip(), stored.from) {
            if let Some(count) = self.per_host.get_mut(&host) {
                *count -= 1;
                if *count == 0 {
                    self.per_host.remove(&host);
                }
            }
        }
        Some(stored)
    }

    /// Removes and returns one Request that has expired.
    pub(super) fn expired(&mut self, now: Instant) -> Option<(FourTuple, StoredRequest)> {
        let (_, tuple) = *self.by_time.first().filter(|(until, _)| *until <= now)?;
        Some((tuple, self.remove(&tuple)?))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.by_time.first().map(|(until, _)| *until)
    }

    pub(super) fn len(&self) -> usize {
        self.stored.len()
    }
}

/// Returns the hosts whose limit applies to a Request.
fn hosts(connecting: IpAddr, from: IpAddr) -> impl Iterator<Item = IpAddr> {
    [Some(connecting), Some(from).filter(|from| *from != connecting)].into_iter().flatten()
}
