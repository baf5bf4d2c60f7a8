//! The text of a ticket for the maker of a target: one failure in Markdown, with everything that is
//! needed to reproduce it.
//!
//! The text has weft's summary of each violated requirement, the specification's own words, and a
//! link to the section.

use weft_core::requirement::Requirement;
use weft_core::text::visible;

use super::command::command;
use super::markdown::escaped;
use crate::clock;
use crate::model::{
    CaseResult, Direction, EvidenceKind, EvidenceSource, Mark, MarkKind, Octets, RequirementVerdict, RunInfo,
    RunReport, Step, StepKind, Verdict, labels_text,
};

/// Number of steps before the end of the failed connection that are listed.
const STEPS: usize = 8;
/// Maximum number of characters of the observed behaviour in the title.
const TITLE: usize = 120;
/// Number of bytes of a step that are shown.
const SHOWN: usize = 48;
/// Number of bytes before the first difference that are shown, if the difference is after the first
/// bytes.
const BEFORE: usize = 16;

/// Returns the ticket of a failure. `case` is a case or a variant (`mpa/7.1.1-key/octet[octet=3]`).
/// For a case, the first variant that failed is described. Returns `None` if no such variant failed.
#[must_use]
pub fn ticket(report: &RunReport, case: &str) -> Option<String> {
    let is_meant = |result: &&CaseResult| result.key.case == case || result.key.to_string() == case;
    let failed: Vec<&CaseResult> =
        report.results.iter().filter(is_meant).filter(|result| result.verdict == Verdict::Fail).collect();
    let first = failed.first()?;
    let run = &report.run;
    // If only the monitor observed a violation, the case names no requirement of its own.
    let (own, observed): (Vec<&RequirementVerdict>, Vec<_>) =
        first.requirements.iter().filter(|it| it.verdict == Verdict::Fail).partition(|it| !it.also_observed);
    let violated: Vec<&Requirement> =
        if own.is_empty() { observed } else { own }.into_iter().map(|it| it.requirement.row()).collect();
    let ids: Vec<&str> = violated.iter().map(|row| row.id).collect();
    let mut text =
        format!("# {}\n\n{}\n\n", escaped(&title(run, first, &ids)), escaped(&format!("Required: {}.", first.title)));
    let identity = run.target.facts();
    let mut facts = vec![
        ("target", format!("{}, {}", run.target.name, run.target.reached_by)),
        ("role and service", format!("{}, {}", run.target.role, run.target.service)),
    ];
    for (name, value) in &identity {
        facts.push((name, (*value).to_owned()));
    }
    if !run.target.deviations.is_empty() {
        facts.push(("deviations", run.target.deviations.join(", ")));
    }
    if !run.labels.is_empty() {
        facts.push(("labels", labels_text(&run.labels)));
    }
    facts.push((
        "tested",
        format!("{} with weft {}, run {}", clock::rfc3339(run.started_unix_ms), run.weft_version, run.id),
    ));
    text.push_str("| | |\n| --- | --- |\n");
    for (name, value) in facts {
        text.push_str(&format!("| {} | {} |\n", escaped(name), escaped(&value).replace('|', "\\|")));
    }
    text.push_str("\n## Violated requirements\n\n");
    violated.into_iter().for_each(|row| text.push_str(&requirement_item(row)));
    text.push_str("\n## What the target does\n\n");
    match (&first.expected, &first.actual) {
        (Some(expected), Some(actual)) => {
            text.push_str(&format!("- expected: {}\n- actual: {}\n", escaped(expected), escaped(actual)));
        }
        _ => text.push_str(&format!("{}\n", escaped(&first.explanation))),
    }
    if let Some(packet) = first.decided_packet {
        text.push_str(&format!("- decided at frame {packet} of the capture\n"));
        if let Some(capture) = first.evidence.files.iter().find(|file| file.kind == EvidenceKind::Pcapng) {
            text.push_str(&format!("- its fields and its wrong bytes: `weft explain {} {packet}`\n", capture.path));
        }
    }
    if let Some([begin, end]) = first.decided_sequence {
        text.push_str(&format!("- bytes in this frame: relative TCP sequence numbers {begin} to {end}\n"));
    }
    for boundary in report.summary.boundaries.iter().filter(|boundary| boundary.key.case == first.key.case) {
        text.push_str(&format!("- {}\n", escaped(&boundary.to_string())));
    }
    for finding in first.findings.iter().filter(|finding| finding.by_target) {
        let packet = finding.packet.map_or_else(String::new, |packet| format!("frame {packet}: "));
        text.push_str(&format!("- {packet}{} {}\n", finding.requirement.as_str(), escaped(&finding.text)));
    }
    text.push_str("\nThe last steps:\n\n```text\n");
    for step in last_steps(&first.steps) {
        text.push_str(&line(step));
    }
    text.push_str("```\n");
    if failed.len() > 1 {
        let others: Vec<String> = failed[1..].iter().map(|result| format!("`{}`", result.key)).collect();
        let fail = if others.len() == 1 {
            "1 more variant fails".to_owned()
        } else {
            format!("{} more variants fail", others.len())
        };
        text.push_str(&format!("\n{fail}: {}\n", others.join(", ")));
    }
    text.push_str(&format!("\n## How to reproduce it\n\n```sh\n{}\n```\n", command(run, &first.key)));
    if let Some(capture) = first.evidence.files.iter().find(|file| file.kind == EvidenceKind::Pcapng) {
        let source = match first.evidence.source {
            EvidenceSource::Wire => "captured on an interface",
            EvidenceSource::Endpoint => "recorded by weft itself, with synthetic TCP headers",
        };
        text.push_str(&format!("\nThe capture is `{}`, {source}.\n", capture.path));
    }
    if !first.evidence.dropped.is_empty() {
        text.push('\n');
    }
    for dropped in &first.evidence.dropped {
        text.push_str(&format!("- {}\n", dropped.sentence()));
    }
    text.push_str(&format!(
        "\n## How to expect it in later runs\n\nAdd this entry with a reason to the target file, or to a file for `--baseline`:\n\n```toml\n{}```\n",
        visible(&baseline_entry(case, first))
    ));
    Some(text)
}

