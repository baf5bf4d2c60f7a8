//! The packets that pass a display filter.
//!
//! A thread reads the capture like `weft dissect -T text -Y`, and sends the numbers of the frames
//! that pass. It follows a live capture. It ends with the next filter or with the screen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use weft_dissector::browse::{FrameList, Sieve};

use super::feed::{Feed, Source, feed};
use super::indexer::MAX_FRAMES;
use super::recording::Recording;

/// An active filter.
#[derive(Debug)]
pub(crate) struct Filtered {
    /// The text that the user typed.
    pub(crate) text: String,
    frames: FrameList,
    /// The frame that was selected when the filter started: the selection stays near it until the
    /// user moves.
    pub(crate) anchor: Option<u64>,
    /// Is the thread running, or are results waiting?
    pub(crate) is_reading: bool,
    /// Has the thread failed, so that the list is incomplete?
    pub(crate) has_failed: bool,
    /// The last frame that was read.
    read: Arc<AtomicU64>,
    passed: Feed<u64>,
}

impl Filtered {
    /// Starts to filter, or returns the error in the filter or the capture.
    pub(crate) fn start(recording: &Recording, text: &str, anchor: Option<u64>) -> Result<Self, String> {
        let sieve = Sieve::new(text).map_err(|error| error.to_string())?.with_limit(MAX_FRAMES);
        recording.check().map_err(|error| error.to_string())?;
        let (source, passed) = feed();
        let read = Arc::new(AtomicU64::new(0));
        let (recording, at) = (recording.clone(), Arc::clone(&read));
        thread::spawn(move || sift(&recording, sieve, source, &at));
        Ok(Filtered {
            text: text.to_owned(),
            frames: FrameList::default(),
            anchor,
            is_reading: true,
            has_failed: false,
            read,
            passed,
        })
    }

    /// Takes at most `most` results; `false` if nothing changed.
    pub(crate) fn poll(&mut self, most: usize) -> bool {
        if !self.is_reading {
            return false;
        }
        let numbers = self.passed.take(most);
        let is_new = !numbers.is_empty();
        numbers.into_iter().for_each(|number| self.frames.add(number));
        (self.is_reading, self.has_failed) = (!self.passed.is_over(), self.passed.has_failed());
        is_new || !self.is_reading
    }

    /// The last frame that was read.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// The frames that passed so far.
    pub(crate) fn frames(&self) -> &FrameList {
        &self.frames
    }
}

fn sift(recording: &Recording, mut sieve: Sieve, source: Source<u64>, at: &AtomicU64) {
    // The indexer reports errors of the capture.
    let _ = recording.read(true, source.gone(), &mut sieve, |sieve, number, _| {
        at.store(number, Relaxed);
        source.send(sieve.passed())
    });
    source.finish(sieve.finish());
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::testing::capture_path;

    fn numbers(name: &str, text: &str) -> Vec<u64> {
        let mut filtered = Filtered::start(&Recording::file(&capture_path(name)), text, None).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        while filtered.is_reading {
            assert!(Instant::now() < deadline, "the filter does not end");
            if !filtered.poll(3) {
                thread::yield_now();
            }
        }
        filtered.frames.numbers().to_vec()
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
    fn reports_wrong_filters_and_missing_files() {
        let start = |path: &Path, text| Filtered::start(&Recording::file(path), text, None);
        assert!(start(&capture_path("rping-crc.pcap"), "tcp.steam").unwrap_err().contains("did you mean"));
        assert!(start(Path::new("no-such-file"), "tcp").is_err());
    }
}
