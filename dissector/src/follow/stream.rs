//! What the units of each direction were like: how FPDUs began and went on, and what they departed in.
//!
//! Counters count occurrences, so that a rule can speak once of what a sender does all the time.

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::mulpdu::{MIN_MULPDU, mulpdu};
use weft_core::wire::rdmap::{Opcode, TerminateError};

use super::tcp::{self, TcpFacts};
use crate::rules::SegmentView;
use crate::unit::{CrcStatus, Fpdu, Kind, Located, MarkerStatus, Misread, Unit};

/// The first unit behind a direction's own start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// An FPDU.
    Fpdu,
    /// Octets in which none was found.
    Unparsed {
        /// The latest frame of them.
        frame: u64,
        /// How many.
        len: u64,
    },
    /// Anything else, or octets that were not captured.
    Other,
}

/// A Terminate message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Its frame.
    pub frame: u64,
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// Layer.
    pub layer: u8,
    /// Error type.
    pub etype: u8,
    /// Error code.
    pub code: u8,
}

impl Ending {
    /// Reads octets 18 and 19 of the segment.
    pub(crate) fn of(unit: &Unit<'_>, view: &SegmentView<'_>) -> Option<Self> {
        let &[first, code] = view.payload.get(0..2)? else { return None };
        (view.opcode() == Opcode::TERMINATE && matches!(view.segment, Segment::Untagged(..))).then_some(Ending {
            frame: unit.frame,
            time: unit.time,
            layer: first >> 4,
            etype: first & 0xf,
            code,
        })
    }

    /// Does no specification name this error, but the one with layer and type exchanged? Then that is what was meant.
    pub(crate) fn is_exchanged(&self) -> bool {
        let Ending { layer, etype, code, .. } = *self;
        !TerminateError::new(layer, etype, code).is_assigned() && TerminateError::new(etype, layer, code).is_assigned()
    }
}

/// What a full TCP segment has room for, by the SYNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Effective maximum segment size.
    pub emss: u32,
    /// Largest ULPDU with the markers of this direction.
    pub mulpdu: u16,
    /// Largest ULPDU if there were none.
    pub without_markers: u16,
    /// Does the direction have markers?
    pub markers: bool,
}

/// One direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    /// FPDUs so far.
    pub fpdus: u64,
    /// The frame of the first FPDU.
    pub first: Option<u64>,
    /// Where its first octets are.
    pub first_octets: Located,
    /// The frame of the first FPDU whose CRC does not say that it is bad.
    pub first_valid: Option<u64>,
    /// Stream position behind it.
    pub first_valid_end: u64,
    /// Were octets missing, or not understood, so far?
    pub broken: bool,
    /// Are its first octets missing, those behind the SYN or behind the own start-up frame?
    pub begins_with_hole: bool,
    /// What came right behind the own start-up frame.
    pub behind: Option<Behind>,
    /// Did four zero octets stand directly in front of the own start-up frame? The frame of them.
    pub zeros_before: Option<u64>,
    /// FPDUs so far: markers elsewhere; no markers though they are due; wrong markers.
    pub misplaced: u32,
    /// FPDUs so far whose due markers are missing altogether.
    pub unmarked: u32,
    /// Did any FPDU have markers?
    pub marked: bool,
    /// Did any have markers that are right?
    pub marked_right: bool,
    /// FPDUs so far with bad CRC.
    pub bad_crcs: u32,
    /// FPDUs so far without CRC field.
    pub no_field: u32,
    /// FPDUs so far that are larger than a segment has room for.
    pub oversized: u32,
    /// Segments so far whose versions are not those agreed on; is the last one of them?
    pub versions: u32,
    /// See `versions`.
    pub version_breaks: bool,
    /// DDP's version in the first segment.
    pub version: Option<u8>,
    /// Distance of the last two markers, when both are known to be neighbours.
    pub interval: Option<u64>,
    last_marker: Option<u64>,
    /// What a segment has room for.
    pub room: Option<Room>,
    /// Segments of messages that go on and begin a TCP segment, and the greatest ULPDU of all that go on: behind another FPDU, MPA may
    /// have offered the rest of the TCP segment alone (section 4.5).
    pub middles: (u64, u16),
    /// The longest ULPDU.
    pub longest: u16,
    /// FPDUs that would fit a segment; those of them that stand whole in one; those that run over the end of a segment that they begin, or
    /// share with an earlier FPDU, and the first frame of each of these.
    pub fitting: u64,
    /// See `fitting`.
    pub whole: u64,
    /// See `fitting`.
    pub torn: u64,
    /// See `fitting`.
    pub torn_frame: Option<u64>,
    /// See `fitting`.
    pub spilled: u64,
    /// See `fitting`.
    pub spilled_frame: Option<u64>,
    /// Of `torn` and `spilled`, those cut where no window and no full segment was the cause.
    pub cut_by_choice: u64,
    /// The last FPDU, where it is not all there though every octet before the end of the data is: where it is.
    pub cut_short: Option<Located>,
    /// The first Terminate.
    pub terminate: Option<Ending>,
    /// The first FPDU behind it.
    pub behind_terminate: Option<u64>,
}

