//! Facts about the units of each direction (FPDUs, start-up frames, gaps): how FPDUs began and
//! continued, and which of them violate MPA.
//!
//! Faults are counted, so that a rule can report a repeated fault of a sender only once.

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::mulpdu::{MIN_MULPDU, mulpdu};
use weft_core::wire::rdmap::{Opcode, TerminateError};

use super::tcp::{self, TcpFacts};
use crate::parse::SegmentView;
use crate::parse::{CrcStatus, Fpdu, Kind, Located, MarkerStatus, Misread, Unit};

/// The first unit after the start-up frame of the same direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterStartup {
    /// An FPDU.
    Fpdu,
    /// Octets in which no FPDU was found.
    Unparsed {
        /// Number of the latest captured frame with these octets.
        frame: u64,
        /// Number of octets.
        len: u64,
    },
    /// A unit of another kind, or octets that were not captured.
    Other,
}

/// A Terminate message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The frame of the Terminate.
    pub frame: u64,
    /// When the Terminate was captured, in nanoseconds since 1970.
    pub time: u64,
    /// The layer that reports the error.
    pub layer: u8,
    /// Error type.
    pub etype: u8,
    /// Error code.
    pub code: u8,
}

impl Ending {
    /// Reads the first two payload octets of a Terminate. `None` for other messages, or if these
    /// octets were not captured.
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

    /// Returns whether the sender exchanged layer and type: no specification assigns this error,
    /// but the error with layer and type exchanged is assigned.
    pub(crate) fn is_exchanged(&self) -> bool {
        let Ending { layer, etype, code, .. } = *self;
        !TerminateError::new(layer, etype, code).is_assigned() && TerminateError::new(etype, layer, code).is_assigned()
    }
}

/// The capacity of a full TCP segment, derived from the options of both SYNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Effective maximum segment size (EMSS) in octets.
    pub emss: u32,
    /// Largest ULPDU that fits, in octets, with the markers that this direction uses.
    pub mulpdu: u16,
    /// Largest ULPDU that would fit without markers, in octets.
    pub without_markers: u16,
    /// Whether the direction uses markers.
    pub markers: bool,
}

/// Facts about one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    /// Number of FPDUs so far.
    pub fpdus: u64,
    /// The frame of the first FPDU.
    pub first: Option<u64>,
    /// Location of the first octets of the first FPDU.
    pub first_octets: Located,
    /// The frame of the first FPDU whose CRC is not known to be bad.
    pub first_valid: Option<u64>,
    /// Stream position after that FPDU.
    pub first_valid_end: u64,
    /// Whether octets were missing or could not be parsed so far.
    pub broken: bool,
    /// Whether octets are missing directly after the SYN or after the direction's own start-up
    /// frame.
    pub begins_with_hole: bool,
    /// The unit directly after the direction's own start-up frame.
    pub after_startup: Option<AfterStartup>,
    /// The frame with four zero octets in streaming mode, if there were such octets.
    pub zeros_before: Option<u64>,
    /// Number of FPDUs so far whose markers are missing, misplaced, or wrong.
    pub misplaced: u32,
    /// Number of FPDUs so far that lack all due markers.
    pub unmarked: u32,
    /// Whether any FPDU had markers.
    pub marked: bool,
    /// Whether any FPDU had correct markers.
    pub marked_right: bool,
    /// Number of FPDUs so far with a bad CRC.
    pub bad_crcs: u32,
    /// Number of FPDUs so far without CRC field.
    pub no_field: u32,
    /// Number of FPDUs so far that are too long for one TCP segment.
    pub oversized: u32,
    /// Number of DDP segments so far whose DDP or RDMAP version differs from the negotiated
    /// version.
    pub versions: u32,
    /// Whether the latest DDP segment has a wrong version.
    pub version_breaks: bool,
    /// DDP's version in the first DDP segment.
    pub version: Option<u8>,
    /// Distance of the last two markers in octets. `None` if a marker between them may be missing.
    pub interval: Option<u64>,
    last_marker: Option<u64>,
    /// The capacity of a full TCP segment; `None` if the SYNs do not show it.
    pub room: Option<Room>,
    /// DDP segments that are not the last of their message: the number of those that begin a TCP
    /// segment, and the longest ULPDU in octets. If another FPDU precedes in the TCP segment, MPA
    /// may have offered only the rest of the TCP segment (section 4.5).
    pub middles: (u64, u16),
    /// Length of the longest ULPDU in octets.
    pub longest: u16,
    /// Number of FPDUs that are short enough for one TCP segment.
    pub fitting: u64,
    /// How many FPDUs of `fitting` are complete in one TCP segment.
    pub complete: u64,
    /// How many FPDUs of `fitting` begin a TCP segment and continue in the next TCP segment.
    pub torn: u64,
    /// The frame of the first FPDU of `torn`.
    pub torn_frame: Option<u64>,
    /// How many FPDUs of `fitting` begin after another FPDU in a TCP segment and continue in the
    /// next TCP segment.
    pub spilled: u64,
    /// The frame of the first FPDU of `spilled`.
    pub spilled_frame: Option<u64>,
    /// How many FPDUs of `torn` and `spilled` the sender split although the TCP segment was not
    /// full and the window was open.
    pub cut_by_choice: u64,
    /// Location of the latest FPDU, if the sender's data ends within that FPDU.
    pub cut_short: Option<Located>,
    /// The first Terminate.
    pub terminate: Option<Ending>,
    /// The frame of the first FPDU after that Terminate.
    pub after_terminate: Option<u64>,
}

