//! Counts requirements (rows of the catalogues), by catalogue or by section.

use weft_core::RequirementId;
use weft_core::coverage::CoverageKind;
use weft_core::requirement::{self, Catalogue, Class, Observe, Requirement};

use super::{CountedCases, Need, Proofs};

/// The counts of one catalogue or section. Each requirement that is judgeable or not classified is
/// in exactly one of `covered`, `named` and `open`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// The catalogue.
    pub catalogue: Catalogue,
    /// The section. `None` for a complete catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<&'static str>,
    /// Requirements whose violation is visible in one of the ways that [`ways`] returns.
    pub rows: usize,
    /// Requirements in `rows` that can be judged.
    pub judgeable: usize,
    /// Requirements in `rows` that permit or define something.
    pub permission: usize,
    /// Requirements in `rows` whose judgement needs facts that no capture shows and no test
    /// controls.
    pub outside: usize,
    /// Requirements in `rows` without a class.
    pub unclassified: usize,
    /// Requirements for which there is a proof that a rule of the monitor judges them.
    pub rule: usize,
    /// Requirements that a case is proven to judge. Rules may judge them, too. Each of them is in
    /// exactly one of `service`, `driver` and `agent`.
    pub case: usize,
    /// Requirements that a case judges on a target that has only a service ([`Need::Service`]).
    pub service: usize,
    /// Requirements that a case judges only on a driven SDP socket ([`Need::Driver`]).
    pub driver: usize,
    /// Requirements that a case judges only on a target with an agent ([`Need::Agent`]).
    pub agent: usize,
    /// Requirements that only a rule judges: no case is proven to provoke a violation.
    pub rule_only: usize,
    /// Requirements that have a proof of the counted kind. For cases, the proof of a rule also
    /// counts.
    pub covered: usize,
    /// Requirements that a case is about, and that no proof covers. No deviation (a deliberate
    /// fault of weft's own endpoint) makes the case fail for these requirements.
    pub named: Vec<RequirementId>,
    /// Requirements that are judgeable or not classified, but neither in `covered` nor in `named`.
    pub open: Vec<RequirementId>,
    /// Requirements that are not in `rows`, because only the target's user can observe their
    /// violation. An agent on the target's host can report the violation. These requirements are
    /// counted only for cases, and only in the layers whose user calls the verbs. Requirements that
    /// permit or define something are not included. Requirements that need facts from outside the
    /// test are not included, either.
    pub upper: usize,
    /// Requirements in `upper` for which there is a proof that a case judges them.
    pub upper_covered: usize,
    /// Requirements in `upper` without such a proof.
    pub upper_open: Vec<RequirementId>,
}

impl Count {
    fn of(catalogue: Catalogue, section: Option<&'static str>) -> Self {
        Count {
            catalogue,
            section,
            rows: 0,
            judgeable: 0,
            permission: 0,
            outside: 0,
            unclassified: 0,
            rule: 0,
            case: 0,
            service: 0,
            driver: 0,
            agent: 0,
            rule_only: 0,
            covered: 0,
            named: Vec::new(),
            open: Vec::new(),
            upper: 0,
            upper_covered: 0,
            upper_open: Vec::new(),
        }
    }

    /// Returns the covered requirements as a percentage of the judgeable requirements. Unclassified
    /// requirements count as judgeable.
    #[must_use]
    pub fn percent(&self) -> f64 {
        let all = self.judgeable + self.unclassified;
        if all == 0 { 0.0 } else { 100.0 * self.covered as f64 / all as f64 }
    }
}

/// Returns the ways in which `by` can observe a violation. `by` can cover a requirement only if a
/// violation is visible in one of these ways.
/// - A rule observes the wire.
/// - A case observes the wire, sends, and observes the reaction.
/// - A test controls the endpoint. With SDP and the port mapper, the test acts as the endpoint's
///   peer and as the endpoint's user. Below SDP, the test is the endpoint's user and calls the
///   verbs.
///
/// Rules and cases cover no requirement of the verbs. If an effect of the verbs is visible on the
/// wire, the catalogue of the layer that sends has a requirement about this effect.
#[must_use]
pub const fn ways(by: CoverageKind, catalogue: Catalogue) -> &'static [Observe] {
    match (by, catalogue) {
        (CoverageKind::Case | CoverageKind::Rule, Catalogue::Verbs) => &[],
        (CoverageKind::Case, _) => &[Observe::Wire, Observe::Reaction],
        (CoverageKind::Rule, _) => &[Observe::Wire],
        (CoverageKind::Test, Catalogue::Sdp | Catalogue::SdpPm) => &[Observe::Wire, Observe::Reaction, Observe::Upper],
        (CoverageKind::Test, _) => &[Observe::Api, Observe::Wire],
    }
}

/// Returns the requirements that `by` could cover.
pub fn rows(by: CoverageKind) -> impl Iterator<Item = (RequirementId, &'static Requirement)> {
    requirement::all().filter(move |(_, row)| ways(by, row.catalogue).contains(&row.observe))
}

