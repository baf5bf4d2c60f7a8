//! A transcript as a ladder diagram: tester and target, an arrow for each sent message, a note for
//! each observation.
//!
//! This module converts a step to a row. [`weft_dissector::output::ladder`] draws the diagram.

use weft_dissector::output::ladder::{Ladder, Row, RowKind, Tone};

use crate::model::{Direction, MarkKind, Step, StepKind};

/// Maximum number of steps that are drawn. The transcript has all steps.
const MAX_STEPS: usize = 400;

/// Returns the diagram of `steps`.
#[must_use]
pub fn ladder(steps: &[Step]) -> Ladder {
    let shown = &steps[..steps.len().min(MAX_STEPS)];
    Ladder {
        title: "Events of tester and target, in order".to_owned(),
        participants: ["tester".to_owned(), "target".to_owned()],
        rows: shown.iter().map(row).collect(),
        more: (steps.len() - shown.len()) as u64,
    }
}

fn row(step: &Step) -> Row {
    let (kind, label, tone) = match step.direction {
        Direction::Sent => (arrow(step, 0), sent(step), loudest_mark(step)),
        Direction::Received => (arrow(step, 1), sent(step), loudest_mark(step)),
        Direction::Observed => (RowKind::Note, step.text.clone(), tone_of_note(step.kind)),
    };
    Row { time: step.at_ns, frame: None, kind, label, tone }
}

fn arrow(step: &Step, from: u8) -> RowKind {
    RowKind::Arrow { from, dashed: step.kind != StepKind::Octets }
}

/// Returns the label of an arrow: the connection, the sent message, and its number of bytes.
fn sent(step: &Step) -> String {
    let len = step.octets.as_ref().map_or_else(String::new, |octets| format!(" · {}", octets.len));
    format!("{} {}{len}", step.connection, step.text)
}

fn loudest_mark(step: &Step) -> Tone {
    let has = |kind| step.octets.iter().flat_map(|octets| &octets.marks).any(|mark| mark.kind == kind);
    if has(MarkKind::Wrong) {
        Tone::Wrong
    } else if has(MarkKind::Stimulus) {
        Tone::Notable
    } else {
        Tone::Plain
    }
}

fn tone_of_note(kind: StepKind) -> Tone {
    match kind {
        StepKind::Met => Tone::Good,
        StepKind::Unmet => Tone::Wrong,
        StepKind::Refused | StepKind::Silence => Tone::Notable,
        StepKind::Connected | StepKind::Octets | StepKind::Fin | StepKind::Reset | StepKind::Note | StepKind::Agent => {
            Tone::Faint
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Mark, Octets};

    fn step(direction: Direction, kind: StepKind, text: &str) -> Step {
        let octets = (kind == StepKind::Octets).then(|| Octets::new(&[1, 2, 3]));
        Step { at_ns: 1_234_567, connection: 1, direction, kind, text: text.into(), octets }
    }

    #[test]
    fn sent_steps_are_arrows_and_observed_steps_are_notes() {
        let ladder = ladder(&[
            step(Direction::Sent, StepKind::Octets, "an MPA Request"),
            step(Direction::Received, StepKind::Fin, "close"),
            step(Direction::Observed, StepKind::Met, "met"),
        ]);
        let row = |kind, label: &str, tone| Row { time: 1_234_567, frame: None, kind, label: label.into(), tone };
        assert_eq!(
            ladder.rows,
            [
                row(RowKind::Arrow { from: 0, dashed: false }, "1 an MPA Request · 3", Tone::Plain),
                row(RowKind::Arrow { from: 1, dashed: true }, "1 close", Tone::Plain),
                row(RowKind::Note, "met", Tone::Good),
            ]
        );
        assert_eq!(ladder.participants, ["tester", "target"]);
    }

    #[test]
    fn the_loudest_mark_gives_the_tone() {
        let mut step = step(Direction::Received, StepKind::Octets, "octets");
        for (kind, tone) in
            [(MarkKind::Field, Tone::Plain), (MarkKind::Stimulus, Tone::Notable), (MarkKind::Wrong, Tone::Wrong)]
        {
            step.octets.as_mut().unwrap().marks.insert(0, Mark { start: 0, end: 1, label: "x".into(), kind });
            assert_eq!(row(&step).tone, tone);
        }
    }

    #[test]
    fn a_long_transcript_is_cut_with_a_note() {
        let steps = vec![step(Direction::Sent, StepKind::Octets, &"x".repeat(500)); MAX_STEPS + 3];
        let ladder = ladder(&steps);
        assert_eq!((ladder.rows.len(), ladder.more), (MAX_STEPS, 3));
        let svg = ladder.svg();
        assert!(svg.contains("and 3 more") && svg.contains('…'));
        assert!(super::ladder(&[]).svg().ends_with("</svg>"));
    }
}
