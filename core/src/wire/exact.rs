//! Reads a header from octets that must have exactly the length of the header.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::RequirementId;
use crate::error::{Layer, WireError};

/// Returns the raw view of `octets`, which must have exactly the length of `T`. Otherwise returns
/// an error with the given `layer`, `field`, `expected` and `requirement`.
pub(crate) fn exact<'a, T: FromBytes + Immutable + KnownLayout + Unaligned>(
    octets: &'a [u8],
    layer: Layer,
    field: &'static str,
    expected: &'static str,
    requirement: RequirementId,
) -> Result<&'a T, WireError> {
    let requirement = Some(requirement);
    let error = WireError { requirement, ..WireError::too_short(layer, field, expected, octets.len()) };
    T::ref_from_bytes(octets).map_err(|_| error)
}
