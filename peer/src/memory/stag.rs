//! STags, which identify memory, and their two parts, Index and Key (draft-hilland-rddp-verbs
//! section 7.2).

use std::fmt;

/// The Index of an STag: 24 bits. The RNIC chooses the Index, which is never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StagIndex(u32);

impl StagIndex {
    /// Greatest Index.
    pub const MAX: u32 = 0x00ff_ffff;

    /// Creates an Index from a number between 1 and [`MAX`](Self::MAX). `None` for any other
    /// number.
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        if value == 0 || value > Self::MAX { None } else { Some(StagIndex(value)) }
    }

    /// The Index as a number, 1 to [`MAX`](Self::MAX).
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The Key of an STag: eight bits. The Consumer chooses the Key each time the STag becomes Valid.
/// There is no default Key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StagKey(pub u8);

/// A complete STag: the Index is in the upper 24 bits, and the Key is in the lower eight bits
/// (VERBS-7.2-4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stag {
    /// The Index, which the RNIC chooses.
    pub index: StagIndex,
    /// The Key, which the Consumer chooses.
    pub key: StagKey,
}

impl Stag {
    /// Splits the 32 bits of an STag into Index and Key. `None` if the Index is 0.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match StagIndex::new(bits >> 8) {
            Some(index) => Some(Stag { index, key: StagKey((bits & 0xff) as u8) }),
            None => None,
        }
    }

    /// The 32 bits of the STag, in the form that the wire and Work Requests use.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.index.0 << 8 | self.key.0 as u32
    }
}

impl fmt::Debug for Stag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.to_bits())
    }
}

/// STag 0: physical memory, for local use on privileged Queue Pairs (draft section 7.2.1). STag 0
/// is not a [`Stag`], and no verb accepts STag 0.
pub const STAG_ZERO: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;

    #[test]
    fn index_above_key() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let stag = Stag { index: StagIndex::new(0x00ab_cdef).unwrap(), key: StagKey(0x5a) };
        proof.verify(requirement!("VERBS-4-1"), || assert_eq!(stag.to_bits(), 0xabcd_ef5a));
        proof.verify(requirement!("VERBS-7.2-4"), || {
            assert_eq!(Stag::from_bits(0xabcd_ef5a), Some(stag));
            assert_eq!(StagIndex::new(0x0100_0000), None);
        });
        proof.verify(requirement!("VERBS-7.2.1-2"), || assert_eq!(StagIndex::new(0), None));
        proof.verify(requirement!("VERBS-7.2.1-3"), || assert_eq!(Stag::from_bits(0x5a), None));
    }
}
