//! `weft bench`: measures bandwidth and latency of the software RNIC. With `--compare`, it also
//! measures a plain TCP stream.
//!
//! A subject is an RDMA operation or the TCP stream. weft takes one sample of each subject, then
//! the next sample of each subject, and so on. A disturbance of the machine therefore affects all
//! subjects. The result of a subject is the median of its samples.
//!
//! Each sample of an RDMA operation uses a new connection. Two connections of one process often
//! differ in speed by a quarter, although their settings are equal. The slower connection stays
//! slow until it ends. The cause is probably the memory addresses of the connection's buffers. The
//! median of several connections reduces this effect.

mod scale;
mod subject;
mod tcp;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use weft_peer::driver::device::{BusyPoll, DeviceSettings};
use weft_peer::workload::bench::{Carrier, MAX_DEPTH, MAX_SIZE};

use crate::exit::reject;
use crate::one_of::one_of;
use crate::rnic::MpaArguments;
use crate::runtime;
use crate::watch::WatchArguments;

pub(super) use scale::resident;
use subject::{MeasuredOperation, here};
#[cfg(test)]
pub(super) use tcp::WriteSizes;
pub(super) use tcp::{LONGEST_PART, Tcp};

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "The latency of RDMA Write includes an empty Send after each Write, because a Write does not notify\n\
    the peer.\n\n\
    Examples:\n  \
    weft bench --compare tcp                       measure RDMA operations and plain TCP\n  \
    weft bench --no-crc --op write --size 65536    measure RDMA Writes of 64 KiB without CRCs\n  \
    weft bench -a 192.0.2.17 --latency --json      measure round trips to a `weft serve`"
)]
pub(crate) struct Arguments {
    /// Connect to the `weft serve` at this address
    ///
    /// Without this option, the peer is a second software RNIC in this process. weft connects to it
    /// over the loopback interface.
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Connect to this port of --address
    ///
    /// This is the port that the peer listens on. `weft serve --workloads ADDRESS` sets it, for
    /// example to 0.0.0.0:7174.
    #[arg(short = 'p', long, default_value_t = 7174)]
    port: u16,
    /// Measure these RDMA operations, separated by commas
    #[arg(long, value_delimiter = ',', default_values = ["write", "read", "send"], value_parser = one_of([
        ("write", "RDMA Write", Carrier::Write),
        ("read", "RDMA Read", Carrier::Read),
        ("send", "Send", Carrier::Send),
    ]))]
    op: Vec<Carrier>,
    /// Set the message size (default 1 MiB, or 4 bytes with --latency)
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_SIZE)))]
    size: Option<u32>,
    /// Keep this many messages in flight
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    depth: u32,
    /// Measure round trips of single messages instead of bandwidth
    #[arg(long)]
    latency: bool,
    /// Measure both directions at once, on two connections
    #[arg(long, conflicts_with_all = ["latency", "compare"])]
    both_ways: bool,
    /// Measure this many connections at once
    ///
    /// weft prints the memory that one endpoint of an idle connection needs. Then each connection
    /// transfers 1 MiB in messages of --size bytes (default 4096), and weft prints the total
    /// bandwidth of all connections. If --op has several operations, weft uses only the first one.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000),
          conflicts_with_all = ["latency", "compare", "both_ways"])]
    connections: Option<u32>,
    /// Take this many samples of each operation, and print the median
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    samples: u16,
    /// Transfer this much in each bandwidth sample
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    total: u64,
    /// Measure this many round trips in each latency sample
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Poll for this many microseconds before sleeping; 0 means no polling
    ///
    /// Without this option, an endpoint polls for at most 100 us, and only if its recent waits were
    /// short.
    #[arg(long, value_name = "US")]
    busy_poll: Option<u64>,
    /// Also measure plain TCP, and divide each result by the result of TCP
    ///
    /// weft takes a sample of TCP before each round of RDMA samples. The TCP stream uses blocking
    /// sockets, TCP_NODELAY, one write per message, and a read buffer of 1 MiB.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "address")]
    compare: Option<Compare>,
    /// Print each line as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    mpa: MpaArguments,
    #[command(flatten)]
    watch: WatchArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Compare {
    /// A TCP stream without RDMA
    Tcp,
}

