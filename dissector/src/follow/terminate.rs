//! Terminate messages, and the DDP segments that they report.
//!
//! For each direction, the headers of the latest [`MAX_SEGMENTS`] segments are kept. If a Terminate
//! copies an older header, the segment that it reports is not found.

use std::collections::VecDeque;

use weft_core::wire::ddp::{Msn, RawHeader};
use weft_core::wire::rdmap::{HeaderControl, Opcode, RawTerminate, RawTerminateParts, TerminateError};
use zerocopy::FromBytes;

use crate::frame_number::FrameNumber;
use crate::parse::{Location, Unit};
use crate::parse::{SegmentView, ULPDU_AT};

/// Maximum number of headers that are kept for each direction.
const MAX_SEGMENTS: usize = 256;
/// Length of the longest DDP header in octets.
const MAX_HEADER_LEN: usize = 18;

/// A captured DDP segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedSegment {
    header: [u8; MAX_HEADER_LEN],
    header_len: u8,
    /// Number of the segment in its direction; the first segment has number 0.
    pub number: u64,
    /// Length of the complete segment in octets.
    pub ulpdu_len: u32,
    /// The frame of the segment.
    pub frame: FrameNumber,
}

impl LoggedSegment {
    /// Returns the DDP header.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header[..usize::from(self.header_len)]
    }

    /// Returns RDMAP's opcode.
    pub(crate) fn opcode(&self) -> Opcode {
        Opcode(self.header[1] & 0xf)
    }

    /// Returns the MSN of an untagged segment; `None` for a tagged segment.
    pub(crate) fn msn(&self) -> Option<Msn> {
        (usize::from(self.header_len) == MAX_HEADER_LEN)
            .then(|| Msn::new(u32::from_be_bytes([self.header[10], self.header[11], self.header[12], self.header[13]])))
    }
}

/// The latest segments of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct SegmentLog {
    kept: VecDeque<LoggedSegment>,
    count: u64,
    /// Whether segments are missing in `kept`.
    pub incomplete: bool,
}

impl SegmentLog {
    /// Returns whether all segments so far were captured and are kept.
    pub(crate) fn is_complete(&self) -> bool {
        !self.incomplete
    }

    /// Adds a segment, and returns the number of the segment.
    pub(crate) fn add(&mut self, unit: &Unit<'_>, view: &SegmentView<'_>) -> u64 {
        let mut header = [0; MAX_HEADER_LEN];
        header[..view.header_len].copy_from_slice(view.header);
        if self.kept.len() >= MAX_SEGMENTS {
            self.kept.pop_front();
            self.incomplete = true;
        }
        let number = self.count;
        self.count += 1;
        let header_len = if view.header_len == MAX_HEADER_LEN { 18 } else { 14 };
        let ulpdu_len = u32::from(header_len) + view.payload_len;
        self.kept.push_back(LoggedSegment { header, header_len, number, ulpdu_len, frame: unit.frame });
        number
    }

    /// Returns whether segment `number` has this header. If the segment is no longer kept, returns
    /// `false`.
    pub(crate) fn has(&self, number: u64, header: &[u8]) -> bool {
        self.kept.iter().any(|segment| segment.number == number && segment.header() == header)
    }

    /// Returns whether a segment has `header` and `len` octets.
    pub(crate) fn has_with_len(&self, header: &[u8], len: u32) -> bool {
        self.kept.iter().any(|segment| segment.ulpdu_len == len && segment.header() == header)
    }

    /// Returns whether a tagged segment with payload used the STag of `header` before the first
    /// segment that has exactly this header.
    pub(crate) fn has_earlier_stag_use(&self, header: &[u8]) -> bool {
        let mut earlier = self.kept.iter().take_while(|segment| segment.header() != header);
        earlier.any(|segment| {
            segment.header_len == 14 && segment.ulpdu_len > 14 && segment.header().get(2..6) == header.get(2..6)
        })
    }

    /// Returns the latest segment with `header`. If a segment with `header` has `length` octets,
    /// returns this segment instead.
    fn find(&self, header: &[u8], length: Option<u16>) -> Option<LoggedSegment> {
        let mut same = self.kept.iter().rev().filter(|segment| segment.header() == header);
        let latest = same.next()?;
        let fits = |segment: &&LoggedSegment| length.is_some_and(|length| u32::from(length) == segment.ulpdu_len);
        Some(*std::iter::once(latest).chain(same).find(fits).unwrap_or(latest))
    }
}

