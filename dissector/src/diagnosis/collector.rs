//! [`Diagnoses`]: a sink that diagnoses each connection of a capture.
//!
//! A connection is *unanswered* while it has only SYNs of one endpoint. A port scan or a SYN flood
//! has many unanswered connections. So they never take the place of other connections: if a limit
//! is reached, an unanswered connection makes room. If it gets its answer later, it is followed from
//! this answer on.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;

use crate::context::Context;
use crate::exchange::Exchange;
use crate::fact::Fact;
use crate::finding::Finding;
use crate::packet::TcpSegment;
use crate::sink::Sink;
use crate::stream_id::{StreamId, StreamSet};
use crate::unit::Unit;

use super::ending::EndKind;
use super::exchanges::ExchangeReport;
use super::report::Diagnosis;
use super::track::Track;

/// Default number of stored diagnoses. Further connections are only counted.
pub const MAX_CONNECTIONS: usize = 65_536;
/// Number of stored exchanges with port mappers.
pub const MAX_EXCHANGES: usize = 1024;
/// Estimated memory of the state of an open connection, and of a diagnosis, in bytes.
const TRACK_MEMORY: usize = 16 << 10;
const DIAGNOSIS_MEMORY: usize = 3 << 10;

/// Diagnoses each connection of a capture. Call [`Diagnoses::finish`] after the last frame.
///
/// Memory stays flat for each connection. The number of diagnoses, and of open connections, has a
/// limit.
#[derive(Debug)]
pub struct Diagnoses {
    most: usize,
    most_open: usize,
    open: HashMap<StreamId, Box<Track>>,
    /// The unanswered connections in `open`.
    waiting: BTreeSet<StreamId>,
    done: BTreeMap<StreamId, Diagnosis>,
    /// The unanswered connections in `done`.
    unanswered: BTreeSet<StreamId>,
    /// The unanswered connections that are not stored.
    skipped: StreamSet,
    /// Every connection that has ended. Unanswered connections are not in this set.
    ended: StreamSet,
    others: u64,
    unstored: u64,
    exchanges: Vec<ExchangeReport>,
}

impl Default for Diagnoses {
    fn default() -> Self {
        Diagnoses::with_room(MAX_CONNECTIONS)
    }
}

