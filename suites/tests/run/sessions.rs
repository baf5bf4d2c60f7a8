//! Tests steps of sessions with the services echo and rping (`suites/library`) against weft's own
//! targets. A correct target passes. A target with a deviation (a named fault) fails.

use weft_suites::Filter;
use weft_suites::model::{CaseResult, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::run;

/// Plays a session. `service` is "echo" or "rping". `rows` are further arguments of
/// `session.requirements`, and `steps` are calls in Lua with the session in `s`.
async fn session(target: Target, service: &str, rows: &str, steps: &str) -> CaseResult {
    let out = tempfile::tempdir().unwrap();
    let suites = out.path().join("suites");
    std::fs::create_dir_all(suites.join("rdmap")).unwrap();
    let script = format!(
        "case {{ id = 'rdmap/steps/one', title = 'Steps', requirements = session.requirements(session.{list}{rows}), \
         capabilities = {{ '{service}' }}, run = function(t) local s = session.{service}(t) {steps} \
         s:finish() end }}\n",
        list = service.to_uppercase()
    );
    std::fs::write(suites.join("rdmap/steps.lua"), script).unwrap();
    let suites = Suites::from_folder(&suites).unwrap();
    let mut report = run(target, suites, Filter::everything(), out.path()).await.0;
    report.results.remove(0)
}

async fn passes(service: &str, rows: &str, steps: &str) {
    let result = session(Target::builtin(), service, rows, steps).await;
    assert_eq!(result.verdict, Verdict::Pass, "{service}, {steps}: {}", result.explanation);
    let failing: Vec<_> = result.failing().collect();
    assert!(failing.is_empty(), "{service}, {steps}: {failing:?}");
}

#[tokio::test]
async fn a_window_of_reads_has_several_reads_at_a_time() {
    let steps = "s:open(1, { enhanced = true }) s:window(1, 40, 3000) s:write(1, { at = 0, size = 9 }) \
                 s:window(1, 20, 1) s:window(2, 3, 9) s:answers(1)";
    passes("rping", "", steps).await;
    let target = Target::builtin().with_deviations(["rdmap.one-read"]).unwrap();
    let result = session(target, "rping", "", steps).await;
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
}

#[tokio::test]
async fn reads_fill_the_segments_of_the_target() {
    passes("rping", "", "s:fill(1, 2, -1, 65535) s:fill(1, 1, 2, 65535) s:fill(1, 3, 1, 100) s:answers(1)").await;
}

/// After a fault on a connection, the others still work. One of them has an incomplete Send, an
/// unanswered Read, or an unanswered Read of the target.
#[tokio::test]
async fn other_connections_work_after_a_fault() {
    let echo = "s:message(1, { size = 300, segment = 100 }) s:segments(1, 1) s:open(2) s:fault(3, 'unknown-stag') \
                s:use_others(3) s:fault_now(1, 'used-msn') s:use_others(1)";
    passes("echo", ", 'unknown-stag', 'used-msn'", echo).await;
    let rping = "s:read(1, { at = 0, size = 3000 }) s:announce(2, { size = 300 }) s:fault(3, 'unknown-stag') \
                 s:use_others(3) s:respond(2) s:rounds(2, 1, { size = 30 })";
    passes("rping", ", 'unknown-stag', table.unpack(session.ANNOUNCED)", rping).await;
}
