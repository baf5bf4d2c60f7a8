//! [`Stats`]: a sink that collects statistics of each connection with iWARP or SDP.
//!
//! Connections without iWARP and SDP are only counted, unless they have findings. To limit memory,
//! `Stats` stores only the first connections with iWARP or SDP ([`MAX_CONNECTIONS`] by default), and
//! the first [`MAX_EXCHANGES`] exchanges with port mappers. Further connections are included in the
//! totals. Further exchanges are only counted.

mod connection;
mod latency;
#[cfg(test)]
mod reads_tests;
mod sdp;
mod text;
mod totals;
#[cfg(test)]
mod unstored_tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use foldhash::HashMap;

use crate::context::Context;
use crate::exchange::Exchange;
use crate::fact::Fact;
use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::packet::Packet;
use crate::sink::Sink;
use crate::stream_id::{StreamId, StreamSet};
use crate::unit::{Kind, Unit};
use crate::upper::Ulp;

pub use connection::{ConnectionStats, DirectionStats, SdpStats, StartupStats};
pub use latency::{Latencies, Percentiles};
pub use sdp::{AdvertStats, HalfStats, SdpConnectionStats};
pub use totals::Totals;

/// Default number of stored connections. Further connections are included only in the totals.
pub const MAX_CONNECTIONS: usize = 65_536;
/// Number of stored exchanges with port mappers. Further exchanges are only counted.
pub const MAX_EXCHANGES: usize = 10_000;
/// Estimated memory in bytes of one connection that has several opcodes, and SDP in both
/// directions. Latencies are not included.
const CONNECTION_MEMORY: usize = 6 << 10;
/// Estimated memory in bytes of one exchange that prepared a few connections.
const EXCHANGE: usize = 512;

/// Statistics of all connections of a capture.
#[derive(Debug)]
pub struct Stats {
    /// Maximum number of stored connections.
    most: usize,
    connections: BTreeMap<StreamId, ConnectionStats>,
    /// Connections without iWARP and SDP that have findings. For example, the key of the start-up
    /// frame is wrong. At most `most` of these connections are stored.
    others_with_findings: BTreeMap<StreamId, ConnectionStats>,
    /// Connections after the first `most` connections.
    unstored: StreamSet,
    /// The traffic of all connections in `unstored`, summed over both directions.
    unstored_traffic: DirectionStats,
    /// Memory in bytes of the latencies of all connections.
    latencies: usize,
    /// The largest number of a TCP connection so far, plus one.
    next: StreamId,
    port_mapper: u64,
    exchanges: BTreeMap<u64, Exchange>,
    /// Number of exchanges beyond the limit.
    further_exchanges: u64,
    /// Number of all findings of each severity: notes, warnings, errors.
    findings: [u64; 3],
    /// For each direction of each connection without iWARP, SDP and findings so far: the octets
    /// outside MPA.
    streaming: HashMap<(StreamId, u8), OutsideMpa>,
}

/// The octets outside MPA of one direction.
#[derive(Debug, Clone, Copy)]
struct OutsideMpa {
    octets: u64,
    /// The sender and the receiver.
    ends: (SocketAddr, SocketAddr),
    /// Frame numbers of the first and the last unit.
    frames: (FrameNumber, FrameNumber),
    /// Capture times of these two frames, in nanoseconds since 1970.
    times: (u64, u64),
}

impl OutsideMpa {
    fn new(unit: &Unit<'_>) -> Self {
        OutsideMpa {
            octets: 0,
            ends: (unit.ends.src, unit.ends.dst),
            frames: (unit.frame, unit.frame),
            times: (unit.time, unit.time),
        }
    }
}

impl Default for Stats {
    fn default() -> Self {
        Stats::with_room(MAX_CONNECTIONS)
    }
}

