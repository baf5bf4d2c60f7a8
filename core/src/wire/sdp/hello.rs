//! The Hello Header (section 6.2.1 of the SDP draft, Figure 5). It follows the BSDH (base header)
//! in a Hello message.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+---------------+-------+-------+
//! |           MaxAdverts          |      Rsvd     | MinV  | MajV  |  mirrored: MajV, MinV, Rsvd, MaxAdverts
//! +-------------------------------+---------------+-------+-------+
//! |                          DesRemRcvSz                          |
//! +---------------------------------------------------------------+
//! |                          LocalRcvSz                           |
//! +-------------------------------+-------------------------------+
//! |             LocIRD            |             LocORD            |  mirrored: LocORD, LocIRD
//! +-------------------------------+-------------------------------+
//! ```
//!
//! The receiver decides whether it accepts the versions. This module accepts all versions.

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{MAX_SIZE, extension, field};
use super::{FieldOrder, MIN_PRIVATE_BUFFER, RawHeader};
use crate::error::WireError;
use crate::requirement;

/// Raw octet with MajV and MinV. In figure order, MinV is in the high four bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct RawVersion(pub u8);

impl RawVersion {
    /// The octet in figure order. Both versions are cut to four bits.
    #[must_use]
    pub const fn new(majv: u8, minv: u8) -> Self {
        RawVersion(minv << 4 | majv & 0xf)
    }

    /// MajV, 0 to 15.
    #[must_use]
    pub const fn majv(self) -> u8 {
        self.0 & 0xf
    }

    /// MinV, 0 to 15.
    #[must_use]
    pub const fn minv(self) -> u8 {
        self.0 >> 4
    }
}

/// Raw view of `MaxAdverts | Rsvd | MinV | MajV`, the first word of the extended headers of Hello
/// and HelloAck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawAdverts {
    /// Octets 16 and 17.
    pub max_adverts: U16,
    /// Octet 18: zero when sent, not checked when received.
    pub rsvd: u8,
    /// Octet 19.
    pub version: RawVersion,
}

impl RawHeader for RawAdverts {
    fn unmirrored(self) -> Self {
        let [version, rsvd] = self.max_adverts.to_bytes();
        let max_adverts = U16::from_bytes([self.rsvd, self.version.0]);
        RawAdverts { max_adverts, rsvd, version: RawVersion(version.rotate_left(4)) }
    }

    fn mirrored(self) -> Self {
        let [high, low] = self.max_adverts.to_bytes();
        let max_adverts = U16::from_bytes([self.version.0.rotate_left(4), self.rsvd]);
        RawAdverts { max_adverts, rsvd: high, version: RawVersion(low) }
    }
}

/// Raw view of the Hello Header, with its fields in figure order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawHello {
    /// Octets 16 to 19.
    pub adverts: RawAdverts,
    /// Octets 20 to 23: a size in octets.
    pub des_rem_rcv_sz: U32,
    /// Octets 24 to 27: a size in octets.
    pub local_rcv_sz: U32,
    /// Octets 28 and 29.
    pub loc_ird: U16,
    /// Octets 30 and 31.
    pub loc_ord: U16,
}

impl RawHeader for RawHello {
    fn unmirrored(self) -> Self {
        RawHello { adverts: self.adverts.unmirrored(), loc_ird: self.loc_ord, loc_ord: self.loc_ird, ..self }
    }

    fn mirrored(self) -> Self {
        RawHello { adverts: self.adverts.mirrored(), loc_ird: self.loc_ord, loc_ord: self.loc_ird, ..self }
    }
}

/// A valid Hello Header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hello {
    /// Number of advertisements that the sender can store, 1 to 65535.
    pub max_adverts: u16,
    /// Major protocol version, 0 to 15. The draft has major version 1.
    pub majv: u8,
    /// Minor protocol version, 0 to 15. The draft has minor version 1.
    pub minv: u8,
    /// Requested size in octets of the peer's receive Private Buffers, at most 2^31.
    pub des_rem_rcv_sz: u32,
    /// Size of the sender's receive Private Buffers in octets, 37 to 2^31.
    pub local_rcv_sz: u32,
    /// Inbound RDMA Read queue depth, 1 to 65535.
    pub loc_ird: u16,
    /// Outbound RDMA Read queue depth, 1 to 65535.
    pub loc_ord: u16,
}

