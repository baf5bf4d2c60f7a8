//! Tests of complete connections. The messages are those of the Linux client and server (kernel
//! 6.1, soft-iWARP), unless a comment states otherwise.

use std::ops::Range;

use serde_json::{Value, json};

use crate::Sink;
use crate::output::json::JsonWriter;
use crate::output::text::summary;
use crate::testing::{Wire, fpdu, hex, reply_frame, startup_frame};
use crate::tree::{Node, tree};
use crate::unit::Unit;

/// A connection between a client (direction 0) and a server (direction 1).
struct TestConnection {
    wire: Wire,
    /// The last MSN on queue 0 of each direction, and the last MSN of the Read Requests of the
    /// server.
    msn: [u32; 3],
}

/// The index of the Read Requests in [`TestConnection::msn`].
const READS: usize = 2;

impl TestConnection {
    fn new() -> Self {
        TestConnection { wire: Wire::started(), msn: [0; 3] }
    }

    /// A connection with the private data of the Linux client and server.
    fn with_private_data() -> Self {
        let request = startup_frame(0x50, 2, &hex("00800000 f6ab0e18 01010303"));
        let reply = reply_frame(0x50, 2, &hex("00000080 f6ab0e18 01000307"));
        TestConnection { wire: Wire::started_as(&request, &reply), msn: [0; 3] }
    }

    /// Sends a message in segments with `each` octets of payload.
    fn send_parts(&mut self, direction: usize, octets: &[u8], each: usize) {
        self.msn[direction] += 1;
        let count = octets.chunks(each).count();
        for (index, part) in octets.chunks(each).enumerate() {
            let control = if index + 1 == count { "4143" } else { "0143" };
            let head = format!("{control} 00000000 00000000 {:08x} {:08x}", self.msn[direction], index * each);
            self.wire.send(direction, &fpdu(&[hex(&head), part.to_vec()].concat()));
        }
    }

    fn send(&mut self, direction: usize, octets: &str) {
        self.send_parts(direction, &hex(octets), 1 << 14);
    }

    /// The server writes `octets` to the tagged offset `to` of the STag `stag`.
    fn write(&mut self, (stag, to): (u32, u64), octets: &[u8]) {
        let head = hex(&format!("c140 {stag:08x} {to:016x}"));
        self.wire.send(1, &fpdu(&[head, octets.to_vec()].concat()));
    }

    /// The server reads `octets` from the tagged offset `to` of the STag `stag`. The Response has
    /// segments of `each` octets.
    fn read(&mut self, (stag, to): (u32, u64), octets: &[u8], each: usize) {
        self.msn[READS] += 1;
        let head = format!("4141 00000000 00000001 {:08x} 00000000", self.msn[READS]);
        let request = format!("{head} 00000600 0000000000070000 {:08x} {stag:08x} {to:016x}", octets.len());
        self.wire.send_ulpdu(1, &request);
        let count = octets.chunks(each).count();
        for (index, part) in octets.chunks(each).enumerate() {
            let control = if index + 1 == count { "c142" } else { "8142" };
            let head = hex(&format!("{control} 00000600 {:016x}", 0x7_0000 + index * each));
            self.wire.send(0, &fpdu(&[head, part.to_vec()].concat()));
        }
    }

    /// The JSON objects and the summaries of all units.
    fn units(&self) -> (Vec<Value>, Vec<String>) {
        #[derive(Default)]
        struct Collect(JsonWriter, Vec<Value>, Vec<String>);
        impl Sink for Collect {
            fn unit(&mut self, unit: &Unit<'_>) {
                let mut out = Vec::new();
                self.0.write(unit, &mut out).unwrap();
                self.1.push(serde_json::from_slice(&out).unwrap());
                self.2.push(summary(unit));
            }
        }
        let mut found = Collect::default();
        self.wire.feed(&mut found);
        (found.1, found.2)
    }

    /// The last unit with an RPC message, and its summary.
    fn last_rpc(&self) -> (Value, String) {
        let (units, lines) = self.units();
        let last = units.into_iter().zip(lines).rfind(|(unit, _)| unit["rpc.xid"].is_u64());
        last.expect("a unit with an RPC message")
    }
}

/// Asserts that the unit has the keys and values of `expected`.
fn assert_has(unit: &Value, expected: &Value) {
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&unit[key], value, "{key} of {unit:#}");
    }
}

const CREDENTIAL: &str = "00000001 0000001c 00000000 00000006 286e6f6e65290000 00000000 00000000 00000000
    00000000 00000000";
