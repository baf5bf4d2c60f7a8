//! [`Track`]: everything that the diagnosis of one connection needs.
//!
//! **Memory.** A track has counters and bounded lists. Its size does not depend on the length of
//! the connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::wire::sdp::{FieldOrder, Mid, RawBsdh, RawHeader, RawSinkAvail, RawSrcAvail};

use crate::context::Context;
use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::fact::Fact;
use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::packet::TcpSegment;
use crate::parse::SegmentView;
use crate::sdp::{Closing, Profile};
use crate::stream_id::StreamId;
use crate::unit::{CrcStatus, Kind, Unit};
use crate::upper::Ulp;

use super::accesses::Accesses;
use super::buffers::{Advert, Allowed, Buffer, Buffers};
use super::carried::Counters;
use super::damage::BadFpdus;
use super::problems::Problems;
use super::reads::OutstandingReads;
use super::startup::{Startup, StartupReport};
use super::terminate::TerminateReport;
use super::transport::Transport;
use super::ulp_adverts;

/// Maximum number of FPDUs with a wrong CRC, and of invalidated STags, that are kept.
const MAX_EVENTS: usize = 16;

/// An FPDU with a wrong CRC.
#[derive(Debug, Clone, Copy)]
pub(super) struct BadCrc {
    pub(super) direction: Direction,
    pub(super) frame: FrameNumber,
    /// Whether the TCP checksum is wrong, too.
    pub(super) is_damaged: bool,
    /// The segment that repeats the FPDU with a right CRC.
    pub(super) repaired: Option<FrameNumber>,
}

/// An STag that a Send invalidated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Invalidation {
    /// The endpoint that owns the STag. Its peer sent the Send.
    pub(super) owner: Direction,
    pub(super) stag: u32,
    pub(super) frame: FrameNumber,
}

/// SDP at the end of the connection.
#[derive(Debug, Clone)]
pub(super) struct SdpEnd {
    /// The direction of the Connecting Peer.
    pub(super) connecting: Direction,
    pub(super) profile: Option<&'static str>,
    pub(super) closing: Closing,
}

/// The state of the diagnosis of one connection. Arrays have one element for each direction.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) stream: StreamId,
    /// The sender of the first segment.
    first: SocketAddr,
    /// The addresses of the endpoints.
    pub(super) ends: [String; 2],
    /// The first and the last segment.
    pub(super) began: CapturePoint,
    pub(super) last: CapturePoint,
    pub(super) transport: Transport,
    pub(super) startup: Startup,
    pub(super) carried: [Counters; 2],
    /// The buffers that each endpoint advertised.
    pub(super) buffers: [Buffers; 2],
    pub(super) accesses: [Accesses; 2],
    pub(super) terminates: [Option<TerminateReport>; 2],
    pub(super) bad_crcs: VecDeque<BadCrc>,
    bad_fpdus: BadFpdus,
    /// The Read Requests of each endpoint without a response.
    pub(super) reads: [OutstandingReads; 2],
    /// The length in octets of the longest Send that each endpoint announced to accept, and the
    /// frame of the announcement.
    pub(super) max_receive: [Option<(u32, FrameNumber)>; 2],
    /// The time of the MPA Request.
    pub(super) request_time: Option<u64>,
    pub(super) invalidations: VecDeque<Invalidation>,
    pub(super) problems: Problems,
    pub(super) sdp: Option<SdpEnd>,
    pub(super) ulp: Option<Ulp>,
    /// Number of the port mapper exchange that prepared the connection.
    pub(super) exchange: Option<u64>,
    /// Whether the connection has iWARP or SDP.
    pub(super) is_iwarp: bool,
}

impl Track {
    /// Creates the state of a connection whose first segment is `segment`.
    pub(super) fn new(stream: StreamId, segment: &TcpSegment<'_>) -> Self {
        let began = CapturePoint { frame: segment.frame(), time: segment.time() };
        Track {
            stream,
            first: segment.src(),
            ends: [segment.src().to_string(), segment.dst().to_string()],
            began,
            last: began,
            transport: Transport::default(),
            startup: Startup::default(),
            carried: Default::default(),
            buffers: Default::default(),
            accesses: Default::default(),
            terminates: [None; 2],
            bad_crcs: VecDeque::new(),
            bad_fpdus: BadFpdus::default(),
            reads: Default::default(),
            max_receive: [None; 2],
            request_time: None,
            invalidations: VecDeque::new(),
            problems: Problems::default(),
            sdp: None,
            ulp: None,
            exchange: None,
            is_iwarp: false,
        }
    }