impl Hello {
    /// Reads the header from the octets after the BSDH. Returns the header and the octets after it.
    /// Rsvd is not checked.
    ///
    /// # Errors
    /// There are less than 16 octets, or a field is out of range. The offset in the error counts
    /// from the start of the message.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, rest): (RawHello, _) = extension(octets, order, "Hello Header")?;
        let hello = Hello {
            max_adverts: raw.adverts.max_adverts.get(),
            majv: raw.adverts.version.majv(),
            minv: raw.adverts.version.minv(),
            des_rem_rcv_sz: raw.des_rem_rcv_sz.get(),
            local_rcv_sz: raw.local_rcv_sz.get(),
            loc_ird: raw.loc_ird.get(),
            loc_ord: raw.loc_ord.get(),
        };
        let (adverts, ird, ord) =
            (requirement!("SDP-6.2.1.3-1"), requirement!("SDP-6.2.1.6-2"), requirement!("SDP-6.2.1.7-2"));
        let (least, most) = (requirement!("SDP-10-7"), requirement!("SDP-6.2.1.5-1"));
        let most_desired = requirement!("SDP-6.2.1.4-3");
        let Hello { max_adverts, des_rem_rcv_sz: desired, local_rcv_sz: local, loc_ird, loc_ord, .. } = hello;
        field(max_adverts > 0, "MaxAdverts", (order, 16, 2), "1 to 65535", 0, Some(adverts))?;
        field(desired <= MAX_SIZE, "DesRemRcvSz", (order, 20, 4), "at most 2^31", desired, Some(most_desired))?;
        field(local >= MIN_PRIVATE_BUFFER, "LocalRcvSz", (order, 24, 4), "at least 37", local, Some(least))?;
        field(local <= MAX_SIZE, "LocalRcvSz", (order, 24, 4), "at most 2^31", local, Some(most))?;
        field(loc_ird > 0, "LocIRD", (order, 28, 2), "1 to 65535", 0, Some(ird))?;
        field(loc_ord > 0, "LocORD", (order, 30, 2), "1 to 65535", 0, Some(ord))?;
        Ok((hello, rest))
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawHello {
        RawHello {
            adverts: RawAdverts {
                max_adverts: U16::new(self.max_adverts),
                rsvd: 0,
                version: RawVersion::new(self.majv, self.minv),
            },
            des_rem_rcv_sz: U32::new(self.des_rem_rcv_sz),
            local_rcv_sz: U32::new(self.local_rcv_sz),
            loc_ird: U16::new(self.loc_ird),
            loc_ord: U16::new(self.loc_ord),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;
    use crate::error::Found;

    const HELLO: Hello = Hello {
        max_adverts: 0x0102,
        majv: 1,
        minv: 2,
        des_rem_rcv_sz: 0x0304_0506,
        local_rcv_sz: 0x0708_090a,
        loc_ird: 0x0b0c,
        loc_ord: 0x0d0e,
    };

    /// Tests the header of Figure 5 in figure order and in mirrored order.
    #[test]
    fn both_orders() {
        let figure = [1, 2, 0, 0x21, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        let mirrored = [0x12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 11, 12];
        for (order, octets) in [(Figure, figure), (Mirrored, mirrored)] {
            let mut out = Vec::new();
            HELLO.to_raw().append(order, &mut out);
            assert_eq!(out, octets);
            assert_eq!(Hello::parse(&octets, order), Ok((HELLO, &[][..])));
        }
    }

    #[test]
    fn each_field_out_of_range_is_named_with_its_offset() {
        let error = |change: fn(&mut Hello), order| {
            let (mut hello, mut out) = (HELLO, Vec::new());
            change(&mut hello);
            hello.to_raw().append(order, &mut out);
            let error = Hello::parse(&out, order).unwrap_err();
            (error.field, error.offset, error.found)
        };
        assert_eq!(error(|hello| hello.max_adverts = 0, Figure), ("MaxAdverts", 16, Found::Value(0)));
        assert_eq!(error(|hello| hello.max_adverts = 0, Mirrored), ("MaxAdverts", 18, Found::Value(0)));
        assert_eq!(error(|hello| hello.loc_ird = 0, Figure), ("LocIRD", 28, Found::Value(0)));
        assert_eq!(error(|hello| hello.loc_ird = 0, Mirrored), ("LocIRD", 30, Found::Value(0)));
        assert_eq!(error(|hello| hello.loc_ord = 0, Figure), ("LocORD", 30, Found::Value(0)));
        assert_eq!(error(|hello| hello.local_rcv_sz = 36, Figure), ("LocalRcvSz", 24, Found::Value(36)));
        let too_much = (1 << 31) + 1;
        assert_eq!(
            error(|hello| hello.local_rcv_sz = (1 << 31) + 1, Figure),
            ("LocalRcvSz", 24, Found::Value(too_much))
        );
        assert_eq!(
            error(|hello| hello.des_rem_rcv_sz = (1 << 31) + 1, Figure),
            ("DesRemRcvSz", 20, Found::Value(too_much))
        );
        assert_eq!(Hello::parse(&[0; 15], Figure).unwrap_err().found, Found::Octets(15));
    }
}
