//! Records the DDP and RDMAP traffic of a connection: messages, operations, STags, Terminates, and
//! the first fault of each direction.

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::NOT_NEGOTIATED;
use weft_core::wire::rdmap::Opcode;

use super::connection::Connection;
use super::message::{Messages, SegmentPosition};
use super::operation::Operations;
use super::remark::{Remark, RemarkKind};
use super::segment_location::SegmentLocation;
use super::stag::Stags;
use super::terminate::{SegmentLog, TerminateMessage};
use crate::direction::Direction;
use crate::fact::{Fact, Message, Terminate};
use crate::frame_number::FrameNumber;
use crate::parse::{CrcStatus, Fpdu, Kind, Unit};
use crate::parse::{SegmentView, ULPDU_AT, is_trusted, queue_of};

/// A segment that the receiver cannot accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The frame of the segment.
    pub frame: FrameNumber,
    /// Number of the segment in its direction; the first segment has number 0. `u64::MAX` if the
    /// header of the segment is not usable.
    pub number: u64,
    /// Stream position after the segment's FPDU.
    pub end: u64,
}

/// Whether the FPDUs of a direction have DDP headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Headers {
    /// No FPDU had a correct header so far.
    #[default]
    Unknown,
    /// The latest FPDU has a header.
    Present,
    /// The latest FPDU has no header, but earlier FPDUs have one.
    Missing,
}

/// The state of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirectionTraffic {
    /// The direction's messages.
    pub messages: Messages,
    /// Reads and atomic operations whose requests are sent in this direction.
    pub operations: Operations,
    /// The direction's first Terminate.
    pub terminate: Option<TerminateMessage>,
    /// The first segment that DDP or RDMAP cannot accept.
    pub fault: Option<Fault>,
    /// The first FPDU with a bad CRC.
    pub bad_crc: Option<Fault>,
    /// The frames of the first and the latest trustworthy FPDU.
    pub fpdus: Option<(FrameNumber, FrameNumber)>,
    /// The frame of the first FPDU whose CRC was not checked, and whether this FPDU has a CRC
    /// field.
    pub unchecked_crc: Option<(FrameNumber, bool)>,
    /// Whether octets of the direction were ever missing or not trustworthy.
    pub lost: bool,
    /// Whether the first loss consists of captured octets in which no FPDU was found.
    pub lost_framing: bool,
    /// The latest segments of the direction.
    pub log: SegmentLog,
    headers: Headers,
    has_started: bool,
}

/// The state of both directions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic {
    /// The state of each direction.
    pub directions: [DirectionTraffic; 2],
    /// The STags of both endpoints.
    pub stags: Stags,
    /// The version of DDP on this connection: the DV of the first segment, in either direction,
    /// with a DV that is not certainly wrong.
    pub version: Option<u8>,
    /// Whether each direction's start-up frame requests CRCs.
    wants_crc: [Option<bool>; 2],
    /// Revision of the Reply.
    reply_revision: Option<u8>,
    in_send_order: bool,
    /// Facts that became certain with the latest unit. [`Traffic::record_unit`] clears the list.
    pub facts: Vec<Fact>,
}

impl Traffic {
    /// Returns whether all octets of both directions are known, beginning with the first octet of
    /// each direction.
    pub(crate) fn is_complete(&self) -> bool {
        self.directions.iter().all(|side| !side.lost && (side.messages.is_complete() || !side.has_started))
    }

    /// Memory in use for unanswered requests and STags, in octets.
    pub(super) fn memory(&self) -> usize {
        self.directions.iter().map(|side| side.operations.memory()).sum::<usize>() + self.stags.memory()
    }

    /// If `unit` has the first Terminate of its direction, returns this Terminate.
    pub(crate) fn terminate_at(&self, unit: &Unit<'_>) -> Option<&TerminateMessage> {
        self.directions[unit.direction()].terminate.as_ref().filter(|seen| seen.is_in(unit))
    }

    /// Returns whether both start-up frames turn CRCs off.
    pub(crate) fn crc_is_off(&self) -> bool {
        self.wants_crc == [Some(false); 2]
    }

