//! Protocol units, for example start-up frames and FPDUs. Every octet of a direction of a
//! connection belongs to a unit.
//!
//! A unit borrows its octets from the stream, so it is valid only during the call that delivers it.
//! [`crate::unit`] adds the monitor's state of the connection.

mod segment;
mod unit;

pub use crate::location::Location;
pub(crate) use segment::{SegmentView, ULPDU_AT, is_trusted, queue_of};
pub(crate) use unit::marker_positions;
pub use unit::{
    Carrier, CrcStatus, Endpoints, Fpdu, Kind, MarkerStatus, Origin, STREAMING_HEAD, SenderError, StreamOrigin, Unit,
};
