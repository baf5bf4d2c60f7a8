//! Checks the lengths of the messages that have an RDMAP header.

use weft_core::requirement;
use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, RawAtomicRequest, RawAtomicResponse, RawImmediate, RawReadRequest, RawTerminate};

use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

/// Mask of opcodes: Read Request, Terminate, both types of Immediate Data, Atomic Request and
/// Atomic Response.
const WITH_HEADER: u16 = 1 << 1 | 1 << 7 | 0xf << 8;

pub(super) static HEADERS: Rule = Check::Opcode(WITH_HEADER, headers).covers(requirements![
    "RDMAP-4-1",
    "RDMAP-4.2-3",
    "RDMAP-4.4-1",
    "RDMAP-4.4-3",
    "RDMAP-4.8-1",
    "RDMAP-A-1",
    "RDMAP-7306.4-1",
    "RDMAP-7306.4.2-3",
    "RDMAP-7306.5.2.1-1",
    "RDMAP-7306.5.2.2-1",
    "RDMAP-7306.6.2-1",
    "RDMAP-7306.6.3-9",
    "RDMAP-7306.A-1"
]);

fn headers(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Segment::Untagged(header, _) = view.segment else { return };
    let opcode = view.opcode();
    let (size, ids) = match opcode {
        Opcode::READ_REQUEST => (RawReadRequest::LEN, requirements!["RDMAP-4.4-1", "RDMAP-4.2-3"]),
        Opcode::TERMINATE => (RawTerminate::LEN, requirements!["RDMAP-4.8-1", "RDMAP-4.2-3"]),
        Opcode::ATOMIC_REQUEST => {
            (RawAtomicRequest::LEN, requirements!["RDMAP-7306.4-1", "RDMAP-7306.4.2-3", "RDMAP-7306.5.2.1-1"])
        }
        Opcode::ATOMIC_RESPONSE => {
            (RawAtomicResponse::LEN, requirements!["RDMAP-7306.4-1", "RDMAP-7306.4.2-3", "RDMAP-7306.5.2.2-1"])
        }
        _ => (
            RawImmediate::LEN,
            requirements!["RDMAP-7306.4-1", "RDMAP-7306.4.2-3", "RDMAP-7306.6.2-1", "RDMAP-7306.6.3-9"],
        ),
    };
    let len = view.payload_len as usize;
    let at_least = opcode == Opcode::TERMINATE;
    let wrong = if at_least { len < size } else { len != size };
    let expected = format!("{}{size} bytes after the DDP header of {opcode}", if at_least { "at least " } else { "" });
    // If the data ends within the FPDU, ULPDU_Length is probably wrong, so the length of the message
    // is not known.
    if wrong && !unit.ends_with_data() {
        let range = ULPDU_AT + view.header_len..ULPDU_AT + view.header_len + len;
        let found = format!("{len} bytes");
        findings.report_each(ids, unit, range.clone(), &expected, &found);
        if len == 0 && opcode.0 <= Opcode::TERMINATE.0 {
            findings.report(requirement!("RDMAP-4-1"), unit, 0..ULPDU_AT + view.header_len, &expected, found.clone());
        }
        let of_figures =
            if opcode.0 <= Opcode::TERMINATE.0 { requirement!("RDMAP-A-1") } else { requirement!("RDMAP-7306.A-1") };
        findings.as_note().report(of_figures, unit, range, &expected, found);
    }
    let parts = !view.last() || header.mo.get() != 0;
    let one_segment = match opcode {
        Opcode::READ_REQUEST => Some(requirement!("RDMAP-4.4-3")),
        Opcode::IMMEDIATE | Opcode::IMMEDIATE_SE => Some(requirement!("RDMAP-7306.6.3-9")),
        _ => None,
    };
    if let Some(id) = one_segment.filter(|_| parts) {
        let found = format!("L={}, MO {}", u8::from(view.last()), header.mo.get());
        let expected = format!("{opcode} in one segment, with L=1 and MO 0");
        findings.report(id, unit, ULPDU_AT..ULPDU_AT + view.header_len, &expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{Wire, exchange, proves};

    fn one(ulpdu: &str) -> Wire {
        exchange(&[(0, ulpdu)])
    }

    const READ: &str = "4141 00000000 00000001 00000001 00000000
        00000100 0000000000001000 00000008 00000200 0000000000002000";
    /// A Read Request of a faulty user-space peer. It has fields in the host's byte order, and four
    /// octets of padding.
    const PADDED_READ: &str = "4141 00000000 00000001 00000001 00000000
        00010000 00000000 0010000000000000 08000000 00020000 0020000000000000";
    const TERMINATE: &str = "4147 00000000 00000002 00000001 00000000 20020000";

    #[test]
    fn headers_of_rfc_5040() {
        let (read, terminate) = (one(READ), one(TERMINATE));
        proves(requirement!("RDMAP-4.4-1"), &one(PADDED_READ), &read);
        proves(requirement!("RDMAP-A-1"), &one(PADDED_READ), &read);
        let parts = READ.replacen("4141", "0141", 1);
        proves(requirement!("RDMAP-4.4-3"), &one(&parts), &read);
        proves(requirement!("RDMAP-4-1"), &one("4141 00000000 00000001 00000001 00000000"), &read);
        let short = one("4147 00000000 00000002 00000001 00000000 2002");
        proves(requirement!("RDMAP-4.8-1"), &short, &terminate);
        proves(requirement!("RDMAP-4.2-3"), &short, &terminate);
    }

    /// ULPDU_Length exceeds the ULPDU by two, and no more FPDUs follow.
    #[test]
    fn the_length_of_an_fpdu_that_is_cut_is_not_known() {
        let mut counts = crate::testing::fpdu(&crate::testing::hex(READ));
        counts[1] += 2;
        let mut wire = Wire::started();
        wire.send(0, &counts);
        wire.fin(0);
        proves(requirement!("RDMAP-4.4-1"), &one(PADDED_READ), &wire);
    }

    #[test]
    fn headers_of_rfc_7306() {
        let immediate = one("4148 00000000 00000000 00000001 00000000 0123456789abcdef");
        let seven = one("4148 00000000 00000000 00000001 00000000 0123456789abcd");
        proves(requirement!("RDMAP-7306.6.2-1"), &seven, &immediate);
        proves(requirement!("RDMAP-7306.4-1"), &one("4148 00000000 00000000 00000001 00000000"), &immediate);
        let first = one("0148 00000000 00000000 00000001 00000000 0123456789abcdef");
        proves(requirement!("RDMAP-7306.6.3-9"), &first, &immediate);
        let atomic = "414a 00000000 00000001 00000001 00000000 00000000 00000001 00000200 0000000000002000
            0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff";
        // This request lacks the Compare Mask.
        let short = one(&atomic.replacen("ffffffffffffffff", "", 1));
        proves(requirement!("RDMAP-7306.5.2.1-1"), &short, &one(atomic));
        proves(requirement!("RDMAP-7306.4.2-3"), &short, &one(atomic));
        proves(requirement!("RDMAP-7306.A-1"), &short, &one(atomic));
        let answered = |response: &str| exchange(&[(0, atomic), (1, response)]);
        // This response has 32 octets, as printed in section 4 of RFC 7306.
        let long = answered(&format!(
            "414b 00000000 00000003 00000001 00000000 00000001 0000000000000007 {}",
            "00".repeat(20)
        ));
        let right = answered("414b 00000000 00000003 00000001 00000000 00000001 0000000000000007");
        proves(requirement!("RDMAP-7306.5.2.2-1"), &long, &right);
    }
}
