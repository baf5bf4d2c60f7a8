//! What a case needs from a target, beyond the protocols and a service that many implementations
//! have.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::RequirementId;

use crate::model::{Capability, CaseInfo};

/// What a case needs from a target, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Only a service that many implementations have, such as echo. The target is a black box.
    Service,
    /// A driven SDP socket, which executes text commands (docs/sdp-driver.md).
    Driver,
    /// An agent, which calls the verbs of the target's NIC.
    Agent,
}

impl Need {
    fn of(capabilities: &[Capability]) -> Self {
        let needed = capabilities.iter().map(|capability| match capability {
            Capability::Agent => Need::Agent,
            Capability::SdpConnect | Capability::SdpDrive => Need::Driver,
            _ => Need::Service,
        });
        needed.max().unwrap_or(Need::Service)
    }
}

/// The cases of suites, as far as coverage counts them.
#[derive(Debug, Clone, Default)]
pub struct CountedCases {
    /// The requirements that the cases are about.
    pub named: BTreeSet<RequirementId>,
    /// What each case needs, by the id of the case.
    pub(super) needs: BTreeMap<String, Need>,
}

impl CountedCases {
    /// Returns what the case with this id needs. A case of other suites has an unknown id. It counts
    /// as if it needed most.
    pub(super) fn need(&self, id: &str) -> Need {
        self.needs.get(id).copied().unwrap_or(Need::Agent)
    }
}

impl<'c> FromIterator<&'c CaseInfo> for CountedCases {
    fn from_iter<I: IntoIterator<Item = &'c CaseInfo>>(cases: I) -> Self {
        let mut counted = CountedCases::default();
        for case in cases {
            counted.named.extend(case.requirements.iter().copied());
            counted.needs.insert(case.id.clone(), Need::of(&case.capabilities));
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::{Capability, CountedCases, Need};

    #[test]
    fn the_most_demanding_capability_counts() {
        assert_eq!(Need::of(&[Capability::Crc, Capability::SdpEcho]), Need::Service);
        assert_eq!(Need::of(&[Capability::SdpDrive, Capability::Crc]), Need::Driver);
        assert_eq!(Need::of(&[Capability::SdpConnect, Capability::Agent]), Need::Agent);
        assert_eq!(CountedCases::default().need("other/case"), Need::Agent);
    }
}
