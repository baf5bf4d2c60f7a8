//! Tests with messages of `captures/storage/smb-ops.pcap`, and with synthetic and hostile messages.
//! The layouts are from MS-SMB2 section 2.2. An independent program read the expected values of the
//! capture.

use proptest::prelude::*;

use super::*;
use crate::direction::Direction;
use crate::testing::hex;

/// A header in hexadecimal. `next` is NextCommand.
fn header(command: u16, status: u32, flags: u32, next: u32, message_id: u64) -> String {
    let le = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    format!(
        "fe534d42 4000 0100 {} {} 0a00 {} {} {} 9b010000 02000000 0100000000000000 {}",
        le(&status.to_le_bytes()),
        le(&command.to_le_bytes()),
        le(&flags.to_le_bytes()),
        le(&next.to_le_bytes()),
        le(&message_id.to_le_bytes()),
        "00".repeat(16),
    )
}

/// A request in hexadecimal.
fn request(command: Command, message_id: u64, body: &str) -> String {
    header(command.0, 0, 0, 0, message_id) + body
}

/// A response in hexadecimal.
fn response(command: Command, message_id: u64, status: Status, body: &str) -> String {
    header(command.0, status.0, 1, 0, message_id) + body
}

fn parse(message: &str) -> Message {
    let octets = hex(message);
    Message::parse(&octets, octets.len() as u64).unwrap()
}

/// The body of a message with one request.
fn parse_request(command: Command, body: &str) -> Request {
    match &parse(&request(command, 7, body)).pdus()[0].body {
        Body::Request(request) => request.clone(),
        Body::Response(response) => panic!("{response:?}"),
    }
}

/// The body of a message with one response.
fn parse_response(command: Command, status: Status, body: &str) -> Response {
    match &parse(&response(command, 7, status, body)).pdus()[0].body {
        Body::Response(response) => *response,
        Body::Request(request) => panic!("{request:?}"),
    }
}

/// The file of most messages.
const FILE: FileId = FileId { persistent: 0x1b, volatile: 8 };
/// The same file on the wire.
const FID: &str = "1b00000000000000 0800000000000000";

/// The bodies of the requests in frames 11, 14, 20, 86, 90, 93, 28, 30 and 76 of the capture.
#[test]
fn requests_of_the_capture_are_read() {
    let guid = "bfb7b02dce5d4d178f8386b62413362d";
    let negotiate =
        parse_request(Command::NEGOTIATE, &format!("2400 0100 0100 0000 77000000 {guid} 68000000 0400 0000 1103"));
    let Request::Negotiate(negotiate) = negotiate else { panic!("{negotiate:?}") };
    assert_eq!((negotiate.dialects, negotiate.dialect_count), (vec![0x0311], 1));
    assert_eq!((negotiate.capabilities, negotiate.client_guid.to_vec()), (0x77, hex(guid)));
    let setup = "1900 00 01 01000000 00000000 5800 2c00 0000000000000000";
    let expected = SessionSetupRequest { flags: 0, security_mode: 1, capabilities: 1, previous_session_id: 0 };
    assert_eq!(parse_request(Command::SESSION_SETUP, setup), Request::SessionSetup(expected));
    let tree = "0900 0000 4800 1e00 5c005c00310030002e0031002e0030002e0031005c0049005000430024000000";
    assert_eq!(
        parse_request(Command::TREE_CONNECT, tree),
        Request::TreeConnect { path: Some(r"\\10.1.0.1\IPC$".to_owned()) }
    );
    let create = "3900 00 09 02000000 0000000000000000 0000000000000000 800000c0 00000000 07000000 03000000
        40000000 7800 0800 88000000 40000000 6e00650077003300";
    let expected = CreateRequest {
        oplock: 9,
        desired_access: 0xc000_0080,
        share_access: 7,
        disposition: 3,
        options: 0x40,
        name: Some("new3".to_owned()),
    };
    assert_eq!(parse_request(Command::CREATE, create), Request::Create(expected));
    let write = format!("3100 7000 2c010000 0000000000000000 {FID} 00000000 00000000 0000 0000 00000000");
    let Request::Write(write) = parse_request(Command::WRITE, &write) else { panic!() };
    assert_eq!((write.length, write.offset, write.file, write.total_len()), (300, 0, FILE, 300));
    assert!(write.channel.is_valid && write.channel.channel == Channel::NONE);
    let close = parse_request(Command::CLOSE, &format!("1800 0100 00000000 {FID}"));
    assert_eq!(close, Request::Close { file: FILE, wants_attributes: true });
    let ioctl = format!("3900 0000 fc011400 {} {} 00004000 01000000 00000000", "ff".repeat(16), "00".repeat(20));
    let expected = Request::Ioctl {
        code: 0x0014_01fc,
        file: FileId::PREVIOUS,
        input_len: 0,
        max_output_len: 0x0040_0000,
        is_fsctl: true,
    };
    assert_eq!(parse_request(Command::IOCTL, &ioctl), expected);
    let info = format!("2900 02 05 88000000 6800 0000 00000000 00000000 00000000 {FID}");
    let expected = Request::QueryInfo { info: InfoClass { info_type: 2, class: 5 }, file: FILE, output_len: 0x88 };
    assert_eq!(parse_request(Command::QUERY_INFO, &info), expected);
    let list = format!("2100 26 00 00000000 {FID} 6000 0200 143c0000 2a00");
    let expected = Request::QueryDirectory {
        class: 0x26,
        flags: 0,
        file: FILE,
        pattern: Some("*".to_owned()),
        output_len: 0x3c14,
    };
    assert_eq!(parse_request(Command::QUERY_DIRECTORY, &list), expected);
}

