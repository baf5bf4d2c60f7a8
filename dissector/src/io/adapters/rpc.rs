//! The adapter of RPC-over-RDMA. A call begins a command, and the reply with the same XID ends it.
//! The operations of a COMPOUND of NFS version 4 are one command.

use std::fmt::Write as _;

use super::super::command::DataFlow;
use super::super::event::{Begin, Buffer, Describe, End, IoEvent};
use crate::upper::rpcrdma::Decoded;
use crate::upper::rpcrdma::decoded::Carrier;
use crate::upper::rpcrdma::header::{Chunk, Header, Lists, Procedure, Segment, TransportError};
use crate::upper::rpcrdma::message::{Call, Reply, ReplyStatus, RpcMessage, Target};
use crate::upper::rpcrdma::nfs::{Body, Operation, ParameterKind};
use crate::upper::rpcrdma::program::{Program, accept_status_name, auth_status_name};

/// Maximum number of operations of a COMPOUND in the parameters.
const MAX_OPERATIONS: usize = 12;
/// The operations that only prepare the main operation of a COMPOUND.
const PREPARING: [&str; 8] =
    ["SEQUENCE", "CB_SEQUENCE", "PUTFH", "PUTROOTFH", "PUTPUBFH", "SAVEFH", "RESTOREFH", "GETFH"];
/// The operations that read from a file.
const READING: [&str; 2] = ["READ", "READ_PLUS"];
/// The name of a call that is in a Read chunk, until the chunk was read.
const UNKNOWN_CALL: &str = "RPC call";

/// Adds what `decoded` means to `events`. It is `None` if the message could not be read.
pub(super) fn read(decoded: Option<&Decoded>, events: &mut Vec<IoEvent>) {
    let Some(decoded) = decoded else { return events.push(IoEvent::Unread) };
    let Some(header) = &decoded.header else {
        // A Read chunk has a call, but no header.
        return match &decoded.message {
            Some(RpcMessage::Call(call)) => {
                let (kind, parameters) = describe(call);
                events.push(IoEvent::Describe(Describe { id: call.xid.into(), kind, parameters }));
            }
            _ if decoded.carrier == Carrier::ReadChunk => {}
            _ => events.push(IoEvent::Unread),
        };
    };
    events.extend(match (&decoded.message, header.procedure) {
        (Some(RpcMessage::Call(call)), _) => Some(IoEvent::Begin(begin(header, Some(call)))),
        (Some(RpcMessage::Reply(reply)), _) => Some(IoEvent::End(end(header, reply, decoded.carrier))),
        (None, Procedure::Error) => Some(IoEvent::End(transport_error(header))),
        (None, Procedure::Done) => None,
        // Only a call has Read chunks.
        (None, Procedure::NoMsg) if !header.lists.reads.is_empty() => Some(IoEvent::Begin(begin(header, None))),
        // The Reply chunk has the reply, but its bytes could not be read.
        (None, Procedure::NoMsg) => Some(IoEvent::End(End {
            id: header.xid.into(),
            queue: None,
            status: "reply not read".to_owned(),
            is_error: false,
            inline_bytes: 0,
        })),
        (None, Procedure::Msg | Procedure::Msgp) => Some(IoEvent::Unread),
    });
}

