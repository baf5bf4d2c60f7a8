//! Parses values of the command line that several commands have: the selection of test cases (by
//! words, tier and shard), and times.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use weft_core::spelling;
use weft_suites::model::Tier;
use weft_suites::script::Suites;
use weft_suites::{Filter, Plan};

use crate::exit::BadInput;
use crate::target::names_target;

/// Parses a tier, and offers the names of the tiers to shell completion.
pub(crate) fn tier() -> impl TypedValueParser<Value = Tier> {
    PossibleValuesParser::new(Tier::ALL.map(Tier::as_str)).try_map(|word| word.parse())
}

/// The values of `--seed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeedArgument {
    /// This seed.
    Number(u64),
    /// A new random seed.
    Random,
}

/// Parses the value of `--seed`.
pub(crate) fn seed(text: &str) -> Result<SeedArgument, String> {
    match (text, text.parse()) {
        ("random", _) => Ok(SeedArgument::Random),
        (_, Ok(number)) => Ok(SeedArgument::Number(number)),
        _ => Err("expected a number, or the word random".to_owned()),
    }
}

/// Parses `I/N`, such as `2/5` for the second of five parts. Returns I - 1 and N.
pub(crate) fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((index, of)) if (1..=of).contains(&index) => Ok((index - 1, of)),
        _ => Err("expected I/N with I from 1 to N".to_owned()),
    }
}

/// Parses a time, such as `90s`, `5m` or `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(format!("{text:?} is not a time; use a number and s, m or h, such as 90s")),
    };
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} is not a time; use a number and s, m or h, such as 90s"))?;
    if number == 0 {
        // A run without time would pass without a check.
        return Err(format!("{text:?} is too short; use at least 1s"));
    }
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

/// Reduces the filter to the part that `--shard` names.
pub(crate) fn of_shard(filter: Filter, shard: Option<(usize, usize)>) -> Filter {
    match shard {
        Some((index, of)) => filter.shard(index, of),
        None => filter,
    }
}

/// Rejects the name of a target among the words, for the commands that take no target.
pub(crate) fn has_no_target(words: &[String]) -> Result<(), BadInput> {
    match words.iter().find(|word| names_target(word)) {
        None => Ok(()),
        Some(word) => Err(BadInput(format!("{word} is a target; this command takes no target, so omit it"))),
    }
}

/// Rejects a word that matches no case. Call this function before the new run replaces the reports
/// of an earlier run.
pub(crate) fn each_selects(suites: &Suites, words: &[String], tier: Tier) -> Result<(), BadInput> {
    match words.iter().find(|word| !selects(suites, word, tier)) {
        None => Ok(()),
        Some(word) => Err(BadInput(format!("no case matches {word:?}; {}", hint(suites, word, tier)))),
    }
}

/// Returns whether a word matches a case.
pub(crate) fn selects(suites: &Suites, word: &str, tier: Tier) -> bool {
    !Plan::of(suites, &Filter::of([word]).tier(tier), 0).cases.is_empty()
}

/// The suggestion for a word that matches no case.
fn hint(suites: &Suites, word: &str, tier: Tier) -> String {
    let (stem, choice) = word.split_once('[').map_or((word, false), |(stem, _)| (stem, true));
    if choice && suites.cases().any(|case| case.id == stem) {
        return format!("the case has no such variant; `weft suite show {stem}` prints its parameters");
    }
    // Similar ids name unrelated requirements, so weft suggests none of them.
    if requirement(word) {
        return format!("`weft requirements {word}` shows whether {word} exists; `weft suite list` lists the cases");
    }
    let known = suites.cases().flat_map(|case| {
        let folders = case.id.match_indices('/').map(move |(end, _)| &case.id[..end]);
        folders.chain([case.id.as_str()]).chain(case.tags.iter().map(String::as_str))
    });
    match spelling::nearest(stem, known) {
        Some(near) if near != stem && selects(suites, near, tier) => format!("did you mean {near}?"),
        _ => "`weft suite list` lists all cases".to_owned(),
    }
}

/// Returns whether the word looks like the id of a requirement.
fn requirement(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
}
