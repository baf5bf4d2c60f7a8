//! Finds the test target that a command line names.

use std::path::Path;

use weft_suites::baseline::{BaselineEntry, merged};
use weft_suites::targets::{Target, read_baseline};

use crate::exit::{BadInput, reject};
use crate::secrets::warn_if_readable;

/// Returns whether a word of the command line names a target: a builtin target, or a TOML file.
pub(crate) fn names_target(word: &str) -> bool {
    Target::is_builtin_name(word) || word.ends_with(".toml")
}

/// Loads the target that a command line names. `deviate` names the rules that the target breaks on
/// purpose. With `no_commands`, rejects a target that runs commands on this machine.
pub(crate) fn resolve(name: &str, deviate: &[String], no_commands: bool) -> anyhow::Result<Target> {
    let target = Target::resolve(name)
        .and_then(|target| target.with_deviations(deviate.iter().map(String::as_str)))
        .map_err(|error| BadInput(error.to_string()))?;
    if no_commands && let Some((field, command)) = target.commands().first() {
        reject!("{name}: the field {field} runs a command, which --no-commands forbids: {command}");
    }
    if target.keeps_token() {
        // weft has just read the file, so its mode is usually readable, too. If the mode cannot be
        // read, the run continues without the check.
        let _ = warn_if_readable(Path::new(name), "the agent's token");
    }
    Ok(target)
}

/// Returns the baseline of a target, and then the entries of a file of `--baseline`.
pub(crate) fn baseline_of(target: Option<&Target>, file: Option<&Path>) -> anyhow::Result<Vec<BaselineEntry>> {
    let own = target.map(Target::baseline).unwrap_or_default();
    let more = match file {
        Some(file) => read_baseline(file).map_err(|error| BadInput(error.to_string()))?,
        None => Vec::new(),
    };
    // An entry that the target file has, too, is no mistake. Both files can be from one run.
    Ok(merged(own, more))
}