impl Diagnoses {
    /// Creates a sink that stores at most `most` diagnoses. Further connections are only counted.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        Diagnoses::with_limits(most, usize::MAX)
    }

    /// Creates a sink that stores at most `most` diagnoses, and follows at most `most_open`
    /// connections at a time. Further connections are only counted.
    #[must_use]
    pub fn with_limits(most: usize, most_open: usize) -> Self {
        Diagnoses {
            most,
            most_open,
            open: HashMap::default(),
            waiting: BTreeSet::new(),
            done: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            skipped: StreamSet::default(),
            ended: StreamSet::default(),
            others: 0,
            unstored: 0,
            exchanges: Vec::new(),
        }
    }

    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let sets = self.ended.memory() + self.skipped.memory();
        self.open.len() * TRACK_MEMORY + self.done.len() * DIAGNOSIS_MEMORY + sets
    }

    /// Diagnoses the connections that have not ended. Call this after
    /// [`Dissector::finish`](crate::Dissector::finish).
    pub fn finish(&mut self) {
        self.waiting.clear();
        let mut open: Vec<Track> = self.open.drain().map(|(_, track)| *track).collect();
        open.sort_unstable_by_key(|track| track.stream);
        open.into_iter().for_each(|track| self.store(track));
        for exchange in &self.exchanges {
            self.done.values_mut().for_each(|diagnosis| diagnosis.apply_denial(exchange));
        }
    }

    /// The stored diagnoses, ordered by the number of the connection. Connections without iWARP and
    /// SDP are not stored, unless they have findings or were not opened.
    pub fn connections(&self) -> impl Iterator<Item = &Diagnosis> {
        self.done.values()
    }

    /// The diagnosis of a connection; `None` if it is not stored.
    #[must_use]
    pub fn of(&self, stream: StreamId) -> Option<&Diagnosis> {
        self.done.get(&stream)
    }

    /// Number of connections without iWARP and SDP that are not stored.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }

    /// Number of connections that are not stored because of a limit. It includes connections
    /// without iWARP and SDP that began while too many other connections were open, and
    /// [`Diagnoses::unanswered`].
    #[must_use]
    pub fn unstored(&self) -> u64 {
        self.unstored + self.unanswered()
    }

    /// Number of connections that are not stored because of a limit, and that have only SYNs
    /// without an answer. Such connections are the first that are not stored.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.skipped.count()
    }

    /// The first [`MAX_EXCHANGES`] exchanges with port mappers that led to no connection.
    #[must_use]
    pub fn exchanges(&self) -> &[ExchangeReport] {
        &self.exchanges
    }

    fn store(&mut self, track: Track) {
        let stream = track.stream;
        let diagnosis = Diagnosis::of(track);
        let is_unanswered = diagnosis.is_relevant() && diagnosis.ending.kind == EndKind::Unanswered;
        if !is_unanswered {
            self.ended.insert(stream);
        }
        if !diagnosis.is_relevant() {
            self.others += 1;
        } else if self.done.len() < self.most || (!is_unanswered && self.drop_unanswered()) {
            if is_unanswered {
                self.unanswered.insert(stream);
            }
            self.done.insert(stream, diagnosis);
        } else if is_unanswered {
            self.skipped.insert(stream);
        } else {
            self.unstored += 1;
        }
    }

    /// Drops the newest diagnosis of an unanswered connection. Returns false if there is none.
    fn drop_unanswered(&mut self) -> bool {
        let Some(stream) = self.unanswered.pop_last() else { return false };
        self.done.remove(&stream);
        self.skipped.insert(stream);
        true
    }

    /// Ends the oldest unanswered connection in `open`. Returns false if there is none.
    fn end_waiting(&mut self) -> bool {
        let waiting = self.waiting.pop_first().and_then(|stream| self.open.remove(&stream));
        waiting.map(|track| self.store(*track)).is_some()
    }

    /// Begins to follow a connection with its first segment, or an unanswered connection with its
    /// answer.
    fn begin(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {
        let is_plain_syn = segment.syn() && segment.ack().is_none();
        let was_unanswered = self.skipped.contains(stream) || self.unanswered.contains(&stream);
        if is_plain_syn && was_unanswered {
            return;
        }
        let has_place = self.open.len() < self.most_open || self.end_waiting();
        if !has_place && is_plain_syn {
            self.skipped.insert(stream);
            return;
        }
        self.skipped.remove(stream);
        if self.unanswered.remove(&stream) {
            self.done.remove(&stream);
        }
        if !has_place {
            self.ended.insert(stream);
            self.unstored += 1;
            return;
        }
        let is_answer = was_unanswered && segment.ack().is_some() && (segment.syn() || segment.rst());
        let mut track = if is_answer { Track::of_answer(stream, segment) } else { Track::new(stream, segment) };
        track.segment(segment);
        if track.is_unanswered() {
            self.waiting.insert(stream);
        }
        self.open.insert(stream, Box::new(track));
    }
}

impl Sink for Diagnoses {
    fn unit(&mut self, unit: &Unit<'_>) {
        if let Some(track) = unit.stream.and_then(|stream| self.open.get_mut(&stream)) {
            track.unit(unit);
        }
    }

