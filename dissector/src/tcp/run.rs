//! Captured octets in one piece, and which frames they came from.

use std::collections::VecDeque;

use crate::located::{Located, Placed};

/// Which frame supplied a stretch of octets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Position of the first octet.
    pub(super) position: u64,
    pub(super) frame: u64,
    /// When the frame was captured.
    pub(super) time: u64,
    /// Offset of the first octet in the frame.
    pub(super) offset: Option<u32>,
    /// Is it a segment of one octet, which may be the invented octet of a keep-alive (RFC 1122
    /// section 4.2.3.6)?
    pub(super) is_probe: bool,
    /// Is its checksum wrong, though others of the direction are right?
    pub(super) is_damaged: bool,
    /// Does it therefore wait for other octets?
    pub(super) is_doubted: bool,
}

impl Source {
    /// The source of the octet that is `octets` positions later.
    pub(super) fn after(&self, octets: u64) -> Source {
        let offset = self.offset.map(|at| at + u32::try_from(octets).unwrap_or(0));
        Source { position: self.position + octets, offset, ..*self }
    }
}

/// An empty buffer keeps at most this for the segments that follow.
const KEPT_CAPACITY: usize = 256 << 10;

/// Captured octets without a hole.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) start: u64,
    octets: Vec<u8>,
    /// Octets at the front of `octets` that are consumed.
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

    /// Stretches of octets that came from one frame each.
    pub(super) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Octets of memory that the run keeps.
    pub(super) fn capacity(&self) -> usize {
        self.octets.capacity()
    }

    /// The octets `from..to`; positions lie within the run, which callers have checked.
    #[inline]
    pub(super) fn slice(&self, from: u64, to: u64) -> &[u8] {
        &self.octets[self.head + (from - self.start) as usize..self.head + (to - self.start) as usize]
    }

    #[inline]
    pub(super) fn push(&mut self, octets: &[u8], source: Source) {
        self.octets.extend_from_slice(octets);
        self.sources.push_back(source);
    }

    /// Drops the octets before `position`, which is within the run or at its end.
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

    /// The octets of each frame.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&[u8], Source)> {
        self.sources_of(self.start, self.end()).map(|(source, until)| {
            let source = source.after(self.start.saturating_sub(source.position));
            (self.slice(source.position, until), source)
        })
    }

    /// Sources with octets of `start..end`, each with its own end.
    fn sources_of(&self, start: u64, end: u64) -> impl Iterator<Item = (&Source, u64)> {
        let first = self.sources.partition_point(|source| source.position <= start).saturating_sub(1);
        let ends = self.sources.range(first..).skip(1).map(|next| next.position).chain([self.end()]);
        self.sources.range(first..).zip(ends).take_while(move |(source, _)| source.position < end)
    }

    /// Number and time of the latest frame with octets of `start..end`.
    #[inline]
    pub(super) fn latest_frame(&self, start: u64, end: u64) -> (u64, u64) {
        // Most FPDUs lie in one segment.
        if let Some(only) = self.sources.front().filter(|_| self.sources.len() == 1) {
            return (only.frame, only.time);
        }
        let frames = self.sources_of(start, end).filter(|(_, until)| *until > start);
        frames.map(|(source, _)| (source.frame, source.time)).max().unwrap_or_default()
    }

    /// Are octets of `start..end` from a segment whose checksum is wrong?
    pub(super) fn is_damaged(&self, start: u64, end: u64) -> bool {
        self.sources_of(start, end).any(|(source, until)| source.is_damaged && until > start)
    }

    /// Where its octets of `start..end` are in the capture.
    pub(super) fn locate(&self, start: u64, end: u64) -> impl Iterator<Item = Placed> {
        self.sources_of(start, end).filter_map(move |(source, until)| {
            let (from, to) = (source.position.max(start), until.min(end));
            let offset = source.after(from - source.position).offset;
            (from < to).then(|| Placed { at: from, located: Located { frame: source.frame, offset, len: to - from } })
        })
    }
}
