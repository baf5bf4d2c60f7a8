//! `weft between`: connects two implementations, impairs their traffic, and reports which side
//! violated which requirement.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use weft_between::driver::interfaces::Interfaces;
use weft_between::driver::proxy::Proxy;
use weft_between::{
    Attributed, ClosedWindow, FpduPart, Impairments, PerSide, Probability, Results, Run, Side, SplitAt,
};
use weft_capture::privilege;
use weft_dissector::output::text::counted;
use weft_peer::driver::device::random_seed;

use crate::exit::{BadInput, CommandFailure, HARNESS, UNEXPECTED, USAGE, note, print_line, reject};
use crate::input::open_error;
use crate::select::duration;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "A and B are either two network interfaces or two addresses:\n  \
    - Interfaces: weft forwards all frames between them. It needs root or CAP_NET_RAW. The\n    \
      interfaces must have no addresses and must not be in another bridge.\n  \
    - Addresses (HOST:PORT): weft listens at A, and connects each client to the server at B. Such\n    \
      a TCP proxy can delay, split and corrupt. The other impairments need interfaces.\n\n\
    weft has a monitor on each side. Each monitor checks the frames that its side sent, and the frames\n\
    that its side received after the impairments. A violation that only the receiver's monitor\n\
    finds is therefore an effect of the network, not of the sender.\n\n\
    Exit codes:\n  \
    0  no side violated a requirement\n  \
    1  a side violated a requirement\n  \
    2  the command line is wrong, or there was nothing to judge\n  \
    4  an interface or the proxy failed\n\n\
    Examples:\n  \
    weft between eth1 eth2 -w results                  forward unchanged, and save both captures\n  \
    weft between eth1 eth2 --loss 1 --reorder 1        lose 1 % and reorder 1 % of the segments\n  \
    weft between eth1 eth2 --corrupt 0.1 --from a      change bytes; only MPA's CRC shows the change\n  \
    weft between eth1 eth2 --corrupt 1 --corrupt-in crc    change bytes of CRC fields only\n  \
    weft between 127.0.0.1:7175 192.0.2.17:7174 --split 50    divide segments, as a TCP proxy")]
pub(crate) struct Arguments {
    /// Interface of side A, or address at which weft listens for clients
    #[arg(value_name = "A")]
    a: String,
    /// Interface of side B, or address of the server
    #[arg(value_name = "B")]
    b: String,
    #[command(flatten)]
    impairments: ImpairmentArguments,
    /// Use this seed for the random numbers (default: a random seed, which weft prints)
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Stop after this time, such as 90s, 5m or 1h (default: at Ctrl-C)
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Write the captures a.pcapng and b.pcapng and the file result.json to this folder
    #[arg(short = 'w', long = "write", value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Also print each fault
    #[arg(short = 'v', long, conflicts_with = "json")]
    verbose: bool,
}

/// The period of closed windows, unless an option sets it.
const CLOSE_EVERY: Duration = Duration::from_secs(10);

/// The options for impairments. If netem has an impairment, the option has netem's name.
#[derive(clap::Args)]
#[command(next_help_heading = "Impairments")]
struct ImpairmentArguments {
    /// Delay each frame by this time, such as 20ms or 1s
    #[arg(long, value_name = "TIME", value_parser = short_time)]
    delay: Option<Duration>,
    /// Delay each frame by a random additional time of at most TIME, without a change of order
    #[arg(long, value_name = "TIME", value_parser = short_time)]
    jitter: Option<Duration>,
    /// Lose this share of the TCP segments
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    loss: Option<Probability>,
    /// Forward this share of the TCP segments twice
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    duplicate: Option<Probability>,
    /// Forward this share of the TCP segments after one to three later segments
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    reorder: Option<Probability>,
    /// Divide this share of the TCP segments at a random byte
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    split: Option<Probability>,
    /// Divide at this place of an FPDU instead of a random byte
    ///
    /// PLACE is header, payload, pad, marker or crc for a byte inside this part, before-crc for the
    /// place between PAD and CRC, or a number of bytes after the start of the FPDU. Markers do not
    /// count. --split is then the share of the segments that have such a place. weft finds the
    /// places only in the segment with the end of an FPDU.
    #[arg(long, value_name = "PLACE", value_parser = split_place, requires = "split")]
    split_at: Option<SplitAt>,
    /// Divide TCP segments with more than BYTES bytes of payload
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..))]
    segment: Option<u16>,
    /// Change a byte in this share of the TCP segments, and correct the TCP checksum
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    corrupt: Option<Probability>,
    /// Change only bytes in this part of an FPDU; repeatable
    ///
    /// The header is ULPDU_Length and the DDP header. --corrupt is then the share of the segments
    /// that have such a part. weft finds the parts only in the segment with the end of an FPDU.
    #[arg(long, value_name = "PART", value_delimiter = ',', requires = "corrupt")]
    corrupt_in: Vec<PartName>,
    /// Reject IP packets of more than BYTES bytes with an ICMP error, as routers do
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(68..))]
    mtu: Option<u16>,
    /// Reduce the TCP receive windows to at most BYTES
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    /// Close the TCP receive windows for this time in each period of --close-every
    ///
    /// During this time, weft sets all windows to 0. When the windows open again, a sender notices
    /// this with its next window probe.
    #[arg(long, value_name = "TIME", value_parser = short_time)]
    close_window: Option<Duration>,
    /// Period of --close-window, which closes the windows at its end (default: 10s)
    #[arg(long, value_name = "TIME", value_parser = short_time, requires = "close_window")]
    close_every: Option<Duration>,
    /// Impair only the frames that this side sends (default: both sides)
    #[arg(long, value_name = "SIDE", ignore_case = true)]
    from: Option<SideName>,
    /// Impair only TCP connections from or to this port; repeatable
    #[arg(long = "port", value_name = "PORT")]
    ports: Vec<u16>,
    /// Begin the impairments this long after the first frame
    ///
    /// --delay and --jitter begin with the first frame.
    #[arg(long, value_name = "TIME", value_parser = short_time)]
    after: Option<Duration>,
    /// Inject at most this many faults
    ///
    /// A fault is a segment that weft lost, duplicated, reordered, divided, corrupted or rejected as
    /// too long. A delay and a reduced window are not faults.
    #[arg(long, value_name = "COUNT")]
    faults: Option<u32>,
}

