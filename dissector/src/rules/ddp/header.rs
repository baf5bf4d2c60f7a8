//! Checks the two control octets of a DDP segment. The first octet has T, L, Rsvd and DV. DDP
//! carries the second octet for RDMAP.

use weft_core::requirement;
use weft_core::wire::ddp::Segment;

use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static FIXED_FIELDS: Rule = Check::Header(fixed_fields).covers(requirements![
    "DDP-4.1-1",
    "DDP-4.1-2",
    "DDP-4.1-3",
    "DDP-4.1-10",
    "DDP-4.1-12",
    "DDP-4.2-2",
    "DDP-4.3-2",
    "DDP-5.2-9"
]);

pub(super) static VERSION: Rule = Check::Segment(version).covers(requirements!["DDP-4.1-13"]);

const CONTROL: std::ops::Range<usize> = ULPDU_AT..ULPDU_AT + 1;

fn fixed_fields(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let (octet, opcode) = (view.header[0], view.opcode());
    let control = view.segment.control();
    let mut wrong = 0;
    if control.reserved() != 0 {
        wrong += 1;
        let found = format!("Rsvd {:#06b}", control.reserved());
        findings.report(requirement!("DDP-4.1-10"), unit, CONTROL, "Rsvd of zero", found);
    }
    if let Some(expected) = state.traffic.wrong_version(control.version()) {
        wrong += 1;
        let (expected, found) = (format!("DV {expected}"), format!("DV {}", control.version()));
        findings.report(requirement!("DDP-4.1-12"), unit, CONTROL, &expected, found);
    }
    if let Some(should) = opcode.is_tagged()
        && should != control.tagged()
    {
        wrong += 1;
        let (id, expected) = if should {
            (requirement!("DDP-4.1-2"), "T=1, because the message goes to a Tagged Buffer")
        } else {
            (requirement!("DDP-4.1-3"), "T=0, because the message goes to an Untagged Buffer")
        };
        findings.report(id, unit, CONTROL, expected, format!("T={} in {opcode}", u8::from(control.tagged())));
    }
    if wrong > 1 {
        let expected = "T, L, four bits of Rsvd and two bits of DV, from the most significant bit";
        findings.report(requirement!("DDP-4.1-1"), unit, CONTROL, expected, format!("{octet:#010b}"));
    }
    let second = view.segment.ulp_control();
    let is_right = |version| state.traffic.wrong_version(version).is_none();
    let goes_with = second.version() == control.version() || !is_right(control.version()) && is_right(second.version());
    let fits = goes_with && second.reserved() == 0;
    match &view.segment {
        Segment::Tagged(..) => {
            if second.reserved() != 0 {
                let expected = "the control byte of an RDMA Write or Read Response, with Rsv of zero";
                let range = ULPDU_AT + 1..ULPDU_AT + 2;
                let found = format!("{:#04x}", view.header[1]);
                findings.report(requirement!("DDP-4.2-2"), unit, range, expected, found);
            }
            if view.payload_len == 0 && (wrong > 0 || !fits) {
                let expected = "valid control bytes of DDP and RDMAP, even in a segment without payload";
                let found = format!("{octet:#04x} {:#04x}", view.header[1]);
                findings.report(requirement!("DDP-5.2-9"), unit, ULPDU_AT..ULPDU_AT + 2, expected, found);
            }
        }
        Segment::Untagged(header, _) => {
            let word = header.ulp_word.get() != 0 && opcode.is_tagged() == Some(false) && !opcode.invalidates();
            if second.reserved() != 0 || word {
                let expected = "RDMAP's control byte, then four zero bytes unless the opcode invalidates an STag";
                let found = format!("{:02x?}", &view.header[1..view.header_len.min(6)]);
                findings.report(requirement!("DDP-4.3-2"), unit, ULPDU_AT + 1..ULPDU_AT + 6, expected, found);
            }
        }
    }
}

