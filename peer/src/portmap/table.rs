//! The table of a PM Server: maps services to SDP Addresses.
//!
//! A service is an address and a port. The unspecified address means every address of its family.
//! The *target* of a service is either a list of fixed SDP Addresses, which the server assigns in
//! turn, or a range of ports. With a range, each Request gets its own port. The port is released
//! when no client uses the port (section 7.4 of the SDP draft). If the target's IP address is
//! unspecified, the SDP Address consists of the requested IP address and the target's port.

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use std::collections::{BTreeSet, HashMap, HashSet};

use weft_core::wire::portmap::{Cache, PmTime};

use crate::reject::reject_if;

/// Destination of the SDP connections of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// These SDP Addresses. The server assigns them in turn.
    Fixed(Vec<SocketAddr>),
    /// A separate port for each Request, at this address. The port of `at` is ignored.
    PortRange {
        /// The address.
        at: SocketAddr,
        /// The range of ports.
        ports: RangeInclusive<u16>,
    },
}

/// A service and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Conventional Address of the service.
    pub service: SocketAddr,
    /// Destination of SDP connections.
    pub target: Target,
    /// How long clients may keep the answer.
    pub pm_time: PmTime,
}

/// Why a mapping is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A port is 0, or the target's list of SDP Addresses or range of ports is empty.
    #[error("the port of a service, and of each of its SDP Addresses, must not be 0")]
    NoPort,
    /// The addresses have different families, but a message has one IP version field for both.
    #[error("a service and its SDP Addresses must be of the same IP family")]
    Families,
    /// The target is a range of ports, but the PmTime is "for ever". The ports would never be
    /// released.
    #[error("the PmTime of a port range must not be 255 (for ever), because the ports would never be free again")]
    Forever,
    /// The PmTime is not 0, but less than one second. A lost PMAck or SYN is sent again only after
    /// one second. The answer would have expired by then (section 7.3.1.4; RFC 6298 section 2).
    #[error(
        "PmTime must be 0, or at least 4 (1 s): with 1 to 3, an answer expires before a lost PMAck or SYN is sent again"
    )]
    Short,
    /// The table already has the maximum number of mappings.
    #[error("the port mapper already has the maximum of {MAX_MAPPINGS} mappings")]
    Full,
}

/// Minimum PmTime other than 0, in units of 250 ms.
const MIN_PM_TIME: u8 = 4;
/// Maximum number of mappings in a table.
pub(super) const MAX_MAPPINGS: usize = 65_536;

#[derive(Debug)]
struct Entry {
    mapping: Mapping,
    available: bool,
    /// The targets that the table must not assign at present.
    down: BTreeSet<SocketAddr>,
    next: usize,
}

/// The mappings of a PM Server.
#[derive(Debug, Default)]
pub struct Table {
    entries: HashMap<SocketAddr, Entry>,
    /// The SDP Addresses that are in use and whose port comes from a range. An SDP Address stays in
    /// this set until it is released. All mappings have one common set, because mappings can share
    /// ports, and because assigned ports stay in use when a mapping is changed or removed.
    used: HashSet<SocketAddr>,
}

/// The SDP Address that a Request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Assignment {
    /// Key of the service's entry: the requested address, or the unspecified address with the
    /// requested port.
    pub(super) entry: SocketAddr,
    /// The SDP Address.
    pub(super) address: SocketAddr,
    pub(super) pm_time: PmTime,
    /// The port comes from a range and must be released.
    pub(super) from_range: bool,
}

impl Table {
    /// Adds a mapping, or replaces the mapping of the same service. Ports that the replaced mapping
    /// assigned stay in use until they are released.
    ///
    /// # Errors
    /// The mapping is invalid.
    pub fn insert(&mut self, mapping: Mapping) -> Result<(), TableError> {
        let family = |address: &SocketAddr| address.is_ipv4() == mapping.service.is_ipv4();
        let (fits, ports) = match &mapping.target {
            Target::Fixed(addresses) => {
                let ports = !addresses.is_empty() && addresses.iter().all(|address| address.port() != 0);
                (addresses.iter().all(family), ports)
            }
            Target::PortRange { at, ports } => (family(at), !ports.is_empty() && *ports.start() != 0),
        };
        reject_if(!ports || mapping.service.port() == 0, TableError::NoPort)?;
        reject_if(!fits, TableError::Families)?;
        let is_range = matches!(mapping.target, Target::PortRange { .. });
        reject_if(is_range && mapping.pm_time.cache() == Cache::Forever, TableError::Forever)?;
        reject_if((1..MIN_PM_TIME).contains(&mapping.pm_time.0), TableError::Short)?;
        let is_full = self.entries.len() >= MAX_MAPPINGS && !self.entries.contains_key(&mapping.service);
        reject_if(is_full, TableError::Full)?;
        let entry = Entry { mapping, available: true, down: BTreeSet::new(), next: 0 };
        self.entries.insert(entry.mapping.service, entry);
        Ok(())
    }