    /// Creates the state of a connection whose earlier segments are only SYNs. These SYNs are not
    /// known any more. `segment` is their answer.
    pub(super) fn of_answer(stream: StreamId, segment: &TcpSegment<'_>) -> Self {
        let (first, other) = (segment.dst(), segment.src());
        Track { first, ends: [first.to_string(), other.to_string()], ..Track::new(stream, segment) }
    }

    /// Returns whether the connection has only SYNs of its first endpoint.
    pub(super) fn is_unanswered(&self) -> bool {
        self.transport.is_unanswered()
    }

    /// The address of the endpoint that sends in `direction`.
    pub(super) fn end(&self, direction: Direction) -> &str {
        &self.ends[direction]
    }

    /// Records a segment.
    pub(super) fn segment(&mut self, segment: &TcpSegment<'_>) {
        let direction = Direction::sent_by(segment.src(), self.first);
        self.last = CapturePoint { frame: segment.frame(), time: segment.time() };
        let repeats = self.transport.record(direction, segment);
        if repeats && let Some(frame) = self.bad_fpdus.repeat(direction, segment) {
            let bad = self.bad_crcs.iter_mut().find(|bad| bad.direction == direction && bad.frame == frame);
            bad.into_iter().for_each(|bad| bad.repaired = Some(segment.frame()));
        }
    }

    /// Records a unit (FPDU, start-up frame, SDP message, gap).
    pub(super) fn unit(&mut self, unit: &Unit<'_>) {
        let direction = unit.direction();
        self.carried[direction].unit(unit);
        match &unit.kind {
            Kind::Startup(kind, part) => {
                self.is_iwarp = true;
                if let Some(report) = StartupReport::read(*kind, *part, direction, unit.frame) {
                    if !report.reply {
                        self.request_time = Some(unit.time);
                    }
                    self.startup.record(report);
                }
            }
            Kind::Fpdu(fpdu) => {
                self.is_iwarp = true;
                if fpdu.crc_status == CrcStatus::Bad {
                    if self.bad_crcs.len() >= MAX_EVENTS {
                        self.bad_crcs.pop_front();
                    }
                    let is_damaged = unit.incomplete;
                    let repaired = self.bad_fpdus.add(unit);
                    self.bad_crcs.push_back(BadCrc { direction, frame: unit.frame, is_damaged, repaired });
                }
                if let Some(view) = SegmentView::of(unit.parsed) {
                    self.ddp_segment(direction, &view, unit);
                }
            }
            Kind::Sdp(_, order, part) => {
                self.is_iwarp = true;
                let octets = part.beginning();
                if let Some((bsdh, rest)) = RawBsdh::read(octets, *order) {
                    self.sdp_advert(direction, bsdh.mid(), rest, *order, unit.frame);
                }
            }
            _ => {}
        }
    }

    fn ddp_segment(&mut self, direction: Direction, view: &SegmentView<'_>, unit: &Unit<'_>) {
        self.accesses[direction].record(view, unit.frame);
        let Segment::Untagged(header, _) = view.segment else { return };
        let opcode = view.opcode();
        if opcode.is_send() && header.mo.get() == 0 {
            let octets = view.payload.beginning();
            let is_complete = view.last() && octets.len() == view.payload_len as usize;
            self.buffers[direction].add_send(unit.frame, octets, is_complete);
            let message = unit.context.and_then(|context| context.ulp_message.as_ref());
            if let Some(max) = message.and_then(ulp_adverts::max_receive) {
                self.max_receive[direction] = Some((max, unit.frame));
            }
            if let Some(buffer) = ulp_adverts::read(octets, unit.frame) {
                self.buffers[direction].add(buffer);
            }
        } else if opcode == Opcode::READ_REQUEST {
            self.read_request(direction, view, unit);
        } else if opcode == Opcode::TERMINATE && self.terminates[direction].is_none() {
            let mut report = TerminateReport::read(view, unit.frame, unit.time);
            if let Some(report) = &mut report {
                let number = report.queue().zip(report.msn());
                let send = number.and_then(|(queue, msn)| self.accesses[direction.peer()].send_with(queue, msn));
                report.target = send.map(|send| send.last);
            }
            self.terminates[direction] = report;
        }
    }

