//! Passes over a capture. In a pass, a reader receives the frames in order, until the reader needs
//! no further frames, or until the caller cancels the pass.

use crate::diagnosis::Diagnoses;
use crate::frame_number::FrameNumber;
use crate::output::connection_ladder::Timeline;
use crate::output::follow::{Follow, Piece};
use crate::source::{Capture, Frame};
use crate::stats::Stats;
use crate::{Dissector, Sink};

/// A reader of all frames of a capture.
pub trait Reader {
    /// Reads the next frame. Returns `false` if the reader needs neither this frame nor later
    /// frames.
    fn frame(&mut self, frame: &Frame<'_>) -> bool;

    /// Approximate memory in bytes.
    fn memory(&self) -> usize;
}

/// A sink that collects results of the dissector during a [`Pass`].
pub trait Collector: Sink {
    /// Registers a frame before the frame is dissected. Returns `false` if the collector needs
    /// neither this frame nor later frames.
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        let _ = frame;
        true
    }

    /// Called at the end of the capture, before the results of [`Dissector::finish`].
    fn end(&mut self) {}

    /// Approximate memory in bytes. A collector whose memory is always small may return 0.
    fn memory(&self) -> usize {
        0
    }
}

/// A dissector with a collector of its results.
pub struct Pass<C> {
    dissector: Dissector,
    collector: C,
    is_complete: bool,
}

impl<C: Collector> Pass<C> {
    /// A pass that has read no frames.
    pub fn new(collector: C) -> Self {
        Pass { dissector: Dissector::default(), collector, is_complete: false }
    }

    /// The results so far.
    pub fn collector(&self) -> &C {
        &self.collector
    }

    /// The results so far. The caller may remove results.
    pub fn collector_mut(&mut self) -> &mut C {
        &mut self.collector
    }

    /// Returns whether the collector has rejected a frame because the collector needs no further
    /// frames.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The remarks of the dissector (see [`Dissector::remarks`](crate::Dissector::remarks)).
    pub fn remarks(&self) -> Vec<String> {
        self.dissector.remarks()
    }

    /// Ends the capture, and collects the remaining results.
    pub fn finish(&mut self) {
        self.collector.end();
        self.dissector.finish(&mut self.collector);
    }

    /// The results.
    pub fn into_collector(self) -> C {
        self.collector
    }
}

impl<C: Collector> Reader for Pass<C> {
    fn frame(&mut self, frame: &Frame<'_>) -> bool {
        self.is_complete = !self.collector.begin(frame);
        if !self.is_complete {
            self.dissector.frame(frame, &mut self.collector);
        }
        !self.is_complete
    }

    fn memory(&self) -> usize {
        self.dissector.memory() + self.collector.memory()
    }
}

/// The reason why [`read`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The capture has no further frames, because it ends or is damaged (see [`Capture::note`]).
    AtEnd,
    /// The reader needs no further frames.
    ReaderComplete,
    /// The caller cancelled the pass.
    Cancelled,
}

/// Passes the frames of `capture` to `reader`. `before` is the number of frames in earlier files of
/// the same capture. `read` adds `before` to the frame numbers. After each frame, `read` calls
/// `should_continue` with the frame number. If `should_continue` returns `false`, the pass is
/// cancelled.
pub fn read<R: Reader>(
    capture: &mut Capture,
    before: u64,
    reader: &mut R,
    mut should_continue: impl FnMut(&mut R, FrameNumber) -> bool,
) -> Stop {
    while let Some(frame) = capture.next_frame() {
        let number = frame.number.later(before);
        if !reader.frame(&Frame { number, ..frame }) {
            return Stop::ReaderComplete;
        }
        if !should_continue(reader, number) {
            return Stop::Cancelled;
        }
    }
    Stop::AtEnd
}

impl Collector for Stats {
    fn memory(&self) -> usize {
        self.memory()
    }
}

impl Collector for Diagnoses {
    fn memory(&self) -> usize {
        self.memory()
    }
}

/// A pair of collectors. It needs frames as long as one of them does.
impl<A: Collector, B: Collector> Collector for (A, B) {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        let needed = [self.0.begin(frame), self.1.begin(frame)];
        needed.contains(&true)
    }

    fn end(&mut self) {
        self.0.end();
        self.1.end();
    }

    fn memory(&self) -> usize {
        self.0.memory() + self.1.memory()
    }
}

impl Collector for Timeline {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        self.at(frame.time);
        true
    }
}

impl<F: FnMut(&Piece<'_>)> Collector for Follow<F> {}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::browse::{Details, Index};

    fn capture(name: &str) -> Capture {
        Capture::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw").join(name)).unwrap()
    }

    #[test]
    fn stops_at_the_end_when_the_reader_has_enough_or_when_the_caller_cancels() {
        let mut all = Pass::new(Index::default());
        assert_eq!(read(&mut capture("rping-crc.pcap"), 0, &mut all, |_, _| true), Stop::AtEnd);
        assert!(all.collector().rows().len() == 52 && !all.is_complete());
        let mut few = Pass::new(Index::with_room(10));
        assert_eq!(read(&mut capture("rping-crc.pcap"), 0, &mut few, |_, _| true), Stop::ReaderComplete);
        assert!(few.collector().rows().len() == 10 && few.is_complete());
        let mut cancelled = Pass::new(Index::default());
        assert_eq!(
            read(&mut capture("rping-crc.pcap"), 0, &mut cancelled, |_, number| number < 7.into()),
            Stop::Cancelled
        );
        assert_eq!(cancelled.collector().rows().len(), 7);
    }

    #[test]
    fn a_second_file_continues_the_numbers() {
        let mut pass = Pass::new(Index::default());
        for before in [0, 52] {
            read(&mut capture("rping-crc.pcap"), before, &mut pass, |_, _| true);
        }
        pass.finish();
        assert!(pass.collector().rows().iter().map(|row| u64::from(row.number)).eq(1..=104));
    }

    #[test]
    fn reads_no_frame_after_the_last_one_for_the_details() {
        let mut pass = Pass::new(Details::new(20.into(), 60).until(30.into()));
        assert_eq!(read(&mut capture("host-matrix.pcap"), 0, &mut pass, |_, _| true), Stop::ReaderComplete);
        let numbers = pass.into_collector().into_frames().into_iter().map(|detail| u64::from(detail.number));
        assert!(numbers.eq(1..=30));
    }
}
