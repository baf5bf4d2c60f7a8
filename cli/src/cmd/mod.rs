//! The subcommands, one file each.

mod agent;
mod bench;
mod cat;
mod completions;
mod coverage;
mod demo;
mod deviations;
mod diff;
mod dissect;
mod explain;
mod follow;
mod ladder;
mod lint;
mod man;
mod ping;
mod pm;
mod probe;
mod reference;
mod report;
mod requirements;
mod sdp;
mod serve;
mod soak;
mod stats;
mod suite;
mod target;
mod test;
mod tui;
mod web;

use std::process::ExitCode;

/// The subcommands of weft.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Decode a capture: MPA, DDP, RDMAP, SDP and port mapper messages, with findings
    ///
    /// weft prints one line per unit. A unit is an MPA start-up frame, an FPDU, an SDP message, a
    /// port mapper message, or a part of a connection that weft cannot decode. A finding is a
    /// violated requirement of a specification, or unusual behaviour.
    Dissect(dissect::Arguments),
    /// List the requirements that a capture violates; exit with 1 if there are any
    ///
    /// A requirement is one rule of a specification, such as MPA-7.1.1-2 of RFC 5044. A finding is
    /// a violation of a requirement in the capture.
    Lint(lint::Arguments),
    /// Show each field of one frame: bytes, meaning, and section of the specification
    Explain(explain::Arguments),
    /// Print the messages or bytes of one connection of a capture
    Follow(follow::Arguments),
    /// Print statistics about each connection of a capture
    Stats(stats::Arguments),
    /// Draw one connection of a capture as a sequence diagram
    Ladder(ladder::Arguments),
    /// Run test suites against an implementation (the target) and judge it
    ///
    /// A suite is a collection of test cases. Each case sends messages to the target, and checks
    /// whether the target meets some requirements of the specifications. Most cases have
    /// parameters. A variant is a case with certain values of its parameters.
    Test(test::Arguments),
    /// List, show or check the test cases, or print the earlier results of a case
    Suite(suite::Arguments),
    /// Write the reports of an earlier test run again
    Report(report::Arguments),
    /// Compare the results of two test runs
    Diff(diff::Arguments),
    /// Check a test target before a run, or list the presets of target files
    Target(target::Arguments),
    /// Browse a capture or a test run in the terminal
    Tui(tui::Arguments),
    /// Show test runs in a browser
    Web(web::Arguments),
    /// Ping over RDMA, with weft or librdmacm's rping as the peer
    Ping(ping::Arguments),
    /// Measure bandwidth and latency of weft's software RNIC
    Bench(bench::Arguments),
    /// Run single RDMA operations, valid or invalid, with weft or siwprobe as the peer
    Probe(probe::Arguments),
    /// Transfer a file or a pipe over RDMA, by Sends, Writes or Reads
    Cat(cat::Arguments),
    /// Query or run a port mapper of the Sockets Direct Protocol (SDP)
    Pm(pm::Arguments),
    /// Let programs use the Sockets Direct Protocol (SDP), or test and measure SDP
    Sdp(sdp::Arguments),
    /// Run a responder as a test peer for other implementations
    Serve(serve::Arguments),
    /// Let weft tests control this host's RDMA device
    ///
    /// In a test case with an agent, weft (the tester) connects to this agent. The tester sends
    /// commands, for example to create a Queue Pair or to post a Work Request. The agent executes
    /// these commands through the verbs of the device, which are its programming interface.
    Agent(agent::Arguments),
    /// Test weft's own endpoint with damaged traffic for an hour or longer
    Soak(soak::Arguments),
    /// List the deviations: the rules that builtin targets can violate on purpose
    Deviations(deviations::Arguments),
    /// Run a short demonstration that needs only weft itself
    Demo(demo::Arguments),
    /// Count the requirements that test cases, lint rules or unit tests cover
    Coverage(coverage::Arguments),
    /// List requirements of the specifications, or print the check for each of them
    Requirements(requirements::Arguments),
    /// Print the completion script for a shell
    Completions(completions::Arguments),
    /// Write the manual pages
    Man(man::Arguments),
    /// Write requirements, cases, deviations and commands as Markdown pages
    Reference(reference::Arguments),
}

impl Command {
    /// Runs the subcommand.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Dissect(arguments) => dissect::run(&arguments),
            Command::Lint(arguments) => lint::run(&arguments),
            Command::Explain(arguments) => explain::run(&arguments),
            Command::Follow(arguments) => follow::run(&arguments),
            Command::Stats(arguments) => stats::run(&arguments),
            Command::Ladder(arguments) => ladder::run(&arguments),
            Command::Test(arguments) => test::run(&arguments),
            Command::Suite(arguments) => suite::run(&arguments),
            Command::Report(arguments) => report::run(&arguments),
            Command::Diff(arguments) => diff::run(&arguments),
            Command::Target(arguments) => target::run(&arguments),
            Command::Tui(arguments) => tui::run(&arguments),
            Command::Web(arguments) => web::run(&arguments),
            Command::Ping(arguments) => ping::run(&arguments),
            Command::Bench(arguments) => bench::run(&arguments),
            Command::Probe(arguments) => probe::run(&arguments),
            Command::Cat(arguments) => cat::run(&arguments),
            Command::Pm(arguments) => pm::run(&arguments),
            Command::Sdp(arguments) => sdp::run(&arguments),
            Command::Serve(arguments) => serve::run(&arguments),
            Command::Agent(arguments) => agent::run(&arguments),
            Command::Soak(arguments) => soak::run(&arguments),
            Command::Deviations(arguments) => deviations::run(&arguments),
            Command::Demo(arguments) => demo::run(&arguments),
            Command::Coverage(arguments) => coverage::run(&arguments),
            Command::Requirements(arguments) => requirements::run(&arguments),
            Command::Completions(arguments) => completions::run(&arguments),
            Command::Man(arguments) => man::run(&arguments),
            Command::Reference(arguments) => reference::run(&arguments),
        }
    }
}
