//! Tests with capsules of `captures/storage/nvme-discover.pcap`, and with synthetic messages that
//! differ from them. The numbers of frames in the comments are frames of this capture.

use proptest::prelude::*;
use serde_json::Value;

use super::Connection;
use crate::Sink;
use crate::output::layers::{Layer, layers};
use crate::testing::{Wire, hex, reply_frame, startup_frame};
use crate::unit::{Kind, Unit};
use crate::upper::Ulp;
use crate::upper::protocol::Protocol;
use crate::upper::tests::{TestConnection, check_headers};

/// An SGL descriptor without data.
const NO_DATA: &str = "0000000000000000 000000 00000000 40";
/// The response to a command with CID 1 (frame 13).
const RESPONSE: &str = "7f00000f20080000 0200 0000 0100 0000";
const SUBSYSTEM: &[u8] = b"nqn.2014-08.org.nvmexpress.discovery";
const HOST: &[u8] = b"nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000b011";

/// The private data of the host (frame 4) for this queue, and of the controller (frame 6).
fn private_data(queue: u16) -> [Vec<u8>; 2] {
    let mut request = hex("0000 0000 2000 1f00");
    request[2..4].copy_from_slice(&queue.to_le_bytes());
    request.resize(32, 0);
    let mut accept = hex("0000 2000");
    accept.resize(32, 0);
    [request, accept]
}

/// A connection after start-up frames of revision 1 with this private data.
fn opened(request: &[u8], reply: &[u8]) -> TestConnection {
    TestConnection::over(Wire::started_as(&startup_frame(0x40, 1, request), &reply_frame(0x40, 1, reply)))
}

/// A connection for a queue, after the start-up.
fn queue(queue: u16) -> TestConnection {
    let [request, accept] = private_data(queue);
    opened(&request, &accept)
}

/// A submission queue entry. `sgl` and `dwords` are the bytes from offset 24 and 40 on.
fn entry(head: &str, sgl: &str, dwords: &str) -> Vec<u8> {
    let mut entry = hex(head);
    entry.resize(24, 0);
    entry.extend(hex(sgl));
    entry.resize(40, 0);
    entry.extend(hex(dwords));
    entry.resize(64, 0);
    entry
}

/// A Property Get with CID 1 (frame 12).
fn property_get() -> Vec<u8> {
    entry("7f40 0100 04", NO_DATA, "01000000 00000000")
}

/// The data of a Connect command.
fn connect_data() -> Vec<u8> {
    let mut data = vec![0; 1024];
    (data[0], data[16], data[17]) = (0x5f, 0xff, 0xff);
    data[256..256 + SUBSYSTEM.len()].copy_from_slice(SUBSYSTEM);
    data[512..512 + HOST.len()].copy_from_slice(HOST);
    data
}

/// A Connect command for queue 1, with the data in the capsule.
fn connect_in_capsule() -> Vec<u8> {
    let sgl = "0000000000000000 00040000 000000 01";
    [entry("7f40 0000 01", sgl, "0000 0100 1f00 00"), connect_data()].concat()
}

