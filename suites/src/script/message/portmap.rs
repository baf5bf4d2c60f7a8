//! `portmap.message{...}`: a port mapper message (draft-pinkerton-iwarp-sdp-01 section 7.3, Figure
//! 17), and received messages as tables.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mlua::{Lua, Table};
use weft_core::wire::portmap::{MessageType, RawMessage};
use zerocopy::{FromBytes, IntoBytes};

use crate::script::fields::Fields;
use crate::script::lua_fields::LuaFields;
use crate::stage::Message;

/// The types of messages by their names in scripts.
const TYPES: [(&str, MessageType); 4] = [
    ("req", MessageType::PM_REQ),
    ("accept", MessageType::PM_ACCEPT),
    ("ack", MessageType::PM_ACK),
    ("deny", MessageType::PM_DENY),
];

/// Returns the type of this name.
pub(crate) fn type_named(name: &str) -> Option<MessageType> {
    TYPES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// Fields: `type` (`"req"`, `"accept"`, `"ack"`, `"deny"`), `version`, `ipv`, `pm_time`,
/// `reserved`, `ap_port`, `cp_port`, `handle`, `cp_ip` and `ap_ip` (addresses as text, or 16
/// bytes).
pub(crate) fn from_lua(lua: &Lua, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, "portmap.message", table);
    let kind = match fields.optional::<String>("type")? {
        None => MessageType::PM_REQ,
        Some(name) => type_named(&name)
            .ok_or_else(|| fields.wrong("type", "expected \"req\", \"accept\", \"ack\" or \"deny\""))?,
    };
    let (cp_ip, v6) = address(&mut fields, "cp_ip")?;
    let (ap_ip, _) = address(&mut fields, "ap_ip")?;
    let version = fields.or("version", 0u8)?;
    let ipv = fields.or("ipv", if v6 { 6 } else { 4 })?;
    let raw = RawMessage {
        ver_mt_ipv: RawMessage::first_octet(version, kind, ipv),
        pm_time: fields.or("pm_time", 0u8)?,
        reserved: fields.or("reserved", 0u16)?.into(),
        ap_port: fields.or("ap_port", 0u16)?.into(),
        cp_port: fields.or("cp_port", 0u16)?.into(),
        assoc_handle: fields.or("handle", 1i64)?.cast_unsigned().into(),
        cp_ip_addr: cp_ip,
        ap_ip_addr: ap_ip,
    };
    fields.done()?;
    Ok(Message::new(kind.name(), raw.as_bytes().to_vec()))
}

/// Reads an address. Returns its 16 bytes, and whether it is the text of an IPv6 address.
fn address(fields: &mut Fields<'_>, name: &'static str) -> mlua::Result<([u8; 16], bool)> {
    let Some(octets) = fields.octets(name)? else { return Ok(([0; 16], false)) };
    if let Ok(octets) = <[u8; 16]>::try_from(octets.as_slice()) {
        return Ok((octets, false));
    }
    let address = std::str::from_utf8(&octets).ok().and_then(|text| text.parse::<IpAddr>().ok());
    let mut field = [0; 16];
    match address {
        Some(IpAddr::V4(address)) => field[..4].copy_from_slice(&address.octets()),
        Some(IpAddr::V6(address)) => return Ok((address.octets(), true)),
        None => return Err(fields.wrong(name, "expected an address, or 16 bytes")),
    }
    Ok((field, false))
}

/// The fields of a [`portmap_table`], with their types for editors.
pub(crate) const PORTMAP_FIELDS: LuaFields = LuaFields(
    "octets: string, length: integer, from: string, type: string?, version: integer?, ipv: integer?, \
    pm_time: integer?, reserved: integer?, ap_port: integer?, cp_port: integer?, handle: integer?, cp_ip: string?, \
    ap_ip: string?",
);

/// Converts a datagram from the target to a table. If the datagram has 48 bytes, the table has the
/// fields of a message. An IPv4 address is text if the bytes after it are zero. Otherwise it is
/// hexadecimal.
pub(crate) fn portmap_table(lua: &Lua, from: &str, octets: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("octets", lua.create_string(octets)?)?;
    table.set("length", octets.len())?;
    table.set("from", from)?;
    let Ok((raw, _)) = RawMessage::read_from_prefix(octets) else { return Ok(table) };
    table.set("type", TYPES.iter().find(|(_, kind)| *kind == raw.mt()).map_or("deny", |(name, _)| name))?;
    table.set("version", raw.ver())?;
    table.set("ipv", raw.ipv())?;
    table.set("pm_time", raw.pm_time)?;
    table.set("reserved", raw.reserved.get())?;
    table.set("ap_port", raw.ap_port.get())?;
    table.set("cp_port", raw.cp_port.get())?;
    table.set("handle", raw.assoc_handle.get().cast_signed())?;
    let text = |field: [u8; 16]| match raw.ipv() {
        4 if field[4..].iter().all(|octet| *octet == 0) => {
            Ipv4Addr::new(field[0], field[1], field[2], field[3]).to_string()
        }
        6 => Ipv6Addr::from(field).to_string(),
        _ => field.iter().map(|octet| format!("{octet:02x}")).collect(),
    };
    table.set("cp_ip", text(raw.cp_ip_addr))?;
    table.set("ap_ip", text(raw.ap_ip_addr))?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes follow Figure 17 of the draft.
    #[test]
    fn every_field_has_its_place() {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let script = "portmap.message{type='deny', version=1, pm_time=2, reserved=3, ap_port=4, cp_port=5, handle=6,
            cp_ip='192.0.2.2', ap_ip='2001:db8::1', ipv=4}:octets()";
        let octets: mlua::LuaString = lua.load(script).eval().unwrap();
        let expected = b"\x74\x02\0\x03\0\x04\0\x05\0\0\0\0\0\0\0\x06\xc0\0\x02\x02\0\0\0\0\0\0\0\0\0\0\0\0\
            \x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01";
        assert_eq!(octets.as_bytes(), *expected);
        let read = portmap_table(&lua, "x", expected).unwrap();
        assert_eq!(
            (read.get::<String>("type").unwrap(), read.get::<String>("cp_ip").unwrap()),
            ("deny".into(), "192.0.2.2".into())
        );
        assert_eq!(read.get::<u64>("handle").unwrap(), 6);
    }
}
