//! Statistics of each connection: a sink of units and facts.
//!
//! Connections without iWARP are only counted. Memory is bounded: the first connections with iWARP
//! are kept ([`MOST_CONNECTIONS`] by default), and the first [`MOST_EXCHANGES`] exchanges of the
//! port mapper. Further ones are counted and add to the totals.

mod further;
mod latency;
#[cfg(test)]
mod reads_tests;
mod sdp;
mod text;
mod totals;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use weft_core::requirement::Severity;
use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::startup::{FLAG_C, FLAG_M, FLAG_R, FLAG_S, HEADER_LEN};
use weft_core::wire::mpa::{RawStartup, StartupKind};
use weft_core::wire::sdp::{Mid, RawBsdh, RawHeader};
use zerocopy::FromBytes;

use crate::context::Context;
use crate::exchange::Exchange;
use crate::fact::Fact;
use crate::finding::Finding;
use crate::packet::{Packet, TransportKind};
use crate::sink::Sink;
use crate::ulp::Ulp;
use crate::unit::{CrcStatus, Kind, MarkerStatus, Unit};

use further::Further;
pub use latency::{Latencies, Percentiles};
pub use sdp::{AdvertStats, HalfStats, SdpConnectionStats};
pub use totals::Totals;

/// Connections that are kept by default; further ones are counted and add to the totals.
pub const MOST_CONNECTIONS: usize = 65_536;
/// Exchanges of the port mapper that are listed; further ones are counted.
pub const MOST_EXCHANGES: usize = 10_000;
/// Bytes of a connection with several opcodes and SDP in both directions, without its latencies.
const CONNECTION: usize = 6 << 10;
/// Bytes of an exchange with a few connections.
const EXCHANGE: usize = 512;

/// All connections of a capture.
#[derive(Debug)]
pub struct Stats {
    /// Connections that are kept.
    most: usize,
    connections: BTreeMap<u32, ConnectionStats>,
    /// Connections beyond that limit.
    further: Further,
    /// Bytes of the latencies of all connections.
    latencies: usize,
    /// One more than the largest number of a TCP connection.
    streams: u32,
    port_mapper: u64,
    exchanges: BTreeMap<u64, Exchange>,
    /// Number of exchanges beyond the limit.
    further_exchanges: u64,
    /// By severity, whatever they concern.
    findings: [u64; 3],
    /// Octets outside MPA of each direction of connections that may yet turn out to be iWARP's.
    streaming: HashMap<(u32, u8), u64>,
}

/// One connection with iWARP or SDP on it.
#[derive(Debug, Clone, Serialize)]
pub struct ConnectionStats {
    /// Its number.
    pub stream: u32,
    /// The end that sent its first frame, and the other.
    pub ends: [String; 2],
    /// Frames of its first and last unit.
    pub frames: (u64, u64),
    /// From the first unit to the last, in nanoseconds.
    pub duration_ns: u64,
    #[serde(skip)]
    began: u64,
    /// The traffic of each end.
    pub directions: [DirectionStats; 2],
    /// The protocol above RDMAP, if it is certain: `rping`, `rpcrdma`, `smb_direct`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ulp: Option<&'static str>,
    /// The exchange of the port mapper that it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    /// Statistics of SDP at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdp: Option<SdpConnectionStats>,
    /// Are octets missing, or its beginning? There may then have been more Reads and atomic
    /// operations than are counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Was its end reported? Later traffic is still counted.
    #[serde(skip)]
    ended: bool,
    /// Findings by severity: notes, warnings, errors.
    pub findings: [u64; 3],
}

/// The traffic of one end.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DirectionStats {
    /// Its start-up frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup: Option<StartupStats>,
    /// FPDUs.
    pub fpdus: u64,
    /// Octets of their ULPDUs.
    pub ulpdu_octets: u64,
    /// Octets after their DDP headers.
    pub payload_octets: u64,
    /// FPDUs by opcode.
    pub opcodes: BTreeMap<String, u64>,
    /// Octets after the DDP headers, by opcode.
    pub opcode_octets: BTreeMap<String, u64>,
    /// FPDUs by the state of their CRC.
    pub crc: BTreeMap<&'static str, u64>,
    /// FPDUs by the state of their markers.
    pub markers: BTreeMap<&'static str, u64>,
    /// Units with missing octets.
    pub incomplete: u64,
    /// Octets that no unit holds and that were not captured.
    pub gap_octets: u64,
    /// Octets in which no FPDU was found.
    pub unparsed_octets: u64,
    /// Octets outside MPA.
    pub streaming_octets: u64,
    /// Reads that this end requested and that were answered.
    #[serde(skip_serializing_if = "Latencies::is_empty")]
    pub reads: Latencies,
    /// Atomic operations that this end requested and that were answered.
    #[serde(skip_serializing_if = "Latencies::is_empty")]
    pub atomics: Latencies,
    /// Maximum number of unanswered Reads and atomic operations of this end at a time.
    pub most_outstanding: u32,
    /// SDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdp: Option<SdpStats>,
}