/// Requests that the capture does not have. The layouts are from MS-SMB2 section 2.2.
#[test]
fn other_requests_are_read() {
    let descriptors = "0010000000560000 44332211 00100000 0020000000560000 45332211 00080000";
    let read = format!("3100 50 00 00180000 0000010000000000 {FID} 00000000 02000000 00000000 7000 2000 {descriptors}");
    let Request::Read(read) = parse_request(Command::READ, &read) else { panic!() };
    assert_eq!((read.length, read.offset, read.channel.channel), (6144, 65_536, Channel::RDMA_V1_INVALIDATE));
    let first = BufferDescriptor { offset: 0x5600_0000_1000, token: 0x1122_3344, length: 4096 };
    assert_eq!(read.channel.descriptors[0], first);
    assert_eq!((read.channel.count, read.channel.total_len()), (2, 6144));
    let write = format!("3100 0000 00000000 0000010000000000 {FID} 01000000 00180000 7000 2000 00000000 {descriptors}");
    let Request::Write(write) = parse_request(Command::WRITE, &write) else { panic!() };
    assert_eq!((write.length, write.remaining, write.total_len()), (0, 6144, 6144));
    assert_eq!(write.channel.descriptors[0], first);
    let lock = format!("3000 0200 00000000 {FID} {0}{0}", "0100000000000000 0200000000000000 12000000 00000000");
    let Request::Lock { file, count, ranges } = parse_request(Command::LOCK, &lock) else { panic!() };
    assert_eq!((file, count, ranges.len()), (FILE, 2, 2));
    assert_eq!(ranges[1], LockRange { offset: 1, length: 2, flags: 0x12 });
    let set = format!("2100 01 14 08000000 6000 0000 00000000 {FID} 0000000000000000");
    let info = InfoClass { info_type: InfoClass::FILE, class: 20 };
    assert_eq!(parse_request(Command::SET_INFO, &set), Request::SetInfo { info, file: FILE, len: 8 });
    let notify = format!("2000 0100 00100000 {FID} ff0f0000 00000000");
    let expected = Request::ChangeNotify { file: FILE, watches_tree: true, output_len: 4096 };
    assert_eq!(parse_request(Command::CHANGE_NOTIFY, &notify), expected);
    let oplock = format!("1800 01 00 00000000 {FID}");
    assert_eq!(parse_request(Command::OPLOCK_BREAK, &oplock), Request::OplockBreak { level: 1, file: FILE });
    let lease = format!("2400 0000 00000000 {} 05000000 0000000000000000", "11".repeat(16));
    assert_eq!(parse_request(Command::OPLOCK_BREAK, &lease), Request::LeaseBreak { state: 5 });
    assert_eq!(parse_request(Command::FLUSH, &format!("1800 0000 00000000 {FID}")), Request::Flush { file: FILE });
    for (command, expected) in [
        (Command::LOGOFF, Request::Logoff),
        (Command::TREE_DISCONNECT, Request::TreeDisconnect),
        (Command::CANCEL, Request::Cancel),
        (Command::ECHO, Request::Echo),
    ] {
        assert_eq!(parse_request(command, "0400 0000"), expected);
    }
}

