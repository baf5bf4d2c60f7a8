//! `weft sdp`: the Sockets Direct Protocol, for programs without SDP support and for manual tests.

mod actions;
mod agent;
mod bench;
mod connect;
mod endpoint;
mod ledger;
mod memory;
mod outward;
mod proxy;
mod run;
mod serve;
mod settings;

use std::process::ExitCode;

use clap::Subcommand;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  \
    weft sdp proxy --listen sdp://0.0.0.0:7080 --connect tcp://127.0.0.1:80     the server's side\n  \
    weft sdp proxy --listen tcp://127.0.0.1:8080 --connect sdp://192.0.2.17:7080  the client's side\n  \
    weft sdp agent --socket /run/weft-sdp                                      serve programs with the preload library\n  \
    weft sdp run --rules weft-sdp.rules curl http://192.0.2.17/                run a program with the library\n  \
    weft sdp serve echo                                                        run an SDP echo server\n  \
    weft sdp connect 192.0.2.17:7174 < file > copy                             connect to one"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Connect TCP on one side with SDP on the other
    Proxy(proxy::Arguments),
    /// Carry the connections of programs that run with the preload library
    Agent(agent::Arguments),
    /// Run a program with the preload library
    Run(run::Arguments),
    /// Accept SDP connections, and echo, discard or send bytes
    Serve(serve::Arguments),
    /// Connect by SDP: transfer standard input and output, or test an echo
    Connect(connect::Arguments),
    /// Measure SDP sockets and plain TCP: bandwidth, round trips, memory
    Bench(bench::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.role {
        Role::Proxy(arguments) => proxy::run(arguments),
        Role::Agent(arguments) => agent::run(arguments),
        Role::Run(arguments) => run::run(arguments),
        Role::Serve(arguments) => serve::run(arguments),
        Role::Connect(arguments) => connect::run(arguments),
        Role::Bench(arguments) => bench::run(arguments),
    }
}
