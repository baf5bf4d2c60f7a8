//! Reads a capture once, in a thread, and sends the rows of the index while it reads.
//!
//! The screen gets the first rows as soon as they are read. The queue to the screen is bounded, so
//! a slow terminal slows reading down and takes no memory. The thread follows a live capture.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use weft_dissector::output::text;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

use super::feed::{Feed, Source, feed};
use super::head::{self, Head};
use super::index::{AT_END, Entry, ListedFinding, MAX_FRAMES, Row};
use super::recording::Recording;

/// A message of the indexer.
#[derive(Debug)]
pub(crate) enum News {
    /// A result.
    Entry(Entry),
    /// The end of the capture.
    End {
        /// Why the capture was not read to its end; `None` if it was.
        note: Option<String>,
        /// Reports on connections that were joined or dropped, and on frames that were not read.
        remarks: Vec<String>,
    },
}

/// The thread's interface for the screen.
#[derive(Debug)]
pub(crate) struct Indexing {
    pub(crate) news: Feed<News>,
    /// The number of bytes of the files that were read.
    pub(crate) position: Arc<AtomicU64>,
}

/// Starts the indexer. The thread ends with the capture or with the screen.
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
    /// The index of its row in `entries`.
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
        let finding = ListedFinding { frame, stream, requirement, severity };
        self.entries.push(Entry::Finding { finding, at: self.at });
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
    // The screen may be gone.
    source.send(&mut news);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::capture_path;

    /// All rows, and the note of the end.
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
    fn frames_without_units_have_a_summary() {
        let (rows, _) = indexed("rping-crc.pcap", MAX_FRAMES);
        assert_eq!((rows[0].head.ends, rows[0].stream), (None, None), "an ARP request");
        let (src, dst) = rows[2].head.ends.unwrap();
        assert_eq!((src.to_string(), dst.to_string()), ("10.1.0.2:38499".into(), "10.1.0.1:7174".into()));
        assert_eq!((rows[2].head.summary().as_str(), rows[2].stream), ("TCP SYN  seq 590143516 len 0", Some(0)));
        assert!(rows[3].head.summary().starts_with("TCP SYN ACK"));
    }

    #[test]
    fn reports_a_full_index() {
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
