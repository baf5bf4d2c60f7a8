//! The Lua module `octets`, for cases that transfer many bytes and compare each of them.
//!
//! Lua is slow for single bytes. Random bytes would make evidence that a report cannot compress.

use mlua::{Lua, LuaString};

/// Maximum number of bytes of [`counted`].
const MOST: usize = 1 << 20;
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

/// Returns numbered lines, cut at `length` bytes. They show bytes in a wrong position, even if it
/// is 64 KiB away.
fn counted(length: usize) -> mlua::Result<Vec<u8>> {
    if length > MOST {
        return Err(mlua::Error::runtime(format!("octets.counted makes at most {MOST} bytes")));
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

/// Returns the difference between `got` and `want`, for the "actual" of a finding. Returns "those"
/// if there is no difference.
fn difference(got: &[u8], want: &[u8]) -> String {
    if got.len() != want.len() {
        return format!("{} bytes", got.len());
    }
    got.iter()
        .zip(want)
        .enumerate()
        .find(|(_, (got, want))| got != want)
        .map_or_else(|| "those".to_owned(), |(at, (got, want))| format!("byte {at} is {got:02x}, and not {want:02x}"))
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
        assert!(counted(MOST).is_ok() && counted(MOST + 1).is_err());
        assert!(counted(0).unwrap().is_empty());
    }

    #[test]
    fn a_difference_has_its_position() {
        assert_eq!(difference(b"abc", b"abc"), "those");
        assert_eq!(difference(b"abc", b"abd"), "byte 2 is 63, and not 64");
        assert_eq!(difference(b"", b"a"), "0 bytes");
    }
}
