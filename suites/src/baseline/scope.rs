//! The results that the field `case` of an entry names: those of a variant, of a case, of a folder
//! or section of cases (`mpa/7.1/*`), or those that judge a requirement
//! (`requirement:MPA-7.1.1-2`).

use weft_core::RequirementId;

use crate::model::{CaseInfo, CaseKey, CaseResult, ParameterValue, Verdict};
use crate::run::is_section_of;
use crate::script::{Suites, variants};

/// The begin of an entry for a requirement.
const REQUIREMENT: &str = "requirement:";
/// The end of an entry for a folder or section of cases.
const ALL_OF: &str = "/*";

/// The results that an entry names.
pub(super) enum Scope<'a> {
    /// One variant. The key is `None` if the text is not spelled like a variant.
    Variant { case: &'a str, key: Option<CaseKey> },
    /// All variants of a case.
    Case(&'a str),
    /// All cases whose ids begin with this folder, or that are in this section or in one of its
    /// subsections.
    Folder(&'a str),
    /// The results that judge a requirement, and those in which the monitor observed a violation of
    /// the requirement. `None` if there is no such requirement.
    Requirement(Option<RequirementId>),
}

impl<'a> Scope<'a> {
    /// Parses the field `case` of an entry.
    pub(super) fn of(text: &'a str) -> Self {
        if let Some(id) = text.strip_prefix(REQUIREMENT) {
            return Scope::Requirement(id.parse().ok());
        }
        if let Some(folder) = text.strip_suffix(ALL_OF) {
            return Scope::Folder(folder);
        }
        match text.split_once('[') {
            Some((case, _)) => Scope::Variant { case, key: text.parse().ok() },
            None => Scope::Case(text),
        }
    }

    /// Returns whether the entry can name several cases.
    pub(super) fn is_group(&self) -> bool {
        matches!(self, Scope::Folder(_) | Scope::Requirement(_))
    }

    /// Returns whether the entry names this result.
    pub(super) fn names(&self, result: &CaseResult) -> bool {
        match self {
            Scope::Variant { key, .. } => key.as_ref() == Some(&result.key),
            Scope::Case(id) => *id == result.key.case,
            Scope::Folder(folder) => is_below(folder, &result.key.case),
            Scope::Requirement(id) => result.requirements.iter().any(|judged| Some(judged.requirement) == *id),
        }
    }

    /// Returns whether the requirement of the entry has the outcome in this result. An entry for a
    /// pass is about a violation that was also observed. Any other entry is about the result alone.
    pub(super) fn has_outcome(&self, result: &CaseResult, outcome: Verdict) -> bool {
        let Scope::Requirement(id) = self else { return true };
        let wanted = if outcome == Verdict::Pass { Verdict::Fail } else { outcome };
        result.requirements.iter().any(|judged| Some(judged.requirement) == *id && judged.verdict == wanted)
    }

    /// Returns whether this scope has every result that `other` has.
    pub(super) fn includes(&self, other: &Scope<'_>) -> bool {
        match (self, other) {
            (Scope::Case(id), Scope::Case(case) | Scope::Variant { case, .. }) => id == case,
            (Scope::Folder(folder), Scope::Case(id) | Scope::Variant { case: id, .. }) => is_below(folder, id),
            (Scope::Folder(folder), Scope::Folder(inner)) => folder == inner || is_below(folder, inner),
            _ => false,
        }
    }

    /// Returns the reason why the suites can have no result in this scope, if there is one.
    pub(super) fn lack(&self, suites: &Suites) -> Option<&'static str> {
        match self {
            Scope::Requirement(id) => id.is_none().then_some("there is no such requirement"),
            _ if self.cases(suites).next().is_none() => {
                Some(if self.is_group() { "no case has an id that begins so" } else { "there is no such case" })
            }
            Scope::Variant { key, .. } => {
                let is_there = key.as_ref().is_some_and(|key| self.cases(suites).any(|info| has_variant(info, key)));
                (!is_there).then_some("the case has no such variant")
            }
            Scope::Case(_) | Scope::Folder(_) => None,
        }
    }

    /// Returns every variant in the scope.
    pub(super) fn variants(&self, suites: &Suites) -> Vec<CaseKey> {
        match self {
            Scope::Variant { key, .. } => key.iter().cloned().collect(),
            _ => self.cases(suites).flat_map(variants).collect(),
        }
    }

    /// Returns the cases in the scope. For a requirement, these are the cases that judge it.
    fn cases<'s>(&'s self, suites: &'s Suites) -> impl Iterator<Item = &'s CaseInfo> {
        suites.cases().filter(move |info| match self {
            Scope::Variant { case: id, .. } | Scope::Case(id) => *id == info.id,
            Scope::Folder(folder) => is_below(folder, &info.id),
            Scope::Requirement(id) => id.is_some_and(|id| info.requirements.contains(&id)),
        })
    }
}

/// Returns whether `key` is one of the [`variants`] of the case, without making all of them.
fn has_variant(info: &CaseInfo, key: &CaseKey) -> bool {
    let has_value = |(name, values): (&String, &Vec<ParameterValue>)| {
        key.parameters.get(name).is_some_and(|value| values.contains(value))
    };
    key.case == info.id && key.parameters.len() == info.parameters.len() && info.parameters.iter().all(has_value)
}

/// Returns whether the id of a case or folder is in a folder (`mpa/7.1.1-key`) or section
/// (`mpa/7.1`).
fn is_below(folder: &str, id: &str) -> bool {
    id.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')) || is_section_of(folder, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = "mpa/7.1.1-key/wrong-octet";

    #[test]
    fn a_folder_or_section_has_its_cases() {
        let suites = Suites::embedded().unwrap();
        for text in ["mpa/*", "mpa/7/*", "mpa/7.1/*", "mpa/7.1.1-key/*", "requirement:MPA-7.1.1-2", CASE] {
            let scope = Scope::of(text);
            assert!(scope.variants(&suites).iter().any(|key| key.case == CASE), "{text}");
            assert_eq!(scope.lack(&suites), None, "{text}");
        }
        for text in ["mp/*", "mpa/8/*", "mpa/7.1.1-ke/*", "/*", "requirement:MPA-9.9-9", "mpa/7.1.1-key"] {
            let scope = Scope::of(text);
            assert!(scope.variants(&suites).iter().all(|key| key.case != CASE), "{text}");
        }
        for (text, why) in [
            ("mpa/none/*", "no case has an id that begins so"),
            ("requirement:MPA-9.9-9", "there is no such requirement"),
            ("mpa/7.1.1-key", "there is no such case"),
            ("mpa/7.1.1-key/wrong-octet[octet=16]", "the case has no such variant"),
            ("mpa/7.1.1-key/wrong-octet[octet", "the case has no such variant"),
            ("mpa/7.1.1-key/wrong-octet[place=3]", "the case has no such variant"),
            ("mpa/7.1.1-key/wrong-octet[octet=3,place=3]", "the case has no such variant"),
        ] {
            assert_eq!(Scope::of(text).lack(&suites), Some(why), "{text}");
        }
    }

    #[test]
    fn a_larger_scope_includes_a_smaller_one() {
        let includes = |one: &str, other: &str| Scope::of(one).includes(&Scope::of(other));
        for other in ["mpa/7.1.1-key/wrong-octet[octet=3]", CASE, "mpa/7.1.1-key/*", "mpa/7.1/*"] {
            assert!(includes("mpa/7/*", other), "{other}");
            assert!(!includes("rdmap/*", other) && !includes("requirement:MPA-7.1.1-2", other), "{other}");
        }
        assert!(includes(CASE, "mpa/7.1.1-key/wrong-octet[octet=3]"));
        assert!(!includes("mpa/7.1/*", "mpa/*") && !includes("mpa/7.1.1-key/wrong-octet[octet=3]", CASE));
    }
}
