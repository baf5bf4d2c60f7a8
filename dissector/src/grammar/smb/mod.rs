//! Defines the fields of SMB Direct and of the messages of SMB 2 and 3 that it carries.
//!
//! weft shows these fields on connections on which it recognised SMB Direct. The exception is the
//! private data of start-up frames. weft shows its fields only on port 5445, because the frames
//! come before the recognition. If Wireshark has the same field, weft uses Wireshark's name for it.
//!
//! A message can have several segments, and an SMB message several Data Transfers. Then the fields
//! follow the last segment, and have no octets.

mod body;
pub mod direct;
mod pdu;
pub mod smb2;

use weft_core::wire::ddp::RawUntagged;

use super::field::{Field, Visitor};
use super::output::Output;
use crate::parse::ULPDU_AT;
use crate::part::Part;
use crate::upper::smb_direct::SmbState;

/// Offset of the payload of an untagged segment in its FPDU.
const PAYLOAD_AT: usize = ULPDU_AT + RawUntagged::LEN;

/// Every field of SMB Direct and of SMB.
pub(super) fn fields() -> impl Iterator<Item = &'static Field> {
    [direct::FIELDS, smb2::FIELDS].into_iter().flatten().copied()
}

/// Visits the private data of a start-up frame. `server_port` is the port of its responder.
pub(super) fn visit_startup<V: Visitor>(part: Part<'_>, server_port: u16, visitor: &mut V) {
    direct::visit_startup(part, server_port, visitor);
}

/// Visits the message of SMB Direct and the message of SMB that end with an FPDU. `end` is the
/// offset after the last octet of the unit.
pub(super) fn visit<V: Visitor>(state: &SmbState, end: usize, visitor: &mut V) {
    let Some(transport) = state.transport() else { return };
    let upper = state.latest();
    let start = state.is_single().then_some(PAYLOAD_AT);
    direct::visit(transport, upper, &mut Output::new(visitor, start, end));
    if let Some((at, message)) = upper.and_then(|upper| Some((upper.at, upper.message.as_ref()?))) {
        let start = at.and_then(|at| PAYLOAD_AT.checked_add(usize::try_from(at).ok()?));
        pdu::visit(message, start, end, visitor);
    }
}

#[cfg(test)]
mod tests;
