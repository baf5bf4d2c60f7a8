//! `-z io,stat,INTERVAL[,FILTER...]`: counts frames and bytes, or calculates with the values of a
//! field, in each interval of time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use weft_dissector::filter::known::Kind;
use weft_dissector::filter::{KnownField, Slot, WantedFields, known};
use weft_dissector::output::frames::Record;

use super::OwnFilter;
use crate::exit::{BadInput, reject};

/// Maximum number of intervals that are stored. Frames in further intervals are only counted.
const MAX_INTERVALS: usize = 1_000_000;

/// What a column shows.
#[derive(Clone, Copy)]
enum Calculation {
    FramesAndBytes,
    Frames,
    Bytes,
    /// A calculation with the values of a field.
    OfField(Function, Slot, &'static KnownField),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Count,
    Sum,
    Min,
    Max,
    Avg,
}

/// A column: a filter, and what to calculate for the frames that pass it.
struct Column {
    filter: OwnFilter,
    title: String,
    calculation: Calculation,
}

/// The counts of one column in one interval.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    frames: u64,
    bytes: u64,
    /// Number, sum, minimum and maximum of the values.
    count: u64,
    sum: i128,
    range: Option<(i128, i128)>,
}

/// Statistics by time.
pub(super) struct IoStat {
    /// Length of an interval in nanoseconds; 0 for one interval with all frames.
    interval: u64,
    columns: Vec<Column>,
    /// The cells of each interval, by the number of the interval.
    rows: BTreeMap<u64, Vec<Cell>>,
    /// Time from the first to the last frame, in nanoseconds.
    duration: u64,
    /// Number of frames in intervals that are not stored.
    omitted: u64,
}

impl IoStat {
    /// Reads `INTERVAL[,FILTER...]`.
    pub(super) fn parse(text: &str, read_filter: Option<&str>, wanted: &mut WantedFields) -> Result<Self, BadInput> {
        let (interval, filters) = text.split_once(',').unwrap_or((text, ""));
        let Some(interval) = nanoseconds(interval) else {
            reject!("-z io,stat,{interval}: use seconds, such as io,stat,0.5; 0 is one interval for all frames");
        };
        let columns = split(filters).into_iter().map(|text| Column::parse(text, read_filter, wanted));
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(IoStat { interval, columns, rows: BTreeMap::new(), duration: 0, omitted: 0 })
    }

    /// Counts a frame.
    pub(super) fn record(&mut self, record: &Record) {
        let since = record.facts.time.saturating_sub(record.facts.origin);
        self.duration = self.duration.max(since);
        let number = since.checked_div(self.interval).unwrap_or(0);
        if self.rows.len() == MAX_INTERVALS && !self.rows.contains_key(&number) {
            self.omitted += 1;
            return;
        }
        let cells = self.rows.entry(number).or_insert_with(|| vec![Cell::default(); self.columns.len()]);
        for (column, cell) in self.columns.iter().zip(cells) {
            if column.filter.matches(record) {
                cell.add(column, record);
            }
        }
    }

    /// Prints a row for each interval.
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let is_seconds = self.interval > 0 && self.interval.is_multiple_of(1_000_000_000);
        let decimals = if is_seconds { 0 } else { 6 };
        let mut rows = vec![self.heads()];
        let last = self.rows.keys().next_back().copied();
        let is_dense = last.is_some_and(|last| last < MAX_INTERVALS as u64);
        let without = vec![Cell::default(); self.columns.len()];
        let numbers: Vec<u64> =
            if is_dense { (0..=last.unwrap_or(0)).collect() } else { self.rows.keys().copied().collect() };
        for number in numbers {
            let cells = self.rows.get(&number).unwrap_or(&without);
            let seconds = |ns: u64| format!("{:.decimals$}", ns as f64 / 1e9);
            let start = number.saturating_mul(self.interval);
            let end = if self.interval == 0 { self.duration } else { start.saturating_add(self.interval) };
            let mut row = vec![format!("{} <> {}", seconds(start), seconds(end))];
            for (column, cell) in self.columns.iter().zip(cells) {
                row.extend(cell.shown(column.calculation));
            }
            rows.push(row);
        }
        self.print_table(&rows, out)
    }

    /// The heads of the columns.
    fn heads(&self) -> Vec<String> {
        let mut heads = vec!["Interval".to_owned()];
        for (column, number) in self.columns.iter().zip(1..) {
            match column.calculation {
                Calculation::FramesAndBytes => heads.extend([format!("{number} Frames"), format!("{number} Bytes")]),
                Calculation::Frames => heads.push(format!("{number} FRAMES")),
                Calculation::Bytes => heads.push(format!("{number} BYTES")),
                Calculation::OfField(function, ..) => heads.push(format!("{number} {}", function.name())),
            }
        }
        heads
    }

    fn print_table(&self, rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
        let mut widths = vec![0; rows.first().map_or(0, Vec::len)];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.len().max(*width);
            }
        }
        let total: usize = widths.iter().map(|width| width + 3).sum::<usize>() + 1;
        let rule = "=".repeat(total);
        writeln!(out, "\n{rule}\nIO Statistics")?;
        writeln!(out, "Duration: {:.6} secs", self.duration as f64 / 1e9)?;
        writeln!(out, "Interval: {:.6} secs", self.interval as f64 / 1e9)?;
        for (column, number) in self.columns.iter().zip(1..) {
            writeln!(out, "Col {number}: {}", column.title)?;
        }
        writeln!(out, "{}", "-".repeat(total))?;
        for row in rows {
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let width = *width;
                if index == 0 { write!(out, "| {cell:<width$} ")? } else { write!(out, "| {cell:>width$} ")? }
            }
            writeln!(out, "|")?;
        }
        if self.omitted > 0 {
            writeln!(out, "{} frames in further intervals; use a longer interval", self.omitted)?;
        }
        writeln!(out, "{rule}")
    }
}

