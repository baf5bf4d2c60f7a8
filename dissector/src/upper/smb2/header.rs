//! [`Header`]: the header of each SMB2 request and response (MS-SMB2 section 2.2.1).

use super::bytes::Bytes;
use super::command::Command;
use super::status::Status;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 64;
/// The first bytes of each header.
const SIGNATURE: [u8; 4] = *b"\xfeSMB";
/// StructureSize of each header.
const STRUCTURE_SIZE: u16 = 64;
/// The message ID of a message that answers no request.
pub(super) const NO_MESSAGE_ID: u64 = u64::MAX;

/// The field Flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    const RESPONSE: u32 = 1;
    const ASYNC: u32 = 2;
    const RELATED: u32 = 4;

    /// Returns whether the message is a response.
    #[must_use]
    pub fn is_response(self) -> bool {
        self.0 & Self::RESPONSE != 0
    }

    /// Returns whether the header has an async ID in place of the tree ID.
    #[must_use]
    pub fn is_async(self) -> bool {
        self.0 & Self::ASYNC != 0
    }

    /// Returns whether the message uses the session, the tree and the file of the message before it
    /// in the compound.
    #[must_use]
    pub fn is_related(self) -> bool {
        self.0 & Self::RELATED != 0
    }
}

/// The header of a request or response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// CreditCharge: the number of credits that the request uses.
    pub credit_charge: u16,
    /// Status; `None` in a request.
    pub status: Option<Status>,
    /// ChannelSequence; `None` in a response.
    pub channel_sequence: Option<u16>,
    /// Command.
    pub command: Command,
    /// CreditRequest in a request, CreditResponse in a response.
    pub credits: u16,
    /// Flags.
    pub flags: Flags,
    /// NextCommand: offset of the next header of the compound in bytes, counted from the start of
    /// this header. 0 if this header is the last one.
    pub next_command: u32,
    /// MessageId.
    pub message_id: u64,
    /// AsyncId, if the flags announce it.
    pub async_id: Option<u64>,
    /// TreeId, if the header has no AsyncId.
    pub tree_id: Option<u32>,
    /// SessionId.
    pub session_id: u64,
}

impl Header {
    /// Reads the header at the start of `bytes`. Returns `None` if `bytes` are too short, or do not
    /// start with a header.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let bytes = Bytes(bytes.get(..HEADER_LEN)?);
        if bytes.array::<4>(0)? != SIGNATURE || bytes.u16(4)? != STRUCTURE_SIZE {
            return None;
        }
        let flags = Flags(bytes.u32(16)?);
        let is_response = flags.is_response();
        Some(Header {
            credit_charge: bytes.u16(6)?,
            status: bytes.u32(8).map(Status).filter(|_| is_response),
            channel_sequence: bytes.u16(8).filter(|_| !is_response),
            command: Command(bytes.u16(12)?),
            credits: bytes.u16(14)?,
            flags,
            next_command: bytes.u32(20)?,
            message_id: bytes.u64(24)?,
            async_id: bytes.u64(32).filter(|_| flags.is_async()),
            tree_id: bytes.u32(36).filter(|_| !flags.is_async()),
            session_id: bytes.u64(40)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The header of the TREE_CONNECT Response in frame 21 of `smb-ops.pcap`.
    const RESPONSE: &str = "fe534d42 4000 0100 00000000 0300 4000 09000000 00000000 0300000000000000
        9b010000 01000000 0100000000000000 6b0078690da0e7256bdf901cf52497be";

    #[test]
    fn reads_a_response() {
        let header = Header::parse(&hex(RESPONSE)).unwrap();
        assert_eq!((header.command, header.status), (Command::TREE_CONNECT, Some(Status::SUCCESS)));
        assert_eq!((header.credit_charge, header.credits, header.message_id), (1, 64, 3));
        assert_eq!((header.tree_id, header.async_id, header.session_id), (Some(1), None, 1));
        assert_eq!((header.channel_sequence, header.next_command), (None, 0));
        assert!(header.flags.is_response() && !header.flags.is_related());
    }

    #[test]
    fn an_async_header_has_no_tree() {
        // SMB2_FLAGS_ASYNC_COMMAND, and STATUS_PENDING.
        let bytes = RESPONSE.replace("00000000 0300 4000 09000000", "03010000 0300 4000 0b000000");
        let header = Header::parse(&hex(&bytes)).unwrap();
        assert_eq!((header.tree_id, header.async_id), (None, Some(0x0000_0001_0000_019b)));
        assert_eq!(header.status, Some(Status::PENDING));
    }

    #[test]
    fn other_bytes_are_no_header() {
        let bytes = hex(RESPONSE);
        assert_eq!(Header::parse(&bytes[..63]), None);
        assert_eq!(Header::parse(&hex(&RESPONSE.replace("fe534d42", "ff534d42"))), None);
        assert_eq!(Header::parse(&hex(&RESPONSE.replace("fe534d42 4000", "fe534d42 4100"))), None);
    }
}
