//! The subcommands, one file each.

/// Declares the subcommands of a command. Each subcommand is a module with `Arguments` and `run`.
macro_rules! subcommands {
    (
        $(#[$about:meta])*
        $visibility:vis enum $name:ident { $($(#[$help:meta])* $command:ident = $module:ident,)+ }
    ) => {
        $(#[$about])*
        #[derive(clap::Subcommand)]
        $visibility enum $name { $($(#[$help])* $command($module::Arguments),)+ }

        impl $name {
            /// Runs the subcommand.
            $visibility fn run(&self) -> anyhow::Result<std::process::ExitCode> {
                match self { $($name::$command(arguments) => $module::run(arguments),)+ }
            }
        }
    };
}

mod agent;
mod answers;
mod baseline;
mod bench;
mod between;
mod captures;
mod cat;
mod completions;
mod coverage;
mod demo;
mod deviations;
mod diff;
mod dissect;
mod explain;
mod export;
pub(crate) mod extcap;
mod follow;
mod io;
mod ladder;
mod learn;
mod lint;
mod man;
mod ping;
mod pm;
mod probe;
mod reference;
mod report;
mod requirements;
mod scrub;
mod sdp;
mod serve;
mod soak;
mod stats;
mod suite;
mod target;
mod test;
mod tui;
mod web;
mod why;

subcommands! {
    /// The subcommands of weft.
    pub(crate) enum Command {
        /// Decode a capture: MPA, DDP, RDMAP, SDP and port mapper messages, with findings
        ///
        /// weft prints one line per unit. A unit is an MPA start-up frame, an FPDU, an SDP message, a
        /// port mapper message, or a part of a connection that weft cannot decode. A finding is a
        /// violated requirement of a specification, or unusual behaviour.
        Dissect = dissect,
        /// List the requirements that a capture violates; exit with 1 if there are any
        ///
        /// A requirement is one rule of a specification, such as MPA-7.1.1-2 of RFC 5044. A finding is
        /// a violation of a requirement in the capture. The text output begins with what happened
        /// on the connections that failed or have findings, in the words of `weft why`.
        Lint = lint,
        /// Explain what happened on each connection of a capture, and why it ended
        ///
        /// weft prints one paragraph per connection: what the endpoints negotiated and sent, how the
        /// connection ended, and the chain of events that led to the end. If the capture does not show
        /// the cause or the endpoint at fault, the paragraph contains "Not in this capture".
        Why = why,
        /// Show each field of one frame: bytes, meaning, and section of the specification
        Explain = explain,
        /// Print the messages or bytes of one connection of a capture
        Follow = follow,
        /// Write the messages above RDMAP as packets that Wireshark decodes without iWARP
        Export = export,
        /// Print statistics about each connection of a capture
        ///
        /// The text output begins with what happened on the connections, as `weft why` explains it.
        Stats = stats,
        /// List storage commands (NVMe, iSER, NFS, SMB Direct) with their latencies
        ///
        /// weft prints one line per command: what it moved, how long each part took, which RDMA
        /// operations served it, and what was wrong meanwhile. The end of the output has percentiles
        /// of the latencies, and the number of outstanding commands over time.
        Io = io,
        /// Draw one connection of a capture as a sequence diagram
        Ladder = ladder,
        /// Capture for Wireshark, with weft's findings as packet comments (extcap)
        Extcap = extcap,
        /// Write a copy of a capture without payload and addresses, which you can share
        ///
        /// weft replaces payload, names and addresses, and keeps the headers, the lengths and the
        /// times. `weft lint` reports the same findings for the copy.
        Scrub = scrub,
        /// Run test suites against an implementation (the target) and judge it
        ///
        /// A suite is a collection of test cases. Each case sends messages to the target, and checks
        /// whether the target meets some requirements of the specifications. Most cases have
        /// parameters. A variant is a case with certain values of its parameters.
        Test = test,
        /// Learn the state machine of a target, or compare two targets
        ///
        /// The state machine describes the start-up and the end of connections.
        Learn = learn,
        /// List, show or check the test cases, or print the earlier results of a case
        Suite = suite,
        /// Write the reports of a test run that has finished or was killed
        Report = report,
        /// Compare the results of two test runs
        Diff = diff,
        /// Write the known failures of a test run, so that later runs expect them
        Baseline = baseline,
        /// Write the target file of a test target, check a target, or list the presets
        Target = target,
        /// Browse a capture or a test run in the terminal
        Tui = tui,
        /// Show test runs in a browser
        Web = web,
        /// Ping over RDMA, with weft or librdmacm's rping as the peer
        Ping = ping,
        /// Connect two implementations, impair their traffic, and report which side is at fault
        Between = between,
        /// Measure bandwidth and latency of weft's software RNIC
        Bench = bench,
        /// Run single RDMA operations, valid or invalid, with weft or siwprobe as the peer
        Probe = probe,
        /// Transfer a file or a pipe over RDMA, by Sends, Writes or Reads
        Cat = cat,
        /// Query or run a port mapper of the Sockets Direct Protocol (SDP)
        Pm = pm,
        /// Let programs use the Sockets Direct Protocol (SDP), or test and measure SDP
        Sdp = sdp,
        /// Run a responder as a test peer for other implementations
        Serve = serve,
        /// Let weft's test cases control this host's RDMA device
        ///
        /// In a test case with an agent, weft (the tester) connects to this agent. The tester sends
        /// requests, for example to create a Queue Pair or to post a Work Request. The agent
        /// executes these requests through the verbs (the programming interface) of the device.
        Agent = agent,
        /// Test weft's own endpoint with damaged traffic for an hour or longer
        Soak = soak,
        /// List the deviations: the rules that builtin targets can violate on purpose
        Deviations = deviations,
        /// Run a short demonstration that needs only weft itself
        Demo = demo,
        /// Count requirements that are covered by test cases, lint rules or unit tests
        Coverage = coverage,
        /// List requirements of the specifications, or print how weft checks each of them
        Requirements = requirements,
        /// Print the completion script for a shell
        Completions = completions,
        /// Write the manual pages
        Man = man,
        /// Write requirements, cases, deviations and commands as Markdown pages
        Reference = reference,
    }
}
