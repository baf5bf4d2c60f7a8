//! The lines of the list of storage commands, and the details of a command. `weft io` shows the
//! same values.

use weft_core::requirement::Severity;
use weft_dissector::browse::Commands;
use weft_dissector::io::{CommandState, IoCommand, KindStatistics, OperationKind, milliseconds, totals_text};
use weft_dissector::output::text::counted;

use super::lines::Line;

/// Returns the line of a command: frame, connection, latency, name, status, bytes and parameters.
pub(crate) fn line(command: &IoCommand) -> Line {
    let IoCommand { frame, stream, .. } = command;
    let latency = command.latency.map_or_else(String::new, |latency| format!("{} ms", milliseconds(latency.total_ns)));
    let bytes = if command.bytes > 0 { format!("  {}", counted(command.bytes, "byte")) } else { String::new() };
    let notes = command.notes.len() as u64;
    let notes = if notes > 0 { format!("  {}", counted(notes, "note")) } else { String::new() };
    let (name, outcome, parameters) = (command.command, command.outcome(), &command.parameters);
    let text = format!("{frame:>7} {stream:>4} {latency:>13}  {name}  {outcome}{notes}{bytes}  {parameters}");
    let severity = match command.state {
        _ if command.error => Some(Severity::Error),
        CommandState::NotAnswered | CommandState::NoCommand => Some(Severity::Warning),
        _ if !command.notes.is_empty() => Some(Severity::Warning),
        CommandState::Answered | CommandState::Gap | CommandState::Dropped => None,
    };
    Line { text: text.trim_end().to_owned(), frame: Some(*frame), stream: Some(*stream), severity }
}

/// Returns the lines after the commands: what is not listed, the percentiles of each kind, and the
/// numbers of commands.
pub(crate) fn statistics(commands: &Commands) -> Vec<Line> {
    let mut texts = Vec::new();
    if commands.omitted() > 0 {
        let omitted = counted(commands.omitted(), "more command");
        texts.push(format!("and {omitted}; `weft io` lists all commands"));
    }
    texts.push(totals_text(&commands.totals()));
    let kinds: Vec<KindStatistics> = commands.kinds().collect();
    if !kinds.is_empty() {
        texts.push("Latency in ms (percentiles can be up to 1.6 % too high):".to_owned());
        let [p50, p90, p99, max] = ["50 %", "90 %", "99 %", "maximum"];
        texts.push(format!("{:>8} {:>7} {p50:>11} {p90:>11} {p99:>11} {max:>11}  command", "count", "errors"));
    }
    texts.extend(kinds.iter().map(|KindStatistics { command, errors, latency, .. }| {
        let values = [latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.max_ns];
        let [p50, p90, p99, max] = values.map(milliseconds);
        format!("{:>8} {errors:>7} {p50:>11} {p90:>11} {p99:>11} {max:>11}  {command}", latency.count)
    }));
    texts.into_iter().map(|text| Line { text, frame: None, stream: None, severity: None }).collect()
}

/// Returns the details of a command. The most important lines come first, because the panel can be
/// too small for all lines.
pub(crate) fn details(command: &IoCommand) -> Vec<String> {
    let IoCommand { stream, initiator, target, id, .. } = command;
    let queue = command.queue.map_or_else(String::new, |queue| format!("queue {queue}, "));
    let name = format!("{} {}", command.command, command.parameters);
    let response = command.status_frame.map_or_else(String::new, |frame| format!(", frame {frame}"));
    let mut lines = vec![
        format!("{}: {}{response}", name.trim_end(), command.outcome()),
        format!("{initiator} → {target}, connection {stream}, {queue}id {id:#x}"),
    ];
    if let Some(latency) = command.latency {
        let mut text = format!("Latency {} ms", milliseconds(latency.total_ns));
        if let (Some(to_data), Some(data), Some(to_status)) =
            (latency.to_data_ns, latency.data_ns, latency.to_status_ns)
        {
            let [to_data, data, to_status] = [to_data, data, to_status].map(milliseconds);
            text = format!("{text}: {to_data} to data, {data} data, {to_status} to status");
        }
        lines.push(text);
    }
    let (bytes, expected) = (command.bytes, command.expected_bytes);
    if bytes != expected && expected > 0 {
        lines.push(format!("{bytes} of {}", counted(expected, "byte")));
    } else if bytes > 0 {
        lines.push(counted(bytes, "byte"));
    }
    for note in &command.notes {
        let times = if note.count > 1 { format!(", {} times", note.count) } else { String::new() };
        lines.push(format!("Note: {}, frame {}{times}", note.kind.text(), note.frame));
    }
    if command.gap {
        lines.push("Bytes of the connection are missing".to_owned());
    }
    for finding in &command.findings {
        lines.push(format!("Finding: {} {}, frame {}", finding.severity, finding.requirement, finding.frame));
    }
    let further = command.finding_count.saturating_sub(command.findings.len() as u64);
    if further > 0 {
        lines.push(format!("and {}", counted(further, "more finding")));
    }
    if command.retransmissions > 0 {
        lines.push(format!("{} on the connection", counted(command.retransmissions, "retransmission")));
    }
    for operation in &command.operations {
        let kind = match operation.kind {
            OperationKind::Write => "Write",
            OperationKind::Read => "Read",
        };
        let (bytes, frame, stag) = (counted(operation.bytes, "byte"), operation.frame, operation.stag);
        lines.push(format!("{kind} of {bytes}, frame {frame}, STag {stag:#010x}, offset {:#x}", operation.offset));
    }
    let further = (command.writes + command.reads).saturating_sub(command.operations.len() as u64);
    if further > 0 {
        lines.push(format!("and {}", counted(further, "more operation")));
    }
    lines
}
