//! One file a subcommand.

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
mod target;
mod test;
mod tui;
mod web;

use std::process::ExitCode;

/// What weft can be asked to do.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Read a capture: start-up frames, FPDUs, DDP and RDMAP headers, SDP, the port mapper; and what breaks which rule
    Dissect(dissect::Arguments),
    /// Only what breaks a requirement in a capture; exit code 1 when something does
    Lint(lint::Arguments),
    /// Every field of one frame of a capture, with its octets, its meaning and where it is specified
    Explain(explain::Arguments),
    /// The messages or octets of one connection of a capture
    Follow(follow::Arguments),
    /// Each connection of a capture in numbers
    Stats(stats::Arguments),
    /// A connection of a capture as a sequence diagram
    Ladder(ladder::Arguments),
    /// Judge an implementation: run the suites against it
    Test(test::Arguments),
    /// Write the reports of a run again, from what is in its folder
    Report(report::Arguments),
    /// What is different between two runs of the suites
    Diff(diff::Arguments),
    /// Look at a target before the suites are run against it
    Target(target::Arguments),
    /// Show a capture or a run in the terminal
    Tui(tui::Arguments),
    /// Show the runs of a results store in a browser
    Web(web::Arguments),
    /// Ping over RDMA, with weft or librdmacm's rping on the other side
    Ping(ping::Arguments),
    /// Bandwidth and latency of the software RNIC
    Bench(bench::Arguments),
    /// One RDMA operation after the other, right and wrong ones, with weft or siwprobe on the other side
    Probe(probe::Arguments),
    /// A file or a pipe over RDMA, by Sends, Writes or Reads
    Cat(cat::Arguments),
    /// The SDP port mapper: ask one where a service speaks SDP, or be one
    Pm(pm::Arguments),
    /// The Sockets Direct Protocol for programs that know nothing of it: a proxy, and an agent for the preload library
    Sdp(sdp::Arguments),
    /// Be a responder for others to test against
    Serve(serve::Arguments),
    /// Have a NIC's own verbs do what a tester says, on the NIC's host
    Agent(agent::Arguments),
    /// The endpoint itself under mangled octets, for an hour or as long as one likes
    Soak(soak::Arguments),
    /// List what the builtin responder can be told to do wrong
    Deviations(deviations::Arguments),
    /// The whole way once, with nothing but weft itself
    Demo(demo::Arguments),
    /// Count which requirements are covered by what
    Coverage(coverage::Arguments),
    /// List requirements of the specifications, or show some of them whole
    Requirements(requirements::Arguments),
    /// Print what a shell needs to complete command lines of weft
    Completions(completions::Arguments),
    /// Write the manual pages
    Man(man::Arguments),
    /// Write the catalogues, cases, deviations and commands as Markdown
    Reference(reference::Arguments),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Dissect(arguments) => dissect::run(&arguments),
            Command::Lint(arguments) => lint::run(&arguments),
            Command::Explain(arguments) => explain::run(&arguments),
            Command::Follow(arguments) => follow::run(&arguments),
            Command::Stats(arguments) => stats::run(&arguments),
            Command::Ladder(arguments) => ladder::run(&arguments),
            Command::Test(arguments) => test::run(&arguments),
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
