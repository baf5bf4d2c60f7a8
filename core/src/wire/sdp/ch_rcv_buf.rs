//! ChRcvBuf: the ChRcvBuf Header (section 6.4.1, Figure 13) behind the BSDH: one 32-bit word, the same in both field orders.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                             DesSz                             |
//! +---------------------------------------------------------------+
//! ```

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::extension;
use super::{FieldOrder, RawHeader};
use crate::error::WireError;

/// The header, raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawChRcvBuf {
    /// Octets 16 to 19, in octets.
    pub des_sz: U32,
}

impl RawHeader for RawChRcvBuf {}

/// A ChRcvBuf Header that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChRcvBuf {
    /// Wanted size of the other side's receive Private Buffers, in octets; the draft sets no bounds.
    pub des_sz: u32,
}

impl ChRcvBuf {
    /// Reads the header from the octets behind the BSDH; gives what follows it, too.
    ///
    /// # Errors
    /// Less than 4 octets.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, rest): (RawChRcvBuf, _) = extension(octets, order, "ChRcvBuf Header")?;
        let des_sz = raw.des_sz.get();
        Ok((ChRcvBuf { des_sz }, rest))
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawChRcvBuf {
        RawChRcvBuf { des_sz: U32::new(self.des_sz) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    /// Figure 13.
    #[test]
    fn one_word_in_either_order() {
        for order in [Figure, Mirrored] {
            let mut out = Vec::new();
            ChRcvBuf { des_sz: 0x0102_0304 }.to_raw().append(order, &mut out);
            assert_eq!(out, [1, 2, 3, 4]);
            assert_eq!(ChRcvBuf::parse(&out, order), Ok((ChRcvBuf { des_sz: 0x0102_0304 }, &[][..])));
        }
        assert!(ChRcvBuf::parse(&[0; 3], Figure).is_err());
    }
}
