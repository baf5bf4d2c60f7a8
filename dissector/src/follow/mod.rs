//! The monitor's state of a connection: the facts that rules check. Each subject has one file.
//!
//! The parser delivers the capture as units. A unit is an FPDU, a start-up frame, an SDP message, a
//! datagram, octets in streaming mode, octets that could not be parsed, or a gap.
//!
//! This state only records what was captured. It never decides what should happen next. Except for
//! the wire types of `weft-core`, it shares no code with weft's own endpoint. With shared code, the
//! endpoint and the monitor could make the same mistake, and the monitor would not report the
//! mistake.

mod backlog;
mod connection;
pub mod context;
mod early_responses;
pub mod exchange;
mod first_segments;
mod message;
mod mpa;
mod operation;
mod port_mappers;
pub(crate) mod portmap;
mod reads;
mod remark;
pub mod sdp;
mod segment_location;
mod stag;
mod startup;
mod stream;
pub(crate) mod tcp;
mod terminate;
mod traffic;
mod window;

pub(crate) use connection::{Connection, StartupPair};
pub(crate) use first_segments::FirstSegment;
pub(crate) use mpa::MpaState;
pub(crate) use operation::{Overrun, RequestKind};
pub(crate) use port_mappers::PortMappers;
pub(crate) use reads::Excess;
pub(crate) use remark::{Remark, RemarkKind};
pub(crate) use startup::StartupFrame;
pub(crate) use stream::{AfterStartup, Stream, TerminateSummary};
pub(crate) use terminate::{LoggedSegment, TerminateMessage};
pub(crate) use traffic::{Fault, Traffic};

use weft_core::wire::sdp::{RawBsdh, RawHeader};

use crate::direction::Direction;
use crate::fact::Fact;
use crate::ip::Segment;
use crate::parse::SegmentView;
use crate::parse::{Carrier, Kind, Unit};
use crate::upper::{Recognition, Ulp, UlpMessage, rpcrdma};
use context::Context;

/// The complete state of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    /// How the connection began and ended.
    pub(crate) connection: Connection,
    /// The state of MPA, and of TCP below MPA.
    pub(crate) mpa: MpaState,
    /// Messages, operations and STags of DDP and RDMAP.
    pub(crate) traffic: Traffic,
    /// Remarks on the latest unit: facts that do not fit earlier units.
    remarks: Vec<Remark>,
    /// Recognises the protocol that the Sends carry.
    protocol: Recognition,
    /// Follows the messages of RPC-over-RDMA.
    rpc: rpcrdma::Follower,
    /// The knowledge that outputs and filters receive with each unit.
    context: Context,
    /// Whether the direction opposite to the current segment has octets that were captured but not
    /// parsed yet.
    pub(crate) peer_has_unread: bool,
    /// Whether the protocols above RDMAP, except SDP, are ignored.
    pub(crate) ignores_ulps: bool,
}

impl ConnectionState {
    /// Records the flags of a TCP segment.
    pub(crate) fn record_segment(&mut self, direction: Direction, segment: &Segment<'_>) {
        self.connection.record_segment(direction, segment);
        self.mpa.record_segment(direction, segment);
        if (segment.fin || segment.rst)
            && let Some(sdp) = &mut self.context.sdp
        {
            sdp.closing.llp_end.get_or_insert(segment.frame);
        }
    }

