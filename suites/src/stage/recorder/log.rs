//! The log of a case.

use weft_core::RequirementId;

use super::transcript::Transcript;
use crate::model::{Direction, ProgramEnd, SourceLocation, Step, StepKind, Verdict};
use crate::stage::deviation::ControlLog;

/// Begin of the explanation of a case that made the target die.
pub(crate) const DIED: &str = "The target died during the case";

/// The steps of a case, the expectations that were met, and the decision.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) steps: Transcript,
    /// The met expectations that name a requirement, in order. Of each requirement, only the last
    /// one is kept.
    pub(crate) met: Vec<MetExpectation>,
    /// The first decision that ended the case early.
    pub(crate) decision: Option<Decision>,
    /// Whether a good exchange preceded the script's first byte, or the target answered correctly.
    pub(crate) alive_before: bool,
    /// Whether a good exchange followed the script's last byte and last expectation.
    pub(crate) alive_after: bool,
    /// Requirements whose violation does not count against the target. For example, the start-up
    /// profile of the script violates a requirement, or a requirement concerns a capability that
    /// the target lacks.
    pub(crate) exempt: Vec<RequirementId>,
    /// Number of established TCP connections.
    pub(crate) connections: u32,
    /// Reason of the first failed connection attempt.
    pub(crate) refused: Option<String>,
    /// Like `refused`, as text for the headline of a run. Only if the tester opens the connections.
    pub(crate) down: Option<String>,
    /// The ends of programs that were started as the target.
    pub(crate) program_ends: Vec<ProgramEnd>,
    /// The steps that deviate, and the control.
    pub(crate) control: ControlLog,
    /// Whether a good exchange, or the first exchange of the target's service, preceded the
    /// stimulus.
    pub(crate) has_worked: bool,
    /// Whether the failure does not depend on the target.
    pub(crate) is_excused: bool,
    /// Whether the decision is about an answer that is missing.
    pub(crate) is_answer_missing: bool,
    stimulated: bool,
    expected: bool,
    /// Whether a good exchange after the stimulus failed.
    is_dead: bool,
}

/// An expectation that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetExpectation {
    pub(crate) requirement: RequirementId,
    pub(crate) expected: String,
    pub(crate) actual: String,
    pub(crate) at: Option<SourceLocation>,
}

/// The decision that ended a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    /// The requirements that the decision is about. If the list is empty, the decision is about all
    /// requirements of the case.
    pub(crate) requirements: Vec<RequirementId>,
    pub(crate) expected: Option<String>,
    pub(crate) actual: Option<String>,
    pub(crate) explanation: String,
    pub(crate) at: Option<SourceLocation>,
    /// Number of the step that a failure is about ([`Log::deciding_step`]).
    pub(crate) step: Option<u64>,
}

impl Log {
    /// Creates a log with these values, for tests of the verdict.
    #[cfg(test)]
    pub(crate) fn of(
        met: Vec<MetExpectation>,
        alive_before: bool,
        alive_after: bool,
        decision: Option<Decision>,
    ) -> Self {
        Log { met, alive_before, alive_after, decision, ..Log::default() }
    }

    /// If the case failed because an answer is missing, makes the case inconclusive. This is for
    /// runs in which a basic case failed. The fault that the basic case found may be the reason for
    /// the missing answer.
    pub(crate) fn doubt_missing_answer(&mut self) {
        if let Some(decision) = self.decision.as_mut().filter(|decision| decision.verdict == Verdict::Fail)
            && self.is_answer_missing
        {
            decision.verdict = Verdict::Inconclusive;
            decision.explanation.push_str(" The reason may be the fault of a basic case.");
        }
    }

    /// Returns why the first failed connection attempt failed, as text for the headline of a run.
    pub(crate) fn unreached(&self) -> Option<&str> {
        self.down.as_deref().or(self.refused.as_deref())
    }

