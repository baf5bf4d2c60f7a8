//! `mpa.fpdu{...}`: an FPDU without markers around a ULPDU (RFC 5044 section 4.1).

use mlua::{Lua, Table, Value};
use weft_core::crc;
use weft_core::wire::mpa::fpdu::pad_len;

use super::Message;
use crate::script::fields::Fields;

/// Fields: `ulpdu` (a message or octets), `ulpdu_length`, `pad` (octets), `crc` (`true`, `false` for a field of zeros, or four
/// octets). Each defaults to what is correct for the ulpdu.
pub(super) fn from_lua(lua: &Lua, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, "mpa.fpdu", table);
    let ulpdu = super::from_value(fields.required::<Value>("ulpdu")?)?;
    let Ok(length) = u16::try_from(ulpdu.octets.len()) else {
        return Err(fields.wrong("ulpdu", "more than 65535 octets"));
    };
    let announced = fields.or("ulpdu_length", length)?;
    let pad = fields.octets("pad")?.unwrap_or_else(|| vec![0; pad_len(length)]);
    let crc_field = fields.or("crc", Value::Boolean(true))?;

    let mut octets = announced.to_be_bytes().to_vec();
    octets.extend(&ulpdu.octets);
    octets.extend(pad);
    match crc_field {
        Value::Boolean(true) => octets.extend(crc::to_octets(crc::crc32c(&octets))),
        Value::Boolean(false) => octets.extend([0; crc::CRC_LEN]),
        Value::String(field) => octets.extend(field.as_bytes().iter()),
        other => return Err(fields.wrong("crc", &format!("expected a boolean or octets, found {}", other.type_name()))),
    }
    fields.done()?;
    Ok(Message::new(format!("FPDU with {}", ulpdu.name), octets))
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

    /// The layout of RFC 5044 Figure 2: length 5, five octets, one of PAD, CRC32c over those eight.
    #[test]
    fn pad_and_crc_are_correct_by_default() {
        let made = octets("mpa.fpdu{ulpdu='12345'}:octets()");
        assert_eq!(made[..8], *b"\0\x0512345\0");
        assert_eq!(made[8..], crc::to_octets(crc::crc32c(b"\0\x0512345\0")));
        assert_eq!(made, correct::fpdu(b"12345", true));
        assert_eq!(octets("mpa.fpdu{ulpdu='12345', crc=false}:octets()"), correct::fpdu(b"12345", false));
    }

    #[test]
    fn every_field_can_lie() {
        let made = octets("mpa.fpdu{ulpdu=rdmap.send{}, ulpdu_length=7, pad='\\1\\2', crc='abcd'}:octets()");
        assert_eq!((made.len(), &made[..2], &made[20..]), (26, &b"\0\x07"[..], &b"\x01\x02abcd"[..]));
    }
}
