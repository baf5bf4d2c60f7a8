//! `weft pm`: the SDP port mapper, both roles.

mod ask;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  \
    weft pm ask 192.0.2.17:80                        query the SDP Address of a service\n  \
    weft pm ask '[fd00:9::1]:7000' --trace           the same, with each datagram explained\n  \
    weft pm serve --map 192.0.2.17:80=7080           answer such queries"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Query a port mapper for the SDP Address of a service
    Ask(ask::Arguments),
    /// Run a port mapper that answers from a table
    Serve(serve::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.role {
        Role::Ask(arguments) => ask::run(arguments),
        Role::Serve(arguments) => serve::run(arguments),
    }
}
