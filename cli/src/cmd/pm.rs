//! `weft pm`: queries or runs a port mapper of SDP.
//!
//! A port mapper returns the SDP Address (IP address and port) of a service that has a conventional
//! TCP address. The client is `ask`, the server is `serve`.

mod ask;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  \
    weft pm ask 192.0.2.17:80                 query the SDP Address of a service\n  \
    weft pm ask '[fd00:9::1]:7000' --trace    query an address, and print each datagram\n  \
    weft pm serve --map 192.0.2.17:80=7080    answer queries for a service"
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
