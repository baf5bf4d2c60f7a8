//! The requirements of a run by section of the specifications: numbers of met, violated and
//! undecided requirements.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::RequirementId;
use weft_core::requirement::{self, Catalogue, Observe};

use crate::model::{RunReport, Verdict, worst};

/// The numbers of one section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The specification.
    pub catalogue: Catalogue,
    /// The section of the specification.
    pub section: &'static str,
    /// Number of met requirements.
    pub pass: usize,
    /// Number of violated requirements.
    pub fail: usize,
    /// Number of requirements without a decision.
    pub undecided: usize,
    /// Number of the section's requirements that are judged, or whose violation is visible on the
    /// wire or in a reaction. With an agent, others can be judged, too.
    pub observable: usize,
}

/// Returns the sections in which the report has a verdict on a requirement, in catalogue order.
pub(super) fn sections(report: &RunReport) -> Vec<Section> {
    sections_of(worst(&report.results))
}

/// Returns the sections of the requirements in `worst`, in catalogue order. `worst` has the worst
/// verdict of each judged requirement.
#[must_use]
pub fn sections_of(worst: BTreeMap<RequirementId, Verdict>) -> Vec<Section> {
    let judged: BTreeSet<RequirementId> = worst.keys().copied().collect();
    let mut sections: Vec<Section> = Vec::new();
    for (id, verdict) in worst {
        let row = id.row();
        let known = sections.iter().position(|one| (one.catalogue, one.section) == (row.catalogue, row.section));
        let index = known.unwrap_or_else(|| {
            let observable = requirement::all().filter(|(id, other)| {
                (other.catalogue, other.section) == (row.catalogue, row.section)
                    && (matches!(other.observe, Observe::Wire | Observe::Reaction) || judged.contains(id))
            });
            let observable = observable.count();
            let (catalogue, section) = (row.catalogue, row.section);
            sections.push(Section { catalogue, section, pass: 0, fail: 0, undecided: 0, observable });
            sections.len() - 1
        });
        let section = &mut sections[index];
        match verdict {
            Verdict::Pass => section.pass += 1,
            Verdict::Fail => section.fail += 1,
            Verdict::Inconclusive | Verdict::Error | Verdict::NotApplicable | Verdict::Unimplemented => {
                section.undecided += 1;
            }
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only an agent sees violations of rows that are not on the wire.
    #[test]
    fn no_section_has_more_judged_than_observable_requirements() {
        let all = requirement::all().map(|(id, _)| (id, Verdict::Pass)).collect();
        for section in sections_of(all) {
            assert_eq!(section.pass, section.observable, "{section:?}");
        }
    }
}