/// The begin of a command. `call` is `None` if the call is in a Read chunk.
fn begin(header: &Header, call: Option<&Call>) -> Begin {
    let (kind, parameters) = call.map_or((UNKNOWN_CALL, String::new()), describe);
    let lists = &header.lists;
    let operations = || call.into_iter().flat_map(operations);
    let written = operations().filter(|(_, operation)| !operation.is_reduced);
    let inline_bytes: u64 = written.filter_map(|(_, operation)| operation.number(ParameterKind::WriteDataLength)).sum();
    let in_read_chunks: u64 = lists.reads.iter().map(|read| u64::from(read.segment.length)).sum();
    let requested: u64 =
        operations().filter(|(name, _)| READING.contains(name)).filter_map(|(_, operation)| operation.count()).sum();
    let is_sent = inline_bytes + in_read_chunks > 0;
    let is_received = requested > 0 || !lists.writes.is_empty() || lists.reply.is_some();
    Begin {
        id: header.xid.into(),
        queue: None,
        kind,
        parameters,
        flow: match (is_sent, is_received) {
            (false, false) => DataFlow::None,
            (true, false) => DataFlow::ToTarget,
            (false, true) => DataFlow::FromTarget,
            (true, true) => DataFlow::Both,
        },
        // The Reply chunk is as long as the longest possible reply, so it does not show how long
        // the reply is.
        expected_bytes: if lists.reply.is_some() { 0 } else { inline_bytes + in_read_chunks + requested },
        inline_bytes,
        buffers: buffers(lists),
        has_unknown_buffers: lists.writes.iter().chain(&lists.reply).any(is_cut),
    }
}

/// The segments of all chunks.
fn buffers(lists: &Lists) -> Vec<Buffer> {
    let buffer =
        |segment: &Segment| Buffer { stag: segment.handle, offset: segment.offset, len: segment.length.into() };
    let read = lists.reads.iter().map(|read| &read.segment);
    let written = lists.writes.iter().chain(&lists.reply).flat_map(|chunk| &chunk.segments);
    read.chain(written).map(buffer).collect()
}

/// Returns whether the chunk has more segments than weft stores.
fn is_cut(chunk: &Chunk) -> bool {
    u64::from(chunk.count) > chunk.segments.len() as u64
}

fn end(header: &Header, reply: &Reply, carrier: Carrier) -> End {
    let (status, is_error) = match reply.status {
        ReplyStatus::Accepted(0) => results_status(reply),
        ReplyStatus::Accepted(status) => (named("accept_stat", status, accept_status_name(status)), true),
        ReplyStatus::ProgramMismatch { low, high } => (format!("PROG_MISMATCH, versions {low} to {high}"), true),
        ReplyStatus::RpcMismatch { low, high } => (format!("RPC_MISMATCH, versions {low} to {high}"), true),
        ReplyStatus::AuthenticationError(status) => {
            (format!("AUTH_ERROR, {}", named("auth_stat", status, auth_status_name(status))), true)
        }
    };
    let data = reply.body.iter().flat_map(|body| &body.operations).filter(|operation| !operation.is_reduced);
    let read: u64 = data.filter_map(|operation| operation.number(ParameterKind::ReadDataLength)).sum();
    // RDMA Writes carry a reply that is in a Reply chunk.
    let inline_bytes = if carrier == Carrier::Send { read } else { 0 };
    End { id: header.xid.into(), queue: None, status, is_error, inline_bytes }
}

/// The status of the procedure. If weft does not know the results, it is the status of RPC.
fn results_status(reply: &Reply) -> (String, bool) {
    let operations = reply.body.as_ref().map(|body| body.operations.as_slice()).unwrap_or_default();
    let of_compound = reply.body.as_ref().and_then(|body| body.status).map(|(status, _)| status);
    let status = of_compound.or_else(|| operations.first()?.status);
    let (Some(target), Some(status)) = (&reply.target, status) else { return ("SUCCESS".to_owned(), false) };
    let mut text = named("status", status, target.status_name(status));
    let failed = operations.iter().find(|operation| operation.status.is_some_and(|status| status != 0));
    if let Some(operation) = failed.filter(|_| of_compound.is_some()) {
        let _ = write!(text, " ({})", name_of(target, operation));
    }
    (text, status != 0)
}

/// The end of a command that the transport of the peer rejected.
fn transport_error(header: &Header) -> End {
    let code = header.error.map_or(0, TransportError::code);
    let mut status = named("error", code, TransportError::name(code));
    if let Some(TransportError::Version { low, high }) = header.error {
        let _ = write!(status, ", versions {low} to {high}");
    }
    End { id: header.xid.into(), queue: None, status, is_error: true, inline_bytes: 0 }
}

