//! Wireshark's fields `iwarp_rdma.send.*`: Sends of several DDP segments, put together.
//!
//! Only segments that follow each other count, because DDP sends the segments of a message in this
//! order (RFC 5041 section 5.3). If octets of a Send are missing in the capture, it has no fields.
//!
//! **Memory.** At most [`MAX_OPEN`] Sends are open. A Send has at most [`MAX_SEGMENTS`] segments,
//! and its first [`MAX_MESSAGE_OCTETS`] octets are stored.

use std::collections::BTreeMap;

use weft_core::wire::ddp::Segment;

use super::send_field::SendField;
use super::values::{FieldValue, Slot, Values};
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;
use crate::stream_id::StreamId;
use crate::unit::Unit;

/// Maximum number of directions with an open Send. With the limits of a Send, the memory is at most
/// 128 MiB.
const MAX_OPEN: usize = 64;
/// Maximum number of segments of a Send.
const MAX_SEGMENTS: usize = 1 << 16;
/// Maximum number of octets of a Send that are stored.
const MAX_MESSAGE_OCTETS: usize = 1 << 20;

/// A Send whose last segment was not delivered yet.
#[derive(Debug)]
struct OpenSend {
    msn: u32,
    /// The frame of each segment, and whether the segment has an error.
    segments: Vec<(FrameNumber, bool)>,
    /// The first octets, at most [`MAX_MESSAGE_OCTETS`].
    octets: Vec<u8>,
    len: u64,
    overlaps: bool,
    conflicts: bool,
}

impl OpenSend {
    fn new(msn: u32) -> Self {
        OpenSend { msn, segments: Vec::new(), octets: Vec::new(), len: 0, overlaps: false, conflicts: false }
    }

    /// Adds a segment with message offset `mo`. Returns `false` if octets before it are missing, or
    /// if the Send has too many segments.
    fn add(&mut self, frame: FrameNumber, mo: u64, payload: &[u8]) -> bool {
        if mo > self.len || self.segments.len() >= MAX_SEGMENTS {
            return false;
        }
        let repeated = usize::try_from(self.len - mo).map_or(payload.len(), |count| count.min(payload.len()));
        let (known, new) = payload.split_at(repeated);
        let stored = usize::try_from(mo).ok().and_then(|at| self.octets.get(at..at.checked_add(repeated)?));
        self.overlaps |= repeated > 0;
        self.conflicts |= stored.is_some_and(|stored| stored != known);
        self.segments.push((frame, repeated > 0));
        self.len += new.len() as u64;
        let room = MAX_MESSAGE_OCTETS - self.octets.len();
        self.octets.extend_from_slice(&new[..new.len().min(room)]);
        true
    }

    /// The values of the fields of the completed Send.
    fn values(&self, wanted: &[(SendField, Slot)], values: &mut Values) {
        let frames = |is_wrong: bool| self.segments.iter().filter(move |(_, wrong)| *wrong == is_wrong);
        for (field, slot) in wanted {
            let value = match field {
                SendField::Fragments => FieldValue::Present,
                SendField::Fragment | SendField::Error => {
                    for (frame, _) in frames(*field == SendField::Error) {
                        values.add(*slot, FieldValue::Number((*frame).into()));
                    }
                    continue;
                }
                SendField::Overlap if self.overlaps => FieldValue::Number(1),
                SendField::OverlapConflict if self.conflicts => FieldValue::Number(1),
                SendField::Count => FieldValue::Number(self.segments.len() as u64),
                SendField::Length => FieldValue::Number(self.len),
                SendField::Data => {
                    if self.octets.len() as u64 == self.len {
                        values.add_octets(*slot, &self.octets);
                    }
                    continue;
                }
                _ => continue,
            };
            values.add(*slot, value);
        }
    }
}

/// The Sends of one direction.
#[derive(Debug, Default)]
struct DirectionSends {
    open: Option<OpenSend>,
    /// MSN and length of the last completed Send of several segments.
    done: Option<(u32, u64)>,
}

/// Puts the Sends of all connections together.
#[derive(Debug, Default)]
pub(super) struct Sends {
    directions: BTreeMap<(StreamId, u8), DirectionSends>,
}

impl Sends {
    /// Returns whether a Send waits for its last segment.
    pub(super) fn has_open(&self) -> bool {
        self.directions.values().any(|direction| direction.open.is_some())
    }

    /// Records a unit, and adds its values. If the unit completes a Send, returns the frames of the
    /// earlier segments.
    pub(super) fn unit(
        &mut self,
        unit: &Unit<'_>,
        wanted: &[(SendField, Slot)],
        values: &mut Values,
    ) -> Vec<FrameNumber> {
        let (Some(stream), Some(view)) = (unit.stream, SegmentView::of(unit.parsed)) else { return Vec::new() };
        let Segment::Untagged(header, _) = view.segment else { return Vec::new() };
        if !view.opcode().is_send() {
            return Vec::new();
        }
        let key = (stream, unit.direction);
        if self.directions.len() >= MAX_OPEN && !self.directions.contains_key(&key) {
            self.directions.pop_first();
        }
        let direction = self.directions.entry(key).or_default();
        let (msn, mo) = (header.msn.get(), u64::from(header.mo.get()));
        if direction.done.is_some_and(|(done, _)| done == msn) {
            direction.add_after_end(unit.frame, mo + u64::from(view.payload_len), view.last(), wanted, values);
            return Vec::new();
        }
        if mo == 0 && direction.open.as_ref().is_none_or(|open| open.msn != msn) {
            // A Send of one segment is not put together.
            direction.open = (!view.last()).then(|| OpenSend::new(msn));
        }
        let Some(mut open) = direction.open.take_if(|open| open.msn == msn) else {
            direction.open = None;
            return Vec::new();
        };
        let is_added = view.payload.all().is_some_and(|payload| open.add(unit.frame, mo, payload));
        if !is_added {
            return Vec::new();
        }
        if !view.last() {
            direction.open = Some(open);
            return Vec::new();
        }
        direction.done = Some((msn, open.len));
        open.values(wanted, values);
        open.segments.pop();
        open.segments.into_iter().map(|(frame, _)| frame).collect()
    }
}

impl DirectionSends {
    /// Adds the values of a segment that follows the last segment of its Send. `end` is the message
    /// offset after the segment.
    fn add_after_end(
        &self,
        frame: FrameNumber,
        end: u64,
        is_last: bool,
        wanted: &[(SendField, Slot)],
        values: &mut Values,
    ) {
        let is_too_long = self.done.is_some_and(|(_, len)| end > len);
        for (field, slot) in wanted {
            let value = match field {
                SendField::MultipleTails if is_last => 1,
                SendField::TooLong if is_too_long => 1,
                SendField::Error if is_last || is_too_long => frame.into(),
                _ => continue,
            };
            values.add(*slot, FieldValue::Number(value));
        }
    }
}