/// Returns what the target does wrong, in one line, and the first of the violated requirements.
fn title(run: &RunInfo, failure: &CaseResult, ids: &[&str]) -> String {
    let actual = failure.actual.as_ref().unwrap_or(&failure.explanation);
    let mut what: String = actual.chars().take(TITLE).collect();
    if what.len() < actual.len() {
        what.push_str("...");
    }
    let more = match ids.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    format!("{}: {what} ({}{more})", run.target.name, ids.first().copied().unwrap_or_default())
}

/// Returns a requirement as an item of a list: weft's summary, the specification's own words, and a
/// link to the section.
pub(super) fn requirement_item(row: &Requirement) -> String {
    let link = row.link().map_or_else(String::new, |link| format!(", <{link}>"));
    let (role, summary, citation) = (escaped(row.role), escaped(row.summary), row.citation());
    let sentence = row.sentence.map_or_else(String::new, |sentence| format!("  > {}\n", escaped(sentence)));
    format!("- {} ({}, {role}): {summary}; {citation}{link}\n{sentence}", row.id, row.level)
}

/// Returns the steps before and at the decision. Without a decision, the last steps.
fn last_steps(steps: &[Step]) -> &[Step] {
    let end = steps.iter().position(|step| step.kind == StepKind::Unmet).map_or(steps.len(), |at| at + 1);
    &steps[end.saturating_sub(STEPS)..end]
}

