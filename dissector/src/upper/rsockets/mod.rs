//! Recognises rsockets, the sockets of librdmacm. The source is librdmacm's `rsocket.c`.
//!
//! Data is in RDMA Writes. iWARP has no RDMA Write with immediate data, so each message is a Send
//! of four bytes: the kind in the upper three bits, and a value in the other bits. The byte order is
//! the order of the sender's host. The private data of the start-up frames contains this order.
//!
//! **Proof**: the private data of both start-up frames has 40 bytes, version 1, the flag
//! `RS_CONN_FLAG_IOMAP`, reserved bytes that are zero, and a list of two buffers. Messages prove
//! nothing, because four bytes have too little structure. If a later Send does not have four bytes,
//! or has an unknown kind, it disproves the protocol.

mod private_data;
#[cfg(test)]
mod tests;

pub use private_data::{Buffer, PrivateData};

use std::fmt;
use std::ops::Range;

use weft_core::wire::mpa::StartupKind;

use super::protocol::{self, Judgement, Len, Protocol, SendInfo, Verdict, only};
use super::startup::{Startup, StartupJudgement};

/// Length of a message in bytes.
const LEN: usize = 4;
/// Position of the kind in a message, and the bits of the value.
const KIND_SHIFT: u32 = 29;
const VALUE: u32 = (1 << KIND_SHIFT) - 1;
/// Kinds of messages.
const DATA: u32 = 0;
const SGL: u32 = 4;
const IOMAP_SGL: u32 = 6;
const CONTROL: u32 = 7;
/// Values of a control message.
const DISCONNECT: u32 = 0;
const KEEPALIVE: u32 = 1;
const SHUTDOWN: u32 = 2;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// An RDMA Write has written data.
    Data {
        /// Number of written bytes.
        len: u32,
    },
    /// The sender has a new buffer for data, and permits further messages.
    Sgl {
        /// Sequence number of the first message that is not permitted yet.
        limit: u32,
    },
    /// An RDMA Write has changed an entry of the table of mapped buffers.
    IomapSgl {
        /// Index of the entry.
        index: u32,
    },
    /// The sender closes the connection.
    Disconnect,
    /// The sender checks whether the connection works.
    Keepalive,
    /// The sender sends no further data.
    Shutdown,
    /// A message whose byte order is unknown. The bytes are in stream order.
    Unknown([u8; 4]),
}

impl Message {
    fn parse(word: u32) -> Option<Message> {
        let value = word & VALUE;
        Some(match (word >> KIND_SHIFT, value) {
            (DATA, len) => Message::Data { len },
            (SGL, limit) => Message::Sgl { limit },
            (IOMAP_SGL, index) => Message::IomapSgl { index },
            (CONTROL, DISCONNECT) => Message::Disconnect,
            (CONTROL, KEEPALIVE) => Message::Keepalive,
            (CONTROL, SHUTDOWN) => Message::Shutdown,
            _ => return None,
        })
    }
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        match self {
            Message::Data { .. } => "data",
            Message::Sgl { .. } => "SGL",
            Message::IomapSgl { .. } => "IOMAP SGL",
            Message::Disconnect => "disconnect",
            Message::Keepalive => "keepalive",
            Message::Shutdown => "shutdown",
            Message::Unknown(_) => "message",
        }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Data { len } => write!(f, " bytes {len}"),
            Message::Sgl { limit } => write!(f, " limit {limit}"),
            Message::IomapSgl { index } => write!(f, " index {index}"),
            Message::Disconnect | Message::Keepalive | Message::Shutdown | Message::Unknown(_) => Ok(()),
        }
    }
}

/// The recognition state of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// For each direction, whether its messages are big-endian; `None` without its private data.
    is_big_endian: [Option<bool>; 2],
}

impl Protocol for Connection {
    const NAME: &'static str = "rsockets";
    const TITLE: &'static str = "rsockets";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        let Some(octets) = bytes.first_chunk::<LEN>() else {
            return if is_complete { Verdict::Not } else { Verdict::Open };
        };
        let words = [u32::from_be_bytes(*octets), u32::from_le_bytes(*octets)];
        if is_complete && bytes.len() != LEN || words.iter().all(|word| Message::parse(*word).is_none()) {
            return Verdict::Not;
        }
        Verdict::Is { parsed: Message::Unknown(*octets), len: Len::Exactly(LEN as u64), proves: false }
    }

    fn headers(bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        match Self::read(bytes, is_complete) {
            Verdict::Is { .. } | Verdict::Open => only(0..bytes.len().min(LEN)),
            Verdict::Not => Vec::new(),
        }
    }

    fn startup(&mut self, startup: &Startup<'_>) -> StartupJudgement {
        let (own, peer) = (startup.direction, startup.direction.peer());
        let private = PrivateData::parse(startup.private).filter(|_| !startup.rejects);
        self.is_big_endian[own] = private.map(|private| private.is_big_endian);
        match (private, startup.kind) {
            (None, _) => StartupJudgement::Other,
            (Some(_), StartupKind::Reply) if self.is_big_endian[peer].is_some() => StartupJudgement::Proves,
            (Some(_), _) => StartupJudgement::Belongs,
        }
    }

    /// Reads the message in the byte order of its sender.
    fn message(&mut self, send: &SendInfo, message: &mut Message) -> Judgement {
        let (Message::Unknown(octets), Some(is_big_endian)) = (*message, self.is_big_endian[send.direction]) else {
            return Judgement::Open;
        };
        let word = if is_big_endian { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) };
        let Some(parsed) = Message::parse(word) else { return Judgement::Disproves };
        *message = parsed;
        Judgement::Open
    }
}
