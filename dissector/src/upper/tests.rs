//! Tests with synthetic Sends whether upper-layer protocols are recognised. The source of the
//! messages of rping is librdmacm. The source for RPC-over-RDMA is RFC 8166 section 4 with its XDR,
//! and the source for SMB Direct is MS-SMBD sections 2.2.1 to 2.2.3.

use proptest::prelude::*;
use serde_json::Value;

use super::Ulp;
use super::protocol::{Protocol, Verdict};
use super::recognition::MAX_TESTED_SENDS;
use super::table::Connections;
use crate::Sink;
use crate::context::Context;
use crate::output::json::JsonWriter;
use crate::output::text::summary;
use crate::stream_id::StreamId;
use crate::testing::{Wire, fpdu, hex};
use crate::unit::Unit;

/// A connection of MPA revision 1, and the last MSN on queue 0 of each direction.
pub(super) struct TestConnection(pub(super) Wire, pub(super) [u32; 2]);

impl TestConnection {
    pub(super) fn new() -> Self {
        Self::over(Wire::started())
    }

    /// The connection of `wire`. No Send was sent so far.
    pub(super) fn over(wire: Wire) -> Self {
        TestConnection(wire, [0; 2])
    }

    /// Sends a message in segments with `each` octets of payload.
    pub(super) fn send(&mut self, direction: usize, octets: &[u8], each: usize) {
        self.1[direction] += 1;
        let count = octets.chunks(each).count();
        for (index, part) in octets.chunks(each).enumerate() {
            let control = if index + 1 == count { "4143" } else { "0143" };
            let head = format!("{control} 00000000 00000000 {:08x} {:08x}", self.1[direction], index * each);
            self.0.send(direction, &fpdu(&[hex(&head), part.to_vec()].concat()));
        }
    }

    pub(super) fn send_one(&mut self, direction: usize, octets: &str) {
        self.send(direction, &hex(octets), 1 << 14);
    }

    /// Returns the values of the field `weft.ulp.message` of all FPDUs, and the protocol at the end
    /// of the capture.
    pub(super) fn read(&self) -> (Vec<String>, Option<Ulp>) {
        let (units, _, name) = self.units();
        let message = |unit: &Value| unit["weft.ulp.message"].as_str().map(str::to_owned);
        (units.iter().filter_map(message).collect(), name)
    }

    /// Returns the JSON object and the summary of each unit, and the protocol at the end of the
    /// capture.
    pub(super) fn units(&self) -> (Vec<Value>, Vec<String>, Option<Ulp>) {
        #[derive(Default)]
        struct Collect(JsonWriter, Vec<Value>, Vec<String>, Option<Ulp>);
        impl Sink for Collect {
            fn unit(&mut self, unit: &Unit<'_>) {
                let mut out = Vec::new();
                self.0.write(unit, &mut out).unwrap();
                self.1.push(serde_json::from_slice(&out).unwrap());
                self.2.push(summary(unit));
            }
            fn ended(&mut self, _: StreamId, context: &Context) {
                self.3 = context.ulp;
            }
        }
        let mut found = Collect::default();
        self.0.feed(&mut found);
        (found.1, found.2, found.3)
    }
}

/// Checks the rule of [`Protocol::headers`] for the first octets of a Send. Returns the octets
/// after the replacement of all octets outside the headers.
#[track_caller]
pub(super) fn check_headers<P: Protocol>(octets: &[u8], is_complete: bool) -> Vec<u8> {
    let ranges = P::headers(octets, is_complete);
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ranges:?}");
    let is_kept = |at: usize| ranges.iter().any(|range| range.contains(&at));
    let filled: Vec<u8> =
        octets.iter().enumerate().map(|(at, octet)| if is_kept(at) { *octet } else { b'V' }).collect();
    let result = |octets: &[u8]| match P::read(octets, is_complete) {
        Verdict::Is { len, proves, .. } => format!("{len:?} {proves}"),
        Verdict::Open => "open".to_owned(),
        Verdict::Not => "not".to_owned(),
    };
    assert_eq!(result(&filled), result(octets), "{octets:02x?}");
    assert_eq!(P::headers(&filled, is_complete), ranges, "{octets:02x?}");
    filled
}

/// A Send of rping for a buffer of 64 octets at address 0x1000 with key 0x200.
const INFO: &str = "0000000000001000 00000200 00000040";
const READ: &str = "4141 00000000 00000001 00000001 00000000
    00000100 0000000000003000 00000040 00000200 0000000000001000";

