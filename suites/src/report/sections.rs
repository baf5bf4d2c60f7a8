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
    /// Requirements that hold.
    pub pass: usize,
    /// Requirements that do not.
    pub fail: usize,
    /// Requirements that a case is about without a decision.
    pub undecided: usize,
    /// Requirements of the section whose breach shows on the wire or in a reaction.
    pub observable: usize,
}

/// The sections of which a report judges something, in the order of the catalogues.
pub(super) fn sections(report: &RunReport) -> Vec<Section> {
    sections_of(worst(&report.results))
}

/// The sections of which something was judged, in the order of the catalogues. `worst`: for each requirement the worst of its verdicts.
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
