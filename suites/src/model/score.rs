//! How many requirements hold, by how strongly they bind.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;
use weft_core::requirement::{Level, Requirement};

use super::{CaseResult, Verdict};

/// How strongly a requirement binds: the nine levels of the catalogues as three.
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
    /// All of them, the strongest first.
    pub const ALL: [Strength; 3] = [Strength::Must, Strength::Should, Strength::May];

    /// That of a requirement. A proposal binds nobody.
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

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Strength::Must => "MUST",
            Strength::Should => "SHOULD",
            Strength::May => "MAY",
        }
    }
}

/// Is it of the e-mail of 2007 that proposed a peer-to-peer model? RFC 6581 took its place; the rows are for notes.
#[must_use]
pub fn is_proposal(requirement: &Requirement) -> bool {
    requirement.section.starts_with("mail.")
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Requirements by what the cases of a run say of them; of several verdicts the worst counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Seen to hold, and never to be broken.
    pub held: u64,
    /// Seen to be broken.
    pub broken: u64,
    /// Some case could not decide.
    pub undecided: u64,
    /// Not tried: another role, or something is missing.
    pub untried: u64,
}

impl Tally {
    /// So many more of that verdict.
    pub fn add(&mut self, verdict: Verdict, number: u64) {
        let count = match verdict {
            Verdict::Pass => &mut self.held,
            Verdict::Fail => &mut self.broken,
            Verdict::Inconclusive | Verdict::Error => &mut self.undecided,
            Verdict::NotApplicable | Verdict::Unimplemented => &mut self.untried,
        };
        *count += number;
    }

    /// Those that were tried.
    #[must_use]
    pub fn tried(&self) -> u64 {
        self.held + self.broken + self.undecided
    }
}

/// What a run came to, by requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// MUST and its kinds.
    pub must: Tally,
    /// SHOULD and its kinds.
    pub should: Tally,
    /// MAY and its kinds.
    pub may: Tally,
}

impl Score {
    /// What results say of requirements.
    pub(crate) fn of<'a>(results: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        let mut score = Score::default();
        for (requirement, verdict) in worst(results) {
            score.of_mut(Strength::of(requirement.row())).add(verdict, 1);
        }
        score
    }

    /// The part of one strength.
    pub fn of_mut(&mut self, strength: Strength) -> &mut Tally {
        match strength {
            Strength::Must => &mut self.must,
            Strength::Should => &mut self.should,
            Strength::May => &mut self.may,
        }
    }

    /// Its parts that something was tried of.
    pub fn parts(&self) -> impl Iterator<Item = (Strength, Tally)> {
        let parts = [(Strength::Must, self.must), (Strength::Should, self.should), (Strength::May, self.may)];
        parts.into_iter().filter(|(_, tally)| tally.tried() > 0)
    }
}

/// `41 of 45 MUST, 3 of 3 SHOULD`: of those that were tried.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (strength, tally)) in self.parts().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} of {} {strength}", tally.held, tally.tried())?;
        }
        Ok(())
    }
}

/// The requirements that results judge, each with the worst of its verdicts.
pub(crate) fn worst<'a>(results: impl IntoIterator<Item = &'a CaseResult>) -> BTreeMap<RequirementId, Verdict> {
    let mut worst: BTreeMap<RequirementId, Verdict> = BTreeMap::new();
    for judged in results.into_iter().flat_map(|result| &result.requirements) {
        let verdict = worst.entry(judged.requirement).or_insert(judged.verdict);
        *verdict = (*verdict).max(judged.verdict);
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
