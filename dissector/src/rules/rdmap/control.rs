//! Checks RDMAP's control octet, and the four octets after this octet in untagged headers.

use weft_core::requirement;
use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static FIXED_FIELDS: Rule = Check::Header(fixed_fields).covers(requirements![
    "RDMAP-4.1-1",
    "RDMAP-4.1-2",
    "RDMAP-4.1-3",
    "RDMAP-4.1-4",
    "RDMAP-4.1-16",
    "RDMAP-4.1-22",
    "RDMAP-7306.4.1-6",
    "RDMAP-7306.4.1-8"
]);

fn fixed_fields(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let (control, opcode) = (view.segment.ulp_control(), view.opcode());
    let is_of_7306 = (Opcode::IMMEDIATE.0..=Opcode::ATOMIC_RESPONSE.0).contains(&opcode.0);
    let at = ULPDU_AT + 1..ULPDU_AT + 2;
    let mut wrong = u8::from(opcode.is_tagged().is_none());
    if let Some(expected) = state.traffic.wrong_version(control.version()) {
        wrong += 1;
        let (expected, found) = (format!("RV {expected}"), format!("RV {}", control.version()));
        findings.report(requirement!("RDMAP-4.1-3"), unit, at.clone(), &expected, found.clone());
        if is_of_7306 {
            findings.report(requirement!("RDMAP-7306.4.1-6"), unit, at.clone(), &expected, found);
        }
    }
    if control.reserved() != 0 {
        wrong += 1;
        let found = format!("Rsv {:#04b}", control.reserved());
        findings.report(requirement!("RDMAP-4.1-4"), unit, at.clone(), "Rsv of zero", found);
    }
    if wrong > 1 {
        let found = format!("{:#04x}", view.header[1]);
        let expected = "RDMAP's control byte with RV, Rsv and an assigned OpCode";
        findings.report(requirement!("RDMAP-4.1-1"), unit, at.clone(), expected, found.clone());
        let expected = "RV in bits 0 and 1, Rsv in bits 2 and 3, OpCode in bits 4 to 7";
        findings.report(requirement!("RDMAP-4.1-2"), unit, at.clone(), expected, found);
    }
    let version = view.segment.control().version();
    // RV and DV must be equal. If RV is right and DV is wrong, DDP-4.1-12 reports DV, and this rule
    // reports nothing.
    let is_right = |version| state.traffic.wrong_version(version).is_none();
    if control.version() != version && (is_right(version) || !is_right(control.version())) {
        let expected = format!("RV {version}, because DV is {version}");
        let found = format!("RV {}", control.version());
        findings.report(requirement!("RDMAP-4.1-22"), unit, at, &expected, found);
    }
    let Segment::Untagged(header, _) = view.segment else { return };
    if header.ulp_word.get() != 0 && !opcode.invalidates() && opcode.is_tagged() == Some(false) {
        let id = if is_of_7306 { requirement!("RDMAP-7306.4.1-8") } else { requirement!("RDMAP-4.1-16") };
        let found = format!("{:#010x}", header.ulp_word.get());
        findings.report(id, unit, ULPDU_AT + 2..ULPDU_AT + 6, &format!("zero in bytes 2 to 5 of {opcode}"), found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, exchange, proves};

    fn one(ulpdu: &str) -> Wire {
        exchange(&[(0, ulpdu)])
    }

    #[test]
    fn bits_of_the_control_octet() {
        let send = one("4143 00000000 00000000 00000001 00000000 2a");
        // 0x34 is 0x43 with exchanged nibbles. 0xc2 is 0x43 with its bits in reverse order.
        let nibbles = one("4134 00000000 00000000 00000001 00000000 2a");
        let bits = one("41c2 00000000 00000000 00000001 00000000 2a");
        proves(requirement!("RDMAP-4.1-2"), &nibbles, &send);
        proves(requirement!("RDMAP-4.1-3"), &bits, &send);
        proves(requirement!("RDMAP-4.1-1"), &one("41ff 00000000 00000000 00000001 00000000 2a"), &send);
        proves(requirement!("RDMAP-4.1-4"), &one("4153 00000000 00000000 00000001 00000000 2a"), &send);
        proves(requirement!("RDMAP-4.1-16"), &one("4143 00000001 00000000 00000001 00000000 2a"), &send);
        let immediate = one("4148 00000000 00000000 00000001 00000000 0123456789abcdef");
        let of_2 = one("4188 00000000 00000000 00000001 00000000 0123456789abcdef");
        proves(requirement!("RDMAP-7306.4.1-6"), &of_2, &immediate);
        let named = one("4148 00000100 00000000 00000001 00000000 0123456789abcdef");
        proves(requirement!("RDMAP-7306.4.1-8"), &named, &immediate);
    }

    /// Revision 0 implies version 0 for both DDP and RDMAP (RFC 5044 Appendix C).
    #[test]
    fn versions_go_together() {
        let of_revision_0 = |ulpdu: &str| {
            let mut wire = Wire::connected();
            for (direction, mut frame) in [testing::request(), testing::reply()].into_iter().enumerate() {
                (frame[16], frame[17]) = (0x40, 0);
                wire.send(direction, &frame);
            }
            wire.send_ulpdu(0, ulpdu);
            wire
        };
        let right = of_revision_0("4003 00000000 00000000 00000001 00000000 2a");
        let mixed = of_revision_0("4043 00000000 00000000 00000001 00000000 2a");
        proves(requirement!("RDMAP-4.1-22"), &mixed, &right);
        // DV 2 violates only requirements of DDP.
        proves(requirement!("RDMAP-4.1-22"), &mixed, &one("4243 00000000 00000000 00000001 00000000 2a"));
        assert!(right.findings().iter().all(|finding| finding.requirement != requirement!("RDMAP-4.1-3")));
    }
}
