//! `weft deviations`: what the hostile twin can be told to do wrong.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use weft_peer::hostile;

use crate::exit::BadInput;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only those with each of these words in their name, the ids that they break, or their sentence
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// Prints one a line: name, requirement ids, what it does. No header in a pipe.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut found = false;
    if out.is_terminal() {
        writeln!(out, "{:<32} {:<16} what it does", "name", "breaks")?;
    }
    for deviation in hostile::all() {
        let ids: Vec<&str> = deviation.breaks.iter().map(|id| id.as_str()).collect();
        let line = format!("{:<32} {:<16} {}", deviation.name, ids.join(","), deviation.sentence);
        let has = |word: &String| line.to_lowercase().contains(&word.to_lowercase());
        if arguments.words.iter().all(has) {
            found = true;
            writeln!(out, "{line}")?;
        }
    }
    if !found {
        let words = arguments.words.join(" ");
        return Err(BadInput(format!("no deviation has {words:?} in it; `weft deviations` lists all")).into());
    }
    Ok(ExitCode::SUCCESS)
}
