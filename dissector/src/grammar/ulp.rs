//! Defines fields for the protocol above RDMAP. These fields follow the other fields of an FPDU,
//! and have no octets.

use crate::context::Context;

use super::field::{Base, Field, Group, Value, Visitor, fields};

/// The group of these fields.
pub static ULP: Group = Group { name: "weft.ulp.followed", label: "Protocol of the payload", section: "" };

fields! { 6:
    NAME: "weft.ulp", "Protocol above RDMAP", Base::Text, "";
    MESSAGE: "weft.ulp.message", "Message of this protocol", Base::Text, "";
}

/// Visits the name of the protocol, and the name of the message that the segment in the FPDU
/// completes.
pub(super) fn visit<V: Visitor>(context: &Context, at: usize, visitor: &mut V) {
    let Some(ulp) = context.ulp else { return };
    visitor.enter(&ULP, at..at);
    visitor.field(&NAME, Value::Text(ulp.name()), at..at);
    if let Some(message) = &context.ulp_message {
        visitor.field(&MESSAGE, Value::Text(message.message()), at..at);
    }
    visitor.leave();
}
