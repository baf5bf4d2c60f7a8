//! Tests the tutorials in the guide (`docs`). A test writes the files of a page, runs its commands
//! in order, and compares their output with the page. Other tests check the output that README.md
//! shows, and the links of the guide.
//!
//! The test uses only fenced blocks after one of these comments:
//!
//! - `file: PATH`: the block is the content of a new file. `append: PATH`: the test appends the
//!   block to this file.
//! - `run`: each line is a command. If the line ends with `&`, the command runs in the background.
//!   Otherwise, its exit status must be 0, or N if the line ends with `# status N`.
//! - `shows`: the block is a part of the output of the last command.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The address of the target in the guide. The test replaces it by the free address at which the
/// first target listens.
const ADDRESS: &str = "127.0.0.1:7174";

/// A command in the background. It is killed at the end of the test.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Reader<'a> {
    folder: &'a Path,
    background: Option<Background>,
    address: Option<String>,
    printed: String,
    /// The numbers of commands, files and outputs that the test has processed.
    done: [usize; 3],
}

impl Reader<'_> {
    fn weft(&self, line: &str) -> Command {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("weft"), "{line}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(words).current_dir(self.folder).stdin(Stdio::null());
        command
    }

    fn run(&mut self, line: &str) {
        let (line, status) = line.split_once("# status ").unwrap_or((line, "0"));
        self.done[0] += 1;
        if line.trim() == "kill %1" {
            assert!(self.background.take().is_some(), "nothing runs");
        } else if let Some(line) = line.trim().strip_suffix('&') {
            assert!(self.background.is_none());
            let child = self.weft(line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let Background(child) = self.background.insert(Background(child));
            let mut first = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
            let address = first.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}: {first}"));
            self.address.get_or_insert_with(|| address.to_owned());
        } else {
            let output = self.weft(line).output().unwrap();
            self.printed = String::from_utf8(output.stdout).unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(status.trim().parse().unwrap()),
                "{line}\n{}\n{errors}",
                self.printed
            );
        }
    }

    fn block(&mut self, what: &str, text: &str) {
        let text = &text.replace(ADDRESS, self.address.as_deref().unwrap_or("127.0.0.1:0"));
        match what.split_once(": ") {
            Some((how @ ("file" | "append"), path)) => {
                self.done[1] += 1;
                let path = self.folder.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let mut options = OpenOptions::new();
                let options = if how == "file" { options.create_new(true).write(true) } else { options.append(true) };
                options.open(path).unwrap().write_all(text.as_bytes()).unwrap();
            }
            None if what == "run" => {
                text.lines().for_each(|line| self.run(line.strip_prefix("$ ").unwrap_or_else(|| panic!("{line}"))));
            }
            None if what == "shows" => {
                self.done[2] += 1;
                assert!(
                    self.printed.contains(text.trim_end()),
                    "the guide shows\n{text}\nand this came\n{}",
                    self.printed
                );
            }
            _ => panic!("what is {what:?}?"),
        }
    }
}

/// Follows a page, in a folder that contains weft's captures. Returns the numbers of commands,
/// files and outputs on the page.
fn follow(page: &str) -> [usize; 3] {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let guide = fs::read_to_string(docs.join(page)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(docs.join("../captures"), folder.path().join("captures")).unwrap();
    let mut reader =
        Reader { folder: folder.path(), background: None, address: None, printed: String::new(), done: [0; 3] };
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        let Some(what) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) else { continue };
        assert!(lines.next().unwrap().starts_with("```"), "{line}");
        let text: String = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        reader.block(what, &text);
    }
    reader.done
}

#[test]
fn the_guide_to_judging_works() {
    assert_eq!(follow("conformance.md"), [14, 3, 5], "commands, files, outputs");
}

#[test]
fn the_guide_to_the_first_ten_minutes_works() {
    assert_eq!(follow("start.md"), [9, 0, 0], "commands, files, outputs");
}

#[test]
fn the_guide_to_reading_a_capture_works() {
    assert_eq!(follow("reading.md"), [8, 0, 2], "commands, files, outputs");
}

/// A block of README.md has lines of the output of `weft demo`, in the same order. In the block,
/// `...` replaces omitted text. Times can differ.
#[test]
fn the_demo_prints_what_the_readme_shows() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let (_, rest) = readme.split_once("<!-- demo-output: begin -->\n```text\n").unwrap();
    let (shown, _) = rest.split_once("```\n<!-- demo-output: end -->").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).arg("demo").current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut printed_lines = printed.lines();
    let mut held = 0;
    for line in shown.lines().map(str::trim).filter(|line| !matches!(*line, "" | "...")) {
        let line = line.strip_prefix("... ").unwrap_or(line);
        let line = line.strip_suffix("...").unwrap_or(line);
        let line = line.strip_suffix(" ms").and_then(|line| line.rsplit_once("  ")).map_or(line, |(line, _)| line);
        let found = printed_lines.any(|printed| printed.contains(line));
        assert!(found, "README.md shows {line:?}; what came:\n{printed}");
        held += 1;
    }
    assert!(held > 25, "{held}");
}

/// Returns the targets of all links `[text](target)` of a page, except links in code.
fn links(text: &str) -> Vec<String> {
    let mut code = false;
    let prose = text.lines().filter(|line| {
        code ^= line.starts_with("```");
        !code && !line.starts_with("    ")
    });
    prose
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .map(str::to_owned)
        .collect()
}

/// Returns the anchor of a heading: lower case, with hyphens between the words.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn every_link_of_the_guide_leads_somewhere_and_every_page_is_in_its_list() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let list = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut followed = 0;
    for entry in fs::read_dir(&docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name == "SUMMARY.md" || list.contains(&format!("]({name})")), "{name} is not in SUMMARY.md");
        let text = fs::read_to_string(&path).unwrap();
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { path.clone() } else { docs.join(file) };
            assert!(file.is_file(), "{name}: {link}");
            let headings = fs::read_to_string(&file).unwrap_or_default();
            let mut headings = headings.lines().filter_map(|line| line.strip_prefix("## ")).map(anchor);
            assert!(place.is_empty() || headings.any(|heading| heading == place), "{name}: {link}");
            followed += 1;
        }
    }
    assert!(followed > 30, "{followed}");
}