    /// Records a unit. `view` is the DDP segment of the unit, if its octets are trustworthy.
    pub(crate) fn record_unit(&mut self, unit: &Unit<'_>, view: Option<&SegmentView<'_>>) {
        self.remarks.clear();
        self.connection.record_unit(unit);
        self.mpa.record_unit(&self.connection, unit, view);
        // If CRC is not in use, an FPDU is parsed only when the next FPDU of the direction has
        // arrived. Therefore the response to an FPDU is sometimes parsed before the FPDU.
        let in_send_order = self.is_in_send_order() && !self.traffic.crc_is_off();
        self.traffic.record_unit(unit, view, &self.connection, in_send_order, &mut self.remarks);
        let direction = unit.direction();
        if let Some(sdp) = &mut self.context.sdp {
            match (&unit.kind, view) {
                (Kind::Fpdu(_), Some(view)) => {
                    sdp.record_segment(direction, view, unit);
                    for fact in &self.traffic.facts {
                        if let Fact::Operation(read) = fact
                            && !read.atomic
                            && read.len > 0
                        {
                            sdp.record_read_response(read.direction.into());
                        }
                    }
                }
                (Kind::Fpdu(_) | Kind::Gap { .. } | Kind::Unparsed { .. }, _) => sdp.record_missing_octets(direction),
                (Kind::Streaming { .. }, _) if unit.incomplete => sdp.record_missing_octets(direction),
                _ => {}
            }
        }
        if !self.ignores_ulps {
            if self.context.sdp.is_none() {
                self.record_ulp(unit, view);
            } else {
                self.context.ulp_message = None;
            }
            self.record_smb(unit, view);
            self.record_rpc(unit, view);
        }
        if let Kind::Sdp(carrier, order, part) = unit.kind {
            let sdp = self.context.sdp.get_or_insert_with(|| Box::new(sdp::SdpState::begin(direction, carrier)));
            // There are two cases in which a unit can be delivered late. First, octets of its
            // direction are missing. Second, CRC is not in use: then the unit is delivered only
            // after the next unit has confirmed it.
            let late = |tcp: &tcp::TcpFacts| tcp.may_be_late_at(unit.frame) || tcp.missed || tcp.cut;
            let peer_is_late = self.peer_has_unread && self.traffic.crc_is_off();
            if peer_is_late || self.mpa.tcp.iter().any(late) {
                sdp.record_out_of_order();
            }
            let header = unit.locate_first(0..RawBsdh::LEN);
            match carrier {
                Carrier::Send if !sdp.has_trusted_send(direction) => sdp.record_unreadable_message(),
                _ => sdp.record_message(
                    direction,
                    (carrier, order, part),
                    (unit.frame, unit.position(), header),
                    &self.connection,
                ),
            }
            self.mpa.limit_sdp_reads(Direction::BOTH.map(|direction| sdp.peers[direction].setup));
        }
    }

    /// Passes a unit to the recognition of the protocol above RDMAP.
    fn record_ulp(&mut self, unit: &Unit<'_>, view: Option<&SegmentView<'_>>) {
        let direction = unit.direction();
        if let Kind::Startup(kind, part) = unit.kind {
            self.context.ulp_startup = self.protocol.startup(kind, direction, part);
        }
        // A message is large. Most units have none, and then nothing is copied.
        self.context.ulp_message = None;
        if let Some(message) = view.and_then(|view| self.protocol.segment(direction, view, unit.frame)) {
            self.context.ulp_message = Some(message);
        }
        self.context.ulp = self.protocol.name();
    }

    /// Passes a unit to the state of SMB Direct, if the connection carries this protocol.
    fn record_smb(&mut self, unit: &Unit<'_>, view: Option<&SegmentView<'_>>) {
        if self.context.ulp != Some(Ulp::SmbDirect) {
            self.context.smb = None;
            return;
        }
        let smb = self.context.smb.get_or_insert_with(Box::default);
        smb.start_unit();
        let direction = unit.direction();
        match (&unit.kind, view) {
            (Kind::Fpdu(_), Some(view)) => {
                let message = match &self.context.ulp_message {
                    Some(UlpMessage::SmbDirect(message)) => Some(message),
                    _ => None,
                };
                smb.segment(direction, view, message, (unit.frame, unit.time));
            }
            (Kind::Fpdu(_) | Kind::Gap { .. } | Kind::Unparsed { .. }, _) => smb.record_missing(direction),
            _ => {}
        }
    }

    /// Passes a unit to the follower of RPC-over-RDMA.
    fn record_rpc(&mut self, unit: &Unit<'_>, view: Option<&SegmentView<'_>>) {
        let direction = unit.direction();
        if let Kind::Startup(kind, part) = unit.kind {
            self.rpc.record_startup(direction, kind, part);
        }
        let is_recognised = self.context.ulp == Some(Ulp::RpcRdma);
        let view = view.filter(|_| self.context.sdp.is_none());
        let at = (unit.frame, unit.time);
        self.context.rpc = view.and_then(|view| self.rpc.record_segment(direction, view, at, is_recognised));
    }

