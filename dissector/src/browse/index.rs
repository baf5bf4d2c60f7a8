//! Makes the index of a capture. The index has one row for each frame, with a text summary and the
//! number of findings. The index contains no octets and no fields of frames.
//!
//! A row takes about 100 octets plus its text. The texts of all rows are in one string, and each
//! pair of addresses is stored once.

use std::collections::HashMap;
use std::net::SocketAddr;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use super::pass::Collector;
pub use super::row::{AT_END, Row};
use super::row::{MAX_SUMMARY_CHARS, append_summary};
use crate::frame_number::FrameNumber;
use crate::output::text;
use crate::source::Frame;
use crate::stream_id::StreamId;
use crate::unit::Unit;
use crate::{Finding, Packet, Sink};

/// Default limit on the number of frames in an index.
pub const MAX_FRAMES: usize = 2_000_000;
/// Maximum number of listed findings. Further findings are only counted, in total and for each
/// frame.
pub const MAX_FINDINGS: usize = 100_000;
/// Maximum total length of the texts of all rows, in octets. Units after this limit add no text.
const MAX_TEXT_OCTETS: usize = 256 << 20;
/// Maximum number of stored pairs of addresses. Frames with further pairs have no addresses.
const MAX_PAIRS: usize = 1 << 20;

/// A finding without the location of its octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedFinding {
    /// The frame that shows the violation.
    pub frame: FrameNumber,
    /// The TCP connection; `None` for a datagram.
    pub stream: Option<StreamId>,
    /// The violated requirement.
    pub requirement: RequirementId,
    /// The severity of the finding.
    pub severity: Severity,
    /// Description of the required behaviour.
    pub expected: String,
    /// Description of the observed behaviour.
    pub found: String,
}

/// The rows of all frames so far.
#[derive(Debug)]
pub struct Index {
    most: usize,
    rows: Vec<Row>,
    text: String,
    pairs: Vec<(SocketAddr, SocketAddr)>,
    index_of_pair: HashMap<(SocketAddr, SocketAddr), u32>,
    findings: Vec<IndexedFinding>,
    /// Total length of the texts of all listed findings, in octets.
    finding_octets: usize,
    counts: [u64; 3],
    /// Number of the current frame, or [`AT_END`].
    at: FrameNumber,
}

impl Default for Index {
    fn default() -> Self {
        Index::with_room(MAX_FRAMES)
    }
}

impl Index {
    /// An index of at most `most` frames.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        Index {
            most,
            rows: Vec::new(),
            text: String::new(),
            pairs: Vec::new(),
            index_of_pair: HashMap::new(),
            findings: Vec::new(),
            finding_octets: 0,
            counts: [0; 3],
            at: FrameNumber::NONE,
        }
    }

    /// The rows, in the order of the capture.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Index of the row of frame `number`.
    #[must_use]
    pub fn find(&self, number: FrameNumber) -> Option<usize> {
        self.rows.binary_search_by_key(&number, |row| row.number).ok()
    }

    /// Sender and receiver of the frame.
    #[must_use]
    pub fn ends(&self, row: &Row) -> Option<(SocketAddr, SocketAddr)> {
        self.pairs.get(row.pair? as usize).copied()
    }

    /// The text of a frame: the summaries of its units. If the frame has no units, the text is the
    /// summary of its transport header.
    #[must_use]
    pub fn text(&self, row: &Row) -> String {
        match self.text.get(row.text.clone()) {
            Some(text) if !text.is_empty() => text.to_owned(),
            _ => row.transport_summary(),
        }
    }

    /// The findings in the order of their delivery, at most [`MAX_FINDINGS`].
    #[must_use]
    pub fn findings(&self) -> &[IndexedFinding] {
        &self.findings
    }

    /// Number of findings by severity: notes, warnings, errors.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        self.counts
    }

    fn pair(&mut self, ends: (SocketAddr, SocketAddr)) -> Option<u32> {
        if let Some(position) = self.index_of_pair.get(&ends) {
            return Some(*position);
        }
        let position = u32::try_from(self.pairs.len()).ok().filter(|_| self.pairs.len() < MAX_PAIRS)?;
        self.pairs.push(ends);
        self.index_of_pair.insert(ends, position);
        Some(position)
    }

    fn row_of(&mut self, frame: FrameNumber) -> Option<usize> {
        // A fast path, because the frame is nearly always the current frame.
        let last = self.rows.len().checked_sub(1)?;
        if self.rows[last].number == frame { Some(last) } else { self.find(frame) }
    }
}

impl Collector for Index {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        if self.rows.len() >= self.most {
            return false;
        }
        self.at = frame.number;
        self.rows.push(Row::of(frame));
        true
    }

    fn end(&mut self) {
        self.at = AT_END;
    }

    fn memory(&self) -> usize {
        // Unused capacity of the longest lists is not counted, because the operating system does
        // not allocate memory that is never accessed.
        self.rows.len() * size_of::<Row>()
            + self.text.len()
            + self.findings.len() * size_of::<IndexedFinding>()
            + self.finding_octets
            // Each pair is in the list and in the map. The map has capacity for twice the pairs.
            + self.pairs.len() * 4 * size_of::<(SocketAddr, SocketAddr)>()
    }
}

impl Sink for Index {
    fn packet(&mut self, packet: &Packet) {
        let pair = self.pair((packet.src, packet.dst));
        if let Some(row) = self.rows.last_mut().filter(|row| row.number == packet.frame) {
            row.set_packet(packet);
            row.pair = pair;
        }
    }

