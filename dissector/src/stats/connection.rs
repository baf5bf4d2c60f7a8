//! Statistics of a connection and of its two directions.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::startup::{FLAG_C, FLAG_M, FLAG_R, FLAG_S, HEADER_LEN};
use weft_core::wire::mpa::{RawStartup, StartupKind};
use weft_core::wire::sdp::{Mid, RawBsdh, RawHeader};
use zerocopy::FromBytes;

use super::latency::Latencies;
use super::sdp::SdpConnectionStats;
use crate::frame_number::FrameNumber;
use crate::stream_id::StreamId;
use crate::unit::{CrcStatus, Kind, MarkerStatus, Unit};

/// Statistics of one connection with iWARP or SDP.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ConnectionStats {
    /// Number of the connection.
    pub stream: StreamId,
    /// Addresses of the endpoints. The sender of the first frame comes first.
    pub ends: [String; 2],
    /// Frame numbers of the first and the last unit.
    pub frames: (FrameNumber, FrameNumber),
    /// Time from the first to the last unit, in nanoseconds.
    pub duration_ns: u64,
    #[serde(skip)]
    pub(super) began: u64,
    /// The traffic of each direction.
    pub directions: [DirectionStats; 2],
    /// [`Name`](crate::upper::Ulp::name) of the protocol above RDMAP, if the protocol is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ulp: Option<&'static str>,
    /// Number of the port mapper exchange that prepared the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    /// Statistics of SDP at the end of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdp: Option<SdpConnectionStats>,
    /// Whether octets or the start of the connection are missing. In this case, it is possible that
    /// the counts of Reads and atomic operations are too low.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Whether the end of the connection was reported. Traffic after that is still counted.
    #[serde(skip)]
    pub(super) ended: bool,
    /// Number of findings of each severity: notes, warnings, errors.
    pub findings: [u64; 3],
}

/// The traffic of one direction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DirectionStats {
    /// The start-up frame of the direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup: Option<StartupStats>,
    /// Number of FPDUs.
    pub fpdus: u64,
    /// Number of octets of all ULPDUs.
    pub ulpdu_octets: u64,
    /// Number of octets after the DDP headers.
    pub payload_octets: u64,
    /// Number of FPDUs with each opcode.
    pub opcodes: BTreeMap<String, u64>,
    /// Number of octets after the DDP headers, for each opcode.
    pub opcode_octets: BTreeMap<String, u64>,
    /// Number of FPDUs with each CRC status.
    pub crc: BTreeMap<&'static str, u64>,
    /// Number of FPDUs with each marker status.
    pub markers: BTreeMap<&'static str, u64>,
    /// Number of units with missing octets.
    pub incomplete: u64,
    /// Number of octets in gaps. These octets were not captured, and belong to no other unit.
    pub gap_octets: u64,
    /// Number of octets in which no FPDU was found.
    pub unparsed_octets: u64,
    /// Number of octets outside MPA.
    pub streaming_octets: u64,
    /// Latencies of the completed Reads that the sender of this direction requested.
    #[serde(skip_serializing_if = "Latencies::is_empty")]
    pub reads: Latencies,
    /// Latencies of the completed atomic operations that the sender requested.
    #[serde(skip_serializing_if = "Latencies::is_empty")]
    pub atomics: Latencies,
    /// Maximum number of Reads and atomic operations of the sender that were outstanding at the
    /// same time. `None` if octets are missing, and the number is therefore not certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_outstanding: Option<u32>,
    /// SDP messages of the sender.
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
    /// Whether the sender wants to receive markers (flag M).
    pub markers: bool,
    /// Whether the sender wants CRCs in both directions (flag C).
    pub crc: bool,
    /// Whether the sender rejects the connection (flag R).
    pub rejected: bool,
    /// Length of the private data in octets (PD_Length).
    pub pd_length: u16,
    /// IRD and ORD of RFC 6581.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ird_ord: Option<(u16, u16)>,
}

