//! Collects units, findings and requested fields by frame for tshark's output formats. The result
//! is one record for each frame, in the order of frames.
//!
//! A unit belongs to the frame that contains its end. But the dissector sometimes delivers the unit
//! only after later frames. Therefore a record waits while the dissector has undelivered octets, or
//! while findings about its frame are possible. At most [`MAX_WAITING_FRAMES`] records and
//! [`MAX_WAITING_MEMORY`] octets wait. If a unit or finding arrives after the record of its frame
//! was released, the frame gets a second record. The second record comes after records of later
//! frames. A second record has no fields of headers.

use std::collections::VecDeque;

use crate::filter::values::FieldValue;
use crate::filter::{FieldReader, FrameFacts, WantedFields, known, protocol_of};
use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::packet::Packet;
use crate::source::Frame;
use crate::tree::tree;
use crate::unit::Unit;

use super::layers::layers;
pub use super::record::{Record, UnitRecord};
use super::text;

/// Maximum number of records that wait.
pub const MAX_WAITING_FRAMES: usize = 4096;
/// Maximum memory of waiting records in octets.
pub const MAX_WAITING_MEMORY: usize = 32 << 20;

/// The parts that a record contains in addition to the requested fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordParts {
    /// The octets of the frame.
    pub octets: bool,
    /// The summary of each unit.
    pub summaries: bool,
    /// The fields of each unit as text lines.
    pub trees: bool,
    /// The layers of each unit.
    pub layers: bool,
    /// Findings.
    pub findings: bool,
}

/// Collects records, and releases them in the order of their frames.
// Records are in boxes, because they are large and are moved several times.
#[allow(clippy::vec_box)]
pub struct Frames {
    wanted: WantedFields,
    keep: RecordParts,
    reader: FieldReader,
    origin: Option<u64>,
    /// Capture time of the latest frame, in nanoseconds since 1970.
    latest: Option<u64>,
    /// Capture time of the latest frame that passed the filter, in nanoseconds since 1970.
    displayed: Option<u64>,
    /// The record of the current frame.
    newest: Option<Box<Record>>,
    /// The waiting records of earlier frames.
    waiting: VecDeque<Box<Record>>,
    late: Vec<Box<Record>>,
    used: Vec<Box<Record>>,
    held: usize,
    complete: bool,
}

impl Frames {
    /// Collects the requested fields and the parts in `keep`.
    #[must_use]
    pub fn new(wanted: WantedFields, keep: RecordParts) -> Self {
        let summaries = keep.summaries || wanted.columns();
        Frames {
            wanted,
            keep: RecordParts { summaries, ..keep },
            reader: FieldReader::default(),
            origin: None,
            latest: None,
            displayed: None,
            newest: None,
            waiting: VecDeque::new(),
            late: Vec::new(),
            used: Vec::new(),
            held: 0,
            complete: false,
        }
    }

    /// Starts a frame. Call this method before the dissector reads the frame.
    pub fn begin(&mut self, frame: &Frame<'_>) {
        self.complete = false;
        let origin = *self.origin.get_or_insert(frame.time);
        let previous = self.latest.replace(frame.time);
        let captured = u32::try_from(frame.octets.len()).unwrap_or(u32::MAX);
        let (number, time, len) = (frame.number, frame.time, Some((frame.wire_len, captured)));
        let mut record = self.fresh(FrameFacts { number, time, origin, previous, len, packet: None });
        (record.interface, record.link_type) = (frame.interface, frame.link_type);
        if self.wanted.needs_reader() {
            record.other = self.reader.frame(&self.wanted, frame, &mut record.values);
        }
        if self.keep.octets {
            record.octets.extend_from_slice(frame.octets);
            self.held += frame.octets.len();
        }
        if let Some(before) = self.newest.replace(record) {
            self.waiting.push_back(before);
        }
    }

