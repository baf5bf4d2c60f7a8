//! `mpa.request{...}` and `mpa.reply{...}`: MPA start-up frames (RFC 5044 section 7.1.1, RFC 6581
//! section 9).

use mlua::{Lua, Table};
use weft_core::wire::mpa::startup::{Enhanced, FLAG_C, FLAG_M, FLAG_R, FLAG_S, REPLY_KEY, REQUEST_KEY};
use zerocopy::IntoBytes;

use super::memory_account::count_memory;
use crate::correct::StartupFields;
use crate::script::fields::Fields;
use crate::stage::Message;

/// Builds a start-up frame with the fields of `defaults`. A table may set other values. Fields:
///
/// - `key` (bytes), `markers`, `crc`, `reject`, `revision`, `private_data` (bytes)
/// - `enhanced`: S, and the four bytes of RFC 6581 (`peer_to_peer`, `ird`, `ord`, `rtr_send`,
///   `rtr_write`, `rtr_read`). The default revision is then 2.
/// - `flags`: the complete byte 16, instead of the single flags
/// - `pd_length`: the value of the field, independent of the sent length
pub(crate) fn from_lua(lua: &Lua, defaults: StartupFields, table: Option<Table>) -> mlua::Result<Message> {
    let (what, key) = if defaults.reply { ("mpa.reply", REPLY_KEY) } else { ("mpa.request", REQUEST_KEY) };
    let mut fields = Fields::new(lua, what, table);
    let key = fields.octets("key")?.unwrap_or_else(|| key.to_vec());
    let mut flags = 0;
    for (name, flag, default) in [
        ("markers", FLAG_M, defaults.markers),
        ("crc", FLAG_C, defaults.crc),
        ("reject", FLAG_R, false),
        ("enhanced", FLAG_S, defaults.enhanced.is_some()),
    ] {
        if fields.or(name, default)? {
            flags |= flag;
        }
    }
    let words = defaults.enhanced.unwrap_or(Enhanced { ird: 1, ord: 1, ..Enhanced::default() });
    let words = Enhanced {
        peer_to_peer: fields.or("peer_to_peer", words.peer_to_peer)?,
        ird: fields.or("ird", words.ird)?,
        ord: fields.or("ord", words.ord)?,
        rtr_send: fields.or("rtr_send", words.rtr_send)?,
        rtr_write: fields.or("rtr_write", words.rtr_write)?,
        rtr_read: fields.or("rtr_read", words.rtr_read)?,
    };
    let words = (flags & FLAG_S != 0).then_some(words);
    let flags = fields.or("flags", flags)?;
    let revision = if words.is_some() { 2 } else { defaults.revision };
    let revision = fields.or("revision", revision)?;
    let private_data = fields.octets("private_data")?.unwrap_or(defaults.private_data);
    let mut body = words.map_or_else(Vec::new, |words| words.to_raw().as_bytes().to_vec());
    body.extend(private_data);
    let announced = fields.optional::<u16>("pd_length")?;
    let pd_length = match (announced, u16::try_from(body.len())) {
        (Some(announced), _) => announced,
        (None, Ok(len)) => len,
        (None, Err(_)) => return Err(fields.wrong("private_data", "private data over 65535 bytes needs `pd_length`")),
    };
    fields.done()?;

    let mut octets = key;
    octets.extend([flags, revision]);
    octets.extend(pd_length.to_be_bytes());
    octets.extend(body);
    count_memory(lua, Message::new(if defaults.reply { "MPA Reply" } else { "MPA Request" }, octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correct;

    fn octets(script: &str) -> Vec<u8> {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let octets: mlua::LuaString = lua.load(script).eval().unwrap();
        octets.as_bytes().to_vec()
    }

    /// The expected bytes follow RFC 5044 section 7.1.1.
    #[test]
    fn everything_is_correct_by_default() {
        assert_eq!(octets("mpa.request():octets()"), b"MPA ID Req Frame\x40\x01\x00\x00");
        assert_eq!(octets("mpa.reply{}:octets()"), b"MPA ID Rep Frame\x40\x01\x00\x00");
        assert_eq!(octets("mpa.request{private_data='hi'}:octets()"), b"MPA ID Req Frame\x40\x01\x00\x02hi");
        assert_eq!(octets("mpa.request():octets()"), correct::startup(&StartupFields::REQUEST));
    }

    /// The expected bytes follow RFC 6581 section 9. They have S=1, revision 2 and PD_Length 4,
    /// then A=1 and IRD 1, then C, D and ORD 1.
    #[test]
    fn enhanced_fields_bring_their_octets() {
        let script = "mpa.request{enhanced=true, peer_to_peer=true, rtr_write=true, rtr_read=true}:octets()";
        assert_eq!(octets(script)[16..], *b"\x50\x02\x00\x04\x80\x01\xc0\x01");
        let script = "mpa.request{enhanced=true, ird=0x3fff, ord=2, private_data='hi', revision=1}:octets()";
        assert_eq!(octets(script)[16..], *b"\x50\x01\x00\x06\x3f\xff\x00\x02hi");
        assert_eq!(octets("mpa.request{flags=0x50, revision=2}:octets()")[16..], *b"\x50\x02\x00\x00");
    }

    #[test]
    fn every_field_can_lie() {
        let script = "mpa.request{key='x', markers=true, crc=false, reject=true, revision=255, pd_length=513}:octets()";
        assert_eq!(octets(script), b"x\xa0\xff\x02\x01");
        assert_eq!(
            octets("mpa.reply{flags=0x1f, private_data='a', pd_length=0}:octets()")[16..],
            *b"\x1f\x01\x00\x00a"
        );
    }
}
