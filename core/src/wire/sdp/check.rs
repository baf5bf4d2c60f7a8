//! Checks that several extended headers use.

use super::{FieldOrder, RawHeader};
use crate::RequirementId;
use crate::error::{Found, Layer, WireError};

/// Offset in octets of the extended header from the start of the message.
pub(super) const EXTENSION_AT: usize = 16;
/// Maximum of all sizes and lengths in the draft: 2^31 octets.
pub(super) const MAX_SIZE: u32 = 1 << 31;

/// Reads the extended header at the start of `octets`, which follow the BSDH. Returns the header
/// and the octets after it, or an error if `octets` are too few.
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

/// Returns an error about the field `field` if `good` is false. `place` is the field order, the
/// offset of the field in the figures from the start of the message, and its length in octets.
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

/// The error about a wrong field value. `place` has the same parts as in [`field`].
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
