//! The record of a connection that was put aside. The connection resumes from it.

use super::connection::{Connection, DirectionState};
use crate::direction::Direction;
use crate::framing::{Reader, ReaderRecord};
use crate::tcp::{Half, HalfRecord, Past};

/// The records of both directions of a connection with MPA or SDP that was put aside.
pub(super) type Record = [(HalfRecord, ReaderRecord); 2];

impl Connection {
    /// Continues the connection from its record, or without a record from its summary `past`.
    pub(super) fn go_on(&mut self, past: &Past, record: Option<Box<Record>>) {
        let Some(record) = record else {
            self.begin(Direction::BOTH.map(|direction| past.syn_alone(direction)));
            self.goes_on = past.has_octets();
            return;
        };
        self.goes_on = true;
        for (direction, (half, reader)) in self.directions.iter_mut().zip(*record) {
            direction.half = Half::resumed(&half, reader.next());
            let as_sdp = direction.reader.as_sdp;
            direction.reader = Reader::resumed(reader);
            direction.reader.as_sdp = as_sdp;
            direction.fin = direction.half.has_fin();
        }
    }

    /// The summary of the connection. `aside` is set if the connection is still open.
    pub(super) fn past(&self, aside: bool) -> Past {
        let [forth, back] = &self.directions;
        Past {
            aside,
            number: self.number,
            first: forth.ends.src,
            isn: [forth.half.isn(), back.half.isn()],
            end: [forth.half.end_seq(), back.half.end_seq()],
            missing: [None; 2],
        }
    }

    pub(super) fn into_record(self) -> Record {
        self.directions.map(|DirectionState { half, reader, .. }| (half.record(), reader.record(&half)))
    }
}
