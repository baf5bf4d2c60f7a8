//! The weft binary: an interop test appliance for iWARP and SDP.
//!
//! This file parses the command line and turns the outcome into an exit code. The help of
//! [`Arguments`] lists the codes. Each subcommand is a file of [`cmd`].
// `println!` and `eprintln!` panic if the reader closes the output. `exit::print_line` and
// `exit::note` continue instead.
#![deny(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

mod allocator;
mod cmd;
mod colour;
mod dashboard;
mod exit;
mod hints;
mod input;
mod linkage;
mod lock;
mod log;
mod mangle;
mod one_of;
mod results;
mod rnic;
mod runtime;
mod secrets;
mod select;
mod signals;
mod spool;
mod suites;
mod target;
mod watch;

use std::process::ExitCode;

use clap::Parser;

/// Interop test appliance for iWARP (MPA, DDP, RDMAP) and the Sockets Direct Protocol.
#[derive(Parser)]
#[command(name = "weft", version, long_version = linkage::VERSION, propagate_version = true, max_term_width = 120)]
#[command(after_help = "Exit codes:\n  \
    0  as expected (`dissect`: the capture was read)\n  \
    1  `test`: unexpected results; `lint`: findings with at least the severity in --level\n  \
    2  wrong usage, unreadable input, or no test case to run\n  \
    3  `test`: inconclusive results; any command: an unreachable target or peer\n  \
    4  a problem of weft or of this machine, such as a full disk")]
struct Arguments {
    #[command(subcommand)]
    command: cmd::Command,
}

fn main() -> ExitCode {
    let line = cmd::extcap::with_command(std::env::args_os().collect());
    let arguments = match Arguments::try_parse_from(line) {
        Ok(arguments) => arguments,
        Err(error) => return hints::report(&error),
    };
    if let Err(error) = log::install(&arguments.command) {
        return exit::report(&error.into());
    }
    if std::process::id() == 1
        && let Err(error) = signals::guard()
    {
        return exit::report(&error);
    }
    match arguments.command.run() {
        Ok(code) => exit::with_output(code),
        Err(error) => exit::report(&error),
    }
}
