//! Lists that need a pass over the complete capture: connections, statistics, operations, storage
//! commands, a ladder diagram, messages and payload.
//!
//! The lists use the same parts of the dissector as `weft stats`, `weft ladder` and `weft follow`.
//! A thread reads the file. The thread ends when the list is closed.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use weft_core::requirement::Severity;
use weft_dissector::browse::{Collector, Commands, Operations, Pass, Stop, bounded_diagnoses};
use weft_dissector::diagnosis::{Diagnoses, Diagnosis};
use weft_dissector::fact::Operation;
use weft_dissector::io::IoCommand;
use weft_dissector::output::connection_ladder::{self, Timeline};
use weft_dissector::output::follow::{Follow, Piece, Subject};
use weft_dissector::output::hexdump::hexdump;
use weft_dissector::output::ladder::{Ladder, Tone};
use weft_dissector::output::text::{counted, exchange_line};
use weft_dissector::stats::{ConnectionStats, Stats};
use weft_dissector::{FrameNumber, StreamId};

use super::io_lines;
use super::lines::{Kind, Line};
use super::recording::Recording;
use crate::address::{IPV4_LEN, short};
use crate::wrap::wrap;

/// The maximum number of characters in a line of an answer. With its indent, it fits a terminal
/// with 80 columns.
const ANSWER_WIDTH: usize = 72;
/// The maximum number of rows of a ladder diagram.
const MAX_LADDER_ROWS: usize = 20_000;
/// The maximum number of lines of messages or payload.
const MAX_LINES: usize = 100_000;
/// The thread reports its progress once in this many frames.
const STRIDE: u64 = 4096;

/// A message of the thread to the screen.
#[derive(Debug)]
pub(crate) enum ListResult {
    /// The progress: the number of frames so far.
    Frames(u64),
    /// All lines of the list.
    Lines(Vec<Line>),
    /// All lines of the list of storage commands.
    Commands {
        lines: Vec<Line>,
        /// The commands of the first lines, for the details of the selected line.
        commands: Vec<IoCommand>,
    },
    /// The ladder diagram. The screen makes the lines when it knows the width.
    Ladder(Ladder),
    /// The reason why there is no list.
    Nothing(String),
}

/// Starts the pass for a list of this kind, over the current content of the capture. `stream` is
/// the connection for a ladder diagram, for messages or for payload.
pub(crate) fn start(recording: &Recording, kind: Kind, stream: StreamId) -> Receiver<ListResult> {
    let (sender, results) = sync_channel(4);
    let recording = recording.clone();
    thread::spawn(move || {
        let result = match kind {
            Kind::Ladder => ladder(&recording, stream, &sender),
            Kind::Operations => operations(&recording, &sender),
            Kind::Commands => commands(&recording, &sender),
            Kind::Messages => follow(&recording, stream, Subject::Messages, &sender),
            Kind::Payload => follow(&recording, stream, Subject::Payload, &sender),
            Kind::Connections => connections(&recording, &sender),
            Kind::Statistics | Kind::Findings => statistics(&recording, &sender),
        };
        // Sending fails if the list is closed.
        let _ = sender.send(result.unwrap_or_else(ListResult::Nothing));
    });
    results
}

/// Reads the current content of the capture. Returns the collector with the results, and sentences
/// about connections that were merged or dropped and about frames that were not read.
fn read<C: Collector>(
    recording: &Recording,
    collector: C,
    sender: &SyncSender<ListResult>,
) -> Result<(C, Vec<String>), String> {
    let mut pass = Pass::new(collector);
    let keep_reading = |_: &mut _, number: FrameNumber, _| {
        let frames = u64::from(number);
        !frames.is_multiple_of(STRIDE) || sender.send(ListResult::Frames(frames)).is_ok()
    };
    let end = recording.read(false, || false, &mut pass, keep_reading).map_err(|error| error.to_string())?;
    if end.stop == Stop::Cancelled {
        return Err("the list is closed".to_owned());
    }
    // While a live capture is running, more frames can follow. Only the final end proves that an
    // unfinished message is an error.
    if end.is_complete {
        pass.finish();
    }
    let remarks = pass.remarks();
    Ok((pass.into_collector(), remarks))
}

fn ladder(recording: &Recording, stream: StreamId, sender: &SyncSender<ListResult>) -> Result<ListResult, String> {
    let (timeline, _) =
        read(recording, Timeline::new(connection_ladder::Subject::Stream(stream), MAX_LADDER_ROWS), sender)?;
    timeline.ladder().map(ListResult::Ladder).ok_or_else(|| format!("there is no TCP connection {stream}"))
}

