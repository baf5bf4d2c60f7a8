//! `weft bench`: bandwidth and latency of the software RNIC, on request compared with a plain TCP
//! stream.
//!
//! Samples of all subjects alternate, so that a disturbance of the machine affects all of them; the
//! median counts. Each sample has its own connection. Of two equal connections in one process, one
//! is often slower by a quarter for its complete life, probably because of the place of its memory.
//! That is not what the benchmark measures.

mod scale;
mod subject;
mod tcp;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use weft_peer::driver::device::{BusyPoll, DeviceSettings};
use weft_peer::workload::bench::{Carrier, MAX_DEPTH, MAX_SIZE};

use crate::exit::BadInput;
use crate::rnic::MpaArguments;
use crate::runtime;
use crate::watch::WatchArguments;

pub(super) use scale::resident;
use subject::{Subject, here};
pub(super) use tcp::{LONGEST_PART, Tcp};

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "Without --address, the peer is a second RNIC in its own thread, over the loopback interface.\n\
    Write latency includes an empty Send after each Write, because a Write does not notify its\n\
    target.\n\n\
    Examples:\n  \
    weft bench --compare tcp                        Write, Read and Send, compared with plain TCP\n  \
    weft bench --no-crc --op write --size 65536     one operation, without CRC if the peer agrees\n  \
    weft bench -a 192.0.2.17 --latency --json       round trips to a `weft serve` on another host"
)]
pub(crate) struct Arguments {
    /// Measure with the `weft serve` at this address
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Connect to this port of --address
    #[arg(short = 'p', long, default_value_t = 7174)]
    port: u16,
    /// Measure these operations
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Op::Write, Op::Read, Op::Send])]
    op: Vec<Op>,
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
    /// Each one moves 1 MiB in messages of --size (default 4096). The output has the memory of an
    /// idle connection and the bandwidth of all together. If --op has several operations, the first
    /// one counts.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000),
          conflicts_with_all = ["latency", "compare", "both_ways"])]
    connections: Option<u32>,
    /// Take this many samples of each measurement
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    samples: u16,
    /// Transfer this much in each bandwidth sample
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    total: u64,
    /// Measure this many round trips in each latency sample
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Poll for this many microseconds before sleeping; 0 sleeps at once
    ///
    /// Without this option, a side polls for up to 100 us as long as that pays off.
    #[arg(long, value_name = "US")]
    busy_poll: Option<u64>,
    /// Also measure this, in alternate samples
    ///
    /// tcp uses blocking sockets, writes and reads of 1 MiB, and TCP_NODELAY.
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
enum Op {
    /// RDMA Write
    Write,
    /// RDMA Read
    Read,
    /// Send
    Send,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Compare {
    /// A plain TCP stream
    Tcp,
}

impl Op {
    fn carrier(self) -> Carrier {
        match self {
            Op::Write => Carrier::Write,
            Op::Read => Carrier::Read,
            Op::Send => Carrier::Send,
        }
    }
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let size = arguments.size.unwrap_or(if arguments.latency { 4 } else { 1 << 20 });
    if arguments.latency && size == 0 && arguments.compare.is_some() {
        return Err(BadInput("TCP cannot send empty messages to compare with; use another --size".to_owned()).into());
    }
    if size == 0 && !arguments.latency {
        return Err(BadInput("empty messages have no bandwidth; use another --size, or --latency".to_owned()).into());
    }
    let count =
        if arguments.latency { arguments.rounds } else { (arguments.total << 20).div_ceil(u64::from(size.max(1))) };
    runtime::on_one_thread(async {
        let (tape, watch) = arguments.watch.start()?.unzip();
        let busy_poll = arguments.busy_poll.map_or(BusyPoll::Adaptive, |us| BusyPoll::For(Duration::from_micros(us)));
        let other = match &arguments.address {
            Some(host) => crate::rnic::resolve(host, arguments.port).await?,
            None => here(arguments.mpa.settings(), busy_poll)?,
        };
        let device = crate::rnic::open_with(DeviceSettings { tape, busy_poll, ..DeviceSettings::default() })?;
        if arguments.connections.is_some() {
            let carrier = arguments.op.first().copied().unwrap_or(Op::Write).carrier();
            scale::run(arguments, &device, other, carrier, arguments.size.unwrap_or(4096)).await?;
            drop(device);
            if let Some(watch) = watch {
                watch.finish()?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let mut tcp = arguments.compare.map(|_| Tcp::start()).transpose()?;
        let mut subjects = Vec::new();
        for op in &arguments.op {
            subjects.push(Subject::connect(&device, other, arguments, op.carrier(), size).await?);
        }
        let mut times = vec![Vec::new(); subjects.len() + 1];
        for sample in 0..arguments.samples {
            if let Some(tcp) = &mut tcp {
                times[0].push(if arguments.latency { tcp.round_trips(count, size)? } else { tcp.stream(count, size)? });
            }
            for ((subject, times), op) in subjects.iter_mut().zip(&mut times[1..]).zip(&arguments.op) {
                if sample > 0 {
                    let next = Subject::connect(&device, other, arguments, op.carrier(), size).await?;
                    std::mem::replace(subject, next).disconnect().await?;
                }
                // TCP adapts its speed.
                subject.sample(count.div_ceil(8)).await?;
                times.push(subject.sample(count).await?);
            }
        }
        let mut out = io::stdout().lock();
        let ways = if arguments.both_ways { 2 } else { 1 };
        let mut report = Report { arguments, size, count, tcp: None, out: &mut out };
        if tcp.is_some() {
            report.line("tcp", 1, &mut times[0])?;
        }
        for (subject, times) in subjects.iter().zip(&mut times[1..]) {
            report.line(subject.name(), ways, times)?;
        }
        for subject in subjects {
            subject.disconnect().await?;
        }
        drop(device);
        if let Some(watch) = watch {
            watch.finish()?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

struct Report<'a, W> {
    arguments: &'a Arguments,
    size: u32,
    count: u64,
    /// TCP's median, in the unit of the lines.
    tcp: Option<f64>,
    out: &'a mut W,
}

impl<W: Write> Report<'_, W> {
    /// Prints microseconds per round trip, or MB/s (10^6 bytes) of all directions together.
    fn line(&mut self, name: &str, ways: u32, times: &mut [Duration]) -> io::Result<()> {
        let latency = self.arguments.latency;
        let octets = self.count as f64 * f64::from(self.size) * f64::from(ways);
        let mut values: Vec<f64> = times
            .iter()
            .map(|time| {
                let seconds = time.as_secs_f64().max(f64::MIN_POSITIVE);
                if latency { seconds * 1e6 / self.count as f64 } else { octets / seconds / 1e6 }
            })
            .collect();
        values.sort_by(f64::total_cmp);
        let (least, median, most) = (values[0], values[values.len() / 2], values[values.len() - 1]);
        let ratio = self.tcp.map(|tcp| median / tcp);
        let unit = if latency { "us" } else { "MB/s" };
        if self.arguments.json {
            let line = serde_json::json!({
                "kind": "bench", "what": name, "measure": if latency { "latency" } else { "bandwidth" }, "unit": unit,
                "octets": self.size, "depth": if latency { 1 } else { self.arguments.depth }, "count": self.count,
                "busy_poll_us": self.arguments.busy_poll, "both_ways": ways == 2, "samples": values.len(),
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
