//! Lines of prose in Markdown files have at most 100 columns.
//!
//! Longer lines are allowed where Markdown cannot wrap: in code blocks, in rows of tables, and in
//! lines that are one word, such as a link. They are also allowed in the change log and its
//! fragments, which have one line for each change.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of characters in a line.
const COLUMNS: usize = 100;
/// Folders that are not checked: those that are not part of the project, and the fragments of the
/// change log.
const SKIPPED: [&str; 5] = ["target", ".git", "weft-report", "node_modules", "changes"];

/// The numbers of lines of prose that are too long.
fn long_lines(text: &str) -> Vec<usize> {
    let mut is_code = false;
    let mut long = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let can_wrap = !is_code && !line.starts_with("    ") && !line.starts_with('|') && line.trim().contains(' ');
        if can_wrap && line.chars().count() > COLUMNS {
            long.push(number);
        }
    }
    long
}

fn markdown_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() && !SKIPPED.contains(&&*name) {
            markdown_files(&path, found);
        } else if name.ends_with(".md") && name != "CHANGELOG.md" {
            found.push(path);
        }
    }
}

#[test]
fn prose_ends_at_column_100() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    markdown_files(root, &mut files);
    assert!(files.len() > 25, "only {} files found", files.len());
    let long = files.iter().flat_map(|file| {
        let lines = long_lines(&fs::read_to_string(file).unwrap());
        lines.into_iter().map(|line| format!("{}:{line}", file.strip_prefix(root).unwrap().display()))
    });
    let long: Vec<String> = long.collect();
    assert!(long.is_empty(), "lines of prose over {COLUMNS} columns:\n{}", long.join("\n"));
}

#[test]
fn code_tables_and_links_may_be_long() {
    let long = "a ".repeat(60);
    let text = format!("{long}\n| {long}|\n```\n{long}\n```\n    {long}\n{}\n{long}\n", "x".repeat(120));
    assert_eq!(long_lines(&text), [1, 8]);
}
