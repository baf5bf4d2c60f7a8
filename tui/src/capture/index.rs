//! The index of a capture: a row for each frame, with a summary, without bytes and fields.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use weft_core::RequirementId;
use weft_core::requirement::Severity;

use super::head::Head;
use super::pages::Pages;

/// The maximum number of frames in an index; further ones are not read.
pub const MAX_FRAMES: usize = 20_000_000;
/// The maximum number of findings in the list; further ones are counted, and shown at their frames.
pub(crate) const MAX_FINDINGS: usize = 100_000;
/// Characters of the joined summaries of a row.
const MAX_SUMMARY: usize = 240;
/// The value of `known_at` for units and findings that are complete only at the end of the capture.
pub(crate) const AT_END: u64 = u64::MAX;

/// The row of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The number of the frame in the capture, from 1.
    pub(crate) number: u64,
    /// Nanoseconds since 1970.
    pub(crate) time: u64,
    /// Bytes in the file.
    pub(crate) captured: u32,
    /// Bytes on the wire.
    pub(crate) wire: u32,
    pub(crate) head: Head,
    /// Summaries of its units.
    pub(crate) summary: String,
    /// The number of units that end in it.
    pub(crate) units: u32,
    /// The number of findings.
    pub(crate) findings: u32,
    /// The worst severity of the findings.
    pub(crate) worst: Option<Severity>,
    /// The TCP connection.
    pub(crate) stream: Option<u32>,
    /// The frame with which the row is complete: this one or a later one, or [`AT_END`].
    pub(crate) known_at: u64,
}

impl Row {
    /// The row of a frame before it is dissected.
    pub(crate) fn new(number: u64, time: u64, captured: u32, wire: u32) -> Self {
        Row {
            number,
            time,
            captured,
            wire,
            head: Head::default(),
            summary: String::new(),
            units: 0,
            findings: 0,
            worst: None,
            stream: None,
            known_at: number,
        }
    }

    /// The text for a search.
    pub(crate) fn text(&self) -> String {
        let ends = self.head.ends.map_or_else(String::new, |(src, dst)| format!("{src} → {dst} "));
        let worst = self.worst.map_or_else(String::new, |severity| format!("[{severity}] "));
        if self.units > 0 { ends + &worst + &self.summary } else { ends + &worst + &self.head.summary() }
    }

    fn add_unit(&mut self, at: u64, summary: &str) {
        self.units += 1;
        self.known_at = self.known_at.max(at);
        let len = self.summary.chars().count();
        if len >= MAX_SUMMARY {
            return;
        }
        if len > 0 {
            self.summary.push_str(" | ");
        }
        self.summary.extend(summary.chars().take(MAX_SUMMARY - len));
    }
}

/// A result of the indexer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The next frame.
    Row(Row),
    /// A unit that ends in frame `frame`, and is known since frame `at`.
    Unit { frame: u64, at: u64, stream: Option<u32>, summary: String },
    /// A finding, which is known since frame `at`.
    Finding { finding: ListedFinding, at: u64 },
}

/// A finding in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListedFinding {
    /// The frame that shows it.
    pub(crate) frame: u64,
    /// Its TCP connection.
    pub(crate) stream: Option<u32>,
    pub(crate) requirement: RequirementId,
    pub(crate) severity: Severity,
}

/// All rows so far.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pages: Pages,
    units: u64,
    findings: u64,
    listed: Vec<ListedFinding>,
    /// Rows with findings, in order.
    marked: Vec<usize>,
    streams: HashSet<u32>,
}

impl Index {
    /// Adds the next result of the indexer.
    pub(crate) fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Row(row) => self.pages.push(row),
            Entry::Unit { frame, at, stream, summary } => {
                self.units += 1;
                if let Some(stream) = stream {
                    self.streams.insert(stream);
                }
                if let Some(place) = self.find(frame) {
                    self.pages.change(place, |row| row.add_unit(at, &summary));
                }
            }
            Entry::Finding { finding, at } => {
                let ListedFinding { frame, severity, .. } = finding;
                self.findings += 1;
                if self.listed.len() < MAX_FINDINGS {
                    self.listed.push(finding);
                }
                let Some(index) = self.find(frame) else { return };
                self.pages.change(index, |row| {
                    row.findings += 1;
                    row.worst = row.worst.max(Some(severity));
                    row.known_at = row.known_at.max(at);
                });
                if let Err(place) = self.marked.binary_search(&index) {
                    self.marked.insert(place, index);
                }
            }
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The row at an index; rows are in the order of the capture.
    pub(crate) fn row(&self, place: usize) -> Option<Row> {
        self.pages.get(place)
    }

