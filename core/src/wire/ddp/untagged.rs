//! The untagged DDP header (RFC 5041 section 4.3).
//!
//! ```text
//!  0               1               2               3
//! +-+-+-------+---+---------------+-------------------------------+
//! |T|L| Rsvd  |DV |         RsvdULP (5 octets)                    :
//! +-+-+-------+---+---------------+-------------------------------+
//! :                               |              QN               :
//! +-------------------------------+-------------------------------+
//! :                               |              MSN              :
//! +-------------------------------+-------------------------------+
//! :                               |              MO               :
//! +-------------------------------+-------------------------------+
//! :                               |  payload ...
//! ```

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{check_header, short};
use super::{Control, Msn};
use crate::error::WireError;
use crate::requirement;
use crate::wire::rdmap;

/// Raw view of the untagged header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawUntagged {
    /// Octet 0.
    pub control: Control,
    /// Octet 1: RDMAP's control octet.
    pub ulp_control: crate::wire::rdmap::Control,
    /// Octets 2 to 5: the STag to invalidate in a Send with Invalidate. In other messages, these
    /// octets are reserved and zero.
    pub ulp_word: U32,
    /// Octets 6 to 9: queue number.
    pub qn: U32,
    /// Octets 10 to 13: message sequence number. The first message of a queue has number 1.
    pub msn: U32,
    /// Octets 14 to 17: message offset, in octets.
    pub mo: U32,
}

impl RawUntagged {
    /// Length of the header in octets.
    pub const LEN: usize = 18;

    /// The message sequence number.
    #[must_use]
    pub const fn msn(&self) -> Msn {
        Msn::new(self.msn.get())
    }
}

/// Queue numbers that RDMAP uses (RFC 5040 section 4.3, RFC 7306 section 4).
pub mod queue {
    /// Sends and Immediate Data.
    pub const SEND: u32 = 0;
    /// RDMA Read Requests and Atomic Requests.
    pub const READ_REQUEST: u32 = 1;
    /// Terminate.
    pub const TERMINATE: u32 = 2;
    /// Atomic Responses.
    pub const ATOMIC_RESPONSE: u32 = 3;
}

/// The DDP fields of an untagged segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Untagged {
    /// L: the segment is the last of its message.
    pub last: bool,
    /// Queue number.
    pub qn: u32,
    /// Message sequence number.
    pub msn: Msn,
    /// Offset of the payload in its message, in octets.
    pub mo: u32,
}

/// The five octets that DDP reserves for RDMAP in an untagged header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntaggedUlp {
    /// RDMAP's control octet.
    pub control: rdmap::Control,
    /// The STag to invalidate in a Send with Invalidate; zero in other messages.
    pub word: u32,
}

impl Untagged {
    /// Reads the header of an untagged segment of DDP version `version`. Returns the header,
    /// RDMAP's five octets and the payload. Rsvd is not checked.
    ///
    /// # Errors
    /// The ULPDU has less than 18 octets, T is 1, or DV differs from `version`.
    pub fn parse(ulpdu: &[u8], version: u8) -> Result<(Self, UntaggedUlp, &[u8]), WireError> {
        let (raw, payload) = RawUntagged::ref_from_prefix(ulpdu)
            .map_err(|_| short(ulpdu, "18 octets of untagged header", requirement!("DDP-4.3-1")))?;
        check_header(raw.control, false, version)?;
        let untagged = Untagged { last: raw.control.last(), qn: raw.qn.get(), msn: raw.msn(), mo: raw.mo.get() };
        Ok((untagged, UntaggedUlp { control: raw.ulp_control, word: raw.ulp_word.get() }, payload))
    }

    /// The raw header in DDP version `version` (0 or 1) with RDMAP's octets.
    #[must_use]
    pub fn to_raw(self, version: u8, ulp: UntaggedUlp) -> RawUntagged {
        RawUntagged {
            control: Control::new(false, self.last, version),
            ulp_control: ulp.control,
            ulp_word: U32::new(ulp.word),
            qn: U32::new(self.qn),
            msn: self.msn.into(),
            mo: U32::new(self.mo),
        }
    }

    /// Appends the header to `out`. Returns the new length of `out`. The payload starts at this
    /// position.
    pub fn emit(self, version: u8, ulp: UntaggedUlp, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(self.to_raw(version, ulp).as_bytes());
        out.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Found;
    use crate::wire::rdmap::Opcode;
    use proptest::prelude::*;

    /// Tests the header of RFC 5041 Figure 4 in the first segment of a Send with Invalidate. RFC
    /// 5041 defines version 1. The specification of the RDMA Consortium defines version 0.
    #[test]
    fn both_versions() {
        let untagged = Untagged { last: false, qn: 0, msn: Msn::new(0x0102_0304), mo: 0x0506_0708 };
        for (version, first, second) in [(1, 0x01, 0x44), (0, 0x00, 0x04)] {
            let mut out = vec![9];
            let ulp = UntaggedUlp { control: rdmap::Control::new(Opcode::SEND_INVALIDATE, version), word: 0x1122_3344 };
            assert_eq!(untagged.emit(version, ulp, &mut out), 19);
            let fields = [0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
            assert_eq!((&out[1..3], &out[3..]), (&[first, second][..], &fields[..]));
            out.push(7);
            assert_eq!(Untagged::parse(&out[1..], version), Ok((untagged, ulp, &[7][..])));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut octets = [0; RawUntagged::LEN];
        octets[0] = 0x41;
        assert_eq!(Untagged::parse(&octets[..17], 1).unwrap_err().found, Found::Octets(17));
        let error = Untagged::parse(&octets, 0).unwrap_err();
        assert_eq!((error.field, error.found), ("DV", Found::Value(1)));
        octets[0] = 0xc1;
        assert_eq!(Untagged::parse(&octets, 1).unwrap_err().field, "T");
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read_back(
            last: bool, qn: u32, msn: u32, mo: u32, version in 0u8..2, ulp: u8, word: u32, payload: Vec<u8>,
        ) {
            let (untagged, mut out) = (Untagged { last, qn, msn: Msn::new(msn), mo }, Vec::new());
            let ulp = UntaggedUlp { control: rdmap::Control(ulp), word };
            let at = untagged.emit(version, ulp, &mut out);
            out.extend_from_slice(&payload);
            prop_assert_eq!(Untagged::parse(&out, version), Ok((untagged, ulp, &out[at..])));
        }

        #[test]
        fn no_octets_panic(octets: Vec<u8>, version: u8) {
            let _ = Untagged::parse(&octets, version);
        }
    }
}
