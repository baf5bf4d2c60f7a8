//! Checks the T bit and the QN of each opcode. The correct values are in RFC 5040 section 4.1,
//! Figure 4, and in RFC 7306 section 4.1, Figure 2.

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit, queue_of};
use crate::rules::rule::{Check, Findings, Rule};

/// The requirements for one opcode. A message with a wrong T bit violates `tagged`, and a message
/// with a wrong QN violates `queue`. A message with any of these two errors also violates `either`.
struct Row {
    tagged: &'static [RequirementId],
    queue: &'static [RequirementId],
    either: &'static [RequirementId],
}

const SENDS_TAGGED: &[RequirementId] = requirements!["RDMAP-5.3-1", "RDMAP-5.3-12"];
const SENDS_QUEUE: &[RequirementId] = requirements!["RDMAP-5.3-15"];
const IMMEDIATE_TAGGED: &[RequirementId] = requirements!["RDMAP-7306.6.3-5", "RDMAP-7306.6.3-6"];
const IMMEDIATE_QUEUE: &[RequirementId] = requirements!["RDMAP-7306.6.3-8"];

/// One row for each of RDMAP's opcodes 0 to 11.
static ROWS: [Row; 12] = [
    Row {
        tagged: requirements!["RDMAP-5.1-1", "RDMAP-5.1-6", "RDMAP-3.1-4"],
        queue: &[],
        either: requirements!["RDMAP-4.1-6"],
    },
    Row {
        tagged: requirements!["RDMAP-5.2.1-1", "RDMAP-5.2.1-10"],
        queue: requirements!["RDMAP-5.2.1-11", "RDMAP-5.2.1-12"],
        either: requirements!["RDMAP-4.1-7"],
    },
    Row {
        tagged: requirements!["RDMAP-5.2.2-1", "RDMAP-5.2.2-10", "RDMAP-3.1-4"],
        queue: &[],
        either: requirements!["RDMAP-4.1-8"],
    },
    Row { tagged: SENDS_TAGGED, queue: SENDS_QUEUE, either: requirements!["RDMAP-4.1-9"] },
    Row { tagged: SENDS_TAGGED, queue: SENDS_QUEUE, either: requirements!["RDMAP-4.1-10"] },
    Row { tagged: SENDS_TAGGED, queue: SENDS_QUEUE, either: requirements!["RDMAP-4.1-11"] },
    Row { tagged: SENDS_TAGGED, queue: SENDS_QUEUE, either: requirements!["RDMAP-4.1-12"] },
    Row {
        tagged: requirements!["RDMAP-5.4-1", "RDMAP-5.4-7"],
        queue: requirements!["RDMAP-5.4-8"],
        either: requirements!["RDMAP-4.1-13"],
    },
    Row { tagged: IMMEDIATE_TAGGED, queue: IMMEDIATE_QUEUE, either: requirements!["RDMAP-7306.4.1-1"] },
    Row { tagged: IMMEDIATE_TAGGED, queue: IMMEDIATE_QUEUE, either: requirements!["RDMAP-7306.4.1-2"] },
    Row {
        tagged: requirements!["RDMAP-7306.5.2.1-6", "RDMAP-7306.5.2.1-14"],
        queue: requirements!["RDMAP-7306.5.2-1", "RDMAP-7306.5.2.1-17", "RDMAP-7306.5.2.1-18"],
        either: requirements!["RDMAP-7306.4.1-3"],
    },
    Row {
        tagged: requirements!["RDMAP-7306.5.2.2-2", "RDMAP-7306.5.2.2-6"],
        queue: requirements!["RDMAP-7306.4.1-10", "RDMAP-7306.5.2-2", "RDMAP-7306.5.2.2-7", "RDMAP-7306.5.2.2-8"],
        either: requirements!["RDMAP-7306.4.1-4", "RDMAP-7306.5-5"],
    },
];

