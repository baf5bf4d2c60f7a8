//! One run of two ends, and what is to be seen of it.

use std::collections::BTreeSet;

use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_core::wire::rdmap::TerminateError;
use weft_dissector::Finding;
use weft_peer::Deviations;

use crate::traffic::Wrong;
use crate::world::World;

/// What was to be seen.
pub(crate) struct Run {
    findings: Vec<Finding>,
    /// What both ends' users saw, and how TCP ended.
    pub(crate) outcome: String,
    /// The Terminate that each end sent, as 0xLTCC.
    pub(crate) says: [Option<u16>; 2],
}

/// A situation: all operations, or one that goes wrong.
pub(crate) type Script = Option<Wrong>;

impl Run {
    /// Two RNICs, Initiator and Responder.
    pub(crate) fn of(script: Script, deviations: [&Deviations; 2]) -> Self {
        let mut world = World::new(deviations[0], deviations[1]);
        world.begin();
        match script {
            None => world.traffic(),
            Some(wrong) => world.goes_wrong(wrong),
        }
        world.end();
        // One that did not go out leaves the other end without any.
        let heard = world.sides.iter().all(|side| side.terminate().is_some());
        let says = [0, 1].map(|end| {
            let (error, local) = world.sides[end].terminate()?;
            (local && heard).then(|| code(error))
        });
        Run { findings: world.capture.findings(), outcome: world.outcome(), says }
    }

    /// What the monitor lays to an end's charge, at least as severe as this.
    pub(crate) fn found(&self, end: usize, least: Severity) -> BTreeSet<RequirementId> {
        let of_end = self.findings.iter().filter(|finding| usize::from(finding.direction) == end);
        of_end.filter(|finding| finding.severity >= least).map(|finding| finding.requirement).collect()
    }
}

fn code(error: TerminateError) -> u16 {
    u16::from(error.layer.0) << 12 | u16::from(error.error_type) << 8 | u16::from(error.code)
}
