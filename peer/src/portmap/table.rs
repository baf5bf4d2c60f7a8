//! What a PM Server maps: services to SDP Addresses.
//!
//! A service is an address and a port; the unspecified address stands for every address of its family. It is mapped to fixed
//! SDP Addresses, which take turns, or to ports that are made for each Request and come back when nobody uses them
//! (section 7.4). A target with the unspecified address keeps the address that was asked for and changes the port only.

use core::net::SocketAddr;
use core::ops::RangeInclusive;
use std::collections::{BTreeSet, HashMap};

use weft_core::wire::portmap::{Cache, PmTime};

/// Where a service's SDP connections go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// These SDP Addresses, one after the other.
    Fixed(Vec<SocketAddr>),
    /// A port of its own for each Request, at this address; the port of the address does not count.
    Made {
        /// The address.
        at: SocketAddr,
        /// The ports.
        ports: RangeInclusive<u16>,
    },
}

/// A service and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The Conventional Address.
    pub service: SocketAddr,
    /// Where SDP is.
    pub target: Target,
    /// How long clients may keep the answer.
    pub pm_time: PmTime,
}

/// Why a mapping makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Port 0, or no port or address at all.
    #[error("a service and each of its SDP Addresses need a port other than 0")]
    NoPort,
    /// A message has one IPV for both addresses.
    #[error("a service and its SDP Addresses must be of one family")]
    Families,
    /// A port that may be used for ever never comes back.
    #[error("ports that are made for each Request cannot be kept for ever (PmTime 255)")]
    Forever,
    /// More than the table holds.
    #[error("more than {MOST} mappings")]
    Full,
}

/// Mappings that a table holds.
pub(super) const MOST: usize = 65_536;

#[derive(Debug)]
struct Entry {
    mapping: Mapping,
    available: bool,
    /// Targets that are out of use for now.
    down: BTreeSet<SocketAddr>,
    /// Ports that are given out.
    used: BTreeSet<u16>,
    next: usize,
}

/// The mappings.
#[derive(Debug, Default)]
pub struct Table(HashMap<SocketAddr, Entry>);

/// What a Request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    /// The service's entry: the address asked for, or the unspecified one.
    pub(super) entry: SocketAddr,
    /// The SDP Address.
    pub(super) address: SocketAddr,
    pub(super) pm_time: PmTime,
    /// Does its port have to come back?
    pub(super) made: bool,
}

impl Table {
    /// Adds a mapping, or changes that of its service. Ports that the old one gave out are forgotten.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn insert(&mut self, mapping: Mapping) -> Result<(), TableError> {
        let family = |address: &SocketAddr| address.is_ipv4() == mapping.service.is_ipv4();
        let (fits, ports) = match &mapping.target {
            Target::Fixed(addresses) => {
                let ports = !addresses.is_empty() && addresses.iter().all(|address| address.port() != 0);
                (addresses.iter().all(family), ports)
            }
            Target::Made { at, ports } => (family(at), !ports.is_empty() && *ports.start() != 0),
        };
        if !ports || mapping.service.port() == 0 {
            return Err(TableError::NoPort);
        }
        if !fits {
            return Err(TableError::Families);
        }
        if matches!(mapping.target, Target::Made { .. }) && mapping.pm_time.cache() == Cache::Forever {
            return Err(TableError::Forever);
        }
        if self.0.len() >= MOST && !self.0.contains_key(&mapping.service) {
            return Err(TableError::Full);
        }
        let entry = Entry { mapping, available: true, down: BTreeSet::new(), used: BTreeSet::new(), next: 0 };
        self.0.insert(entry.mapping.service, entry);
        Ok(())
    }

    /// Removes the mapping of a service; was there one?
    pub fn remove(&mut self, service: SocketAddr) -> bool {
        self.0.remove(&service).is_some()
    }

    /// Says whether a service can be had; is it mapped?
    pub fn set_available(&mut self, service: SocketAddr, available: bool) -> bool {
        self.0.get_mut(&service).is_some_and(|entry| {
            entry.available = available;
            true
        })
    }

    /// Takes one of a service's fixed SDP Addresses out of use (`up` false) or into use again; is the service mapped?
    pub fn set_target(&mut self, service: SocketAddr, target: SocketAddr, up: bool) -> bool {
        let Some(entry) = self.0.get_mut(&service) else { return false };
        if up {
            entry.down.remove(&target);
        } else if matches!(&entry.mapping.target, Target::Fixed(addresses) if addresses.contains(&target)) {
            entry.down.insert(target);
        }
        true
    }

    /// The mappings, in no order.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.0.values().map(|entry| &entry.mapping)
    }

    fn entry(&mut self, asked: SocketAddr) -> Option<&mut Entry> {
        let any = if asked.is_ipv4() { SocketAddr::from(([0; 4], 0)) } else { SocketAddr::from(([0; 16], 0)) };
        let any = SocketAddr::new(any.ip(), asked.port());
        let key = if self.0.contains_key(&asked) { asked } else { any };
        self.0.get_mut(&key)
    }

    /// Gives an SDP Address for a service, the next in turn; none when it is not mapped, cannot be had, or is used
    /// up, nor when the unspecified address is asked for and the target keeps what was asked for.
    pub(super) fn give(&mut self, asked: SocketAddr) -> Option<Given> {
        let entry = self.entry(asked).filter(|entry| entry.available)?;
        let (target, made) = match &entry.mapping.target {
            Target::Fixed(addresses) => {
                let mut turn = (0..addresses.len()).map(|step| (entry.next + step) % addresses.len());
                let at = turn.find(|at| addresses.get(*at).is_some_and(|it| !entry.down.contains(it)))?;
                entry.next = at + 1;
                (*addresses.get(at)?, false)
            }
            Target::Made { at, ports } => {
                let port = ports.clone().find(|port| !entry.used.contains(port))?;
                entry.used.insert(port);
                (SocketAddr::new(at.ip(), port), true)
            }
        };
        let ip = if target.ip().is_unspecified() { asked.ip() } else { target.ip() };
        if ip.is_unspecified() {
            // Nobody can connect to it.
            entry.used.remove(&target.port());
            return None;
        }
        let address = SocketAddr::new(ip, target.port());
        Some(Given { entry: entry.mapping.service, address, pm_time: entry.mapping.pm_time, made })
    }

    /// Does a service still give what it gave? The present state counts (section 7.5.2).
    pub(super) fn still_gives(&self, given: &Given) -> bool {
        self.0.get(&given.entry).filter(|entry| entry.available).is_some_and(|entry| match &entry.mapping.target {
            Target::Fixed(addresses) => addresses.iter().any(|it| {
                let same =
                    it.port() == given.address.port() && (it.ip() == given.address.ip() || it.ip().is_unspecified());
                same && !entry.down.contains(it)
            }),
            Target::Made { .. } => entry.used.contains(&given.address.port()),
        })
    }

    /// A port that was made is not needed any more.
    pub(super) fn take_back(&mut self, given: &Given) {
        if let Some(entry) = self.0.get_mut(&given.entry).filter(|_| given.made) {
            entry.used.remove(&given.address.port());
        }
    }
}