fn rping(data: &str) -> TestConnection {
    let mut talk = TestConnection::new();
    talk.send_one(0, INFO);
    talk.0.send_ulpdu(1, READ);
    let data = data.bytes().map(|octet| format!("{octet:02x}")).collect::<String>();
    talk.0.send_ulpdu(0, &format!("c142 00000100 0000000000003000 {data}{}", "61".repeat(64 - data.len() / 2)));
    talk.send_one(1, &"00".repeat(16));
    talk.send_one(0, INFO);
    talk
}

#[test]
fn rping_is_named_by_a_read_of_what_was_announced_and_its_data() {
    let talk = rping("rdma-ping-0: ");
    assert_eq!(talk.read(), (vec!["go on".to_owned(), "buffer".to_owned()], Some(Ulp::Rping)));
    let (units, lines, _) = talk.units();
    assert!(lines.last().unwrap().ends_with("rping buffer 0x1000 rkey 0x00000200 size 64"), "{lines:?}");
    assert_eq!(units.last().unwrap()["weft.ulp"], "rping");
    // Neither different data nor a Read of a buffer that was not announced proves the protocol.
    assert_eq!(rping("some ping: ").read().1, None);
    let mut other = TestConnection::new();
    other.send_one(0, "0000000000001000 00000201 00000040");
    other.0.send_ulpdu(1, READ);
    other.0.send_ulpdu(
        0,
        &format!("c142 00000100 0000000000003000 {}", "72646d612d70696e672d".to_owned() + &"61".repeat(54)),
    );
    assert_eq!(other.read().1, None);
}

#[test]
fn rping_is_contradicted_by_a_send_of_another_length() {
    let mut talk = rping("rdma-ping-0: ");
    talk.send_one(0, &"00".repeat(17));
    talk.send_one(0, INFO);
    assert_eq!(talk.read(), (vec!["go on".to_owned(), "buffer".to_owned()], None));
}

/// A message with XID, version 1, credits 32, `RDMA_MSG` and three empty lists, and then a call of
/// RPC version 2: an empty COMPOUND of NFS version 4.
const CALL: &str = "12345678 00000001 00000020 00000000 00000000 00000000 00000000
    12345678 00000000 00000002 000186a3 00000004 00000001 00000000 00000000 00000000 00000000
    00000000 00000001 00000000";
/// The reply with the same XID. It contains the values `REPLY` and `MSG_ACCEPTED`.
const REPLY: &str = "12345678 00000001 00000020 00000000 00000000 00000000 00000000
    12345678 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000";

#[test]
fn rpc_over_rdma_is_named_by_a_call() {
    let mut talk = TestConnection::new();
    talk.send_one(0, CALL);
    talk.send_one(1, REPLY);
    assert_eq!(talk.read(), (vec!["RDMA_MSG".to_owned(); 2], Some(Ulp::RpcRdma)));
    let lines = talk.units().1;
    let end = "RPC-over-RDMA RDMA_MSG XID 0x12345678 credits 32  NFS V4 COMPOUND reply NFS4_OK";
    assert!(lines.last().unwrap().ends_with(end), "{lines:?}");
}

#[test]
fn chunk_lists_are_read_to_their_end() {
    let segment = "00000100 00001000 0000000000002000";
    // The chunk lists have two read segments at position 0, one write chunk of two segments, and a
    // reply chunk of one segment.
    let lists = format!(
        "00000001 00000000 {segment} 00000001 00000000 {segment} 00000000
         00000001 00000002 {segment} {segment} 00000000 00000001 00000001 {segment}"
    );
    let mut talk = TestConnection::new();
    talk.send_one(0, &format!("12345678 00000001 00000020 00000001 {lists}"));
    let (_, lines, name) = talk.units();
    assert_eq!(name, Some(Ulp::RpcRdma));
    assert!(lines.last().unwrap().ends_with("RDMA_NOMSG XID 0x12345678 credits 32 chunks: read 2, write 1, reply 1"));
    for wrong in [
        format!("12345678 00000001 00000020 00000001 {lists} 00000000"),
        format!(
            "12345678 00000001 00000020 00000001 {}",
            lists.replace("00000000 00000001 00000001", "00000002 00000001 00000001")
        ),
        format!("12345678 00000002 00000020 00000001 {lists}"),
        format!("12345678 00000001 00000000 00000001 {lists}"),
        "12345678 00000001 00000020 00000001 00000000 00000000 00000000".to_owned(),
        CALL.replace("12345678 00000000 00000002", "12345679 00000000 00000002"),
        CALL.replace("12345678 00000000 00000002", "12345678 00000000 00000003"),
    ] {
        let mut talk = TestConnection::new();
        talk.send_one(0, &wrong);
        assert_eq!(talk.read().1, None, "{wrong}");
    }
}

