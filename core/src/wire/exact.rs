//! Reading a header that must fill its octets exactly.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::RequirementId;
use crate::error::{Found, Layer, WireError};

/// The raw view of `octets`, which hold one `T` and nothing else; the error has `field` and
/// `expected`.
pub(crate) fn exact<'a, T: FromBytes + Immutable + KnownLayout + Unaligned>(
    octets: &'a [u8],
    layer: Layer,
    field: &'static str,
    expected: &'static str,
    requirement: RequirementId,
) -> Result<&'a T, WireError> {
    T::ref_from_bytes(octets).map_err(|_| WireError {
        layer,
        field,
        offset: 0,
        expected,
        found: Found::Octets(octets.len()),
        requirement: Some(requirement),
    })
}
