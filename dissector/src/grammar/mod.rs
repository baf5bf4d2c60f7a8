//! Takes units apart into fields: name, value, octets.
//!
//! One file a protocol holds its fields (Wireshark's names where Wireshark has the field) and the nom grammar that reads
//! them. A grammar walks over the octets and tells a [`Visitor`] what it meets; JSON, text, the field tree and the display
//! filter are visitors, so each field is known in one place. Fields with octets that were not captured are not told.
//!
//! **Unit coordinates.** Ranges count octets of the unit: of a start-up frame from its key; of an FPDU from `ULPDU_Length`, with
//! markers left out, the CRC field behind PAD, and the markers behind the CRC field, in stream order.
//! [`Unit::locate`](crate::unit::Unit::locate) turns them into frames of the capture.
//!
//! Nothing here judges values.

pub mod ddp;
pub mod field;
pub mod mpa;
pub mod portmap;
pub mod rdmap;
mod reader;
pub mod sdp;
pub mod sdp_books;
#[cfg(test)]
mod sections;
#[cfg(test)]
mod tests;
pub mod ulp;

pub use field::{Base, Field, Group, Value, Visitor};
pub use reader::Reader;

use crate::context::Context;
use crate::part::Part;
use crate::unit::{Kind, Unit};

/// Every field that a grammar tells.
pub fn fields() -> impl Iterator<Item = &'static Field> {
    [mpa::FIELDS, ddp::FIELDS, rdmap::FIELDS, sdp::FIELDS, sdp_books::FIELDS, portmap::FIELDS, ulp::FIELDS]
        .into_iter()
        .flatten()
        .copied()
}

/// Those that the monitor must be there for.
pub(crate) fn fields_of_context() -> impl Iterator<Item = &'static Field> {
    [sdp_books::FIELDS, portmap::FIELDS, ulp::FIELDS].into_iter().flatten().copied()
}

/// What the payload that [`walk`] gives is called: what stands behind a Terminate header is no payload of the ULP's.
#[must_use]
pub fn payload_label(unit: &Unit<'_>) -> &'static str {
    use weft_core::wire::{ddp::Segment, rdmap::Opcode};
    match &unit.kind {
        Kind::Fpdu(fpdu) => match Segment::parse(fpdu.ulpdu().raw().0) {
            Ok(Segment::Untagged(header, _)) if header.ulp_control.opcode() == Opcode::TERMINATE => {
                "octets behind the Terminate header (HdrCt announces none)"
            }
            _ => "ULP payload",
        },
        _ => "ULP payload",
    }
}

/// Tells `visitor` all fields of `unit`; gives the payload of an FPDU or SDP message, where it is known where that
/// begins.
pub fn walk<'a, V: Visitor>(unit: &Unit<'a>, visitor: &mut V) -> Option<Part<'a>> {
    let payload = octets(unit, visitor);
    if let Some(context) = unit.context {
        beyond(unit, context, visitor);
    }
    payload
}

/// What the octets of `unit` say.
fn octets<'a, V: Visitor>(unit: &Unit<'a>, visitor: &mut V) -> Option<Part<'a>> {
    match &unit.kind {
        Kind::Startup(kind, part) => {
            mpa::startup(*kind, &mut Reader::new(*part, 0, visitor));
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

/// What the monitor knows beside them.
fn beyond<V: Visitor>(unit: &Unit<'_>, context: &Context, visitor: &mut V) {
    match (&unit.kind, context) {
        (Kind::Fpdu(_), context) => ulp::told(context, unit.octets_len(), visitor),
        (Kind::Startup(_, part), Context { exchange: Some(exchange), .. }) => {
            portmap::followed(exchange, part.len(), visitor);
        }
        (Kind::Sdp(_, _, part), Context { sdp: Some(books), exchange, .. }) => {
            sdp_books::told(books, part.len(), visitor);
            if let Some(exchange) = exchange.as_ref().filter(|_| books.closing.hello_ack.is_none()) {
                portmap::followed(exchange, part.len(), visitor);
            }
        }
        (Kind::PortMapper(part), Context { exchange: Some(exchange), .. }) => {
            portmap::exchange(exchange, part.len(), visitor);
        }
        _ => {}
    }
}