const HANDLE: &str = "00000014 01000101 00000000 1fd81fb6 02000000 00000000";

/// A READ of NFS version 3 with a Write chunk of 4096 bytes.
fn read_call() -> String {
    format!(
        "77a394ae 00000001 00000080 00000000 00000000 00000001 00000001 417e3e01 00001000 77a394ae09348000 00000000
         00000000 77a394ae 00000000 00000002 000186a3 00000003 00000006 {CREDENTIAL} {HANDLE} 0000000000000000
         00001000"
    )
}

const POST_ATTRIBUTES: &str = "00000001 00000001 000001a4 00000001 00000000 00000000 00000000000002bc 0000000000001000
    0000000000000000 0000000000000000 0000000000000002 6b052e0d1f3b9b00 6b052db622180700 6b052db622180700";

/// The reply to [`read_call`]: 700 bytes of data, which are in the Write chunk.
fn read_reply() -> String {
    format!(
        "77a394ae 00000001 00000040 00000000 00000000 00000001 00000001 417e3e01 000002bc 77a394ae09348000 00000000
         00000000 77a394ae 00000001 00000000 00000000 00000000 00000000 00000000 {POST_ATTRIBUTES} 000002bc 00000001
         000002bc"
    )
}

#[test]
fn a_read_reply_with_a_write_chunk_is_complete() {
    let mut talk = TestConnection::with_private_data();
    talk.send(0, &read_call());
    talk.write((0x417e_3e01, 0x77a3_94ae_0934_8000), &[7; 700]);
    talk.send(1, &read_reply());
    let (units, lines) = talk.units();
    let call = units.iter().find(|unit| unit["rpc.msgtyp"] == 0).unwrap();
    let lists = json!({
        "rpcordma.reads_count": 0, "rpcordma.writes_count": 1, "rpcordma.reply_count": 0,
        "rpcordma.segment_count": [1], "rpcordma.rdma_handle": [0x417e_3e01], "rpcordma.rdma_length": [4096],
        "rpcordma.rdma_offset": [0x77a3_94ae_0934_8000_u64],
    });
    assert_has(call, &lists);
    let rpc = json!({
        "rpcordma.xid": 0x77a3_94ae_u32, "rpcordma.msg_type": 0, "rpcordma.flow_control": 128, "rpcordma.reverse": 0,
        "rpc.program": 100_003, "rpc.programversion": 3, "rpc.procedure": 6, "rpc.procedure_name": "READ",
        "rpc.carrier": "send", "rpc.decoded": "complete",
    });
    assert_has(call, &rpc);
    let arguments = json!({
        "rpc.auth.flavor": [1, 0], "rpc.auth.length": [28, 0], "rpc.auth.machinename": "(none)", "rpc.auth.uid": 0,
        "rpc.auth.gid": [0], "nfs.procedure_v3": 6, "nfs.offset3": [0], "nfs.count3": [4096],
        "nfs.fhandle": ["01000101000000001fd81fb60200000000000000"],
    });
    assert_has(call, &arguments);
    let (reply, line) = talk.last_rpc();
    let rpc = json!({
        "rpc.msgtyp": 1, "rpc.replystat": 0, "rpc.state_accept": 0, "rpc.procedure_name": "READ",
        "rpc.reqframe": call["frame"], "rpc.written_bytes": 700, "rpc.decoded": "complete",
    });
    assert_has(&reply, &rpc);
    // The server sends at most its own Send Size (4096), and the client receives 4096.
    let results = json!({
        "nfs.nfsstat3": [0], "nfs.count3": [700], "nfs.read.eof": [1], "nfs.read.data_length": [700],
        "nfs.data_in_chunk": [1], "rpcordma.rdma_length": [700], "rpcordma.inline_threshold": 4096,
    });
    assert_has(&reply, &results);
    assert!(line.ends_with("  NFS V3 READ reply NFS3_OK count 700 data 700"), "{line}");
    assert!(lines.iter().any(|line| line.ends_with("  NFS V3 READ call offset 0 count 4096")), "{lines:#?}");
}

