//! The protocol units, which cover each direction of a connection without gaps.
//!
//! Units borrow their octets from the stream that is being read, and live only as long as the call
//! that delivers them. [`crate::unit`] adds what the monitor knows about their connection.

mod segment;
mod unit;

pub use crate::located::Located;
pub(crate) use segment::{SegmentView, ULPDU_AT, is_trusted, queue_of};
pub use unit::{
    Carrier, CrcStatus, Ends, Fpdu, Kind, MarkerStatus, Misread, Origin, STREAMING_HEAD, StreamOrigin, Unit,
};
