//! DDP and RDMAP of a connection: its messages, operations, STags, Terminates, and the first fault
//! of each direction.

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{FLAG_C, FLAG_S, HEADER_LEN};
use weft_core::wire::rdmap::Opcode;

use super::connection::Connection;
use super::message::{At, Messages, Place};
use super::operation::Operations;
use super::remark::{Remark, What};
use super::stag::Stags;
use super::terminate::{Log, TerminateSeen};
use crate::direction::Direction;
use crate::fact::{Complaint, Fact, Message};
use crate::parse::{CrcStatus, Fpdu, Kind, Unit};
use crate::parse::{SegmentView, ULPDU_AT, is_trusted, queue_of};
use crate::part::Part;

/// The IRD and ORD value for "not negotiated" (RFC 6581 section 9.1).
const NOT_NEGOTIATED: u16 = 0x3fff;

/// The first segment of a direction that its receiver cannot accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Its frame.
    pub frame: u64,
    /// Its number among the segments of the direction; the highest value if it has none.
    pub number: u64,
    /// Stream position after its FPDU.
    pub end: u64,
}

/// The state of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Side {
    /// Its messages.
    pub messages: Messages,
    /// Its requests.
    pub operations: Operations,
    /// Its first Terminate.
    pub terminate: Option<TerminateSeen>,
    /// Its first segment that DDP or RDMAP cannot accept.
    pub fault: Option<Fault>,
    /// Its first FPDU with a bad CRC.
    pub bad_crc: Option<Fault>,
    /// The frames of its first and of its latest trustworthy FPDU.
    pub fpdus: Option<(u64, u64)>,
    /// Its first FPDU without a checked CRC: its frame, and whether it has a CRC field.
    pub unguarded: Option<(u64, bool)>,
    /// Were octets of it ever missing or not trustworthy?
    pub lost: bool,
    /// Is its first fault a stretch of octets without FPDU?
    pub strayed: bool,
    /// Its latest segments.
    pub log: Log,
    began: bool,
}

/// The state of both directions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic {
    /// By direction.
    pub sides: [Side; 2],
    /// The STags of both.
    pub stags: Stags,
    /// DV of the first segment of either direction with a possibly correct version.
    pub version: Option<u8>,
    /// Revision, and C, of each direction's start-up frame.
    startups: [Option<(u8, bool)>; 2],
    replied: Option<u8>,
    /// IRD and ORD of each direction's start-up frame, if they were negotiated.
    depths: [Option<(u16, u16)>; 2],
    in_step: bool,
    /// Facts that became certain with the last unit; empty between units.
    pub facts: Vec<Fact>,
}

impl Traffic {
    /// Is every octet of both directions known, from the first on?
    pub(crate) fn is_complete(&self) -> bool {
        self.sides.iter().all(|side| !side.lost && (side.messages.is_complete() || !side.began))
    }

    /// Octets of memory that unanswered requests and STags take.
    pub(super) fn memory(&self) -> usize {
        self.sides.iter().map(|side| side.operations.memory()).sum::<usize>() + self.stags.memory()
    }

    /// The Terminate in `unit`, if it is the first of its direction.
    pub(crate) fn terminate_at(&self, unit: &Unit<'_>) -> Option<&TerminateSeen> {
        self.sides[unit.direction()].terminate.as_ref().filter(|seen| seen.is(unit))
    }

    /// Do both start-up frames turn CRCs off?
    pub(crate) fn crc_is_off(&self) -> bool {
        self.startups.iter().all(|frame| matches!(frame, Some((_, false))))
    }

    /// The version that the segments should have instead of `version`; `None` if it may be correct.
    ///
    /// RFC 5041 and RFC 5040 have version 1; peers whose Reply has revision 0 have version 0 (RFC
    /// 5044 Appendix C, which is informative: their 1 is not wrong here).
    pub(crate) fn wrong_version(&self, version: u8) -> Option<u8> {
        match (version, self.replied) {
            (1, _) | (0, Some(0) | None) => None,
            (_, Some(0)) => Some(0),
            _ => Some(1),
        }
    }

