//! Atomic Operations: Request (52 octets) and Response (12 octets) headers after the untagged DDP
//! header (RFC 7306 section 5.2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------------------------------+-------+
//! |                 Reserved (Not Used)                   |AOpCode|  Request, Figure 4
//! +-------------------------------------------------------+-------+
//! |                      Request Identifier                       |
//! +---------------------------------------------------------------+
//! |                          Remote STag                          |
//! +---------------------------------------------------------------+
//! |                 Remote Tagged Offset (64 bits)                |
//! +---------------------------------------------------------------+
//! |                   Add or Swap Data (64 bits)                  |
//! +---------------------------------------------------------------+
//! |                   Add or Swap Mask (64 bits)                  |
//! +---------------------------------------------------------------+
//! |                     Compare Data (64 bits)                    |
//! +---------------------------------------------------------------+
//! |                     Compare Mask (64 bits)                    |
//! +---------------------------------------------------------------+
//!
//! +---------------------------------------------------------------+
//! |                  Original Request Identifier                  |  Response, Figure 6
//! +---------------------------------------------------------------+
//! |              Original Remote Data Value (64 bits)             |
//! +---------------------------------------------------------------+
//! ```
//!
//! For the Response, RFC 7306 section 4 shows 32 octets, but Figure 6 shows 12. This module follows
//! Figure 6. It does not check whether the remote address is aligned, because it does not know the
//! start address of the buffer.

use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Found, Layer, WireError};
use crate::requirement;
use crate::wire::exact::exact;
use crate::wire::open_enum::open_enum;

open_enum! {
    /// AOpCode, four bits (RFC 7306 Figure 5 and section 10.1).
    AtomicOpcode(u8), debug "{:#x} ({})", otherwise "unassigned" {
        /// Adds with a mask and returns the value before the addition.
        FETCH_ADD = 0 => "FetchAdd",
        /// Named "Reserved" in the IANA registry.
        RESERVED = 1 => "reserved",
        /// Compares with a mask, swaps with another mask, and returns the value before the swap.
        CMP_SWAP = 2 => "CmpSwap",
    }
}

/// Raw view of the Request header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawAtomicRequest {
    /// Octets 0 to 3: 28 reserved bits, then AOpCode.
    pub opcode_word: U32,
    /// Octets 4 to 7.
    pub request_identifier: U32,
    /// Octets 8 to 11.
    pub remote_stag: U32,
    /// Octets 12 to 19: an offset in octets.
    pub remote_tagged_offset: U64,
    /// Octets 20 to 27: Add Data or Swap Data.
    pub add_or_swap_data: U64,
    /// Octets 28 to 35: Add Mask or Swap Mask.
    pub add_or_swap_mask: U64,
    /// Octets 36 to 43.
    pub compare_data: U64,
    /// Octets 44 to 51.
    pub compare_mask: U64,
}

impl RawAtomicRequest {
    /// Length of the header in octets.
    pub const LEN: usize = 52;

    /// AOpCode, assigned or not.
    #[must_use]
    pub fn opcode(&self) -> AtomicOpcode {
        AtomicOpcode((self.opcode_word.get() & 0xf) as u8)
    }

    /// The 28 reserved bits: zero when sent, ignored when received.
    #[must_use]
    pub fn reserved(&self) -> u32 {
        self.opcode_word.get() >> 4
    }
}

/// Raw view of the Response header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawAtomicResponse {
    /// Octets 0 to 3: the Request Identifier of the Request.
    pub original_request_identifier: U32,
    /// Octets 4 to 11: the value before the operation.
    pub original_remote_data_value: U64,
}

impl RawAtomicResponse {
    /// Length of the header in octets.
    pub const LEN: usize = 12;
}

/// The operation on the 64 bits at the remote address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AtomicOperation {
    /// FetchAdd (RFC 7306 5.1.1).
    FetchAdd {
        /// The number to add.
        add_data: u64,
        /// A set bit discards the carry out of that bit. The mask 0 gives a plain 64-bit addition.
        add_mask: u64,
    },
    /// CmpSwap (RFC 7306 5.1.2).
    CmpSwap {
        /// The value to write if the comparison succeeds.
        swap_data: u64,
        /// The bits to write.
        swap_mask: u64,
        /// The value to compare with the remote value.
        compare_data: u64,
        /// The bits to compare.
        compare_mask: u64,
    },
}