impl Stats {
    /// Creates statistics that store at most `most` connections. Further connections are included
    /// only in the totals.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        Stats {
            most,
            connections: BTreeMap::new(),
            others_with_findings: BTreeMap::new(),
            unstored: StreamSet::default(),
            unstored_traffic: DirectionStats::default(),
            latencies: 0,
            next: StreamId::FIRST,
            port_mapper: 0,
            exchanges: BTreeMap::new(),
            further_exchanges: 0,
            findings: [0; 3],
            streaming: HashMap::default(),
        }
    }

    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        (self.connections.len() + self.others_with_findings.len()) * CONNECTION_MEMORY
            + self.latencies
            + self.exchanges.len() * EXCHANGE
            + self.unstored.memory()
            + self.streaming.capacity() * 2 * size_of::<((StreamId, u8), OutsideMpa)>()
    }

    /// Number of connections with iWARP or SDP that are not stored because of the limit.
    #[must_use]
    pub fn unstored_connections(&self) -> u64 {
        self.unstored.count()
    }

    /// The stored connections with iWARP or SDP, ordered by number.
    pub fn connections(&self) -> impl Iterator<Item = &ConnectionStats> {
        self.connections.values()
    }

    /// The stored connections with iWARP, SDP or findings, ordered by number.
    #[must_use]
    pub fn connections_and_findings(&self) -> Vec<&ConnectionStats> {
        let mut all: Vec<_> = self.connections.values().chain(self.others_with_findings.values()).collect();
        all.sort_unstable_by_key(|connection| connection.stream);
        all
    }

    /// Number of TCP connections without iWARP or SDP.
    #[must_use]
    pub fn others(&self) -> u64 {
        u64::from(self.next).saturating_sub(self.connections.len() as u64 + self.unstored.count())
    }

    /// Number of port mapper datagrams.
    #[must_use]
    pub fn port_mapper(&self) -> u64 {
        self.port_mapper
    }

    /// The first [`MAX_EXCHANGES`] exchanges with port mappers, ordered by number.
    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.values()
    }

    /// The totals over all connections.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals {
            connections: self.connections.len() as u64 + self.unstored.count(),
            further_connections: self.unstored.count(),
            other_connections: self.others(),
            port_mapper: self.port_mapper,
            further_exchanges: self.further_exchanges,
            findings: self.findings,
            ..Totals::default()
        };
        for connection in self.connections.values() {
            connection.directions.iter().for_each(|side| totals.add(side));
        }
        totals.add(&self.unstored_traffic);
        totals
    }

    fn connection(&mut self, unit: &Unit<'_>, stream: StreamId) -> &mut ConnectionStats {
        let before = self.others_with_findings.remove(&stream);
        let connection = self.connections.entry(stream).or_insert_with(|| {
            before.unwrap_or_else(|| {
                let (src, dst) = (unit.ends.src_text.clone(), unit.ends.dst_text.clone());
                let ends = if unit.direction == 0 { [src, dst] } else { [dst, src] };
                ConnectionStats::new(stream, ends, unit.frame, unit.time)
            })
        });
        connection.extend(unit.frame, unit.time);
        connection
    }

    /// Counts a finding about a connection without iWARP and SDP.
    fn finding_about_other(&mut self, stream: StreamId, severity: usize) {
        let is_full = self.others_with_findings.len() >= self.most && !self.others_with_findings.contains_key(&stream);
        if is_full || self.unstored.contains(stream) {
            return;
        }
        for direction in [0, 1] {
            let Some(part) = self.streaming.remove(&(stream, direction)) else { continue };
            let connection = self.others_with_findings.entry(stream).or_insert_with(|| {
                let (src, dst) = (part.ends.0.to_string(), part.ends.1.to_string());
                let ends = if direction == 0 { [src, dst] } else { [dst, src] };
                ConnectionStats::new(stream, ends, part.frames.0, part.times.0)
            });
            connection.extend(part.frames.0, part.times.0);
            connection.extend(part.frames.1, part.times.1);
            connection.directions[usize::from(direction)].streaming_octets += part.octets;
        }
        if let Some(connection) = self.others_with_findings.get_mut(&stream) {
            connection.findings[severity] += 1;
        }
    }
}

impl Sink for Stats {
    fn unit(&mut self, unit: &Unit<'_>) {
        let Some(stream) = unit.stream else {
            self.port_mapper += 1;
            return;
        };
        if let Kind::Streaming { len, .. } = unit.kind
            && !self.connections.contains_key(&stream)
        {
            if let Some(other) = self.others_with_findings.get_mut(&stream) {
                other.extend(unit.frame, unit.time);
                other.directions[usize::from(unit.direction)].unit(unit);
                return;
            }
            let key = (stream, unit.direction);
            let part = self.streaming.entry(key).or_insert_with(|| OutsideMpa::new(unit));
            part.octets += len;
            (part.frames.1, part.times.1) = (unit.frame, unit.time);
            return;
        }
        let before = [0, 1].map(|direction| self.streaming.remove(&(stream, direction)).map_or(0, |part| part.octets));
        if self.connections.len() >= self.most && !self.connections.contains_key(&stream) {
            self.unstored.insert(stream);
            self.others_with_findings.remove(&stream);
            self.unstored_traffic.unit(unit);
            return;
        }
        let connection = self.connection(unit, stream);
        for (side, octets) in connection.directions.iter_mut().zip(before) {
            side.streaming_octets += octets;
        }
        if connection.lacks(unit) {
            connection.mark_partial();
        }
        connection.directions[usize::from(unit.direction)].unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        let severity = finding.severity as usize;
        self.findings[severity] += 1;
        let Some(stream) = finding.stream else { return };
        match self.connections.get_mut(&stream) {
            Some(connection) => connection.findings[severity] += 1,
            None => self.finding_about_other(stream, severity),
        }
    }

    fn packet(&mut self, packet: &Packet) {
        if let Some(stream) = packet.transport.stream() {
            self.next = self.next.max(stream.next());
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if !over {
            return;
        }
        // If further messages of an exchange arrive, the dissector can report this exchange a
        // second time.
        if self.exchanges.len() < MAX_EXCHANGES || self.exchanges.contains_key(&exchange.exchange) {
            self.exchanges.insert(exchange.exchange, exchange.clone());
        } else {
            self.further_exchanges += 1;
        }
    }

    fn ended(&mut self, stream: StreamId, context: &Context) {
        for direction in [0, 1] {
            self.streaming.remove(&(stream, direction));
        }
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        // If a connection continues after its end was reported, it has a new state. The new state
        // does not have the earlier facts.
        if std::mem::replace(&mut connection.ended, true) {
            connection.mark_partial();
        }
        connection.ulp = context.ulp.map(Ulp::name).or(connection.ulp);
        connection.exchange = context.exchange.as_ref().map(|exchange| exchange.exchange).or(connection.exchange);
        if let Some(sdp) = context.sdp.as_deref() {
            connection.sdp = Some(SdpConnectionStats::of(sdp));
        }
    }

    fn fact(&mut self, stream: StreamId, fact: &Fact) {
        let Fact::Operation(operation) = fact else { return };
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        let side = &mut connection.directions[usize::from(operation.direction.min(1))];
        side.most_outstanding = side.most_outstanding.zip(operation.outstanding).map(|(most, count)| most.max(count));
        let latencies = if operation.atomic { &mut side.atomics } else { &mut side.reads };
        let before = latencies.memory();
        latencies.add(operation.latency);
        self.latencies += latencies.memory() - before;
    }
}
