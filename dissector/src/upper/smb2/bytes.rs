//! [`Bytes`]: reads numbers and text from the bytes of a message.
//!
//! Offsets and lengths come from the wire. Each method checks that the bytes contain the value, and
//! returns `None` if they do not.

use weft_core::text::visible_in_line;

/// Maximum number of UTF-16 code units that [`Bytes::text`] reads.
const MAX_TEXT_UNITS: usize = 1024;

/// The bytes of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    /// The `LEN` bytes at offset `at`.
    pub(super) fn array<const LEN: usize>(self, at: usize) -> Option<[u8; LEN]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    /// The byte at offset `at`.
    pub(super) fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    /// The little-endian 16-bit number at offset `at`.
    pub(super) fn u16(self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    /// The little-endian 32-bit number at offset `at`.
    pub(super) fn u32(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// The little-endian 64-bit number at offset `at`.
    pub(super) fn u64(self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    /// The `len` bytes at offset `at`.
    pub(super) fn slice(self, at: usize, len: usize) -> Option<&'a [u8]> {
        self.0.get(at..at.checked_add(len)?)
    }

    /// The UTF-16 text in the `len` bytes at offset `at`. Control characters are escapes. Only the
    /// first [`MAX_TEXT_UNITS`] code units are read.
    pub(super) fn text(self, at: usize, len: usize) -> Option<String> {
        let (units, _) = self.slice(at, len)?.as_chunks::<2>();
        let units = units.iter().take(MAX_TEXT_UNITS).map(|unit| u16::from_le_bytes(*unit));
        let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        Some(visible_in_line(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_what_is_there() {
        let bytes = Bytes(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((bytes.u8(7), bytes.u8(8)), (Some(8), None));
        assert_eq!((bytes.u16(6), bytes.u16(7)), (Some(0x0807), None));
        assert_eq!((bytes.u32(0), bytes.u32(5)), (Some(0x0403_0201), None));
        assert_eq!((bytes.u64(0), bytes.u64(1)), (Some(0x0807_0605_0403_0201), None));
        assert_eq!((bytes.slice(8, 0), bytes.slice(9, 0)), (Some(&[][..]), None));
        assert_eq!((bytes.slice(1, usize::MAX), bytes.array::<4>(usize::MAX)), (None, None));
    }

    #[test]
    fn text_has_no_control_characters_and_a_maximum_length() {
        // A line feed, and a surrogate without its pair. The last byte is not a code unit.
        let bytes = [b'a', 0, b'\n', 0, 0x00, 0xd8, b'b', 0, 1];
        assert_eq!(Bytes(&bytes).text(0, 9).as_deref(), Some("a\\x0a\u{fffd}b"));
        assert_eq!(Bytes(&bytes).text(0, 10), None);
        let long = [b'x', 0].repeat(MAX_TEXT_UNITS + 1);
        assert_eq!(Bytes(&long).text(0, long.len()).map(|text| text.len()), Some(MAX_TEXT_UNITS));
    }
}
