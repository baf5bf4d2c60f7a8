//! The page with the storage commands of a capture: percentiles, outstanding commands over time,
//! and a list that can be sorted and filtered.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use askama::Template;
use serde::Deserialize;
use weft_core::requirement::Severity;
use weft_dissector::FrameNumber;
use weft_dissector::browse::{Commands, Survey};
use weft_dissector::io::{CommandState, IoCommand, KindStatistics, OperationKind, milliseconds, totals_text};
use weft_dissector::output::text::counted;
use weft_suites::report::{ChartPoint, LineChart};

use super::common::{Head, Links, class, part, seconds};
use crate::view::url;

/// The order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CommandOrder {
    /// The order of the first packets of the commands.
    #[default]
    Time,
    /// The slowest command first. Commands without a response come last.
    Latency,
    /// The command with the most bytes first.
    Bytes,
}

impl CommandOrder {
    pub(crate) const ALL: [CommandOrder; 3] = [CommandOrder::Time, CommandOrder::Latency, CommandOrder::Bytes];

    /// The name in a query.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CommandOrder::Time => "time",
            CommandOrder::Latency => "latency",
            CommandOrder::Bytes => "bytes",
        }
    }

    fn text(self) -> &'static str {
        match self {
            CommandOrder::Time => "time",
            CommandOrder::Latency => "latency, slowest first",
            CommandOrder::Bytes => "bytes, largest first",
        }
    }
}

/// Which commands the list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ShownCommands {
    /// All commands.
    #[default]
    All,
    /// Commands whose status is an error.
    Errors,
    /// Commands without a response.
    Unanswered,
}

impl ShownCommands {
    pub(crate) const ALL: [ShownCommands; 3] = [ShownCommands::All, ShownCommands::Errors, ShownCommands::Unanswered];

    /// The name in a query.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ShownCommands::All => "all",
            ShownCommands::Errors => "errors",
            ShownCommands::Unanswered => "unanswered",
        }
    }

    fn text(self) -> &'static str {
        match self {
            ShownCommands::All => "all",
            ShownCommands::Errors => "only errors",
            ShownCommands::Unanswered => "without a response",
        }
    }

    fn includes(self, command: &IoCommand) -> bool {
        match self {
            ShownCommands::All => true,
            ShownCommands::Errors => command.error,
            ShownCommands::Unanswered => {
                matches!(command.state, CommandState::NotAnswered | CommandState::Gap | CommandState::Dropped)
            }
        }
    }
}

/// The filter and the order of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selection<'a> {
    /// The name of the command. Empty for all commands.
    pub(crate) kind: &'a str,
    pub(crate) show: ShownCommands,
    pub(crate) sort: CommandOrder,
}

impl Selection<'_> {
    /// Returns the parameters of the query: the name of the commands, the filter and the order.
    fn query(&self) -> [&str; 3] {
        [self.kind, self.show.name(), self.sort.name()]
    }

    /// Returns the selected commands in their order.
    pub(crate) fn of<'c>(&self, commands: &'c Commands) -> Vec<&'c IoCommand> {
        let is_wanted = |command: &&IoCommand| {
            (self.kind.is_empty() || self.kind == command.command) && self.show.includes(command)
        };
        let mut selected: Vec<&IoCommand> = commands.list().iter().filter(is_wanted).collect();
        // The sort is stable, so commands in one frame stay in the order in which they finished.
        selected.sort_by_key(|command| command.frame);
        match self.sort {
            CommandOrder::Time => {}
            CommandOrder::Latency => {
                selected.sort_by_key(|command| Reverse(command.latency.map(|latency| latency.total_ns)));
            }
            CommandOrder::Bytes => selected.sort_by_key(|command| Reverse(command.bytes)),
        }
        selected
    }
}

