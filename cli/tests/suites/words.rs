//! No file of the project is allowed to name a folder of a developer's machine, a folder next to
//! the project, or the host of a package registry.
//!
//! Such a path works on one machine only, and the host of a registry belongs in the configuration
//! of cargo or apt. There is one exception. `.ci/run` searches in a folder next to the project for
//! another dissector to compare with, and for data with another licence. It also works without
//! them.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files that are not part of the project: build output, git's history, reports of
/// runs, and packages of Node.js. In a worktree of git, `.git` is a file.
const NOT_OURS: [&str; 4] = ["target", ".git", "weft-report", "node_modules"];
/// Files that a tool writes. They must name the source of packages.
const WRITTEN_BY_TOOLS: [&str; 1] = ["Cargo.lock"];
/// The only file that is allowed to name a folder next to the project.
const LOOKS_BESIDE: &str = ".ci/run";

/// Returns the forbidden texts. They are assembled from parts, so that this file does not contain
/// them.
fn forbidden() -> Vec<String> {
    let folders = ["work", "root", "home", "Users"].map(|name| format!("/{name}/"));
    let hosts = [("crates", "io"), ("pypi", "org"), ("npmjs", "org"), ("debian", "org"), ("rust-lang", "org")];
    folders.into_iter().chain(hosts.map(|(name, top)| format!("{name}.{top}"))).collect()
}

#[test]
fn no_file_names_a_machine_or_a_registry() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let words = forbidden();
    let files = text_files(root);
    assert!(files.len() > 50, "only {} files found: the walk does not see the tree", files.len());
    let beside = [format!("../{}", "shared")];
    let mut found = Vec::new();
    for (path, text) in files {
        let name = path.display().to_string();
        found.extend(named(&name, &text, &words));
        if path != root.join(LOOKS_BESIDE) {
            found.extend(named(&name, &text, &beside));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn name_is_found_with_its_line() {
    let text = format!("first\nsee /{}/someone/notes\n", "home");
    assert_eq!(named("a.md", &text, &forbidden()), [format!("a.md:2: /{}/", "home")]);
    assert_eq!(named("a.md", "the work of a home\n", &forbidden()), [""; 0]);
}

fn named(path: &str, text: &str, words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for word in words.iter().filter(|word| names(line, word)) {
            found.push(format!("{path}:{}: {word}", number + 1));
        }
    }
    found
}

/// Returns whether `line` has `word` at a position where a path or a host can begin. If `word` is
/// in the middle of a path, it is the name of another folder.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !word.starts_with('/') || !before.is_some_and(|c| c.is_alphanumeric() || "._-}$~*".contains(c))
    })
}

/// Returns every text file of the project with its content. Captures and pictures are not text
/// files.
fn text_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if NOT_OURS.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            files.extend(text_files(&path));
        } else if !WRITTEN_BY_TOOLS.contains(&name.as_str())
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.push((path, text));
        }
    }
    files
}
