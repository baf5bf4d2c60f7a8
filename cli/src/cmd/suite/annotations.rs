//! `weft suite annotations`: writes type annotations of the Lua functions that a script can call.
//! Editors use the annotations through LuaLS, a language server for Lua.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::exit::write_file;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    weft suite annotations my-suites/weft.lua    write the file where LuaLS finds it")]
pub(crate) struct Arguments {
    /// Write the annotations to this file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    write(&arguments.file)
}

/// Writes the annotations to `file`.
pub(crate) fn write(file: &Path) -> anyhow::Result<ExitCode> {
    let text = weft_suites::script::annotations().map_err(anyhow::Error::msg)?;
    write_file(file, text)?;
    Ok(ExitCode::SUCCESS)
}
