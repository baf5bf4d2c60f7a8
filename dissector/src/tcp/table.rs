//! The table of connections. The key is the ports (the addresses and TCP ports of both endpoints)
//! and the network.
//!
//! Connections in different networks can have equal ports. One connection can also be captured in
//! several networks. The [`Path`] of a segment shows its network. The table stores which path
//! belongs to which connection. The caller decides to which connection a new path belongs. The
//! caller also has a slot for the full state of each open connection. If a connection loses its
//! slot, the table stores a summary of the connection, and a record if the caller supplies one.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use foldhash::HashMap;

use super::connection_summary::ConnectionSummary;
use crate::ip::Segment;
use crate::path::Path;

/// Maximum number of stored connections without a slot. Connections without a record are dropped
/// before connections with a record. In each of these two groups, the oldest connection is dropped
/// first.
const MAX_PAST: usize = 65_536;

/// Maximum number of further paths for the same ports, in addition to the path of the first
/// connection.
const MAX_PATHS: usize = 16;

/// The two endpoints of a connection. The smaller address comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Ports(SocketAddr, SocketAddr);

impl Ports {
    fn new(a: SocketAddr, b: SocketAddr) -> Self {
        if a <= b { Ports(a, b) } else { Ports(b, a) }
    }

    fn of(segment: &Segment<'_>) -> Self {
        Ports::new(segment.src, segment.dst)
    }
}

/// Ports, and a network number that distinguishes connections with the same ports in different
/// networks. The first network has number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ConnectionKey {
    ports: Ports,
    network: u16,
}

/// The result of [`Table::find`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lookup {
    /// The network of the segment, and the connection in this network. If `is_certain` is false,
    /// only further segments can show whether the path belongs to this network.
    Known { network: u16, connection: Option<TrackedConnection>, is_certain: bool },
    /// The ports are known, but the path of the segment is not known.
    UnknownPath,
}

/// The state of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TrackedConnection {
    /// The connection is open, and has this slot.
    Open(usize),
    /// The connection has no slot any more.
    Past(ConnectionSummary),
}

/// The order in which connections without a slot are dropped: the connection with the smallest
/// value is dropped first. The first part is whether the connection has a record. The second part
/// is its position in the order in which connections lost their slots.
type Age = (bool, u64);

/// A connection: its state, its age, and the path of its first segment.
#[derive(Debug, Clone, Copy)]
struct Entry {
    connection: TrackedConnection,
    age: Age,
    path: Path,
}

/// A further path on which segments with known ports were captured, and the network of this path.
#[derive(Debug)]
struct KnownPath {
    path: Path,
    network: u16,
    is_certain: bool,
}

/// Finds a connection by its ports and its network. If several connections had these ports, finds
/// the open or the latest connection. A connection without a slot can have a record of type `R`.
pub(crate) struct Table<R> {
    connections: HashMap<ConnectionKey, Entry>,
    /// For each pair of ports: further paths on which their segments were captured. For most
    /// connections, there is only one path, and no entry here.
    paths: HashMap<Ports, Vec<KnownPath>>,
    past: BTreeMap<Age, (ConnectionKey, Option<Box<R>>)>,
    /// Number of connections that have lost their slots so far.
    count: u64,
    /// The last result of [`Table::find`]. This result is stored because consecutive segments often
    /// belong to the same connection.
    last: Option<(SocketAddr, SocketAddr, Path, u16, usize)>,
    /// Number of stored records. `forgotten` is the number of dropped records.
    records: usize,
    pub(crate) forgotten: u64,
    /// Number of dropped connections that had octets, and were evicted without a record.
    pub(crate) others_forgotten: u64,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        let (connections, paths, past) = (HashMap::default(), HashMap::default(), BTreeMap::new());
        Table { connections, paths, past, count: 0, last: None, records: 0, forgotten: 0, others_forgotten: 0 }
    }
}

impl<R> Table<R> {
    /// Approximate memory in bytes. The calculation assumes that each map has capacity for twice
    /// its elements.
    pub(crate) fn memory(&self) -> usize {
        self.connections.len() * 2 * size_of::<(ConnectionKey, Entry)>()
            + self.paths.len() * (2 * size_of::<(Ports, Vec<KnownPath>)>() + 4 * size_of::<KnownPath>())
            + self.past.len() * 2 * size_of::<(Age, (ConnectionKey, Option<Box<R>>))>()
            + self.records * size_of::<R>()
    }

