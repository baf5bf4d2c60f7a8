//! How strongly a requirement binds, and how loudly a breach of it is reported.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The level of a row, as its specification words it (RFC 2119, and lower-case or figure content).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    /// MUST.
    Must,
    /// MUST NOT.
    MustNot,
    /// REQUIRED.
    Required,
    /// Lower-case "must", "shall", or the content of a figure.
    MustLower,
    /// SHOULD.
    Should,
    /// SHOULD NOT.
    ShouldNot,
    /// RECOMMENDED.
    Recommended,
    /// MAY.
    May,
    /// OPTIONAL, NOT REQUIRED.
    Optional,
}

impl Level {
    /// The severity of a finding against a row of this level; `None` where a breach is no finding
    /// at all.
    ///
    /// `fixes_format` is whether a lower-case row fixes a wire format or a value (then it binds
    /// like a MUST) or a manner (then like a SHOULD). It changes nothing for the other levels.
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

/// How loudly a finding is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// An oddity worth knowing: a chosen reading, an informative appendix.
    Note,
    /// A SHOULD that is not followed.
    Warning,
    /// A MUST that is broken.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}
