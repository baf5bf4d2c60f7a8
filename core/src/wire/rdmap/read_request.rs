//! The RDMA Read Request header (RFC 5040 section 4.4), right after the untagged DDP header.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                     Data Sink STag (SinkSTag)                 |
//! +---------------------------------------------------------------+
//! |                  Data Sink Tagged Offset (SinkTO)             |
//! +                                                               +
//! |                                                               |
//! +---------------------------------------------------------------+
//! |                  RDMA Read Message Size (RDMARDSZ)            |
//! +---------------------------------------------------------------+
//! |                     Data Source STag (SrcSTag)                |
//! +---------------------------------------------------------------+
//! |                 Data Source Tagged Offset (SrcTO)             |
//! +                                                               +
//! |                                                               |
//! +---------------------------------------------------------------+
//! ```
//!
//! A [`Terminate`](super::Terminate) can contain a copy of the header. This module does not check
//! whether the requester has the right to read the source buffer.

use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Layer, WireError};
use crate::requirement;
use crate::wire::exact::exact;

/// Raw view of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawReadRequest {
    /// Octets 0 to 3: SinkSTag.
    pub sink_stag: U32,
    /// Octets 4 to 11: SinkTO, an offset in octets.
    pub sink_to: U64,
    /// Octets 12 to 15: RDMARDSZ, a length in octets.
    pub rdmardsz: U32,
    /// Octets 16 to 19: SrcSTag.
    pub src_stag: U32,
    /// Octets 20 to 27: SrcTO, an offset in octets.
    pub src_to: U64,
}

impl RawReadRequest {
    /// Length of the header in octets.
    pub const LEN: usize = 28;
}

/// A Read Request. Every value of every field is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ReadRequest {
    /// STag of the requester's buffer. The Response carries the same STag.
    pub sink_stag: u32,
    /// Tagged Offset in the requester's buffer at which the data is placed, in octets.
    pub sink_to: u64,
    /// Number of octets to read, 0 to 2^32 - 1.
    pub rdmardsz: u32,
    /// STag of the buffer to read.
    pub src_stag: u32,
    /// Tagged Offset in the buffer to read at which the data starts, in octets.
    pub src_to: u64,
}

impl ReadRequest {
    /// Reads the payload of a Read Request message.
    ///
    /// # Errors
    /// The length is not 28 octets (RDMAP-4.4-1).
    pub fn parse(octets: &[u8]) -> Result<Self, WireError> {
        let requirement = requirement!("RDMAP-4.4-1");
        exact(octets, Layer::Rdmap, "RDMA Read Request header", "28 octets", requirement).map(Self::from_raw)
    }

    /// The fields of a raw header.
    #[must_use]
    pub fn from_raw(raw: &RawReadRequest) -> Self {
        ReadRequest {
            sink_stag: raw.sink_stag.get(),
            sink_to: raw.sink_to.get(),
            rdmardsz: raw.rdmardsz.get(),
            src_stag: raw.src_stag.get(),
            src_to: raw.src_to.get(),
        }
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawReadRequest {
        RawReadRequest {
            sink_stag: U32::new(self.sink_stag),
            sink_to: U64::new(self.sink_to),
            rdmardsz: U32::new(self.rdmardsz),
            src_stag: U32::new(self.src_stag),
            src_to: U64::new(self.src_to),
        }
    }

    /// Appends the header to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_raw().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The fields have the offsets of RFC 5040 Figure 6. In this test, each field is filled with a
    /// different octet.
    #[test]
    fn fields_are_where_figure_6_has_them() {
        let mut expected = vec![0x11; 4];
        expected.extend([0x22; 8]);
        expected.extend([0x33; 4]);
        expected.extend([0x44; 4]);
        expected.extend([0x55; 8]);
        let request = ReadRequest {
            sink_stag: 0x1111_1111,
            sink_to: 0x2222_2222_2222_2222,
            rdmardsz: 0x3333_3333,
            src_stag: 0x4444_4444,
            src_to: 0x5555_5555_5555_5555,
        };
        let mut out = Vec::new();
        request.emit(&mut out);
        assert_eq!(out, expected);
        assert_eq!(out.len(), RawReadRequest::LEN);
    }

    #[test]
    fn only_28_octets_are_a_header() {
        for length in [0, 27, 29] {
            let error = ReadRequest::parse(&vec![0; length]).unwrap_err();
            assert_eq!(error.requirement, Some(requirement!("RDMAP-4.4-1")));
        }
        assert_eq!(ReadRequest::parse(&[0; 28]), Ok(ReadRequest::default()));
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read_back(
            sink_stag: u32, sink_to: u64, rdmardsz: u32, src_stag: u32, src_to: u64,
        ) {
            let request = ReadRequest { sink_stag, sink_to, rdmardsz, src_stag, src_to };
            let mut out = Vec::new();
            request.emit(&mut out);
            prop_assert_eq!(ReadRequest::parse(&out), Ok(request));
        }

        #[test]
        fn no_octets_panic(octets: Vec<u8>) {
            let _ = ReadRequest::parse(&octets);
        }
    }
}
