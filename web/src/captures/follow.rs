//! Follows a capture that another program is writing (`weft dissect -i IF -w`, dumpcap, tcpdump).
//! That program has the privileges for capturing. This server needs no privileges.
//!
//! A follower is a thread that reads the file from its beginning. At the end of the file, it waits
//! for more data. The follower sends new packets and findings in batches through a short channel. A
//! slow browser slows only its own follower, which then sends fewer and larger batches.
//! [`MAX_ROWS`] and the follower's share of memory limit the memory of a follower.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::{mpsc, watch};
use weft_core::requirement::Severity;
use weft_dissector::browse::index::Row;
use weft_dissector::browse::{Collector, Control, Index, Pass, Reader, Tail};
use weft_dissector::source::{Capture, Frame};
use weft_dissector::unit::Unit;
use weft_dissector::{Finding, FrameNumber, Packet, Sink};

use super::memory::Share;
use super::read::{NO_MEMORY, STRIDE, reason};
use crate::lock::locked;

/// If the follower has this number of rows in memory (one row for each packet), it drops them as
/// soon as all of them are sent. If it has twice this number of rows, it drops them at once. With
/// fewer rows, it also keeps rows that it has already sent, because the dissector can still report
/// a message or finding of their packets.
const MAX_ROWS: usize = 20_000;
/// The maximum number of rows, and of findings, in a batch. If there are more, the batch has only
/// the newest rows or findings.
const MAX_BATCH: usize = 100;
/// Interval at which the follower checks for more data at the end of the file.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between batches while the file grows without a pause.
const BATCH_INTERVAL: Duration = Duration::from_millis(500);

/// New packets and findings of a capture.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Batch {
    /// Number of packets so far.
    pub(crate) packets: u64,
    /// Numbers of findings so far: notes, warnings, errors.
    pub(crate) counts: [u64; 3],
    /// The newest of the new packets, at most [`MAX_BATCH`].
    pub(crate) rows: Vec<LiveRow>,
    /// The newest of the new findings, at most [`MAX_BATCH`].
    pub(crate) findings: Vec<LiveFinding>,
    /// Sentences about connections that were merged or dropped to limit memory, and about frames
    /// that were not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
    /// Present in the last batch only: why the follower ended, or an empty string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<String>,
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LiveRow {
    pub(crate) number: FrameNumber,
    /// Nanoseconds since the first packet.
    pub(crate) ns: u64,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) octets: u32,
    pub(crate) words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worst: Option<String>,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LiveFinding {
    pub(crate) packet: FrameNumber,
    pub(crate) severity: String,
    pub(crate) requirement: String,
    pub(crate) found: String,
}

/// Follows the file until the receiver is gone, the server stops, or reading fails. Blocks the
/// thread.
pub(crate) fn follow(path: &Path, batches: mpsc::Sender<Batch>, stopped: &watch::Receiver<bool>, share: &Share) {
    let pass = Pass::new(BatchCollector::default());
    let state = Arc::new(Mutex::new(State { pass, batches, sent: Instant::now() }));
    let note = match File::open(path) {
        Ok(file) => {
            let tail = Tail::new(file, Waiting { state: Arc::clone(&state), stopped: stopped.clone() });
            match Capture::from_reader(Box::new(tail)) {
                Ok(capture) => read(capture, &state, share),
                Err(error) => Some(reason(&error)),
            }
        }
        Err(error) => Some(error.to_string()),
    };
    let mut state = locked(&state);
    state.pass.collector_mut().end = Some(note.unwrap_or_default());
    state.send();
}

fn read(mut capture: Capture, state: &Mutex<State>, share: &Share) -> Option<String> {
    while let Some(frame) = capture.next_frame() {
        let mut state = locked(state);
        state.pass.frame(&frame);
        let is_weighed = state.pass.collector().packets.is_multiple_of(STRIDE);
        if is_weighed && !share.resize(state.pass.memory()) {
            return Some(NO_MEMORY.to_owned());
        }
        if state.sent.elapsed() > BATCH_INTERVAL && !state.send() {
            return None;
        }
    }
    capture.note().map(str::to_owned)
}

/// The state that [`Waiting`] shares with the loop that reads frames. At the end of the file,
/// `Waiting` sends a batch before it waits for more data.
struct State {
    pass: Pass<BatchCollector>,
    batches: mpsc::Sender<Batch>,
    sent: Instant,
}

impl State {
    /// Sends a batch if there is something new. Returns `false` if the receiver is gone.
    fn send(&mut self) -> bool {
        self.sent = Instant::now();
        if !self.pass.collector().has_news() {
            return !self.batches.is_closed();
        }
        let remarks = self.pass.remarks();
        self.batches.blocking_send(self.pass.collector_mut().batch(remarks)).is_ok()
    }
}

/// The collector of packets and findings, with the parts that are not yet sent.
#[derive(Default)]
struct BatchCollector {
    index: Index,
    origin: Option<u64>,
    packets: u64,
    counts: [u64; 3],
    /// Number of rows of the index that were sent.
    rows: usize,
    /// Number of findings of the index that were sent.
    findings: usize,
    /// The counts of packets and of findings that the last batch reported.
    sent: Option<(u64, [u64; 3])>,
    end: Option<String>,
}

impl Collector for BatchCollector {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        self.origin.get_or_insert(frame.time);
        self.packets += 1;
        if self.index.rows().len() >= MAX_ROWS {
            // If the dissector later reports a finding for a dropped row, the follower only counts
            // the finding.
            let keep = (self.index.rows().len() - self.rows, self.index.findings().len() - self.findings);
            if keep == (0, 0) || self.index.rows().len() >= 2 * MAX_ROWS {
                (self.index, self.rows, self.findings) = (Index::default(), 0, 0);
            }
        }
        self.index.begin(frame)
    }

    fn memory(&self) -> usize {
        self.index.memory()
    }
}

