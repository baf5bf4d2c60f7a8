//! [`Response`]: the body of a response (MS-SMB2 sections 2.2.2 to 2.2.40).
//!
//! Offsets count bytes from the start of the header. The parser reads the main parameters of each
//! command, and no blobs, contexts or file data.

use super::bytes::Bytes;
use super::command::Command;
use super::file_id::FileId;
use super::header::HEADER_LEN;
use super::status::Status;

/// StructureSize of an error response, and of some other responses.
const ERROR_SIZE: u16 = 9;

/// The body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// The command failed or is pending.
    Error {
        /// ByteCount: length of the error data in bytes.
        len: u32,
    },
    /// NEGOTIATE.
    Negotiate(NegotiateResponse),
    /// SESSION_SETUP.
    SessionSetup {
        /// SessionFlags.
        flags: u16,
    },
    /// TREE_CONNECT.
    TreeConnect {
        /// ShareType.
        share_type: u8,
        /// ShareFlags.
        flags: u32,
        /// Capabilities.
        capabilities: u32,
    },
    /// CREATE.
    Create {
        /// OplockLevel.
        oplock: u8,
        /// CreateAction.
        action: u32,
        /// EndofFile: size of the file in bytes.
        size: u64,
        /// The opened file.
        file: FileId,
    },
    /// CLOSE.
    Close {
        /// EndofFile: size of the file in bytes; `None` if the request did not request attributes.
        size: Option<u64>,
    },
    /// READ.
    Read {
        /// DataLength: number of bytes that were read.
        length: u32,
        /// DataRemaining: number of these bytes that the server wrote by RDMA.
        remaining: u32,
    },
    /// WRITE.
    Write {
        /// Count: number of bytes that were written.
        count: u32,
    },
    /// IOCTL.
    Ioctl {
        /// CtlCode.
        code: u32,
        /// File, or [`FileId::PREVIOUS`].
        file: FileId,
        /// OutputCount in bytes.
        output_len: u32,
    },
    /// QUERY_DIRECTORY, CHANGE_NOTIFY or QUERY_INFO.
    Output {
        /// OutputBufferLength in bytes.
        len: u32,
    },
    /// OPLOCK_BREAK: an oplock is broken, or the server confirms this.
    OplockBreak {
        /// OplockLevel.
        level: u8,
        /// File.
        file: FileId,
    },
    /// OPLOCK_BREAK: a lease is broken. The value is the new state.
    LeaseBreak {
        /// NewLeaseState, or the confirmed LeaseState.
        state: u32,
    },
    /// LOGOFF, TREE_DISCONNECT, FLUSH, LOCK, ECHO or SET_INFO. Their responses have no parameters.
    Empty,
    /// The command is unknown, or the body is too short, or its StructureSize is wrong.
    Unparsed,
}

/// NEGOTIATE Response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NegotiateResponse {
    /// SecurityMode.
    pub security_mode: u16,
    /// DialectRevision.
    pub dialect: u16,
    /// ServerGuid.
    pub server_guid: [u8; 16],
    /// Capabilities.
    pub capabilities: u32,
    /// MaxTransactSize in bytes.
    pub max_transact_size: u32,
    /// MaxReadSize in bytes.
    pub max_read_size: u32,
    /// MaxWriteSize in bytes.
    pub max_write_size: u32,
}

impl Response {
    /// Reads the body of a response with the command `command` and the status `status`. `pdu`
    /// starts with the header.
    #[must_use]
    pub fn parse(command: Command, status: Status, pdu: &[u8]) -> Response {
        let pdu = Bytes(pdu);
        let size = pdu.u16(HEADER_LEN).unwrap_or(0);
        parse(command, status, size, pdu).unwrap_or(Response::Unparsed)
    }
}

/// Returns whether a response with this status has no result of its command.
fn has_no_result(command: Command, status: Status) -> bool {
    match status {
        Status::MORE_PROCESSING_REQUIRED => command != Command::SESSION_SETUP,
        Status::PENDING | Status::NO_MORE_FILES | Status::STOPPED_ON_SYMLINK => true,
        other => other.is_error(),
    }
}

/// Reads a body whose StructureSize is `size`.
fn parse(command: Command, status: Status, size: u16, pdu: Bytes<'_>) -> Option<Response> {
    let file = |at| FileId::parse(pdu, at);
    if size == ERROR_SIZE && has_no_result(command, status) {
        return Some(Response::Error { len: pdu.u32(68)? });
    }
    Some(match (command, size) {
        (Command::NEGOTIATE, 65) => Response::Negotiate(NegotiateResponse {
            security_mode: pdu.u16(66)?,
            dialect: pdu.u16(68)?,
            server_guid: pdu.array(72)?,
            capabilities: pdu.u32(88)?,
            max_transact_size: pdu.u32(92)?,
            max_read_size: pdu.u32(96)?,
            max_write_size: pdu.u32(100)?,
        }),
        (Command::SESSION_SETUP, 9) => Response::SessionSetup { flags: pdu.u16(66)? },
        (Command::TREE_CONNECT, 16) => {
            Response::TreeConnect { share_type: pdu.u8(66)?, flags: pdu.u32(68)?, capabilities: pdu.u32(72)? }
        }
        (Command::CREATE, 89) => {
            Response::Create { oplock: pdu.u8(66)?, action: pdu.u32(68)?, size: pdu.u64(112)?, file: file(128)? }
        }
        (Command::CLOSE, 60) => {
            let has_attributes = pdu.u16(66)? & 1 != 0;
            Response::Close { size: Some(pdu.u64(112)?).filter(|_| has_attributes) }
        }
        (Command::READ, 17) => Response::Read { length: pdu.u32(68)?, remaining: pdu.u32(72)? },
        (Command::WRITE, 17) => Response::Write { count: pdu.u32(68)? },
        (Command::IOCTL, 49) => Response::Ioctl { code: pdu.u32(68)?, file: file(72)?, output_len: pdu.u32(100)? },
        (Command::QUERY_DIRECTORY | Command::CHANGE_NOTIFY | Command::QUERY_INFO, 9) => {
            Response::Output { len: pdu.u32(68)? }
        }
        (Command::OPLOCK_BREAK, 24) => Response::OplockBreak { level: pdu.u8(66)?, file: file(72)? },
        // A notification has NewLeaseState, and a response has LeaseState.
        (Command::OPLOCK_BREAK, 44) => Response::LeaseBreak { state: pdu.u32(92)? },
        (Command::OPLOCK_BREAK, 36) => Response::LeaseBreak { state: pdu.u32(88)? },
        (Command::LOGOFF | Command::TREE_DISCONNECT | Command::FLUSH | Command::LOCK | Command::ECHO, 4)
        | (Command::SET_INFO, 2) => Response::Empty,
        _ => return None,
    })
}
