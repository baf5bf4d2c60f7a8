//! `rdmap.send{...}`: the ULPDU of an RDMAP Send, which is one untagged DDP segment (RFC 5040
//! section 4.3, RFC 5041 section 4.3).

use mlua::{Lua, Table};
use weft_core::wire::ddp::queue;
use weft_core::wire::rdmap::Opcode;

use super::ulpdu;
use crate::script::fields::Fields;
use crate::stage::Message;

/// Fields: `payload` (bytes), and the fields of [`ulpdu::untagged`].
pub(super) fn from_lua(lua: &Lua, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, "rdmap.send", table);
    let payload = fields.octets("payload")?.unwrap_or_default();
    let header = ulpdu::untagged(&mut fields, Opcode::SEND, queue::SEND)?;
    fields.done()?;
    Ok(ulpdu::message(header.ulp_control.opcode(), &header, &payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes follow RFC 5041 Figure 7 and RFC 5040 Figure 3. They have T=0, L=1 and
    /// DV=1, then RV=1 and opcode 3, then QN 0, MSN 1 and MO 0.
    #[test]
    fn a_send_of_two_octets() {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let octets: mlua::LuaString = lua.load("rdmap.send{payload='hi'}:octets()").eval().unwrap();
        assert_eq!(octets.as_bytes(), *b"\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0hi");
        assert_eq!(crate::correct::send(1, b"hi"), octets.as_bytes().to_vec());
    }
}