impl Stream {
    /// Notes a unit; `due_version` is the one that both start-up frames brought, `tcp` what is known of the sender and of the
    /// receiver.
    pub(crate) fn unit(
        &mut self,
        unit: &Unit<'_>,
        view: Option<&SegmentView<'_>>,
        due_version: Option<u8>,
        tcp: [&TcpFacts; 2],
    ) {
        match &unit.kind {
            Kind::Fpdu(fpdu) => {
                if self.fpdus == 0 {
                    self.first = Some(unit.frame);
                    self.first_octets = unit.locate_first(0..unit.octets_len());
                    self.behind.get_or_insert(Behind::Fpdu);
                    let markers = !matches!(fpdu.marker_status, MarkerStatus::None);
                    self.room = tcp::emss(tcp[0], tcp[1]).map(|emss| Room {
                        emss,
                        mulpdu: mulpdu(emss, markers),
                        without_markers: mulpdu(emss, false),
                        markers,
                    });
                }
                self.fpdu(unit, fpdu, view, due_version, tcp[0]);
            }
            Kind::Startup(..) => self.behind = None,
            Kind::Unparsed { len } => {
                let unparsed = Behind::Unparsed { frame: unit.frame, len: *len };
                self.behind.get_or_insert(if self.broken { Behind::Other } else { unparsed });
                self.broken = true;
            }
            Kind::Gap { .. } => {
                self.begins_with_hole |= self.behind.is_none() && self.fpdus == 0;
                self.behind.get_or_insert(Behind::Other);
                self.broken = true;
            }
            Kind::Streaming { len: 4, head: [0, 0, 0, 0], .. } => self.zeros_before = Some(unit.frame),
            Kind::Streaming { .. } => {
                self.behind.get_or_insert(Behind::Other);
                self.broken |= unit.incomplete;
            }
            Kind::Sdp(..) | Kind::PortMapper(_) => {}
        }
    }

    fn fpdu(
        &mut self,
        unit: &Unit<'_>,
        fpdu: &Fpdu<'_>,
        view: Option<&SegmentView<'_>>,
        due_version: Option<u8>,
        sender: &TcpFacts,
    ) {
        self.fpdus += 1;
        if self.first_valid.is_none() && fpdu.crc_status != CrcStatus::Bad {
            (self.first_valid, self.first_valid_end) = (Some(unit.frame), fpdu.layout.end);
        }
        if self.terminate.is_some() {
            self.behind_terminate.get_or_insert(unit.frame);
        }
        match fpdu.crc_status {
            CrcStatus::Bad => self.bad_crcs += u32::from(!unit.incomplete),
            CrcStatus::Absent => self.no_field += 1,
            _ => {}
        }
        self.markers(fpdu);
        let length = fpdu.layout.ulpdu_length;
        self.longest = self.longest.max(length);
        if let Some(room) = self.room {
            self.oversized += u32::from(length > room.mulpdu);
            self.alignment(unit, fpdu, room, sender);
        }
        if unit.incomplete {
            self.broken = true;
            self.cut_short = unit.ends_with_data().then(|| unit.locate_first(0..unit.octets_len()));
        } else {
            self.cut_short = None;
        }
        self.version_breaks = false;
        let Some(view) = view else { return };
        let versions = (view.segment.control().version(), view.segment.ulp_control().version());
        self.version.get_or_insert(versions.0);
        if due_version.is_some_and(|due| versions != (due, due)) {
            self.versions = self.versions.saturating_add(1);
            self.version_breaks = true;
        }
        if !view.last() {
            let begins = unit.in_segment().is_some_and(|(begins, _)| begins);
            self.middles = (self.middles.0 + u64::from(begins), self.middles.1.max(length));
        }
        if view.opcode() == Opcode::TERMINATE && self.terminate.is_none() {
            self.terminate = Ending::of(unit, view);
        }
    }

    fn markers(&mut self, fpdu: &Fpdu<'_>) {
        let Some(phase) = fpdu.layout.phase() else {
            if fpdu.marker_status == MarkerStatus::Misplaced {
                self.misplaced += 1;
                self.unmarked += 1;
            }
            self.last_marker = None;
            self.interval = None;
            return;
        };
        self.misplaced += u32::from(fpdu.marker_status == MarkerStatus::Misplaced);
        self.marked |= !fpdu.markers.is_empty();
        self.marked_right |= fpdu.marker_status == MarkerStatus::Good && !fpdu.markers.is_empty();
        // The first marker at or behind the start, and the last one before the CRC field.
        let ahead = u64::from(phase).wrapping_sub(fpdu.layout.start) % weft_core::marker::INTERVAL;
        let first = fpdu.layout.start + ahead;
        self.interval = None;
        if first < fpdu.layout.crc {
            self.interval = self.last_marker.filter(|_| !self.broken).map(|last| first - last);
            let behind = (fpdu.layout.crc - 1 - first) / weft_core::marker::INTERVAL;
            self.last_marker = Some(first + behind * weft_core::marker::INTERVAL);
        }
    }

    fn alignment(&mut self, unit: &Unit<'_>, fpdu: &Fpdu<'_>, room: Room, sender: &TcpFacts) {
        let layout = &fpdu.layout;
        // With less, MPA "is not required to follow the segmentation rules in Section 5.1 and Appendix A" (section 4.5).
        let applies = room.emss >= u32::from(MIN_MULPDU);
        if !applies || layout.end - layout.start > u64::from(room.emss) || unit.incomplete {
            return;
        }
        let Some((begins, to)) = unit.in_segment() else { return };
        if to - layout.start > u64::from(room.emss) {
            // Captured before the network card cut it.
            return;
        }
        let whole = layout.end <= to;
        self.fitting += 1;
        if whole {
            self.whole += 1;
            return;
        }
        let (count, first) =
            if begins { (&mut self.torn, &mut self.torn_frame) } else { (&mut self.spilled, &mut self.spilled_frame) };
        *count += 1;
        first.get_or_insert(unit.frame);
        self.cut_by_choice += u64::from(sender.chose_to_cut_at(to, room.emss));
    }

    /// Is `unit`, octets without FPDU, explained by a marker that nobody asked for?
    pub(crate) fn is_marker_not_asked_for(unit: &Unit<'_>) -> bool {
        unit.misread == Some(Misread::MarkerNotAskedFor)
    }
}
