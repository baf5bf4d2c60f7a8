//! The tagged DDP header (RFC 5041 section 4.2).
//!
//! ```text
//!  0               1               2               3
//! +-+-+-------+---+---------------+-------------------------------+
//! |T|L| Rsvd  |DV |   RsvdULP     |             STag              :
//! +-+-+-------+---+---------------+-------------------------------+
//! :                               |              TO               :
//! +-------------------------------+                               +
//! :                                                               :
//! +                               +-------------------------------+
//! :                               |  payload ...
//! ```

use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Control;
use super::check::{check_header, short};
use crate::error::WireError;
use crate::requirement;
use crate::wire::rdmap;

/// Raw view of the tagged header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawTagged {
    /// Octet 0.
    pub control: Control,
    /// Octet 1: RDMAP's control octet.
    pub ulp_control: crate::wire::rdmap::Control,
    /// Octets 2 to 5.
    pub stag: U32,
    /// Octets 6 to 13: TO, an offset in octets.
    pub tagged_offset: U64,
}

impl RawTagged {
    /// Length of the header in octets.
    pub const LEN: usize = 14;
}

/// The DDP fields of a tagged segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tagged {
    /// L: the segment is the last of its message.
    pub last: bool,
    /// STag of the Data Sink's buffer.
    pub stag: u32,
    /// TO: offset in octets at which the payload is placed in the buffer.
    pub tagged_offset: u64,
}

impl Tagged {
    /// Reads the header of a tagged segment of DDP version `version`. Returns the header, RDMAP's
    /// control octet and the payload. Rsvd is not checked.
    ///
    /// # Errors
    /// The ULPDU has less than 14 octets, T is 0, or DV differs from `version`.
    pub fn parse(ulpdu: &[u8], version: u8) -> Result<(Self, rdmap::Control, &[u8]), WireError> {
        let (raw, payload) = RawTagged::ref_from_prefix(ulpdu)
            .map_err(|_| short(ulpdu, "14 octets of tagged header", requirement!("DDP-4.2-1")))?;
        check_header(raw.control, true, version)?;
        let tagged = Tagged { last: raw.control.last(), stag: raw.stag.get(), tagged_offset: raw.tagged_offset.get() };
        Ok((tagged, raw.ulp_control, payload))
    }

    /// The raw header in DDP version `version` (0 or 1) with RDMAP's control octet.
    #[must_use]
    pub fn to_raw(self, version: u8, ulp_control: rdmap::Control) -> RawTagged {
        RawTagged {
            control: Control::new(true, self.last, version),
            ulp_control,
            stag: U32::new(self.stag),
            tagged_offset: U64::new(self.tagged_offset),
        }
    }

    /// Appends the header to `out`. Returns the new length of `out`. The payload starts at this
    /// position.
    pub fn emit(self, version: u8, ulp_control: rdmap::Control, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(self.to_raw(version, ulp_control).as_bytes());
        out.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Found;
    use crate::wire::rdmap::Opcode;
    use proptest::prelude::*;

    /// Tests the header of RFC 5041 Figure 3 in a Write to STag 0x11223344 and TO 0x1000. RFC 5041
    /// defines version 1. The specification of the RDMA Consortium defines version 0.
    #[test]
    fn both_versions() {
        let tagged = Tagged { last: true, stag: 0x1122_3344, tagged_offset: 0x1000 };
        for (version, first, second) in [(1, 0xc1, 0x40), (0, 0xc0, 0x00)] {
            let mut out = vec![9];
            let control = rdmap::Control::new(Opcode::WRITE, version);
            assert_eq!(tagged.emit(version, control, &mut out), 15);
            assert_eq!(out[1..], [first, second, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 0, 0, 0x10, 0]);
            out.push(7);
            assert_eq!(Tagged::parse(&out[1..], version), Ok((tagged, control, &[7][..])));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut octets = [0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Tagged::parse(&octets[..13], 1).unwrap_err().found, Found::Octets(13));
        let error = Tagged::parse(&octets, 0).unwrap_err();
        assert_eq!((error.field, error.requirement), ("DV", Some(requirement!("DDP-4.1-13"))));
        octets[0] = 0x41;
        assert_eq!(Tagged::parse(&octets, 1).unwrap_err().field, "T");
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read_back(
            last: bool, stag: u32, tagged_offset: u64, version in 0u8..2, ulp: u8, payload: Vec<u8>,
        ) {
            let (tagged, mut out) = (Tagged { last, stag, tagged_offset }, Vec::new());
            let at = tagged.emit(version, rdmap::Control(ulp), &mut out);
            out.extend_from_slice(&payload);
            prop_assert_eq!(Tagged::parse(&out, version), Ok((tagged, rdmap::Control(ulp), &out[at..])));
        }

        #[test]
        fn no_octets_panic(octets: Vec<u8>, version: u8) {
            let _ = Tagged::parse(&octets, version);
        }
    }
}