    /// Returns the version that a segment should have instead of `version`; `None` if `version` is
    /// possibly correct.
    ///
    /// RFC 5041 and RFC 5040 require version 1. If the Reply has revision 0, RFC 5044 Appendix C
    /// requires version 0. But Appendix C is informative. So if the Reply has revision 0 or is not
    /// known, both versions count as correct.
    pub(crate) fn wrong_version(&self, version: u8) -> Option<u8> {
        match (version, self.reply_revision) {
            (1, _) | (0, Some(0) | None) => None,
            (_, Some(0)) => Some(0),
            _ => Some(1),
        }
    }

    /// Processes a unit (FPDU, start-up frame, gap). If `in_send_order` is set, the units of both
    /// directions are delivered in the order in which they were sent.
    pub(crate) fn record_unit(
        &mut self,
        unit: &Unit<'_>,
        view: Option<&SegmentView<'_>>,
        connection: &Connection,
        in_send_order: bool,
        remarks: &mut Vec<Remark>,
    ) {
        self.facts.clear();
        self.in_send_order = in_send_order;
        let direction = unit.direction();
        match &unit.kind {
            Kind::Startup(..) => {
                if let Some(frame) = connection.startup[direction] {
                    self.wants_crc[direction] = Some(frame.wants_crc());
                    if frame.kind == StartupKind::Reply {
                        self.reply_revision = Some(frame.revision);
                    }
                }
                self.limit_operations(connection);
                self.directions[direction].start();
                if self.directions.iter().all(|side| side.has_started && !side.lost) {
                    self.directions.iter_mut().for_each(|side| side.operations.start());
                }
            }
            Kind::Fpdu(fpdu) => {
                let first = !self.directions[direction].has_started;
                if first && connection.syn == [true; 2] && self.directions.iter().all(|side| !side.lost) {
                    self.directions[direction].start();
                    self.directions.iter_mut().for_each(|side| side.operations.start());
                }
                let side = &mut self.directions[direction];
                side.log.incomplete |= !side.has_started;
                side.has_started = true;
                self.record_fpdu(unit, fpdu, view, remarks);
            }
            Kind::Unparsed { .. } => {
                let side = &mut self.directions[direction];
                side.lost_framing = side.has_started && !side.lost && !unit.incomplete;
                self.record_loss(direction);
            }
            Kind::Gap { .. } => self.record_loss(direction),
            Kind::Streaming { .. } | Kind::Sdp(..) | Kind::PortMapper(_) => {}
        }
    }

    /// Sets the limits on outstanding requests. For each endpoint, the limit is the IRD of its
    /// peer.
    fn limit_operations(&mut self, connection: &Connection) {
        // If only one of the two start-up frames has IRD and ORD, no limit was negotiated.
        let [Some(forth), Some(back)] = connection.startup.map(|frame| frame?.words) else { return };
        for (side, peer) in self.directions.iter_mut().zip([back, forth]) {
            if peer.ird != NOT_NEGOTIATED {
                side.operations.limit = Some(u32::from(peer.ird));
            }
        }
    }

    /// Records that the FPDU in `frame` had a bad CRC, and was retransmitted with a correct CRC.
    /// `next` is the next FPDU of `direction` with a bad CRC.
    pub(crate) fn repair(&mut self, direction: Direction, frame: FrameNumber, next: Option<Fault>) {
        let bad_crc = &mut self.directions[direction].bad_crc;
        if bad_crc.is_some_and(|bad| bad.frame == frame) {
            *bad_crc = next;
        }
    }

    /// Records that octets of `direction` are missing or not trustworthy.
    pub(super) fn record_loss(&mut self, direction: Direction) {
        let side = &mut self.directions[direction];
        side.lost = true;
        side.messages.record_loss();
        side.log.incomplete = true;
        self.directions[direction].operations.record_loss(true);
        self.directions[direction.peer()].operations.record_loss(false);
    }

