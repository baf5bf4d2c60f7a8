//! Checks SCSI Commands, and reports PDUs that iSER replaces by RDMA operations or forbids.

use weft_core::requirement;

use super::sent::{SENDS, Sent, octet};
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, Unit};
use crate::rules::rule::{Check, Findings, Rule};
use crate::upper::iser::{Content, Opcode};

pub(super) static FORBIDDEN: Rule =
    Check::Opcode(SENDS, forbidden).covers(requirements!["ISER-7.3.5-1", "ISER-7.3.6-1", "ISER-7.3.11-1"]);

fn forbidden(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    for (opcode, id, expected) in [
        (Opcode::DATA_IN, requirement!("ISER-7.3.5-1"), "an RDMA Write with the data"),
        (Opcode::R2T, requirement!("ISER-7.3.6-1"), "an RDMA Read Request for the data"),
        (Opcode::SNACK_REQUEST, requirement!("ISER-7.3.11-1"), "no SNACK Request"),
    ] {
        if sent.pdu(opcode).is_some() {
            sent.report_bhs(findings, id, 0..1, expected, opcode.name());
        }
    }
}

pub(super) static FLAGS: Rule = Check::Opcode(SENDS, flags).covers(requirements![
    "ISER-7143.11-1",
    "ISER-7143.11.3.1-1",
    "ISER-7143.11.3.1-2",
    "ISER-7143.11.3.4-1",
    "ISER-7143.11.3.4-2"
]);

fn flags(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Some(pdu) = sent.pdu(Opcode::SCSI_COMMAND) else { return };
    let Content::ScsiCommand(command) = pdu.content() else { return };
    let found = || format!("flags {:#04x}, Expected Data Transfer Length {}", octet(pdu, 1), command.expected_len);
    if octet(pdu, 1) & 0x18 != 0 || octet(pdu, 2) != 0 || octet(pdu, 3) != 0 {
        let found = format!("{:02x}{:02x}{:02x}", octet(pdu, 1), octet(pdu, 2), octet(pdu, 3));
        let expected = "zero in bits 3 and 4 of the flags and in the next two bytes";
        sent.report_bhs(findings, requirement!("ISER-7143.11-1"), 1..4, expected, found);
    }
    if !command.writes && !command.is_final {
        sent.report_bhs(findings, requirement!("ISER-7143.11.3.1-1"), 1..2, "W or F", found());
    }
    if !command.writes && !command.reads && command.expected_len != 0 {
        let expected = "R or W, because the length is not 0";
        sent.report_bhs(findings, requirement!("ISER-7143.11.3.1-2"), 1..2, expected, found());
    }
    if command.writes && command.reads && pdu.additional_len() == 0 {
        let expected = "an additional header segment with the length to read, because R and W are 1";
        sent.report_bhs(findings, requirement!("ISER-7143.11.3.4-1"), 4..5, expected, "TotalAHSLength 0");
    }
    if command.writes && !command.is_final && command.expected_len == pdu.data_len() {
        let expected = "F, because the command has all data";
        sent.report_bhs(findings, requirement!("ISER-7143.11.3.4-2"), 1..2, expected, found());
    }
}

pub(super) static BUFFERS: Rule = Check::Opcode(SENDS, buffers).covers(requirements!["ISER-7.3.1-1", "ISER-7.3.1-2"]);

fn buffers(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Some(pdu) = sent.pdu(Opcode::SCSI_COMMAND) else { return };
    let Content::ScsiCommand(command) = pdu.content() else { return };
    let (header, len) = (pdu.header(), command.expected_len);
    // With F=0, Data-Out PDUs follow. They can have all the remaining data.
    if command.writes && command.is_final && len > pdu.data_len() && header.write().is_none() {
        let expected = format!("a Write STag, because the command has {} of {len} bytes", pdu.data_len());
        sent.report(findings, requirement!("ISER-7.3.1-1"), 0..1, &expected, "WSV 0");
    }
    // If the command also writes, the length is the length to write.
    if command.reads && !command.writes && len > 0 && header.read().is_none() {
        let expected = format!("a Read STag, because the command reads {len} bytes");
        sent.report(findings, requirement!("ISER-7.3.1-2"), 0..1, &expected, "RSV 0");
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::super::testing::{
        NO_BUFFERS, NOP_OUT, PLAIN, READ_BUFFER, WRITE_BUFFER, after_login, command, is_clean, pdu,
    };
    use crate::testing::{Wire, proves};

    fn one(direction: usize, header: &str, bhs: &str) -> Wire {
        after_login(&[(direction, PLAIN, pdu(header, bhs).as_str())])
    }

    #[test]
    fn data_and_requests_for_data_are_no_pdus() {
        let good = one(0, NO_BUFFERS, NOP_OUT);
        let rest = &NOP_OUT[4..];
        for (id, direction, start) in [
            (requirement!("ISER-7.3.5-1"), 1, "2580"),
            (requirement!("ISER-7.3.6-1"), 1, "3180"),
            (requirement!("ISER-7.3.11-1"), 0, "1080"),
        ] {
            proves(id, &one(direction, NO_BUFFERS, &format!("{start}{rest}")), &good);
        }
    }

    #[test]
    fn flags_of_a_command() {
        let good = one(0, READ_BUFFER, &command("01c10000", 36));
        is_clean(&good);
        proves(requirement!("ISER-7143.11-1"), &one(0, READ_BUFFER, &command("01c90000", 36)), &good);
        proves(requirement!("ISER-7143.11-1"), &one(0, READ_BUFFER, &command("01c10100", 36)), &good);
        proves(requirement!("ISER-7143.11.3.1-1"), &one(0, READ_BUFFER, &command("01410000", 36)), &good);
        let empty = one(0, NO_BUFFERS, &command("01810000", 0));
        is_clean(&empty);
        proves(requirement!("ISER-7143.11.3.1-2"), &one(0, NO_BUFFERS, &command("01810000", 36)), &empty);
        let write = one(0, WRITE_BUFFER, &command("01a10000", 512));
        is_clean(&write);
        proves(requirement!("ISER-7143.11.3.4-1"), &one(0, WRITE_BUFFER, &command("01e10000", 512)), &write);
        // A write of no bytes, with F=0. The same command with F=1 conforms.
        let nothing = one(0, NO_BUFFERS, &command("01a10000", 0));
        proves(requirement!("ISER-7143.11.3.4-2"), &one(0, NO_BUFFERS, &command("01210000", 0)), &nothing);
    }

    #[test]
    fn commands_with_data_have_buffers() {
        let write = one(0, WRITE_BUFFER, &command("01a10000", 512));
        proves(requirement!("ISER-7.3.1-1"), &one(0, NO_BUFFERS, &command("01a10000", 512)), &write);
        // With F=0, Data-Out PDUs have the data.
        let unsolicited = one(0, NO_BUFFERS, &command("01210000", 512));
        proves(requirement!("ISER-7.3.1-1"), &one(0, NO_BUFFERS, &command("01a10000", 1)), &unsolicited);
        let read = one(0, READ_BUFFER, &command("01c10000", 36));
        proves(requirement!("ISER-7.3.1-2"), &one(0, NO_BUFFERS, &command("01c10000", 36)), &read);
        let nothing = one(0, NO_BUFFERS, &command("01c10000", 0));
        proves(requirement!("ISER-7.3.1-2"), &one(0, NO_BUFFERS, &command("01c10000", 1)), &nothing);
    }
}
