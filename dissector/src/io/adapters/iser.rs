//! The adapter of iSER. A request of iSCSI begins a command, and the response with the same
//! Initiator Task Tag (ITT) ends it. A Reject ends the command whose header it copies.

use std::fmt::Write as _;

use super::super::command::DataFlow;
use super::super::event::{Begin, Buffer, Data, End, IoEvent};
use crate::upper::iser::{Blocks, Content, Message, Opcode, Pdu, Residual, ScsiCommand, ScsiResponse, names};

/// The ITT of a PDU that belongs to no request, for example of a NOP-Out that answers a ping.
const NO_TAG: u32 = u32::MAX;
/// The statuses GOOD and CONDITION MET (SAM-5 section 5.3).
const GOOD: [u8; 2] = [0x00, 0x04];
/// The responses "Function complete" and "Function succeeded" of task management.
const FUNCTION_DONE: [u8; 2] = [0, 7];
/// The requests that begin a command.
const REQUESTS: [Opcode; 6] = [
    Opcode::NOP_OUT,
    Opcode::SCSI_COMMAND,
    Opcode::TASK_REQUEST,
    Opcode::LOGIN_REQUEST,
    Opcode::TEXT_REQUEST,
    Opcode::LOGOUT_REQUEST,
];
/// The reject reason "Data digest error". The command continues: the initiator can send the PDU
/// again, or the target sends a response (RFC 7143 section 7.8).
const DATA_DIGEST_ERROR: u8 = 2;

/// Adds what `message` means to `events`.
pub(super) fn read(message: &Message, events: &mut Vec<IoEvent>) {
    let Message::Pdu(pdu) = message else { return };
    match pdu.content() {
        Content::Reject { reason, .. } => events.extend(rejection(pdu, reason)),
        _ if pdu.task_tag() != NO_TAG => events.extend(event(pdu)),
        _ => {}
    }
}

/// The end of a rejected command. A rejected Data-Out or SNACK Request ends no command, because a
/// response follows (RFC 7143 section 11.17.1).
fn rejection(pdu: &Pdu, reason: u8) -> Option<IoEvent> {
    let rejected = pdu.rejected?;
    let ends = REQUESTS.contains(&rejected.opcode) && rejected.task_tag != NO_TAG && reason != DATA_DIGEST_ERROR;
    ends.then(|| {
        let name = named("reason", reason.into(), names::reject_reason(reason.into()));
        let (id, status) = (rejected.task_tag.into(), format!("rejected: {name}"));
        IoEvent::End(End { id, queue: None, status, is_error: true, inline_bytes: 0 })
    })
}

fn event(pdu: &Pdu) -> Option<IoEvent> {
    let id = u64::from(pdu.task_tag());
    let name = pdu.opcode().name();
    let end = |status: String, is_error| Some(IoEvent::End(End { id, queue: None, status, is_error, inline_bytes: 0 }));
    let begin = |kind, parameters| Some(IoEvent::Begin(without_data(id, kind, parameters)));
    match pdu.content() {
        Content::ScsiCommand(command) => Some(IoEvent::Begin(scsi(pdu, &command))),
        Content::TaskRequest { function, lun, referenced_tag, .. } => {
            let kind = names::task_function(function.into()).unwrap_or(name);
            let parameters = format!("lun {lun} referenced id {referenced_tag:#x}");
            // Only TASK REASSIGN has buffers. Their length is that of the referenced command.
            let has_unknown_buffers = pdu.header().read().is_some() || pdu.header().write().is_some();
            Some(IoEvent::Begin(Begin { has_unknown_buffers, ..without_data(id, kind, parameters) }))
        }
        Content::LoginRequest { stages, .. } => begin(name, stages.to_string()),
        Content::LogoutRequest { reason, .. } => {
            begin(name, named("reason", reason.into(), names::logout_reason(reason.into())))
        }
        Content::TextRequest { .. } | Content::NopOut { .. } => begin(name, String::new()),
        Content::DataOut { .. } => Some(IoEvent::Data(Data { id, bytes: pdu.data_len().into() })),
        Content::ScsiResponse(response) => end(scsi_status(pdu, &response), is_failure(&response)),
        Content::TaskResponse { response, .. } => {
            let status = named("response", response.into(), names::task_response(response.into()));
            end(status, !FUNCTION_DONE.contains(&response))
        }
        Content::LoginResponse { status, .. } => {
            end(named("status", status.into(), names::login_status(status.into())), status != 0)
        }
        Content::LogoutResponse { response, .. } => {
            end(named("response", response.into(), names::logout_response(response.into())), response != 0)
        }
        // These responses have no status.
        Content::TextResponse { .. } | Content::NopIn { .. } => end(name.to_owned(), false),
        Content::Async { .. } | Content::Reject { .. } | Content::Other => None,
    }
}

