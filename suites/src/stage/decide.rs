//! What an expectation adds to the record: met, or a decision that ends the case.
//!
//! [`crate::run`] judges the verdict of the complete record.

use super::{Decision, Direction, Expectation, Met, Stage, StepKind, Stop};
use crate::model::{Mark, MarkKind, SourceLocation, Step, Verdict};

impl Stage {
    /// The target does not do what the case is about, which is allowed.
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

    /// The result of a script's own check. If it is met, the observation equals the expectation:
    /// `actual` is the script's text for a violation.
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

    /// An expectation is met.
    pub(super) fn met(&mut self, number: u32, expectation: &Expectation, expected: &str, actual: &str) {
        let names = expectation.names();
        if names.is_empty() {
            return;
        }
        self.log.expected();
        self.step(number, Direction::Observed, StepKind::Met, format!("{names}: {actual}"), None);
        for requirement in expectation.requirements.iter().chain(&expectation.shows) {
            let (expected, actual, at) = (expected.to_owned(), actual.to_owned(), expectation.at.clone());
            self.log.met.push(Met { requirement: *requirement, expected, actual, at });
        }
    }

    /// The target behaved differently: a failure if a requirement is named.
    pub(super) fn unmet(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
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

    /// The time is over: a failure if the requirement is about time.
    pub(super) fn overdue(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
        if expectation.overdue_fails {
            self.unmet(expectation, expected, actual)
        } else {
            self.undecided(expectation, expected, actual)
        }
    }

    /// The expected event did not happen, which decides nothing: a time-out, or a mere preparation.
    pub(super) fn undecided(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
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

    /// Marks the last bytes of a connection as the wrong ones.
    pub(super) fn mark_wrong(&mut self, number: u32) {
        let from_target = |step: &&mut Step| {
            step.connection == number && step.direction == Direction::Received && step.octets.is_some()
        };
        if let Some(octets) = self.log.steps.iter_mut().rev().find(from_target).and_then(|step| step.octets.as_mut()) {
            let (start, end) = (0, octets.len);
            octets.marks.push(Mark { start, end, label: "not expected".into(), kind: MarkKind::Wrong });
        }
    }

    /// An error of the tester ends the case.
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

    pub(super) fn decide(&mut self, decision: Decision) -> Stop {
        self.log.decision.get_or_insert(decision);
        Stop
    }
}
