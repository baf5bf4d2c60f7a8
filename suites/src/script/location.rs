//! Finds the line of a script that a call or an error comes from.

use mlua::{Error, Lua};

use crate::model::SourceLocation;

/// The name of the script of a Lua state, stored in the state.
pub(crate) struct ScriptName(pub(crate) String);

/// Returns the current line of the script, for a Rust function that the script called.
pub(crate) fn here(lua: &Lua) -> Option<SourceLocation> {
    let file = lua.app_data_ref::<ScriptName>()?.0.clone();
    // Find the nearest frame of the script. Level 0 is the Rust function, and frames of coroutines
    // may be between this level and the script.
    for level in 0..16 {
        let found = lua.inspect_stack(level, |debug| {
            let is_script = debug.source().source.is_some_and(|source| source.strip_prefix('@') == Some(&file));
            debug.current_line().filter(|_| is_script)
        })?;
        if let Some(line) = found {
            return Some(SourceLocation { file, line: u32::try_from(line).unwrap_or(u32::MAX) });
        }
    }
    None
}

/// Returns the script's line that a Lua error names. Also returns the error's message without the
/// traceback and without line breaks.
pub(crate) fn of_error(error: &Error, file: &str) -> (Option<SourceLocation>, String) {
    let message = error.to_string();
    let location = line_in(&message, file).map(|line| SourceLocation { file: file.to_owned(), line });
    let innermost = error.chain().last().map_or_else(|| message.clone(), ToString::to_string);
    let text = innermost.split("\nstack traceback:").next().unwrap_or(&message).trim();
    let text = text.strip_prefix("runtime error: ").or_else(|| text.strip_prefix("syntax error: ")).unwrap_or(text);
    let text = match line_in(text, file) {
        Some(line) => text.strip_prefix(&format!("{file}:{line}: ")).unwrap_or(text),
        None => text,
    };
    (location, text.replace('\n', " "))
}

/// Returns the number in the first `file:number:`.
fn line_in(text: &str, file: &str) -> Option<u32> {
    text.match_indices(file).find_map(|(at, _)| {
        let rest = text[at + file.len()..].strip_prefix(':')?;
        rest.split(':').next()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_line() {
        let lua = Lua::new();
        let run = |source: &str| lua.load(source).set_name("@mpa/x.lua").exec().unwrap_err();
        let (at, text) = of_error(&run("local a\nlocal b = a.b.c"), "mpa/x.lua");
        assert_eq!(at.unwrap().line, 2);
        assert!(text.starts_with("attempt to index a nil value"), "{text}");
        let (at, text) = of_error(&run("\n\ncase {"), "mpa/x.lua");
        assert_eq!(at.unwrap().line, 3);
        assert!(text.contains("expected"), "{text}");
    }
}