#[test]
fn what_proves_nothing_may_follow_and_what_fails_contradicts() {
    let mut talk = TestConnection::new();
    talk.send_one(0, CALL);
    // The first RDMA_ERROR has ERR_CHUNK. The second RDMA_ERROR has ERR_VERS with the versions 1 to
    // 1.
    talk.send_one(1, "12345678 00000001 00000020 00000004 00000002");
    talk.send_one(1, "12345678 00000001 00000020 00000004 00000001 00000001 00000001");
    assert_eq!(talk.read(), (["RDMA_MSG", "RDMA_ERROR", "RDMA_ERROR"].map(str::to_owned).into(), Some(Ulp::RpcRdma)));
    talk.send_one(1, "01020304");
    talk.send_one(0, CALL);
    assert_eq!(talk.read().1, None, "the protocol stays unknown after a message that fails the test");
}

/// A Negotiate Request with versions 0x0100, CreditsRequested 255, and the sizes 1364, 8192 and
/// 1048576.
const REQUEST: &str = "0001 0001 0000 ff00 54050000 00200000 00001000";
/// A Negotiate Response with NegotiatedVersion 0x0100, credits 16 and 255, Status 0,
/// MaxReadWriteSize 1048576, and the same three sizes.
const RESPONSE: &str = "0001 0001 0001 0000 1000 ff00 00000000 00001000 54050000 00200000 00001000";
/// A Data Transfer with CreditsRequested 255, CreditsGranted 16, and 8 octets of data at offset 24.
const DATA: &str = "ff00 1000 0000 0000 00000000 18000000 08000000 00000000 fe534d42 40000100";

#[test]
fn smb_direct_is_named_by_its_negotiation() {
    let mut talk = TestConnection::new();
    talk.send_one(0, REQUEST);
    talk.send_one(1, RESPONSE);
    talk.send_one(0, DATA);
    // This Data Transfer has credits and no data.
    talk.send_one(1, "ff00 1000 0000 0000 00000000 00000000 00000000");
    let expected = ["Negotiate Request", "Negotiate Response", "Data Transfer", "Data Transfer"].map(str::to_owned);
    assert_eq!(talk.read(), (expected.into(), Some(Ulp::SmbDirect)));
    for wrong in [
        REQUEST.replace("0001 0001 0000", "0001 0002 0000"),
        REQUEST.replace("ff00", "0000"),
        REQUEST.replace("54050000", "7f000000"),
        REQUEST.replace("00001000", "ffff0100"),
        format!("{REQUEST} 00"),
        RESPONSE.replace("0001 0000 1000", "0001 0100 1000"),
    ] {
        let mut talk = TestConnection::new();
        talk.send_one(0, &wrong);
        assert_eq!(talk.read().1, None, "{wrong}");
    }
}

#[test]
fn smb_direct_is_named_in_the_middle_by_lengths_that_add_up() {
    let mut talk = TestConnection::new();
    talk.send_one(0, DATA);
    assert_eq!(talk.read().1, Some(Ulp::SmbDirect));
    for wrong in [
        DATA.replace("18000000", "1c000000"),
        DATA.replace("08000000", "09000000"),
        DATA.replace("fe534d42", "fe534d43"),
        DATA.replace("ff00 1000 0000", "ff00 1000 0200"),
    ] {
        let mut talk = TestConnection::new();
        talk.send_one(0, &wrong);
        assert_eq!(talk.read().1, None, "{wrong}");
        // After the protocol is recognised, each of these messages makes the protocol unknown. The
        // only exception is the message that differs only in the data.
        let mut talk = TestConnection::new();
        talk.send_one(0, REQUEST);
        talk.send_one(0, &wrong);
        let name = wrong.contains("fe534d43").then_some(Ulp::SmbDirect);
        assert_eq!(talk.read().1, name, "{wrong}");
    }
}

