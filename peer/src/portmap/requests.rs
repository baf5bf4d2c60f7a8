//! The Requests that a PM Server has accepted (section 7.5.2): their senders, their SDP Addresses,
//! and when they expire.
//!
//! **Limits.** The server stores at most `most` Requests, and at most `most_of_one` of one host. A
//! Request counts for the connecting address that it contains, and also for the source address of
//! its datagram, because either can be forged. If a limit is reached, an acknowledged Request that
//! holds no port is removed. If there is none, the new Request is denied. A PMDeny leaves no state.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeSet, HashMap};

use super::table::Given;
use crate::time::Instant;

/// ApIPAddr with ApPort, and CpIPAddr with CpPort. Together with the AssocHandle they are the
/// five-tuple of section 7.5.
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
    Taken,
}

/// A stored Request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) handle: u64,
    /// Source address of the datagram with the Request.
    pub(super) from: IpAddr,
    pub(super) given: Given,
    pub(super) phase: Phase,
    /// Time at which the Request expires.
    pub(super) until: Instant,
}

/// All stored Requests of a server.
#[derive(Debug)]
pub(super) struct Requests {
    most: usize,
    most_of_one: usize,
    held: HashMap<FourTuple, Held>,
    by_time: BTreeSet<(Instant, FourTuple)>,
    /// Index by connecting address and port, and SDP Address.
    by_ends: BTreeSet<(SocketAddr, SocketAddr, FourTuple)>,
    /// Requests that may be removed to make room, ordered by expiry.
    spare: BTreeSet<(Instant, FourTuple)>,
    of_one: HashMap<IpAddr, usize>,
}

impl Requests {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Requests {
            most,
            most_of_one,
            held: HashMap::new(),
            by_time: BTreeSet::new(),
            by_ends: BTreeSet::new(),
            spare: BTreeSet::new(),
            of_one: HashMap::new(),
        }
    }

    pub(super) fn get(&self, tuple: &FourTuple) -> Option<&Held> {
        self.held.get(tuple)
    }

    /// Requests from this connecting address and port whose PMAccept named `address`. There is only
    /// one, unless several services have the same SDP Address.
    pub(super) fn by_ends(
        &self,
        connecting: SocketAddr,
        address: SocketAddr,
    ) -> impl Iterator<Item = (FourTuple, Held)> {
        let first = FourTuple { accepting: SocketAddr::from(([0; 4], 0)), connecting: SocketAddr::from(([0; 4], 0)) };
        let from = self.by_ends.range((connecting, address, first)..);
        let fits = from.take_while(move |(end, at, _)| (*end, *at) == (connecting, address));
        fits.filter_map(|(_, _, tuple)| Some((*tuple, *self.held.get(tuple)?)))
    }

    /// Requests from this host, with any port, whose PMAccept named `address`.
    pub(super) fn by_host(&self, connecting: IpAddr, address: SocketAddr) -> impl Iterator<Item = (FourTuple, Held)> {
        let least = SocketAddr::from(([0; 4], 0));
        let first = FourTuple { accepting: least, connecting: least };
        let from = self.by_ends.range((SocketAddr::new(connecting, 0), least, first)..);
        let fits = from.take_while(move |(end, ..)| end.ip() == connecting).filter(move |(_, at, _)| *at == address);
        fits.filter_map(|(_, _, tuple)| Some((*tuple, *self.held.get(tuple)?)))
    }

    /// Returns whether a Request with the connecting address `connecting`, in a datagram from
    /// `from`, can be stored. Removes other Requests if necessary.
    pub(super) fn make_room(&mut self, connecting: IpAddr, from: IpAddr) -> bool {
        for host in hosts(connecting, from) {
            if self.of_one.get(&host).is_some_and(|count| *count >= self.most_of_one) {
                let is_of = |tuple: &FourTuple| {
                    tuple.connecting.ip() == host || self.held.get(tuple).is_some_and(|held| held.from == host)
                };
                let own = self.spare.iter().map(|(_, tuple)| *tuple).find(is_of);
                if own.and_then(|tuple| self.remove(&tuple)).is_none() {
                    return false;
                }
            }
        }
        if self.held.len() < self.most {
            return true;
        }
        let first = self.spare.first().map(|(_, tuple)| *tuple);
        first.is_some_and(|tuple| self.remove(&tuple).is_some())
    }

    /// Stores a Request, or replaces the stored one.
    pub(super) fn put(&mut self, tuple: FourTuple, held: Held) {
        self.remove(&tuple);
        self.held.insert(tuple, held);
        self.by_time.insert((held.until, tuple));
        self.by_ends.insert((tuple.connecting, held.given.address, tuple));
        if held.phase == Phase::Taken && !held.given.made {
            self.spare.insert((held.until, tuple));
        }
        for host in hosts(tuple.connecting.ip(), held.from) {
            *self.of_one.entry(host).or_default() += 1;
        }
    }

    /// Removes a Request.
    pub(super) fn remove(&mut self, tuple: &FourTuple) -> Option<Held> {
        let held = self.held.remove(tuple)?;
        self.by_time.remove(&(held.until, *tuple));
        self.by_ends.remove(&(tuple.connecting, held.given.address, *tuple));
        self.spare.remove(&(held.until, *tuple));
        for host in hosts(tuple.connecting.ip(), held.from) {
            if let Some(count) = self.of_one.get_mut(&host) {
                *count -= 1;
                if *count == 0 {
                    self.of_one.remove(&host);
                }
            }
        }
        Some(held)
    }

    /// Removes and returns one Request that has expired.
    pub(super) fn expired(&mut self, now: Instant) -> Option<(FourTuple, Held)> {
        let (_, tuple) = *self.by_time.first().filter(|(until, _)| *until <= now)?;
        Some((tuple, self.remove(&tuple)?))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.by_time.first().map(|(until, _)| *until)
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }
}

/// Returns the hosts for which a Request counts.
fn hosts(connecting: IpAddr, from: IpAddr) -> impl Iterator<Item = IpAddr> {
    [Some(connecting), Some(from).filter(|from| *from != connecting)].into_iter().flatten()
}