pub(super) static QUEUES: Rule = Check::Header(queues).covers(requirements![
    "DDP-4.3-14",
    "RDMAP-3.1-2",
    "RDMAP-3.1-4",
    "RDMAP-4.1-6",
    "RDMAP-4.1-7",
    "RDMAP-4.1-8",
    "RDMAP-4.1-9",
    "RDMAP-4.1-10",
    "RDMAP-4.1-11",
    "RDMAP-4.1-12",
    "RDMAP-4.1-13",
    "RDMAP-4.1-18",
    "RDMAP-4.1-19",
    "RDMAP-4.1-21",
    "RDMAP-5.1-1",
    "RDMAP-5.1-6",
    "RDMAP-5.2.1-1",
    "RDMAP-5.2.1-10",
    "RDMAP-5.2.1-11",
    "RDMAP-5.2.1-12",
    "RDMAP-5.2.2-1",
    "RDMAP-5.2.2-10",
    "RDMAP-5.3-1",
    "RDMAP-5.3-12",
    "RDMAP-5.3-15",
    "RDMAP-5.4-1",
    "RDMAP-5.4-7",
    "RDMAP-5.4-8",
    "RDMAP-7306.4.1-1",
    "RDMAP-7306.4.1-2",
    "RDMAP-7306.4.1-3",
    "RDMAP-7306.4.1-4",
    "RDMAP-7306.4.1-7",
    "RDMAP-7306.4.1-10",
    "RDMAP-7306.5-5",
    "RDMAP-7306.5.2-1",
    "RDMAP-7306.5.2-2",
    "RDMAP-7306.5.2.1-6",
    "RDMAP-7306.5.2.1-14",
    "RDMAP-7306.5.2.1-17",
    "RDMAP-7306.5.2.1-18",
    "RDMAP-7306.5.2.2-2",
    "RDMAP-7306.5.2.2-6",
    "RDMAP-7306.5.2.2-7",
    "RDMAP-7306.5.2.2-8",
    "RDMAP-7306.6.3-5",
    "RDMAP-7306.6.3-6",
    "RDMAP-7306.6.3-8"
]);

pub(super) static RESERVED: Rule =
    Check::Opcode(0xf000, reserved).covers(requirements!["RDMAP-4.1-14", "RDMAP-4.1-20"]);

const OCTETS: std::ops::Range<usize> = ULPDU_AT..ULPDU_AT + 2;

fn queues(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let opcode = view.opcode();
    let (Some(row), Some(should)) = (ROWS.get(usize::from(opcode.0)), opcode.is_tagged()) else { return };
    let is_of_5040 = opcode.0 <= Opcode::TERMINATE.0;
    let tagged = view.segment.control().tagged();
    if should != tagged {
        let expected = format!("T={} in {opcode}", u8::from(should));
        let found = format!("T={}", u8::from(tagged));
        let common: &[_] = if is_of_5040 { requirements!["RDMAP-4.1-18", "RDMAP-4.1-19"] } else { &[] };
        for ids in [common, row.tagged, row.either] {
            findings.report_each(ids, unit, OCTETS, &expected, &found);
        }
        return;
    }
    let Segment::Untagged(header, _) = view.segment else { return };
    let (qn, Some(queue)) = (header.qn.get(), queue_of(opcode)) else { return };
    if qn == queue {
        return;
    }
    let (expected, found) = (format!("QN {queue} for {opcode}"), format!("QN {qn}"));
    let range = ULPDU_AT + 6..ULPDU_AT + 10;
    let common: &[_] = if is_of_5040 {
        requirements!["DDP-4.3-14", "RDMAP-3.1-2", "RDMAP-4.1-21"]
    } else {
        requirements!["DDP-4.3-14"]
    };
    for ids in [common, row.queue, row.either] {
        findings.report_each(ids, unit, range.clone(), &expected, &found);
    }
    if qn == 3 {
        let expected = "an Atomic Response on queue 3";
        findings.report(requirement!("RDMAP-7306.4.1-7"), unit, OCTETS, expected, opcode.to_string());
    }
}

fn reserved(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let opcode = view.opcode();
    let range = ULPDU_AT + 1..ULPDU_AT + 2;
    let (expected, found) = ("an opcode that RFC 5040 or RFC 7306 assigns", format!("opcode {:#x}", opcode.0));
    if opcode.0 == 0xf {
        // RFC 6580 section 3.4 assigns opcode 0xF to experiments, so the finding is a note.
        return findings.as_note().report(requirement!("RDMAP-4.1-14"), unit, range, expected, found);
    }
    findings.report_each(RESERVED.requirements, unit, range, expected, &found);
}

#[cfg(test)]
#[path = "opcode_tests.rs"]
mod tests;
