//! Selects units by a display filter, without the other units of their frames.

use std::collections::BTreeMap;

use weft_dissector::filter::{FieldReader, Filter, FrameFacts, Values, WantedFields};
use weft_dissector::output::text::summary;
use weft_dissector::source::Frame;
use weft_dissector::unit::Unit;
use weft_dissector::{FrameNumber, Packet, StreamId};

use super::count::Counts;
use super::order::UnitKey;

/// weft stores the facts (time, length, addresses) of this number of newest frames. The filter
/// needs the facts of a unit's frame.
const REMEMBERED: usize = 4096;
/// weft stores for at most this many units whether the unit passed the filter. The dissector can
/// report other units between a unit and a finding of the unit. For this finding, weft looks up
/// the stored result.
const VERDICTS: usize = 1 << 16;

/// Selects units by a filter.
///
/// The dissector reports the findings of a unit after the unit. If the filter depends on findings
/// (for example, the filter `finding`), a unit waits until the dissector reports the next unit.
pub(super) struct Selection<'f> {
    pub(super) filter: &'f Filter,
    pub(super) wanted: &'f WantedFields,
    pub(super) values: Values,
    reader: FieldReader,
    frames: Vec<FrameFacts>,
    /// The values of the headers of each frame in `frames`, if the filter uses headers.
    headers: Vec<Values>,
    /// The waiting unit, if the filter uses findings.
    pub(super) waiting: Option<Waiting>,
    pub(super) waiting_values: Values,
    /// The key of the last unit that did not wait, and whether the unit passed. A finding with this
    /// key passes if the unit passed.
    last: Option<(UnitKey, bool)>,
    /// Whether a unit with this frame, stream and direction passed. A later finding of the unit
    /// passes if the unit passed, even after other units.
    verdicts: BTreeMap<(FrameNumber, Option<StreamId>, u8), bool>,
    /// Whether the filter also selects TCP segments and UDP datagrams without a unit.
    pub(super) selects_segments: bool,
    /// Whether any unit, finding, event or printed segment has passed.
    pub(super) matched: bool,
    /// Whether a segment has passed that the output cannot show.
    pub(super) has_hidden_segment: bool,
}

/// A unit that waits for its findings.
pub(super) struct Waiting {
    pub(super) key: UnitKey,
    /// The output for the unit and its findings, printed if the unit passes.
    pub(super) rendered: Vec<u8>,
    /// The counts of the unit and its findings, added to the totals if the unit passes.
    pub(super) counts: Counts,
}

impl<'f> Selection<'f> {
    pub(super) fn new(filter: &'f Filter, wanted: &'f WantedFields) -> Self {
        Selection {
            filter,
            wanted,
            values: Values::default(),
            reader: FieldReader::default(),
            frames: Vec::new(),
            headers: Vec::new(),
            waiting: None,
            waiting_values: Values::default(),
            last: None,
            verdicts: BTreeMap::new(),
            selects_segments: wanted.selects_segments(),
            matched: false,
            has_hidden_segment: false,
        }
    }
}

impl Selection<'_> {
    /// Stores the facts of a new frame. `previous` is the time of the previous frame, and `origin`
    /// is the time of the first frame.
    pub(super) fn begin(&mut self, frame: &Frame<'_>, origin: u64, previous: Option<u64>) {
        let len = Some((frame.wire_len, u32::try_from(frame.octets.len()).unwrap_or(u32::MAX)));
        let facts = FrameFacts { number: frame.number, time: frame.time, origin, previous, len, packet: None };
        if self.frames.len() == REMEMBERED {
            let at = self.slot(facts.number);
            self.frames[at] = facts;
        } else {
            self.frames.push(facts);
        }
        if self.wanted.needs_reader() {
            let at = self.slot(frame.number);
            if self.headers.len() <= at {
                self.headers.resize_with(at + 1, Values::default);
            }
            self.headers[at].clear();
            self.reader.frame(self.wanted, frame, &mut self.headers[at]);
        }
    }

    /// Stores the packet of the current frame.
    pub(super) fn packet(&mut self, packet: &Packet) {
        let at = self.slot(packet.frame);
        if let Some(facts) = self.facts(packet.frame) {
            facts.packet = Some(*packet);
            if let Some(values) = self.headers.get_mut(at) {
                self.reader.packet(self.wanted, packet, values);
            }
        }
    }

    /// Adds the values of frame `number` to `values`. Returns `false` if its facts are no longer
    /// stored.
    pub(super) fn add_frame(&mut self, number: FrameNumber) -> bool {
        let Some(facts) = self.facts(number).copied() else { return false };
        self.wanted.frame(&facts, &mut self.values);
        if let Some(headers) = self.headers.get(self.slot(number)) {
            self.values.append(headers);
        }
        true
    }

    /// Returns whether frame `number` passes the filter without its units.
    pub(super) fn frame_passes(&mut self, number: FrameNumber) -> bool {
        self.values.clear();
        self.add_frame(number) && self.filter.matches(&self.values)
    }

    /// Returns the index for the facts of frame `number`. Frame `number + REMEMBERED` has the same
    /// index, and replaces the facts.
    fn slot(&self, number: FrameNumber) -> usize {
        (u64::from(number).wrapping_sub(1) % REMEMBERED as u64) as usize
    }

    /// Returns the facts of frame `number` if they are still stored.
    fn facts(&mut self, number: FrameNumber) -> Option<&mut FrameFacts> {
        let at = self.slot(number);
        self.frames.get_mut(at).filter(|facts| facts.number == number)
    }

    /// Stores whether the unit at `key` passed.
    pub(super) fn decided(&mut self, key: UnitKey, passed: bool) {
        self.last = Some((key, passed));
        let (stream, direction, frame) = key;
        if self.verdicts.len() == VERDICTS {
            self.verdicts.pop_first();
        }
        *self.verdicts.entry((frame, stream, direction)).or_default() |= passed;
    }

    /// Returns whether the unit of a finding passed, or `None` if no unit with this key is stored.
    pub(super) fn verdict(&self, key: UnitKey) -> Option<bool> {
        let (stream, direction, frame) = key;
        match self.last {
            Some((last, passed)) if last == key => Some(passed),
            _ => self.verdicts.get(&(frame, stream, direction)).copied(),
        }
    }

    /// Collects the values of the unit's fields for the filter.
    pub(super) fn collect(&mut self, unit: &Unit<'_>, origin: u64) {
        self.values.clear();
        self.wanted.unit(unit, &mut self.values);
        let facts = self.facts(unit.frame).copied();
        let own = facts.filter(|facts| facts.packet.is_some_and(|packet| packet.src == unit.ends.src));
        if own.is_none() || !self.add_frame(unit.frame) {
            self.wanted.frame_of(unit, origin, &mut self.values);
        }
        if self.wanted.needs_reader() {
            let facts = (own.as_ref(), origin);
            self.reader.unit_alone(self.wanted, unit, facts, || summary(unit), &mut self.values);
        }
    }
}
