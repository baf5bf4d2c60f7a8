//! Checks task management, logins, logouts and NOP-Outs.

use weft_core::requirement;

use super::sent::{SENDS, Sent, octet};
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, Unit};
use crate::rules::rule::{Check, Findings, Rule};
use crate::upper::iser::{Content, Opcode};

/// The task tag that names no task.
const NO_TAG: u32 = 0xffff_ffff;
/// The function TASK REASSIGN.
const REASSIGN: u8 = 8;

pub(super) static EMPTY: Rule = Check::Opcode(SENDS, empty).covers(requirements![
    "ISER-7143.11.5.2-1",
    "ISER-7143.11.6.2-1",
    "ISER-7143.11.14.2-1",
    "ISER-7143.11.15.2-1"
]);

fn empty(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    for (opcode, id) in [
        (Opcode::TASK_REQUEST, requirement!("ISER-7143.11.5.2-1")),
        (Opcode::TASK_RESPONSE, requirement!("ISER-7143.11.6.2-1")),
        (Opcode::LOGOUT_REQUEST, requirement!("ISER-7143.11.14.2-1")),
        (Opcode::LOGOUT_RESPONSE, requirement!("ISER-7143.11.15.2-1")),
    ] {
        let Some(pdu) = sent.pdu(opcode) else { continue };
        if pdu.additional_len() != 0 || pdu.data_len() != 0 {
            let found = format!("TotalAHSLength {}, DataSegmentLength {}", octet(pdu, 4), pdu.data_len());
            sent.report_bhs(findings, id, 4..8, "TotalAHSLength 0, DataSegmentLength 0", found);
        }
    }
}

pub(super) static TASKS: Rule =
    Check::Opcode(SENDS, tasks).covers(requirements!["ISER-7143.11.5.1-1", "ISER-7143.11.5.4-1"]);

fn tasks(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Some(pdu) = sent.pdu(Opcode::TASK_REQUEST) else { return };
    let Content::TaskRequest { function, referenced_tag, .. } = pdu.content() else { return };
    if function == REASSIGN && !pdu.is_immediate() {
        let expected = "I, because the function is TASK REASSIGN";
        sent.report_bhs(findings, requirement!("ISER-7143.11.5.1-1"), 0..1, expected, "I 0");
    }
    // RFC 7144 adds functions from 9 on, and one of them names a task.
    if (2..REASSIGN).contains(&function) && referenced_tag != NO_TAG {
        let expected = format!("Referenced Task Tag {NO_TAG:#010x}, because function {function} names no task");
        let found = format!("{referenced_tag:#010x}");
        sent.report_bhs(findings, requirement!("ISER-7143.11.5.4-1"), 20..24, &expected, found);
    }
}

pub(super) static LOGIN: Rule = Check::Opcode(SENDS, login).covers(requirements![
    "ISER-7143.11.12.2-1",
    "ISER-7143.11.12.4-1",
    "ISER-7143.11.13.7-1"
]);

fn login(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    for (opcode, id) in [
        (Opcode::LOGIN_REQUEST, requirement!("ISER-7143.11.12.2-1")),
        (Opcode::LOGIN_RESPONSE, requirement!("ISER-7143.11.13.7-1")),
    ] {
        let Some(pdu) = sent.pdu(opcode) else { continue };
        if octet(pdu, 1) & 0xc0 == 0xc0 {
            sent.report_bhs(findings, id, 1..2, "T 0, because C is 1", "T 1 and C 1");
        }
    }
    let Some(pdu) = sent.pdu(Opcode::LOGIN_REQUEST) else { return };
    let (max, min) = (octet(pdu, 2), octet(pdu, 3));
    if (max, min) != (0, 0) {
        let found = format!("Version-max {max}, Version-min {min}");
        let expected = "Version-max 0, Version-min 0";
        sent.report_bhs(findings, requirement!("ISER-7143.11.12.4-1"), 2..4, expected, found);
    }
}

pub(super) static PING: Rule = Check::Opcode(SENDS, ping).covers(requirements!["ISER-7143.11.18.1-1"]);

fn ping(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Some(pdu) = sent.pdu(Opcode::NOP_OUT) else { return };
    if pdu.task_tag() == NO_TAG && !pdu.is_immediate() {
        let expected = "I, because the NOP-Out has no Initiator Task Tag";
        sent.report_bhs(findings, requirement!("ISER-7143.11.18.1-1"), 0..1, expected, "I 0");
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::super::testing::{NO_BUFFERS, NOP_OUT, PLAIN, after_login, is_clean, pdu};
    use crate::testing::{Wire, proves};

    /// A PDU with this text as its BHS.
    fn one(direction: usize, bhs: &str) -> Wire {
        after_login(&[(direction, PLAIN, pdu(NO_BUFFERS, bhs).as_str())])
    }

    /// A BHS with this first word, this length word, and this word at octet 20.
    fn bhs(first: &str, lengths: &str, word: &str) -> String {
        format!("{first} {lengths} 0000000000000000 07000001 {word} 00000001 00000001 {}", "00".repeat(16))
    }

    #[test]
    fn management_has_no_data() {
        for (id, direction, first) in [
            (requirement!("ISER-7143.11.5.2-1"), 0, "42850000"),
            (requirement!("ISER-7143.11.6.2-1"), 1, "22800000"),
            (requirement!("ISER-7143.11.14.2-1"), 0, "46800000"),
            (requirement!("ISER-7143.11.15.2-1"), 1, "26800000"),
        ] {
            let good = one(direction, &bhs(first, "00000000", "ffffffff"));
            is_clean(&good);
            let with_data = format!("{} 01020304", bhs(first, "00000004", "ffffffff"));
            proves(id, &one(direction, &with_data), &good);
            let with_segment = format!("{} 00010100", bhs(first, "01000000", "ffffffff"));
            proves(id, &one(direction, &with_segment), &good);
        }
    }

    #[test]
    fn functions_and_their_tasks() {
        let reset = one(0, &bhs("42850000", "00000000", "ffffffff"));
        proves(requirement!("ISER-7143.11.5.4-1"), &one(0, &bhs("42850000", "00000000", "07000000")), &reset);
        // ABORT TASK and QUERY TASK name a task.
        for first in ["42810000", "42890000"] {
            let named = one(0, &bhs(first, "00000000", "07000000"));
            is_clean(&named);
        }
        let immediate = one(0, &bhs("42880000", "00000000", "07000000"));
        is_clean(&immediate);
        proves(requirement!("ISER-7143.11.5.1-1"), &one(0, &bhs("02880000", "00000000", "07000000")), &immediate);
    }

    #[test]
    fn flags_and_versions_of_a_login() {
        let request = |first: &str| one(0, &bhs(first, "00000000", "00000000"));
        let good = request("43870000");
        is_clean(&good);
        proves(requirement!("ISER-7143.11.12.2-1"), &request("43c70000"), &request("43440000"));
        proves(requirement!("ISER-7143.11.12.4-1"), &request("43870100"), &good);
        proves(requirement!("ISER-7143.11.12.4-1"), &request("43870001"), &good);
        let response = |first: &str| one(1, &bhs(first, "00000000", "00000000"));
        proves(requirement!("ISER-7143.11.13.7-1"), &response("23c70000"), &response("23870000"));
    }

    #[test]
    fn a_ping_without_a_tag_is_immediate() {
        let good = one(0, NOP_OUT);
        is_clean(&good);
        let bad = NOP_OUT.replacen("4080", "0080", 1);
        proves(requirement!("ISER-7143.11.18.1-1"), &one(0, &bad), &good);
    }
}