impl BatchCollector {
    fn has_news(&self) -> bool {
        self.sent != Some((self.packets, self.counts)) || self.end.is_some()
    }

    fn batch(&mut self, remarks: Vec<String>) -> Batch {
        self.sent = Some((self.packets, self.counts));
        let (rows, findings) = (self.index.rows(), self.index.findings());
        let first = self.rows.max(rows.len().saturating_sub(MAX_BATCH));
        let first_finding = self.findings.max(findings.len().saturating_sub(MAX_BATCH));
        let batch = Batch {
            packets: self.packets,
            counts: self.counts,
            rows: rows[first..].iter().map(|row| self.row(row)).collect(),
            findings: findings[first_finding..]
                .iter()
                .map(|finding| LiveFinding {
                    packet: finding.frame,
                    severity: finding.severity.to_string(),
                    requirement: finding.requirement.as_str().to_owned(),
                    found: finding.found.clone(),
                })
                .collect(),
            remarks,
            end: self.end.take(),
        };
        (self.rows, self.findings) = (rows.len(), findings.len());
        batch
    }

    fn row(&self, row: &Row) -> LiveRow {
        let (from, to) =
            self.index.ends(row).map_or_else(Default::default, |(from, to)| (from.to_string(), to.to_string()));
        LiveRow {
            number: row.number,
            ns: row.time.saturating_sub(self.origin.unwrap_or(row.time)),
            from,
            to,
            octets: row.wire_len,
            words: self.index.text(row),
            worst: row.worst.as_ref().map(Severity::to_string),
        }
    }
}

impl Sink for BatchCollector {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.index.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        self.counts[finding.severity as usize] += 1;
        self.index.finding(finding);
    }

    fn packet(&mut self, packet: &Packet) {
        self.index.packet(packet);
    }
}

/// Waits for more data at the end of a file.
struct Waiting {
    state: Arc<Mutex<State>>,
    stopped: watch::Receiver<bool>,
}

impl Control for Waiting {
    fn readable(&mut self, _: u64) -> io::Result<u64> {
        Ok(if *self.stopped.borrow() { 0 } else { u64::MAX })
    }

    fn is_end(&mut self, _: u64) -> bool {
        let is_wanted = locked(&self.state).send();
        if is_wanted {
            std::thread::sleep(POLL_INTERVAL);
        }
        !is_wanted
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::memory::Memory;
    use super::*;

    fn share() -> Share {
        Memory::new(usize::MAX).share()
    }

    fn good() -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/violations-6-kinds-crc.pcap");
        std::fs::read(path).unwrap()
    }

    /// Receives batches until `packets` packets were reported, and returns the last batch. Adds the
    /// numbers of all received rows to `numbers`.
    fn until(batches: &mut mpsc::Receiver<Batch>, packets: u64, numbers: &mut Vec<u64>) -> Batch {
        loop {
            let batch = batches.blocking_recv().expect("the follower continues");
            numbers.extend(batch.rows.iter().map(|row| u64::from(row.number)));
            if batch.packets >= packets {
                return batch;
            }
        }
    }

    #[test]
    fn reports_new_packets_and_the_end_when_the_server_stops() {
        let good = good();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        // Write the header, 20 packets and half of a record. The half record is not reported.
        let mut at = 24;
        for _ in 0..20 {
            at += 16 + u32::from_le_bytes(good[at + 8..at + 12].try_into().unwrap()) as usize;
        }
        file.write_all(&good[..at + 20]).unwrap();
        file.flush().unwrap();
        let (stop, stopped) = watch::channel(false);
        let (sender, mut batches) = mpsc::channel(4);
        let path = file.path().to_owned();
        let follower = std::thread::spawn(move || follow(&path, sender, &stopped, &share()));
        let mut numbers = Vec::new();
        let batch = until(&mut batches, 20, &mut numbers);
        assert_eq!((batch.packets, numbers.len()), (20, 20));
        assert!(batch.counts[2] > 0, "{:?}", batch.counts);
        file.write_all(&good[at + 20..]).unwrap();
        file.flush().unwrap();
        let batch = until(&mut batches, 153, &mut numbers);
        assert_eq!(batch.packets, 153);
        // If there are many new packets, only the newest packets are reported, in order.
        assert!(numbers.is_sorted() && numbers.last() == Some(&153) && !batch.findings.is_empty());
        stop.send_replace(true);
        let mut last = None;
        while let Some(batch) = batches.blocking_recv() {
            last = Some(batch);
        }
        assert!(last.is_some_and(|batch| batch.end.is_some()));
        follower.join().unwrap();
    }

    #[test]
    fn a_follower_ends_when_the_receiver_is_gone() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&good()[..1000]).unwrap();
        let (_stop, stopped) = watch::channel(false);
        let (sender, batches) = mpsc::channel(1);
        drop(batches);
        follow(file.path(), sender, &stopped, &share());
    }

    #[test]
    fn reports_a_file_that_is_not_a_capture() {
        let (_stop, stopped) = watch::channel(false);
        let (sender, mut batches) = mpsc::channel(1);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        std::thread::spawn(move || follow(&path, sender, &stopped, &share()));
        let batch = batches.blocking_recv().unwrap();
        assert!(batch.end.is_some_and(|end| end.contains("is not a capture that weft reads")));
    }
}