/// A side on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SideName {
    /// The side of the first argument
    A,
    /// The side of the second argument
    B,
}

/// A part of an FPDU on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PartName {
    /// ULPDU_Length and the DDP header
    Header,
    /// The payload of the DDP segment
    Payload,
    /// PAD
    Pad,
    /// A marker
    Marker,
    /// The CRC field
    Crc,
}

impl PartName {
    fn part(self) -> FpduPart {
        match self {
            PartName::Header => FpduPart::Header,
            PartName::Payload => FpduPart::Payload,
            PartName::Pad => FpduPart::Pad,
            PartName::Marker => FpduPart::Marker,
            PartName::Crc => FpduPart::Crc,
        }
    }
}

impl ImpairmentArguments {
    fn impairments(&self) -> Impairments {
        let every = self.close_every.unwrap_or(CLOSE_EVERY);
        Impairments {
            delay: self.delay.unwrap_or_default(),
            jitter: self.jitter.unwrap_or_default(),
            loss: self.loss.unwrap_or_default(),
            duplicate: self.duplicate.unwrap_or_default(),
            reorder: self.reorder.unwrap_or_default(),
            split: self.split.unwrap_or_default(),
            split_at: self.split_at,
            segment: self.segment,
            corrupt: self.corrupt.unwrap_or_default(),
            corrupt_in: self.corrupt_in.iter().map(|name| name.part()).collect(),
            mtu: self.mtu,
            window: self.window,
            closed_window: self.close_window.map(|time| ClosedWindow { time, every }),
            from: self.from.map(|name| match name {
                SideName::A => Side::A,
                SideName::B => Side::B,
            }),
            ports: self.ports.clone(),
            after: self.after.unwrap_or_default(),
            max_faults: self.faults,
        }
    }
}

/// Parses a percentage, such as `0.1` or `5%`.
fn percent(text: &str) -> Result<Probability, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    number
        .and_then(Probability::from_percent)
        .ok_or_else(|| format!("{text:?} is not a percentage; use a number from 0 to 100, such as 0.1"))
}

/// Parses a place of an FPDU, such as `crc` or `20`.
fn split_place(text: &str) -> Result<SplitAt, String> {
    if text == "before-crc" {
        return Ok(SplitAt::BeforeCrc);
    }
    let part = <PartName as clap::ValueEnum>::from_str(text, true).ok().map(|name| SplitAt::Inside(name.part()));
    part.or_else(|| text.parse().ok().map(SplitAt::Offset)).ok_or_else(|| {
        format!("{text:?} is not a place; use header, payload, pad, marker, crc, before-crc or a number of bytes")
    })
}

/// Parses a time that can be shorter than one second, such as `20ms`.
fn short_time(text: &str) -> Result<Duration, String> {
    match text.strip_suffix("ms").map(str::parse) {
        Some(Ok(milliseconds)) => Ok(Duration::from_millis(milliseconds)),
        Some(Err(_)) => Err(format!("{text:?} is not a time; use a number and ms or s, such as 20ms")),
        None => duration(text),
    }
}

