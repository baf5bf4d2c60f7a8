//! The kill matrix, which shows that the cases find faults. A twin is weft's own endpoint in the
//! place of a target. A twin has one role: Responder or Initiator. For each role that a case tests,
//! the case runs against the correct twin of this role, and must pass. The case also runs against
//! twins with a deviation, a deliberate fault that violates a requirement of the case. Against such
//! a twin, the case must fail and name that requirement.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use weft_core::RequirementId;
use weft_peer::hostile::{self, Deviation};

use crate::coverage::Proven;
use crate::model::{CaseInfo, CaseResult, Event, RequirementVerdict, Role, Verdict, is_proposal};
use crate::script::Suites;
use crate::targets::Target;
use crate::{Filter, RunError, RunOptions, Schedule, run_with};

/// The result of a case against a deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofOutcome {
    /// The case failed. It named a requirement that it is about and that the deviation violates.
    Caught,
    /// The case did not fail, but the monitor observed a violation.
    AlsoObserved,
    /// No violation was observed.
    Missed,
}

/// A case that runs against a twin of this role.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaseInRole {
    /// The case's id.
    pub case: String,
    /// The role of the twin.
    pub role: Role,
}

impl fmt::Display for CaseInRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Role::Initiator => write!(f, "{} (initiator)", self.case),
            Role::Responder | Role::Both => f.write_str(&self.case),
        }
    }
}

/// A deviation and its cases. Each case is about a requirement that the deviation violates.
#[derive(Debug, Clone)]
pub struct MatrixRow {
    /// The deviation.
    pub deviation: &'static Deviation,
    /// Each case and its result.
    pub outcomes: Vec<(CaseInRole, ProofOutcome)>,
    /// Requirements that the cases report as violated, but that the deviation does not list. The
    /// wrong bytes may violate these requirements too. If they do not, a case blames too much.
    pub others: BTreeSet<RequirementId>,
}

/// The complete matrix.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    /// The cases, with the roles that they test.
    pub cases: Vec<CaseInRole>,
    /// Results that are worse than a pass, although the twin was correct.
    pub not_passed: Vec<(Role, CaseResult)>,
    /// Cases that do not apply to the twin of their role.
    pub skipped: Vec<CaseInRole>,
    /// Deviations that no twin can show, and the reason.
    pub unprovable: Vec<(&'static Deviation, &'static str)>,
    /// All other deviations in catalogue order, including those without a case.
    pub rows: Vec<MatrixRow>,
    /// For each requirement and role, the first case that proves the requirement, and the deviation
    /// that this case detects. The case passes against the correct twin. Against the twin with the
    /// deviation, the case fails and names the requirement.
    pub proven: Vec<Proven>,
}

impl Matrix {
    /// Returns the deviations for which there are cases, but which none of these cases catches.
    pub fn uncaught(&self) -> impl Iterator<Item = &MatrixRow> {
        let is_caught = |row: &MatrixRow| row.outcomes.iter().any(|(_, outcome)| *outcome == ProofOutcome::Caught);
        self.rows.iter().filter(move |row| !row.outcomes.is_empty() && !is_caught(row))
    }

    /// Returns the deviations without a case.
    pub fn without_case(&self) -> impl Iterator<Item = &MatrixRow> {
        self.rows.iter().filter(|row| row.outcomes.is_empty())
    }

    /// Returns the cases that detect no deviation.
    pub fn unproven(&self) -> impl Iterator<Item = &CaseInRole> {
        let catches = |case: &CaseInRole| {
            let mut outcomes = self.rows.iter().flat_map(|row| &row.outcomes);
            outcomes.any(|(judged, outcome)| judged == case && *outcome == ProofOutcome::Caught)
        };
        self.cases.iter().filter(move |case| !self.skipped.contains(case) && !catches(case))
    }
}

