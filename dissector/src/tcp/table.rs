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

use crate::direction::Direction;
use crate::ip::Segment;
use crate::path::Path;
use crate::stream_id::StreamId;

/// Maximum number of stored connections without a slot. Connections without a record are dropped
/// before connections with a record. In each of these two groups, the oldest connection is dropped
/// first.
const MAX_PAST: usize = 65_536;

/// Maximum number of further paths for the same ports, in addition to the path of the first
/// connection.
const MAX_PATHS: usize = 16;

/// If a sequence number differs by more than this distance from the end of a closed connection, it
/// belongs to another connection with the same ports. Retransmissions have a smaller distance.
/// Segments that an endpoint sends after its FIN by mistake also have a smaller distance.
pub(crate) const FAR_AFTER_CLOSE: u32 = 1 << 20;

/// The size of the largest TCP window (RFC 7323 section 2.2). If the distance between a segment and
/// the known octets is greater, the segment belongs to another connection, or the gap is too large
/// to continue the connection.
pub(crate) const FAR: u32 = 1 << 30;

/// Returns whether two sequence numbers differ by more than `most`.
pub(crate) fn is_far(a: u32, b: u32, most: u32) -> bool {
    a.wrapping_sub(b).cast_signed().unsigned_abs() > most
}

/// Returns whether sequence number `a` is before `b`, modulo 2^32.
pub(crate) fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

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

/// Summary of a connection that has no slot any more. All its units were delivered. In the arrays,
/// index 0 is the direction of the first frame of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionSummary {
    /// Number of the connection.
    pub(crate) number: StreamId,
    /// Sender of the first frame.
    pub(crate) first: SocketAddr,
    /// Sequence number of the SYN of each direction, if captured.
    pub(crate) isn: [Option<u32>; 2],
    /// Sequence number after the last octet of each direction.
    pub(crate) end: [Option<u32>; 2],
    /// Whether the connection was evicted: it lost its slot while it was open, because of a
    /// memory limit.
    pub(crate) evicted: bool,
    /// The first gap of each direction, if the connection was evicted without a record. A gap has
    /// two sequence numbers: of its first octet, and of the octet after the gap.
    pub(crate) missing: [Option<(u32, u32)>; 2],
}

/// The relation of a segment to a connection without a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentClass {
    /// The segment has no new octets.
    NothingNew,
    /// The segment has octets that were missing when the connection was evicted.
    Late,
    /// The segment is the first segment of another connection.
    NewConnection,
    /// The segment has new octets of the connection.
    Continues,
}

impl ConnectionSummary {
    pub(crate) fn classify(&self, segment: &Segment<'_>) -> SegmentClass {
        let direction = Direction::sent_by(segment.src, self.first);
        if segment.syn {
            return match self.isn[direction] {
                Some(isn) if isn == segment.seq => SegmentClass::NothingNew,
                None if self.is_answered_by(segment) => SegmentClass::Continues,
                _ => SegmentClass::NewConnection,
            };
        }
        if segment.wire_len == 0 || segment.rst {
            return SegmentClass::NothingNew;
        }
        let end = segment.seq.wrapping_add(segment.wire_len);
        let far = if self.evicted { FAR } else { FAR_AFTER_CLOSE };
        if self.end[direction].is_some_and(|last| is_far(last, end, far)) {
            return SegmentClass::NewConnection;
        }
        let repeated = self.end[direction].is_some_and(|last| !before(last, end));
        match self.missing[direction] {
            _ if !repeated => SegmentClass::Continues,
            Some((first, after)) if before(segment.seq, after) && before(first, end) => SegmentClass::Late,
            _ => SegmentClass::NothingNew,
        }
    }

    /// Returns whether a segment from another network possibly belongs to this connection. A SYN
    /// must repeat the SYN of its direction, or answer the SYN of the other direction. For other
    /// segments, the sequence and acknowledgement numbers must be close to the known numbers. They
    /// may differ by at most `most`.
    pub(crate) fn is_near(&self, segment: &Segment<'_>, most: u32) -> bool {
        let direction = Direction::sent_by(segment.src, self.first);
        let near = |direction: Direction, number: u32| self.end[direction].is_none_or(|end| !is_far(end, number, most));
        let numbers = near(direction, segment.seq) && (!segment.ack_flag || near(direction.peer(), segment.ack));
        (segment.syn || numbers) && self.classify(segment) != SegmentClass::NewConnection
    }

    /// Returns whether the segment is the SYN-ACK of a connection that was evicted after its SYN.
    fn is_answered_by(&self, segment: &Segment<'_>) -> bool {
        let direction = Direction::sent_by(segment.src, self.first);
        let acknowledged = self.isn[direction.peer()].map(|isn| isn.wrapping_add(1));
        self.evicted && segment.ack_flag && self.end[direction].is_none() && acknowledged == Some(segment.ack)
    }

