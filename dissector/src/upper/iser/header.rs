//! The iSER header: the first 28 bytes of each Send (RFC 7145 section 9). All fields are
//! big-endian.
//!
//! RFC 5046 had a header without base offsets. RFC 7145 appendix A reports that all known
//! implementations send the base offsets, so weft reads only this form.

use super::super::protocol::word;

/// Length in bytes of the header.
pub(crate) const HEADER_LEN: usize = 28;
/// Opcode of an iSCSI control-type PDU. The next constants are the opcodes of Hello and HelloReply.
pub(super) const CONTROL: u8 = 0b0001;
pub(super) const HELLO: u8 = 0b0010;
pub(super) const HELLO_REPLY: u8 = 0b0011;
/// Write STag Valid.
const WSV: u8 = 0x08;
/// Read STag Valid.
const RSV: u8 = 0x04;
/// The target rejects the connection.
const REJ: u8 = 0x01;
/// The version of iSER in RFC 7145.
const VERSION: u8 = 10;

/// A buffer that an initiator advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// STag of the buffer.
    pub stag: u32,
    /// Base Offset of the buffer. The tagged offset of a byte is this value plus the offset of the
    /// byte in the buffer. Linux does not include immediate data in the buffer.
    pub base_offset: u64,
}

/// The iSER header of an iSCSI control-type PDU (RFC 7145 section 9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlHeader([u8; HEADER_LEN]);

impl ControlHeader {
    pub(super) fn new(header: [u8; HEADER_LEN]) -> Self {
        ControlHeader(header)
    }

    /// The octets of the header.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.0
    }

    fn is_set(&self, flag: u8) -> bool {
        self.0[0] & flag != 0
    }

    fn buffer(&self, at: usize) -> Buffer {
        let word = |at| word(&self.0, at).unwrap_or_default();
        Buffer { stag: word(at), base_offset: u64::from(word(at + 4)) << 32 | u64::from(word(at + 8)) }
    }

    /// The buffer with data for the target, which the target reads; `None` if WSV is 0.
    #[must_use]
    pub fn write(&self) -> Option<Buffer> {
        self.is_set(WSV).then(|| self.buffer(4))
    }

    /// The buffer for data of the target, to which the target writes; `None` if RSV is 0.
    #[must_use]
    pub fn read(&self) -> Option<Buffer> {
        self.is_set(RSV).then(|| self.buffer(16))
    }

    /// Returns whether the reserved bits are zero, and also the fields of each buffer that is not
    /// valid. RFC 7145 section 9.2 requires this.
    pub(super) fn is_plausible(&self) -> bool {
        let nothing = Buffer { stag: 0, base_offset: 0 };
        self.0[0] & 0b11 == 0
            && self.0[1..4] == [0; 3]
            && (self.is_set(WSV) || self.buffer(4) == nothing)
            && (self.is_set(RSV) || self.buffer(16) == nothing)
    }
}

/// A Hello message (RFC 7145 section 9.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Byte 0 of the header, with the opcode.
    pub flags: u8,
    /// MaxVer: the maximum version, 0 to 15.
    pub max_version: u8,
    /// MinVer: the minimum version, 0 to 15.
    pub min_version: u8,
    /// iSER-IRD of the initiator.
    pub ird: u16,
    is_plausible: bool,
}

/// A HelloReply message (RFC 7145 section 9.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelloReply {
    /// Byte 0 of the header, with the opcode and REJ.
    pub flags: u8,
    /// MaxVer: the maximum version, 0 to 15.
    pub max_version: u8,
    /// CurVer: the current version, 0 to 15.
    pub current_version: u8,
    /// iSER-ORD of the target.
    pub ord: u16,
    is_plausible: bool,
}

/// Returns whether the versions are those of RFC 7145, and all bytes after the first word are zero.
fn is_hello(header: &[u8; HEADER_LEN]) -> bool {
    header[1] == VERSION << 4 | VERSION && header[4..] == [0; HEADER_LEN - 4]
}

impl Hello {
    pub(super) fn new(header: &[u8; HEADER_LEN]) -> Self {
        let [flags, versions, high, low, ..] = *header;
        Hello {
            flags,
            max_version: versions >> 4,
            min_version: versions & 0xf,
            ird: u16::from_be_bytes([high, low]),
            is_plausible: flags & 0xf == 0 && is_hello(header),
        }
    }

    /// The first four octets of the header. All other octets are reserved.
    pub(crate) fn first_word(&self) -> [u8; 4] {
        let [high, low] = self.ird.to_be_bytes();
        [self.flags, self.max_version << 4 | self.min_version, high, low]
    }

    /// Returns whether the reserved bits are zero, and the versions are those of RFC 7145.
    pub(super) fn is_plausible(&self) -> bool {
        self.is_plausible
    }
}

impl HelloReply {
    pub(super) fn new(header: &[u8; HEADER_LEN]) -> Self {
        let [flags, versions, high, low, ..] = *header;
        HelloReply {
            flags,
            max_version: versions >> 4,
            current_version: versions & 0xf,
            ord: u16::from_be_bytes([high, low]),
            is_plausible: flags & 0xe == 0 && is_hello(header),
        }
    }

    /// REJ: whether the target rejects the connection.
    #[must_use]
    pub fn rejects(&self) -> bool {
        self.flags & REJ != 0
    }

    /// The first four octets of the header. All other octets are reserved.
    pub(crate) fn first_word(&self) -> [u8; 4] {
        let [high, low] = self.ord.to_be_bytes();
        [self.flags, self.max_version << 4 | self.current_version, high, low]
    }

    /// Returns whether the reserved bits are zero, and the versions are those of RFC 7145.
    pub(super) fn is_plausible(&self) -> bool {
        self.is_plausible
    }
}
