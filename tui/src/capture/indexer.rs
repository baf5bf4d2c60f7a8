//! Reads a capture once, in a thread of its own, and hands the index over in batches.
//!
//! The first batch is small, so that the first screen is there at once. The queue of batches is bounded: a slow terminal slows
//! the reading down and nothing grows.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use weft_dissector::output::text;
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

use super::head::{self, Head};
use super::index::{AT_END, Entry, MAX_FRAMES, Row, Told};

const FIRST_BATCH: usize = 200;
const BATCH: usize = 4096;
/// Batches that wait for the screen.
const QUEUE: usize = 8;

/// What the indexer hands over.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<Entry>,
    /// Octets of the (decompressed) capture that are read.
    pub(crate) position: u64,
    /// Set in the last batch.
    pub(crate) end: Option<End>,
}

/// How the reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Why not everything was read; `None` when everything was.
    pub(crate) note: Option<String>,
}

/// Starts to index `capture`. The thread ends with the capture, or when the receiver is dropped.
pub(crate) fn start(capture: Capture) -> Receiver<Batch> {
    let (sender, receiver) = sync_channel(QUEUE);
    thread::spawn(move || index(capture, &sender, MAX_FRAMES));
    receiver
}

/// The dissector's sink.
struct Entries {
    /// The frame that is being read.
    at: u64,
    /// Place of its row.
    row: usize,
    entries: Vec<Entry>,
}

impl Sink for Entries {
    fn packet(&mut self, packet: &Packet) {
        if let Some(Entry::Row(row)) = self.entries.get_mut(self.row) {
            (row.head, row.stream) = (Head::of(packet), head::stream(packet));
        }
    }

    fn unit(&mut self, unit: &Unit<'_>) {
        let summary = text::summary(unit);
        self.entries.push(Entry::Unit { frame: unit.frame, at: self.at, stream: unit.stream, summary });
    }

    fn finding(&mut self, finding: &Finding) {
        let Finding { requirement, severity, stream, frame, .. } = *finding;
        self.entries.push(Entry::Finding { told: Told { frame, stream, requirement, severity }, at: self.at });
    }
}

fn index(mut capture: Capture, sender: &SyncSender<Batch>, most: usize) {
    let mut dissector = Dissector::default();
    let mut sink = Entries { at: 0, row: 0, entries: Vec::new() };
    let mut wanted = FIRST_BATCH;
    let mut frames = 0;
    let mut limit = None;
    while let Some(frame) = capture.next_frame() {
        if frames == most {
            limit = Some(format!("only the first {most} frames are shown: the index holds no more"));
            break;
        }
        frames += 1;
        sink.at = frame.number;
        let captured = u32::try_from(frame.octets.len()).unwrap_or(u32::MAX);
        sink.row = sink.entries.len();
        sink.entries.push(Entry::Row(Row::new(frame.number, frame.time, captured, frame.wire_len)));
        dissector.frame(&frame, &mut sink);
        if sink.entries.len() >= wanted {
            let batch = Batch { entries: std::mem::take(&mut sink.entries), position: capture.position(), end: None };
            if sender.send(batch).is_err() {
                return;
            }
            wanted = BATCH;
        }
    }
    sink.at = AT_END;
    dissector.finish(&mut sink);
    let note = limit.or_else(|| capture.note().map(str::to_owned));
    let batch = Batch { entries: sink.entries, position: capture.position(), end: Some(End { note }) };
    // That nobody listens any more is fine.
    let _ = sender.send(batch);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::capture_path;

    fn batches(name: &str, most: usize) -> Vec<Batch> {
        let capture = Capture::open(&capture_path(name)).unwrap();
        let (sender, receiver) = sync_channel(1000);
        index(capture, &sender, most);
        drop(sender);
        receiver.into_iter().collect()
    }

    fn rows(batches: &[Batch]) -> usize {
        batches.iter().flat_map(|batch| &batch.entries).filter(|entry| matches!(entry, Entry::Row(_))).count()
    }

    #[test]
    fn every_frame_has_a_row_and_the_first_batch_is_small() {
        let batches = batches("host-matrix.pcap", MAX_FRAMES);
        assert_eq!(rows(&batches), 627);
        assert!(batches.len() > 1 && batches[0].entries.len() <= FIRST_BATCH + 50);
        assert_eq!(batches.last().unwrap().end, Some(End { note: None }));
    }

    #[test]
    fn frames_without_units_say_what_they_are() {
        let batches = batches("rping-crc.pcap", MAX_FRAMES);
        let rows: Vec<&Row> = batches
            .iter()
            .flat_map(|batch| &batch.entries)
            .filter_map(|entry| if let Entry::Row(row) = entry { Some(row) } else { None })
            .collect();
        assert_eq!((rows[0].head.ends, rows[0].stream), (None, None), "an ARP request");
        let (src, dst) = rows[2].head.ends.unwrap();
        assert_eq!((src.to_string(), dst.to_string()), ("10.1.0.2:38499".into(), "10.1.0.1:7174".into()));
        assert_eq!((rows[2].head.summary().as_str(), rows[2].stream), ("TCP SYN  seq 590143516 len 0", Some(0)));
        assert!(rows[3].head.summary().starts_with("TCP SYN ACK"));
    }

    #[test]
    fn a_full_index_says_so() {
        let batches = batches("host-matrix.pcap", 100);
        assert_eq!(rows(&batches), 100);
        let note = batches.last().unwrap().end.as_ref().unwrap().note.clone().unwrap();
        assert!(note.contains("first 100 frames"), "{note}");
    }

    #[test]
    fn a_screen_that_is_gone_ends_the_thread() {
        let capture = Capture::open(&capture_path("host-matrix.pcap")).unwrap();
        let (sender, receiver) = sync_channel(0);
        drop(receiver);
        index(capture, &sender, MAX_FRAMES);
    }
}