    fn record_fpdu(
        &mut self,
        unit: &Unit<'_>,
        fpdu: &Fpdu<'_>,
        view: Option<&SegmentView<'_>>,
        remarks: &mut Vec<Remark>,
    ) {
        let direction = unit.direction();
        let header = ULPDU_AT..ULPDU_AT + view.map_or(0, |view| view.header_len);
        let at = SegmentLocation { direction, frame: unit.frame, time: unit.time, header: unit.locate_first(header) };
        let fault = |number: u64| Fault { frame: unit.frame, number, end: fpdu.layout.end };
        let side = &mut self.directions[direction];
        if matches!(fpdu.crc_status, CrcStatus::Unchecked | CrcStatus::Absent) {
            side.unchecked_crc.get_or_insert((unit.frame, fpdu.crc_status == CrcStatus::Unchecked));
        }
        let Some(view) = view else {
            if fpdu.crc_status == CrcStatus::Bad {
                if !unit.incomplete {
                    side.bad_crc.get_or_insert(fault(u64::MAX));
                }
            } else if is_trusted(fpdu) && !unit.incomplete {
                // The FPDU is too short for a DDP header.
                if side.messages.open_message().is_some() {
                    remarks.push(at.remark(RemarkKind::NoHeader, 0..2));
                }
                side.fault.get_or_insert(fault(u64::MAX));
            }
            return self.record_loss(direction);
        };
        side.fpdus = Some((side.fpdus.map_or(unit.frame, |(first, _)| first), unit.frame));
        if self.version.is_none() && self.wrong_version(view.header[0] & 3).is_none() {
            self.version = Some(view.header[0] & 3);
        }
        let version = self.version.unwrap_or(1);
        let side = &mut self.directions[direction];
        let headless = is_headless(view, version);
        let in_message = headless && side.messages.open_message().is_some();
        side.headers = match side.headers {
            _ if !headless => Headers::Present,
            Headers::Present if in_message => Headers::Missing,
            headers => headers,
        };
        if in_message {
            remarks.push(at.remark(RemarkKind::NoHeader, 2..4));
        }
        if in_message || side.lacks_header() {
            side.fault.get_or_insert(fault(u64::MAX));
            return self.record_loss(direction);
        }
        let number = side.log.add(unit, view);
        if side.terminate.is_some() {
            remarks.push(at.remark(RemarkKind::AfterTerminate(view.opcode()), 3..4));
        }
        let before = remarks.len();
        let sink = self.directions[direction.peer()].operations.next_sink();
        let position = self.directions[direction].messages.record_segment(at, view, sink, remarks);
        if breaks_header(view, version) || remarks[before..].iter().any(is_fault) {
            self.directions[direction].fault.get_or_insert(fault(number));
        }
        self.add_message_fact(at, view, position);
        self.record_operation(at, unit, view, position, remarks);
        let peer_latest =
            self.directions[direction.peer()].fpdus.filter(|_| self.is_complete()).map(|(_, latest)| latest);
        if let Some(stag) = self.stags.record_segment(at, view, position, peer_latest, remarks) {
            self.facts.push(Fact::Stag(stag));
        }
    }

    fn add_message_fact(&mut self, at: SegmentLocation, view: &SegmentView<'_>, position: SegmentPosition) {
        let Some(ended) = position.completed else { return };
        let queue = match view.segment {
            Segment::Tagged(..) => None,
            Segment::Untagged(header, _) => Some((header.qn.get(), header.msn())),
        };
        self.facts.push(Fact::Message(Message {
            direction: u8::from(at.direction),
            opcode: view.opcode(),
            queue,
            len: ended.len,
            segments: ended.segments,
            frames: (ended.frame, at.frame),
            times: (ended.time, at.time),
        }));
    }