/// Counts the requirements in [`rows`] that proofs of the kind `by` cover. Returns a count for each
/// catalogue or, if `sections` is set, for each section. For [`CoverageKind::Case`] the proof of a
/// rule also counts, because the monitor watches every case.
#[must_use]
pub fn count(proofs: &Proofs, by: CoverageKind, cases: &CountedCases, sections: bool) -> Vec<Count> {
    let mut counts: Vec<Count> = Vec::new();
    let (rules, needs, by_kind) = (proofs.ids(CoverageKind::Rule), proofs.needs(cases), proofs.ids(by));
    for (id, row) in rows(by) {
        let count = count_of(&mut counts, row, sections);
        count.rows += 1;
        match row.classified.map(|classified| classified.class) {
            Some(Class::Permission) => {
                count.permission += 1;
                continue;
            }
            Some(Class::Outside) => {
                count.outside += 1;
                continue;
            }
            Some(Class::Judgeable) => count.judgeable += 1,
            None => count.unclassified += 1,
        }
        count.rule += usize::from(rules.contains(&id));
        count.case += usize::from(needs.contains_key(&id));
        match needs.get(&id) {
            Some(Need::Service) => count.service += 1,
            Some(Need::Driver) => count.driver += 1,
            Some(Need::Agent) => count.agent += 1,
            None => count.rule_only += usize::from(rules.contains(&id)),
        }
        if by_kind.contains(&id) || (by == CoverageKind::Case && rules.contains(&id)) {
            count.covered += 1;
        } else if by == CoverageKind::Case && cases.named.contains(&id) {
            count.named.push(id);
        } else {
            count.open.push(id);
        }
    }
    for (id, row) in upper_rows(by).filter(|(_, row)| is_counted(row)) {
        let count = count_of(&mut counts, row, sections);
        count.upper += 1;
        if needs.contains_key(&id) {
            count.upper_covered += 1;
        } else {
            count.upper_open.push(id);
        }
    }
    counts
}

/// Returns the requirements whose violation is visible only to the target's user. An agent can
/// report such a violation. Returns requirements only if `by` is [`CoverageKind::Case`], because
/// only cases use an agent.
pub fn upper_rows(by: CoverageKind) -> impl Iterator<Item = (RequirementId, &'static Requirement)> {
    let is_upper = |row: &Requirement| row.observe == Observe::Upper && is_driven(row.catalogue);
    requirement::all().filter(move |(_, row)| by == CoverageKind::Case && is_upper(row))
}

/// Returns whether the requirement is judgeable or not classified.
fn is_counted(row: &Requirement) -> bool {
    row.classified.is_none_or(|classified| classified.class == Class::Judgeable)
}

/// Returns the count that a requirement belongs to.
fn count_of<'c>(counts: &'c mut Vec<Count>, row: &Requirement, sections: bool) -> &'c mut Count {
    let section = sections.then_some(row.section);
    let known = counts.iter().position(|count| (count.catalogue, count.section) == (row.catalogue, section));
    let index = known.unwrap_or_else(|| {
        counts.push(Count::of(row.catalogue, section));
        counts.len() - 1
    });
    &mut counts[index]
}

