//! The table of connections, by their ports (addresses and TCP ports of both endpoints) and their
//! network.
//!
//! Connections in different networks may have equal ports, and one connection may be captured in
//! several networks. The [`Path`] of a segment shows its network. The table stores which path
//! belongs to which connection. The caller decides about new paths.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use crate::direction::Direction;
use crate::ip::Segment;
use crate::path::Path;
use crate::stream_id::StreamId;

/// Maximum number of remembered finished connections. The oldest connections are dropped first, and
/// connections with a record last.
const MOST_PAST: usize = 65_536;

/// Maximum number of further paths for the same ports.
const MOST_LANES: usize = 16;

/// If a sequence number differs by more than this distance from the end of a closed connection, it
/// belongs to another connection with the same ports. Retransmissions, and segments sent after a
/// FIN by mistake, are nearer.
pub(crate) const FAR_AFTER_CLOSE: u32 = 1 << 20;

/// The largest window of TCP (RFC 7323 section 2.2). A segment with a greater distance from the
/// known octets belongs to another connection, or follows a gap that is too large to continue the
/// connection.
pub(crate) const FAR: u32 = 1 << 30;

/// Returns whether two sequence numbers differ by more than `most`.
pub(crate) fn is_far(a: u32, b: u32, most: u32) -> bool {
    a.wrapping_sub(b).cast_signed().unsigned_abs() > most
}

fn is_before(a: u32, b: u32) -> bool {
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
pub(crate) enum Located {
    /// The network of the segment, and the connection there. `is_certain` is false while further
    /// segments must show whether the path belongs to this network.
    Known { network: u16, place: Option<Place>, is_certain: bool },
    /// The ports are known, but the path of the segment is not.
    Elsewhere,
}

/// Summary of a connection that has no slot any more. All its units were delivered. Index 0 of the
/// arrays is the direction of its first frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    /// Number of the connection.
    pub(crate) number: StreamId,
    /// Sender of the first frame.
    pub(crate) first: SocketAddr,
    /// Sequence number of the SYN of each direction, if captured.
    pub(crate) isn: [Option<u32>; 2],
    /// Sequence number after the last octet of each direction.
    pub(crate) end: [Option<u32>; 2],
    /// Whether the connection was put aside: it lost its slot while it was open, because of a
    /// memory limit.
    pub(crate) aside: bool,
    /// For a connection that was put aside without a record: the first gap of each direction, as
    /// the sequence numbers of its first octet and of the octet after it.
    pub(crate) missing: [Option<(u32, u32)>; 2],
}

/// The relation of a segment to a connection without a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// The segment has no new octets.
    Nothing,
    /// The segment has octets that were missing when the connection was put aside.
    Late,
    /// The segment is the first of another connection.
    Another,
    /// The segment has new octets of the connection.
    Continues,
}

impl Past {
    pub(crate) fn sees(&self, segment: &Segment<'_>) -> Afterwards {
        let direction = Direction::sent_by(segment.src, self.first);
        if segment.syn {
            return match self.isn[direction] {
                Some(isn) if isn == segment.seq => Afterwards::Nothing,
                None if self.is_answered_by(segment) => Afterwards::Continues,
                _ => Afterwards::Another,
            };
        }
        if segment.wire_len == 0 || segment.rst {
            return Afterwards::Nothing;
        }
        let end = segment.seq.wrapping_add(segment.wire_len);
        let far = if self.aside { FAR } else { FAR_AFTER_CLOSE };
        if self.end[direction].is_some_and(|last| is_far(last, end, far)) {
            return Afterwards::Another;
        }
        let repeated = self.end[direction].is_some_and(|last| last.wrapping_sub(end).cast_signed() >= 0);
        match self.missing[direction] {
            _ if !repeated => Afterwards::Continues,
            Some((first, after)) if is_before(segment.seq, after) && is_before(first, end) => Afterwards::Late,
            _ => Afterwards::Nothing,
        }
    }