    /// The sequence number of the SYN of `direction`, if only the SYN was captured in that
    /// direction.
    pub(crate) fn syn_alone(&self, direction: Direction) -> Option<u32> {
        self.isn[direction].filter(|isn| self.end[direction] == Some(isn.wrapping_add(1)))
    }

    /// Returns whether octets of at least one direction were captured.
    pub(crate) fn has_octets(&self) -> bool {
        Direction::BOTH
            .into_iter()
            .any(|direction| self.end[direction].is_some() && self.syn_alone(direction).is_none())
    }
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
    use super::super::testing::{segment, syn};
    use super::*;

    fn octets(seq: u32, wire_len: u32) -> Segment<'static> {
        Segment { wire_len, ..segment(seq, &[]) }
    }

    const PAST: ConnectionSummary = ConnectionSummary {
        number: StreamId::FIRST,
        first: SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 1), 1)),
        isn: [Some(100), None],
        end: [Some(5), None],
        evicted: false,
        missing: [None; 2],
    };

    #[test]
    fn repetitions_have_nothing_new_across_the_wrap_of_sequence_numbers() {
        assert_eq!(PAST.classify(&octets(u32::MAX - 3, 9)), SegmentClass::NothingNew);
        assert_eq!(PAST.classify(&octets(u32::MAX - 3, 10)), SegmentClass::Continues);
        assert_eq!(PAST.classify(&octets(90, 0)), SegmentClass::NothingNew);
        assert_eq!(PAST.classify(&Segment { rst: true, ..octets(90, 1) }), SegmentClass::NothingNew);
        assert_eq!(PAST.classify(&syn(100)), SegmentClass::NothingNew);
        assert_eq!(PAST.classify(&syn(101)), SegmentClass::NewConnection);
    }

    #[test]
    fn octets_that_were_missing_come_late() {
        let past = ConnectionSummary { end: [Some(100), None], evicted: true, missing: [Some((20, 30)), None], ..PAST };
        for (seq, len, expected) in [
            (15, 5, SegmentClass::NothingNew),
            (15, 6, SegmentClass::Late),
            (29, 1, SegmentClass::Late),
            (30, 70, SegmentClass::NothingNew),
            (10, 91, SegmentClass::Continues),
        ] {
            assert_eq!(past.classify(&octets(seq, len)), expected, "{seq} {len}");
        }
        // Sequence numbers wrap from 2^32 - 1 to 0.
        let past = ConnectionSummary { missing: [Some((u32::MAX - 1, 2)), None], ..past };
        assert_eq!(past.classify(&octets(u32::MAX - 3, 2)), SegmentClass::NothingNew);
        assert_eq!(past.classify(&octets(u32::MAX - 3, 3)), SegmentClass::Late);
        assert_eq!(past.classify(&octets(1, 9)), SegmentClass::Late);
    }

    #[test]
    fn octets_with_numbers_far_away_are_of_another_connection() {
        assert_eq!(PAST.classify(&octets(5, FAR_AFTER_CLOSE)), SegmentClass::Continues);
        assert_eq!(PAST.classify(&octets(6, FAR_AFTER_CLOSE)), SegmentClass::NewConnection);
        assert_eq!(PAST.classify(&octets(5_u32.wrapping_sub(2 * FAR_AFTER_CLOSE), 1)), SegmentClass::NewConnection);
    }

    #[test]
    fn a_direction_of_which_nothing_was_captured_goes_on_with_any_octets() {
        let forth = octets(1, 1);
        let back = Segment { src: forth.dst, dst: forth.src, ..forth };
        assert_eq!(PAST.classify(&back), SegmentClass::Continues);
    }

    #[test]
    fn the_answer_to_a_syn_continues_an_evicted_connection() {
        let back = |seq, ack| {
            let Segment { src, dst, .. } = syn(seq);
            Segment { src: dst, dst: src, ack_flag: true, ack, ..syn(seq) }
        };
        let evicted = ConnectionSummary { end: [Some(101), None], evicted: true, ..PAST };
        assert_eq!(evicted.classify(&back(7, 101)), SegmentClass::Continues);
        assert_eq!(evicted.classify(&back(7, 102)), SegmentClass::NewConnection);
        let closed = ConnectionSummary { evicted: false, ..evicted };
        assert_eq!(closed.classify(&back(7, 101)), SegmentClass::NewConnection);
        assert_eq!(
            (evicted.syn_alone(Direction::Forward), evicted.has_octets(), PAST.has_octets()),
            (Some(100), false, true)
        );
    }

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
