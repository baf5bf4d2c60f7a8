//! A complete DDP segment (one ULPDU): the tagged or untagged header, and the payload.

use zerocopy::FromBytes;

use super::{Control, RawTagged, RawUntagged};
use crate::error::{Layer, WireError};

/// Raw view of a DDP segment. The T bit shows whether the segment is tagged or untagged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// T=1: header and payload.
    Tagged(&'a RawTagged, &'a [u8]),
    /// T=0: header and payload.
    Untagged(&'a RawUntagged, &'a [u8]),
}

impl<'a> Segment<'a> {
    /// The octets after the header.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Segment::Tagged(_, payload) | Segment::Untagged(_, payload) => payload,
        }
    }

    /// Splits a ULPDU into header and payload.
    ///
    /// # Errors
    /// The ULPDU is shorter than the header that its T bit announces. Version and reserved bits are
    /// not checked.
    pub fn parse(ulpdu: &'a [u8]) -> Result<Self, WireError> {
        let short = |expected| WireError::too_short(Layer::Ddp, "segment", expected, ulpdu.len());
        let first = *ulpdu.first().ok_or_else(|| short("at least 14 octets of header"))?;
        if Control(first).tagged() {
            let (header, payload) =
                RawTagged::ref_from_prefix(ulpdu).map_err(|_| short("14 octets of tagged header"))?;
            Ok(Segment::Tagged(header, payload))
        } else {
            let (header, payload) =
                RawUntagged::ref_from_prefix(ulpdu).map_err(|_| short("18 octets of untagged header"))?;
            Ok(Segment::Untagged(header, payload))
        }
    }

    /// The DDP control octet.
    #[must_use]
    pub fn control(&self) -> Control {
        match self {
            Segment::Tagged(header, _) => header.control,
            Segment::Untagged(header, _) => header.control,
        }
    }

    /// The RDMAP control octet.
    #[must_use]
    pub fn ulp_control(&self) -> crate::wire::rdmap::Control {
        match self {
            Segment::Tagged(header, _) => header.ulp_control,
            Segment::Untagged(header, _) => header.ulp_control,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::rdmap::Opcode;
    use proptest::prelude::*;

    /// Tests the header of RFC 5041 Figure 3 in a Write to STag 0x11223344 and TO 0x1000. Also
    /// tests the header of RFC 5041 Figure 4 in a Send with MSN 1.
    #[test]
    fn headers_as_the_figures_have_them() {
        let write = [0xc1, 0x40, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 0, 0, 0x10, 0, 7];
        let Ok(Segment::Tagged(header, payload)) = Segment::parse(&write) else { panic!("tagged") };
        assert_eq!((header.stag.get(), header.tagged_offset.get(), payload), (0x1122_3344, 0x1000, &[7][..]));
        assert_eq!((header.control.last(), header.control.version()), (true, 1));
        assert_eq!(header.ulp_control.opcode(), Opcode::WRITE);

        let send = [0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        let Ok(Segment::Untagged(header, payload)) = Segment::parse(&send) else { panic!("untagged") };
        assert_eq!((header.qn.get(), header.msn.get(), header.mo.get(), payload.len()), (0, 1, 0, 0));
        assert_eq!(header.ulp_control.opcode(), Opcode::SEND);
        assert!(Segment::parse(&send[..17]).is_err());
        assert!(Segment::parse(&write[..13]).is_err());
    }

    proptest! {
        #[test]
        fn no_octets_panic(octets: Vec<u8>) {
            let _ = Segment::parse(&octets);
        }
    }
}
