//! Makes an index for captures of many millions of frames. The index has one row with text for each
//! frame, and stores the rows in compressed pages.
//!
//! One thread can read the capture and make an [`Entry`] for each row, unit and finding. A second
//! thread can then add the entries to the index, and display the rows that the index has so far.

use std::collections::HashSet;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use super::index::MAX_FINDINGS;
use super::pages::Pages;
use super::pass::Collector;
use super::row::{AT_END, OwnedRow, append_summary};
use crate::frame_number::FrameNumber;
use crate::output::text;
use crate::source::Frame;
use crate::stream_id::StreamId;
use crate::unit::Unit;
use crate::{Finding, Packet, Sink};

/// A row, unit or finding that is added to an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The next frame.
    Row(OwnedRow),
    /// A unit.
    Unit {
        /// The frame that contains the end of the unit.
        frame: FrameNumber,
        /// The frame after which the unit was delivered, or [`AT_END`].
        at: FrameNumber,
        /// The TCP connection of the unit.
        stream: Option<StreamId>,
        /// A short summary.
        summary: String,
    },
    /// A finding.
    Finding {
        /// The finding.
        finding: ListedFinding,
        /// The frame after which the finding was delivered, or [`AT_END`].
        at: FrameNumber,
    },
}

/// A finding in the list of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedFinding {
    /// The frame that shows the violation.
    pub frame: FrameNumber,
    /// The TCP connection; `None` for a datagram.
    pub stream: Option<StreamId>,
    /// The violated requirement.
    pub requirement: RequirementId,
    /// The severity of the finding.
    pub severity: Severity,
}

/// Collects the entries for an index.
#[derive(Debug)]
pub struct Entries {
    /// Remaining number of frames.
    left: usize,
    /// Number of the current frame.
    at: FrameNumber,
    /// Index of the row of the current frame in `entries`.
    row: usize,
    entries: Vec<Entry>,
}

impl Entries {
    /// Entries of at most `most` frames.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        Entries { left: most, at: FrameNumber::NONE, row: 0, entries: Vec::new() }
    }

    /// Removes and returns the entries so far. Call this method only between two frames, because
    /// the entry of the current frame may still change.
    pub fn take(&mut self) -> impl Iterator<Item = Entry> {
        self.entries.drain(..)
    }
}

impl Collector for Entries {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        (self.left, self.at, self.row) = (left, frame.number, self.entries.len());
        self.entries.push(Entry::Row(OwnedRow::of(frame)));
        true
    }

    fn end(&mut self) {
        self.at = AT_END;
    }
}

