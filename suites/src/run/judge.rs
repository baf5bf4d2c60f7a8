//! Computes the verdict of a case from its log.
//!
//! A pass needs evidence for each requirement of the case, and good exchanges before and after the
//! stimulus. The monitor may also find that the target violates a requirement:
//!
//! - If the case is about this requirement, the case fails. Exceptions are an excused failure and a
//!   failed control.
//! - If the case is about other requirements, its verdict does not change. The result then lists
//!   this requirement as also observed.
//! - If the case is about other requirements and the log exempts this requirement, the finding is
//!   ignored.

use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_dissector::output::text::counted;

use crate::model::{
    CaseInfo, EVIDENCE_LACKS, MonitorFinding, RequirementVerdict, SourceLocation, Verdict, is_proposal,
};
use crate::script::ScriptFault;
use crate::stage::Log;

/// The result of judging a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    pub(super) requirements: Vec<RequirementVerdict>,
    pub(super) expected: Option<String>,
    pub(super) actual: Option<String>,
    pub(super) explanation: String,
    pub(super) at: Option<SourceLocation>,
    /// The packet of the monitor's finding that failed the case, if a finding did so.
    pub(super) packet: Option<u64>,
}

/// What the evidence of a case lacks, because its size is limited. The verdict does not depend on
/// it: the script has judged its expectations, and the monitor has read all traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Missing {
    /// Number of events of the traffic log.
    pub(super) events: u64,
    /// Number of payload bytes of these events.
    pub(super) octets: u64,
    /// Number of steps of the transcript.
    pub(super) steps: u64,
}

impl Missing {
    /// Returns a sentence for the explanation, or an empty text if the evidence is complete.
    pub(super) fn sentence(self) -> String {
        let (events, octets) = (counted(self.events, "event"), counted(self.octets, "byte"));
        let steps = counted(self.steps, "step");
        let what = match (self.events > 0, self.steps > 0) {
            (false, false) => return String::new(),
            (true, false) => format!("{octets} in {events}"),
            (false, true) => steps,
            (true, true) => format!("{octets} in {events}, and {steps}"),
        };
        let monitor = if self.events > 0 { " The monitor has read these bytes." } else { "" };
        format!("{EVIDENCE_LACKS}{what} of the middle of the case, because its size is limited.{monitor}")
    }
}

/// Judges a case that was run. `lost_findings` is the number of the monitor's findings for which
/// there was no room.
pub(super) fn judge(
    case: &CaseInfo,
    log: &Log,
    fault: Option<&ScriptFault>,
    findings: &[MonitorFinding],
    lost_findings: u64,
) -> Judgement {
    let mut judgement = by_the_case(case, log, fault);
    // If the failure is excused, the tester or the link caused it. If the control failed, the
    // target also fails without the stimulus. The basic cases judge such faults. Therefore findings
    // of the monitor do not fail the case if the failure is excused or if the control failed.
    let is_excused = log.is_excused || matches!(log.control.outcome, Some(Err(_)));
    // A finding with the severity error is a violation, whatever its requirement is. A finding with
    // the severity warning is a violation only if the case is about the requirement of the finding.
    // Reports show the level of the requirement, so readers can distinguish the violation of a
    // recommendation.
    let own = |finding: &MonitorFinding| {
        finding.severity == Severity::Warning && case.requirements.contains(&finding.requirement)
    };
    let is_violation =
        |finding: &&MonitorFinding| finding.by_target && (finding.severity == Severity::Error || own(finding));
    for finding in findings.iter().filter(is_violation) {
        match judgement.requirements.iter_mut().find(|judged| judged.requirement == finding.requirement) {
            // The monitor found a violation of a requirement of the case, so the case fails even if
            // the script met its expectations.
            Some(judged) if !judged.also_observed && !is_excused => {
                judged.verdict = judged.verdict.max(Verdict::Fail);
                if judgement.verdict < Verdict::Fail {
                    judgement.verdict = Verdict::Fail;
                    judgement.actual = Some(finding.text.clone());
                    judgement.packet = finding.packet;
                    judgement.explanation =
                        format!("The monitor observed a violation of {}: {}.", finding.requirement, finding.text);
                }
            }
            Some(_) => {}
            None if log.exempt.contains(&finding.requirement) => {}
            None => judgement.requirements.push(RequirementVerdict {
                requirement: finding.requirement,
                verdict: Verdict::Fail,
                also_observed: true,
            }),
        }
    }
    if lost_findings > 0 && judgement.verdict == Verdict::Pass {
        // A lost finding may be about the case's own requirement.
        judgement.verdict = Verdict::Error;
        judgement.explanation = format!(
            "weft had no room for {} of the monitor, so the evidence is incomplete.",
            counted(lost_findings, "finding")
        );
    }
    judgement
}

