//! `sdp.hello{...}`, `sdp.data{...}` and the other SDP messages (draft-pinkerton-iwarp-sdp-01
//! section 6).
//!
//! `s:send` fills in Bufs, MSeq and MSeqAck from its connection if the table does not have them.

use mlua::{Lua, LuaString, Table};
use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, FLAG_REQ_PIPE, FieldOrder, Mid};

use crate::script::fields::Fields;
use crate::script::old_names;
use crate::sdp::{Counters, Draft};
use crate::stage::Message;

/// The counters of a message that is built without a connection.
const ALONE: Counters = Counters { bufs: 16, mseq: 0, mseq_ack: 0, order: FieldOrder::Figure };

/// The table has the fields of the base header (BSDH): `mid`, `bufs`, `len`, `mseq`, `mseq_ack`,
/// and the flags (either `flags`, or `oob_pres`, `oob_pend` and `req_pipe`). It also has the fields
/// of the extended header, `payload`, `trailing` (bytes that Len does not count) and `order`
/// (`"figure"` or `"mirrored"`).
pub(super) fn from_lua(lua: &Lua, what: &'static str, mid: Mid, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, what, table);
    let mut draft = Draft::new(mid);
    draft.mid = fields.or("mid", mid.0)?;
    let mut flags = 0;
    for (name, bit) in [("oob_pres", FLAG_OOB_PRES), ("oob_pend", FLAG_OOB_PEND), ("req_pipe", FLAG_REQ_PIPE)] {
        if fields.or(name, false)? {
            flags |= bit;
        }
    }
    draft.flags = fields.or("flags", flags)?;
    draft.bufs = fields.optional("bufs")?;
    draft.len = fields.optional("len")?;
    draft.mseq = fields.optional("mseq")?;
    draft.mseq_ack = fields.optional("mseq_ack")?;
    for (field, value) in &mut draft.extension {
        *value = fields.or(field.name, value.cast_signed())?.cast_unsigned();
    }
    draft.payload = fields.octets("payload")?.unwrap_or_default();
    draft.trailing = fields
        .renamed::<LuaString>("trailing", old_names::TRAILING)?
        .map(|octets| octets.as_bytes().to_vec())
        .unwrap_or_default();
    draft.order = match fields.optional::<String>("order")?.as_deref() {
        None => None,
        Some("figure") => Some(FieldOrder::Figure),
        Some("mirrored") => Some(FieldOrder::Mirrored),
        Some(_) => return Err(fields.wrong("order", "expected \"figure\" or \"mirrored\"")),
    };
    fields.done()?;
    Ok(Message { octets: draft.octets(ALONE), ..Message::of_draft(draft) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(script: &str) -> Vec<u8> {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let octets: mlua::LuaString = lua.load(script).eval().unwrap();
        octets.as_bytes().to_vec()
    }

    /// The expected bytes follow Figures 2 and 5 of the draft. The base header has Bufs 16, no
    /// flags, MID 0 and Len 32. The Hello has MaxAdverts 4, version 1.1, the buffer sizes 1000 and
    /// 4096, and IRD and ORD 4.
    #[test]
    fn a_hello_is_that_of_the_figure() {
        assert_eq!(
            octets("sdp.hello():octets()"),
            *b"\0\x10\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\0\x04\0\x11\0\0\x03\xe8\0\0\x10\0\0\x04\0\x04"
        );
        assert_eq!(
            octets("sdp.hello{order='mirrored'}:octets()")[..20],
            *b"\0\0\0\x10\0\0\0\x20\0\0\0\0\0\0\0\0\x11\0\0\x04"
        );
    }

    #[test]
    fn every_field_can_be_wrong() {
        let made = octets(
            "sdp.data{mid=0x0f, flags=0xff, len=1, mseq=2, mseq_ack=3, bufs=4, payload='hi', trailing='x'}:octets()",
        );
        assert_eq!(made, *b"\0\x04\xff\x0f\0\0\0\x01\0\0\0\x02\0\0\0\x03hix");
        assert_eq!(octets("sdp.mode_change{mode=7, s=1, rsvd=0xfffffff}:octets()")[16..], *b"\xff\xff\xff\xff");
    }
}