/// Measures and prints the results.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let size = arguments.size.unwrap_or(if arguments.latency { 4 } else { 1 << 20 });
    if arguments.latency && size == 0 && arguments.compare.is_some() {
        reject!("TCP cannot send empty messages; with --compare, use --size 1 or more");
    }
    if size == 0 && !arguments.latency {
        reject!("empty messages have no bandwidth; use another --size, or --latency");
    }
    let count =
        if arguments.latency { arguments.rounds } else { (arguments.total << 20).div_ceil(u64::from(size.max(1))) };
    runtime::on_one_thread(arguments.watch.around(async |traffic| {
        let busy_poll = arguments.busy_poll.map_or(BusyPoll::Adaptive, |us| BusyPoll::For(Duration::from_micros(us)));
        let other = match &arguments.address {
            Some(host) => crate::rnic::resolve(host, arguments.port).await?,
            None => here(arguments.mpa.settings(), busy_poll)?,
        };
        let device = crate::rnic::open_with(DeviceSettings { traffic, busy_poll, ..DeviceSettings::default() })?;
        if arguments.connections.is_some() {
            let carrier = arguments.op.first().copied().unwrap_or(Carrier::Write);
            scale::run(arguments, &device, other, carrier, arguments.size.unwrap_or(4096)).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut tcp = arguments.compare.map(|_| Tcp::start()).transpose()?;
        let mut subjects = Vec::new();
        for carrier in &arguments.op {
            subjects.push(MeasuredOperation::connect(&device, other, arguments, *carrier, size).await?);
        }
        let mut times = vec![Vec::new(); subjects.len() + 1];
        for sample in 0..arguments.samples {
            if let Some(tcp) = &mut tcp {
                times[0].push(if arguments.latency { tcp.round_trips(count, size)? } else { tcp.stream(count, size)? });
            }
            for ((subject, times), carrier) in subjects.iter_mut().zip(&mut times[1..]).zip(&arguments.op) {
                if sample > 0 {
                    let next = MeasuredOperation::connect(&device, other, arguments, *carrier, size).await?;
                    std::mem::replace(subject, next).disconnect().await?;
                }
                // TCP adapts its speed, so start with a transfer that is not measured.
                subject.sample(count.div_ceil(8)).await?;
                times.push(subject.sample(count).await?);
            }
        }
        let mut out = io::stdout().lock();
        let ways = if arguments.both_ways { 2 } else { 1 };
        let mut report = Report { arguments, size, count, tcp: None, out: &mut out };
        if tcp.is_some() {
            report.line("tcp", 1, &times[0])?;
        }
        for (subject, times) in subjects.iter().zip(&times[1..]) {
            report.line(subject.name(), ways, times)?;
        }
        for subject in subjects {
            subject.disconnect().await?;
        }
        Ok(ExitCode::SUCCESS)
    }))
}

/// Evaluates the samples of a subject: the least, the median and the largest result, and their
/// unit.
pub(super) fn evaluate(times: &[Duration], latency: bool, count: u64, octets: f64) -> ([f64; 3], &'static str) {
    let value = |time: &Duration| {
        let seconds = time.as_secs_f64().max(f64::MIN_POSITIVE);
        if latency { seconds * 1e6 / count as f64 } else { octets / seconds / 1e6 }
    };
    let mut values: Vec<f64> = times.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    let results = [at(0), at(values.len() / 2), at(values.len().saturating_sub(1))];
    (results, if latency { "us" } else { "MB/s" })
}

/// Prints the result of each subject.
struct Report<'a, W> {
    arguments: &'a Arguments,
    size: u32,
    count: u64,
    /// The median of TCP in MB/s, or with `--latency` in microseconds. `None` until the line of TCP
    /// is printed.
    tcp: Option<f64>,
    out: &'a mut W,
}

impl<W: Write> Report<'_, W> {
    /// Prints the result of a subject: the bandwidth in MB/s (10^6 bytes per second, the sum of all
    /// directions), or with `--latency` the microseconds per round trip.
    fn line(&mut self, name: &str, ways: u32, times: &[Duration]) -> io::Result<()> {
        let latency = self.arguments.latency;
        let octets = self.count as f64 * f64::from(self.size) * f64::from(ways);
        let ([least, median, most], unit) = evaluate(times, latency, self.count, octets);
        let ratio = self.tcp.map(|tcp| median / tcp);
        if self.arguments.json {
            let line = serde_json::json!({
                "kind": "bench", "what": name, "measure": if latency { "latency" } else { "bandwidth" }, "unit": unit,
                "octets": self.size, "depth": if latency { 1 } else { self.arguments.depth }, "count": self.count,
                "busy_poll_us": self.arguments.busy_poll, "both_ways": ways == 2, "samples": times.len(),
                "min": least, "median": median, "max": most, "of_tcp": ratio,
            });
            writeln!(self.out, "{line}")?;
        } else {
            let ratio = ratio.map_or_else(String::new, |ratio| format!("  {ratio:.2} of TCP"));
            let size = self.size;
            writeln!(self.out, "{name:<6} {size:>9} bytes  {median:>9.1} {unit}  ({least:.1} to {most:.1}){ratio}")?;
        }
        if name == "tcp" {
            self.tcp = Some(median);
        }
        Ok(())
    }
}
