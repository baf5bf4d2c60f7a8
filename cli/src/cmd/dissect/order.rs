//! Sorts text lines by the numbers of their frames.
//!
//! A unit is a message, or a part of a connection that weft cannot decode. The dissector reports a
//! unit only when the decoding of the unit is certain. So it can report a unit of an early frame
//! after units of later frames. Therefore lines wait in a window. The window has the lines of the
//! newest [`MAX_WAITING_FRAMES`] frames, and at most [`MAX_WAITING_MEMORY`] bytes. The module
//! [`frames`](weft_dissector::output::frames) has the same limits. If a new line is for a frame
//! before the window, weft prints the line at once, after the lines of later frames.

use std::collections::BTreeMap;
use std::io::{self, Write};

use weft_dissector::output::frames::{MAX_WAITING_FRAMES, MAX_WAITING_MEMORY};
use weft_dissector::{FrameNumber, StreamId};

/// Stream, direction and frame number. A finding belongs to the unit with the same values.
pub(super) type UnitKey = (Option<StreamId>, u8, FrameNumber);

/// The order of the lines of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// A connection opens.
    Opening,
    /// A segment or datagram. Its line is omitted if the frame has a unit.
    Segment,
    /// A unit with its findings.
    Unit,
    /// A connection closes.
    Closing,
    /// A finding without a unit.
    Alone,
}

/// Lines of one frame that wait to be printed.
struct Entry {
    key: Option<UnitKey>,
    text: Vec<u8>,
}

/// The waiting lines.
#[derive(Default)]
pub(super) struct LineSorter {
    waiting: BTreeMap<(FrameNumber, Rank, u64), Entry>,
    /// Number of bytes of the waiting lines.
    size: usize,
    /// Number of entries so far. This number keeps entries of the same frame and rank in order.
    count: u64,
    /// Number of the newest frame.
    newest: FrameNumber,
}

impl LineSorter {
    /// Starts a frame.
    pub(super) fn begin(&mut self, frame: FrameNumber) {
        self.newest = frame;
    }

    /// Adds lines of frame `frame`. Lines without a frame ([`FrameNumber::NONE`]) count as lines of
    /// the newest frame.
    pub(super) fn add(&mut self, frame: FrameNumber, rank: Rank, key: Option<UnitKey>, text: Vec<u8>) {
        let frame = if frame == FrameNumber::NONE { self.newest } else { frame };
        self.size += text.len();
        self.waiting.insert((frame, rank, self.count), Entry { key, text });
        self.count += 1;
    }

    /// Adds a finding below the lines of its unit. If these lines are already printed, the finding
    /// gets an entry of its own.
    pub(super) fn finding(&mut self, key: UnitKey, text: Vec<u8>) {
        let frame = key.2;
        let units = (frame, Rank::Unit, 0)..=(frame, Rank::Unit, u64::MAX);
        match self.waiting.range_mut(units).rev().find(|(_, entry)| entry.key == Some(key)) {
            Some((_, entry)) => {
                self.size += text.len();
                entry.text.extend_from_slice(&text);
            }
            None => self.add(frame, Rank::Alone, Some(key), text),
        }
    }

    /// Writes the lines that have left the window.
    pub(super) fn drain(&mut self, out: &mut dyn Write) -> io::Result<()> {
        while let Some(((frame, ..), _)) = self.waiting.first_key_value() {
            if self.size <= MAX_WAITING_MEMORY && frame.later(MAX_WAITING_FRAMES as u64) > self.newest {
                break;
            }
            self.write_first(out)?;
        }
        Ok(())
    }

    /// Writes all waiting lines.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        while !self.waiting.is_empty() {
            self.write_first(out)?;
        }
        Ok(())
    }

    /// Writes the first entry, unless it is a segment whose frame has a unit.
    fn write_first(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(((frame, rank, _), entry)) = self.waiting.pop_first() else { return Ok(()) };
        self.size -= entry.text.len();
        let units = (frame, Rank::Unit, 0)..=(frame, Rank::Unit, u64::MAX);
        if rank == Rank::Segment && self.waiting.range(units).next().is_some() {
            return Ok(());
        }
        out.write_all(&entry.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(lines: &mut LineSorter, frame: u64, rank: Rank, text: &str) {
        let frame = FrameNumber::from(frame);
        lines.add(frame, rank, Some((Some(StreamId::FIRST), 0, frame)), text.into());
    }

    #[test]
    fn prints_lines_by_frame_and_findings_below_their_unit() {
        let mut lines = LineSorter::default();
        lines.begin(3.into());
        add(&mut lines, 3, Rank::Closing, "3 closed ");
        add(&mut lines, 3, Rank::Unit, "3 unit ");
        add(&mut lines, 2, Rank::Unit, "2 unit ");
        lines.finding((Some(StreamId::FIRST), 0, 2.into()), "2 finding ".into());
        lines.finding((Some(StreamId::FIRST), 1, 2.into()), "2 other ".into());
        add(&mut lines, 0, Rank::Alone, "end ");
        let mut out = Vec::new();
        lines.drain(&mut out).unwrap();
        assert!(out.is_empty());
        lines.finish(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "2 unit 2 finding 2 other 3 unit 3 closed end ");
    }

    #[test]
    fn a_segment_has_a_line_only_if_its_frame_has_no_unit() {
        let mut lines = LineSorter::default();
        lines.begin(4.into());
        add(&mut lines, 1, Rank::Segment, "1 segment ");
        add(&mut lines, 2, Rank::Segment, "2 segment ");
        add(&mut lines, 3, Rank::Segment, "3 segment ");
        add(&mut lines, 3, Rank::Alone, "3 finding ");
        // The dissector reports the unit of frame 2 after frame 3.
        add(&mut lines, 2, Rank::Unit, "2 unit ");
        let mut out = Vec::new();
        lines.finish(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "1 segment 2 unit 3 segment 3 finding ");
        assert_eq!(lines.size, 0);
    }

    #[test]
    fn the_window_is_bounded() {
        let mut lines = LineSorter::default();
        lines.begin(FrameNumber::FIRST);
        add(&mut lines, 1, Rank::Unit, "1 ");
        lines.begin((MAX_WAITING_FRAMES as u64).into());
        add(&mut lines, 2, Rank::Unit, "2 ");
        let mut out = Vec::new();
        lines.drain(&mut out).unwrap();
        assert!(out.is_empty());
        lines.begin((MAX_WAITING_FRAMES as u64 + 1).into());
        lines.drain(&mut out).unwrap();
        assert_eq!(out, b"1 ");
        lines.finding((Some(StreamId::FIRST), 0, FrameNumber::FIRST), b"late".into());
        lines.drain(&mut out).unwrap();
        assert_eq!(out, b"1 late");
    }
}
