//! The overview of a run, for the HTML report and the page of a run: one line with the verdict, a
//! bar for each level, the causes of the failures, and what was skipped.
//!
//! Cases for another kind of target (another role, or SDP cases on an RNIC) are not counted in the
//! verdict and in the list of skipped cases. The overview has their number.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::cases;
use super::causes::{Cause, counts, explained, failures};
use crate::model::skip::{Remedy, remedy};
use crate::model::{CaseResult, ExitCode, RunStatus, Score, Strength, Summary, Tally, Verdict, lost_text};

/// The overview of a run.
pub struct Overview {
    /// Name of the verdict that decides the colour of the line: `pass`, `fail`, `inconclusive`,
    /// `error`, or `not-applicable` if nothing was run.
    pub class: &'static str,
    /// The verdict in one sentence.
    pub line: String,
    /// Sentences about what the verdict does not count.
    pub notes: Vec<String>,
    /// One bar for each level with tried requirements.
    pub bars: Vec<Bar>,
    /// The causes of the unexpected failures. The most important are first.
    pub failures: Vec<Cause>,
    /// Errors of the tester.
    pub errors: Vec<Cause>,
    /// Cases without a decision.
    pub inconclusive: Vec<Cause>,
    /// Skipped cases, by the declaration that would run them.
    pub skipped: Vec<SkippedCases>,
}

/// Cases that were skipped for the same reason.
pub struct SkippedCases {
    /// The reason, one sentence.
    pub why: String,
    /// The line of the target file that would run the cases, if there is one.
    pub declaration: Option<String>,
    /// Number of the cases.
    pub cases: u64,
}

/// The requirements of one level, as a bar.
pub struct Bar {
    /// The level.
    pub strength: Strength,
    /// Numbers of the requirements.
    pub tally: Tally,
    /// The coloured parts, from left to right.
    pub parts: Vec<BarPart>,
    /// Sum of the widths of the parts.
    pub width: u64,
}

/// A coloured part of a bar.
pub struct BarPart {
    /// Name of the verdict that decides the colour.
    pub class: &'static str,
    /// Distance of the part from the left end of the bar.
    pub from: u64,
    /// Width of the part.
    pub width: u64,
}

/// Width of a bar, in the units of its parts.
const BAR: u64 = 1000;
/// Minimum width of a part, so that a single violation among thousands of requirements is visible.
const MIN_PART: u64 = 8;

impl Overview {
    /// Returns the overview of a run. `service` is the service of the target. `results` may lack
    /// results that passed.
    #[must_use]
    pub fn of<'a>(summary: &Summary, service: &str, results: impl Iterator<Item = &'a CaseResult> + Clone) -> Self {
        let (skipped, left_out) = skipped(service, results.clone());
        let failures = failures(summary, results.clone());
        Overview {
            class: class(summary),
            line: line(summary, counts(summary, results.clone()), left_out),
            notes: notes(&skipped, left_out),
            bars: summary.score.iter().flat_map(bars).collect(),
            failures,
            errors: explained(summary, Verdict::Error, results.clone()),
            inconclusive: explained(summary, Verdict::Inconclusive, results),
            skipped,
        }
    }
}

/// Returns the skipped cases, those with many cases first, and the number of cases for another kind
/// of target.
fn skipped<'a>(service: &str, results: impl Iterator<Item = &'a CaseResult>) -> (Vec<SkippedCases>, u64) {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for result in results.filter(|result| !result.verdict.has_run()) {
        *reasons.entry(&result.explanation).or_default() += 1;
    }
    let (mut groups, mut left_out) = (Vec::new(), 0);
    for (why, cases) in reasons {
        let declaration = match remedy(why, service) {
            Remedy::OtherTarget => {
                left_out += cases;
                continue;
            }
            Remedy::Declare(line) => Some(line),
            Remedy::Unknown => None,
        };
        groups.push(SkippedCases { why: why.to_owned(), declaration, cases });
    }
    groups.sort_by_key(|group| Reverse(group.cases));
    (groups, left_out)
}

fn class(summary: &Summary) -> &'static str {
    let verdict = match summary.exit_code {
        ExitCode::AsExpected => Verdict::Pass,
        ExitCode::Unexpected => Verdict::Fail,
        ExitCode::NothingRun => Verdict::NotApplicable,
        ExitCode::Inconclusive => Verdict::Inconclusive,
        ExitCode::HarnessError => Verdict::Error,
    };
    verdict.as_str()
}

