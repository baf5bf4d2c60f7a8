//! Follows a capture that another program is writing (`weft dissect -i IF -w`, dumpcap, tcpdump).
//! That program has the privileges for capturing; this server needs none.
//!
//! A follower is a thread that reads the file from its beginning and waits at its end for more. It
//! sends news in batches through a short channel. A slow browser slows its own follower, which then
//! sends larger batches. [`ROWS`] and the follower's share of memory bound it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::{mpsc, watch};
use weft_core::requirement::Severity;
use weft_dissector::browse::index::Row;
use weft_dissector::browse::{Collector, Control, Index, Pass, Reader, Tail};
use weft_dissector::source::{Capture, Frame};
use weft_dissector::unit::Unit;
use weft_dissector::{Finding, Packet, Sink};

use super::memory::Share;
use super::read::{NO_MEMORY, STRIDE, reason};

/// Rows that stay in memory for units that come late.
const ROWS: usize = 20_000;
/// The maximum number of rows and of findings in a batch: the last ones.
const MOST: usize = 100;
/// How often the follower looks for more at the end of the file.
const LOOK: Duration = Duration::from_millis(200);
/// How often a batch is sent while the file grows without a pause.
const BUSY: Duration = Duration::from_millis(500);

/// News about a capture.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Batch {
    /// Packets so far.
    pub(crate) packets: u64,
    /// Findings so far: notes, warnings, errors.
    pub(crate) counts: [u64; 3],
    /// The last of the new packets.
    pub(crate) rows: Vec<LiveRow>,
    pub(crate) findings: Vec<LiveFinding>,
    /// Connections that were joined or dropped to bound memory, and frames that were not read: one
    /// sentence for each kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
    /// Present if no more batches follow: the reason, or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<String>,
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LiveRow {
    pub(crate) number: u64,
    /// Time since the first packet.
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
    pub(crate) packet: u64,
    pub(crate) severity: String,
    pub(crate) requirement: String,
    pub(crate) found: String,
}

/// Follows the file until the receiver is gone or the server stops. Blocks.
pub(crate) fn follow(path: &Path, batches: mpsc::Sender<Batch>, stopped: &watch::Receiver<bool>, share: &Share) {
    let pass = Pass::new(Fresh::default());
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
        if is_weighed && !share.hold(state.pass.memory()) {
            return Some(NO_MEMORY.to_owned());
        }
        if state.sent.elapsed() > BUSY && !state.send() {
            return None;
        }
    }
    capture.note().map(str::to_owned)
}

/// Ignores poisoning: no code under this lock panics during an update.
fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that the reader of bytes shares with the reader of frames: at the end of the file, the
/// reader of bytes sends the news before it waits.
struct State {
    pass: Pass<Fresh>,
    batches: mpsc::Sender<Batch>,
    sent: Instant,
}

impl State {
    /// Sends the news; `false` if the receiver is gone.
    fn send(&mut self) -> bool {
        self.sent = Instant::now();
        if !self.pass.collector().has_news() {
            return !self.batches.is_closed();
        }
        let remarks = self.pass.remarks();
        self.batches.blocking_send(self.pass.collector_mut().batch(remarks)).is_ok()
    }
}

/// What was read and not yet sent.
#[derive(Default)]
struct Fresh {
    index: Index,
    origin: Option<u64>,
    packets: u64,
    counts: [u64; 3],
    /// Rows and findings of the index that were sent.
    rows: usize,
    findings: usize,
    /// Totals of the last batch.
    sent: Option<(u64, [u64; 3])>,
    end: Option<String>,
}

impl Collector for Fresh {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        self.origin.get_or_insert(frame.time);
        self.packets += 1;
        if self.index.rows().len() >= ROWS {
            // A finding that comes late for one of the old rows is only counted.
            let keep = (self.index.rows().len() - self.rows, self.index.findings().len() - self.findings);
            if keep == (0, 0) || self.index.rows().len() >= 2 * ROWS {
                (self.index, self.rows, self.findings) = (Index::default(), 0, 0);
            }
        }
        self.index.begin(frame)
    }

    fn memory(&self) -> usize {
        self.index.memory()
    }
}

impl Fresh {
    fn has_news(&self) -> bool {
        self.sent != Some((self.packets, self.counts)) || self.end.is_some()
    }

    fn batch(&mut self, remarks: Vec<String>) -> Batch {
        self.sent = Some((self.packets, self.counts));
        let (rows, findings) = (self.index.rows(), self.index.findings());
        let first = self.rows.max(rows.len().saturating_sub(MOST));
        let first_finding = self.findings.max(findings.len().saturating_sub(MOST));
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
            words: self.index.words(row),
            worst: row.worst.as_ref().map(Severity::to_string),
        }
    }
}

impl Sink for Fresh {
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

/// Waits at the end of a file for more.
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
            std::thread::sleep(LOOK);
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

    /// The batch with which `packets` packets were reported; collects the numbers of all rows.
    fn until(batches: &mut mpsc::Receiver<Batch>, packets: u64, numbers: &mut Vec<u64>) -> Batch {
        loop {
            let batch = batches.blocking_recv().expect("the follower continues");
            numbers.extend(batch.rows.iter().map(|row| row.number));
            if batch.packets >= packets {
                return batch;
            }
        }
    }

    #[test]
    fn reports_new_packets_and_the_end_when_the_server_stops() {
        let good = good();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        // The header, 20 packets and half of a record, which is not reported.
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
        // Of many new packets, only the last ones are reported, in order.
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
