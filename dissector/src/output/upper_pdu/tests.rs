//! Tests with synthetic connections which PDUs are exported. The source of the messages is RFC 8166
//! section 4 with its XDR, and MS-SMBD sections 2.2.1 to 2.2.3.

use super::{DissectorName, MAX_MEMORY, Omitted, UpperPdu, UpperPdus};
use crate::testing::{Wire, fpdu, hex, reply, request};

/// A connection of MPA revision 1, and the last MSN on queue 0 of each direction. The first four
/// frames are the SYNs and the start-up frames. Frame N has the time N ms.
struct TestConnection(Wire, [u32; 2]);

impl TestConnection {
    fn new() -> Self {
        TestConnection(Wire::started(), [0; 2])
    }

    /// Sends a message in one segment. `text` is its content in hexadecimal.
    fn send(&mut self, direction: usize, text: &str) {
        let octets = self.fpdu(direction, text);
        self.0.send(direction, &octets);
    }

    /// The FPDU of the next message.
    fn fpdu(&mut self, direction: usize, text: &str) -> Vec<u8> {
        self.1[direction] += 1;
        let head = format!("4143 00000000 00000000 {:08x} 00000000", self.1[direction]);
        fpdu(&hex(&(head + text)))
    }

    fn pdus(&self) -> Vec<UpperPdu> {
        pdus(&self.0)
    }
}

fn pdus(wire: &Wire) -> Vec<UpperPdu> {
    export(wire, MAX_MEMORY).0
}

/// Exports the PDUs with a limit for the memory of connections.
fn export(wire: &Wire, max_memory: usize) -> (Vec<UpperPdu>, Omitted) {
    let mut found = Vec::new();
    let mut sink = UpperPdus::new(|pdu: &UpperPdu| found.push(pdu.clone()));
    sink.max_memory = max_memory;
    wire.feed(&mut sink);
    sink.finish();
    assert!(sink.memory == 0 && sink.waiting_memory == 0, "{} {}", sink.memory, sink.waiting_memory);
    let omitted = sink.omitted();
    drop(sink);
    (found, omitted)
}

/// XID, version 1, 32 credits and `RDMA_MSG`.
const HEAD: &str = "12345678 00000001 00000020 00000000";
const NO_CHUNKS: &str = "00000000 00000000 00000000";
/// The start of a call of NFS version 3, and of its reply.
const CALL: &str = "12345678 00000000 00000002 000186a3 00000003 00000007";
const REPLY: &str = "12345678 00000001 00000000 00000000 00000000 00000000";
/// A chunk of 5 octets at position 24 of the call.
const READ_CHUNK: &str = "00000001 00000018 0000000a 00000005 0000000000001000 00000000 00000000 00000000";
/// The server reads this chunk to its own buffer.
const READ_REQUEST: &str = "4141 00000000 00000001 00000001 00000000
    00000100 0000000000003000 00000005 0000000a 0000000000001000";

#[test]
fn rpc_messages_are_the_octets_after_the_transport_header() {
    let mut talk = TestConnection::new();
    talk.send(0, &[HEAD, NO_CHUNKS, CALL].concat());
    talk.send(1, &[HEAD, NO_CHUNKS, REPLY].concat());
    let found = talk.pdus();
    let [call, reply] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&call.octets, &reply.octets), (&hex(CALL), &hex(REPLY)));
    let [client, server] = ["10.0.0.2:49152", "10.0.0.1:4210"].map(|address| address.parse().unwrap());
    assert_eq!((call.src, call.dst, reply.src, reply.dst), (client, server, server, client));
    assert_eq!((call.frame, call.time, reply.frame, reply.time), (5.into(), 5_000_000, 6.into(), 6_000_000));
    assert_eq!((call.dissector, &call.remarks[..]), (DissectorName::Registered("rpc"), &[][..]));
    let packet = call.packet();
    let tags = "000c 0004 72706300 0014 0004 0a000002 0015 0004 0a000001 0018 0004 00000002 0019 0004 0000c000
        001a 0004 00001072 001e 0004 00000005 0000 0000";
    assert_eq!(packet, [hex(tags), hex(CALL)].concat());
    assert_eq!(call.wire_len(&packet) as usize, packet.len());
}

