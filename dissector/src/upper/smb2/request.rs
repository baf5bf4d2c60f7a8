//! [`Request`]: the body of a request (MS-SMB2 sections 2.2.3 to 2.2.39).
//!
//! Offsets count bytes from the start of the header. The parser reads the main parameters of each
//! command, and no blobs, contexts or file data.

use super::bytes::Bytes;
use super::channel::ChannelInfo;
use super::command::Command;
use super::file_id::FileId;
use super::header::HEADER_LEN;

/// Maximum number of stored dialects of a NEGOTIATE.
const MAX_DIALECTS: usize = 64;
/// Maximum number of stored ranges of a LOCK.
const MAX_LOCKS: usize = 64;

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// NEGOTIATE.
    Negotiate(NegotiateRequest),
    /// SESSION_SETUP.
    SessionSetup(SessionSetupRequest),
    /// LOGOFF.
    Logoff,
    /// TREE_CONNECT. `path` is `\\SERVER\SHARE`; `None` if its bytes are missing.
    TreeConnect {
        /// Path of the share.
        path: Option<String>,
    },
    /// TREE_DISCONNECT.
    TreeDisconnect,
    /// CREATE.
    Create(CreateRequest),
    /// CLOSE.
    Close {
        /// File to close.
        file: FileId,
        /// Whether the response has attributes of the file.
        wants_attributes: bool,
    },
    /// FLUSH.
    Flush {
        /// File to flush.
        file: FileId,
    },
    /// READ.
    Read(ReadRequest),
    /// WRITE.
    Write(WriteRequest),
    /// LOCK.
    Lock {
        /// File to lock.
        file: FileId,
        /// Number of ranges in the request.
        count: u16,
        /// The first 64 ranges whose bytes are in the message.
        ranges: Vec<LockRange>,
    },
    /// IOCTL.
    Ioctl {
        /// CtlCode.
        code: u32,
        /// File, or [`FileId::PREVIOUS`].
        file: FileId,
        /// InputCount in bytes.
        input_len: u32,
        /// MaxOutputResponse in bytes.
        max_output_len: u32,
        /// Whether the code is an FSCTL.
        is_fsctl: bool,
    },
    /// CANCEL.
    Cancel,
    /// ECHO.
    Echo,
    /// QUERY_DIRECTORY.
    QueryDirectory {
        /// FileInformationClass.
        class: u8,
        /// Flags.
        flags: u8,
        /// Directory to list.
        file: FileId,
        /// Search pattern; `None` if its bytes are missing.
        pattern: Option<String>,
        /// OutputBufferLength in bytes.
        output_len: u32,
    },
    /// CHANGE_NOTIFY.
    ChangeNotify {
        /// Directory to watch.
        file: FileId,
        /// Whether subdirectories are watched, too.
        watches_tree: bool,
        /// OutputBufferLength in bytes.
        output_len: u32,
    },
    /// QUERY_INFO.
    QueryInfo {
        /// Type and class of the information.
        info: InfoClass,
        /// File.
        file: FileId,
        /// OutputBufferLength in bytes.
        output_len: u32,
    },
    /// SET_INFO.
    SetInfo {
        /// Type and class of the information.
        info: InfoClass,
        /// File.
        file: FileId,
        /// BufferLength in bytes.
        len: u32,
    },
    /// OPLOCK_BREAK: the client acknowledges a broken oplock.
    OplockBreak {
        /// OplockLevel.
        level: u8,
        /// File.
        file: FileId,
    },
    /// OPLOCK_BREAK: the client acknowledges a broken lease.
    LeaseBreak {
        /// LeaseState.
        state: u32,
    },
    /// The command is unknown, or the body is too short, or its StructureSize is wrong.
    Unparsed,
}

/// NEGOTIATE Request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiateRequest {
    /// SecurityMode.
    pub security_mode: u16,
    /// Capabilities.
    pub capabilities: u32,
    /// ClientGuid.
    pub client_guid: [u8; 16],
    /// DialectCount.
    pub dialect_count: u16,
    /// The first 64 dialects whose bytes are in the message.
    pub dialects: Vec<u16>,
}

/// SESSION_SETUP Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSetupRequest {
    /// Flags.
    pub flags: u8,
    /// SecurityMode.
    pub security_mode: u8,
    /// Capabilities.
    pub capabilities: u32,
    /// PreviousSessionId.
    pub previous_session_id: u64,
}

