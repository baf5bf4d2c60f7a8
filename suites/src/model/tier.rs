//! How many variants of the cases are run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tier of the suites. Each tier includes the variants of the previous tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// A few variants of each case, to show whether the target is worth a longer run.
    Smoke,
    /// Enough variants that every pair of values of two parameters occurs.
    #[default]
    Default,
    /// Every variant.
    Full,
}

impl Tier {
    /// All tiers, smallest first.
    pub const ALL: [Tier; 3] = [Tier::Smoke, Tier::Default, Tier::Full];

    /// Name of the tier.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Smoke => "smoke",
            Tier::Default => "default",
            Tier::Full => "full",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Tier {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        let known = Tier::ALL.into_iter().find(|tier| tier.as_str() == word);
        known.ok_or_else(|| format!("no tier is called {word:?}; expected smoke, default or full"))
    }
}
