//! Immediate Data (RFC 7306 section 6): exactly eight octets after the untagged DDP header.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                         Immediate Data                        |
//! +                                                               +
//! |                                                               |
//! +---------------------------------------------------------------+
//! ```
//!
//! Immediate Data and Immediate Data with Solicited Event differ only in their opcode. The octets
//! belong to the upper-layer protocol (ULP), so weft does not interpret their order.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Layer, WireError};
use crate::requirement;
use crate::wire::exact::exact;

/// Raw view of the message after the DDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawImmediate {
    /// Octets 0 to 7: the data of the ULP.
    pub data: [u8; RawImmediate::LEN],
}

impl RawImmediate {
    /// Length in octets of the message after the DDP header.
    pub const LEN: usize = 8;
}

/// Immediate Data. Every value is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Immediate {
    /// The ULP's eight octets.
    pub data: [u8; RawImmediate::LEN],
}

impl Immediate {
    /// Reads the payload of an Immediate Data message.
    ///
    /// # Errors
    /// The length is not 8 octets (RDMAP-7306.6.3-4).
    pub fn parse(octets: &[u8]) -> Result<Self, WireError> {
        let requirement = requirement!("RDMAP-7306.6.3-4");
        let raw: &RawImmediate = exact(octets, Layer::Rdmap, "Immediate Data", "8 octets", requirement)?;
        Ok(Immediate { data: raw.data })
    }

    /// Appends the octets to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neither_seven_nor_nine_octets_are_immediate_data() {
        let octets = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(Immediate::parse(&octets[..8]), Ok(Immediate { data: [1, 2, 3, 4, 5, 6, 7, 8] }));
        for wrong in [&octets[..0], &octets[..7], &octets[..9]] {
            let error = Immediate::parse(wrong).unwrap_err();
            assert_eq!(error.requirement, Some(requirement!("RDMAP-7306.6.3-4")));
        }
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read_back(data: [u8; 8]) {
            let mut out = Vec::new();
            Immediate { data }.emit(&mut out);
            prop_assert_eq!(Immediate::parse(&out), Ok(Immediate { data }));
        }

        #[test]
        fn no_octets_panic(octets: Vec<u8>) {
            let _ = Immediate::parse(&octets);
        }
    }
}