    /// Returns whether a segment from another network may belong to this connection: its sequence
    /// and acknowledgement numbers differ by at most `most` from the known numbers.
    pub(crate) fn is_near(&self, segment: &Segment<'_>, most: u32) -> bool {
        let direction = Direction::sent_by(segment.src, self.first);
        let near = |direction: Direction, number: u32| self.end[direction].is_none_or(|end| !is_far(end, number, most));
        let numbers = near(direction, segment.seq) && (!segment.ack_flag || near(direction.peer(), segment.ack));
        (segment.syn || numbers) && self.sees(segment) != Afterwards::Another
    }

    /// Returns whether the segment is the SYN-ACK of a connection that was put aside after its SYN.
    fn is_answered_by(&self, segment: &Segment<'_>) -> bool {
        let direction = Direction::sent_by(segment.src, self.first);
        let acknowledged = self.isn[direction.peer()].map(|isn| isn.wrapping_add(1));
        self.aside && segment.ack_flag && self.end[direction].is_none() && acknowledged == Some(segment.ack)
    }

    /// The sequence number of the SYN of `direction`, if only the SYN was captured in that
    /// direction.
    pub(crate) fn syn_alone(&self, direction: Direction) -> Option<u32> {
        self.isn[direction].filter(|isn| self.end[direction] == Some(isn.wrapping_add(1)))
    }

    /// Returns whether octets of any direction were captured.
    pub(crate) fn has_octets(&self) -> bool {
        Direction::BOTH
            .into_iter()
            .any(|direction| self.end[direction].is_some() && self.syn_alone(direction).is_none())
    }
}

/// The state of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// Open, in this slot.
    Open(usize),
    /// Without a slot.
    Past(Past),
}

/// Whether a finished connection has a record, and the order in which it was closed. The connection
/// with the smallest age is dropped first.
type Age = (bool, u64);

/// A connection: its state, its age, and the path of its first segment.
#[derive(Debug, Clone, Copy)]
struct Entry {
    place: Place,
    age: Age,
    path: Path,
}

/// A further path with the same ports, and its network.
#[derive(Debug)]
struct Lane {
    path: Path,
    network: u16,
    is_certain: bool,
}

/// Finds the open or latest connection with given ports and network. A finished connection may have
/// a record of type `R`.
pub(crate) struct Table<R> {
    places: HashMap<ConnectionKey, Entry>,
    /// Further paths with the same ports. Most ports have a single path.
    lanes: HashMap<Ports, Vec<Lane>>,
    past: BTreeMap<Age, (ConnectionKey, Option<Box<R>>)>,
    /// Number of connections that were closed so far.
    count: u64,
    /// The last result of [`Table::find`], because consecutive segments often belong to one
    /// connection.
    last: Option<(SocketAddr, SocketAddr, Path, u16, usize)>,
    /// Number of stored records. `forgotten` is the number of dropped records.
    records: usize,
    forgotten: u64,
    /// Number of dropped connections with octets that were put aside without a record.
    others_forgotten: u64,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        let (places, lanes, past) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Table { places, lanes, past, count: 0, last: None, records: 0, forgotten: 0, others_forgotten: 0 }
    }
}

impl<R> Table<R> {
    /// Approximate memory in bytes. It assumes that each map has capacity for twice its elements.
    pub(crate) fn memory(&self) -> usize {
        self.places.len() * 2 * size_of::<(ConnectionKey, Entry)>()
            + self.lanes.len() * (2 * size_of::<(Ports, Vec<Lane>)>() + 4 * size_of::<Lane>())
            + self.past.len() * 2 * size_of::<(Age, (ConnectionKey, Option<Box<R>>))>()
            + self.records * size_of::<R>()
    }

    /// Number of dropped records.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Number of dropped connections with octets that were put aside without a record.
    pub(crate) fn others_forgotten(&self) -> u64 {
        self.others_forgotten
    }

