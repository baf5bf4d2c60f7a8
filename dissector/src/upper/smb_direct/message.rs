//! [`Message`]: the messages of SMB Direct (MS-SMBD section 2.2), and the test whether bytes are
//! such a message. All fields are little-endian.

use std::fmt;

use crate::upper::protocol::{self, Len, Verdict};

/// Length in bytes of a Negotiate Request, and of a Negotiate Response.
pub(crate) const REQUEST_LEN: usize = 20;
pub(crate) const RESPONSE_LEN: usize = 32;
/// Length in bytes of a Data Transfer header without padding.
pub(crate) const DATA_LEN: usize = 20;
/// Minimum of PreferredSendSize and of MaxReceiveSize (MS-SMBD section 3.1.5.2). The next constant
/// is the minimum of MaxFragmentedSize (the same section).
const LEAST_SIZE: u32 = 128;
const LEAST_FRAGMENTED: u32 = 131_072;
/// The only flag that the specification defines: SMB_DIRECT_RESPONSE_REQUESTED.
const RESPONSE_REQUESTED: u16 = 1;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// Negotiate Request.
    NegotiateRequest {
        /// MinVersion and MaxVersion.
        versions: (u16, u16),
        /// CreditsRequested.
        credits: u16,
        /// Sizes that the sender proposes.
        sizes: Sizes,
    },
    /// Negotiate Response.
    NegotiateResponse {
        /// MinVersion and MaxVersion.
        versions: (u16, u16),
        /// NegotiatedVersion.
        version: u16,
        /// CreditsRequested.
        requested: u16,
        /// CreditsGranted.
        credits: u16,
        /// Status: an NTSTATUS value.
        status: u32,
        /// MaxReadWriteSize in bytes: the longest transfer by RDMA.
        max_read_write: u32,
        /// Sizes of the sender.
        sizes: Sizes,
    },
    /// Data Transfer.
    Data {
        /// CreditsRequested and CreditsGranted.
        credits: (u16, u16),
        /// Flags. The only defined flag has value 1, and requests a response.
        flags: u16,
        /// DataOffset in bytes; 0 if the message has no data.
        offset: u32,
        /// DataLength in bytes.
        len: u32,
        /// RemainingDataLength: number of bytes in the next Data Transfers that belong to the same
        /// upper-layer message.
        remaining: u32,
    },
}

/// The sizes that both endpoints negotiate, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// PreferredSendSize: the longest message that the sender wants to send.
    pub preferred_send: u32,
    /// MaxReceiveSize: the longest message that the sender accepts.
    pub max_receive: u32,
    /// MaxFragmentedSize: the longest upper-layer message that the sender accepts.
    pub max_fragmented: u32,
}

impl Sizes {
    fn parse(bytes: &[u8], at: usize) -> Sizes {
        Sizes { preferred_send: long(bytes, at), max_receive: long(bytes, at + 4), max_fragmented: long(bytes, at + 8) }
    }

    /// Returns whether each size is at least its minimum.
    fn fit(self) -> bool {
        self.preferred_send >= LEAST_SIZE && self.max_receive >= LEAST_SIZE && self.max_fragmented >= LEAST_FRAGMENTED
    }
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        match self {
            Message::NegotiateRequest { .. } => "Negotiate Request",
            Message::NegotiateResponse { .. } => "Negotiate Response",
            Message::Data { .. } => "Data Transfer",
        }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::NegotiateRequest { credits, .. } => write!(f, " credits requested {credits}"),
            Message::NegotiateResponse { credits, status, .. } => {
                write!(f, " credits granted {credits} status {status:#010x}")
            }
            Message::Data { credits: (requested, granted), len, remaining, .. } => {
                write!(f, " credits requested {requested} granted {granted} data {len} remaining {remaining}")
            }
        }
    }
}

/// Tests the first bytes of a Send, see [`protocol::Protocol::read`].
pub(super) fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
    if bytes.len() < REQUEST_LEN {
        return if is_complete { Verdict::Not } else { Verdict::Open };
    }
    // The first fields are MinVersion and MaxVersion, and then Reserved or NegotiatedVersion.
    match bytes[..6] {
        [0, 1, 0, 1, 0, 0] => request(bytes),
        [0, 1, 0, 1, 0, 1] => response(bytes, is_complete),
        _ => data(bytes),
    }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from(short(bytes, at)) | u32::from(short(bytes, at + 2)) << 16
}

fn request(bytes: &[u8]) -> Verdict<Message> {
    let (credits, sizes) = (short(bytes, 6), Sizes::parse(bytes, 8));
    if credits == 0 || !sizes.fit() {
        return Verdict::Not;
    }
    let parsed = Message::NegotiateRequest { versions: (short(bytes, 0), short(bytes, 2)), credits, sizes };
    Verdict::Is { parsed, len: Len::Exactly(REQUEST_LEN as u64), proves: true }
}

fn response(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
    if bytes.len() < RESPONSE_LEN {
        return if is_complete { Verdict::Not } else { Verdict::Open };
    }
    let (reserved, status, sizes) = (short(bytes, 6), long(bytes, 12), Sizes::parse(bytes, 20));
    if reserved != 0 || status == 0 && !sizes.fit() {
        return Verdict::Not;
    }
    let parsed = Message::NegotiateResponse {
        versions: (short(bytes, 0), short(bytes, 2)),
        version: short(bytes, 4),
        requested: short(bytes, 8),
        credits: short(bytes, 10),
        status,
        max_read_write: long(bytes, 16),
        sizes,
    };
    Verdict::Is { parsed, len: Len::Exactly(RESPONSE_LEN as u64), proves: true }
}

fn data(bytes: &[u8]) -> Verdict<Message> {
    let (credits, flags, reserved) = ((short(bytes, 0), short(bytes, 2)), short(bytes, 4), short(bytes, 6));
    let (remaining, offset, len) = (long(bytes, 8), long(bytes, 12), long(bytes, 16));
    if flags & !RESPONSE_REQUESTED != 0 || reserved != 0 {
        return Verdict::Not;
    }
    let parsed = Message::Data { credits, flags, offset, len, remaining };
    if len == 0 {
        // If the message has no data, it only carries credits, and DataOffset and
        // RemainingDataLength are 0.
        let fits = offset == 0 && remaining == 0;
        return if fits {
            Verdict::Is { parsed, len: Len::AtLeast(DATA_LEN as u64), proves: false }
        } else {
            Verdict::Not
        };
    }
    // DataOffset must be a multiple of 8, and the data must start after the header.
    if offset < DATA_LEN as u32 || !offset.is_multiple_of(8) {
        return Verdict::Not;
    }
    let end = Len::Exactly(u64::from(offset) + u64::from(len));
    let start = usize::try_from(offset).ok().and_then(|at| bytes.get(at..at.checked_add(4)?));
    Verdict::Is { parsed, len: end, proves: start.is_some_and(is_smb) }
}

/// Returns whether the first bytes of data are the start of an SMB message. The first byte is 0xFE
/// for SMB 2 and 3, 0xFD for an encrypted message, and 0xFC for a compressed message.
pub(super) fn is_smb(data: &[u8]) -> bool {
    matches!(data, [0xfc..=0xfe, b'S', b'M', b'B', ..])
}
