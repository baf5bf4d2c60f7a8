//! Tests `weft report` for a run that was killed. Another test checks that evidence is on the disk
//! before its verdict, so that a power failure loses no evidence.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

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

/// Starts `command`, waits for a line of its output that contains `wanted`, and kills the process.
fn kill_at(mut command: Command, wanted: &str) {
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let found = lines.any(|line| line.contains(wanted));
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(found, "no line with {wanted:?}");
}

/// Kills a run after its last case and before its reports. The file of the first report is a pipe
/// that nobody reads, so the run waits there.
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
    // A second `weft report` writes the same reports.
    let before: Vec<_> = REPORTS.map(|name| fs::read(out.join(name)).unwrap()).into();
    assert_eq!(report(&[&out]).status.code(), Some(0));
    assert!(REPORTS.iter().zip(before).all(|(name, before)| fs::read(out.join(name)).unwrap() == before));
    // `weft report` also writes the reports of an earlier run.
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
    // A second `--resume` has nothing to do, which is a usage error.
    assert_eq!(weft(&out, &scripts, &["--resume"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_run_that_was_killed_is_reported_as_far_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scripts) = (folder.path().join("out"), folder.path().join("suites"));
    suites(&scripts, "if p.n == 3 then t:pause(3600) end");
    kill_at(weft(&out, &scripts, &["--jobs", "1"]), "n=2");
    let output = report(&[&out]);
    // Two cases did not run, so the run has no verdict (exit code 3).
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    assert!(text(&output).contains("4 cases: 2 pass; broken"), "{}", text(&output));
    // Without the store, `weft report` reads the results from the evidence.
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
    assert!(text(&output).contains("this folder has no run"), "{}", text(&output));
}

/// `/dev/full` behaves like a disk without free space. If a new report does not fit, the old report
/// stays unchanged.
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

/// The folder contains a run of weft 0.1. `weft report` writes the reports of the current version
/// for this run.
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

/// A call that strace recorded: the sync of a file, or a write to the results store with its data.
#[cfg(target_os = "linux")]
enum Step<'a> {
    Synced(&'a str),
    Stored(&'a str),
}

/// Returns the calls in a log of strace, in order. If another thread interrupts a call, the log has
/// two lines for this call. A sync counts when it has returned. A write counts when it begins.
#[cfg(target_os = "linux")]
fn steps(log: &str) -> Vec<Step<'_>> {
    let (mut steps, mut begun) = (Vec::new(), std::collections::BTreeMap::new());
    for line in log.lines() {
        // 5 fsync(9</tmp/out/cases/mpa/7.1.1-key/wrong-octet/octet=3/evidence.pcapng>) = 0
        let (thread, call) = line.split_once(' ').unwrap_or((line, ""));
        let (call, file) = (call.trim_start(), call.split(['<', '>']).nth(1).unwrap_or_default());
        if call.starts_with("fsync(") || call.starts_with("fdatasync(") {
            if call.ends_with("<unfinished ...>") {
                begun.insert(thread, file);
            } else {
                steps.push(Step::Synced(file));
            }
        } else if call.contains("sync resumed>") {
            steps.extend(begun.remove(thread).map(Step::Synced));
        } else if call.starts_with("pwrite64(") && file.ends_with("/results.sqlite-wal") {
            steps.push(Step::Stored(call));
        }
    }
    steps
}

/// weft syncs the evidence of a case before it writes the verdict, so a power failure leaves no
/// verdict without evidence. If strace is missing or is not allowed to trace, the test skips
/// itself. CI sets `WEFT_STRACE`, and the test then fails instead.
#[cfg(target_os = "linux")]
#[test]
fn evidence_is_on_the_disk_before_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (out, log) = (folder.path().join("out"), folder.path().join("log"));
    let mut command = Command::new("strace");
    // `-s 4096` makes strace record complete pages of the database, which have 4,096 octets.
    command.args(["-f", "-y", "-s", "4096", "-e", "trace=fsync,fdatasync,pwrite64", "-o"]).arg(&log);
    command.arg(env!("CARGO_BIN_EXE_weft")).env_remove("WEFT_STORE");
    command.args(["test", "builtin", "mpa/7.1.1-key/wrong-octet", "--out"]).arg(&out);
    let output = command.output();
    if !output.as_ref().is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("WEFT_STRACE").is_none(),
            "WEFT_STRACE wants strace, and it does not trace: {output:?}"
        );
        eprintln!("SKIPPED: strace is not installed, or may not trace (Debian: apt-get install strace)");
        return;
    }
    let log = fs::read_to_string(log).unwrap();
    let steps = steps(&log);
    for octet in 0..16 {
        // In a row of the table `results`, the verdict directly follows the name of the case.
        let row = format!("mpa/7.1.1-key/wrong-octet[octet={octet}]pass");
        let stored = steps.iter().position(|step| matches!(step, Step::Stored(page) if page.contains(&row)));
        let stored = stored.unwrap_or_else(|| panic!("{row} is in no page: {log}"));
        for name in ["evidence.pcapng", "transcript.json"] {
            let file = format!("/wrong-octet/octet={octet}/{name}");
            let is_synced = |step: &Step<'_>| matches!(step, Step::Synced(synced) if synced.ends_with(&file));
            assert!(steps[..stored].iter().any(is_synced), "{file} is synced after its verdict, or not at all: {log}");
        }
    }
}

