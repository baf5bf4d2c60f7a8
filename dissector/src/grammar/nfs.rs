//! Defines the fields of NFS messages that RPC-over-RDMA carries: NFS version 3 (RFC 1813), NFS
//! version 4 (RFC 7530, 8881, 7862, 8276), and its callbacks.

use super::field::{Base, Field, Group, Value, Visitor, fields, nth_name};
use super::rpcordma::{Fields, Locator};
use crate::upper::rpcrdma::Decoded;
use crate::upper::rpcrdma::message::{RpcMessage, Target};
use crate::upper::rpcrdma::nfs::{
    Body, Operation, Parameter, ParameterKind as P, ParameterValue, operation_name, status_name,
};
use crate::upper::rpcrdma::program::Program;

/// The arguments or results of a procedure.
pub static BODY: Group = Group { name: "nfs", label: "Network File System", section: "" };
/// An operation of a COMPOUND.
pub static OPERATION: Group = Group { name: "nfs.operation", label: "Operation", section: "RFC 8881 16.2" };

fields! { 18:
    PROCEDURE_V3: "nfs.procedure_v3", "V3 procedure", Base::Dec, "RFC 1813 3", names procedure_3_name;
    PROCEDURE_V4: "nfs.procedure_v4", "V4 procedure", Base::Dec, "RFC 8881 16", names procedure_4_name;
    CB_PROCEDURE: "nfs.cb_procedure", "Callback procedure", Base::Dec, "RFC 8881 20", names callback_procedure_name;
    TAG: "nfs.tag", "Tag", Base::Text, "RFC 8881 16.2";
    MINORVERSION: "nfs.minorversion", "Minor version", Base::Dec, "RFC 8881 16.2";
    OPS_COUNT: "nfs.ops.count", "Operations", Base::Dec, "RFC 8881 16.2";
    OPCODE: "nfs.opcode", "Operation", Base::Dec, "RFC 8881 16.2", names operation_4_name;
    CB_OPERATION: "nfs.cb.operation", "Callback operation", Base::Dec, "RFC 8881 20.2", names callback_name;
    NFSSTAT3: "nfs.nfsstat3", "Status", Base::Dec, "RFC 1813 2.6", names status_3_name;
    NFSSTAT4: "nfs.nfsstat4", "Status", Base::Dec, "RFC 8881 15.1", names status_4_name;
    FHANDLE: "nfs.fhandle", "File handle", Base::Octets, "RFC 8881 4";
    NAME: "nfs.name", "Name", Base::Text, "RFC 8881 2.3.1";
    SYMLINK_LINKTEXT: "nfs.symlink.linktext", "Link target", Base::Text, "RFC 8881 18.24";
    READLINK_DATA: "nfs.readlink.data", "Link target", Base::Text, "RFC 1813 3.3.5";
    OFFSET3: "nfs.offset3", "Offset", Base::Dec, "RFC 1813 2.5";
    COUNT3: "nfs.count3", "Count", Base::Dec, "RFC 1813 2.5";
    OFFSET4: "nfs.offset4", "Offset", Base::Dec, "RFC 8881 3.1";
    COUNT4: "nfs.count4", "Count", Base::Dec, "RFC 8881 3.1";
    LENGTH4: "nfs.length4", "Length", Base::Dec, "RFC 8881 3.1";
    READ_DATA_LENGTH: "nfs.read.data_length", "Length of the read data", Base::Dec, "RFC 8881 18.22";
    WRITE_DATA_LENGTH: "nfs.write.data_length", "Length of the data to write", Base::Dec, "RFC 8881 18.32";
    REDUCED: "nfs.data_in_chunk", "Data is in a chunk", Base::Flag, "RFC 8267 2";
    WRITE_STABLE: "nfs.write.stable", "Stable", Base::Dec, "RFC 1813 3.3.7", names stable_name;
    WRITE_COMMITTED: "nfs.write.committed", "Committed", Base::Dec, "RFC 1813 3.3.7", names stable_name;
    STABLE_HOW4: "nfs.stable_how4", "Stable", Base::Dec, "RFC 8881 18.32", names stable_name;
    READ_EOF: "nfs.read.eof", "End of file", Base::Flag, "RFC 1813 3.3.6";
    EOF: "nfs.eof", "End of file or directory", Base::Flag, "RFC 8881 18.22";
    ACCESS_CHECK: "nfs.access_check", "Rights to check", Base::Hex(2), "RFC 8881 18.1";
    ACCESS_SUPPORTED: "nfs.access_supported", "Supported rights", Base::Hex(2), "RFC 8881 18.1";
    ACCESS_RIGHTS: "nfs.access_rights", "Granted rights", Base::Hex(2), "RFC 8881 18.1";
    COOKIE3: "nfs.cookie3", "Cookie", Base::Dec, "RFC 1813 3.3.16";
    COOKIE4: "nfs.cookie4", "Cookie", Base::Dec, "RFC 8881 18.23";
    COUNT3_DIRCOUNT: "nfs.count3_dircount", "Maximum directory bytes", Base::Dec, "RFC 1813 3.3.17";
    COUNT3_MAXCOUNT: "nfs.count3_maxcount", "Maximum bytes", Base::Dec, "RFC 1813 3.3.17";
    DIRCOUNT: "nfs.dircount", "Maximum directory bytes", Base::Dec, "RFC 8881 18.23";
    MAXCOUNT: "nfs.maxcount", "Maximum bytes", Base::Dec, "RFC 8881 18.23";
    ENTRIES: "nfs.entries", "Directory entries", Base::Dec, "RFC 8881 18.23";
    SIZE: "nfs.fattr3.size", "File size", Base::Dec, "RFC 1813 2.6";
    TYPE3: "nfs.type", "File type", Base::Dec, "RFC 1813 2.6", names type_name;
    TYPE4: "nfs.nfs_ftype4", "File type", Base::Dec, "RFC 8881 3.2", names type_name;
    ATTR: "nfs.attr", "Attribute", Base::Dec, "RFC 8881 5.6";
    STATEID_SEQID: "nfs.stateid.seqid", "State id sequence number", Base::Hex(8), "RFC 8881 8.2.2";
    STATEID_OTHER: "nfs.stateid4.other", "State id", Base::Octets, "RFC 8881 8.2.2";
    SEQID: "nfs.seqid", "Sequence number", Base::Hex(8), "RFC 8881 2.10.6.1";
    SLOTID: "nfs.slotid4", "Slot", Base::Dec, "RFC 8881 2.10.6.1";
    HIGH_SLOTID: "nfs.high.slotid4", "Highest slot", Base::Dec, "RFC 8881 18.46";
    TARGET_HIGH_SLOTID: "nfs.target.high.slotid4", "Target highest slot", Base::Dec, "RFC 8881 18.46";
    SESSION_ID: "nfs.session_id4", "Session id", Base::Octets, "RFC 8881 2.10.3";
    CACHETHIS: "nfs.cachethis4", "Store the reply", Base::Flag, "RFC 8881 18.46";
    CLIENTID: "nfs.clientid", "Client id", Base::Hex(16), "RFC 8881 2.4";
    SHARE_ACCESS: "nfs.open4.share_access", "Share access", Base::Hex(8), "RFC 8881 18.16";
    SHARE_DENY: "nfs.open4.share_deny", "Share deny", Base::Dec, "RFC 8881 18.16";
    OPENTYPE: "nfs.open.opentype", "Open type", Base::Dec, "RFC 8881 18.16", names open_type_name;
    CREATEMODE: "nfs.createmode", "Create mode", Base::Dec, "RFC 8881 18.16", names create_mode_name;
    CLAIM_TYPE: "nfs.open.claim_type", "Claim type", Base::Dec, "RFC 8881 18.16", names claim_name;
    DELEGATION_TYPE: "nfs.open.delegation_type", "Delegation", Base::Dec, "RFC 8881 18.16", names delegation_name;
    LOCKTYPE: "nfs.locktype4", "Lock type", Base::Dec, "RFC 8881 18.10";
    LAYOUTTYPE: "nfs.layouttype", "Layout type", Base::Dec, "RFC 8881 3.3.13";
    IOMODE: "nfs.iomode", "I/O mode", Base::Dec, "RFC 8881 3.3.20";
    CB_PROGRAM: "nfs.cb_program", "Callback program", Base::Hex(8), "RFC 8881 18.36";
    MAXREQSIZE: "nfs.maxreqsize4", "Maximum request size", Base::Dec, "RFC 8881 18.36";
    MAXRESPSIZE: "nfs.maxrespsize4", "Maximum response size", Base::Dec, "RFC 8881 18.36";
    MAXOPS: "nfs.maxops4", "Maximum operations", Base::Dec, "RFC 8881 18.36";
    MAXREQS: "nfs.maxreqs4", "Maximum requests", Base::Dec, "RFC 8881 18.36";
}

