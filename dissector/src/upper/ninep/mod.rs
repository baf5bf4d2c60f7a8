//! Recognises 9P, the file protocol of Plan 9. Each message is a Send. It starts with its length in
//! bytes (32 bits), its type (8 bits) and a tag (16 bits), all in little-endian order. Requests have
//! even types, and responses have odd types.
//!
//! **Proof**: a `Tversion` and the `Rversion` of the peer, both with a version that starts with
//! `9P2000`. If a later Send has no such header, or a request has the direction of responses, it
//! disproves the protocol.

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::{Range, RangeInclusive};

use super::protocol::{self, Judgement, Len, Protocol, SendInfo, Verdict, only};
use crate::direction::Direction;

/// Length of the header in bytes.
const HEADER_LEN: usize = 7;
/// Types, and the range of all types.
const TVERSION: u8 = 100;
const RVERSION: u8 = 101;
const TYPES: RangeInclusive<u8> = 6..=127;
/// The tag of `Tversion` and `Rversion`.
const NO_TAG: u16 = 0xffff;
/// The start of the version, and its offset: the length of a message and of the version are before
/// it.
const VERSION: &[u8] = b"9P2000";
const VERSION_AT: usize = HEADER_LEN + 4 + 2;
/// The largest length that weft expects.
const MAX_LEN: u32 = 1 << 24;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Type of the message.
    pub kind: u8,
    /// The tag, which the response has, too.
    pub tag: u16,
    /// Length of the message in bytes.
    pub len: u32,
    /// Whether the message has a version that starts with `9P2000`.
    pub has_version: bool,
}

impl Message {
    /// Returns whether the message is a response.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.kind % 2 == 1
    }
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        match self.kind {
            TVERSION => "Tversion",
            RVERSION => "Rversion",
            _ if self.is_response() => "response",
            _ => "request",
        }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " type {} tag {:#06x} length {}", self.kind, self.tag, self.len)
    }
}

/// The recognition state of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// The direction of a `Tversion`.
    client: Option<Direction>,
}

impl Protocol for Connection {
    const NAME: &'static str = "9p";
    const TITLE: &'static str = "9P";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        let Some(&[l0, l1, l2, l3, kind, t0, t1]) = bytes.first_chunk::<HEADER_LEN>() else {
            return if is_complete { Verdict::Not } else { Verdict::Open };
        };
        let (len, tag) = (u32::from_le_bytes([l0, l1, l2, l3]), u16::from_le_bytes([t0, t1]));
        if !(HEADER_LEN as u32..=MAX_LEN).contains(&len) || !TYPES.contains(&kind) {
            return Verdict::Not;
        }
        let is_version = matches!(kind, TVERSION | RVERSION);
        if is_version && bytes.len() < VERSION_AT + VERSION.len() && !is_complete {
            return Verdict::Open;
        }
        let version = bytes.get(VERSION_AT..).unwrap_or_default();
        let has_version = is_version && tag == NO_TAG && version.starts_with(VERSION);
        let parsed = Message { kind, tag, len, has_version };
        Verdict::Is { parsed, len: Len::AtLeast(len.into()), proves: false }
    }

    fn headers(bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        match Self::read(bytes, is_complete) {
            Verdict::Is { parsed: Message { has_version: true, .. }, .. } => {
                vec![0..HEADER_LEN, VERSION_AT..VERSION_AT + VERSION.len()]
            }
            Verdict::Is { .. } | Verdict::Open => only(0..bytes.len().min(HEADER_LEN)),
            Verdict::Not => Vec::new(),
        }
    }

    fn message(&mut self, send: &SendInfo, message: &mut Message) -> Judgement {
        if send.is_recognised {
            let is_client = self.client == Some(send.direction);
            return if is_client == message.is_response() { Judgement::Disproves } else { Judgement::Open };
        }
        match message.kind {
            TVERSION if message.has_version => self.client = Some(send.direction),
            RVERSION if message.has_version && self.client == Some(send.direction.peer()) => return Judgement::Proves,
            _ => {}
        }
        Judgement::Open
    }
}
