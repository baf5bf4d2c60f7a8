//! Tests with a target that is a program. weft starts the program, and the program ends by itself.
//! The report shows how it ended, and a crash makes the case fail.

use std::path::Path;

use weft_suites::Filter;
use weft_suites::model::{CaseResult, ProgramEnd, RequirementVerdict, StepKind, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::has;

const CASE: &str = "mpa/7.1.2-reply/wrong-key[octet=0]";

/// A shell script that is an MPA Initiator. It sends a Request. After a Reply with the right key,
/// it waits for the end of the connection. After a Reply with a wrong key, it runs the command
/// `$3`.
const CLIENT: &str = r#"
ulimit -c 0
[ -e gone ] && exit 4
exec 3<>"/dev/tcp/$1/$2"
printf 'MPA ID Req Frame\x40\x01\0\0' >&3
[ "$(head -c 16 <&3)" = 'MPA ID Rep Frame' ] || eval "$3"
exec cat <&3 >/dev/null
"#;

/// Runs the case against the Initiator, with `at_wrong_key` as the command. Returns `None` if this
/// machine has no bash.
async fn result(at_wrong_key: &str, more: &str) -> Option<CaseResult> {
    if !has("bash") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!("cd '{}'\n{CLIENT}", folder.path().display());
    std::fs::write(folder.path().join("client"), script).unwrap();
    let client = folder.path().join("client");
    let text = format!(
        "name = \"client\"\nkind = \"tcp\"\nrole = \"initiator\"\nlisten = \"127.0.0.1:0\"\nservice = \"none\"\n\
         time_scale = 0.2\nstart = [\"bash\", \"{}\", \"{{address}}\", \"{{port}}\", \"{at_wrong_key}\"]\n{more}",
        client.display()
    );
    let target = Target::from_toml("client.toml", &text).unwrap();
    let out = folder.path().join("out");
    let (mut report, _) = crate::common::run(target, Suites::embedded().unwrap(), Filter::of([CASE]), &out).await;
    let result = report.results.remove(0);
    is_in_the_transcript(&result, &out);
    Some(result)
}

/// Checks that the transcript on the disk has the same ends of programs as the result.
fn is_in_the_transcript(result: &CaseResult, out: &Path) {
    let text = std::fs::read(out.join(&result.evidence.folder).join("transcript.json")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let ends: Vec<ProgramEnd> =
        serde_json::from_value(written.get("program_ends").cloned().unwrap_or(serde_json::json!([]))).unwrap();
    assert_eq!(ends, result.program_ends);
}

/// Returns the exit status and the signal with which the program of connection 1 ended. This
/// program got the wrong key.
fn first_end(result: &CaseResult) -> (Option<i32>, Option<i32>) {
    let end = result.program_ends.first().unwrap_or_else(|| panic!("no end: {}", result.explanation));
    assert_eq!(end.connection, Some(1));
    assert!(end.command.starts_with("bash "), "{}", end.command);
    let note = format!("{end}: ");
    let is_noted = result.steps.iter().any(|step| step.kind == StepKind::Note && step.text.starts_with(&note));
    assert!(is_noted, "{note}: {:?}", result.steps);
    (end.exit_status, end.signal)
}

#[tokio::test]
async fn an_exit_status_is_recorded() {
    let Some(result) = result("exit 3", "").await else { return };
    // The end of the program closed the connection, as the requirement demands.
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    assert_eq!(first_end(&result), (Some(3), None));
}

#[tokio::test]
async fn a_failure_names_the_exit_status_of_the_program() {
    // After the program has ended, its child process still sends an answer before the connection
    // closes. This answer makes the case fail.
    let answer = "until grep -qs State:.Z /proc/$$/status || [ ! -e /proc/$$ ]; do :; done; \
                  printf 'MPA ID Rep Frame\\\\x40\\\\x01\\\\0\\\\0' >&3";
    let Some(result) = result(&format!("({answer}) & exit 3"), "").await else { return };
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
    assert_eq!(first_end(&result), (Some(3), None));
    let expected = " The program of connection 1 ended, exit status: 3.";
    assert!(result.explanation.ends_with(expected), "{}", result.explanation);
}

/// The crash closes the connection, as the requirement demands, and the next start of the program
/// works. The case fails nevertheless.
#[tokio::test]
async fn a_crash_fails_the_case() {
    let Some(result) = result("kill -SEGV $$", "").await else { return };
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
    assert_eq!(first_end(&result), (None, Some(11)));
    assert!(result.explanation.starts_with("The target died during the case."), "{}", result.explanation);
    assert_eq!(result.actual.as_deref(), Some("the program of connection 1 ended, signal: 11 (SIGSEGV)"));
    let is_failing = |judged: &&RequirementVerdict| judged.verdict == Verdict::Fail;
    assert_eq!(result.requirements.iter().filter(is_failing).count(), 1, "{:?}", result.requirements);
}

/// The signal SIGKILL comes from another process, so it is not a crash of the target.
#[tokio::test]
async fn a_killed_program_is_recorded_and_not_held_against_the_target() {
    let Some(result) = result("kill -KILL $$", "").await else { return };
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    assert_eq!(first_end(&result), (None, Some(9)));
}

/// The explanation has the exit status, and also the output of the command `crashed`.
#[tokio::test]
async fn a_target_that_does_not_come_back_has_its_exit_status_and_last_words() {
    let crashed = "crashed = [\"/bin/sh\", \"-c\", \"echo Oops\"]\n";
    let Some(result) = result(": >gone; exit 3", crashed).await else { return };
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
    assert_eq!(first_end(&result), (Some(3), None));
    let (begin, end) = (
        "The target died during the case.",
        " The program of connection 1 ended, exit status: 3. Its last output: Oops.",
    );
    assert!(result.explanation.starts_with(begin), "{}", result.explanation);
    assert!(result.explanation.ends_with(end), "{}", result.explanation);
    let none = ProgramEnd { connection: None, exit_status: Some(4), ..result.program_ends[0].clone() };
    assert_eq!(result.program_ends.last(), Some(&none));
}