/// The bodies of the responses in frames 13, 21, 27, 92, 94, 43, 77 and 33 of the capture.
#[test]
fn responses_of_the_capture_are_read() {
    let success = Status::SUCCESS;
    let negotiate = format!(
        "4100 0100 1103 0200 {} 0c000000 00001000 00004000 00004000 {} 8000 4a00 d0000000",
        "00".repeat(16),
        "00".repeat(16)
    );
    let expected = NegotiateResponse {
        security_mode: 1,
        dialect: 0x0311,
        server_guid: [0; 16],
        capabilities: 0x0c,
        max_transact_size: 0x0010_0000,
        max_read_size: 0x0040_0000,
        max_write_size: 0x0040_0000,
    };
    assert_eq!(parse_response(Command::NEGOTIATE, success, &negotiate), Response::Negotiate(expected));
    let tree = "1000 02 00 00000000 00000000 a9001f00";
    let expected = Response::TreeConnect { share_type: 2, flags: 0, capabilities: 0 };
    assert_eq!(parse_response(Command::TREE_CONNECT, success, tree), expected);
    let create = format!(
        "5900 09 00 02000000 {} 0000000000000000 0000000000000000 20020000 00000000 {FID} 98000000 38000000",
        "c030215ce17bdd01".repeat(4)
    );
    let expected = Response::Create { oplock: 9, action: 2, size: 0, file: FILE };
    assert_eq!(parse_response(Command::CREATE, success, &create), expected);
    let write = "1100 0000 2c010000 00000000 0000 0000";
    assert_eq!(parse_response(Command::WRITE, success, write), Response::Write { count: 300 });
    let close = format!("3c00 0100 00000000 {} 0010000000000000 2c01000000000000 20020000", "00".repeat(32));
    assert_eq!(parse_response(Command::CLOSE, success, &close), Response::Close { size: Some(300) });
    let close = format!("3c00 0000 00000000 {}", "00".repeat(52));
    assert_eq!(parse_response(Command::CLOSE, success, &close), Response::Close { size: None });
    let error = "0900 00 00 00000000 00";
    for (command, status) in [(Command::IOCTL, Status(0xc000_019c)), (Command::QUERY_DIRECTORY, Status::NO_MORE_FILES)]
    {
        assert_eq!(parse_response(command, status, error), Response::Error { len: 0 });
    }
    let info = "0900 4800 08000000 0700000020000000";
    assert_eq!(parse_response(Command::QUERY_INFO, success, info), Response::Output { len: 8 });
}

/// SESSION_SETUP with STATUS_MORE_PROCESSING_REQUIRED is not an error, and STATUS_BUFFER_OVERFLOW
/// comes with a result (MS-SMB2 section 3.3.4.4).
#[test]
fn the_status_decides_whether_a_response_is_an_error() {
    let setup = "0900 0000 4800 8000";
    let more = Status::MORE_PROCESSING_REQUIRED;
    assert_eq!(parse_response(Command::SESSION_SETUP, more, setup), Response::SessionSetup { flags: 0 });
    let failed = Status(0xc000_006d);
    assert_eq!(parse_response(Command::SESSION_SETUP, failed, "0900 00 00 00000000 00"), Response::Error { len: 0 });
    let overflow = Status(0x8000_0005);
    let info = "0900 4800 08000000 0700000020000000";
    assert_eq!(parse_response(Command::QUERY_INFO, overflow, info), Response::Output { len: 8 });
    assert_eq!(parse_response(Command::READ, Status::PENDING, "0900 00 00 00000000 00"), Response::Error { len: 0 });
}

