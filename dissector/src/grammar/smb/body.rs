//! Visits the bodies of requests and responses of SMB 2 and 3. Offsets count octets from the start
//! of the header (MS-SMB2 sections 2.2.3 to 2.2.42).

use super::smb2::{
    ACTION, CAPABILITIES, CHANNEL, CLASS, CLIENT_GUID, DESCRIPTOR, DESCRIPTOR_COUNT, DESCRIPTOR_LENGTH,
    DESCRIPTOR_OFFSET, DESCRIPTOR_TOKEN, DIALECT, DIALECTS, DISPOSITION, EOF, FID, FILE_INFOLEVEL, FILE_OFFSET,
    FILENAME, FIND_INFOLEVEL, FIND_PATTERN, FS_INFOLEVEL, INFOLEVEL, IOCTL_FUNCTION, LOCK_COUNT, LOCK_FLAGS, LOCK_INFO,
    LOCK_LENGTH, MAX_READ_SIZE, MAX_TRANS_SIZE, MAX_WRITE_SIZE, OPLOCK, OUTPUT_BUFFER_LEN, PREVIOUS_SESID, READ_LENGTH,
    READ_REMAINING, REMAINING_BYTES, SEC_MODE, SERVER_GUID, SESSION_FLAGS, SHARE_TYPE, TREE, WRITE_COUNT, WRITE_LENGTH,
};
use crate::grammar::field::{Field, Visitor};
use crate::grammar::output::Output;
use crate::upper::smb2::{
    Body, ChannelInfo, FileId, InfoClass, NegotiateRequest, NegotiateResponse, Request, Response,
};

/// Why a body was not read completely; `None` if it was.
pub(super) fn problem(body: &Body) -> Option<&'static str> {
    match body {
        Body::Request(Request::Unparsed) | Body::Response(Response::Unparsed) => Some("wrong body"),
        Body::Request(request) if request.channel().is_some_and(|channel| !channel.is_valid) => {
            Some("wrong channel information")
        }
        _ => None,
    }
}

/// Visits the body of a request.
pub(super) fn visit_request<V: Visitor>(request: &Request, output: &mut Output<'_, V>) {
    match request {
        Request::Negotiate(negotiate) => visit_negotiate(negotiate, output),
        Request::SessionSetup(setup) => {
            output.uint(&SEC_MODE, setup.security_mode, 67..68);
            output.uint(&CAPABILITIES, setup.capabilities, 68..72);
            output.uint(&PREVIOUS_SESID, setup.previous_session_id, 80..88);
        }
        Request::TreeConnect { path } => visit_text(&TREE, path.as_deref(), output),
        Request::Create(create) => {
            output.uint(&OPLOCK, create.oplock, 67..68);
            output.uint(&DISPOSITION, create.disposition, 100..104);
            visit_text(&FILENAME, create.name.as_deref(), output);
        }
        Request::Close { file, .. } | Request::Flush { file } => visit_file(*file, 72, output),
        Request::Read(read) => {
            output.uint(&READ_LENGTH, read.length, 68..72);
            output.uint(&FILE_OFFSET, read.offset, 72..80);
            visit_file(read.file, 80, output);
            visit_channel(&read.channel, 100, output);
        }
        Request::Write(write) => {
            output.uint(&WRITE_LENGTH, write.length, 68..72);
            output.uint(&FILE_OFFSET, write.offset, 72..80);
            visit_file(write.file, 80, output);
            output.uint(&REMAINING_BYTES, write.remaining, 100..104);
            visit_channel(&write.channel, 96, output);
        }
        Request::Lock { file, count, ranges } => {
            output.uint(&LOCK_COUNT, *count, 66..68);
            visit_file(*file, 72, output);
            output.list(&LOCK_INFO, ranges.iter().zip((88_usize..).step_by(24)), |(range, at), output| {
                output.uint(&FILE_OFFSET, range.offset, at..at + 8);
                output.uint(&LOCK_LENGTH, range.length, at + 8..at + 16);
                output.uint(&LOCK_FLAGS, range.flags, at + 16..at + 20);
            });
        }
        Request::Ioctl { code, file, .. } => {
            output.uint(&IOCTL_FUNCTION, *code, 68..72);
            visit_file(*file, 72, output);
        }
        Request::QueryDirectory { class, file, pattern, output_len, .. } => {
            output.uint(&FIND_INFOLEVEL, *class, 66..67);
            visit_file(*file, 72, output);
            output.uint(&OUTPUT_BUFFER_LEN, *output_len, 92..96);
            visit_text(&FIND_PATTERN, pattern.as_deref(), output);
        }
        Request::ChangeNotify { file, output_len, .. } => {
            output.uint(&OUTPUT_BUFFER_LEN, *output_len, 68..72);
            visit_file(*file, 72, output);
        }
        Request::QueryInfo { info, file, output_len } => {
            visit_info(*info, output);
            output.uint(&OUTPUT_BUFFER_LEN, *output_len, 68..72);
            visit_file(*file, 88, output);
        }
        Request::SetInfo { info, file, .. } => {
            visit_info(*info, output);
            visit_file(*file, 80, output);
        }
        Request::OplockBreak { level, file } => {
            output.uint(&OPLOCK, *level, 66..67);
            visit_file(*file, 72, output);
        }
        Request::Logoff
        | Request::TreeDisconnect
        | Request::Cancel
        | Request::Echo
        | Request::LeaseBreak { .. }
        | Request::Unparsed => {}
    }
}