#[test]
fn private_data_is_decoded() {
    let (units, _) = TestConnection::with_private_data().units();
    let startup = |kind: &str| units.iter().find(|unit| unit["kind"] == kind).unwrap();
    assert_has(
        startup("mpa_request"),
        &json!({
            "rpcordma.cm.identifier": 0xf6ab_0e18_u32, "rpcordma.cm.version": 1, "rpcordma.cm.reserved": 0,
            "rpcordma.cm.remote_invalidation": 1, "rpcordma.cm.send_size": 4096, "rpcordma.cm.receive_size": 4096,
        }),
    );
    let receive_size = json!({"rpcordma.cm.remote_invalidation": 0, "rpcordma.cm.receive_size": 8192});
    assert_has(startup("mpa_reply"), &receive_size);
}

#[test]
fn without_private_data_the_threshold_is_1024() {
    let mut talk = TestConnection::new();
    talk.send(0, &read_call());
    assert_eq!(talk.last_rpc().0["rpcordma.inline_threshold"], 1024);
}

#[test]
fn a_reply_without_its_call_has_no_procedure() {
    let mut talk = TestConnection::new();
    talk.send(1, &read_reply());
    let (reply, line) = talk.last_rpc();
    assert_has(&reply, &json!({"rpc.procedure_name": null, "rpc.reqframe": null, "rpc.decoded": "unknown"}));
    assert!(line.ends_with("  reply  [rest not decoded]"), "{line}");
}

/// A WRITE of NFS version 3 whose 5000 bytes are in a Read chunk at position 112.
#[test]
fn a_write_call_with_a_read_chunk_is_complete() {
    let mut talk = TestConnection::with_private_data();
    talk.send(
        0,
        &format!(
            "89a394ae 00000001 00000080 00000000 00000001 00000070 4379f401 00001388 89a394ae092e3000 00000000 00000000
             00000000 89a394ae 00000000 00000002 000186a3 00000003 00000007 {CREDENTIAL} {HANDLE} 0000000000010000
             00001388 00000002 00001388"
        ),
    );
    let (call, line) = talk.last_rpc();
    assert_has(
        &call,
        &json!({
            "rpcordma.position": [112], "rpcordma.rdma_length": [5000], "nfs.offset3": [65536], "nfs.count3": [5000],
            "nfs.write.stable": [2], "nfs.write.data_length": [5000], "nfs.data_in_chunk": [1],
            "rpc.decoded": "complete",
        }),
    );
    assert!(line.ends_with("  NFS V3 WRITE call offset 65536 count 5000 stable 2 data 5000"), "{line}");
    talk.read((0x4379_f401, 0x89a3_94ae_092e_3000), &[3; 5000], 1400);
    talk.send(
        1,
        "89a394ae 00000001 00000040 00000000 00000000 00000000 00000000 89a394ae 00000001 00000000 00000000 00000000
         00000000 00000000 00000000 00000001 00000001 000001a4 00000001 00000000 00000000 0000000000011388
         0000000000012000 0000000000000000 0000000000000000 0000000000000080 6b052e0e1f78a400 6b052e0e2d0fa500
         6b052e0e2d0fa500 00001388 00000002 1eb0a02481ab93bf",
    );
    let (reply, _) = talk.last_rpc();
    let expected = json!({"nfs.count3": [5000], "nfs.write.committed": [2], "rpc.read_bytes": 5000,
        "rpc.decoded": "complete"});
    assert_has(&reply, &expected);
    // At another position, the chunk does not carry the data.
    let mut talk = TestConnection::new();
    talk.send(
        0,
        &format!(
            "89a394ae 00000001 00000080 00000000 00000001 00000074 4379f401 00001388 89a394ae092e3000 00000000 00000000
             00000000 89a394ae 00000000 00000002 000186a3 00000003 00000007 {CREDENTIAL} {HANDLE} 0000000000010000
             00001388 00000002 00001388"
        ),
    );
    assert_eq!(talk.last_rpc().0["rpc.decoded"], "malformed");
}