#[test]
fn a_body_with_a_wrong_size_is_not_read() {
    let close = format!("1800 0100 00000000 {FID}");
    for wrong in [close[..close.len() - 2].to_owned(), close.replace("1800", "1900"), String::new()] {
        assert_eq!(parse_request(Command::CLOSE, &wrong), Request::Unparsed, "{wrong}");
    }
    assert_eq!(parse_request(Command(0x13), &close), Request::Unparsed);
    assert_eq!(parse_response(Command::WRITE, Status::SUCCESS, "1100 0000"), Response::Unparsed);
}

#[test]
fn hostile_counts_and_offsets_are_bounded() {
    // 65535 dialects are announced, and two are in the message.
    let negotiate = format!("2400 ffff 0100 0000 77000000 {} 0202 0003", "00".repeat(24));
    let Request::Negotiate(negotiate) = parse_request(Command::NEGOTIATE, &negotiate) else { panic!() };
    assert_eq!((negotiate.dialect_count, negotiate.dialects), (u16::MAX, vec![0x0202, 0x0300]));
    let many = format!("2400 ffff 0100 0000 77000000 {} {}", "00".repeat(24), "1103".repeat(65_535));
    let Request::Negotiate(negotiate) = parse_request(Command::NEGOTIATE, &many) else { panic!() };
    assert_eq!(negotiate.dialects.len(), 64);
    let lock = format!("3000 ffff 00000000 {FID} {}", "00".repeat(24 * 100));
    let Request::Lock { count, ranges, .. } = parse_request(Command::LOCK, &lock) else { panic!() };
    assert_eq!((count, ranges.len()), (u16::MAX, 64));
    // A name after the message, and a name that exceeds the message.
    for place in ["ffff 0200", "4800 ffff", "ffff ffff"] {
        let tree = format!("0900 0000 {place} 6100");
        assert_eq!(parse_request(Command::TREE_CONNECT, &tree), Request::TreeConnect { path: None }, "{place}");
    }
    let read = format!("3100 50 00 00180000 0000000000000000 {FID} 00000000 01000000 00000000 7000 ffff 00");
    let Request::Read(read) = parse_request(Command::READ, &read) else { panic!() };
    assert!(!read.channel.is_valid && read.channel.descriptors.is_empty());
}

/// An ECHO in a compound: 64 bytes of header, 4 bytes of body, and 4 bytes of padding.
fn echo(next: u32, message_id: u64) -> String {
    header(Command::ECHO.0, 0, 0, next, message_id) + "0400 0000 00000000"
}

fn compound(message: &str) -> (Vec<u64>, CompoundEnd) {
    match parse(message) {
        Message::Compound(Compound { pdus, end }) => (pdus.iter().map(|pdu| pdu.header.message_id).collect(), end),
        other => panic!("{other:?}"),
    }
}

#[test]
fn compounds_are_read_to_their_end() {
    let message = echo(72, 1) + &echo(72, 2) + &echo(0, 3);
    assert_eq!(compound(&message), (vec![1, 2, 3], CompoundEnd::Complete));
    let Message::Compound(Compound { pdus, .. }) = parse(&message) else { panic!() };
    let places: Vec<_> = pdus.iter().map(|pdu| (pdu.at, pdu.len)).collect();
    assert_eq!(places, [(0, 72), (72, 72), (144, 72)]);
}

#[test]
fn a_wrong_next_command_ends_the_compound() {
    for next in [1, 8, 63, 68, 70, 144, 0xffff_fff8, u32::MAX] {
        let message = echo(next, 1) + &echo(0, 2);
        assert_eq!(compound(&message), (vec![1], CompoundEnd::WrongNextCommand), "{next}");
    }
    // NextCommand names the middle of the second header.
    assert_eq!(compound(&(echo(80, 1) + &echo(0, 2))), (vec![1], CompoundEnd::NoHeader));
}

