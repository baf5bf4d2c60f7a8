//! A run by the sections of the specifications: how many requirements of each were judged, and how.

use std::collections::BTreeMap;

use weft_core::RequirementId;
use weft_core::requirement::{self, Catalogue, Observe};

use crate::model::{RunReport, Verdict, worst};

/// One section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The specification.
    pub catalogue: Catalogue,
    /// Its section.
    pub section: &'static str,
    /// Met requirements.
    pub pass: usize,
    /// Violated requirements.
    pub fail: usize,
    /// Requirements of a case that made no decision.
    pub undecided: usize,
    /// Requirements of the section whose violation shows on the wire or in a reaction.
    pub observable: usize,
}

/// The sections with judged requirements of a report, in catalogue order.
pub(super) fn sections(report: &RunReport) -> Vec<Section> {
    sections_of(worst(&report.results))
}

/// The sections with judged requirements, in catalogue order. `worst` has the worst verdict of each
/// requirement.
#[must_use]
pub fn sections_of(worst: BTreeMap<RequirementId, Verdict>) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (id, verdict) in worst {
        let row = id.row();
        let known = sections.iter().position(|one| (one.catalogue, one.section) == (row.catalogue, row.section));
        let index = known.unwrap_or_else(|| {
            let observable = requirement::all().filter(|(_, other)| {
                (other.catalogue, other.section) == (row.catalogue, row.section)
                    && matches!(other.observe, Observe::Wire | Observe::Reaction)
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
