//! Tests the rules about the T bit, queue numbers (QN) and opcodes.

use weft_core::requirement;

use crate::testing::{Wire, exchange, proves};

fn one(ulpdu: &str) -> Wire {
    exchange(&[(0, ulpdu)])
}

const SEND: &str = "4143 00000000 00000000 00000001 00000000 2a";
const READ: &str = "4141 00000000 00000001 00000001 00000000
    00000100 0000000000001000 00000008 00000200 0000000000002000";
const TERMINATE: &str = "4147 00000000 00000002 00000001 00000000 20020000";
const IMMEDIATE: &str = "4148 00000000 00000000 00000001 00000000 0123456789abcdef";
const ATOMIC: &str = "414a 00000000 00000001 00000001 00000000 00000000 00000001 00000200 0000000000002000
    0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff";
/// Plays the Atomic Request, and then its answer.
fn answered(response: &str) -> Wire {
    exchange(&[(0, ATOMIC), (1, response)])
}
const ATOMIC_RESPONSE: &str = "414b 00000000 00000003 00000001 00000000 00000001 0000000000000007";

/// Plays `ulpdu` with an inverted T bit.
fn turned(ulpdu: &str) -> Wire {
    let first = if ulpdu.starts_with('c') { "4" } else { "c" };
    one(&format!("{first}{}", &ulpdu[1..]))
}

/// Plays the untagged `ulpdu` on queue `queue`.
fn on_queue(queue: u32, ulpdu: &str) -> Wire {
    one(&format!("{} {queue:08x} {}", &ulpdu[..13], &ulpdu[23..]))
}

#[test]
fn tagged_messages_are_tagged() {
    // This ULPDU is long enough for a tagged and for an untagged header.
    let write = "c140 11223344 0000000000001000 01020304";
    proves(requirement!("RDMAP-4.1-6"), &turned(write), &one(write));
    proves(requirement!("RDMAP-5.1-1"), &turned(write), &one(write));
    proves(requirement!("RDMAP-3.1-4"), &turned(write), &one(write));
    let second = "c140 11223344 0000000000001004 05060708";
    let later = exchange(&[(0, "8140 11223344 0000000000001000 01020304"), (0, &second.replacen('c', "4", 1))]);
    proves(requirement!("RDMAP-5.1-6"), &later, &exchange(&[(0, write), (0, second)]));
    let response = |ulpdu: &str| exchange(&[(0, READ), (1, ulpdu)]);
    let right = response("c142 00000100 0000000000001000 0102030405060708");
    let untagged = response("4142 00000100 0000000000001000 0102030405060708");
    proves(requirement!("RDMAP-4.1-8"), &untagged, &right);
    proves(requirement!("RDMAP-5.2.2-1"), &untagged, &right);
    let later = exchange(&[
        (0, READ),
        (1, "8142 00000100 0000000000001000 01020304"),
        (1, "4142 00000100 0000000000001004 05060708"),
    ]);
    proves(requirement!("RDMAP-5.2.2-10"), &later, &right);
}

#[test]
fn untagged_messages_of_rfc_5040_are_untagged() {
    proves(requirement!("RDMAP-4.1-18"), &turned(SEND), &one(SEND));
    proves(requirement!("RDMAP-5.2.1-1"), &turned(READ), &one(READ));
    proves(requirement!("RDMAP-5.2.1-10"), &turned(READ), &one(READ));
    proves(requirement!("RDMAP-5.4-1"), &turned(TERMINATE), &one(TERMINATE));
    proves(requirement!("RDMAP-5.4-7"), &turned(TERMINATE), &one(TERMINATE));
    let solicited = "4145 00000000 00000000 00000001 00000000 2a";
    proves(requirement!("RDMAP-4.1-19"), &turned(solicited), &one(solicited));
    proves(requirement!("RDMAP-5.3-1"), &turned(solicited), &one(solicited));
    let invalidate = "4144 00000100 00000000 00000001 00000000 2a";
    proves(requirement!("RDMAP-5.3-12"), &turned(invalidate), &one(invalidate));
}

#[test]
fn each_opcode_of_rfc_5040_has_its_queue() {
    proves(requirement!("RDMAP-4.1-7"), &on_queue(2, READ), &one(READ));
    proves(requirement!("RDMAP-4.1-9"), &on_queue(1, SEND), &one(SEND));
    let invalidate = "4144 00000100 00000000 00000001 00000000 2a";
    proves(requirement!("RDMAP-4.1-10"), &on_queue(1, invalidate), &one(invalidate));
    let solicited = "4145 00000000 00000000 00000001 00000000 2a";
    proves(requirement!("RDMAP-4.1-11"), &on_queue(2, solicited), &one(solicited));
    let both = "4146 00000100 00000000 00000001 00000000 2a";
    proves(requirement!("RDMAP-4.1-12"), &on_queue(9, both), &one(both));
    proves(requirement!("RDMAP-4.1-13"), &on_queue(0, TERMINATE), &one(TERMINATE));
    proves(requirement!("RDMAP-5.3-15"), &on_queue(4, SEND), &one(SEND));
    proves(requirement!("RDMAP-5.4-8"), &on_queue(1, TERMINATE), &one(TERMINATE));
}

