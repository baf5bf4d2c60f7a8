//! Tests the fields of SMB Direct and SMB in JSON, filters and the field tree. The bytes are from
//! `captures/storage/smb-ops.pcap`, or have the layouts of MS-SMBD section 2.2 and MS-SMB2 section
//! 2.2.

use serde_json::{Value, json};

use crate::Sink;
use crate::context::Context;
use crate::filter::{Filter, Values, WantedFields};
use crate::output::json::JsonWriter;
use crate::output::text::summary;
use crate::stream_id::StreamId;
use crate::testing::{Wire, fpdu, hex, reply_frame, startup_frame};
use crate::tree::{Node, tree};
use crate::unit::Unit;

/// A connection of MPA revision 1, and the last MSN on queue 0 of each direction.
struct Talk(Wire, [u32; 2]);

impl Talk {
    /// A connection after the negotiation of SMB Direct.
    fn negotiated() -> Self {
        let mut talk = Talk(Wire::started(), [0; 2]);
        talk.send(0, &hex(REQUEST), 1 << 14);
        talk.send(1, &hex(RESPONSE), 1 << 14);
        talk
    }

    /// The FPDUs of a Send in segments with `each` octets of payload.
    fn fpdus(&mut self, direction: usize, octets: &[u8], each: usize) -> Vec<Vec<u8>> {
        self.1[direction] += 1;
        let (msn, count) = (self.1[direction], octets.chunks(each).count());
        let segment = |(index, part): (usize, &[u8])| {
            let control = if index + 1 == count { "4143" } else { "0143" };
            let head = format!("{control} 00000000 00000000 {msn:08x} {:08x}", index * each);
            fpdu(&[hex(&head), part.to_vec()].concat())
        };
        octets.chunks(each).enumerate().map(segment).collect()
    }

    fn send(&mut self, direction: usize, octets: &[u8], each: usize) {
        for fpdu in self.fpdus(direction, octets, each) {
            self.0.send(direction, &fpdu);
        }
    }

    /// Sends the data of a Data Transfer. `remaining` is RemainingDataLength.
    fn data(&mut self, direction: usize, data: &[u8], remaining: u32) {
        self.send(direction, &transfer(data, remaining), 1 << 14);
    }

    fn read(&self) -> Found {
        read(&self.0)
    }
}

/// A Data Transfer with DataOffset 24.
fn transfer(data: &[u8], remaining: u32) -> Vec<u8> {
    let mut octets = hex("ff00 0100 0000 0000");
    octets.extend_from_slice(&remaining.to_le_bytes());
    octets.extend_from_slice(&24_u32.to_le_bytes());
    octets.extend_from_slice(&u32::try_from(data.len()).unwrap().to_le_bytes());
    octets.extend_from_slice(&[0; 4]);
    octets.extend_from_slice(data);
    octets
}

/// What the outputs show of each unit.
#[derive(Default)]
struct Found {
    writer: JsonWriter,
    json: Vec<Value>,
    lines: Vec<String>,
    trees: Vec<Vec<Node>>,
    /// Numbers of the units that pass the filter.
    passed: Vec<usize>,
    wanted: WantedFields,
    filter: Option<Filter>,
    /// Number of requests without a response at the end.
    outstanding: Option<usize>,
}

impl Sink for Found {
    fn unit(&mut self, unit: &Unit<'_>) {
        let mut out = Vec::new();
        self.writer.write(unit, &mut out).unwrap();
        if let Some(filter) = &self.filter {
            let mut values = Values::default();
            self.wanted.unit(unit, &mut values);
            if filter.matches(&values) {
                self.passed.push(self.json.len());
            }
        }
        self.json.push(serde_json::from_slice(&out).unwrap());
        self.lines.push(summary(unit));
        self.trees.push(tree(unit));
    }

    fn ended(&mut self, _: StreamId, context: &Context) {
        self.outstanding = context.smb.as_ref().map(|smb| smb.outstanding());
    }
}

fn read(wire: &Wire) -> Found {
    let mut found = Found::default();
    wire.feed(&mut found);
    found
}

/// The numbers of the units that pass a filter.
fn passed(wire: &Wire, text: &str) -> Vec<usize> {
    let mut found = Found::default();
    found.filter = Some(Filter::parse(text, &mut found.wanted).unwrap());
    wire.feed(&mut found);
    found.passed
}

/// The Negotiate Request and the Negotiate Response in frames 8 and 9 of the capture.
const REQUEST: &str = "0001 0001 0000 ff00 54050000 54050000 56a70200";
const RESPONSE: &str = "0001 0001 0001 0000 ff00 fe00 00000000 00008000 54050000 54050000 56a70200";
/// The header of a request with message ID 34, tree 2 and session 1. The command and NextCommand
/// are `CC` and `NN`.
const HEADER: &str = "fe534d42 4000 0100 00000000 CC00 0900 00000000 NN000000 2200000000000000
    b4010000 02000000 0100000000000000 00000000000000000000000000000000";

