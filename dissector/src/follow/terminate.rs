//! Terminates, and the segments that they report.
//!
//! The headers of the latest [`MOST`] segments of each direction are kept. If a Terminate copies an
//! older header, its target is unknown.

use std::collections::VecDeque;

use weft_core::wire::ddp::RawHeader;
use weft_core::wire::rdmap::{HeaderControl, Opcode, RawTerminate, RawTerminateParts, TerminateError};
use zerocopy::FromBytes;

use crate::parse::{Located, Unit};
use crate::parse::{SegmentView, ULPDU_AT};

/// Headers that are kept of each direction.
const MOST: usize = 256;
/// Octets of the longest header.
const LONGEST: usize = 18;

/// A segment that was observed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logged {
    header: [u8; LONGEST],
    header_len: u8,
    /// Its number in its direction.
    pub number: u64,
    /// Octets of the complete segment.
    pub ulpdu_len: u32,
    /// Its frame.
    pub frame: u64,
}

impl Logged {
    /// Its DDP header.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header[..usize::from(self.header_len)]
    }

    /// Its opcode.
    pub(crate) fn opcode(&self) -> Opcode {
        Opcode(self.header[1] & 0xf)
    }

    /// MSN of an untagged segment.
    pub(crate) fn msn(&self) -> Option<u32> {
        (usize::from(self.header_len) == LONGEST)
            .then(|| u32::from_be_bytes([self.header[10], self.header[11], self.header[12], self.header[13]]))
    }
}

/// The latest segments of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    kept: VecDeque<Logged>,
    count: u64,
    /// Were there segments that are not kept?
    incomplete: bool,
}

impl Log {
    pub(crate) fn lose(&mut self) {
        self.incomplete = true;
    }

    /// Were all segments kept?
    pub(crate) fn is_complete(&self) -> bool {
        !self.incomplete
    }

    /// Adds a segment, and returns its number.
    pub(crate) fn add(&mut self, unit: &Unit<'_>, view: &SegmentView<'_>) -> u64 {
        let mut header = [0; LONGEST];
        header[..view.header_len].copy_from_slice(view.header);
        if self.kept.len() >= MOST {
            self.kept.pop_front();
            self.incomplete = true;
        }
        let number = self.count;
        self.count += 1;
        let header_len = if view.header_len == LONGEST { 18 } else { 14 };
        let ulpdu_len = u32::from(header_len) + view.payload_len;
        self.kept.push_back(Logged { header, header_len, number, ulpdu_len, frame: unit.frame });
        number
    }

    /// Has segment `number` this header? `false` if it is no longer kept.
    pub(crate) fn has(&self, number: u64, header: &[u8]) -> bool {
        self.kept.iter().any(|logged| logged.number == number && logged.header() == header)
    }

    /// Was there a tagged segment with payload for the STag of this header before the first one
    /// that has the header?
    pub(crate) fn used_before(&self, header: &[u8]) -> bool {
        let mut earlier = self.kept.iter().take_while(|logged| logged.header() != header);
        earlier.any(|logged| {
            logged.header_len == 14 && logged.ulpdu_len > 14 && logged.header().get(2..6) == header.get(2..6)
        })
    }

    /// The latest segment with `header`; a segment of `length` octets is preferred.
    fn find(&self, header: &[u8], length: Option<u16>) -> Option<Logged> {
        let mut same = self.kept.iter().rev().filter(|logged| logged.header() == header);
        let latest = same.next()?;
        let fits = |logged: &&Logged| length.is_some_and(|length| u32::from(length) == logged.ulpdu_len);
        Some(*std::iter::once(latest).chain(same).find(fits).unwrap_or(latest))
    }
}

/// The target that the copied header of a Terminate names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// No header is copied.
    None,
    /// This segment.
    Found(Logged),
    /// A header with this many of these octets, which no segment before the Terminate had.
    Unseen([u8; LONGEST], usize),
    /// A segment whose header was not captured.
    Unknown,
}

/// A Terminate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminateSeen {
    /// Its frame.
    pub frame: u64,
    /// MSN and MO; with the frame, they distinguish it from a second Terminate.
    numbers: [u8; 8],
    /// Layer, type and code.
    pub error: TerminateError,
    /// M, D, R and five reserved bits.
    pub control: HeaderControl,
    /// DDP Segment Length, if present.
    pub segment_length: Option<u16>,
    /// The segment that it reports.
    pub target: Target,
    /// The opcode in the copied header.
    pub opcode: Option<Opcode>,
    /// Where the copied header is.
    pub copied: Located,
}

impl TerminateSeen {
    /// Reads a Terminate whose opposite direction is in `log`; `None` if its fixed part is missing.
    pub(crate) fn read(unit: &Unit<'_>, view: &SegmentView<'_>, log: &Log) -> Option<Self> {
        let (fixed, _) = RawTerminate::ref_from_prefix(view.payload.get(0..RawTerminate::LEN)?).ok()?;
        let control = fixed.header_control;
        let captured = view.payload.all().and_then(|octets| octets.get(RawTerminate::LEN..));
        let parts = captured.map(|octets| RawTerminateParts::split(control, octets));
        let segment_length =
            parts.and_then(|parts| <[u8; 2]>::try_from(parts.segment_length).ok()).map(u16::from_be_bytes);
        let copied = parts.and_then(|parts| RawHeader::from_prefix(parts.ddp_header).map(|_| parts.ddp_header));
        let target = match copied {
            _ if !control.d() => Target::None,
            None => Target::Unknown,
            Some(header) => log.find(header, segment_length).map_or_else(
                || {
                    let mut copy = [0; LONGEST];
                    copy[..header.len()].copy_from_slice(header);
                    Target::Unseen(copy, header.len())
                },
                Target::Found,
            ),
        };
        let opcode = copied.map(|header| Opcode(header[1] & 0xf));
        let start = ULPDU_AT + view.header_len + RawTerminate::LEN + 2;
        let copied = unit.locate_first(start..start + copied.map_or(0, <[u8]>::len));
        let numbers = *view.header.get(10..)?.first_chunk()?;
        Some(TerminateSeen {
            frame: unit.frame,
            numbers,
            error: fixed.error(),
            control,
            segment_length,
            target,
            opcode,
            copied,
        })
    }

    /// Is it `unit`, a Terminate of its direction?
    pub(crate) fn is(&self, unit: &Unit<'_>) -> bool {
        let header = SegmentView::of(unit).and_then(|view| view.header.get(10..18));
        self.frame == unit.frame && header == Some(&self.numbers[..])
    }

    /// With `log` complete: does it copy a header that no segment ever had?
    pub(crate) fn is_made_up(&self, log: &Log) -> bool {
        match &self.target {
            Target::Unseen(header, len) => !log.incomplete && log.find(&header[..*len], None).is_none(),
            Target::None | Target::Found(_) | Target::Unknown => false,
        }
    }

    /// Now that all of `log` is there: the segment that it names, if that was read only after it,
    /// and was captured before it.
    pub(crate) fn late_target(&self, log: &Log) -> Option<Logged> {
        let Target::Unseen(header, len) = &self.target else { return None };
        log.find(&header[..*len], self.segment_length).filter(|logged| logged.frame < self.frame)
    }

    /// The segment that it names.
    pub(crate) fn target(&self) -> Option<Logged> {
        match self.target {
            Target::Found(logged) => Some(logged),
            _ => None,
        }
    }
}
