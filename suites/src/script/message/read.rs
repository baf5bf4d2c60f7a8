//! Converts received messages to Lua tables. A table has the plain values (STags, message sequence
//! numbers, private data) with which a script continues.

use mlua::{Lua, Table};
use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::{Startup, StartupKind};

use crate::script::lua_fields::LuaFields;
use crate::stage::{Operation, crc_is_right, ulpdu};

/// Fields of a [`reply_table`], with their types in Lua.
pub(crate) const REPLY_FIELDS: LuaFields = LuaFields(
    "octets: string, kind: string?, flags: integer, markers: boolean, crc: boolean, reject: boolean, \
    revision: integer, private_data: string, peer_to_peer: boolean?, ird: integer?, ord: integer?, \
    rtr_send: boolean?, rtr_write: boolean?, rtr_read: boolean?",
);

/// Fields of an [`fpdu_table`].
pub(crate) const FPDU_FIELDS: LuaFields = LuaFields(
    "octets: string, ulpdu: string, crc_is_right: boolean, tagged: boolean?, last: boolean?, opcode: integer?, \
    payload: string?, stag: integer?, tagged_offset: integer?, qn: integer?, msn: integer?, mo: integer?",
);

/// Fields of a [`terminate_table`], in addition to the fields of an FPDU.
pub(crate) const TERMINATE_FIELDS: LuaFields = LuaFields(
    "layer: integer, error_type: integer, code: integer, m: boolean, d: boolean, r: boolean, reserved: integer, \
    rest: string",
);

/// Fields of an [`operation_table`].
pub(crate) const OPERATION_FIELDS: LuaFields =
    LuaFields("msn: integer, ird: integer?, stag: integer?, to: integer?, length: integer?");

/// Returns the values with which a script continues after start-up: the MSN of its next Send, and
/// the IRD of an enhanced Reply. If the target's service names a tagged buffer, also returns the
/// STag, TO and length of the buffer.
pub(crate) fn operation_table(lua: &Lua, operation: &Operation) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("msn", operation.msn)?;
    table.set("ird", operation.ird)?;
    if let Some(buffer) = operation.buffer {
        table.set("stag", buffer.stag)?;
        table.set("to", buffer.tagged_offset.cast_signed())?;
        table.set("length", buffer.length)?;
    }
    Ok(table)
}

/// Returns the fields of an FPDU with a Terminate (RFC 5040 Figure 7). `rest` has the payload
/// without its first four bytes.
pub(crate) fn terminate_table(lua: &Lua, octets: &[u8]) -> mlua::Result<Table> {
    let table = fpdu_table(lua, octets)?;
    let payload = table.get::<Option<mlua::LuaString>>("payload")?;
    let payload = payload.map(|payload| payload.as_bytes().to_vec()).unwrap_or_default();
    let octet = |at: usize| payload.get(at).copied().unwrap_or_default();
    table.set("layer", octet(0) >> 4)?;
    table.set("error_type", octet(0) & 0xf)?;
    table.set("code", octet(1))?;
    for (name, bit) in [("m", 0x80), ("d", 0x40), ("r", 0x20)] {
        table.set(name, octet(2) & bit != 0)?;
    }
    table.set("reserved", u16::from_be_bytes([octet(2) & 0x1f, octet(3)]))?;
    table.set("rest", lua.create_string(payload.get(4..).unwrap_or_default())?)?;
    Ok(table)
}

/// Returns the fields of a Reply or of an Initiator's Request, with the fields of RFC 6581 if the
/// frame is enhanced.
pub(crate) fn reply_table(lua: &Lua, octets: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("octets", lua.create_string(octets)?)?;
    table.set("flags", octets.get(16).copied())?;
    let Ok(frame) = Startup::parse(octets) else { return Ok(table) };
    table.set("kind", if frame.kind == StartupKind::Reply { "reply" } else { "request" })?;
    table.set("markers", frame.markers)?;
    table.set("crc", frame.crc)?;
    table.set("reject", frame.reject)?;
    table.set("revision", frame.revision)?;
    table.set("private_data", lua.create_string(frame.private_data)?)?;
    if let Some(words) = frame.enhanced {
        table.set("peer_to_peer", words.peer_to_peer)?;
        table.set("ird", words.ird)?;
        table.set("ord", words.ord)?;
        table.set("rtr_send", words.rtr_send)?;
        table.set("rtr_write", words.rtr_write)?;
        table.set("rtr_read", words.rtr_read)?;
    }
    Ok(table)
}

