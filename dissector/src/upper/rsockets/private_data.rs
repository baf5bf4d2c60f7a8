//! [`PrivateData`]: the private data with which rsockets opens a connection (`rs_conn_data` in
//! librdmacm's `rsocket.c`). All fields are big-endian.

use std::fmt;

use crate::upper::protocol::word;

/// Length of the private data in bytes.
const LEN: usize = 40;
/// The only version.
const VERSION: u8 = 1;
/// The flag `RS_CONN_FLAG_NET`: the messages of the sender are big-endian.
const NET: u8 = 1;
/// The flag `RS_CONN_FLAG_IOMAP`: the sender has a table of mapped buffers.
const IOMAP: u8 = 2;
/// Number of buffers in the list of the receiver.
const BUFFERS: u32 = 2;

/// A registered buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Address of the buffer, which is its Tagged Offset.
    pub address: u64,
    /// STag of the buffer.
    pub key: u32,
    /// Length in bytes; for the list of buffers, the number of buffers.
    pub len: u32,
}

impl Buffer {
    /// Reads the buffer at offset `at`.
    fn parse(private: &[u8], at: usize) -> Option<Buffer> {
        let address = u64::from(word(private, at)?) << 32 | u64::from(word(private, at + 4)?);
        Some(Buffer { address, key: word(private, at + 8)?, len: word(private, at + 12)? })
    }
}

/// The private data of a start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrivateData {
    /// Whether the messages of the sender are big-endian.
    pub is_big_endian: bool,
    /// Number of receives that the sender has posted.
    pub credits: u16,
    /// Size of the table of mapped buffers, in the format of librdmacm.
    pub iomap_size: u8,
    /// The list in which the peer writes its buffers. Its length is 2.
    pub buffers: Buffer,
    /// The first buffer for data.
    pub data: Buffer,
}

impl PrivateData {
    /// Reads the private data without the words of RFC 6581. Returns `None` if it is not from
    /// rsockets: it must have exactly 40 bytes, version 1, only known flags, reserved bytes that are
    /// zero, credits, a list of two buffers, and a buffer for data.
    #[must_use]
    pub fn parse(private: &[u8]) -> Option<PrivateData> {
        let (&[version, flags, c0, c1, r0, r1, r2, iomap_size], _) = private.split_first_chunk::<8>()?;
        let (buffers, data) = (Buffer::parse(private, 8)?, Buffer::parse(private, 24)?);
        let is_plausible = private.len() == LEN
            && version == VERSION
            && flags & !NET == IOMAP
            && [r0, r1, r2] == [0; 3]
            && buffers.len == BUFFERS
            && buffers.address != 0
            && data.address != 0
            && data.len > 0;
        let credits = u16::from_be_bytes([c0, c1]);
        let private = PrivateData { is_big_endian: flags & NET != 0, credits, iomap_size, buffers, data };
        Some(private).filter(|_| is_plausible && credits > 0)
    }
}

impl fmt::Display for PrivateData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Buffer { address, key, len } = self.data;
        let order = if self.is_big_endian { "big-endian" } else { "little-endian" };
        write!(f, "credits {} {order} data {address:#x} rkey {key:#010x} length {len}", self.credits)?;
        write!(f, " SGL {:#x} rkey {:#010x}", self.buffers.address, self.buffers.key)
    }
}