#[test]
fn a_call_waits_for_the_data_of_its_read_chunk() {
    let mut talk = TestConnection::new();
    talk.send(0, &[HEAD, READ_CHUNK, CALL].concat());
    talk.0.send_ulpdu(1, READ_REQUEST);
    talk.0.send_ulpdu(0, "8142 00000100 0000000000003000 68656c");
    talk.0.send_ulpdu(0, "c142 00000100 0000000000003003 6c6f");
    talk.send(1, &[HEAD, NO_CHUNKS, REPLY].concat());
    let found = talk.pdus();
    let [call, reply] = &found[..] else { panic!("{found:?}") };
    assert_eq!((call.frame, call.time, reply.frame), (8.into(), 8_000_000, 9.into()));
    assert_eq!((&call.octets, call.len), (&[&hex(CALL)[..], b"hello\0\0\0"].concat(), 32));
    assert_eq!(call.remarks, ["RDMA transferred 5 bytes of this message separately, at offset 24"]);
}

#[test]
fn a_call_without_its_data_ends_before_the_data() {
    let mut talk = TestConnection::new();
    talk.send(0, &[HEAD, READ_CHUNK, CALL].concat());
    talk.0.send_ulpdu(1, READ_REQUEST);
    talk.send(1, &[HEAD, NO_CHUNKS, REPLY].concat());
    let found = talk.pdus();
    let [call, reply] = &found[..] else { panic!("{found:?}") };
    assert_eq!((call.frame, reply.frame), (5.into(), 7.into()));
    assert_eq!((&call.octets, call.len), (&hex(CALL), 32));
    let packet = call.packet();
    assert_eq!(call.wire_len(&packet) as usize, packet.len() + 8);
    assert_eq!(
        call.remarks,
        [
            "RDMA transferred 5 bytes of this message separately, at offset 24; the capture has 0",
            "this packet has only the first 24 of 32 bytes, because the next bytes were not captured",
        ]
    );
}

/// Returns the reply with a Write chunk of nine octets. `results` are the words of the reply after
/// [`REPLY`].
fn reply_with_write_chunk(results: &str) -> UpperPdu {
    let list = |len: &str| format!("00000000 00000001 00000001 0000000d {len} 0000000000003000 00000000 00000000");
    let mut talk = TestConnection::new();
    talk.send(0, &[HEAD, &*list("00001000"), CALL].concat());
    talk.0.send_ulpdu(1, "c140 0000000d 0000000000003000 616263646566676869");
    talk.send(1, &[HEAD, &*list("00000009"), REPLY, results].concat());
    let mut found = talk.pdus();
    assert_eq!(found.len(), 2, "{found:?}");
    found.remove(1)
}

#[test]
fn the_data_of_a_write_chunk_follows_its_length() {
    // A READ of NFS version 3 has the count, then the flag for the end of the file, and then the
    // length of the data.
    for (results, after) in [("00000009 00000001 00000009", ""), ("00000000 00000009", "00000002")] {
        let reply = reply_with_write_chunk(&[results, after].concat());
        let expected = [hex(REPLY), hex(results), b"abcdefghi\0\0\0".to_vec(), hex(after)].concat();
        assert_eq!(reply.octets, expected);
        let at = 24 + hex(results).len();
        assert_eq!(reply.remarks, [format!("RDMA transferred 9 bytes of this message separately, at offset {at}")]);
    }
}

#[test]
fn data_with_an_unknown_place_is_not_inserted() {
    for results in ["00000001", "00000009 00000009 00000002"] {
        let reply = reply_with_write_chunk(results);
        assert_eq!(reply.octets, [hex(REPLY), hex(results)].concat());
        let remark = "9 bytes that RDMA transferred are not in this message, because their place in the message is \
                      unknown";
        assert_eq!(reply.remarks, [remark]);
    }
}