    /// Records the packet of the current frame.
    pub fn packet(&mut self, packet: &Packet) {
        if let Some(record) = &mut self.newest {
            record.facts.packet = Some(*packet);
            record.stream = packet.transport.stream().or(record.stream);
            if self.wanted.needs_reader() {
                self.reader.packet(&self.wanted, packet, &mut record.values);
            }
        }
    }

    /// Records that the current frame contains a fragment of an incomplete IP packet.
    pub fn fragment(&mut self) {
        if let Some(record) = &mut self.newest {
            record.fragment = true;
        }
    }

    /// Ends the current frame. Set `complete` if no further units will arrive for the frames so far
    /// (see [`Dissector::holds_back`](crate::Dissector::holds_back)).
    pub fn end(&mut self, complete: bool) {
        if let Some(record) = &mut self.newest {
            self.wanted.frame(&record.facts, &mut record.values);
        }
        // A later finding can be about any frame so far.
        let is_complete = complete && !self.keep.findings && !self.wanted.findings();
        self.complete = is_complete && !(self.wanted.awaits_sends() && self.reader.has_open_send());
    }

    /// Adds a unit to the record of its frame.
    pub fn unit(&mut self, unit: &Unit<'_>) {
        let keep = self.keep;
        let kept = (keep.summaries || keep.trees || keep.layers).then(|| UnitRecord {
            protocol: protocol_of(unit),
            summary: if keep.summaries { text::summary(unit) } else { String::new() },
            tree: if keep.trees { text::tree_lines(&tree(unit)) } else { String::new() },
            layers: if keep.layers { layers(unit) } else { Vec::new() },
        });
        if let Some(kept) = &kept {
            // This is an estimate. It is sufficient for the limit on waiting records.
            self.held += kept.summary.len() + kept.tree.len() + kept.layers.len() * 2048;
        }
        match find(&mut self.newest, &mut self.waiting, unit.frame) {
            Some(record) => {
                self.wanted.unit(unit, &mut record.values);
                record.units.extend(kept);
                if self.wanted.needs_reader() {
                    let earlier = self.reader.unit(&self.wanted, unit, &mut record.values);
                    self.reassembled(unit.frame, &earlier);
                }
            }
            // Missing octets at the end of the data belong to no frame.
            None if unit.frame == FrameNumber::NONE => {}
            None => {
                let origin = self.origin.unwrap_or(unit.time);
                let facts = FrameFacts { number: unit.frame, time: unit.time, origin, ..FrameFacts::default() };
                let mut record = self.fresh(facts);
                self.wanted.unit(unit, &mut record.values);
                self.wanted.frame_of(unit, origin, &mut record.values);
                record.stream = unit.stream;
                record.units.extend(kept);
                self.late.push(record);
            }
        }
    }

    /// Adds a finding to the record of its frame.
    pub fn finding(&mut self, finding: &Finding) {
        let kept = self.keep.findings.then(|| finding.clone());
        if let Some(record) = find(&mut self.newest, &mut self.waiting, finding.frame) {
            self.wanted.finding(finding, &mut record.values);
            record.stream = record.stream.or(finding.stream);
            record.findings.extend(kept);
        } else if self.keep.findings || self.wanted.findings() {
            let mut record = self.fresh(FrameFacts { number: finding.frame, ..FrameFacts::default() });
            self.wanted.finding(finding, &mut record.values);
            self.wanted.frame_of_finding(finding, &mut record.values);
            record.stream = finding.stream;
            record.findings.extend(kept);
            self.late.push(record);
        }
    }

    /// Adds the values of the other segments of a Send that `frame` completes. `earlier` has the
    /// frames of these segments.
    fn reassembled(&mut self, frame: FrameNumber, earlier: &[FrameNumber]) {
        let name = "iwarp_rdma.send.reassembled_in";
        let Some(slot) = known(name).filter(|_| self.wanted.awaits_sends()).map(|known| self.wanted.add(known)) else {
            return;
        };
        for segment in earlier.iter().filter(|segment| **segment != frame) {
            if let Some(record) = find(&mut self.newest, &mut self.waiting, *segment) {
                record.values.add(slot, FieldValue::Number(frame.into()));
            }
        }
    }

