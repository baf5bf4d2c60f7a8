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
    Dissect(dissect::Arguments),
    /// List the requirements that a capture violates; exit code 1 if there are any
    Lint(lint::Arguments),
    /// Show each field of one frame: its bytes, its meaning, its defining section
    Explain(explain::Arguments),
    /// Print the messages or bytes of one connection of a capture
    Follow(follow::Arguments),
    /// Print numbers about each connection of a capture
    Stats(stats::Arguments),
    /// Draw one connection of a capture as a sequence diagram
    Ladder(ladder::Arguments),
    /// Run the suites against an implementation and judge it
    Test(test::Arguments),
    /// List, show and prove the cases of the suites, or print a case's earlier results
    Suite(suite::Arguments),
    /// Write the reports of a run again, from the files in its folder
    Report(report::Arguments),
    /// Compare two runs of the suites
    Diff(diff::Arguments),
    /// Check a target before a run, or list the presets of target files
    Target(target::Arguments),
    /// Browse a capture or a run in the terminal
    Tui(tui::Arguments),
    /// Show the runs of a results store in a browser
    Web(web::Arguments),
    /// Ping over RDMA; the other side is weft or librdmacm's rping
    Ping(ping::Arguments),
    /// Measure bandwidth and latency of the software RNIC
    Bench(bench::Arguments),
    /// Run single RDMA operations, valid or not; the peer is weft or siwprobe
    Probe(probe::Arguments),
    /// Transfer a file or a pipe over RDMA, by Sends, Writes or Reads
    Cat(cat::Arguments),
    /// Query an SDP port mapper, or run one
    Pm(pm::Arguments),
    /// Speak the Sockets Direct Protocol for programs: proxy, preload agent, tools
    Sdp(sdp::Arguments),
    /// Run a responder that other implementations can test against
    Serve(serve::Arguments),
    /// Run a tester's commands on the verbs of this host's NIC
    Agent(agent::Arguments),
    /// Test weft's own endpoint with mangled traffic for an hour or longer
    Soak(soak::Arguments),
    /// List the rules that the builtin targets can violate on purpose
    Deviations(deviations::Arguments),
    /// Run a short demonstration that needs nothing but weft
    Demo(demo::Arguments),
    /// Count the requirements that cases, rules or tests cover
    Coverage(coverage::Arguments),
    /// List requirements of the specifications, or print them with their check
    Requirements(requirements::Arguments),
    /// Print the completion script for a shell
    Completions(completions::Arguments),
    /// Write the manual pages
    Man(man::Arguments),
    /// Write requirements, cases, deviations and commands as Markdown
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