    /// Returns whether the script decided that the target fails.
    pub(crate) fn has_failed(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Fail)
    }

    /// Returns whether the script's last wait timed out, and the target has done nothing since
    /// then.
    pub(crate) fn ends_in_silence(&self) -> bool {
        let is_either = |step: &&Step| step.kind == StepKind::Silence || step.direction == Direction::Received;
        self.steps.iter().rfind(is_either).is_some_and(|step| step.kind == StepKind::Silence)
    }

    /// Returns the number of the step that a failure is about, if the failure is decided now. The
    /// step is the target's last step on `connection`. If an answer is missing, the step is the
    /// tester's last step. If `connection` is 0, the steps of all connections count. An answer is
    /// missing if `is_overdue` is set, or if the transcript ends with a time-out.
    ///
    /// Returns `None` if the transcript lacks this step, or if the last step is a message of the
    /// agent.
    pub(in crate::stage) fn deciding_step(&self, connection: u32, is_overdue: bool) -> Option<u64> {
        let is_silence = |step: &Step| step.kind == StepKind::Silence && step.connection == connection;
        let is_missing = is_overdue || self.is_answer_missing || self.steps.iter().next_back().is_some_and(is_silence);
        let direction = if is_missing { Direction::Sent } else { Direction::Received };
        let is_meant = |step: &Step| step.direction == direction && (connection == 0 || step.connection == connection);
        let (number, step) = self.steps.numbered().rfind(|&(_, step)| is_meant(step))?;
        (step.kind != StepKind::Agent).then_some(number)
    }

    /// Turns a failure into an inconclusive verdict. `why` is the reason. If the case has failed or
    /// is inconclusive, findings of the monitor cannot fail the case any more.
    pub(crate) fn excuse(&mut self, why: &str) {
        let is_open = |decision: &Decision| matches!(decision.verdict, Verdict::Fail | Verdict::Inconclusive);
        self.is_excused |= self.decision.as_ref().is_some_and(is_open);
        if let Some(decision) = self.decision.as_mut().filter(|decision| decision.verdict == Verdict::Fail) {
            decision.verdict = Verdict::Inconclusive;
            decision.requirements.clear();
            decision.explanation = format!("{why}, so nothing is decided. {}", decision.explanation);
        }
    }

    /// Notes a stimulus. After a stimulus, a good exchange must show again that the target is
    /// alive.
    pub(in crate::stage) fn stimulated(&mut self) {
        self.stimulated = true;
        self.alive_after = false;
    }

    /// Notes that an expectation with a requirement was met. After such an expectation, a good
    /// exchange must show again that the target is alive.
    pub(in crate::stage) fn expected(&mut self) {
        self.expected = true;
        self.alive_after = false;
    }

    /// Notes that the target sent an expected start-up frame or FPDU, so it is alive.
    pub(in crate::stage) fn answered(&mut self) {
        self.alive_before = true;
    }

    /// Notes that the target's service has done its first exchange.
    pub(in crate::stage) fn operates(&mut self) {
        self.answered();
        self.has_worked = true;
    }

    /// Notes that a good exchange failed.
    pub(in crate::stage) fn dead(&mut self) {
        self.is_dead = self.alive_before && (self.stimulated || self.expected);
    }

    /// Returns whether the target was alive at first, but the good exchange after the stimulus
    /// failed and ended the case.
    pub(crate) fn is_dead_after(&self) -> bool {
        let undecided = |decision: &Decision| decision.verdict == Verdict::Inconclusive;
        self.is_dead && self.decision.as_ref().is_some_and(undecided)
    }

    /// Returns whether the target answered, the script sent a stimulus, and the case is
    /// inconclusive.
    pub(crate) fn is_undecided_after_stimulus(&self) -> bool {
        let undecided = |decision: &Decision| decision.verdict == Verdict::Inconclusive;
        self.alive_before && self.stimulated && self.decision.as_ref().is_some_and(undecided)
    }

    /// Fails the case because the target died during the case. The failure counts against
    /// `requirement`. `ends` describes how the programs ended. `output` is the last line of the
    /// command `crashed`.
    pub(crate) fn fail_as_dead(&mut self, requirement: Option<RequirementId>, ends: &str, output: Option<&str>) {
        let Some(decision) = self.decision.as_mut() else { return };
        decision.verdict = Verdict::Fail;
        decision.requirements = requirement.into_iter().collect();
        let output = output.map_or(String::new(), |line| format!(" Its last output: {line}."));
        decision.explanation = format!("{DIED}. {}{ends}{output}", decision.explanation);
    }

    /// Fails the case if the target had answered before its program crashed. The failure counts
    /// against this requirement. Does nothing if the case has already failed.
    pub(crate) fn fail_as_crashed(&mut self, requirement: Option<RequirementId>, end: &ProgramEnd) {
        if !self.alive_before || self.decision.as_ref().is_some_and(|decision| decision.verdict >= Verdict::Fail) {
            return;
        }
        let before = self.decision.take().map_or(String::new(), |decision| format!(" {}", decision.explanation));
        self.decision = Some(Decision {
            verdict: Verdict::Fail,
            requirements: requirement.into_iter().collect(),
            expected: Some("the target survives the case".to_owned()),
            actual: Some(format!("the {end}")),
            explanation: format!("{DIED}.{before}"),
            at: None,
            step: None,
        });
    }

    /// Adds to the explanation of a case that did not pass.
    pub(crate) fn explain(&mut self, text: &str) {
        if let Some(decision) = self.decision.as_mut() {
            decision.explanation.push_str(text);
        }
    }

    /// Notes that a good exchange worked.
    pub(in crate::stage) fn alive(&mut self) {
        self.alive_before |= !self.stimulated;
        self.has_worked |= !self.stimulated;
        self.alive_after |= self.stimulated || self.expected;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(direction: Direction, kind: StepKind) -> Step {
        Step { at_ns: 0, connection: 1, direction, kind, text: String::new(), octets: None }
    }

    #[test]
    fn silence_counts_until_the_target_does_something() {
        let ends = |steps: &[Step]| Log { steps: steps.to_vec().into(), ..Log::default() }.ends_in_silence();
        let silence = step(Direction::Observed, StepKind::Silence);
        let unmet = step(Direction::Observed, StepKind::Unmet);
        let answer = step(Direction::Received, StepKind::Octets);
        assert!(ends(&[answer.clone(), silence.clone(), unmet.clone()]));
        assert!(!ends(&[silence, answer, unmet]) && !ends(&[]));
    }

    #[test]
    fn a_failure_is_about_the_last_answer_or_the_unanswered_step() {
        use Direction::{Observed, Received, Sent};
        let on = |connection, direction, kind| Step { connection, ..step(direction, kind) };
        let steps = vec![
            on(1, Sent, StepKind::Octets),
            on(1, Received, StepKind::Octets),
            on(2, Sent, StepKind::Octets),
            on(2, Received, StepKind::Fin),
        ];
        let mut log = Log { steps: steps.into(), ..Log::default() };
        assert_eq!([0, 1, 2].map(|number| log.deciding_step(number, false)), [Some(3), Some(1), Some(3)]);
        assert_eq!([0, 1, 3].map(|number| log.deciding_step(number, true)), [Some(2), Some(0), None]);
        log.steps.push(on(1, Observed, StepKind::Silence));
        assert_eq!([1, 2].map(|number| log.deciding_step(number, false)), [Some(0), Some(3)]);
        log.steps.push(on(0, Received, StepKind::Agent));
        assert_eq!([0, 2].map(|number| log.deciding_step(number, false)), [None, Some(3)]);
    }

    #[test]
    fn an_excuse_decides_nothing() {
        let decision = |verdict| Decision {
            verdict,
            requirements: vec![weft_core::requirement!("MPA-7.1.2-8")],
            expected: None,
            actual: None,
            explanation: "MPA-7.1.2-8 is violated: nothing within 10 s.".to_owned(),
            at: None,
            step: None,
        };
        let excused = |verdict| {
            let mut log = Log::of(Vec::new(), true, false, Some(decision(verdict)));
            log.excuse("The tester did not run for 3 s");
            log.decision.unwrap()
        };
        let failure = excused(Verdict::Fail);
        assert_eq!((failure.verdict, failure.requirements), (Verdict::Inconclusive, Vec::new()));
        assert!(failure.explanation.starts_with("The tester did not run for 3 s, so nothing is decided. MPA-7.1.2-8"));
        assert_eq!(excused(Verdict::Error), decision(Verdict::Error));
    }
}
