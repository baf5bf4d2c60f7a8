//! The log of a case: its steps, the expectations that were met, and the decision that ends the
//! case.
//!
//! `crate::run` computes the verdict from the complete log.

pub(in crate::stage) mod describe;
mod log;

use weft_peer::Instant;

pub(crate) use log::{Decision, Log, MetExpectation};

use super::{Expectation, Stop};
use crate::model::{
    CaseKey, Direction, Event, EventSink, Mark, MarkKind, Octets, SourceLocation, Step, StepKind, Verdict,
};

/// Maximum number of steps in a transcript.
pub(in crate::stage) const MAX_STEPS: usize = 10_000;

/// Adds to the log of a case.
pub(crate) struct Recorder<'a> {
    pub(in crate::stage) now: Instant,
    pub(in crate::stage) key: &'a CaseKey,
    pub(in crate::stage) sink: &'a dyn EventSink,
    pub(in crate::stage) log: &'a mut Log,
}

impl Recorder<'_> {
    /// Ends the case as unimplemented, because the target does not implement the optional subject
    /// of the case.
    pub(crate) fn unimplemented(&mut self, why: &str, at: Option<&SourceLocation>) -> Stop {
        self.step(0, Direction::Observed, StepKind::Note, format!("unimplemented: {why}"), None);
        self.decide(Decision {
            verdict: Verdict::Unimplemented,
            requirements: Vec::new(),
            expected: None,
            actual: None,
            explanation: why.to_owned(),
            at: at.cloned(),
        })
    }

    /// Records the result of a script's own check. `actual` is the script's text for a violation.
    /// If the check passes, the recorded observation is `expected`.
    pub(crate) fn check(
        &mut self,
        holds: bool,
        expectation: &Expectation,
        expected: &str,
        actual: &str,
    ) -> Result<(), Stop> {
        if !holds {
            return Err(self.unmet(expectation, expected, actual));
        }
        self.met(0, expectation, expected, expected);
        Ok(())
    }

    /// Records that an expectation is met.
    pub(in crate::stage) fn met(&mut self, number: u32, expectation: &Expectation, expected: &str, actual: &str) {
        let names = expectation.names();
        if names.is_empty() {
            return;
        }
        self.log.expected();
        self.step(number, Direction::Observed, StepKind::Met, format!("{names}: {actual}"), None);
        for requirement in expectation.requirements.iter().chain(&expectation.shows) {
            let (expected, actual, at) = (expected.to_owned(), actual.to_owned(), expectation.at.clone());
            self.log.met.push(MetExpectation { requirement: *requirement, expected, actual, at });
        }
    }

    /// Records that the target behaved differently. This is a failure if the expectation names a
    /// requirement.
    pub(in crate::stage) fn unmet(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
        if expectation.requirements.is_empty() {
            return self.undecided(expectation, expected, actual);
        }
        let names = Expectation { shows: Vec::new(), ..expectation.clone() }.names();
        self.step(0, Direction::Observed, StepKind::Unmet, format!("{names}: {actual}"), None);
        self.decide(Decision {
            verdict: Verdict::Fail,
            requirements: expectation.requirements.clone(),
            expected: Some(expected.to_owned()),
            actual: Some(actual.to_owned()),
            explanation: match expectation.requirements.len() {
                1 => format!("{names} is violated: {actual}."),
                _ => format!("{names} are violated: {actual}."),
            },
            at: expectation.at.clone(),
        })
    }

    /// Records that the time is over. This is a failure if the requirement is about time.
    pub(in crate::stage) fn overdue(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
        if expectation.overdue_fails {
            self.unmet(expectation, expected, actual)
        } else {
            self.undecided(expectation, expected, actual)
        }
    }

    /// Records that an expected event did not happen and that this decides nothing. The reason is a
    /// time-out, or the expectation was only a preparation.
    pub(in crate::stage) fn undecided(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
        let names = expectation.names();
        let explanation = match expectation.requirements.len() + expectation.shows.len() {
            0 => format!("The case did not get as far as its stimulus: {actual}."),
            1 => format!("{names} is not decided: {actual}."),
            _ => format!("{names} are not decided: {actual}."),
        };
        self.decide(Decision {
            verdict: Verdict::Inconclusive,
            requirements: Vec::new(),
            expected: Some(expected.to_owned()),
            actual: Some(actual.to_owned()),
            explanation,
            at: expectation.at.clone(),
        })
    }

    /// Marks the last bytes that the target sent on a connection as wrong.
    pub(in crate::stage) fn mark_wrong(&mut self, number: u32) {
        let from_target = |step: &&mut Step| {
            step.connection == number && step.direction == Direction::Received && step.octets.is_some()
        };
        if let Some(octets) = self.log.steps.iter_mut().rev().find(from_target).and_then(|step| step.octets.as_mut()) {
            let (start, end) = (0, octets.len);
            octets.marks.push(Mark { start, end, label: "not expected".into(), kind: MarkKind::Wrong });
        }
    }

    /// Ends the case with an error of the tester.
    pub(crate) fn harness(&mut self, at: Option<&SourceLocation>, what: &str) -> Stop {
        self.decide(Decision {
            verdict: Verdict::Error,
            requirements: Vec::new(),
            expected: None,
            actual: None,
            explanation: what.to_owned(),
            at: at.cloned(),
        })
    }

    pub(in crate::stage) fn decide(&mut self, decision: Decision) -> Stop {
        self.log.decision.get_or_insert(decision);
        Stop
    }

    /// Records that no connection was established. The case is inconclusive.
    pub(in crate::stage) fn unreached(&mut self, expected: &str, actual: String, at: Option<&SourceLocation>) -> Stop {
        self.step(0, Direction::Observed, StepKind::Refused, actual.clone(), None);
        self.log.refused.get_or_insert(actual.clone());
        self.decide(Decision {
            verdict: Verdict::Inconclusive,
            requirements: Vec::new(),
            expected: Some(expected.into()),
            actual: Some(actual),
            explanation: "The target was not reached.".into(),
            at: at.cloned(),
        })
    }

    /// Adds a note to the transcript, at most 1000 characters.
    pub(crate) fn note(&mut self, text: &str) {
        const MAX_CHARS: usize = 1000;
        let text = text.chars().take(MAX_CHARS).collect();
        self.step(0, Direction::Observed, StepKind::Note, text, None);
    }

    pub(in crate::stage) fn step(
        &mut self,
        connection: u32,
        direction: Direction,
        kind: StepKind,
        text: String,
        octets: Option<Octets>,
    ) {
        if self.log.steps.len() >= MAX_STEPS {
            self.log.lost += 1;
            return;
        }
        let at_ns = self.now.as_nanos();
        let step = Step { at_ns, connection, direction, kind, text, octets };
        self.sink.event(&Event::CaseStep { key: self.key.clone(), step: step.clone() });
        self.log.steps.push(step);
    }

    /// Notes that nothing arrived within the time of an expectation. Returns the text of the note.
    pub(in crate::stage) fn silence(&mut self, number: u32, expectation: &Expectation) -> String {
        let text = format!("nothing within {} s", expectation.within.as_secs_f64());
        self.step(number, Direction::Observed, StepKind::Silence, text.clone(), None);
        text
    }

    /// Notes the outcome of the control in the transcript.
    pub(crate) fn note_control(&mut self, text: &str) {
        self.step(0, Direction::Observed, StepKind::Note, format!("control: {text}"), None);
    }
}
