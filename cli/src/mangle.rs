//! Implements `--mangle` and `--seed`. With these options, a command damages the traffic that it
//! sends. The same seed damages the same traffic in the same way.

use weft_peer::driver::device::random_seed;
use weft_peer::hostile::mangle::{Mangling, Plan};

use crate::exit::note;

/// How to damage the traffic that this side sends.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Damaged traffic")]
pub(crate) struct MangleArguments {
    /// Damage the traffic that this side sends, for example with `flip=50,reset@9`
    ///
    /// The value is a list of words, separated by commas. Each word is a kind of damage. `WORD=N`
    /// damages, on average, one of N PDUs or one of N writes. `WORD@N` damages only the Nth PDU or
    /// the Nth write of each connection, counted from 1. The first PDU is the MPA start-up frame. A
    /// word without N has a default rate.
    ///
    /// Words for PDUs: `flip` flips bits. `edge` sets a field to a value at the limit of its range.
    /// `truncate` removes the last bytes. `duplicate` sends a PDU twice. `insert` adds bytes.
    /// `mutate` means all of these five words.
    ///
    /// Words for writes to TCP: `reorder` swaps two writes. `cut` splits a write. `delay` delays a
    /// write. `half-close` sends only the start of a write, and then FIN. `reset` sends only the
    /// start of a write, and then RST. `all` means all words for PDUs and for writes.
    #[arg(long, value_name = "WORD[=N|@N],...")]
    mangle: Option<Plan>,
    /// Damage the same traffic in the same way in each run
    ///
    /// With --mangle alone, weft selects a random seed and prints it. The first connection uses the
    /// seed NUMBER, the second NUMBER + 1, and so on. --seed alone implies `--mangle all`.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

impl MangleArguments {
    /// Returns how to damage the traffic, and prints this plan and its seed to standard error.
    /// Returns `None` without `--mangle` and `--seed`.
    pub(crate) fn mangling(&self) -> Option<Mangling> {
        if self.mangle.is_none() && self.seed.is_none() {
            return None;
        }
        let plan = self.mangle.clone().unwrap_or_else(Plan::all);
        let seed = self.seed.unwrap_or_else(random_seed);
        note(&format!("damaging the sent traffic with --mangle {plan} --seed {seed}"));
        Some(Mangling::new(plan, seed))
    }
}