fn without_data(id: u64, kind: &'static str, parameters: String) -> Begin {
    Begin {
        id,
        queue: None,
        kind,
        parameters,
        flow: DataFlow::None,
        expected_bytes: 0,
        inline_bytes: 0,
        buffers: Vec::new(),
        has_unknown_buffers: false,
    }
}

fn scsi(pdu: &Pdu, command: &ScsiCommand) -> Begin {
    let mut parameters = format!("lun {}", command.lun);
    if let Some(Blocks { lba, count }) = command.cdb.blocks() {
        let _ = write!(parameters, " lba {lba} blocks {count}");
    }
    let expected = u64::from(command.expected_len);
    let bidirectional = pdu.bidirectional_read_len.map(u64::from);
    let (flow, written, read) = match (command.writes, command.reads) {
        (false, false) => (DataFlow::None, 0, Some(0)),
        (true, false) => (DataFlow::ToTarget, expected, Some(0)),
        (false, true) => (DataFlow::FromTarget, 0, Some(expected)),
        (true, true) => (DataFlow::Both, expected, bidirectional),
    };
    let header = pdu.header();
    // The Write STag can name a buffer without the immediate data (Linux), or with it. In the first
    // case, the real buffer is shorter than this one.
    let lengths = [(header.write(), Some(written)), (header.read(), read)];
    let buffers = lengths.iter().filter_map(|(buffer, len)| {
        let (buffer, len) = ((*buffer)?, (*len)?);
        Some(Buffer { stag: buffer.stag, offset: buffer.base_offset, len })
    });
    Begin {
        flow,
        expected_bytes: written + read.unwrap_or(0),
        inline_bytes: pdu.data_len().into(),
        buffers: buffers.collect(),
        has_unknown_buffers: header.read().is_some() && read.is_none(),
        ..without_data(pdu.task_tag().into(), command.cdb.name(), parameters)
    }
}

/// Returns whether the command failed.
fn is_failure(response: &ScsiResponse) -> bool {
    response.response != 0 || !GOOD.contains(&response.status.0)
}

/// The status with the sense data, and with the number of bytes that the initiator did not expect.
fn scsi_status(pdu: &Pdu, response: &ScsiResponse) -> String {
    let mut text = match response.response {
        0 => response.status.to_string(),
        other => named("response", other.into(), names::service_response(other.into())),
    };
    if let Some(sense) = pdu.sense {
        let _ = write!(text, ", {sense}");
    }
    if let Residual::Overflow(count) = response.residual {
        let _ = write!(text, ", overflow {count}");
    }
    text
}