/// The operations of a call with their names.
fn operations(call: &Call) -> impl Iterator<Item = (&'static str, &Operation)> {
    let target = call.target;
    let all = call.body.iter().flat_map(|body| &body.operations);
    all.map(move |operation| (target.operation_name(operation.opcode).unwrap_or_default(), operation))
}

/// The name and the parameters of a call. The name of a COMPOUND is that of its main operation.
fn describe(call: &Call) -> (&'static str, String) {
    let target = &call.target;
    let mut text = match target.program.name() {
        Some(name) => format!("{name} V{}", target.version),
        None => format!("program {} V{}", target.program_number, target.version),
    };
    let procedure = target.procedure_name();
    if procedure.is_none() {
        let _ = write!(text, " procedure {}", target.procedure);
    }
    let kind = procedure.unwrap_or(UNKNOWN_CALL);
    let Some(body) = &call.body else { return (kind, text) };
    if body.count.is_none() {
        body.operations.iter().for_each(|operation| add_parameters(operation, &mut text));
        return (kind, text);
    }
    if let (Program::Nfs, Some((minor, _))) = (target.program, body.minor_version) {
        let _ = write!(text, ".{minor}");
    }
    add_operations(target, body, &mut text);
    let main = operations(call).map(|(name, _)| name).find(|name| !name.is_empty() && !PREPARING.contains(name));
    (main.unwrap_or(kind), text)
}

/// Appends the operations of a COMPOUND.
fn add_operations(target: &Target, body: &Body, text: &mut String) {
    for (index, operation) in body.operations.iter().take(MAX_OPERATIONS).enumerate() {
        text.push_str(if index == 0 { " " } else { ", " });
        text.push_str(&name_of(target, operation));
        add_parameters(operation, text);
    }
    let more = body.operations.len().saturating_sub(MAX_OPERATIONS);
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
}

fn name_of(target: &Target, operation: &Operation) -> String {
    named("operation", operation.opcode, target.operation_name(operation.opcode))
}

/// Appends names, slot, offset, count and length, each after a space.
fn add_parameters(operation: &Operation, text: &mut String) {
    for name in operation.texts(ParameterKind::Name) {
        let _ = write!(text, " {:?}", name.as_str());
    }
    let numbers = [
        ("slot", operation.number(ParameterKind::Slot)),
        ("offset", operation.offset()),
        ("count", operation.count()),
        ("length", operation.number(ParameterKind::Length)),
    ];
    for (label, number) in numbers {
        if let Some(number) = number {
            let _ = write!(text, " {label} {number}");
        }
    }
}