fn header(command: &str, next: &str) -> String {
    HEADER.replace("CC", command).replace("NN", next)
}

#[test]
fn the_negotiation_has_fields() {
    let talk = Talk::negotiated();
    let found = talk.read();
    let [.., request, response] = &found.json[..] else { panic!() };
    let sizes = json!({"smb_direct.preferred_send_size": 1364, "smb_direct.max_receive_size": 1364});
    for unit in [request, response] {
        assert!(sizes.as_object().unwrap().iter().all(|(key, value)| unit[key] == *value), "{unit}");
        assert_eq!(unit["smb_direct.max_fragmented_size"], 0x2a756);
        assert_eq!((&unit["smb_direct.version.min"], &unit["smb_direct.version.max"]), (&json!(256), &json!(256)));
    }
    assert_eq!(
        (&request["smb_direct.credits.requested"], &response["smb_direct.credits.granted"]),
        (&json!(255), &json!(254))
    );
    assert_eq!(response["smb_direct.max_read_write_size"], 0x0080_0000);
    assert_eq!((&response["smb_direct.status"], &request["smb_direct.status"]), (&json!(0), &Value::Null));
    // ULPDU_Length and the DDP header precede the message.
    let node = found.trees.last().unwrap().iter().find(|node| node.name == "smb_direct").unwrap();
    assert_eq!(node.range, 20..52);
    let status = node.children.iter().find(|child| child.name == "smb_direct.status").unwrap();
    assert_eq!((status.range.clone(), status.value.as_str()), (32..36, "0x00000000 (STATUS_SUCCESS)"));
    assert_eq!(passed(&talk.0, "smb_direct"), [2, 3]);
    assert_eq!(passed(&talk.0, "smb_direct.negotiate_response"), [3]);
    assert!(passed(&talk.0, "smb2 or smb_direct.data_message").is_empty());
}

/// Frame 89 and 90 of the capture have one WRITE in two Data Transfers, with less data here.
#[test]
fn fragments_are_reassembled() {
    let body = format!("3100 7000 08000000 0010000000000000 1b00000000000000 0800000000000000 {}", "00".repeat(16));
    let message = hex(&(header("09", "00") + &body));
    assert_eq!(message.len(), 112);
    let mut talk = Talk::negotiated();
    talk.data(0, &message, 8);
    talk.data(0, &[0x77; 8], 0);
    let found = talk.read();
    let [.., first, last] = &found.json[..] else { panic!() };
    assert_eq!((&first["smb_direct.remaining_length"], &first["smb2"]), (&json!(8), &Value::Null));
    assert_eq!((&last["smb_direct.fragment.count"], &last["smb_direct.fragment"]), (&json!(2), &first["frame"]));
    assert_eq!(last["smb_direct.reassembled.length"], 120);
    let write = &last["smb2"][0];
    assert_eq!((&write["smb2.cmd"], &write["smb2.msg_id"], &write["smb2.tid"]), (&json!(9), &json!(34), &json!(2)));
    assert_eq!((&write["smb2.write_length"], &write["smb2.file_offset"]), (&json!(8), &json!(4096)));
    assert_eq!(write["smb2.fid"], "1b000000000000000800000000000000");
    let line = found.lines.last().unwrap();
    assert!(line.ends_with("remaining 0  SMB2 WRITE Request 34 offset 4096 length 8"), "{line}");
    assert_eq!(found.outstanding, Some(1));
    // The fields of a message in several Data Transfers have no octets.
    let node = found.trees.last().unwrap().iter().find(|node| node.name == "smb2").unwrap();
    assert!(node.range.is_empty() && node.children.iter().all(|child| child.range.is_empty()));
}

#[test]
fn a_missing_fragment_drops_the_message() {
    let message = hex(&(header("0d", "00") + "0400 0000"));
    let mut talk = Talk::negotiated();
    talk.data(0, &message[..40], 28);
    for fpdu in talk.fpdus(0, &transfer(&message[40..60], 8), 1 << 14) {
        talk.0.lose(0, &fpdu);
    }
    talk.data(0, &message[60..], 0);
    talk.data(0, &message, 0);
    let found = talk.read();
    let commands: Vec<&Value> = found.json.iter().filter_map(|unit| unit.get("smb2")).collect();
    assert_eq!(commands.len(), 1, "{commands:?}");
    assert_eq!(found.json.last().unwrap()["smb2"][0]["smb2.cmd"], 13);
}

