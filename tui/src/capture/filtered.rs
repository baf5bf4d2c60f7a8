//! The packets that pass a display filter.
//!
//! A thread reads the capture like `weft dissect -T text -Y`, and sends the numbers of the frames
//! that pass. It follows a live capture. It ends with the next filter or with the screen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use weft_dissector::browse::Sieve;

use super::feed::{Feed, Source, feed};
use super::index::MAX_FRAMES;
use super::recording::Recording;

/// An active filter.
#[derive(Debug)]
pub(crate) struct Filtered {
    /// The text that the user typed.
    pub(crate) text: String,
    /// Frames that passed so far, in order.
    numbers: Vec<u64>,
    /// The frame that was selected when the filter started: the selection stays near it until the
    /// user moves.
    pub(crate) anchor: Option<u64>,
    /// Is the thread running, or are results waiting?
    pub(crate) is_reading: bool,
    /// The last frame that was read.
    read: Arc<AtomicU64>,
    passed: Feed<u64>,
}

impl Filtered {
    /// Starts to filter, or returns the error in the filter or the capture.
    pub(crate) fn start(recording: &Recording, text: &str, anchor: Option<u64>) -> Result<Self, String> {
        let sieve = Sieve::new(text).map_err(|error| error.to_string())?;
        recording.check().map_err(|error| error.to_string())?;
        let (source, passed) = feed();
        let read = Arc::new(AtomicU64::new(0));
        let (recording, at) = (recording.clone(), Arc::clone(&read));
        thread::spawn(move || sift(&recording, sieve, &source, &at));
        Ok(Filtered { text: text.to_owned(), numbers: Vec::new(), anchor, is_reading: true, read, passed })
    }

    /// Takes at most `most` results; `false` if nothing changed.
    pub(crate) fn poll(&mut self, most: usize) -> bool {
        if !self.is_reading {
            return false;
        }
        let numbers = self.passed.take(most);
        let is_new = !numbers.is_empty();
        numbers.into_iter().for_each(|number| self.add(number));
        self.is_reading = !self.passed.is_over();
        is_new || !self.is_reading
    }

    /// The last frame that was read.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Adds a frame. Results may be late (if a unit is complete long after its frame) and repeated.
    fn add(&mut self, number: u64) {
        if let Err(at) = self.numbers.binary_search(&number) {
            self.numbers.insert(at, number);
        }
    }

    /// The number of frames up to `last` that pass.
    pub(crate) fn len(&self, last: u64) -> usize {
        self.numbers.partition_point(|number| *number <= last)
    }

    /// The frame at an index of the list.
    pub(crate) fn number(&self, at: usize) -> Option<u64> {
        self.numbers.get(at).copied()
    }

    /// The index of a frame in the list.
    pub(crate) fn find(&self, number: u64) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// The index of the first frame from `number` on.
    pub(crate) fn near(&self, number: u64) -> usize {
        self.numbers.partition_point(|passed| *passed < number).min(self.numbers.len().saturating_sub(1))
    }
}

fn sift(recording: &Recording, mut sieve: Sieve, source: &Source<u64>, at: &AtomicU64) {
    let mut read: usize = 0;
    // The indexer reports errors of the capture.
    let _ = recording.read(true, source.gone(), |frame, _| {
        read += 1;
        sieve.frame(frame);
        at.store(frame.number, Relaxed);
        source.send(sieve.passed()) && read < MAX_FRAMES
    });
    // The screen may be gone.
    source.send(&mut sieve.finish());
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::testing::capture_path;

    fn numbers(name: &str, text: &str) -> Vec<u64> {
        let mut filtered = Filtered::start(&Recording::file(&capture_path(name)), text, None).unwrap();
        while filtered.is_reading {
            if !filtered.poll(3) {
                thread::yield_now();
            }
        }
        filtered.numbers
    }

    #[test]
    fn frames_that_pass_are_the_same_as_with_tshark() {
        // tshark -r rping-crc.pcap -Y 'iwarp_rdma.opcode == 0' -T fields -e frame.number
        assert_eq!(numbers("rping-crc.pcap", "iwarp_rdma.opcode == 0"), [16, 26, 36, 47]);
        assert_eq!(numbers("rping-crc.pcap", "frame.number in {3, 50..60}"), [3, 50, 51, 52]);
        assert_eq!(numbers("host-matrix.pcap", "frame").len(), 627);
        assert_eq!(numbers("rping-crc.pcap", "frame.number > 1000"), [0; 0]);
    }

    #[test]
    fn a_late_frame_is_added_once_in_order() {
        let recording = Recording::file(&capture_path("rping-crc.pcap"));
        let mut filtered = Filtered::start(&recording, "frame", None).unwrap();
        filtered.numbers.clear();
        [5, 9, 7, 9].into_iter().for_each(|number| filtered.add(number));
        assert_eq!(filtered.numbers, [5, 7, 9]);
        assert_eq!((filtered.find(7), filtered.find(8), filtered.near(8), filtered.near(10)), (Some(1), None, 2, 2));
        assert_eq!((filtered.len(7), filtered.len(100), filtered.number(2)), (2, 3, Some(9)));
    }

    #[test]
    fn reports_wrong_filters_and_missing_files() {
        let start = |path: &Path, text| Filtered::start(&Recording::file(path), text, None);
        assert!(start(&capture_path("rping-crc.pcap"), "tcp.steam").unwrap_err().contains("did you mean"));
        assert!(start(Path::new("no-such-file"), "tcp").is_err());
    }
}