/// `weft test` and `weft report` write the same Allure results.
#[test]
fn allure_results_are_written_to_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let [out, of_test, of_report] = ["out", "of-test", "of-report"].map(|name| folder.path().join(name));
    let mut test = Command::new(env!("CARGO_BIN_EXE_weft"));
    test.env_remove("WEFT_STORE").args(["test", "builtin", "mpa/7.1.1-key/wrong-octet", "--out"]).arg(&out);
    let output = test.arg("--allure").arg(&of_test).output().unwrap();
    let line = format!("allure results: {}\n", of_test.display());
    assert!(output.status.success() && text(&output).contains(&line), "{}", text(&output));
    assert!(report(&[&out, Path::new("--allure"), &of_report]).status.success());
    let names = |folder: &Path| {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<std::collections::BTreeSet<String>>()
    };
    let written = names(&of_test);
    assert_eq!(written.iter().filter(|name| name.ends_with("-result.json")).count(), 16);
    assert!(written.contains("environment.properties") && written.contains("categories.json"), "{written:?}");
    assert_eq!(written, names(&of_report));
}

/// The ticket has the identity of the target, the violated requirement, the bytes and the command.
#[test]
fn a_ticket_describes_one_failure() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("nic.toml");
    let lines = [
        "name = \"nic\"",
        "kind = \"builtin\"",
        "capabilities = [\"crc\"]",
        "deviations = [\"mpa.refuses-long-private-data\"]",
        "[identity]",
        "firmware = \"2.1|beta\"",
    ];
    fs::write(&target, lines.join("\n")).unwrap();
    let out = folder.path().join("out");
    let mut test = Command::new(env!("CARGO_BIN_EXE_weft"));
    test.arg("test").arg(&target).args(["mpa/7.1.1-pd-length/taken", "--seed", "5", "--out"]).arg(&out);
    let output = test.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let hint = format!("weft report {} --ticket CASE\n", out.display());
    assert!(text(&output).contains(&hint), "{}", text(&output));
    let ticket = |case: &str| report(&[&out, Path::new("--ticket"), Path::new(case)]);
    let of_case = ticket("mpa/7.1.1-pd-length/taken");
    let stdout = text(&of_case);
    let again = format!("weft test {} 'mpa/7.1.1-pd-length/taken[length=257]' --seed 5\n", target.display());
    assert!(of_case.status.success(), "{stdout}");
    for expected in [
        "# nic: it closed the connection (MPA-7.1.2-25)\n\nRequired: The responder accepts private data of every length up \
         to 512 bytes.\n",
        "| target | nic, in process, virtual clock |\n",
        "| firmware | 2.1\\|beta |\n",
        "; RFC 5044 section 7.1.2, <https://www.rfc-editor.org/rfc/rfc5044#section-7.1.2>\n",
        "- actual: it closed the connection\n- decided at frame ",
        "- mpa/7.1.1-pd-length/taken: passes up to length 256, fails from 257\n",
        "  sent      MPA Request\n                         4d5041204944205265712046",
        &again,
        "The capture is `cases/mpa/7.1.1-pd-length/taken/length=257/evidence.pcapng`, recorded by weft itself",
        "[[baseline]]\ncase = \"mpa/7.1.1-pd-length/taken\"\noutcome = \"fail\"\nsignature = \"MPA-7.1.2-25: it closed",
    ] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
    let variant = ticket("mpa/7.1.1-pd-length/taken[length=512]");
    assert!(text(&variant).contains("taken[length=512]' --seed 5") && variant.status.success());
    for passed in ["mpa/7.1.1-pd-length/taken[length=1]", "mpa/7.1.1-pd-length/too-long"] {
        let refused = ticket(passed);
        assert!(refused.status.code() == Some(2) && text(&refused).contains("has no failure in this run"), "{passed}");
    }
    let unknown = ticket("mpa/7.1.1-pd-length/takken");
    let stderr = text(&unknown);
    assert!(unknown.status.code() == Some(2) && stderr.contains("did you mean mpa/7.1.1-pd-length/taken?"), "{stderr}");
}