/// The name of a value, or the value if it has no name.
fn named(what: &str, value: u32, name: Option<&str>) -> String {
    name.map_or_else(|| format!("{what} {value}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::{CommandState, IoCommand};
    use super::super::testing::Talk;
    use super::*;
    use crate::testing::hex;

    const CREDENTIAL: &str = "00000001 0000001c 00000000 00000006 286e6f6e65290000 00000000 00000000 00000000
        00000000 00000000";
    const NO_CHUNKS: &str = "00000000 00000000 00000000";
    const ACCEPTED: &str = "00000000 00000000 00000000";

    /// A call with the XID 0x89a394ae. `target` has program, version and procedure.
    fn call(chunks: &str, target: &str, arguments: &str) -> Vec<u8> {
        let rpc = format!("89a394ae 00000000 00000002 {target} {CREDENTIAL} {arguments}");
        hex(&format!("89a394ae 00000001 00000080 00000000 {chunks} {rpc}"))
    }

    /// A reply to [`call`]. `rest` follows the message type.
    fn reply(chunks: &str, rest: &str) -> Vec<u8> {
        hex(&format!("89a394ae 00000001 00000040 00000000 {chunks} 89a394ae 00000001 {rest}"))
    }

    /// The status of a NULL of NFS version 3 whose reply has these bytes, and whether it is an
    /// error.
    fn status_of(reply: &[u8]) -> (Option<String>, bool) {
        let mut talk = Talk::new();
        talk.send(0, &call(NO_CHUNKS, "000186a3 00000003 00000000", ""));
        talk.send(1, reply);
        let command = talk.only();
        assert_eq!((command.id, command.command, &command.parameters[..]), (0x89a3_94ae, "NULL", "NFS V3"));
        assert_eq!((command.state, command.status_frame), (CommandState::Answered, Some(6.into())));
        (command.status, command.error)
    }

    fn bytes(command: &IoCommand) -> (u64, u64, u64, u64) {
        (command.bytes, command.expected_bytes, command.writes, command.reads)
    }

    const SESSION: &str = "f92d056b8562c586 01000000 00000000";
    const HANDLE: &str = "00000014 01000101 00000000 1fd81fb6 02000000 00000000";

    /// Frames 58 to 61 of a capture of Linux (NFS version 4.1): the server writes 700 bytes.
    #[test]
    fn a_compound_has_the_name_of_its_main_operation() {
        let chunk = |len: &str| format!("00000000 00000001 00000001 e07f7601 {len} 2960f0d009338000 00000000 00000000");
        let operations = format!(
            "00000000 00000001 00000003 00000035 {SESSION} 0000000e 00000000 00000000 00000000 00000016 {HANDLE}
             00000019 00000000 f92d056b8562c586 01000000 0000000000000000 00001000"
        );
        let results = format!(
            "00000000 00000000 00000003 00000035 00000000 {SESSION} 0000000e 00000000 0000001d 0000001d 00000000
             00000016 00000000 00000019 00000000 00000001 000002bc"
        );
        let mut talk = Talk::new();
        talk.send(0, &call(&chunk("00001000"), "000186a3 00000004 00000001", &operations));
        talk.write((0xe07f_7601, 0x2960_f0d0_0933_8000), 700);
        talk.send(1, &reply(&chunk("000002bc"), &format!("{ACCEPTED} 00000000 {results}")));
        let read = talk.only();
        assert_eq!(read.command, "READ");
        assert_eq!(read.parameters, "NFS V4.1 SEQUENCE slot 0, PUTFH, READ offset 0 count 4096");
        assert_eq!((bytes(&read), read.data), ((700, 4096, 1, 0), DataFlow::FromTarget));
        assert_eq!((read.status.as_deref(), read.error, read.stags), (Some("NFS4_OK"), false, vec![0xe07f_7601]));
    }

    /// Frames 384 and 385 of the capture.
    #[test]
    fn a_status_names_the_operation_that_failed() {
        let operations = format!(
            "00000000 00000001 00000005 00000035 {SESSION} 00000028 00000000 00000000 00000000 00000016 {HANDLE}
             0000000f 00000007 72656e61 6d656400 0000000a 00000009 00000002 0010011a 00b0a23a"
        );
        let results = format!(
            "00000002 00000000 00000003 00000035 00000000 {SESSION} 00000028 00000000 0000001d 0000001d 00000000
             00000016 00000000 0000000f 00000002"
        );
        let mut talk = Talk::new();
        talk.send(0, &call(NO_CHUNKS, "000186a3 00000004 00000001", &operations));
        talk.send(1, &reply(NO_CHUNKS, &format!("{ACCEPTED} 00000000 {results}")));
        let lookup = talk.only();
        assert_eq!(lookup.command, "LOOKUP");
        assert_eq!(lookup.parameters, "NFS V4.1 SEQUENCE slot 0, PUTFH, LOOKUP \"renamed\", GETFH, GETATTR");
        assert_eq!((lookup.status.as_deref(), lookup.error), (Some("NFS4ERR_NOENT (LOOKUP)"), true));
        assert_eq!((bytes(&lookup), lookup.data), ((0, 0, 0, 0), DataFlow::None));
    }

    #[test]
    fn data_can_be_in_the_call() {
        let arguments = format!("{HANDLE} 0000000000010000 00000008 00000002 00000008 0102030405060708");
        let mut talk = Talk::new();
        talk.send(0, &call(NO_CHUNKS, "000186a3 00000003 00000007", &arguments));
        talk.send(1, &reply(NO_CHUNKS, &format!("{ACCEPTED} 00000000 0000001c 00000000 00000000")));
        let write = talk.only();
        assert_eq!((write.command, &write.parameters[..]), ("WRITE", "NFS V3 offset 65536 count 8"));
        assert_eq!((bytes(&write), write.data), ((8, 8, 0, 0), DataFlow::ToTarget));
        assert_eq!((write.status.as_deref(), write.error), (Some("NFS3ERR_NOSPC"), true));
    }

    #[test]
    fn data_can_be_in_a_read_chunk() {
        let chunk = "00000001 00000070 4379f401 00000010 89a394ae092e3000 00000000 00000000 00000000";
        let arguments = format!("{HANDLE} 0000000000010000 00000010 00000002 00000010");
        let mut talk = Talk::new();
        talk.send(0, &call(chunk, "000186a3 00000003 00000007", &arguments));
        talk.read((0x4379_f401, 0x89a3_94ae_092e_3000), &[3; 16]);
        talk.send(1, &reply(NO_CHUNKS, &format!("{ACCEPTED} 00000000 0000001c 00000000 00000000")));
        let write = talk.only();
        assert_eq!((write.command, &write.parameters[..]), ("WRITE", "NFS V3 offset 65536 count 16"));
        assert_eq!((bytes(&write), write.data), ((16, 16, 0, 1), DataFlow::ToTarget));
        assert_eq!(write.stags, [0x4379_f401]);
    }

    #[test]
    fn a_call_in_a_read_chunk_gets_its_name_later() {
        let chunk = "00000001 00000000 4379f401 00000044 89a394ae092e3000 00000000 00000000 00000000";
        let rpc = format!("89a394ae 00000000 00000002 000186a3 00000003 00000000 {CREDENTIAL}");
        let mut talk = Talk::new();
        talk.send(0, &hex(&format!("89a394ae 00000001 00000080 00000001 {chunk}")));
        let early = talk.only();
        assert_eq!((early.command, &early.parameters[..], early.state), (UNKNOWN_CALL, "", CommandState::NotAnswered));
        talk.read((0x4379_f401, 0x89a3_94ae_092e_3000), &hex(&rpc));
        talk.send(1, &reply(NO_CHUNKS, &format!("{ACCEPTED} 00000000")));
        let null = talk.only();
        assert_eq!((null.command, &null.parameters[..], null.status.as_deref()), ("NULL", "NFS V3", Some("SUCCESS")));
        assert_eq!((bytes(&null), null.data), ((68, 68, 0, 1), DataFlow::ToTarget));
    }

    #[test]
    fn errors_of_rpc_and_of_the_transport_end_a_command() {
        let status = |rest: &str| status_of(&reply(NO_CHUNKS, rest));
        let named = |text: &str, is_error| (Some(text.to_owned()), is_error);
        assert_eq!(status(&format!("{ACCEPTED} 00000000")), named("SUCCESS", false));
        assert_eq!(status(&format!("{ACCEPTED} 00000003")), named("PROC_UNAVAIL", true));
        let mismatch = named("PROG_MISMATCH, versions 3 to 4", true);
        assert_eq!(status(&format!("{ACCEPTED} 00000002 00000003 00000004")), mismatch);
        assert_eq!(status("00000001 00000001 00000005"), named("AUTH_ERROR, AUTH_TOOWEAK", true));
        let error = |rest: &str| status_of(&hex(&format!("89a394ae 00000001 00000040 00000004 {rest}")));
        assert_eq!(error("00000002"), named("ERR_CHUNK", true));
        assert_eq!(error("00000001 00000001 00000001"), named("ERR_VERS, versions 1 to 1", true));
    }

    #[test]
    fn an_unknown_program_has_numbers() {
        let mut talk = Talk::new();
        talk.send(0, &call(NO_CHUNKS, "20000099 00000001 00000007", ""));
        let unknown = talk.only();
        assert_eq!((unknown.command, &unknown.parameters[..]), (UNKNOWN_CALL, "program 536871065 V1 procedure 7"));
    }
}
