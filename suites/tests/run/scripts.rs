//! Tests scripts with errors, and cases in which the target does not do what the script waits for.
//! Each case ends with a verdict and the line of the script.

use std::time::Duration;

use crate::common::{one_case, run};
use weft_suites::Filter;
use weft_suites::model::{CaseResult, ExitCode, Verdict};
use weft_suites::script::{Limits, Suites};
use weft_suites::targets::Target;

/// Runs a case with this body against the builtin responder.
async fn result_of(body: &str) -> CaseResult {
    let out = tempfile::tempdir().unwrap();
    let limits = Limits { instructions: 1_000_000, time: Duration::from_secs(20), ..Limits::default() };
    let suites = Suites::from_folder_with(&one_case(out.path(), body), limits).unwrap();
    let (mut report, _) = run(Target::builtin(), suites, Filter::everything(), out.path()).await;
    if report.results[0].verdict == Verdict::Error {
        assert_eq!(report.summary.exit_code, ExitCode::HarnessError);
    }
    // The files of the evidence exist, whatever the verdict is.
    for file in &report.results[0].evidence.files {
        assert!(out.path().join(&file.path).is_file(), "{}", file.path);
    }
    report.results.remove(0)
}

#[tokio::test]
async fn script_errors_name_their_line_and_the_expectation() {
    for (body, line, word) in [
        ("\nlocal x = nil + 1", 4, "arithmetic on a nil value"),
        ("t:good_exchange()\nt:conect()", 4, "conect"),
        ("local c = t:connect()\n\nc:send(nil)", 5, "expected a message or a string of bytes, found nil"),
        ("local c = t:connect()\nc:expect_close { requirment = 'MPA-7.1.1-2' }", 4, "no field \"requirment\""),
        ("local c = t:connect()\nc:expect_close { requirement = 'MPA-7.1.1-999' }", 4, "unknown requirement"),
        ("local c = t:connect()\nc:expect_close { requirement = 'MPA-4.1-3' }", 4, "does not list MPA-4.1-3"),
        ("local c = t:connect()\nc:expect_close { within = -1 }", 4, "within"),
        ("t:request { revison = 2 }", 3, "no field \"revison\""),
        ("t:request():flip(p.octet)", 3, "no parameter \"octet\""),
        ("t:request():flip(20)", 3, "no byte 20"),
        ("local c = t:connect()\nc:close()\nc:send('x')", 5, "closed"),
        // A script must not use `coroutine`, because it could then catch errors or wait forever.
        // Only weft's own functions that wait use it.
        ("t:good_exchange()\ncoroutine.yield()", 4, "coroutine"),
        ("t:good_exchange()\n_G.coroutine.wrap(function() end)", 4, "coroutine"),
        ("while true do end", 3, "more than 1000000 instructions"),
        (
            "local c, m = t:connect(), string.rep('x', 1 << 20)\nfor i = 1, 65 do c:send(m) end",
            4,
            "the case sends more than 67108864",
        ),
        // If memory is exhausted, Lua reports no line. weft then reports the line at which the case
        // begins.
        ("local s = 'x' while true do s = s .. s end", 1, "memory"),
    ] {
        let result = result_of(body).await;
        let at = result.decided_at.as_ref().unwrap();
        assert_eq!(result.verdict, Verdict::Error, "{body}: {}", result.explanation);
        assert!(result.explanation.contains(word), "{body}: {}", result.explanation);
        assert_eq!((at.file.as_str(), at.line), ("mpa/x.lua", line), "{body}: {}", result.explanation);
    }
}

#[tokio::test]
async fn a_case_without_evidence_is_an_error_of_the_case() {
    for (body, word) in [
        ("t:good_exchange()", "without an expectation for MPA-7.1.1-2"),
        (
            "local c = t:connect() c:send(t:request():flip(0)) c:expect_close { requirement = 'MPA-7.1.1-2' }",
            "no t:good_exchange()",
        ),
    ] {
        let result = result_of(body).await;
        assert_eq!(result.verdict, Verdict::Error);
        assert!(result.explanation.contains(word), "{}", result.explanation);
    }
}

/// The script of the case ends without a liveness exchange. After the script, weft performs a good
/// exchange. If the target died of the stimulus, this exchange fails.
#[tokio::test]
async fn a_case_ends_with_a_good_exchange() {
    let body = "t:good_exchange() local c = t:connect() c:send(t:request():flip(0)) \
                c:expect_close { requirement = 'MPA-7.1.1-2' }";
    let result = result_of(body).await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    let replies = result.steps.iter().filter(|step| step.text.starts_with("MPA Reply")).map(|step| step.connection);
    assert_eq!(replies.collect::<Vec<_>>(), [1, 3], "{:?}", result.steps);
}

#[tokio::test]
async fn a_wait_in_vain_is_inconclusive() {
    let body = "t:good_exchange()\nlocal c = t:connect()\nc:send(t:request():cut(19))\n\
                c:expect_close { requirement = 'MPA-7.1.1-2', within = 1 }";
    let result = result_of(body).await;
    assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.explanation);
    assert_eq!(result.actual.as_deref(), Some("nothing within 1 s, and the connection stays open"));
    assert_eq!(result.decided_at.unwrap().line, 6);
}

