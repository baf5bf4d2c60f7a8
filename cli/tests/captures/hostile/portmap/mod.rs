//! Tests the client and the server of the port mapper together with the monitor. Each deviation
//! (named fault of a side) is caught, and the monitor has no findings about correct sides.
//!
//! The test tries each deviation in every scene, first on one side and then on the other. It
//! searches first for a finding about the first requirement that the deviation violates, and then
//! for a case that fails.

mod net;
mod scene;

use std::collections::BTreeSet;

use weft_core::RequirementId;
use weft_core::error::Layer;
use weft_core::requirement::Severity;
use weft_peer::{Deviation, Deviations, hostile};

use crate::hostile::proof::{By, all_are_caught};
use crate::hostile::verdict;
use net::Run;
pub(crate) use scene::Scene;

/// Returns the errors that are not about the deviation's requirements, as lines of `also.csv`.
fn beside(deviation: &Deviation, side: usize, run: &Run, right: &Run) -> Vec<String> {
    let errors = |end| -> BTreeSet<RequirementId> {
        run.found(end, Severity::Error).difference(&right.found(end, Severity::Error)).copied().collect()
    };
    let line = |id: &RequirementId| format!("{},{id}", deviation.name);
    let is_beside = |id: &RequirementId| !deviation.breaks.contains(id);
    let own = errors(side).into_iter().filter(is_beside).map(|id| line(&id));
    // The other side can have errors too, because an answer repeats the wrong fields of its
    // request.
    let other = errors(1 - side).into_iter().filter(is_beside);
    own.chain(other.map(|id| format!("{} (of the correct end)", line(&id)))).collect()
}

fn catch(deviation: &'static Deviation, unexpected: &mut Vec<String>) -> Result<By, String> {
    let (own, none) = (Deviations::from(deviation), Deviations::NONE);
    let main = deviation.breaks[0];
    let mut seen = false;
    for (scene, side) in Scene::ALL.iter().flat_map(|scene| [(*scene, 0), (*scene, 1)]) {
        let run = scene.play(if side == 0 { [&own, &none] } else { [&none, &own] });
        let right = scene.play([&none, &none]);
        let found =
            run.found(side, Severity::Note).contains(&main) && !right.found(side, Severity::Note).contains(&main);
        if found {
            unexpected.extend(beside(deviation, side, &run, &right));
            return Ok(By::Monitor);
        }
        seen |= run.outcome != right.outcome;
    }
    verdict::names(deviation, seen, unexpected)
}

#[test]
fn each_deviation_of_the_port_mapper_is_caught() {
    all_are_caught(hostile::all().filter(|deviation| deviation.layer == Layer::SdpPm), catch);
}

#[test]
fn nothing_is_found_in_correct_exchanges() {
    let none = Deviations::NONE;
    for scene in Scene::ALL.iter().filter(|scene| !scene.is_tampered_with()) {
        let run = scene.play([&none, &none]);
        let blamed: Vec<_> = run.findings.iter().filter(|finding| finding.severity >= Severity::Warning).collect();
        assert!(blamed.is_empty(), "{scene:?}: {blamed:#?}");
    }
}

/// Each scene has the result that its name describes. If all scenes had the same result, the tests
/// with them would prove nothing.
#[test]
fn scenes_are_what_they_are_called() {
    let none = Deviations::NONE;
    for (scene, part) in [
        (Scene::Mapped, "SDP at 10.0.0.1:7001, connected"),
        (Scene::MappedV6, "SDP at [fd00:9::1]:7001, connected"),
        (Scene::Denied, "plain TCP at 10.0.0.1:5009: the port mapper denied the request"),
        (Scene::Silent, "the port mapper did not answer"),
        (Scene::Reset, "reset, then plain TCP at 10.0.0.1:5003"),
        (Scene::AckLost, "10.0.0.2:40001 has not used 10.0.0.1:9001"),
    ] {
        let outcome = scene.play([&none, &none]).outcome;
        assert!(outcome.contains(part), "{scene:?}: {outcome}");
    }
}
