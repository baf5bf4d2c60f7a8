//! Checks that the code of several extended headers uses.

use super::{FieldOrder, RawHeader};
use crate::RequirementId;
use crate::error::{Found, Layer, WireError};

/// Offset in octets of the extended header from the start of the message.
pub(super) const EXTENSION_AT: usize = 16;
/// Maximum size and length that the SDP draft allows: 2^31 octets.
pub(super) const MAX_SIZE: u32 = 1 << 31;

/// Reads the extended header at the start of `octets`, which follow the BSDH. Returns the header
/// and the octets after it, or an error if there are too few octets.
pub(super) fn extension<'a, T: RawHeader>(
    octets: &'a [u8],
    order: FieldOrder,
    name: &'static str,
) -> Result<(T, &'a [u8]), WireError> {
    T::read(octets, order).ok_or(WireError {
        offset: EXTENSION_AT,
        requirement: Some(crate::requirement!("SDP-6.1.1-1")),
        ..WireError::too_short(Layer::Sdp, name, "the complete extended header", octets.len())
    })
}

/// Returns an error about the field `field` if `good` is false. `position` has three parts: the
/// field order, the offset that the field has in the figures (from the start of the message), and
/// the length of the field in octets.
pub(super) fn field(
    good: bool,
    field: &'static str,
    position: (FieldOrder, usize, usize),
    expected: &'static str,
    found: u32,
    requirement: Option<RequirementId>,
) -> Result<(), WireError> {
    if good { Ok(()) } else { Err(bad(field, position, expected, found, requirement)) }
}

/// The error about a wrong field value. `position` has the same parts as in [`field`].
pub(super) fn bad(
    field: &'static str,
    position: (FieldOrder, usize, usize),
    expected: &'static str,
    found: u32,
    requirement: Option<RequirementId>,
) -> WireError {
    let (order, figure_at, octets) = position;
    let offset = order.wire_range(figure_at..figure_at + octets).start;
    WireError { layer: Layer::Sdp, field, offset, expected, found: Found::Value(u64::from(found)), requirement }
}
