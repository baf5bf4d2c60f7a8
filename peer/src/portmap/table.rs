//! What a PM Server maps: services to SDP Addresses.
//!
//! A service is an address and a port; the unspecified address means every address of its family.
//! It is mapped to fixed SDP Addresses, which take turns, or to ports that are made for each
//! Request and come back when nobody uses them (section 7.4). A target with the unspecified address
//! keeps the requested address and changes the port only.

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use std::collections::{BTreeSet, HashMap, HashSet};

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
    #[error("a port that is chosen for each Request cannot be cached for ever (PmTime 255)")]
    Forever,
    /// Less than a second, in which neither a lost PMAck nor a lost SYN is sent again (section
    /// 7.3.1.4; RFC 6298 section 2).
    #[error(
        "PmTime 1 to 3 is less than the second that a PMAck and a SYN may take when one is lost; take 0, or 4 and more"
    )]
    Short,
    /// More than the table holds.
    #[error("more than {MOST} mappings")]
    Full,
}

/// Units of 250 ms that an answer may be kept at least, if at all.
const LEAST_TIME: u8 = 4;
/// Mappings that a table holds.
pub(super) const MOST: usize = 65_536;

#[derive(Debug)]
struct Entry {
    mapping: Mapping,
    available: bool,
    /// Targets that are out of use for now.
    down: BTreeSet<SocketAddr>,
    next: usize,
}

/// The mappings.
#[derive(Debug, Default)]
pub struct Table {
    entries: HashMap<SocketAddr, Entry>,
    /// SDP Addresses that were made and are not back yet, of whichever mapping: two may share their
    /// ports, and one that is changed or removed does not end what others connect to.
    used: HashSet<SocketAddr>,
}

/// What a Request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    /// The service's entry: the requested address, or the unspecified one.
    pub(super) entry: SocketAddr,
    /// The SDP Address.
    pub(super) address: SocketAddr,
    pub(super) pm_time: PmTime,
    /// Does its port have to come back?
    pub(super) made: bool,
}

impl Table {
    /// Adds a mapping, or changes that of its service. Ports that the old one gave out stay in use
    /// until they come back.
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
        if (1..LEAST_TIME).contains(&mapping.pm_time.0) {
            return Err(TableError::Short);
        }
        if self.entries.len() >= MOST && !self.entries.contains_key(&mapping.service) {
            return Err(TableError::Full);
        }
        let entry = Entry { mapping, available: true, down: BTreeSet::new(), next: 0 };
        self.entries.insert(entry.mapping.service, entry);
        Ok(())
    }

    /// Removes the mapping of a service; was there one?
    pub fn remove(&mut self, service: SocketAddr) -> bool {
        self.entries.remove(&service).is_some()
    }

    /// Checks whether a service is available; is it mapped?
    pub fn set_available(&mut self, service: SocketAddr, available: bool) -> bool {
        self.entries.get_mut(&service).is_some_and(|entry| {
            entry.available = available;
            true
        })
    }

    /// Takes one of a service's fixed SDP Addresses out of use (`up` false) or into use again; is
    /// the service mapped?
    pub fn set_target(&mut self, service: SocketAddr, target: SocketAddr, up: bool) -> bool {
        let Some(entry) = self.entries.get_mut(&service) else { return false };
        if up {
            entry.down.remove(&target);
        } else if matches!(&entry.mapping.target, Target::Fixed(addresses) if addresses.contains(&target)) {
            entry.down.insert(target);
        }
        true
    }

    /// The mappings, in no order.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.entries.values().map(|entry| &entry.mapping)
    }

    /// Where the entry for an address is: its own, or that of the unspecified one.
    fn key(&self, requested: SocketAddr) -> SocketAddr {
        if self.entries.contains_key(&requested) {
            return requested;
        }
        let any: SocketAddr = if requested.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
        SocketAddr::new(any.ip(), requested.port())
    }

    /// Gives an SDP Address for a service, the next in turn; none when it is not mapped, cannot be
    /// had, or is used up, nor when the unspecified address is requested and the target keeps the
    /// requested address.
    pub(super) fn give(&mut self, requested: SocketAddr) -> Option<Given> {
        let key = self.key(requested);
        let entry = self.entries.get_mut(&key).filter(|entry| entry.available)?;
        let kept = |target: IpAddr| if target.is_unspecified() { requested.ip() } else { target };
        // Nobody can connect to the unspecified address.
        let address = match &entry.mapping.target {
            Target::Fixed(addresses) => {
                let mut turn = (0..addresses.len()).map(|step| (entry.next + step) % addresses.len());
                let at = turn.find(|at| addresses.get(*at).is_some_and(|it| !entry.down.contains(it)))?;
                entry.next = at + 1;
                let target = addresses.get(at)?;
                Some(SocketAddr::new(kept(target.ip()), target.port())).filter(|it| !it.ip().is_unspecified())?
            }
            Target::Made { at, ports } => {
                let ip = Some(kept(at.ip())).filter(|ip| !ip.is_unspecified())?;
                let address = ports.clone().map(|port| SocketAddr::new(ip, port)).find(|it| !self.used.contains(it))?;
                self.used.insert(address);
                address
            }
        };
        let made = matches!(entry.mapping.target, Target::Made { .. });
        Some(Given { entry: key, address, pm_time: entry.mapping.pm_time, made })
    }

    /// Does a service still give what it gave? The present state counts (section 7.5.2).
    pub(super) fn still_gives(&self, given: &Given) -> bool {
        let fits = |target: &SocketAddr| target.ip() == given.address.ip() || target.ip().is_unspecified();
        let port = given.address.port();
        self.entries.get(&given.entry).filter(|entry| entry.available).is_some_and(|entry| {
            match &entry.mapping.target {
                Target::Fixed(addresses) => {
                    addresses.iter().any(|it| it.port() == port && fits(it) && !entry.down.contains(it))
                }
                Target::Made { at, ports } => ports.contains(&port) && fits(at) && self.used.contains(&given.address),
            }
        })
    }

    /// An SDP Address that was made is not needed any more.
    pub(super) fn take_back(&mut self, given: &Given) {
        if given.made {
            self.used.remove(&given.address);
        }
    }
}
