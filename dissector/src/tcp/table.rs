//! Which connection a segment belongs to. Connections are numbered from 0 by their first frame.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use crate::ip::Segment;

/// Connections that are over and still remembered; the oldest is forgotten first.
const MOST_PAST: usize = 65_536;

/// Sequence numbers that are so far from the end of a connection that is closed are of another one with the same ports. What
/// its ends repeat, or send behind a FIN by mistake, is nearer.
pub(crate) const FAR_BEHIND_CLOSE: u32 = 1 << 20;

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
            let again = self.isn[direction] == Some(segment.seq);
            return if again { Afterwards::Nothing } else { Afterwards::Another };
        }
        if segment.wire_len == 0 || segment.rst {
            return Afterwards::Nothing;
        }
        let end = segment.seq.wrapping_add(segment.wire_len);
        if self.end[direction].is_some_and(|last| is_far(last, end, FAR_BEHIND_CLOSE)) {
            return Afterwards::Another;
        }
        let repeated = self.end[direction].is_some_and(|last| last.wrapping_sub(end).cast_signed() >= 0);
        if repeated { Afterwards::Nothing } else { Afterwards::Continues }
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

/// Finds the present or last connection of a port pair.
#[derive(Default)]
pub(crate) struct Table {
    places: HashMap<ConnectionKey, Place>,
    past: VecDeque<(ConnectionKey, u32)>,
    /// The last answer: segments of one connection come in rows.
    last: Option<(SocketAddr, SocketAddr, usize)>,
}

impl Table {
    /// Bytes, about. The map has room for twice as many as it holds.
    pub(crate) fn memory(&self) -> usize {
        self.places.len() * 2 * size_of::<(ConnectionKey, Place)>()
            + self.past.len() * 2 * size_of::<(ConnectionKey, u32)>()
    }

    /// The connection of the segment's ports.
    pub(crate) fn find(&mut self, segment: &Segment<'_>) -> Option<Place> {
        let Segment { src: a, dst: b, .. } = segment;
        if let Some((src, dst, slot)) = &self.last
            && (src == a && dst == b || src == b && dst == a)
        {
            return Some(Place::Open(*slot));
        }
        let place = *self.places.get(&ConnectionKey::new(*a, *b))?;
        if let Place::Open(slot) = place {
            self.last = Some((*a, *b, slot));
        }
        Some(place)
    }

    /// From now on these ports mean the connection in `slot`.
    pub(crate) fn open(&mut self, a: SocketAddr, b: SocketAddr, slot: usize) {
        self.places.insert(ConnectionKey::new(a, b), Place::Open(slot));
        self.last = Some((a, b, slot));
    }

    /// The connection of these ports is over.
    pub(crate) fn close(&mut self, a: SocketAddr, b: SocketAddr, past: Past) {
        let key = ConnectionKey::new(a, b);
        self.last = None;
        self.places.insert(key, Place::Past(past));
        self.past.push_back((key, past.number));
        if self.past.len() > MOST_PAST
            && let Some((oldest, number)) = self.past.pop_front()
            && matches!(self.places.get(&oldest), Some(Place::Past(past)) if past.number == number)
        {
            self.places.remove(&oldest);
        }
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
    fn the_oldest_of_too_many_is_forgotten() {
        let mut table = Table::default();
        let far = |n: usize| SocketAddr::from(([10, 1, (n >> 16) as u8, 2], (n & 0xffff) as u16));
        for n in 0..=MOST_PAST {
            table.close(PAST.first, far(n), Past { number: u32::try_from(n).unwrap(), ..PAST });
        }
        let mut number = |n| match table.find(&Segment { src: PAST.first, dst: far(n), ..octets(0, 0) }) {
            Some(Place::Past(past)) => Some(past.number),
            _ => None,
        };
        assert_eq!((number(0), number(1), number(MOST_PAST)), (None, Some(1), Some(65_536)));
    }
}