/// A valid Atomic Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AtomicRequest {
    /// Number of the request, chosen by the requester.
    pub request_identifier: u32,
    /// STag of the responder's buffer.
    pub remote_stag: u32,
    /// Tagged Offset of the 64 bits in the buffer, in octets. The address must be 64-bit aligned.
    pub remote_tagged_offset: u64,
    /// The operation and its operands.
    pub operation: AtomicOperation,
}

impl AtomicRequest {
    /// Reads the payload of an Atomic Request message. Reserved bits and the compare operands of
    /// FetchAdd are ignored.
    ///
    /// # Errors
    /// The length is not 52 octets, or AOpCode is neither FetchAdd nor CmpSwap.
    pub fn parse(octets: &[u8]) -> Result<Self, WireError> {
        let requirement = requirement!("RDMAP-7306.5.2.1-1");
        let raw: &RawAtomicRequest = exact(octets, Layer::Rdmap, "Atomic Request header", "52 octets", requirement)?;
        let operation = match raw.opcode() {
            AtomicOpcode::FETCH_ADD => {
                AtomicOperation::FetchAdd { add_data: raw.add_or_swap_data.get(), add_mask: raw.add_or_swap_mask.get() }
            }
            AtomicOpcode::CMP_SWAP => AtomicOperation::CmpSwap {
                swap_data: raw.add_or_swap_data.get(),
                swap_mask: raw.add_or_swap_mask.get(),
                compare_data: raw.compare_data.get(),
                compare_mask: raw.compare_mask.get(),
            },
            AtomicOpcode(other) => {
                return Err(WireError {
                    layer: Layer::Rdmap,
                    field: "AOpCode",
                    offset: 3,
                    expected: "0 (FetchAdd) or 2 (CmpSwap)",
                    found: Found::Value(u64::from(other)),
                    requirement: Some(requirement!("RDMAP-7306.5.2.1-5")),
                });
            }
        };
        Ok(AtomicRequest {
            request_identifier: raw.request_identifier.get(),
            remote_stag: raw.remote_stag.get(),
            remote_tagged_offset: raw.remote_tagged_offset.get(),
            operation,
        })
    }

    /// The raw header. FetchAdd has Compare Data 0 and Compare Mask all ones (RFC 7306 5.2.1).
    #[must_use]
    pub fn to_raw(self) -> RawAtomicRequest {
        let (opcode, operands) = match self.operation {
            AtomicOperation::FetchAdd { add_data, add_mask } => {
                (AtomicOpcode::FETCH_ADD, [add_data, add_mask, 0, u64::MAX])
            }
            AtomicOperation::CmpSwap { swap_data, swap_mask, compare_data, compare_mask } => {
                (AtomicOpcode::CMP_SWAP, [swap_data, swap_mask, compare_data, compare_mask])
            }
        };
        let [add_or_swap_data, add_or_swap_mask, compare_data, compare_mask] = operands.map(U64::new);
        RawAtomicRequest {
            opcode_word: U32::new(u32::from(opcode.0)),
            request_identifier: U32::new(self.request_identifier),
            remote_stag: U32::new(self.remote_stag),
            remote_tagged_offset: U64::new(self.remote_tagged_offset),
            add_or_swap_data,
            add_or_swap_mask,
            compare_data,
            compare_mask,
        }
    }

    /// Appends the header to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_raw().as_bytes());
    }
}

/// An Atomic Response. Every value is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AtomicResponse {
    /// Request Identifier of the answered Request.
    pub original_request_identifier: u32,
    /// The value of the 64 bits before the operation.
    pub original_remote_data_value: u64,
}