/// Returns the fields of an FPDU without markers. If the FPDU contains a DDP segment, also returns
/// the segment's fields.
pub(crate) fn fpdu_table(lua: &Lua, octets: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let ulpdu = ulpdu(octets);
    table.set("octets", lua.create_string(octets)?)?;
    table.set("ulpdu", lua.create_string(ulpdu)?)?;
    table.set("crc_is_right", crc_is_right(octets))?;
    let Ok(segment) = Segment::parse(ulpdu) else { return Ok(table) };
    table.set("tagged", segment.control().tagged())?;
    table.set("last", segment.control().last())?;
    table.set("opcode", segment.ulp_control().opcode().0)?;
    let payload = match segment {
        Segment::Tagged(header, payload) => {
            table.set("stag", header.stag.get())?;
            table.set("tagged_offset", header.tagged_offset.get().cast_signed())?;
            payload
        }
        Segment::Untagged(header, payload) => {
            table.set("qn", header.qn.get())?;
            table.set("msn", header.msn.get())?;
            table.set("mo", header.mo.get())?;
            payload
        }
    };
    table.set("payload", lua.create_string(payload)?)?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn names(table: &Table) -> BTreeSet<String> {
        table.pairs::<String, mlua::Value>().map(|pair| pair.unwrap().0).collect()
    }

    #[test]
    fn reads_all_fields_of_a_reply() {
        let lua = Lua::new();
        let octets = b"MPA ID Rep Frame\x50\x02\x00\x06\x80\x01\x40\x02hi";
        let table = reply_table(&lua, octets).unwrap();
        assert_eq!(names(&table), REPLY_FIELDS.iter().map(|(name, _)| name.to_owned()).collect());
        assert_eq!((table.get::<u16>("ird").unwrap(), table.get::<u16>("ord").unwrap()), (1, 2));
        assert_eq!(table.get::<String>("private_data").unwrap(), "hi");
        assert_eq!(names(&reply_table(&lua, b"x").unwrap()).into_iter().collect::<Vec<_>>(), ["octets"]);
    }

    /// The bytes follow RFC 5040 Figures 7 and 8. They have layer 1, type 2 and code 1. M, D and
    /// the last reserved bit are set.
    #[test]
    fn a_terminate_is_read_bit_by_bit() {
        let lua = Lua::new();
        let ulpdu = b"\x41\x47\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\x12\x01\xc0\x01\0\x12";
        let table = terminate_table(&lua, &crate::correct::fpdu(ulpdu, true)).unwrap();
        let number = |name: &str| table.get::<u32>(name).unwrap();
        assert_eq!((number("layer"), number("error_type"), number("code"), number("reserved")), (1, 2, 1, 1));
        let bit = |name: &str| table.get::<bool>(name).unwrap();
        assert_eq!(
            (bit("m"), bit("d"), bit("r"), table.get::<String>("rest").unwrap()),
            (true, true, false, "\0\x12".into())
        );
        assert!(TERMINATE_FIELDS.iter().all(|(name, _)| names(&table).contains(name)));
    }

    #[test]
    fn an_fpdu_is_read_by_its_kind() {
        let lua = Lua::new();
        let send = fpdu_table(&lua, &crate::correct::fpdu(&crate::correct::send(7, b"hi"), true)).unwrap();
        assert_eq!((send.get::<u32>("msn").unwrap(), send.get::<bool>("crc_is_right").unwrap()), (7, true));
        let write = b"\xc1\x40\x01\x02\x03\x04\0\0\0\0\0\0\0\x05hi";
        let write = fpdu_table(&lua, &crate::correct::fpdu(write, false)).unwrap();
        assert_eq!(
            (write.get::<u32>("stag").unwrap(), write.get::<bool>("crc_is_right").unwrap()),
            (0x0102_0304, false)
        );
        let all: BTreeSet<String> = names(&send).union(&names(&write)).cloned().collect();
        assert_eq!(all, FPDU_FIELDS.iter().map(|(name, _)| name.to_owned()).collect());
    }
}
