//! Which connection a segment belongs to. Connections are numbered from 0 by their first frame.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use crate::ip::Segment;

/// Connections that are over and still remembered; the oldest is forgotten first, those with a record last.
const MOST_PAST: usize = 65_536;

/// Sequence numbers that are so far from the end of a connection that is closed are of another one with the same ports. What
/// its ends repeat, or send behind a FIN by mistake, is nearer.
pub(crate) const FAR_BEHIND_CLOSE: u32 = 1 << 20;

/// The largest window of TCP (RFC 7323 section 2.2): a segment that is farther from the octets before it is of another connection,
/// or behind so many missing ones that nothing joins them.
pub(crate) const FAR: u32 = 1 << 30;

/// Are two sequence numbers more than `most` apart?
pub(crate) fn is_far(a: u32, b: u32, most: u32) -> bool {
    a.wrapping_sub(b).cast_signed().unsigned_abs() > most
}

/// The two ends of a connection, in an order of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ConnectionKey(SocketAddr, SocketAddr);

impl ConnectionKey {
    fn new(a: SocketAddr, b: SocketAddr) -> Self {
        if a <= b { ConnectionKey(a, b) } else { ConnectionKey(b, a) }
    }
}

/// What is remembered of a connection that was handed out to its end. Index 0 is the sender of its first frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    /// Its number.
    pub(crate) number: u32,
    /// Who sent its first frame.
    pub(crate) first: SocketAddr,
    /// Sequence number of each SYN, where captured.
    pub(crate) isn: [Option<u32>; 2],
    /// Sequence number behind the last octet of each direction.
    pub(crate) end: [Option<u32>; 2],
    /// Was it put aside while it was open, because there was no room?
    pub(crate) aside: bool,
}

/// What a segment is to a connection that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// Nothing new: a repetition, or no octets.
    Nothing,
    /// The first segment of another connection.
    Another,
    /// Octets that the connection did not have.
    Continues,
}

impl Past {
    pub(crate) fn sees(&self, segment: &Segment<'_>) -> Afterwards {
        let direction = usize::from(segment.src != self.first);
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
        let far = if self.aside { FAR } else { FAR_BEHIND_CLOSE };
        if self.end[direction].is_some_and(|last| is_far(last, end, far)) {
            return Afterwards::Another;
        }
        let repeated = self.end[direction].is_some_and(|last| last.wrapping_sub(end).cast_signed() >= 0);
        if repeated { Afterwards::Nothing } else { Afterwards::Continues }
    }

    /// Is the segment the SYN-ACK of a connection that was put aside behind its SYN?
    fn is_answered_by(&self, segment: &Segment<'_>) -> bool {
        let direction = usize::from(segment.src != self.first);
        let acknowledged = self.isn[1 - direction].map(|isn| isn.wrapping_add(1));
        self.aside && segment.ack_flag && self.end[direction].is_none() && acknowledged == Some(segment.ack)
    }

    /// The sequence number of the SYN of `direction` if that is all that was captured of it.
    pub(crate) fn syn_alone(&self, direction: usize) -> Option<u32> {
        self.isn[direction].filter(|isn| self.end[direction] == Some(isn.wrapping_add(1)))
    }

    /// Were octets of either direction captured?
    pub(crate) fn has_octets(&self) -> bool {
        (0..2).any(|direction| self.end[direction].is_some() && self.syn_alone(direction).is_none())
    }
}

/// Where a connection is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// Being read, in this slot.
    Open(usize),
    /// Over.
    Past(Past),
}

/// Does a connection that is over have a record, and when was it closed? The smallest is forgotten first.
type Age = (bool, u64);

/// Finds the present or last connection of a port pair. A connection that is over may have a record of type `R`.
pub(crate) struct Table<R> {
    places: HashMap<ConnectionKey, (Place, Age)>,
    past: BTreeMap<Age, (ConnectionKey, Option<Box<R>>)>,
    /// Connections that were closed here so far.
    count: u64,
    /// The last answer: segments of one connection come in rows.
    last: Option<(SocketAddr, SocketAddr, usize)>,
    /// Records that are kept, and those that were forgotten.
    records: usize,
    forgotten: u64,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Table { places: HashMap::new(), past: BTreeMap::new(), count: 0, last: None, records: 0, forgotten: 0 }
    }
}

impl<R> Table<R> {
    /// Bytes, about. The map has room for twice as many as it holds.
    pub(crate) fn memory(&self) -> usize {
        self.places.len() * 2 * size_of::<(ConnectionKey, (Place, Age))>()
            + self.past.len() * 2 * size_of::<(Age, (ConnectionKey, Option<Box<R>>))>()
            + self.records * size_of::<R>()
    }

