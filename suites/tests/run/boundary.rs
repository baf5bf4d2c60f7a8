//! Tests that a run finds the value of a parameter at which a target begins to fail.

use weft_suites::Filter;
use weft_suites::model::Event;
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::run;

#[tokio::test]
async fn the_boundary_of_a_size_is_found_by_bisection() {
    let target = Target::builtin().with_deviations(["ddp.loses-long-segments"]).unwrap();
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["ddp/5.2-sizes/fpdu", "ddp/5.2-sizes/bits"]);
    let (report, events) = run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    let [boundary] = &report.summary.boundaries[..] else { panic!("{:?}", report.summary.boundaries) };
    // The deviation concerns ULPDUs of more than 32,000 bytes, with 18 bytes of headers.
    assert_eq!((boundary.passes, boundary.fails), (31_982, 31_983));
    assert_eq!(boundary.to_string(), "ddp/5.2-sizes/fpdu: passes up to payload 31982, fails from 31983");
    assert!((10..20).contains(&boundary.runs), "{}", boundary.runs);
    let evidence = out.path().join("cases/ddp/5.2-sizes/fpdu/payload=31983/evidence.pcapng");
    assert!(evidence.is_file(), "{}", evidence.display());
    // The additional runs have no results and no events.
    let is_other =
        |event: &Event| matches!(event, Event::CaseStep { key, .. } if !report.results.iter().any(|it| it.key == *key));
    assert!(report.results.iter().all(|result| result.key.to_string() != "ddp/5.2-sizes/fpdu[payload=31983]"));
    assert!(!events.iter().any(is_other));
}

#[tokio::test]
async fn a_correct_target_has_no_boundary() {
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["ddp/5.2-sizes/fpdu", "mpa/7.1.1-pd-length"]);
    let (report, _) = run(Target::builtin(), Suites::embedded().unwrap(), filter, out.path()).await;
    assert_eq!(report.summary.boundaries, []);
}
