//! `weft sdp bench`: measures SDP connections and a plain TCP stream: bandwidth, round trips, and
//! the memory of many connections.
//!
//! The subjects are TCP, SDP in Pipelined Mode, and SDP by Bcopy. weft takes one sample of each
//! subject, then the next sample of each subject, and so on. A disturbance of the machine therefore
//! affects all subjects. The result of a subject is the median of its samples.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use weft_core::wire::sdp::Mode;
use weft_dissector::output::text::counted;
use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpListener, SdpSettings, SdpStream};
use weft_peer::sdp::Half;

use super::settings::SdpArguments;
use crate::cmd::bench::{LONGEST_PART, Tcp, evaluate, resident};
use crate::exit::{CommandFailure, HARNESS, print_json, print_line};
use crate::{rnic, runtime};

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "The peer is a second software RNIC in this process. weft connects to it over the loopback\n\
    interface.\n\n\
    Examples:\n  \
    weft sdp bench                       measure writes of 1 MiB by TCP and SDP\n  \
    weft sdp bench --latency --no-crc    measure round trips of one byte\n  \
    weft sdp bench --connections 1000    measure the memory per connection"
)]
pub(crate) struct Arguments {
    /// Set the size of a write (default 1 MiB, or 1 byte with --latency)
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=i64::from(LONGEST_PART)))]
    size: Option<u32>,
    /// Measure round trips of single writes instead of bandwidth
    #[arg(long)]
    latency: bool,
    /// Measure this many connections at once through one listener
    ///
    /// weft prints the memory that one endpoint of an idle connection needs. Then weft prints the
    /// time in which all connections send and receive one byte each.
    #[arg(long, value_name = "COUNT", conflicts_with = "latency", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: Option<u32>,
    /// Take this many samples of each measurement, and print the median
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    samples: u16,
    /// Transfer this much in each bandwidth sample
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    total: u64,
    /// Measure this many round trips in each latency sample
    #[arg(long, value_name = "COUNT", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Print each line as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sdp: SdpArguments,
}

/// Measures and prints the results.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    runtime::on_one_thread(async {
        let settings = arguments.sdp.settings();
        let other = here(settings)?;
        let device = arguments.sdp.open(None)?;
        match arguments.connections {
            Some(count) => scale(arguments, &device, other, settings, count).await?,
            None => compare(arguments, &device, other, settings, &mut Tcp::start()?).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// A measured subject and its samples. For TCP, `stream` is `None`.
struct Measurement {
    name: &'static str,
    stream: Option<Arc<SdpStream>>,
    times: Vec<Duration>,
}

/// Measures the three subjects.
async fn compare(
    arguments: &Arguments,
    device: &Device,
    other: SocketAddr,
    settings: SdpSettings,
    tcp: &mut Tcp<impl std::io::Read + std::io::Write>,
) -> anyhow::Result<()> {
    let size = arguments.size.unwrap_or(if arguments.latency { 1 } else { 1 << 20 });
    let count = if arguments.latency { arguments.rounds } else { (arguments.total << 20).div_ceil(size.into()) };
    let mut bcopy = settings;
    bcopy.sdp.policy.source_threshold = u64::MAX;
    let pipelined = SdpStream::connect(device, other, settings).await?;
    pipelined.set_mode(Half::Out, Mode::Pipelined)?;
    let bcopy = SdpStream::connect(device, other, bcopy).await?;
    let mut subjects = [
        Measurement { name: "tcp", stream: None, times: Vec::new() },
        Measurement { name: "pipelined", stream: Some(Arc::new(pipelined)), times: Vec::new() },
        Measurement { name: "bcopy", stream: Some(Arc::new(bcopy)), times: Vec::new() },
    ];
    for _ in 0..arguments.samples {
        for Measurement { stream, times, .. } in &mut subjects {
            times.push(match stream {
                None if arguments.latency => tcp.round_trips(count, size)?,
                None => tcp.stream(count, size)?,
                Some(stream) => {
                    let (stream, round_trips) = (Arc::clone(stream), arguments.latency);
                    // Use a task, as the peer does. A task is faster than the future of
                    // `block_on`: before the runtime resumes this future, it polls the network
                    // with a system call.
                    tokio::spawn(async move { sample(&stream, count, size, round_trips).await }).await??
                }
            });
        }
    }
    let mut of = None;
    for subject in &subjects {
        let median = subject.report(arguments, count, size, of);
        of.get_or_insert(median);
    }
    Ok(())
}

impl Measurement {
    /// Prints and returns the median: MB/s (10^6 bytes per second), or with `--latency`
    /// microseconds per round trip. `of` is the median of TCP.
    fn report(&self, arguments: &Arguments, count: u64, size: u32, of: Option<f64>) -> f64 {
        let octets = count as f64 * f64::from(size);
        let ([least, median, most], unit) = evaluate(&self.times, arguments.latency, count, octets);
        let (name, ratio) = (self.name, of.map(|of| median / of));
        if arguments.json {
            print_json(&json!({
                "kind": "sdp_bench", "what": name, "unit": unit, "octets": size, "count": count,
                "samples": self.times.len(), "min": least, "median": median, "max": most, "of_tcp": ratio,
            }));
        } else {
            let ratio = ratio.map_or_else(String::new, |ratio| format!("  {ratio:.2} of TCP"));
            print_line!("{name:<9} {size:>8} bytes  {median:>9.1} {unit}  ({least:.1} to {most:.1}){ratio}");
        }
        median
    }
}

/// Takes a sample: returns the time until the peer has received `count` writes, or the time of
/// `count` round trips. The commands to the peer are those of [`Tcp`].
async fn sample(mut stream: &SdpStream, count: u64, size: u32, round_trips: bool) -> std::io::Result<Duration> {
    let mut buffer = vec![0; size as usize];
    let part = if round_trips { u64::from(size) } else { 0 };
    let command = [(count * u64::from(size)).to_be_bytes(), part.to_be_bytes()].concat();
    let begin = Instant::now();
    stream.write_all(&command).await?;
    for _ in 0..count {
        stream.write_all(&buffer).await?;
        if round_trips {
            stream.read_exact(&mut buffer).await?;
        }
    }
    if !round_trips {
        stream.read_exact(&mut [0]).await?;
    }
    Ok(begin.elapsed())
}

/// Connects, measures memory, and sends one byte in each direction on each connection.
async fn scale(
    arguments: &Arguments,
    device: &Device,
    other: SocketAddr,
    settings: SdpSettings,
    wanted: u32,
) -> anyhow::Result<()> {
    runtime::enough_descriptors(wanted, 2)?;
    let before = resident()?;
    let begin = Instant::now();
    let mut connecting = JoinSet::new();
    for _ in 0..wanted {
        let device = device.clone();
        connecting.spawn(async move { SdpStream::connect(&device, other, settings).await });
    }
    let mut streams = Vec::new();
    while let Some(connected) = connecting.join_next().await {
        let stream = connected?.map_err(|error| {
            let text = format!("cannot open connection {}: {error}", streams.len() + 1);
            CommandFailure { code: HARNESS, text }
        })?;
        streams.push(stream);
    }
    let connected = begin.elapsed();
    let idle = resident()?.saturating_sub(before);
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for stream in streams {
        running.spawn(async move { sample(&stream, 1, 1, true).await.map(|_| stream) });
    }
    let mut done = Vec::new();
    while let Some(ran) = running.join_next().await {
        done.push(ran??);
    }
    let served = begin.elapsed();
    let each = idle as f64 / 1024.0 / f64::from(wanted) / 2.0;
    if arguments.json {
        print_json(&json!({
            "kind": "sdp_scale", "connections": wanted, "kib_per_idle_end": each,
            "connect_seconds": connected.as_secs_f64(), "round_trip_seconds": served.as_secs_f64(),
        }));
    } else {
        print_line!(
            "{} opened in {:.2} s, {each:.1} KiB of memory per idle endpoint",
            counted(wanted.into(), "connection"),
            connected.as_secs_f64()
        );
        print_line!("sent one byte in each direction on each connection: {:.2} s in total", served.as_secs_f64());
    }
    Ok(())
}

/// Starts a second RNIC in its own thread, and returns its address. The thread runs until the
/// process ends.
fn here(settings: SdpSettings) -> anyhow::Result<SocketAddr> {
    let (sender, address) = mpsc::channel();
    thread::spawn(move || {
        runtime::on_one_thread::<()>(async {
            let device = rnic::open(None, None)?;
            let listener = SdpListener::bind(&device, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), settings)?;
            sender.send(listener.local_addr()?)?;
            loop {
                let incoming = listener.incoming().await?;
                // Ignore errors here, because the measuring side reports them.
                tokio::spawn(async move { serve(incoming.start().await?).await });
            }
        })
    });
    Ok(address.recv()?)
}

