//! Protocol units, for example start-up frames and FPDUs. Every octet of a direction of a
//! connection belongs to a unit.
//!
//! A unit borrows its octets from the stream. Therefore a unit is valid only during the call that
//! delivers it. A unit of [`crate::unit`] also has the state that the monitor knows of the
//! connection.

mod segment;
mod unit;

pub use crate::location::Location;
pub(crate) use segment::{SegmentView, ULPDU_AT, is_trusted, queue_of};
pub(crate) use unit::marker_positions;
pub use unit::{
    Carrier, CrcStatus, Endpoints, Fpdu, Kind, MarkerStatus, Origin, STREAMING_HEAD, SenderError, StreamOrigin, Unit,
};
