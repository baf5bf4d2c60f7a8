//! [`Diagnoses`]: a sink that diagnoses each connection of a capture.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

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
    done: BTreeMap<StreamId, Diagnosis>,
    /// Every connection that has ended.
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
            done: BTreeMap::new(),
            ended: StreamSet::default(),
            others: 0,
            unstored: 0,
            exchanges: Vec::new(),
        }
    }

    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.open.len() * TRACK_MEMORY + self.done.len() * DIAGNOSIS_MEMORY + self.ended.memory()
    }

    /// Diagnoses the connections that have not ended. Call this after
    /// [`Dissector::finish`](crate::Dissector::finish).
    pub fn finish(&mut self) {
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
    /// without iWARP and SDP that began while too many other connections were open.
    #[must_use]
    pub fn unstored(&self) -> u64 {
        self.unstored
    }

    /// The first [`MAX_EXCHANGES`] exchanges with port mappers that led to no connection.
    #[must_use]
    pub fn exchanges(&self) -> &[ExchangeReport] {
        &self.exchanges
    }

    fn store(&mut self, track: Track) {
        self.ended.insert(track.stream);
        let diagnosis = Diagnosis::of(track);
        if !diagnosis.is_relevant() {
            self.others += 1;
        } else if self.done.len() >= self.most {
            self.unstored += 1;
        } else {
            self.done.insert(diagnosis.stream, diagnosis);
        }
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
        let is_full = self.open.len() >= self.most_open;
        match self.open.entry(stream) {
            Entry::Occupied(track) => track.into_mut().segment(segment),
            Entry::Vacant(_) if is_full => {
                self.ended.insert(stream);
                self.unstored += 1;
            }
            Entry::Vacant(place) => place.insert(Box::new(Track::new(stream, segment))).segment(segment),
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
            track.context(context);
            self.store(*track);
        }
    }
}
