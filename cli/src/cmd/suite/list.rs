//! `weft suite list`: lists or searches cases, with their requirements.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use weft_core::text::Visible;
use weft_dissector::output::text::counted;
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
    weft suite list 'marker CRC'          list the cases with these words in the id or the title\n  \
    weft suite list mpa/7.1 --tier smoke  list a section, with the variants of the smoke tier")]
pub(crate) struct Arguments {
    /// List only the cases of this id, id prefix, requirement, section, tag or words
    ///
    /// weft lists a case if it matches at least one SELECT. Examples: the id
    /// `mpa/7.1.1-key/wrong-octet`, the requirement MPA-7.1.1-2, the section mpa/7.1 or MPA-7.1. A
    /// prefix is the part of an id before a `/`. `id[parameter=value]` selects one variant. weft
    /// searches ids and titles for any other SELECT. If it has several words (in quotes), a case must
    /// have all of them.
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

/// Maximum number of requirements that are named for a case.
const MAX_IDS: usize = 5;

/// Prints the selected cases: id, number of variants, title, requirements.
pub(crate) fn print(
    suites: &Suites,
    words: &[String],
    tier: Tier,
    shard: Option<(usize, usize)>,
) -> anyhow::Result<ExitCode> {
    // Any seed gives the same counts: the seed selects the variants, but not their number.
    let selected: Vec<String> = words.iter().flat_map(|word| found(suites, word, tier)).collect();
    let plan = Plan::of(suites, &select::of_shard(Filter::of(selected).tier(tier), shard), 0);
    let mut out = Visible(io::stdout().lock());
    for case in &plan.cases {
        let keys = plan.keys.iter().filter(|key| key.case == case.id).count();
        let mut ids: Vec<&str> = case.requirements.iter().map(|id| id.as_str()).collect();
        // A requirement that the user named is always shown.
        ids.sort_by_key(|id| !words.iter().any(|word| word == id));
        writeln!(out, "{}  {} ({})\n    {}", case.id, case.title, counted(keys as u64, "variant"), shortened(&ids))?;
    }
    if plan.cases.is_empty() {
        select::each_selects(suites, words, tier)?;
        reject!("no case matches {}; `weft suite list` lists all cases", words.join(" "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the words for a [`Filter`]: the word itself if it selects cases, otherwise the cases that
/// have the word in the id or the title.
fn found(suites: &Suites, word: &str, tier: Tier) -> Vec<String> {
    let parts = word.to_lowercase();
    let has_words = |text: String| parts.split_whitespace().all(|part| text.contains(part));
    if parts.trim().is_empty() || select::selects(suites, word, tier) {
        return vec![word.to_owned()];
    }
    let cases = suites.cases().filter(|case| has_words(format!("{} {}", case.id, case.title).to_lowercase()));
    let ids: Vec<String> = cases.map(|case| case.id.clone()).collect();
    if ids.is_empty() { vec![word.to_owned()] } else { ids }
}

/// Returns the first ids, and the number of the other ids.
fn shortened(ids: &[&str]) -> String {
    let named = ids.iter().take(MAX_IDS).copied().collect::<Vec<_>>().join(" ");
    match ids.len().saturating_sub(MAX_IDS) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_five_requirements_at_most() {
        assert_eq!(shortened(&["a", "b"]), "a b");
        assert_eq!(shortened(&["a", "b", "c", "d", "e", "f", "g"]), "a b c d e and 2 more");
    }
}
