//! `-z io,stat,INTERVAL[,FILTER...]`: counts frames and bytes, or calculates with the values of a
//! field, in each interval of time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};

use weft_dissector::filter::known::Kind;
use weft_dissector::filter::{KnownField, Slot, WantedFields, known};
use weft_dissector::output::frames::Record;
use weft_dissector::output::text::counted;

use super::OwnFilter;
use crate::exit::{BadInput, reject};

/// Maximum number of cells that are stored: intervals with frames, times columns. The memory is
/// about 100 bytes for each cell.
const MAX_CELLS: usize = 1_000_000;
/// If there are more intervals, those without frames are not printed.
const MAX_EMPTY_INTERVALS: u64 = 1_000_000;

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
        Ok(IoStat { interval, columns, rows: BTreeMap::new(), duration: 0 })
    }

    /// Counts a frame. Fails if the frame needs more than [`MAX_CELLS`] cells.
    pub(super) fn record(&mut self, record: &Record) -> Result<(), BadInput> {
        let since = record.facts.time.saturating_sub(record.facts.origin);
        self.duration = self.duration.max(since);
        let number = since.checked_div(self.interval).unwrap_or(0);
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let cells = match self.rows.entry(number) {
            Entry::Occupied(cells) => cells.into_mut(),
            Entry::Vacant(place) if has_room(rows, columns) => place.insert(vec![Cell::default(); columns]),
            Entry::Vacant(_) => {
                let interval = self.interval as f64 / 1e9;
                reject!(
                    "-z io,stat,{interval}: the statistic has more than {MAX_CELLS} cells ({} x {} in {:.6} s); use a \
                     longer interval or fewer filters",
                    counted(rows as u64, "interval"),
                    counted(columns as u64, "column"),
                    since as f64 / 1e9
                );
            }
        };
        for (column, cell) in self.columns.iter().zip(cells) {
            if column.filter.matches(record) {
                cell.add(column, record);
            }
        }
        Ok(())
    }

    /// Calls `each` with the texts of the row of each interval.
    fn each_row(&self, each: &mut dyn FnMut(&[String]) -> io::Result<()>) -> io::Result<()> {
        let is_seconds = self.interval > 0 && self.interval.is_multiple_of(1_000_000_000);
        let decimals = if is_seconds { 0 } else { 6 };
        let without = vec![Cell::default(); self.columns.len()];
        let numbers: Box<dyn Iterator<Item = u64> + '_> = match self.rows.last_key_value() {
            Some((last, _)) if *last < MAX_EMPTY_INTERVALS => Box::new(0..=*last),
            _ => Box::new(self.rows.keys().copied()),
        };
        for number in numbers {
            let cells = self.rows.get(&number).unwrap_or(&without);
            let seconds = |ns: u64| format!("{:.decimals$}", ns as f64 / 1e9);
            let start = number.saturating_mul(self.interval);
            let end = if self.interval == 0 { self.duration } else { start.saturating_add(self.interval) };
            let mut row = vec![format!("{} <> {}", seconds(start), seconds(end))];
            for (column, cell) in self.columns.iter().zip(cells) {
                row.extend(cell.shown(column.calculation));
            }
            each(&row)?;
        }
        Ok(())
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

    /// Prints a row for each interval. The table can be long, so the texts of only one row are in
    /// memory at a time.
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let heads = self.heads();
        let mut widths: Vec<usize> = heads.iter().map(String::len).collect();
        self.each_row(&mut |row| {
            widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.len().max(*width));
            Ok(())
        })?;
        let total: usize = widths.iter().map(|width| width + 3).sum::<usize>() + 1;
        let rule = "=".repeat(total);
        writeln!(out, "\n{rule}\nIO Statistics")?;
        writeln!(out, "Duration: {:.6} secs", self.duration as f64 / 1e9)?;
        writeln!(out, "Interval: {:.6} secs", self.interval as f64 / 1e9)?;
        for (column, number) in self.columns.iter().zip(1..) {
            writeln!(out, "Col {number}: {}", column.title)?;
        }
        writeln!(out, "{}", "-".repeat(total))?;
        print_row(&heads, &widths, out)?;
        self.each_row(&mut |row| print_row(row, &widths, out))?;
        writeln!(out, "{rule}")
    }
}

/// Returns whether a statistic with `rows` rows can get one more row of `columns` cells.
fn has_room(rows: usize, columns: usize) -> bool {
    rows.saturating_add(1).saturating_mul(columns) <= MAX_CELLS
}

/// Prints the texts of a row in columns of these widths.
fn print_row(row: &[String], widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let width = *width;
        if index == 0 { write!(out, "| {cell:<width$} ")? } else { write!(out, "| {cell:>width$} ")? }
    }
    writeln!(out, "|")
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
    fn the_number_of_cells_has_a_limit() {
        assert!(has_room(0, 1) && has_room(MAX_CELLS - 1, 1) && has_room(MAX_CELLS / 4 - 1, 4));
        assert!(!has_room(MAX_CELLS, 1) && !has_room(MAX_CELLS / 4, 4) && !has_room(1, usize::MAX));
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