/// Whether a message can have the field several times.
pub(super) fn is_list(field: &Field) -> bool {
    let single: [&Field; 6] = [&PROCEDURE_V3, &PROCEDURE_V4, &CB_PROCEDURE, &TAG, &MINORVERSION, &OPS_COUNT];
    field.bit.0 == OPCODE.bit.0 && !single.iter().any(|single| std::ptr::eq(*single, field))
}

fn procedure_3_name(procedure: u64) -> Option<&'static str> {
    Program::Nfs.procedure_name(3, u32::try_from(procedure).ok()?)
}

fn procedure_4_name(procedure: u64) -> Option<&'static str> {
    Program::Nfs.procedure_name(4, u32::try_from(procedure).ok()?)
}

fn callback_procedure_name(procedure: u64) -> Option<&'static str> {
    Program::NfsCallback.procedure_name(1, u32::try_from(procedure).ok()?)
}

fn operation_4_name(code: u64) -> Option<&'static str> {
    operation_name(Program::Nfs, 4, u32::try_from(code).ok()?)
}

fn callback_name(code: u64) -> Option<&'static str> {
    operation_name(Program::NfsCallback, 4, u32::try_from(code).ok()?)
}

fn status_3_name(status: u64) -> Option<&'static str> {
    status_name(Program::Nfs, 3, u32::try_from(status).ok()?)
}

