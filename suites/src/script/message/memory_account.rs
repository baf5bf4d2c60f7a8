//! Counts the memory of a script's messages. Lua does not count this memory, so large messages do
//! not make Lua's garbage collection start earlier.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mlua::Lua;

use crate::stage::{MemoryShare, Message};

/// The approximate size of a script's messages in bytes.
pub(super) struct Account(Arc<AtomicUsize>);

/// Creates the memory account of a script.
pub(super) fn open(lua: &Lua) {
    lua.set_app_data(Account(Arc::default()));
}

/// Counts a message that a script gets.
///
/// # Errors
/// The script's messages are too large, even after unreachable messages were collected.
pub(super) fn count_memory(lua: &Lua, mut message: Message) -> mlua::Result<Message> {
    const MAX_MEMORY: usize = 64 << 20;
    let Some(account) = lua.app_data_ref::<Account>().map(|account| Arc::clone(&account.0)) else { return Ok(message) };
    let marks: usize = message.marks.iter().map(|mark| size_of_val(mark) + mark.label.len()).sum();
    let octets = size_of::<Message>() + message.name.len() + message.octets.len() + marks;
    if account.load(Ordering::Relaxed) + octets > MAX_MEMORY {
        lua.gc_collect()?;
        if account.load(Ordering::Relaxed) + octets > MAX_MEMORY {
            return Err(mlua::Error::runtime(format!("the script's messages use more than {} MiB", MAX_MEMORY >> 20)));
        }
    }
    message.share = MemoryShare::new(&account, octets);
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn does(script: &str) -> mlua::Result<()> {
        let lua = Lua::new();
        super::super::install(&lua).unwrap();
        lua.load(format!("local m, kept = mpa.fpdu {{ ulpdu = ('x'):rep(60000) }}, {{}} {script}")).exec()
    }

    #[test]
    fn unreachable_messages_are_not_counted() {
        does("for i = 1, 5000 do m:flip(0) end").unwrap();
    }

    #[test]
    fn kept_messages_are_bounded() {
        let error = does("for i = 1, 5000 do kept[i] = m:flip(0) end").unwrap_err().to_string();
        assert!(error.contains("more than 64 MiB"), "{error}");
    }

    #[test]
    fn doubling_messages_are_bounded() {
        let error = does("m = m:cut(1) for i = 1, 5000 do m = m:flip(0) end").unwrap_err().to_string();
        assert!(error.contains("at most 1000 changed pieces"), "{error}");
        does("m = m:cut(0) for i = 1, 5000 do m = m .. m end").unwrap();
    }
}
