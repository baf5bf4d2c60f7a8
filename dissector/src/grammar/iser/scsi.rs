//! Defines the fields of SCSI: the command descriptor block of a command, and the sense data of a
//! response. The names of the sense fields are Wireshark's. In Wireshark, the name of the other
//! fields depends on the type of the device, which weft does not know.

use crate::grammar::field::{Base, Field, Group, Value, Visitor, fields};
use crate::grammar::output::Output;
use crate::upper::iser::{Cdb, HEADER_LEN, Sense, names};

/// A command descriptor block.
pub static CDB_GROUP: Group = Group { name: "scsi", label: "SCSI command", section: "RFC 7143 11.3.5" };
/// Sense data.
pub static SENSE_GROUP: Group = Group { name: "scsi.sns", label: "SCSI sense data", section: "RFC 7143 11.4.7.2" };

fields! { 14:
    NAME: "weft.scsi.command", "Name of the command", Base::Text, "SCSI";
    CDB: "weft.scsi.cdb", "CDB", Base::Octets, "RFC 7143 11.3.5";
    OPCODE: "weft.scsi.opcode", "Operation code", Base::Hex(2), "SCSI", names names::scsi_opcode;
    SERVICE_ACTION: "weft.scsi.service_action", "Service action", Base::Hex(4), "SCSI";
    LBA: "weft.scsi.lba", "First logical block", Base::Dec, "SCSI";
    BLOCKS: "weft.scsi.blocks", "Number of logical blocks", Base::Dec, "SCSI";
    SENSE_FORMAT: "scsi.sns.errtype", "Response code", Base::Hex(2), "SCSI", mask 0x7f, names names::sense_format;
    SENSE_KEY: "scsi.sns.key", "Sense key", Base::Hex(2), "SCSI", mask 0x0f, names names::sense_key;
    ASC: "scsi.sns.asc", "Additional sense code", Base::Hex(2), "SCSI";
    ASCQ: "scsi.sns.ascq", "Additional sense code qualifier", Base::Hex(2), "SCSI";
    ASC_ASCQ: "scsi.sns.ascascq", "Additional sense code and qualifier", Base::Hex(4), "SCSI", names names::sense_code;
}

/// Offset of the CDB in the Send, in octets.
const CDB_AT: usize = HEADER_LEN + 32;

/// Visits the CDB of a command.
pub(super) fn visit_cdb<V: Visitor>(cdb: &Cdb, output: &mut Output<'_, V>) {
    output.enter(&CDB_GROUP, CDB_AT..CDB_AT + cdb.0.len());
    output.name(&NAME, cdb.name());
    output.value(&CDB, Value::Octets(&cdb.0), CDB_AT..CDB_AT + cdb.0.len());
    output.uint(&OPCODE, cdb.opcode(), CDB_AT..CDB_AT + 1);
    if let Some(action) = cdb.service_action() {
        output.derived(&SERVICE_ACTION, action);
    }
    if let Some(blocks) = cdb.blocks() {
        output.derived(&LBA, blocks.lba);
        output.derived(&BLOCKS, blocks.count);
    }
    output.leave();
}

/// Visits sense data, which start at offset `at` of the Send.
pub(super) fn visit_sense<V: Visitor>(sense: &Sense, at: usize, output: &mut Output<'_, V>) {
    let (key, code) = if sense.is_fixed() { (2, 12) } else { (1, 2) };
    output.enter(&SENSE_GROUP, at..at + code + 2);
    output.uint(&SENSE_FORMAT, sense.response_code, at..at + 1);
    output.uint(&SENSE_KEY, sense.key, at + key..at + key + 1);
    output.uint(&ASC, sense.asc, at + code..at + code + 1);
    output.uint(&ASCQ, sense.ascq, at + code + 1..at + code + 2);
    output.uint(&ASC_ASCQ, u16::from_be_bytes([sense.asc, sense.ascq]), at + code..at + code + 2);
    output.leave();
}
