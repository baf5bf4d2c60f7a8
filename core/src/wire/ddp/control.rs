//! The DDP control octet: `T | L | Rsvd (4) | DV (2)` (RFC 5041 section 4.1).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Raw view of the first octet of a DDP segment. Every value is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Control(pub u8);

impl Control {
    /// The DDP version of RFC 5041. The specification of the RDMA Consortium has version 0.
    pub const VERSION: u8 = 1;

    /// The control octet with these fields and Rsvd zero. `version` is cut to two bits.
    #[must_use]
    pub const fn new(tagged: bool, last: bool, version: u8) -> Self {
        Control((tagged as u8) << 7 | (last as u8) << 6 | version & 3)
    }

    /// T: the segment is tagged.
    #[must_use]
    pub const fn tagged(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// L: the segment is the last of its message.
    #[must_use]
    pub const fn last(self) -> bool {
        self.0 & 0x40 != 0
    }

    /// Rsvd: four bits, zero when sent, ignored when received.
    #[must_use]
    pub const fn reserved(self) -> u8 {
        self.0 >> 2 & 0xf
    }

    /// DV: the DDP version.
    #[must_use]
    pub const fn version(self) -> u8 {
        self.0 & 3
    }
}