    /// Finds the connection by the ports and the path of the segment.
    pub(crate) fn find(&mut self, segment: &Segment<'_>) -> Located {
        let Segment { src: a, dst: b, path, .. } = segment;
        if let Some((src, dst, before, network, slot)) = &self.last
            && (src == a && dst == b || src == b && dst == a)
            && before == path
        {
            return Located::Known { network: *network, place: Some(Place::Open(*slot)), is_certain: true };
        }
        let ports = Ports::of(segment);
        let first = self.places.get(&ConnectionKey { ports, network: 0 });
        let (network, is_certain) = match first {
            Some(entry) if entry.path == *path => (0, true),
            _ => match self.lanes.get(&ports).and_then(|lanes| lanes.iter().find(|lane| lane.path == *path)) {
                Some(lane) => (lane.network, lane.is_certain),
                None if first.is_none() && !self.lanes.contains_key(&ports) => (0, true),
                None => return Located::Elsewhere,
            },
        };
        let place = self.places.get(&ConnectionKey { ports, network }).map(|entry| entry.place);
        if let (Some(Place::Open(slot)), true) = (place, is_certain) {
            self.last = Some((*a, *b, *path, network, slot));
        }
        Located::Known { network, place, is_certain }
    }

    /// The connections with the ports of the segment, each with its network.
    pub(crate) fn networks(&self, segment: &Segment<'_>) -> Vec<(u16, Place)> {
        let ports = Ports::of(segment);
        let place = |network| Some((network, self.places.get(&ConnectionKey { ports, network })?.place));
        (0..=self.highest(ports)).filter_map(place).collect()
    }

    /// Returns whether the connection with the ports of the segment in `network` has no slot, but a
    /// record.
    pub(crate) fn has_record(&self, segment: &Segment<'_>, network: u16) -> bool {
        let key = ConnectionKey { ports: Ports::of(segment), network };
        self.places.get(&key).is_some_and(|entry| matches!(entry.place, Place::Past(_)) && entry.age.0)
    }

    /// The highest network number for `ports`.
    fn highest(&self, ports: Ports) -> u16 {
        let lanes = self.lanes.get(&ports).into_iter().flatten();
        lanes.map(|lane| lane.network).max().unwrap_or(0)
    }

    /// Assigns the path of the segment to `network`.
    pub(crate) fn join(&mut self, segment: &Segment<'_>, network: u16, is_certain: bool) {
        self.last = None;
        let lanes = self.lanes.entry(Ports::of(segment)).or_default();
        match lanes.iter_mut().find(|lane| lane.path == segment.path) {
            Some(lane) => (lane.network, lane.is_certain) = (network, is_certain),
            None => lanes.push(Lane { path: segment.path, network, is_certain }),
        }
    }

    /// Assigns the path of the segment to a new network, and returns its number. Returns `None` if
    /// the ports already have [`MOST_LANES`] further paths.
    pub(crate) fn separate(&mut self, segment: &Segment<'_>) -> Option<u16> {
        let ports = Ports::of(segment);
        let first = ConnectionKey { ports, network: 0 };
        let network = if self.places.contains_key(&first) { self.highest(ports).checked_add(1)? } else { 0 };
        if self.lanes.get(&ports).is_some_and(|lanes| lanes.len() >= MOST_LANES) {
            return None;
        }
        self.join(segment, network, true);
        Some(network)
    }

    /// Stores the connection in `slot` for the given ports and network. Returns the record of the
    /// previous connection, if it has a record.
    pub(crate) fn open(&mut self, (a, b): (SocketAddr, SocketAddr), at: (u16, Path), slot: usize) -> Option<Box<R>> {
        self.last = None;
        let (network, path) = at;
        let key = ConnectionKey { ports: Ports::new(a, b), network };
        let path = self.places.get(&key).map_or(path, |entry| entry.path);
        let before = self.places.insert(key, Entry { place: Place::Open(slot), age: (false, 0), path });
        self.take_record(&before?)
    }

