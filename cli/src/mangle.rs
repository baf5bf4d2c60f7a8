//! Seeded chaos in what this side sends: `--mangle` and `--seed` of the commands that speak.

use weft_peer::driver::device::random_seed;
use weft_peer::hostile::mangle::{Mangling, Plan};

use crate::exit::note;

/// What is mangled.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Chaos")]
pub(crate) struct MangleArguments {
    /// Mangle what this side sends: words with commas between them, `=N` behind one for once in N PDUs or writes, `@N` for the
    /// Nth alone, of which the start-up frame is the first. Words: flip bits,
    /// edge (a field at the edge of its range), truncate, duplicate, insert octets; mutate for these five; reorder writes, cut them,
    /// delay them; half-close, reset within a write; all
    #[arg(long, value_name = "WORD[=N|@N],...")]
    mangle: Option<Plan>,
    /// The same seed mangles the same traffic in the same way; the second connection has the next seed, and so on. Without
    /// --mangle: all [default: any, which is printed]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

impl MangleArguments {
    /// What is to be done, told on standard error; none when nothing is.
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
