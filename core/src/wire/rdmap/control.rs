//! The RDMAP control octet: `RV (2) | Rsv (2) | Opcode (4)` (RFC 5040 section 4.1).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Opcode;

/// Raw view of octet 1 of a DDP segment that carries RDMAP. Every value is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Control(pub u8);

impl Control {
    /// The RDMAP version of RFC 5040. The specification of the RDMA Consortium has version 0.
    pub const VERSION: u8 = 1;

    /// The control octet with these fields and Rsv zero. `version` is cut to two bits.
    #[must_use]
    pub const fn new(opcode: Opcode, version: u8) -> Self {
        Control((version & 3) << 6 | opcode.0 & 0xf)
    }

    /// RV: the RDMAP version.
    #[must_use]
    pub const fn version(self) -> u8 {
        self.0 >> 6
    }

    /// Rsv: two bits, zero when sent, ignored when received.
    #[must_use]
    pub const fn reserved(self) -> u8 {
        self.0 >> 4 & 3
    }

    /// The opcode, assigned or not.
    #[must_use]
    pub const fn opcode(self) -> Opcode {
        Opcode(self.0 & 0xf)
    }
}
