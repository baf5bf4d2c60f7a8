//! Words that select cases: each has to select something, and one that does not is told with what was meant.

use weft_core::spelling;
use weft_suites::model::Tier;
use weft_suites::script::Suites;
use weft_suites::{Filter, Plan};

use crate::exit::BadInput;

/// A word that selects nothing is a slip of the keyboard: told before a run overwrites the reports of another.
pub(super) fn each_selects(suites: &Suites, words: &[String], tier: Tier) -> Result<(), BadInput> {
    match words.iter().find(|word| !selects(suites, word, tier)) {
        None => Ok(()),
        Some(word) => Err(BadInput(format!("no case is selected by {word:?}; {}", hint(suites, word, tier)))),
    }
}

fn selects(suites: &Suites, word: &str, tier: Tier) -> bool {
    !Plan::of(suites, &Filter::of([word]).tier(tier), 0).cases.is_empty()
}

/// What to write instead of a word that selects nothing.
fn hint(suites: &Suites, word: &str, tier: Tier) -> String {
    let (stem, choice) = word.split_once('[').map_or((word, false), |(stem, _)| (stem, true));
    if choice && suites.cases().any(|case| case.id == stem) {
        return format!("the case has no such choice, `weft test --show {stem}` has its parameters");
    }
    // One digit more or less is another requirement, not a slip that could be guessed.
    if requirement(word) {
        return format!("`weft requirements {word}` tells whether there is one; `weft test --list` names the cases");
    }
    let known = suites.cases().flat_map(|case| {
        let folders = case.id.match_indices('/').map(move |(end, _)| &case.id[..end]);
        folders.chain([case.id.as_str()]).chain(case.tags.iter().map(String::as_str))
    });
    match spelling::nearest(stem, known) {
        Some(near) if near != stem && selects(suites, near, tier) => format!("did you mean {near}?"),
        _ => "`weft test --list` names them".to_owned(),
    }
}

/// Is it written as the ids of requirements are?
fn requirement(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
}