    fn record_operation(
        &mut self,
        at: SegmentLocation,
        unit: &Unit<'_>,
        view: &SegmentView<'_>,
        position: SegmentPosition,
        remarks: &mut Vec<Remark>,
    ) {
        let [forth, back] = &mut self.directions;
        let (own, peer) = if at.direction == Direction::Forward { (forth, back) } else { (back, forth) };
        let done = match (view.opcode(), view.segment) {
            (Opcode::READ_REQUEST | Opcode::ATOMIC_REQUEST, Segment::Untagged(..)) => {
                let end = if let Kind::Fpdu(fpdu) = &unit.kind { fpdu.layout.end } else { 0 };
                own.operations.record_request(at, end, view, remarks)
            }
            (Opcode::READ_RESPONSE, Segment::Tagged(header, _)) => {
                let (stag, to) = (header.stag.get(), header.tagged_offset.get());
                // This Response can be the answer to a Read Request of the peer for the same sink.
                // The monitor does not know this Request if the capture lacks it, or if the monitor
                // processes it later. So the remark is made only if the order is certain.
                let is_own_request =
                    position.first && peer.operations.is_idle() && own.operations.is_awaiting(stag, to);
                if is_own_request && self.in_send_order {
                    remarks.push(at.remark(RemarkKind::SameDirection, 3..4));
                    None
                } else {
                    peer.operations.record_read_response(at, view, position, remarks)
                }
            }
            (Opcode::ATOMIC_RESPONSE, Segment::Untagged(..)) => {
                peer.operations.record_atomic_response(at, view, remarks)
            }
            (Opcode::TERMINATE, Segment::Untagged(..)) if own.terminate.is_none() => {
                own.terminate = TerminateMessage::read(unit, view, &peer.log);
                if let Some(seen) = &own.terminate {
                    let direction = u8::from(at.direction);
                    let target = seen.reported_segment().map(|segment| segment.frame);
                    let terminate = Terminate { direction, frame: at.frame, error: seen.error, target };
                    self.facts.push(Fact::Terminate(terminate));
                }
                None
            }
            _ => None,
        };
        self.facts.extend(done.map(Fact::Operation));
    }
}

impl DirectionTraffic {
    /// Returns whether the latest FPDU has no DDP header, although earlier FPDUs of the direction
    /// have one. Then the octets in place of the header are payload.
    pub(crate) fn lacks_header(&self) -> bool {
        self.headers == Headers::Missing
    }

    /// Returns whether a start-up frame or an FPDU of the direction was found.
    pub(super) fn has_started(&self) -> bool {
        self.has_started
    }

    fn start(&mut self) {
        if !self.has_started {
            self.has_started = true;
            self.messages.start();
        }
    }
}

/// Returns whether the octets of the DDP header are probably not a header: the versions of DDP and
/// of RDMAP are both wrong, or at least three of the fixed fields are wrong.
fn is_headless(view: &SegmentView<'_>, version: u8) -> bool {
    if view.is_ordinary() {
        return version != 1;
    }
    let (control, ulp_control) = (view.segment.control(), view.segment.ulp_control());
    let versions = [control.version(), ulp_control.version()].map(|found| found != version);
    let others = [
        control.reserved() != 0,
        ulp_control.reserved() != 0,
        ulp_control.opcode().is_tagged().is_some_and(|tagged| tagged != control.tagged()),
    ];
    versions == [true; 2] || versions.iter().chain(&others).filter(|wrong| **wrong).count() >= 3
}

/// Returns whether every receiver must reject the segment because of its version, its opcode, its T
/// bit or its QN.
fn breaks_header(view: &SegmentView<'_>, version: u8) -> bool {
    let opcode = view.opcode();
    let tagged = view.segment.control().tagged();
    let queue = match view.segment {
        Segment::Untagged(header, _) => Some(header.qn.get()),
        Segment::Tagged(..) => None,
    };
    view.header[0] & 3 != version
        || view.header[1] >> 6 != version
        || opcode.is_tagged().is_some_and(|should| should != tagged)
        || opcode.is_tagged().is_none()
        || queue.is_some() && queue != queue_of(opcode)
}

/// Returns whether the remark is about a fault that every receiver must detect.
fn is_fault(remark: &Remark) -> bool {
    matches!(
        remark.kind,
        RemarkKind::FirstOffset(_)
            | RemarkKind::Offset { tagged: false, .. }
            | RemarkKind::FirstMsn
            | RemarkKind::MsnGap { .. }
            | RemarkKind::MsnRepeated { .. }
            | RemarkKind::MsnChanged { .. }
            | RemarkKind::QnChanged { .. }
    )
}
