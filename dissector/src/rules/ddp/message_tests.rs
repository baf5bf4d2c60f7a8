//! Tests the rules about DDP messages and their segments.

use weft_core::requirement;

use crate::testing::{self, Wire, exchange, proves};

/// Direction 0 sends these ULPDUs.
fn forth(ulpdus: &[&str]) -> Wire {
    let all: Vec<(usize, &str)> = ulpdus.iter().map(|ulpdu| (0, *ulpdu)).collect();
    exchange(&all)
}

const SEND_1: &str = "4143 00000000 00000000 00000001 00000000 2a";
const SEND_2: &str = "4143 00000000 00000000 00000002 00000000 2a";
/// A Send of 12 octets in three segments.
const THIRDS: [&str; 3] = [
    "0143 00000000 00000000 00000001 00000000 01020304",
    "0143 00000000 00000000 00000001 00000004 05060708",
    "4143 00000000 00000000 00000001 00000008 090a0b0c",
];
/// A Write of 12 octets in three segments.
const WRITE_THIRDS: [&str; 3] = [
    "8140 11223344 0000000000001000 01020304",
    "8140 11223344 0000000000001004 05060708",
    "c140 11223344 0000000000001008 090a0b0c",
];
/// A Read Request for 8 octets into STag 100, TO 1000.
const READ: &str = "4141 00000000 00000001 00000001 00000000
    00000100 0000000000001000 00000008 00000200 0000000000002000";

#[test]
fn offsets_of_untagged_messages() {
    let right = forth(&THIRDS);
    let shifted = "4143 00000000 00000000 00000001 00000004 2a";
    proves(requirement!("DDP-1.2-5"), &forth(&[shifted]), &forth(&[SEND_1]));
    let from_one =
        ["0143 00000000 00000000 00000001 00000001 01020304", "4143 00000000 00000000 00000001 00000005 05060708"];
    proves(requirement!("DDP-4.3-10"), &forth(&from_one), &right);
    let repeated = "0143 00000000 00000000 00000001 00000003 05060708";
    proves(requirement!("DDP-4.3-11"), &forth(&[THIRDS[0], repeated, THIRDS[2]]), &right);
    let without_middle = forth(&[THIRDS[0], THIRDS[2]]);
    proves(requirement!("DDP-5.2-3"), &without_middle, &right);
    // The missing octets are one segment, so the offsets are right.
    assert!(without_middle.findings().iter().all(|finding| finding.requirement != requirement!("DDP-4.3-11")));
    let ahead = "4143 00000000 00000000 00000001 0000000a 090a0b0c";
    let jumps = forth(&[THIRDS[0], THIRDS[1], ahead]);
    proves(requirement!("DDP-5.2-5"), &jumps, &right);
    // The missing octets are not a segment of the usual length, so the offset is wrong.
    proves(requirement!("DDP-5.2-3"), &without_middle, &jumps);
    // The missing segment comes after the segment with L=1.
    proves(requirement!("DDP-5.2-3"), &without_middle, &forth(&[THIRDS[0], THIRDS[2], THIRDS[1]]));
}

#[test]
fn offsets_of_tagged_messages() {
    let right = forth(&WRITE_THIRDS);
    let ahead = "c140 11223344 0000000000001009 090a0b0c";
    proves(requirement!("DDP-4.2-9"), &forth(&[WRITE_THIRDS[0], WRITE_THIRDS[1], ahead]), &right);
    let too_low = "8140 11223344 0000000000001003 05060708";
    proves(requirement!("DDP-5.2-6"), &forth(&[WRITE_THIRDS[0], too_low, WRITE_THIRDS[2]]), &right);
}

/// The segments of one Write are farther apart than a signed 64-bit number can express.
#[test]
fn offsets_at_both_ends_of_the_address_space() {
    let low = "8140 11223344 c000000000000000 01020304";
    let high = "c140 11223344 4000000000000000 05060708";
    let first = "8140 11223344 0000000000000000 090a0b0c";
    let found = forth(&[first, low, high]).findings();
    assert!(found.iter().any(|finding| finding.requirement == requirement!("DDP-4.2-9")), "{found:?}");
}

#[test]
fn segments_in_increasing_order() {
    let middle_first = [THIRDS[1], THIRDS[0], THIRDS[2]];
    proves(requirement!("DDP-5.3-2"), &forth(&middle_first), &forth(&THIRDS));
    let write = forth(&[WRITE_THIRDS[1], WRITE_THIRDS[0], WRITE_THIRDS[2]]);
    assert!(write.findings().iter().any(|finding| finding.requirement == requirement!("DDP-5.3-2")));
    // The order of segments is only a SHOULD, and the offsets are correct.
    let of_offsets = requirement!("DDP-4.3-11");
    assert!(forth(&middle_first).findings().iter().all(|finding| finding.requirement != of_offsets));
}

