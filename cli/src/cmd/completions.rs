//! `weft completions`: prints a script that completes weft's command lines in a shell.
//!
//! The script completes subcommands, options, and fixed values. It does not complete the names of
//! cases, deviations, or requirements.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft completions bash > ~/.local/share/bash-completion/completions/weft\n  \
    weft completions zsh > ~/.zfunc/_weft     add ~/.zfunc to $fpath before compinit\n  \
    weft completions fish > ~/.config/fish/completions/weft.fish")]
pub(crate) struct Arguments {
    /// Print the script for this shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "weft", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
