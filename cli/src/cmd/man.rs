//! `weft man`: writes manual pages for weft and for each subcommand, generated from the help.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::exit::{BadInput, print_line, unwritable};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft man ~/.local/share/man/man1     install the pages; `man weft-dissect` shows one\n  \
    weft man pages && man pages/weft.1   write the pages to a folder and show one")]
pub(crate) struct Arguments {
    /// Write the pages to this folder; weft creates it if necessary
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let refused = |error: io::Error| BadInput(format!("{} {}", folder.display(), unwritable(folder, &error)));
    fs::create_dir_all(folder).map_err(refused)?;
    let mut weft = crate::Arguments::command().disable_help_subcommand(true);
    weft.build();
    pages(&weft, folder).map_err(refused)?;
    print_line!("wrote weft.1 and a page for each subcommand to {}", folder.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command, and the pages of its subcommands.
fn pages(command: &clap::Command, folder: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        pages(subcommand, folder)?;
    }
    // By default, the page would name the program and version as `test 0.2.0`.
    let page = Man::new(command.clone()).source(concat!("weft ", env!("CARGO_PKG_VERSION")));
    page.generate_to(folder).map(drop)
}
