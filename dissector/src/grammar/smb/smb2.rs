//! Defines the fields of messages of SMB 2 and 3 (MS-SMB2 section 2.2). All fields are
//! little-endian.

use crate::grammar::field::{Base, Field, Group, fields};
use crate::upper::smb2::names;

/// A request or response, or an encrypted or compressed message.
pub static SMB2: Group = Group { name: "smb2", label: "SMB2", section: "MS-SMB2 2.2.1" };

/// A dialect that a client offers.
pub static DIALECTS: Group = Group { name: "smb2.dialects", label: "Dialect", section: "MS-SMB2 2.2.3" };

/// A buffer of the client.
pub static DESCRIPTOR: Group =
    Group { name: "smb2.buffer_descriptor", label: "Buffer Descriptor V1", section: "MS-SMBD 2.2.3.1" };

/// A range of a lock.
pub static LOCK_INFO: Group = Group { name: "smb2.lock_info", label: "Lock", section: "MS-SMB2 2.2.26.1" };

fields! { 19:
    KIND: "weft.smb2.kind", "Kind of message", Base::Text, "MS-SMB2 2.2.1";
    CREDIT_CHARGE: "smb2.credit.charge", "CreditCharge", Base::Dec, "MS-SMB2 2.2.1", le true;
    NT_STATUS: "smb2.nt_status", "Status", Base::Hex(8), "MS-SMB2 2.2.1", names names::status, le true;
    CHANNEL_SEQUENCE: "smb2.channel_sequence", "ChannelSequence", Base::Dec, "MS-SMB2 2.2.1", le true;
    CMD: "smb2.cmd", "Command", Base::Dec, "MS-SMB2 2.2.1", names names::command, le true;
    CREDITS_REQUESTED: "smb2.credits.requested", "CreditRequest", Base::Dec, "MS-SMB2 2.2.1", le true;
    CREDITS_GRANTED: "smb2.credits.granted", "CreditResponse", Base::Dec, "MS-SMB2 2.2.1", le true;
    FLAGS: "smb2.flags", "Flags", Base::Hex(8), "MS-SMB2 2.2.1", le true;
    FLAGS_RESPONSE: "smb2.flags.response", "SMB2_FLAGS_SERVER_TO_REDIR", Base::Flag, "MS-SMB2 2.2.1", mask 0x00000001, le true;
    FLAGS_ASYNC: "smb2.flags.async", "SMB2_FLAGS_ASYNC_COMMAND", Base::Flag, "MS-SMB2 2.2.1", mask 0x00000002, le true;
    FLAGS_CHAINED: "smb2.flags.chained", "SMB2_FLAGS_RELATED_OPERATIONS", Base::Flag, "MS-SMB2 2.2.1", mask 0x00000004, le true;
    FLAGS_SIGNATURE: "smb2.flags.signature", "SMB2_FLAGS_SIGNED", Base::Flag, "MS-SMB2 2.2.1", mask 0x00000008, le true;
    FLAGS_DFS: "smb2.flags.dfs", "SMB2_FLAGS_DFS_OPERATIONS", Base::Flag, "MS-SMB2 2.2.1", mask 0x10000000, le true;
    FLAGS_REPLAY: "smb2.flags.replay", "SMB2_FLAGS_REPLAY_OPERATION", Base::Flag, "MS-SMB2 2.2.1", mask 0x20000000, le true;
    CHAIN_OFFSET: "smb2.chain_offset", "NextCommand", Base::Hex(8), "MS-SMB2 2.2.1", le true;
    MSG_ID: "smb2.msg_id", "MessageId", Base::Dec, "MS-SMB2 2.2.1", le true;
    AID: "smb2.aid", "AsyncId", Base::Hex(16), "MS-SMB2 2.2.1", le true;
    TID: "smb2.tid", "TreeId", Base::Hex(8), "MS-SMB2 2.2.1", le true;
    SESID: "smb2.sesid", "SessionId", Base::Hex(16), "MS-SMB2 2.2.1", le true;
    RESPONSE_TO: "smb2.response_to", "Frame of the request", Base::Dec, "MS-SMB2 3.3.4.1";
    PROBLEM: "weft.smb2.problem", "Why the message was not read completely", Base::Text, "MS-SMB2 2.2.1";
    DIALECT: "smb2.dialect", "Dialect", Base::Hex(4), "MS-SMB2 2.2.3", names names::dialect, le true;
    SEC_MODE: "smb2.sec_mode", "SecurityMode", Base::Hex(2), "MS-SMB2 2.2.3", le true;
    CAPABILITIES: "smb2.capabilities", "Capabilities", Base::Hex(8), "MS-SMB2 2.2.3", le true;
    CLIENT_GUID: "smb2.client_guid", "ClientGuid", Base::Octets, "MS-SMB2 2.2.3";
    SERVER_GUID: "smb2.server_guid", "ServerGuid", Base::Octets, "MS-SMB2 2.2.4";
    MAX_TRANS_SIZE: "smb2.max_trans_size", "MaxTransactSize", Base::Dec, "MS-SMB2 2.2.4", le true;
    MAX_READ_SIZE: "smb2.max_read_size", "MaxReadSize", Base::Dec, "MS-SMB2 2.2.4", le true;
    MAX_WRITE_SIZE: "smb2.max_write_size", "MaxWriteSize", Base::Dec, "MS-SMB2 2.2.4", le true;
    SESSION_FLAGS: "smb2.session_flags", "SessionFlags", Base::Hex(4), "MS-SMB2 2.2.6", le true;
    PREVIOUS_SESID: "smb2.previous_sesid", "PreviousSessionId", Base::Hex(16), "MS-SMB2 2.2.5", le true;
    TREE: "smb2.tree", "Path", Base::Text, "MS-SMB2 2.2.9";
    SHARE_TYPE: "smb2.share_type", "ShareType", Base::Hex(2), "MS-SMB2 2.2.10", names names::share_type, le true;
    FILENAME: "smb2.filename", "Name", Base::Text, "MS-SMB2 2.2.13";
    DISPOSITION: "smb2.create.disposition", "CreateDisposition", Base::Dec, "MS-SMB2 2.2.13", names names::disposition, le true;
    ACTION: "smb2.create.action", "CreateAction", Base::Dec, "MS-SMB2 2.2.14", names names::create_action, le true;
    OPLOCK: "smb2.create.oplock", "OplockLevel", Base::Hex(2), "MS-SMB2 2.2.13", names names::oplock, le true;
    FID: "smb2.fid", "FileId", Base::Octets, "MS-SMB2 2.2.14.1";
    EOF: "smb2.eof", "EndofFile", Base::Dec, "MS-SMB2 2.2.14", le true;
    READ_LENGTH: "smb2.read_length", "Length", Base::Dec, "MS-SMB2 2.2.19", le true;
    READ_REMAINING: "smb2.read_remaining", "DataRemaining", Base::Dec, "MS-SMB2 2.2.20", le true;
    WRITE_LENGTH: "smb2.write_length", "Length", Base::Dec, "MS-SMB2 2.2.21", le true;
    WRITE_COUNT: "smb2.write.count", "Count", Base::Dec, "MS-SMB2 2.2.22", le true;
    FILE_OFFSET: "smb2.file_offset", "Offset", Base::Dec, "MS-SMB2 2.2.19", le true;
    REMAINING_BYTES: "smb2.remaining_bytes", "RemainingBytes", Base::Dec, "MS-SMB2 2.2.21", le true;
    CHANNEL: "smb2.channel", "Channel", Base::Hex(8), "MS-SMB2 2.2.19", names names::channel, le true;
    DESCRIPTOR_COUNT: "weft.smb2.descriptors", "Number of buffer descriptors", Base::Dec, "MS-SMBD 2.2.3.1";
    DESCRIPTOR_OFFSET: "smb2.buffer_descriptor.offset", "Offset", Base::Dec, "MS-SMBD 2.2.3.1", le true;
    DESCRIPTOR_TOKEN: "smb2.buffer_descriptor.token", "Token", Base::Hex(8), "MS-SMBD 2.2.3.1", le true;
    DESCRIPTOR_LENGTH: "smb2.buffer_descriptor.length", "Length", Base::Dec, "MS-SMBD 2.2.3.1", le true;
    CLASS: "smb2.class", "InfoType", Base::Hex(2), "MS-SMB2 2.2.37", names names::info_type, le true;
    INFOLEVEL: "smb2.infolevel", "FileInfoClass", Base::Hex(2), "MS-SMB2 2.2.37", le true;
    FILE_INFOLEVEL: "smb2.file_info.infolevel", "FileInfoClass", Base::Hex(2), "MS-SMB2 2.2.37", names names::file_info, le true;
    FS_INFOLEVEL: "smb2.fs_info.infolevel", "FileInfoClass", Base::Hex(2), "MS-SMB2 2.2.37", names names::fs_info, le true;
    FIND_INFOLEVEL: "smb2.find.infolevel", "FileInformationClass", Base::Dec, "MS-SMB2 2.2.33", names names::file_info, le true;
    FIND_PATTERN: "smb2.find.pattern", "FileName", Base::Text, "MS-SMB2 2.2.33";
    IOCTL_FUNCTION: "smb2.ioctl.function", "CtlCode", Base::Hex(8), "MS-SMB2 2.2.31", names names::ioctl, le true;
    LOCK_COUNT: "smb2.lock_count", "LockCount", Base::Dec, "MS-SMB2 2.2.26", le true;
    LOCK_LENGTH: "smb2.lock_length", "Length", Base::Dec, "MS-SMB2 2.2.26.1", le true;
    LOCK_FLAGS: "smb2.lock_flags", "Flags", Base::Hex(8), "MS-SMB2 2.2.26.1", le true;
    OUTPUT_BUFFER_LEN: "smb2.output_buffer_len", "OutputBufferLength", Base::Dec, "MS-SMB2 2.2.37", le true;
    MSG_SIZE: "smb2.header.transform.msg_size", "OriginalMessageSize", Base::Dec, "MS-SMB2 2.2.41", le true;
    COMPRESSION: "smb2.header.comp_transform.comp_alg", "CompressionAlgorithm", Base::Dec, "MS-SMB2 2.2.42", names names::compression, le true;
    ORIGINAL_SIZE: "smb2.header.comp_transform.original_size", "OriginalCompressedSegmentSize", Base::Dec, "MS-SMB2 2.2.42", le true;
}
