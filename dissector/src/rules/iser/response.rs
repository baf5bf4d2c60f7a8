//! Checks SCSI Responses. A response can invalidate an STag of its command.

use weft_core::requirement;
use weft_core::wire::ddp::Segment;

use super::sent::{SENDS, Sent, octet};
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};
use crate::upper::iser::Opcode;

pub(super) static FLAGS: Rule =
    Check::Opcode(SENDS, flags).covers(requirements!["ISER-7143.11-1", "ISER-7143.11.4.1-1", "ISER-7143.11.4.1-2"]);

fn flags(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Some(pdu) = sent.pdu(Opcode::SCSI_RESPONSE) else { return };
    let (flags, response) = (octet(pdu, 1), octet(pdu, 2));
    let found = || format!("flags {flags:#04x}");
    if flags & 0x61 != 0 {
        let expected = "zero in bits 1, 2 and 7 of the flags";
        sent.report_bhs(findings, requirement!("ISER-7143.11-1"), 1..2, expected, found());
    }
    if flags & 0x06 == 0x06 || flags & 0x18 == 0x18 {
        let expected = "at most one of O and U, and at most one of o and u";
        sent.report_bhs(findings, requirement!("ISER-7143.11.4.1-1"), 1..2, expected, found());
    }
    if response != 0 && flags & 0x1e != 0 {
        let expected = format!("zero in bits 3 to 6 of the flags, because the response is {response:#04x}");
        sent.report_bhs(findings, requirement!("ISER-7143.11.4.1-2"), 1..2, &expected, found());
    }
}

pub(super) static INVALIDATED: Rule =
    Check::Opcode(SENDS, invalidated).covers(requirements!["ISER-7.3.2-2", "ISER-7.3.2-3", "ISER-7.3.2-4"]);

/// A Send without Invalidate conforms: RFC 7145 only permits the Send with Invalidate.
fn invalidated(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    if !view.opcode().invalidates() {
        return;
    }
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Some(request) = sent.pdu(Opcode::SCSI_RESPONSE).and_then(|pdu| pdu.request) else { return };
    // If the capture lacks octets or order, the known command can be an older command with the same
    // tag.
    if !state.is_in_send_order() || state.peer_has_unread && state.traffic.crc_is_off() {
        return;
    }
    let Segment::Untagged(header, _) = view.segment else { return };
    let stag = header.ulp_word.get();
    let (id, expected) = match (request.header.read(), request.header.write()) {
        (Some(read), _) if read.stag != stag => {
            (requirement!("ISER-7.3.2-3"), format!("Read STag {:#010x} of the command", read.stag))
        }
        (None, Some(write)) if write.stag != stag => {
            (requirement!("ISER-7.3.2-4"), format!("Write STag {:#010x} of the command", write.stag))
        }
        (None, None) => {
            (requirement!("ISER-7.3.2-2"), "a Send without Invalidate, because the command has no STag".to_owned())
        }
        _ => return,
    };
    let expected = format!("{expected} (command in frame {})", request.frame);
    findings.report(id, unit, ULPDU_AT + 2..ULPDU_AT + 6, &expected, format!("Invalidate STag {stag:#010x}"));
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::super::testing::{
        NO_BUFFERS, PLAIN, READ_BUFFER, RESPONSE, WRITE_BUFFER, after_login, command, is_clean, pdu,
    };
    use crate::testing::{Wire, proves};

    /// A response with these flags and with this response code.
    fn response(flags: &str) -> Wire {
        let bhs = format!("21{flags}00{}", &RESPONSE[8..]);
        after_login(&[(1, PLAIN, pdu(NO_BUFFERS, &bhs).as_str())])
    }

    #[test]
    fn flags_of_a_response() {
        let good = response("8200");
        is_clean(&good);
        proves(requirement!("ISER-7143.11-1"), &response("c200"), &good);
        proves(requirement!("ISER-7143.11.4.1-1"), &response("8600"), &good);
        proves(requirement!("ISER-7143.11.4.1-1"), &response("9800"), &good);
        proves(requirement!("ISER-7143.11.4.1-2"), &response("8201"), &response("8001"));
        proves(requirement!("ISER-7143.11.4.1-2"), &response("8201"), &good);
    }

    /// A command, and its response in a Send with Invalidate with this STag.
    fn answered(header: &str, start: &str, len: u32, stag: &str) -> Wire {
        let request = pdu(header, &command(start, len));
        let (control, response) = (format!("4144 {stag}"), pdu(NO_BUFFERS, RESPONSE));
        after_login(&[(0, PLAIN, request.as_str()), (1, control.as_str(), response.as_str())])
    }

    #[test]
    fn a_response_invalidates_the_buffer_of_its_command() {
        let read = answered(READ_BUFFER, "01c10000", 36, "df379007");
        is_clean(&read);
        proves(requirement!("ISER-7.3.2-3"), &answered(READ_BUFFER, "01c10000", 36, "df379008"), &read);
        let write = answered(WRITE_BUFFER, "01a10000", 512, "0000beef");
        is_clean(&write);
        proves(requirement!("ISER-7.3.2-4"), &answered(WRITE_BUFFER, "01a10000", 512, "0000beee"), &write);
        let (request, response) = (pdu(NO_BUFFERS, &command("01810000", 0)), pdu(NO_BUFFERS, RESPONSE));
        let none = after_login(&[(0, PLAIN, request.as_str()), (1, PLAIN, response.as_str())]);
        is_clean(&none);
        proves(requirement!("ISER-7.3.2-2"), &answered(NO_BUFFERS, "01810000", 0, "0000beef"), &none);
    }

    #[test]
    fn a_response_without_its_command_is_not_judged() {
        let bad = answered(READ_BUFFER, "01c10000", 36, "df379008");
        proves(requirement!("ISER-7.3.2-3"), &bad, &bad.alone(1));
    }
}
