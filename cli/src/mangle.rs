//! Seeded chaos in the traffic of this side: `--mangle` and `--seed` of the commands with an
//! endpoint.

use weft_peer::driver::device::random_seed;
use weft_peer::hostile::mangle::{Mangling, Plan};

use crate::exit::note;

/// The mangling of this side's traffic.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Chaos")]
pub(crate) struct MangleArguments {
    /// Mangle the traffic of this side
    ///
    /// The value is a list of words, separated by commas. `WORD=N` mangles one in N PDUs or writes;
    /// `WORD@N` mangles only the Nth one, of which the start-up frame is the first.
    ///
    /// Words: flip (bits), edge (set a field to the edge of its range), truncate, duplicate, insert
    /// (bytes), mutate (all of these five), reorder, cut, delay (writes), half-close, reset (within
    /// a write), all.
    #[arg(long, value_name = "WORD[=N|@N],...")]
    mangle: Option<Plan>,
    /// Mangle the same traffic in the same way in each run [default: any, printed]
    ///
    /// The second connection uses the next seed, and so on. Without --mangle, the seed implies
    /// `--mangle all`.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

impl MangleArguments {
    /// Returns the mangling to apply and prints it to standard error; `None` if there is none.
    pub(crate) fn mangling(&self) -> Option<Mangling> {
        if self.mangle.is_none() && self.seed.is_none() {
            return None;
        }
        let plan = self.mangle.clone().unwrap_or_else(Plan::all);
        let seed = self.seed.unwrap_or_else(random_seed);
        note(&format!("mangling: --mangle {plan} --seed {seed}"));
        Some(Mangling::new(plan, seed))
    }
}