    /// Records that the frame of `record` passed the filter.
    pub fn mark_displayed(&mut self, record: &Record) {
        // The second record of a frame does not count.
        if record.facts.len.is_some() {
            self.displayed = Some(record.facts.time);
        }
    }

    /// Capture time of the latest frame that passed the filter, in nanoseconds since 1970.
    #[must_use]
    pub fn displayed(&self) -> Option<u64> {
        self.displayed
    }

    /// Ends the capture. After that, [`Frames::ready`] releases all records.
    pub fn finish(&mut self) {
        self.complete = true;
    }

    /// Returns the next record that need not wait any longer. Returns `None` if all records must
    /// wait. If the record passes the filter, pass it to [`Frames::mark_displayed`]. After use, pass
    /// it to [`Frames::recycle`].
    pub fn ready(&mut self) -> Option<Box<Record>> {
        let mut record = self.released()?;
        if self.wanted.columns() {
            let Record { facts, other, units, values, .. } = &mut *record;
            let protocol = units.iter().rev().find_map(|unit| unit.protocol);
            let summaries: Vec<&str> = units.iter().map(|unit| unit.summary.as_str()).collect();
            let info = match (&summaries[..], &facts.packet) {
                ([], Some(packet)) => text::packet_summary(packet),
                ([], None) => String::new(),
                (summaries, _) => summaries.join(" | "),
            };
            let source = (protocol, info);
            self.wanted.columns_of_frame(facts, self.displayed, other.as_ref(), source, values);
        }
        Some(record)
    }

    /// Returns the next record that need not wait any longer, without columns.
    fn released(&mut self) -> Option<Box<Record>> {
        if let Some(late) = self.late.pop() {
            return Some(late);
        }
        let record = if self.waiting.is_empty() {
            // If units of the current frame may still arrive, its record waits, regardless of the
            // limits.
            self.newest.take_if(|_| self.complete)?
        } else {
            let full = self.waiting.len() >= MAX_WAITING_FRAMES || self.held > MAX_WAITING_MEMORY;
            if !self.complete && !full {
                return None;
            }
            self.waiting.pop_front()?
        };
        if self.held == 0 {
            return Some(record);
        }
        let units = record.units.iter().map(|kept| kept.summary.len() + kept.tree.len() + kept.layers.len() * 2048);
        self.held = self.held.saturating_sub(record.octets.len() + units.sum::<usize>());
        Some(record)
    }

    /// An empty record for a frame.
    #[inline]
    fn fresh(&mut self, facts: FrameFacts) -> Box<Record> {
        let mut record = self.used.pop().unwrap_or_default();
        record.values.clear();
        record.units.clear();
        record.findings.clear();
        record.octets.clear();
        record.facts = facts;
        (record.interface, record.link_type) = (0, 0);
        record.stream = None;
        record.fragment = false;
        record.other = None;
        record
    }

    /// Takes a used record, and reuses its memory for a later record.
    pub fn recycle(&mut self, record: Box<Record>) {
        if self.used.len() < 64 {
            self.used.push(record);
        }
    }
}

