//! Reads a capture once, in a thread of its own, and hands the index over as it grows.
//!
//! The first rows are there as soon as they are read, whatever comes behind them. What waits for the screen is bounded: a slow terminal slows
//! the reading down and nothing grows. A live capture is followed as it is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use weft_dissector::output::text;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

use super::feed::{Feed, Source, feed};
use super::head::{self, Head};
use super::index::{AT_END, Entry, MAX_FRAMES, Row, Told};
use super::recording::Recording;

/// What the indexer hands over.
#[derive(Debug)]
pub(crate) enum News {
    /// What it met.
    Entry(Entry),
    /// There is no more.
    End {
        /// Why not everything was read; `None` when everything was.
        note: Option<String>,
        /// What was joined, given up and not read of the frames.
        remarks: Vec<String>,
    },
}

/// The thread, as the screen sees it.
#[derive(Debug)]
pub(crate) struct Indexing {
    pub(crate) news: Feed<News>,
    /// Octets of the files that are read.
    pub(crate) position: Arc<AtomicU64>,
}

/// Starts to index. The thread ends with the capture, or when nobody listens.
pub(crate) fn start(recording: &Recording) -> Indexing {
    let (source, news) = feed();
    let position = Arc::new(AtomicU64::new(0));
    let (recording, read) = (recording.clone(), Arc::clone(&position));
    thread::spawn(move || index(&recording, &source, &read, MAX_FRAMES));
    Indexing { news, position }
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

fn index(recording: &Recording, source: &Source<News>, position: &AtomicU64, most: usize) {
    let mut dissector = Dissector::default();
    let mut sink = Entries { at: 0, row: 0, entries: Vec::new() };
    let mut news = Vec::new();
    let mut frames = 0;
    let mut is_full = false;
    let ended = recording.read(true, source.gone(), |frame, octets| {
        if frames == most {
            is_full = true;
            return false;
        }
        frames += 1;
        sink.at = frame.number;
        let captured = u32::try_from(frame.octets.len()).unwrap_or(u32::MAX);
        sink.row = sink.entries.len();
        sink.entries.push(Entry::Row(Row::new(frame.number, frame.time, captured, frame.wire_len)));
        dissector.frame(frame, &mut sink);
        position.store(octets, Relaxed);
        news.extend(sink.entries.drain(..).map(News::Entry));
        source.send(&mut news)
    });
    sink.at = AT_END;
    dissector.finish(&mut sink);
    news.extend(sink.entries.drain(..).map(News::Entry));
    let note = match ended {
        _ if is_full => Some(format!("only the first {most} frames are shown, the limit of the index")),
        Ok(ended) => ended.note,
        Err(error) => Some(error.to_string()),
    };
    news.push(News::End { note, remarks: dissector.remarks() });
    // That nobody listens any more is fine.
    source.send(&mut news);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::capture_path;

    /// All rows, and how it ended.
    fn indexed(name: &str, most: usize) -> (Vec<Row>, Option<String>) {
        let (source, news) = feed();
        index(&Recording::file(&capture_path(name)), &source, &AtomicU64::new(0), most);
        let (mut rows, mut ends) = (Vec::new(), Vec::new());
        for item in news.take(usize::MAX) {
            match item {
                News::Entry(Entry::Row(row)) => rows.push(row),
                News::Entry(_) => {}
                News::End { note, .. } => ends.push(note),
            }
        }
        assert_eq!(ends.len(), 1);
        (rows, ends.remove(0))
    }

    #[test]
    fn every_frame_has_a_row() {
        let (rows, end) = indexed("host-matrix.pcap", MAX_FRAMES);
        assert_eq!((rows.len(), end), (627, None));
    }

    #[test]
    fn frames_without_units_say_what_they_are() {
        let (rows, _) = indexed("rping-crc.pcap", MAX_FRAMES);
        assert_eq!((rows[0].head.ends, rows[0].stream), (None, None), "an ARP request");
        let (src, dst) = rows[2].head.ends.unwrap();
        assert_eq!((src.to_string(), dst.to_string()), ("10.1.0.2:38499".into(), "10.1.0.1:7174".into()));
        assert_eq!((rows[2].head.summary().as_str(), rows[2].stream), ("TCP SYN  seq 590143516 len 0", Some(0)));
        assert!(rows[3].head.summary().starts_with("TCP SYN ACK"));
    }

    #[test]
    fn a_full_index_says_so() {
        let (rows, end) = indexed("host-matrix.pcap", 100);
        assert_eq!(rows.len(), 100);
        assert!(end.unwrap().contains("first 100 frames"));
    }

    #[test]
    fn a_screen_that_is_gone_ends_the_thread() {
        let (source, news) = feed();
        drop(news);
        index(&Recording::file(&capture_path("host-matrix.pcap")), &source, &AtomicU64::new(0), MAX_FRAMES);
    }
}
