//! Text about commands: the line of a command, its outcome, and numbers.

use std::fmt::Write as _;

use super::command::{CommandState, IoCommand, Latency, NoteKind};
use super::tracker::IoTotals;
use crate::format::counted;

/// Formats a command as one line: frame, time since `origin`, stream, addresses, queue, id, command
/// with parameters, bytes, status, latency, operations, and what happened meanwhile. `origin` is in
/// nanoseconds since 1970. Fields without a value are omitted.
#[must_use]
pub fn command_line(command: &IoCommand, origin: u64) -> String {
    let since = command.time.saturating_sub(origin);
    let (seconds, microseconds) = (since / 1_000_000_000, since % 1_000_000_000 / 1_000);
    let IoCommand { frame, stream, initiator, target, id, .. } = command;
    let mut line = format!("{frame:>6} {seconds:>6}.{microseconds:06} {stream:>3} {initiator} → {target}");
    if let Some(queue) = command.queue {
        let _ = write!(line, "  queue {queue}");
    }
    let _ = write!(line, "  id {id:#x}  {}", command.command);
    if !command.parameters.is_empty() {
        let _ = write!(line, " {}", command.parameters);
    }
    let (bytes, expected) = (command.bytes, command.expected_bytes);
    if bytes == expected || expected == 0 {
        if bytes > 0 {
            let _ = write!(line, "  {}", counted(bytes, "byte"));
        }
    } else {
        let _ = write!(line, "  {bytes} of {}", counted(expected, "byte"));
    }
    line.push_str("  ");
    line.push_str(command.outcome());
    if let Some(latency) = &command.latency {
        line.push_str("  ");
        line.push_str(&latency_text(latency));
    }
    served(command, &mut line);
    meanwhile(command, &mut line);
    line
}

impl IoCommand {
    /// The status as text. If there is no status, how the command ended.
    #[must_use]
    pub fn outcome(&self) -> &str {
        self.status.as_deref().unwrap_or(end(self.state))
    }
}

/// How a command without a status ended.
fn end(state: CommandState) -> &'static str {
    match state {
        CommandState::Answered | CommandState::NoCommand => "no status",
        CommandState::NotAnswered => "not answered",
        CommandState::Gap => "gap: the response can be among missing bytes",
        CommandState::Dropped => "not followed: too many commands were in flight",
    }
}

/// Formats numbers of commands as text, for example "16 commands, 1 not answered". Numbers that are
/// 0 are omitted.
#[must_use]
pub fn totals_text(totals: &IoTotals) -> String {
    let mut text = counted(totals.commands, "command");
    for (count, what) in [
        (totals.not_answered, "not answered"),
        (totals.gap, "without a response in an incomplete capture"),
        (totals.dropped, "not followed, because too many were in flight"),
        (totals.no_command, "with only a response"),
        (totals.errors, "with an error"),
        (totals.with_notes, "with notes"),
        (totals.with_gaps, "with missing bytes"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    if totals.untracked_connections > 0 {
        let _ = write!(text, "; too many connections: {} ignored", totals.untracked_connections);
    }
    text
}

/// Formats nanoseconds as milliseconds, for example `19.638`.
#[must_use]
pub fn milliseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns % 1_000_000 / 1000)
}

fn latency_text(latency: &Latency) -> String {
    let mut text = format!("{} ms", milliseconds(latency.total_ns));
    if let (Some(to_data), Some(data), Some(to_status)) = (latency.to_data_ns, latency.data_ns, latency.to_status_ns) {
        let [to_data, data, to_status] = [to_data, data, to_status].map(milliseconds);
        let _ = write!(text, " ({to_data} to data, {data} data, {to_status} to status)");
    }
    text
}

/// Appends the operations that served the command, and the STags of its buffers.
fn served(command: &IoCommand, line: &mut String) {
    let counts = [(command.writes, "Write"), (command.reads, "Read")];
    let mut parts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)).collect();
    match &command.stags[..] {
        [] => {}
        [stag] => parts.push(format!("STag {stag:#010x}")),
        [first, others @ ..] => parts.push(format!("STag {first:#010x} and {} more", others.len())),
    }
    if !parts.is_empty() {
        line.push_str("  ");
        line.push_str(&parts.join(", "));
    }
}

/// Appends what happened on the connection while the command was in flight, and the notes.
fn meanwhile(command: &IoCommand, line: &mut String) {
    if command.retransmissions > 0 {
        let _ = write!(line, "  {}", counted(command.retransmissions, "retransmission"));
    }
    if command.finding_count > 0 {
        let mut names: Vec<&str> = command.findings.iter().map(|finding| finding.requirement.as_str()).collect();
        names.dedup();
        let _ = write!(line, "  {} ({})", counted(command.finding_count, "finding"), names.join(", "));
    }
    if command.gap && command.state != CommandState::Gap {
        line.push_str("  gap: bytes are missing");
    }
    for note in &command.notes {
        let _ = match note.kind {
            NoteKind::Cancelled => write!(line, "  note: cancelled in frame {}", note.frame),
            kind => write!(line, "  note: {}, frame {}", kind.text(), note.frame),
        };
        if note.count > 1 {
            let _ = write!(line, ", {} times", note.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_three_digits_after_the_point() {
        assert_eq!([0, 999, 1_000, 19_638_000].map(milliseconds), ["0.000", "0.000", "0.001", "19.638"]);
    }

    #[test]
    fn only_numbers_above_zero_are_in_the_totals() {
        let totals = IoTotals { commands: 3, answered: 2, errors: 1, untracked_connections: 4, ..IoTotals::default() };
        assert_eq!(totals_text(&totals), "3 commands, 1 with an error; too many connections: 4 ignored");
    }
}
