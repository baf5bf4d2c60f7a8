//! [`FilteredFrames`]: finds the frames that pass a display filter.

use super::pass::Reader;
use crate::filter::{Filter, FilterError, WantedFields};
use crate::frame_number::FrameNumber;
use crate::output::frames::{Frames, RecordParts};
use crate::source::Frame;
use crate::{Dissector, Finding, Packet, Sink, unit::Unit};

/// Applies a display filter to the frames of a capture.
pub struct FilteredFrames {
    filter: Filter,
    dissector: Dissector,
    sink: RecordSink,
    /// Number of frames that [`read`](super::read) may still read.
    left: usize,
    /// Numbers of the frames that passed the filter. Numbers that the caller has removed are not in
    /// the list. The numbers are in capture order, with one exception. If a unit or finding of a
    /// frame arrives only after later frames, the number of this frame comes after the numbers of
    /// those frames.
    passed: Vec<FrameNumber>,
}

impl FilteredFrames {
    /// Parses the filter.
    ///
    /// # Errors
    /// `text` is not a valid filter. The error has a description and a column.
    pub fn new(text: &str) -> Result<Self, FilterError> {
        let mut wanted = WantedFields::default();
        let filter = Filter::parse(text, &mut wanted)?;
        let dissector = if wanted.monitor() { Dissector::default() } else { Dissector::units_only() };
        let sink = RecordSink(Frames::new(wanted, RecordParts::default()));
        Ok(FilteredFrames { filter, dissector, sink, left: usize::MAX, passed: Vec::new() })
    }

    /// Limits [`read`](super::read) to `most` frames.
    #[must_use]
    pub fn with_limit(self, most: usize) -> Self {
        FilteredFrames { left: most, ..self }
    }

    /// Reads the next frame.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.sink.0.begin(frame);
        self.dissector.frame(frame, &mut self.sink);
        self.sink.0.end(!self.dissector.holds_back());
        self.drain();
    }

    /// Frames that passed so far. The caller may remove frames from the list. A removed frame can
    /// return to the list in only one case: the dissector first reads later frames, and then
    /// delivers another unit or finding of the removed frame.
    pub fn passed(&mut self) -> &mut Vec<FrameNumber> {
        &mut self.passed
    }

    /// Ends the capture. Returns all frames that passed and that the caller has not removed, in
    /// order and without duplicates.
    #[must_use]
    pub fn finish(mut self) -> Vec<FrameNumber> {
        self.dissector.finish(&mut self.sink);
        self.sink.0.finish();
        self.drain();
        self.passed.sort_unstable();
        self.passed.dedup();
        self.passed
    }

    fn drain(&mut self) {
        while let Some(record) = self.sink.0.ready() {
            if self.filter.matches(&record.values) {
                self.passed.push(record.facts.number);
                self.sink.0.mark_displayed(&record);
            }
            self.sink.0.recycle(record);
        }
    }
}

impl Reader for FilteredFrames {
    fn frame(&mut self, frame: &Frame<'_>) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        self.frame(frame);
        true
    }

    fn memory(&self) -> usize {
        self.dissector.memory() + self.passed.len() * 2 * size_of::<FrameNumber>()
    }
}

struct RecordSink(Frames);

impl Sink for RecordSink {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.0.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        self.0.finding(finding);
    }

    fn packet(&mut self, packet: &Packet) {
        self.0.packet(packet);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::Capture;

    fn numbers(name: &str, text: &str) -> Vec<u64> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
        let mut capture = Capture::open(&folder.join(name)).unwrap();
        let mut sieve = FilteredFrames::new(text).unwrap();
        while let Some(frame) = capture.next_frame() {
            sieve.frame(&frame);
        }
        sieve.finish().into_iter().map(u64::from).collect()
    }

    #[test]
    fn frames_that_pass_are_those_of_tshark() {
        // tshark -r rping-crc.pcap -Y 'iwarp_rdma.opcode == 0' -T fields -e frame.number
        assert_eq!(numbers("rping-crc.pcap", "iwarp_rdma.opcode == 0"), [16, 26, 36, 47]);
        assert_eq!(numbers("rping-crc.pcap", "frame.number in {3, 50..60}"), [3, 50, 51, 52]);
        assert_eq!(numbers("host-matrix.pcap", "frame"), (1..=627).collect::<Vec<_>>());
    }

    #[test]
    fn what_passed_can_be_taken_before_the_end() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
        let mut capture = Capture::open(&folder.join("rping-crc.pcap")).unwrap();
        let mut sieve = FilteredFrames::new("iwarp_rdma.opcode == 0").unwrap();
        let mut taken = Vec::new();
        while let Some(frame) = capture.next_frame().filter(|frame| frame.number <= 40.into()) {
            sieve.frame(&frame);
            taken.append(sieve.passed());
        }
        // This test stops at frame 40, so frame 47 of the test above is missing.
        assert_eq!((taken, sieve.finish()), ([16, 26, 36].map(FrameNumber::from).to_vec(), vec![]));
    }

    #[test]
    fn findings_are_looked_for_where_the_filter_asks() {
        assert!(!numbers("violations-6-kinds-crc.pcap", "finding.severity == error").is_empty());
        assert!(FilteredFrames::new("tcp.steam").is_err_and(|error| error.to_string().contains("did you mean")));
    }
}
