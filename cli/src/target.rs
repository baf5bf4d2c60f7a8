//! The target that a command line names.

use std::path::Path;

use weft_suites::targets::Target;

use crate::exit::BadInput;
use crate::secrets::warn_if_readable;

/// Does the first word of the command line name a target?
pub(crate) fn names_target(word: &str) -> bool {
    Target::is_builtin_name(word) || word.ends_with(".toml")
}

/// The target that a command line names; with `no_commands`, rejects one that runs commands on this
/// machine.
pub(crate) fn resolve(name: &str, deviate: &[String], no_commands: bool) -> anyhow::Result<Target> {
    let target = Target::resolve(name)
        .and_then(|target| target.with_deviations(deviate.iter().map(String::as_str)))
        .map_err(|error| BadInput(error.to_string()))?;
    if no_commands && let Some((field, command)) = target.commands().first() {
        let why = format!("{name}: {field} runs a command, and --no-commands forbids that: {command}");
        return Err(BadInput(why).into());
    }
    if target.keeps_token() {
        // It has just been read, so its mode is readable; and an unknown mode does not prevent the
        // run.
        let _ = warn_if_readable(Path::new(name), "the agent's token");
    }
    Ok(target)
}