    /// Replaces the open connection with the given ports and network by its summary and record.
    pub(crate) fn close(&mut self, a: SocketAddr, b: SocketAddr, network: u16, past: Past, record: Option<Box<R>>) {
        let key = ConnectionKey { ports: Ports::new(a, b), network };
        self.last = None;
        self.count += 1;
        let age = (record.is_some(), self.count);
        self.records += usize::from(record.is_some());
        let path = self.places.get(&key).map_or_else(Path::default, |entry| entry.path);
        if let Some(before) = self.places.insert(key, Entry { place: Place::Past(past), age, path }) {
            self.take_record(&before);
        }
        self.past.insert(age, (key, record));
        if self.past.len() > MOST_PAST
            && let Some((_, (oldest, record))) = self.past.pop_first()
        {
            self.records -= usize::from(record.is_some());
            let is_other = match self.places.get(&oldest).map(|entry| entry.place) {
                Some(Place::Past(past)) => record.is_none() && past.aside && past.has_octets(),
                Some(Place::Open(_)) | None => false,
            };
            self.forgotten += u64::from(record.is_some());
            self.others_forgotten += u64::from(is_other);
            self.forget(oldest);
        }
    }

    fn forget(&mut self, key: ConnectionKey) {
        self.places.remove(&key);
        if let Some(lanes) = self.lanes.get_mut(&key.ports) {
            lanes.retain(|lane| lane.network != key.network);
            if lanes.is_empty() {
                self.lanes.remove(&key.ports);
            }
        }
    }

