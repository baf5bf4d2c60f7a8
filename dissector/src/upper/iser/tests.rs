//! Tests with PDUs that Linux sent over soft-iWARP, and with synthetic messages that differ from
//! them. The numbers of frames in the comments are frames of `captures/storage/iser-session.pcap`.
//! The source of Hello and HelloReply is RFC 7145 sections 9.3 and 9.4.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::testing::hex;
use crate::upper::Ulp;
use crate::upper::tests::{TestConnection, check_headers};

/// The iSER header of a PDU without buffers.
const NO_BUFFERS: &str = "10000000 00000000 0000000000000000 00000000 0000000000000000";
const READ_BUFFER: &str = "14000000 00000000 0000000000000000 df379007 ffff88800a570000";

/// The BHS and the text of a Login Request (frame 8).
const LOGIN_REQUEST: &str = "43870000 000000ed 00023d00 00010000 00000000 00000000 00000001 00000000
    00000000 00000000 00000000 00000000";
const LOGIN_TEXT: &str = "InitiatorName=iqn.2026-11.lab.siw:initiator\0InitiatorAlias=(none)\0\
    SessionType=Discovery\0HeaderDigest=None\0DataDigest=None\0DefaultTime2Wait=2\0DefaultTime2Retain=0\0\
    IFMarker=No\0OFMarker=No\0ErrorRecoveryLevel=0\0MaxRecvDataSegmentLength=8192\0";
/// The BHS of the Login Response (frame 10), and a part of its text.
const LOGIN_RESPONSE: &str = "23870000 00000021 00023d00 00010001 00000000 00000000 ecc6c67c 00000001
    00000001 00000000 00000000 00000000";
const LOGIN_RESPONSE_TEXT: &str = "HeaderDigest=None\0DataDigest=None";
/// An INQUIRY (frame 63) and its response (frame 65).
const INQUIRY: &str = "01c10000 00000000 00000000 00000000 07000000 00000024 00000006 02ff1fc5
    12010000 24000000 00000000 00000000";
const RESPONSE: &str = "21820000 00000000 00000000 00000000 07000000 00000000 02ff1fc5 00000007
    00000046 00000000 00000000 00000018";