/// The fields of a start-up frame.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StartupStats {
    /// Request or Reply.
    pub frame: &'static str,
    /// Revision.
    pub revision: u8,
    /// Wants markers.
    pub markers: bool,
    /// Wants CRC.
    pub crc: bool,
    /// Rejects.
    pub rejected: bool,
    /// Octets of private data.
    pub pd_length: u16,
    /// IRD and ORD of RFC 6581.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ird_ord: Option<(u16, u16)>,
}

/// SDP messages of one end.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SdpStats {
    /// By MID.
    pub messages: BTreeMap<String, u64>,
    /// Octets of user data in Data messages.
    pub data_octets: u64,
    /// The smallest and the last number of receive buffers that it announced.
    pub bufs: Option<(u16, u16)>,
    /// Its last MSeq, and the last MSeq of the peer that it acknowledged.
    pub mseq: (u32, u32),
}

impl Default for Stats {
    fn default() -> Self {
        Stats::with_room(MOST_CONNECTIONS)
    }
}

impl Stats {
    /// Statistics of at most `most` connections; further ones are counted and add to the totals.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        Stats {
            most,
            connections: BTreeMap::new(),
            further: Further::default(),
            latencies: 0,
            streams: 0,
            port_mapper: 0,
            exchanges: BTreeMap::new(),
            further_exchanges: 0,
            findings: [0; 3],
            streaming: HashMap::new(),
        }
    }

    /// Bytes of memory, approximately.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.connections.len() * CONNECTION
            + self.latencies
            + self.exchanges.len() * EXCHANGE
            + self.further.memory()
            + self.streaming.capacity() * 2 * size_of::<((u32, u8), u64)>()
    }

    /// Connections with iWARP or SDP that are only counted, because there are too many.
    #[must_use]
    pub fn further(&self) -> u64 {
        self.further.count()
    }

    /// The connections with iWARP or SDP, by number.
    pub fn connections(&self) -> impl Iterator<Item = &ConnectionStats> {
        self.connections.values()
    }

    /// Number of TCP connections without iWARP or SDP.
    #[must_use]
    pub fn others(&self) -> u64 {
        u64::from(self.streams).saturating_sub(self.connections.len() as u64 + self.further.count())
    }

    /// Number of port mapper datagrams.
    #[must_use]
    pub fn port_mapper(&self) -> u64 {
        self.port_mapper
    }

    /// The first [`MOST_EXCHANGES`] exchanges of the port mapper, by number.
    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.values()
    }

    fn connection(&mut self, unit: &Unit<'_>, stream: u32) -> &mut ConnectionStats {
        let connection = self.connections.entry(stream).or_insert_with(|| {
            let (src, dst) = (unit.ends.src_text.clone(), unit.ends.dst_text.clone());
            ConnectionStats {
                stream,
                ends: if unit.direction == 0 { [src, dst] } else { [dst, src] },
                frames: (unit.frame, unit.frame),
                duration_ns: 0,
                began: unit.time,
                directions: Default::default(),
                ulp: None,
                exchange: None,
                sdp: None,
                partial: false,
                ended: false,
                findings: [0; 3],
            }
        });
        if unit.frame > 0 {
            connection.frames = (connection.frames.0.min(unit.frame), connection.frames.1.max(unit.frame));
            connection.began = connection.began.min(unit.time);
            connection.duration_ns = connection.duration_ns.max(unit.time.saturating_sub(connection.began));
        }
        connection
    }
}

impl ConnectionStats {
    /// Does the unit show that octets of the connection, or its beginning, are missing?
    fn lacks(&self, unit: &Unit<'_>) -> bool {
        let begins = || self.directions.iter().any(|side| side.startup.is_some() || side.sdp.is_some());
        match unit.kind {
            Kind::Gap { .. } | Kind::Unparsed { .. } => true,
            Kind::Fpdu(_) => unit.incomplete || !begins(),
            Kind::Startup(..) | Kind::Streaming { .. } | Kind::Sdp(..) | Kind::PortMapper(_) => unit.incomplete,
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
            *self.streaming.entry((stream, unit.direction)).or_default() += len;
            return;
        }
        let before = [0, 1].map(|direction| self.streaming.remove(&(stream, direction)).unwrap_or(0));
        if self.connections.len() >= self.most && !self.connections.contains_key(&stream) {
            self.further.unit(stream, unit);
            return;
        }
        let connection = self.connection(unit, stream);
        for (side, octets) in connection.directions.iter_mut().zip(before) {
            side.streaming_octets += octets;
        }
        connection.partial |= connection.lacks(unit);
        connection.directions[usize::from(unit.direction)].unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        let severity = match finding.severity {
            Severity::Note => 0,
            Severity::Warning => 1,
            Severity::Error => 2,
        };
        self.findings[severity] += 1;
        if let Some(connection) = finding.stream.and_then(|stream| self.connections.get_mut(&stream)) {
            connection.findings[severity] += 1;
        }
    }

