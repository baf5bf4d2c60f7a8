//! Small checks that several extended headers share.

use super::{FieldOrder, RawHeader};
use crate::RequirementId;
use crate::error::{Found, Layer, WireError};

/// Octet of the message at which every extended header begins.
pub(super) const EXTENSION_AT: usize = 16;
/// Greatest size or length that the draft allows anywhere: 2^31 octets.
pub(super) const MAX_SIZE: u32 = 1 << 31;

/// The extended header that `octets`, the message after its BSDH, consist of or (with payload)
/// begin with.
pub(super) fn extension<'a, T: RawHeader>(
    octets: &'a [u8],
    order: FieldOrder,
    name: &'static str,
) -> Result<(T, &'a [u8]), WireError> {
    T::read(octets, order).ok_or(WireError {
        layer: Layer::Sdp,
        field: name,
        offset: EXTENSION_AT,
        expected: "the complete extended header",
        found: Found::Octets(octets.len()),
        requirement: Some(crate::requirement!("SDP-6.1.1-1")),
    })
}

/// `Err` naming the field unless `good`. `place`: field order, first octet in the figures counted
/// from the start of the message, and length in octets.
pub(super) fn field(
    good: bool,
    field: &'static str,
    place: (FieldOrder, usize, usize),
    expected: &'static str,
    found: u32,
    requirement: Option<RequirementId>,
) -> Result<(), WireError> {
    if good { Ok(()) } else { Err(bad(field, place, expected, found, requirement)) }
}

/// The error about a field whose value is wrong; `place` as for [`field`].
pub(super) fn bad(
    field: &'static str,
    place: (FieldOrder, usize, usize),
    expected: &'static str,
    found: u32,
    requirement: Option<RequirementId>,
) -> WireError {
    let (order, figure_at, octets) = place;
    let offset = order.place(figure_at..figure_at + octets).start;
    WireError { layer: Layer::Sdp, field, offset, expected, found: Found::Value(u64::from(found)), requirement }
}
