//! Decides whether a segment from another VLAN, tunnel or interface belongs to a known connection
//! with equal ports.

use super::Connections;
use super::limits::NEAR;
use super::owner::Owner;
use crate::direction::Direction;
use crate::ip::Segment;
use crate::stream_id::StreamId;
use crate::tcp::{Lookup, TrackedConnection};

impl Connections {
    /// Finds the connection that owns a segment. Uses the ports and the network of the segment.
    pub(super) fn owner(&mut self, segment: &Segment<'_>) -> Owner {
        let (network, connection) = match self.table.find(segment) {
            Lookup::Known { network, connection, is_certain: true } => return Owner::Known(network, connection),
            Lookup::Known { network, connection, is_certain: false } => (network, connection),
            Lookup::UnknownPath => return self.owner_elsewhere(segment),
        };
        match connection.and_then(|connection| self.recognises(&connection, segment)) {
            Some(true) => self.table.join(segment, network, true),
            Some(false) if self.is_open(connection) => {
                if let Some(own) = self.table.separate(segment) {
                    self.joined.count -= 1;
                    return Owner::New(own, self.syns(connection, segment));
                }
            }
            // If the result is `Some(false)` here, the known connection is no longer open. If the
            // segment starts a new connection, the caller opens it in the same network.
            Some(false) | None => {}
        }
        Owner::Known(network, connection)
    }

    fn is_open(&self, tracked: Option<TrackedConnection>) -> bool {
        let Some(TrackedConnection::Open(slot)) = tracked else { return false };
        self.slots.get(slot).and_then(Option::as_ref).is_some_and(|connection| !connection.closed)
    }

    /// Finds the connection that owns a segment. Call this only for [`Lookup::UnknownPath`]. In
    /// this case, an earlier connection has the ports of the segment. But each earlier segment with
    /// these ports came from another VLAN, tunnel or interface.
    fn owner_elsewhere(&mut self, segment: &Segment<'_>) -> Owner {
        for (network, connection) in self.table.networks(segment) {
            let is_copy = self.recognises(&connection, segment);
            if is_copy != Some(false) {
                self.table.join(segment, network, is_copy == Some(true));
                self.joined.count += 1;
                let stream = self.number_of(&connection);
                self.joined.first = self.joined.first.or(stream.map(|stream| (stream, segment.frame)));
                return Owner::Known(network, Some(connection));
            }
        }
        match self.table.separate(segment) {
            Some(network) => Owner::New(network, [None; 2]),
            None => Owner::Known(0, self.table.networks(segment).first().map(|(_, connection)| *connection)),
        }
    }

    fn number_of(&self, tracked: &TrackedConnection) -> Option<StreamId> {
        match tracked {
            TrackedConnection::Open(slot) => Some(self.slots.get(*slot)?.as_ref()?.number),
            TrackedConnection::Past(past) => Some(past.number),
        }
    }

    /// Like `Connection::recognises`, but also works for a connection without a slot. For such a
    /// connection, only the sequence numbers are compared.
    fn recognises(&self, tracked: &TrackedConnection, segment: &Segment<'_>) -> Option<bool> {
        match tracked {
            TrackedConnection::Open(slot) => {
                let connection = self.slots.get(*slot).and_then(Option::as_ref);
                let known = connection.map_or(Some(false), |connection| connection.recognises(segment));
                let replacement = connection.and_then(|connection| connection.replacement.as_ref());
                match (known, replacement) {
                    (Some(false), Some(replacement)) => replacement.connection.recognises(segment),
                    _ => known,
                }
            }
            TrackedConnection::Past(past) if past.is_near(segment, NEAR) => None,
            TrackedConnection::Past(_) => Some(false),
        }
    }

    fn syns(&self, tracked: Option<TrackedConnection>, segment: &Segment<'_>) -> [Option<u32>; 2] {
        let Some(TrackedConnection::Open(slot)) = tracked else { return [None; 2] };
        let connection = self.slots.get(slot).and_then(Option::as_ref);
        connection.map_or([None; 2], |it| {
            let [forth, back] = it.syns(segment);
            // Direction 0 of the new connection is the direction of the segment.
            if it.direction_of(segment) == Direction::Forward { [forth, back] } else { [back, forth] }
        })
    }
}
