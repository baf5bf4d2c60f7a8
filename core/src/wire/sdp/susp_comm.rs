//! The SuspComm Header (section 6.5.1 of the SDP draft, Figure 15). It follows the BSDH (base
//! header) in a SuspComm message.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                           Constant1                           |
//! +-------------------------------+-------------------------------+
//! |      Destination TCP Port     |           Constant2           |  mirrored: Constant2, Destination TCP Port
//! +-------------------------------+-------------------------------+
//! ```

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{extension, field};
use super::{FieldOrder, RawHeader};
use crate::error::WireError;
use crate::requirement;

/// Raw view of the header, with its fields in figure order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawSuspComm {
    /// Octets 16 to 19: zero.
    pub constant1: U32,
    /// Octets 20 and 21: destination TCP port.
    pub port: U16,
    /// Octets 22 and 23: one.
    pub constant2: U16,
}

impl RawHeader for RawSuspComm {
    fn unmirrored(self) -> Self {
        RawSuspComm { port: self.constant2, constant2: self.port, ..self }
    }

    fn mirrored(self) -> Self {
        self.unmirrored()
    }
}

/// A valid SuspComm Header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SuspComm {
    /// TCP port to which the receiver of the message should open a new connection.
    pub port: u16,
}

impl SuspComm {
    /// Reads the header from the octets after the BSDH. Returns the header and the octets after it.
    ///
    /// # Errors
    /// There are less than 8 octets, Constant1 is not 0, or Constant2 is not 1. The offset in the
    /// error counts from the start of the message.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, rest): (RawSuspComm, _) = extension(octets, order, "SuspComm Header")?;
        let (first, second) = (raw.constant1.get(), raw.constant2.get());
        field(first == 0, "Constant1", (order, 16, 4), "0", first, Some(requirement!("SDP-6.5.1.2-1")))?;
        field(second == 1, "Constant2", (order, 22, 2), "1", u32::from(second), Some(requirement!("SDP-6.5.1.3-1")))?;
        Ok((SuspComm { port: raw.port.get() }, rest))
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawSuspComm {
        RawSuspComm { constant1: U32::ZERO, port: U16::new(self.port), constant2: U16::new(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    /// Tests the header of Figure 15. In mirrored order the two constants are adjacent, as in
    /// InfiniBand.
    #[test]
    fn both_orders() {
        let figure = [0, 0, 0, 0, 0x1b, 0x58, 0, 1];
        let mirrored = [0, 0, 0, 0, 0, 1, 0x1b, 0x58];
        for (order, octets) in [(Figure, figure), (Mirrored, mirrored)] {
            let mut out = Vec::new();
            SuspComm { port: 7000 }.to_raw().append(order, &mut out);
            assert_eq!(out, octets);
            assert_eq!(SuspComm::parse(&octets, order), Ok((SuspComm { port: 7000 }, &[][..])));
        }
    }

    #[test]
    fn constants_are_checked() {
        let field = |octets: [u8; 8], order| SuspComm::parse(&octets, order).unwrap_err();
        assert_eq!(field([0, 0, 0, 1, 0, 0, 0, 1], Figure).field, "Constant1");
        let error = field([0, 0, 0, 0, 0, 1, 0, 2], Figure);
        assert_eq!((error.field, error.offset), ("Constant2", 22));
        let error = field([0, 0, 0, 0, 0, 2, 0, 1], Mirrored);
        assert_eq!((error.field, error.offset), ("Constant2", 20));
        assert!(SuspComm::parse(&[0; 7], Figure).is_err());
    }
}