/// Returns the verdict of the run in one sentence. If the target is down, the headline about it is
/// first. If the target lost capabilities, a sentence about them follows.
fn line(summary: &Summary, (failed, violated): (usize, usize), left_out: u64) -> String {
    let counted = cases(summary.counts.total().saturating_sub(left_out));
    let has_violations = violated > 0;
    let violated = match violated {
        1 => "1 requirement".to_owned(),
        count => format!("{count} requirements"),
    };
    let known = match summary.expected.len() {
        0 => String::new(),
        count => format!(" The baseline expects the results of {}.", cases(count as u64)),
    };
    let verdict = match summary.exit_code {
        _ if failed > 0 => format!("The target fails {failed} of {counted} and violates {violated}."),
        _ if has_violations => format!("No case of {counted} fails, but the target violates {violated}."),
        ExitCode::HarnessError => format!("weft has errors in {} of {counted}.", summary.counts.error),
        ExitCode::Unexpected if !summary.stale.is_empty() => {
            format!("No unexpected result in {counted}, but the baseline has stale entries.")
        }
        ExitCode::Inconclusive => {
            format!("No case fails, but there is no decision in {} of {counted}.", summary.counts.inconclusive)
        }
        ExitCode::Unexpected if summary.counts.run() == 0 => "Nothing was run.".to_owned(),
        ExitCode::NothingRun => "Nothing was run.".to_owned(),
        ExitCode::AsExpected if !summary.expected.is_empty() => format!("No unexpected result in {counted}."),
        ExitCode::AsExpected | ExitCode::Unexpected => {
            format!("The target passes {} of {counted}.", summary.counts.pass)
        }
    };
    let status = match summary.status {
        RunStatus::Done => String::new(),
        status => format!(" The run is incomplete ({status}): {} were planned.", cases(summary.planned)),
    };
    let headline = summary.target_down.as_ref().map(|headline| format!("{headline}. ")).unwrap_or_default();
    let lost = lost_text(&summary.lost_capabilities).map(|text| format!("The target {text}. ")).unwrap_or_default();
    format!("{headline}{lost}{verdict}{known}{status}")
}

/// Returns sentences about skipped cases.
fn notes(skipped: &[SkippedCases], left_out: u64) -> Vec<String> {
    let number: u64 = skipped.iter().map(|group| group.cases).sum();
    let mut notes = Vec::new();
    if number > 0 {
        notes.push(format!("Skipped: {}.", cases(number)));
    }
    if left_out > 0 {
        notes.push(format!("Not counted, because they are for another kind of target: {}.", cases(left_out)));
    }
    notes
}

fn bars(score: &Score) -> Vec<Bar> {
    score.parts().map(|(strength, tally)| bar(strength, tally)).collect()
}

fn bar(strength: Strength, tally: Tally) -> Bar {
    let numbers =
        [(Verdict::Fail, tally.violated), (Verdict::Inconclusive, tally.undecided), (Verdict::Pass, tally.met)];
    let total = tally.tried().max(1);
    let mut parts = Vec::new();
    let mut from = 0;
    for (verdict, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
        let width = (number.saturating_mul(BAR) / total).max(MIN_PART);
        parts.push(BarPart { class: verdict.as_str(), from, width });
        from += width;
    }
    Bar { strength, tally, parts, width: from }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Capability;

    #[test]
    fn the_line_names_lost_capabilities_first() {
        let summary = Summary::of(RunStatus::Done, 0, [], 0).with_lost_capabilities(&[Capability::Markers]);
        let overview = Overview::of(&summary, "echo", std::iter::empty());
        let line = "The target lost the capability markers. Nothing was run.";
        assert_eq!((overview.class, overview.line.as_str()), ("fail", line));
    }

    #[test]
    fn a_bar_is_proportional_and_shows_each_part() {
        let tally = Tally { met: 9_000, violated: 1, undecided: 999, not_tried: 500 };
        let bar = bar(Strength::Must, tally);
        let widths: Vec<(&str, u64, u64)> = bar.parts.iter().map(|part| (part.class, part.from, part.width)).collect();
        // The 500 requirements that were not tried have no part.
        assert_eq!(widths, [("fail", 0, 8), ("inconclusive", 8, 99), ("pass", 107, 900)]);
        assert_eq!(bar.width, 1007);
    }
}
