//! `weft sdp`: uses the Sockets Direct Protocol (SDP) for programs without SDP support, and for
//! manual tests.

mod actions;
mod agent;
mod bench;
mod connect;
mod connection_log;
mod endpoint;
mod expiring_cache;
mod outgoing;
mod proxy;
mod run;
mod serve;
mod settings;

use std::process::ExitCode;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  \
    weft sdp proxy --listen sdp://0.0.0.0:7080 --connect tcp://127.0.0.1:80    relay for a server\n  \
    weft sdp proxy --listen tcp://127.0.0.1:8080 --connect sdp://192.0.2.17:7080  relay for a client\n  \
    weft sdp agent --socket /run/weft-sdp.sock                     serve programs with the library\n  \
    weft sdp run --rules weft-sdp.rules curl http://192.0.2.17/    run a program that uses the agent\n  \
    weft sdp serve echo                                            run an SDP echo server\n  \
    weft sdp connect 192.0.2.17:7174 < file > copy                 send a file to an echo server"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    role: Role,
}

subcommands! {
    enum Role {
        /// Relay connections between TCP and SDP
        Proxy = proxy,
        /// Open and accept SDP connections for programs with the preload library
        ///
        /// The preload library redirects the connections of a program to this agent. The agent
        /// opens or accepts the SDP connections instead of the program.
        Agent = agent,
        /// Run a program with the preload library, so that the program uses SDP
        Run = run,
        /// Accept SDP connections, and echo, discard or send bytes
        Serve = serve,
        /// Connect by SDP: transfer standard input and output, or test an echo server
        Connect = connect,
        /// Measure SDP and plain TCP: bandwidth, round trips, memory
        Bench = bench,
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.role.run()
}
