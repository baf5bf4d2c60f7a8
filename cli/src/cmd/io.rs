//! `weft io`: lists the storage commands of a capture, with the operations that served them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use serde_json::Value;
use weft_dissector::io::{
    CommandState, IoCommand, IoTotals, IoTracker, KindStatistics, OutstandingSeries, command_line, milliseconds,
    totals_text,
};
use weft_dissector::{Dissector, StreamId};

use crate::exit::reject;
use crate::input::{CaptureFile, Next, remark};
use crate::one_of::one_of;

/// Number of commands that are printed with `--sort latency` or `--sort bytes`, without `--top`.
const DEFAULT_TOP: usize = 1000;
/// Maximum number of commands without a response that are listed at the end. Further ones are only
/// counted.
const MAX_UNANSWERED: usize = 1000;
/// The columns of the series, from one command to the maximum.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The order of the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Time,
    Latency,
    Bytes,
}

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Each line has: the frame and the time of the command, the connection, both ends, the queue,\n\
    the command and its parameters, the moved bytes, the status, the latency and its parts, the\n\
    Writes, Reads and STags that served the command, and what happened meanwhile: retransmissions,\n\
    findings, missing bytes, and notes. A note is a contradiction between the command and the\n\
    operations, for example a Write outside the buffer of its command. docs/io.md has the details.\n\n\
    Examples:\n  \
    weft io capture.pcap                           list the commands as they finish\n  \
    weft io --sort latency --top 10 capture.pcap   list the ten slowest commands\n  \
    weft io --json capture.pcap                    print one JSON object per command")]
pub(crate) struct Arguments {
    /// Choose the order of the commands
    #[arg(long, value_name = "ORDER", default_value = "time", value_parser = one_of([
        ("time", "The order in which the commands finish", Order::Time),
        ("latency", "The slowest command first", Order::Latency),
        ("bytes", "The command with the most bytes first", Order::Bytes),
    ]))]
    sort: Order,
    /// Print only the first N commands
    ///
    /// With --sort latency or bytes, the default is 1000. Commands without a response are listed
    /// in addition. The statistics at the end always count all commands.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    top: Option<u32>,
    /// Print only the connection with this number; `weft dissect` prints the numbers
    #[arg(long, value_name = "N")]
    stream: Option<StreamId>,
    /// Print one JSON object per command, and the statistics as further objects
    ///
    /// docs/io.md describes the keys. Times are in nanoseconds.
    #[arg(long)]
    json: bool,
    // These options come last, because their heading "Live capture" applies to all later options.
    #[command(flatten)]
    file: CaptureFile,
}

/// Reads the capture and prints the commands.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut input = arguments.file.open()?;
    let name = input.name().to_owned();
    let mut tracker = arguments.stream.map_or_else(IoTracker::default, IoTracker::of_stream);
    let mut dissector = arguments.file.decode.apply(Dissector::default());
    let mut printer = Printer::new(arguments, BufWriter::new(io::stdout().lock()));
    loop {
        match input.next() {
            Next::Frame(frame) => {
                printer.origin.get_or_insert(frame.time);
                dissector.frame(&frame, &mut tracker);
                printer.commands(&mut tracker)?;
            }
            Next::Idle => {
                printer.out.flush()?;
                input.idle();
            }
            Next::End => break,
        }
    }
    dissector.finish(&mut tracker);
    printer.commands(&mut tracker)?;
    input.ignore_partial_frames(&mut dissector);
    input.close()?;
    remark(&name, &dissector);
    let totals = tracker.totals();
    if totals.commands == 0 {
        reject!("{name}: there is no storage command; `weft io` reads the commands of NVMe, iSER, NFS and SMB Direct");
    }
    printer.rest()?;
    printer.statistics(&tracker)?;
    printer.summary(&name, &totals)?;
    printer.out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints commands and statistics.
struct Printer<W> {
    out: W,
    json: bool,
    order: Order,
    /// Maximum number of printed commands; `None` if there is no limit.
    top: Option<usize>,
    /// Capture time of the first frame, in nanoseconds since 1970.
    origin: Option<u64>,
    /// Number of commands with a response so far.
    count: u64,
    /// The first commands of the order latency or bytes. The key is the latency or the number of
    /// bytes. Of two commands with the same value, the earlier one is the larger key.
    sorted: BTreeMap<(u64, Reverse<u64>), IoCommand>,
    /// The first commands without a response.
    unanswered: Vec<IoCommand>,
    further_unanswered: u64,
}

impl<W: Write> Printer<W> {
    fn new(arguments: &Arguments, out: W) -> Self {
        let top = arguments.top.map(|top| top as usize);
        let default = (arguments.sort != Order::Time).then_some(DEFAULT_TOP);
        Printer {
            out,
            json: arguments.json,
            order: arguments.sort,
            top: top.or(default),
            origin: None,
            count: 0,
            sorted: BTreeMap::new(),
            unanswered: Vec::new(),
            further_unanswered: 0,
        }
    }

