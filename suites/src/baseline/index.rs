//! The parsed entries of a baseline and the results of a run, indexed by case. A run can have
//! thousands of failures, and its baseline thousands of entries. So each text is parsed once, and
//! an entry is compared only with the entries and the results of its case.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::BaselineEntry;
use super::scope::Scope;
use super::signature::Signature;
use crate::model::{CaseKey, CaseResult, Verdict, stable};

/// An entry with its parsed fields.
pub(super) struct ParsedEntry<'a> {
    pub(super) entry: &'a BaselineEntry,
    pub(super) scope: Scope<'a>,
    /// The signature as it is in the entry.
    signature: Signature,
    /// The signature without values that change from run to run.
    stable: Signature,
}

impl<'a> ParsedEntry<'a> {
    pub(super) fn of(entry: &'a BaselineEntry) -> Self {
        let (signature, stable) = (Signature::of(&entry.signature), Signature::of(&stable(&entry.signature)));
        ParsedEntry { entry, scope: Scope::of(&entry.case), signature, stable }
    }

    /// Returns whether the entry `earlier` expects every result that this entry expects.
    fn is_covered_by(&self, earlier: &ParsedEntry<'_>) -> bool {
        (earlier.entry.case == self.entry.case || earlier.scope.includes(&self.scope))
            && earlier.entry.outcome == self.entry.outcome
            && earlier.signature.expects(&self.signature, self.entry.outcome == Verdict::Pass)
    }

    /// Returns whether the entry expects a result that its scope names.
    pub(super) fn matches(&self, known: &KnownResult<'_>) -> bool {
        let (entry, result) = (self.entry, known.result);
        if entry.outcome != result.verdict || !self.scope.has_outcome(result, entry.outcome) {
            return false;
        }
        // A person may have copied the signature in the entry from a report. So the signature may
        // contain values of the reported run, and may end in the middle of a value.
        let words = result.actual.as_ref().unwrap_or(&result.explanation);
        // The signature of a pass has only ids. All of them must be known.
        self.stable.expects(known.signature(), entry.outcome == Verdict::Pass) || words.contains(&entry.signature)
    }
}

/// Entries that come earlier than others.
#[derive(Default)]
pub(super) struct EarlierEntries<'e, 'a> {
    /// The entries by their field `case`.
    by_case: BTreeMap<&'a str, Vec<&'e ParsedEntry<'a>>>,
    /// The entries for a folder or section.
    folders: Vec<&'e ParsedEntry<'a>>,
}

impl<'e, 'a> EarlierEntries<'e, 'a> {
    pub(super) fn add(&mut self, entry: &'e ParsedEntry<'a>) {
        self.by_case.entry(&entry.entry.case).or_default().push(entry);
        if matches!(entry.scope, Scope::Folder(_)) {
            self.folders.push(entry);
        }
    }

    /// Returns whether one of these entries expects every result that `entry` expects.
    pub(super) fn covers(&self, entry: &ParsedEntry<'_>) -> bool {
        let same = self.by_case.get(entry.entry.case.as_str());
        // An entry for a case includes the entries for its variants.
        let case = match &entry.scope {
            Scope::Variant { case, .. } => self.by_case.get(*case),
            Scope::Case(_) | Scope::Folder(_) | Scope::Requirement(_) => None,
        };
        same.into_iter().chain(case).flatten().chain(&self.folders).any(|earlier| entry.is_covered_by(earlier))
    }
}

/// A result whose signature is made when it is needed.
pub(super) struct KnownResult<'r> {
    pub(super) result: &'r CaseResult,
    signature: OnceCell<Signature>,
}

impl KnownResult<'_> {
    fn signature(&self) -> &Signature {
        self.signature.get_or_init(|| Signature::of(&self.result.signature()))
    }
}

/// The results of a run.
pub(super) struct KnownResults<'r> {
    pub(super) all: Vec<KnownResult<'r>>,
    /// Indexes of the results of each case.
    by_case: BTreeMap<&'r str, Vec<usize>>,
    /// Indexes of the results of each variant.
    by_key: BTreeMap<&'r CaseKey, Vec<usize>>,
}

impl<'r> KnownResults<'r> {
    pub(super) fn of(results: &'r [CaseResult]) -> Self {
        let mut by_case: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut by_key: BTreeMap<&CaseKey, Vec<usize>> = BTreeMap::new();
        for (index, result) in results.iter().enumerate() {
            by_case.entry(&result.key.case).or_default().push(index);
            by_key.entry(&result.key).or_default().push(index);
        }
        let all = results.iter().map(|result| KnownResult { result, signature: OnceCell::new() }).collect();
        KnownResults { all, by_case, by_key }
    }

    /// Returns whether there is a result of this variant.
    pub(super) fn has(&self, key: &CaseKey) -> bool {
        self.by_key.contains_key(key)
    }

    /// Returns the results that an entry with this scope names, in the order of the run.
    pub(super) fn named_by(&self, scope: &Scope<'_>) -> Vec<&KnownResult<'r>> {
        let indexes = match scope {
            Scope::Variant { key, .. } => key.as_ref().and_then(|key| self.by_key.get(key)),
            Scope::Case(id) => self.by_case.get(*id),
            Scope::Folder(_) | Scope::Requirement(_) => {
                return self.all.iter().filter(|known| scope.names(known.result)).collect();
            }
        };
        indexes.into_iter().flatten().map(|index| &self.all[*index]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(case: &str, signature: &str) -> BaselineEntry {
        let (case, signature) = (case.to_owned(), signature.to_owned());
        BaselineEntry { case, outcome: Verdict::Fail, signature, reason: "known".to_owned(), link: None }
    }

    #[test]
    fn an_entry_is_covered_by_an_earlier_entry_with_its_results_and_signature() {
        let variant = "mpa/7.1.1-key/wrong-octet[octet=3]";
        let covers = |earlier: &str, signature: &str| {
            let (earlier, later) = (entry(earlier, "MPA-7.1.1-2"), entry(variant, signature));
            let parsed = ParsedEntry::of(&earlier);
            let mut index = EarlierEntries::default();
            index.add(&parsed);
            index.covers(&ParsedEntry::of(&later))
        };
        for earlier in [variant, "mpa/7.1.1-key/wrong-octet", "mpa/7.1.1-key/*", "mpa/7/*"] {
            assert!(covers(earlier, "MPA-7.1.1-2: it sent"), "{earlier}");
            assert!(!covers(earlier, "MPA-7.1.1-3"), "{earlier}");
        }
        for earlier in ["mpa/7.1.1-key/wrong-octet[octet=4]", "mpa/7.1.1-key/no-more", "rdmap/*"] {
            assert!(!covers(earlier, "MPA-7.1.1-2"), "{earlier}");
        }
    }
}
