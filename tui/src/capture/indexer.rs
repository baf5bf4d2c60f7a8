//! Reads a capture once, in a thread, and sends the rows of the index while it reads.
//!
//! The screen gets the first rows as soon as they are read. The queue to the screen is bounded, so
//! a slow terminal slows reading down and takes no memory. The thread follows a live capture.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use weft_dissector::browse::packed::{Entries, Entry};
use weft_dissector::browse::{Pass, Stop};

use super::feed::{Feed, Source, feed};
use super::recording::{End, Recording};

/// The maximum number of frames in an index; further ones are not read.
pub const MAX_FRAMES: usize = 20_000_000;

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
    thread::spawn(move || index(&recording, source, &read, MAX_FRAMES));
    Indexing { news, position }
}

fn index(recording: &Recording, source: Source<News>, position: &AtomicU64, most: usize) {
    let mut pass = Pass::new(Entries::with_room(most));
    let mut news = Vec::new();
    let read = recording.read(true, source.gone(), &mut pass, |pass, _, octets| {
        position.store(octets, Relaxed);
        news.extend(pass.collector_mut().take().map(News::Entry));
        source.send(&mut news)
    });
    pass.finish();
    news.extend(pass.collector_mut().take().map(News::Entry));
    let note = match read {
        Ok(End { stop: Stop::HasEnough, .. }) => {
            Some(format!("only the first {most} frames are shown, the limit of the index"))
        }
        Ok(end) => end.note,
        Err(error) => Some(error.to_string()),
    };
    news.push(News::End { note, remarks: pass.remarks() });
    source.finish(news);
}

#[cfg(test)]
mod tests {
    use weft_dissector::browse::OwnedRow;

    use super::*;
    use crate::testing::capture_path;

    /// All rows, and the note of the end.
    fn indexed(name: &str, most: usize) -> (Vec<OwnedRow>, Option<String>) {
        let (source, news) = feed();
        index(&Recording::file(&capture_path(name)), source, &AtomicU64::new(0), most);
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
        assert_eq!((rows[0].ends, rows[0].stream()), (None, None), "an ARP request");
        let (src, dst) = rows[2].ends.unwrap();
        assert_eq!((src.to_string(), dst.to_string()), ("10.1.0.2:38499".into(), "10.1.0.1:7174".into()));
        assert_eq!((rows[2].words().as_str(), rows[2].stream()), ("TCP SYN  seq 590143516 len 0", Some(0.into())));
        assert!(rows[3].words().starts_with("TCP SYN ACK"));
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
        index(&Recording::file(&capture_path("host-matrix.pcap")), source, &AtomicU64::new(0), MAX_FRAMES);
    }
}
