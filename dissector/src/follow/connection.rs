//! Records how a connection began and ended, and the role of each direction.

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::KEY_LEN;

use super::startup::StartupFrame;
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::ip::Segment;
use crate::parse::{Carrier, Kind, Location, Unit};

/// The first octets of a direction, if they are outside MPA and are not a start-up frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamingStart {
    /// The first few octets.
    pub head: Vec<u8>,
    /// Location of the octets where the MPA key would be.
    pub key: Location,
    /// Stream position of the first octet.
    pub position: u64,
    /// Stream position after the last octet outside MPA.
    pub end: u64,
}

/// Facts about a connection. Arrays have one element for each direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// Whether the SYN of this direction was captured.
    pub syn: [bool; 2],
    /// The direction of the endpoint that opened the connection. This endpoint sent the SYN without
    /// ACK.
    pub active_opener: Option<Direction>,
    /// The frame of the first FIN of each direction.
    pub fin: [Option<FrameNumber>; 2],
    /// The frame of the first RST of each direction.
    pub rst: [Option<FrameNumber>; 2],
    /// The start-up frame of each direction.
    pub startup: [Option<StartupFrame>; 2],
    /// The first octets of each direction that began outside MPA. `None` if the direction did not
    /// begin outside MPA, or if some of these octets were not captured.
    pub streaming_start: [Option<StreamingStart>; 2],
    /// The direction that sent an SDP Hello in streaming mode. If there is such a Hello, the
    /// connection may have no start-up frames.
    pub streaming_hello: Option<Direction>,
    /// Whether this connection resumes an SDP connection that was suspended.
    pub resumes: bool,
    /// When the last segment of the connection was captured, in nanoseconds since 1970.
    pub last_time: u64,
    units: [u64; 2],
}

impl Connection {
    /// After a rejection, MPA can start a second time on the same TCP connection. Returns the facts
    /// that stay valid in this case.
    pub(super) fn restarted(self) -> Self {
        let Connection { syn, active_opener, fin, rst, resumes, last_time, .. } = self;
        Connection { syn, active_opener, fin, rst, resumes, last_time, ..Connection::default() }
    }

    /// Records the flags of a segment.
    pub(crate) fn record_segment(&mut self, direction: Direction, segment: &Segment<'_>) {
        self.syn[direction] |= segment.syn;
        if segment.syn && !segment.ack_flag {
            self.active_opener = Some(direction);
        }
        self.last_time = segment.time;
        if segment.fin {
            self.fin[direction].get_or_insert(segment.frame);
        }
        if segment.rst {
            self.rst[direction].get_or_insert(segment.frame);
        }
    }

    /// Records what a unit (start-up frame, FPDU, SDP message) shows about the connection.
    pub(crate) fn record_unit(&mut self, unit: &Unit<'_>) {
        let direction = unit.direction();
        let first = self.units[direction] == 0;
        self.units[direction] += 1;
        match &unit.kind {
            Kind::Startup(kind, part) => self.startup[direction] = StartupFrame::read(*kind, *part, unit),
            Kind::Streaming { head, len, .. } if first && !unit.incomplete => {
                let (head, key, position) = (head.to_vec(), unit.locate_first(0..KEY_LEN), unit.position());
                self.streaming_start[direction] = Some(StreamingStart { head, key, position, end: position + len });
            }
            Kind::Sdp(Carrier::Streaming, ..) => self.streaming_hello = Some(direction),
            _ => {}
        }
    }

    /// Returns the direction of the MPA Request. If no Request was found, but a Reply was found,
    /// returns the direction opposite to the direction of the Reply.
    pub(crate) fn initiator(&self) -> Option<Direction> {
        let of =
            |kind: StartupKind| Direction::BOTH.into_iter().find(|d| self.startup[*d].is_some_and(|s| s.kind == kind));
        of(StartupKind::Request).or_else(|| of(StartupKind::Reply).map(Direction::peer))
    }

    /// Returns the MPA Request and the MPA Reply, if both frames were found and came from different
    /// endpoints.
    pub(crate) fn startup_pair(&self) -> Option<StartupPair<'_>> {
        let initiator = self.initiator()?;
        let (request, reply) = (self.startup[initiator].as_ref()?, self.startup[initiator.peer()].as_ref()?);
        let kinds = (request.kind, reply.kind) == (StartupKind::Request, StartupKind::Reply);
        kinds.then_some(StartupPair { request, reply, initiator, responder: initiator.peer() })
    }

    /// Returns the start-up frame of the endpoint that receives `direction`.
    pub(crate) fn peer_startup(&self, direction: Direction) -> Option<&StartupFrame> {
        self.startup[direction.peer()].as_ref()
    }
}

/// The MPA Request and the MPA Reply of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartupPair<'c> {
    /// The MPA Request.
    pub request: &'c StartupFrame,
    /// The MPA Reply.
    pub reply: &'c StartupFrame,
    /// The direction of the Request.
    pub initiator: Direction,
    /// The direction of the Reply.
    pub responder: Direction,
}

impl StartupPair<'_> {
    /// Returns whether the Reply accepts the connection.
    pub(crate) fn is_accepted(&self) -> bool {
        !self.reply.rejects()
    }

    /// Returns whether the Reply selects the MPA variant of the RDMA Consortium: revision 0 with
    /// markers.
    pub(crate) fn is_rdmac(&self) -> bool {
        self.reply.revision == 0 && self.reply.wants_markers()
    }

    /// Returns whether both endpoints agreed on the peer-to-peer model of RFC 6581.
    pub(crate) fn is_peer_to_peer(&self) -> bool {
        let a = |frame: &StartupFrame| frame.words.is_some_and(|words| words.peer_to_peer);
        self.is_accepted() && a(self.request) && a(self.reply)
    }
}
