//! [`Sieve`]: finds the frames that pass a display filter.

use super::pass::Reader;
use crate::filter::{Filter, FilterError, Wanted};
use crate::output::frames::{Frames, Keep};
use crate::source::Frame;
use crate::{Dissector, Finding, Packet, Sink, unit::Unit};

/// Applies a display filter to the frames of a capture.
pub struct Sieve {
    filter: Filter,
    dissector: Dissector,
    gather: Gather,
    /// Number of frames that [`read`](super::read) may still read.
    left: usize,
    /// Numbers of frames that passed and that the caller has not removed yet. A frame whose unit or
    /// finding arrives late follows later frames.
    passed: Vec<u64>,
}

impl Sieve {
    /// Parses the filter.
    ///
    /// # Errors
    /// `text` is no valid filter. The error has a description and a column.
    pub fn new(text: &str) -> Result<Self, FilterError> {
        let mut wanted = Wanted::default();
        let filter = Filter::parse(text, &mut wanted)?;
        let dissector = if wanted.monitor() { Dissector::default() } else { Dissector::units_only() };
        let gather = Gather(Frames::new(wanted, Keep::default()));
        Ok(Sieve { filter, dissector, gather, left: usize::MAX, passed: Vec::new() })
    }

    /// Limits [`read`](super::read) to `most` frames.
    #[must_use]
    pub fn with_limit(self, most: usize) -> Self {
        Sieve { left: most, ..self }
    }

    /// Reads the next frame.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.gather.0.begin(frame);
        self.dissector.frame(frame, &mut self.gather);
        self.gather.0.end(!self.dissector.holds_back());
        self.drain();
    }

    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.dissector.memory() + self.passed.len() * 2 * size_of::<u64>()
    }

    /// Frames that passed so far. The caller may remove frames from the list. A removed frame
    /// appears again only if a further unit or finding of the frame arrives late.
    pub fn passed(&mut self) -> &mut Vec<u64> {
        &mut self.passed
    }

    /// Ends the capture. Returns all frames that passed and that the caller has not removed, in
    /// order and without duplicates.
    #[must_use]
    pub fn finish(mut self) -> Vec<u64> {
        self.dissector.finish(&mut self.gather);
        self.gather.0.finish();
        self.drain();
        self.passed.sort_unstable();
        self.passed.dedup();
        self.passed
    }

    fn drain(&mut self) {
        while let Some(record) = self.gather.0.ready() {
            if self.filter.matches(&record.values) {
                self.passed.push(record.facts.number);
            }
            self.gather.0.recycle(record);
        }
    }
}

impl Reader for Sieve {
    fn frame(&mut self, frame: &Frame<'_>) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        self.frame(frame);
        true
    }

    fn memory(&self) -> usize {
        self.memory()
    }
}

struct Gather(Frames);

impl Sink for Gather {
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
        let mut sieve = Sieve::new(text).unwrap();
        while let Some(frame) = capture.next_frame() {
            sieve.frame(&frame);
        }
        sieve.finish()
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
        let mut sieve = Sieve::new("iwarp_rdma.opcode == 0").unwrap();
        let mut taken = Vec::new();
        while let Some(frame) = capture.next_frame().filter(|frame| frame.number <= 40) {
            sieve.frame(&frame);
            taken.append(sieve.passed());
        }
        // The frames of the test above up to frame 40.
        assert_eq!((taken, sieve.finish()), (vec![16, 26, 36], vec![]));
    }

    #[test]
    fn findings_are_looked_for_where_the_filter_asks() {
        assert!(!numbers("violations-6-kinds-crc.pcap", "finding.severity == error").is_empty());
        assert!(Sieve::new("tcp.steam").is_err_and(|error| error.to_string().contains("did you mean")));
    }
}
