//! `weft requirements`: lists or searches the requirements of the specifications.

use std::io::{self, Write};
use std::process::ExitCode;

use weft_core::requirement::{self, Requirement};

use crate::exit::reject;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft requirements                 list all requirements with their levels and summaries\n  \
    weft requirements MPA-7.1.1-2     print one requirement, and how weft checks it\n  \
    weft requirements MPA-7.1         print the requirements of a section\n  \
    weft requirements 'marker CRC'    print the requirements with these words")]
pub(crate) struct Arguments {
    /// Print the requirements with these ids, id prefixes, or words
    ///
    /// If one argument has several words (in quotes), a requirement must have all of them.
    #[arg(value_name = "ID_OR_WORDS")]
    ids: Vec<String>,
    /// Print JSON Lines, one object per requirement
    #[arg(long)]
    json: bool,
}

/// Prints the requirements.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    if arguments.ids.is_empty() {
        for (_, row) in requirement::all() {
            print(row, arguments.json, false, &mut out)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    for wanted in &arguments.ids {
        let mut found = false;
        let as_id = wanted.to_uppercase();
        // A complete id selects only its own requirement: MPA-4.1-3 does not select MPA-4.1-30.
        let complete = requirement::all().find(|(_, row)| row.id.eq_ignore_ascii_case(wanted)).map(|(id, _)| id);
        for (id, row) in requirement::all() {
            let begins = row.id.to_uppercase().starts_with(&as_id);
            if complete.map_or(begins || has_words(row, wanted), |complete| complete == id) {
                found = true;
                print(row, arguments.json, true, &mut out)?;
            }
        }
        if !found {
            reject!("no requirement matches {wanted:?}, by id or by words; `weft requirements` lists all");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the text of the requirement contains all words.
fn has_words(row: &Requirement, words: &str) -> bool {
    let sentence = row.sentence.unwrap_or_default();
    let text = format!("{} {} {} {sentence}", row.role, row.summary, row.check).to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

/// Prints one requirement: as JSON, as one line, or (`complete`) with its check.
fn print(row: &Requirement, json: bool, complete: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        let object = serde_json::json!({
            "id": row.id, "catalogue": row.catalogue, "section": row.section, "citation": row.citation(), "level": row.level.to_string(),
            "role": row.role, "summary": row.summary, "observe": row.observe, "check": row.check,
            "sentence": row.sentence,
        });
        return writeln!(out, "{object}");
    }
    if !complete {
        return writeln!(out, "{:<16} {:<11} {}", row.id, row.level, row.summary);
    }
    writeln!(out, "{}  {}  ({}, binds: {})", row.id, row.level, row.citation(), row.role)?;
    writeln!(out, "    {}", row.summary)?;
    if let Some(sentence) = row.sentence {
        writeln!(out, "    specification: \"{sentence}\"")?;
    }
    writeln!(out, "    check: {}", row.check)
}