/// No compound is endless, because each step moves on. A long compound is cut.
#[test]
fn a_long_compound_is_cut() {
    let message: String = (0..1000).map(|number| echo(72, number)).collect::<String>() + &echo(0, 1000);
    let (ids, end) = compound(&message);
    assert_eq!((ids.len(), end), (MAX_COMPOUND, CompoundEnd::TooLong));
    let octets = hex(&message);
    // Only the first 100 bytes of the message are stored.
    let Some(Message::Compound(cut)) = Message::parse(&octets[..100], octets.len() as u64) else { panic!() };
    assert_eq!((cut.pdus.len(), cut.end), (1, CompoundEnd::NotStored));
}

#[test]
fn encrypted_and_compressed_messages_are_named() {
    let encrypted = format!("fd534d42 {} 34120000 0000 0100 0900000000000000", "11".repeat(32));
    let header = TransformHeader { original_size: 0x1234, flags: 1, session_id: 9 };
    assert_eq!(parse(&encrypted), Message::Encrypted(header));
    assert_eq!(parse(&encrypted).to_string(), "SMB3 encrypted, 4660 bytes, session 0x9");
    let compressed = "fc534d42 00200000 0300 0000 00000000";
    let header = CompressionHeader { original_size: 0x2000, algorithm: 3, flags: 0 };
    assert_eq!(parse(compressed), Message::Compressed(header));
    for short in [&encrypted[..encrypted.len() - 2], "fc534d42 00", "fe534d42", "ff534d42", "fe"] {
        assert_eq!(Message::parse(&hex(short), 1000), None, "{short}");
    }
}

/// Passes a message of `direction` in frame `frame` to a conversation.
fn pass(conversation: &mut Conversation, direction: Direction, message: &str, frame: u64) -> Message {
    let octets = hex(message);
    conversation.message(direction, (&octets[..], octets.len() as u64), (frame.into(), 1000 * frame)).unwrap()
}

#[test]
fn a_response_names_its_request() {
    let (client, server) = (Direction::Forward, Direction::Reverse);
    let mut conversation = Conversation::default();
    let write = format!("3100 7000 2c010000 1000000000000000 {FID} 00000000 00000000 0000 0000 00000000");
    pass(&mut conversation, client, &request(Command::WRITE, 34, &write), 90);
    pass(&mut conversation, client, &request(Command::ECHO, 35, "0400 0000"), 91);
    assert_eq!(conversation.outstanding(), 2);
    let written = response(Command::WRITE, 34, Status::SUCCESS, "1100 0000 2c010000 00000000 0000 0000");
    // The same direction as the request, or another command, does not answer the request.
    assert!(pass(&mut conversation, client, &written, 92).pdus()[0].answered.is_none());
    let other = response(Command::READ, 34, Status::SUCCESS, "");
    assert!(pass(&mut conversation, server, &other, 92).pdus()[0].answered.is_none());
    let message = pass(&mut conversation, server, &written, 92);
    let answered = message.pdus()[0].answered.as_ref().unwrap();
    assert_eq!((answered.frame, answered.time), (90.into(), 90_000));
    let Request::Write(write) = &answered.request else { panic!("{answered:?}") };
    assert_eq!((write.offset, write.length), (16, 300));
    assert_eq!(
        message.to_string(),
        "SMB2 WRITE Response 34 STATUS_SUCCESS count 300, request in frame 90 (offset 16 length 300)"
    );
    assert_eq!(conversation.outstanding(), 1);
    assert!(pass(&mut conversation, server, &written, 93).pdus()[0].answered.is_none(), "answered only once");
}

/// The response is read first, because the connection has no CRC.
#[test]
fn a_request_has_the_response_that_was_read_before_it() {
    let (client, server) = (Direction::Forward, Direction::Reverse);
    let mut conversation = Conversation::default();
    let answer = |number| response(Command::ECHO, number, Status::SUCCESS, "0400 0000");
    assert!(pass(&mut conversation, server, &answer(5), 2).pdus()[0].answered.is_none());
    let early = pass(&mut conversation, client, &request(Command::ECHO, 5, "0400 0000"), 1).pdus()[0].early_response;
    let early = early.unwrap();
    assert_eq!((early.status, early.response, early.frame), (Status::SUCCESS, Response::Empty, 2.into()));
    assert_eq!(conversation.outstanding(), 0);
    // Only the last 64 responses are stored.
    for number in 100..200 {
        pass(&mut conversation, server, &answer(number), 3);
    }
    for (number, is_stored) in [(100, false), (135, false), (136, true), (199, true)] {
        let message = pass(&mut conversation, client, &request(Command::ECHO, number, "0400 0000"), 4);
        assert_eq!(message.pdus()[0].early_response.is_some(), is_stored, "{number}");
    }
    assert!(conversation.memory() < 64 * 1024);
}

