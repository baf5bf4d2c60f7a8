//! How many variants of a case each tier runs. A variant sets each parameter of the case to one
//! value. A tier (smoke, default or full) is a size of a run.

use std::fmt;

use crate::model::Tier;

/// How the values of parameters are combined into variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Every variant.
    All,
    /// Enough variants that any two values of different parameters occur together at least once.
    Pairwise,
    /// This number of variants, or all if there are fewer.
    Sample(usize),
}

/// The tiers of a case, and how each combines the values of its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Combination {
    /// The smallest tier that the case is in.
    pub(crate) from: Tier,
    pub(crate) smoke: Strategy,
    pub(crate) default: Strategy,
    pub(crate) full: Strategy,
}

impl Default for Combination {
    fn default() -> Self {
        Combination { from: Tier::Smoke, smoke: Strategy::Sample(2), default: Strategy::Pairwise, full: Strategy::All }
    }
}

impl Combination {
    /// Returns how a tier combines values. `None` if the case is not in the tier.
    pub(crate) fn of(&self, tier: Tier) -> Option<Strategy> {
        let strategy = match tier {
            Tier::Smoke => self.smoke,
            Tier::Default => self.default,
            Tier::Full => self.full,
        };
        (tier >= self.from).then_some(strategy)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::All => f.write_str("all"),
            Strategy::Pairwise => f.write_str("pairwise"),
            Strategy::Sample(count) => write!(f, "a sample of {count}"),
        }
    }
}
