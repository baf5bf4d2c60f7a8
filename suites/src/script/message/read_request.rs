//! `rdmap.read_request{...}`: an RDMA Read Request (RFC 5040 section 4.4) in its untagged DDP segment: a ULPDU.

use mlua::{Lua, Table};
use weft_core::wire::ddp::{RawUntagged, queue};
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::wire::{ddp, rdmap};
use zerocopy::IntoBytes;

use super::Message;
use crate::script::fields::Fields;

/// Fields: `sink_stag`, `sink_to`, `rdmardsz` (octets wanted), `src_stag`, `src_to`, `msn` (from 1), `qn`, `mo`, `last`.
pub(super) fn from_lua(lua: &Lua, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, "rdmap.read_request", table);
    let read = ReadRequest {
        sink_stag: fields.or("sink_stag", 1u32)?,
        sink_to: fields.or("sink_to", 0u64)?,
        rdmardsz: fields.or("rdmardsz", 0u32)?,
        src_stag: fields.or("src_stag", 1u32)?,
        src_to: fields.or("src_to", 0u64)?,
    };
    let header = RawUntagged {
        control: ddp::Control::new(false, fields.or("last", true)?, ddp::Control::VERSION),
        ulp_control: rdmap::Control::new(Opcode::READ_REQUEST, rdmap::Control::VERSION),
        ulp_word: 0.into(),
        qn: fields.or("qn", queue::READ_REQUEST)?.into(),
        msn: fields.or("msn", 1u32)?.into(),
        mo: fields.or("mo", 0u32)?.into(),
    };
    fields.done()?;
    let mut octets = header.as_bytes().to_vec();
    read.emit(&mut octets);
    Ok(Message::new(Opcode::READ_REQUEST.name(), octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5040 Figure 5 behind an untagged header of queue 1.
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
}
