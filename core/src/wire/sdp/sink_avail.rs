//! The SinkAvail Header (section 6.3.3 of the SDP draft, Figure 8). It follows the BSDH (base
//! header) in a SinkAvail message. The header is the same in both field orders. Payload of the
//! upper-layer protocol (ULP) can follow the header.
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
//! |                          NonDiscards                          |
//! +---------------------------------------------------------------+
//! ```
//!
//! This module does not check whether the advertisement is stale, or whether the advertised buffer
//! is smaller than a Private Buffer.

use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{MAX_SIZE, extension, field};
use super::{FieldOrder, RawHeader};
use crate::error::WireError;
use crate::requirement;

/// Raw view of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawSinkAvail {
    /// Octets 16 to 19: length of the buffer in octets.
    pub len: U32,
    /// Octets 20 to 23.
    pub stag: U32,
    /// Octets 24 to 31: the Tagged Offset.
    pub va: U64,
    /// Octets 32 to 35.
    pub non_discards: U32,
}

impl RawHeader for RawSinkAvail {}

/// A valid SinkAvail Header. It advertises a buffer that the receiver of the message may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SinkAvail {
    /// Length of the buffer in octets, 1 to 2^31.
    pub len: u32,
    /// STag of the buffer.
    pub stag: u32,
    /// Tagged Offset of the start of the buffer.
    pub va: u64,
    /// NonDiscards counter of the sender, modulo 2^32.
    pub non_discards: u32,
}

impl SinkAvail {
    /// Reads the header from the octets after the BSDH. Returns the header and the payload.
    ///
    /// # Errors
    /// There are less than 20 octets, or Len is out of range. The offset in the error counts from
    /// the start of the message.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, payload): (RawSinkAvail, _) = extension(octets, order, "SinkAvail Header")?;
        let len = raw.len.get();
        let position = (order, 16, 4);
        field(len > 0, "Len", position, "at least 1", len, Some(requirement!("SDP-6.3.3.1-2")))?;
        field(len <= MAX_SIZE, "Len", position, "at most 2^31", len, Some(requirement!("SDP-6.3.3.1-3")))?;
        let (stag, va, non_discards) = (raw.stag.get(), raw.va.get(), raw.non_discards.get());
        Ok((SinkAvail { len, stag, va, non_discards }, payload))
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawSinkAvail {
        RawSinkAvail {
            len: U32::new(self.len),
            stag: U32::new(self.stag),
            va: U64::new(self.va),
            non_discards: U32::new(self.non_discards),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    const OCTETS: [u8; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];

    /// Tests the header of Figure 8. In figure order and in mirrored order, the high word of VA
    /// comes first.
    #[test]
    fn fields_as_the_figure_has_them() {
        let sink_avail =
            SinkAvail { len: 0x0102_0304, stag: 0x0506_0708, va: 0x090a_0b0c_0d0e_0f10, non_discards: 0x1112_1314 };
        for order in [Figure, Mirrored] {
            let mut out = Vec::new();
            sink_avail.to_raw().append(order, &mut out);
            assert_eq!(out, OCTETS);
            out.push(7);
            assert_eq!(SinkAvail::parse(&out, order), Ok((sink_avail, &[7][..])));
        }
    }

    #[test]
    fn len_is_checked() {
        let parse = |len: u32| {
            let mut octets = OCTETS;
            octets[..4].copy_from_slice(&len.to_be_bytes());
            SinkAvail::parse(&octets, Figure).map_err(|error| error.requirement).map(|(sink_avail, _)| sink_avail.len)
        };
        assert_eq!(parse(0), Err(Some(requirement!("SDP-6.3.3.1-2"))));
        assert_eq!(parse(0x8000_0001), Err(Some(requirement!("SDP-6.3.3.1-3"))));
        assert_eq!(parse(0x8000_0000), Ok(0x8000_0000));
        assert!(SinkAvail::parse(&OCTETS[..19], Figure).is_err());
    }
}