#[test]
fn an_interim_response_leaves_the_request_outstanding() {
    let (client, server) = (Direction::Forward, Direction::Reverse);
    let mut conversation = Conversation::default();
    let notify = format!("2000 0000 00100000 {FID} ff0f0000 00000000");
    pass(&mut conversation, client, &request(Command::CHANGE_NOTIFY, 5, &notify), 1);
    let pending = response(Command::CHANGE_NOTIFY, 5, Status::PENDING, "0900 00 00 00000000 00");
    assert!(pass(&mut conversation, server, &pending, 2).pdus()[0].answered.is_some());
    // The client cancels the request with the same message ID.
    pass(&mut conversation, client, &request(Command::CANCEL, 5, "0400 0000"), 3);
    let cancelled = response(Command::CHANGE_NOTIFY, 5, Status(0xc000_0120), "0900 00 00 00000000 00");
    let message = pass(&mut conversation, server, &cancelled, 4);
    assert_eq!(message.pdus()[0].answered.as_ref().map(|request| request.frame), Some(1.into()));
    assert_eq!(conversation.outstanding(), 0);
}

#[test]
fn a_notification_answers_no_request() {
    let mut conversation = Conversation::default();
    let broken = response(Command::OPLOCK_BREAK, u64::MAX, Status::SUCCESS, &format!("1800 01 00 00000000 {FID}"));
    let message = pass(&mut conversation, Direction::Reverse, &broken, 1);
    assert_eq!(message.pdus()[0].body, Body::Response(Response::OplockBreak { level: 1, file: FILE }));
    assert_eq!((message.pdus()[0].answered.as_ref(), conversation.outstanding()), (None, 0));
}

#[test]
fn outstanding_requests_have_limits() {
    let client = Direction::Forward;
    let mut conversation = Conversation::default();
    for number in 0..3000 {
        pass(&mut conversation, client, &request(Command::ECHO, number, "0400 0000"), 1);
    }
    assert_eq!(conversation.outstanding(), MAX_OUTSTANDING);
    // The newest requests are stored.
    let answer = |number| response(Command::ECHO, number, Status::SUCCESS, "0400 0000");
    assert!(pass(&mut conversation, client.peer(), &answer(0), 2).pdus()[0].answered.is_none());
    assert!(pass(&mut conversation, client.peer(), &answer(2999), 2).pdus()[0].answered.is_some());
    // Each request has a name of 1024 code units.
    let tree = format!("0900 0000 4800 0008 {}", "6100".repeat(1024));
    for number in 0..3000 {
        pass(&mut conversation, client, &request(Command::TREE_CONNECT, number, &tree), 3);
    }
    // The memory includes the response to the removed request 0, which is shorter than 1 KiB.
    assert!(conversation.memory() <= MAX_OUTSTANDING_BYTES + 1024 && conversation.outstanding() > 100);
}

proptest! {
    #[test]
    fn no_octets_make_the_parser_panic(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        command in 0u16..20,
        flags in 0u32..8,
        size in prop::sample::select(vec![2u16, 4, 9, 16, 17, 24, 25, 33, 36, 41, 44, 48, 49, 57, 60, 65, 89]),
        next in prop::sample::select(vec![0u32, 8, 64, 72, 128, u32::MAX]),
        more in 0u64..300,
    ) {
        let mut octets = hex(&header(command, 0xc000_0022, flags, next, 1));
        octets.extend_from_slice(&size.to_le_bytes());
        octets.extend_from_slice(&body);
        for octets in [&octets[..], &body] {
            let len = octets.len() as u64 + more;
            if let Some(message) = Conversation::default().message(Direction::Forward, (octets, len), (1.into(), 0)) {
                prop_assert!(!message.to_string().is_empty() && message.pdus().len() <= MAX_COMPOUND);
            }
        }
    }
}
