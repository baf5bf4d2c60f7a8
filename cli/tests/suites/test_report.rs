//! The reports of a run that was killed, and evidence that a power failure does not take.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::test_resume::{suites, text, weft};

const REPORTS: [&str; 6] = ["report.html", "report.json", "report.sarif", "report.tap", "junit.xml", "summary.md"];

fn report(arguments: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.env_remove("WEFT_STORE").arg("report").args(arguments).output().unwrap()
}

fn json(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(out.join("report.json")).unwrap()).unwrap()
}

/// Runs until a line of the output has this text, and kills the process.
fn kill_at(mut command: Command, wanted: &str) {
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let found = lines.any(|line| line.contains(wanted));
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(found, "no line with {wanted:?}");
}

/// Kills a run between its last case and its reports: the file that the first of them is written to takes nothing.
fn kill_before_reports(out: &Path, scripts: &Path) {
    fs::create_dir(out).unwrap();
    let pipe = out.join("report.json.new");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    kill_at(weft(out, scripts, &[]), "4 cases: 4 pass");
    fs::remove_file(pipe).unwrap();
    assert!(REPORTS.iter().all(|name| !out.join(name).exists()));
}

#[test]
fn a_run_that_was_killed_before_its_reports_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scripts) = (folder.path().join("out"), folder.path().join("suites"));
    suites(&scripts, "");
    kill_before_reports(&out, &scripts);
    let output = report(&[&out]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("4 cases: 4 pass; done"), "{}", text(&output));
    assert!(REPORTS.iter().all(|name| out.join(name).is_file()));
    assert_eq!(json(&out)["results"].as_array().unwrap().len(), 4);
    // Again, they are the same.
    let before: Vec<_> = REPORTS.map(|name| fs::read(out.join(name)).unwrap()).into();
    assert_eq!(report(&[&out]).status.code(), Some(0));
    assert!(REPORTS.iter().zip(before).all(|(name, before)| fs::read(out.join(name)).unwrap() == before));
    // And those of an earlier run.
    let id = json(&out)["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(weft(&out, &scripts, &[]).output().unwrap().status.code(), Some(0));
    let earlier = out.join("earlier").join(&id);
    REPORTS.iter().for_each(|name| fs::remove_file(earlier.join(name)).unwrap());
    assert_eq!(report(&[&earlier]).status.code(), Some(0));
    assert_eq!(json(&earlier)["run"]["id"], id.as_str());
}

#[test]
fn resuming_completes_the_reports_of_a_run_that_has_all_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scripts) = (folder.path().join("out"), folder.path().join("suites"));
    suites(&scripts, "");
    kill_before_reports(&out, &scripts);
    let output = weft(&out, &scripts, &["--resume"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(REPORTS.iter().all(|name| out.join(name).is_file()), "{}", text(&output));
    // Nothing is left to do.
    assert_eq!(weft(&out, &scripts, &["--resume"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_run_that_was_killed_is_reported_as_far_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scripts) = (folder.path().join("out"), folder.path().join("suites"));
    suites(&scripts, "if p.n == 3 then t:pause(3600) end");
    kill_at(weft(&out, &scripts, &["--jobs", "1"]), "n=2");
    let output = report(&[&out]);
    // What was not run is not decided.
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    assert!(text(&output).contains("4 cases: 2 pass; broken"), "{}", text(&output));
    // Without its store, the evidence has it all.
    for name in ["results.sqlite", "results.sqlite-wal", "results.sqlite-shm"] {
        let _ = fs::remove_file(out.join(name));
    }
    REPORTS.iter().for_each(|name| fs::remove_file(out.join(name)).unwrap());
    let output = report(&[&out, Path::new("--suites"), &scripts]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let verdicts: Vec<_> = json(&out)["results"].as_array().unwrap().iter().map(|r| r["verdict"].clone()).collect();
    assert_eq!(verdicts, ["pass", "pass"]);
}

#[test]
fn a_folder_without_a_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = report(&[folder.path()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("no run has written into this folder"), "{}", text(&output));
}

/// `/dev/full` is a disk without room.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_truncates_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scripts) = (folder.path().join("out"), folder.path().join("suites"));
    suites(&scripts, "");
    assert_eq!(weft(&out, &scripts, &[]).output().unwrap().status.code(), Some(0));
    let before = fs::read(out.join("report.html")).unwrap();
    std::os::unix::fs::symlink("/dev/full", out.join("report.html.new")).unwrap();
    let output = report(&[&out]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(text(&output).contains("report.html"), "{}", text(&output));
    assert_eq!(fs::read(out.join("report.html")).unwrap(), before);
}

/// What version 0.1 left in a folder: `weft report` makes today's reports of it.
#[test]
fn a_folder_of_version_0_1_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites/tests/data/v0.1/run");
    let out = folder.path().join("out");
    assert!(Command::new("cp").arg("-r").arg(from).arg(&out).status().unwrap().success());
    let output = report(&[&out]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("weft 0.1.0: 1 case against builtin"), "{}", text(&output));
    assert!(REPORTS.iter().all(|name| out.join(name).is_file()));
}

/// A power failure leaves no verdict without its evidence. Where strace is not there, or may not trace, nothing is shown.
#[cfg(target_os = "linux")]
#[test]
fn evidence_is_on_the_disk_before_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (out, log) = (folder.path().join("out"), folder.path().join("log"));
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-o"]).arg(&log).arg(env!("CARGO_BIN_EXE_weft"));
    command.env_remove("WEFT_STORE").args(["test", "builtin", "mpa/7.1.1-key/wrong-octet", "--out"]).arg(&out);
    if !command.output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: strace is not installed, or may not trace (Debian: apt-get install strace)");
        return;
    }
    let log = fs::read_to_string(log).unwrap();
    // 5 fsync(9</tmp/out/cases/mpa/7.1.1-key/wrong-octet/octet=3/evidence.pcapng>) = 0
    let files: BTreeSet<&str> = log.lines().filter_map(|line| line.split(['<', '>']).nth(1)).collect();
    let synced = |name: &str| files.iter().filter(|file| file.ends_with(name)).count();
    assert_eq!((synced("/evidence.pcapng"), synced("/transcript.json")), (16, 16), "{log}");
}