#[test]
fn a_send_of_several_segments_is_read() {
    let message = hex(&(header("0d", "00") + "0400 0000"));
    let mut talk = Talk::negotiated();
    talk.send(0, &transfer(&message, 0), 40);
    let found = talk.read();
    assert_eq!(found.json.last().unwrap()["smb2"][0]["smb2.cmd"], 13);
    assert_eq!(found.json.iter().filter(|unit| unit.get("smb2").is_some()).count(), 1);
}

/// The layout of the READ is from MS-SMB2 section 2.2.19.
#[test]
fn a_compound_is_a_list_and_a_read_has_its_descriptors() {
    let read = format!(
        "3100 50 00 00100000 0000010000000000 {} 00000000 01000000 00000000 7000 2000 {}",
        "ff".repeat(16),
        "0010000000560000 44332211 00080000 0020000000560000 45332211 00080000"
    );
    let echo = header("0d", "48") + "0400 0000 00000000";
    let message = hex(&(echo + &header("08", "00") + &read));
    let mut talk = Talk::negotiated();
    talk.data(0, &message, 0);
    let found = talk.read();
    let unit = found.json.last().unwrap();
    assert_eq!(unit["smb2"].as_array().map(Vec::len), Some(2));
    let read = &unit["smb2"][1];
    assert_eq!((&read["smb2.channel"], &read["weft.smb2.descriptors"]), (&json!(1), &json!(2)));
    let descriptor = |offset: u64, token: u64| {
        json!({"smb2.buffer_descriptor.offset": offset, "smb2.buffer_descriptor.token": token,
            "smb2.buffer_descriptor.length": 2048})
    };
    let expected = json!([descriptor(0x5600_0000_1000, 0x1122_3344), descriptor(0x5600_0000_2000, 0x1122_3345)]);
    assert_eq!(read["smb2.buffer_descriptor"], expected);
    // The keys after the list belong to the unit again.
    assert!(unit["payload_len"].is_u64() && unit["weft.ulp"] == "smb_direct", "{unit}");
    // The second header starts after the FPDU's 20 octets, the Data Transfer header and the ECHO.
    let heads: Vec<_> = found.trees.last().unwrap().iter().filter(|node| node.name == "smb2").collect();
    assert_eq!(heads[1].range.start, 20 + 24 + 72);
    let last = found.json.len() - 1;
    for text in ["smb2.cmd == 13", "smb2.cmd == READ", "smb2.buffer_descriptor.token == 0x11223345", "smb2"] {
        assert_eq!(passed(&talk.0, text), [last], "{text}");
    }
    assert!(passed(&talk.0, "smb2.cmd == WRITE").is_empty());
}

#[test]
fn names_of_peers_are_text() {
    let tree = "0900 0000 4800 0600 5c002200 0a00";
    let mut talk = Talk::negotiated();
    talk.data(0, &hex(&(header("03", "00") + tree)), 0);
    let found = talk.read();
    assert_eq!(found.json.last().unwrap()["smb2"][0]["smb2.tree"], "\\\"\\x0a");
    assert_eq!(passed(&talk.0, r#"smb2.tree contains "x0a""#).len(), 1);
}

#[test]
fn hostile_messages_are_marked() {
    let mut talk = Talk::negotiated();
    // NextCommand is not a multiple of 8.
    talk.data(0, &hex(&(header("0d", "49") + "0400 0000 00000000 00000000")), 0);
    talk.data(0, &hex(&(header("06", "00") + "1800")), 0);
    // The Data Transfer has no SMB message.
    talk.data(0, &[0x55; 32], 0);
    let found = talk.read();
    let problems: Vec<&Value> = found.json.iter().map(|unit| &unit["smb2"][0]["weft.smb2.problem"]).collect();
    assert_eq!(problems[problems.len() - 3..], [&json!("NextCommand is wrong"), &json!("wrong body"), &Value::Null]);
}

/// The private data of the capture, without the words of RFC 6581. The client sends it in
/// little-endian order.
#[test]
fn private_data_has_fields_on_the_port_of_smb_direct() {
    let started = |port| {
        let mut wire = Wire::connected_to(port);
        wire.send(0, &startup_frame(0, 1, &hex("20000000 01000000")));
        wire.send(1, &reply_frame(0, 1, &hex("00000001 00000008")));
        read(&wire).json
    };
    let units = started(5445);
    let words = |unit: &Value| ["ird", "ord", "order"].map(|word| unit[format!("weft.smb_direct.{word}")].clone());
    assert_eq!(words(&units[0]), [json!(32), json!(1), json!("little-endian")]);
    assert_eq!(words(&units[1]), [json!(1), json!(8), json!("big-endian")]);
    assert!(started(4210).iter().all(|unit| words(unit) == [Value::Null, Value::Null, Value::Null]));
}