    fn unit(&mut self, unit: &Unit<'_>) {
        let Some(position) = self.row_of(unit.frame) else { return };
        let row = &mut self.rows[position];
        row.add_unit(self.at);
        let has = self.text.get(row.text.clone()).map_or(0, |text| text.chars().count());
        if has >= MAX_SUMMARY_CHARS || self.text.len() + 4 * (MAX_SUMMARY_CHARS + 4) > MAX_TEXT_OCTETS {
            return;
        }
        if row.text.end != self.text.len() {
            // This unit arrived after units of later rows. To append to the text of its row, move
            // this text to the end of all texts.
            let start = self.text.len();
            self.text.extend_from_within(row.text.clone());
            row.text = start..self.text.len();
        }
        append_summary(&mut self.text, has, &text::summary(unit));
        row.text.end = self.text.len();
    }

    fn finding(&mut self, finding: &Finding) {
        let Finding { requirement, severity, stream, frame, .. } = *finding;
        self.counts[severity as usize] += 1;
        if self.findings.len() < MAX_FINDINGS {
            let (expected, found) = (finding.expected.clone(), finding.found.clone());
            self.finding_octets += expected.len() + found.len();
            self.findings.push(IndexedFinding { frame, stream, requirement, severity, expected, found });
        }
        let at = self.at;
        let Some(row) = self.row_of(frame).and_then(|position| self.rows.get_mut(position)) else { return };
        row.add_finding(at, severity);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Dissector;
    use crate::link_type::ETHERNET;
    use crate::source::Capture;
    use crate::testing::{Wire, fpdu, send_of};

    fn read(name: &str, most: usize) -> Index {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
        let mut capture = Capture::open(&folder.join(name)).unwrap();
        let mut index = Index::with_room(most);
        let mut dissector = Dissector::default();
        while let Some(frame) = capture.next_frame().filter(|frame| index.begin(frame)) {
            dissector.frame(&frame, &mut index);
        }
        index.end();
        dissector.finish(&mut index);
        index
    }

    #[test]
    fn every_frame_has_a_row_as_far_as_there_is_room() {
        assert_eq!(read("host-matrix.pcap", MAX_FRAMES).rows().len(), 627);
        assert_eq!(read("host-matrix.pcap", 100).rows().len(), 100);
    }

    #[test]
    fn rows_describe_their_frames() {
        let index = read("rping-crc.pcap", MAX_FRAMES);
        let rows = index.rows();
        assert_eq!((index.ends(&rows[0]), rows[0].stream()), (None, None), "an ARP request");
        assert_eq!(index.text(&rows[0]), "neither TCP nor UDP");
        let (src, dst) = index.ends(&rows[2]).unwrap();
        assert_eq!((src.to_string(), dst.to_string()), ("10.1.0.2:38499".into(), "10.1.0.1:7174".into()));
        assert_eq!(
            (index.text(&rows[2]).as_str(), rows[2].stream()),
            ("TCP SYN  seq 590143516 len 0", Some(StreamId::FIRST))
        );
        assert!(index.text(&rows[3]).starts_with("TCP SYN ACK"));
        assert!(index.text(&rows[5]).starts_with("MPA Request"), "{}", index.text(&rows[5]));
        assert!(index.memory() > size_of_val(rows) && index.memory() < 1 << 20);
    }

    #[test]
    fn findings_are_listed_and_counted_at_their_frames() {
        let index = read("violations-6-kinds-crc.pcap", MAX_FRAMES);
        let findings = index.findings();
        assert!(!findings.is_empty());
        assert_eq!(findings.len() as u64, index.counts().iter().sum::<u64>());
        for one in findings {
            let row = &index.rows()[index.find(one.frame).unwrap()];
            assert!(row.findings > 0 && row.worst >= Some(one.severity) && row.known_at >= row.number);
        }
        let marked: u64 = index.rows().iter().map(|row| u64::from(row.findings)).sum();
        assert_eq!(marked, findings.len() as u64);
    }

    #[test]
    fn a_late_unit_is_at_its_frame() {
        let mut wire = Wire::started();
        let (one, two) = (fpdu(&send_of(1, 30)), fpdu(&send_of(2, 30)));
        wire.swapped(|wire| wire.send(0, &one), |wire| wire.send(0, &two));
        let mut index = Index::default();
        let mut number = FrameNumber::NONE;
        struct Both<'i>(&'i mut Index, &'i mut FrameNumber);
        impl Sink for Both<'_> {
            fn packet(&mut self, packet: &Packet) {
                *self.1 = packet.frame;
                let frame = Frame {
                    number: packet.frame,
                    time: 0,
                    interface: 0,
                    link_type: ETHERNET,
                    octets: &[0; 60],
                    wire_len: 60,
                };
                assert!(self.0.begin(&frame));
                self.0.packet(packet);
            }

            fn unit(&mut self, unit: &Unit<'_>) {
                self.0.unit(unit);
            }
        }
        wire.feed(&mut Both(&mut index, &mut number));
        let rows = index.rows();
        assert_eq!(rows.len(), 6);
        // In the TCP stream, the octets of frame 5 come after the octets of frame 6. So the unit of
        // frame 5 is known only after frame 6.
        assert_eq!((rows[4].units, rows[4].known_at), (1, 6.into()));
        assert!(index.text(&rows[4]).contains("MSN 2") && index.text(&rows[5]).contains("MSN 1"));
    }
}
