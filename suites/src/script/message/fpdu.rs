//! `mpa.fpdu{...}`: an FPDU with a ULPDU (RFC 5044 section 4.1). If the field `position` is set,
//! the FPDU has markers (section 4.3).

use mlua::{Lua, Table, Value};
use weft_core::crc;
use weft_core::marker::{INTERVAL, MARKER_LEN};
use weft_core::wire::mpa::fpdu::pad_len;

use crate::script::fields::Fields;
use crate::stage::Message;

/// Fields: `ulpdu` (a message or bytes), `ulpdu_length`, `pad` (bytes), `crc` (`true` for the
/// correct CRC, `false` for zeros, or four bytes). The defaults are correct for the ULPDU.
/// `position` is the position in the tester's stream where the FPDU begins (`conn:position()`). If
/// `position` is set, the FPDU has the markers that are due. In each marker, `fpduptr` replaces the
/// distance from `ULPDU_Length`, and `reserved` is the value of the reserved half.
pub(super) fn from_lua(lua: &Lua, table: Option<Table>) -> mlua::Result<Message> {
    let mut fields = Fields::new(lua, "mpa.fpdu", table);
    let ulpdu = super::from_value(fields.required::<Value>("ulpdu")?)?;
    let Ok(length) = u16::try_from(ulpdu.octets.len()) else {
        return Err(fields.wrong("ulpdu", "the ULPDU has more than 65535 bytes"));
    };
    let announced = fields.or("ulpdu_length", length)?;
    let pad = fields.octets("pad")?.unwrap_or_else(|| vec![0; pad_len(length)]);
    let crc_field = fields.or("crc", Value::Boolean(true))?;

    let position = fields.optional::<u64>("position")?;
    let (fpduptr, reserved) = (fields.optional::<u16>("fpduptr")?, fields.or("reserved", 0u16)?);

    let mut octets = announced.to_be_bytes().to_vec();
    octets.extend(&ulpdu.octets);
    octets.extend(pad);
    if let Some(position) = position {
        octets = with_markers(position, &octets, |distance| {
            (u32::from(reserved) << 16 | u32::from(fpduptr.unwrap_or(distance))).to_be_bytes()
        });
    }
    match crc_field {
        Value::Boolean(true) => octets.extend(crc::to_octets(crc::crc32c(&octets))),
        Value::Boolean(false) => octets.extend([0; crc::CRC_LEN]),
        Value::String(field) => octets.extend(field.as_bytes().iter()),
        other => return Err(fields.wrong("crc", &format!("expected a boolean or bytes, found {}", other.type_name()))),
    }
    fields.done()?;
    let has_markers = position.is_some();
    Ok(Message { has_markers, ..Message::new(format!("FPDU with {}", ulpdu.name), octets) })
}

/// Inserts the due markers into the length field, ULPDU and PAD of an FPDU that begins at
/// `position`. `marker` returns the marker for a distance from the length field. The positions of
/// markers do not depend on the values of the fields.
fn with_markers(position: u64, body: &[u8], marker: impl Fn(u16) -> [u8; MARKER_LEN]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(body.len() + body.len() / 100 + MARKER_LEN);
    let is_due = |octets: &Vec<u8>| position.wrapping_add(octets.len() as u64).is_multiple_of(INTERVAL);
    if is_due(&octets) {
        octets.extend(marker(0));
    }
    let header = octets.len();
    for octet in body {
        octets.push(*octet);
        if is_due(&octets) {
            // The distance is taken modulo 2^16, because the field has 16 bits.
            octets.extend(marker(((octets.len() - header) & 0xffff) as u16));
        }
    }
    octets
}

#[cfg(test)]
mod tests {
    use weft_core::wire::mpa::fpdu::{Framing, emit};

    use super::*;
    use crate::correct;

    fn octets(script: &str) -> Vec<u8> {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        let octets: mlua::LuaString = lua.load(script).eval().unwrap();
        octets.as_bytes().to_vec()
    }

    /// The expected bytes follow RFC 5044 Figure 2. They have length 5, five bytes, one byte of
    /// PAD, and the CRC32c over these eight bytes.
    #[test]
    fn pad_and_crc_are_correct_by_default() {
        let made = octets("mpa.fpdu{ulpdu='12345'}:octets()");
        assert_eq!(made[..8], *b"\0\x0512345\0");
        assert_eq!(made[8..], crc::to_octets(crc::crc32c(b"\0\x0512345\0")));
        assert_eq!(made, correct::fpdu(b"12345", true));
        assert_eq!(octets("mpa.fpdu{ulpdu='12345', crc=false}:octets()"), correct::fpdu(b"12345", false));
    }

    #[test]
    fn every_field_can_be_wrong() {
        let made = octets("mpa.fpdu{ulpdu=rdmap.send{}, ulpdu_length=7, pad='\\1\\2', crc='abcd'}:octets()");
        assert_eq!((made.len(), &made[..2], &made[20..]), (26, &b"\0\x07"[..], &b"\x01\x02abcd"[..]));
    }

    /// The expected bytes follow RFC 5044 Figures 5 and 6. The figures have a Send of 24 zero bytes
    /// at the start of the stream, and a second such Send at 0x1ec.
    #[test]
    fn markers_are_where_figures_5_and_6_have_them() {
        let figure = |msn: u8, position: u32| {
            octets(&format!(
                "mpa.fpdu{{ulpdu=rdmap.send{{msn={msn}, payload=('\\0'):rep(24)}}, position={position}}}:octets()"
            ))
        };
        let header = |msn: u8| [&b"\x41\x43\0\0\0\0\0\0\0\0\0\0\0"[..], &[msn, 0, 0, 0, 0], &[0; 24]].concat();
        assert_eq!(figure(1, 0), [&b"\0\0\0\0\x00\x2a"[..], &header(1), b"\x52\x23\x99\x83"].concat());
        let second = header(2);
        let second = [b"\x00\x2a", &second[..18], b"\0\0\0\x14", &second[18..], b"\x84\x92\x58\x98"].concat();
        assert_eq!(figure(2, 0x1ec), second);
    }

    #[test]
    fn right_markers_are_those_of_the_layout() {
        for position in (0..1024).step_by(4) {
            for len in [0, 1, 2, 18, 505, 506, 507, 1500] {
                let ulpdu = vec![7; len];
                let script = format!("mpa.fpdu{{ulpdu=('\\7'):rep({len}), position={position}}}:octets()");
                let mut expected = Vec::new();
                emit(position, &[&ulpdu], Framing { markers: true, crc: true }, &mut expected).unwrap();
                assert_eq!(octets(&script), expected, "{len} at {position}");
            }
        }
    }

    #[test]
    fn a_marker_can_be_wrong_and_the_crc_covers_it() {
        let made = octets("mpa.fpdu{ulpdu='12345', position=512, fpduptr=7, reserved=0xabcd}:octets()");
        assert_eq!(made[..12], *b"\xab\xcd\0\x07\0\x0512345\0");
        assert_eq!(made[12..], crc::to_octets(crc::crc32c(&made[..12])));
        let without = octets("mpa.fpdu{ulpdu='12345', position=4, fpduptr=7}:octets()");
        assert_eq!(without, octets("mpa.fpdu{ulpdu='12345'}:octets()"));
    }
}
