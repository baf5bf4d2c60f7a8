//! Facts about the units of each direction (FPDUs, start-up frames, gaps): where FPDUs begin, how
//! the sender splits them into TCP segments, and how many FPDUs violate MPA.
//!
//! Faults are counted. With the count, a rule can report a repeated fault of a sender in one
//! finding.

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::mulpdu::{MIN_MULPDU, mulpdu};
use weft_core::wire::rdmap::{Opcode, TerminateError};

use super::tcp::{self, TcpFacts};
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;
use crate::parse::{CrcStatus, Fpdu, Kind, Location, MarkerStatus, SenderError, Unit};

/// The first unit after the start-up frame of the same direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterStartup {
    /// An FPDU.
    Fpdu,
    /// Octets in which no FPDU was found.
    Unparsed {
        /// Number of the latest captured frame with these octets.
        frame: FrameNumber,
        /// Number of octets.
        len: u64,
    },
    /// A unit of another kind, or octets that were not captured.
    Other,
}

/// A Terminate message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminateSummary {
    /// The frame of the Terminate.
    pub frame: FrameNumber,
    /// When the Terminate was captured, in nanoseconds since 1970.
    pub time: u64,
    /// The layer that reports the error.
    pub layer: u8,
    /// Error type.
    pub etype: u8,
    /// Error code.
    pub code: u8,
}

impl TerminateSummary {
    /// Reads the first two payload octets of a Terminate. Returns `None` if the message is not a
    /// Terminate, or if these octets were not captured.
    pub(crate) fn read(unit: &Unit<'_>, view: &SegmentView<'_>) -> Option<Self> {
        let &[first, code] = view.payload.get(0..2)? else { return None };
        (view.opcode() == Opcode::TERMINATE && matches!(view.segment, Segment::Untagged(..))).then_some(
            TerminateSummary { frame: unit.frame, time: unit.time, layer: first >> 4, etype: first & 0xf, code },
        )
    }

    /// Returns whether the sender probably exchanged layer and type. This is probable if no
    /// specification assigns the reported error, but a specification assigns the error with
    /// exchanged layer and type.
    pub(crate) fn has_swapped_layer_and_type(&self) -> bool {
        let TerminateSummary { layer, etype, code, .. } = *self;
        !TerminateError::new(layer, etype, code).is_assigned() && TerminateError::new(etype, layer, code).is_assigned()
    }
}

/// The capacity of a full TCP segment, derived from the options of both SYNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentCapacity {
    /// Effective maximum segment size (EMSS) in octets.
    pub emss: u32,
    /// Length in octets of the largest ULPDU that fits. If the direction uses markers, they are
    /// taken into account.
    pub mulpdu: u16,
    /// Length in octets of the largest ULPDU that would fit if this direction had no markers.
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
    pub first: Option<FrameNumber>,
    /// Location of the first octets of the first FPDU.
    pub first_octets: Location,
    /// The frame of the first FPDU. FPDUs with a bad CRC do not count.
    pub first_valid: Option<FrameNumber>,
    /// Stream position after the FPDU of `first_valid`.
    pub first_valid_end: u64,
    /// Whether octets so far are missing or could not be parsed.
    pub broken: bool,
    /// Whether octets are missing directly after the SYN or after the direction's own start-up
    /// frame.
    pub begins_with_hole: bool,
    /// The unit directly after the direction's own start-up frame.
    pub after_startup: Option<AfterStartup>,
    /// The frame of four zero octets in streaming mode, if the direction had such octets.
    pub zeros_before: Option<FrameNumber>,
    /// Number of FPDUs so far whose markers are missing, misplaced, or wrong.
    pub misplaced: u32,
    /// Number of FPDUs so far that lack all required markers.
    pub unmarked: u32,
    /// Location of the first octets of the first FPDU that `unmarked` counts.
    pub first_unmarked: Option<Location>,
    /// Whether any FPDU had markers.
    pub has_markers: bool,
    /// Whether any FPDU had correct markers.
    pub has_correct_markers: bool,
    /// Number of FPDUs so far with a bad CRC.
    pub bad_crcs: u32,
    /// Number of FPDUs so far that have no CRC field.
    pub no_field: u32,
    /// Number of FPDUs so far that are too long for one TCP segment.
    pub oversized: u32,
    /// Number of DDP segments so far whose DDP or RDMAP version differs from the negotiated
    /// version.
    pub wrong_versions: u32,
    /// Whether the latest DDP segment has a wrong version.
    pub has_wrong_version: bool,
    /// DDP's version in the first DDP segment.
    pub version: Option<u8>,
    /// Distance in octets from the previous marker to the first marker in the latest FPDU. `None`
    /// if the FPDU has no marker, or if the previous marker is not known.
    pub interval: Option<u64>,
    last_marker: Option<u64>,
    /// The capacity of a full TCP segment; `None` if the SYNs do not show it.
    pub capacity: Option<SegmentCapacity>,
    /// Two numbers about DDP segments that are not the last segment of their message. The first
    /// number counts only those DDP segments that are at the start of a TCP segment. The reason: if
    /// another FPDU precedes the DDP segment in the TCP segment, MPA may have offered DDP only the
    /// remaining space (RFC 5044 section 4.5). The second number is the length in octets of the
    /// longest ULPDU of all DDP segments that are not the last segment of their message.
    pub non_last_segments: (u64, u16),
    /// Length of the longest ULPDU in octets.
    pub longest: u16,
    /// Number of FPDUs that are short enough for one TCP segment.
    pub fitting_fpdus: u64,
    /// How many of the FPDUs in `fitting_fpdus` are complete in one TCP segment.
    pub complete: u64,
    /// How many of the FPDUs in `fitting_fpdus` start at the start of a TCP segment and continue in
    /// the next TCP segment.
    pub split_at_start: u64,
    /// The frame of the first FPDU that `split_at_start` counts.
    pub split_at_start_frame: Option<FrameNumber>,
    /// How many of the FPDUs in `fitting_fpdus` start after another FPDU in a TCP segment and
    /// continue in the next TCP segment.
    pub split_after_fpdu: u64,
    /// The frame of the first FPDU that `split_after_fpdu` counts.
    pub split_after_fpdu_frame: Option<FrameNumber>,
    /// Number of those FPDUs in `split_at_start` and `split_after_fpdu` that were split although
    /// the TCP segment was not full and the window was open.
    pub split_by_choice: u64,
    /// The location of the latest FPDU, if the sender's data ends within this FPDU.
    pub cut_fpdu: Option<Location>,
    /// The first Terminate.
    pub terminate: Option<TerminateSummary>,
}

