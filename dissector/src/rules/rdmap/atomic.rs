//! Checks atomic operations (RFC 7306 section 5).

use weft_core::requirement;
use weft_core::wire::rdmap::{AtomicOpcode, RawAtomicRequest};
use zerocopy::FromBytes;

use crate::follow::{ConnectionState, Remark, RemarkKind};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

const REQUEST: u16 = 1 << 10;
/// Offset of the atomic header in the FPDU, from `ULPDU_Length`.
const AT: usize = ULPDU_AT + 18;

pub(super) static FIELDS: Rule = Check::Opcode(REQUEST, fields).covers(requirements![
    "RDMAP-7306.5.2.1-2",
    "RDMAP-7306.5.2.1-3",
    "RDMAP-7306.5.2.1-4",
    "RDMAP-7306.5.2.1-22",
    "RDMAP-7306.5.2.1-23"
]);

pub(super) static ALIGNMENT: Rule = Check::Opcode(REQUEST, alignment).covers(requirements![
    "RDMAP-7306.5.1.1-3",
    "RDMAP-7306.5.1.2-4",
    "RDMAP-7306.5.2.1-13"
]);

pub(super) static RESPONSE: Rule = Check::Remark(response).covers(requirements![
    "RDMAP-7306.5.1.1-7",
    "RDMAP-7306.5.1.2-8",
    "RDMAP-7306.5.2.2-3",
    "RDMAP-7306.5.2.2-11",
    "RDMAP-7306.5.4-11",
    "RDMAP-7306.7-10",
    "RDMAP-7306.7-14"
]);

fn request<'a>(view: &SegmentView<'a>) -> Option<&'a RawAtomicRequest> {
    RawAtomicRequest::ref_from_bytes(view.payload.all()?).ok()
}

fn fields(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(raw) = request(view) else { return };
    if raw.reserved() != 0 {
        let found = format!("{:#09x}", raw.reserved());
        findings.report(requirement!("RDMAP-7306.5.2.1-2"), unit, AT..AT + 4, "28 reserved bits of zero", found);
    }
    let (data, mask) = (raw.compare_data.get(), raw.compare_mask.get());
    match raw.opcode() {
        AtomicOpcode::FETCH_ADD => {
            if data != 0 {
                let id = requirement!("RDMAP-7306.5.2.1-22");
                let expected = "Compare Data of zero in a FetchAdd";
                findings.report(id, unit, AT + 36..AT + 44, expected, format!("{data:#018x}"));
            }
            if mask != u64::MAX {
                let id = requirement!("RDMAP-7306.5.2.1-23");
                let expected = "Compare Mask of all ones in a FetchAdd";
                findings.report(id, unit, AT + 44..AT + 52, expected, format!("{mask:#018x}"));
            }
        }
        AtomicOpcode::CMP_SWAP => {}
        AtomicOpcode(other) => {
            // The opcode is not assigned. The operands show whether FetchAdd or CmpSwap was meant.
            let (id, expected) = if data == 0 && mask == u64::MAX {
                (requirement!("RDMAP-7306.5.2.1-3"), "AOpCode 0 (FetchAdd)")
            } else {
                (requirement!("RDMAP-7306.5.2.1-4"), "AOpCode 2 (CmpSwap)")
            };
            findings.report(id, unit, AT + 3..AT + 4, expected, format!("AOpCode {other}"));
        }
    }
}

/// Reports a TO that is not a multiple of eight. The finding is a note, because the capture does
/// not show the buffer's address in memory.
fn alignment(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(raw) = request(view) else { return };
    let offset = raw.remote_tagged_offset.get();
    if offset % 8 == 0 {
        return;
    }
    let by_operation = match raw.opcode() {
        AtomicOpcode::FETCH_ADD => requirements!["RDMAP-7306.5.1.1-3"],
        AtomicOpcode::CMP_SWAP => requirements!["RDMAP-7306.5.1.2-4"],
        _ => &[],
    };
    let expected = "a TO that is a multiple of 8, unless the buffer has the same misalignment as the TO";
    let found = format!("TO {offset:#x}");
    for ids in [by_operation, requirements!["RDMAP-7306.5.2.1-13"]] {
        findings.as_note().report_each(ids, unit, AT + 12..AT + 20, expected, &found);
    }
}

