//! Checks DDP messages and their segments: the fields MO, TO, L, MSN and QN, and the fields that
//! have the same value in all segments of a message.
//!
//! A message of another queue or of another tagged opcode can come between the segments of a
//! message, for example a Send in the middle of a Write. These rules allow such messages. RFC 5041
//! section 5.3 requires messages in the order of their submission, and the segments of one message
//! in the order of MO or TO. Section 5.3 does not require that the segments of a message are
//! contiguous. In the example, the Send was submitted after the Write. The first segment of the
//! Send comes after the first segment of the Write, and the sink delivers the Send after the Write
//! (section 5.4). A stricter interpretation of section 5.3 would call the example a violation of
//! DDP-5.3-1. But a finding has to be certain, so there is no finding.
//!
//! In one queue, a new message ends the previous message. A new Write ends the previous Write, and
//! a new Read Response ends the previous Read Response. Tagged segments have no message number:
//! only their order shows to which message they belong.

use weft_core::requirement;

use crate::direction::Direction;
use crate::follow::{ConnectionState, Remark, RemarkKind};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static OFFSETS: Rule = Check::Remark(offsets).covers(requirements![
    "DDP-1.2-5",
    "DDP-4.2-9",
    "DDP-4.3-10",
    "DDP-4.3-11",
    "DDP-5.2-3",
    "DDP-5.2-5",
    "DDP-5.2-6",
    "DDP-5.3-2"
]);

pub(super) static LAST: Rule = Check::Remark(last).covers(requirements![
    "DDP-4.1-4",
    "DDP-4.1-5",
    "DDP-4.1-6",
    "DDP-4.1-7",
    "DDP-5.2-1",
    "DDP-5.2-8"
]);

pub(super) static NUMBERS: Rule = Check::Remark(numbers).covers(requirements!["DDP-4.3-6", "DDP-5.2-7", "DDP-5.3-1"]);

pub(super) static UNEXPLAINED: Rule = Check::End(unexplained).covers(requirements!["DDP-4.3-7", "DDP-5.2-3"]);

pub(super) static CONSTANT: Rule = Check::Remark(constant).covers(requirements![
    "DDP-4.2-4",
    "DDP-4.2-6",
    "DDP-4.2-10",
    "DDP-4.2-13",
    "DDP-4.3-3",
    "DDP-4.3-5",
    "DDP-4.3-9",
    "DDP-4.3-15",
    "DDP-4.3-16"
]);

pub(super) static RESPONSE: Rule = Check::Remark(response).covers(requirements!["DDP-4.2-11", "DDP-4.2-12"]);

fn name(tagged: bool) -> &'static str {
    if tagged { "TO" } else { "MO" }
}

fn offsets(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    match remark.kind {
        RemarkKind::FirstOffset(mo) => {
            let ids = requirements!["DDP-1.2-5", "DDP-4.3-10"];
            findings.report_remark(ids, unit, remark, "MO 0 in the first segment of the message", &format!("MO {mo}"));
        }
        // The function `unexplained` reports missing segments.
        RemarkKind::Offset { tagged, expected, found, missing: false } => {
            let of_to = requirements!["DDP-4.2-9", "DDP-5.2-6"];
            let ids = if tagged { of_to } else { requirements!["DDP-4.3-11", "DDP-5.2-5"] };
            let expected = format!("{} {expected:#x}, the end of the previous segment's payload", name(tagged));
            let found = format!("{} {found:#x}", name(tagged));
            findings.report_remark(ids, unit, remark, &expected, &found);
        }
        RemarkKind::ResponseLength { expected, found, .. } if found < u64::from(expected) => {
            let (expected, found) = (format!("{expected} bytes in the Read Response"), format!("{found} bytes"));
            findings.report_remark(requirements!["DDP-5.2-3"], unit, remark, &expected, &found);
        }
        RemarkKind::Order { tagged, expected, found } => {
            let (name, ids) = (name(tagged), requirements!["DDP-5.3-2"]);
            let expected = format!("segments in increasing order of {name}, here with {name} {expected:#x}");
            findings.report_remark(ids, unit, remark, &expected, &format!("{name} {found:#x}"));
        }
        _ => {}
    }
}

