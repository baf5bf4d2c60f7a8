//! `storage commands COUNT [CONNECTIONS]` writes a pcap file with COUNT commands READ of NVMe over
//! RDMA to the standard output.
//!
//! `storage cost [ROUNDS]` measures what the protocols above RDMAP cost. It dissects two captures,
//! in turn with and without these protocols: one with the payload of no known protocol, and one with
//! commands of NVMe. It prints the ratio of the least times. The exit status is 1 if a ratio is
//! above its goal.

use std::io::{self, BufWriter, Cursor};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weft_bench::{generate, generate_commands};
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Sink};

/// Length of the capture without a known protocol in bytes, and number of commands in the other.
const OCTETS: u64 = 40_000_000;
const COMMANDS: u64 = 40_000;
/// Number of connections of both captures.
const CONNECTIONS: usize = 8;
/// The greatest accepted ratios.
const GOALS: [f64; 2] = [1.05, 1.25];

/// Counts units with a message of a protocol above RDMAP.
#[derive(Default)]
struct Messages(u64);

impl Sink for Messages {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.0 += u64::from(unit.context.is_some_and(|context| context.ulp_message.is_some()));
    }
}

/// Dissects a capture. Returns the time, and the number of messages above RDMAP.
fn measure(octets: &[u8], mut dissector: Dissector) -> io::Result<(Duration, u64)> {
    let mut capture = Capture::from_reader(Box::new(Cursor::new(octets.to_vec()))).map_err(io::Error::other)?;
    let mut messages = Messages::default();
    let start = Instant::now();
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut messages);
    }
    dissector.finish(&mut messages);
    Ok((start.elapsed(), messages.0))
}

/// Measures a capture. Returns the least time with and without the protocols above RDMAP, and the
/// number of messages.
fn compare(octets: &[u8], rounds: u64) -> io::Result<([Duration; 2], u64)> {
    let (mut least, mut messages) = ([Duration::MAX; 2], 0);
    for _ in 0..rounds {
        let (with, count) = measure(octets, Dissector::default())?;
        let (without, none) = measure(octets, Dissector::default().without_ulps())?;
        if none > 0 {
            return Err(io::Error::other("a dissector without protocols above RDMAP finds their messages"));
        }
        least = [least[0].min(with), least[1].min(without)];
        messages = count;
    }
    Ok((least, messages))
}

fn cost(rounds: u64) -> io::Result<ExitCode> {
    let (mut plain, mut storage) = (Vec::new(), Vec::new());
    generate(&mut plain, OCTETS, CONNECTIONS, 0)?;
    generate_commands(&mut storage, COMMANDS, CONNECTIONS)?;
    let mut status = ExitCode::SUCCESS;
    let captures = [("plain", plain, 0), ("nvme", storage, 2 * COMMANDS)];
    for ((name, octets, expected), goal) in captures.iter().zip(GOALS) {
        let ([with, without], messages) = compare(octets, rounds)?;
        if messages != *expected {
            return Err(io::Error::other(format!("{name}: {messages} messages, not {expected}")));
        }
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        let verdict = if ratio <= goal { "ok" } else { "MISSED" };
        println!("{name:<6} with {with:.3?}  without {without:.3?}  ratio {ratio:.3}  goal {goal:.2}  {verdict}");
        if ratio > goal {
            status = ExitCode::FAILURE;
        }
    }
    Ok(status)
}

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| match arguments.get(index) {
        Some(text) => text.parse::<u64>().map_err(io::Error::other),
        None => Ok(default),
    };
    match arguments.first().map(String::as_str) {
        Some("commands") => {
            let connections = usize::try_from(number(2, 1)?).map_err(io::Error::other)?;
            let out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
            generate_commands(out, number(1, 1_000_000)?, connections)?;
            Ok(ExitCode::SUCCESS)
        }
        Some("cost") => cost(number(1, 5)?.max(1)),
        _ => Err(io::Error::other("usage: storage commands COUNT [CONNECTIONS], or storage cost [ROUNDS]")),
    }
}