/// The name of a value, or the value if it has no name.
fn named(what: &str, value: u64, name: Option<&str>) -> String {
    name.map_or_else(|| format!("{what} {value:#04x}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use crate::upper::iser::message_of;

    const NO_BUFFERS: &str = "10000000 00000000 0000000000000000 00000000 0000000000000000";

    /// The event of a Send with this iSER header, this BHS and these further bytes.
    fn event_of(header: &str, bhs: &str, rest: &str) -> Option<IoEvent> {
        let mut events = Vec::new();
        read(&message_of(&hex(&format!("{header}{bhs}{rest}"))), &mut events);
        assert!(events.len() <= 1, "{events:?}");
        events.pop()
    }

    fn begin(header: &str, bhs: &str, rest: &str) -> Begin {
        match event_of(header, bhs, rest) {
            Some(IoEvent::Begin(begin)) => begin,
            other => panic!("{other:?}"),
        }
    }

    fn end(bhs: &str, rest: &str) -> (u64, String, bool) {
        match event_of(NO_BUFFERS, bhs, rest) {
            Some(IoEvent::End(end)) => (end.id, end.status, end.is_error),
            other => panic!("{other:?}"),
        }
    }

    /// Frames 196 and 273 of a capture of Linux: a READ(10), and a WRITE(10) with immediate data.
    #[test]
    fn a_scsi_command_has_its_parameters_and_its_buffer() {
        let read = begin(
            "14000000 00000000 0000000000000000 df379022 ffff88800a570000",
            "01c10000 00000000 0000000000000000 05000000 00001000 00000023 02ff1fe2
             28000000 00080000 08000000 00000000",
            "",
        );
        assert_eq!((read.id, read.queue, read.kind), (0x0500_0000, None, "READ(10)"));
        assert_eq!((&read.parameters[..], read.flow), ("lun 0 lba 8 blocks 8", DataFlow::FromTarget));
        assert_eq!((read.expected_bytes, read.inline_bytes, read.has_unknown_buffers), (4096, 0, false));
        assert_eq!(read.buffers, [Buffer { stag: 0xdf37_9022, offset: 0xffff_8880_0a57_0000, len: 4096 }]);
        let write = begin(
            "18000000 df37902b ffff88800a152000 00000000 0000000000000000",
            "01a10000 00002000 0000000000000000 11000000 00010000 0000002f 02ff1fee
             2a000000 00800000 80000000 00000000",
            "",
        );
        assert_eq!((write.kind, &write.parameters[..]), ("WRITE(10)", "lun 0 lba 128 blocks 128"));
        assert_eq!((write.flow, write.expected_bytes, write.inline_bytes), (DataFlow::ToTarget, 65536, 8192));
        assert_eq!(write.buffers, [Buffer { stag: 0xdf37_902b, offset: 0xffff_8880_0a15_2000, len: 65536 }]);
    }

    /// The number of bytes to read is in an AHS.
    #[test]
    fn a_command_in_both_directions_has_two_buffers() {
        let header = "1c000000 0000000a 0000000000001000 0000000b 0000000000002000";
        let bhs = |ahs: &str| {
            format!(
                "01e10000 {ahs}000000 0000000000000000 05000000 00001000 00000023 02ff1fe2
                 53000000 00080000 08000000 00000000"
            )
        };
        let command = begin(header, &bhs("02"), "00050200 00000800");
        assert_eq!((command.flow, command.expected_bytes), (DataFlow::Both, 4096 + 2048));
        let written = Buffer { stag: 10, offset: 0x1000, len: 4096 };
        let read = Buffer { stag: 11, offset: 0x2000, len: 2048 };
        assert_eq!((command.buffers, command.has_unknown_buffers), (vec![written, read], false));
        let command = begin(header, &bhs("00"), "");
        assert_eq!((command.buffers, command.has_unknown_buffers), (vec![written], true));
    }

    /// The first response is frame 633 of the capture.
    #[test]
    fn a_status_has_the_sense_data_and_an_overflow() {
        let failed = end(
            "21800002 00000062 0000000000000000 1d000000 00000000 02ff1ffa 00000039 00000078 00000000 00000000 00000000",
            "0060 70000500 0000000a 00000000 21000000 0000",
        );
        let status = "CHECK CONDITION, Illegal Request: Logical block address out of range";
        assert_eq!(failed, (0x1d00_0000, status.to_owned(), true));
        let rest = "00000000 0000000000000000 07000000 00000000 02ff1fc5 00000007 00000046 00000000 00000000 00000018";
        assert_eq!(end(&format!("21820000 {rest}"), ""), (0x0700_0000, "GOOD".to_owned(), false));
        assert_eq!(end(&format!("21840000 {rest}"), "").1, "GOOD, overflow 24");
        assert_eq!(end(&format!("21800108 {rest}"), ""), (0x0700_0000, "Target Failure".to_owned(), true));
    }

    #[test]
    fn requests_without_a_cdb_are_kinds_of_their_own() {
        let request = |first: &str, lun: &str| {
            let rest = "20000000 ffffffff 00000007 00000008 00000000 00000000 00000000 00000000";
            let begin = begin(NO_BUFFERS, &format!("{first} 00000000 {lun} {rest}"), "");
            assert_eq!((begin.id, begin.flow, begin.expected_bytes), (0x2000_0000, DataFlow::None, 0));
            (begin.kind, begin.parameters)
        };
        let (none, no_lun) = (String::new(), "0000000000000000");
        let expected = ("LOGICAL UNIT RESET", "lun 1 referenced id 0xffffffff".to_owned());
        assert_eq!(request("42850000", "0001000000000000"), expected);
        let stages = "LoginOperationalNegotiation to FullFeaturePhase".to_owned();
        assert_eq!(request("43870000", "00023d0000010000"), ("Login Request", stages));
        assert_eq!(request("46800000", no_lun), ("Logout Request", "close the session".to_owned()));
        assert_eq!(request("04800000", no_lun), ("Text Request", none.clone()));
        assert_eq!(request("40800000", no_lun), ("NOP-Out", none));
    }

    #[test]
    fn other_responses_have_their_status() {
        let status = |first: &str, login: &str| {
            let rest = "00000000 0000000000000000 20000000 00000000 00000001 00000002 00000003";
            let (id, status, is_error) = end(&format!("{first} {rest} {login} 00000000 00000000"), "");
            assert_eq!(id, 0x2000_0000);
            (status, is_error)
        };
        let named = |text: &str, is_error| (text.to_owned(), is_error);
        assert_eq!(status("22800000", "00000000"), named("Function complete", false));
        assert_eq!(status("22800500", "00000000"), named("Task management function not supported", true));
        assert_eq!(status("23870000", "00000000"), named("Success", false));
        assert_eq!(status("23870000", "02010000"), named("Authentication failure", true));
        assert_eq!(status("26800000", "00000000"), named("connection or session closed successfully", false));
        assert_eq!(status("24800000", "00000000"), named("Text Response", false));
        assert_eq!(status("20800000", "00000000"), named("NOP-In", false));
    }

    /// The data segment is the BHS of the rejected PDU (RFC 7143 section 11.17.4).
    #[test]
    fn a_reject_ends_the_command_whose_header_it_has() {
        let zero = "0000000000000000";
        let reject = |reason: &str, opcode: &str, tag: &str, rest: &str| {
            let bhs = format!(
                "3f80{reason}00 00000030 {zero} ffffffff 00000000 00000001 00000002
                 00000003 00000000 {zero}"
            );
            event_of(NO_BUFFERS, &bhs, &format!("{opcode}800000 00000000 {zero} {tag} {rest}"))
        };
        let rest = "00000000 00000007 00000008 00000000000000000000000000000000";
        let status = |event| match event {
            Some(IoEvent::End(end)) => Some((end.id, end.status, end.is_error)),
            None => None,
            other => panic!("{other:?}"),
        };
        let rejected = |text: &str| Some((0x2000_0000, format!("rejected: {text}"), true));
        assert_eq!(status(reject("05", "01", "20000000", rest)), rejected("Command not supported"));
        assert_eq!(status(reject("0a", "44", "20000000", rest)), rejected("Long op reject"));
        assert_eq!(status(reject("99", "42", "20000000", rest)), rejected("reason 0x99"));
        // Data-Out, a PDU without a task, a resent PDU, and a header without its last octet.
        assert_eq!(reject("09", "05", "20000000", rest), None);
        assert_eq!(reject("09", "00", "ffffffff", rest), None);
        assert_eq!(reject("02", "01", "20000000", rest), None);
        assert_eq!(reject("05", "01", "20000000", &rest[..rest.len() - 2]), None);
    }

    #[test]
    fn unsolicited_data_belongs_to_its_command() {
        let rest = "ffffffff 00000000 00000008 00000000 00000000 00002000 00000000";
        let data = event_of(NO_BUFFERS, &format!("05800000 00000400 0000000000000000 11000000 {rest}"), "");
        assert_eq!(data, Some(IoEvent::Data(Data { id: 0x1100_0000, bytes: 1024 })));
    }

    #[test]
    fn a_pdu_without_a_tag_is_no_event() {
        let rest = "00000000 0000000000000000 ffffffff 00000001 00000007 00000008 00000000 00000000 00000000 00000000";
        assert_eq!(event_of(NO_BUFFERS, &format!("40800000 {rest}"), ""), None);
        assert_eq!(event_of(NO_BUFFERS, &format!("20800000 {rest}"), ""), None);
    }
}