/// The two ways to connect the sides.
enum Connected {
    Interfaces(Interfaces),
    Proxy(Proxy),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let impairments = arguments.impairments.impairments();
    if let Some(ClosedWindow { time, every }) = impairments.closed_window
        && time >= every
    {
        reject!("--close-window {time:?} is not shorter than --close-every {every:?}, so no window would open");
    }
    let mut connected = connect(arguments, &impairments)?;
    let outputs = match &arguments.folder {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
            PerSide { a: Some(create(folder, "a.pcapng")?), b: Some(create(folder, "b.pcapng")?) }
        }
        None => PerSide { a: None, b: None },
    };
    let seed = arguments.seed.unwrap_or_else(random_seed);
    let names = PerSide { a: arguments.a.clone(), b: arguments.b.clone() };
    let mut run = Run::new(impairments.clone(), seed, &names, outputs)?;
    let stop = Arc::new(AtomicBool::new(false));
    let signalled = Arc::clone(&stop);
    crate::signals::on_interrupt(move || signalled.store(true, Relaxed))?;
    if let Some(time) = arguments.time {
        let elapsed = Arc::clone(&stop);
        std::thread::Builder::new().name("time limit".to_owned()).spawn(move || {
            std::thread::sleep(time);
            elapsed.store(true, Relaxed);
        })?;
    }
    let how = if impairments.is_none() { "unchanged".to_owned() } else { format!("with impairments, seed {seed}") };
    let failure = match &mut connected {
        Connected::Interfaces(interfaces) => {
            note(&format!("forwarding frames between {} (A) and {} (B), {how}", arguments.a, arguments.b));
            interfaces.forward(&mut run, &stop).map_err(|error| error.to_string())
        }
        Connected::Proxy(proxy) => {
            let address = proxy.address()?;
            note(&format!("listening on {address} (A) for clients of {} (B), {how}", arguments.b));
            proxy.forward(&mut run, &stop).map_err(|error| format!("the proxy failed: {error}"))
        }
    };
    let results = run.finish()?;
    if let Some(folder) = &arguments.folder {
        let path = folder.join("result.json");
        let text = serde_json::to_string_pretty(&json(&results, seed))?;
        std::fs::write(&path, text + "\n").map_err(|error| cannot_write(&path, &error))?;
    }
    if arguments.json {
        print_line!("{}", json(&results, seed));
    } else {
        print(&results, arguments);
    }
    match failure {
        Err(text) => Err(CommandFailure { code: HARNESS, text }.into()),
        Ok(()) if is_unjudged(&results) => Ok(ExitCode::from(USAGE)),
        Ok(()) if results.attribution.has_violations() => Ok(ExitCode::from(UNEXPECTED)),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Opens the interfaces or the proxy.
fn connect(arguments: &Arguments, impairments: &Impairments) -> anyhow::Result<Connected> {
    let addresses = [&arguments.a, &arguments.b].map(|text| address(text));
    match addresses {
        [Some(listen), Some(server)] => {
            let need = impairments.need_frames();
            if !need.is_empty() {
                let options: Vec<_> = need.iter().map(|name| format!("--{name}")).collect();
                reject!(
                    "cannot use {} between two addresses: a TCP proxy forwards bytes, not frames; name two interfaces",
                    options.join(" and ")
                );
            }
            let (listen, server) = (listen?, server?);
            let proxy = Proxy::listen(listen, server).map_err(|error| CommandFailure {
                code: HARNESS,
                text: format!("cannot listen on {listen}: {error}; use port 0 for any free port"),
            })?;
            Ok(Connected::Proxy(proxy))
        }
        [None, None] => {
            if arguments.a == arguments.b {
                reject!("{} cannot be both sides; name two interfaces", arguments.a);
            }
            let names = PerSide { a: arguments.a.clone(), b: arguments.b.clone() };
            let interfaces = Interfaces::open(&names).map_err(|error| open_error(&error))?;
            privilege::drop_all()
                .map_err(|error| anyhow::anyhow!("cannot drop the privileges for capturing: {error}"))?;
            Ok(Connected::Interfaces(interfaces))
        }
        _ => reject!("name two interfaces or two addresses (HOST:PORT), not one of each"),
    }
}

/// If `text` has the form `HOST:PORT`, resolves it.
fn address(text: &str) -> Option<Result<SocketAddr, BadInput>> {
    // The name of an interface can contain a colon, but does not end with a colon and a number.
    let (host, port) = text.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let resolved = (!host.is_empty()).then(|| text.to_socket_addrs().ok()).flatten();
    let first = resolved.and_then(|mut list| list.next());
    Some(first.ok_or_else(|| BadInput(format!("cannot resolve {text}; use HOST:PORT, such as 127.0.0.1:7175"))))
}

fn create(folder: &Path, name: &str) -> anyhow::Result<BufWriter<File>> {
    let path = folder.join(name);
    let file = File::create(&path).map_err(|error| cannot_write(&path, &error))?;
    Ok(BufWriter::new(file))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> BadInput {
    BadInput(format!("cannot write {}: {error}", path.display()))
}

fn json(results: &Results, seed: u64) -> serde_json::Value {
    serde_json::json!({
        "seed": seed,
        "violations": results.attribution.violations,
        "network": results.attribution.network,
        "faults": results.attribution.faults,
        "omitted_findings": results.attribution.omitted,
        "frames": results.counts,
        "connections": PerSide::new(|side| results.observed[side].connections),
        "fpdus": PerSide::new(|side| results.observed[side].fpdus),
    })
}

/// Whether the monitors observed nothing that they could judge.
fn is_unjudged(results: &Results) -> bool {
    let Results { attribution, observed, .. } = results;
    let is_silent =
        Side::BOTH.iter().all(|side| observed[*side].fpdus == 0 && attribution.violations[*side].is_empty());
    is_silent && attribution.network.is_empty()
}

/// Prints the result as text. The first line is the verdict.
fn print(results: &Results, arguments: &Arguments) {
    let attribution = &results.attribution;
    if is_unjudged(results) {
        let connections = results.observed.a.connections.max(results.observed.b.connections);
        print_line!("nothing was judged, because there was no FPDU (TCP connections: {connections})");
    } else {
        let [a, b] = Side::BOTH.map(|side| verdict(&attribution.violations[side]));
        print_line!(
            "side A violated {a}, side B violated {b}; {} injected",
            counted(attribution.faults.len() as u64, "fault")
        );
    }
    for side in Side::BOTH {
        let violations = &attribution.violations[side];
        if !violations.is_empty() {
            let name = if side == Side::A { &arguments.a } else { &arguments.b };
            print_line!("\nFindings about side {side} ({name}):");
            violations.iter().for_each(|violation| print_violation(violation, attribution));
        }
    }
    if !attribution.network.is_empty() {
        print_line!("\nEffects of the network (the sender's own monitor does not find them):");
        attribution.network.iter().for_each(|violation| print_violation(violation, attribution));
    }
    if !attribution.faults.is_empty() {
        print_line!("\nFaults:");
        for (outcome, count) in attribution.outcomes() {
            print_line!("  {count:>6}  {}", outcome.text());
        }
    }
    if arguments.verbose {
        print_line!("");
        for judged in &attribution.faults {
            let fault = &judged.fault;
            print_line!(
                "  fault {} ({}), {} to {}, sequence number {}, frame {} of side {}: {}",
                fault.number,
                fault.kind.name(),
                fault.src,
                fault.dst,
                fault.seq,
                fault.sent,
                fault.from,
                judged.outcome.text()
            );
        }
    }
    for side in Side::BOTH {
        let counts = results.counts[side];
        for (count, what) in [
            (counts.bad_checksums, "with a wrong TCP checksum, forwarded without an impairment"),
            (counts.oversized, "with several merged segments (offload), divided again"),
            (counts.overflow, "that were lost, because too many bytes waited in the bridge"),
        ] {
            if count > 0 {
                note(&format!("frames from side {side} {what}: {count}"));
            }
        }
        if attribution.omitted[side] > 0 {
            note(&format!("unlisted findings from the monitor of side {side}: {}", attribution.omitted[side]));
        }
        results.observed[side].remarks.iter().for_each(|remark| note(&format!("monitor of side {side}: {remark}")));
    }
}

/// The number of violated requirements, and the number of requirements with notes only.
fn verdict(violations: &[Attributed]) -> String {
    let ids = |is_note: bool| {
        let of_kind = violations.iter().filter(|violation| (violation.severity == "note") == is_note);
        of_kind.map(|violation| violation.requirement).collect::<BTreeSet<_>>()
    };
    let (violated, notes) = (ids(false), ids(true));
    let text = match violated.len() {
        0 => "no requirement".to_owned(),
        count => counted(count as u64, "requirement"),
    };
    match notes.difference(&violated).count() {
        0 => text,
        count => format!("{text} ({})", counted(count as u64, "note")),
    }
}

fn print_violation(violation: &Attributed, attribution: &weft_between::Attribution) {
    let Attributed { severity, requirement, flow, tap, frame, count, expected, found, fault, .. } = violation;
    let file = if *tap == Side::A { "a.pcapng" } else { "b.pcapng" };
    let times = if *count > 1 { format!(", {count} times") } else { String::new() };
    print_line!(
        "  {severity:<7} {requirement}, sent by {} to {}, frame {frame} of {file}{times}",
        flow.sender,
        flow.receiver
    );
    print_line!("          expected: {expected}");
    print_line!("          found:    {found}");
    if let Some(judged) = fault.and_then(|number| attribution.fault(number)) {
        print_line!("          last fault before: {} ({})", judged.fault.number, judged.fault.kind.name());
    }
}