    /// How many records were forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The connection of the segment's ports.
    pub(crate) fn find(&mut self, segment: &Segment<'_>) -> Option<Place> {
        let Segment { src: a, dst: b, .. } = segment;
        if let Some((src, dst, slot)) = &self.last
            && (src == a && dst == b || src == b && dst == a)
        {
            return Some(Place::Open(*slot));
        }
        let (place, _) = *self.places.get(&ConnectionKey::new(*a, *b))?;
        if let Place::Open(slot) = place {
            self.last = Some((*a, *b, slot));
        }
        Some(place)
    }

    /// From now on these ports mean the connection in `slot`. Returns the record of the one before.
    pub(crate) fn open(&mut self, a: SocketAddr, b: SocketAddr, slot: usize) -> Option<Box<R>> {
        self.last = Some((a, b, slot));
        let before = self.places.insert(ConnectionKey::new(a, b), (Place::Open(slot), (false, 0)));
        self.take_record(before?)
    }

    /// The connection of these ports, which is open, is over.
    pub(crate) fn close(&mut self, a: SocketAddr, b: SocketAddr, past: Past, record: Option<Box<R>>) {
        let key = ConnectionKey::new(a, b);
        self.last = None;
        self.count += 1;
        let age = (record.is_some(), self.count);
        self.records += usize::from(record.is_some());
        if let Some(before) = self.places.insert(key, (Place::Past(past), age)) {
            self.take_record(before);
        }
        self.past.insert(age, (key, record));
        if self.past.len() > MOST_PAST
            && let Some((_, (oldest, record))) = self.past.pop_first()
        {
            self.records -= usize::from(record.is_some());
            self.forgotten += u64::from(record.is_some());
            self.places.remove(&oldest);
        }
    }

    /// The record of a connection that is over, and whose place is given to another.
    fn take_record(&mut self, (place, age): (Place, Age)) -> Option<Box<R>> {
        let Place::Past(_) = place else { return None };
        let record = self.past.remove(&age)?.1;
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
        number: 7,
        first: SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 1), 1)),
        isn: [Some(100), None],
        end: [Some(5), None],
        aside: false,
    };

    #[test]
    fn repetitions_say_nothing_new_across_the_wrap_of_sequence_numbers() {
        assert_eq!(PAST.sees(&octets(u32::MAX - 3, 9)), Afterwards::Nothing);
        assert_eq!(PAST.sees(&octets(u32::MAX - 3, 10)), Afterwards::Continues);
        assert_eq!(PAST.sees(&octets(90, 0)), Afterwards::Nothing);
        assert_eq!(PAST.sees(&Segment { rst: true, ..octets(90, 1) }), Afterwards::Nothing);
        assert_eq!(PAST.sees(&syn(100)), Afterwards::Nothing);
        assert_eq!(PAST.sees(&syn(101)), Afterwards::Another);
    }

    #[test]
    fn octets_with_numbers_far_away_are_of_another_connection() {
        assert_eq!(PAST.sees(&octets(5, FAR_BEHIND_CLOSE)), Afterwards::Continues);
        assert_eq!(PAST.sees(&octets(6, FAR_BEHIND_CLOSE)), Afterwards::Another);
        assert_eq!(PAST.sees(&octets(5_u32.wrapping_sub(2 * FAR_BEHIND_CLOSE), 1)), Afterwards::Another);
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
        assert_eq!((aside.syn_alone(0), aside.has_octets(), PAST.has_octets()), (Some(100), false, true));
    }

    #[test]
    fn connections_with_a_record_are_forgotten_last() {
        let mut table = Table::default();
        let to = |n: usize| SocketAddr::from(([10, 1, (n >> 16) as u8, 2], (n & 0xffff) as u16));
        for n in 0..=MOST_PAST {
            table.close(PAST.first, to(n), PAST, (n < 2).then(|| Box::new(n)));
        }
        assert_eq!((table.records, table.forgotten()), (2, 0));
        assert_eq!(table.open(PAST.first, to(0), 9).as_deref(), Some(&0));
        assert!(table.open(PAST.first, to(2), 9).is_none());
        for n in 0..=MOST_PAST {
            table.close(to(n), PAST.first, PAST, Some(Box::new(n)));
        }
        assert_eq!((table.records, table.forgotten()), (MOST_PAST, 1));
    }

    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let mut table = Table::<()>::default();
        let far = |n: usize| SocketAddr::from(([10, 1, (n >> 16) as u8, 2], (n & 0xffff) as u16));
        for n in 0..=MOST_PAST {
            table.close(PAST.first, far(n), Past { number: u32::try_from(n).unwrap(), ..PAST }, None);
        }
        let mut number = |n| match table.find(&Segment { src: PAST.first, dst: far(n), ..octets(0, 0) }) {
            Some(Place::Past(past)) => Some(past.number),
            _ => None,
        };
        assert_eq!((number(0), number(1), number(MOST_PAST)), (None, Some(1), Some(65_536)));
    }
}