/// SDP messages of one direction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SdpStats {
    /// Number of messages with each MID.
    pub messages: BTreeMap<String, u64>,
    /// Number of octets of user data in Data messages.
    pub data_octets: u64,
    /// The smallest and the last value of Bufs.
    pub bufs: Option<(u16, u16)>,
    /// The last MSeq and the last MSeqAck.
    pub mseq: (u32, u32),
}

impl ConnectionStats {
    /// Creates the statistics of a connection whose first unit is in `frame`.
    pub(super) fn new(stream: StreamId, ends: [String; 2], frame: FrameNumber, time: u64) -> Self {
        let directions = [(); 2].map(|()| DirectionStats { most_outstanding: Some(0), ..DirectionStats::default() });
        ConnectionStats { stream, ends, frames: (frame, frame), began: time, directions, ..ConnectionStats::default() }
    }

    /// Records that a unit of the connection is in `frame`. If the unit is in no frame, does
    /// nothing.
    pub(super) fn extend(&mut self, frame: FrameNumber, time: u64) {
        if frame != FrameNumber::NONE {
            self.frames = (self.frames.0.min(frame), self.frames.1.max(frame));
            self.began = self.began.min(time);
            self.duration_ns = self.duration_ns.max(time.saturating_sub(self.began));
        }
    }

    /// Records that octets or the start of the connection are missing.
    pub(super) fn mark_partial(&mut self) {
        self.partial = true;
        self.directions.iter_mut().for_each(|side| side.most_outstanding = None);
    }

    /// Returns whether the unit shows that octets or the start of the connection are missing.
    pub(super) fn lacks(&self, unit: &Unit<'_>) -> bool {
        let begins = || self.directions.iter().any(|side| side.startup.is_some() || side.sdp.is_some());
        match unit.kind {
            Kind::Gap { .. } | Kind::Unparsed { .. } => true,
            Kind::Fpdu(_) => unit.incomplete || !begins(),
            Kind::Startup(..) | Kind::Streaming { .. } | Kind::Sdp(..) | Kind::PortMapper(_) => unit.incomplete,
        }
    }
}

impl DirectionStats {
    pub(super) fn unit(&mut self, unit: &Unit<'_>) {
        self.incomplete += u64::from(unit.incomplete);
        match &unit.kind {
            Kind::Startup(kind, part) => self.startup = startup(*kind, part.raw().0),
            Kind::Fpdu(fpdu) => {
                self.fpdus += 1;
                self.ulpdu_octets += u64::from(fpdu.layout.ulpdu_length);
                *self.crc.entry(fpdu.crc_status.name()).or_default() += 1;
                *self.markers.entry(fpdu.marker_status.name()).or_default() += 1;
                let ulpdu = fpdu.ulpdu();
                let (opcode, payload) = match Segment::parse(ulpdu.raw().0) {
                    Ok(segment) if ulpdu.get(0..2).is_none() => ("not captured", segment.payload().len()),
                    Ok(segment) => (segment.ulp_control().opcode().name(), segment.payload().len()),
                    Err(_) => ("too short", 0),
                };
                self.payload_octets += payload as u64;
                add(&mut self.opcodes, opcode, 1);
                add(&mut self.opcode_octets, opcode, payload as u64);
            }
            Kind::Sdp(_, order, part) => {
                let sdp = self.sdp.get_or_insert_default();
                let Some((bsdh, _)) = RawBsdh::read(part.beginning(), *order) else { return };
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

    /// Number of FPDUs with a wrong CRC.
    #[must_use]
    pub fn bad_crc(&self) -> u64 {
        self.crc.get(CrcStatus::Bad.name()).copied().unwrap_or(0)
    }

    /// Number of FPDUs with wrong or misplaced markers.
    #[must_use]
    pub fn wrong_markers(&self) -> u64 {
        let of = |status: MarkerStatus| self.markers.get(status.name()).copied().unwrap_or(0);
        of(MarkerStatus::BadValue) + of(MarkerStatus::Misplaced)
    }
}

/// Adds `count` to the entry `name`, and creates the entry if it does not exist.
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
