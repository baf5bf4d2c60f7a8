//! `docs/conformance.md`, done as it says: its files are written, its commands run, in its order, and what they print is what it shows.
//!
//! A fenced block counts that has a comment in front: `file: PATH` and `append: PATH` write, `run` has a command a line (`&` behind one
//! leaves it running, `# status N` tells how it ends where that is not 0), `shows` is part of what the last command printed.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The address of the guide's target. In the test it is the one that the first target finds free.
const ADDRESS: &str = "127.0.0.1:7174";

/// What runs in the background; ends with the test.
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
    /// Commands, files and outputs.
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
            let mut said = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
            let address = said.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}: {said}"));
            self.address.get_or_insert_with(|| address.to_owned());
        } else {
            let output = self.weft(line).output().unwrap();
            self.printed = String::from_utf8(output.stdout).unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(status.trim().parse().unwrap()), "{line}\n{}\n{said}", self.printed);
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

#[test]
fn the_walk_of_the_guide_goes_as_it_says() {
    let guide = include_str!("../../docs/conformance.md");
    let folder = tempfile::tempdir().unwrap();
    let mut reader =
        Reader { folder: folder.path(), background: None, address: None, printed: String::new(), done: [0; 3] };
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        let Some(what) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) else { continue };
        assert!(lines.next().unwrap().starts_with("```"), "{line}");
        let text: String = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        reader.block(what, &text);
    }
    assert_eq!(reader.done, [13, 3, 4], "commands, files, outputs");
}
