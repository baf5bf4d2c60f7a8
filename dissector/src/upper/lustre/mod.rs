//! Recognises LNet, the network layer of Lustre, over RDMA (`o2iblnd`). Each message is a Send that
//! starts with a header of 48 bytes. All fields have the byte order of the sender's host, and the
//! magic number shows this order:
//!
//! - magic number 0x0be91b91 (32 bits), version (16 bits), type and credits (8 bits each)
//! - length of the message in bytes, and checksum (32 bits each)
//! - NID and stamp of the sender, NID and stamp of the receiver (64 bits each); a NID is an address
//!
//! **Proof**: a message of each direction, and the sender's NID of each message is the receiver's
//! NID of the other. A connection starts with a connection request and its acknowledgement in the
//! private data, which prove the protocol in the same way. If a later Send has no such header, it
//! disproves the protocol.

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use weft_core::wire::mpa::StartupKind;

use super::protocol::{self, Judgement, Len, Protocol, SendInfo, Verdict, only};
use super::startup::{Startup, StartupJudgement};
use crate::direction::Direction;

/// Length of the header in bytes.
const HEADER_LEN: usize = 48;
/// Length of the fields before the checksum, which are kept by `weft scrub`.
pub(crate) const KEPT_LEN: usize = 12;
const MAGIC: u32 = 0x0be9_1b91;
/// The known versions.
const VERSIONS: [u16; 2] = [0x11, 0x12];
/// Types of messages in the private data.
const CONNECT: u8 = 0xc0;
const ACKNOWLEDGE: u8 = 0xc1;
/// The first type of messages in Sends, and the names of the types.
const FIRST_TYPE: u8 = 0xd0;
const TYPES: [&str; 8] = ["NOOP", "IMMEDIATE", "PUT_REQ", "PUT_NAK", "PUT_ACK", "PUT_DONE", "GET_REQ", "GET_DONE"];

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Type of the message.
    pub kind: u8,
    /// Version of the message.
    pub version: u16,
    /// Credits that the sender returns.
    pub credits: u8,
    /// Length of the message in bytes.
    pub len: u32,
    /// NID of the sender.
    pub source: u64,
    /// NID of the receiver.
    pub destination: u64,
}

impl Message {
    /// Reads the header of a message of any type.
    fn parse(octets: &[u8]) -> Option<Message> {
        let header = octets.first_chunk::<HEADER_LEN>()?;
        let magic = header.first_chunk::<4>()?;
        let is_little_endian = match (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)) {
            (MAGIC, _) => true,
            (_, MAGIC) => false,
            _ => return None,
        };
        // The number in `len` octets at offset `at`.
        let number = |at: usize, len: usize| {
            let octets = header.iter().skip(at).take(len);
            let join = |value: u64, octet: &u8| value << 8 | u64::from(*octet);
            if is_little_endian { octets.rev().fold(0, join) } else { octets.fold(0, join) }
        };
        let message = Message {
            kind: header[6],
            version: number(4, 2) as u16,
            credits: header[7],
            len: number(8, 4) as u32,
            source: number(16, 8),
            destination: number(32, 8),
        };
        Some(message).filter(|message| VERSIONS.contains(&message.version) && message.len as usize >= HEADER_LEN)
    }

    fn type_name(&self) -> Option<&'static str> {
        TYPES.get(usize::from(self.kind.checked_sub(FIRST_TYPE)?)).copied()
    }

    /// Returns whether `other` has the NIDs of this message in the opposite order.
    fn is_answered_by(&self, other: &Message) -> bool {
        (self.source, self.destination) == (other.destination, other.source)
    }
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        self.type_name().unwrap_or("message")
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " length {} credits {}", self.len, self.credits)
    }
}

/// Returns private data that is a connection request or its acknowledgement, depending on the
/// start-up frame.
fn connection_message(private: &[u8], kind: StartupKind) -> Option<Message> {
    let expected = match kind {
        StartupKind::Request => CONNECT,
        StartupKind::Reply => ACKNOWLEDGE,
    };
    Message::parse(private).filter(|message| message.kind == expected && message.len as usize <= private.len())
}

/// Returns whether `private` is the private data of a start-up frame.
pub(crate) fn is_private_data(private: &[u8]) -> bool {
    [StartupKind::Request, StartupKind::Reply].iter().any(|kind| connection_message(private, *kind).is_some())
}

/// The recognition state of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// The latest message of each direction, or the message in its private data.
    latest: [Option<Message>; 2],
}

impl Connection {
    /// Records a message. Returns whether the peer has sent a message with the same NIDs.
    fn record(&mut self, own: Direction, message: Message) -> bool {
        self.latest[own] = Some(message);
        self.latest[own.peer()].is_some_and(|peer| peer.is_answered_by(&message))
    }
}

impl Protocol for Connection {
    const NAME: &'static str = "lustre";
    const TITLE: &'static str = "Lustre";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        if bytes.len() < HEADER_LEN && !is_complete {
            return Verdict::Open;
        }
        match Message::parse(bytes).filter(|message| message.type_name().is_some()) {
            Some(parsed) => Verdict::Is { parsed, len: Len::AtLeast(parsed.len.into()), proves: false },
            None => Verdict::Not,
        }
    }

    /// The NIDs contain addresses, so they are no headers here.
    fn headers(bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        match Self::read(bytes, is_complete) {
            Verdict::Is { .. } => only(0..KEPT_LEN),
            Verdict::Open | Verdict::Not => Vec::new(),
        }
    }

    fn startup(&mut self, startup: &Startup<'_>) -> StartupJudgement {
        let message = connection_message(startup.private, startup.kind).filter(|_| !startup.rejects);
        let Some(message) = message else { return StartupJudgement::Other };
        let is_answered = self.record(startup.direction, message);
        if is_answered && startup.kind == StartupKind::Reply {
            StartupJudgement::Proves
        } else {
            StartupJudgement::Belongs
        }
    }

    fn message(&mut self, send: &SendInfo, message: &mut Message) -> Judgement {
        if self.record(send.direction, *message) { Judgement::Proves } else { Judgement::Open }
    }
}