    /// Records a Read Request, and the buffer of its Data Sink.
    fn read_request(&mut self, direction: Direction, view: &SegmentView<'_>, unit: &Unit<'_>) {
        self.reads[direction].add(CapturePoint { frame: unit.frame, time: unit.time });
        if let Some(read) = view.payload.all().and_then(|octets| ReadRequest::parse(octets).ok()) {
            let (stag, to, len) = (read.sink_stag, read.sink_to, u64::from(read.rdmardsz));
            let (frame, advert, allowed) = (unit.frame, Advert::ReadRequest, Allowed::Unknown);
            self.buffers[direction].add(Buffer { stag, to, len, frame, advert, allowed });
        }
    }

    /// Records the buffer that an SDP message advertises. `rest` has the octets after the BSDH.
    fn sdp_advert(&mut self, direction: Direction, mid: Mid, rest: &[u8], order: FieldOrder, frame: FrameNumber) {
        let fields = match mid {
            Mid::SRC_AVAIL => RawSrcAvail::read(rest, order)
                .map(|(raw, _)| (raw.stag, raw.va, raw.len, Advert::SrcAvail, Allowed::Reads)),
            Mid::SINK_AVAIL => RawSinkAvail::read(rest, order)
                .map(|(raw, _)| (raw.stag, raw.va, raw.len, Advert::SinkAvail, Allowed::Writes)),
            _ => None,
        };
        if let Some((stag, to, len, advert, allowed)) = fields {
            let (stag, to, len) = (stag.get(), to.get(), u64::from(len.get()));
            self.buffers[direction].add(Buffer { stag, to, len, frame, advert, allowed });
        }
    }

    /// Records a fact of the monitor.
    pub(super) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Message(message) => {
                let direction = Direction::from(message.direction);
                self.carried[direction].message(message);
                self.accesses[direction].message(message);
            }
            Fact::Stag(stag) => {
                if let Some(frame) = stag.invalidated {
                    if self.invalidations.len() >= MAX_EVENTS {
                        self.invalidations.pop_front();
                    }
                    self.invalidations.push_back(Invalidation { owner: stag.owner.into(), stag: stag.stag, frame });
                }
            }
            Fact::Terminate(terminate) => {
                if let Some(report) = &mut self.terminates[Direction::from(terminate.direction)] {
                    report.complete(terminate);
                }
            }
            Fact::Operation(operation) => {
                let direction = Direction::from(operation.direction);
                // A response after the RST of the requester comes too late.
                if self.transport.sides[direction].rst.is_none() {
                    self.reads[direction].complete(operation.frames.0);
                }
            }
        }
    }

    /// Records a finding about this connection.
    pub(super) fn finding(&mut self, finding: &Finding) {
        self.problems.add(finding);
    }

    /// Records the state of the connection at its end.
    pub(super) fn context(&mut self, context: &Context) {
        self.ulp = context.ulp.or(self.ulp);
        self.exchange = context.exchange.as_ref().map(|exchange| exchange.exchange).or(self.exchange);
        if let Some(sdp) = context.sdp.as_deref() {
            let (connecting, profile) = (sdp.connecting, sdp.profile.map(Profile::name));
            self.sdp = Some(SdpEnd { connecting, profile, closing: sdp.closing.clone() });
        }
    }

    /// Returns whether the capture lacks octets between its first and its last segment.
    pub(super) fn lacks_octets(&self) -> bool {
        !self.carried.iter().all(Counters::is_complete)
    }

    /// Returns whether the capture has all octets of both directions, from the SYNs on.
    pub(super) fn is_complete(&self) -> bool {
        let has_syns = self.transport.sides.iter().all(|side| side.syn.is_some());
        has_syns && self.carried.iter().all(Counters::is_complete)
    }
}
