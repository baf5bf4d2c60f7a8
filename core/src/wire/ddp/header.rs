//! A DDP header (tagged or untagged) without payload. A Terminate message contains a copy of the
//! DDP header that caused the error.

use zerocopy::{FromBytes, IntoBytes};

use super::{Control, RawTagged, RawUntagged};

/// Owned raw DDP header. The T bit shows whether the header is tagged or untagged. Nothing is
/// checked: version and reserved bits can have any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawHeader {
    /// T=1, 14 octets.
    Tagged(RawTagged),
    /// T=0, 18 octets.
    Untagged(RawUntagged),
}

impl RawHeader {
    /// Length in octets of the header whose first octet is `control`: 14 if T is set, otherwise 18.
    #[must_use]
    pub const fn len_of(control: Control) -> usize {
        if control.tagged() { RawTagged::LEN } else { RawUntagged::LEN }
    }

    /// Splits `octets` into the header at their start and the remaining octets. Returns `None` if
    /// `octets` is shorter than the header.
    #[must_use]
    pub fn from_prefix(octets: &[u8]) -> Option<(Self, &[u8])> {
        if Control(*octets.first()?).tagged() {
            RawTagged::read_from_prefix(octets).ok().map(|(header, rest)| (RawHeader::Tagged(header), rest))
        } else {
            RawUntagged::read_from_prefix(octets).ok().map(|(header, rest)| (RawHeader::Untagged(header), rest))
        }
    }

    /// The octets of the header. [`RawHeader::from_prefix`] reads them back as the same variant
    /// only if the T bit in `control` matches the variant.
    #[must_use]
    pub fn as_octets(&self) -> &[u8] {
        match self {
            RawHeader::Tagged(header) => header.as_bytes(),
            RawHeader::Untagged(header) => header.as_bytes(),
        }
    }

    /// The DDP control octet.
    #[must_use]
    pub const fn control(&self) -> Control {
        match self {
            RawHeader::Tagged(header) => header.control,
            RawHeader::Untagged(header) => header.control,
        }
    }

    /// The RDMAP control octet.
    #[must_use]
    pub const fn ulp_control(&self) -> crate::wire::rdmap::Control {
        match self {
            RawHeader::Tagged(header) => header.ulp_control,
            RawHeader::Untagged(header) => header.ulp_control,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_t_bit_decides_the_length() {
        let octets = [0x80; 20];
        let (header, rest) = RawHeader::from_prefix(&octets).unwrap();
        assert_eq!((header.as_octets(), rest.len()), (&octets[..14], 6));
        let octets = [0x7f; 20];
        let (header, rest) = RawHeader::from_prefix(&octets).unwrap();
        assert_eq!((header.as_octets(), rest.len()), (&octets[..18], 2));
        assert_eq!(RawHeader::from_prefix(&[0x80; 13]), None);
        assert_eq!(RawHeader::from_prefix(&[0; 17]), None);
        assert_eq!(RawHeader::from_prefix(&[]), None);
    }
}