/// Returns the lines of a ladder diagram for a panel of this width, in the format of `weft ladder`.
pub(crate) fn ladder_lines(ladder: &Ladder, width: usize) -> Vec<Line> {
    // The endpoints and the column headings come first.
    let rows = [None, None].into_iter().chain(ladder.rows.iter().map(Some)).chain(std::iter::repeat(None));
    let text = ladder.text(width);
    let line = |(text, row): (&str, Option<&weft_dissector::output::ladder::Row>)| Line {
        text: text.to_owned(),
        frame: row.and_then(|row| row.frame),
        stream: None,
        severity: row.and_then(|row| match row.tone {
            Tone::Wrong => Some(Severity::Error),
            Tone::Notable => Some(Severity::Warning),
            Tone::Plain | Tone::Faint | Tone::Good => None,
        }),
    };
    text.lines().zip(rows).map(line).collect()
}

/// Returns the lines about the connections. A connection with a problem also has lines about what
/// happened, in the words of `weft why`.
fn connections(recording: &Recording, sender: &SyncSender<ListResult>) -> Result<ListResult, String> {
    let ((stats, mut diagnoses), _) = read(recording, (Stats::default(), bounded_diagnoses()), sender)?;
    diagnoses.finish();
    let mut lines = Vec::new();
    for connection in stats.connections() {
        let severity = match connection.findings {
            [_, _, errors] if errors > 0 => Some(Severity::Error),
            [_, warnings, _] if warnings > 0 => Some(Severity::Warning),
            [notes, ..] if notes > 0 => Some(Severity::Note),
            _ => None,
        };
        let [fpdus, back] = [0, 1].map(|side: usize| connection.directions[side].fpdus);
        let text = format!(
            "{:>4}  {} ⇄ {}  {fpdus}+{back} FPDUs  {}",
            connection.stream,
            short(&connection.ends[0], IPV4_LEN),
            short(&connection.ends[1], IPV4_LEN),
            found(connection.findings)
        );
        let line = Line { text, frame: first_frame(connection), stream: Some(connection.stream), severity };
        let answer = diagnoses.of(connection.stream).filter(|diagnosis| !diagnosis.is_healthy());
        let answer = answer.map(|diagnosis| answer_lines(diagnosis, &line)).unwrap_or_default();
        lines.push(line);
        lines.extend(answer);
    }
    lines.extend(unexplained(&diagnoses));
    Ok(ListResult::Lines(lines))
}

/// The line with the number of connections that are not explained. `None` if there are none.
fn unexplained(diagnoses: &Diagnoses) -> Option<Line> {
    let count = Some(diagnoses.unstored()).filter(|count| *count > 0)?;
    let text = format!("not explained, because there are too many: {}", counted(count, "connection"));
    Some(Line { text, frame: None, stream: None, severity: None })
}

/// The frame that the lines about a connection link to.
fn first_frame(connection: &ConnectionStats) -> Option<FrameNumber> {
    Some(connection.frames.0).filter(|frame| *frame != FrameNumber::NONE)
}

/// The lines with the answer about a connection. They link to the same frame as `line`.
fn answer_lines(diagnosis: &Diagnosis, line: &Line) -> Vec<Line> {
    let severity = if diagnosis.is_failure() { Severity::Error } else { Severity::Warning };
    let headline =
        wrap(&format!("{}.", diagnosis.headline), ANSWER_WIDTH).into_iter().map(|text| (text, Some(severity)));
    let details = wrap(&diagnosis.details(), ANSWER_WIDTH).into_iter().map(|text| (text, None));
    let text_lines = headline.chain(details);
    text_lines.map(|(text, severity)| Line { text: format!("      {text}"), severity, ..line.clone() }).collect()
}

fn statistics(recording: &Recording, sender: &SyncSender<ListResult>) -> Result<ListResult, String> {
    let (stats, remarks) = read(recording, Stats::default(), sender)?;
    let mut lines = Vec::new();
    for connection in stats.connections() {
        let (frame, stream, text) = (first_frame(connection), Some(connection.stream), connection.to_string());
        lines.extend(text.lines().map(|text| Line { text: text.to_owned(), frame, stream, severity: None }));
    }
    let plain = |text: String| Line { text, frame: None, stream: None, severity: None };
    lines.extend(stats.exchanges().map(|exchange| plain(exchange_line(exchange))));
    let totals = stats.totals();
    if !totals.is_empty() {
        lines.extend(totals.to_string().lines().map(|text| plain(text.to_owned())));
    }
    lines.extend(remarks.into_iter().map(plain));
    Ok(ListResult::Lines(lines))
}