    /// Returns whether the marker positions of `direction` are certain. If a start-up frame is
    /// missing, the positions are guessed until a correct marker is found.
    pub(crate) fn markers_are_certain(&self, direction: Direction) -> bool {
        self.mpa.streams[direction].has_correct_markers || self.connection.startup.iter().all(Option::is_some)
    }

    /// Returns whether the units of both directions are delivered in the order in which they were
    /// sent. The result is `false` if octets were not captured or were captured out of order, or if
    /// a SYN was not captured.
    pub(crate) fn is_in_send_order(&self) -> bool {
        self.connection.syn == [true; 2] && !self.mpa.tcp.iter().any(|tcp| tcp.missed || tcp.cut)
    }

    /// Returns whether a missing Terminate proves that the sender of `direction` sent none. This is
    /// not certain if octets are missing. It is not certain either if the capture begins so late
    /// that it has no SYN and no recognised FPDU of the direction.
    pub(crate) fn would_know_terminate(&self, direction: Direction) -> bool {
        let side = &self.traffic.directions[direction];
        !side.lost && (side.has_started() || self.connection.syn[direction])
    }

    /// Returns the context of the latest unit, if the context is relevant to this kind of unit.
    pub(crate) fn context_of(&self, unit: &Unit<'_>) -> Option<&Context> {
        let is_relevant = match unit.kind {
            Kind::Fpdu(_) => self.context.ulp.is_some(),
            Kind::Sdp(..) => true,
            Kind::Startup(..) => self.context.exchange.is_some() || self.context.ulp_startup.is_some(),
            _ => false,
        };
        is_relevant.then_some(&self.context)
    }

    /// Returns the context of the connection.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Memory in octets. Counts only the memory that grows with the activity of the connection.
    pub(crate) fn memory(&self) -> usize {
        self.traffic.memory() + self.context.memory() + self.protocol.memory() + self.rpc.memory()
    }

    /// Records that an exchange of the port mapper prepared the connection.
    pub(crate) fn set_exchange(&mut self, exchange: &exchange::Exchange) {
        self.context.exchange.get_or_insert_with(|| exchange.clone());
    }

    /// Returns whether the MPA Reply rejected the connection.
    pub(crate) fn is_rejected(&self) -> bool {
        self.connection.startup_pair().is_some_and(|pair| !pair.is_accepted())
    }

    /// Resets the state when MPA starts a second time on the same TCP connection, after a
    /// rejection. Only the TCP state and the port mapper exchange are kept.
    pub(crate) fn restart(&mut self) {
        let ConnectionState { connection, mpa, context, ignores_ulps, .. } = std::mem::take(self);
        let context = Context { exchange: context.exchange, ..Context::default() };
        *self = ConnectionState {
            connection: connection.restarted(),
            mpa: mpa.restarted(),
            context,
            ignores_ulps,
            ..ConnectionState::default()
        };
    }

    /// Records that the connection resumes an SDP connection that was suspended.
    pub(crate) fn resume(&mut self) {
        self.connection.resumes = true;
    }

    /// Ends the connection. Call this after the last unit.
    pub(crate) fn finish(&mut self) {
        for direction in Direction::BOTH {
            if self.mpa.tcp[direction].lacks_last_octets() {
                self.mpa.streams[direction].broken = true;
                self.traffic.record_loss(direction);
            }
        }
        let complete = self.traffic.is_complete() && self.connection.syn == [true; 2];
        if let Some(sdp) = &mut self.context.sdp {
            sdp.complete &= complete;
            sdp.finish();
        }
    }

    /// Facts that became certain with the last unit.
    pub(crate) fn facts(&self) -> &[Fact] {
        &self.traffic.facts
    }

    /// Facts to report at the end of the connection or the capture.
    pub(crate) fn last_facts(&mut self) -> impl Iterator<Item = Fact> {
        self.traffic.stags.drain().map(Fact::Stag)
    }

    /// Remarks on the last unit.
    pub(crate) fn remarks(&self) -> &[Remark] {
        &self.remarks
    }
}