#[test]
fn a_long_reply_is_the_reply_chunk() {
    let list = "00000000 00000000 00000001 00000001 0000000e 00000018 0000000000004000";
    let mut talk = TestConnection::new();
    talk.send(0, &[HEAD, list, CALL].concat());
    talk.0.send_ulpdu(1, &["c140 0000000e 0000000000004000", REPLY].concat());
    talk.send(1, &["12345678 00000001 00000020 00000001", list].concat());
    let found = talk.pdus();
    let [call, reply] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&call.octets, &reply.octets), (&hex(CALL), &hex(REPLY)));
    assert_eq!(reply.frame, 7.into());
}

/// A Negotiate Request of SMB Direct.
const NEGOTIATE: &str = "00010001 0000 0a00 00040000 00200000 00000200";
/// Two fragments of one SMB message: credits, flags, the number of remaining octets, the offset and
/// the length of the data, four octets of padding, and the data.
const FRAGMENTS: [&str; 2] = [
    "01000100 00000000 06000000 18000000 08000000 00000000 fe534d4201020304",
    "01000100 00000000 00000000 18000000 06000000 00000000 05060708090a",
];

#[test]
fn fragments_of_smb_direct_are_joined() {
    let mut talk = TestConnection::new();
    talk.send(0, NEGOTIATE);
    FRAGMENTS.iter().for_each(|fragment| talk.send(0, fragment));
    // A message without data only carries credits.
    talk.send(0, "01000100 00000000 00000000 00000000 00000000");
    let found = talk.pdus();
    let [message] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&message.octets, message.len), (&hex("fe534d42010203040506 0708090a"), 14));
    assert_eq!((message.dissector, message.frame), (DissectorName::Heuristic("smb2_smb_direct"), 7.into()));
    assert_eq!(message.remarks, [""; 0]);
}

/// A Property Get of NVMe, and its response. The source is the capture `nvme-discover.pcap`.
const PROPERTY_GET: &str = "7f400100 04000000 0000000000000000 0000000000000000 0000000000000000 000000 00000000 40
    01000000 00000000 0000000000000000 0000000000000000";
const PROPERTY: &str = "7f00000f20080000 0200 0000 0100 0000";
/// A Write of NVMe with four octets of data in the capsule.
const CAPSULE_WRITE: &str = "01400300 01000000 0000000000000000 0000000000000000 0000000000000000 04000000 000000 01
    10000000 00000000 0000000000000000 0000000000000000 a1a2a3a4";

/// The first command is not exported, because only its response names the protocol.
#[test]
fn capsules_of_nvme_are_pdus_of_nvme_tcp() {
    let mut talk = TestConnection::new();
    talk.send(0, PROPERTY_GET);
    talk.send(1, PROPERTY);
    talk.send(0, PROPERTY_GET);
    talk.send(0, CAPSULE_WRITE);
    let found = talk.pdus();
    let [response, get, write] = &found[..] else { panic!("{found:?}") };
    let of = |header: &str, capsule: &str| hex(&[header, capsule].concat());
    assert_eq!(response.octets, of("05 00 18 00 18000000", PROPERTY));
    assert_eq!(get.octets, of("04 00 48 00 48000000", PROPERTY_GET));
    assert_eq!(write.octets, of("04 00 48 48 4c000000", CAPSULE_WRITE));
    assert_eq!((write.dissector, write.len), (DissectorName::Registered("nvme-tcp"), 76));
    assert_eq!((response.frame, write.frame), (6.into(), 8.into()));
    assert!(found.iter().all(|pdu| pdu.remarks.len() == 1 && pdu.remarks[0].starts_with("re-framed ")), "{found:?}");
}

