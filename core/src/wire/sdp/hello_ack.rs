//! The HelloAck Header (section 6.2.2 of the SDP draft, Figure 6). It follows the BSDH (base
//! header) in a HelloAck message.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+---------------+-------+-------+
//! |           MaxAdverts          |      Rsvd     | MinV  | MajV  |  mirrored: MajV, MinV, Rsvd, MaxAdverts
//! +-------------------------------+---------------+-------+-------+
//! |                            ActRcvSz                           |
//! +-------------------------------+-------------------------------+
//! |             LocIRD            |             LocORD            |  mirrored: LocORD, LocIRD
//! +-------------------------------+-------------------------------+
//! ```
//!
//! The draft requires the same versions as in the Hello. This module does not compare the versions,
//! because it does not know the Hello.

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{MAX_SIZE, extension, field};
use super::{FieldOrder, MIN_PRIVATE_BUFFER, RawAdverts, RawHeader, RawVersion};
use crate::error::WireError;
use crate::requirement;

/// Raw view of the HelloAck Header, with its fields in figure order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawHelloAck {
    /// Octets 16 to 19.
    pub adverts: RawAdverts,
    /// Octets 20 to 23: a size in octets.
    pub act_rcv_sz: U32,
    /// Octets 24 and 25.
    pub loc_ird: U16,
    /// Octets 26 and 27.
    pub loc_ord: U16,
}

impl RawHeader for RawHelloAck {
    fn unmirrored(self) -> Self {
        RawHelloAck { adverts: self.adverts.unmirrored(), loc_ird: self.loc_ord, loc_ord: self.loc_ird, ..self }
    }

    fn mirrored(self) -> Self {
        RawHelloAck { adverts: self.adverts.mirrored(), loc_ird: self.loc_ord, loc_ord: self.loc_ird, ..self }
    }
}

/// A valid HelloAck Header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HelloAck {
    /// Number of advertisements that the sender can store, 1 to 65535.
    pub max_adverts: u16,
    /// Major protocol version, 0 to 15. The draft has major version 1.
    pub majv: u8,
    /// Minor protocol version, 0 to 15. The draft has minor version 1.
    pub minv: u8,
    /// Size of the sender's receive Private Buffers in octets, 37 to 2^31.
    pub act_rcv_sz: u32,
    /// Inbound RDMA Read queue depth, 1 to 65535.
    pub loc_ird: u16,
    /// Outbound RDMA Read queue depth, 1 to 65535.
    pub loc_ord: u16,
}

impl HelloAck {
    /// Reads the header from the octets after the BSDH. Returns the header and the octets after it.
    /// Rsvd is not checked.
    ///
    /// # Errors
    /// There are less than 12 octets, or a field is out of range. The offset in the error counts
    /// from the start of the message.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, rest): (RawHelloAck, _) = extension(octets, order, "HelloAck Header")?;
        let ack = HelloAck {
            max_adverts: raw.adverts.max_adverts.get(),
            majv: raw.adverts.version.majv(),
            minv: raw.adverts.version.minv(),
            act_rcv_sz: raw.act_rcv_sz.get(),
            loc_ird: raw.loc_ird.get(),
            loc_ord: raw.loc_ord.get(),
        };
        let HelloAck { max_adverts, act_rcv_sz, loc_ird, loc_ord, .. } = ack;
        let (adverts, ird, ord) =
            (requirement!("SDP-6.2.2.3-1"), requirement!("SDP-6.2.2.5-2"), requirement!("SDP-6.2.2.6-2"));
        let (least, most) = (requirement!("SDP-10-7"), requirement!("SDP-6.2.2.4-1"));
        field(max_adverts > 0, "MaxAdverts", (order, 16, 2), "1 to 65535", 0, Some(adverts))?;
        field(act_rcv_sz >= MIN_PRIVATE_BUFFER, "ActRcvSz", (order, 20, 4), "at least 37", act_rcv_sz, Some(least))?;
        field(act_rcv_sz <= MAX_SIZE, "ActRcvSz", (order, 20, 4), "at most 2^31", act_rcv_sz, Some(most))?;
        field(loc_ird > 0, "LocIRD", (order, 24, 2), "1 to 65535", 0, Some(ird))?;
        field(loc_ord > 0, "LocORD", (order, 26, 2), "1 to 65535", 0, Some(ord))?;
        Ok((ack, rest))
    }

    /// The raw header.
    #[must_use]
    pub fn to_raw(self) -> RawHelloAck {
        RawHelloAck {
            adverts: RawAdverts {
                max_adverts: U16::new(self.max_adverts),
                rsvd: 0,
                version: RawVersion::new(self.majv, self.minv),
            },
            act_rcv_sz: U32::new(self.act_rcv_sz),
            loc_ird: U16::new(self.loc_ird),
            loc_ord: U16::new(self.loc_ord),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    const ACK: HelloAck =
        HelloAck { max_adverts: 0x0102, majv: 1, minv: 2, act_rcv_sz: 0x0304_0506, loc_ird: 0x0708, loc_ord: 0x090a };

    /// Tests the header of Figure 6 in figure order and in mirrored order.
    #[test]
    fn both_orders() {
        let figure = [1, 2, 0, 0x21, 3, 4, 5, 6, 7, 8, 9, 10];
        let mirrored = [0x12, 0, 1, 2, 3, 4, 5, 6, 9, 10, 7, 8];
        for (order, octets) in [(Figure, figure), (Mirrored, mirrored)] {
            let mut out = Vec::new();
            ACK.to_raw().append(order, &mut out);
            assert_eq!(out, octets);
            assert_eq!(HelloAck::parse(&octets, order), Ok((ACK, &[][..])));
        }
    }

    #[test]
    fn each_field_out_of_range_is_named() {
        let field = |change: fn(&mut HelloAck)| {
            let (mut ack, mut out) = (ACK, Vec::new());
            change(&mut ack);
            ack.to_raw().append(Figure, &mut out);
            HelloAck::parse(&out, Figure).unwrap_err().field
        };
        assert_eq!(field(|ack| ack.max_adverts = 0), "MaxAdverts");
        assert_eq!(field(|ack| ack.act_rcv_sz = 36), "ActRcvSz");
        assert_eq!(field(|ack| ack.act_rcv_sz = u32::MAX), "ActRcvSz");
        assert_eq!(field(|ack| ack.loc_ird = 0), "LocIRD");
        assert_eq!(field(|ack| ack.loc_ord = 0), "LocORD");
        assert!(HelloAck::parse(&[0; 11], Figure).is_err());
    }
}
