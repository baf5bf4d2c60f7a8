//! Equal ports in several networks: decides whether a segment from another VLAN, tunnel or
//! interface belongs to a known connection.

use super::Connections;
use super::limits::NEAR;
use super::owner::Owner;
use crate::direction::Direction;
use crate::ip::Segment;
use crate::stream_id::StreamId;
use crate::tcp::{Located, Place};

impl Connections {
    /// The connection that owns a segment, by the ports and the network of the segment.
    pub(super) fn owner(&mut self, segment: &Segment<'_>) -> Owner {
        let (network, place) = match self.table.find(segment) {
            Located::Known { network, place, is_certain: true } => return Owner::Known(network, place),
            Located::Known { network, place, is_certain: false } => (network, place),
            Located::Elsewhere => return self.owner_elsewhere(segment),
        };
        match place.and_then(|place| self.recognises(&place, segment)) {
            Some(true) => self.table.join(segment, network, true),
            Some(false) if self.is_open(place) => {
                if let Some(own) = self.table.separate(segment) {
                    self.joined.count -= 1;
                    return Owner::New(own, self.syns(place, segment));
                }
            }
            // A closed connection releases its ports, so the segment may start a new connection.
            Some(false) | None => {}
        }
        Owner::Known(network, place)
    }

    fn is_open(&self, place: Option<Place>) -> bool {
        let Some(Place::Open(slot)) = place else { return false };
        self.slots.get(slot).and_then(Option::as_ref).is_some_and(|connection| !connection.closed)
    }

    /// The connection that owns a segment with known ports, if the segment is the first segment
    /// from its network.
    fn owner_elsewhere(&mut self, segment: &Segment<'_>) -> Owner {
        for (network, place) in self.table.networks(segment) {
            let is_copy = self.recognises(&place, segment);
            if is_copy != Some(false) {
                self.table.join(segment, network, is_copy == Some(true));
                self.joined.count += 1;
                let stream = self.number_of(&place);
                self.joined.first = self.joined.first.or(stream.map(|stream| (stream, segment.frame)));
                return Owner::Known(network, Some(place));
            }
        }
        match self.table.separate(segment) {
            Some(network) => Owner::New(network, [None; 2]),
            None => Owner::Known(0, self.table.networks(segment).first().map(|(_, place)| *place)),
        }
    }

    fn number_of(&self, place: &Place) -> Option<StreamId> {
        match place {
            Place::Open(slot) => Some(self.slots.get(*slot)?.as_ref()?.number),
            Place::Past(past) => Some(past.number),
        }
    }

    /// Like `Connection::recognises`, also for connections without a slot. For such a connection
    /// only the sequence numbers are compared.
    fn recognises(&self, place: &Place, segment: &Segment<'_>) -> Option<bool> {
        match place {
            Place::Open(slot) => {
                let connection = self.slots.get(*slot).and_then(Option::as_ref);
                let known = connection.map_or(Some(false), |connection| connection.recognises(segment));
                let rival = connection.and_then(|connection| connection.rival.as_ref());
                match (known, rival) {
                    (Some(false), Some(rival)) => rival.connection.recognises(segment),
                    _ => known,
                }
            }
            Place::Past(past) if past.is_near(segment, NEAR) => None,
            Place::Past(_) => Some(false),
        }
    }

    fn syns(&self, place: Option<Place>, segment: &Segment<'_>) -> [Option<u32>; 2] {
        let Some(Place::Open(slot)) = place else { return [None; 2] };
        let connection = self.slots.get(slot).and_then(Option::as_ref);
        connection.map_or([None; 2], |it| {
            let [forth, back] = it.syns(segment);
            // Direction 0 of the new connection is the direction of the segment.
            if it.direction_of(segment) == Direction::Forward { [forth, back] } else { [back, forth] }
        })
    }
}