fn version(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let found = view.header[0] & 3;
    if let Some(first) = state.traffic.version
        && first != found
    {
        let (expected, found) = (format!("DV {first}, as in the earlier segments"), format!("DV {found}"));
        findings.report(requirement!("DDP-4.1-13"), unit, CONTROL, &expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{Wire, exchange, proves};

    const SEND: &str = "4143 00000000 00000000 00000001 00000000 2a";
    const WRITE: &str = "c140 11223344 0000000000001000 2a";

    fn one(ulpdu: &str) -> Wire {
        exchange(&[(0, ulpdu)])
    }

    #[test]
    fn bits_of_the_first_octet() {
        // 0x82 is 0x41 with its bits in reverse order.
        let mirrored = one("8243 00000000 00000000 00000001 00000000 2a");
        proves(requirement!("DDP-4.1-1"), &mirrored, &one(SEND));
        proves(requirement!("DDP-4.1-2"), &one("4140 11223344 0000000000001000 2a2a2a2a"), &one(WRITE));
        proves(requirement!("DDP-4.1-3"), &one("c143 00000000 00000000 00000001 00000000 2a"), &one(SEND));
        proves(requirement!("DDP-4.1-10"), &one("4543 00000000 00000000 00000001 00000000 2a"), &one(SEND));
        proves(requirement!("DDP-4.1-12"), &one("4203 00000000 00000000 00000001 00000000 2a"), &one(SEND));
        let second = "4143 00000000 00000000 00000002 00000000 2a";
        let changed = exchange(&[(0, SEND), (1, "4003 00000000 00000000 00000001 00000000 2a")]);
        proves(requirement!("DDP-4.1-13"), &changed, &exchange(&[(0, SEND), (0, second)]));
    }

    #[test]
    fn octets_of_rdmap() {
        proves(requirement!("DDP-4.2-2"), &one("c150 11223344 0000000000001000 2a"), &one(WRITE));
        let word = one("4143 00000007 00000000 00000001 00000000 2a");
        proves(requirement!("DDP-4.3-2"), &word, &one(SEND));
        // A wrong DV or an unassigned opcode is no evidence that DDP changed RDMAP's octets.
        proves(requirement!("DDP-4.3-2"), &word, &one("4243 00000000 00000000 00000001 00000000 2a"));
        proves(requirement!("DDP-4.3-2"), &word, &one("414f 00000000 00000000 00000001 00000000 2a"));
        // A wrong T is no evidence that DDP changed RDMAP's octets.
        let reserved = one("c150 11223344 0000000000001000 2a");
        proves(requirement!("DDP-4.2-2"), &reserved, &one("c143 00000000 00000000 00000001 00000000 2a"));
        proves(requirement!("DDP-4.3-2"), &word, &one("4140 11223344 0000000000001000 2a2a2a2a"));
    }

    #[test]
    fn octets_that_rdmap_may_have_given() {
        let word = one("4143 00000007 00000000 00000001 00000000 2a");
        let reserved = one("c150 11223344 0000000000001000 2a");
        // It is possible that RDMAP gave a wrong RV to DDP.
        proves(requirement!("DDP-4.2-2"), &reserved, &one("c100 11223344 0000000000001000 2a"));
        proves(requirement!("DDP-4.3-2"), &word, &one("4103 00000000 00000000 00000001 00000000 2a"));
        // A message with the opcode for experiments is allowed to be tagged (RFC 6580 section 3.4).
        proves(requirement!("DDP-4.2-2"), &reserved, &one("c14f 11223344 0000000000001000 2a"));
        proves(
            requirement!("DDP-5.2-9"),
            &one("c550 00000000 0000000000000000"),
            &one("c140 00000000 0000000000000000"),
        );
    }

    /// The capture begins after the start-up frames, so it is possible that the peers agreed on
    /// version 0.
    #[test]
    fn version_0_in_mid_stream_may_be_agreed_on() {
        let mut wire = Wire::connected();
        wire.lose(0, &crate::testing::request());
        for msn in 1..9 {
            wire.send_ulpdu(0, &format!("4003 00000000 00000000 {msn:08x} 00000000 2a"));
        }
        assert!(wire.findings().iter().all(|finding| finding.requirement != requirement!("DDP-4.1-12")));
    }
}