    /// The number of the last frame so far, or 0.
    pub(crate) fn last(&self) -> u64 {
        self.pages.last().unwrap_or(0)
    }

    /// The listed findings, in the order in which they were found.
    pub(crate) fn findings(&self) -> &[ListedFinding] {
        &self.listed
    }

    /// The index of the row of frame `number`.
    pub(crate) fn find(&self, number: u64) -> Option<usize> {
        self.pages.find(number)
    }

    /// The number of rows with findings.
    pub(crate) fn marked(&self) -> usize {
        self.marked.len()
    }

    /// The next row with a finding after `place`, or the first such row.
    pub(crate) fn next_marked(&self, place: usize) -> Option<usize> {
        let after = self.marked.partition_point(|marked| *marked <= place);
        self.marked.get(after).or(self.marked.first()).copied()
    }

    /// The previous row with a finding before `place`, or the last such row.
    pub(crate) fn previous_marked(&self, place: usize) -> Option<usize> {
        let before = self.marked.partition_point(|marked| *marked < place);
        before.checked_sub(1).and_then(|at| self.marked.get(at)).or(self.marked.last()).copied()
    }

    /// The numbers of units, connections with units, and findings.
    pub(crate) fn counts(&self) -> (u64, usize, u64) {
        (self.units, self.streams.len(), self.findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(numbers: &[u64]) -> Index {
        let mut index = Index::default();
        for number in numbers {
            index.add(Entry::Row(Row::new(*number, 0, 60, 60)));
        }
        index
    }

    #[test]
    fn a_late_unit_is_added_to_its_frame() {
        // Frame 2 could not be read and has no row.
        let mut index = index(&[1, 3, 4]);
        index.add(Entry::Unit { frame: 3, at: 4, stream: Some(0), summary: "Send".into() });
        index.add(Entry::Unit { frame: 3, at: AT_END, stream: Some(0), summary: "Write".into() });
        index.add(Entry::Unit { frame: 2, at: 4, stream: Some(0), summary: "lost".into() });
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
            index.add(Entry::Finding { finding: ListedFinding { frame, stream: None, requirement, severity }, at: 5 });
        }
        assert_eq!((index.row(1).unwrap().findings, index.row(1).unwrap().worst), (2, Some(Severity::Error)));
        assert_eq!([0, 1, 3, 4].map(|at| index.next_marked(at)), [Some(1), Some(3), Some(1), Some(1)]);
        assert_eq!([4, 3, 1, 0].map(|at| index.previous_marked(at)), [Some(3), Some(1), Some(3), Some(3)]);
    }

    #[test]
    fn counts_findings_beyond_the_list() {
        let mut index = index(&[1]);
        let requirement = "MPA-7.1.1-2".parse().unwrap();
        let finding = ListedFinding { frame: 1, stream: None, requirement, severity: Severity::Note };
        (0..MAX_FINDINGS + 3).for_each(|_| index.add(Entry::Finding { finding, at: 1 }));
        assert_eq!((index.findings().len(), index.counts().2), (MAX_FINDINGS, MAX_FINDINGS as u64 + 3));
        let title = super::super::sheet::Sheet::findings(index.findings(), index.counts().2, 1).title();
        assert_eq!(title, "Findings 1/100000: the first ones; n goes to frames with the other 3");
    }

    #[test]
    fn a_row_with_many_units_stays_short() {
        let mut index = index(&[1]);
        for _ in 0..1000 {
            index.add(Entry::Unit { frame: 1, at: 1, stream: None, summary: "Send".into() });
        }
        let row = index.row(0).unwrap();
        assert_eq!(row.units, 1000);
        assert!(row.summary.chars().count() <= MAX_SUMMARY + 3, "{}", row.summary.len());
    }
}