fn response(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    match remark.kind {
        RemarkKind::Identifier { expected, found } => {
            let (expected, found) = (format!("Request Identifier {expected}"), format!("Request Identifier {found}"));
            findings.report_remark(requirements!["RDMAP-7306.5.2.2-3"], unit, remark, &expected, &found);
        }
        RemarkKind::ResponseOrder { atomic, earlier_atomic } => {
            let (ids, expected) = match (atomic, earlier_atomic) {
                (true, true) => (
                    requirements!["RDMAP-7306.5.2.2-11", "RDMAP-7306.5.4-11"],
                    "Atomic Responses in the order of the Requests",
                ),
                (false, true) => {
                    (requirements!["RDMAP-7306.7-10"], "the Atomic Response before the Response to the later Read")
                }
                (true, false) => (
                    requirements!["RDMAP-7306.7-14"],
                    "the Read Response before the Response to the later Atomic Request",
                ),
                (false, false) => return,
            };
            findings.report_remark(ids, unit, remark, expected, "the response to a later request");
        }
        RemarkKind::MisalignedAnswered { fetch_add, offset } => {
            let id = if fetch_add { requirement!("RDMAP-7306.5.1.1-7") } else { requirement!("RDMAP-7306.5.1.2-8") };
            let expected = "a Terminate, unless the buffer has the same misalignment as the TO";
            let found = format!("a response, with TO {offset:#x}");
            findings.as_note().report_remark(&[id], unit, remark, expected, &found);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{Wire, exchange, fpdu, hex, proves, reply_frame, startup_frame};

    /// Returns a FetchAdd request for STag 0x200. `number` is its MSN and its Request Identifier.
    fn fetch_add(number: u32, to: u64) -> String {
        format!(
            "414a 00000000 00000001 {number:08x} 00000000 00000000 {number:08x} 00000200 {to:016x}
            0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff"
        )
    }
    fn cmp_swap(number: u32, to: u64) -> String {
        format!(
            "414a 00000000 00000001 {number:08x} 00000000 00000002 {number:08x} 00000200 {to:016x}
            0000000000000009 ffffffffffffffff 0000000000000007 ffffffffffffffff"
        )
    }
    fn response(msn: u32, identifier: u32) -> String {
        format!("414b 00000000 00000003 {msn:08x} 00000000 {identifier:08x} 0000000000000007")
    }
    fn one(ulpdu: &str) -> Wire {
        exchange(&[(0, ulpdu)])
    }

    #[test]
    fn fields_of_a_request() {
        let (add, swap) = (fetch_add(1, 0x2000), cmp_swap(1, 0x2000));
        let reserved = add.replacen("00000000 00000001 00000200", "00000010 00000001 00000200", 1);
        proves(requirement!("RDMAP-7306.5.2.1-2"), &one(&reserved), &one(&add));
        let as_registered = add.replacen("00000000 00000001 00000200", "00000001 00000001 00000200", 1);
        proves(requirement!("RDMAP-7306.5.2.1-3"), &one(&as_registered), &one(&add));
        let swap_1 = swap.replacen("00000002 00000001 00000200", "00000001 00000001 00000200", 1);
        proves(requirement!("RDMAP-7306.5.2.1-4"), &one(&swap_1), &one(&swap));
        let data = add.replacen("0000000000000000 ffffffffffffffff", "0000000000000007 ffffffffffffffff", 1);
        proves(requirement!("RDMAP-7306.5.2.1-22"), &one(&data), &one(&add));
        let mask = add.replacen("ffffffffffffffff", "0000000000000000", 1);
        proves(requirement!("RDMAP-7306.5.2.1-23"), &one(&mask), &one(&add));
    }

    #[test]
    fn alignment_of_requests() {
        let adds = |to| one(&fetch_add(1, to));
        proves(requirement!("RDMAP-7306.5.1.1-3"), &adds(0x2004), &adds(0x2008));
        proves(requirement!("RDMAP-7306.5.2.1-13"), &adds(0x2001), &adds(0x2000));
        let swaps = |to| one(&cmp_swap(1, to));
        proves(requirement!("RDMAP-7306.5.1.2-4"), &swaps(0x2007), &swaps(0x2008));
        let answered = |request: &str| exchange(&[(0, request), (1, &response(1, 1))]);
        let rejected = |request: &str| {
            let copy = "414a 00000000 00000001 00000001 00000000";
            exchange(&[(0, request), (1, &format!("4147 00000000 00000002 00000001 00000000 0207c000 0046 {copy}"))])
        };
        let (add, swap) = (fetch_add(1, 0x2004), cmp_swap(1, 0x2004));
        proves(requirement!("RDMAP-7306.5.1.1-7"), &answered(&add), &rejected(&add));
        proves(requirement!("RDMAP-7306.5.1.2-8"), &answered(&swap), &rejected(&swap));
    }

    /// Without CRC, the monitor parses the Request only when it knows where the Request ends. The
    /// TCP segment of the Request or the next TCP segment shows this.
    #[test]
    fn an_answered_misaligned_request_is_found_without_crc() {
        let requirement = requirement!("RDMAP-7306.5.1.2-8");
        for (to, expected) in [(0x2004, true), (0x2008, false)] {
            let mut wire = Wire::started_as(&startup_frame(0, 1, &[]), &reply_frame(0, 1, &[]));
            for (number, to) in [(1, to), (2, 0x2008)] {
                wire.send_ulpdu(0, &cmp_swap(number, to));
                wire.send_ulpdu(1, &response(number, number));
            }
            let found = wire.findings().iter().any(|finding| finding.requirement == requirement);
            assert_eq!(found, expected, "TO {to:#x}");
        }
    }

    #[test]
    fn responses_to_requests() {
        let add = fetch_add(1, 0x2000);
        let answered = |identifier| exchange(&[(0, &add), (1, &response(1, identifier))]);
        proves(requirement!("RDMAP-7306.5.2.2-3"), &answered(2), &answered(1));
        let two = |one: u32, other: u32| {
            exchange(&[(0, &add), (0, &cmp_swap(2, 0x2000)), (1, &response(1, one)), (1, &response(2, other))])
        };
        proves(requirement!("RDMAP-7306.5.2.2-11"), &two(2, 1), &two(1, 2));
        proves(requirement!("RDMAP-7306.5.4-11"), &two(2, 1), &two(1, 2));
    }

    /// Only a part of a response was captured. In one round, this part includes the Request
    /// Identifier.
    #[test]
    fn a_response_that_was_captured_in_part_is_one() {
        let read = |msn: u32| {
            format!(
                "4141 00000000 00000001 {msn:08x} 00000000
                00000100 0000000000001000 00000004 00000200 0000000000002000"
            )
        };
        let of_read = "c142 00000100 0000000000001000 01020304";
        for captured in [20, 26] {
            let mut wire = exchange(&[(0, &fetch_add(1, 0x2000))]);
            let octets = fpdu(&hex(&response(1, 1)));
            wire.send(1, &octets[..captured]);
            wire.lose(1, &octets[captured..]);
            for (direction, ulpdu) in
                [(0, &read(2)[..]), (0, &fetch_add(3, 0x2000)), (1, of_read), (1, &response(2, 3))]
            {
                wire.send_ulpdu(direction, ulpdu);
            }
            (0..2).for_each(|direction| wire.fin(direction));
            assert_eq!(wire.errors(), [], "{captured} octets captured");
        }
        // The next Request is missing as well.
        let mut wire = exchange(&[(0, &fetch_add(1, 0x2000))]);
        let octets = fpdu(&hex(&response(1, 1)));
        wire.send(1, &octets[..26]);
        wire.lose(1, &octets[26..]);
        wire.lose(0, &fpdu(&hex(&fetch_add(2, 0x2000))));
        wire.send_ulpdu(1, &response(2, 2));
        (0..2).for_each(|direction| wire.fin(direction));
        assert_eq!(wire.errors(), []);
    }

    #[test]
    fn reads_and_atomics_are_answered_in_order() {
        let read = |msn: u32| {
            format!(
                "4141 00000000 00000001 {msn:08x} 00000000
                00000100 0000000000001000 00000004 00000200 0000000000002000"
            )
        };
        let of_read = "c142 00000100 0000000000001000 01020304";
        let (atomic, of_atomic) = (fetch_add(1, 0x2000), response(1, 1));
        let atomic_first = |one: &str, other: &str| exchange(&[(0, &atomic), (0, &read(2)), (1, one), (1, other)]);
        proves(requirement!("RDMAP-7306.7-10"), &atomic_first(of_read, &of_atomic), &atomic_first(&of_atomic, of_read));
        let (atomic, of_atomic) = (fetch_add(2, 0x2000), response(1, 2));
        let read_first = |one: &str, other: &str| exchange(&[(0, &read(1)), (0, &atomic), (1, one), (1, other)]);
        proves(requirement!("RDMAP-7306.7-14"), &read_first(&of_atomic, of_read), &read_first(of_read, &of_atomic));
    }
}
