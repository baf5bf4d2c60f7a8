//! The adapter of SMB 2 and 3 over SMB Direct. Each request of a compound begins a command, and the
//! response with the same message ID ends it. An interim response (STATUS_PENDING) does not end it.

use super::super::command::DataFlow;
use super::super::event::{Begin, Buffer, CancelledCommand, End, IoEvent};
use crate::upper::smb_direct::SmbState;
use crate::upper::smb2::{
    Body, Channel, Command, CompoundEnd, FileId, Header, InfoClass, Message, Request, Response, Status, names,
};

/// The message ID of a notification. It answers no request.
const NO_MESSAGE_ID: u64 = u64::MAX;

/// Adds what the message that ends with the current FPDU means to `events`.
pub(super) fn read(smb: Option<&SmbState>, events: &mut Vec<IoEvent>) {
    // Without a message, the Data Transfer has a part of a message, or only credits.
    let Some(latest) = smb.and_then(SmbState::latest) else { return };
    match &latest.message {
        Some(message) => add(message, events),
        None => events.push(IoEvent::Unread),
    }
}

fn add(message: &Message, events: &mut Vec<IoEvent>) {
    let Message::Compound(compound) = message else { return events.push(IoEvent::Unread) };
    for pdu in &compound.pdus {
        events.extend(match &pdu.body {
            // A CANCEL names the request that it cancels, and has no response. After an interim
            // response, only the AsyncId counts (MS-SMB2 section 3.3.5.16).
            Body::Request(_) if pdu.header.command == Command::CANCEL => {
                let by_id = CancelledCommand::Id(pdu.header.message_id);
                Some(IoEvent::Cancel(pdu.header.async_id.map_or(by_id, CancelledCommand::Async)))
            }
            Body::Request(request) => Some(IoEvent::Begin(begin(&pdu.header, request))),
            Body::Response(response) => interim(&pdu.header).or_else(|| end(&pdu.header, response).map(IoEvent::End)),
        });
    }
    if compound.end != CompoundEnd::Complete {
        events.push(IoEvent::Unread);
    }
}

fn begin(header: &Header, request: &Request) -> Begin {
    let (flow, expected_bytes, inline_bytes): (DataFlow, u64, u64) = match request {
        Request::Read(read) if read.length > 0 => (DataFlow::FromTarget, read.length.into(), 0),
        Request::Write(write) if write.total_len() > 0 => (DataFlow::ToTarget, write.total_len(), write.length.into()),
        _ => (DataFlow::None, 0, 0),
    };
    let channel = request.channel();
    let descriptors = channel.into_iter().flat_map(|channel| &channel.descriptors);
    Begin {
        id: header.message_id,
        queue: None,
        kind: header.command.name().unwrap_or("unknown command"),
        parameters: parameters(header.command, request),
        flow,
        expected_bytes,
        inline_bytes,
        buffers: descriptors
            .map(|buffer| Buffer { stag: buffer.token, offset: buffer.offset, len: buffer.length.into() })
            .collect(),
        has_unknown_buffers: channel.is_some_and(|channel| {
            let is_cut = u64::from(channel.count) > channel.descriptors.len() as u64;
            is_cut || !channel.is_valid || channel.channel == Channel::RDMA_TRANSFORM
        }),
    }
}

/// The AsyncId that an interim response gives to its request.
fn interim(header: &Header) -> Option<IoEvent> {
    let async_id = header.async_id.filter(|_| header.status == Some(Status::PENDING))?;
    Some(IoEvent::Interim { id: header.message_id, async_id })
}

/// The end of a command; `None` if the response is an interim response or a notification.
fn end(header: &Header, response: &Response) -> Option<End> {
    let status = header.status?;
    if status == Status::PENDING || header.message_id == NO_MESSAGE_ID {
        return None;
    }
    let continues = header.command == Command::SESSION_SETUP && status == Status::MORE_PROCESSING_REQUIRED;
    let inline_bytes = match response {
        // If the server wrote the data by RDMA, DataRemaining has its length.
        Response::Read { length, remaining: 0 } => u64::from(*length),
        _ => 0,
    };
    Some(End {
        id: header.message_id,
        queue: None,
        status: status.to_string(),
        is_error: status.is_error() && !continues,
        inline_bytes,
    })
}

