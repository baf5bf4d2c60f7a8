//! Reports FPDUs that are too short or too long for a DDP segment.

use weft_core::RequirementId;
use weft_core::requirement;

use crate::follow::ConnectionState;
use crate::parse::{Fpdu, ULPDU_AT, Unit, is_trusted};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static HEADER: Rule =
    Check::Fpdu(header).covers(requirements!["DDP-4.2-1", "DDP-4.3-1", "DDP-4.4-1", "RDMAP-3.1-1", "RDMAP-3.1-5"]);

pub(super) static MULPDU: Rule = Check::Fpdu(fits_mulpdu).covers(requirements!["DDP-5.2-12"]);

fn fits_mulpdu(state: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    let length = fpdu.layout.ulpdu_length;
    let capacity = state.mpa.streams[unit.direction()].capacity;
    if let Some(capacity) = capacity.filter(|capacity| length > capacity.mulpdu)
        && is_trusted(fpdu)
    {
        let expected = format!("a segment of at most {} bytes, the MULPDU for EMSS {}", capacity.mulpdu, capacity.emss);
        findings.report(requirement!("DDP-5.2-12"), unit, 0..ULPDU_AT, &expected, format!("{length} bytes"));
    }
}

fn header(_: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    let len = usize::from(fpdu.layout.ulpdu_length);
    if len >= 18 || !is_trusted(fpdu) {
        return;
    }
    let Some(first) = fpdu.ulpdu().get(0..1.min(len)) else { return };
    let tagged = first.first().is_some_and(|octet| octet & 0x80 != 0);
    let needed = if tagged { 14 } else { 18 };
    if len >= needed {
        return;
    }
    let (expected, all): (_, &[RequirementId]) = match (len, tagged) {
        (0, _) => ("a DDP segment", &[]),
        (_, true) => ("at least 14 bytes for a tagged DDP header", requirements!["DDP-4.2-1", "RDMAP-3.1-5"]),
        (_, false) => ("at least 18 bytes for an untagged DDP header", requirements!["DDP-4.3-1", "RDMAP-3.1-5"]),
    };
    let found = format!("a ULPDU of {len} bytes");
    findings.report_each(all, unit, 0..ULPDU_AT + len, expected, &found);
    let always = requirements!["DDP-4.4-1", "RDMAP-3.1-1"];
    findings.report_each(always, unit, 0..ULPDU_AT + len, expected, &found);
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, exchange, proves};

    /// An EMSS of 536 gives a MULPDU of 530 (RFC 5044 section 4.5). So a Write fits if it has at
    /// most 516 octets of payload.
    #[test]
    fn a_segment_fits_the_mulpdu() {
        let writes = |len: usize| {
            let mut wire = Wire::connected_with_mss(536);
            wire.send(0, &testing::request());
            wire.send(1, &testing::reply());
            wire.send_ulpdu(0, &format!("c140 11223344 0000000000001000 {}", "2a".repeat(len)));
            wire
        };
        proves(requirement!("DDP-5.2-12"), &writes(517), &writes(516));
    }

    #[test]
    fn a_segment_has_its_header() {
        let tagged = exchange(&[(0, "c140 11223344 0000000000001000")]);
        let untagged = exchange(&[(0, "4143 00000000 00000000 00000001 00000000")]);
        proves(requirement!("DDP-4.2-1"), &exchange(&[(0, "c140 11223344 00000000000010")]), &tagged);
        proves(requirement!("DDP-4.3-1"), &exchange(&[(0, "4143 00000000 00000000 00000001 000000")]), &untagged);
        proves(requirement!("DDP-4.4-1"), &exchange(&[(0, "")]), &untagged);
        proves(requirement!("RDMAP-3.1-1"), &exchange(&[(0, "4143")]), &untagged);
        // Fourteen octets are enough for a tagged header, but T=0 means an untagged header.
        proves(requirement!("RDMAP-3.1-5"), &exchange(&[(0, "4143 00000000 00000001 00000000")]), &tagged);
    }
}
