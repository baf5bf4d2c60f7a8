//! How many variants of the cases are run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::words;

/// A tier of the suites. Each tier includes the variants of the previous tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// A few variants of each case, to show whether the target is worth a longer run.
    Smoke,
    /// Enough variants that any two values of different parameters occur together at least once.
    #[default]
    Default,
    /// Every variant.
    Full,
}

words!(Tier, all: "All tiers, smallest first.", unknown: "unknown tier {:?}; expected `smoke`, `default` or `full`", {
    Smoke => "smoke",
    Default => "default",
    Full => "full",
});