impl Column {
    /// Reads `FILTER` or `FUNCTION(FIELD)FILTER`.
    fn parse(text: &str, read_filter: Option<&str>, wanted: &mut WantedFields) -> Result<Self, BadInput> {
        let title = if text.is_empty() { "Frames and bytes".to_owned() } else { text.to_owned() };
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|letter| letter.is_ascii_uppercase());
        let call = text.split_once('(').filter(|(name, _)| is_name(name));
        let Some((name, (field, filter))) = call.and_then(|(name, rest)| Some((name, rest.split_once(')')?))) else {
            let (filter, calculation) = (OwnFilter::parse(text, read_filter, wanted)?, Calculation::FramesAndBytes);
            return Ok(Column { filter, title, calculation });
        };
        let calculation = match (name, Function::named(name)) {
            ("FRAMES", _) => Calculation::Frames,
            ("BYTES", _) => Calculation::Bytes,
            (_, Some(function)) => {
                let Some(known) = known(field) else { reject!("-z io,stat: {field} is not a field") };
                if function != Function::Count && !matches!(known.kind, Kind::Number | Kind::Time) {
                    reject!("-z io,stat: {name} needs a field with numbers or times; {field} has neither");
                }
                Calculation::OfField(function, wanted.add(known), known)
            }
            _ => reject!("-z io,stat: {name} is not a function; use FRAMES, BYTES, COUNT, SUM, MIN, MAX or AVG"),
        };
        Ok(Column { filter: OwnFilter::parse(filter, read_filter, wanted)?, title, calculation })
    }
}

impl Function {
    const ALL: [Function; 5] = [Function::Count, Function::Sum, Function::Min, Function::Max, Function::Avg];

    fn name(self) -> &'static str {
        match self {
            Function::Count => "COUNT",
            Function::Sum => "SUM",
            Function::Min => "MIN",
            Function::Max => "MAX",
            Function::Avg => "AVG",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Function::ALL.into_iter().find(|function| function.name() == name)
    }
}

impl Cell {
    /// Counts a frame that passes the filter of `column`.
    fn add(&mut self, column: &Column, record: &Record) {
        self.frames += 1;
        self.bytes += record.facts.len.map_or(0, |(wire_len, _)| u64::from(wire_len));
        let Calculation::OfField(function, slot, _) = column.calculation else { return };
        if function == Function::Count {
            self.count += record.values.count(slot) as u64;
            return;
        }
        for value in record.values.numbers(slot) {
            self.count += 1;
            self.sum += value;
            let (least, most) = self.range.unwrap_or((value, value));
            self.range = Some((least.min(value), most.max(value)));
        }
    }

    /// The texts in the table.
    fn shown(&self, calculation: Calculation) -> Vec<String> {
        let (function, known) = match calculation {
            Calculation::FramesAndBytes => return vec![self.frames.to_string(), self.bytes.to_string()],
            Calculation::Frames => return vec![self.frames.to_string()],
            Calculation::Bytes => return vec![self.bytes.to_string()],
            Calculation::OfField(function, _, known) => (function, known),
        };
        let is_time = known.kind == Kind::Time && function != Function::Count;
        let number = |value: i128| if is_time { format!("{:.9}", value as f64 / 1e9) } else { value.to_string() };
        vec![match function {
            Function::Count => self.count.to_string(),
            Function::Sum => number(self.sum),
            Function::Min => number(self.range.map_or(0, |(least, _)| least)),
            Function::Max => number(self.range.map_or(0, |(_, most)| most)),
            Function::Avg => {
                let average = self.sum as f64 / self.count.max(1) as f64;
                if is_time { format!("{:.9}", average / 1e9) } else { format!("{average:.2}") }
            }
        }]
    }
}

/// Reads seconds with at most nine decimals, as nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_decimal = seconds.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit());
    if !is_decimal || text.is_empty() || fraction.len() > 9 || seconds.len() > 9 {
        return None;
    }
    let seconds: u64 = if seconds.is_empty() { 0 } else { seconds.parse().ok()? };
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Splits filters at commas that are neither in parentheses, nor in braces, nor in quotation marks.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut is_quoted, mut is_escaped) = (Vec::new(), 0, 0_u32, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_keep_their_commas() {
        assert_eq!(split(""), [""]);
        assert_eq!(split("tcp,,udp"), ["tcp", "", "udp"]);
        let text = r#"tcp.port in {1, 2},SUM(tcp.len)tcp.len && (ip, x),payload contains "a\",b""#;
        let expected = ["tcp.port in {1, 2}", "SUM(tcp.len)tcp.len && (ip, x)", r#"payload contains "a\",b""#];
        assert_eq!(split(text), expected);
    }

    #[test]
    fn intervals_are_seconds() {
        for (text, expected) in [
            ("1", Some(1_000_000_000)),
            ("0.25", Some(250_000_000)),
            (".5", Some(500_000_000)),
            ("0", Some(0)),
            ("", None),
            ("-1", None),
            ("1s", None),
            ("1.0000000001", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }
}
