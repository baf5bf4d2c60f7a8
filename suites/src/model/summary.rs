//! The summary of a run.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;

use super::{Capability, CaseKey, CaseResult, RunStatus, Score, Verdict};

/// Counts, and the exit code that follows from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// How the run ended.
    pub status: RunStatus,
    /// The headline of the run if the target is down, for example `target is down: 192.0.2.7:7174
    /// refused the connection`. If the target went away during the run, the headline ends with the
    /// last case that reached the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_down: Option<String>,
    /// Number of planned variants of cases.
    pub planned: u64,
    /// Number of results by verdict.
    pub counts: Counts,
    /// Violated requirements, in catalogue order: those of failed cases, and those whose violation
    /// the monitor observed in cases about other requirements.
    #[schemars(with = "Vec<String>")]
    pub failing: Vec<RequirementId>,
    /// Numbers of met and violated requirements. Runs of older versions have no such numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// Results that the target's baseline expects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<ExpectedResult>,
    /// Entries of the baseline that no longer match, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// Results that an entry of the baseline names, but does not match, as text. They change no
    /// verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
    /// Differences between the target file and what the target's agent reports about its device, as
    /// text. These differences change no verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared_otherwise: Vec<String>,
    /// The capabilities that the target lost since an earlier run. The run then fails, because the
    /// cases that need these capabilities did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_capabilities: Vec<Capability>,
    /// The values of parameters at which the target begins to fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boundaries: Vec<Boundary>,
    /// Reason why the results store lacks a part of this run. The reports have the complete run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_stored: Option<String>,
    /// The exit code.
    pub exit_code: ExitCode,
    /// The reasons for the exit code, as text. Empty if everything is as expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Wall time of the run, in microseconds.
    pub duration_us: u64,
}

/// The values of a parameter between which the verdict of a case changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Boundary {
    /// The variant that fails with the value `fails`.
    pub key: CaseKey,
    /// Name of the parameter.
    pub parameter: String,
    /// The nearest value that passes.
    pub passes: i64,
    /// The nearest value that fails.
    pub fails: i64,
    /// Number of runs of the case that were made to find the two values.
    pub runs: u32,
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Boundary { key, parameter, passes, fails, .. } = self;
        // A value below the boundary may fail, and a value above it may pass.
        let (up_to, from) = if passes < fails { ("up to", "from") } else { ("from", "up to") };
        write!(f, "{}: passes {up_to} {parameter} {passes}, fails {from} {fails}", key.case)?;
        // The search was interrupted, or a value between the two had no verdict.
        if passes.abs_diff(*fails) > 1 { f.write_str("; no verdict for the values between these two") } else { Ok(()) }
    }
}

/// A result that the target's baseline expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedResult {
    /// The variant of the case.
    pub key: CaseKey,
    /// The reason in the baseline.
    pub reason: String,
    /// A link to more information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The field `case` of the baseline's entry, if the entry is about a folder or section of
    /// cases, or about a requirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// Number of results by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// [`Verdict::Pass`].
    pub pass: u64,
    /// [`Verdict::Fail`].
    pub fail: u64,
    /// [`Verdict::Inconclusive`].
    pub inconclusive: u64,
    /// [`Verdict::NotApplicable`].
    pub not_applicable: u64,
    /// [`Verdict::Unimplemented`].
    pub unimplemented: u64,
    /// [`Verdict::Error`].
    pub error: u64,
}

impl Counts {
    /// Counts one more result.
    pub fn add(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Fail => &mut self.fail,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::NotApplicable => &mut self.not_applicable,
            Verdict::Unimplemented => &mut self.unimplemented,
            Verdict::Error => &mut self.error,
        };
        *count += 1;
    }

    /// Returns the number of results with this verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u64 {
        match verdict {
            Verdict::Pass => self.pass,
            Verdict::Fail => self.fail,
            Verdict::Inconclusive => self.inconclusive,
            Verdict::NotApplicable => self.not_applicable,
            Verdict::Unimplemented => self.unimplemented,
            Verdict::Error => self.error,
        }
    }

    /// Returns the number of all results.
    #[must_use]
    pub fn total(&self) -> u64 {
        Verdict::ALL.into_iter().map(|verdict| self.of(verdict)).sum()
    }

    /// Returns the number of results in which the target was exercised.
    #[must_use]
    pub fn run(&self) -> u64 {
        Verdict::ALL.into_iter().filter(|verdict| verdict.has_run()).map(|verdict| self.of(verdict)).sum()
    }

    /// Returns the share of passed results among the results in which the target was exercised, in
    /// percent. `None` if the target was not exercised.
    #[must_use]
    pub fn pass_rate(&self) -> Option<f64> {
        let run = self.run();
        (run > 0).then(|| 100.0 * self.pass as f64 / run as f64)
    }
}

/// The exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExitCode {
    /// 0: everything as expected.
    AsExpected,
    /// 1: unexpected results (failures).
    Unexpected,
    /// 2: wrong usage, or nothing was selected or run.
    NothingRun,
    /// 3: inconclusive cases, or an unreachable target.
    Inconclusive,
    /// 4: the tester itself failed.
    HarnessError,
}

