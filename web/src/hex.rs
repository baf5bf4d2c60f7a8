//! Hexadecimal digits.

use std::fmt::Write as _;

/// Formats each byte as two lower-case digits.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(2 * octets.len()), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}