    fn segment(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {
        if self.ended.contains(stream) {
            let open = [EndKind::Open, EndKind::HalfClosed, EndKind::Silent];
            if let Some(diagnosis) = self.done.get_mut(&stream) {
                diagnosis.is_interrupted |= open.contains(&diagnosis.ending.kind);
            }
            return;
        }
        let Some(track) = self.open.get_mut(&stream) else { return self.begin(stream, segment) };
        let was_unanswered = track.is_unanswered();
        track.segment(segment);
        if was_unanswered && !track.is_unanswered() {
            self.waiting.remove(&stream);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        if let Some(track) = finding.stream.and_then(|stream| self.open.get_mut(&stream)) {
            track.finding(finding);
        }
    }

    fn fact(&mut self, stream: StreamId, fact: &Fact) {
        if let Some(track) = self.open.get_mut(&stream) {
            track.fact(fact);
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if over && self.exchanges.len() < MAX_EXCHANGES {
            self.exchanges.extend(ExchangeReport::of(exchange));
        }
    }

    fn ended(&mut self, stream: StreamId, context: &Context) {
        if let Some(mut track) = self.open.remove(&stream) {
            self.waiting.remove(&stream);
            track.context(context);
            self.store(*track);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Wire, reply, request};

    /// Diagnoses a capture with these limits, and returns the numbers of the stored connections.
    fn diagnose(wire: &Wire, most: usize, most_open: usize) -> (Diagnoses, Vec<u32>) {
        let mut diagnoses = Diagnoses::with_limits(most, most_open);
        wire.feed(&mut diagnoses);
        diagnoses.finish();
        let streams = diagnoses.connections().map(|diagnosis| diagnosis.stream.into()).collect();
        (diagnoses, streams)
    }

    /// A connection with MPA, and then `syns` SYNs without an answer, to the ports from 20000 on.
    fn with_unanswered(syns: u16) -> Wire {
        let mut wire = Wire::started();
        (0..syns).for_each(|number| wire.unanswered_syn(20_000 + number));
        wire
    }

    fn start_mpa(wire: &mut Wire) {
        wire.send(0, &request());
        wire.send(1, &reply());
    }

    #[test]
    fn unanswered_syns_hide_no_connection() {
        let mut wire = with_unanswered(10);
        wire.connect_to(7175);
        start_mpa(&mut wire);
        // Connections 1 to 10 are unanswered. Two of the four diagnoses are left for them.
        let (diagnoses, streams) = diagnose(&wire, 4, 3);
        assert_eq!(streams, [0, 1, 2, 11]);
        assert_eq!((diagnoses.unanswered(), diagnoses.unstored(), diagnoses.others()), (8, 8, 0));
        let found = diagnoses.of(11.into()).unwrap();
        assert!(found.is_iwarp && found.startup.len() == 2, "{found:#?}");
        // With enough room, each of them has its diagnosis.
        let (diagnoses, streams) = diagnose(&wire, 12, 3);
        assert_eq!((streams.len(), diagnoses.unstored()), (12, 0));
        assert!((1..=10).all(|stream: u32| diagnoses.of(stream.into()).unwrap().ending.kind == EndKind::Unanswered));
    }

    /// The SYN of connection 1 makes room for the SYN of connection 2, and is answered later.
    #[test]
    fn a_late_answer_begins_the_connection() {
        let mut wire = with_unanswered(2);
        wire.connect_to(20_000);
        start_mpa(&mut wire);
        for most in [9, 2] {
            let (diagnoses, streams) = diagnose(&wire, most, 2);
            let expected: &[u32] = if most == 9 { &[0, 1, 2] } else { &[0, 1] };
            assert_eq!(streams, expected);
            assert_eq!(diagnoses.unstored(), 3 - expected.len() as u64);
            let found = diagnoses.of(1.into()).unwrap();
            assert!(found.is_iwarp && found.startup.len() == 2, "{found:#?}");
            assert!(found.ends[0].starts_with("10.0.0.2:") && found.startup[0].direction == 0, "{found:#?}");
        }
    }

    #[test]
    fn answered_connections_beyond_the_limit_are_counted() {
        let mut wire = with_unanswered(3);
        wire.connect_to(7175);
        start_mpa(&mut wire);
        // Connection 0 has the only place until the end.
        let (diagnoses, streams) = diagnose(&wire, 9, 1);
        assert_eq!((streams, diagnoses.unanswered(), diagnoses.unstored()), (vec![0], 3, 4));
    }
}