#[test]
fn the_last_segment() {
    let right = forth(&THIRDS);
    proves(requirement!("DDP-4.1-4"), &forth(&[THIRDS[0], THIRDS[1], SEND_2]), &forth(&[SEND_1, SEND_2]));
    // The Terminate cuts the first Send off.
    let terminate = "4147 00000000 00000002 00000001 00000000 20020000";
    proves(requirement!("DDP-4.1-4"), &forth(&[THIRDS[0], SEND_2]), &forth(&[THIRDS[0], terminate, SEND_2]));
    let early = "4143 00000000 00000000 00000001 00000004 05060708";
    proves(requirement!("DDP-4.1-5"), &forth(&[THIRDS[0], early, THIRDS[2]]), &right);
    proves(requirement!("DDP-4.1-6"), &forth(&[THIRDS[0], THIRDS[2], THIRDS[1]]), &right);
    let beyond_last = "0143 00000000 00000000 00000001 0000000c 05060708";
    proves(requirement!("DDP-4.1-7"), &forth(&[THIRDS[0], THIRDS[1], THIRDS[2], beyond_last]), &right);
    let headless = "fefefefefefefefefefefefefefefefefefefefefefefefe";
    proves(requirement!("DDP-5.2-1"), &forth(&[THIRDS[0], headless, THIRDS[2]]), &right);
    // These octets match version 1 of DDP, but T, Rsvd and RV are wrong.
    let payload = "e106fefefefefefefefefefefefefefefefefefefefefefe";
    let found = forth(&[THIRDS[0], payload, headless, SEND_2]).findings();
    assert!(found.iter().any(|finding| finding.requirement == requirement!("DDP-5.2-1")), "{found:?}");
    // The octets are payload, so they have no wrong DV, Rsvd, RV or Rsv.
    for id in requirements!["DDP-4.1-10", "DDP-4.1-12", "RDMAP-4.1-3", "RDMAP-4.1-4"] {
        assert!(found.iter().all(|finding| finding.requirement != *id), "{id}: {found:?}");
    }
    // A sender that always sends wrong versions sends headers.
    let always = forth(&[&THIRDS[0].replacen("0143", "0283", 1), &THIRDS[2].replacen("4143", "4283", 1)]).findings();
    let wrong = always.iter().filter(|finding| finding.requirement == requirement!("DDP-4.1-12"));
    assert_eq!(wrong.count(), 2, "{always:?}");
    let nothing = ["0143 00000000 00000000 00000001 00000000", "4143 00000000 00000000 00000001 00000000"];
    proves(requirement!("DDP-5.2-8"), &forth(&nothing), &forth(&nothing[1..]));
}

#[test]
fn numbers_of_messages() {
    let right = forth(&[SEND_1, SEND_2]);
    let third = "4143 00000000 00000000 00000003 00000000 2a";
    proves(requirement!("DDP-4.3-6"), &forth(&[SEND_1, third]), &right);
    proves(requirement!("DDP-4.3-7"), &forth(&[SEND_2]), &right);
    // If MSN 1 follows, only the order is wrong.
    let swapped = forth(&[SEND_2, SEND_1]);
    proves(requirement!("DDP-4.3-7"), &forth(&[SEND_2]), &swapped);
    proves(requirement!("DDP-5.3-1"), &swapped, &right);
    // The first MSN is 0, and MSN 1 is the second.
    let zero = "4143 00000000 00000000 00000000 00000000 2a";
    proves(requirement!("DDP-4.3-7"), &forth(&[zero, SEND_1]), &right);
    // The finding does not depend on later octets.
    let mut lost = forth(&[SEND_2]);
    lost.lose(0, &testing::fpdu(&testing::hex(SEND_1)));
    proves(requirement!("DDP-4.3-7"), &lost, &right);
    proves(requirement!("DDP-5.2-7"), &forth(&[SEND_1, SEND_1]), &right);
    proves(requirement!("DDP-5.3-1"), &forth(&[SEND_1, third, SEND_2]), &forth(&[SEND_1, SEND_2, third]));
}

