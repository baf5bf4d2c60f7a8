//! ChRcvBufAck: the ChRcvBufAck Header (section 6.4.2, Figure 14) behind the BSDH: one 32-bit word, the same in both field orders.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                             ActSz                             |
//! +---------------------------------------------------------------+
//! ```

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{extension, field};
use super::{FieldOrder, MIN_PRIVATE_BUFFER, RawHeader};
use crate::error::WireError;
use crate::requirement;

/// The header, raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawChRcvBufAck {
    /// Octets 16 to 19, in octets.
    pub act_sz: U32,
}

impl RawHeader for RawChRcvBufAck {}

/// A ChRcvBufAck Header that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChRcvBufAck {
    /// Size of the sender's receive Private Buffers from now on, in octets, at least 37.
    pub act_sz: u32,
}

impl ChRcvBufAck {
    /// Reads the header from the octets behind the BSDH; gives what follows it, too.
    ///
    /// # Errors
    /// Less than 4 octets, or an ActSz below 37. Offsets count from the start of the message.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, rest): (RawChRcvBufAck, _) = extension(octets, order, "ChRcvBufAck Header")?;
        let act_sz = raw.act_sz.get();
        let least = requirement!("SDP-10-7");
        field(act_sz >= MIN_PRIVATE_BUFFER, "ActSz", (order, 16, 4), "at least 37", act_sz, Some(least))?;
        Ok((ChRcvBufAck { act_sz }, rest))
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawChRcvBufAck {
        RawChRcvBufAck { act_sz: U32::new(self.act_sz) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    /// Figure 14.
    #[test]
    fn one_word_in_either_order() {
        for order in [Figure, Mirrored] {
            let mut out = Vec::new();
            ChRcvBufAck { act_sz: 0x0102_0304 }.to_raw().append(order, &mut out);
            assert_eq!(out, [1, 2, 3, 4]);
            assert_eq!(ChRcvBufAck::parse(&out, order), Ok((ChRcvBufAck { act_sz: 0x0102_0304 }, &[][..])));
        }
        assert!(ChRcvBufAck::parse(&[0; 3], Figure).is_err());
    }

    #[test]
    fn a_buffer_holds_at_least_the_largest_header_and_an_octet() {
        assert!(ChRcvBufAck::parse(&[0, 0, 0, 37], Figure).is_ok());
        let error = ChRcvBufAck::parse(&[0, 0, 0, 36], Figure).unwrap_err();
        assert_eq!((error.field, error.requirement), ("ActSz", Some(requirement!("SDP-10-7"))));
    }
}