#[inline]
fn find<'r>(
    newest: &'r mut Option<Box<Record>>,
    waiting: &'r mut VecDeque<Box<Record>>,
    frame: FrameNumber,
) -> Option<&'r mut Record> {
    if let Some(newest) = newest.as_mut().filter(|newest| newest.facts.number == frame) {
        return Some(newest);
    }
    let last = waiting.back()?.facts.number;
    // Frame numbers are consecutive, except if frames of unknown interfaces are omitted.
    let back = usize::try_from(last.frames_since(frame)?).ok()?;
    let index = waiting.len().checked_sub(back + 1).filter(|index| waiting[*index].facts.number == frame);
    let index = match index {
        Some(index) => index,
        None => waiting.binary_search_by_key(&frame, |record| record.facts.number).ok()?,
    };
    waiting.get_mut(index).map(|record| &mut **record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::known;
    use crate::link_type::{ETHERNET, RAW_IP};
    use crate::{Dissector, Sink};

    fn begin(frames: &mut Frames, number: u64) {
        frames.begin(&Frame {
            number: number.into(),
            time: number,
            interface: 0,
            link_type: ETHERNET,
            octets: &[0; 60],
            wire_len: 60,
        });
        frames.end(false);
    }

    struct Units<'f>(&'f mut Frames);

    impl Sink for Units<'_> {
        fn unit(&mut self, unit: &Unit<'_>) {
            self.0.unit(unit);
        }
    }

    /// Adds a port mapper datagram as a unit of frame `number`.
    fn unit(frames: &mut Frames, number: u64) {
        let mut octets = Vec::new();
        let header = etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(3935, 1);
        header.write(&mut octets, &[0x04; 48]).unwrap();
        let wire_len = u32::try_from(octets.len()).unwrap();
        let frame =
            Frame { number: number.into(), time: number, interface: 0, link_type: RAW_IP, octets: &octets, wire_len };
        Dissector::default().frame(&frame, &mut Units(frames));
    }

    /// For each released record, returns the frame number and the number of values of the field
    /// `iwarp_pm.mt`.
    fn ready(frames: &mut Frames, slots: [crate::filter::Slot; 2]) -> Vec<(u64, usize)> {
        let mut found = Vec::new();
        while let Some(record) = frames.ready() {
            let count = record.values.of(slots[1]).count();
            assert!(record.values.of(slots[0]).count() == 1, "every record has one frame number");
            found.push((record.facts.number.into(), count));
            frames.recycle(record);
        }
        found
    }

    fn frames() -> (Frames, [crate::filter::Slot; 2]) {
        let mut wanted = WantedFields::default();
        let slots = ["frame.number", "iwarp_pm.mt"].map(|name| wanted.add(known(name).unwrap()));
        (Frames::new(wanted, RecordParts::default()), slots)
    }

    #[test]
    fn units_that_come_late_join_their_frame_and_frames_leave_in_order() {
        let (mut frames, slots) = frames();
        (1..=4).for_each(|number| begin(&mut frames, number));
        unit(&mut frames, 2);
        unit(&mut frames, 4);
        unit(&mut frames, 2);
        assert_eq!(ready(&mut frames, slots), []);
        frames.finish();
        assert_eq!(ready(&mut frames, slots), [(1, 0), (2, 2), (3, 0), (4, 1)]);
    }

    #[test]
    fn complete_frames_leave_at_once() {
        let (mut frames, slots) = frames();
        begin(&mut frames, 1);
        frames.begin(&Frame {
            number: 2.into(),
            time: 2,
            interface: 0,
            link_type: ETHERNET,
            octets: &[0; 60],
            wire_len: 60,
        });
        unit(&mut frames, 2);
        assert_eq!(ready(&mut frames, slots), []);
        frames.end(true);
        assert_eq!(ready(&mut frames, slots), [(1, 0), (2, 1)]);
    }

    #[test]
    fn units_after_the_window_get_their_own_records() {
        let (mut frames, slots) = frames();
        (1..=MAX_WAITING_FRAMES as u64 + 2).for_each(|number| begin(&mut frames, number));
        assert_eq!(ready(&mut frames, slots), [(1, 0), (2, 0)]);
        unit(&mut frames, 1);
        assert_eq!(ready(&mut frames, slots), [(1, 1)]);
    }

    #[test]
    fn frame_numbers_may_have_holes() {
        let (mut frames, slots) = frames();
        [1, 3, 7].into_iter().for_each(|number| begin(&mut frames, number));
        unit(&mut frames, 3);
        unit(&mut frames, 1);
        unit(&mut frames, 0);
        frames.finish();
        assert_eq!(ready(&mut frames, slots), [(1, 1), (3, 1), (7, 0)]);
    }
}