fn line(step: &Step) -> String {
    let octets = step.octets.as_ref().map_or_else(String::new, bytes);
    let direction = match step.direction {
        Direction::Sent => "sent",
        Direction::Received => "received",
        Direction::Observed => "observed",
    };
    let text = visible(&step.text);
    format!("{:>11.6} s  {direction:<8}  {text}\n{octets}", std::time::Duration::from_nanos(step.at_ns).as_secs_f64())
}

/// Returns the first bytes, or the bytes around the first difference, and the ranges that differ
/// from a correct message.
fn bytes(octets: &Octets) -> String {
    let known = octets.hex.len() / 2;
    let first = first_shown(octets, known);
    let end = known.min(first + SHOWN);
    let shown = octets.hex.get(2 * first..2 * end).unwrap_or_default();
    let before = if first > 0 { "... " } else { "" };
    let more = if octets.len > end as u64 { " ..." } else { "" };
    let mut text = format!("{:>25}{before}{shown}{more}\n", "");
    if first > 0 {
        text.push_str(&format!("{:>25}these are bytes {first} to {} of {} bytes\n", "", end - 1, octets.len));
    }
    for mark in &octets.marks {
        let what = match (mark.kind, mark.is_long()) {
            (MarkKind::Stimulus, false) => "differs from a plain message",
            (MarkKind::Stimulus, true) => "differ from a plain message",
            (MarkKind::Wrong, false) => "is wrong",
            (MarkKind::Wrong, true) => "are wrong",
            (MarkKind::Field, _) => continue,
        };
        text.push_str(&format!("{:>25}{} {what}: {}\n", "", mark.range_text(), visible(&mark.label)));
    }
    text
}

/// Returns the offset of the first byte to show. `known` is the number of bytes in the transcript.
fn first_shown(octets: &Octets, known: usize) -> usize {
    let is_difference = |mark: &&Mark| matches!(mark.kind, MarkKind::Stimulus | MarkKind::Wrong);
    let starts = octets.marks.iter().filter(is_difference).map(|mark| mark.start);
    let difference = starts.min().and_then(|start| usize::try_from(start).ok());
    match difference {
        // The bytes before the difference show where it is.
        Some(start) if start < known && start + BEFORE > SHOWN => start - BEFORE,
        _ => 0,
    }
}

/// Returns an entry for the baseline of the target file that expects this failure.
fn baseline_entry(case: &str, result: &CaseResult) -> String {
    // A JSON string is also a TOML string.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (case, signature) = (quoted(case), quoted(&result.signature()));
    format!("[[baseline]]\ncase = {case}\noutcome = \"fail\"\nsignature = {signature}\nreason = \"...\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of 200 bytes, in which byte N has the value N, with a mark from `start` on.
    fn message(start: u64, kind: MarkKind) -> Octets {
        let octets: Vec<u8> = (0..200).collect();
        let mark = Mark { start, end: start + 1, label: "byte changed".into(), kind };
        Octets { marks: vec![mark], ..Octets::new(&octets) }
    }

    #[test]
    fn shows_the_bytes_around_the_first_difference() {
        let text = bytes(&message(150, MarkKind::Stimulus));
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        // Byte 134 is 0x86, and byte 181 is 0xb5.
        assert!(lines[0].starts_with("... 868788") && lines[0].ends_with("b4b5 ..."), "{text}");
        assert_eq!(lines[1], "these are bytes 134 to 181 of 200 bytes");
        assert_eq!(lines[2], "byte 150 differs from a plain message: byte changed");
    }

    #[test]
    fn shows_the_first_bytes_if_they_differ() {
        for (start, kind) in [(0, MarkKind::Wrong), (32, MarkKind::Stimulus), (150, MarkKind::Field)] {
            let text = bytes(&message(start, kind));
            let first = text.lines().next().unwrap().trim_start();
            // Byte 47 is 0x2f.
            assert!(first.starts_with("000102") && first.ends_with("2e2f ..."), "{text}");
            assert!(!text.contains("these are bytes"), "{text}");
        }
    }
}