/// Formats the numbers of notes, warnings and errors as text, errors first.
fn found([notes, warnings, errors]: [u64; 3]) -> String {
    let counts = [(errors, "error"), (warnings, "warning"), (notes, "note")];
    let words: Vec<_> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)).collect();
    if words.is_empty() { "no findings".to_owned() } else { words.join(", ") }
}

/// Makes the lines with the messages or the payload of a connection, in the format of
/// `weft follow`.
fn follow(
    recording: &Recording,
    stream: StreamId,
    what: Subject,
    sender: &SyncSender<ListResult>,
) -> Result<ListResult, String> {
    let mut lines: Vec<Line> = Vec::new();
    let mut written = [0_usize; 2];
    let mut left_out = 0_u64;
    let follow = Follow::new(stream, None, what, |piece: &Piece<'_>| {
        if lines.len() >= MAX_LINES {
            left_out += 1;
            return;
        }
        let line = |text: String| Line { text, frame: piece.frame, stream: Some(stream), severity: None };
        lines.extend(piece.head.clone().map(line));
        let side = usize::from(piece.direction);
        let (base, indent) = if what == Subject::Messages { (0, 2) } else { (written[side], 4 * side) };
        written[side] += piece.octets.len();
        lines.extend(hexdump(piece.octets, base, indent).lines().map(|text| line(text.to_owned())));
        if piece.more > 0 {
            lines.push(line(format!("  and {} more bytes", piece.more)));
        }
    });
    let (follow, _) = read(recording, follow, sender)?;
    let is_seen = follow.is_seen();
    drop(follow);
    if !is_seen {
        return Err(format!("there is no TCP connection {stream}"));
    }
    if left_out > 0 {
        let text = format!("and {left_out} more messages; `weft follow` shows all messages");
        lines.push(Line { text, frame: None, stream: None, severity: None });
    }
    Ok(ListResult::Lines(lines))
}

fn operation_line(stream: StreamId, operation: &Operation) -> String {
    let what = if operation.atomic { "atomic" } else { "Read" };
    let (request, _, response) = operation.frames;
    let microseconds = operation.latency as f64 / 1e3;
    let outstanding = operation.outstanding.map_or_else(String::new, |count| format!(", {count} outstanding"));
    format!(
        "{request:>7} {stream:>4}  {what:<7}{:>10} bytes {microseconds:>12.1} µs  response in frame {response}{outstanding}",
        operation.len
    )
}

fn operations(recording: &Recording, sender: &SyncSender<ListResult>) -> Result<ListResult, String> {
    let (operations, _) = read(recording, Operations::default(), sender)?;
    let line = |(stream, operation): &(StreamId, Operation)| Line {
        text: operation_line(*stream, operation),
        frame: Some(operation.frames.0),
        stream: Some(*stream),
        severity: None,
    };
    let mut lines: Vec<Line> = operations.list().iter().map(line).collect();
    if operations.omitted() > 0 {
        let text = format!("and {} more operations", operations.omitted());
        lines.push(Line { text, frame: None, stream: None, severity: None });
    }
    Ok(ListResult::Lines(lines))
}

fn commands(recording: &Recording, sender: &SyncSender<ListResult>) -> Result<ListResult, String> {
    let (commands, _) = read(recording, Commands::default(), sender)?;
    if commands.totals().commands == 0 {
        return Err("no storage commands so far; weft reads the commands of NVMe, iSER, NFS and SMB Direct".to_owned());
    }
    let statistics = io_lines::statistics(&commands);
    let mut commands = commands.into_list();
    commands.sort_by_key(|command| command.frame);
    let lines = commands.iter().map(io_lines::line).chain(statistics).collect();
    Ok(ListResult::Commands { lines, commands })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_dissector::Dissector;
    use weft_dissector::source::Capture;

    use super::*;

    /// The capture has six connections (captures/README.md).
    #[test]
    fn connections_without_an_answer_are_counted() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/violations-6-kinds-crc.pcap");
        for (most, wanted) in [(4, Some("not explained, because there are too many: 2 connections")), (6, None)] {
            let mut capture = Capture::open(&path).unwrap();
            let (mut diagnoses, mut dissector) = (Diagnoses::with_room(most), Dissector::default());
            while let Some(frame) = capture.next_frame() {
                dissector.frame(&frame, &mut diagnoses);
            }
            dissector.finish(&mut diagnoses);
            diagnoses.finish();
            assert_eq!(unexplained(&diagnoses).map(|line| line.text).as_deref(), wanted);
        }
    }
}