#[derive(Template)]
#[template(path = "capture_commands.html")]
struct Page<'a> {
    head: Head,
    /// Whether the capture has no commands.
    is_empty: bool,
    /// The numbers of commands.
    summary: String,
    /// Number of commands that are counted but not listed.
    left_out: u64,
    kinds: Vec<KindLine>,
    /// The outstanding commands over time, as SVG. Empty if there are too few points.
    chart: String,
    names: Vec<Choice>,
    shows: Vec<Choice>,
    orders: Vec<Choice>,
    rows: Vec<Line<'a>>,
    first: usize,
    last: usize,
    total: usize,
    pages: Links,
}

/// An option of a field.
struct Choice {
    value: &'static str,
    text: &'static str,
    is_selected: bool,
}

/// The statistics of a kind of command.
struct KindLine {
    kind: KindStatistics,
    /// Address of the list of these commands.
    href: String,
    /// Minimum, 50 %, 90 %, 99 % and maximum of the latencies, in milliseconds.
    latencies: Vec<String>,
}

/// A command.
struct Line<'a> {
    command: &'a IoCommand,
    href: String,
    seconds: String,
    queue: String,
    bytes: String,
    outcome: &'a str,
    class: &'static str,
    /// The latency, and its parts, in milliseconds.
    latencies: Vec<String>,
    /// Address and number of the packet that ends the response.
    response: Option<(String, FrameNumber)>,
    /// The numbers of the details, as text. Empty if there are no details.
    fold: String,
    details: Vec<Detail>,
}

/// Something that happened while a command was in flight.
struct Detail {
    class: &'static str,
    text: String,
    /// Address and number of the packet.
    packet: Option<(String, FrameNumber)>,
}

/// Renders the page. `from` is the index of the first command to show.
pub(crate) fn commands(
    head: Head,
    survey: &Survey,
    selection: &Selection<'_>,
    from: usize,
) -> Result<String, askama::Error> {
    let (base, commands) = (head.base.clone(), &survey.commands);
    let selected = selection.of(commands);
    let (range, pages) = part(from, selected.len(), |from| url::commands(&base, selection.query(), from));
    let kind = |kind: KindStatistics| {
        let of_kind = Selection { kind: kind.command, show: ShownCommands::All, sort: CommandOrder::Latency };
        let latency = kind.latency;
        let latencies = [latency.min_ns, latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.max_ns];
        KindLine { kind, href: url::commands(&base, of_kind.query(), 0), latencies: latencies.map(milliseconds).into() }
    };
    let names: BTreeSet<&'static str> = commands.list().iter().map(|command| command.command).collect();
    let name = |value: &'static str| Choice { value, text: value, is_selected: value == selection.kind };
    let show =
        |show: ShownCommands| Choice { value: show.name(), text: show.text(), is_selected: show == selection.show };
    let order =
        |sort: CommandOrder| Choice { value: sort.name(), text: sort.text(), is_selected: sort == selection.sort };
    let page = Page {
        is_empty: commands.totals().commands == 0,
        summary: totals_text(&commands.totals()),
        left_out: commands.omitted(),
        kinds: commands.kinds().map(kind).collect(),
        chart: chart(&base, survey)?,
        names: names.into_iter().map(name).collect(),
        shows: ShownCommands::ALL.map(show).into(),
        orders: CommandOrder::ALL.map(order).into(),
        rows: selected[range.clone()].iter().map(|command| line(&base, command, commands.origin())).collect(),
        first: range.start + 1,
        last: range.end,
        total: selected.len(),
        pages,
        head,
    };
    page.render()
}

/// Draws the outstanding commands over time. Each point leads to the first packet of its interval.
fn chart(base: &str, survey: &Survey) -> Result<String, askama::Error> {
    let (series, origin) = (survey.commands.outstanding(), survey.commands.origin());
    let rows = survey.index.rows();
    let point = |(at, count): (usize, &u64)| {
        let start = series.start.saturating_add(series.column_ns.saturating_mul(at as u64));
        let place = rows.partition_point(|row| row.time < start);
        let frame = rows.get(place).or(rows.last()).map_or(FrameNumber::FIRST, |row| row.number);
        let label = seconds(start.saturating_sub(origin));
        let title = format!("{label} s: {count}");
        ChartPoint { value: *count as f64, label, title, href: url::packet(base, frame, "") }
    };
    let unit = format!("maximum in {} ms", milliseconds(series.column_ns));
    let points = series.columns.iter().enumerate().map(point).collect();
    LineChart { name: "Outstanding commands", unit: &unit, axis: "seconds", most: None, points }.svg()
}