impl Stream {
    /// Records a unit. `due_version` is the version of DDP and RDMAP that the two start-up frames
    /// require. `tcp` has the TCP facts of the sender and of the receiver.
    pub(crate) fn record_unit(
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
                    self.capacity = tcp::emss(tcp[0], tcp[1]).map(|emss| SegmentCapacity {
                        emss,
                        mulpdu: mulpdu(emss, markers),
                        without_markers: mulpdu(emss, false),
                        markers,
                    });
                }
                self.record_fpdu(unit, fpdu, view, due_version, tcp[0]);
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

    fn record_fpdu(
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
        match fpdu.crc_status {
            CrcStatus::Bad => self.bad_crcs += u32::from(!unit.incomplete),
            CrcStatus::Absent => self.no_field += 1,
            _ => {}
        }
        self.record_markers(fpdu);
        if self.unmarked == 1 {
            self.first_unmarked.get_or_insert_with(|| unit.locate_first(0..4));
        }
        let length = fpdu.layout.ulpdu_length;
        self.longest = self.longest.max(length);
        if let Some(capacity) = self.capacity {
            self.oversized += u32::from(length > capacity.mulpdu);
            self.record_alignment(unit, fpdu, capacity, sender);
        }
        if unit.incomplete {
            self.broken = true;
            self.cut_fpdu = unit.ends_with_data().then(|| unit.locate_first(0..unit.octets_len()));
        } else {
            self.cut_fpdu = None;
        }
        self.has_wrong_version = false;
        let Some(view) = view else { return };
        let versions = (view.segment.control().version(), view.segment.ulp_control().version());
        self.version.get_or_insert(versions.0);
        if due_version.is_some_and(|due| versions != (due, due)) {
            self.wrong_versions = self.wrong_versions.saturating_add(1);
            self.has_wrong_version = true;
        }
        if !view.last() {
            let begins = unit.in_segment().is_some_and(|(begins, _)| begins);
            self.non_last_segments =
                (self.non_last_segments.0 + u64::from(begins), self.non_last_segments.1.max(length));
        }
        if view.opcode() == Opcode::TERMINATE && self.terminate.is_none() {
            self.terminate = TerminateSummary::read(unit, view);
        }
    }

    fn record_markers(&mut self, fpdu: &Fpdu<'_>) {
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
        self.has_markers |= !fpdu.markers.is_empty();
        self.has_correct_markers |= fpdu.marker_status == MarkerStatus::Good && !fpdu.markers.is_empty();
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

    fn record_alignment(&mut self, unit: &Unit<'_>, fpdu: &Fpdu<'_>, capacity: SegmentCapacity, sender: &TcpFacts) {
        let layout = &fpdu.layout;
        // If the EMSS is smaller than `MIN_MULPDU`, MPA "is not required to follow the segmentation
        // rules in Section 5.1 and Appendix A" (RFC 5044 section 4.5).
        let applies = capacity.emss >= u32::from(MIN_MULPDU);
        if !applies || layout.end - layout.start > u64::from(capacity.emss) || unit.incomplete {
            return;
        }
        let Some((begins, to)) = unit.in_segment() else { return };
        if to - layout.start > u64::from(capacity.emss) {
            // The captured segment is longer than EMSS: the network card split it after the
            // capture.
            return;
        }
        let complete = layout.end <= to;
        self.fitting_fpdus += 1;
        if complete {
            self.complete += 1;
            return;
        }
        let (count, first) = if begins {
            (&mut self.split_at_start, &mut self.split_at_start_frame)
        } else {
            (&mut self.split_after_fpdu, &mut self.split_after_fpdu_frame)
        };
        *count += 1;
        first.get_or_insert(unit.frame);
        self.split_by_choice += u64::from(sender.split_segment_early_at(to, capacity.emss));
    }

    /// Returns whether the parser found no FPDU in `unit` because of a marker that was not
    /// negotiated.
    pub(crate) fn is_unrequested_marker(unit: &Unit<'_>) -> bool {
        unit.sender_error == Some(SenderError::UnrequestedMarker)
    }
}