impl ExitCode {
    /// Number of the exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            ExitCode::AsExpected => 0,
            ExitCode::Unexpected => 1,
            ExitCode::NothingRun => 2,
            ExitCode::Inconclusive => 3,
            ExitCode::HarnessError => 4,
        }
    }

    /// Returns the worst exit code for `counts`. The order is errors, failures, inconclusive cases.
    #[must_use]
    pub fn of(counts: &Counts) -> Self {
        if counts.error > 0 {
            ExitCode::HarnessError
        } else if counts.fail > 0 {
            ExitCode::Unexpected
        } else if counts.inconclusive > 0 {
            ExitCode::Inconclusive
        } else if counts.run() == 0 {
            ExitCode::NothingRun
        } else {
            ExitCode::AsExpected
        }
    }
}

impl Summary {
    /// Summarizes results. A cancelled run is at best inconclusive.
    #[must_use]
    pub fn of<'a>(
        status: RunStatus,
        planned: u64,
        results: impl IntoIterator<Item = &'a CaseResult>,
        duration_us: u64,
    ) -> Self {
        Self::with_baseline(status, planned, results, duration_us, Vec::new(), Vec::new())
    }

    /// Summarizes results, some of which may be expected. For the exit code, an expected result
    /// counts as a pass, and a stale entry of the baseline counts as a failure.
    #[must_use]
    pub fn with_baseline<'a>(
        status: RunStatus,
        planned: u64,
        results: impl IntoIterator<Item = &'a CaseResult>,
        duration_us: u64,
        expected: Vec<ExpectedResult>,
        stale: Vec<String>,
    ) -> Self {
        let mut counts = Counts::default();
        let results: Vec<&CaseResult> = results.into_iter().collect();
        // The counts that decide the exit code.
        let mut judged = Counts::default();
        let mut failing = BTreeSet::new();
        let mut unexpected = !stale.is_empty();
        let expected_keys: BTreeSet<&CaseKey> = expected.iter().map(|expected| &expected.key).collect();
        for result in results.iter().copied() {
            counts.add(result.verdict);
            failing.extend(result.failing());
            if expected_keys.contains(&result.key) {
                judged.add(Verdict::Pass);
            } else {
                judged.add(result.verdict);
                unexpected |= result.failing().next().is_some();
            }
        }
        let exit_code = match ExitCode::of(&judged) {
            ExitCode::HarnessError => ExitCode::HarnessError,
            _ if unexpected => ExitCode::Unexpected,
            // Cases that did not run yet may still fail.
            ExitCode::AsExpected | ExitCode::NothingRun if status != RunStatus::Done => ExitCode::Inconclusive,
            code => code,
        };
        let failing = failing.into_iter().collect();
        let reasons = Vec::new();
        let mut summary = Summary {
            status,
            target_down: None,
            planned,
            counts,
            failing,
            score: Some(Score::of(results.iter().copied())),
            expected,
            stale,
            unmatched: Vec::new(),
            declared_otherwise: Vec::new(),
            lost_capabilities: Vec::new(),
            boundaries: Vec::new(),
            not_stored: None,
            exit_code,
            reasons,
            duration_us,
        };
        summary.reasons = super::reasons::reasons(&summary, &results);
        summary
    }

    /// Returns the summary after a rerun of some cases. `results` has the new results in place of
    /// the old results. `is_new` identifies the new results, and `rerun` is the summary of the
    /// rerun. `is_down` is `false` if no result shows that the target is down, because each of the
    /// cases reached the target. The results may lack their steps.
    pub(crate) fn with_rerun(
        self,
        rerun: &Summary,
        results: &[CaseResult],
        is_down: bool,
        is_new: impl Fn(&CaseKey) -> bool,
    ) -> Self {
        let Summary {
            status,
            target_down,
            planned,
            mut expected,
            mut stale,
            mut unmatched,
            declared_otherwise,
            lost_capabilities,
            boundaries,
            duration_us,
            ..
        } = self;
        expected.retain(|one| !is_new(&one.key));
        expected.extend(rerun.expected.iter().filter(|one| is_new(&one.key)).cloned());
        // The rerun has judged the entries about new results again. An entry may name several cases
        // or variants. Such an entry matches if one of their results matches.
        let is_about = |entry: &str, name: &str| entry.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        let is_new_entry = |entry: &String| {
            results.iter().filter(|result| is_new(&result.key)).any(|result| is_about(entry, &result.key.to_string()))
                || rerun.expected.iter().any(|one| is_about(entry, one.entry.as_deref().unwrap_or(&one.key.case)))
        };
        stale.retain(|entry| !is_new_entry(entry));
        for entry in &rerun.stale {
            if !stale.contains(entry) {
                stale.push(entry.clone());
            }
        }
        unmatched.retain(|entry| !is_new_entry(entry));
        unmatched.extend(rerun.unmatched.iter().filter(|&entry| is_new_entry(entry)).cloned());
        let summary = Self::with_baseline(status, planned, results, duration_us, expected, stale);
        let boundaries =
            boundaries.into_iter().filter(|boundary| !is_new(&boundary.key)).chain(rerun.boundaries.clone());
        let summary = Summary { unmatched, declared_otherwise, boundaries: boundaries.collect(), ..summary };
        // The cases that need a lost capability did not run again.
        summary.with_lost_capabilities(&lost_capabilities).with_target_down(target_down.filter(|_| is_down))
    }

    /// Returns the summary of a run whose target lost these capabilities since an earlier run. Such
    /// a run fails. If the target is down, the reason follows the headline.
    #[must_use]
    pub fn with_lost_capabilities(mut self, lost: &[Capability]) -> Self {
        let Some(text) = super::lost_text(lost) else { return self };
        if self.exit_code != ExitCode::HarnessError {
            self.exit_code = ExitCode::Unexpected;
        }
        let place = usize::from(self.target_down.is_some()).min(self.reasons.len());
        self.reasons.insert(place, format!("the target {text}"));
        self.lost_capabilities = lost.to_vec();
        self
    }

    /// Returns the summary of a run whose target is down. The headline is the first reason for the
    /// exit code.
    pub(crate) fn with_target_down(mut self, headline: Option<String>) -> Self {
        let Some(headline) = headline else { return self };
        if matches!(self.exit_code, ExitCode::AsExpected | ExitCode::NothingRun) {
            self.exit_code = ExitCode::Inconclusive;
        }
        self.reasons.insert(0, headline.clone());
        self.target_down = Some(headline);
        self
    }

    /// Returns the summary of a run of which the results store has only a part. An incomplete store
    /// is an error of the tester's environment, independent of the target.
    pub(crate) fn not_stored(mut self, why: String) -> Self {
        self.exit_code = ExitCode::HarnessError;
        self.reasons.push(why.clone());
        self.not_stored = Some(why);
        self
    }

    /// Returns the baseline's entry for a result, if the baseline expects the result.
    #[must_use]
    pub fn expects(&self, result: &CaseResult) -> Option<&ExpectedResult> {
        self.expected.iter().find(|expected| expected.key == result.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(verdicts: &[Verdict]) -> u8 {
        let mut counts = Counts::default();
        for verdict in verdicts {
            counts.add(*verdict);
        }
        assert_eq!(counts.total(), verdicts.len() as u64);
        ExitCode::of(&counts).code()
    }

    #[test]
    fn the_worst_decides_in_the_order_4_1_3_0() {
        use Verdict::{Error, Fail, Inconclusive, NotApplicable, Pass, Unimplemented};
        assert_eq!(code(&[Pass, Fail, Inconclusive, Error]), 4);
        assert_eq!(code(&[Pass, Fail, Inconclusive]), 1);
        assert_eq!(code(&[Pass, Inconclusive]), 3);
        assert_eq!(code(&[Pass, NotApplicable, Unimplemented]), 0);
    }

    #[test]
    fn a_target_that_is_down_is_the_first_reason() {
        let down = "target is down: 192.0.2.7:7174 refused the connection";
        let summary = Summary::of(RunStatus::Done, 0, [], 0).with_target_down(Some(down.to_owned()));
        assert_eq!((summary.exit_code, summary.reasons[0].as_str()), (ExitCode::Inconclusive, down));
        assert_eq!(summary.target_down.as_deref(), Some(down));
        let up = Summary::of(RunStatus::Done, 0, [], 0);
        assert_eq!(up.clone().with_target_down(None), up);
    }

    #[test]
    fn a_lost_capability_fails_a_run_and_the_results_of_its_reruns() {
        let lost = [Capability::Markers, Capability::Revision2];
        let summary = Summary::of(RunStatus::Done, 0, [], 0);
        assert_eq!(summary.clone().with_lost_capabilities(&[]), summary);
        let reason = "the target lost the capabilities markers, revision-2";
        let failed = summary.clone().with_lost_capabilities(&lost);
        assert_eq!((failed.exit_code, failed.reasons[0].as_str()), (ExitCode::Unexpected, reason));
        let merged = failed.clone().with_rerun(&summary, &[], false, |_| true);
        assert_eq!((merged.exit_code, &merged.lost_capabilities[..]), (ExitCode::Unexpected, &lost[..]));
        let down = failed.with_target_down(Some("target is down".to_owned()));
        assert_eq!((down.exit_code, down.reasons[1].as_str()), (ExitCode::Unexpected, reason));
        let broken = summary.not_stored("the disk is full".to_owned()).with_lost_capabilities(&lost[..1]);
        assert_eq!(broken.exit_code, ExitCode::HarnessError);
        assert_eq!(broken.reasons[0], "the target lost the capability markers");
    }

    #[test]
    fn nothing_run_is_not_a_success() {
        assert_eq!(code(&[]), 2);
        assert_eq!(code(&[Verdict::NotApplicable]), 2);
        assert_eq!(Summary::of(RunStatus::Cancelled, 3, [], 0).exit_code, ExitCode::Inconclusive);
    }
}
