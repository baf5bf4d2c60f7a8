//! Tests the cases about states of an SDP connection: open advertisements, a changed size of the
//! Private Buffers, a changed Mode, and a suspension. Each case passes against the correct target.
//! Against a target with a deviation (a named fault), a case fails and names the requirement.

use std::collections::BTreeSet;

use weft_core::RequirementId;
use weft_suites::Filter;
use weft_suites::model::{CaseResult, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::run;

/// A deviation, the case that finds it, and the requirement that the case names.
const FOUND: &[(&str, &str, &str)] = &[
    ("sdp.ch-rcv-buf-ack-left-out", "sdp/10.6-resized/larger-source", "SDP-10.6-11"),
    ("sdp.ch-rcv-buf-ack-left-out", "sdp/10.6-resized/smaller-source", "SDP-10.6-11"),
    ("sdp.private-buffers-of-before", "sdp/10.6-resized/larger-echo", "SDP-10.6.2-1"),
    ("sdp.private-buffers-of-before", "sdp/10.6-resized/larger-sink", "SDP-10.6.2-1"),
    ("sdp.sink-avail-of-buffer-size", "sdp/10.6-resized/larger-echo", "SDP-10.6-16"),
    ("sdp.sink-avail-of-buffer-size", "sdp/10.6-resized/smaller-echo", "SDP-10.6-16"),
    ("sdp.sink-avail-of-buffer-size", "sdp/10.6-resized/smaller-sink", "SDP-10.6-16"),
    ("sdp.ignores-wr-compl", "sdp/11.3-outstanding/writes", "SDP-11.3-5"),
    ("sdp.exceeds-max-adverts", "sdp/11.3-outstanding/mixed-echo", "SDP-6.2.1.3-3"),
    ("sdp.exceeds-max-adverts", "sdp/11.3-outstanding/mixed-sink", "SDP-11.3-23"),
    ("sdp.sink-avail-non-discards", "sdp/11.3-outstanding/mixed-echo", "SDP-9.3-5"),
    ("sdp.exceeds-buffer-size", "sdp/11.3-outstanding/mixed-echo", "SDP-10-6"),
    ("sdp.loses-long-data", "sdp/11.3-outstanding/mixed-echo", "SDP-8.2-1"),
    ("sdp.data-overtakes-src-avail", "sdp/11.3-outstanding/held", "SDP-11.2-6"),
    ("sdp.data-after-src-avail", "sdp/11.3-outstanding/held-source", "SDP-11.2-6"),
    ("sdp.reads-not-enabled", "sdp/11.3-outstanding/reads-at-once-echo", "SDP-6.2.2.5-1"),
    ("sdp.reads-not-enabled", "sdp/11.3-outstanding/reads-at-once-source", "SDP-6.2.2.5-1"),
    ("sdp.reads-beyond-peers-ird", "sdp/11.3-outstanding/one-read-of-sink", "SDP-8.1.1-27"),
    ("sdp.ignores-mode-change-to-combined", "sdp/12-outstanding/back-and-forth", "SDP-12.5-10"),
    ("sdp.refuses-mode-change-beside-src-avail", "sdp/12-outstanding/pipelined-while-read-echo", "SDP-12.3-2"),
    ("sdp.refuses-mode-change-beside-src-avail", "sdp/12-outstanding/pipelined-while-read-sink", "SDP-12.3-2"),
    ("sdp.susp-comm-ack-left-out", "sdp/13.1-suspended/in-transfer-echo", "SDP-13.1.1-11"),
    ("sdp.stays-connected", "sdp/13.1-suspended/in-transfer-sink", "SDP-13.1.1-15"),
    ("sdp.non-discards-kept-after-suspension", "sdp/13.1-suspended/continues", "SDP-6.3.3.4-1"),
];

#[tokio::test]
async fn the_correct_target_passes() {
    let cases: BTreeSet<&str> = FOUND.iter().map(|(_, case, _)| *case).collect();
    let out = tempfile::tempdir().unwrap();
    let suites = Suites::embedded().unwrap();
    let (report, _) = run(Target::builtin(), suites, Filter::of(cases.iter().copied()), out.path()).await;
    let judged: BTreeSet<&str> = report.results.iter().map(|result| result.key.case.as_str()).collect();
    assert_eq!(judged, cases);
    let failures: Vec<String> = report
        .results
        .iter()
        .filter(|result| result.verdict != Verdict::Pass || result.failing().next().is_some())
        .map(|result| {
            let failing: Vec<&str> = result.failing().map(RequirementId::as_str).collect();
            format!("{}: {:?}, {failing:?}, {}", result.key, result.verdict, result.explanation)
        })
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test]
async fn the_cases_find_deviations() {
    let suites = Suites::embedded().unwrap();
    let mut missed = Vec::new();
    for (deviation, case, row) in FOUND {
        let out = tempfile::tempdir().unwrap();
        let target = Target::builtin().with_deviations([*deviation]).unwrap();
        let (report, _) = run(target, suites.clone(), Filter::of([*case]), out.path()).await;
        let is_named = |result: &CaseResult| result.failing().any(|failing| failing.as_str() == *row);
        if !report.results.iter().any(|result| result.verdict == Verdict::Fail && is_named(result)) {
            let texts: Vec<&str> = report.results.iter().map(|result| result.explanation.as_str()).collect();
            missed.push(format!("{deviation}, {case}, {row}: {texts:?}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
