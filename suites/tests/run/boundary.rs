//! Tests that a run finds the value of a parameter at which a target begins to fail.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use weft_suites::model::{Event, RunStatus};
use weft_suites::script::Suites;
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions};

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

/// A case that passes with 1, fails with 100 (it expects a close after a correct Request), and
/// takes an hour with a value between these two.
const SLOW_SEARCH: &str = "case { id = 'mpa/x/one', version = 1, title = 'One', requirements = { 'MPA-7.1.1-2' },
  parameters = { n = { 1, 100 } }, scales = { 'n' },
  run = function(t, p)
    if p.n > 1 and p.n < 100 then t:pause(3600) end
    t:good_exchange()
    local c = t:connect()
    if p.n == 100 then c:send(t:request()) else c:send(t:request():flip(0)) end
    c:expect_close { requirement = 'MPA-7.1.1-2', within = 1 }
    t:liveness()
  end }
";

/// All cases have finished when the search begins, so a stop ends only the search.
#[tokio::test]
async fn a_stop_ends_the_search_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("suites");
    std::fs::create_dir_all(scripts.join("mpa")).unwrap();
    std::fs::write(scripts.join("mpa/x.lua"), SLOW_SEARCH).unwrap();
    let (cancel, receiver) = watch::channel(false);
    let (sender, mut finished) = mpsc::unbounded_channel();
    let sink = move |event: &Event| {
        if let Event::CaseFinished { .. } = event {
            sender.send(()).unwrap();
        }
    };
    let options = RunOptions {
        target: Target::builtin_tcp(),
        suites: Suites::from_folder(&scripts).unwrap(),
        filter: Filter::everything(),
        out: folder.path().join("out"),
        seed: Some(7),
        cancel: Some(receiver),
    };
    let run = tokio::spawn(weft_suites::run(options, Arc::new(sink)));
    for _ in 0..2 {
        finished.recv().await.unwrap();
    }
    cancel.send_replace(true);
    let summary = run.await.unwrap().unwrap().summary;
    assert_eq!((summary.status, summary.counts.pass, summary.counts.fail), (RunStatus::Done, 1, 1));
    let [boundary] = &summary.boundaries[..] else { panic!("{:?}", summary.boundaries) };
    assert_eq!((boundary.passes, boundary.fails, boundary.runs), (1, 100, 0));
}
