//! Compares a segment from another network with a connection.

use super::connection::Connection;
use super::limits::NEAR;
use crate::direction::Direction;
use crate::ip::Segment;
use crate::tcp::TrackedConnection;

/// The connection that a segment belongs to.
pub(super) enum Owner {
    /// The segment belongs to the network with this number, and to the known connection there, if
    /// one exists.
    Known(u16, Option<TrackedConnection>),
    /// The segment belongs to a new connection in the network with this number. The array has the
    /// known sequence numbers of the connection's SYNs.
    New(u16, [Option<u32>; 2]),
}

impl Connection {
    /// Compares a segment from another network with this connection. Returns `Some(true)` if the
    /// segment is a copy of a segment of this connection, and `Some(false)` if the segment belongs
    /// to another connection. Returns `None` if the sequence numbers of the segment fit this
    /// connection, but no known segment can be compared with it.
    pub(super) fn recognises(&self, segment: &Segment<'_>) -> Option<bool> {
        let mine = self.direction_of(segment);
        let (own, other) = (&self.directions[mine], &self.directions[mine.peer()]);
        if let Some(is_copy) = own.compare(segment) {
            return Some(is_copy);
        }
        let fits = if segment.syn {
            match own.half.isn() {
                Some(isn) => isn == segment.seq,
                None if segment.ack_flag => other.half.isn().is_some_and(|isn| isn.wrapping_add(1) == segment.ack),
                None => own.begins_with(segment.seq),
            }
        } else {
            let near = own.is_near(segment.seq);
            let acknowledges = if segment.ack_flag { other.is_near(segment.ack) } else { None };
            near.or(acknowledges) == Some(true) && acknowledges != Some(false)
        };
        if fits { None } else { Some(false) }
    }

    /// Returns the sequence numbers of the SYNs that weft possibly assigned to this connection by
    /// mistake. These SYNs belong to another connection. `segment` showed that the other connection
    /// exists.
    pub(super) fn syns(&self, segment: &Segment<'_>) -> [Option<u32>; 2] {
        let mine = self.direction_of(segment);
        let near = |direction: Direction, number: u32| {
            let isn = self.directions[direction].half.isn();
            isn.filter(|isn| number.wrapping_sub(*isn) < NEAR)
        };
        let mut syns = [None; 2];
        syns[mine] = near(mine, segment.seq);
        syns[mine.peer()] = near(mine.peer(), segment.ack).filter(|_| segment.ack_flag);
        syns
    }
}