fn status_4_name(status: u64) -> Option<&'static str> {
    status_name(Program::Nfs, 4, u32::try_from(status).ok()?)
}

fn stable_name(how: u64) -> Option<&'static str> {
    nth_name(&["UNSTABLE", "DATA_SYNC", "FILE_SYNC"], how)
}

fn type_name(kind: u64) -> Option<&'static str> {
    let names = ["file", "directory", "block device", "character device", "symbolic link", "socket", "pipe"];
    nth_name(&names, kind.checked_sub(1)?)
}

fn open_type_name(kind: u64) -> Option<&'static str> {
    nth_name(&["OPEN4_NOCREATE", "OPEN4_CREATE"], kind)
}

fn create_mode_name(mode: u64) -> Option<&'static str> {
    nth_name(&["UNCHECKED", "GUARDED", "EXCLUSIVE", "EXCLUSIVE4_1"], mode)
}

fn claim_name(claim: u64) -> Option<&'static str> {
    const NAMES: [&str; 7] = [
        "CLAIM_NULL",
        "CLAIM_PREVIOUS",
        "CLAIM_DELEGATE_CUR",
        "CLAIM_DELEGATE_PREV",
        "CLAIM_FH",
        "CLAIM_DELEG_CUR_FH",
        "CLAIM_DELEG_PREV_FH",
    ];
    nth_name(&NAMES, claim)
}

fn delegation_name(kind: u64) -> Option<&'static str> {
    nth_name(&["NONE", "READ", "WRITE", "NONE_EXT"], kind)
}

/// The field of a parameter in version 3, and in version 4.
fn field_of(kind: P, is_3: bool) -> &'static Field {
    let of = |version_3: &'static Field, version_4: &'static Field| if is_3 { version_3 } else { version_4 };
    match kind {
        P::FileHandle => &FHANDLE,
        P::Name => &NAME,
        P::LinkTarget => of(&READLINK_DATA, &SYMLINK_LINKTEXT),
        P::Offset => of(&OFFSET3, &OFFSET4),
        P::Count => of(&COUNT3, &COUNT4),
        P::Length => &LENGTH4,
        P::ReadDataLength => &READ_DATA_LENGTH,
        P::WriteDataLength => &WRITE_DATA_LENGTH,
        P::Stable => of(&WRITE_STABLE, &STABLE_HOW4),
        P::Committed => &WRITE_COMMITTED,
        P::Eof => of(&READ_EOF, &EOF),
        P::AccessCheck => &ACCESS_CHECK,
        P::AccessSupported => &ACCESS_SUPPORTED,
        P::AccessRights => &ACCESS_RIGHTS,
        P::Cookie => of(&COOKIE3, &COOKIE4),
        P::DirCount => of(&COUNT3_DIRCOUNT, &DIRCOUNT),
        P::MaxCount => of(&COUNT3_MAXCOUNT, &MAXCOUNT),
        P::Entries => &ENTRIES,
        P::FileSize => &SIZE,
        P::FileType => of(&TYPE3, &TYPE4),
        P::Attribute => &ATTR,
        P::StateSequence => &STATEID_SEQID,
        P::StateOther => &STATEID_OTHER,
        P::Sequence => &SEQID,
        P::Slot => &SLOTID,
        P::HighestSlot => &HIGH_SLOTID,
        P::TargetHighestSlot => &TARGET_HIGH_SLOTID,
        P::Session => &SESSION_ID,
        P::CacheThis => &CACHETHIS,
        P::Client => &CLIENTID,
        P::ShareAccess => &SHARE_ACCESS,
        P::ShareDeny => &SHARE_DENY,
        P::OpenType => &OPENTYPE,
        P::CreateMode => &CREATEMODE,
        P::ClaimType => &CLAIM_TYPE,
        P::DelegationType => &DELEGATION_TYPE,
        P::LockType => &LOCKTYPE,
        P::LayoutType => &LAYOUTTYPE,
        P::IoMode => &IOMODE,
        P::CallbackProgram => &CB_PROGRAM,
        P::MaxRequestSize => &MAXREQSIZE,
        P::MaxResponseSize => &MAXRESPSIZE,
        P::MaxOperations => &MAXOPS,
        P::MaxRequests => &MAXREQS,
    }
}

