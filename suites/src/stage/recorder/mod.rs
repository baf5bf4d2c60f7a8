//! The log of a case: its steps, the expectations that were met, and the decision that ends the
//! case.
//!
//! `crate::run` computes the verdict from the complete log.

pub(in crate::stage) mod describe;
mod log;
mod transcript;

use weft_core::RequirementId;
use weft_peer::Instant;

pub(crate) use log::{DIED, Decision, Log, MetExpectation};
pub(in crate::stage) use transcript::Transcript;

use super::{Expectation, StepFailure, Stop};
use crate::model::{
    CaseKey, Direction, Event, EventSink, Mark, MarkKind, Octets, SourceLocation, Step, StepKind, Verdict,
};

/// A transcript keeps the bytes of this number of steps at its beginning, and of the same number of
/// steps at its end. Steps in between keep their bytes only if these have marks. Otherwise, such a
/// step keeps only the number of its bytes. The pcapng file has the bytes.
const STEPS_WITH_OCTETS: usize = 2_000;

/// Adds to the log of a case.
pub(crate) struct Recorder<'a> {
    pub(in crate::stage) now: Instant,
    pub(in crate::stage) key: &'a CaseKey,
    pub(in crate::stage) sink: &'a dyn EventSink,
    pub(in crate::stage) log: &'a mut Log,
    /// The connection that the recorder is about, or 0.
    pub(in crate::stage) number: u32,
    /// The current line of the script.
    pub(in crate::stage) at: Option<&'a SourceLocation>,
}

