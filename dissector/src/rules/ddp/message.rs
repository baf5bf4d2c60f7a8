//! DDP messages and their segments: MO and TO, L, MSN and QN, and the fields that have the same
//! value in all segments of a message.
//!
//! A message of another queue or tagged opcode may come between the segments of a message, for
//! example a Send in the middle of a Write. These rules allow that. RFC 5041 section 5.3 requires
//! messages in the order of their submission, and the segments of one message by MO or TO. The
//! section does not require contiguous segments. In the example, the Send begins after the Write,
//! as it was submitted, and the sink delivers it after the Write (section 5.4). A stricter
//! interpretation of section 5.3 would call the example a violation of DDP-5.3-1, but a finding
//! must be certain. In one queue, among Writes, and among Read Responses, a new message ends the
//! previous message. Only the order of tagged segments shows to which message they belong.

use weft_core::RequirementId;
use weft_core::requirement;

use crate::follow::{ConnectionState, Remark, What};
use crate::parse::Unit;
use crate::rules::findings::Findings;
use crate::rules::rule::{Judge, Rule};

pub(super) static OFFSETS: Rule = Rule {
    requirements: &[
        requirement!("DDP-1.2-5"),
        requirement!("DDP-4.2-9"),
        requirement!("DDP-4.3-10"),
        requirement!("DDP-4.3-11"),
        requirement!("DDP-5.2-3"),
        requirement!("DDP-5.2-5"),
        requirement!("DDP-5.2-6"),
        requirement!("DDP-5.3-2"),
    ],
    judge: Judge::Remark(offsets),
};

pub(super) static LAST: Rule = Rule {
    requirements: &[
        requirement!("DDP-4.1-4"),
        requirement!("DDP-4.1-5"),
        requirement!("DDP-4.1-6"),
        requirement!("DDP-4.1-7"),
        requirement!("DDP-5.2-1"),
        requirement!("DDP-5.2-8"),
    ],
    judge: Judge::Remark(last),
};

pub(super) static NUMBERS: Rule = Rule {
    requirements: &[
        requirement!("DDP-4.3-6"),
        requirement!("DDP-4.3-7"),
        requirement!("DDP-5.2-7"),
        requirement!("DDP-5.3-1"),
    ],
    judge: Judge::Remark(numbers),
};

pub(super) static CONSTANT: Rule = Rule {
    requirements: &[
        requirement!("DDP-4.2-4"),
        requirement!("DDP-4.2-6"),
        requirement!("DDP-4.2-10"),
        requirement!("DDP-4.2-13"),
        requirement!("DDP-4.3-3"),
        requirement!("DDP-4.3-5"),
        requirement!("DDP-4.3-9"),
        requirement!("DDP-4.3-15"),
        requirement!("DDP-4.3-16"),
    ],
    judge: Judge::Remark(constant),
};

pub(super) static RESPONSE: Rule =
    Rule { requirements: &[requirement!("DDP-4.2-11"), requirement!("DDP-4.2-12")], judge: Judge::Remark(response) };

fn offsets(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    let name = |tagged| if tagged { "TO" } else { "MO" };
    match remark.what {
        What::FirstOffset(mo) => {
            let ids = [requirement!("DDP-1.2-5"), requirement!("DDP-4.3-10")];
            findings.remarked(&ids, unit, remark, "MO 0 in the first segment of the message", &format!("MO {mo}"));
        }
        What::Offset { tagged, expected, found, missing } => {
            let ids = if tagged {
                [requirement!("DDP-4.2-9"), requirement!("DDP-5.2-6")]
            } else {
                [requirement!("DDP-4.3-11"), requirement!("DDP-5.2-5")]
            };
            let expected = format!("{} {expected:#x}, where the payload before it ends", name(tagged));
            let found = format!("{} {found:#x}", name(tagged));
            findings.remarked(&ids, unit, remark, &expected, &found);
            if missing {
                let found = format!("{found}, and no segment for the bytes between");
                findings.remarked(&[requirement!("DDP-5.2-3")], unit, remark, "all bytes of the message", &found);
            }
        }
        What::ResponseLength { expected, found, .. } if found < u64::from(expected) => {
            let (expected, found) = (format!("{expected} bytes in the Read Response"), format!("{found} bytes"));
            findings.remarked(&[requirement!("DDP-5.2-3")], unit, remark, &expected, &found);
        }
        What::Order { tagged, expected, found } => {
            let (name, ids) = (name(tagged), [requirement!("DDP-5.3-2")]);
            let expected = format!("segments in increasing {name}, here {expected:#x}");
            findings.remarked(&ids, unit, remark, &expected, &format!("{name} {found:#x}"));
        }
        _ => {}
    }
}