/// A Send with this iSER header, this BHS and this data segment, which is padded.
fn send(header: &str, bhs: &str, data: &[u8]) -> Vec<u8> {
    let mut octets = [hex(header), hex(bhs), data.to_vec()].concat();
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

fn login_request() -> Vec<u8> {
    send(NO_BUFFERS, LOGIN_REQUEST, LOGIN_TEXT.as_bytes())
}

/// A connection on which weft recognised iSER, and the number of its units.
fn logged_in() -> (TestConnection, usize) {
    let mut talk = TestConnection::new();
    talk.send(0, &login_request(), 1 << 14);
    talk.send(1, &send(NO_BUFFERS, LOGIN_RESPONSE, LOGIN_RESPONSE_TEXT.as_bytes()), 1 << 14);
    let count = talk.units().0.len();
    (talk, count)
}

/// The summary and the JSON object of the last unit.
fn last(talk: &TestConnection) -> (String, Value) {
    let (mut units, mut lines, _) = talk.units();
    (lines.pop().unwrap(), units.pop().unwrap())
}

/// The protocol after `first` in direction 0, and then `second` in direction 1.
fn ulp_of(first: &[u8], second: &[u8]) -> Option<Ulp> {
    let mut talk = TestConnection::new();
    talk.send(0, first, 1 << 14);
    talk.send(1, second, 1 << 14);
    talk.read().1
}

#[test]
fn a_login_names_the_protocol() {
    let (talk, _) = logged_in();
    assert_eq!(talk.read(), (["Login Request", "Login Response"].map(str::to_owned).into(), Some(Ulp::Iser)));
    let (units, lines, _) = talk.units();
    let [request, response] = &units[units.len() - 2..] else { unreachable!() };
    let stages = "LoginOperationalNegotiation to FullFeaturePhase";
    let expected = format!("iSER Login Request {stages} TSIH 0x0000 ITT 0x00000000 data 237");
    assert!(lines[lines.len() - 2].ends_with(&expected), "{lines:?}");
    let expected = format!(
        "iSER Login Response {stages} TSIH 0x0001 Success ITT 0x00000000 data 33 to Login Request in frame {}",
        request["frame"]
    );
    assert!(lines.last().unwrap().ends_with(&expected), "{lines:?}");
    assert_eq!(request["weft.ulp"], "iser");
    assert_eq!(request["iscsi.login.csg"], 1);
    assert_eq!(request["iscsi.keyvalue"][2], "SessionType=Discovery");
    assert_eq!(response["iscsi.keyvalue"], serde_json::json!(["HeaderDigest=None", "DataDigest=None"]));
    assert_eq!(response["iscsi.request_frame"], request["frame"]);
    assert_eq!(response["iscsi.login.status"], 0);
}

/// Each change makes a field illegal, or makes a length wrong.
#[test]
fn a_login_with_a_wrong_field_proves_nothing() {
    for (at, value, what) in [
        (0, 0x11, "reserved bit of the iSER header"),
        (1, 0x01, "reserved byte of the iSER header"),
        (7, 0x01, "Write STag without WSV"),
        (27, 0x01, "Read Base Offset without RSV"),
        (0, 0x18, "buffer"),
        (28, 0x03, "not immediate"),
        (28, 0xc3, "reserved bit of the BHS"),
        (29, 0xc7, "T and C"),
        (29, 0x97, "reserved bit of the flags"),
        (29, 0x8b, "reserved stage"),
        (29, 0x85, "next stage is the current stage"),
        (30, 0x01, "Version-max"),
        (31, 0x01, "Version-min"),
        (32, 0x01, "TotalAHSLength"),
        (35, 0xee + 8, "DataSegmentLength"),
        (35, 0xec - 8, "DataSegmentLength"),
        (HEAD_LEN, b'=', "no key"),
    ] {
        let mut request = login_request();
        request[at] = value;
        assert_eq!(ulp_of(&request, &[]), None, "{what}");
    }
}

#[test]
fn a_command_and_its_response_name_the_protocol() {
    let mut talk = TestConnection::new();
    talk.send(0, &send(READ_BUFFER, INQUIRY, &[]), 1 << 14);
    assert_eq!(talk.read(), (vec![], None));
    let (_, command) = last(&talk);
    talk.send(1, &send(NO_BUFFERS, RESPONSE, &[]), 1 << 14);
    assert_eq!(talk.read(), (vec!["SCSI Response".to_owned()], Some(Ulp::Iser)));
    let (line, unit) = last(&talk);
    let expected =
        format!("iSER SCSI Response GOOD underflow 24 ITT 0x07000000 to INQUIRY in frame {}", command["frame"]);
    assert!(line.ends_with(&expected), "{line}");
    assert_eq!(unit["weft.scsi.command"], "INQUIRY");
    assert_eq!(unit["iscsi.request_frame"], command["frame"]);
    assert_eq!(unit["iscsi.scsiresponse.U"], 1);
    assert_eq!(unit["iscsi.scsiresponse.residualcount"], 24);
    // The same command a second time.
    talk.send(0, &send(READ_BUFFER, INQUIRY, &[]), 1 << 14);
    let line = last(&talk).0;
    let buffer = "read STag 0xdf379007 offset 0xffff88800a570000";
    assert!(line.ends_with(&format!("SCSI Command INQUIRY LUN 0 length 36 ITT 0x07000000 {buffer}")), "{line}");
}

#[test]
fn what_does_not_fit_the_command_proves_nothing() {
    let command = send(READ_BUFFER, INQUIRY, &[]);
    let response = send(NO_BUFFERS, RESPONSE, &[]);
    assert_eq!(ulp_of(&command, &response), Some(Ulp::Iser));
    // A response alone, two requests, and a response of the same endpoint.
    assert_eq!(ulp_of(&response, &response), None);
    assert_eq!(ulp_of(&command, &command), None);
    let mut talk = TestConnection::new();
    talk.send(0, &command, 1 << 14);
    talk.send(0, &response, 1 << 14);
    assert_eq!(talk.read().1, None);
    for (octets, at, value, what) in [
        (&command, 29, 0xa1, "R is 0, but there is a read buffer"),
        (&command, 29, 0x41, "neither F nor W"),
        (&command, 29, 0xc5, "reserved attribute"),
        (&command, 29, 0xd1, "reserved bit"),
        (&command, 30, 0x01, "reserved byte"),
        (&command, 35, 0x05, "DataSegmentLength"),
        (&command, 44, 0x08, "other tag"),
        (&response, 44, 0x08, "other tag"),
        (&response, 28, 0x20, "NOP-In"),
        (&response, 28, 0x61, "bit I in a response"),
        (&response, 29, 0x02, "bit 0 is not 1"),
        (&response, 36, 0x01, "reserved byte"),
        (&response, 0, 0x14, "buffer in a response"),
    ] {
        let mut changed = octets.clone();
        changed[at] = value;
        let [first, second] = if octets == &command { [&changed, &response] } else { [&command, &changed] };
        assert_eq!(ulp_of(first, second), None, "{what}");
    }
}

/// Frames 158 and 159. The second data segment has the length of the sense data and the first 18 of
/// 96 octets.
#[test]
fn a_check_condition_has_sense_data() {
    let (mut talk, _) = logged_in();
    let command = "01c10000 00000000 00000000 00000000 1c000000 0000000a 0000001b 02ff1fda
        a30c0112 00000000 000a0000 00000000";
    talk.send(0, &send(READ_BUFFER, command, &[]), 1 << 14);
    let response = "21800002 00000014 00000000 00000000 1c000000 00000000 02ff1fda 0000001c
        0000005b 00000000 00000000 00000000";
    let sense = hex("0060 700005000000000a000000002000000000 00");
    talk.send(1, &send(NO_BUFFERS, response, &sense), 1 << 14);
    let (line, unit) = last(&talk);
    let name = "REPORT SUPPORTED OPERATION CODES";
    let expected = format!("CHECK CONDITION ITT 0x1c000000 data 20 to {name} in frame");
    assert!(line.contains(&expected), "{line}");
    assert!(line.ends_with(" (Illegal Request: Invalid command operation code)"), "{line}");
    let sense = ["scsi.sns.errtype", "scsi.sns.key", "scsi.sns.asc", "scsi.sns.ascq", "scsi.sns.ascascq"];
    assert_eq!(sense.map(|key| unit[key].as_u64()), [0x70, 5, 0x20, 0, 0x2000].map(Some));
    assert_eq!(unit["iscsi.scsiresponse.senselength"], 96);
}

/// A WRITE(10) of 65536 bytes with 8192 bytes of immediate data, in segments of 1424 bytes. It
/// follows in the session after the last frame of the file.
#[test]
fn a_command_in_several_segments_is_read_from_its_first_segment() {
    let (mut talk, before) = logged_in();
    let header = "18000000 df37902b ffff88800a152000 00000000 0000000000000000";
    let bhs = "01a10000 00002000 00000000 00000000 11000000 00010000 0000002f 02ff1fee
        2a000000 00800000 80000000 00000000";
    talk.send(0, &send(header, bhs, &[0x34; 8192]), 1424);
    let (line, unit) = last(&talk);
    let expected = "SCSI Command WRITE(10) LBA 128 blocks 128 LUN 0 length 65536 ITT 0x11000000 data 8192 \
        write STag 0xdf37902b offset 0xffff88800a152000";
    assert!(line.ends_with(expected), "{line}");
    assert_eq!(talk.units().0.len() - before, 6);
    assert_eq!(unit["weft.scsi.lba"], 128);
    assert_eq!(unit["weft.scsi.blocks"], 128);
    assert_eq!(unit["iser.write_stag"], 0xdf37_902b_u32);
    // Without the last byte of the data, the lengths do not fit.
    talk.send(0, &send(header, bhs, &[0x34; 8192])[..HEAD_LEN + 8191], 1424);
    let (line, _) = last(&talk);
    assert!(line.ends_with(" (lengths do not fit the 8267 bytes of the Send)"), "{line}");
    assert_eq!(talk.read().1, Some(Ulp::Iser));
}

#[test]
fn padding_can_be_missing() {
    let (mut talk, _) = logged_in();
    let bhs = "01a10000 00000006 00000000 00000000 11000000 00000006 0000002f 02ff1fee
        15100000 06000000 00000000 00000000";
    let padded = send(NO_BUFFERS, bhs, &[7; 6]);
    for len in [HEAD_LEN + 6, HEAD_LEN + 8] {
        talk.send(0, &padded[..len], 1 << 14);
        assert!(last(&talk).0.ends_with("MODE SELECT(6) LUN 0 length 6 ITT 0x11000000 data 6"));
    }
    talk.send(0, &padded[..HEAD_LEN + 7], 1 << 14);
    assert!(last(&talk).0.ends_with("do not fit the 83 bytes of the Send)"));
}

/// The ranges of headers in a complete Send. Also checks that weft reads the same message from
/// them.
#[track_caller]
fn headers(octets: &[u8]) -> String {
    let filled = check_headers::<Connection>(octets, true);
    assert_eq!(Connection::read(&filled, true), Connection::read(octets, true));
    format!("{:?}", Connection::headers(octets, true))
}

#[test]
fn headers_have_no_data_and_no_values_of_text() {
    assert_eq!(headers(&send(READ_BUFFER, INQUIRY, &[])), "[0..76]");
    let login = send(NO_BUFFERS, LOGIN_RESPONSE, LOGIN_RESPONSE_TEXT.as_bytes());
    // HeaderDigest=, the zero byte after its value, and DataDigest=.
    assert_eq!(headers(&login), "[0..76, 76..89, 93..94, 94..105]");
    assert!(headers(&login_request()).starts_with("[0..76, 76..90, 119..120, "));
    // The length of the sense data is 96, but the data segment has 20 bytes.
    let response = "21800002 00000014 00000000 00000000 1c000000 00000000 02ff1fda 0000001c
        0000005b 00000000 00000000 00000000";
    let sense = hex("0060 700005000000000a000000002000000000 00");
    assert_eq!(headers(&send(NO_BUFFERS, response, &sense)), "[0..76, 76..96]");
    let write = "01a10000 00000010 00000000 00000000 11000000 00000200 0000002f 02ff1fee
        2a000000 00800000 01000000 00000000";
    assert_eq!(headers(&send(NO_BUFFERS, write, &[0x34; 16])), "[0..76]");
    assert_eq!((headers(&hex(HELLO)), headers(&[0x40; 80])), ("[0..28]".to_owned(), "[]".to_owned()));
}

/// Hello with versions 10 to 10 and IRD 16, and HelloReply with versions 10 and ORD 8.
const HELLO: &str = "20aa0010 00000000 0000000000000000 00000000 0000000000000000";
const HELLO_REPLY: &str = "30aa0008 00000000 0000000000000000 00000000 0000000000000000";

#[test]
fn a_hello_and_its_reply_name_the_protocol() {
    let (hello, reply) = (hex(HELLO), hex(HELLO_REPLY));
    assert_eq!(ulp_of(&hello, &reply), Some(Ulp::Iser));
    let mut talk = TestConnection::new();
    talk.send(0, &hello, 1 << 14);
    talk.send(1, &reply, 1 << 14);
    talk.send(0, &hello, 1 << 14);
    let (line, unit) = last(&talk);
    assert!(line.ends_with("iSER Hello versions 10 to 10 IRD 16"), "{line}");
    assert_eq!(unit["weft.iser.max_version"], 10);
    assert_eq!(unit["iser.ird"], 16);
    talk.send_one(1, &HELLO_REPLY.replace("30aa", "31aa"));
    let (line, unit) = last(&talk);
    assert!(line.ends_with("iSER HelloReply version 10 ORD 8 rejects the connection"), "{line}");
    assert_eq!(unit["iser.flags.rej"], 1);
    assert_eq!(unit["iser.ord"], 8);
    for (hello, reply) in [
        (HELLO.replace("20aa", "209a"), HELLO_REPLY.to_owned()),
        (HELLO.replace("20aa", "21aa"), HELLO_REPLY.to_owned()),
        (HELLO.to_owned(), HELLO_REPLY.replace("30aa", "30a9")),
        (HELLO.to_owned(), format!("{HELLO_REPLY} 00")),
        (HELLO.to_owned(), HELLO_REPLY.replace("0008 00000000", "0008 00000001")),
        (HELLO_REPLY.to_owned(), HELLO.to_owned()),
    ] {
        assert_eq!(ulp_of(&hex(&hello), &hex(&reply)), None, "{hello} {reply}");
    }
}

/// LOGICAL UNIT RESET and Logout with their responses are the last PDUs of the session. The other
/// messages follow the figures of RFC 7143 section 11.
#[test]
fn other_pdus_have_names() {
    let (mut talk, _) = logged_in();
    let zero = "00000000 00000000";
    for (direction, bhs, expected) in [
        (
            0,
            format!("42850000 00000000 {zero} 1f000000 ffffffff 0000003a 02ff1ffc {zero} {zero}"),
            "Task Management Function Request LOGICAL UNIT RESET LUN 0 referenced tag 0xffffffff ITT 0x1f000000",
        ),
        (
            1,
            format!("22800000 00000000 {zero} 1f000000 00000000 02ff1ffc 0000003a 00000079 00000000 {zero}"),
            "Task Management Function Response Function complete ITT 0x1f000000 to Task Management Function Request",
        ),
        (
            0,
            format!("46800000 00000000 {zero} 01000000 00000000 0000003a 02ff1ffd {zero} {zero}"),
            "Logout Request close the session ITT 0x01000000",
        ),
        (
            1,
            format!("26800000 00000000 {zero} 01000000 00000000 02ff1ffd 0000003a 00000079 00000000 {zero}"),
            "Logout Response connection or session closed successfully ITT 0x01000000 to Logout Request in frame",
        ),
        (
            1,
            format!("32800000 00000000 {zero} ffffffff 00000000 02ff1ffd 0000003a 00000079 01000000 00000005 00000000"),
            "Asynchronous Message Logout Request LUN 0",
        ),
        (
            1,
            format!("3f800900 00000000 {zero} ffffffff 00000000 02ff1ffd 0000003a 00000079 00000000 {zero}"),
            "Reject Invalid PDU field",
        ),
        (
            1,
            format!("20800000 00000000 {zero} ffffffff 00000007 02ff1ffd 0000003a 00000079 00000000 {zero}"),
            "iSER NOP-In",
        ),
        (
            1,
            format!("23040000 00000000 {zero} 00000000 00000000 00000000 00000000 00000000 02010000 {zero}"),
            "Login Response LoginOperationalNegotiation TSIH 0x0000 Authentication failure ITT 0x00000000",
        ),
        (
            1,
            format!("25810000 00000000 {zero} 07000000 ffffffff 00000000 0000003a 00000079 00000000 {zero}"),
            "SCSI Data-In ITT 0x07000000 (not allowed in iSER)",
        ),
        (
            1,
            format!("31800000 00000000 {zero} 07000000 00000001 00000000 0000003a 00000079 00000000 {zero}"),
            "Ready To Transfer ITT 0x07000000 (not allowed in iSER)",
        ),
        (
            0,
            format!("10810000 00000000 {zero} 07000000 ffffffff 00000000 00000079 {zero} {zero}"),
            "SNACK Request ITT 0x07000000 (not allowed in iSER)",
        ),
    ] {
        talk.send_one(direction, &format!("{NO_BUFFERS} {bhs}"));
        let line = last(&talk).0;
        assert!(line.contains(expected), "{line}, not {expected}");
        assert_eq!(talk.read().1, Some(Ulp::Iser));
    }
}

/// In an RPC-over-RDMA header, the second word is the version 1. In an iSER header, it is the Write
/// STag. The third word is then a number of credits, or the first half of the Write Base Offset.
#[test]
fn an_stag_of_one_is_not_rpc_over_rdma() {
    let header = "18000000 00000001 0000000100000000 00000000 0000000000000000";
    let bhs = "01a10000 00000000 00000000 00000000 11000000 00010000 0000002f 02ff1fee
        2a000000 00800000 80000000 00000000";
    assert_eq!(ulp_of(&send(header, bhs, &[]), &[]), None);
    let response = RESPONSE.replace("07000000 00000000 02ff1fc5", "11000000 00000000 02ff1fc5");
    assert_eq!(ulp_of(&send(header, bhs, &[]), &send(NO_BUFFERS, &response, &[])), Some(Ulp::Iser));
}

#[test]
fn a_send_that_is_not_iser_contradicts() {
    for other in ["00", "40000000", "10000000", "20aa0010"] {
        let (mut talk, _) = logged_in();
        talk.send_one(0, other);
        assert_eq!(talk.read().1, None, "{other}");
    }
    // An opcode that is not assigned.
    let (mut talk, _) = logged_in();
    talk.send(0, &send(NO_BUFFERS, &INQUIRY.replace("01c10000", "07c10000"), &[]), 1 << 14);
    assert_eq!(talk.read().1, None);
    // A Send without bytes can end the MPA start-up.
    let (mut talk, _) = logged_in();
    talk.0.send_ulpdu(0, "4143 00000000 00000000 00000002 00000000");
    assert_eq!(talk.read().1, Some(Ulp::Iser));
}

#[test]
fn a_short_send_is_not_read() {
    let request = login_request();
    for len in 0..HEAD_LEN {
        let expected = if len == 0 { Verdict::Open } else { Verdict::Not };
        assert_eq!(Connection::read(&request[..len], true), expected, "{len}");
        assert_eq!(Connection::read(&request[..len], false), Verdict::Open, "{len}");
    }
    for len in HEAD_LEN..request.len() {
        assert!(matches!(Connection::read(&request[..len], false), Verdict::Is { .. }), "{len}");
    }
    let hello = hex(HELLO);
    for len in 1..HEADER_LEN {
        assert_eq!(Connection::read(&hello[..len], true), Verdict::Not, "{len}");
    }
}

/// `weft scrub` replaces all bytes that are not in the ranges of headers.
#[test]
fn the_result_depends_only_on_headers() {
    let with_additional = INQUIRY.replacen("01c10000 00000000", "01e10000 02000000", 1);
    let with_sense = RESPONSE.replacen("21820000 00000000", "21820000 00000014", 1);
    for octets in [
        login_request(),
        send(NO_BUFFERS, LOGIN_RESPONSE, LOGIN_RESPONSE_TEXT.as_bytes()),
        send(READ_BUFFER, INQUIRY, &[]),
        send(READ_BUFFER, &with_additional, &hex("0005 02 00 00001000")),
        send(NO_BUFFERS, &with_sense, &hex("0012 70 00 05 00000000 0a 00000000 20 00 00 000000")),
        hex(HELLO),
        hex(HELLO_REPLY),
    ] {
        let mut changed = vec![b'V'; octets.len()];
        for range in Connection::headers(&octets, true) {
            changed[range.clone()].copy_from_slice(&octets[range]);
        }
        assert_eq!(Connection::read(&changed, true), Connection::read(&octets, true), "{octets:02x?}");
    }
}

/// The Bidirectional Read Expected Data Transfer Length is in an additional header segment of 8
/// bytes. Another segment of 8 bytes, with padding, is before it.
#[test]
fn additional_header_segments_are_read_to_their_end() {
    let bhs = INQUIRY.replacen("01c10000 00000000", "01e10000 04000000", 1);
    let read = |segments: &str| {
        let octets = send(READ_BUFFER, &bhs, &hex(segments));
        let Some(pdu) = Pdu::parse(&octets) else { panic!("{segments}") };
        pdu.bidirectional_read_len
    };
    assert_eq!(read("0005 01 00 11223344 0005 02 00 00001000"), Some(4096));
    assert_eq!(read("0002 01 0011 000000 0005 02 00 00001000"), Some(4096));
    assert_eq!(read("0004 01 00 112233 00 0005 02 00 00001000"), Some(4096));
    for wrong in ["0005 02 00", "ffff 02 00 00001000", "0005", "", "0004 02 00 00001000", "fffd 01 00 11223344"] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}

#[test]
fn memory_has_a_limit() {
    let mut connection = Connection::default();
    let info = SendInfo { direction: Direction::Forward, frame: 1.into(), len: HEAD_LEN as u64, is_recognised: true };
    for tag in 0..5000_u32 {
        let bhs = INQUIRY.replacen("07000000", &format!("{tag:08x}"), 1);
        let pdu = Pdu::parse(&send(READ_BUFFER, &bhs, &[])).unwrap();
        assert_eq!(pdu.task_tag(), tag);
        assert_eq!(connection.message(&info, &mut Message::Pdu(pdu)), Judgement::Open);
    }
    assert!((1..1 << 20).contains(&connection.memory()), "{}", connection.memory());
}

proptest! {
    /// Any bytes, and PDUs with any bytes in place of some of theirs.
    #[test]
    fn no_octets_are_too_odd(
        octets in proptest::collection::vec(any::<u8>(), 0..200),
        changes in proptest::collection::vec((0usize..180, any::<u8>()), 0..12),
        len in 0usize..320,
        is_complete: bool,
        total in 0u64..400,
    ) {
        let mut changed = login_request();
        for (at, value) in changes {
            changed[at] = value;
        }
        changed.truncate(len);
        let mut connection = Connection::default();
        for octets in [octets, changed] {
            check_headers::<Connection>(&octets, is_complete);
            if let Verdict::Is { mut parsed, .. } = Connection::read(&octets, is_complete) {
                let info = SendInfo { direction: Direction::Forward, frame: 1.into(), len: total, is_recognised: true };
                connection.message(&info, &mut parsed);
                prop_assert!(!crate::upper::UlpMessage::Iser(parsed).to_string().is_empty());
            }
        }
    }
}
