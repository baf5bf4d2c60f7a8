//! Which cases are run, in which order.

use std::collections::BTreeSet;

use super::basics::BASIC;
use super::seed;
use crate::model::{CaseInfo, CaseKey, Tier, current_word};
use crate::script::{Suites, variants};

/// Selects cases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    words: Vec<String>,
    tier: Tier,
    /// Only these keys.
    only: Option<BTreeSet<CaseKey>>,
    /// Only these cases, by id.
    cases: Option<BTreeSet<String>>,
    /// The run that the keys in `only` are from.
    rerun_of: Option<String>,
    /// Index from 0, and how many.
    shard: Option<(usize, usize)>,
}

impl Filter {
    /// All cases of the default tier.
    #[must_use]
    pub fn everything() -> Self {
        Filter::default()
    }

    /// The cases that one of the words names; with no words, all. A word is a key
    /// (`mpa/7.1.1-key/wrong-octet[octet=3]`), a case (`mpa/7.1.1-key/wrong-octet`), the begin of
    /// one up to a `/` (`mpa`, `mpa/7.1.1-key`), a requirement (`MPA-7.1.1-2`), a section with
    /// those in it (`mpa/7.1`, `MPA-7.1`) or a tag (`startup`). A key is selected whatever the
    /// tier.
    #[must_use]
    pub fn of<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        let words = words.into_iter().map(|word| current_word(&word.into())).collect();
        Filter { words, ..Filter::default() }
    }

    /// Another tier than the default one.
    #[must_use]
    pub fn tier(self, tier: Tier) -> Self {
        Filter { tier, ..self }
    }

    /// Of what is selected, only these, whatever the tier.
    #[must_use]
    pub fn only(self, keys: impl IntoIterator<Item = CaseKey>) -> Self {
        Filter { only: Some(keys.into_iter().collect()), ..self }
    }

    /// Of what is selected, only these, whatever the tier: cases of the run with this id, which are
    /// run again.
    #[must_use]
    pub fn rerun(self, run: &str, keys: impl IntoIterator<Item = CaseKey>) -> Self {
        Filter { rerun_of: Some(run.to_owned()), ..self.only(keys) }
    }

    /// The run whose cases are run again.
    pub(super) fn rerun_of(&self) -> Option<&str> {
        self.rerun_of.as_deref()
    }

    /// Of what is selected, only what these cases have.
    pub(crate) fn within<'a>(self, cases: impl Iterator<Item = &'a str>) -> Self {
        Filter { cases: Some(cases.map(str::to_owned).collect()), ..self }
    }

    /// Part `index`, counted from 0, of `of` parts, into which the complete selection falls without
    /// overlap.
    #[must_use]
    pub fn shard(self, index: usize, of: usize) -> Self {
        Filter { shard: Some((index, of.max(1))), ..self }
    }

    /// Is this choice of a case's parameters selected by its words?
    #[must_use]
    pub fn selects(&self, case: &CaseInfo, key: &CaseKey) -> bool {
        self.words.is_empty()
            || self.names(key)
            || self.words.iter().any(|word| {
                // `mpa/` is as good as `mpa`.
                let folder = word.strip_suffix('/').unwrap_or(word);
                let begins = case.id.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
                begins
                    || *word == case.id
                    || case.tags.contains(word)
                    || is_section_of(word, &case.id)
                    || case
                        .requirements
                        .iter()
                        .map(|requirement| requirement.as_str())
                        .any(|id| id == word || is_section_of(word, id))
            })
    }

    /// Does a word select exactly this?
    fn names(&self, key: &CaseKey) -> bool {
        self.words.iter().any(|word| word.starts_with(&key.case) && *word == key.to_string())
    }
}

/// Is `id`, of a case or a requirement, in the section that `word` names with the protocol
/// (`mpa/7.1`, `MPA-7.1`)?
fn is_section_of(word: &str, id: &str) -> bool {
    word.ends_with(|last: char| last.is_ascii_digit())
        // Not the number of a requirement or the name of a protocol: `RDMAP-5.2-1`, `mpa-p2p`.
        && word.rsplit(['/', '-']).next().is_some_and(|section| section.starts_with(|first: char| first.is_ascii_digit()))
        && id.strip_prefix(word).is_some_and(|rest| rest.starts_with(['-', '.']))
}

/// The plan of a run: the same suites, filter and seed give the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The cases of which something is run: the basic ones, then the others, each by id.
    pub cases: Vec<CaseInfo>,
    /// In this order: cases as above, their parameters in the order of names and values.
    pub keys: Vec<CaseKey>,
}

