//! The level of a requirement (MUST, SHOULD, ...) and the severity of a violation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The level of a requirement: how strongly the specification requires the behaviour. Most levels
/// are keywords of RFC 2119.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    /// MUST.
    Must,
    /// MUST NOT.
    MustNot,
    /// REQUIRED.
    Required,
    /// The specification has a lower-case "must" or "shall", or a figure defines the requirement.
    MustLower,
    /// SHOULD, or a lower-case "should".
    Should,
    /// SHOULD NOT.
    ShouldNot,
    /// RECOMMENDED.
    Recommended,
    /// MAY, or a lower-case "may".
    May,
    /// OPTIONAL or NOT REQUIRED.
    Optional,
}

impl Level {
    /// Returns the severity of a violation. MAY and OPTIONAL cannot be violated, so the result is
    /// `None`.
    ///
    /// `fixes_format` matters only for [`Level::MustLower`]. If the requirement defines a wire
    /// format or a value, pass `true`: the requirement counts as a MUST. If the requirement
    /// describes a procedure, pass `false`: it counts as a SHOULD.
    #[must_use]
    pub fn severity(self, fixes_format: bool) -> Option<Severity> {
        match self {
            Level::Must | Level::MustNot | Level::Required => Some(Severity::Error),
            Level::MustLower if fixes_format => Some(Severity::Error),
            Level::MustLower | Level::Should | Level::ShouldNot | Level::Recommended => Some(Severity::Warning),
            Level::May | Level::Optional => None,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Must => "MUST",
            Level::MustNot => "MUST NOT",
            Level::Required => "REQUIRED",
            Level::MustLower => "must",
            Level::Should => "SHOULD",
            Level::ShouldNot => "SHOULD NOT",
            Level::Recommended => "RECOMMENDED",
            Level::May => "MAY",
            Level::Optional => "OPTIONAL",
        })
    }
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The behaviour is unusual, but violates no clear requirement. For example, it contradicts
    /// only an informative appendix, or only one interpretation of an ambiguous text.
    Note,
    /// A SHOULD is violated.
    Warning,
    /// A MUST is violated.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
