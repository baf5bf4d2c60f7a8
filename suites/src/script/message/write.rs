//! `rdmap.write{...}`: the ULPDU of one segment of an RDMA Write, which is a tagged DDP segment
//! (RFC 5040 section 4.3, RFC 5041 section 4.2).

use mlua::{Lua, Table};
use weft_core::wire::ddp::RawTagged;
use weft_core::wire::rdmap::Opcode;

use super::ulpdu;
use crate::script::fields::Fields;
use crate::stage::Message;

/// Fields: `payload` (bytes), `stag`, `tagged_offset`, and the fields of [`ulpdu::control`]. Opcode
/// 2 makes the message a Read Response.
pub(super) fn from_lua(lua: &Lua, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, "rdmap.write", table);
    let payload = fields.octets("payload")?.unwrap_or_default();
    let (control, ulp_control) = ulpdu::control(&mut fields, true, Opcode::WRITE)?;
    let header = RawTagged {
        control,
        ulp_control,
        stag: fields.or("stag", 1u32)?.into(),
        tagged_offset: fields.or("tagged_offset", 0i64)?.cast_unsigned().into(),
    };
    fields.done()?;
    Ok(ulpdu::message(ulp_control.opcode(), &header, &payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes follow RFC 5041 Figure 4 and RFC 5040 Figure 3. They have T=1, L=1 and
    /// DV=1, then RV=1 and opcode 0, then the STag and the TO.
    #[test]
    fn a_write_of_two_octets() {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let script = "rdmap.write{stag=0x01020304, tagged_offset=5, payload='hi'}:octets()";
        let octets: mlua::LuaString = lua.load(script).eval().unwrap();
        assert_eq!(octets.as_bytes(), *b"\xc1\x40\x01\x02\x03\x04\0\0\0\0\0\0\0\x05hi");
    }
}