#[test]
fn the_number_space_wraps_and_each_queue_has_its_own() {
    // The capture begins in mid-stream, just before the MSN wraps around. So the expected first MSN
    // is unknown.
    let mut wire = Wire::started();
    wire.lose(0, &testing::fpdu(&testing::hex(SEND_1)));
    for msn in ["fffffffe", "ffffffff", "00000000", "00000001"] {
        wire.send_ulpdu(0, &format!("4143 00000000 00000000 {msn} 00000000 2a"));
    }
    wire.send_ulpdu(0, &READ.replacen("00000001 00000001", "00000001 00000007", 1));
    assert_eq!(wire.findings(), []);
    assert_eq!(forth(&[SEND_1, READ, SEND_2]).findings(), []);
}

#[test]
fn segments_of_an_untagged_message_share_fields() {
    let right = forth(&THIRDS);
    let second = |octets: &str| forth(&[THIRDS[0], octets, THIRDS[2]]);
    let other_opcode = second("0145 00000000 00000000 00000001 00000004 05060708");
    proves(requirement!("DDP-4.3-3"), &other_opcode, &right);
    let other_queue = second("0143 00000000 00000001 00000001 00000004 05060708");
    proves(requirement!("DDP-4.3-5"), &other_queue, &right);
    let third_queue = forth(&[THIRDS[0], THIRDS[1], "4143 00000000 00000003 00000001 00000008 090a0b0c"]);
    proves(requirement!("DDP-4.3-15"), &third_queue, &right);
    let other_msn = second("0143 00000000 00000000 00000002 00000004 05060708");
    proves(requirement!("DDP-4.3-9"), &other_msn, &right);
    let third_msn = forth(&[THIRDS[0], THIRDS[1], "4143 00000000 00000000 00000002 00000008 090a0b0c"]);
    proves(requirement!("DDP-4.3-16"), &third_msn, &right);
}

#[test]
fn segments_of_a_tagged_message_share_fields() {
    let right = forth(&WRITE_THIRDS);
    let second = |octets: &str| forth(&[WRITE_THIRDS[0], octets, WRITE_THIRDS[2]]);
    let other_opcode = second("8142 11223344 0000000000001004 05060708");
    proves(requirement!("DDP-4.2-4"), &other_opcode, &right);
    let reserved_bit = forth(&[WRITE_THIRDS[0], WRITE_THIRDS[1], "c150 11223344 0000000000001008 090a0b0c"]);
    proves(requirement!("DDP-4.2-10"), &reserved_bit, &right);
    let other_stag = second("8140 11223345 0000000000001004 05060708");
    proves(requirement!("DDP-4.2-6"), &other_stag, &right);
    let third_stag = forth(&[WRITE_THIRDS[0], WRITE_THIRDS[1], "c140 11223300 0000000000001008 090a0b0c"]);
    proves(requirement!("DDP-4.2-13"), &third_stag, &right);
}

#[test]
fn a_response_has_the_stag_of_the_sink() {
    let right = exchange(&[
        (0, READ),
        (1, "8142 00000100 0000000000001000 01020304"),
        (1, "c142 00000100 0000000000001004 05060708"),
    ]);
    let other = exchange(&[(0, READ), (1, "c142 00000001 0000000000001000 0102030405060708")]);
    proves(requirement!("DDP-4.2-11"), &other, &right);
    let later = exchange(&[
        (0, READ),
        (1, "8142 00000100 0000000000001000 01020304"),
        (1, "c142 00000101 0000000000001004 05060708"),
    ]);
    proves(requirement!("DDP-4.2-12"), &later, &right);
}

#[test]
fn two_messages_are_not_taken_for_one() {
    // Each Write is complete, and the second Write begins where the first Write ends.
    let next = "c140 11223344 000000000000100c 2a";
    assert_eq!(forth(&[WRITE_THIRDS[0], WRITE_THIRDS[1], WRITE_THIRDS[2], next]).findings(), []);
    // A Read Response comes between two segments of a Send.
    let mut wire = exchange(&[(0, THIRDS[0]), (1, READ)]);
    wire.send_ulpdu(0, "c142 00000100 0000000000001000 0102030405060708");
    wire.send_ulpdu(0, THIRDS[1]);
    wire.send_ulpdu(0, THIRDS[2]);
    assert_eq!(wire.findings(), []);
}

#[test]
fn messages_that_begin_in_a_hole_are_not_checked() {
    let mut wire = forth(&[SEND_1]);
    wire.lose(0, &testing::fpdu(&testing::hex("0143 00000000 00000000 00000002 00000000 01020304")));
    wire.send_ulpdu(0, "0143 00000000 00000000 00000002 00000004 05060708");
    wire.send_ulpdu(0, "4143 00000000 00000000 00000002 00000008 090a0b0c");
    wire.send_ulpdu(0, "4143 00000000 00000000 00000003 00000000 2a");
    assert_eq!(wire.findings(), []);
}
