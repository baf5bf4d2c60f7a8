//! `--stream` and `-Y`: selects the units to judge, and the findings that count.

use std::collections::BTreeMap;

use weft_dissector::filter::{FieldReader, Filter, FrameFacts, Values, WantedFields};
use weft_dissector::output::text::summary;
use weft_dissector::source::{Comments, Frame};
use weft_dissector::unit::Unit;
use weft_dissector::{Finding, FrameNumber, Packet, StreamId};

use crate::cmd::dissect::parse_for_units;
use crate::exit::BadInput;

/// weft stores for at most this many units whether the unit passed the filter. The dissector can
/// report other units between a unit and a finding of the unit. For this finding, weft looks up
/// the stored result.
const VERDICTS: usize = 1 << 16;

/// Stream, direction and frame number. A finding belongs to the unit with the same values.
type UnitKey = (Option<StreamId>, u8, FrameNumber);

/// The options that select units.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SelectArguments {
    /// Judge only the connection with this number; `weft dissect` prints the numbers
    #[arg(long, value_name = "N")]
    stream: Option<StreamId>,
    /// Judge only units that pass this display filter (in Wireshark's language)
    ///
    /// A unit is an MPA start-up frame, an FPDU, an SDP message or a port mapper message.
    #[arg(short = 'Y', long = "display-filter", value_name = "FILTER")]
    filter: Option<String>,
}

/// Makes the selection of units that pass `filter`.
pub(in crate::cmd) fn of_filter(filter: &str) -> Result<Selection, BadInput> {
    let mut wanted = WantedFields::default();
    let filter = Some(parse_for_units(filter, &mut wanted)?);
    Ok(Selection::new(None, filter, wanted))
}

impl SelectArguments {
    /// Makes the selection for one capture. Returns `None` if the user selects everything.
    pub(super) fn selection(&self) -> Result<Option<Selection>, BadInput> {
        if self.stream.is_none() && self.filter.is_none() {
            return Ok(None);
        }
        let mut wanted = WantedFields::default();
        let filter = self.filter.as_deref().map(|text| parse_for_units(text, &mut wanted)).transpose()?;
        Ok(Some(Selection::new(self.stream, filter, wanted)))
    }
}

/// Decides which units and findings of one capture count.
pub(in crate::cmd) struct Selection {
    stream: Option<StreamId>,
    filter: Option<Filter>,
    wanted: WantedFields,
    reader: FieldReader,
    /// The current frame.
    frame: Option<FrameFacts>,
    /// The values of the headers of the current frame.
    frame_values: Values,
    /// Capture time of the first frame, in nanoseconds since 1970.
    origin: Option<u64>,
    /// The field values of the last unit. The filter also needs them for the unit's findings.
    values: Values,
    /// The key of the last unit.
    last: Option<UnitKey>,
    /// Whether a unit with this key has passed the filter.
    verdicts: BTreeMap<UnitKey, bool>,
}

impl Selection {
    fn new(stream: Option<StreamId>, filter: Option<Filter>, wanted: WantedFields) -> Self {
        Selection {
            stream,
            filter,
            wanted,
            reader: FieldReader::default(),
            frame: None,
            frame_values: Values::default(),
            origin: None,
            values: Values::default(),
            last: None,
            verdicts: BTreeMap::new(),
        }
    }

    pub(in crate::cmd) fn set_comments(&mut self, comments: Comments) {
        self.wanted.set_comments(comments);
    }

    /// Returns whether the filter uses findings. If so, [`Selection::unit`] passes each unit.
    pub(in crate::cmd) fn uses_findings(&self) -> bool {
        self.filter.is_some() && self.wanted.findings()
    }

    pub(in crate::cmd) fn frame(&mut self, frame: &Frame<'_>) {
        self.frame = Some(FrameFacts {
            number: frame.number,
            time: frame.time,
            origin: *self.origin.get_or_insert(frame.time),
            previous: self.frame.map(|previous| previous.time),
            len: Some((frame.wire_len, u32::try_from(frame.octets.len()).unwrap_or(u32::MAX))),
            packet: None,
        });
        if self.wanted.needs_reader() {
            self.frame_values.clear();
            self.reader.frame(&self.wanted, frame, &mut self.frame_values);
        }
    }

    pub(in crate::cmd) fn packet(&mut self, packet: &Packet) {
        if let Some(frame) = self.frame.as_mut().filter(|frame| frame.number == packet.frame) {
            frame.packet = Some(*packet);
            if self.wanted.needs_reader() {
                self.reader.packet(&self.wanted, packet, &mut self.frame_values);
            }
        }
    }

    /// Returns whether the unit is judged. If the filter uses findings, each unit is judged, and
    /// [`Selection::finding`] applies the filter.
    pub(in crate::cmd) fn unit(&mut self, unit: &Unit<'_>) -> bool {
        if self.is_other(unit.stream) {
            return false;
        }
        let Some(filter) = &self.filter else { return true };
        self.values.clear();
        self.wanted.unit(unit, &mut self.values);
        let is_own = |frame: &FrameFacts| {
            frame.number == unit.frame && frame.packet.is_some_and(|packet| packet.src == unit.ends.src)
        };
        let origin = self.origin.unwrap_or(0);
        let own = self.frame.filter(is_own);
        match &own {
            Some(frame) => {
                self.wanted.frame(frame, &mut self.values);
                self.values.append(&self.frame_values);
            }
            None => self.wanted.frame_of(unit, origin, &mut self.values),
        }
        if self.wanted.needs_reader() {
            let facts = (own.as_ref(), origin);
            self.reader.unit_alone(&self.wanted, unit, facts, || summary(unit), &mut self.values);
        }
        let key = (unit.stream, unit.direction, unit.frame);
        self.last = Some(key);
        if self.wanted.findings() {
            return true;
        }
        let passes = filter.matches(&self.values);
        if self.verdicts.len() == VERDICTS {
            self.verdicts.pop_first();
        }
        *self.verdicts.entry(key).or_default() |= passes;
        passes
    }

    /// Returns whether the finding counts.
    pub(in crate::cmd) fn finding(&mut self, finding: &Finding) -> bool {
        if self.is_other(finding.stream) {
            return false;
        }
        let Some(filter) = &self.filter else { return true };
        let key = (finding.stream, finding.direction, finding.frame);
        if !self.wanted.findings()
            && let Some(passed) = self.verdicts.get(&key)
        {
            return *passed;
        }
        let mut values = Values::default();
        if self.last == Some(key) {
            values.append(&self.values);
        } else {
            self.wanted.frame_of_finding(finding, &mut values);
        }
        self.wanted.finding(finding, &mut values);
        filter.matches(&values)
    }

    /// Returns whether `--stream` excludes this connection.
    fn is_other(&self, stream: Option<StreamId>) -> bool {
        self.stream.is_some() && self.stream != stream
    }
}