impl Plan {
    /// What `filter` selects of `suites`; `seed` is the run's, from which samples follow.
    #[must_use]
    pub fn of(suites: &Suites, filter: &Filter, seed: u64) -> Self {
        let mut plan = Plan::default();
        let mut position = 0;
        let within = |case: &&CaseInfo| filter.cases.as_ref().is_none_or(|cases| cases.contains(&case.id));
        let is_basic = |case: &&CaseInfo| case.tags.iter().any(|tag| tag == BASIC);
        let (basic, others): (Vec<_>, Vec<_>) = suites.cases().filter(within).partition(is_basic);
        for case in basic.into_iter().chain(others) {
            let before = plan.keys.len();
            let case_seed = seed::of_case(seed, &CaseKey::new(&case.id));
            let in_tier: BTreeSet<CaseKey> = suites.chosen(&case.id, filter.tier, case_seed).into_iter().collect();
            for key in variants(case) {
                let wanted = match &filter.only {
                    Some(only) => only.contains(&key),
                    None => in_tier.contains(&key) || filter.names(&key),
                };
                if !wanted || !filter.selects(case, &key) {
                    continue;
                }
                if filter.shard.is_none_or(|(index, of)| position % of == index) {
                    plan.keys.push(key);
                }
                position += 1;
            }
            if plan.keys.len() > before {
                plan.cases.push(case.clone());
            }
        }
        plan
    }

    /// Does it leave out something that a run of all cases with this seed has? A run of more than
    /// the default tier leaves out nothing.
    pub(super) fn is_selection(&self, suites: &Suites, seed: u64) -> bool {
        let planned: BTreeSet<&CaseKey> = self.keys.iter().collect();
        suites.cases().any(|case| {
            let in_tier = suites.chosen(&case.id, Tier::default(), seed::of_case(seed, &CaseKey::new(&case.id)));
            in_tier.iter().any(|key| !planned.contains(key))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = "mpa/7.1.1-key/wrong-octet";

    fn keys(filter: &Filter) -> Vec<CaseKey> {
        Plan::of(&Suites::embedded().unwrap(), filter, 7).keys
    }

    #[test]
    fn words_select() {
        let count = |word: &str| keys(&Filter::of([word])).iter().filter(|key| key.case == CASE).count();
        let complete = ["mpa", "mpa/", "mpa/7.1.1-key", "mpa/7.1.1-key/wrong-octet", "MPA-7.1.1-2", "startup"];
        for word in complete.into_iter().chain(["mpa/7", "mpa/7.1", "mpa/7.1.1", "MPA-7.1", "MPA-7.1.1"]) {
            assert_eq!(count(word), 16, "{word}");
        }
        assert_eq!(count("mpa/7.1.1-key/wrong-octet[octet=3]"), 1);
        for word in [
            "mp",
            "mpa/7.",
            "mpa/7.1.",
            "MPA",
            "MPA-7.1.1-",
            "mpa/8",
            "7.1.1",
            "mpa/7.1.1-key/wrong-octet[octet=16]",
            "",
        ] {
            assert_eq!(count(word), 0, "{word}");
        }
        assert!(keys(&Filter::everything()).len() >= 16);
    }

    #[test]
    fn a_smaller_tier_holds_less_but_what_is_named_exactly() {
        let smoke = keys(&Filter::of([CASE]).tier(Tier::Smoke));
        let full = keys(&Filter::of([CASE]).tier(Tier::Full));
        assert!(!smoke.is_empty() && smoke.len() < full.len() && smoke.iter().all(|key| full.contains(key)));
        for key in &full {
            assert_eq!(keys(&Filter::of([key.to_string()]).tier(Tier::Smoke)), std::slice::from_ref(key));
        }
        assert_eq!(keys(&Filter::everything().only([full[5].clone()])), [full[5].clone()]);
    }

    #[test]
    fn only_a_plan_with_all_of_the_default_tier_is_no_selection() {
        let suites = Suites::embedded().unwrap();
        let is_selection = |filter: Filter| Plan::of(&suites, &filter, 7).is_selection(&suites, 7);
        let all = keys(&Filter::everything());
        for complete in [
            Filter::everything(),
            Filter::everything().tier(Tier::Full),
            Filter::everything().shard(0, 1),
            Filter::everything().rerun("a run", all.iter().cloned()),
        ] {
            assert!(!is_selection(complete.clone()), "{complete:?}");
        }
        for part in [
            Filter::of(["mpa"]),
            Filter::everything().tier(Tier::Smoke),
            Filter::everything().shard(0, 2),
            Filter::everything().rerun("a run", all.iter().skip(1).cloned()),
        ] {
            assert!(is_selection(part));
        }
    }

    #[test]
    fn shards_are_the_complete_without_overlap() {
        let complete = keys(&Filter::everything());
        let mut parts: Vec<CaseKey> = (0..3).flat_map(|index| keys(&Filter::everything().shard(index, 3))).collect();
        assert_eq!(parts.len(), complete.len());
        parts.sort_by_key(|key| complete.iter().position(|other| other == key));
        assert_eq!(parts, complete);
    }
}