    fn packet(&mut self, packet: &Packet) {
        if let TransportKind::Tcp { stream, .. } = packet.transport {
            self.streams = self.streams.max(stream.saturating_add(1));
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if !over {
            return;
        }
        // Reported again after more of its messages came.
        if self.exchanges.len() < MOST_EXCHANGES || self.exchanges.contains_key(&exchange.exchange) {
            self.exchanges.insert(exchange.exchange, exchange.clone());
        } else {
            self.further_exchanges += 1;
        }
    }

    fn ended(&mut self, stream: u32, context: &Context) {
        for direction in [0, 1] {
            self.streaming.remove(&(stream, direction));
        }
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        // A connection that continues after its end was reported begins a new state, which knows
        // less.
        connection.partial |= std::mem::replace(&mut connection.ended, true);
        connection.ulp = context.ulp.map(Ulp::name).or(connection.ulp);
        connection.exchange = context.exchange.as_ref().map(|exchange| exchange.exchange).or(connection.exchange);
        if let Some(sdp) = context.sdp.as_deref() {
            connection.sdp = Some(SdpConnectionStats::of(sdp));
        }
    }

    fn fact(&mut self, stream: u32, fact: &Fact) {
        let Fact::Operation(operation) = fact else { return };
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        let side = &mut connection.directions[usize::from(operation.direction.min(1))];
        side.most_outstanding = side.most_outstanding.max(operation.outstanding);
        let latencies = if operation.atomic { &mut side.atomics } else { &mut side.reads };
        let before = latencies.memory();
        latencies.add(operation.latency);
        self.latencies += latencies.memory() - before;
    }
}

impl DirectionStats {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.incomplete += u64::from(unit.incomplete);
        match &unit.kind {
            Kind::Startup(kind, part) => self.startup = startup(*kind, part.raw().0),
            Kind::Fpdu(fpdu) => {
                self.fpdus += 1;
                self.ulpdu_octets += u64::from(fpdu.layout.ulpdu_length);
                *self.crc.entry(fpdu.crc_status.name()).or_default() += 1;
                *self.markers.entry(fpdu.marker_status.name()).or_default() += 1;
                let (opcode, payload) = match Segment::parse(fpdu.ulpdu().raw().0) {
                    Ok(Segment::Tagged(header, payload)) => (header.ulp_control.opcode().name(), payload.len()),
                    Ok(Segment::Untagged(header, payload)) => (header.ulp_control.opcode().name(), payload.len()),
                    Err(_) => ("too short", 0),
                };
                self.payload_octets += payload as u64;
                add(&mut self.opcodes, opcode, 1);
                add(&mut self.opcode_octets, opcode, payload as u64);
            }
            Kind::Sdp(_, order, part) => {
                let sdp = self.sdp.get_or_insert_default();
                let Some((bsdh, _)) = RawBsdh::read(part.raw().0, *order) else { return };
                let mid = bsdh.mid();
                *sdp.messages.entry(mid.to_string()).or_default() += 1;
                if mid == Mid::DATA {
                    sdp.data_octets += u64::from(bsdh.len.get()).saturating_sub(16);
                }
                let bufs = bsdh.bufs.get();
                sdp.bufs = Some((sdp.bufs.map_or(bufs, |(least, _)| least.min(bufs)), bufs));
                sdp.mseq = (bsdh.mseq.get(), bsdh.mseq_ack.get());
            }
            Kind::Streaming { len, .. } => self.streaming_octets += len,
            Kind::Gap { len } => self.gap_octets += len,
            Kind::Unparsed { len } => self.unparsed_octets += len,
            Kind::PortMapper(_) => {}
        }
    }

    /// FPDUs whose CRC is wrong.
    #[must_use]
    pub fn bad_crc(&self) -> u64 {
        self.crc.get(CrcStatus::Bad.name()).copied().unwrap_or(0)
    }

    /// FPDUs with markers, and those whose markers are wrong.
    #[must_use]
    pub fn wrong_markers(&self) -> u64 {
        let of = |status: MarkerStatus| self.markers.get(status.name()).copied().unwrap_or(0);
        of(MarkerStatus::BadValue) + of(MarkerStatus::Misplaced)
    }
}

/// Adds to a count, and creates the key only if it does not exist.
fn add(counts: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    match counts.get_mut(name) {
        Some(sum) => *sum += count,
        None => {
            counts.insert(name.to_owned(), count);
        }
    }
}

fn startup(kind: StartupKind, octets: &[u8]) -> Option<StartupStats> {
    let (raw, _) = RawStartup::ref_from_prefix(octets).ok()?;
    let words = octets.get(HEADER_LEN..HEADER_LEN + 4).filter(|_| raw.revision >= 2 && raw.flags & FLAG_S != 0);
    let word = |words: &[u8], at: usize| u16::from_be_bytes([words[at], words[at + 1]]) & 0x3fff;
    Some(StartupStats {
        frame: if kind == StartupKind::Request { "Request" } else { "Reply" },
        revision: raw.revision,
        markers: raw.flags & FLAG_M != 0,
        crc: raw.flags & FLAG_C != 0,
        rejected: raw.flags & FLAG_R != 0,
        pd_length: raw.pd_length.get(),
        ird_ord: words.map(|words| (word(words, 0), word(words, 2))),
    })
}
