//! `weft pm`: queries or runs a port mapper of SDP.
//!
//! A port mapper receives the address of a service for plain TCP, and returns the SDP Address (IP
//! address and port) of the same service. The client is `ask`, the server is `serve`.

mod ask;
mod serve;

use std::process::ExitCode;

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

subcommands! {
    enum Role {
        /// Query a port mapper for the SDP Address of a service
        Ask = ask,
        /// Run a port mapper that answers from a table
        Serve = serve,
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.role.run()
}
