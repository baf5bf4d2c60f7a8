//! Each deviation (named fault of an endpoint) of DDP and RDMAP is caught in one of four ways. The
//! monitor reports a finding, the correct endpoint rejects with a Terminate, the deviating endpoint
//! reacts differently, or a case of the suites fails.

use std::collections::BTreeSet;

use weft_core::RequirementId;
use weft_core::error::Layer;
use weft_core::requirement::Severity;
use weft_peer::{Deviation, Deviations, hostile};

use crate::hostile::reactions::{CASES, Case, Shows};
use crate::hostile::run::{Run, Script};
use crate::hostile::traffic::Wrong;
use crate::hostile::verdict;

/// Findings that are expected in addition to the findings about the deviation's own requirements.
/// Each line has the name of a deviation and a requirement. The wrong bytes also violate this
/// requirement, or look like another error. The list has a finding about a correct end only in one
/// situation: the correct end follows the RDMA Consortium's specification, and the Reply of the
/// other end denies the markers that the correct end sends.
const ALSO: &str = include_str!("also.csv");

/// How a deviation was caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    Case,
    Monitor,
    Reaction,
    Twin,
    /// Only a user notices the deviation. No tester can notice it.
    Users,
}

/// Returns the runs that the monitor reads, each with the number of the deviating end. In the first
/// run, the deviating Initiator performs all operations. In the other runs, end 0 makes a
/// deliberate error. For each error, the deviating end is first the end that reacts, and then the
/// end that makes the error.
fn situations() -> impl Iterator<Item = (Script, usize)> {
    let wrongs = Wrong::ALL.iter().flat_map(|wrong| [(Some(*wrong), 1), (Some(*wrong), 0)]);
    std::iter::once((None, 0)).chain(wrongs)
}

pub(crate) fn ends<'a>(end: usize, own: &'a Deviations, other: &'a Deviations) -> [&'a Deviations; 2] {
    if end == 0 { [own, other] } else { [other, own] }
}

/// Compares `run` with `right`, the same run without the deviation. Returns the new errors as lines
/// of [`ALSO`]. New errors of the deviating end are listed if they are not about the deviation's
/// requirements. If the other end is correct, all new errors of the other end are listed.
pub(crate) fn beside(deviation: &Deviation, end: usize, run: &Run, right: &Run, other_is_correct: bool) -> Vec<String> {
    let errors = |run: &Run, end| run.found(end, Severity::Error);
    let errors = [0, 1].map(|end| errors(run, end).difference(&errors(right, end)).copied().collect());
    errors_beside(deviation, end, &errors, other_is_correct)
}

/// Does the same as [`beside`]. `errors` has the errors of each end that do not occur if both ends
/// are correct.
pub(crate) fn errors_beside(
    deviation: &Deviation,
    end: usize,
    errors: &[BTreeSet<RequirementId>; 2],
    other_is_correct: bool,
) -> Vec<String> {
    let own = errors[end].iter().filter(|id| !deviation.breaks.contains(id));
    let own = own.map(|id| format!("{},{id}", deviation.name));
    let other = errors[1 - end].iter().filter(|_| other_is_correct);
    own.chain(other.map(|id| format!("{},{id} (of the correct end)", deviation.name))).collect()
}