/// Returns whether an agent can be the user of this layer.
const fn is_driven(catalogue: Catalogue) -> bool {
    matches!(catalogue, Catalogue::Ddp | Catalogue::Mpa | Catalogue::MpaP2p | Catalogue::Rdmap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Proven;
    use crate::model::Role;
    use weft_core::requirement;

    fn mpa(proofs: &Proofs, by: CoverageKind, named: &[RequirementId]) -> Count {
        let cases = CountedCases { named: named.iter().copied().collect(), ..CountedCases::default() };
        let counts = count(proofs, by, &cases, false);
        counts.into_iter().find(|count| count.catalogue == Catalogue::Mpa).unwrap()
    }

    #[test]
    fn a_proof_covers_its_row_alone_and_by_its_kind_alone() {
        let proven = Proven { by: "rule".into(), id: requirement!("MPA-4.1-3"), test: "some::test".into() };
        let proofs = Proofs::from_iter([proven]);
        let (rule, test) = (mpa(&proofs, CoverageKind::Rule, &[]), mpa(&proofs, CoverageKind::Test, &[]));
        assert_eq!((rule.covered, test.covered), (1, 0));
        assert_eq!(test.open.len(), rule.open.len() + 1);
        assert_eq!(
            (rule.rows, test.rows),
            (rule.rows, rule.rows),
            "MPA has no requirement that is visible at the verbs"
        );
    }

    /// The proof of a rule counts for cases, too. If a case only names a requirement, the
    /// requirement is not covered. It is covered if a deviation makes the case fail.
    #[test]
    fn a_case_counts_when_a_deviation_makes_it_fail() {
        let key = requirement!("MPA-7.1.1-2");
        let rule = Proven { by: "rule".into(), id: requirement!("MPA-4.1-3"), test: "some::test".into() };
        let case = Proven::by_case(key, "mpa/x/y", Role::Responder, "mpa.accepts-wrong-key");
        let named = mpa(&Proofs::from_iter([rule.clone()]), CoverageKind::Case, &[key, rule.id]);
        assert_eq!((named.covered, named.rule, named.case), (1, 1, 0));
        assert_eq!(named.named, [key]);
        let proven = mpa(&Proofs::from_iter([rule, case]), CoverageKind::Case, &[key]);
        assert_eq!((proven.covered, proven.rule, proven.case), (2, 1, 1));
        assert!(proven.named.is_empty() && !proven.open.contains(&key));
    }

    /// If several cases prove a requirement, the case that needs least counts.
    #[test]
    fn a_requirement_counts_by_what_its_cases_need() {
        let key = requirement!("MPA-7.1.1-2");
        let proofs = ["mpa/with/agent", "mpa/with/driver"]
            .map(|case| Proven::by_case(key, case, Role::Responder, "mpa.accepts-wrong-key"));
        let rule = Proven { by: "rule".into(), id: requirement!("MPA-4.1-3"), test: "some::test".into() };
        let mut cases = CountedCases::default();
        cases.needs.insert("mpa/with/driver".into(), Need::Driver);
        let counts = count(&proofs.into_iter().chain([rule]).collect(), CoverageKind::Case, &cases, false);
        let mpa = counts.into_iter().find(|count| count.catalogue == Catalogue::Mpa).unwrap();
        assert_eq!((mpa.service, mpa.driver, mpa.agent, mpa.rule_only, mpa.covered), (0, 1, 0, 1, 2));
    }

    /// The columns of the table add up.
    #[test]
    fn each_covered_requirement_is_in_one_column() {
        let suites = crate::script::Suites::embedded().unwrap();
        let cases: CountedCases = suites.cases().collect();
        for count in count(&Proofs::built_in().unwrap(), CoverageKind::Case, &cases, true) {
            assert_eq!(count.service + count.driver + count.agent, count.case);
            assert_eq!(count.case + count.rule_only, count.covered, "{count:?}");
        }
    }

    #[test]
    fn rows_that_only_the_user_observes_are_counted_separately() {
        let shown = requirement!("RDMAP-5.3-13");
        let case = Proven::by_case(shown, "rdmap/x/y", Role::Responder, "rdmap.reports-one-byte-more");
        let of = |by, sections| {
            let counts = count(&Proofs::from_iter([case.clone()]), by, &CountedCases::default(), sections);
            let rdmap = counts.into_iter().filter(|count| count.catalogue == Catalogue::Rdmap);
            rdmap.fold((0, 0, 0), |sum, it| (sum.0 + it.upper, sum.1 + it.upper_covered, sum.2 + it.covered))
        };
        // The catalogue has 59 such requirements. An agent cannot judge six of them.
        assert_eq!((of(CoverageKind::Case, false), of(CoverageKind::Case, true)), ((53, 1, 0), (53, 1, 0)));
        assert_eq!(of(CoverageKind::Rule, false), (0, 0, 0));
        let sdp = count(&Proofs::default(), CoverageKind::Case, &CountedCases::default(), false);
        assert!(sdp.iter().filter(|it| it.catalogue == Catalogue::Sdp).all(|it| it.upper == 0));
    }

    #[test]
    fn sections_add_up_to_their_catalogue() {
        let proofs = Proofs::built_in().unwrap();
        let sum = |sections| {
            let counts = count(&proofs, CoverageKind::Case, &CountedCases::default(), sections);
            let rdmap: Vec<Count> = counts.into_iter().filter(|count| count.catalogue == Catalogue::Rdmap).collect();
            (
                rdmap.len() > 1,
                rdmap.iter().map(|c| c.rows).sum::<usize>(),
                rdmap.iter().map(|c| c.covered).sum::<usize>(),
            )
        };
        let ((_, rows, covered), total) = (sum(true), sum(false));
        assert_eq!(((false, rows, covered), sum(true).0), (total, true));
        // In the catalogue, violations of 175 requirements show on the wire, and violations of 125
        // requirements show in a reaction.
        assert_eq!(rows, 300);
    }

    #[test]
    fn tests_of_sdp_count_what_a_peer_and_a_user_see() {
        let of = |by, catalogue| rows(by).filter(|(_, row)| row.catalogue == catalogue).count();
        // Violations of 244 requirements of SDP show on the wire, 316 in a reaction, and 93 only to
        // the user. For the port mapper, these numbers are 73, 67 and 5.
        assert_eq!((of(CoverageKind::Rule, Catalogue::Sdp), of(CoverageKind::Test, Catalogue::Sdp)), (244, 653));
        assert_eq!((of(CoverageKind::Case, Catalogue::Sdp), of(CoverageKind::Case, Catalogue::SdpPm)), (560, 140));
        assert_eq!((of(CoverageKind::Rule, Catalogue::SdpPm), of(CoverageKind::Test, Catalogue::SdpPm)), (73, 145));
    }
}
