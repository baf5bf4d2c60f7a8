//! `weft man`: the manual pages, one for weft and one for each subcommand, out of what `--help` says.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::exit::{BadInput, say, unwritable};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  weft man ~/.local/share/man/man1     then `man weft-dissect`\n  \
    weft man pages && man pages/weft.1")]
pub(crate) struct Arguments {
    /// The folder that they go to; it is made where it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes them.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let refused = |error: io::Error| BadInput(format!("{} {}", folder.display(), unwritable(folder, &error)));
    fs::create_dir_all(folder).map_err(refused)?;
    clap_mangen::generate_to(crate::Arguments::command(), folder).map_err(refused)?;
    say!("weft.1, and a page for each subcommand, are in {}", folder.display());
    Ok(ExitCode::SUCCESS)
}
