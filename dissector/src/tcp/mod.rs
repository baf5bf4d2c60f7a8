//! Reassembles TCP streams: finds the connection of a segment, and puts the octets of a direction
//! in order.
//!
//! This module does not check windows and congestion control. It uses checksums and
//! acknowledgements only to decide whether damaged octets count. A stream stores only unread
//! octets. [`direction_stream`] documents the memory limit.

mod checksum;
pub(crate) mod direction_stream;
mod fingerprints;
mod run;
mod segment_octets;
mod table;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use checksum::Checksum;
pub(crate) use direction_stream::{DirectionRecord, DirectionStream, Pending};
pub(crate) use fingerprints::Fingerprints;
pub(crate) use segment_octets::SegmentOctets;
pub(crate) use table::{
    ConnectionSummary, FAR, FAR_AFTER_CLOSE, Lookup, SegmentClass, Table, TrackedConnection, before, is_far,
};