fn visit_negotiate<V: Visitor>(negotiate: &NegotiateRequest, output: &mut Output<'_, V>) {
    output.uint(&SEC_MODE, negotiate.security_mode, 68..70);
    output.uint(&CAPABILITIES, negotiate.capabilities, 72..76);
    output.octets(&CLIENT_GUID, &negotiate.client_guid, 76..92);
    output.list(&DIALECTS, negotiate.dialects.iter().zip((100_usize..).step_by(2)), |(dialect, at), output| {
        output.uint(&DIALECT, *dialect, at..at + 2);
    });
}

fn visit_text<V: Visitor>(field: &'static Field, text: Option<&str>, output: &mut Output<'_, V>) {
    if let Some(text) = text {
        output.peer_text(field, text);
    }
}

fn visit_file<V: Visitor>(file: FileId, at: usize, output: &mut Output<'_, V>) {
    output.octets(&FID, &file.octets(), at..at + 16);
}

/// Visits Channel, which is at offset `at`, and the descriptors.
fn visit_channel<V: Visitor>(info: &ChannelInfo, at: usize, output: &mut Output<'_, V>) {
    output.uint(&CHANNEL, info.channel.0, at..at + 4);
    if !info.channel.has_descriptors() {
        return;
    }
    output.derived(&DESCRIPTOR_COUNT, info.count);
    let first = usize::from(info.at);
    output.list(&DESCRIPTOR, info.descriptors.iter().zip((first..).step_by(16)), |(descriptor, at), output| {
        output.uint(&DESCRIPTOR_OFFSET, descriptor.offset, at..at + 8);
        output.uint(&DESCRIPTOR_TOKEN, descriptor.token, at + 8..at + 12);
        output.uint(&DESCRIPTOR_LENGTH, descriptor.length, at + 12..at + 16);
    });
}

fn visit_info<V: Visitor>(info: InfoClass, output: &mut Output<'_, V>) {
    output.uint(&CLASS, info.info_type, 66..67);
    let field = match info.info_type {
        InfoClass::FILE => &FILE_INFOLEVEL,
        InfoClass::FILE_SYSTEM => &FS_INFOLEVEL,
        _ => &INFOLEVEL,
    };
    output.uint(field, info.class, 67..68);
}

/// Visits the body of a response.
pub(super) fn visit_response<V: Visitor>(response: &Response, output: &mut Output<'_, V>) {
    match response {
        Response::Negotiate(negotiate) => visit_negotiated(negotiate, output),
        Response::SessionSetup { flags } => output.uint(&SESSION_FLAGS, *flags, 66..68),
        Response::TreeConnect { share_type, .. } => output.uint(&SHARE_TYPE, *share_type, 66..67),
        Response::Create { oplock, action, size, file } => {
            output.uint(&OPLOCK, *oplock, 66..67);
            output.uint(&ACTION, *action, 68..72);
            output.uint(&EOF, *size, 112..120);
            visit_file(*file, 128, output);
        }
        Response::Close { size: Some(size) } => output.uint(&EOF, *size, 112..120),
        Response::Read { length, remaining } => {
            output.uint(&READ_LENGTH, *length, 68..72);
            output.uint(&READ_REMAINING, *remaining, 72..76);
        }
        Response::Write { count } => output.uint(&WRITE_COUNT, *count, 68..72),
        Response::Ioctl { code, file, .. } => {
            output.uint(&IOCTL_FUNCTION, *code, 68..72);
            visit_file(*file, 72, output);
        }
        Response::Output { len } => output.uint(&OUTPUT_BUFFER_LEN, *len, 68..72),
        Response::OplockBreak { level, file } => {
            output.uint(&OPLOCK, *level, 66..67);
            visit_file(*file, 72, output);
        }
        Response::Error { .. }
        | Response::Close { size: None }
        | Response::LeaseBreak { .. }
        | Response::Empty
        | Response::Unparsed => {}
    }
}

fn visit_negotiated<V: Visitor>(negotiate: &NegotiateResponse, output: &mut Output<'_, V>) {
    output.uint(&SEC_MODE, negotiate.security_mode, 66..68);
    output.uint(&DIALECT, negotiate.dialect, 68..70);
    output.octets(&SERVER_GUID, &negotiate.server_guid, 72..88);
    output.uint(&CAPABILITIES, negotiate.capabilities, 88..92);
    output.uint(&MAX_TRANS_SIZE, negotiate.max_transact_size, 92..96);
    output.uint(&MAX_READ_SIZE, negotiate.max_read_size, 96..100);
    output.uint(&MAX_WRITE_SIZE, negotiate.max_write_size, 100..104);
}
