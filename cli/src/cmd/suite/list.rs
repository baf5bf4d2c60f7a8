//! `weft suite list`: lists cases with their requirements.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use weft_suites::model::Tier;
use weft_suites::script::Suites;
use weft_suites::{Filter, Plan};

use crate::exit::reject;
use crate::select;
use crate::suites::load;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft suite list                       list all cases\n  \
    weft suite list MPA-7.1.2-24          list the cases that judge a requirement\n  \
    weft suite list mpa/7.1 --tier smoke  list a section, with the variants of the smoke tier")]
pub(crate) struct Arguments {
    /// List only the cases of this id, id prefix, requirement, section or tag
    ///
    /// weft lists a case if it matches at least one SELECT. Examples: the id
    /// `mpa/7.1.1-key/wrong-octet`, the requirement MPA-7.1.1-2, the section mpa/7.1 or MPA-7.1. A
    /// prefix is the part of an id before a `/`. `id[parameter=value]` selects one variant.
    #[arg(value_name = "SELECT")]
    select: Vec<String>,
    /// List the suites of this folder instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
    /// Count the variants that this tier runs
    ///
    /// `smoke` runs a few variants. `default` runs enough variants that any two values of different
    /// parameters occur together at least once. `full` runs all combinations of parameter values.
    #[arg(long, value_name = "TIER", default_value_t, value_parser = select::tier())]
    tier: Tier,
    /// List only part I of N of the selected cases, as in `weft test --shard`
    #[arg(long, value_name = "I/N", value_parser = select::shard)]
    shard: Option<(usize, usize)>,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    select::has_no_target(&arguments.select)?;
    let suites = load(arguments.suites.as_deref())?;
    print(&suites, &arguments.select, arguments.tier, arguments.shard)
}

/// Prints the selected cases: id, requirements, number of variants, title.
pub(crate) fn print(
    suites: &Suites,
    words: &[String],
    tier: Tier,
    shard: Option<(usize, usize)>,
) -> anyhow::Result<ExitCode> {
    // Any seed gives the same counts: the seed selects the variants, but not their number.
    let plan = Plan::of(suites, &select::of_shard(Filter::of(words.iter().cloned()).tier(tier), shard), 0);
    let mut out = io::stdout().lock();
    for case in &plan.cases {
        let keys = plan.keys.iter().filter(|key| key.case == case.id).count();
        let ids: Vec<&str> = case.requirements.iter().map(|id| id.as_str()).collect();
        let variants = if keys == 1 { "1 variant".to_owned() } else { format!("{keys} variants") };
        writeln!(out, "{}  {} ({variants})\n    {}", case.id, ids.join(" "), case.title)?;
    }
    if plan.cases.is_empty() {
        select::each_selects(suites, words, tier)?;
        reject!("no case matches {}; `weft suite list` lists all cases", words.join(" "));
    }
    Ok(ExitCode::SUCCESS)
}