fn catch(deviation: &'static Deviation, unexpected: &mut Vec<String>) -> Result<By, String> {
    let (own, none) = (Deviations::from(deviation), Deviations::NONE);
    let found = |run: &Run, end| deviation.breaks.iter().any(|id| run.found(end, Severity::Warning).contains(id));
    let Some(case) = CASES.iter().find(|case| case.name == deviation.name) else {
        for (script, end) in situations() {
            let run = Run::of(script, ends(end, &own, &none));
            if found(&run, end) {
                unexpected.extend(beside(deviation, end, &run, &Run::of(script, [&none, &none]), true));
                return Ok(By::Monitor);
            }
        }
        return verdict::names(deviation, false, unexpected);
    };
    let Case { end, script, provoked_by, shows, .. } = *case;
    let names = Some(provoked_by).filter(|name| !name.is_empty());
    let other = Deviations::from_names(names).unwrap();
    let (run, right) = (Run::of(script, ends(end, &own, &other)), Run::of(script, ends(end, &none, &other)));
    unexpected.extend(beside(deviation, end, &run, &right, provoked_by.is_empty()));
    let by = match shows {
        Shows::Monitor => found(&run, end) && !found(&right, end),
        Shows::Terminates(code) => right.terminates[end] == Some(code) && run.terminates[end] != Some(code),
        Shows::GoesOn(code) => right.terminates[end].is_none() && run.terminates[end] == Some(code),
        Shows::Refused(code) => right.terminates == [None, None] && run.terminates[1 - end] == Some(code),
    };
    let failure = || {
        format!(
            "{}: {shows:x?}, but {:x?} where a correct end has {:x?}",
            deviation.name, run.terminates, right.terminates
        )
    };
    match shows {
        _ if !by => Err(failure()),
        Shows::Monitor => Ok(By::Monitor),
        Shows::Refused(_) => Ok(By::Twin),
        Shows::Terminates(_) | Shows::GoesOn(_) => Ok(By::Reaction),
    }
}

#[test]
fn each_deviation_of_ddp_and_rdmap_is_caught() {
    all_are_caught(hostile::all().filter(|deviation| matches!(deviation.layer, Layer::Ddp | Layer::Rdmap)), catch);
    for case in CASES {
        assert!(hostile::by_name(case.name).is_ok(), "{}", case.name);
    }
    let lines: Vec<&str> = ALSO.lines().skip(1).collect();
    assert!(lines.is_sorted_by(|a, b| a < b), "a line twice, or not in its place");
    for line in lines {
        let of = line.split_once(',').map(|(name, _)| name);
        assert!(of.is_some_and(|name| hostile::by_name(name).is_ok()), "{line}");
    }
}

/// Checks that each deviation is caught. Prints how many deviations were caught in each way. If a
/// deviation was not caught, fails with the list of these deviations.
pub(crate) fn all_are_caught(
    deviations: impl Iterator<Item = &'static Deviation>,
    catch: impl Fn(&'static Deviation, &mut Vec<String>) -> Result<By, String>,
) {
    let (mut caught, mut missed, mut found, mut names) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
    for deviation in deviations {
        names.insert(deviation.name);
        match catch(deviation, &mut found) {
            Ok(by) => caught.push((deviation.name, by)),
            Err(failure) => missed.push(failure),
        }
    }
    let count = |by| caught.iter().filter(|(_, caught)| *caught == by).count();
    println!(
        "caught {} of {}: {} by the monitor, {} by the correct twin, {} by their reaction, {} by a case's verdict, {} by what users see alone",
        caught.len(),
        caught.len() + missed.len(),
        count(By::Monitor),
        count(By::Twin),
        count(By::Reaction),
        count(By::Case),
        count(By::Users)
    );
    for (name, _) in caught.iter().filter(|(_, by)| *by == By::Users) {
        println!("only users see {name}");
    }
    let stale = verdict::stale(|name| names.contains(name), &caught);
    assert!(stale.is_empty(), "these need no case, or no reason why there is none: {stale:?}");
    // It is also an error if the list has a line that is no longer needed.
    let is_of_these = |line: &str| line.split_once(',').is_some_and(|(name, _)| names.contains(name));
    let listed: BTreeSet<&str> = ALSO.lines().filter(|line| is_of_these(line)).collect();
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let lines =
        |of: &BTreeSet<&str>, other: &BTreeSet<&str>| of.difference(other).copied().collect::<Vec<_>>().join("\n");
    let (unlisted, stale) = (lines(&found, &listed), lines(&listed, &found));
    assert!(
        missed.is_empty() && unlisted.is_empty() && stale.is_empty(),
        "missed: {missed:#?}\nfound, and in no list:\n{unlisted}\nlisted, and not found:\n{stale}"
    );
}
