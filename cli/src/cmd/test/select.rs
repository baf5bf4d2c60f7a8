//! Words that select cases: each word must match a case; an error names the probable intention.

use weft_core::spelling;
use weft_suites::model::Tier;
use weft_suites::script::Suites;
use weft_suites::{Filter, Plan};

use crate::exit::BadInput;

/// Rejects a word that matches nothing, before the run overwrites the reports of another run.
pub(super) fn each_selects(suites: &Suites, words: &[String], tier: Tier) -> Result<(), BadInput> {
    match words.iter().find(|word| !selects(suites, word, tier)) {
        None => Ok(()),
        Some(word) => Err(BadInput(format!("no case matches {word:?}; {}", hint(suites, word, tier)))),
    }
}

fn selects(suites: &Suites, word: &str, tier: Tier) -> bool {
    !Plan::of(suites, &Filter::of([word]).tier(tier), 0).cases.is_empty()
}

/// What to write instead of a word that matches nothing.
fn hint(suites: &Suites, word: &str, tier: Tier) -> String {
    let (stem, choice) = word.split_once('[').map_or((word, false), |(stem, _)| (stem, true));
    if choice && suites.cases().any(|case| case.id == stem) {
        return format!("the case has no such variant; `weft test --show {stem}` prints its parameters");
    }
    // One digit more or less is another requirement, so there is no suggestion.
    if requirement(word) {
        return format!("`weft requirements {word}` shows whether it exists; `weft test --list` lists the cases");
    }
    let known = suites.cases().flat_map(|case| {
        let folders = case.id.match_indices('/').map(move |(end, _)| &case.id[..end]);
        folders.chain([case.id.as_str()]).chain(case.tags.iter().map(String::as_str))
    });
    match spelling::nearest(stem, known) {
        Some(near) if near != stem && selects(suites, near, tier) => format!("did you mean {near}?"),
        _ => "`weft test --list` lists all cases".to_owned(),
    }
}

/// Is the word written like the id of a requirement?
fn requirement(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
}