    /// Processes a unit. `in_step`: the units of both directions come in the order in which they
    /// were sent.
    pub(crate) fn unit(
        &mut self,
        unit: &Unit<'_>,
        view: Option<&SegmentView<'_>>,
        connection: &Connection,
        in_step: bool,
        remarks: &mut Vec<Remark>,
    ) {
        self.facts.clear();
        self.in_step = in_step;
        let direction = unit.direction();
        match &unit.kind {
            Kind::Startup(kind, part) => {
                if let Some(header) = part.get(0..HEADER_LEN) {
                    self.startups[direction] = Some((header[17], header[16] & FLAG_C != 0));
                    if *kind == StartupKind::Reply {
                        self.replied = Some(header[17]);
                    }
                }
                self.depth(direction, *part);
                self.sides[direction].begin();
                if self.sides.iter().all(|side| side.began && !side.lost) {
                    self.sides.iter_mut().for_each(|side| side.operations.begin());
                }
            }
            Kind::Fpdu(fpdu) => {
                let first = !self.sides[direction].began;
                if first && connection.syn == [true; 2] && self.sides.iter().all(|side| !side.lost) {
                    self.sides[direction].begin();
                    self.sides.iter_mut().for_each(|side| side.operations.begin());
                }
                self.sides[direction].began = true;
                self.fpdu(unit, fpdu, view, remarks);
            }
            Kind::Unparsed { .. } => {
                let side = &mut self.sides[direction];
                side.strayed = side.began && !side.lost && !unit.incomplete;
                self.lose(direction);
            }
            Kind::Gap { .. } => self.lose(direction),
            Kind::Streaming { .. } | Kind::Sdp(..) | Kind::PortMapper(_) => {}
        }
    }

    /// Records IRD and ORD of a start-up frame. Each side may have as many requests outstanding as
    /// the other's IRD.
    fn depth(&mut self, direction: Direction, part: Part<'_>) {
        let Some(header) = part.get(0..HEADER_LEN) else { return };
        if header[16] & FLAG_S == 0 || header[17] < 2 {
            return;
        }
        let Some(&[a, b, c, d]) = part.get(HEADER_LEN..HEADER_LEN + 4) else { return };
        let (ird, ord) = (u16::from_be_bytes([a, b]) & 0x3fff, u16::from_be_bytes([c, d]) & 0x3fff);
        self.depths[direction] = Some((ird, ord));
        // Without an enhanced frame of the other side nothing was negotiated.
        let [Some(_), Some(_)] = self.depths else { return };
        for requester in Direction::BOTH {
            let limit = self.depths[requester.peer()].map(|(ird, _)| ird).filter(|ird| *ird != NOT_NEGOTIATED);
            if let Some(limit) = limit {
                self.sides[requester].operations.limit(u32::from(limit));
            }
        }
    }

    /// The FPDU of `direction` with a bad CRC in `frame` was retransmitted with a correct one.
    /// `next` is the next FPDU with a bad CRC.
    pub(crate) fn repair(&mut self, direction: Direction, frame: u64, next: Option<Fault>) {
        let bad_crc = &mut self.sides[direction].bad_crc;
        if bad_crc.is_some_and(|bad| bad.frame == frame) {
            *bad_crc = next;
        }
    }

    /// Octets of `direction` are missing or not trustworthy.
    pub(super) fn lose(&mut self, direction: Direction) {
        let side = &mut self.sides[direction];
        side.lost = true;
        side.messages.lose();
        side.log.lose();
        self.sides[direction].operations.lose(true);
        self.sides[direction.peer()].operations.lose(false);
    }

