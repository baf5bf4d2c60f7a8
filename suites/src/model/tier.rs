//! How many variants of the cases are run, and what each may use.

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

/// The limits of one case. They keep the memory and the time of a run bounded. A target file can
/// set most of them (`[limits]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CaseLimits {
    /// Maximum number of connections.
    pub(crate) connections: usize,
    /// Maximum number of steps that the transcript keeps.
    pub(crate) steps: usize,
    /// Maximum number of bytes that the tester sends.
    pub(crate) sent: usize,
    /// Maximum number of bytes that the target sends.
    pub(crate) received: usize,
    /// Number of bytes that the traffic log keeps. The evidence is written from them.
    pub(crate) traffic: usize,
    /// Factor for the time, the memory and the number of instructions of the script.
    pub(crate) script: u32,
    /// Time limit of the script in seconds, in place of the usual time limit times `script`.
    pub(crate) seconds: Option<u32>,
}

impl Tier {
    /// The limits of each case in a run of this tier.
    pub(crate) const fn limits(self) -> CaseLimits {
        let factor: u32 = match self {
            Tier::Smoke | Tier::Default => 1,
            Tier::Full => 4,
        };
        CaseLimits {
            connections: 4000 * factor as usize,
            steps: 50_000 * factor as usize,
            sent: (64 << 20) * factor as usize,
            received: (16 << 20) * factor as usize,
            traffic: (64 << 20) * factor as usize,
            script: factor,
            seconds: None,
        }
    }
}
