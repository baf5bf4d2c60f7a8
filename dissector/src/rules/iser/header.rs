//! Checks the fields of the iSER header, of Hello and of HelloReply.

use std::ops::Range;

use weft_core::{RequirementId, requirement};

use super::sent::{SENDS, Sent};
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, Unit};
use crate::rules::rule::{Check, Findings, Rule};
use crate::upper::iser::{HEADER_LEN, Message};

/// The version of iSER in RFC 7145.
const VERSION: u8 = 10;

pub(super) static CONTROL: Rule = Check::Opcode(SENDS, control).covers(requirements![
    "ISER-9.2-1",
    "ISER-9.2-2",
    "ISER-9.2-3",
    "ISER-9.2-4",
    "ISER-9.2-5"
]);

fn control(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Message::Pdu(pdu) = sent.message else { return };
    let (octets, header) = (pdu.head(), pdu.header());
    if octets[0] & 0b11 != 0 || octets[1..4] != [0; 3] {
        let found = format!("{:02x}{:02x}{:02x}{:02x}", octets[0], octets[1], octets[2], octets[3]);
        let expected = "reserved bits of zero in the first four bytes of the iSER header";
        sent.report(findings, requirement!("ISER-9.2-5"), 0..4, expected, found);
    }
    let write: [(RequirementId, Range<usize>, &str); 2] = [
        (requirement!("ISER-9.2-1"), 4..8, "Write STag 0, because WSV is 0"),
        (requirement!("ISER-9.2-2"), 8..16, "Write Base Offset 0, because WSV is 0"),
    ];
    let read: [(RequirementId, Range<usize>, &str); 2] = [
        (requirement!("ISER-9.2-3"), 16..20, "Read STag 0, because RSV is 0"),
        (requirement!("ISER-9.2-4"), 20..28, "Read Base Offset 0, because RSV is 0"),
    ];
    for (is_valid, fields) in [(header.write().is_some(), write), (header.read().is_some(), read)] {
        for (id, range, expected) in fields {
            let field = &octets[range.clone()];
            if !is_valid && field.iter().any(|octet| *octet != 0) {
                sent.report(findings, id, range, expected, hexadecimal(field));
            }
        }
    }
}

pub(super) static HELLO: Rule = Check::Opcode(SENDS, hello).covers(requirements![
    "ISER-9.3-1",
    "ISER-9.3-2",
    "ISER-9.3-3",
    "ISER-9.4-1",
    "ISER-9.4-2",
    "ISER-9.4-3"
]);

fn hello(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let (versions, reserved, id) = match sent.message {
        Message::Pdu(_) => return,
        Message::Hello(hello) => (
            [
                (requirement!("ISER-9.3-1"), "MaxVer", hello.max_version),
                (requirement!("ISER-9.3-2"), "MinVer", hello.min_version),
            ],
            hello.flags & 0xf,
            requirement!("ISER-9.3-3"),
        ),
        Message::HelloReply(reply) => (
            [
                (requirement!("ISER-9.4-1"), "MaxVer", reply.max_version),
                (requirement!("ISER-9.4-2"), "CurVer", reply.current_version),
            ],
            reply.flags & 0xe,
            requirement!("ISER-9.4-3"),
        ),
    };
    for (id, name, version) in versions {
        if version != VERSION {
            sent.report(findings, id, 1..2, &format!("{name} {VERSION}"), format!("{name} {version}"));
        }
    }
    if reserved != 0 {
        sent.report(findings, id, 0..1, "reserved bits of zero", format!("{reserved:#03x}"));
    }
    // A message with several segments does not have these octets in its last segment.
    let rest = view.payload.get(4..HEADER_LEN).filter(|_| view.payload_len as usize == HEADER_LEN);
    if let Some(rest) = rest.filter(|rest| rest.iter().any(|octet| *octet != 0)) {
        sent.report(findings, id, 4..HEADER_LEN, "reserved bytes of zero after the first word", hexadecimal(rest));
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().fold("0x".to_owned(), |text, octet| format!("{text}{octet:02x}"))
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::super::testing::{NO_BUFFERS, NOP_OUT, PLAIN, after_login, is_clean, pdu};
    use crate::testing::{Wire, proves};

    /// A NOP-Out with this iSER header.
    fn nop(header: &str) -> Wire {
        after_login(&[(0, PLAIN, pdu(header, NOP_OUT).as_str())])
    }

    #[test]
    fn fields_without_a_buffer_are_zero() {
        let good = nop(NO_BUFFERS);
        is_clean(&good);
        let zero = "0000000000000000";
        proves(requirement!("ISER-9.2-1"), &nop(&format!("10000000 00000001 {zero} 00000000 {zero}")), &good);
        proves(requirement!("ISER-9.2-2"), &nop(&format!("10000000 00000000 0000000000000001 00000000 {zero}")), &good);
        proves(requirement!("ISER-9.2-3"), &nop(&format!("10000000 00000000 {zero} 00000001 {zero}")), &good);
        proves(requirement!("ISER-9.2-4"), &nop(&format!("10000000 00000000 {zero} 00000000 8000000000000000")), &good);
        proves(requirement!("ISER-9.2-5"), &nop(&format!("11000000 00000000 {zero} 00000000 {zero}")), &good);
        proves(requirement!("ISER-9.2-5"), &nop(&format!("10000001 00000000 {zero} 00000000 {zero}")), &good);
    }

    #[test]
    fn hello_has_version_10_and_no_reserved_bits() {
        let rest = "000000000000000000000000000000000000000000000000";
        let of = |direction: usize, word: &str, rest: &str| {
            after_login(&[(direction, PLAIN, format!("{word}{rest}").as_str())])
        };
        let (good, good_reply) = (of(0, "20aa0004", rest), of(1, "31aa0004", rest));
        is_clean(&good);
        is_clean(&good_reply);
        let last = "000000000000000000000000000000000000000000000001";
        proves(requirement!("ISER-9.3-1"), &of(0, "20ba0004", rest), &good);
        proves(requirement!("ISER-9.3-2"), &of(0, "20a10004", rest), &good);
        proves(requirement!("ISER-9.3-3"), &of(0, "21aa0004", rest), &good);
        proves(requirement!("ISER-9.3-3"), &of(0, "20aa0004", last), &good);
        proves(requirement!("ISER-9.4-1"), &of(1, "30ba0004", rest), &good_reply);
        proves(requirement!("ISER-9.4-2"), &of(1, "30a10004", rest), &good_reply);
        proves(requirement!("ISER-9.4-3"), &of(1, "32aa0004", rest), &good_reply);
        proves(requirement!("ISER-9.4-3"), &of(1, "30aa0004", last), &good_reply);
    }
}
