//! Tests a capture of SMB Direct: a client and a server of Linux exchange small messages of SMB
//! 3.1.1. `captures/README.md` describes the capture. An independent program counted its messages,
//! and the client recorded its commands.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use weft_dissector::context::Context;
use weft_dissector::output::json::JsonWriter;
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::upper::smb2::{Body, Command, Pdu, Request, Response, Status};
use weft_dissector::{Dissector, Sink, StreamId};

/// The units in JSON, and the requests and responses with the frame that completed them.
#[derive(Default)]
struct Read {
    writer: JsonWriter,
    units: Vec<Value>,
    pdus: Vec<(u64, Pdu)>,
    outstanding: Option<usize>,
}

impl Sink for Read {
    fn unit(&mut self, unit: &Unit<'_>) {
        let mut out = Vec::new();
        self.writer.write(unit, &mut out).unwrap();
        self.units.push(serde_json::from_slice(&out).unwrap());
        let latest = unit.context.and_then(|context| context.smb.as_ref()?.latest());
        if let Some(message) = latest.and_then(|latest| latest.message.as_ref()) {
            self.pdus.extend(message.pdus().iter().map(|pdu| (u64::from(unit.frame), pdu.clone())));
        }
    }

    fn ended(&mut self, _: StreamId, context: &Context) {
        self.outstanding = context.smb.as_ref().map(|smb| smb.outstanding());
    }
}

fn read() -> Read {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/storage/smb-ops.pcap");
    let mut capture = Capture::open(&path).unwrap();
    let (mut read, mut dissector) = (Read::default(), Dissector::default());
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut read);
    }
    dissector.finish(&mut read);
    read
}

/// The number of requests (false) and responses (true) of each command.
#[test]
fn commands_are_those_that_the_client_recorded() {
    let mut counts = BTreeMap::new();
    let found = read();
    for (_, pdu) in &found.pdus {
        let is_response = matches!(pdu.body, Body::Response(_));
        *counts.entry((pdu.header.command.0, is_response)).or_insert(0) += 1;
    }
    let expected = [
        (Command::NEGOTIATE, 1),
        (Command::SESSION_SETUP, 2),
        (Command::TREE_CONNECT, 2),
        (Command::CREATE, 18),
        (Command::CLOSE, 18),
        (Command::WRITE, 1),
        (Command::IOCTL, 2),
        (Command::QUERY_DIRECTORY, 2),
        (Command::QUERY_INFO, 15),
    ];
    let expected =
        expected.iter().flat_map(|(command, count)| [((command.0, false), *count), ((command.0, true), *count)]);
    assert_eq!(counts, expected.collect::<BTreeMap<_, _>>());
    // The last compound was not sent to its end, so its three requests are not in the capture.
    let ids: Vec<u64> = found
        .pdus
        .iter()
        .filter(|(_, pdu)| matches!(pdu.body, Body::Request(_)))
        .map(|(_, pdu)| pdu.header.message_id)
        .collect();
    assert_eq!(ids, (0..61).collect::<Vec<u64>>());
    assert!(
        found
            .pdus
            .iter()
            .all(|(_, pdu)| !matches!(pdu.body, Body::Request(Request::Unparsed) | Body::Response(Response::Unparsed)))
    );
}

#[test]
fn each_response_names_its_request() {
    let found = read();
    let requests: BTreeMap<u64, u64> = found
        .pdus
        .iter()
        .filter(|(_, pdu)| matches!(pdu.body, Body::Request(_)))
        .map(|(frame, pdu)| (pdu.header.message_id, *frame))
        .collect();
    let responses: Vec<_> = found.pdus.iter().filter(|(_, pdu)| matches!(pdu.body, Body::Response(_))).collect();
    assert_eq!(responses.len(), 61);
    for (frame, response) in responses {
        let answered = response.answered.as_ref().unwrap();
        assert_eq!(answered.header.message_id, response.header.message_id, "frame {frame}");
        assert_eq!(u64::from(answered.frame), requests[&response.header.message_id], "frame {frame}");
    }
    assert_eq!(found.outstanding, Some(0));
}

/// The statuses other than STATUS_SUCCESS, with the frames of the responses.
#[test]
fn statuses_have_names() {
    let found = read();
    let failed: Vec<_> = found
        .pdus
        .iter()
        .filter_map(|(frame, pdu)| Some((*frame, pdu.header.command.name()?, pdu.header.status?)))
        .filter(|(.., status)| *status != Status::SUCCESS)
        .map(|(frame, command, status)| (frame, command, status.name().unwrap()))
        .collect();
    let expected = [
        (15, "SESSION_SETUP", "STATUS_MORE_PROCESSING_REQUIRED"),
        (43, "IOCTL", "STATUS_FS_DRIVER_REQUIRED"),
        (77, "QUERY_DIRECTORY", "STATUS_NO_MORE_FILES"),
        (84, "CREATE", "STATUS_OBJECT_NAME_NOT_FOUND"),
        (84, "QUERY_INFO", "STATUS_FILE_CLOSED"),
        (84, "CLOSE", "STATUS_INVALID_PARAMETER"),
        (123, "CREATE", "STATUS_OBJECT_NAME_NOT_FOUND"),
        (123, "QUERY_INFO", "STATUS_FILE_CLOSED"),
        (123, "CLOSE", "STATUS_INVALID_PARAMETER"),
    ];
    assert_eq!(failed, expected);
}

/// Frames 89 and 90 have the WRITE of 300 bytes to `new3`. Frame 92 has its response.
#[test]
fn a_write_is_reassembled() {
    let found = read();
    let (_, write) = found.pdus.iter().find(|(_, pdu)| pdu.header.command == Command::WRITE).unwrap();
    let Body::Request(Request::Write(write)) = &write.body else { panic!("{write:?}") };
    assert_eq!((write.offset, write.length, write.total_len()), (0, 300, 300));
    let unit = |frame: u64| found.units.iter().find(|unit| unit["frame"] == frame && unit["kind"] == "fpdu").unwrap();
    assert_eq!(unit(89)["smb_direct.remaining_length"], 300);
    assert_eq!((&unit(90)["smb_direct.fragment.count"], &unit(90)["smb_direct.fragment"]), (&json!(2), &json!(89)));
    let response = &unit(92)["smb2"][0];
    assert_eq!((&response["smb2.write.count"], &response["smb2.response_to"]), (&json!(300), &json!(90)));
    let create = &unit(86)["smb2"][0];
    assert_eq!((&create["smb2.filename"], &create["smb2.create.disposition"]), (&json!("new3"), &json!(3)));
    assert_eq!(unit(20)["smb2"][0]["smb2.tree"], r"\\10.1.0.1\IPC$");
    assert_eq!(unit(11)["smb2"][0]["smb2.dialects"], json!([{"smb2.dialect": 0x0311}]));
}

/// Frames 6 and 7 have the start-up frames. The client sends its private data in little-endian
/// order, and the server in big-endian order.
#[test]
fn the_start_up_has_ird_and_ord() {
    let found = read();
    let words: Vec<_> = found
        .units
        .iter()
        .filter(|unit| unit["kind"] == "mpa_request" || unit["kind"] == "mpa_reply")
        .map(|unit| ["ird", "ord", "order"].map(|word| unit[format!("weft.smb_direct.{word}")].clone()))
        .collect();
    let expected = [[json!(32), json!(1), json!("little-endian")], [json!(1), json!(8), json!("big-endian")]];
    assert_eq!(words, expected);
}