    /// Finds the connection by the ports and the path of the segment.
    pub(crate) fn find(&mut self, segment: &Segment<'_>) -> Lookup {
        let Segment { src: a, dst: b, path, .. } = segment;
        if let Some((src, dst, before, network, slot)) = &self.last
            && (src == a && dst == b || src == b && dst == a)
            && before == path
        {
            return Lookup::Known {
                network: *network,
                connection: Some(TrackedConnection::Open(*slot)),
                is_certain: true,
            };
        }
        let ports = Ports::of(segment);
        let first = self.connections.get(&ConnectionKey { ports, network: 0 });
        let (network, is_certain) = match first {
            Some(entry) if entry.path == *path => (0, true),
            _ => match self.paths.get(&ports).and_then(|paths| paths.iter().find(|known| known.path == *path)) {
                Some(known) => (known.network, known.is_certain),
                None if first.is_none() && !self.paths.contains_key(&ports) => (0, true),
                None => return Lookup::UnknownPath,
            },
        };
        let connection = self.connections.get(&ConnectionKey { ports, network }).map(|entry| entry.connection);
        if let (Some(TrackedConnection::Open(slot)), true) = (connection, is_certain) {
            self.last = Some((*a, *b, *path, network, slot));
        }
        Lookup::Known { network, connection, is_certain }
    }

    /// The connections with the ports of the segment, each with its network.
    pub(crate) fn networks(&self, segment: &Segment<'_>) -> Vec<(u16, TrackedConnection)> {
        let ports = Ports::of(segment);
        let connection = |network| Some((network, self.connections.get(&ConnectionKey { ports, network })?.connection));
        (0..=self.highest(ports)).filter_map(connection).collect()
    }

    /// Returns whether the connection with the ports of the segment in `network` has no slot any
    /// more, but has a record.
    pub(crate) fn has_record(&self, segment: &Segment<'_>, network: u16) -> bool {
        let key = ConnectionKey { ports: Ports::of(segment), network };
        self.connections
            .get(&key)
            .is_some_and(|entry| matches!(entry.connection, TrackedConnection::Past(_)) && entry.age.0)
    }

    /// The highest network number for `ports`.
    fn highest(&self, ports: Ports) -> u16 {
        let paths = self.paths.get(&ports).into_iter().flatten();
        paths.map(|known| known.network).max().unwrap_or(0)
    }

    /// Assigns the path of the segment to `network`.
    pub(crate) fn join(&mut self, segment: &Segment<'_>, network: u16, is_certain: bool) {
        self.last = None;
        let paths = self.paths.entry(Ports::of(segment)).or_default();
        match paths.iter_mut().find(|known| known.path == segment.path) {
            Some(known) => (known.network, known.is_certain) = (network, is_certain),
            None => paths.push(KnownPath { path: segment.path, network, is_certain }),
        }
    }

    /// Assigns the path of the segment to a new network, and returns the network's number. Returns
    /// `None` if the ports already have [`MAX_PATHS`] further paths.
    pub(crate) fn separate(&mut self, segment: &Segment<'_>) -> Option<u16> {
        let ports = Ports::of(segment);
        let first = ConnectionKey { ports, network: 0 };
        let network = if self.connections.contains_key(&first) { self.highest(ports).checked_add(1)? } else { 0 };
        if self.paths.get(&ports).is_some_and(|paths| paths.len() >= MAX_PATHS) {
            return None;
        }
        self.join(segment, network, true);
        Some(network)
    }

    /// Stores that the connection in `slot` has the given ports and network. If the previous
    /// connection with these ports and network has a record, returns the record.
    pub(crate) fn open(&mut self, (a, b): (SocketAddr, SocketAddr), at: (u16, Path), slot: usize) -> Option<Box<R>> {
        self.last = None;
        let (network, path) = at;
        let key = ConnectionKey { ports: Ports::new(a, b), network };
        let path = self.connections.get(&key).map_or(path, |entry| entry.path);
        let before =
            self.connections.insert(key, Entry { connection: TrackedConnection::Open(slot), age: (false, 0), path });
        self.take_record(&before?)
    }

    /// Stores that the open connection between `a` and `b` in `network` has lost its slot. From now
    /// on, the table has the summary `past` and the record of this connection.
    pub(crate) fn close(
        &mut self,
        a: SocketAddr,
        b: SocketAddr,
        network: u16,
        past: ConnectionSummary,
        record: Option<Box<R>>,
    ) {
        let key = ConnectionKey { ports: Ports::new(a, b), network };
        self.last = None;
        self.count += 1;
        let age = (record.is_some(), self.count);
        self.records += usize::from(record.is_some());
        let path = self.connections.get(&key).map_or_else(Path::default, |entry| entry.path);
        if let Some(before) =
            self.connections.insert(key, Entry { connection: TrackedConnection::Past(past), age, path })
        {
            self.take_record(&before);
        }
        self.past.insert(age, (key, record));
        if self.past.len() > MAX_PAST
            && let Some((_, (oldest, record))) = self.past.pop_first()
        {
            self.records -= usize::from(record.is_some());
            let is_other = match self.connections.get(&oldest).map(|entry| entry.connection) {
                Some(TrackedConnection::Past(past)) => record.is_none() && past.evicted && past.has_octets(),
                Some(TrackedConnection::Open(_)) | None => false,
            };
            self.forgotten += u64::from(record.is_some());
            self.others_forgotten += u64::from(is_other);
            self.forget(oldest);
        }
    }

