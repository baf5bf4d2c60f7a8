//! `rdmap.read_request{...}`: the ULPDU of an RDMA Read Request (RFC 5040 section 4.4), which is
//! one untagged DDP segment.

use mlua::{Lua, Table};
use weft_core::wire::ddp::queue;
use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::ulpdu;
use crate::script::fields::Fields;
use crate::stage::Message;

/// Fields: `sink_stag`, `sink_to`, `rdmardsz` (number of bytes to read), `src_stag`, `src_to`, and
/// the fields of [`ulpdu::untagged`].
pub(super) fn from_lua(lua: &Lua, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, "rdmap.read_request", table);
    let read = ReadRequest {
        sink_stag: fields.or("sink_stag", 1u32)?,
        sink_to: fields.or("sink_to", 0i64)?.cast_unsigned(),
        rdmardsz: fields.or("rdmardsz", 0u32)?,
        src_stag: fields.or("src_stag", 1u32)?,
        src_to: fields.or("src_to", 0i64)?.cast_unsigned(),
    };
    let header = ulpdu::untagged(&mut fields, Opcode::READ_REQUEST, queue::READ_REQUEST)?;
    fields.done()?;
    let mut octets = Vec::new();
    read.emit(&mut octets);
    Ok(ulpdu::message(header.ulp_control.opcode(), &header, &octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes are an untagged header of queue 1, then the fields of RFC 5040 Figure 5.
    #[test]
    fn every_field_has_its_place() {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let script = "rdmap.read_request{sink_stag=1, sink_to=2, rdmardsz=3, src_stag=4, src_to=5, msn=6}:octets()";
        let octets: mlua::LuaString = lua.load(script).eval().unwrap();
        let expected = b"\x41\x41\0\0\0\0\0\0\0\x01\0\0\0\x06\0\0\0\0\
            \0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\0\0\0\0\x05";
        assert_eq!(octets.as_bytes(), *expected);
    }

    /// A script can set both control bytes, and the header field that a Read Request does not use
    /// (RFC 5041 Figure 7, RFC 5040 Figure 3).
    #[test]
    fn the_header_can_be_wrong() {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let script = "rdmap.read_request{opcode=9, last=false, ddp_version=2, rdmap_version=3, invalidate_stag=7, qn=4}:octets()";
        let octets: mlua::LuaString = lua.load(script).eval().unwrap();
        assert_eq!(octets.as_bytes()[..10], *b"\x02\xc9\0\0\0\x07\0\0\0\x04");
    }
}
