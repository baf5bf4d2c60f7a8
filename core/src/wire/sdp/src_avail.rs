//! The SrcAvail Header (section 6.3.2 of the SDP draft, Figure 7). It follows the BSDH (base
//! header) in a SrcAvail message. The header is the same in both field orders. Payload can follow
//! the header.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                              Len                              |
//! +---------------------------------------------------------------+
//! |                              STag                             |
//! +---------------------------------------------------------------+
//! |                          VA (32-63)                           |
//! +---------------------------------------------------------------+
//! |                          VA (0-31)                            |
//! +---------------------------------------------------------------+
//! ```
//!
//! The current Mode determines whether payload is required or forbidden. This module does not know
//! the Mode.

use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{MAX_SIZE, extension, field};
use super::{FieldOrder, RawHeader};
use crate::error::WireError;
use crate::requirement;

/// Raw view of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawSrcAvail {
    /// Octets 16 to 19: length of the buffer in octets.
    pub len: U32,
    /// Octets 20 to 23.
    pub stag: U32,
    /// Octets 24 to 31: the Tagged Offset.
    pub va: U64,
}

impl RawHeader for RawSrcAvail {}

/// A valid SrcAvail Header. It advertises a buffer that the receiver of the message may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SrcAvail {
    /// Length of the buffer in octets, 1 to 2^31, including the octets in the payload.
    pub len: u32,
    /// STag of the buffer.
    pub stag: u32,
    /// Tagged Offset of the start of the buffer.
    pub va: u64,
}

impl SrcAvail {
    /// Reads the header from the octets after the BSDH. Returns the header and the payload.
    ///
    /// # Errors
    /// There are less than 16 octets, Len is out of range, or the payload is longer than Len. The
    /// offset in the error counts from the start of the message.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, payload): (RawSrcAvail, _) = extension(octets, order, "SrcAvail Header")?;
        let len = raw.len.get();
        let position = (order, 16, 4);
        field(len > 0, "Len", position, "at least 1", len, Some(requirement!("SDP-6.3.2.1-1")))?;
        field(len <= MAX_SIZE, "Len", position, "at most 2^31", len, Some(requirement!("SDP-6.3.2.1-2")))?;
        // The payload is a copy of the buffer's first octets.
        let holds = usize::try_from(len).map_or(true, |len| payload.len() <= len);
        field(holds, "Len", position, "at least the length of the payload", len, Some(requirement!("SDP-6.3.2.2-2")))?;
        Ok((SrcAvail { len, stag: raw.stag.get(), va: raw.va.get() }, payload))
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawSrcAvail {
        RawSrcAvail { len: U32::new(self.len), stag: U32::new(self.stag), va: U64::new(self.va) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    const SRC_AVAIL: SrcAvail = SrcAvail { len: 3, stag: 0x0506_0708, va: 0x090a_0b0c_0d0e_0f10 };
    const OCTETS: [u8; 16] = [0, 0, 0, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

    /// Tests the header of Figure 7. In figure order and in mirrored order, the high word of VA
    /// comes first.
    #[test]
    fn fields_as_the_figure_has_them() {
        for order in [Figure, Mirrored] {
            let mut out = Vec::new();
            SRC_AVAIL.to_raw().append(order, &mut out);
            assert_eq!(out, OCTETS);
            out.extend(b"abc");
            assert_eq!(SrcAvail::parse(&out, order), Ok((SRC_AVAIL, &b"abc"[..])));
        }
    }

    #[test]
    fn len_is_checked() {
        let requirement = |octets: &[u8]| SrcAvail::parse(octets, Figure).unwrap_err().requirement;
        let mut octets = OCTETS.to_vec();
        octets.extend(b"abcd");
        assert_eq!(requirement(&octets), Some(requirement!("SDP-6.3.2.2-2")));
        octets[3] = 0;
        assert_eq!(requirement(&octets), Some(requirement!("SDP-6.3.2.1-1")));
        octets[..4].copy_from_slice(&[0x80, 0, 0, 1]);
        assert_eq!(requirement(&octets), Some(requirement!("SDP-6.3.2.1-2")));
        octets[..4].copy_from_slice(&[0x80, 0, 0, 0]);
        assert!(SrcAvail::parse(&octets, Figure).is_ok());
        assert!(SrcAvail::parse(&octets[..15], Figure).is_err());
    }
}