/// Visits the arguments or results of NFS. `end` is the offset of the end of the FPDU.
pub(super) fn visit<V: Visitor>(decoded: &Decoded, end: usize, visitor: &mut V) {
    let Some((target, body)) = decoded.message.as_ref().and_then(|message| Some((message.target()?, message.body()?)))
    else {
        return;
    };
    let mut fields = Fields { locator: Locator::of_rpc(decoded, end), visitor };
    let is_call = matches!(decoded.message, Some(RpcMessage::Call(_)));
    fields.body(target, body, is_call);
}

impl<V: Visitor> Fields<'_, V> {
    fn body(&mut self, target: &Target, body: &Body, is_call: bool) {
        self.enter(&BODY, 0, 0);
        let is_compound = body.tag.is_some() || body.status.is_some();
        let procedure = match (target.program, target.version) {
            (Program::NfsCallback, _) => Some(&CB_PROCEDURE),
            (Program::Nfs, 3) => Some(&PROCEDURE_V3),
            (Program::Nfs, _) => Some(&PROCEDURE_V4),
            _ => None,
        };
        if let Some(field) = procedure {
            // Only a call has the number of its procedure, at offset 20 of the RPC message.
            if is_call {
                self.uint(field, target.procedure, 20, 4);
            } else {
                self.derived(field, Value::Uint(target.procedure.into()));
            }
        }
        if let Some((status, at)) = body.status {
            self.uint(&NFSSTAT4, status, at, 4);
        }
        if let Some(tag) = &body.tag {
            self.value(&TAG, tag);
        }
        if let Some((version, at)) = body.minor_version {
            self.uint(&MINORVERSION, version, at, 4);
        }
        if let Some((count, at)) = body.count {
            self.uint(&OPS_COUNT, count, at, 4);
        }
        for operation in &body.operations {
            self.operation(target, operation, is_compound);
        }
        self.leave();
    }

    fn operation(&mut self, target: &Target, operation: &Operation, is_compound: bool) {
        let at = operation.at;
        if is_compound {
            self.enter(&OPERATION, at, 4);
            let is_callback = target.program == Program::NfsCallback;
            self.uint(if is_callback { &CB_OPERATION } else { &OPCODE }, operation.opcode, at, 4);
        }
        if let Some(status) = operation.status {
            let (field, at) = if is_compound { (&NFSSTAT4, at.saturating_add(4)) } else { (&NFSSTAT3, at) };
            self.uint(field, status, at, 4);
        }
        for parameter in &operation.parameters {
            self.value(field_of(parameter.kind, !is_compound), parameter);
        }
        if operation.is_reduced {
            self.derived(&REDUCED, Value::Uint(1));
        }
        if is_compound {
            self.leave();
        }
    }

    fn value(&mut self, field: &'static Field, parameter: &Parameter) {
        let value = match &parameter.value {
            ParameterValue::Number(number) => Value::Uint(*number),
            ParameterValue::Text(text) => Value::PeerText(text.as_str()),
            ParameterValue::Bytes(bytes) => Value::Octets(bytes),
        };
        let range = self.locator.locate(parameter.at, parameter.len);
        self.visitor.field(field, value, range);
    }
}
