//! The outcome of a case or of one of its requirements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::words;

/// The outcome of a case. The order is from best to worst, as in TTCN-3, so that the worst of
/// several verdicts is their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The target has another role, or lacks a capability that the case needs.
    NotApplicable,
    /// The target does not implement the subject of the case, which is allowed.
    Unimplemented,
    /// The wire shows that the requirement is met, and the target was alive before and after the
    /// stimulus.
    Pass,
    /// No observation decides the case, for example a time-out that no requirement is about, or an
    /// unreachable target.
    Inconclusive,
    /// The wire shows that a requirement is violated.
    Fail,
    /// The tester itself failed: a script error, no memory, no disk.
    Error,
}

words!(Verdict, all: "All verdicts, best first.", unknown: "unknown verdict {:?}", {
    NotApplicable => "not-applicable",
    Unimplemented => "unimplemented",
    Pass => "pass",
    Inconclusive => "inconclusive",
    Fail => "fail",
    Error => "error",
});

impl Verdict {
    /// Returns whether the target was exercised.
    #[must_use]
    pub fn has_run(self) -> bool {
        !matches!(self, Verdict::NotApplicable | Verdict::Unimplemented)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_the_maximum() {
        assert_eq!(Verdict::ALL.into_iter().max(), Some(Verdict::Error));
        assert!(Verdict::Fail > Verdict::Inconclusive && Verdict::Inconclusive > Verdict::Pass);
        assert!(Verdict::Pass > Verdict::Unimplemented);
    }

    #[test]
    fn words_are_those_of_json() {
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
            assert_eq!(verdict.as_str().parse(), Ok(verdict));
        }
    }
}
