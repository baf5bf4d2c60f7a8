//! [`Xdr`]: reads XDR items (RFC 4506) from the bytes of a message.

/// Why the rest of a message was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The next bytes were not captured, or weft did not store them.
    Missing,
    /// The message ends inside an item, or an item has an illegal value.
    Malformed,
    /// weft does not know the layout of the next item.
    Unknown,
}

impl Stop {
    /// The name in JSON and in filters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stop::Missing => "missing",
            Stop::Malformed => "malformed",
            Stop::Unknown => "unknown",
        }
    }

    /// A remark for the summary of a message.
    #[must_use]
    pub fn remark(self) -> &'static str {
        match self {
            Stop::Missing => "rest missing",
            Stop::Malformed => "malformed",
            Stop::Unknown => "rest not decoded",
        }
    }
}

/// Number of bytes of an opaque item with `len` bytes, with its padding.
pub(super) fn padded(len: u32) -> u64 {
    u64::from(len).next_multiple_of(4)
}

/// A position in the bytes of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Xdr<'a> {
    /// The known bytes of the message, from its start to the first unknown byte.
    bytes: &'a [u8],
    at: usize,
    /// Whether `bytes` are all bytes of the message.
    is_complete: bool,
}

impl<'a> Xdr<'a> {
    /// Starts at the first byte. `is_complete` is set if `bytes` are all bytes of the message.
    pub(super) fn new(bytes: &'a [u8], is_complete: bool) -> Self {
        Xdr { bytes, at: 0, is_complete }
    }

    /// Offset of the next byte. An offset that exceeds 32 bits is reported as `u32::MAX`.
    pub(super) fn at(&self) -> u32 {
        u32::try_from(self.at).unwrap_or(u32::MAX)
    }

    /// The known bytes that are not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Whether the message ends at the end of [`Xdr::rest`].
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// Bytes are missing.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Stop> {
        let short = if self.is_complete { Stop::Malformed } else { Stop::Missing };
        let taken = self.rest().get(..len).ok_or(short)?;
        self.at += len;
        Ok(taken)
    }

    /// Reads a number of 32 bits.
    ///
    /// # Errors
    /// Bytes are missing.
    pub(super) fn u32(&mut self) -> Result<u32, Stop> {
        let bytes = self.take(4)?;
        bytes.first_chunk().map(|word| u32::from_be_bytes(*word)).ok_or(Stop::Malformed)
    }

    /// Reads a number of 64 bits.
    ///
    /// # Errors
    /// Bytes are missing.
    pub(super) fn u64(&mut self) -> Result<u64, Stop> {
        let bytes = self.take(8)?;
        bytes.first_chunk().map(|word| u64::from_be_bytes(*word)).ok_or(Stop::Malformed)
    }

    /// Reads a flag: 0 or 1.
    ///
    /// # Errors
    /// Bytes are missing, or the value is not a flag.
    pub(super) fn flag(&mut self) -> Result<bool, Stop> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Stop::Malformed),
        }
    }

    /// Reads an opaque item of variable length, and skips its padding.
    ///
    /// # Errors
    /// Bytes are missing, or the item has more than `most` bytes.
    pub(super) fn opaque(&mut self, most: u32) -> Result<&'a [u8], Stop> {
        let len = self.u32()?;
        if len > most {
            return Err(Stop::Malformed);
        }
        self.padded(len)
    }

    /// Reads `len` bytes of an opaque item, and skips its padding.
    ///
    /// # Errors
    /// Bytes are missing.
    pub(super) fn padded(&mut self, len: u32) -> Result<&'a [u8], Stop> {
        let taken = self.take(usize::try_from(padded(len)).map_err(|_| Stop::Malformed)?)?;
        taken.get(..len as usize).ok_or(Stop::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    #[test]
    fn an_opaque_item_has_padding() {
        let bytes = hex("00000005 6162636465000000 00000001");
        let mut xdr = Xdr::new(&bytes, true);
        assert_eq!((xdr.opaque(5), xdr.at(), xdr.flag()), (Ok(&b"abcde"[..]), 12, Ok(true)));
        assert_eq!((xdr.u32(), xdr.rest()), (Err(Stop::Malformed), &[][..]));
        assert_eq!(Xdr::new(&bytes, true).opaque(4), Err(Stop::Malformed));
    }

    #[test]
    fn a_length_beyond_the_bytes_is_an_error() {
        for (is_complete, stop) in [(true, Stop::Malformed), (false, Stop::Missing)] {
            let bytes = hex("ffffffff 61626364");
            assert_eq!(Xdr::new(&bytes, is_complete).opaque(u32::MAX), Err(stop));
            assert_eq!(Xdr::new(&bytes[..3], is_complete).u32(), Err(stop));
            assert_eq!(Xdr::new(&bytes[..7], is_complete).u64(), Err(stop));
        }
        assert_eq!(Xdr::new(&hex("00000002"), true).flag(), Err(Stop::Malformed));
    }
}