#[test]
fn a_send_of_several_segments_is_judged_by_its_beginning_and_its_length() {
    let data = hex(&format!("ff00 1000 0000 0000 00000000 18000000 {} 00000000 fe534d42", "e8030000"));
    let mut message = data.clone();
    message.resize(24 + 1000, 0);
    let mut talk = TestConnection::new();
    talk.send(0, &message, 400);
    assert_eq!(talk.read(), (vec!["Data Transfer".to_owned()], Some(Ulp::SmbDirect)));
    message.push(0);
    let mut talk = TestConnection::new();
    talk.send(0, &message, 400);
    assert_eq!(talk.read().1, None);
    // A header that is not complete in the first segment neither proves nor disproves a protocol.
    let mut talk = TestConnection::new();
    talk.send_one(0, REQUEST);
    talk.send(0, &data, 12);
    talk.send_one(1, RESPONSE);
    let expected = ["Negotiate Request", "Negotiate Response"].map(str::to_owned);
    assert_eq!(talk.read(), (expected.into(), Some(Ulp::SmbDirect)));
}

#[test]
fn a_message_whose_beginning_is_missing_is_not_judged() {
    let mut talk = TestConnection::new();
    talk.send_one(0, REQUEST);
    talk.0.lose(0, &fpdu(&hex("0143 00000000 00000000 00000002 00000000 01020304")));
    talk.0.send_ulpdu(0, "4143 00000000 00000000 00000002 00000004 01020304");
    talk.1[0] = 2;
    talk.send_one(0, DATA);
    assert_eq!(talk.read().1, Some(Ulp::SmbDirect));
}

/// The second capture has only 24 bytes of the Negotiate Response.
#[test]
fn a_message_that_the_snap_length_cuts_is_not_judged() {
    let mut talk = TestConnection::new();
    talk.send_one(0, REQUEST);
    talk.send_one(1, RESPONSE);
    talk.send_one(0, DATA);
    // 54 bytes of Ethernet, IPv4 and TCP headers, 2 bytes of ULPDU_Length, and an untagged header.
    // The Negotiate Response has 32 bytes.
    let cut = TestConnection(talk.0.cut_to(54 + 2 + 18 + 32), talk.1);
    // An FPDU whose CRC was not captured can be delivered after an FPDU of the other direction.
    let sorted = |(mut messages, ulp): (Vec<String>, Option<Ulp>)| {
        messages.sort();
        (messages, ulp)
    };
    assert_eq!(sorted(cut.read()), sorted(talk.read()));
    let cut = TestConnection(talk.0.cut_to(54 + 2 + 18 + 24), talk.1);
    assert_eq!(cut.read(), (vec!["Negotiate Request".to_owned(), "Data Transfer".to_owned()], Some(Ulp::SmbDirect)));
}

#[test]
fn a_damaged_fpdu_does_not_repeat_the_message_before_it() {
    let mut talk = TestConnection::new();
    talk.send_one(0, REQUEST);
    let mut damaged = fpdu(&hex(&format!("4143 00000000 00000000 00000002 00000000 {DATA}")));
    *damaged.last_mut().unwrap() ^= 1;
    talk.0.send(0, &damaged);
    let (units, ..) = talk.units();
    assert_eq!(units.last().unwrap()["crc_status"], "bad");
    assert_eq!(talk.read(), (vec!["Negotiate Request".to_owned()], Some(Ulp::SmbDirect)));
}

#[test]
fn after_many_messages_that_prove_nothing_none_is_looked_at() {
    let after = |count| {
        let mut talk = TestConnection::new();
        (0..count).for_each(|_| talk.send_one(0, "01"));
        talk.send_one(0, REQUEST);
        talk.read().1
    };
    assert_eq!((after(MAX_TESTED_SENDS), after(MAX_TESTED_SENDS + 1)), (Some(Ulp::SmbDirect), None));
}

proptest! {
    #[test]
    fn no_octets_are_too_odd(octets in proptest::collection::vec(any::<u8>(), 0..120), words in proptest::collection::vec(0u32..3, 0..30), is_complete: bool) {
        let counted: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        for octets in [octets, counted] {
            for verdict in Connections::read(&octets, is_complete, None) {
                if let Verdict::Is { parsed, .. } = verdict {
                    prop_assert!(!parsed.to_string().is_empty());
                }
            }
        }
    }
}
