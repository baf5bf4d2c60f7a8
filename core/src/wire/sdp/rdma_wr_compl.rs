//! RdmaWrCompl: the RdmaWrCompl Header (section 6.3.6, Figure 9) behind the BSDH: one 32-bit word, the same in both field orders.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                              Len                              |
//! +---------------------------------------------------------------+
//! ```

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{extension, field};
use super::{FieldOrder, RawHeader};
use crate::error::WireError;

/// The header, raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawRdmaWrCompl {
    /// Octets 16 to 19, in octets.
    pub len: U32,
}

impl RawHeader for RawRdmaWrCompl {}

/// A RdmaWrCompl Header that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RdmaWrCompl {
    /// Octets written by RDMA Write into the buffer of the oldest open SinkAvail, at least 1.
    pub len: u32,
}

impl RdmaWrCompl {
    /// Reads the header from the octets behind the BSDH; gives what follows it, too.
    ///
    /// # Errors
    /// Less than 4 octets, or a Len of zero. Offsets count from the start of the message.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, rest): (RawRdmaWrCompl, _) = extension(octets, order, "RdmaWrCompl Header")?;
        let len = raw.len.get();
        // No row fixes it: an invalid value without a rule of its own is a protocol violation (section 8.2.2).
        field(len > 0, "Len", (order, 16, 4), "at least 1", len, None)?;
        Ok((RdmaWrCompl { len }, rest))
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawRdmaWrCompl {
        RawRdmaWrCompl { len: U32::new(self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    /// Figure 9.
    #[test]
    fn one_word_in_either_order() {
        for order in [Figure, Mirrored] {
            let mut out = Vec::new();
            RdmaWrCompl { len: 0x0102_0304 }.to_raw().append(order, &mut out);
            assert_eq!(out, [1, 2, 3, 4]);
            assert_eq!(RdmaWrCompl::parse(&out, order), Ok((RdmaWrCompl { len: 0x0102_0304 }, &[][..])));
        }
        assert!(RdmaWrCompl::parse(&[0; 3], Figure).is_err());
    }

    #[test]
    fn nothing_moved_is_no_completion() {
        let error = RdmaWrCompl::parse(&[0; 4], Figure).unwrap_err();
        assert_eq!((error.field, error.offset, error.requirement), ("Len", 16, None));
    }
}