/// Runs the matrix. Each run writes below `out`, into a folder named after the deviation. The files
/// of an earlier matrix are removed.
///
/// # Errors
/// A run failed, or a folder cannot be removed.
pub async fn prove(suites: &Suites, filter: &Filter, jobs: usize, out: &Path) -> Result<Matrix, RunError> {
    let run = async |target: Target, filter: Filter, folder: &str| {
        let (suites, out) = (suites.clone(), out.join(folder));
        match std::fs::remove_dir_all(&out) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(RunError::Write { path: out, error });
            }
            _ => {}
        }
        let options = RunOptions { target, suites, filter, out, seed: Some(1), cancel: None };
        run_with(options, Schedule { jobs, ..Schedule::default() }, Arc::new(|_: &Event| {})).await
    };
    let mut matrix = Matrix::default();
    for deviation in hostile::all() {
        match reason_unprovable(deviation) {
            Some(why) => matrix.unprovable.push((deviation, why)),
            None => matrix.rows.push(MatrixRow { deviation, outcomes: Vec::new(), others: BTreeSet::new() }),
        }
    }
    let twins = [
        (Target::builtin(), "responder"),
        (Target::builtin_plain(), "plain"),
        (Target::builtin_initiator(), "initiator"),
    ];
    for (twin, folder) in twins {
        let role = twin.role();
        // `builtin_plain` has fewer capabilities than `builtin`. Only the cases that do not apply
        // to `builtin` run against `builtin_plain`.
        let skipped = std::mem::take(&mut matrix.skipped);
        let (again, skipped): (Vec<_>, Vec<_>) = skipped.into_iter().partition(|_| folder == "plain");
        matrix.skipped = skipped;
        matrix.cases.retain(|judged| !again.contains(judged));
        let is_meant = |case: &&CaseInfo| {
            case.roles.contains(&role) && (folder != "plain" || again.iter().any(|judged| judged.case == case.id))
        };
        let of_role = suites.cases().filter(is_meant).map(|case| case.id.as_str());
        let filter = filter.clone().within(of_role);
        let correct = run(twin.clone(), filter, &format!("{folder}/correct")).await?;
        let mut about = Vec::new();
        let mut shown: BTreeSet<RequirementId> = BTreeSet::new();
        for case in correct.cases {
            let judged = CaseInRole { case: case.id.clone(), role };
            let mut results = correct.results.iter().filter(|result| result.key.case == case.id);
            if results.all(|result| !result.verdict.has_run()) {
                matrix.skipped.push(judged.clone());
            } else {
                about.push(case);
            }
            matrix.cases.push(judged);
        }
        let keys: Vec<_> = correct.results.iter().map(|result| result.key.clone()).collect();
        let not_passed = correct.results.into_iter().filter(|result| result.verdict > Verdict::Pass);
        matrix.not_passed.extend(not_passed.map(|result| (role, result)));
        for row in &mut matrix.rows {
            let deviation = row.deviation;
            let of_initiator = deviation.is_of_initiator() || deviation.is_of_pm_client();
            if role == Role::Responder && of_initiator {
                continue;
            }
            let about: Vec<&CaseInfo> = about
                .iter()
                .filter(|case| case.requirements.iter().any(|requirement| deviation.breaks.contains(requirement)))
                .collect();
            if about.is_empty() {
                continue;
            }
            let of_these = keys.iter().filter(|key| about.iter().any(|case| case.id == key.case)).cloned();
            let folder = format!("{folder}/{}", deviation.name);
            let report = run(twin.clone().deviating(deviation), Filter::everything().only(of_these), &folder).await?;
            row.others.extend(report.results.iter().flat_map(|result| others(result, deviation)));
            for case in about {
                let results = report.results.iter().filter(|result| result.key.case == case.id);
                let best = results.map(|result| outcome(result, deviation)).min_by_key(|outcome| *outcome as u8);
                row.outcomes.push((CaseInRole { case: case.id.clone(), role }, best.unwrap_or(ProofOutcome::Missed)));
                if matrix.not_passed.iter().any(|(of, result)| *of == role && result.key.case == case.id) {
                    continue;
                }
                let results = report.results.iter().filter(|result| result.key.case == case.id);
                let violations = results.flat_map(|result| violations(result, deviation));
                for judged in violations.filter(|it| !it.also_observed) {
                    if shown.insert(judged.requirement) {
                        matrix.proven.push(Proven::by_case(judged.requirement, &case.id, role, deviation.name));
                    }
                }
            }
        }
    }
    Ok(matrix)
}