    /// Prints or stores the commands that have finished.
    fn commands(&mut self, tracker: &mut IoTracker) -> anyhow::Result<()> {
        tracker.take_finished().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: IoCommand) -> anyhow::Result<()> {
        if matches!(command.state, CommandState::NotAnswered | CommandState::Gap) {
            if self.unanswered.len() < MAX_UNANSWERED {
                self.unanswered.push(command);
            } else {
                self.further_unanswered += 1;
            }
            return Ok(());
        }
        self.count += 1;
        let value = match self.order {
            Order::Time if self.top.is_some_and(|top| self.count > top as u64) => return Ok(()),
            Order::Time => return self.print(&command),
            Order::Latency => command.latency.map_or(0, |latency| latency.total_ns),
            Order::Bytes => command.bytes,
        };
        self.sorted.insert((value, Reverse(self.count)), command);
        if self.top.is_some_and(|top| self.sorted.len() > top) {
            self.sorted.pop_first();
        }
        Ok(())
    }

    fn print(&mut self, command: &IoCommand) -> anyhow::Result<()> {
        if self.json {
            return self.json("command", serde_json::to_value(command));
        }
        Ok(writeln!(self.out, "{}", command_line(command, self.origin.unwrap_or(0)))?)
    }

    /// Prints an object as one line, with its kind.
    fn json(&mut self, kind: &str, object: serde_json::Result<Value>) -> anyhow::Result<()> {
        let mut object = object?;
        object["kind"] = kind.into();
        Ok(writeln!(self.out, "{object}")?)
    }

    /// Prints the stored commands: first the sorted ones, and then those without a response.
    fn rest(&mut self) -> anyhow::Result<()> {
        while let Some((_, command)) = self.sorted.pop_last() {
            self.print(&command)?;
        }
        let unanswered = std::mem::take(&mut self.unanswered);
        if !self.json && !unanswered.is_empty() {
            writeln!(self.out, "\nNot answered before the connection or the capture ended:")?;
        }
        unanswered.iter().try_for_each(|command| self.print(command))?;
        if !self.json && self.further_unanswered > 0 {
            writeln!(self.out, "and {} more", self.further_unanswered)?;
        }
        Ok(())
    }

    /// Prints the statistics of each kind of command, and the outstanding commands over time.
    fn statistics(&mut self, tracker: &IoTracker) -> anyhow::Result<()> {
        let series = tracker.outstanding();
        if self.json {
            for kind in tracker.kinds() {
                self.json("statistics", serde_json::to_value(kind))?;
            }
            return self.json("outstanding", serde_json::to_value(series));
        }
        let kinds: Vec<KindStatistics> = tracker.kinds().collect();
        if !kinds.is_empty() {
            writeln!(self.out, "\nLatency in ms (percentiles can be up to 1.6 % too high):")?;
            writeln!(
                self.out,
                "{:>10} {:>8} {:>15} {:>12} {:>12} {:>12} {:>12}  command",
                "count", "errors", "bytes", "50 %", "90 %", "99 %", "maximum"
            )?;
        }
        for KindStatistics { protocol, command, errors, bytes, latency } in kinds {
            let [p50, p90, p99, max] =
                [latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.max_ns].map(milliseconds);
            writeln!(
                self.out,
                "{:>10} {errors:>8} {bytes:>15} {p50:>12} {p90:>12} {p99:>12} {max:>12}  {protocol} {command}",
                latency.count
            )?;
        }
        if series.most > 0 {
            let (most, width) = (series.most, milliseconds(series.column_ns));
            writeln!(self.out, "\nOutstanding commands, at most {most}; each column has {width} ms:")?;
            writeln!(self.out, "{}", columns(series))?;
        }
        Ok(())
    }

    fn summary(&mut self, name: &str, totals: &IoTotals) -> anyhow::Result<()> {
        if self.json {
            let mut object = serde_json::to_value(totals)?;
            object["file"] = name.into();
            return self.json("summary", Ok(object));
        }
        Ok(writeln!(self.out, "\n{name}: {}", totals_text(totals))?)
    }
}

/// Draws the series, with one character for each column. A column without commands is a period.
fn columns(series: &OutstandingSeries) -> String {
    let most = series.most.max(1);
    let level = |count: u64| (count.saturating_mul(LEVELS.len() as u64).div_ceil(most) as usize).min(LEVELS.len());
    let draw = |count: &u64| match level(*count) {
        0 => '.',
        level => LEVELS[level - 1],
    };
    series.columns.iter().map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_column_has_the_highest_character() {
        let mut series = OutstandingSeries::default();
        (series.most, series.columns) = (16, vec![0, 1, 2, 3, 8, 16]);
        assert_eq!(columns(&series), ".▁▁▂▄█");
        (series.most, series.columns) = (1, vec![1, 0]);
        assert_eq!(columns(&series), "█.");
    }
}