/// The reply to a READLINK of NFS version 3. The server places it in two segments of a Reply chunk.
#[test]
fn a_reply_in_a_reply_chunk_is_decoded() {
    let mut talk = TestConnection::new();
    talk.send(
        0,
        &format!(
            "8da394ae 00000001 00000080 00000000 00000000 00000000 00000001 00000003 382bd004 00000078 8da394ae0a148800
             f8628503 00001000 8da394ae09fa5000 23423403 00000004 8da394ae0a148878 8da394ae 00000000 00000002 000186a3
             00000003 00000005 {CREDENTIAL} 00000014 01000101 00000000 8bbe1cc6 7e000000 00000000"
        ),
    );
    let reply =
        hex("8da394ae 00000001 00000000 00000000 00000000 00000000 00000000 00000001 00000005 000001ff 00000001
        00000000 00000000 0000000000000013 0000000000000000 0000000000000000 0000000000000000 000000000000007e
        6b052e0e38fb6700 6b052db62b646600 6b052db62b646600 00000013");
    talk.write((0x382b_d004, 0x8da3_94ae_0a14_8800), &reply);
    talk.write((0xf862_8503, 0x8da3_94ae_09fa_5000), b"../a/path/somewhere");
    talk.write((0xf862_8503, 0x8da3_94ae_09fa_5013), &[0]);
    let nomsg = "8da394ae 00000001 00000040 00000001 00000000 00000000 00000001 00000003 382bd004 00000078
        8da394ae0a148800 f8628503 00000014 8da394ae09fa5000 23423403 00000000 8da394ae0a148878";
    talk.send(1, nomsg);
    let (found, line) = talk.last_rpc();
    let expected = json!({
        "rpcordma.msg_type": 1, "rpcordma.segment_count": [3], "rpc.carrier": "reply_chunk",
        "rpc.procedure_name": "READLINK", "rpc.written_bytes": 140, "rpc.decoded": "complete",
        "nfs.readlink.data": ["../a/path/somewhere"], "nfs.nfsstat3": [0],
    });
    assert_has(&found, &expected);
    let end = "  NFS V3 READLINK reply NFS3_OK target \"../a/path/somewhere\" in a Reply chunk";
    assert!(line.ends_with(end), "{line}");
    // If a Write was not captured, the rest of the reply is missing.
    let mut talk = TestConnection::new();
    talk.send(1, &read_reply());
    talk.send(1, nomsg);
    let (_, lines) = talk.units();
    assert!(lines.last().unwrap().ends_with("  [rest missing]"), "{lines:#?}");
}

/// A synthetic LOOKUP whose RPC message is in a Position Zero Read chunk (RFC 8166 section 3.5.3).
#[test]
fn a_call_in_a_read_chunk_is_decoded_when_the_last_response_arrives() {
    let mut talk = TestConnection::with_private_data();
    let call = hex(&format!(
        "00000077 00000000 00000002 000186a3 00000003 00000003 {CREDENTIAL} {HANDLE} 00000005 7061676531000000"
    ));
    let (first, second) = (40_u64, call.len() as u64 - 40);
    talk.send(
        0,
        &format!(
            "00000077 00000001 00000080 00000001 00000001 00000000 00000500 {first:08x} 0000000000009000
             00000001 00000000 00000501 {second:08x} 0000000000001000 00000000 00000000 00000000"
        ),
    );
    talk.read((0x500, 0x9000), &call[..40], 24);
    assert!(talk.units().0.iter().all(|unit| unit["rpc.xid"].is_null()));
    talk.read((0x501, 0x1000), &call[40..], 48);
    let (found, line) = talk.last_rpc();
    let expected = json!({
        "rpc.carrier": "read_chunk", "rpc.procedure_name": "LOOKUP", "nfs.name": ["page1"], "direction": 0,
        "rpc.read_bytes": call.len(), "rpc.decoded": "complete", "rpcordma.xid": null,
    });
    assert_has(&found, &expected);
    assert!(line.ends_with("  NFS V3 LOOKUP call \"page1\" in a Read chunk"), "{line}");
    talk.send(
        1,
        "00000077 00000001 00000040 00000000 00000000 00000000 00000000 00000077 00000001 00000000 00000000 00000000
         00000000 00000002 00000000",
    );
    assert!(talk.last_rpc().1.ends_with("  NFS V3 LOOKUP reply NFS3ERR_NOENT"));
}

/// The first octets of a COMPOUND call of NFS version 4.1: SEQUENCE and PUTFH.
const COMPOUND: &str = "00000000 00000001 00000003 00000035 f92d056b8562c5860100000000000000 0000000e 00000002
    00000000 00000000 00000016 00000014 01000101 00000000 1fd81fb6 02000000 00000000";

#[test]
fn a_compound_has_its_operations() {
    let mut talk = TestConnection::new();
    talk.send(
        0,
        &format!(
            "2960f0d0 00000001 00000080 00000000 00000000 00000001 00000001 e07f7601 00001000 2960f0d009338000 00000000
             00000000 2960f0d0 00000000 00000002 000186a3 00000004 00000001 {CREDENTIAL} {COMPOUND} 00000019 00000000
             f92d056b8562c58601000000 0000000000000000 00001000"
        ),
    );
    let (call, line) = talk.last_rpc();
    let expected = json!({
        "rpc.procedure_name": "COMPOUND", "nfs.minorversion": 1, "nfs.ops.count": 3, "nfs.tag": "",
        "nfs.opcode": [53, 22, 25], "nfs.slotid4": [2], "nfs.seqid": [14],
        "nfs.session_id4": ["f92d056b8562c5860100000000000000"], "nfs.offset4": [0], "nfs.count4": [4096],
        "nfs.stateid4.other": ["f92d056b8562c58601000000"], "rpc.decoded": "complete",
    });
    assert_has(&call, &expected);
    let end = "  NFS V4 COMPOUND call: SEQUENCE slot 2, PUTFH, READ offset 0 count 4096";
    assert!(line.ends_with(end), "{line}");
    talk.send(
        1,
        "2960f0d0 00000001 00000040 00000000 00000000 00000001 00000001 e07f7601 000002bc 2960f0d009338000 00000000
         00000000 2960f0d0 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000003 00000035 00000000
         f92d056b8562c5860100000000000000 0000000e 00000002 0000001d 0000001d 00000000 00000016 00000000 00000019
         00000000 00000001 000002bc",
    );
    let (reply, line) = talk.last_rpc();
    let expected = json!({
        "nfs.nfsstat4": [0, 0, 0, 0], "nfs.opcode": [53, 22, 25], "nfs.eof": [1], "nfs.read.data_length": [700],
        "nfs.data_in_chunk": [1], "rpc.decoded": "complete",
    });
    assert_has(&reply, &expected);
    let end = "  NFS V4 COMPOUND reply NFS4_OK: SEQUENCE slot 2, PUTFH, READ data 700";
    assert!(line.ends_with(end), "{line}");
}

/// A synthetic callback (RFC 8167): the server calls the client, and both use the XID of a call in
/// the other direction.
#[test]
fn a_callback_has_the_reverse_direction() {
    let mut talk = TestConnection::with_private_data();
    talk.send(0, &read_call().replace("77a394ae", "00000001"));
    let sequence = "f92d056b8562c5860100000000000000 00000001 00000000 00000000";
    talk.send(
        1,
        &format!(
            "00000001 00000001 00000008 00000000 00000000 00000000 00000000 00000001 00000000 00000002 40000001 00000001
             00000001 00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000002 0000000b {sequence}
             00000000 00000000 00000004 00000001 f92d056b8562c58601000000 00000000 00000004 aabbccdd"
        ),
    );
    let (call, line) = talk.last_rpc();
    let expected = json!({"rpcordma.reverse": 1, "nfs.cb_procedure": 1, "nfs.cb.operation": [11, 4],
        "rpc.decoded": "complete", "nfs.fhandle": ["aabbccdd"]});
    assert_has(&call, &expected);
    assert!(line.ends_with("  NFS_CB V1 CB_COMPOUND call: CB_SEQUENCE slot 0, CB_RECALL"), "{line}");
    talk.send(
        0,
        &format!(
            "00000001 00000001 00000008 00000000 00000000 00000000 00000000 00000001 00000001 00000000 00000000 00000000
             00000000 00000000 00000000 00000002 0000000b 00000000 {sequence} 00000000 00000004 00002711"
        ),
    );
    let (reply, line) = talk.last_rpc();
    let expected = json!({"rpcordma.reverse": 1, "rpc.procedure_name": "CB_COMPOUND", "rpc.decoded": "complete"});
    assert_has(&reply, &expected);
    let end = "  NFS_CB V1 CB_COMPOUND reply NFS4_OK: CB_SEQUENCE slot 0, CB_RECALL NFS4ERR_BADHANDLE";
    assert!(line.ends_with(end), "{line}");
    // The forward call with the same XID still waits for its reply.
    talk.send(1, &read_reply().replace("77a394ae", "00000001"));
    assert_eq!(talk.last_rpc().0["rpc.procedure_name"], "READ");
}

#[test]
fn a_transport_error_names_itself_and_ends_the_call() {
    let mut talk = TestConnection::new();
    talk.send(0, &read_call());
    talk.send(1, "77a394ae 00000001 00000040 00000004 00000002");
    let (units, lines) = talk.units();
    assert_has(units.last().unwrap(), &json!({"rpcordma.msg_type": 4, "rpcordma.errcode": 2}));
    assert!(lines.last().unwrap().ends_with("  ERR_CHUNK"), "{lines:#?}");
    talk.send(1, &read_reply());
    assert_eq!(talk.last_rpc().0["rpc.procedure_name"], Value::Null);
    let mut talk = TestConnection::new();
    talk.send(0, &read_call());
    talk.send(1, "77a394ae 00000001 00000040 00000004 00000001 00000001 00000002");
    let (units, _) = talk.units();
    let expected = json!({"rpcordma.errcode": 1, "rpcordma.vers_low": 1, "rpcordma.vers_high": 2});
    assert_has(units.last().unwrap(), &expected);
}

#[test]
fn a_send_of_several_segments_is_put_together() {
    for each in [16, 60, 100, 1000] {
        let mut talk = TestConnection::new();
        talk.send(0, &read_call());
        talk.send_parts(1, &hex(&read_reply()), each);
        let (reply, _) = talk.last_rpc();
        // With segments of 16 octets, the recognition does not see the end of the chunk lists. But
        // the first call has already proved the protocol.
        assert_has(&reply, &json!({"rpc.procedure_name": "READ", "nfs.count3": [700], "rpc.decoded": "complete"}));
    }
}

#[test]
fn a_lost_segment_of_a_send_loses_only_this_send() {
    let mut talk = TestConnection::new();
    talk.send(0, &read_call());
    let reply = hex(&read_reply());
    let first = [hex("0143 00000000 00000000 00000001 00000000"), reply[..100].to_vec()].concat();
    talk.wire.lose(1, &fpdu(&first));
    let second = [hex("4143 00000000 00000000 00000001 00000064"), reply[100..].to_vec()].concat();
    talk.wire.send(1, &fpdu(&second));
    talk.msn[1] = 1;
    assert_eq!(talk.last_rpc().0["rpc.msgtyp"], 0);
    talk.send(0, &read_call().replace("77a394ae", "00000002"));
    talk.send(1, &read_reply().replace("77a394ae", "00000002"));
    assert_eq!(talk.last_rpc().0["rpc.procedure_name"], "READ");
}

/// Every prefix of a message is a legal Send. None of them may cause a panic, and only the complete
/// message is decoded to its end.
#[test]
fn a_message_that_ends_early_is_malformed() {
    for (before, message) in [(None, read_call()), (Some(read_call()), read_reply())] {
        let all = hex(&message);
        for len in (48..all.len()).step_by(4) {
            let mut talk = TestConnection::new();
            let direction = usize::from(before.is_some());
            if let Some(before) = &before {
                talk.send(0, before);
            }
            talk.send_parts(direction, &all[..len], 1 << 14);
            let (units, _) = talk.units();
            let last = units.last().unwrap();
            assert_ne!(last["rpc.decoded"], "complete", "{len}: {last:#}");
        }
    }
}

/// The header of [`read_call`] has 52 octets, and the arguments of its RPC message start after 68
/// octets. In an FPDU, the payload of a Send starts at offset 20.
#[test]
fn fields_have_the_octets_of_their_fpdu() {
    #[derive(Default)]
    struct Collect(Vec<(&'static str, Range<usize>)>);
    impl Collect {
        fn add(&mut self, nodes: &[Node]) {
            for node in nodes {
                self.0.push((node.name, node.range.clone()));
                self.add(&node.children);
            }
        }
    }
    impl Sink for Collect {
        fn unit(&mut self, unit: &Unit<'_>) {
            if unit.context.is_some_and(|context| context.rpc.is_some()) {
                self.add(&tree(unit));
            }
        }
    }
    let ranges = |each| {
        let mut talk = TestConnection::new();
        talk.send_parts(0, &hex(&read_call()), each);
        let mut found = Collect::default();
        talk.wire.feed(&mut found);
        let range = |name| found.0.iter().find(|(found, _)| *found == name).map(|(_, range)| range.clone());
        ["rpcordma.xid", "rpcordma.rdma_handle", "rpc.xid", "nfs.offset3"].map(|name| range(name).unwrap())
    };
    assert_eq!(ranges(1 << 14), [20..24, 48..52, 72..76, 164..172]);
    // The second FPDU has the octets from offset 100 of the message on. The other fields are in the
    // first FPDU, so they have no octets in the second FPDU.
    let [xid, handle, rpc_xid, offset] = ranges(100);
    assert!(xid.is_empty() && handle.is_empty() && rpc_xid.is_empty());
    assert_eq!(offset, 64..72);
}
