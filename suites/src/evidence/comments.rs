//! The comments of a pcapng capture. The comment of its section describes the case. Each packet has
//! the comments of its steps.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use weft_peer::driver::{Direction as Side, EventContent, TrafficEvent};

use super::step_frame;
use crate::model::{CaseResult, Direction, DroppedTraffic, EvidenceSource, MarkKind, RunInfo, Step, StepKind};

/// Returns the section's comment: what was tested, against which target, with which result.
pub(super) fn of_section(run: &RunInfo, result: &CaseResult) -> String {
    let mut text = format!("{}: {}\n{}\n", result.key, result.verdict, result.title);
    for judged in &result.requirements {
        let row = judged.requirement.row();
        let way = if judged.also_observed { " (also observed)" } else { "" };
        let _ = writeln!(text, "{} {} {}{way}: {}", judged.verdict, row.id, row.level, row.summary);
    }
    for (name, value) in [("expected", &result.expected), ("actual", &result.actual)] {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    if !result.evidence.dropped.is_empty() {
        text.push_str("This capture lacks bytes. Comments show the places, and transcript.json lists them.\n");
    }
    let _ = write!(text, "{}\ntarget {}, run {}, seed {}", result.explanation, run.target.name, run.id, result.seed);
    text
}

/// Returns the comments of each event of the traffic log, by the index of the event. `left_out` is
/// the place of the steps that the transcript lacks.
pub(super) fn of_events(result: &CaseResult, left_out: &Range<usize>, traffic: &[TrafficEvent]) -> Vec<Vec<String>> {
    let mut comments = vec![Vec::new(); traffic.len()];
    if result.evidence.source == EvidenceSource::Endpoint {
        add_gaps(&mut comments, traffic);
    }
    let has_gap = !left_out.is_empty() || !result.evidence.dropped.is_empty();
    let mut last = None;
    for (step, event) in result.steps.iter().zip(step_frame::events(&result.steps, left_out, traffic)) {
        match (event, step.kind) {
            (Some(index), _) => {
                last = Some(index);
                comments[index].extend(wire_comments(step));
            }
            // These steps have no packet, so their texts belong to the packet before them.
            (None, StepKind::Agent | StepKind::Met | StepKind::Unmet | StepKind::Silence | StepKind::Note) => {
                let word = match step.kind {
                    StepKind::Met => "pass: ",
                    StepKind::Unmet => "fail: ",
                    _ => "",
                };
                if let Some(last) = last {
                    comments[last].push(format!("{word}{}", step.text));
                }
            }
            // The capture may lack the packet of this step.
            (None, StepKind::Octets) if has_gap => last = None,
            (None, _) => {}
        }
    }
    comments
}

/// Adds a comment for each place where the traffic log dropped bytes. The comment is at the next
/// packet of the same direction. If there is no such packet, it is at the last packet of the
/// direction.
fn add_gaps(comments: &mut [Vec<String>], traffic: &[TrafficEvent]) {
    // The gaps that no later packet has followed yet, and the last packet of each direction.
    let mut open: HashMap<(bool, u32, Side), DroppedTraffic> = HashMap::new();
    let mut last: HashMap<(bool, u32, Side), usize> = HashMap::new();
    for (index, event) in traffic.iter().enumerate() {
        let is_datagram = match &event.content {
            EventContent::Dropped(dropped) => dropped.datagrams,
            EventContent::Datagram { .. } => true,
            _ => false,
        };
        let key = (is_datagram, event.connection, event.direction);
        if let Some(dropped) = super::dropped(event) {
            open.insert(key, dropped);
            continue;
        }
        if let Some(dropped) = open.remove(&key) {
            comments[index].push(gap(&dropped, "before"));
        }
        last.insert(key, index);
    }
    for (key, dropped) in open {
        if let Some(comments) = last.get(&key).and_then(|index| comments.get_mut(*index)) {
            comments.push(gap(&dropped, "after"));
        }
    }
}

/// Describes the bytes that the capture lacks before or after a packet.
fn gap(dropped: &DroppedTraffic, place: &str) -> String {
    format!("{place} this packet, the capture lacks {}", dropped.amount())
}

fn wire_comments(step: &Step) -> Vec<String> {
    let who = if step.direction == Direction::Sent { "tester" } else { "target" };
    let mut comments = vec![format!("{who}: {}", step.text)];
    for mark in step.octets.iter().flat_map(|octets| &octets.marks) {
        let (first, last) = (mark.start, mark.end.saturating_sub(1));
        match mark.kind {
            MarkKind::Field => {}
            MarkKind::Stimulus => comments.push(format!("stimulus, bytes {first} to {last}: {}", mark.label)),
            MarkKind::Wrong => comments.push(format!("wrong, bytes {first} to {last}: {}", mark.label)),
        }
    }
    comments
}