#[test]
fn queues_and_the_messages_on_them() {
    proves(requirement!("DDP-4.3-14"), &on_queue(5, SEND), &one(SEND));
    proves(requirement!("RDMAP-3.1-2"), &on_queue(2, SEND), &one(SEND));
    proves(requirement!("RDMAP-4.1-21"), &on_queue(0, READ), &one(READ));
    proves(requirement!("RDMAP-5.2.1-11"), &on_queue(0, READ), &one(READ));
    proves(requirement!("RDMAP-5.2.1-12"), &on_queue(3, READ), &one(READ));
    proves(requirement!("RDMAP-7306.4.1-7"), &on_queue(3, SEND), &answered(ATOMIC_RESPONSE));
}

#[test]
fn opcodes_of_untagged_messages() {
    // If QN and opcode do not fit, the QN is wrong.
    let reserved = one("414c 00000000 00000000 00000001 00000000 2a");
    proves(requirement!("RDMAP-4.1-20"), &reserved, &one(SEND));
    proves(requirement!("RDMAP-4.1-20"), &reserved, &on_queue(2, SEND));
    proves(requirement!("RDMAP-4.1-14"), &reserved, &one(SEND));
}

#[test]
fn untagged_messages_of_rfc_7306_are_untagged() {
    proves(requirement!("RDMAP-7306.6.3-5"), &turned(IMMEDIATE), &one(IMMEDIATE));
    let solicited = IMMEDIATE.replacen("4148", "4149", 1);
    proves(requirement!("RDMAP-7306.6.3-6"), &turned(&solicited), &one(&solicited));
    proves(requirement!("RDMAP-7306.5.2.1-6"), &turned(ATOMIC), &one(ATOMIC));
    proves(requirement!("RDMAP-7306.5.2.1-14"), &turned(ATOMIC), &one(ATOMIC));
    let tagged = answered(&ATOMIC_RESPONSE.replacen('4', "c", 1));
    let right = answered(ATOMIC_RESPONSE);
    proves(requirement!("RDMAP-7306.5.2.2-2"), &tagged, &right);
    proves(requirement!("RDMAP-7306.5.2.2-6"), &tagged, &right);
    proves(requirement!("RDMAP-7306.5-5"), &tagged, &right);
}

#[test]
fn each_request_of_rfc_7306_has_its_queue() {
    proves(requirement!("RDMAP-7306.4.1-1"), &on_queue(1, IMMEDIATE), &one(IMMEDIATE));
    let solicited = IMMEDIATE.replacen("4148", "4149", 1);
    proves(requirement!("RDMAP-7306.4.1-2"), &on_queue(1, &solicited), &one(&solicited));
    proves(requirement!("RDMAP-7306.6.3-8"), &on_queue(2, IMMEDIATE), &one(IMMEDIATE));
    proves(requirement!("RDMAP-7306.4.1-3"), &on_queue(0, ATOMIC), &one(ATOMIC));
    proves(requirement!("RDMAP-7306.5.2-1"), &on_queue(3, ATOMIC), &one(ATOMIC));
    proves(requirement!("RDMAP-7306.5.2.1-17"), &on_queue(2, ATOMIC), &one(ATOMIC));
    proves(requirement!("RDMAP-7306.5.2.1-18"), &on_queue(0, ATOMIC), &one(ATOMIC));
}

#[test]
fn atomic_responses_have_queue_3() {
    let right = answered(ATOMIC_RESPONSE);
    let on = |queue| answered(&ATOMIC_RESPONSE.replacen("00000003", queue, 1));
    proves(requirement!("RDMAP-7306.4.1-4"), &on("00000001"), &right);
    proves(requirement!("RDMAP-7306.4.1-10"), &on("00000001"), &right);
    proves(requirement!("RDMAP-7306.5.2-2"), &on("00000000"), &right);
    proves(requirement!("RDMAP-7306.5.2.2-7"), &on("00000002"), &right);
    proves(requirement!("RDMAP-7306.5.2.2-8"), &on("00000004"), &right);
}

#[test]
fn opcodes_for_experiments_are_only_noted() {
    let finding = one("414f 00000000 00000000 00000001 00000000 2a").findings();
    let of = requirement!("RDMAP-4.1-14");
    assert!(finding.iter().any(|f| f.requirement == of && f.severity == weft_core::requirement::Severity::Note));
}
