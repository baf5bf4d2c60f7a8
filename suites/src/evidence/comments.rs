//! The comments of a pcapng capture. The comment of its section describes the case. Each packet has
//! the comments of its steps.

use std::fmt::Write as _;

use weft_peer::driver::TrafficEvent;

use super::step_frame;
use crate::model::{CaseResult, Direction, MarkKind, RunInfo, Step, StepKind};

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
    let _ = write!(text, "{}\ntarget {}, run {}, seed {}", result.explanation, run.target.name, run.id, result.seed);
    text
}

/// Returns the comments of each event of the traffic log, by the index of the event.
pub(super) fn of_events(result: &CaseResult, traffic: &[TrafficEvent]) -> Vec<Vec<String>> {
    let mut comments = vec![Vec::new(); traffic.len()];
    let mut last = None;
    for (step, event) in result.steps.iter().zip(step_frame::events(&result.steps, traffic)) {
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
            (None, _) => {}
        }
    }
    comments
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