#[test]
fn a_cut_capsule_has_its_length() {
    let mut talk = TestConnection::new();
    talk.send(0, PROPERTY_GET);
    talk.send(1, PROPERTY);
    let write = CAPSULE_WRITE.replacen("04000000 000000 01", "0c000000 000000 01", 1);
    talk.send(0, &[&write, "b1b2b3b4b5b6b7b8"].concat());
    // The headers before a capsule have 54 + 2 + 18 octets. All octets of the first two frames are
    // captured. Of the Write, the entry and four of twelve octets of data are captured.
    let found = pdus(&talk.0.cut_to(54 + 2 + 18 + 68));
    let [_, write] = &found[..] else { panic!("{found:?}") };
    assert_eq!((write.octets.len(), write.len), (8 + 68, 84));
    assert!(write.remarks.iter().any(|remark| remark.contains("the first 76 of 84 bytes")), "{write:?}");
}

/// An INQUIRY of iSCSI and its response, with their iSER headers. The source is the capture
/// `iser-session.pcap`.
const INQUIRY: [&str; 2] = [
    "14000000 00000000 0000000000000000 df379007 ffff88800a570000",
    "01c10000 00000000 00000000 00000000 07000000 00000024 00000006 02ff1fc5
    12010000 24000000 00000000 00000000",
];
const INQUIRY_RESPONSE: [&str; 2] = [
    "10000000 00000000 0000000000000000 00000000 0000000000000000",
    "21820000 00000000 00000000 00000000 07000000 00000000 02ff1fc5 00000007
    00000046 00000000 00000000 00000018",
];

#[test]
fn iscsi_pdus_are_the_octets_after_the_iser_header() {
    let mut talk = TestConnection::new();
    talk.send(0, &INQUIRY.concat());
    talk.send(1, &INQUIRY_RESPONSE.concat());
    talk.send(0, &INQUIRY.concat());
    // A Hello of iSER has no iSCSI PDU.
    talk.send(0, "20aa0010 00000000 0000000000000000 00000000 0000000000000000");
    let found = talk.pdus();
    let [response, command] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&response.octets, &command.octets), (&hex(INQUIRY_RESPONSE[1]), &hex(INQUIRY[1])));
    assert_eq!((command.dissector, command.len), (DissectorName::Registered("iscsi"), 48));
    assert_eq!((&command.remarks[..], command.frame), (&[][..], 7.into()));
}

#[test]
fn a_message_without_its_last_fragment_is_cut() {
    let mut talk = TestConnection::new();
    talk.send(0, NEGOTIATE);
    // The first fragment is sent twice, so the first message never ends.
    for fragment in [FRAGMENTS[0], FRAGMENTS[0], FRAGMENTS[1]] {
        talk.send(0, fragment);
    }
    let found = talk.pdus();
    let [cut, complete] = &found[..] else { panic!("{found:?}") };
    assert_eq!((cut.octets.len(), cut.len, complete.octets.len()), (8, 14, 14));
    assert!(cut.remarks[0].ends_with("because the next bytes were not captured"), "{cut:?}");
}

#[test]
fn a_pdu_ends_before_the_first_octet_that_was_not_captured() {
    let mut talk = TestConnection::new();
    talk.send(0, &[HEAD, NO_CHUNKS, CALL].concat());
    // The headers of Ethernet, IP and TCP have 54 octets. The length field of MPA has 2, the header
    // of DDP 18, and the header of RPC-over-RDMA 28.
    let found = pdus(&talk.0.cut_to(54 + 2 + 18 + 28 + 16));
    let [call] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&call.octets[..], call.len), (&hex(CALL)[..16], 24));
    assert_eq!(
        call.remarks,
        ["this packet has only the first 16 of 24 bytes, because the next bytes were not captured"]
    );
}

#[test]
fn a_fragment_without_the_start_of_its_message_is_not_exported() {
    let mut talk = TestConnection::new();
    talk.send(0, NEGOTIATE);
    for fragment in [FRAGMENTS[1], FRAGMENTS[0], FRAGMENTS[1]] {
        talk.send(0, fragment);
    }
    let (found, omitted) = export(&talk.0, MAX_MEMORY);
    let [message] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&message.octets, message.frame), (&hex("fe534d42010203040506 0708090a"), 8.into()));
    assert_eq!(omitted, Omitted { parts: 1, ..Omitted::default() });
    assert!(!omitted.has_reached_limit());
}

