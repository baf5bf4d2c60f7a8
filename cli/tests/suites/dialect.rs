//! weft once used certain words with a private meaning instead of the technical terms. This test
//! checks that prose, help, messages and identifiers no longer contain these words.
//!
//! The only exceptions are the files in [`FILES`] and the texts in [`TEXTS`]. The test prints them.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::path::Path;

/// The words, in lower case.
const WORDS: [&str; 22] = [
    "told", "tell", "tells", "said", "say", "says", "heard", "hear", "hears", "behind", "stand", "stands", "mend",
    "mends", "mended", "whole", "deed", "deeds", "books", "whoever", "asked", "unasked",
];
/// Phrases, in lower case.
const PHRASES: [&str; 6] = ["by hand", "so many", "on the way", "in full", "goes on with", "that is none"];
/// The test reads the files with these extensions. It also reads text files without an extension,
/// such as scripts.
const KINDS: [&str; 13] = ["rs", "lua", "md", "js", "html", "py", "sh", "toml", "csv", "yaml", "yml", "c", "h"];
/// Files and folders that the test does not read, each with the reason.
const FILES: [(&str, &str); 11] = [
    ("CHANGELOG.md", "is about released versions"),
    ("LICENSE-APACHE", "is quoted"),
    ("changes", "names what was renamed"),
    ("cli/tests/suites/dialect.rs", "has the list"),
    ("core/LICENSE-APACHE", "is quoted"),
    ("core/requirements/sentences", "quotes the specifications"),
    ("dissector/LICENSE-APACHE", "is quoted"),
    ("peer/src/hostile/old_names.rs", "has names that still work"),
    ("suites/src/model/old_ids.rs", "has names that still work"),
    ("suites/src/script/old_names.rs", "has names that still work"),
    ("suites/tests/data", "is from a released version"),
];
/// Texts that are allowed to contain one of the words, each with the reason.
const TEXTS: [(&str, &str); 5] = [
    ("Full Operation", "is a term of RFC 5044"),
    ("asked_ipaddr", "is a key of `weft dissect --json`, which stays"),
    ("asked_port", "is a key of `weft dissect --json`, which stays"),
    ("\"asked\"", "is a key of `weft dissect --json`, which stays"),
    ("`asked`", "is a key of `weft dissect --json`, which stays"),
];

/// Returns whether the line has one of the words. `told_by`, `isTold` and `Told` count as `told`.
fn has_word(line: &str) -> bool {
    let line = TEXTS.iter().fold(line.to_owned(), |line, (text, _)| line.replace(text, ""));
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
    // A phrase counts only if it begins at the start of a word. So `builtin full` does not contain
    // `in full`.
    let begins_word = |at: usize| !lower[..at].ends_with(|character: char| character.is_ascii_alphabetic());
    words.iter().any(|word| WORDS.contains(&word.as_str()))
        || PHRASES.iter().any(|phrase| lower.match_indices(phrase).any(|(at, _)| begins_word(at)))
}

/// Collects the lines with one of the words, in the files below `path`.
fn lines(root: &Path, path: &Path, found: &mut Vec<String>) {
    let name = path.strip_prefix(root).unwrap().display().to_string();
    let is_ours = path.file_name().is_none_or(|name| name != "target" && name != ".git" && name != "weft-report");
    if !is_ours || FILES.iter().any(|(file, _)| *file == name) {
        return;
    }
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| lines(root, &entry.unwrap().path(), found));
    } else if path.extension().is_none_or(|kind| KINDS.iter().any(|known| kind == *known)) {
        // A file that is not UTF-8 is not a text file, so it has no lines.
        let text = fs::read_to_string(path).unwrap_or_default();
        let numbered = text.lines().zip(1..).filter(|(line, _)| has_word(line));
        found.extend(numbered.map(|(line, number)| format!("{name}:{number}: {}", line.trim())));
    }
}

#[test]
fn no_line_has_a_word_of_the_dialect() {
    for (exception, reason) in FILES.iter().chain(&TEXTS) {
        println!("exception: {exception} {reason}");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    lines(root, root, &mut found);
    found.sort();
    assert!(found.is_empty(), "{} lines with words of the dialect:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_exception_is_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (file, _) in FILES {
        assert!(root.join(file).exists(), "{file}");
    }
}

#[test]
fn words_are_found_in_prose_and_identifiers() {
    for line in ["it is told", "fn told_by()", "let isTold = 1", "struct Told;", "so Many things", "in full"] {
        assert!(has_word(line), "{line}");
    }
    for line in ["a retold story", "installed", "wholesale", "many so", "builtin full", "in Full Operation"] {
        assert!(!has_word(line), "{line}");
    }
}
