//! What is known of the protocol above RDMAP: fields without octets of their own, behind an FPDU.

use crate::context::Context;

use super::field::{Base, Field, Group, Value, Visitor, fields};

/// The protocol above.
pub static ULP: Group = Group { name: "weft.ulp.books", label: "What the payload is", section: "" };

fields! { 6:
    NAME: "weft.ulp", "Protocol above RDMAP", Base::Text, "";
    MESSAGE: "weft.ulp.message", "Its message", Base::Text, "";
}

/// The name of the connection's protocol, and what the message says that the segment ends.
pub(super) fn told<V: Visitor>(context: &Context, at: usize, visitor: &mut V) {
    let Some(ulp) = context.ulp else { return };
    visitor.enter(&ULP, at..at);
    visitor.field(&NAME, Value::Text(ulp.name()), at..at);
    if let Some(said) = &context.said {
        visitor.field(&MESSAGE, Value::Text(said.message()), at..at);
    }
    visitor.leave();
}