fn messages(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const LONG: usize = 1 << 14;

#[test]
fn private_data_of_both_sides_names_the_protocol() {
    let talk = queue(0);
    let (units, lines, name) = talk.units();
    assert_eq!(name, Some(Ulp::Nvme));
    assert!(lines[0].ends_with("PD_Length 32  NVMe/RDMA queue 0 HRQSIZE 32 HSQSIZE 31"), "{lines:?}");
    assert!(lines[1].ends_with("PD_Length 32  NVMe/RDMA accept CRQSIZE 32"), "{lines:?}");
    let value = |unit: usize, name: &str| units[unit][name].clone();
    assert_eq!(value(0, "nvme-rdma.cm.req.hrqsize"), 32);
    assert_eq!(value(0, "nvme-rdma.cm.req.hsqsize"), 31);
    assert_eq!(value(0, "nvme-rdma.cm.req.qid"), 0);
    assert_eq!(value(1, "nvme-rdma.cm.rsp.crqsize"), 32);
    assert_eq!(value(1, "nvme-rdma.cm.req.qid"), Value::Null);
}

#[test]
fn private_data_of_one_side_names_no_protocol() {
    let [request, accept] = private_data(0);
    let none: &[u8] = &[];
    for (request, reply) in [(&request[..], none), (none, &accept[..]), (&request[..31], &accept[..])] {
        let talk = opened(request, reply);
        let (units, _, name) = talk.units();
        assert_eq!(name, None);
        assert_eq!(units[1]["nvme-rdma.cm.rsp.crqsize"], Value::Null);
    }
}

#[test]
fn a_rejection_names_its_status() {
    let [request, _] = private_data(9);
    let wire = Wire::started_as(&startup_frame(0x40, 1, &request), &reply_frame(0x60, 1, &hex("0000 0300")));
    let (units, lines, name) = TestConnection::over(wire).units();
    assert_eq!((units[1]["nvme-rdma.cm.rej.status"].as_u64(), name), (Some(3), None));
    assert!(lines[1].ends_with("NVMe/RDMA reject STS 0x0003 (Invalid QID)"), "{lines:?}");
}

/// Frames 8 to 13: the controller reads the data of the Connect command.
#[test]
fn responses_name_the_commands_that_they_answer() {
    let mut talk = queue(0);
    talk.send(0, &entry("7f40 0000 01", "0088843e8088ffff 000400 0120ad18 4f", "0000 0000 1f00 00"), LONG);
    talk.0.send_ulpdu(
        1,
        "4141 00000000 00000001 00000001 00000000
         03053801 ffff88803fd54000 00000400 18ad2001 ffff88803e848800",
    );
    let data: String = connect_data().iter().map(|octet| format!("{octet:02x}")).collect();
    talk.0.send_ulpdu(0, &format!("c142 03053801 ffff88803fd54000 {data}"));
    talk.send_one(1, "0100000000000000 0100 0000 0000 0000");
    talk.send(0, &property_get(), LONG);
    talk.send_one(1, RESPONSE);
    let expected = messages(&["Connect", "Connect data", "Response", "Property Get", "Response"]);
    assert_eq!(talk.read(), (expected, Some(Ulp::Nvme)));
    let (units, lines, _) = talk.units();
    let [_, _, connect, read, data, connected, get, got] = &units[..] else { panic!("{units:#?}") };
    assert_eq!(connect["nvme.fabrics.cmd.connect.sqsize"], 31);
    assert_eq!(connect["nvme.cmd.sgl1.key"], 0x18ad_2001);
    assert_eq!(connect["nvme.cmd.sgl1.addr"], 0xffff_8880_3e84_8800_u64);
    assert_eq!(connect["nvme.fabrics.cmd.connect.data.subnqn"], Value::Null);
    assert_eq!(read["weft.ulp.message"], Value::Null);
    assert_eq!(data["nvme.fabrics.cmd.connect.data.subnqn"], std::str::from_utf8(SUBSYSTEM).unwrap());
    assert_eq!(data["nvme.fabrics.cmd.connect.data.hostnqn"], std::str::from_utf8(HOST).unwrap());
    assert_eq!(data["nvme.fabrics.cmd.connect.data.cntrlid"], 0xffff);
    assert_eq!(connected["nvme.fabrics.cqe.connect.cntrlid"], 1);
    // The start-up ends with frame 4 of the synthetic capture.
    assert_eq!((&connected["weft.nvme.command"], &connected["nvme.cmd_pkt"]), (&"Connect".into(), &5.into()));
    assert_eq!(get["nvme.fabrics.cmd.cid"], 1);
    assert_eq!(got["nvme.fabrics.cqe.sts"], 0x820_0f00_007f_u64);
    assert_eq!(got["weft.nvme.status"], "Successful Completion");
    assert_eq!(got["nvme.cqe.sqhd"], 2);
    let last = lines.last().unwrap();
    let text = "NVMe/RDMA Response CID 0x0001 queue 0 to Property Get in frame 9: Successful Completion";
    assert!(last.ends_with(text), "{last}");
}

/// Neither the private data nor a Connect command is in the capture.
#[test]
fn a_command_and_its_response_name_the_protocol() {
    let pair = |command: &[u8], directions: [usize; 2], response: &str| {
        let mut talk = TestConnection::new();
        talk.send(directions[0], command, LONG);
        talk.send_one(directions[1], response);
        talk.read()
    };
    let named = (messages(&["Response"]), Some(Ulp::Nvme));
    assert_eq!(pair(&property_get(), [0, 1], RESPONSE), named);
    assert_eq!(pair(&property_get(), [1, 0], RESPONSE), named);
    let with = |at: usize, value: u8| {
        let mut command = property_get();
        command[at] = value;
        command
    };
    let mut longer = property_get();
    longer.push(0);
    for (command, directions, response) in [
        (property_get(), [0, 0], RESPONSE),
        (property_get(), [0, 1], "7f00000f20080000 0200 0000 0200 0000"),
        // Status code type 5 is reserved.
        (property_get(), [0, 1], "7f00000f20080000 0200 0000 0100 000a"),
        (property_get(), [0, 1], "7f00000f20080000 0200 0000 0100 0000 00"),
        (with(1, 0x00), [0, 1], RESPONSE),
        (with(8, 0x01), [0, 1], RESPONSE),
        (with(39, 0x50), [0, 1], RESPONSE),
        (longer, [0, 1], RESPONSE),
    ] {
        assert_eq!(pair(&command, directions, response), (Vec::new(), None), "{command:02x?} {response}");
    }
}

#[test]
fn the_port_alone_names_no_protocol() {
    let mut wire = Wire::connected_to(4420);
    wire.send(0, &startup_frame(0x40, 1, &[]));
    wire.send(1, &reply_frame(0x40, 1, &[]));
    let mut talk = TestConnection::over(wire);
    talk.send(0, &property_get(), LONG);
    talk.send_one(1, "01020304");
    assert_eq!(talk.read(), (Vec::new(), None));
}

#[test]
fn a_connect_command_with_its_data_names_the_protocol() {
    let mut talk = TestConnection::new();
    talk.send(0, &connect_in_capsule(), LONG);
    assert_eq!(talk.read(), (messages(&["Connect"]), Some(Ulp::Nvme)));
    let unit = talk.units().0.pop().unwrap();
    assert_eq!(unit["nvme-rdma.cmd.qid"], 1);
    assert_eq!(unit["weft.nvme.data_len"], 1024);
    assert_eq!(unit["nvme.fabrics.cmd.connect.data.subnqn"], std::str::from_utf8(SUBSYSTEM).unwrap());
    // The first byte of a name, the length in the descriptor, and the length of the Send.
    let changed = |at: usize| {
        let mut wrong = connect_in_capsule();
        wrong[at] ^= 1;
        wrong
    };
    let mut longer = connect_in_capsule();
    longer.push(0);
    let shorter = connect_in_capsule()[..1087].to_vec();
    for wrong in [changed(64 + 256), changed(64 + 512), changed(32), changed(39), longer, shorter] {
        let mut talk = TestConnection::new();
        talk.send(0, &wrong, LONG);
        assert_eq!(talk.read(), (Vec::new(), None), "{} bytes", wrong.len());
    }
}

/// A name from the peer cannot break the JSON object.
#[test]
fn names_are_escaped_in_json() {
    let mut connect = connect_in_capsule();
    connect[64 + 256..64 + 256 + 10].copy_from_slice(b"nqn.\"a\\\"}\0");
    let mut talk = TestConnection::new();
    talk.send(0, &connect, LONG);
    let unit = talk.units().0.pop().unwrap();
    assert_eq!(unit["nvme.fabrics.cmd.connect.data.subnqn"], "nqn.\"a\\\"}");
    assert_eq!(unit["payload_len"], 1088);
}

#[test]
fn a_capsule_of_several_segments_is_read() {
    let mut talk = queue(1);
    let sgl = "0000000000000000 00100000 000000 01";
    let write = [entry("0140 0c00 01000000", sgl, "10000000 00000000 07000040"), vec![0x5a; 4096]].concat();
    talk.send(0, &write, 1424);
    talk.send_one(1, "0000000000000000 0600 0100 0c00 0cc0");
    assert_eq!(talk.read(), (messages(&["Write", "Response"]), Some(Ulp::Nvme)));
    let (units, lines, _) = talk.units();
    let [_, _, first, _, last, response] = &units[..] else { panic!("{units:#?}") };
    assert_eq!(first["nvme.cmd.slba"], Value::Null);
    assert_eq!((&last["nvme.cmd.slba"], &last["nvme.cmd.nlb"]), (&16.into(), &8.into()));
    assert_eq!((&last["nvme.cmd.fua"], &last["nvme.cmd.lr"]), (&1.into(), &0.into()));
    assert_eq!(last["weft.nvme.data_len"], 4096);
    assert_eq!((&response["nvme.cqe.status.sc"], &response["nvme.cqe.status.dnr"]), (&6.into(), &1.into()));
    assert!(lines.last().unwrap().ends_with("to Write in frame 7: Internal Error, do not retry"), "{lines:?}");
}

#[test]
fn a_response_without_its_command_is_still_read() {
    let mut talk = queue(1);
    talk.send_one(1, RESPONSE);
    let (units, lines, name) = talk.units();
    let unit = units.last().unwrap();
    assert_eq!((&unit["nvme.cqe.dword0"], name), (&0x0f00_007f.into(), Some(Ulp::Nvme)));
    assert_eq!((&unit["nvme.cmd_pkt"], &unit["weft.nvme.command"]), (&Value::Null, &Value::Null));
    assert!(lines.last().unwrap().contains("to an unknown command"), "{lines:?}");
}

#[test]
fn messages_of_other_lengths_and_directions_contradict() {
    let from_controller = [property_get(), vec![0; 15], vec![0; 17]].map(|octets| (1, octets));
    let from_host = [63, 16, 1].map(|len| (0, vec![0; len]));
    for (direction, octets) in from_host.into_iter().chain(from_controller) {
        let mut talk = queue(0);
        talk.send(0, &property_get(), LONG);
        talk.send(direction, &octets, LONG);
        talk.send_one(1, RESPONSE);
        assert_eq!(talk.read(), (messages(&["Property Get"]), None), "{direction} {octets:?}");
    }
}

/// The first FPDU of a connection can be a Send without bytes (RFC 6581 section 9).
#[test]
fn a_send_without_bytes_contradicts_nothing() {
    let mut talk = queue(0);
    talk.0.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000");
    talk.1[0] = 1;
    talk.send(0, &property_get(), LONG);
    assert_eq!(talk.read(), (messages(&["Property Get"]), Some(Ulp::Nvme)));
}

#[test]
fn names_of_commands_depend_on_the_queue() {
    let command = entry("0240 0500", "f08190028088ffff 000400 0420ad18 4f", "7080ff00");
    for (number, name) in [(0, "Get Log Page"), (1, "Read")] {
        let mut talk = queue(number);
        talk.send(0, &command, LONG);
        assert_eq!(talk.read(), (messages(&[name]), Some(Ulp::Nvme)));
    }
}

#[test]
fn headers_have_neither_names_nor_data() {
    let headers = |octets: &[u8]| {
        check_headers::<Connection>(octets, true);
        format!("{:?}", Connection::headers(octets, true))
    };
    assert_eq!((headers(&property_get()), headers(&hex(RESPONSE))), ("[0..64]".to_owned(), "[0..16]".to_owned()));
    let sgl = "0000000000000000 00100000 000000 01";
    let write = [entry("0140 0c00 01000000", sgl, "10000000 00000000 07000040"), vec![0x5a; 4096]].concat();
    assert_eq!(headers(&write), "[0..64]");
    let ends = [64 + 256 + SUBSYSTEM.len(), 64 + 512 + HOST.len()].map(|end| end..end + 1);
    let expected = format!("[0..64, 80..82, 320..324, {:?}, 576..580, {:?}]", ends[0], ends[1]);
    assert_eq!(headers(&connect_in_capsule()), expected);
    // The names of an incomplete capsule prove nothing.
    assert_eq!(format!("{:?}", Connection::headers(&connect_in_capsule(), false)), "[0..64]");
    assert_eq!((headers(&[7; 17]), headers(&[])), ("[]".to_owned(), "[0..0]".to_owned()));
}

/// The octets in `-T pdml` and `-T json` are the octets of the capture, in their order.
#[test]
fn layers_have_the_octets_of_little_endian_fields() {
    #[derive(Default)]
    struct Collect(Vec<Layer>);
    impl Sink for Collect {
        fn unit(&mut self, unit: &Unit<'_>) {
            if matches!(unit.kind, Kind::Fpdu(_)) {
                self.0.extend(layers(unit));
            }
        }
    }
    let mut talk = queue(1);
    talk.send(0, &entry("0240 0910 01000000", "0060160980 88ffff 000001 0966a36b 4f", "80"), LONG);
    let mut found = Collect::default();
    talk.0.feed(&mut found);
    let field = |name: &str| {
        let field = found.0.iter().flat_map(|layer| &layer.fields).find(|field| field.name == name).unwrap();
        (field.octets.clone(), field.values.join(" "), field.size, field.position)
    };
    // 54 bytes of Ethernet, IPv4 and TCP headers, 2 bytes of ULPDU_Length, and the untagged header.
    let start = 54 + 2 + 18;
    assert_eq!(field("nvme.cmd.cid"), ("0910".to_owned(), "0x1009".to_owned(), 2, Some(start + 2)));
    assert_eq!(field("nvme.cmd.nsid"), ("01000000".to_owned(), "0x00000001".to_owned(), 4, Some(start + 4)));
    assert_eq!(field("nvme.cmd.sgl1.len"), ("000001".to_owned(), "65536".to_owned(), 3, Some(start + 32)));
    assert_eq!(field("nvme.cmd.sgl1.key"), ("0966a36b".to_owned(), "0x6ba36609".to_owned(), 4, Some(start + 35)));
}

/// A direction, a message, and the length of its segments.
fn any_send() -> impl Strategy<Value = (usize, Vec<u8>, usize)> {
    (0_usize..2, proptest::collection::vec(any::<u8>(), 1..200), 20_usize..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn headers_are_enough_for_the_recognition(
        changes in proptest::collection::vec((0_usize..1088, any::<u8>()), 0..4),
        len in 0_usize..1090,
        is_complete: bool,
    ) {
        for mut octets in [connect_in_capsule(), [property_get(), vec![0x5a; 1024]].concat()] {
            changes.iter().for_each(|(at, octet)| octets[*at] = *octet);
            check_headers::<Connection>(&octets, is_complete);
            check_headers::<Connection>(&octets[..len.min(octets.len())], is_complete);
        }
    }

    #[test]
    fn any_sends_are_read(sends in proptest::collection::vec(any_send(), 0..12), number: u16) {
        let mut talk = queue(number);
        talk.send(0, &property_get(), LONG);
        for (direction, mut octets, each) in sends {
            if octets.len() > 100 {
                octets.splice(0..64, entry("7f40 0000 01", "4000000000000000 00040000 000000 01", ""));
            }
            talk.send(direction, &octets, each);
        }
        let (units, lines, _) = talk.units();
        prop_assert!(units.len() == lines.len() && units.len() >= 3);
    }
}