    fn forget(&mut self, key: ConnectionKey) {
        self.connections.remove(&key);
        if let Some(paths) = self.paths.get_mut(&key.ports) {
            paths.retain(|known| known.network != key.network);
            if paths.is_empty() {
                self.paths.remove(&key.ports);
            }
        }
    }

    /// Removes and returns the record of `entry`. Another connection has replaced `entry` in the
    /// table.
    fn take_record(&mut self, entry: &Entry) -> Option<Box<R>> {
        let TrackedConnection::Past(_) = entry.connection else { return None };
        let record = self.past.remove(&entry.age)?.1;
        self.records -= usize::from(record.is_some());
        record
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PAST, octets};
    use super::*;

    #[test]
    fn connections_with_a_record_are_forgotten_last() {
        let mut table = Table::default();
        let to = |n: usize| SocketAddr::from(([10, 1, (n >> 16) as u8, 2], (n & 0xffff) as u16));
        for n in 0..=MAX_PAST {
            table.close(PAST.first, to(n), 0, PAST, (n < 2).then(|| Box::new(n)));
        }
        assert_eq!((table.records, table.forgotten), (2, 0));
        assert_eq!(table.open((PAST.first, to(0)), (0, Path::default()), 9).as_deref(), Some(&0));
        assert!(table.open((PAST.first, to(2)), (0, Path::default()), 9).is_none());
        for n in 0..=MAX_PAST {
            table.close(to(n), PAST.first, 0, PAST, Some(Box::new(n)));
        }
        assert_eq!((table.records, table.forgotten), (MAX_PAST, 1));
    }

    #[test]
    fn paths_lead_to_networks_until_these_are_forgotten() {
        let mut table = Table::<()>::default();
        let on = |interface| Segment { path: Path::on(interface), ..octets(1, 1) };
        let Segment { src, dst, .. } = on(0);
        let slot = |table: &mut Table<()>, interface| match table.find(&on(interface)) {
            Lookup::Known { connection: Some(TrackedConnection::Open(slot)), is_certain, .. } => {
                Some((slot, is_certain))
            }
            Lookup::Known { connection: Some(TrackedConnection::Past(_)) | None, .. } | Lookup::UnknownPath => None,
        };
        table.open((src, dst), (0, on(0).path), 10);
        assert!(matches!(table.find(&on(1)), Lookup::UnknownPath));
        table.join(&on(1), 0, false);
        assert_eq!(table.separate(&on(2)), Some(1));
        table.open((src, dst), (1, on(2).path), 11);
        let found = [0, 1, 2].map(|interface| slot(&mut table, interface));
        assert_eq!(found, [Some((10, true)), Some((10, false)), Some((11, true))]);
        // A path was assigned to a network without certainty. Now it turns out that the path
        // belongs to another network.
        assert_eq!(table.separate(&on(1)), Some(2));
        assert_eq!(table.networks(&on(9)).len(), 2);
        table.close(src, dst, 0, PAST, None);
        table.forget(ConnectionKey { ports: Ports::new(src, dst), network: 0 });
        assert_eq!([0, 2].map(|interface| slot(&mut table, interface)), [None, Some((11, true))]);
        assert_eq!(table.separate(&on(0)), Some(0));
        (3..30).for_each(|interface| _ = table.separate(&on(interface)));
        assert_eq!(table.separate(&on(40)), None);
    }

    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let mut table = Table::<()>::default();
        let far = |n: usize| SocketAddr::from(([10, 1, (n >> 16) as u8, 2], (n & 0xffff) as u16));
        for n in 0..=MAX_PAST {
            table.close(
                PAST.first,
                far(n),
                0,
                ConnectionSummary { number: u32::try_from(n).unwrap().into(), ..PAST },
                None,
            );
        }
        let mut number = |n| match table.find(&Segment { src: PAST.first, dst: far(n), ..octets(0, 0) }) {
            Lookup::Known { connection: Some(TrackedConnection::Past(past)), .. } => Some(past.number),
            _ => None,
        };
        assert_eq!((number(0), number(1), number(MAX_PAST)), (None, Some(1.into()), Some(65_536.into())));
        assert_eq!(table.others_forgotten, 0);
        let evicted = ConnectionSummary { evicted: true, ..PAST };
        let syn = ConnectionSummary { end: [Some(101), None], ..evicted };
        assert!(evicted.has_octets() && !syn.has_octets());
        for n in 0..=MAX_PAST {
            table.close(far(n), far(0), 0, if n < 2 { evicted } else { syn }, None);
        }
        assert_eq!(table.others_forgotten, 1);
    }
}