/// The segment that a Terminate reports. The Terminate contains a copy of the header of this
/// segment.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReportedSegment {
    /// The Terminate copies no header.
    None,
    /// The reported segment.
    Found(LoggedSegment),
    /// No segment that was processed before the Terminate has the copied header. The values are the
    /// copied header and its length in octets.
    NotFound([u8; MAX_HEADER_LEN], usize),
    /// The copied header is missing or was not captured completely.
    Unknown,
}

/// A captured Terminate message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminateMessage {
    /// The frame of the Terminate.
    pub frame: FrameNumber,
    /// MSN and MO of the Terminate. Together with the frame, they distinguish this Terminate from a
    /// second Terminate.
    numbers: [u8; 8],
    /// Layer, type and code of the reported error.
    pub error: TerminateError,
    /// The header control bits: M, D, R and five reserved bits.
    pub control: HeaderControl,
    /// The field DDP Segment Length, if present.
    pub segment_length: Option<u16>,
    /// The segment that the Terminate reports.
    pub reported: ReportedSegment,
    /// RDMAP's opcode in the copied header.
    pub opcode: Option<Opcode>,
    /// Location of the field DDP Segment Length, if present.
    pub length_at: Location,
    /// Location of the copied header.
    pub copied: Location,
}

impl TerminateMessage {
    /// Reads a Terminate. `log` has the segments of the opposite direction. Returns `None` if the
    /// fixed part of the Terminate is missing.
    pub(crate) fn read(unit: &Unit<'_>, view: &SegmentView<'_>, log: &SegmentLog) -> Option<Self> {
        let (fixed, _) = RawTerminate::ref_from_prefix(view.payload.get(0..RawTerminate::LEN)?).ok()?;
        let control = fixed.header_control;
        let captured = view.payload.all().and_then(|octets| octets.get(RawTerminate::LEN..));
        let parts = captured.map(|octets| RawTerminateParts::split(control, octets));
        let segment_length =
            parts.and_then(|parts| <[u8; 2]>::try_from(parts.segment_length).ok()).map(u16::from_be_bytes);
        let copied = parts.and_then(|parts| RawHeader::from_prefix(parts.ddp_header).map(|_| parts.ddp_header));
        let reported = match copied {
            _ if !control.d() => ReportedSegment::None,
            None => ReportedSegment::Unknown,
            Some(header) => log.find(header, segment_length).map_or_else(
                || {
                    let mut copy = [0; MAX_HEADER_LEN];
                    copy[..header.len()].copy_from_slice(header);
                    ReportedSegment::NotFound(copy, header.len())
                },
                ReportedSegment::Found,
            ),
        };
        let opcode = copied.map(|header| Opcode(header[1] & 0xf));
        let start = ULPDU_AT + view.header_len + RawTerminate::LEN + 2;
        let length_at = unit.locate_first(start - 2..start);
        let copied = unit.locate_first(start..start + copied.map_or(0, <[u8]>::len));
        let numbers = *view.header.get(10..)?.first_chunk()?;
        let (frame, error) = (unit.frame, fixed.error());
        Some(TerminateMessage { frame, numbers, error, control, segment_length, reported, opcode, length_at, copied })
    }

    /// Returns whether this Terminate is in `unit`. `unit` must be of the same direction as the
    /// Terminate.
    pub(crate) fn is_in(&self, unit: &Unit<'_>) -> bool {
        let header = SegmentView::of(unit).and_then(|view| view.header.get(10..18));
        self.frame == unit.frame && header == Some(&self.numbers[..])
    }

    /// Returns whether no segment in `log` has the header that the Terminate copies. If `log` is
    /// incomplete, returns `false`.
    pub(crate) fn has_unsent_header(&self, log: &SegmentLog) -> bool {
        match &self.reported {
            ReportedSegment::NotFound(header, len) => !log.incomplete && log.find(&header[..*len], None).is_none(),
            ReportedSegment::None | ReportedSegment::Found(_) | ReportedSegment::Unknown => false,
        }
    }

    /// Returns the reported segment if it was captured before the Terminate, but the monitor
    /// processed it after the Terminate. Call this when `log` has all segments.
    pub(crate) fn late_reported_segment(&self, log: &SegmentLog) -> Option<LoggedSegment> {
        let ReportedSegment::NotFound(header, len) = &self.reported else { return None };
        log.find(&header[..*len], self.segment_length).filter(|segment| segment.frame < self.frame)
    }

    /// Returns the reported segment, if it was found.
    pub(crate) fn reported_segment(&self) -> Option<LoggedSegment> {
        match self.reported {
            ReportedSegment::Found(segment) => Some(segment),
            _ => None,
        }
    }
}