fn last(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    match remark.what {
        What::NotLast(opcode) => {
            let found = format!("L=0, and the next message begins ({opcode})");
            findings.remarked(&[requirement!("DDP-4.1-4")], unit, remark, "L=1 in the last segment", &found);
        }
        What::AfterLast { last, found, again } => {
            let (id, expected) = if again {
                (requirement!("DDP-4.1-5"), "L=1 in the last segment only")
            } else if found < last {
                (requirement!("DDP-4.1-6"), "the segment with L=1 after all others of its message")
            } else {
                (requirement!("DDP-4.1-7"), "the highest MO in the segment with L=1")
            };
            let found = format!("a segment with MO {found} after the one with L=1 and MO {last}");
            findings.remarked(&[id], unit, remark, expected, &found);
        }
        What::Headless => {
            let expected = "a DDP header in front of each part of the message";
            let found = "bytes that are not a DDP header, in the middle of a message";
            findings.remarked(&[requirement!("DDP-5.2-1")], unit, remark, expected, found);
        }
        What::EmptySegments(segments) => {
            let found = format!("{segments} segments without payload");
            let ids = [requirement!("DDP-5.2-8")];
            findings.remarked(&ids, unit, remark, "one segment for a message of no bytes", &found);
        }
        _ => {}
    }
}

fn numbers(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    let (ids, expected, queue, found): (&[RequirementId], _, _, _) = match remark.what {
        What::MsnFirst { queue, found } => (&[requirement!("DDP-4.3-7")], 1, queue, found),
        What::MsnStep { queue, expected, found } => (&[requirement!("DDP-4.3-6")], expected, queue, found),
        What::MsnAgain { queue, expected, found } => {
            (&[requirement!("DDP-4.3-6"), requirement!("DDP-5.2-7")], expected, queue, found)
        }
        What::MsnBack { queue, found, .. } => {
            let expected = "messages of a queue in the order of their MSN";
            let found = format!("MSN {found} on queue {queue} after a higher MSN");
            findings.remarked(&[requirement!("DDP-5.3-1")], unit, remark, expected, &found);
            return;
        }
        _ => return,
    };
    let (expected, found) = (format!("MSN {expected} on queue {queue}"), format!("MSN {found}"));
    findings.remarked(ids, unit, remark, &expected, &found);
}

fn constant(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    let (ids, expected, found): (&[RequirementId], _, _) = match remark.what {
        What::MsnChanged { from, to } => (
            &[requirement!("DDP-4.3-9"), requirement!("DDP-4.3-16")],
            format!("MSN {from} as in the segments before"),
            format!("MSN {to}"),
        ),
        What::QnChanged { from, to } => (
            &[requirement!("DDP-4.3-5"), requirement!("DDP-4.3-15")],
            format!("QN {from} as in the segments before"),
            format!("QN {to}"),
        ),
        What::StagChanged { from, to, .. } => (
            &[requirement!("DDP-4.2-6"), requirement!("DDP-4.2-13")],
            format!("STag {from:#010x} as in the segments before"),
            format!("STag {to:#010x}"),
        ),
        What::UlpChanged { tagged: true, from, to } => (
            &[requirement!("DDP-4.2-4"), requirement!("DDP-4.2-10")],
            format!("{:#04x} as in the segments before", from.0),
            format!("{:#04x}", to.0),
        ),
        What::UlpChanged { tagged: false, from, to } => (
            &[requirement!("DDP-4.3-3")],
            format!("{:#04x} and {:#010x} as in the segments before", from.0, from.1),
            format!("{:#04x} and {:#010x}", to.0, to.1),
        ),
        _ => return,
    };
    findings.remarked(ids, unit, remark, &expected, &found);
}

fn response(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    if let What::SinkStag { expected, found, later } = remark.what {
        let id = if later { requirement!("DDP-4.2-12") } else { requirement!("DDP-4.2-11") };
        let (expected, found) = (format!("STag {expected:#010x}, the SinkSTag"), format!("STag {found:#010x}"));
        findings.remarked(&[id], unit, remark, &expected, &found);
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
