//! Checks FPDUs: their padding, their CRC field, and that each FPDU contains one ULPDU.

use weft_core::requirement;
use weft_core::wire::rdmap::Opcode;

use crate::follow::ConnectionState;
use crate::parse::{CrcStatus, Fpdu, MarkerStatus, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static PAD_IS_ZERO: Rule = Check::Fpdu(pad_is_zero).covers(requirements!["MPA-4.1-3", "MPA-2-5"]);

pub(super) static HAS_CRC_FIELD: Rule =
    Check::Fpdu(has_crc_field).covers(requirements!["MPA-4.4-13", "MPA-4.1-8", "MPA-4.1-9", "MPA-7.1.1-13"]);

pub(super) static ONE_ULPDU: Rule = Check::Fpdu(one_ulpdu).covers(requirements!["MPA-3-7"]);

fn pad_is_zero(_: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    // If the CRC is bad, it is possible that the octets differ from the octets that were sent. If
    // markers are misplaced, it is possible that the octets at the position of PAD belong to
    // another field.
    if !matches!(fpdu.crc_status, CrcStatus::Good | CrcStatus::Unchecked)
        || !matches!(fpdu.marker_status, MarkerStatus::None | MarkerStatus::Good)
    {
        return;
    }
    let Some(pad) = fpdu.pad().all() else { return };
    if pad.iter().any(|octet| *octet != 0) {
        let start = fpdu.body.len() - pad.len();
        let found = pad.iter().map(|octet| format!("0x{octet:02x}")).collect::<Vec<_>>().join(" ");
        findings.report(requirement!("MPA-2-5"), unit, start..fpdu.body.len(), "1 to 3 zero bytes", found.clone());
        findings.report(requirement!("MPA-4.1-3"), unit, start..fpdu.body.len(), "PAD bytes of zero", found);
    }
}

/// Reports the first FPDU without CRC field. If a sender omits the field, all its FPDUs lack the
/// field. So one finding is enough.
fn has_crc_field(state: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    if fpdu.crc_status != CrcStatus::Absent || state.mpa.streams[unit.direction()].no_field != 1 {
        return;
    }
    let all = 0..fpdu.body.len();
    let overhead = 2 + fpdu.pad().len();
    let none = "no CRC field";
    findings.report(requirement!("MPA-4.4-13"), unit, all.clone(), "a CRC field in every FPDU", none);
    findings.report(requirement!("MPA-4.1-8"), unit, all.clone(), "a CRC field of 4 bytes, with any value", none);
    findings.report(requirement!("MPA-7.1.1-13"), unit, all.clone(), "a CRC field, even if CRC is not used", none);
    let found = format!("{overhead} bytes besides the ULPDU");
    findings.report(requirement!("MPA-4.1-9"), unit, all, "at least 6 bytes besides the ULPDU", found);
}

/// Returns the length of the ULPDU in octets, for messages with a fixed length.
fn fixed_len(opcode: Opcode) -> Option<usize> {
    match opcode {
        Opcode::READ_REQUEST => Some(46),
        Opcode::ATOMIC_REQUEST => Some(70),
        Opcode::ATOMIC_RESPONSE => Some(30),
        Opcode::IMMEDIATE | Opcode::IMMEDIATE_SE => Some(26),
        _ => None,
    }
}

/// Reports an FPDU with a second DDP segment after a message of fixed length. MPA does not limit
/// what a ULPDU contains, so a ULPDU that is too short for a DDP header violates DDP only.
fn one_ulpdu(_: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    let length = usize::from(fpdu.layout.ulpdu_length);
    if !matches!(fpdu.crc_status, CrcStatus::Good | CrcStatus::Unchecked) || length > 70 + 70 {
        return;
    }
    let Some(octets) = fpdu.ulpdu().all() else { return };
    let id = requirement!("MPA-3-7");
    let Some(fixed) = octets.get(1).and_then(|octet| fixed_len(Opcode(octet & 0xf))) else { return };
    if let Some(&[ddp, rdmap, ..]) = octets.get(fixed..).filter(|rest| rest.len() >= 14)
        && ddp & 0x3f == octets[0] & 0x3f
        && rdmap & 0xf0 == octets[1] & 0xf0
        && Opcode(rdmap & 0xf).is_tagged() == Some(ddp & 0x80 != 0)
    {
        let found = format!("a second DDP segment in the ULPDU, after {fixed} bytes");
        findings.report(id, unit, 2 + fixed..2 + length, "one ULPDU in each FPDU", found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, proves};

    /// An untagged Send of one octet has 19 octets of ULPDU and three octets of PAD.
    fn send_with_pad(pad: [u8; 3]) -> Wire {
        let mut wire = Wire::started();
        let mut octets = testing::hex("0013 4143 00000000 00000000 00000001 00000000 2a");
        octets.extend_from_slice(&pad);
        wire.send(0, &testing::with_crc(octets));
        wire
    }

    #[test]
    fn pad_octets_are_zero() {
        proves(requirement!("MPA-4.1-3"), &send_with_pad([0, 1, 0]), &send_with_pad([0, 0, 0]));
        proves(requirement!("MPA-2-5"), &send_with_pad([0, 0, 1]), &send_with_pad([0, 0, 0]));
    }

    /// Plays three Sends on a connection without CRC. `field` is the CRC field of each Send. It is
    /// empty if the sender omits the CRC field.
    fn without_crc(field: &[u8]) -> Wire {
        let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), &testing::reply_frame(0, 1, &[]));
        for msn in 1..4 {
            let mut octets = testing::hex(&format!("0014 4143 00000000 00000000 {msn:08x} 00000000 2a2b 0000"));
            octets.extend_from_slice(field);
            wire.send(0, &octets);
        }
        wire
    }

    #[test]
    fn the_crc_field_stays_when_crc_is_off() {
        let (bad, good) = (without_crc(&[]), without_crc(&[0; 4]));
        proves(requirement!("MPA-4.4-13"), &bad, &good);
        proves(requirement!("MPA-4.1-8"), &bad, &good);
        proves(requirement!("MPA-4.1-9"), &bad, &good);
        proves(requirement!("MPA-7.1.1-13"), &bad, &good);
    }

    /// First the capture ends before the CRC field. Then the octets of the CRC field are missing.
    #[test]
    fn a_crc_field_that_was_not_captured_is_not_missing() {
        let without_field =
            |msn: u32| testing::hex(&format!("0014 4143 00000000 00000000 {msn:08x} 00000000 2a2b 0000"));
        let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), &testing::reply_frame(0, 1, &[]));
        wire.send(0, &without_field(1));
        assert_eq!(wire.errors(), []);
        wire.lose(0, &[0; 4]);
        wire.send(0, &without_field(2));
        assert_eq!(wire.errors(), []);
        // No octets come after a FIN, so the CRC field of the last FPDU is really absent.
        wire.fin(0);
        let ids: Vec<_> = wire.errors().iter().map(|finding| finding.requirement).collect();
        assert!(ids.contains(&requirement!("MPA-4.4-13")), "{ids:?}");
    }

    /// Both endpoints omit the CRC field. For one endpoint, the FIN proves the omission. A reset
    /// follows the last FPDU of the other endpoint.
    #[test]
    fn both_ends_that_omit_the_crc_field_are_reported() {
        let without_field = testing::hex("0014 4143 00000000 00000000 00000001 00000000 2a2b 0000");
        let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), &testing::reply_frame(0, 1, &[]));
        wire.send(0, &without_field);
        wire.fin(0);
        wire.send(1, &without_field);
        wire.rst(0);
        let errors = wire.errors();
        let accused = |direction: u8| {
            errors.iter().any(|it| it.requirement == requirement!("MPA-4.4-13") && it.direction == direction)
        };
        assert!(accused(0) && accused(1), "{errors:?}");
    }

    /// This sender sends (length + 2) mod 4 octets of PAD. Correct PAD fills the FPDU up to a
    /// multiple of 4 octets.
    #[test]
    fn a_wrong_pad_is_not_a_missing_crc_field() {
        let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), &testing::reply_frame(0, 1, &[]));
        for msn in 1..=3 {
            wire.send(0, &testing::hex(&format!("0013 4143 00000000 00000000 {msn:08x} 00000000 2a 00 00000000")));
        }
        let ids: Vec<_> = wire.errors().iter().map(|finding| finding.requirement).collect();
        assert!(ids.contains(&requirement!("MPA-4.1-5")), "{ids:?}");
        for other in [requirement!("MPA-4.1-1"), requirement!("MPA-4.4-13"), requirement!("MPA-4.1-9")] {
            assert!(!ids.contains(&other), "{ids:?}");
        }
    }

    #[test]
    fn an_fpdu_has_one_ulpdu() {
        let read =
            "4141 00000000 00000001 00000001 00000000 00000100 0000000000001000 00000040 00000200 0000000000002000";
        let one = |ulpdu: &[u8]| {
            let mut wire = Wire::started();
            wire.send(0, &testing::fpdu(ulpdu));
            wire
        };
        let write = testing::hex("c140 11223344 0000000000001000");
        let two = [testing::hex(read), write].concat();
        proves(requirement!("MPA-3-7"), &one(&two), &one(&testing::hex(read)));
        for short in [&[][..], &[0x41], &[0x41, 0x41]] {
            let read = one(short).findings();
            assert!(read.iter().all(|finding| finding.requirement != requirement!("MPA-3-7")), "{short:?}");
        }
    }

    #[test]
    fn the_pad_of_a_damaged_fpdu_is_not_checked() {
        let mut wire = Wire::started();
        let mut octets = testing::with_crc(testing::hex("0013 4143 00000000 00000000 00000001 00000000 2a 000000"));
        octets[22] = 1;
        wire.send(0, &octets);
        assert!(wire.findings().iter().all(|finding| finding.requirement != requirement!("MPA-4.1-3")));
    }
}
