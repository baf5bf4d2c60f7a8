//! `weft deviations`: lists the deviations. With a deviation, weft's own endpoint violates a rule
//! on purpose.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use weft_peer::hostile;

use crate::exit::reject;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// List only deviations that match all of these words
    ///
    /// A word matches if it occurs in the name, in the ids of the violated requirements, or in the
    /// description. A single letter matches only as a separate word.
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// Prints one line per deviation: name, requirement ids, description. On a terminal, also prints a
/// header line.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut found = false;
    if out.is_terminal() {
        writeln!(out, "{:<32} {:<16} what it does", "name", "breaks")?;
    }
    for deviation in hostile::all() {
        let ids: Vec<&str> = deviation.breaks.iter().map(|id| id.as_str()).collect();
        let line = format!("{:<32} {:<16} {}", deviation.name, ids.join(","), deviation.description);
        // One argument can have several words, in quotes.
        if arguments.words.iter().flat_map(|words| words.split_whitespace()).all(|word| has_word(&line, word)) {
            found = true;
            writeln!(out, "{line}")?;
        }
    }
    if !found {
        reject!("no deviation matches {:?}; `weft deviations` lists all", arguments.words.join(" "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the line contains the word, in upper or lower case. A single letter, such as the
/// R of "R bit", must be a separate word, because nearly every line contains this letter.
fn has_word(line: &str, word: &str) -> bool {
    let (line, word) = (line.to_lowercase(), word.to_lowercase());
    match word.chars().count() {
        1 => line.split(|c: char| !c.is_alphanumeric()).any(|part| part == word),
        _ => line.contains(&word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_letter_matches_only_as_a_word() {
        let line = "mpa.reject-bit-moved MPA-7.1.1-17 sets the bit after R, not R itself, in a rejecting Reply";
        assert!(has_word(line, "R") && has_word(line, "bit") && has_word(line, "MPA-7.1.1-17"));
        assert!(!has_word(line, "m") && !has_word(line, "S"));
    }
}
