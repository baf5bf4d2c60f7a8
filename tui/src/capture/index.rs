//! The index of a capture: one row a frame, with what stands in it in words. No octets, no fields.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use weft_core::RequirementId;
use weft_core::requirement::Severity;

use super::head::Head;
use super::pages::Pages;

/// Frames that an index holds; further ones are not read.
pub const MAX_FRAMES: usize = 20_000_000;
/// Findings that an index tells one by one; further ones are counted, and stand at their frames.
pub(crate) const MAX_FINDINGS: usize = 100_000;
/// Characters of the joined summaries of a row.
const MAX_SUMMARY: usize = 240;
/// Where a unit or finding came when the capture had ended.
pub(crate) const AT_END: u64 = u64::MAX;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Its number in the capture, from 1.
    pub(crate) number: u64,
    /// Nanoseconds since 1970.
    pub(crate) time: u64,
    /// Octets in the file.
    pub(crate) captured: u32,
    /// Octets on the wire.
    pub(crate) wire: u32,
    /// What it is below iWARP.
    pub(crate) head: Head,
    /// Its units in a few words each.
    pub(crate) summary: String,
    /// How many units ended in it.
    pub(crate) units: u32,
    /// How many findings it shows.
    pub(crate) findings: u32,
    /// The loudest of them.
    pub(crate) worst: Option<Severity>,
    /// The TCP connection.
    pub(crate) stream: Option<u32>,
    /// The frame that must be read to know all of the above: this one or a later one, or [`AT_END`].
    pub(crate) known_at: u64,
}

impl Row {
    /// The row of a frame of which nothing but its lengths is known.
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

    /// Its ends and what it holds, for a search.
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

/// One thing that the indexer met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The next frame.
    Row(Row),
    /// A unit that ended in frame `frame`, found when frame `at` was read.
    Unit { frame: u64, at: u64, stream: Option<u32>, summary: String },
    /// A finding, found when frame `at` was read.
    Finding { told: Told, at: u64 },
}

/// A finding in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
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
    told: Vec<Told>,
    /// Rows with findings, in order.
    marked: Vec<usize>,
    streams: HashSet<u32>,
}

impl Index {
    /// Takes in what the indexer met next.
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
            Entry::Finding { told, at } => {
                let Told { frame, severity, .. } = told;
                self.findings += 1;
                if self.told.len() < MAX_FINDINGS {
                    self.told.push(told);
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

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The row at a place; rows stand in the order of the capture.
    pub(crate) fn row(&self, place: usize) -> Option<Row> {
        self.pages.get(place)
    }

    /// Number of the last frame so far, 0 where there is none.
    pub(crate) fn last(&self) -> u64 {
        self.pages.last().unwrap_or(0)
    }

    /// The findings, in the order in which they were found.
    pub(crate) fn told(&self) -> &[Told] {
        &self.told
    }

    /// Place of the row of frame `number`.
    pub(crate) fn find(&self, number: u64) -> Option<usize> {
        self.pages.find(number)
    }

    /// How many rows have findings.
    pub(crate) fn marked(&self) -> usize {
        self.marked.len()
    }

    /// The next row with a finding behind `place`, or the first of all.
    pub(crate) fn next_marked(&self, place: usize) -> Option<usize> {
        let behind = self.marked.partition_point(|marked| *marked <= place);
        self.marked.get(behind).or(self.marked.first()).copied()
    }

    /// The next row with a finding before `place`, or the last of all.
    pub(crate) fn previous_marked(&self, place: usize) -> Option<usize> {
        let before = self.marked.partition_point(|marked| *marked < place);
        before.checked_sub(1).and_then(|at| self.marked.get(at)).or(self.marked.last()).copied()
    }

    /// How many units, connections with units, and findings there are.
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
    fn a_late_unit_goes_to_its_own_frame() {
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
    fn findings_are_jumped_to_in_a_ring() {
        let mut index = index(&[1, 2, 3, 4, 5]);
        assert_eq!(index.next_marked(0), None);
        for (frame, severity) in [(4, Severity::Note), (2, Severity::Error), (2, Severity::Warning)] {
            let requirement = "MPA-7.1.1-2".parse().unwrap();
            index.add(Entry::Finding { told: Told { frame, stream: None, requirement, severity }, at: 5 });
        }
        assert_eq!((index.row(1).unwrap().findings, index.row(1).unwrap().worst), (2, Some(Severity::Error)));
        assert_eq!([0, 1, 3, 4].map(|at| index.next_marked(at)), [Some(1), Some(3), Some(1), Some(1)]);
        assert_eq!([4, 3, 1, 0].map(|at| index.previous_marked(at)), [Some(3), Some(1), Some(3), Some(3)]);
    }

    #[test]
    fn findings_beyond_the_list_are_counted_and_told() {
        let mut index = index(&[1]);
        let told =
            Told { frame: 1, stream: None, requirement: "MPA-7.1.1-2".parse().unwrap(), severity: Severity::Note };
        (0..MAX_FINDINGS + 3).for_each(|_| index.add(Entry::Finding { told, at: 1 }));
        assert_eq!((index.told().len(), index.counts().2), (MAX_FINDINGS, MAX_FINDINGS as u64 + 3));
        let title = super::super::sheet::Sheet::findings(index.told(), index.counts().2, 1).title();
        assert_eq!(title, "Findings 1/100000: the first ones; n goes to frames with the other 3");
    }

    #[test]
    fn a_row_of_very_many_units_stays_short() {
        let mut index = index(&[1]);
        for _ in 0..1000 {
            index.add(Entry::Unit { frame: 1, at: 1, stream: None, summary: "Send".into() });
        }
        let row = index.row(0).unwrap();
        assert_eq!(row.units, 1000);
        assert!(row.summary.chars().count() <= MAX_SUMMARY + 3, "{}", row.summary.len());
    }
}
