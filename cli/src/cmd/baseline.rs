//! `weft baseline`: makes the list of known failures of a target.

mod write;

use std::process::ExitCode;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "A baseline is a list of known failures, each with a reason. If a run has only these failures,\n\
    its exit code is 0. `weft test --baseline FILE` uses a baseline, and a target file can contain\n\
    its entries. If an entry matches no result any more, it is stale, and the exit code is 1: remove\n\
    the entry.\n\n\
    Examples:\n  \
    weft baseline write nic -o known.toml           expect the failures of the newest run in nic\n  \
    weft test nic.toml --out nic --baseline known.toml"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

subcommands! {
    enum Action {
        /// Write a baseline that expects the failures of a run
        Write = write,
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.action.run()
}
