//! Splits units into fields with name, value and octets.
//!
//! Each protocol has one file. The file defines the fields of the protocol and the nom grammar that
//! reads the fields. If Wireshark has the same field, weft uses Wireshark's name for it. A grammar
//! reads the octets and passes each field to a [`Visitor`]. JSON, text, the field tree and the
//! display filter are visitors. Therefore each field is defined only once. If the octets of a field
//! were not captured, the field is not passed to the visitor.
//!
//! **Offsets in a unit.** The range of a field counts octets from the start of the unit that
//! contains the field. A start-up frame starts at its key, and an FPDU at `ULPDU_Length`. In an
//! FPDU, the offsets are not the positions on the wire. `ULPDU_Length`, ULPDU and PAD have the
//! first offsets, as if there were no markers. The CRC field has the next offsets, and all markers
//! have the last offsets, in stream order.
//! [`Unit::locate`](crate::parse::Unit::locate) converts a range to locations in the capture.
//!
//! This module does not check values.

pub mod ddp;
pub mod field;
pub mod iser;
pub mod mpa;
pub mod nfs;
pub mod nvme;
mod output;
pub mod portmap;
pub mod rdmap;
mod reader;
pub mod rpc;
pub mod rpcordma;
pub mod sdp;
pub mod sdp_state;
#[cfg(test)]
mod sections;
pub mod smb;
#[cfg(test)]
mod tests;
pub mod ulp;

pub use field::{Base, Field, Group, Value, Visitor};
pub use reader::Reader;

use weft_core::wire::mpa::StartupKind;

use crate::context::Context;
use crate::part::Part;
use crate::unit::{Kind, Unit};
use crate::upper::{Ulp, UlpMessage};

/// Every field that a grammar passes to visitors.
pub fn fields() -> impl Iterator<Item = &'static Field> {
    [mpa::FIELDS, ddp::FIELDS, rdmap::FIELDS, sdp::FIELDS, sdp_state::FIELDS, portmap::FIELDS, ulp::FIELDS]
        .into_iter()
        .flatten()
        .copied()
        .chain(nvme::fields())
        .chain(iser::fields())
        .chain(smb::fields())
        .chain(rpc_fields())
}

/// Every field of RPC-over-RDMA, and of the messages that it carries.
fn rpc_fields() -> impl Iterator<Item = &'static Field> {
    [rpcordma::FIELDS, rpc::FIELDS, nfs::FIELDS].into_iter().flatten().copied()
}

/// Whether a unit can have the field several times. JSON then has a list of values.
pub(crate) fn is_list(field: &Field) -> bool {
    rpcordma::is_list(field) || rpc::is_list(field) || nfs::is_list(field)
}

/// All fields whose values come from the state of the monitor. The list also contains those fields
/// of the port mapper whose values come from octets, because [`portmap::FIELDS`] contains both
/// kinds of fields. It contains all fields of NVMe, iSER, SMB and RPC-over-RDMA, because only the
/// monitor recognises these protocols.
pub(crate) fn fields_of_context() -> impl Iterator<Item = &'static Field> {
    [sdp_state::FIELDS, portmap::FIELDS, ulp::FIELDS]
        .into_iter()
        .flatten()
        .copied()
        .chain(nvme::fields())
        .chain(iser::fields())
        .chain(smb::fields())
        .chain(rpc_fields())
}

/// The label of the payload that [`walk`] returns. For a Terminate, the payload consists of the
/// octets after the Terminate header. These octets do not belong to the protocol above RDMAP.
#[must_use]
pub fn payload_label(unit: &Unit<'_>) -> &'static str {
    use weft_core::wire::{ddp::Segment, rdmap::Opcode};
    if let Kind::Fpdu(fpdu) = &unit.kind
        && let Ok(Segment::Untagged(header, _)) = Segment::parse(fpdu.ulpdu().raw().0)
        && header.ulp_control.opcode() == Opcode::TERMINATE
    {
        return "bytes after the Terminate header (not announced by HdrCt)";
    }
    "ULP payload"
}

/// Passes all fields of `unit` to `visitor`. Returns the payload of an FPDU or SDP message, or
/// `None` if the start of the payload is unknown.
pub fn walk<'a, V: Visitor>(unit: &Unit<'a>, visitor: &mut V) -> Option<Part<'a>> {
    let payload = visit_octets(unit, visitor);
    if let Some(context) = unit.context {
        visit_context(unit, context, payload, visitor);
    }
    payload
}

/// Visits the fields that have octets in `unit`.
fn visit_octets<'a, V: Visitor>(unit: &Unit<'a>, visitor: &mut V) -> Option<Part<'a>> {
    match &unit.kind {
        Kind::Startup(kind, part) => {
            mpa::startup(*kind, &mut Reader::new(*part, 0, visitor));
            let responder = if *kind == StartupKind::Request { unit.ends.dst } else { unit.ends.src };
            smb::visit_startup(*part, responder.port(), visitor);
            rpcordma::visit_startup(*part, visitor);
            None
        }
        Kind::Fpdu(fpdu) => mpa::fpdu(fpdu, visitor),
        Kind::Sdp(carrier, order, part) => sdp::message(*carrier, *order, &mut Reader::new(*part, 0, visitor)),
        Kind::PortMapper(part) => {
            portmap::message(&mut Reader::new(*part, 0, visitor));
            None
        }
        Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. } => None,
    }
}

/// Visits the fields that the monitor derives from earlier units. `payload` is the payload of an
/// FPDU.
fn visit_context<V: Visitor>(unit: &Unit<'_>, context: &Context, payload: Option<Part<'_>>, visitor: &mut V) {
    if let (Kind::Startup(kind, part), Some(Ulp::Nvme)) = (&unit.kind, context.ulp_startup) {
        nvme::visit_startup(*kind, unit.direction.into(), *part, visitor);
    }
    match (&unit.kind, context) {
        (Kind::Fpdu(_), context) => {
            ulp::visit(context, unit.octets_len(), visitor);
            match &context.ulp_message {
                Some(UlpMessage::Nvme(message)) => {
                    nvme::visit_message(message, payload, unit.octets_len(), visitor);
                }
                Some(UlpMessage::Iser(message)) => iser::visit(message, payload, unit.octets_len(), visitor),
                _ => {}
            }
            if let Some(smb) = &context.smb {
                smb::visit(smb, unit.octets_len(), visitor);
            }
            if let Some(decoded) = &context.rpc {
                rpcordma::visit(decoded, unit.octets_len(), visitor);
                rpc::visit(decoded, unit.octets_len(), visitor);
                nfs::visit(decoded, unit.octets_len(), visitor);
            }
        }
        (Kind::Startup(_, part), Context { exchange: Some(exchange), .. }) => {
            portmap::visit_exchange(exchange, false, part.len(), visitor);
        }
        (Kind::Sdp(_, _, part), Context { sdp: Some(state), exchange, .. }) => {
            sdp_state::visit(state, part.len(), visitor);
            if let Some(exchange) = exchange.as_ref().filter(|_| state.closing.hello_ack.is_none()) {
                portmap::visit_exchange(exchange, false, part.len(), visitor);
            }
        }
        (Kind::PortMapper(part), Context { exchange: Some(exchange), .. }) => {
            portmap::visit_exchange(exchange, true, part.len(), visitor);
        }
        _ => {}
    }
}