#[tokio::test]
async fn preparation_that_fails_is_inconclusive_and_a_requirement_fails() {
    let prepare = "local c = t:connect()\nc:send(t:request())\nc:expect_reply { reject = true }";
    let result = result_of(prepare).await;
    assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.explanation);
    assert_eq!(result.expected.as_deref(), Some("an MPA Reply, R=1"));
    let judged = prepare.replace("reject = true", "reject = true, requirement = 'MPA-7.1.1-2'");
    assert_eq!(result_of(&judged).await.verdict, Verdict::Fail);
    let closed = "local c = t:connect()\nc:send(t:request():flip(0))\nc:expect_reply { requirement = 'MPA-7.1.1-2' }";
    let result = result_of(closed).await;
    assert_eq!((result.verdict, result.actual.as_deref()), (Verdict::Fail, Some("it closed the connection")));
}

#[tokio::test]
async fn scripts_speak_all_of_the_good_exchange() {
    let body = "t:good_exchange()\nlocal c = t:connect()\nc:send(mpa.request { private_data = 'hi' })\n\
                c:expect_reply { revision = 1, crc = true, markers = false, reject = false }\n\
                c:send(mpa.fpdu { ulpdu = rdmap.send { payload = 'weft' } })\nt:note('sent hello')\nc:close()\n\
                c = t:connect()\nc:send(t:request():flip(1))\nc:expect_close { requirement = 'MPA-7.1.1-2' }\nt:liveness()";
    let result = result_of(body).await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    let texts: Vec<&str> = result.steps.iter().map(|step| step.text.as_str()).collect();
    assert!(texts.contains(&"sent hello") && texts.contains(&"FPDU with Send"), "{texts:?}");
}

#[tokio::test]
async fn violations_by_the_tester_are_not_attributed_to_the_target() {
    // The tester sends PAD bytes that are not zero. The monitor reports this violation, and names
    // the tester as the sender.
    let body = "t:good_exchange()\nlocal c = t:connect()\nc:send(t:request())\nc:expect_reply()\n\
                c:send(mpa.fpdu { ulpdu = rdmap.send { payload = 'a' }, pad = '\\1\\1\\1' })\nc:close()\n\
                c = t:connect()\nc:send(t:request():flip(1))\nc:expect_close { requirement = 'MPA-7.1.1-2' }\nt:liveness()";
    let result = result_of(body).await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    assert!(result.findings.iter().any(|finding| finding.requirement.as_str() == "MPA-4.1-3"), "{:?}", result.findings);
    assert!(result.findings.iter().all(|finding| !finding.by_target), "{:?}", result.findings);
    assert_eq!(result.requirements.len(), 1);
}

/// Reports keep the first and last steps of a long transcript, and the steps that decide.
#[tokio::test]
async fn a_long_transcript_keeps_its_stimulus() {
    let body = "t:good_exchange()\nlocal c = t:connect()\nfor i = 1, 200 do t:note('before') end\n\
                c:send(t:request():flip(1))\nc:expect_close { requirement = 'MPA-7.1.1-2' }\n\
                for i = 1, 200 do t:note('after') end";
    let result = result_of(body).await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    let left_out = result.steps.iter().position(|step| step.text.ends_with("transcript.json has them")).unwrap();
    assert_eq!((left_out, result.steps.len()), (25, 52));
    assert!(result.steps[left_out + 1].octets.as_ref().is_some_and(|octets| !octets.marks.is_empty()));
}

/// The transcript keeps its first and its newest steps, and a note shows that steps are missing.
/// This is no reason for an error.
#[tokio::test]
async fn a_flood_of_notes_does_not_change_the_verdict() {
    let body = "t:good_exchange()\nlocal c = t:connect()\nc:send(t:request():flip(1))\n\
                for i = 1, 50100 do t:note('x') end\nc:expect_close { requirement = 'MPA-7.1.1-2' }\nt:liveness()";
    let result = result_of(body).await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    assert!(result.explanation.contains(" The evidence lacks "), "{}", result.explanation);
    assert!(result.steps.iter().any(|step| step.text.starts_with("not in the transcript: ")), "{:?}", result.steps);
    assert!(result.steps.len() < 60, "{}", result.steps.len());
}

/// The example case of the guide is a valid case.
#[tokio::test]
async fn the_example_of_the_guide_runs() {
    let guide = include_str!("../../suites/README.md");
    let script: String =
        guide.lines().filter_map(|line| line.strip_prefix("    ")).map(|line| format!("{line}\n")).collect();
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("suites/mpa");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("7.1.1-key.lua"), script).unwrap();
    let suites = Suites::from_folder(&out.path().join("suites")).unwrap();
    let (report, _) = run(Target::builtin(), suites, Filter::everything(), out.path()).await;
    assert_eq!((report.results.len(), report.summary.exit_code), (16, ExitCode::AsExpected));
}