impl AtomicResponse {
    /// Reads the payload of an Atomic Response message.
    ///
    /// # Errors
    /// The length is not 12 octets (RDMAP-7306.5.2.2-1).
    pub fn parse(octets: &[u8]) -> Result<Self, WireError> {
        let requirement = requirement!("RDMAP-7306.5.2.2-1");
        let raw: &RawAtomicResponse = exact(octets, Layer::Rdmap, "Atomic Response header", "12 octets", requirement)?;
        Ok(AtomicResponse {
            original_request_identifier: raw.original_request_identifier.get(),
            original_remote_data_value: raw.original_remote_data_value.get(),
        })
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawAtomicResponse {
        RawAtomicResponse {
            original_request_identifier: U32::new(self.original_request_identifier),
            original_remote_data_value: U64::new(self.original_remote_data_value),
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

    fn emitted(request: AtomicRequest) -> Vec<u8> {
        let mut out = Vec::new();
        request.emit(&mut out);
        out
    }

    /// Tests the header of RFC 7306 Figure 4 with the operands that section 5.2.1 requires for a
    /// FetchAdd.
    #[test]
    fn fetch_add_sends_compare_mask_all_ones() {
        let operation = AtomicOperation::FetchAdd { add_data: 5, add_mask: 0 };
        let request =
            AtomicRequest { request_identifier: 1, remote_stag: 0x200, remote_tagged_offset: 0x2000, operation };
        let mut expected = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x20, 0];
        expected.extend([0, 0, 0, 0, 0, 0, 0, 5]);
        expected.extend([0; 16]);
        expected.extend([0xff; 8]);
        assert_eq!(emitted(request), expected);
        assert_eq!(expected.len(), RawAtomicRequest::LEN);
        // The parser ignores reserved bits and the fields that a FetchAdd does not use.
        expected[36..].fill(0x5a);
        expected[..3].fill(0xff);
        expected[3] = 0xf0;
        assert_eq!(AtomicRequest::parse(&expected), Ok(request));
    }

    /// The operands of CmpSwap have the offsets of RFC 7306 Figure 4.
    #[test]
    fn cmp_swap_operands_in_the_order_of_figure_4() {
        let operation = AtomicOperation::CmpSwap {
            swap_data: 0x1111_1111_1111_1111,
            swap_mask: 0x2222_2222_2222_2222,
            compare_data: 0x3333_3333_3333_3333,
            compare_mask: 0x4444_4444_4444_4444,
        };
        let request = AtomicRequest { request_identifier: 2, remote_stag: 3, remote_tagged_offset: 8, operation };
        let octets = emitted(request);
        assert_eq!(octets[..4], [0, 0, 0, 2]);
        assert_eq!((&octets[20..28], &octets[28..36]), (&[0x11; 8][..], &[0x22; 8][..]));
        assert_eq!((&octets[36..44], &octets[44..52]), (&[0x33; 8][..], &[0x44; 8][..]));
    }

    #[test]
    fn other_opcodes_are_named() {
        for opcode in [1u8, 3, 15] {
            let mut octets = [0; RawAtomicRequest::LEN];
            octets[3] = opcode;
            let error = AtomicRequest::parse(&octets).unwrap_err();
            assert_eq!((error.field, error.found), ("AOpCode", Found::Value(u64::from(opcode))));
        }
        assert_eq!(AtomicOpcode(1).name(), "reserved");
        assert_eq!(AtomicOpcode(9).name(), "unassigned");
    }

    /// The Response has the fields of RFC 7306 Figure 6.
    #[test]
    fn response_has_twelve_octets() {
        let response = AtomicResponse { original_request_identifier: 1, original_remote_data_value: 7 };
        let mut out = Vec::new();
        response.emit(&mut out);
        assert_eq!(out, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(AtomicResponse::parse(&out), Ok(response));
        assert!(AtomicResponse::parse(&out[..11]).is_err());
        assert!(AtomicResponse::parse(&[0; 32]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read_back(
            request_identifier: u32, remote_stag: u32, remote_tagged_offset: u64, swap: bool, operands: [u64; 4],
        ) {
            let [a, b, compare_data, compare_mask] = operands;
            let operation = if swap {
                AtomicOperation::CmpSwap { swap_data: a, swap_mask: b, compare_data, compare_mask }
            } else {
                AtomicOperation::FetchAdd { add_data: a, add_mask: b }
            };
            let request = AtomicRequest { request_identifier, remote_stag, remote_tagged_offset, operation };
            prop_assert_eq!(AtomicRequest::parse(&emitted(request)), Ok(request));
            let response = AtomicResponse { original_request_identifier: remote_stag, original_remote_data_value: a };
            let mut out = Vec::new();
            response.emit(&mut out);
            prop_assert_eq!(AtomicResponse::parse(&out), Ok(response));
        }

        #[test]
        fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = AtomicRequest::parse(&octets);
            let _ = AtomicResponse::parse(&octets);
        }
    }
}
