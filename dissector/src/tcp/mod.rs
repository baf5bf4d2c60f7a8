//! Reassembles TCP streams: finds the connection of a segment, and puts the octets of a direction
//! in order.
//!
//! This module does not check windows and congestion control. It uses checksums and
//! acknowledgements only to decide whether damaged octets count. A stream stores only unread
//! octets. [`direction_stream`] documents the memory limit.

mod checksum;
mod connection_summary;
pub(crate) mod direction_stream;
mod fingerprints;
mod run;
mod segment_octets;
mod sequence_number;
mod sequence_track;
mod table;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use connection_summary::{ConnectionSummary, SegmentClass};
pub(crate) use direction_stream::{DirectionRecord, DirectionStream, Pending};
pub(crate) use fingerprints::Fingerprints;
pub(crate) use segment_octets::SegmentOctets;
pub(crate) use sequence_number::{FAR, FAR_AFTER_CLOSE, before, is_far};
pub(crate) use sequence_track::{Relation, SegmentShape, SequenceTrack};
pub(crate) use table::{Lookup, Table, TrackedConnection};
