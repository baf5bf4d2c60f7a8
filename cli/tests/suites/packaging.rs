//! Tests the parts that a package contains in addition to the binary: completions for shells, and
//! manual pages.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::{Command, Output};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

fn weft(arguments: &[&str]) -> Output {
    Command::new(WEFT).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the subcommands that `--help` lists.
fn subcommands() -> Vec<String> {
    let help = text(&weft(&["--help"]));
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    list.lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

/// Returns the completions that bash offers for the last of `words`.
fn offered(script: &str, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let (word, before) = (words[last], words[last - 1]);
    let ask = format!(
        "{script}\nCOMP_WORDS=({}) COMP_CWORD={last}\n_weft weft {word:?} {before:?}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" ")
    );
    // The script is too long for an argument.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(ask.as_bytes()).unwrap();
    let output = Command::new("bash").arg("--norc").arg(file.path()).output().unwrap();
    text(&output).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_subcommands_options_and_values() {
    let script = text(&weft(&["completions", "bash"]));
    assert_eq!(offered(&script, &["weft", "diss"]), ["dissect"]);
    assert_eq!(offered(&script, &["weft", "test", "--tie"]), ["--tier"]);
    assert_eq!(offered(&script, &["weft", "test", "--tier", ""]), ["smoke", "default", "full"]);
    for subcommand in subcommands() {
        assert!(offered(&script, &["weft", &subcommand]).contains(&subcommand), "{subcommand} is not offered");
    }
}

#[test]
fn each_shell_has_a_script_that_knows_the_subcommands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&weft(&["completions", shell]));
        for subcommand in subcommands() {
            assert!(script.contains(&subcommand), "{shell}: {subcommand} is missing");
        }
    }
}

#[test]
fn each_subcommand_has_a_manual_page_with_its_examples() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("made/man1");
    text(&weft(&["man", pages.to_str().unwrap()]));
    let names = subcommands();
    assert!(names.len() > 20, "{names:?}");
    for subcommand in names.iter().filter(|name| *name != "help") {
        let page = fs::read_to_string(pages.join(format!("weft-{subcommand}.1"))).unwrap();
        assert!(page.contains(&format!(".TH weft-{subcommand} 1")), "{subcommand}: {}", &page[..200.min(page.len())]);
        let version = concat!("\"weft ", env!("CARGO_PKG_VERSION"), "\"");
        let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
        assert!(title.contains(version), "{subcommand}: {title}");
        let help = text(&weft(&[subcommand, "--help"]));
        // The page contains the first example of the help, if the help has examples.
        if let Some(example) = help.split("Examples:\n").nth(1).and_then(|lines| lines.lines().next()) {
            let words = example.split("  ").map(str::trim).find(|words| !words.is_empty()).unwrap();
            let plain = page.replace("\\-", "-").replace("\\&", "");
            assert!(plain.contains(words), "{subcommand}: the page has no {words:?}");
        }
    }
    let overview = fs::read_to_string(pages.join("weft.1")).unwrap();
    assert!(overview.contains("Exit codes"), "weft.1 has no exit codes");
}

#[test]
fn a_folder_that_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = weft(&["man", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn the_reference_has_every_requirement_case_deviation_and_command_and_its_links_lead_somewhere() {
    let folder = tempfile::tempdir().unwrap();
    let printed = text(&weft(&["reference", folder.path().to_str().unwrap()]));
    let pages: BTreeMap<String, String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    assert!(printed.starts_with(&format!("{} pages", pages.len() - 1)), "{printed}");
    for page in pages.keys().filter(|page| *page != "SUMMARY.md") {
        assert!(pages["SUMMARY.md"].contains(&format!("]({page})")), "{page}");
    }
    let reference: String = pages.values().map(String::as_str).collect();
    let anchors: BTreeSet<&str> =
        reference.split("<a id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    for (what, list) in
        [("requirements", vec!["requirements"]), ("cases", vec!["suite", "list"]), ("deviations", vec!["deviations"])]
    {
        let listed = text(&weft(&list));
        let lines = listed.lines().filter(|line| !line.starts_with(' '));
        let ids: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
        let missing: Vec<&&str> = ids.iter().filter(|id| !anchors.contains(**id)).collect();
        assert!(ids.len() > 100 && missing.is_empty(), "{what}: {} listed, without a place {missing:?}", ids.len());
    }
    for subcommand in subcommands().into_iter().filter(|name| name != "help") {
        assert!(pages["commands.md"].contains(&format!("## weft {subcommand}\n")), "{subcommand}");
    }
    let mut links = 0;
    for link in reference.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        let Some((page, place)) = link.split_once('#') else { continue };
        assert!(pages[page].contains(&format!("<a id=\"{place}\">")), "{link}");
        links += 1;
    }
    assert!(links > 3000, "{links}");
}
