//! [`Run`]: contiguous captured octets of a stream, with the frames that supplied them.

use std::collections::VecDeque;

use crate::frame_number::FrameNumber;
use crate::location::{Location, StreamLocation};

/// The frame that supplied contiguous octets, and the results of checks of its segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Stream position of the first octet.
    pub(super) position: u64,
    pub(super) frame: FrameNumber,
    /// Capture time of the frame, in nanoseconds since 1970.
    pub(super) time: u64,
    /// Offset of the first octet in the frame; `None` if the segment was reassembled from IP
    /// fragments.
    pub(super) offset: Option<u32>,
    /// Whether the segment has only one octet. Such a segment can be a keep-alive, and then its
    /// octet can have any value (RFC 1122 section 4.2.3.6).
    pub(super) is_probe: bool,
    /// Whether the checksum of the segment is wrong, although the direction has segments with a
    /// correct checksum.
    pub(super) is_damaged: bool,
    /// Whether the segment is damaged and its octets wait for a retransmission that replaces them.
    pub(super) is_doubted: bool,
}

impl Source {
    /// The source of the octet that is `octets` positions after the first octet.
    pub(super) fn after(&self, octets: u64) -> Source {
        let offset = self.offset.map(|at| at + u32::try_from(octets).unwrap_or(0));
        Source { position: self.position + octets, offset, ..*self }
    }
}

/// Maximum capacity in octets that an empty buffer keeps for later segments.
const KEPT_CAPACITY: usize = 256 << 10;

/// Contiguous captured octets.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) start: u64,
    octets: Vec<u8>,
    /// Number of consumed octets at the front of `octets`.
    head: usize,
    sources: VecDeque<Source>,
}

impl Run {
    pub(super) fn new(octets: Vec<u8>, source: Source) -> Self {
        Run { start: source.position, octets, head: 0, sources: VecDeque::from([source]) }
    }

    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.start + self.len() as u64
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.octets.len() - self.head
    }

    /// Number of sources. Each source is a frame that supplied contiguous octets.
    pub(super) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Allocated memory for octets, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.octets.capacity()
    }

    /// The octets at positions `from..to`. The caller has checked that the positions are in the
    /// run.
    #[inline]
    pub(super) fn slice(&self, from: u64, to: u64) -> &[u8] {
        &self.octets[self.head + (from - self.start) as usize..self.head + (to - self.start) as usize]
    }

    #[inline]
    pub(super) fn push(&mut self, octets: &[u8], source: Source) {
        self.octets.extend_from_slice(octets);
        self.sources.push_back(source);
    }

    /// Drops the octets before `position`. The position must be in the run or at its end.
    pub(super) fn consume_to(&mut self, position: u64) {
        self.head += (position - self.start) as usize;
        self.start = position;
        if self.head == self.octets.len() {
            self.octets.clear();
            self.octets.shrink_to(KEPT_CAPACITY);
            self.head = 0;
            self.sources.clear();
            return;
        }
        if self.head > 1 << 16 && self.head > self.octets.len() / 2 {
            self.octets.drain(..self.head);
            self.head = 0;
        }
        while self.sources.get(1).is_some_and(|next| next.position <= position) {
            self.sources.pop_front();
        }
    }

    /// The octets of each source.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&[u8], Source)> {
        self.sources_of(self.start, self.end()).map(|(source, until)| {
            let source = source.after(self.start.saturating_sub(source.position));
            (self.slice(source.position, until), source)
        })
    }

    /// The sources of the octets at positions `start..end`, each with the position of its end.
    fn sources_of(&self, start: u64, end: u64) -> impl Iterator<Item = (&Source, u64)> {
        let first = self.sources.partition_point(|source| source.position <= start).saturating_sub(1);
        let ends = self.sources.range(first..).skip(1).map(|next| next.position).chain([self.end()]);
        self.sources.range(first..).zip(ends).take_while(move |(source, _)| source.position < end)
    }

    /// Number and capture time of the latest frame with octets at positions `start..end`.
    #[inline]
    pub(super) fn latest_frame(&self, start: u64, end: u64) -> (FrameNumber, u64) {
        // A fast path, because most FPDUs are in one segment.
        if let Some(only) = self.sources.front().filter(|_| self.sources.len() == 1) {
            return (only.frame, only.time);
        }
        let frames = self.sources_of(start, end).filter(|(_, until)| *until > start);
        frames.map(|(source, _)| (source.frame, source.time)).max().unwrap_or_default()
    }

    /// Returns whether octets at positions `start..end` are from a damaged segment.
    pub(super) fn is_damaged(&self, start: u64, end: u64) -> bool {
        self.sources_of(start, end).any(|(source, until)| source.is_damaged && until > start)
    }

    /// Locations in the capture of those octets at positions `start..end` that are in the run.
    pub(super) fn locate(&self, start: u64, end: u64) -> impl Iterator<Item = StreamLocation> {
        self.sources_of(start, end).filter_map(move |(source, until)| {
            let (from, to) = (source.position.max(start), until.min(end));
            let offset = source.after(from - source.position).offset;
            let location = Location { frame: source.frame, offset, len: to.saturating_sub(from) };
            (from < to).then_some(StreamLocation { at: from, location })
        })
    }
}