/// Executes commands until the stream ends. A command has 16 bytes, like a command of [`Tcp`]: the
/// number of data bytes that follow, and the size of the parts that this side sends back. If the
/// part size is 0, this side sends one byte after all data.
async fn serve(mut stream: SdpStream) -> anyhow::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let (mut left, part) = (stream.read_u64().await?, stream.read_u64().await?);
        let part = part.min(LONGEST_PART.into()) as usize;
        // Receive a complete part before sending it back. The measuring side writes the complete
        // part before it reads. If both sides wrote at the same time, full buffers could block
        // both.
        buffer.resize(part.max(1 << 20), 0);
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let (room, _) = buffer.split_at_mut(if part == 0 { most } else { part });
            if part == 0 {
                let read = stream.read(room).await?;
                anyhow::ensure!(read > 0, "the stream ended");
                left -= read as u64;
            } else {
                stream.read_exact(room).await?;
                stream.write_all(room).await?;
                left = left.saturating_sub(part as u64);
            }
        }
        if part == 0 {
            stream.write_all(&[1]).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cmd::bench::WriteSizes;

    #[derive(clap::Parser)]
    struct CommandLine {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// TCP needs more time for small writes than for large writes. So the TCP stream must use
    /// writes of the same size as SDP.
    #[test]
    fn tcp_writes_messages_of_the_requested_size() {
        let mut sizes = WriteSizes::default();
        let line = ["bench", "--size", "64", "--total", "1", "--samples", "1"];
        let CommandLine { arguments } = CommandLine::parse_from(line);
        let compared = runtime::on_one_thread(async {
            let settings = arguments.sdp.settings();
            let device = arguments.sdp.open(None)?;
            compare(&arguments, &device, here(settings)?, settings, &mut Tcp::over(&mut sizes)).await
        });
        compared.unwrap();
        // The first write is the command of 16 bytes. The other writes are 1 MiB in messages of 64
        // bytes.
        let messages = sizes.0.split_off(1);
        assert_eq!((sizes.0.as_slice(), messages.len()), (&[16][..], (1 << 20) / 64));
        assert!(messages.iter().all(|size| *size == 64), "the first writes: {:?}", &messages[..10]);
    }
}
