//! Tests deviations (named faults of an endpoint) that the monitor cannot notice. For each of them,
//! a case of the suites fails against the deviating end and names the requirement. The same case
//! passes against a correct end. A few deviations are noticed only by a user of the deviating end.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use weft_core::RequirementId;
use weft_core::error::Layer;
use weft_core::requirement::Severity;
use weft_peer::{Deviation, hostile};
use weft_suites::model::{Event, RequirementVerdict, RunReport, Verdict, is_proposal};
use weft_suites::script::Suites;
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions, run};

use crate::hostile::proof::By;

/// The case that catches each deviation. Columns: deviation, case, target, requirement.
const CASES: &str = include_str!("cases.csv");

/// Deviations that no tester can notice, each with the reason. A user notices the deviation in one
/// of the scenes.
const UNSEEN: &[(&str, &str)] = &[
    ("pm.answers-as-before", "only the host of the service knows whether the service still exists"),
    (
        "pm.request-goes-elsewhere",
        "the tester is the port mapper and receives nothing, as from a client that queries no port mapper",
    ),
];

static SUITES: LazyLock<Suites> = LazyLock::new(|| Suites::embedded().unwrap());

/// A line of [`CASES`].
struct Line {
    deviation: &'static str,
    case: &'static str,
    target: &'static str,
    requirement: RequirementId,
}

fn lines() -> impl Iterator<Item = Line> {
    CASES.lines().skip(1).map(|line| {
        let mut parts = line.split(',');
        let mut part = || parts.next().unwrap_or_else(|| panic!("{line}: a part is missing"));
        let (deviation, case, target) = (part(), part(), part());
        Line { deviation, case, target, requirement: part().parse().unwrap() }
    })
}

/// For each layer and target, the results of correct ends in all cases of the list.
type Correct = HashMap<(Layer, &'static str), Arc<RunReport>>;

static CORRECT: LazyLock<Mutex<Correct>> = LazyLock::new(Mutex::default);

fn correct(layer: Layer, target: &'static str) -> Arc<RunReport> {
    let judged = || {
        let is_of = |line: &Line| line.target == target && hostile::by_name(line.deviation).unwrap().layer == layer;
        let cases = lines().filter(is_of).map(|line| line.case);
        Arc::new(judged(Filter::of(cases), Target::resolve(target).unwrap()))
    };
    Arc::clone(CORRECT.lock().unwrap().entry((layer, target)).or_insert_with(judged))
}

fn judged(filter: Filter, target: Target) -> RunReport {
    let folder = tempfile::tempdir().unwrap();
    let (suites, out) = (SUITES.clone(), folder.path().to_owned());
    let options = RunOptions { target, suites, filter, out, seed: Some(1), cancel: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(options, Arc::new(|_: &Event| {}))).unwrap()
}

/// Checks that the case of a deviation fails because of the deviation. If the deviation is in
/// [`UNSEEN`], checks instead that `seen` is true: a user noticed the deviation. If the case also
/// reports errors about other requirements, adds these errors to `unexpected`, as lines of
/// `also.csv`.
///
/// # Errors
/// The case does not catch the deviation, there is no case, or no user noticed the deviation. The
/// text has the reason.
pub(crate) fn names(deviation: &Deviation, seen: bool, unexpected: &mut Vec<String>) -> Result<By, String> {
    if UNSEEN.iter().any(|(name, _)| *name == deviation.name) {
        return seen.then_some(By::Users).ok_or_else(|| format!("{}: not even users see it", deviation.name));
    }
    let Some(Line { case, target, requirement, .. }) = lines().find(|line| line.deviation == deviation.name) else {
        return Err(format!("{}: nothing names one of {:?}", deviation.name, deviation.breaks));
    };
    if !deviation.breaks.contains(&requirement) {
        return Err(format!("{}: {requirement} is none of {:?}", deviation.name, deviation.breaks));
    }
    let correct = correct(deviation.layer, target);
    let verdicts: Vec<Verdict> =
        correct.results.iter().filter(|result| result.key.case == case).map(|result| result.verdict).collect();
    if !verdicts.contains(&Verdict::Pass) || verdicts.iter().any(|verdict| *verdict > Verdict::Pass) {
        return Err(format!("{}: {case} is not passed by {target} itself", deviation.name));
    }
    let hostile = Target::resolve(target).unwrap().with_deviations([deviation.name]).unwrap();
    let hostile = judged(Filter::of([case]), hostile);
    let failed =
        || hostile.results.iter().flat_map(|result| &result.requirements).filter(|it| it.verdict == Verdict::Fail);
    // Some requirements come from a proposal. If a target violates one, the verdict is not "fail"
    // but "unimplemented".
    let mut found = hostile.results.iter().flat_map(|result| &result.requirements);
    let verdict = if is_proposal(requirement.row()) { Verdict::Unimplemented } else { Verdict::Fail };
    let names = |it: &RequirementVerdict| it.requirement == requirement && it.verdict == verdict && !it.also_observed;
    if !found.any(names) {
        return Err(format!("{}: {case} of {target} does not fail for {requirement}", deviation.name));
    }
    let others = failed().map(|judged| judged.requirement).filter(|id| !deviation.breaks.contains(id));
    let errors = others.filter(|id| id.row().level.severity(false) == Some(Severity::Error));
    unexpected.extend(errors.map(|id| format!("{},{id}", deviation.name)));
    Ok(By::Case)
}

/// Returns the deviations in [`CASES`] and [`UNSEEN`] that were caught in another way, so their
/// entries are not needed. `these` selects the deviations.
pub(crate) fn stale(these: impl Fn(&str) -> bool, caught: &[(&'static str, By)]) -> Vec<&'static str> {
    let listed = lines().map(|line| line.deviation).chain(UNSEEN.iter().map(|(name, _)| *name));
    let otherwise = |name: &&str| caught.iter().any(|(it, by)| it == name && !matches!(by, By::Case | By::Users));
    listed.filter(|name| these(name)).filter(otherwise).collect()
}

#[test]
fn the_list_of_cases_is_in_order() {
    let lines: Vec<&str> = CASES.lines().skip(1).collect();
    assert!(
        lines.is_sorted_by(|a, b| a.split(',').next() < b.split(',').next()),
        "a deviation is listed twice, or the list is not sorted"
    );
    for line in self::lines() {
        assert!(hostile::by_name(line.deviation).is_ok(), "{}", line.deviation);
        assert!(SUITES.cases().any(|case| case.id == line.case), "{}: {}", line.deviation, line.case);
    }
}
