//! A thread that reads a capture once and sends entries of the index to the screen. An entry is a
//! frame, a message or a finding.
//!
//! The screen gets the first entries as soon as the thread has read them. The queue to the screen
//! is bounded. So a slow terminal slows the thread, and the queue does not fill the memory. The
//! thread follows a live capture.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use weft_dissector::browse::packed::{Entries, Entry};
use weft_dissector::browse::{Pass, Stop};

use super::queue::{QueueReceiver, QueueSender, queue};
use super::recording::{End, Recording};

/// The maximum number of frames in an index. Further frames are not read.
pub const MAX_FRAMES: usize = 20_000_000;

/// A message of the indexer.
#[derive(Debug)]
pub(crate) enum IndexMessage {
    /// An entry of the index.
    Entry(Entry),
    /// The end of the capture.
    End {
        /// Why the capture was not read to its end. `None` if weft read all of the capture.
        note: Option<String>,
        /// Sentences about connections that were merged or dropped, and about frames that were not
        /// read.
        remarks: Vec<String>,
    },
}

/// The screen's end of the queue from the thread, and the progress of the thread.
#[derive(Debug)]
pub(crate) struct Indexer {
    pub(crate) messages: QueueReceiver<IndexMessage>,
    /// The number of bytes that were read from the files.
    pub(crate) position: Arc<AtomicU64>,
}

/// Starts the indexer. The thread ends when the capture has ended or the screen is gone.
pub(crate) fn start(recording: &Recording) -> Indexer {
    let (sender, messages) = queue();
    let position = Arc::new(AtomicU64::new(0));
    let (recording, read) = (recording.clone(), Arc::clone(&position));
    thread::spawn(move || index(&recording, sender, &read, MAX_FRAMES));
    Indexer { messages, position }
}

fn index(recording: &Recording, sender: QueueSender<IndexMessage>, position: &AtomicU64, most: usize) {
    let mut pass = Pass::new(Entries::with_room(most));
    let mut messages = Vec::new();
    let read = recording.read(true, sender.gone(), &mut pass, |pass, _, octets| {
        position.store(octets, Relaxed);
        messages.extend(pass.collector_mut().take().map(IndexMessage::Entry));
        sender.send(&mut messages)
    });
    pass.finish();
    messages.extend(pass.collector_mut().take().map(IndexMessage::Entry));
    let note = match read {
        Ok(End { stop: Stop::ReaderComplete, .. }) => {
            Some(format!("only the first {most} frames are shown, because the index is full"))
        }
        Ok(end) => end.note,
        Err(error) => Some(error.to_string()),
    };
    messages.push(IndexMessage::End { note, remarks: pass.remarks() });
    sender.finish(messages);
}

#[cfg(test)]
mod tests {
    use weft_dissector::browse::OwnedRow;

    use super::*;
    use crate::testing::capture_path;

    /// Returns all rows, and the note in [`IndexMessage::End`].
    fn indexed(name: &str, most: usize) -> (Vec<OwnedRow>, Option<String>) {
        let (sender, messages) = queue();
        index(&Recording::file(&capture_path(name)), sender, &AtomicU64::new(0), most);
        let (mut rows, mut ends) = (Vec::new(), Vec::new());
        for item in messages.take(usize::MAX) {
            match item {
                IndexMessage::Entry(Entry::Row(row)) => rows.push(row),
                IndexMessage::Entry(_) => {}
                IndexMessage::End { note, .. } => ends.push(note),
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
        assert_eq!((rows[2].text().as_str(), rows[2].stream()), ("TCP SYN  seq 590143516 len 0", Some(0.into())));
        assert!(rows[3].text().starts_with("TCP SYN ACK"));
    }

    #[test]
    fn reports_a_full_index() {
        let (rows, end) = indexed("host-matrix.pcap", 100);
        assert_eq!(rows.len(), 100);
        assert!(end.unwrap().contains("first 100 frames"));
    }

    #[test]
    fn a_screen_that_is_gone_ends_the_thread() {
        let (sender, messages) = queue();
        drop(messages);
        index(&Recording::file(&capture_path("host-matrix.pcap")), sender, &AtomicU64::new(0), MAX_FRAMES);
    }
}
