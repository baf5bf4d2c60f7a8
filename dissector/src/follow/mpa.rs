//! Records the state of MPA: the TCP connection below MPA, the start-up, and the FPDUs.

use super::connection::{Connection, StartupPair};
use super::first_segments::FirstSegments;
use super::reads::{self, Reads};
use super::sdp::Setup;
use super::stream::Stream;
use super::tcp::{self, TcpFacts};
use super::window::Window;
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
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
    /// The first DDP segments of each direction.
    pub(crate) first_segments: [FirstSegments; 2],
    /// The version of DDP and RDMAP that the start-up frames require; `None` if it is not known.
    due_version: Option<u8>,
}

impl MpaState {
    /// After a rejection, MPA can start a second time on the same TCP connection. Returns the state
    /// that stays valid in this case.
    pub(super) fn restarted(self) -> Self {
        MpaState { tcp: self.tcp, windows: self.windows, ..MpaState::default() }
    }

    /// Records the header of a TCP segment.
    pub(super) fn record_segment(&mut self, direction: Direction, segment: &Segment<'_>) {
        self.tcp[direction].record_segment(segment);
        if segment.ack_flag && !segment.rst {
            self.tcp[direction.peer()].record_ack(segment.ack, segment.frame);
        }
        let scale = tcp::window_scale(&self.tcp[direction], &self.tcp[direction.peer()]);
        self.windows[direction].record_segment(segment, scale);
    }

    /// When the sender of `direction` sent frame `at`, it may already have received certain octets
    /// of its peer. Returns whether this is possible. The octets are in frame `frame`, and end at
    /// stream position `end`. Frame `at` must come after frame `frame`, and must acknowledge all
    /// these octets. If the acknowledgement of frame `at` is not known, only the order of the two
    /// frames decides.
    pub(crate) fn may_know(&self, direction: Direction, at: FrameNumber, frame: FrameNumber, end: u64) -> bool {
        at > frame && self.tcp[direction].had_received(at, &self.tcp[direction.peer()], end) != Some(false)
    }

    /// Records a unit that `connection` has already recorded.
    pub(super) fn record_unit(&mut self, connection: &Connection, unit: &Unit<'_>, view: Option<&SegmentView<'_>>) {
        let direction = unit.direction();
        let tcp = &self.tcp;
        let stream = &mut self.streams[direction];
        let (index, was_broken) = (stream.fpdus, stream.broken);
        stream.record_unit(unit, view, self.due_version, [&tcp[direction], &tcp[direction.peer()]]);
        if let Kind::Startup(..) = unit.kind {
            self.due_version = connection.startup_pair().map(|pair| u8::from(!pair.is_rdmac()));
            self.limit_reads(connection);
        }
        if let Some(view) = view
            && (index < 2 || !connection.startup.iter().all(Option::is_none))
        {
            self.first_segments[direction].record_segment(index, unit, view, was_broken);
        }
        let is_ready_to_receive = index == 0
            && self.first_segments[direction].first.is_some_and(|segment| segment.is_empty_read())
            && connection.initiator() == Some(direction);
        if unit.stream.is_some() && !matches!(unit.kind, Kind::Startup(..) | Kind::Sdp(..)) {
            reads::record_unit(&mut self.reads, unit, view, is_ready_to_receive);
        }
    }

    /// Sets the limits on unanswered Read Requests. The limits are LocORD and LocIRD of both SDP
    /// peers.
    pub(super) fn limit_sdp_reads(&mut self, setups: [Option<Setup>; 2]) {
        for (direction, reads) in Direction::BOTH.into_iter().zip(&mut self.reads) {
            reads.loc_ord.max = setups[direction].map(|setup| u32::from(setup.loc_ord));
            reads.loc_ird.max = setups[direction.peer()].map(|setup| u32::from(setup.loc_ird));
        }
    }

    /// Sets the limits on unanswered Read Requests of both directions. The limits are IRD and ORD
    /// of both start-up frames.
    fn limit_reads(&mut self, connection: &Connection) {
        let Some(pair) = connection.startup_pair().filter(StartupPair::is_accepted) else { return };
        let depth = |depth: u16| (depth != NOT_NEGOTIATED).then_some(u32::from(depth));
        let (Some(request), Some(reply)) = (pair.request.words, pair.reply.words) else { return };
        self.reads[pair.initiator].ord.max = depth(request.ord);
        self.reads[pair.initiator].ird.max = depth(reply.ird);
        self.reads[pair.responder].ord.max = depth(reply.ord);
        self.reads[pair.responder].ird.max = depth(request.ird);
        debug_assert_eq!(pair.request.kind, StartupKind::Request);
    }
}
