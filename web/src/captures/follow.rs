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
use weft_dissector::browse::index::{IndexedFinding, Row};
use weft_dissector::browse::{Collector, Control, Index, Pass, ProblemEntry, ProblemList, Reader, Tail};
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
    /// The newest of the new findings, at most [`MAX_BATCH`]. Those of one problem are together.
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

/// The new findings of one problem, or a finding that belongs to no problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LiveFinding {
    pub(crate) packet: FrameNumber,
    pub(crate) severity: String,
    /// The requirement at the root, if it is among the new findings.
    pub(crate) requirement: String,
    pub(crate) found: String,
    /// The other violated requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) also: Vec<String>,
}

impl LiveFinding {
    /// Describes findings of one entry. Returns `None` if there are no findings.
    fn of(entry: &ProblemEntry, findings: &[&IndexedFinding]) -> Option<Self> {
        let is_root = |finding: &&&IndexedFinding| finding.requirement == entry.requirement;
        let root = findings.iter().find(is_root).or_else(|| findings.first())?;
        let mut also: Vec<String> = Vec::new();
        for finding in findings.iter().filter(|finding| finding.requirement != root.requirement) {
            let id = finding.requirement.as_str();
            if !also.iter().any(|known| known == id) {
                also.push(id.to_owned());
            }
        }
        Some(LiveFinding {
            packet: root.frame,
            severity: entry.severity.to_string(),
            requirement: root.requirement.as_str().to_owned(),
            found: root.found.clone(),
            also,
        })
    }
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
    problems: ProblemList,
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
                (self.index, self.problems) = (Index::default(), ProblemList::default());
                (self.rows, self.findings) = (0, 0);
            }
        }
        self.index.begin(frame)
    }

    fn memory(&self) -> usize {
        self.index.memory() + self.problems.memory()
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
            findings: self.live_findings(first_finding),
            remarks,
            end: self.end.take(),
        };
        (self.rows, self.findings) = (rows.len(), findings.len());
        batch
    }

    /// The findings from place `first` on, grouped by problem. The order is that of the first
    /// findings.
    fn live_findings(&self, first: usize) -> Vec<LiveFinding> {
        let mut groups: Vec<(&ProblemEntry, Vec<&IndexedFinding>)> = Vec::new();
        for (place, finding) in self.index.findings().iter().enumerate().skip(first) {
            let Some(entry) = self.problems.entry_of(place) else { continue };
            match groups.iter_mut().find(|(known, _)| std::ptr::eq(*known, entry)) {
                Some((_, findings)) => findings.push(finding),
                None => groups.push((entry, vec![finding])),
            }
        }
        groups.into_iter().filter_map(|(entry, findings)| LiveFinding::of(entry, &findings)).collect()
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
        self.problems.add(finding);
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

    /// Frame 13 of this capture has a malformed Terminate, which violates several requirements.
    #[test]
    fn the_rules_of_a_problem_are_one_finding() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
        let mut capture = Capture::open(&folder.join("rping-size-mismatch-terminate.pcap")).unwrap();
        let mut pass = Pass::new(BatchCollector::default());
        while let Some(frame) = capture.next_frame() {
            pass.frame(&frame);
        }
        let findings = pass.collector_mut().batch(Vec::new()).findings;
        let problem = findings.iter().find(|finding| finding.requirement == "RDMAP-4.8-37").unwrap();
        assert!(u64::from(problem.packet) == 13 && !problem.also.is_empty(), "{problem:?}");
        assert!(findings.iter().all(|finding| !problem.also.contains(&finding.requirement)), "{findings:?}");
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