fn line<'a>(base: &str, command: &'a IoCommand, origin: u64) -> Line<'a> {
    let (bytes, expected) = (command.bytes, command.expected_bytes);
    let latency = command.latency;
    let parts = [
        latency.map(|latency| latency.total_ns),
        latency.and_then(|latency| latency.to_data_ns),
        latency.and_then(|latency| latency.data_ns),
        latency.and_then(|latency| latency.to_status_ns),
    ];
    let fold = fold(command);
    Line {
        command,
        href: url::packet(base, command.frame, ""),
        seconds: seconds(command.time.saturating_sub(origin)),
        queue: command.queue.as_ref().map(u64::to_string).unwrap_or_default(),
        bytes: if bytes == expected || expected == 0 { bytes.to_string() } else { format!("{bytes} of {expected}") },
        outcome: command.outcome(),
        class: match command.state {
            _ if command.error => class(Severity::Error),
            CommandState::Answered => "",
            CommandState::NotAnswered | CommandState::NoCommand => class(Severity::Warning),
            CommandState::Gap | CommandState::Dropped => class(Severity::Note),
        },
        latencies: parts.map(|part| part.map(milliseconds).unwrap_or_default()).into(),
        response: command.status_frame.map(|frame| (url::packet(base, frame, ""), frame)),
        details: if fold.is_empty() { Vec::new() } else { details(base, command) },
        fold,
    }
}

/// The numbers of the details, for example "1 Write, 2 notes".
fn fold(command: &IoCommand) -> String {
    let notes = command.notes.len() as u64;
    let counts = [
        (command.writes, "Write"),
        (command.reads, "Read"),
        (command.retransmissions, "retransmission"),
        (command.finding_count, "finding"),
        (notes, "note"),
        (u64::from(command.gap), "gap"),
    ];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| counted(count, what)).collect::<Vec<_>>().join(", ")
}

fn details(base: &str, command: &IoCommand) -> Vec<Detail> {
    let at = |frame: FrameNumber| Some((url::packet(base, frame, ""), frame));
    let plain = |text: String| Detail { class: "", text, packet: None };
    let mut details = Vec::new();
    for operation in &command.operations {
        let kind = match operation.kind {
            OperationKind::Write => "Write",
            OperationKind::Read => "Read",
        };
        let (bytes, stag, offset) = (counted(operation.bytes, "byte"), operation.stag, operation.offset);
        let text = format!("{kind} of {bytes}, STag {stag:#010x}, offset {offset:#x}");
        details.push(Detail { class: "", text, packet: at(operation.frame) });
    }
    let further = (command.writes + command.reads).saturating_sub(command.operations.len() as u64);
    if further > 0 {
        details.push(plain(format!("and {further} more")));
    }
    if command.retransmissions > 0 {
        details.push(plain(format!("{} on the connection", counted(command.retransmissions, "retransmission"))));
    }
    for finding in &command.findings {
        let text = format!("{} {}", finding.severity, finding.requirement);
        details.push(Detail { class: class(finding.severity), text, packet: at(finding.frame) });
    }
    let further = command.finding_count.saturating_sub(command.findings.len() as u64);
    if further > 0 {
        details.push(plain(format!("and {}", counted(further, "more finding"))));
    }
    for note in &command.notes {
        let times = if note.count > 1 { format!(", {} times", note.count) } else { String::new() };
        let text = format!("note: {}{times}", note.kind.text());
        details.push(Detail { class: class(Severity::Warning), text, packet: at(note.frame) });
    }
    if command.gap {
        details.push(plain("bytes of the connection are missing".to_owned()));
    }
    details
}
