//! How a connection began and ended, and which direction had which role.

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::KEY_LEN;

use super::startup::StartupSeen;
use crate::direction::Direction;
use crate::ip::Segment;
use crate::parse::{Carrier, Kind, Located, Unit};

/// The first unit of a direction if it is not a start-up frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The first octets, as many as the unit shows.
    pub head: Vec<u8>,
    /// Location of the octets where the MPA key would be.
    pub key: Located,
    /// Stream position of its first octet.
    pub position: u64,
    /// Stream position after its last octet.
    pub end: u64,
}

/// Facts of a connection; index 0 and 1 are its directions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// Was the SYN of this direction captured?
    pub syn: [bool; 2],
    /// The direction of the SYN without ACK.
    pub opener: Option<Direction>,
    /// The frame of the first FIN.
    pub fin: [Option<u64>; 2],
    /// The frame of the first RST.
    pub rst: [Option<u64>; 2],
    /// The direction's own start-up frame.
    pub startup: [Option<StartupSeen>; 2],
    /// How the direction began, if it began with octets outside MPA and all of them were captured.
    pub beginning: [Option<Beginning>; 2],
    /// The direction that sent an SDP Hello in streaming mode. Start-up frames may then be absent.
    pub streaming_hello: Option<Direction>,
    /// Does it replace an SDP connection that was suspended?
    pub resumes: bool,
    /// When its last segment was captured, in nanoseconds since 1970.
    pub last_time: u64,
    units: [u64; 2],
}

impl Connection {
    /// The facts of a connection that starts again.
    pub(super) fn restarted(self) -> Self {
        let Connection { syn, opener, fin, rst, resumes, last_time, .. } = self;
        Connection { syn, opener, fin, rst, resumes, last_time, ..Connection::default() }
    }

    /// Records the flags of a segment.
    pub(crate) fn segment(&mut self, direction: Direction, segment: &Segment<'_>) {
        self.syn[direction] |= segment.syn;
        if segment.syn && !segment.ack_flag {
            self.opener = Some(direction);
        }
        self.last_time = segment.time;
        if segment.fin {
            self.fin[direction].get_or_insert(segment.frame);
        }
        if segment.rst {
            self.rst[direction].get_or_insert(segment.frame);
        }
    }

    /// Records what a unit shows of the connection.
    pub(crate) fn unit(&mut self, unit: &Unit<'_>) {
        let direction = unit.direction();
        let first = self.units[direction] == 0;
        self.units[direction] += 1;
        match &unit.kind {
            Kind::Startup(kind, part) => self.startup[direction] = StartupSeen::of(*kind, *part, unit),
            Kind::Streaming { head, len, .. } if first && !unit.incomplete => {
                let (head, key, position) = (head.to_vec(), unit.locate_first(0..KEY_LEN), unit.position());
                self.beginning[direction] = Some(Beginning { head, key, position, end: position + len });
            }
            Kind::Sdp(Carrier::Streaming, ..) => self.streaming_hello = Some(direction),
            _ => {}
        }
    }

    /// The direction that sent the MPA Request; derived from the Reply if no Request was found.
    pub(crate) fn initiator(&self) -> Option<Direction> {
        let of =
            |kind: StartupKind| Direction::BOTH.into_iter().find(|d| self.startup[*d].is_some_and(|s| s.kind == kind));
        of(StartupKind::Request).or_else(|| of(StartupKind::Reply).map(Direction::peer))
    }

    /// Request and Reply, if both were found and came from different ends.
    pub(crate) fn pair(&self) -> Option<Pair<'_>> {
        let initiator = self.initiator()?;
        let (request, reply) = (self.startup[initiator].as_ref()?, self.startup[initiator.peer()].as_ref()?);
        let kinds = (request.kind, reply.kind) == (StartupKind::Request, StartupKind::Reply);
        kinds.then_some(Pair { request, reply, initiator, responder: initiator.peer() })
    }

    /// The start-up frame of the end that receives what `direction` sends.
    pub(crate) fn peer_startup(&self, direction: Direction) -> Option<&StartupSeen> {
        self.startup[direction.peer()].as_ref()
    }
}

/// Both start-up frames of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'c> {
    /// The Request.
    pub request: &'c StartupSeen,
    /// The Reply.
    pub reply: &'c StartupSeen,
    /// The direction of the Request.
    pub initiator: Direction,
    /// The direction of the Reply.
    pub responder: Direction,
}

impl Pair<'_> {
    /// Was the connection accepted?
    pub(crate) fn accepted(&self) -> bool {
        !self.reply.rejects()
    }

    /// Did both ends agree on the RDMA Consortium's variant (version 0, markers and CRC both ways)?
    pub(crate) fn is_rdmac(&self) -> bool {
        self.reply.revision == 0 && self.reply.wants_markers()
    }

    /// Did both ends agree on the peer-to-peer model of RFC 6581?
    pub(crate) fn is_peer_to_peer(&self) -> bool {
        let a = |frame: &StartupSeen| frame.words.is_some_and(|words| words.peer_to_peer);
        self.accepted() && a(self.request) && a(self.reply)
    }
}
