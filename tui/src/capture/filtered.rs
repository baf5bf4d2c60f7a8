//! The packets that match a display filter.
//!
//! A thread reads the capture, and sends the numbers of the frames that match. These are the frames
//! that `weft dissect -T text -Y` prints. The thread follows a live capture. It ends when the user
//! sets another filter or closes the screen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use weft_dissector::FrameNumber;
use weft_dissector::browse::{FilteredFrames, FrameList};

use super::indexer::MAX_FRAMES;
use super::queue::{QueueReceiver, QueueSender, queue};
use super::recording::Recording;

/// An active filter.
#[derive(Debug)]
pub(crate) struct PacketFilter {
    /// The text that the user typed.
    pub(crate) text: String,
    frames: FrameList,
    /// Number of the frame that was selected when the filter started. The selection stays near this
    /// frame until the user selects another packet.
    pub(crate) anchor: Option<FrameNumber>,
    /// Whether the thread is running, or results are waiting.
    pub(crate) is_reading: bool,
    /// Whether the thread has failed. The list is then incomplete.
    pub(crate) has_failed: bool,
    /// Number of the last frame that was read.
    read: Arc<AtomicU64>,
    passed: QueueReceiver<FrameNumber>,
}

impl PacketFilter {
    /// Starts the thread. Returns an error if the filter is invalid, or if the capture cannot be
    /// read.
    pub(crate) fn start(recording: &Recording, text: &str, anchor: Option<FrameNumber>) -> Result<Self, String> {
        let filter = FilteredFrames::new(text).map_err(|error| error.to_string())?.with_limit(MAX_FRAMES);
        recording.check().map_err(|error| error.to_string())?;
        let (sender, passed) = queue();
        let read = Arc::new(AtomicU64::new(0));
        let (recording, at) = (recording.clone(), Arc::clone(&read));
        thread::spawn(move || filter_frames(&recording, filter, sender, &at));
        Ok(PacketFilter {
            text: text.to_owned(),
            frames: FrameList::default(),
            anchor,
            is_reading: true,
            has_failed: false,
            read,
            passed,
        })
    }

    /// Takes at most `most` results. Returns `false` if nothing changed.
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

    /// Returns the number of the last frame that was read.
    pub(crate) fn read(&self) -> FrameNumber {
        self.read.load(Relaxed).into()
    }

    /// Returns the frames that have matched so far.
    pub(crate) fn frames(&self) -> &FrameList {
        &self.frames
    }
}

fn filter_frames(recording: &Recording, mut filter: FilteredFrames, sender: QueueSender<FrameNumber>, at: &AtomicU64) {
    // Ignore errors of the capture, because the indexer reports them.
    let _ = recording.read(true, sender.gone(), &mut filter, |filter, number, _| {
        at.store(number.into(), Relaxed);
        sender.send(filter.passed())
    });
    sender.finish(filter.finish());
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::testing::capture_path;

    fn numbers(name: &str, text: &str) -> Vec<u64> {
        let mut filtered = PacketFilter::start(&Recording::file(&capture_path(name)), text, None).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        while filtered.is_reading {
            assert!(Instant::now() < deadline, "the filter does not end");
            if !filtered.poll(3) {
                thread::yield_now();
            }
        }
        filtered.frames.numbers().iter().copied().map(u64::from).collect()
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
        let start = |path: &Path, text| PacketFilter::start(&Recording::file(path), text, None);
        assert!(start(&capture_path("rping-crc.pcap"), "tcp.steam").unwrap_err().contains("did you mean"));
        assert!(start(Path::new("no-such-file"), "tcp").is_err());
    }
}
