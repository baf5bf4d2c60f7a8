//! The methods of a message: a script changes its bytes, cuts it, or joins two messages.

use mlua::{LuaString, MetaMethod, UserData, UserDataMethods, Value};

use super::from_value;
use super::memory_account::count_memory;
use crate::model::{Mark, MarkKind};
use crate::script::bind::surface;
use crate::stage::Message;

/// Maximum length of a message in bytes: about 16 times the longest legal FPDU.
const MAX_LEN: usize = 1 << 20;
/// Maximum number of changed pieces of a message. `LONGEST_NAME` is the maximum length of the
/// message's name in bytes. Without these limits, each `m .. m` would double the pieces and the
/// name.
const MAX_MARKS: usize = 1000;
const LONGEST_NAME: usize = 1000;

impl Message {
    /// Returns a copy of the message in which `octets` replace the bytes from `first` on. The copy
    /// is longer if `octets` reach beyond the end of the message.
    fn replaced(&self, first: usize, octets: &[u8]) -> mlua::Result<Self> {
        let end = first.saturating_add(octets.len());
        if first > self.octets.len() || end > MAX_LEN {
            let len = self.octets.len();
            return Err(mlua::Error::runtime(format!("bytes {first} to {end} do not fit a message of {len} bytes")));
        }
        check_marks(self.marks.len() + 1)?;
        let mut changed = Message { draft: None, ..self.clone() };
        changed.octets.resize(end.max(changed.octets.len()), 0);
        changed.octets[first..end].copy_from_slice(octets);
        changed.marks.push(Mark {
            start: first as u64,
            end: end as u64,
            label: if octets.len() == 1 { format!("byte {first} changed") } else { "bytes changed".to_owned() },
            kind: MarkKind::Stimulus,
        });
        Ok(changed)
    }

    /// Returns the message with the bits of `mask` (all by default) inverted in one byte.
    fn flipped(&self, at: usize, mask: Option<u8>) -> mlua::Result<Self> {
        let Some(octet) = self.octets.get(at) else {
            let len = self.octets.len();
            return Err(mlua::Error::runtime(format!("there is no byte {at} in a message of {len} bytes")));
        };
        self.replaced(at, &[octet ^ mask.unwrap_or(0xff)])
    }

    /// Returns the first `len` bytes of the message.
    fn truncated(&self, len: usize) -> Self {
        let mut cut = Message { draft: None, ..self.clone() };
        cut.octets.truncate(len);
        cut.name = joined(&self.name, &format!("cut to {} bytes", cut.octets.len()));
        cut
    }
}

surface! {
    MESSAGE = Message, bind_message |message, stage, lua|;

    /// Returns the message with the bits of `mask` (all by default) inverted in one byte. Bytes are
    /// numbered from 0.
    fn flip(octet: usize = "integer", mask: Option<u8> = "integer?") -> "weft.Message" =>
        count_memory(lua, message.flipped(octet, mask)?)?;

    /// Returns a copy of the message in which `octets` replace the bytes from `first` on. Bytes are
    /// numbered from 0.
    fn replace(first: usize = "integer", octets: LuaString = "string") -> "weft.Message" =>
        count_memory(lua, message.replaced(first, &octets.as_bytes())?)?;

    /// Returns the first `len` bytes of the message.
    fn cut(len: usize = "integer") -> "weft.Message" => count_memory(lua, message.truncated(len))?;

    /// Returns the bytes as a string.
    fn octets() -> "string" => lua.create_string(&message.octets)?;
}

impl UserData for Message {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_message(methods);
        // `message .. octets` joins two messages, which are then sent together.
        methods.add_meta_function(MetaMethod::Concat, |lua, (a, b): (Value, Value)| {
            let (mut a, b) = (from_value(a)?, from_value(b)?);
            if a.octets.len() + b.octets.len() > MAX_LEN {
                return Err(mlua::Error::runtime(format!("a message has at most {MAX_LEN} bytes")));
            }
            check_marks(a.marks.len() + b.marks.len())?;
            let first = a.octets.len() as u64;
            let moved = |mark: Mark| Mark { start: mark.start + first, end: mark.end + first, ..mark };
            a.marks.extend(b.marks.into_iter().map(moved));
            a.octets.extend(b.octets);
            a.has_markers |= b.has_markers;
            a.draft = None;
            a.name = joined(&a.name, &format!("then {}", b.name));
            count_memory(lua, a)
        });
        methods.add_meta_method(MetaMethod::Len, |_, message, ()| Ok(message.octets.len()));
        methods.add_meta_method(MetaMethod::ToString, |_, message, ()| Ok(message.name.clone()));
    }
}

/// Rejects a message with too many changed pieces.
fn check_marks(pieces: usize) -> mlua::Result<()> {
    if pieces > MAX_MARKS {
        return Err(mlua::Error::runtime(format!("a message has at most {MAX_MARKS} changed pieces")));
    }
    Ok(())
}

/// Returns the name of a message that was made from a message of this name.
fn joined(name: &str, more: &str) -> String {
    if name.len() + more.len() > LONGEST_NAME { name.to_owned() } else { format!("{name}, {more}") }
}
