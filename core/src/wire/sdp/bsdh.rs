//! The Base Sockets Direct Header (section 6.1 of the SDP draft, Figure 2): the first 16 octets of
//! every SDP message.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+---------------+---------------+
//! |             Bufs              |     Flags     |      MID      |  mirrored: MID, Flags, Bufs
//! +-------------------------------+---------------+---------------+
//! |                              Len                              |
//! +---------------------------------------------------------------+
//! |                             MSeq                              |
//! +---------------------------------------------------------------+
//! |                            MSeqAck                            |
//! +---------------------------------------------------------------+
//! ```

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Mid, RawHeader};

/// OOB_PRES: the last payload octet is Out-Of-Band data. weft assumes that flag position 0 of the
/// draft is the least significant bit.
pub const FLAG_OOB_PRES: u8 = 0x01;
/// OOB_PEND: Out-Of-Band data is pending.
pub const FLAG_OOB_PEND: u8 = 0x02;
/// REQ_PIPE: the Mode Slave would like Pipelined Mode.
pub const FLAG_REQ_PIPE: u8 = 0x04;

/// Raw view of the header, with its fields in figure order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawBsdh {
    /// Octets 0 and 1: number of Private Buffers that the sender has posted.
    pub bufs: U16,
    /// Octet 2: `FLAG_*`, and five reserved bits that are zero when sent and not examined when
    /// received.
    pub flags: u8,
    /// Octet 3: MID.
    pub mid: u8,
    /// Octets 4 to 7: length of the complete message in octets.
    pub len: U32,
    /// Octets 8 to 11: sequence number of this message.
    pub mseq: U32,
    /// Octets 12 to 15: sequence number of the last received message.
    pub mseq_ack: U32,
}

impl RawBsdh {
    /// The MID field as a [`Mid`].
    #[must_use]
    pub const fn mid(&self) -> Mid {
        Mid(self.mid)
    }
}

impl RawHeader for RawBsdh {
    fn unmirrored(self) -> Self {
        let [mid, flags] = self.bufs.to_bytes();
        RawBsdh { bufs: U16::from_bytes([self.flags, self.mid]), flags, mid, ..self }
    }

    fn mirrored(self) -> Self {
        let [high, low] = self.bufs.to_bytes();
        RawBsdh { bufs: U16::from_bytes([self.mid, self.flags]), flags: high, mid: low, ..self }
    }
}

/// The defined flags of a message. Reserved flags are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags {
    /// The last payload octet is Out-Of-Band data. Only valid in a Data message with payload.
    pub oob_pres: bool,
    /// Out-Of-Band data is pending.
    pub oob_pend: bool,
    /// The Mode Slave would like Pipelined Mode. Only has a meaning in RdmaWrCompl and RdmaRdCompl.
    pub req_pipe: bool,
}

impl Flags {
    /// Reads the Flags octet. Reserved bits are ignored (Figure 4).
    #[must_use]
    pub const fn from_raw(flags: u8) -> Self {
        Flags {
            oob_pres: flags & FLAG_OOB_PRES != 0,
            oob_pend: flags & FLAG_OOB_PEND != 0,
            req_pipe: flags & FLAG_REQ_PIPE != 0,
        }
    }

    /// The Flags octet with zero reserved bits.
    #[must_use]
    pub const fn to_raw(self) -> u8 {
        self.oob_pres as u8 | (self.oob_pend as u8) << 1 | (self.req_pipe as u8) << 2
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    const OCTETS: [u8; 16] = [0x12, 0x34, 0x04, 0x06, 0, 0, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8];

    /// Tests the header of Figure 2 in figure order and in mirrored order.
    #[test]
    fn both_orders() {
        let (raw, rest) = RawBsdh::read(&OCTETS, Figure).unwrap();
        assert!(rest.is_empty());
        assert_eq!((raw.bufs.get(), raw.flags, raw.mid()), (0x1234, 4, Mid::RDMA_RD_COMPL));
        assert_eq!((raw.len.get(), raw.mseq.get(), raw.mseq_ack.get()), (20, 0x0102_0304, 0x0506_0708));
        let mut mirrored = OCTETS;
        mirrored[..4].copy_from_slice(&[0x06, 0x04, 0x12, 0x34]);
        assert_eq!(RawBsdh::read(&mirrored, Mirrored), Some((raw, &[][..])));
        assert_eq!(RawBsdh::read(&OCTETS[..15], Figure), None);
    }

    /// Tests the positions of the flags in Figure 4. Position 0 is the least significant bit.
    #[test]
    fn flags_by_position() {
        assert_eq!(Flags::from_raw(0xf9), Flags { oob_pres: true, ..Flags::default() });
        assert_eq!(Flags { oob_pend: true, ..Flags::default() }.to_raw(), 2);
        assert_eq!(Flags { req_pipe: true, ..Flags::default() }.to_raw(), 4);
    }
}