/// Returns the reason why no builtin target can show this deviation, if there is a reason.
fn reason_unprovable(deviation: &Deviation) -> Option<&'static str> {
    let found = UNPROVABLE.iter().find(|(name, _)| is_called(deviation, name));
    found.map(|(_, why)| *why)
}

/// Names of deviations (`*` at the end matches any suffix), and the reason why no builtin target
/// can show them.
const UNPROVABLE: [(&str, &str); 11] = [
    ("mpa.reject-bit-moved", "the builtin target's services never reject a Request"),
    ("p2p.rejects-unenhanced", "the builtin target's services never reject a Request"),
    ("mpa.overlooks-markers", "the tester's segments arrive in order, so the builtin target may ignore the markers"),
    ("mpa.crc-unused-left-out", "no case checks the CRC field if both sides have C=0"),
    ("rdmap.atomic-request*", "the builtin target's services send no Atomic Requests"),
    (
        "rdmap.takes-more-reads",
        "the tester cannot observe whether the builtin target serves surplus Reads at once or lets them wait",
    ),
    ("pm.accept-time-1", "the SDP draft has no minimum for PmTime"),
    ("pm.answers-as-before", "the services of the builtin port mapper always stay mapped"),
    ("pm.request-from-elsewhere", "a client may repeat its request from another socket"),
    ("sdp.ignores-ch-rcv-buf-ack", "a sender may always use messages that are shorter than the peer's buffers"),
    (
        "pm.request-goes-elsewhere",
        "the PMReq does not reach the tester, so the client looks like a client that uses no port mapper",
    ),
];

fn is_called(deviation: &Deviation, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(beginning) => deviation.name.starts_with(beginning),
        None => deviation.name == name,
    }
}

/// Returns those verdicts of the result that are about requirements which the deviation violates.
fn violations<'r>(result: &'r CaseResult, deviation: &Deviation) -> impl Iterator<Item = &'r RequirementVerdict> {
    let breaks = deviation.breaks;
    let requirements = result.requirements.iter();
    requirements.filter(move |judged| is_violation(result, judged) && breaks.contains(&judged.requirement))
}

/// Returns the requirements that the result reports as violated, without those that the deviation
/// violates.
fn others<'r>(result: &'r CaseResult, deviation: &Deviation) -> impl Iterator<Item = RequirementId> + use<'r> {
    let breaks = deviation.breaks;
    let violated = result.requirements.iter().filter(|judged| is_violation(result, judged));
    violated.map(|judged| judged.requirement).filter(move |id| !breaks.contains(id))
}

/// Returns whether a verdict reports a violation. A requirement of the proposal of 2007 never makes
/// a case fail. If the target violates such a requirement, the verdict is `Unimplemented` and the
/// result has `actual`. The verdict is also `Unimplemented` if the case ends early because the
/// target does not implement an optional function. The result then has no `actual`.
fn is_violation(result: &CaseResult, judged: &RequirementVerdict) -> bool {
    match is_proposal(judged.requirement.row()) {
        true => judged.verdict == Verdict::Unimplemented && result.actual.is_some(),
        false => judged.verdict == Verdict::Fail,
    }
}

fn outcome(result: &CaseResult, deviation: &Deviation) -> ProofOutcome {
    let mut found = ProofOutcome::Missed;
    for judged in violations(result, deviation) {
        match judged.also_observed {
            false => return ProofOutcome::Caught,
            true => found = ProofOutcome::AlsoObserved,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_unprovable_deviations_exist() {
        for (name, _) in UNPROVABLE {
            assert!(hostile::all().any(|deviation| is_called(deviation, name)), "{name} is no deviation");
        }
    }
}