fn last(state: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    match remark.kind {
        // A Terminate can cut a message off.
        RemarkKind::NoLastSegment(opcode) if state.traffic.directions[remark.direction].terminate.is_none() => {
            let found = format!("L=0 in the last segment of the {opcode}, although the next message follows");
            findings.report_remark(requirements!["DDP-4.1-4"], unit, remark, "L=1 in the last segment", &found);
        }
        RemarkKind::AfterLast { last, found, again } => {
            let (id, expected) = if again {
                (requirement!("DDP-4.1-5"), "L=1 in the last segment only")
            } else if found < last {
                (requirement!("DDP-4.1-6"), "the segment with L=1 after all other segments of its message")
            } else {
                (requirement!("DDP-4.1-7"), "the highest MO in the segment with L=1")
            };
            let found = format!("a segment with MO {found} after the segment with L=1 and MO {last}");
            findings.report_remark(&[id], unit, remark, expected, &found);
        }
        RemarkKind::NoHeader => {
            let expected = "a DDP header in front of each part of the message";
            let found = "bytes that are not a DDP header, in the middle of a message";
            findings.report_remark(requirements!["DDP-5.2-1"], unit, remark, expected, found);
        }
        RemarkKind::EmptySegments(segments) => {
            let found = format!("{segments} segments without payload");
            let ids = requirements!["DDP-5.2-8"];
            findings.report_remark(ids, unit, remark, "one segment for a message without payload", &found);
        }
        _ => {}
    }
}

fn numbers(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    let (ids, expected, queue, found) = match remark.kind {
        RemarkKind::MsnGap { queue, expected, found } => (requirements!["DDP-4.3-6"], expected, queue, found),
        RemarkKind::MsnRepeated { queue, expected, found } => {
            (requirements!["DDP-4.3-6", "DDP-5.2-7"], expected, queue, found)
        }
        RemarkKind::MsnOutOfOrder { queue, found, .. } => {
            let expected = "messages of a queue in the order of their MSN";
            let found = format!("MSN {found} on queue {queue} after a higher MSN");
            findings.report_remark(requirements!["DDP-5.3-1"], unit, remark, expected, &found);
            return;
        }
        _ => return,
    };
    let (expected, found) = (format!("MSN {expected} on queue {queue}"), format!("MSN {found}"));
    findings.report_remark(ids, unit, remark, &expected, &found);
}

/// Reports queues whose first MSN is not 1, and messages with a gap between two segments. If the
/// sender sent the message with MSN 1, or the missing segment, too late, only the order is wrong.
/// Only the complete direction shows this, so this rule runs at the end.
fn unexplained(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, side) in Direction::BOTH.into_iter().zip(&state.traffic.directions) {
        for (queue, faults) in side.messages.unexplained_faults() {
            if let Some((found, header)) = faults.first_msn {
                let (expected, found) = (format!("MSN 1 on queue {queue}"), format!("MSN {found}"));
                findings.report_in_frame(requirement!("DDP-4.3-7"), direction, header.part(10..14), &expected, found);
            }
            if let Some(gap) = faults.gap {
                let (name, expected, found) = (name(gap.tagged), gap.expected, gap.found);
                let expected = format!("all bytes of the message, here with {name} {expected:#x}");
                let found = format!("{name} {found:#x}, and no segment with the bytes in between");
                findings.report_in_frame(requirement!("DDP-5.2-3"), direction, gap.octets, &expected, found);
            }
        }
    }
}

fn constant(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    let (ids, expected, found) = match remark.kind {
        RemarkKind::MsnChanged { from, to } => (
            requirements!["DDP-4.3-9", "DDP-4.3-16"],
            format!("MSN {from}, as in the earlier segments"),
            format!("MSN {to}"),
        ),
        RemarkKind::QnChanged { from, to } => (
            requirements!["DDP-4.3-5", "DDP-4.3-15"],
            format!("QN {from}, as in the earlier segments"),
            format!("QN {to}"),
        ),
        RemarkKind::StagChanged { from, to, .. } => (
            requirements!["DDP-4.2-6", "DDP-4.2-13"],
            format!("STag {from:#010x}, as in the earlier segments"),
            format!("STag {to:#010x}"),
        ),
        RemarkKind::UlpChanged { tagged: true, from, to } => (
            requirements!["DDP-4.2-4", "DDP-4.2-10"],
            format!("RDMAP's control byte {:#04x}, as in the earlier segments", from.0),
            format!("RDMAP's control byte {:#04x}", to.0),
        ),
        RemarkKind::UlpChanged { tagged: false, from, to } => (
            requirements!["DDP-4.3-3"],
            format!("RDMAP's bytes {:#04x} and {:#010x}, as in the earlier segments", from.0, from.1),
            format!("RDMAP's bytes {:#04x} and {:#010x}", to.0, to.1),
        ),
        _ => return,
    };
    findings.report_remark(ids, unit, remark, &expected, &found);
}

fn response(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    if let RemarkKind::SinkStag { expected, found, later } = remark.kind {
        let id = if later { requirement!("DDP-4.2-12") } else { requirement!("DDP-4.2-11") };
        let expected = format!("STag {expected:#010x}, the SinkSTag of the Read Request");
        let found = format!("STag {found:#010x}");
        findings.report_remark(&[id], unit, remark, &expected, &found);
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
