//! [`Message`]: a complete message of SMB 2 or 3: a compound of requests or responses, or a message
//! whose content is encrypted or compressed (MS-SMB2 sections 2.2.1, 2.2.41 and 2.2.42).

use std::fmt;

use super::bytes::Bytes;
use super::header::{HEADER_LEN, Header};
use super::pdu::{Body, Pdu};
use super::request::Request;
use super::response::Response;

/// Maximum number of requests or responses that are read from a compound.
pub const MAX_COMPOUND: usize = 64;
/// The first bytes of an encrypted message, and of a compressed message.
const ENCRYPTED: [u8; 4] = *b"\xfdSMB";
const COMPRESSED: [u8; 4] = *b"\xfcSMB";

/// A complete message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Requests and responses.
    Compound(Compound),
    /// An encrypted message. weft reads only its transform header.
    Encrypted(TransformHeader),
    /// A compressed message. weft reads only its compression header.
    Compressed(CompressionHeader),
}

/// The requests and responses of a message. Most messages have only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compound {
    /// At least one, and at most [`MAX_COMPOUND`] requests and responses.
    pub pdus: Vec<Pdu>,
    /// Where the compound ends.
    pub end: CompoundEnd,
}

/// The reason why no further request or response of a compound was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompoundEnd {
    /// The last header has no NextCommand.
    Complete,
    /// The next header is after the bytes that were captured and stored.
    NotStored,
    /// NextCommand is not a multiple of 8, is less than the length of a header, or exceeds the
    /// message.
    WrongNextCommand,
    /// NextCommand names bytes that are not a header.
    NoHeader,
    /// The compound has more than [`MAX_COMPOUND`] requests or responses.
    TooLong,
}

impl CompoundEnd {
    /// A description of a compound that was not read to its end.
    #[must_use]
    pub fn problem(self) -> Option<&'static str> {
        Some(match self {
            CompoundEnd::Complete => return None,
            CompoundEnd::NotStored => "rest of the compound not captured or not stored",
            CompoundEnd::WrongNextCommand => "NextCommand is wrong",
            CompoundEnd::NoHeader => "no header at NextCommand",
            CompoundEnd::TooLong => "rest of a long compound not read",
        })
    }
}

/// The header of an encrypted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformHeader {
    /// OriginalMessageSize in bytes.
    pub original_size: u32,
    /// Flags, or EncryptionAlgorithm in SMB 3.0 and 3.0.2.
    pub flags: u16,
    /// SessionId.
    pub session_id: u64,
}

/// The header of a compressed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionHeader {
    /// OriginalCompressedSegmentSize in bytes.
    pub original_size: u32,
    /// CompressionAlgorithm.
    pub algorithm: u16,
    /// Flags.
    pub flags: u16,
}

impl Message {
    /// Reads a message. `bytes` are its first bytes, and `len` is the length of the message.
    /// Returns `None` if `bytes` are not the start of a message.
    #[must_use]
    pub fn parse(bytes: &[u8], len: u64) -> Option<Message> {
        let start = Bytes(bytes);
        match start.array::<4>(0)? {
            ENCRYPTED => Some(Message::Encrypted(TransformHeader {
                original_size: start.u32(36)?,
                flags: start.u16(42)?,
                session_id: start.u64(44)?,
            })),
            COMPRESSED => Some(Message::Compressed(CompressionHeader {
                original_size: start.u32(4)?,
                algorithm: start.u16(8)?,
                flags: start.u16(10)?,
            })),
            _ => compound(bytes, len).map(Message::Compound),
        }
    }

    /// The requests and responses; empty if they are encrypted or compressed.
    #[must_use]
    pub fn pdus(&self) -> &[Pdu] {
        match self {
            Message::Compound(compound) => &compound.pdus,
            Message::Encrypted(_) | Message::Compressed(_) => &[],
        }
    }

    /// The requests and responses, to add what earlier messages show about them.
    pub(super) fn pdus_mut(&mut self) -> &mut [Pdu] {
        match self {
            Message::Compound(compound) => &mut compound.pdus,
            Message::Encrypted(_) | Message::Compressed(_) => &mut [],
        }
    }

    /// Allocated memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.pdus().iter().map(|pdu| size_of::<Pdu>() + pdu.memory()).sum()
    }
}

/// Reads a compound. Each step moves on by at least the length of a header, and the number of steps
/// has a limit.
fn compound(bytes: &[u8], len: u64) -> Option<Compound> {
    let mut pdus = Vec::new();
    let mut at = 0;
    let end = loop {
        if pdus.len() == MAX_COMPOUND {
            break CompoundEnd::TooLong;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let left = len.saturating_sub(at as u64);
        let Some(header) = Header::parse(rest) else {
            let is_cut = rest.len() < HEADER_LEN && left >= HEADER_LEN as u64;
            break if is_cut { CompoundEnd::NotStored } else { CompoundEnd::NoHeader };
        };
        let next = header.next_command as usize;
        let has_next = next != 0;
        let is_valid = next >= HEADER_LEN && next.is_multiple_of(8) && (next as u64) < left;
        let pdu_len = if has_next && is_valid { next as u64 } else { left };
        let octets = &rest[..rest.len().min(usize::try_from(pdu_len).unwrap_or(usize::MAX))];
        let body = match header.status {
            Some(status) => Body::Response(Response::parse(header.command, status, octets)),
            None => Body::Request(Request::parse(header.command, octets)),
        };
        pdus.push(Pdu { at: at as u64, len: pdu_len, header, body, answered: None, early_response: None });
        match (has_next, is_valid) {
            (false, _) => break CompoundEnd::Complete,
            (true, false) => break CompoundEnd::WrongNextCommand,
            (true, true) => at = at.saturating_add(next),
        }
    };
    (!pdus.is_empty()).then_some(Compound { pdus, end })
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Compound(compound) => {
                for (number, pdu) in compound.pdus.iter().enumerate() {
                    write!(f, "{}{pdu}", if number == 0 { "SMB2 " } else { ", " })?;
                }
                match compound.end.problem() {
                    Some(problem) => write!(f, ", {problem}"),
                    None => Ok(()),
                }
            }
            Message::Encrypted(header) => {
                write!(f, "SMB3 encrypted, {} bytes, session {:#x}", header.original_size, header.session_id)
            }
            Message::Compressed(header) => write!(f, "SMB3 compressed, {} bytes", header.original_size),
        }
    }
}
