//! Runs two endpoints, and collects the observable results of the run.

use std::collections::BTreeSet;

use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_core::wire::rdmap::TerminateError;
use weft_dissector::Finding;
use weft_peer::Deviations;

use crate::hostile::pair::{Pair, Scene};
use crate::hostile::traffic::Wrong;
use crate::hostile::world::World;

/// The observable results of a run.
pub(crate) struct Run {
    findings: Vec<Finding>,
    /// The results of both ends' users, and how TCP ended.
    pub(crate) outcome: String,
    /// The code of the Terminate that each end sent, as 0xLTCC (layer, type, code).
    pub(crate) terminates: [Option<u16>; 2],
    /// For each end that closed the connection by itself, the requirement that was the reason. Only
    /// a connection without RNICs reports the reason.
    pub(crate) refuses: [Option<RequirementId>; 2],
}

/// The actions in a run: one deliberate error, or (if `None`) all operations without an error.
pub(crate) type Script = Option<Wrong>;

impl Run {
    /// Runs two RNICs, the Initiator and the Responder.
    pub(crate) fn of(script: Script, deviations: [&Deviations; 2]) -> Self {
        let mut world = World::new(deviations[0], deviations[1]);
        world.begin();
        match script {
            None => world.traffic(),
            Some(wrong) => world.goes_wrong(wrong),
        }
        world.end();
        // A Terminate counts only if it arrived: then both ends have a record of it.
        let is_exchanged = world.sides.iter().all(|side| side.terminate().is_some());
        let terminates = [0, 1].map(|end| {
            let (error, local) = world.sides[end].terminate()?;
            (local && is_exchanged).then(|| code(error))
        });
        Run { findings: world.capture.findings(), outcome: world.outcome(), terminates, refuses: [None, None] }
    }

    /// Runs two connections without RNICs.
    pub(crate) fn of_scene(scene: Scene, deviations: [&Deviations; 2]) -> Self {
        let pair = Pair::play(scene, deviations);
        let refuses = [0, 1].map(|end| pair.refuses(end));
        Run { findings: pair.capture.findings(), outcome: pair.outcome(), terminates: [None, None], refuses }
    }

    /// Returns whether both runs have the same results.
    pub(crate) fn is_like(&self, other: &Run) -> bool {
        self.outcome == other.outcome && self.findings == other.findings
    }

    /// Returns the requirements of the monitor's findings about an end, with at least the severity
    /// `least`.
    pub(crate) fn found(&self, end: usize, least: Severity) -> BTreeSet<RequirementId> {
        let of_end = self.findings.iter().filter(|finding| usize::from(finding.direction) == end);
        of_end.filter(|finding| finding.severity >= least).map(|finding| finding.requirement).collect()
    }
}

fn code(error: TerminateError) -> u16 {
    u16::from(error.layer.0) << 12 | u16::from(error.error_type) << 8 | u16::from(error.code)
}
