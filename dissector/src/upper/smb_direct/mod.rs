//! Recognises SMB Direct (MS-SMBD section 2.2). A connection starts with a Negotiate Request and
//! Response, and Data Transfer messages follow. All fields are little-endian.
//!
//! **Proof**: A Negotiate Request of 20 bytes, or a Negotiate Response of 32 bytes, can prove the
//! protocol. The versions must be 0x0100, the reserved fields must be zero, and each size must be
//! at least the specified minimum. (If a Negotiate Response reports an error status, its sizes are
//! not checked.) A Data Transfer proves the protocol if its data starts like an SMB message. In a
//! Data Transfer with data, the sum of DataOffset and DataLength must be the length of the message.

use std::fmt;

use super::protocol::{self, Len, Protocol, Verdict};

const REQUEST_LEN: usize = 20;
const RESPONSE_LEN: usize = 32;
/// Length in bytes of a Data Transfer header without padding.
const DATA_LEN: usize = 20;
/// Minimum of PreferredSendSize and of MaxReceiveSize (MS-SMBD section 3.1.5.2). The next constant
/// is the minimum of MaxFragmentedSize (the same section).
const LEAST_SIZE: u32 = 128;
const LEAST_FRAGMENTED: u32 = 131_072;
/// The only flag that the specification defines: SMB_DIRECT_RESPONSE_REQUESTED.
const FLAGS: u16 = 1;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// Negotiate Request.
    NegotiateRequest {
        /// CreditsRequested.
        credits: u16,
    },
    /// Negotiate Response.
    NegotiateResponse {
        /// CreditsGranted.
        credits: u16,
        /// Status.
        status: u32,
    },
    /// Data Transfer.
    Data {
        /// CreditsRequested and CreditsGranted.
        credits: (u16, u16),
        /// DataLength.
        len: u32,
        /// RemainingDataLength.
        remaining: u32,
    },
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
            Message::NegotiateRequest { credits } => write!(f, " credits requested {credits}"),
            Message::NegotiateResponse { credits, status } => {
                write!(f, " credits granted {credits} status {status:#010x}")
            }
            Message::Data { credits: (requested, granted), len, remaining } => {
                write!(f, " credits requested {requested} granted {granted} data {len} remaining {remaining}")
            }
        }
    }
}

/// The protocol. It needs no state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection;

impl Protocol for Connection {
    const NAME: &'static str = "smb_direct";
    const TITLE: &'static str = "SMB Direct";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
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
}

fn short(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from(short(bytes, at)) | u32::from(short(bytes, at + 2)) << 16
}

/// Returns whether PreferredSendSize, MaxReceiveSize and MaxFragmentedSize at offset `at` are at
/// least their minimum.
fn sizes_fit(bytes: &[u8], at: usize) -> bool {
    long(bytes, at) >= LEAST_SIZE && long(bytes, at + 4) >= LEAST_SIZE && long(bytes, at + 8) >= LEAST_FRAGMENTED
}

fn request(bytes: &[u8]) -> Verdict<Message> {
    let credits = short(bytes, 6);
    if credits == 0 || !sizes_fit(bytes, 8) {
        return Verdict::Not;
    }
    let parsed = Message::NegotiateRequest { credits };
    Verdict::Is { parsed, len: Len::Exactly(REQUEST_LEN as u64), proves: true }
}

fn response(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
    if bytes.len() < RESPONSE_LEN {
        return if is_complete { Verdict::Not } else { Verdict::Open };
    }
    let (reserved, credits, status) = (short(bytes, 6), short(bytes, 10), long(bytes, 12));
    if reserved != 0 || status == 0 && !sizes_fit(bytes, 20) {
        return Verdict::Not;
    }
    let parsed = Message::NegotiateResponse { credits, status };
    Verdict::Is { parsed, len: Len::Exactly(RESPONSE_LEN as u64), proves: true }
}

fn data(bytes: &[u8]) -> Verdict<Message> {
    let (credits, flags, reserved) = ((short(bytes, 0), short(bytes, 2)), short(bytes, 4), short(bytes, 6));
    let (remaining, offset, len) = (long(bytes, 8), long(bytes, 12), long(bytes, 16));
    if flags & !FLAGS != 0 || reserved != 0 {
        return Verdict::Not;
    }
    let parsed = Message::Data { credits, len, remaining };
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
    match start {
        // The first byte is 0xFE for SMB 2 and 3, 0xFD for an encrypted message, and 0xFC for a
        // compressed message.
        Some([0xfc..=0xfe, b'S', b'M', b'B']) => Verdict::Is { parsed, len: end, proves: true },
        _ => Verdict::Is { parsed, len: end, proves: false },
    }
}
