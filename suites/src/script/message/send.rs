//! `rdmap.send{...}`: one untagged DDP segment that carries an RDMAP Send (RFC 5040 section 4.3, RFC 5041 section 4.3): a ULPDU.

use mlua::{Lua, Table};
use weft_core::wire::ddp::{RawUntagged, queue};
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::{ddp, rdmap};
use zerocopy::IntoBytes;

use super::Message;
use crate::script::fields::Fields;

/// Fields: `payload` (octets), `msn` (from 1), `mo`, `qn`, `last`, `opcode`, `ddp_version`, `rdmap_version`, `invalidate_stag`.
pub(super) fn from_lua(lua: &Lua, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, "rdmap.send", table);
    let payload = fields.optional::<mlua::LuaString>("payload")?.map_or_else(Vec::new, |data| data.as_bytes().to_vec());
    let opcode = Opcode(fields.or("opcode", Opcode::SEND.0)?);
    let header = RawUntagged {
        control: ddp::Control::new(false, fields.or("last", true)?, fields.or("ddp_version", ddp::Control::VERSION)?),
        ulp_control: rdmap::Control::new(opcode, fields.or("rdmap_version", rdmap::Control::VERSION)?),
        ulp_word: fields.or("invalidate_stag", 0u32)?.into(),
        qn: fields.or("qn", queue::SEND)?.into(),
        msn: fields.or("msn", 1u32)?.into(),
        mo: fields.or("mo", 0u32)?.into(),
    };
    fields.done()?;
    let mut octets = header.as_bytes().to_vec();
    octets.extend(payload);
    Ok(Message::new(opcode.name(), octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5041 Figure 7, RFC 5040 Figure 3: T=0, L=1, DV=1; RV=1, opcode 3; QN 0, MSN 1, MO 0.
    #[test]
    fn a_send_of_two_octets() {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let octets: mlua::LuaString = lua.load("rdmap.send{payload='hi'}:octets()").eval().unwrap();
        assert_eq!(octets.as_bytes(), *b"\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0hi");
        assert_eq!(crate::correct::send(1, b"hi"), octets.as_bytes().to_vec());
    }
}
