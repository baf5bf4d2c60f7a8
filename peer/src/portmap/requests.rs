//! The Requests that a PM Server accepted (section 7.5.2): who requested what, what it got, and
//! when that is forgotten.
//!
//! **Limits.** At most `most` are known at a time, and `most_of_one` of one host: the connecting
//! address that a Request names, and the one that its datagram came from, since either can be made
//! up. One that is acknowledged and holds no port makes room for a new one; when none does, the new
//! one is denied. A PMDeny leaves no state.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeSet, HashMap};

use super::table::Given;
use crate::time::Instant;

/// ApIPAddr with ApPort, and CpIPAddr with CpPort; with the AssocHandle the five-tuple of section
/// 7.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FourTuple {
    pub(super) accepting: SocketAddr,
    pub(super) connecting: SocketAddr,
}

/// How far a Request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A PMAccept went out.
    Offered,
    /// A PMAck, or the connection, came.
    Taken,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) handle: u64,
    /// Where its datagram came from.
    pub(super) from: IpAddr,
    pub(super) given: Given,
    pub(super) phase: Phase,
    /// When it is forgotten.
    pub(super) until: Instant,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Requests {
    most: usize,
    most_of_one: usize,
    held: HashMap<FourTuple, Held>,
    by_time: BTreeSet<(Instant, FourTuple)>,
    /// Connecting end and SDP Address.
    by_ends: BTreeSet<(SocketAddr, SocketAddr, FourTuple)>,
    /// Those that make room.
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

    /// Those whose PMAccept named `address`, of this connecting end: one, unless it requested
    /// several services at the same place.
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

    /// Those whose PMAccept named `address`, of any port of this host.
    pub(super) fn by_host(&self, connecting: IpAddr, address: SocketAddr) -> impl Iterator<Item = (FourTuple, Held)> {
        let least = SocketAddr::from(([0; 4], 0));
        let first = FourTuple { accepting: least, connecting: least };
        let from = self.by_ends.range((SocketAddr::new(connecting, 0), least, first)..);
        let fits = from.take_while(move |(end, ..)| end.ip() == connecting).filter(move |(_, at, _)| *at == address);
        fits.filter_map(|(_, _, tuple)| Some((*tuple, *self.held.get(tuple)?)))
    }

    /// Is there room for one of `connecting` in a datagram of `from`? Those that make room go.
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

    /// Knows one, or knows it anew.
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

    /// Forgets one.
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

    /// Forgets one whose time is over.
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

/// Whom a Request counts for.
fn hosts(connecting: IpAddr, from: IpAddr) -> impl Iterator<Item = IpAddr> {
    [Some(connecting), Some(from).filter(|from| *from != connecting)].into_iter().flatten()
}
