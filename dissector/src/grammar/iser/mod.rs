//! Defines the fields of iSER: iSER headers, iSCSI PDUs, and SCSI commands.
//!
//! weft shows these fields only on connections on which it recognised iSER. If Wireshark has the
//! same field, weft uses Wireshark's name for it.
//!
//! A Send can have several segments. Then the fields follow the last segment, and have no octets.
//! The fields of the data segment are then missing.

pub mod header;
pub mod pdu;
mod rows;
pub mod scsi;
pub mod session;

use super::field::{Field, Group, Value, Visitor};
use super::output::Output;
use crate::part::Part;
use crate::upper::iser::{HEAD_LEN, HEADER_LEN, Message, Opcode, Pdu, text};

/// An iSCSI PDU, without its SCSI fields.
pub static PDU: Group = Group { name: "iscsi", label: "iSCSI PDU", section: "RFC 7143 11.2.1" };

/// Every field of iSER.
pub(super) fn fields() -> impl Iterator<Item = &'static Field> {
    [header::FIELDS, pdu::FIELDS, session::FIELDS, scsi::FIELDS].into_iter().flatten().copied()
}

/// Visits the message that an FPDU completes. `payload` is the payload of the FPDU, and `end` is
/// the offset after the last octet of the unit.
pub(super) fn visit<V: Visitor>(message: &Message, payload: Option<Part<'_>>, end: usize, visitor: &mut V) {
    let len = payload.map_or(0, |payload| payload.len());
    // The Send is in this FPDU if the FPDU has all of its octets.
    let is_here = match message {
        Message::Pdu(pdu) => len == pdu.len as usize,
        Message::Hello(_) | Message::HelloReply(_) => len == HEADER_LEN,
    };
    let start = is_here.then(|| end.saturating_sub(len));
    let mut output = Output::new(visitor, start, end);
    match message {
        Message::Pdu(pdu) => visit_pdu(pdu, payload.filter(|_| is_here), &mut output),
        Message::Hello(hello) => header::visit_hello(hello, &mut output),
        Message::HelloReply(reply) => header::visit_hello_reply(reply, &mut output),
    }
}

/// Visits a PDU. `send` has all octets of the Send, if they are known.
fn visit_pdu<V: Visitor>(pdu: &Pdu, send: Option<Part<'_>>, output: &mut Output<'_, V>) {
    let (opcode, data_at) = (pdu.opcode(), pdu.data_at());
    let data_end = data_at.saturating_add(pdu.data_len() as usize);
    header::visit_control(&pdu.header(), output);
    output.enter(&PDU, HEADER_LEN..HEAD_LEN);
    output.rows(rows::COMMON, pdu.head());
    output.rows(rows::of(opcode), pdu.head());
    if let Some(len) = pdu.bidirectional_read_len {
        output.derived(&pdu::BIDIRECTIONAL_LENGTH, len);
    }
    if opcode == Opcode::SCSI_RESPONSE
        && let Some(&[high, low]) = send.and_then(|send| send.up_to(data_end).get(data_at..data_at + 2))
    {
        output.uint(&pdu::SENSE_LENGTH, u16::from_be_bytes([high, low]), data_at..data_at + 2);
    }
    if rows::has_text(opcode)
        && let Some(octets) = send.and_then(|send| send.get(data_at..data_end))
        && !octets.is_empty()
    {
        output.value(&session::KEY_VALUE, Value::PeerTexts(&text::pairs(octets)), data_at..data_end);
    }
    if let Some(request) = pdu.request {
        output.derived(&pdu::REQUEST_FRAME, request.frame);
        if let Some(cdb) = request.cdb {
            output.name(&scsi::NAME, cdb.name());
        }
    }
    output.leave();
    if let Some(cdb) = pdu.cdb() {
        scsi::visit_cdb(&cdb, output);
    }
    if let Some(sense) = &pdu.sense {
        scsi::visit_sense(sense, data_at + 2, output);
    }
}

#[cfg(test)]
mod tests;
