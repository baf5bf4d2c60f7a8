//! Recognises SMB Direct (MS-SMBD section 2.2), and reads the messages of SMB 2 and 3 that it
//! carries. A connection starts with a Negotiate Request and Response, and Data Transfer messages
//! follow. A Data Transfer has a part of an upper-layer message, or only credits.
//!
//! **Proof**: A Negotiate Request of 20 bytes, or a Negotiate Response of 32 bytes, can prove the
//! protocol. The versions must be 0x0100, the reserved fields must be zero, and each size must be
//! at least the specified minimum. (If a Negotiate Response reports an error status, its sizes are
//! not checked.) A Data Transfer proves the protocol if its data starts like an SMB message. In a
//! Data Transfer with data, the sum of DataOffset and DataLength must be the length of the message.
//!
//! [`SmbState`] has the upper-layer messages of a connection on which the protocol is recognised.

mod fragments;
mod message;
mod private_data;
mod sends;
mod state;

pub use fragments::MAX_MESSAGE_BYTES;
pub(crate) use message::{DATA_LEN, REQUEST_LEN, RESPONSE_LEN};
pub use message::{Message, Sizes};
pub use private_data::{ByteOrder, PrivateData};
pub use sends::MAX_SEND_BYTES;
pub use state::{SmbState, UpperMessage};

use std::ops::Range;

use super::pdu::{DissectorName, PduPart};
use super::protocol::{Protocol, Verdict, only};

/// The TCP port of SMB Direct over iWARP (MS-SMBD section 2.1).
pub const PORT: u16 = 5445;

/// Wireshark has no registered dissector for SMB2, only heuristic dissectors. This one decodes the
/// messages of SMB Direct.
const DISSECTOR: DissectorName = DissectorName::Heuristic("smb2_smb_direct");

/// The protocol. It needs no state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection;

impl Protocol for Connection {
    const NAME: &'static str = "smb_direct";
    const TITLE: &'static str = "SMB Direct";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        message::read(bytes, is_complete)
    }

    fn headers(bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        match Self::read(bytes, is_complete) {
            // A Data Transfer proves the protocol if the identifier of SMB is at DataOffset.
            Verdict::Is { parsed: Message::Data { offset, .. }, proves: true, .. } => {
                let at = offset as usize;
                vec![0..DATA_LEN, at..at + 4]
            }
            Verdict::Is { parsed: Message::Data { .. }, .. } => only(0..DATA_LEN),
            Verdict::Is { parsed: Message::NegotiateRequest { .. }, .. } => only(0..REQUEST_LEN),
            // The header ends with these bytes, or after them.
            Verdict::Is { parsed: Message::NegotiateResponse { .. }, .. } | Verdict::Open => {
                only(0..bytes.len().min(RESPONSE_LEN))
            }
            Verdict::Not => Vec::new(),
        }
    }

    /// Returns a fragment of an SMB message. A message starts with the identifier of SMB.
    fn pdu(octets: &[u8], _len: u64) -> Option<PduPart<'_>> {
        let Verdict::Is { parsed: Message::Data { offset, len, remaining, .. }, .. } = Self::read(octets, true) else {
            return None;
        };
        // A message without data only carries credits.
        if len == 0 {
            return None;
        }
        let fragment = octets.get(offset as usize..).unwrap_or_default();
        let captured = fragment.len().min(len as usize);
        let fragment = &fragment[..captured];
        let part = PduPart::new(DISSECTOR, fragment, u64::from(len));
        Some(PduPart { is_start: message::is_smb(fragment), remaining: u64::from(remaining), ..part })
    }
}
