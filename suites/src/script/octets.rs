//! The Lua module `octets`, for cases that transfer many bytes and compare each of them.
//!
//! This module is in Rust, because Lua is slow for single bytes. The bytes are not random, because
//! a report cannot compress random bytes.

use mlua::{Lua, LuaString};

/// Maximum number of bytes of [`counted`].
const MAX_COUNTED: usize = 1 << 20;
/// A line of 64 bytes has this text, its number in seven digits, and a line feed.
const WORDS: &str = "the octets of this line, each place of it unlike others ";

/// Adds `octets.counted` and `octets.difference` to the constructors.
pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let module = lua.create_table()?;
    module.set("counted", lua.create_function(|lua, length: usize| lua.create_string(counted(length)?))?)?;
    module.set(
        "difference",
        lua.create_function(|_, (got, want): (LuaString, LuaString)| {
            Ok(difference(&got.as_bytes(), &want.as_bytes()))
        })?,
    )?;
    lua.globals().set("octets", module)
}

/// Returns the first `length` bytes of numbered lines. The numbers reveal bytes that arrive in a
/// wrong position, even if the right position is 64 KiB away.
fn counted(length: usize) -> mlua::Result<Vec<u8>> {
    if length > MAX_COUNTED {
        return Err(mlua::Error::runtime(format!("octets.counted makes at most {MAX_COUNTED} bytes")));
    }
    let mut octets = Vec::with_capacity(length + WORDS.len() + 8);
    for line in 0.. {
        if octets.len() >= length {
            break;
        }
        octets.extend_from_slice(format!("{WORDS}{line:07}\n").as_bytes());
    }
    octets.truncate(length);
    Ok(octets)
}

/// Describes the difference between `got` and `want`, for `actual` of a check. Returns "the
/// expected bytes" if there is no difference.
fn difference(got: &[u8], want: &[u8]) -> String {
    if got.len() != want.len() {
        return format!("{} bytes, and not {}", got.len(), want.len());
    }
    got.iter().zip(want).enumerate().find(|(_, (got, want))| got != want).map_or_else(
        || "the expected bytes".to_owned(),
        |(at, (got, want))| format!("byte {at} is {got:02x}, and not {want:02x}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pieces_of_64_octets_are_equal() {
        let octets = counted(200_000).unwrap();
        assert_eq!(octets.len(), 200_000);
        assert_eq!(&octets[64 + WORDS.len()..128], b"0000001\n");
        let mut seen = std::collections::HashSet::new();
        assert!(octets.windows(64).all(|piece| seen.insert(piece)));
        assert!(counted(MAX_COUNTED).is_ok() && counted(MAX_COUNTED + 1).is_err());
        assert!(counted(0).unwrap().is_empty());
    }

    #[test]
    fn a_difference_has_its_position() {
        assert_eq!(difference(b"abc", b"abc"), "the expected bytes");
        assert_eq!(difference(b"abc", b"abd"), "byte 2 is 63, and not 64");
        assert_eq!(difference(b"", b"a"), "0 bytes, and not 1");
    }
}