/// Each message has 20 octets. The lost octets are the end of the first message and the start of the
/// second message. The next fragment has the number of octets that the first message promises.
#[test]
fn a_gap_ends_a_message() {
    let fragment = |remaining: u32, data: &str| {
        let len = hex(data).len();
        format!("01000100 00000000 {remaining:02x}000000 18000000 {len:02x}000000 00000000 {data}")
    };
    let parts = [(12, "fe534d4201010101"), (6, "020202020202"), (0, "030303030303")];
    let [start, middle, end] = parts.map(|(remaining, data)| fragment(remaining, data));
    let mut talk = TestConnection::new();
    talk.send(0, NEGOTIATE);
    talk.send(0, &start);
    let lost: Vec<u8> = [&middle, &end, &start].iter().flat_map(|text| talk.fpdu(0, text)).collect();
    talk.0.lose(0, &lost);
    talk.send(0, &middle);
    talk.send(0, &end);
    // The peer acknowledges all octets.
    talk.send(1, "01000100 00000000 00000000 00000000 00000000");
    let (found, omitted) = export(&talk.0, MAX_MEMORY);
    let [cut] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&cut.octets, cut.len), (&hex(parts[0].1), 20));
    assert!(omitted.parts > 0 && !omitted.has_reached_limit(), "{omitted:?}");
}

#[test]
fn connections_share_one_memory_limit() {
    let mut wire = Wire::started();
    // The first of two segments of a Send, on three connections.
    let open = fpdu(&[hex("0143 00000000 00000000 00000001 00000000"), vec![7; 1000]].concat());
    wire.send(0, &open);
    for port in [4211, 4212, 5445] {
        wire.connect_to(port);
        wire.send(0, &request());
        wire.send(1, &reply());
        if port != 5445 {
            wire.send(0, &open);
        }
    }
    let mut talk = TestConnection(wire, [0; 2]);
    talk.send(0, NEGOTIATE);
    FRAGMENTS.iter().for_each(|fragment| talk.send(0, fragment));
    // The limit is reached twice. The connection with the least memory keeps its message.
    let (found, omitted) = export(&talk.0, 2100);
    let [message] = &found[..] else { panic!("{found:?}") };
    assert_eq!((message.octets.len(), message.len), (14, 14));
    assert_eq!(omitted, Omitted { sends: 2, ..Omitted::default() });
    assert!(omitted.has_reached_limit());
    assert_eq!(export(&talk.0, MAX_MEMORY).1, Omitted::default());
}

#[test]
fn a_message_is_cut_at_the_memory_limit() {
    let mut talk = TestConnection::new();
    talk.send(0, NEGOTIATE);
    FRAGMENTS.iter().for_each(|fragment| talk.send(0, fragment));
    let (found, omitted) = export(&talk.0, 100);
    let [cut] = &found[..] else { panic!("{found:?}") };
    assert_eq!((cut.octets.len(), cut.len), (8, 14));
    assert_eq!(cut.remarks, ["this packet has only the first 8 of 14 bytes, because weft reached its memory limit"]);
    assert_eq!(omitted, Omitted { parts: 1, cut: 1, ..Omitted::default() });
}

#[test]
fn a_call_does_not_wait_above_the_memory_limit() {
    let mut talk = TestConnection::new();
    talk.send(0, &[HEAD, READ_CHUNK, CALL].concat());
    talk.0.send_ulpdu(1, READ_REQUEST);
    let (found, omitted) = export(&talk.0, 100);
    let [call] = &found[..] else { panic!("{found:?}") };
    assert_eq!((call.frame, call.octets.len(), call.len), (5.into(), 24, 32));
    assert!(call.remarks[1].ends_with("because weft reached its memory limit"), "{call:?}");
    assert_eq!(omitted, Omitted { cut: 1, reads: 1, ..Omitted::default() });
}