impl Stream {
    /// Records a unit. `due_version` is the version of DDP and RDMAP that both start-up frames
    /// require. `tcp` has the TCP facts of the sender and of the receiver.
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
                    self.after_startup.get_or_insert(AfterStartup::Fpdu);
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
            Kind::Startup(..) => self.after_startup = None,
            Kind::Unparsed { len } => {
                let unparsed = AfterStartup::Unparsed { frame: unit.frame, len: *len };
                self.after_startup.get_or_insert(if self.broken { AfterStartup::Other } else { unparsed });
                self.broken = true;
            }
            Kind::Gap { .. } => {
                self.begins_with_hole |= self.after_startup.is_none() && self.fpdus == 0;
                self.after_startup.get_or_insert(AfterStartup::Other);
                self.broken = true;
            }
            Kind::Streaming { len: 4, head: [0, 0, 0, 0], .. } => self.zeros_before = Some(unit.frame),
            Kind::Streaming { .. } => {
                self.after_startup.get_or_insert(AfterStartup::Other);
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
            self.after_terminate.get_or_insert(unit.frame);
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
        // Find the first marker at or after the start of the FPDU, and the last marker before the
        // CRC field.
        let ahead = u64::from(phase).wrapping_sub(fpdu.layout.start) % weft_core::marker::INTERVAL;
        let first = fpdu.layout.start + ahead;
        self.interval = None;
        if first < fpdu.layout.crc {
            self.interval = self.last_marker.filter(|_| !self.broken).map(|last| first - last);
            let markers = (fpdu.layout.crc - 1 - first) / weft_core::marker::INTERVAL;
            self.last_marker = Some(first + markers * weft_core::marker::INTERVAL);
        }
    }

    fn alignment(&mut self, unit: &Unit<'_>, fpdu: &Fpdu<'_>, room: Room, sender: &TcpFacts) {
        let layout = &fpdu.layout;
        // With a smaller EMSS, MPA "is not required to follow the segmentation rules in Section 5.1
        // and Appendix A" (section 4.5).
        let applies = room.emss >= u32::from(MIN_MULPDU);
        if !applies || layout.end - layout.start > u64::from(room.emss) || unit.incomplete {
            return;
        }
        let Some((begins, to)) = unit.in_segment() else { return };
        if to - layout.start > u64::from(room.emss) {
            // The capture was taken before the network card segmented the packet.
            return;
        }
        let complete = layout.end <= to;
        self.fitting += 1;
        if complete {
            self.complete += 1;
            return;
        }
        let (count, first) =
            if begins { (&mut self.torn, &mut self.torn_frame) } else { (&mut self.spilled, &mut self.spilled_frame) };
        *count += 1;
        first.get_or_insert(unit.frame);
        self.cut_by_choice += u64::from(sender.chose_to_cut_at(to, room.emss));
    }

    /// Returns whether the parser failed on `unit` because of a marker that was not requested.
    pub(crate) fn is_unrequested_marker(unit: &Unit<'_>) -> bool {
        unit.misread == Some(Misread::UnrequestedMarker)
    }
}