fn by_the_case(case: &CaseInfo, log: &Log, fault: Option<&ScriptFault>) -> Judgement {
    if let Some(decision) = &log.decision {
        let decided = &decision.requirements;
        let fails = decision.verdict == Verdict::Fail;
        let of = |requirement: RequirementId| match decided.is_empty() || decided.contains(&requirement) {
            // A requirement that was only proposed does not bind an implementation.
            true if fails && is_proposal(requirement.row()) => Verdict::Unimplemented,
            true => decision.verdict,
            // The case stopped here, so there is no evidence about the other requirements.
            false => Verdict::Inconclusive,
        };
        let only_proposed = fails && !decided.is_empty() && decided.iter().all(|row| is_proposal(row.row()));
        let note = if only_proposed {
            " The requirement was proposed in an e-mail and is in no RFC, so this is a note, not a failure."
        } else {
            ""
        };
        return Judgement {
            verdict: if only_proposed { Verdict::Unimplemented } else { decision.verdict },
            requirements: each(case, of),
            expected: decision.expected.clone(),
            actual: decision.actual.clone(),
            explanation: format!("{}{note}", decision.explanation),
            at: decision.at.clone(),
            packet: None,
        };
    }
    let without_evidence = |verdict: Verdict, explanation: String, at: SourceLocation| Judgement {
        verdict,
        requirements: each(case, |_| verdict),
        expected: None,
        actual: None,
        explanation,
        at: Some(at),
        packet: None,
    };
    let source = || case.source.clone();
    if let Some(fault) = fault {
        return without_evidence(Verdict::Error, format!("{}: {}", fault.at, fault.message), fault.at.clone());
    }
    let met = |requirement| log.met.iter().any(|met| met.requirement == requirement);
    if let Some(open) = case.requirements.iter().find(|requirement| !met(**requirement)) {
        let explanation = format!("The case ended without an expectation for {open}.");
        return without_evidence(Verdict::Error, explanation, source());
    }
    if !log.alive_before || !log.alive_after {
        let explanation = if log.alive_before {
            "The case has no stimulus and no expectation, so it shows nothing about the target."
        } else {
            "The case has no t:good_exchange() before its stimulus, so nothing shows that the target was alive then."
        };
        return without_evidence(Verdict::Error, explanation.to_owned(), source());
    }
    let last = log.met.last();
    Judgement {
        verdict: Verdict::Pass,
        requirements: each(case, |_| Verdict::Pass),
        expected: last.map(|met| met.expected.clone()),
        actual: last.map(|met| met.actual.clone()),
        explanation: "The target did what is required. The good exchanges before and after the stimulus worked.".into(),
        at: last.and_then(|met| met.at.clone()),
        packet: None,
    }
}