impl Recorder<'_> {
    /// Ends the case as unimplemented, because the case is about an optional feature that the
    /// target does not implement.
    pub(crate) fn unimplemented(&mut self, why: &str) -> Stop {
        self.step(0, Direction::Observed, StepKind::Note, format!("unimplemented: {why}"), None);
        self.decide(Verdict::Unimplemented, why.to_owned())
    }

    /// Ends the case as inconclusive.
    pub(crate) fn inconclusive(&mut self, why: &str) -> Stop {
        self.step(0, Direction::Observed, StepKind::Note, format!("inconclusive: {why}"), None);
        self.decide(Verdict::Inconclusive, why.to_owned())
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
        self.met(expectation, expected, expected);
        Ok(())
    }

    /// Notes whether the next violation means that an answer is missing.
    pub(crate) fn note_missing_answer(&mut self, is_missing: bool) {
        self.log.is_answer_missing = is_missing;
    }

    /// Records that an expectation is met.
    pub(in crate::stage) fn met(&mut self, expectation: &Expectation, expected: &str, actual: &str) {
        let names = expectation.names();
        if names.is_empty() {
            return;
        }
        self.log.expected();
        self.step(self.number, Direction::Observed, StepKind::Met, format!("{names}: {actual}"), None);
        for requirement in expectation.requirements.iter().chain(&expectation.shows) {
            let (expected, actual, at) = (expected.to_owned(), actual.to_owned(), self.at.cloned());
            // A case can meet the same expectation any number of times.
            self.log.met.retain(|met| met.requirement != *requirement);
            self.log.met.push(MetExpectation { requirement: *requirement, expected, actual, at });
        }
    }

    /// Records that the target behaved differently than expected. This is a failure if the
    /// expectation names a requirement.
    pub(in crate::stage) fn unmet(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
        let step = self.log.deciding_step(self.number, false);
        self.violated(expectation, expected, actual, step)
    }

    /// Does the work of [`unmet`](Self::unmet). `step` is the number of the step that the violation
    /// is about.
    fn violated(&mut self, expectation: &Expectation, expected: &str, actual: &str, step: Option<u64>) -> Stop {
        if expectation.requirements.is_empty() {
            return self.undecided(expectation, expected, actual);
        }
        let names = Expectation { shows: Vec::new(), ..expectation.clone() }.names();
        self.step(0, Direction::Observed, StepKind::Unmet, format!("{names}: {actual}"), None);
        let explanation = match expectation.requirements.len() {
            1 => format!("{names} is violated: {actual}."),
            _ => format!("{names} are violated: {actual}."),
        };
        self.decide_about(Verdict::Fail, expectation.requirements.clone(), Some((expected, actual)), explanation, step)
    }

    /// Like [`unmet`](Self::unmet), for a target that sent something else. Marks the sent bytes as
    /// wrong.
    pub(in crate::stage) fn wrong(&mut self, expectation: &Expectation, expected: &str, sent: &str) -> Stop {
        self.mark_wrong();
        self.unmet(expectation, expected, &format!("it sent {sent}"))
    }

    /// Like [`wrong`](Self::wrong), for an FPDU that differs from the expected FPDU in its last
    /// bytes `differing`. Marks only these bytes, if they are the last bytes that the target sent.
    pub(in crate::stage) fn wrong_from(
        &mut self,
        expectation: &Expectation,
        expected: &str,
        sent: &str,
        differing: &[u8],
    ) -> Stop {
        self.mark_wrong_from(differing);
        self.unmet(expectation, expected, &format!("it sent {sent}"))
    }

    /// Records that nothing arrived within the time of an expectation.
    pub(in crate::stage) fn timed_out(&mut self, expectation: &Expectation, expected: &str) -> Stop {
        let text = self.silence(expectation);
        self.overdue(expectation, expected, &text)
    }

    /// Records that the time is over. This is a failure if the requirement is about time.
    pub(in crate::stage) fn overdue(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
        if expectation.overdue_fails {
            let step = self.log.deciding_step(self.number, true);
            self.violated(expectation, expected, actual, step)
        } else {
            self.undecided(expectation, expected, actual)
        }
    }

    /// Records that an expected event did not happen, and ends the case as inconclusive. The reason
    /// is a time-out, or the expectation was only a preparation.
    pub(in crate::stage) fn undecided(&mut self, expectation: &Expectation, expected: &str, actual: &str) -> Stop {
        let names = expectation.names();
        let explanation = match expectation.requirements.len() + expectation.shows.len() {
            0 => format!("The case did not get as far as its stimulus: {actual}."),
            1 => format!("{names} is not decided: {actual}."),
            _ => format!("{names} are not decided: {actual}."),
        };
        self.decide_about(Verdict::Inconclusive, Vec::new(), Some((expected, actual)), explanation, None)
    }

    /// Like [`undecided`](Self::undecided), for a step that did not work. If the step has decided
    /// the case, records nothing.
    pub(in crate::stage) fn failed(&mut self, failure: StepFailure, expectation: &Expectation, expected: &str) -> Stop {
        match failure {
            StepFailure::Decided => Stop,
            StepFailure::Reason(why) => self.undecided(expectation, expected, &why),
        }
    }

    /// Marks the last bytes that the target sent on a connection as wrong.
    pub(in crate::stage) fn mark_wrong(&mut self) {
        self.mark_wrong_from(&[]);
    }

    /// Marks the last bytes that the target sent on a connection as wrong. If these bytes end with
    /// `differing`, marks only `differing`.
    fn mark_wrong_from(&mut self, differing: &[u8]) {
        let from_target = |step: &&mut Step| {
            step.connection == self.number && step.direction == Direction::Received && step.octets.is_some()
        };
        if let Some(octets) = self.log.steps.iter_mut().rev().find(from_target).and_then(|step| step.octets.as_mut()) {
            let differing = Octets::new(differing);
            let is_shown = differing.len > 0 && octets.hex.len() as u64 == 2 * octets.len;
            // The hexadecimal text of `differing` may be cut, so its length is compared, too.
            let is_end = differing.hex.len() as u64 == 2 * differing.len && octets.hex.ends_with(&differing.hex);
            let start = if is_shown && is_end { octets.len - differing.len } else { 0 };
            let end = octets.len;
            octets.marks.push(Mark { start, end, label: "not expected".into(), kind: MarkKind::Wrong });
        }
    }

    /// Ends the case with an error of the tester.
    pub(crate) fn harness(&mut self, what: &str) -> Stop {
        self.decide(Verdict::Error, what.to_owned())
    }

    /// Ends the case for a reason that is not about a single requirement. So all requirements of
    /// the case get this verdict.
    pub(in crate::stage) fn decide(&mut self, verdict: Verdict, explanation: String) -> Stop {
        self.decide_about(verdict, Vec::new(), None, explanation, None)
    }

    /// Ends the case. If the case is already decided, the earlier decision remains. `observed` has
    /// the expected and the actual behaviour. `step` is the number of the step that a failure is
    /// about.
    fn decide_about(
        &mut self,
        verdict: Verdict,
        requirements: Vec<RequirementId>,
        observed: Option<(&str, &str)>,
        explanation: String,
        step: Option<u64>,
    ) -> Stop {
        let (expected, actual) = observed.map(|(expected, actual)| (expected.to_owned(), actual.to_owned())).unzip();
        let at = self.at.cloned();
        self.log.decision.get_or_insert(Decision { verdict, requirements, expected, actual, explanation, at, step });
        Stop
    }

    /// Records that no connection was established. The case is inconclusive.
    pub(in crate::stage) fn unreached(&mut self, expected: &str, actual: &str) -> Stop {
        self.step(0, Direction::Observed, StepKind::Refused, actual.to_owned(), None);
        self.log.refused.get_or_insert_with(|| actual.to_owned());
        let explanation = "The target was not reached.".to_owned();
        self.decide_about(Verdict::Inconclusive, Vec::new(), Some((expected, actual)), explanation, None)
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
        let at_ns = self.now.as_nanos();
        let step = Step { at_ns, connection, direction, kind, text, octets };
        // Readers of events keep all steps, so the number of these events is limited.
        if self.log.steps.has_room() || kind == StepKind::Unmet {
            self.sink.event(&Event::CaseStep { key: self.key.clone(), step: step.clone() });
        }
        self.log.steps.push(step);
        let older = self.log.steps.len().checked_sub(STEPS_WITH_OCTETS + 1).filter(|index| *index >= STEPS_WITH_OCTETS);
        let octets = older.and_then(|index| self.log.steps.get_mut(index)?.octets.as_mut());
        if let Some(octets) = octets.filter(|octets| octets.marks.is_empty()) {
            octets.hex = String::new();
        }
    }

    /// Notes that nothing arrived within the time of an expectation. Returns the text of the note.
    pub(in crate::stage) fn silence(&mut self, expectation: &Expectation) -> String {
        let text = format!("nothing within {} s", expectation.within.as_secs_f64());
        self.step(self.number, Direction::Observed, StepKind::Silence, text.clone(), None);
        text
    }

    /// Notes the outcome of the control in the transcript.
    pub(crate) fn note_control(&mut self, text: &str) {
        self.step(0, Direction::Observed, StepKind::Note, format!("control: {text}"), None);
    }
}