/// CREATE Request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateRequest {
    /// RequestedOplockLevel.
    pub oplock: u8,
    /// DesiredAccess.
    pub desired_access: u32,
    /// ShareAccess.
    pub share_access: u32,
    /// CreateDisposition.
    pub disposition: u32,
    /// CreateOptions.
    pub options: u32,
    /// Name of the file below the share; empty for the share itself, and `None` if the bytes of the
    /// name are missing.
    pub name: Option<String>,
}

/// READ Request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// File.
    pub file: FileId,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Number of bytes to read.
    pub length: u32,
    /// Channel, with the buffers to which the server writes the data.
    pub channel: ChannelInfo,
}

/// WRITE Request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRequest {
    /// File.
    pub file: FileId,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length: number of bytes of data in the message. 0 if the data moves by RDMA.
    pub length: u32,
    /// RemainingBytes: number of bytes that the server reads by RDMA.
    pub remaining: u32,
    /// Channel, with the buffers from which the server reads the data.
    pub channel: ChannelInfo,
}

impl WriteRequest {
    /// Number of bytes to write, in the message and by RDMA together.
    #[must_use]
    pub fn total_len(&self) -> u64 {
        let by_rdma = if self.channel.channel.has_descriptors() { self.remaining } else { 0 };
        u64::from(self.length) + u64::from(by_rdma)
    }
}

/// A range of a file in a LOCK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRange {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Flags.
    pub flags: u32,
}

/// Type and class of information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoClass {
    /// InfoType.
    pub info_type: u8,
    /// FileInfoClass. Its meaning depends on `info_type`.
    pub class: u8,
}

impl InfoClass {
    /// InfoType of file information.
    pub const FILE: u8 = 1;
    /// InfoType of file system information.
    pub const FILE_SYSTEM: u8 = 2;
}

impl Request {
    /// Reads the body of a request with the command `command`. `pdu` starts with the header.
    #[must_use]
    pub fn parse(command: Command, pdu: &[u8]) -> Request {
        let pdu = Bytes(pdu);
        let size = pdu.u16(HEADER_LEN).unwrap_or(0);
        parse(command, size, pdu).unwrap_or(Request::Unparsed)
    }

    /// The file that the request names.
    #[must_use]
    pub fn file(&self) -> Option<FileId> {
        match self {
            Request::Close { file, .. }
            | Request::Flush { file }
            | Request::Read(ReadRequest { file, .. })
            | Request::Write(WriteRequest { file, .. })
            | Request::Lock { file, .. }
            | Request::Ioctl { file, .. }
            | Request::QueryDirectory { file, .. }
            | Request::ChangeNotify { file, .. }
            | Request::QueryInfo { file, .. }
            | Request::SetInfo { file, .. }
            | Request::OplockBreak { file, .. } => Some(*file),
            Request::Negotiate(_)
            | Request::SessionSetup(_)
            | Request::Logoff
            | Request::TreeConnect { .. }
            | Request::TreeDisconnect
            | Request::Create(_)
            | Request::Cancel
            | Request::Echo
            | Request::LeaseBreak { .. }
            | Request::Unparsed => None,
        }
    }

    /// The channel of a READ or WRITE.
    #[must_use]
    pub fn channel(&self) -> Option<&ChannelInfo> {
        match self {
            Request::Read(ReadRequest { channel, .. }) | Request::Write(WriteRequest { channel, .. }) => Some(channel),
            _ => None,
        }
    }

    /// Allocated memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        match self {
            Request::Negotiate(negotiate) => negotiate.dialects.capacity() * size_of::<u16>(),
            Request::TreeConnect { path } => text(path),
            Request::Create(create) => text(&create.name),
            Request::QueryDirectory { pattern, .. } => text(pattern),
            Request::Lock { ranges, .. } => ranges.capacity() * size_of::<LockRange>(),
            other => other.channel().map_or(0, ChannelInfo::memory),
        }
    }
}

