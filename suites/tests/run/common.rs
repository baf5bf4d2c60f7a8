//! Has the functions that the tests of runs share.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use weft_suites::model::{CaseResult, Event, RunReport};
use weft_suites::script::Suites;
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions};

/// Returns whether this machine has `program`. If it has not, the caller skips its test. If the
/// environment variable `WEFT_PROGRAMS` is set, a missing program fails the test.
pub fn has(program: &str) -> bool {
    if std::process::Command::new(program).arg("--version").output().is_ok() {
        return true;
    }
    assert!(std::env::var_os("WEFT_PROGRAMS").is_none(), "WEFT_PROGRAMS is set, but there is no {program}");
    println!("skipped: no {program}");
    false
}

pub const CASE: &str = "mpa/7.1.1-key/wrong-octet";

/// Runs the selected cases of suites. Returns the report and all events.
pub async fn run(target: Target, suites: Suites, filter: Filter, out: &Path) -> (RunReport, Vec<Event>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let into = events.clone();
    let sink = Arc::new(move |event: &Event| into.lock().unwrap().push(event.clone()));
    let options = RunOptions { target, suites, filter, out: out.to_owned(), seed: Some(7), cancel: None };
    let report = weft_suites::run(options, sink).await.unwrap();
    let events = events.lock().unwrap().clone();
    (report, events)
}

/// Returns the result with all steps. `out` is the folder of the run. Reports omit steps of long
/// transcripts.
pub fn with_all_steps(result: &CaseResult, out: &Path) -> CaseResult {
    let transcript = fs::read(out.join(&result.evidence.folder).join("transcript.json")).unwrap();
    serde_json::from_slice(&transcript).unwrap()
}

/// Runs [`CASE`], the case about the key of an MPA Request, against a target.
pub async fn key_case(target: Target, out: &Path) -> RunReport {
    run(target, Suites::embedded().unwrap(), Filter::of([CASE]), out).await.0
}

/// The builtin target with a deviation (a named fault) that [`CASE`] finds.
pub fn deviating() -> Target {
    Target::builtin().with_deviations(["mpa.accepts-wrong-key"]).unwrap()
}

/// Makes a folder of suites with one script, `mpa/x.lua`. The script has one case, `mpa/x/one`, and
/// `body` is the body of its function.
pub fn one_case(folder: &Path, body: &str) -> std::path::PathBuf {
    let script = format!(
        "case {{ id = 'mpa/x/one', version = 1, title = 'One', requirements = {{ 'MPA-7.1.1-2' }}, roles = {{ 'responder' }},\nrun = function(t, p)\n{body}\nend }}\n"
    );
    let suites = folder.join("suites");
    fs::create_dir_all(suites.join("mpa")).unwrap();
    fs::write(suites.join("mpa/x.lua"), script).unwrap();
    suites
}
