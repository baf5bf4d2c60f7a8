//! `weft soak`: tests the endpoint with damaged traffic for a long time. If a check fails, weft
//! prints the seed and the command that replays the failure.

mod workers;

use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use weft_dissector::output::text::counted;
use weft_peer::driver::device::random_seed;
use weft_peer::hostile::mangle::Plan;

use crate::cmd::bench::resident;
use crate::exit::{CommandFailure, UNEXPECTED, print_line};
use crate::select::duration;
use workers::{Outcome, Work};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "A run connects two of weft's own endpoints and damages the bytes that they send. A seed\n\
    determines the damage. weft checks what must be true for all input:\n  \
    - no panic and no hang\n  \
    - no access outside registered memory, and no access without the necessary rights\n  \
    - no memory leak, and a resident size of the process that does not grow\n\n\
    Exit codes:\n  \
    0  all checks passed\n  \
    1  a check failed; weft prints the seed and the command that replays the run\n\n\
    Examples:\n  \
    weft soak                                       run one hour, inside weft's process and over TCP\n  \
    weft soak --for 1m --over virtual               run one minute, only inside weft's process\n  \
    weft soak --over virtual --seed 4711 --runs 1   replay one run")]
pub(crate) struct Arguments {
    /// Run this long: a number of seconds (s), minutes (m) or hours (h), such as 90s
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = duration)]
    time: Duration,
    /// Connect the two endpoints only in this way (default: in both ways at once)
    #[arg(long, value_enum)]
    over: Option<Transport>,
    /// Use this seed for the first run (default: a random seed, which weft prints)
    ///
    /// Each further run uses the next seed.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Stop after COUNT runs inside weft's process, and COUNT runs on each TCP lane
    ///
    /// A lane is a pair of endpoints that connect over TCP (see --lanes). With `--runs 1`, weft
    /// uses only one lane.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Damage the traffic in this way, as in `weft serve --mangle`
    ///
    /// Without this option, the seed of a run selects the damage if the run is inside weft's
    /// process. Runs over TCP then use `all`.
    #[arg(long, value_name = "WORD[=N],...")]
    mangle: Option<Plan>,
    /// Use this many lanes: connect this many pairs of endpoints at a time over TCP
    ///
    /// On each lane, the runs take place one after the other.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    lanes: u8,
    /// Allow the resident size to grow by this much after the first tenth of the time
    #[arg(long, value_name = "MIB", default_value_t = 32)]
    growth: u64,
}

/// How the two endpoints are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Transport {
    /// In this process, on a virtual clock
    Virtual,
    /// Over TCP on the loopback interface, in real time
    Tcp,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    let first = arguments.seed.unwrap_or_else(random_seed);
    print_line!("running for {} s; the first seed is {first}", arguments.time.as_secs());
    let (sender, receiver) = mpsc::channel();
    for over in [Transport::Virtual, Transport::Tcp] {
        if arguments.over.is_none_or(|only| only == over) {
            let work = Work {
                over,
                first,
                runs: arguments.runs,
                until: begin + arguments.time,
                plan: arguments.mangle.clone(),
                lanes: arguments.lanes,
            };
            workers::start(work, sender.clone())?;
        }
    }
    drop(sender);
    let mut counts = Counts::default();
    let mut size = Resident { settled: None, most: 0, settles: begin + arguments.time / 10 };
    let every = (arguments.time / 10).clamp(Duration::from_secs(1), Duration::from_secs(60));
    let mut line_due = begin + every;
    loop {
        match receiver.recv_timeout(line_due.saturating_duration_since(Instant::now())) {
            Ok(Outcome::Played { over, octets }) => counts.add(over, octets),
            Ok(Outcome::Broken { over, seed, why }) => {
                let over = if over == Transport::Virtual { "virtual" } else { "tcp" };
                let plan = arguments.mangle.as_ref().map_or_else(String::new, |plan| format!(" --mangle {plan}"));
                let replay = format!("weft soak --over {over} --seed {seed} --runs 1{plan}");
                let text = format!("the run with seed {seed} failed: {why}\nto replay the run: {replay}");
                return Err(CommandFailure { code: UNEXPECTED, text }.into());
            }
            Err(RecvTimeoutError::Timeout) => {
                line_due += every;
                size.sample();
                print_line!("{:>5} s  {}  {}", begin.elapsed().as_secs(), counts.text(), size.text());
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    size.sample();
    let (runs, time, size_text) = (counts.text(), begin.elapsed().as_secs(), size.text());
    print_line!("all checks passed: {runs} in {time} s; the first seed was {first}; {size_text}");
    match size.settled {
        Some(settled) if size.most > settled + (arguments.growth << 20) => {
            let (from, to) = (settled >> 20, size.most >> 20);
            let text =
                format!("the resident size grew from {from} to {to} MiB, more than --growth {}", arguments.growth);
            Err(CommandFailure { code: UNEXPECTED, text }.into())
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The numbers of finished runs.
#[derive(Default)]
struct Counts {
    /// Number of runs inside weft's process, and the number of bytes that their endpoints received.
    played: (u64, u64),
    /// Number of runs over TCP.
    connections: u64,
}

impl Counts {
    fn add(&mut self, over: Transport, octets: u64) {
        match over {
            Transport::Virtual => self.played = (self.played.0 + 1, self.played.1 + octets),
            Transport::Tcp => self.connections += 1,
        }
    }

    fn text(&self) -> String {
        let (runs, octets) = self.played;
        format!("{} inside weft's process ({} MiB), {} over TCP", counted(runs, "run"), octets >> 20, self.connections)
    }
}

/// The resident size of this process, in bytes.
struct Resident {
    /// The first sample after `settles`. The growth of the process is the difference from this
    /// size.
    settled: Option<u64>,
    /// The largest sample.
    most: u64,
    /// Time at which the start-up of the command is over.
    settles: Instant,
}

impl Resident {
    /// Takes a sample. On systems other than Linux, takes no sample, because weft can read the
    /// resident size only on Linux.
    fn sample(&mut self) {
        let Ok(now) = resident() else { return };
        self.most = self.most.max(now);
        if Instant::now() >= self.settles {
            self.settled.get_or_insert(now);
        }
    }

    fn text(&self) -> String {
        let mib = |octets: u64| octets >> 20;
        match self.settled {
            Some(settled) => format!("resident size {} MiB at first, at most {} MiB", mib(settled), mib(self.most)),
            None => format!("resident size at most {} MiB", mib(self.most)),
        }
    }
}