impl Sink for Entries {
    fn packet(&mut self, packet: &Packet) {
        if let Some(Entry::Row(row)) = self.entries.get_mut(self.row) {
            row.set_packet(packet);
            row.ends = Some((packet.src, packet.dst));
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

/// The rows of all frames so far.
#[derive(Debug, Default)]
pub struct PackedIndex {
    pages: Pages,
    units: u64,
    findings: u64,
    listed: Vec<ListedFinding>,
    /// Indices of the rows with findings, in ascending order.
    marked: Vec<usize>,
    streams: HashSet<StreamId>,
}

impl PackedIndex {
    /// Adds the next entry.
    pub fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Row(row) => self.pages.push(row),
            Entry::Unit { frame, at, stream, summary } => {
                self.units += 1;
                if let Some(stream) = stream {
                    self.streams.insert(stream);
                }
                if let Some(position) = self.find(frame) {
                    self.pages.change(position, |row| {
                        row.add_unit(at);
                        let len = row.summary.chars().count();
                        append_summary(&mut row.summary, len, &summary);
                    });
                }
            }
            Entry::Finding { finding, at } => {
                let ListedFinding { frame, severity, .. } = finding;
                self.findings += 1;
                if self.listed.len() < MAX_FINDINGS {
                    self.listed.push(finding);
                }
                let Some(index) = self.find(frame) else { return };
                self.pages.change(index, |row| row.add_finding(at, severity));
                if let Err(position) = self.marked.binary_search(&index) {
                    self.marked.insert(position, index);
                }
            }
        }
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Returns whether the index has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at index `position`. Rows are in capture order.
    #[must_use]
    pub fn row(&self, position: usize) -> Option<OwnedRow> {
        self.pages.get(position)
    }

    /// The number of the last frame so far, or [`FrameNumber::NONE`].
    #[must_use]
    pub fn last(&self) -> FrameNumber {
        self.pages.last().unwrap_or(FrameNumber::NONE)
    }

    /// The findings in the order of their delivery, at most [`MAX_FINDINGS`].
    #[must_use]
    pub fn findings(&self) -> &[ListedFinding] {
        &self.listed
    }

    /// The index of the row of frame `number`.
    #[must_use]
    pub fn find(&self, number: FrameNumber) -> Option<usize> {
        self.pages.find(number)
    }

    /// The number of rows with findings.
    #[must_use]
    pub fn marked(&self) -> usize {
        self.marked.len()
    }

    /// Returns the index of the next row with a finding after `position`. If there is no such row,
    /// returns the index of the first row with a finding.
    #[must_use]
    pub fn next_marked(&self, position: usize) -> Option<usize> {
        let after = self.marked.partition_point(|marked| *marked <= position);
        self.marked.get(after).or(self.marked.first()).copied()
    }

    /// Returns the index of the previous row with a finding before `position`. If there is no such
    /// row, returns the index of the last row with a finding.
    #[must_use]
    pub fn previous_marked(&self, position: usize) -> Option<usize> {
        let before = self.marked.partition_point(|marked| *marked < position);
        before.checked_sub(1).and_then(|at| self.marked.get(at)).or(self.marked.last()).copied()
    }

    /// Number of units, number of connections with units, and number of findings.
    #[must_use]
    pub fn counts(&self) -> (u64, usize, u64) {
        (self.units, self.streams.len(), self.findings)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::TransportKind;
    use crate::browse::row::{MAX_SUMMARY_CHARS, Row};
    use crate::browse::{Index, Pass, Reader};
    use crate::link_type::ETHERNET;
    use crate::source::Capture;

    fn index(numbers: &[u64]) -> PackedIndex {
        let mut index = PackedIndex::default();
        for number in numbers {
            index.add(Entry::Row(Row::new((*number).into()).into()));
        }
        index
    }

    #[test]
    fn a_late_unit_is_added_to_its_frame() {
        // Frame 2 could not be read and has no row.
        let mut index = index(&[1, 3, 4]);
        index.add(Entry::Unit { frame: 3.into(), at: 4.into(), stream: Some(StreamId::FIRST), summary: "Send".into() });
        index.add(Entry::Unit { frame: 3.into(), at: AT_END, stream: Some(StreamId::FIRST), summary: "Write".into() });
        index.add(Entry::Unit { frame: 2.into(), at: 4.into(), stream: Some(StreamId::FIRST), summary: "lost".into() });
        let row = index.row(1).unwrap();
        assert_eq!((row.summary.as_str(), row.units, row.known_at), ("Send | Write", 2, AT_END));
        assert_eq!(index.counts(), (3, 1, 0));
    }

    #[test]
    fn jumps_between_findings_wrap_around() {
        let mut index = index(&[1, 2, 3, 4, 5]);
        assert_eq!(index.next_marked(0), None);
        for (frame, severity) in [(4, Severity::Note), (2, Severity::Error), (2, Severity::Warning)] {
            let requirement = "MPA-7.1.1-2".parse().unwrap();
            let finding = ListedFinding { frame: frame.into(), stream: None, requirement, severity };
            index.add(Entry::Finding { finding, at: 5.into() });
        }
        assert_eq!((index.row(1).unwrap().findings, index.row(1).unwrap().worst), (2, Some(Severity::Error)));
        assert_eq!([0, 1, 3, 4].map(|at| index.next_marked(at)), [Some(1), Some(3), Some(1), Some(1)]);
        assert_eq!([4, 3, 1, 0].map(|at| index.previous_marked(at)), [Some(3), Some(1), Some(3), Some(3)]);
    }

    #[test]
    fn counts_findings_beyond_the_list() {
        let mut index = index(&[1]);
        let requirement = "MPA-7.1.1-2".parse().unwrap();
        let finding = ListedFinding { frame: FrameNumber::FIRST, stream: None, requirement, severity: Severity::Note };
        (0..MAX_FINDINGS + 3).for_each(|_| index.add(Entry::Finding { finding, at: FrameNumber::FIRST }));
        assert_eq!((index.findings().len(), index.counts().2), (MAX_FINDINGS, MAX_FINDINGS as u64 + 3));
    }

    #[test]
    fn a_row_with_many_units_stays_short() {
        let mut index = index(&[1]);
        for _ in 0..1000 {
            index.add(Entry::Unit {
                frame: FrameNumber::FIRST,
                at: FrameNumber::FIRST,
                stream: None,
                summary: "Send".into(),
            });
        }
        let row = index.row(0).unwrap();
        assert_eq!(row.units, 1000);
        assert!(row.summary.chars().count() <= MAX_SUMMARY_CHARS + 3, "{}", row.summary.len());
    }

    #[test]
    fn both_indexes_have_the_same_rows() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
        for name in ["host-matrix.pcap", "violations-6-kinds-crc.pcap"] {
            let mut capture = Capture::open(&folder.join(name)).unwrap();
            let mut flat = Pass::new(Index::default());
            let mut entries = Pass::new(Entries::with_room(usize::MAX));
            let mut packed = PackedIndex::default();
            while let Some(frame) = capture.next_frame() {
                assert!(flat.frame(&frame) && entries.frame(&frame));
                entries.collector_mut().take().for_each(|entry| packed.add(entry));
            }
            flat.finish();
            entries.finish();
            entries.collector_mut().take().for_each(|entry| packed.add(entry));
            let flat = flat.into_collector();
            assert_eq!((packed.len(), packed.counts().2), (flat.rows().len(), flat.counts().iter().sum()));
            for (position, row) in flat.rows().iter().enumerate() {
                let listed = packed.row(position).unwrap();
                assert_eq!((listed.ends, listed.text()), (flat.ends(row), flat.text(row)));
                assert_eq!(*listed, Row { pair: None, text: 0..0, ..row.clone() });
            }
            let findings = flat.findings().iter().map(|one| (one.frame, one.stream, one.requirement, one.severity));
            let listed = packed.findings().iter().map(|one| (one.frame, one.stream, one.requirement, one.severity));
            assert!(listed.eq(findings));
        }
    }

    #[test]
    fn takes_no_more_frames_than_there_is_room_for() {
        let frame = |number: u64| Frame {
            number: number.into(),
            time: 0,
            interface: 0,
            link_type: ETHERNET,
            octets: &[0; 60],
            wire_len: 60,
        };
        let mut pass = Pass::new(Entries::with_room(2));
        assert_eq!([1, 2, 3].map(|number| pass.frame(&frame(number))), [true, true, false]);
        assert!(pass.is_complete() && pass.collector_mut().take().count() == 2);
    }

    #[test]
    fn flags_are_named_in_order() {
        let mut row = Row::new(FrameNumber::FIRST);
        assert_eq!(row.transport_summary(), "neither TCP nor UDP");
        let tcp = |syn, fin, ack| TransportKind::Tcp { stream: StreamId::FIRST, seq: 7, syn, fin, rst: false, ack };
        row.transport = Some(tcp(true, true, true));
        assert_eq!(row.transport_summary(), "TCP SYN FIN ACK  seq 7 len 0");
        row.transport = Some(tcp(false, false, false));
        assert_eq!((row.transport_summary().as_str(), row.tcp_flags().as_str()), ("TCP  seq 7 len 0", ""));
    }
}
