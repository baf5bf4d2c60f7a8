//! The state of MPA: the TCP connection below it, the start-up, and the FPDUs.

use super::connection::{Connection, Pair};
use super::opener::Openers;
use super::reads::{self, Reads};
use super::sdp::Setup;
use super::stream::Stream;
use super::tcp::{self, TcpFacts};
use super::window::Window;
use crate::direction::Direction;
use crate::ip::Segment;
use crate::parse::SegmentView;
use crate::parse::{Kind, Unit};
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::NOT_NEGOTIATED;

/// The state of MPA. Arrays have one element for each direction.
#[derive(Debug, Default)]
pub(crate) struct MpaState {
    /// Facts from TCP's headers.
    pub(crate) tcp: [TcpFacts; 2],
    /// The receive window that each endpoint advertised.
    pub(crate) windows: [Window; 2],
    /// Facts about the FPDUs and other units of each direction.
    pub(crate) streams: [Stream; 2],
    /// Unanswered Read Requests of each direction.
    pub(crate) reads: [Reads; 2],
    /// The first segments of each direction.
    pub(crate) openers: [Openers; 2],
    /// The version of DDP and RDMAP that both start-up frames require; `None` if it is not known.
    due_version: Option<u8>,
}

impl MpaState {
    /// Returns the state to keep when MPA starts again on the same TCP connection, after a
    /// rejection.
    pub(super) fn restarted(self) -> Self {
        MpaState { tcp: self.tcp, windows: self.windows, ..MpaState::default() }
    }

    /// Records the header of a TCP segment.
    pub(super) fn segment(&mut self, direction: Direction, segment: &Segment<'_>) {
        self.tcp[direction].segment(segment);
        if segment.ack_flag && !segment.rst {
            self.tcp[direction.peer()].acknowledged(segment.ack, segment.frame);
        }
        let scale = tcp::window_scale(&self.tcp[direction], &self.tcp[direction.peer()]);
        self.windows[direction].segment(segment, scale);
    }

    /// Returns whether the sender of `direction` may have known, when it sent frame `at`, the
    /// octets of its peer up to stream position `end`, which `frame` carries. The result is `false`
    /// if frame `at` acknowledges less. If that acknowledgement is not known, the order of frames
    /// decides.
    pub(crate) fn may_know(&self, direction: Direction, at: u64, frame: u64, end: u64) -> bool {
        at > frame && self.tcp[direction].had_received(at, &self.tcp[direction.peer()], end) != Some(false)
    }

    /// Records a unit that `connection` has already recorded.
    pub(super) fn unit(&mut self, connection: &Connection, unit: &Unit<'_>, view: Option<&SegmentView<'_>>) {
        let direction = unit.direction();
        let tcp = &self.tcp;
        let stream = &mut self.streams[direction];
        let (index, was_broken) = (stream.fpdus, stream.broken);
        stream.unit(unit, view, self.due_version, [&tcp[direction], &tcp[direction.peer()]]);
        if let Kind::Startup(..) = unit.kind {
            self.due_version = connection.pair().map(|pair| u8::from(!pair.is_rdmac()));
            self.limit_reads(connection);
        }
        if let Some(view) = view
            && (index < 2 || !connection.startup.iter().all(Option::is_none))
        {
            self.openers[direction].segment(index, unit, view, was_broken);
        }
        let is_ready_to_receive = index == 0
            && self.openers[direction].first.is_some_and(|opener| opener.is_empty_read())
            && connection.initiator() == Some(direction);
        if unit.stream.is_some() && !matches!(unit.kind, Kind::Startup(..) | Kind::Sdp(..)) {
            reads::unit(&mut self.reads, unit, view, is_ready_to_receive);
        }
    }

    /// Sets the limits from LocORD and LocIRD of both SDP peers.
    pub(super) fn limit_sdp_reads(&mut self, setups: [Option<Setup>; 2]) {
        for (direction, reads) in Direction::BOTH.into_iter().zip(&mut self.reads) {
            reads.loc_ord.most = setups[direction].map(|setup| u32::from(setup.loc_ord));
            reads.loc_ird.most = setups[direction.peer()].map(|setup| u32::from(setup.loc_ird));
        }
    }

    /// Sets the limits of both directions from IRD and ORD of both start-up frames.
    fn limit_reads(&mut self, connection: &Connection) {
        let Some(pair) = connection.pair().filter(Pair::accepted) else { return };
        let depth = |depth: u16| (depth != NOT_NEGOTIATED).then_some(u32::from(depth));
        let (Some(request), Some(reply)) = (pair.request.words, pair.reply.words) else { return };
        self.reads[pair.initiator].ord.most = depth(request.ord);
        self.reads[pair.initiator].ird.most = depth(reply.ird);
        self.reads[pair.responder].ord.most = depth(reply.ord);
        self.reads[pair.responder].ird.most = depth(request.ird);
        debug_assert_eq!(pair.request.kind, StartupKind::Request);
    }
}
