//! Selects the cases of a run and their order.

use std::collections::BTreeSet;

use super::basics::BASIC;
use super::seed;
use crate::model::{CaseInfo, CaseKey, Tier, current_word};
use crate::script::{Suites, variants};

/// Selects cases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    words: Vec<String>,
    pub(super) tier: Tier,
    /// Only these keys.
    only: Option<BTreeSet<CaseKey>>,
    /// Only these cases, by id.
    cases: Option<BTreeSet<String>>,
    /// Id of the run that the keys in `only` come from.
    rerun_of: Option<String>,
    /// With `--shard`, the index of the part to run, from 0, and the number of parts.
    shard: Option<(usize, usize)>,
}

impl Filter {
    /// All cases of the default tier.
    #[must_use]
    pub fn everything() -> Self {
        Filter::default()
    }

    /// Selects the cases to which one of the words refers. Without words, selects all cases. A word
    /// is one of these:
    ///
    /// - a key (`mpa/7.1.1-key/wrong-octet[octet=3]`), which is selected in every tier
    /// - a case (`mpa/7.1.1-key/wrong-octet`)
    /// - the beginning of a case id up to a `/` (`mpa`, `mpa/7.1.1-key`)
    /// - a requirement (`MPA-7.1.1-2`)
    /// - a section with its subsections (`mpa/7.1`, `MPA-7.1`)
    /// - a tag (`startup`)
    #[must_use]
    pub fn of<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        let words = words.into_iter().map(|word| current_word(&word.into())).collect();
        Filter { words, ..Filter::default() }
    }

    /// Selects this tier instead of the default tier.
    #[must_use]
    pub fn tier(self, tier: Tier) -> Self {
        Filter { tier, ..self }
    }

    /// Restricts the selection to these keys, in every tier.
    #[must_use]
    pub fn only(self, keys: impl IntoIterator<Item = CaseKey>) -> Self {
        Filter { only: Some(keys.into_iter().collect()), ..self }
    }

    /// Restricts the selection to these keys, in every tier. The keys are from the run with the id
    /// `run`. The new run runs these cases again.
    #[must_use]
    pub fn rerun(self, run: &str, keys: impl IntoIterator<Item = CaseKey>) -> Self {
        Filter { rerun_of: Some(run.to_owned()), ..self.only(keys) }
    }

    /// Returns the id of the run whose cases are run again.
    #[must_use]
    pub fn rerun_of(&self) -> Option<&str> {
        self.rerun_of.as_deref()
    }

    /// Restricts the selection to these cases.
    pub(crate) fn within<'a>(self, cases: impl Iterator<Item = &'a str>) -> Self {
        Filter { cases: Some(cases.map(str::to_owned).collect()), ..self }
    }

    /// Restricts the selection to part `index`, counted from 0, of `of` parts. The parts do not
    /// overlap, and together they are the complete selection.
    #[must_use]
    pub fn shard(self, index: usize, of: usize) -> Self {
        Filter { shard: Some((index, of.max(1))), ..self }
    }

    /// Returns whether the words select this variant of a case.
    #[must_use]
    pub fn selects(&self, case: &CaseInfo, key: &CaseKey) -> bool {
        self.words.is_empty()
            || self.names(key)
            || self.words.iter().any(|word| {
                // `mpa/` means the same as `mpa`.
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

    /// Returns whether a word is exactly this key.
    fn names(&self, key: &CaseKey) -> bool {
        self.words.iter().any(|word| word.starts_with(&key.case) && *word == key.to_string())
    }
}

/// Returns whether the id of a case or of a requirement is in the section that `word` names. `word`
/// names the protocol and the section (`mpa/7.1`, `MPA-7.1`).
pub(crate) fn is_section_of(word: &str, id: &str) -> bool {
    word.ends_with(|last: char| last.is_ascii_digit())
        // The last part of a section begins with a digit. A name that only ends with a digit is not
        // a section.
        && word.rsplit(['/', '-']).next().is_some_and(|section| section.starts_with(|first: char| first.is_ascii_digit()))
        && id.strip_prefix(word).is_some_and(|rest| rest.starts_with(['-', '.']))
}

/// The plan of a run. The same suites, filter and seed give the same plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The cases that have a planned variant. The basic cases come first, sorted by id. The other
    /// cases follow, sorted by id.
    pub cases: Vec<CaseInfo>,
    /// The planned variants, in the order of `cases`. Variants of a case are sorted by the names
    /// and values of their parameters.
    pub keys: Vec<CaseKey>,
}

impl Plan {
    /// Returns the plan of what `filter` selects from `suites`. `seed` is the run's seed. If a tier
    /// has only some variants of a case, the seed selects them.
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

    /// Returns whether the plan lacks a variant that a run of all cases in the default tier has
    /// with this seed. A plan of all cases in a larger tier lacks nothing.
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
    use crate::model::Capability;

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

    /// If another case fails, the basic cases show whether a basic fault is the reason. So basic
    /// cases must also run on a target without CRC.
    #[test]
    fn basic_cases_come_before_all_others_and_need_no_crc() {
        let suites = Suites::embedded().unwrap();
        for tier in Tier::ALL {
            let plan = Plan::of(&suites, &Filter::everything().tier(tier), 7);
            let is_basic = |case: &CaseInfo| case.tags.iter().any(|tag| tag == "basic");
            let basic: Vec<&str> =
                plan.cases.iter().filter(|case| is_basic(case)).map(|case| case.id.as_str()).collect();
            for topic in ["length", "crc", "pad", "sizes"] {
                assert!(basic.contains(&format!("mpa/4-basic/{topic}").as_str()), "{tier}: {basic:?}");
            }
            let first = plan.keys.iter().take_while(|key| basic.contains(&key.case.as_str())).count();
            assert!(plan.keys.len() > first, "{tier}");
            assert!(plan.keys[first..].iter().all(|key| !basic.contains(&key.case.as_str())), "{tier}");
            for case in plan.cases.iter().filter(|case| is_basic(case)) {
                assert!(!case.capabilities.contains(&Capability::Crc), "{}", case.id);
            }
        }
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