fn each(case: &CaseInfo, verdict: impl Fn(RequirementId) -> Verdict) -> Vec<RequirementVerdict> {
    let judged = |requirement: &RequirementId| RequirementVerdict {
        requirement: *requirement,
        verdict: verdict(*requirement),
        also_observed: false,
    };
    case.requirements.iter().map(judged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::{Decision, MetExpectation};
    use weft_core::requirement;

    const KEY: RequirementId = requirement!("MPA-7.1.1-2");
    const PAD: RequirementId = requirement!("MPA-4.1-3");

    fn case(requirements: &[RequirementId]) -> CaseInfo {
        CaseInfo {
            id: "mpa/x/one".into(),
            version: 1,
            title: "x".into(),
            requirements: requirements.to_vec(),
            roles: Vec::new(),
            capabilities: Vec::new(),
            tags: Vec::new(),
            parameters: Default::default(),
            source: SourceLocation { file: "mpa/x.lua".into(), line: 1 },
        }
    }

    fn good() -> Log {
        let met = MetExpectation { requirement: KEY, expected: "close".into(), actual: "FIN".into(), at: None };
        Log::of(vec![met], true, true, None)
    }

    fn finding(requirement: RequirementId, severity: Severity, by_target: bool) -> MonitorFinding {
        MonitorFinding { requirement, severity, text: "octets".into(), packet: Some(1), by_target }
    }

    #[test]
    fn a_pass_needs_evidence_and_liveness() {
        assert_eq!(judge(&case(&[KEY]), &good(), None, &[], 0).verdict, Verdict::Pass);
        let none_met = Log::of(Vec::new(), true, true, None);
        let not_before = Log::of(good().met, false, true, None);
        let not_after = Log::of(good().met, true, false, None);
        for log in [none_met, not_before, not_after] {
            assert_eq!(judge(&case(&[KEY]), &log, None, &[], 0).verdict, Verdict::Error);
        }
        assert_eq!(judge(&case(&[KEY, PAD]), &good(), None, &[], 0).verdict, Verdict::Error);
    }

    #[test]
    fn a_failure_names_its_requirement_and_decides_no_other() {
        let decision = Decision {
            verdict: Verdict::Fail,
            requirements: vec![KEY],
            expected: None,
            actual: None,
            explanation: String::new(),
            at: None,
            step: None,
        };
        let log = Log::of(Vec::new(), true, false, Some(decision));
        let judgement = judge(&case(&[PAD, KEY]), &log, None, &[], 0);
        let verdicts: Vec<_> =
            judgement.requirements.iter().map(|judged| (judged.requirement, judged.verdict)).collect();
        assert_eq!(judgement.verdict, Verdict::Fail);
        assert_eq!(verdicts, [(PAD, Verdict::Inconclusive), (KEY, Verdict::Fail)]);
    }

    #[test]
    fn a_row_of_the_proposal_is_a_note() {
        const MAIL: RequirementId = requirement!("P2P-mail.6-1");
        let judged = |requirements: &[RequirementId]| {
            let decision = Decision {
                verdict: Verdict::Fail,
                requirements: requirements.to_vec(),
                expected: None,
                actual: None,
                explanation: "No close.".to_owned(),
                at: None,
                step: None,
            };
            judge(&case(requirements), &Log::of(Vec::new(), true, false, Some(decision)), None, &[], 0)
        };
        let note = judged(&[MAIL]);
        assert_eq!((note.verdict, note.requirements[0].verdict), (Verdict::Unimplemented, Verdict::Unimplemented));
        assert!(note.explanation.ends_with("a note, not a failure."), "{}", note.explanation);
        // If the case also names a rule of an RFC, only that rule fails.
        let both = judged(&[MAIL, KEY]);
        let verdicts: Vec<_> = both.requirements.iter().map(|judged| judged.verdict).collect();
        assert_eq!((both.verdict, verdicts), (Verdict::Fail, vec![Verdict::Unimplemented, Verdict::Fail]));
    }

    #[test]
    fn a_fault_of_the_script_is_no_verdict_on_the_target() {
        let fault = ScriptFault { at: SourceLocation { file: "mpa/x.lua".into(), line: 7 }, message: "nil".into() };
        let judgement = judge(&case(&[KEY]), &good(), Some(&fault), &[], 0);
        assert_eq!((judgement.verdict, judgement.explanation.as_str()), (Verdict::Error, "mpa/x.lua:7: nil"));
    }

    #[test]
    fn findings_about_the_target_are_verdicts_of_their_own() {
        let findings = [
            finding(PAD, Severity::Error, true),
            finding(PAD, Severity::Error, true),
            finding(requirement!("MPA-4.4-5"), Severity::Warning, true),
            finding(requirement!("MPA-7.1.1-1"), Severity::Error, false),
        ];
        let judgement = judge(&case(&[KEY]), &good(), None, &findings, 0);
        assert_eq!(judgement.verdict, Verdict::Pass);
        assert_eq!(judgement.requirements.len(), 2);
        let judged = &judgement.requirements[1];
        assert_eq!((judged.requirement, judged.verdict, judged.also_observed), (PAD, Verdict::Fail, true));
    }

    #[test]
    fn a_fault_that_the_script_provokes_counts_against_nobody() {
        let exempting = |requirement| {
            let mut log = good();
            log.exempt.push(requirement);
            log
        };
        let judgement = judge(&case(&[KEY]), &exempting(PAD), None, &[finding(PAD, Severity::Error, true)], 0);
        assert_eq!((judgement.verdict, judgement.requirements.len()), (Verdict::Pass, 1));
        // If the case is about the requirement, the finding counts, although the requirement is
        // exempt.
        let judgement = judge(&case(&[KEY]), &exempting(KEY), None, &[finding(KEY, Severity::Error, true)], 0);
        assert_eq!(judgement.verdict, Verdict::Fail);
    }

    #[test]
    fn a_finding_about_the_cases_own_requirement_fails_it() {
        let judgement = judge(&case(&[KEY]), &good(), None, &[finding(KEY, Severity::Error, true)], 0);
        assert_eq!((judgement.verdict, judgement.requirements[0].verdict), (Verdict::Fail, Verdict::Fail));
        assert_eq!(judgement.packet, Some(1));
    }

    #[test]
    fn an_explanation_has_what_the_evidence_lacks() {
        let sentence = |events, octets, steps| Missing { events, octets, steps }.sentence();
        assert_eq!(sentence(0, 0, 0), "");
        assert_eq!(
            sentence(0, 0, 1),
            " The evidence lacks 1 step of the middle of the case, because its size is limited."
        );
        assert_eq!(
            sentence(2, 30, 4),
            " The evidence lacks 30 bytes in 2 events, and 4 steps of the middle of the case, because its size is \
             limited. The monitor has read these bytes."
        );
    }

    #[test]
    fn a_pass_needs_all_that_the_monitor_found() {
        let judgement = judge(&case(&[KEY]), &good(), None, &[], 1);
        assert_eq!(judgement.verdict, Verdict::Error);
        assert!(judgement.explanation.contains("no room for 1 finding of"), "{}", judgement.explanation);
        let judgement = judge(&case(&[KEY]), &good(), None, &[finding(KEY, Severity::Error, true)], 1);
        assert_eq!(judgement.verdict, Verdict::Fail);
    }
}
