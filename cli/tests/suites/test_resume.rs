//! Tests a run of `weft test` that is interrupted. The finished results stay, and `--resume` runs
//! the remaining cases.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Writes a case with four variants. `pause` is a line of Lua that each variant runs first.
pub(crate) fn suites(folder: &Path, pause: &str) {
    let script = format!(
        "case {{ id = 'mpa/x/one', version = 1, title = 'One', requirements = {{ 'MPA-7.1.1-2' }}, roles = {{ 'responder' }},\n\
         parameters = {{ n = range(1, 4) }},\nrun = function(t, p)\n{pause}\nt:good_exchange()\n\
         local c = t:connect() c:send(t:request():flip(0)) c:expect_close {{ requirement = 'MPA-7.1.1-2' }} t:liveness()\nend }}\n"
    );
    std::fs::create_dir_all(folder.join("mpa")).unwrap();
    std::fs::write(folder.join("mpa/x.lua"), script).unwrap();
}

pub(crate) fn weft(out: &Path, suites: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.env_remove("WEFT_STORE").args(["test", "builtin-tcp", "--out"]).arg(out).arg("--suites").arg(suites);
    command.args(more);
    command
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_killed_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scripts) = (folder.path().join("out"), folder.path().join("suites"));
    suites(&scripts, "if p.n == 3 then t:pause(3600) end");
    let mut process = weft(&out, &scripts, &["--seed", "5"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let finished = lines.filter(|line| line.trim_start().starts_with("pass")).take(2).count();
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(finished, 2);

    suites(&scripts, "");
    let resumed = weft(&out, &scripts, &["--resume"]).output().unwrap();
    let printed = text(&resumed);
    assert_eq!(resumed.status.code(), Some(0), "{printed}");
    assert!(printed.contains("seed 5") && printed.contains("4 cases: 4 pass; done"), "{printed}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    let keys: Vec<i64> = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["key"]["parameters"]["n"].as_i64().unwrap())
        .collect();
    assert_eq!(keys, [1, 2, 3, 4]);

    // The history has one result for each of the four variants. A second `--resume` has nothing to
    // do, which is a usage error.
    let history = weft(&out, &scripts, &["--history", "mpa/x/one"]).output().unwrap();
    assert_eq!(text(&history).lines().filter(|line| line.contains(" pass ")).count(), 4, "{}", text(&history));
    let again = weft(&out, &scripts, &["--resume"]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
}

/// A CI system sends SIGTERM to stop a run. Like Ctrl-C, it ends the run, and weft writes reports
/// of the finished cases.
#[cfg(unix)]
#[test]
fn a_run_that_is_terminated_writes_its_reports() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scripts) = (folder.path().join("out"), folder.path().join("suites"));
    suites(&scripts, "if p.n == 3 then t:pause(3600) end");
    let mut process =
        weft(&out, &scripts, &["--jobs", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.by_ref().filter(|line| line.trim_start().starts_with("pass")).take(2).count(), 2);
    let killed = Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(lines.any(|line| line.contains("4 cases: 2 pass; cancelled")));
    // Two cases did not run, so the run has no verdict (exit code 3).
    assert_eq!(process.wait().unwrap().code(), Some(3));
    let printed = std::io::read_to_string(process.stderr.take().unwrap()).unwrap();
    assert!(printed.contains("weft keeps the finished results"), "{printed}");
    assert!(out.join("report.html").is_file() && out.join("junit.xml").is_file());
}
