//! Numbers of met and violated requirements, by strength.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;
use weft_core::requirement::{Level, Requirement};

use super::{CaseResult, Verdict};

/// How strongly a requirement binds. The three strengths group the nine levels of the catalogues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Strength {
    /// MUST, MUST NOT, REQUIRED, and the lower-case "must".
    Must,
    /// SHOULD, SHOULD NOT, RECOMMENDED.
    Should,
    /// MAY, OPTIONAL.
    May,
}

impl Strength {
    /// All strengths, strongest first.
    pub const ALL: [Strength; 3] = [Strength::Must, Strength::Should, Strength::May];

    /// Returns the strength of a requirement. A proposal counts as MAY.
    #[must_use]
    pub fn of(requirement: &Requirement) -> Self {
        if is_proposal(requirement) {
            return Strength::May;
        }
        match requirement.level {
            Level::Must | Level::MustNot | Level::Required | Level::MustLower => Strength::Must,
            Level::Should | Level::ShouldNot | Level::Recommended => Strength::Should,
            Level::May | Level::Optional => Strength::May,
        }
    }

    /// Name of the strength.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Strength::Must => "MUST",
            Strength::Should => "SHOULD",
            Strength::May => "MAY",
        }
    }
}

/// Returns whether the requirement is from the e-mail of 2007 that proposed a peer-to-peer model.
/// RFC 6581 replaced the proposal, so a violation only causes a note.
#[must_use]
pub fn is_proposal(requirement: &Requirement) -> bool {
    requirement.section.starts_with("mail.")
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Numbers of requirements by verdict. If a requirement has several verdicts, a violation counts,
/// and otherwise the worst verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Requirements that passed in each case that tried them.
    #[serde(rename = "held")]
    pub met: u64,
    /// Requirements that were observed to be violated.
    #[serde(rename = "broken")]
    pub violated: u64,
    /// Requirements whose worst verdict is inconclusive or an error.
    pub undecided: u64,
    /// Requirements that were not tried: the target has another role, lacks a capability, or does
    /// not implement an optional function.
    #[serde(rename = "untried")]
    pub not_tried: u64,
}

impl Tally {
    /// Adds `number` requirements with this verdict.
    pub fn add(&mut self, verdict: Verdict, number: u64) {
        let count = match verdict {
            Verdict::Pass => &mut self.met,
            Verdict::Fail => &mut self.violated,
            Verdict::Inconclusive | Verdict::Error => &mut self.undecided,
            Verdict::NotApplicable | Verdict::Unimplemented => &mut self.not_tried,
        };
        *count += number;
    }

    /// Returns the number of tried requirements.
    #[must_use]
    pub fn tried(&self) -> u64 {
        self.met + self.violated + self.undecided
    }
}

/// The result of a run, by strength of the requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// Requirements of strength MUST.
    pub must: Tally,
    /// Requirements of strength SHOULD.
    pub should: Tally,
    /// Requirements of strength MAY.
    pub may: Tally,
}

impl Score {
    /// Counts the requirements that the results judge.
    pub(crate) fn of<'a>(results: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        let mut score = Score::default();
        for (requirement, verdict) in worst(results) {
            score.of_mut(Strength::of(requirement.row())).add(verdict, 1);
        }
        score
    }

    /// Returns the tally of one strength.
    pub fn of_mut(&mut self, strength: Strength) -> &mut Tally {
        match strength {
            Strength::Must => &mut self.must,
            Strength::Should => &mut self.should,
            Strength::May => &mut self.may,
        }
    }

    /// Returns the tallies that count at least one tried requirement.
    pub fn parts(&self) -> impl Iterator<Item = (Strength, Tally)> {
        let parts = [(Strength::Must, self.must), (Strength::Should, self.should), (Strength::May, self.may)];
        parts.into_iter().filter(|(_, tally)| tally.tried() > 0)
    }
}

/// The numbers of met and tried requirements, for example `41 of 45 MUST, 3 of 3 SHOULD`.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (strength, tally)) in self.parts().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} of {} {strength}", tally.met, tally.tried())?;
        }
        Ok(())
    }
}

/// Returns the requirements that the results judge, each with its worst verdict. A violation counts
/// more than an error, because the error of another case does not disprove it.
pub(crate) fn worst<'a>(results: impl IntoIterator<Item = &'a CaseResult>) -> BTreeMap<RequirementId, Verdict> {
    let mut worst: BTreeMap<RequirementId, Verdict> = BTreeMap::new();
    for judged in results.into_iter().flat_map(|result| &result.requirements) {
        let verdict = worst.entry(judged.requirement).or_insert(judged.verdict);
        *verdict = match (*verdict, judged.verdict) {
            (Verdict::Fail, _) | (_, Verdict::Fail) => Verdict::Fail,
            (one, other) => one.max(other),
        };
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::requirement;

    #[test]
    fn a_proposal_binds_nobody() {
        assert_eq!(Strength::of(requirement!("P2P-9.2-9").row()), Strength::Must);
        assert_eq!(Strength::of(requirement!("P2P-mail.6-1").row()), Strength::May);
    }
}
