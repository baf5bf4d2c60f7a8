//! The packets that pass a display filter, found by a thread of its own.
//!
//! The thread reads the capture as `weft dissect -T text -Y` does and hands over the numbers of frames that pass, in batches;
//! an empty batch says that it is still there. It ends when nobody listens: with the next filter, or with the screen.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use weft_dissector::filter::{Filter, Wanted};
use weft_dissector::output::frames::{Frames, Keep};
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

use super::index::MAX_FRAMES;

/// A batch goes out after so many frames, whether any passed or not.
const STRIDE: u64 = 1024;
/// Batches that wait for the screen.
const QUEUE: usize = 8;

/// A filter at work.
#[derive(Debug)]
pub(crate) struct Filtered {
    /// As it was typed.
    pub(crate) text: String,
    /// Frames that passed so far, in order.
    numbers: Vec<u64>,
    /// The frame that was selected when the filter came: the list stays near it until the user moves.
    pub(crate) anchor: Option<u64>,
    /// Has the thread more to say?
    pub(crate) is_reading: bool,
    passed: Receiver<Vec<u64>>,
}

impl Filtered {
    /// Starts to filter the capture at `path`; why not, in words, when the filter or the file cannot be read.
    pub(crate) fn start(path: &Path, text: &str, anchor: Option<u64>) -> Result<Self, String> {
        let mut wanted = Wanted::default();
        let filter = Filter::parse(text, &mut wanted).map_err(|error| error.to_string())?;
        let capture = Capture::open(path).map_err(|error| error.to_string())?;
        let (sender, passed) = sync_channel(QUEUE);
        thread::spawn(move || sift(capture, &filter, wanted, &sender));
        Ok(Filtered { text: text.to_owned(), numbers: Vec::new(), anchor, is_reading: true, passed })
    }

    /// Takes in a batch; `false` when there is none.
    pub(crate) fn poll(&mut self) -> bool {
        if !self.is_reading {
            return false;
        }
        match self.passed.try_recv() {
            Ok(numbers) => numbers.into_iter().for_each(|number| self.add(number)),
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => self.is_reading = false,
        }
        true
    }

    /// What is found late (a unit far behind its frame) goes where it belongs, once.
    fn add(&mut self, number: u64) {
        if let Err(at) = self.numbers.binary_search(&number) {
            self.numbers.insert(at, number);
        }
    }

    /// How many passed up to frame `last`.
    pub(crate) fn len(&self, last: u64) -> usize {
        self.numbers.partition_point(|number| *number <= last)
    }

    /// The frame at a place of the list.
    pub(crate) fn number(&self, at: usize) -> Option<u64> {
        self.numbers.get(at).copied()
    }

    /// The place of a frame in the list.
    pub(crate) fn find(&self, number: u64) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// The place of the first frame from `number` on.
    pub(crate) fn near(&self, number: u64) -> usize {
        self.numbers.partition_point(|passed| *passed < number).min(self.numbers.len().saturating_sub(1))
    }
}

struct Gather {
    frames: Frames,
    passed: Vec<u64>,
}

impl Gather {
    fn drain(&mut self, filter: &Filter) {
        while let Some(record) = self.frames.ready() {
            if filter.matches(&record.values) {
                self.passed.push(record.facts.number);
            }
            self.frames.recycle(record);
        }
    }
}

impl Sink for Gather {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.frames.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        self.frames.finding(finding);
    }

    fn packet(&mut self, packet: &Packet) {
        self.frames.packet(packet);
    }
}

fn sift(mut capture: Capture, filter: &Filter, wanted: Wanted, sender: &SyncSender<Vec<u64>>) {
    let mut dissector = if wanted.monitor() { Dissector::default() } else { Dissector::units_only() };
    let mut gather = Gather { frames: Frames::new(wanted, Keep::default()), passed: Vec::new() };
    let mut read: u64 = 0;
    while read < MAX_FRAMES as u64
        && let Some(frame) = capture.next_frame()
    {
        read += 1;
        gather.frames.begin(&frame);
        dissector.frame(&frame, &mut gather);
        gather.frames.end(!dissector.holds_back());
        gather.drain(filter);
        if read.is_multiple_of(STRIDE) && sender.send(std::mem::take(&mut gather.passed)).is_err() {
            return;
        }
    }
    dissector.finish(&mut gather);
    gather.frames.finish();
    gather.drain(filter);
    // That nobody listens any more is fine.
    let _ = sender.send(gather.passed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::capture_path;

    fn numbers(name: &str, text: &str) -> Vec<u64> {
        let mut filtered = Filtered::start(&capture_path(name), text, None).unwrap();
        while filtered.is_reading {
            if !filtered.poll() {
                thread::yield_now();
            }
        }
        filtered.numbers
    }

    #[test]
    fn frames_that_pass_are_those_of_tshark() {
        // tshark -r rping-crc.pcap -Y 'iwarp_rdma.opcode == 0' -T fields -e frame.number
        assert_eq!(numbers("rping-crc.pcap", "iwarp_rdma.opcode == 0"), [16, 26, 36, 47]);
        assert_eq!(numbers("rping-crc.pcap", "frame.number in {3, 50..60}"), [3, 50, 51, 52]);
        assert_eq!(numbers("host-matrix.pcap", "frame").len(), 627);
        assert_eq!(numbers("rping-crc.pcap", "frame.number > 1000"), [0; 0]);
    }

    #[test]
    fn a_late_frame_goes_where_it_belongs_once() {
        let mut filtered = Filtered::start(&capture_path("rping-crc.pcap"), "frame", None).unwrap();
        filtered.numbers.clear();
        [5, 9, 7, 9].into_iter().for_each(|number| filtered.add(number));
        assert_eq!(filtered.numbers, [5, 7, 9]);
        assert_eq!((filtered.find(7), filtered.find(8), filtered.near(8), filtered.near(10)), (Some(1), None, 2, 2));
        assert_eq!((filtered.len(7), filtered.len(100), filtered.number(2)), (2, 3, Some(9)));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let path = capture_path("rping-crc.pcap");
        assert!(Filtered::start(&path, "tcp.steam", None).unwrap_err().contains("did you mean"));
        assert!(Filtered::start(Path::new("no-such-file"), "tcp", None).is_err());
    }
}