/// Reads a body whose StructureSize is `size`.
fn parse(command: Command, size: u16, pdu: Bytes<'_>) -> Option<Request> {
    let file = |at| FileId::parse(pdu, at);
    // The text whose offset and length in bytes are at offset `at`.
    let text = |at: usize| Some(pdu.text(pdu.u16(at)?.into(), pdu.u16(at + 2)?.into()));
    Some(match (command, size) {
        (Command::NEGOTIATE, 36) => Request::Negotiate(negotiate(pdu)?),
        (Command::SESSION_SETUP, 25) => Request::SessionSetup(SessionSetupRequest {
            flags: pdu.u8(66)?,
            security_mode: pdu.u8(67)?,
            capabilities: pdu.u32(68)?,
            previous_session_id: pdu.u64(80)?,
        }),
        (Command::LOGOFF, 4) => Request::Logoff,
        (Command::TREE_CONNECT, 9) => Request::TreeConnect { path: text(68)? },
        (Command::TREE_DISCONNECT, 4) => Request::TreeDisconnect,
        (Command::CREATE, 57) => Request::Create(CreateRequest {
            oplock: pdu.u8(67)?,
            desired_access: pdu.u32(88)?,
            share_access: pdu.u32(96)?,
            disposition: pdu.u32(100)?,
            options: pdu.u32(104)?,
            name: text(108)?,
        }),
        (Command::CLOSE, 24) => Request::Close { file: file(72)?, wants_attributes: pdu.u16(66)? & 1 != 0 },
        (Command::FLUSH, 24) => Request::Flush { file: file(72)? },
        (Command::READ, 49) => Request::Read(ReadRequest {
            length: pdu.u32(68)?,
            offset: pdu.u64(72)?,
            file: file(80)?,
            channel: ChannelInfo::parse(pdu, pdu.u32(100)?, (pdu.u16(108)?, pdu.u16(110)?)),
        }),
        (Command::WRITE, 49) => Request::Write(WriteRequest {
            length: pdu.u32(68)?,
            offset: pdu.u64(72)?,
            file: file(80)?,
            channel: ChannelInfo::parse(pdu, pdu.u32(96)?, (pdu.u16(104)?, pdu.u16(106)?)),
            remaining: pdu.u32(100)?,
        }),
        (Command::LOCK, 48) => lock(pdu)?,
        (Command::IOCTL, 57) => Request::Ioctl {
            code: pdu.u32(68)?,
            file: file(72)?,
            input_len: pdu.u32(92)?,
            max_output_len: pdu.u32(108)?,
            is_fsctl: pdu.u32(112)? & 1 != 0,
        },
        (Command::CANCEL, 4) => Request::Cancel,
        (Command::ECHO, 4) => Request::Echo,
        (Command::QUERY_DIRECTORY, 33) => Request::QueryDirectory {
            class: pdu.u8(66)?,
            flags: pdu.u8(67)?,
            file: file(72)?,
            pattern: text(88)?,
            output_len: pdu.u32(92)?,
        },
        (Command::CHANGE_NOTIFY, 32) => {
            Request::ChangeNotify { watches_tree: pdu.u16(66)? & 1 != 0, output_len: pdu.u32(68)?, file: file(72)? }
        }
        (Command::QUERY_INFO, 41) => Request::QueryInfo { info: info(pdu)?, output_len: pdu.u32(68)?, file: file(88)? },
        (Command::SET_INFO, 33) => Request::SetInfo { info: info(pdu)?, len: pdu.u32(68)?, file: file(80)? },
        (Command::OPLOCK_BREAK, 24) => Request::OplockBreak { level: pdu.u8(66)?, file: file(72)? },
        (Command::OPLOCK_BREAK, 36) => Request::LeaseBreak { state: pdu.u32(88)? },
        _ => return None,
    })
}

fn negotiate(pdu: Bytes<'_>) -> Option<NegotiateRequest> {
    let dialect_count = pdu.u16(66)?;
    let stored = usize::from(dialect_count).min(MAX_DIALECTS);
    Some(NegotiateRequest {
        security_mode: pdu.u16(68)?,
        capabilities: pdu.u32(72)?,
        client_guid: pdu.array(76)?,
        dialect_count,
        dialects: (0..stored).map_while(|number| pdu.u16(100 + 2 * number)).collect(),
    })
}

fn lock(pdu: Bytes<'_>) -> Option<Request> {
    let count = pdu.u16(66)?;
    let range = |number: usize| {
        let at = 88 + 24 * number;
        Some(LockRange { offset: pdu.u64(at)?, length: pdu.u64(at + 8)?, flags: pdu.u32(at + 16)? })
    };
    let ranges = (0..usize::from(count).min(MAX_LOCKS)).map_while(range).collect();
    Some(Request::Lock { file: FileId::parse(pdu, 72)?, count, ranges })
}

fn info(pdu: Bytes<'_>) -> Option<InfoClass> {
    Some(InfoClass { info_type: pdu.u8(66)?, class: pdu.u8(67)? })
}