    /// Removes and returns the record of a connection that is replaced in the table.
    fn take_record(&mut self, entry: &Entry) -> Option<Box<R>> {
        let Place::Past(_) = entry.place else { return None };
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

    const PAST: Past = Past {
        number: StreamId::FIRST,
        first: SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 1), 1)),
        isn: [Some(100), None],
        end: [Some(5), None],
        aside: false,
        missing: [None; 2],
    };

    #[test]
    fn repetitions_have_nothing_new_across_the_wrap_of_sequence_numbers() {
        assert_eq!(PAST.sees(&octets(u32::MAX - 3, 9)), Afterwards::Nothing);
        assert_eq!(PAST.sees(&octets(u32::MAX - 3, 10)), Afterwards::Continues);
        assert_eq!(PAST.sees(&octets(90, 0)), Afterwards::Nothing);
        assert_eq!(PAST.sees(&Segment { rst: true, ..octets(90, 1) }), Afterwards::Nothing);
        assert_eq!(PAST.sees(&syn(100)), Afterwards::Nothing);
        assert_eq!(PAST.sees(&syn(101)), Afterwards::Another);
    }

    #[test]
    fn octets_that_were_missing_come_late() {
        let past = Past { end: [Some(100), None], aside: true, missing: [Some((20, 30)), None], ..PAST };
        for (seq, len, expected) in [
            (15, 5, Afterwards::Nothing),
            (15, 6, Afterwards::Late),
            (29, 1, Afterwards::Late),
            (30, 70, Afterwards::Nothing),
            (10, 91, Afterwards::Continues),
        ] {
            assert_eq!(past.sees(&octets(seq, len)), expected, "{seq} {len}");
        }
        // Sequence numbers wrap from 2^32 - 1 to 0.
        let past = Past { missing: [Some((u32::MAX - 1, 2)), None], ..past };
        assert_eq!(past.sees(&octets(u32::MAX - 3, 2)), Afterwards::Nothing);
        assert_eq!(past.sees(&octets(u32::MAX - 3, 3)), Afterwards::Late);
        assert_eq!(past.sees(&octets(1, 9)), Afterwards::Late);
    }

    #[test]
    fn octets_with_numbers_far_away_are_of_another_connection() {
        assert_eq!(PAST.sees(&octets(5, FAR_AFTER_CLOSE)), Afterwards::Continues);
        assert_eq!(PAST.sees(&octets(6, FAR_AFTER_CLOSE)), Afterwards::Another);
        assert_eq!(PAST.sees(&octets(5_u32.wrapping_sub(2 * FAR_AFTER_CLOSE), 1)), Afterwards::Another);
    }

    #[test]
    fn a_direction_of_which_nothing_was_captured_goes_on_with_any_octets() {
        let forth = octets(1, 1);
        let back = Segment { src: forth.dst, dst: forth.src, ..forth };
        assert_eq!(PAST.sees(&back), Afterwards::Continues);
    }

    #[test]
    fn the_answer_to_a_syn_goes_on_if_the_connection_was_put_aside() {
        let back = |seq, ack| {
            let Segment { src, dst, .. } = syn(seq);
            Segment { src: dst, dst: src, ack_flag: true, ack, ..syn(seq) }
        };
        let aside = Past { end: [Some(101), None], aside: true, ..PAST };
        assert_eq!(aside.sees(&back(7, 101)), Afterwards::Continues);
        assert_eq!(aside.sees(&back(7, 102)), Afterwards::Another);
        assert_eq!(Past { aside: false, ..aside }.sees(&back(7, 101)), Afterwards::Another);
        assert_eq!(
            (aside.syn_alone(Direction::Forward), aside.has_octets(), PAST.has_octets()),
            (Some(100), false, true)
        );
    }

    #[test]
    fn connections_with_a_record_are_forgotten_last() {
        let mut table = Table::default();
        let to = |n: usize| SocketAddr::from(([10, 1, (n >> 16) as u8, 2], (n & 0xffff) as u16));
        for n in 0..=MOST_PAST {
            table.close(PAST.first, to(n), 0, PAST, (n < 2).then(|| Box::new(n)));
        }
        assert_eq!((table.records, table.forgotten()), (2, 0));
        assert_eq!(table.open((PAST.first, to(0)), (0, Path::default()), 9).as_deref(), Some(&0));
        assert!(table.open((PAST.first, to(2)), (0, Path::default()), 9).is_none());
        for n in 0..=MOST_PAST {
            table.close(to(n), PAST.first, 0, PAST, Some(Box::new(n)));
        }
        assert_eq!((table.records, table.forgotten()), (MOST_PAST, 1));
    }

    #[test]
    fn paths_lead_to_networks_until_these_are_forgotten() {
        let mut table = Table::<()>::default();
        let on = |interface| Segment { path: Path::on(interface), ..octets(1, 1) };
        let Segment { src, dst, .. } = on(0);
        let slot = |table: &mut Table<()>, interface| match table.find(&on(interface)) {
            Located::Known { place: Some(Place::Open(slot)), is_certain, .. } => Some((slot, is_certain)),
            Located::Known { place: Some(Place::Past(_)) | None, .. } | Located::Elsewhere => None,
        };
        table.open((src, dst), (0, on(0).path), 10);
        assert!(matches!(table.find(&on(1)), Located::Elsewhere));
        table.join(&on(1), 0, false);
        assert_eq!(table.separate(&on(2)), Some(1));
        table.open((src, dst), (1, on(2).path), 11);
        let found = [0, 1, 2].map(|interface| slot(&mut table, interface));
        assert_eq!(found, [Some((10, true)), Some((10, false)), Some((11, true))]);
        // A path that was joined without certainty turns out to be another network.
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
        for n in 0..=MOST_PAST {
            table.close(PAST.first, far(n), 0, Past { number: u32::try_from(n).unwrap().into(), ..PAST }, None);
        }
        let mut number = |n| match table.find(&Segment { src: PAST.first, dst: far(n), ..octets(0, 0) }) {
            Located::Known { place: Some(Place::Past(past)), .. } => Some(past.number),
            _ => None,
        };
        assert_eq!((number(0), number(1), number(MOST_PAST)), (None, Some(1.into()), Some(65_536.into())));
        assert_eq!(table.others_forgotten(), 0);
        let aside = Past { aside: true, ..PAST };
        let syn = Past { end: [Some(101), None], ..aside };
        assert!(aside.has_octets() && !syn.has_octets());
        for n in 0..=MOST_PAST {
            table.close(far(n), far(0), 0, if n < 2 { aside } else { syn }, None);
        }
        assert_eq!(table.others_forgotten(), 1);
    }
}