/// The main parameters of a request.
fn parameters(command: Command, request: &Request) -> String {
    let named = |value: u32, name: Option<&str>| name.map_or_else(|| format!("{value:#x}"), str::to_owned);
    let has_no_file = matches!(request, Request::Ioctl { file: FileId::PREVIOUS, .. });
    let file = request.file().filter(|_| !has_no_file).map(|file| format!("file {file}"));
    let detail = match request {
        Request::Read(read) => Some(format!("offset {} length {}", read.offset, read.length)),
        Request::Write(write) => Some(format!("offset {} length {}", write.offset, write.total_len())),
        Request::TreeConnect { path } => path.clone(),
        Request::Create(create) => create.name.clone().filter(|name| !name.is_empty()),
        Request::Ioctl { code, .. } => Some(named(*code, names::ioctl((*code).into()))),
        Request::QueryDirectory { class, pattern, .. } => {
            let class = named((*class).into(), names::file_info((*class).into()));
            Some(match pattern {
                Some(pattern) => format!("{class} {pattern}"),
                None => class,
            })
        }
        Request::QueryInfo { info, .. } | Request::SetInfo { info, .. } => {
            let class = info.class.into();
            let name = match info.info_type {
                InfoClass::FILE => names::file_info(class),
                InfoClass::FILE_SYSTEM => names::fs_info(class),
                other => names::info_type(other.into()),
            };
            Some(named(info.class.into(), name))
        }
        Request::Unparsed if command.name().is_none() => Some(format!("command {:#06x}", command.0)),
        Request::Unparsed => Some("wrong body".to_owned()),
        _ => None,
    };
    file.into_iter().chain(detail).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::super::command::{CommandState, IoCommand, NoteKind};
    use super::super::super::text::command_line;
    use super::super::testing::Talk;
    use super::*;
    use crate::testing::hex;

    /// The negotiation of SMB Direct of Linux.
    const NEGOTIATION: [&str; 2] = [
        "0001 0001 0000 ff00 54050000 54050000 56a70200",
        "0001 0001 0001 0000 ff00 fe00 00000000 00008000 54050000 54050000 56a70200",
    ];
    const FILE: &str = "1b00000000000000 0800000000000000";
    const STAG: u32 = 0x1122_3344;
    const ADDRESS: u64 = 0x5566_0000;

    /// A connection after the negotiation, in frames 5 and 6.
    fn negotiated() -> Talk {
        let mut talk = Talk::new();
        for (direction, message) in NEGOTIATION.iter().enumerate() {
            talk.send(direction, &hex(message));
        }
        talk
    }

    /// Sends a Data Transfer. `remaining` is RemainingDataLength.
    fn transfer(talk: &mut Talk, direction: usize, data: &[u8], remaining: usize) {
        let mut octets = hex("ff00 0100 0000 0000");
        for number in [remaining, 24, data.len(), 0] {
            octets.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        octets.extend(data);
        talk.send(direction, &octets);
    }

    /// A header and a body. The response has the flag 1, an async header 2, a related request 4.
    fn pdu((command, message_id): (Command, u64), status: Status, flags: u32, next: u32, body: &str) -> Vec<u8> {
        let mut octets = hex("fe534d42 4000 0100");
        octets.extend(status.0.to_le_bytes());
        octets.extend(command.0.to_le_bytes());
        octets.extend(hex("0a00"));
        octets.extend(flags.to_le_bytes());
        octets.extend(next.to_le_bytes());
        octets.extend(message_id.to_le_bytes());
        octets.extend(hex("9b010000 02000000 0100000000000000 00000000000000000000000000000000"));
        octets.extend(hex(body));
        octets
    }

    fn send(talk: &mut Talk, direction: usize, id: (Command, u64), status: Status, body: &str) {
        let flags = if direction == 0 { 0 } else { 1 };
        transfer(talk, direction, &pdu(id, status, flags, 0, body), 0);
    }

    /// The body of a READ of 16 bytes at offset 4096, with a buffer for them.
    fn read_body() -> String {
        let buffer = format!("{:016x} {:08x} 10000000", ADDRESS.swap_bytes(), STAG.swap_bytes());
        format!("3100 5000 10000000 0010000000000000 {FILE} 00000000 01000000 00000000 7000 1000 {buffer}")
    }

    fn frames(command: &IoCommand) -> (u64, Option<u64>) {
        (command.frame.into(), command.status_frame.map(Into::into))
    }

    #[test]
    fn an_interim_response_does_not_end_a_read() {
        let read = (Command::READ, 7);
        let mut talk = negotiated();
        send(&mut talk, 0, read, Status::SUCCESS, &read_body());
        transfer(&mut talk, 1, &pdu(read, Status::PENDING, 3, 0, "0900 0000 00000000 00"), 0);
        talk.write((STAG, ADDRESS), 16);
        send(&mut talk, 1, read, Status::SUCCESS, "1100 5000 00000000 10000000 00000000 00");
        let command = talk.only();
        assert_eq!((command.id, command.command), (7, "READ"));
        assert_eq!(command.parameters, "file 0x1b:0x8 offset 4096 length 16");
        assert_eq!((command.state, frames(&command)), (CommandState::Answered, (7, Some(10))));
        assert_eq!((command.bytes, command.expected_bytes, command.writes), (16, 16, 1));
        assert_eq!((command.status.as_deref(), command.error), (Some("STATUS_SUCCESS"), false));
        assert_eq!((command.stags, command.data), (vec![STAG], DataFlow::FromTarget));
    }

    #[test]
    fn data_can_be_in_the_messages() {
        let mut talk = negotiated();
        let head = format!("3100 7000 04000000 0000000000000000 {FILE} 00000000 00000000 00000000 00000000");
        send(&mut talk, 0, (Command::WRITE, 7), Status::SUCCESS, &format!("{head} 01020304"));
        send(&mut talk, 1, (Command::WRITE, 7), Status::SUCCESS, "1100 0000 04000000 00000000 0000 0000");
        let body = format!("3100 5000 08000000 0000000000000000 {FILE} 00000000 00000000 00000000 0000 0000 00");
        send(&mut talk, 0, (Command::READ, 8), Status::SUCCESS, &body);
        send(&mut talk, 1, (Command::READ, 8), Status::SUCCESS, "1100 5000 04000000 00000000 00000000 01020304");
        let found: Vec<_> = talk
            .commands()
            .iter()
            .map(|command| (command.command, command.bytes, command.expected_bytes, command.data))
            .collect();
        assert_eq!(found, [("WRITE", 4, 4, DataFlow::ToTarget), ("READ", 4, 8, DataFlow::FromTarget)]);
    }

    /// Each compound is in two Data Transfers.
    #[test]
    fn each_request_of_a_compound_is_a_command() {
        let close = format!("1800 0000 00000000 {FILE}");
        let error = "0900 0000 00000000 00";
        let mut talk = negotiated();
        let compounds = [
            (0, 0, Status::SUCCESS, "0400 0000 00000000", &close[..]),
            (1, 1, Status(0xc000_0128), "0400 0000 00000000", error),
        ];
        for (direction, flags, status, first, second) in compounds {
            let compound = [
                pdu((Command::ECHO, 7), Status::SUCCESS, flags, 72, first),
                pdu((Command::CLOSE, 8), status, flags | 4, 0, second),
            ]
            .concat();
            let (start, end) = compound.split_at(80);
            transfer(&mut talk, direction, start, end.len());
            transfer(&mut talk, direction, end, 0);
        }
        let found = talk.commands();
        let [echo, close] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((echo.command, echo.id, frames(echo)), ("ECHO", 7, (7, Some(10))));
        assert_eq!((echo.status.as_deref(), echo.error), (Some("STATUS_SUCCESS"), false));
        assert_eq!((close.command, close.id, frames(close)), ("CLOSE", 8, (7, Some(10))));
        assert_eq!((close.status.as_deref(), close.error), (Some("STATUS_FILE_CLOSED"), true));
        assert_eq!(close.parameters, "file 0x1b:0x8");
        // From the first Data Transfer of the request to the last one of the response.
        assert_eq!(echo.latency.map(|latency| latency.total_ns), Some(3_000_000));
    }

    #[test]
    fn a_cancel_is_a_note_and_a_notification_is_no_command() {
        let mut talk = negotiated();
        send(&mut talk, 0, (Command::ECHO, 7), Status::SUCCESS, "0400 0000");
        send(&mut talk, 0, (Command::CANCEL, 7), Status::SUCCESS, "0400 0000");
        let notification = format!("1800 0000 00000000 {FILE}");
        send(&mut talk, 1, (Command::OPLOCK_BREAK, u64::MAX), Status::SUCCESS, &notification);
        send(&mut talk, 1, (Command::ECHO, 7), Status(0xc000_0120), "0900 0000 00000000 00");
        let found = talk.commands();
        let [echo] = &found[..] else { panic!("{found:#?}") };
        let notes: Vec<_> = echo.notes.iter().map(|note| (note.kind, note.frame)).collect();
        assert_eq!(notes, [(NoteKind::Cancelled, 8.into())]);
        assert!(command_line(echo, 0).ends_with("  note: cancelled in frame 8"));
        assert_eq!((echo.command, echo.status.as_deref(), echo.error), ("ECHO", Some("STATUS_CANCELLED"), true));
    }

    /// All asynchronous messages have the same AsyncId. The message ID of the CANCEL is 0.
    #[test]
    fn a_cancel_can_name_the_async_id() {
        let mut talk = negotiated();
        let read = (Command::READ, 7);
        send(&mut talk, 0, read, Status::SUCCESS, &read_body());
        transfer(&mut talk, 1, &pdu(read, Status::PENDING, 3, 0, "0900 0000 00000000 00"), 0);
        transfer(&mut talk, 0, &pdu((Command::CANCEL, 0), Status::SUCCESS, 2, 0, "0400 0000"), 0);
        transfer(&mut talk, 1, &pdu(read, Status(0xc000_0120), 3, 0, "0900 0000 00000000 00"), 0);
        let found = talk.commands();
        let [read] = &found[..] else { panic!("{found:#?}") };
        let notes: Vec<_> = read.notes.iter().map(|note| (note.kind, note.frame)).collect();
        assert_eq!(notes, [(NoteKind::Cancelled, 9.into())]);
        assert_eq!(read.status.as_deref(), Some("STATUS_CANCELLED"));
    }

    /// The client must send a further SESSION_SETUP.
    #[test]
    fn a_session_that_is_not_complete_is_no_error() {
        let mut talk = negotiated();
        let setup = (Command::SESSION_SETUP, 7);
        send(&mut talk, 0, setup, Status::SUCCESS, "1900 0001 00000000 00000000 58000000 0000000000000000 00");
        send(&mut talk, 1, setup, Status::MORE_PROCESSING_REQUIRED, "0900 0000 4800 0000 00");
        let command = talk.only();
        assert_eq!(command.status.as_deref(), Some("STATUS_MORE_PROCESSING_REQUIRED"));
        assert!(!command.error);
    }

    /// The buffers of an encrypted request are not known, so a Write is no contradiction.
    #[test]
    fn encrypted_messages_are_gaps() {
        let mut talk = negotiated();
        send(&mut talk, 0, (Command::READ, 7), Status::SUCCESS, &read_body());
        transfer(&mut talk, 1, &[hex("fd534d42"), vec![0; 80]].concat(), 0);
        let found = talk.commands();
        let [read] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((read.state, read.gap, read.notes.len()), (CommandState::Gap, true, 0));
    }
}
