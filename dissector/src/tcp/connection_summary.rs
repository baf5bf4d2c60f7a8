//! The summary of a connection that has no slot any more: decides whether a segment repeats,
//! completes or continues the connection, or belongs to another connection.
//!
//! A summary has only sequence numbers. It has no octets, so it does not show whether a repeated
//! segment has the same octets.

use std::net::SocketAddr;

use super::sequence_number::{FAR, FAR_AFTER_CLOSE, before, is_far};
use crate::direction::Direction;
use crate::ip::Segment;
use crate::stream_id::StreamId;

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

#[cfg(test)]
mod tests {
    use super::super::testing::{PAST, octets, syn};
    use super::*;

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
}