    fn fpdu(&mut self, unit: &Unit<'_>, fpdu: &Fpdu<'_>, view: Option<&SegmentView<'_>>, remarks: &mut Vec<Remark>) {
        let direction = unit.direction();
        let header = ULPDU_AT..ULPDU_AT + view.map_or(0, |view| view.header_len);
        let at = At { direction, frame: unit.frame, time: unit.time, header: unit.locate_first(header) };
        let fault = |number: u64| Fault { frame: unit.frame, number, end: fpdu.layout.end };
        let side = &mut self.sides[direction];
        if matches!(fpdu.crc_status, CrcStatus::Unchecked | CrcStatus::Absent) {
            side.unguarded.get_or_insert((unit.frame, fpdu.crc_status == CrcStatus::Unchecked));
        }
        let Some(view) = view else {
            if fpdu.crc_status == CrcStatus::Bad {
                if !unit.incomplete {
                    side.bad_crc.get_or_insert(fault(u64::MAX));
                }
            } else if is_trusted(fpdu) && !unit.incomplete {
                // Too short for a header.
                if side.messages.unfinished().is_some() {
                    remarks.push(at.remark(What::Headless, 0..2));
                }
                side.fault.get_or_insert(fault(u64::MAX));
            }
            return self.lose(direction);
        };
        side.fpdus = Some((side.fpdus.map_or(unit.frame, |(first, _)| first), unit.frame));
        if self.version.is_none() && self.wrong_version(view.header[0] & 3).is_none() {
            self.version = Some(view.header[0] & 3);
        }
        let version = self.version.unwrap_or(1);
        let side = &mut self.sides[direction];
        let versions_fit = view.header[0] & 3 == version || view.header[1] >> 6 == version;
        if !versions_fit && side.messages.unfinished().is_some() {
            remarks.push(at.remark(What::Headless, 2..4));
            side.fault.get_or_insert(fault(u64::MAX));
            return self.lose(direction);
        }
        let number = side.log.add(unit, view);
        if side.terminate.is_some() {
            remarks.push(at.remark(What::AfterTerminate(view.opcode()), 3..4));
        }
        let before = remarks.len();
        let sink = self.sides[direction.peer()].operations.next_sink();
        let place = self.sides[direction].messages.segment(at, view, sink, remarks);
        if breaks_header(view, version) || remarks[before..].iter().any(is_fault) {
            self.sides[direction].fault.get_or_insert(fault(number));
        }
        self.message(at, view, place);
        self.operation(at, unit, view, place, remarks);
        let peer_latest = self.sides[direction.peer()].fpdus.filter(|_| self.is_complete()).map(|(_, latest)| latest);
        if let Some(stag) = self.stags.segment(at, view, place, peer_latest, remarks) {
            self.facts.push(Fact::Stag(stag));
        }
    }

    fn message(&mut self, at: At, view: &SegmentView<'_>, place: Place) {
        let Some(ended) = place.ended else { return };
        let queue = match view.segment {
            Segment::Tagged(..) => None,
            Segment::Untagged(header, _) => Some((header.qn.get(), header.msn.get())),
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

    fn operation(&mut self, at: At, unit: &Unit<'_>, view: &SegmentView<'_>, place: Place, remarks: &mut Vec<Remark>) {
        let [forth, back] = &mut self.sides;
        let (own, peer) = if at.direction == Direction::Forward { (forth, back) } else { (back, forth) };
        let done = match (view.opcode(), view.segment) {
            (Opcode::READ_REQUEST | Opcode::ATOMIC_REQUEST, Segment::Untagged(..)) => {
                let end = if let Kind::Fpdu(fpdu) = &unit.kind { fpdu.layout.end } else { 0 };
                own.operations.requested(at, end, view, remarks)
            }
            (Opcode::READ_RESPONSE, Segment::Tagged(header, _)) => {
                let (stag, to) = (header.stag.get(), header.tagged_offset.get());
                // The Request of the other side, which has the same STag, may be missing or late.
                let is_own_request = place.first && peer.operations.is_idle() && own.operations.awaits(stag, to);
                if is_own_request && self.in_step {
                    remarks.push(at.remark(What::SameDirection, 3..4));
                    None
                } else {
                    peer.operations.read_response(at, view, place, remarks)
                }
            }
            (Opcode::ATOMIC_RESPONSE, Segment::Untagged(..)) => peer.operations.atomic_response(at, view, remarks),
            (Opcode::TERMINATE, Segment::Untagged(..)) if own.terminate.is_none() => {
                own.terminate = TerminateSeen::read(unit, view, &peer.log);
                if let Some(seen) = &own.terminate {
                    let direction = u8::from(at.direction);
                    let target = seen.target().map(|logged| logged.frame);
                    let complaint = Complaint { direction, frame: at.frame, error: seen.error, target };
                    self.facts.push(Fact::Complaint(complaint));
                }
                None
            }
            _ => None,
        };
        self.facts.extend(done.map(Fact::Operation));
    }
}

impl Side {
    fn begin(&mut self) {
        if !self.began {
            self.began = true;
            self.messages.begin();
        }
    }
}

/// Does a fixed field of the header make the segment unacceptable for every receiver?
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

/// Must a receiver notice it? An MSN that is far ahead, or different RDMAP octets, may pass.
fn is_fault(remark: &Remark) -> bool {
    matches!(
        remark.what,
        What::FirstOffset(_)
            | What::Offset { tagged: false, .. }
            | What::MsnFirst { .. }
            | What::MsnStep { .. }
            | What::MsnAgain { .. }
            | What::MsnChanged { .. }
            | What::QnChanged { .. }
    )
}