    /// Removes the mapping of a service. Returns whether the service was mapped.
    pub fn remove(&mut self, service: SocketAddr) -> bool {
        self.entries.remove(&service).is_some()
    }

    /// Sets whether a service is available. Returns whether the service is mapped.
    pub fn set_available(&mut self, service: SocketAddr, available: bool) -> bool {
        self.entries.get_mut(&service).map(|entry| entry.available = available).is_some()
    }

    /// Sets whether the table assigns a fixed SDP Address of a service. It assigns the address only
    /// if `up` is true. Returns whether the service is mapped.
    pub fn set_target(&mut self, service: SocketAddr, target: SocketAddr, up: bool) -> bool {
        let Some(entry) = self.entries.get_mut(&service) else { return false };
        if up {
            entry.down.remove(&target);
        } else if matches!(&entry.mapping.target, Target::Fixed(addresses) if addresses.contains(&target)) {
            entry.down.insert(target);
        }
        true
    }

    /// The mappings, in arbitrary order.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.entries.values().map(|entry| &entry.mapping)
    }

    /// Returns the key of the entry for a requested address: the address itself, or the unspecified
    /// address with the same port.
    fn key(&self, requested: SocketAddr) -> SocketAddr {
        if self.entries.contains_key(&requested) {
            return requested;
        }
        let any: SocketAddr = if requested.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
        SocketAddr::new(any.ip(), requested.port())
    }

    /// Assigns the service's next SDP Address in turn. Returns `None` in these cases:
    /// - The service is not mapped, or is not available.
    /// - No SDP Address is left.
    /// - The requested address and the target's address are both unspecified.
    pub(super) fn assign(&mut self, requested: SocketAddr) -> Option<Assignment> {
        let key = self.key(requested);
        let entry = self.entries.get_mut(&key).filter(|entry| entry.available)?;
        let kept = |target: IpAddr| if target.is_unspecified() { requested.ip() } else { target };
        // A connection to the unspecified address is not possible.
        let address = match &entry.mapping.target {
            Target::Fixed(addresses) => {
                let mut turn = (0..addresses.len()).map(|step| (entry.next + step) % addresses.len());
                let at = turn.find(|at| addresses.get(*at).is_some_and(|it| !entry.down.contains(it)))?;
                entry.next = at + 1;
                let target = addresses.get(at)?;
                Some(SocketAddr::new(kept(target.ip()), target.port())).filter(|it| !it.ip().is_unspecified())?
            }
            Target::PortRange { at, ports } => {
                let ip = Some(kept(at.ip())).filter(|ip| !ip.is_unspecified())?;
                let address = ports.clone().map(|port| SocketAddr::new(ip, port)).find(|it| !self.used.contains(it))?;
                self.used.insert(address);
                address
            }
        };
        let from_range = matches!(entry.mapping.target, Target::PortRange { .. });
        Some(Assignment { entry: key, address, pm_time: entry.mapping.pm_time, from_range })
    }

    /// Returns whether the table still allows an SDP Address that it has assigned (section 7.5.2).
    pub(super) fn is_still_valid(&self, assignment: &Assignment) -> bool {
        let fits = |target: &SocketAddr| target.ip() == assignment.address.ip() || target.ip().is_unspecified();
        let port = assignment.address.port();
        self.entries.get(&assignment.entry).filter(|entry| entry.available).is_some_and(|entry| {
            match &entry.mapping.target {
                Target::Fixed(addresses) => {
                    addresses.iter().any(|it| it.port() == port && fits(it) && !entry.down.contains(it))
                }
                Target::PortRange { at, ports } => {
                    ports.contains(&port) && fits(at) && self.used.contains(&assignment.address)
                }
            }
        })
    }

    /// Releases an SDP Address. Has no effect for a fixed SDP Address.
    pub(super) fn release(&mut self, assignment: &Assignment) {
        if assignment.from_range {
            self.used.remove(&assignment.address);
        }
    }
}
