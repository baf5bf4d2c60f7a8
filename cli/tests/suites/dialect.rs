//! Words that nobody else in the field uses for what weft once meant by them: prose, help, messages
//! and identifiers use the field's words instead.
//!
//! The tree had thousands of lines with such words. `ALLOWED` has the lines that each folder still
//! has. A folder may not get more; whoever rewrites one lowers its number, and the list ends with
//! the words that stay: quoted RFC text and public names.
#![allow(clippy::unwrap_used, reason = "a helper of a test may stop it")]

use std::fs;
use std::path::Path;

/// The words, in lower case.
const WORDS: [&str; 21] = [
    "told", "tell", "tells", "said", "say", "says", "heard", "hear", "hears", "behind", "stand", "stands", "mend",
    "mends", "mended", "whole", "deed", "deeds", "books", "whoever", "asked",
];
/// Phrases, in lower case.
const PHRASES: [&str; 6] = ["by hand", "so many", "on the way", "in full", "goes on with", "that is none"];
/// Files with these extensions are read, and text files without an extension, such as scripts.
const KINDS: [&str; 13] = ["rs", "lua", "md", "js", "html", "py", "sh", "toml", "csv", "yaml", "yml", "c", "h"];
/// This file, texts of a released version, a table that repeats names of cases, and the licence.
const EXCEPTIONS: [&str; 7] = [
    "cli/tests/suites/dialect.rs",
    "CHANGELOG.md",
    "suites/tests/data",
    "suites/coverage",
    "LICENSE-APACHE",
    "core/LICENSE-APACHE",
    "dissector/LICENSE-APACHE",
];
/// Folders and files with lines that have such a word, and how many lines each has at most.
const ALLOWED: [(&str, usize); 14] = [
    ("changes", 4),
    ("cli/src", 2),
    ("cli/tests", 68),
    ("core/requirements", 1),
    ("dissector/src", 8),
    ("docs", 3),
    ("interop", 20),
    ("peer/src", 41),
    ("peer/tests", 8),
    ("suites/suites", 35),
    ("suites/src", 48),
    ("suites/templates", 1),
    ("suites/tests", 4),
    ("web/templates", 1),
];

/// Does the line have one of the words? `told_by`, `isTold` and `Told` are the word.
fn has_word(line: &str) -> bool {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for character in line.chars().chain([' ']) {
        if !character.is_ascii_alphabetic() || (was_lower && character.is_ascii_uppercase()) {
            words.push(std::mem::take(&mut word));
        }
        if character.is_ascii_alphabetic() {
            word.push(character.to_ascii_lowercase());
        }
        was_lower = character.is_ascii_lowercase();
    }
    let lower = line.to_ascii_lowercase();
    // A phrase begins with a word: `builtin full` does not have `in full`.
    let begins_word = |at: usize| !lower[..at].ends_with(|character: char| character.is_ascii_alphabetic());
    words.iter().any(|word| WORDS.contains(&word.as_str()))
        || PHRASES.iter().any(|phrase| lower.match_indices(phrase).any(|(at, _)| begins_word(at)))
}

/// The lines with a word in the files below `path`.
fn lines(root: &Path, path: &Path, found: &mut Vec<String>) {
    let name = path.strip_prefix(root).unwrap().display().to_string();
    let folder = path.file_name().is_some_and(|name| name == "target" || name == ".git" || name == "weft-report");
    if folder || EXCEPTIONS.contains(&name.as_str()) {
        return;
    }
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| lines(root, &entry.unwrap().path(), found));
    } else if path.extension().is_none_or(|kind| KINDS.iter().any(|known| kind == *known)) {
        // A file that is not UTF-8 is not a text.
        let text = fs::read_to_string(path).unwrap_or_default();
        let numbered = text.lines().zip(1..).filter(|(line, _)| has_word(line));
        found.extend(numbered.map(|(line, number)| format!("{name}:{number}: {}", line.trim())));
    }
}

#[test]
fn no_folder_gets_more_lines_with_words_of_the_dialect() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut more = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    // The crates have their parts on lines of their own.
    let parts = |path: &Path| -> Vec<_> {
        let manifest = path.join("Cargo.toml");
        if !manifest.exists() {
            return vec![path.to_owned()];
        }
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    for path in entries.iter().flat_map(|path| parts(path)) {
        let mut found = Vec::new();
        lines(root, &path, &mut found);
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let allowed = ALLOWED.iter().find(|(folder, _)| *folder == name).map_or(0, |(_, allowed)| *allowed);
        if found.len() > allowed {
            let examples = found.iter().take(5).cloned().collect::<Vec<_>>().join("\n    ");
            more.push(format!("    (\"{name}\", {}),\n    {examples}", found.len()));
        }
    }
    assert!(more.is_empty(), "lines with words of the dialect, by folder, with some of them:\n{}", more.join("\n"));
}

#[test]
fn words_are_found_in_prose_and_identifiers() {
    for line in ["it is told", "fn told_by()", "let isTold = 1", "struct Told;", "so Many things"] {
        assert!(has_word(line), "{line}");
    }
    for line in ["a retold story", "installed", "wholesale", "many so", "builtin full"] {
        assert!(!has_word(line), "{line}");
    }
}
