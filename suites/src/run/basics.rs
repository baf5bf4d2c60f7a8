//! Basic cases: other cases depend on the behaviour that basic cases test.

use std::sync::{Mutex, PoisonError};

use crate::model::{CaseResult, Verdict};
use crate::script::SuiteCase;

/// Tag of the basic cases. They run first, because other cases depend on them.
pub(super) const BASIC: &str = "basic";
/// Maximum number of basic cases that an explanation names.
const MAX_NAMED: usize = 3;

/// The basic cases of this run that failed.
#[derive(Debug, Default)]
pub(super) struct Basics(Mutex<Vec<String>>);

impl Basics {
    /// Remembers the case if it is a basic case and failed.
    pub(super) fn note(&self, case: &SuiteCase, result: &CaseResult) {
        if result.verdict == Verdict::Fail && case.info.tags.iter().any(|tag| tag == BASIC) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(result.key.to_string());
        }
    }

    /// Returns whether a basic case failed.
    pub(super) fn has_failed(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns a sentence about the failed basic cases, for a case that is inconclusive. The
    /// sentence is empty if no basic case failed.
    pub(super) fn named(&self) -> String {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match failed.len() {
            0 => String::new(),
            1 => format!(" The basic case {} failed.", failed[0]),
            number if number <= MAX_NAMED => format!(" The basic cases {} failed.", failed.join(", ")),
            number => format!(" {number} basic cases failed, among them {}.", failed[..MAX_NAMED].join(", ")),
        }
    }
}
