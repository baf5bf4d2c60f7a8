//! The record of a connection that was evicted. The connection can resume from its record.

use super::connection::{Connection, DirectionState};
use crate::direction::Direction;
use crate::framing::{Reader, ReaderRecord};
use crate::tcp::{ConnectionSummary, DirectionRecord, DirectionStream};

/// The records of both directions of a connection with MPA or SDP that was evicted.
pub(super) type Record = [(DirectionRecord, ReaderRecord); 2];

impl Connection {
    /// Resumes the connection from its record. If there is no record, resumes the connection from
    /// its summary `past`.
    pub(super) fn resume(&mut self, past: &ConnectionSummary, record: Option<Box<Record>>) {
        let Some(record) = record else {
            self.begin(Direction::BOTH.map(|direction| past.syn_alone(direction)));
            self.resumed = past.has_octets();
            return;
        };
        self.resumed = true;
        for (direction, (half, reader)) in self.directions.iter_mut().zip(*record) {
            direction.half = DirectionStream::resumed(&half, reader.next());
            let as_sdp = direction.reader.as_sdp;
            direction.reader = Reader::resumed(reader);
            direction.reader.as_sdp = as_sdp;
            direction.fin = direction.half.fin().is_some();
        }
    }

    /// The summary of the connection. `evicted` is set if the connection is still open.
    pub(super) fn summary(&self, evicted: bool) -> ConnectionSummary {
        let [forth, back] = &self.directions;
        ConnectionSummary {
            evicted,
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
