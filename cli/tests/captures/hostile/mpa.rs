//! Each deviation (named fault of an endpoint) of MPA and its enhanced set-up is caught in one of
//! four ways. The monitor reports a finding, the correct endpoint refuses the connection, the
//! deviating endpoint reacts differently, or a case of the suites fails.
//!
//! The test tries each deviation in every scene, first at one end and then at the other. It first
//! searches for a finding about the requirement that the deviation violates. If there is none, it
//! searches for a refusal with this requirement as the reason, and then for a case that fails.

use std::collections::HashMap;

use weft_core::error::Layer;
use weft_core::requirement::Severity;
use weft_peer::{Deviation, Deviations, hostile};

use crate::hostile::pair::Scene;
use crate::hostile::proof::{By, all_are_caught, beside, ends};
use crate::hostile::run::Run;
use crate::hostile::verdict;

/// Deviations that are visible only if the other end deviates too. Each line has the deviation, and
/// the deviation of the other end.
const PROVOKED_BY: &[(&str, &str)] = &[
    ("mpa.accepts-any-revision", "mpa.request-revision"),
    ("mpa.accepts-bad-crc", "mpa.crc-flipped"),
    ("mpa.accepts-long-private-data", "mpa.frame-private-data-600"),
    ("mpa.accepts-wrong-key", "mpa.request-key"),
    ("mpa.accepts-wrong-reply-key", "mpa.reply-key"),
    ("mpa.answers-malformed-request", "mpa.request-key"),
    ("mpa.closes-late", "mpa.request-key"),
    ("mpa.cuts-fpdu-before-terminate", "mpa.crc-flipped"),
    ("mpa.goes-on-after-error", "mpa.crc-flipped"),
    ("mpa.keeps-open-after-error", "mpa.crc-flipped"),
    ("mpa.overlooks-markers", "mpa.marker-off-by-four"),
    ("mpa.refuses-marker-bits", "mpa.marker-low-bits"),
    ("mpa.refuses-marker-reserved", "mpa.marker-reserved"),
    ("mpa.refuses-pad", "mpa.pad-not-zero"),
    ("mpa.refuses-request-r", "mpa.request-rejects"),
    ("mpa.refuses-reserved-bits", "mpa.frame-reserved-bits"),
    ("mpa.skips-terminate", "mpa.crc-flipped"),
    ("mpa.takes-surplus", "mpa.frame-with-crc"),
    ("mpa.terminate-code", "mpa.crc-flipped"),
    ("mpa.terminates-first-fpdu", "mpa.crc-flipped"),
    ("p2p.accepts-short-words", "p2p.counts-without-words"),
    ("p2p.insufficient-ird-as-no-match", "p2p.reply-copies-depths"),
    ("p2p.looks-at-kinds-of-client-server", "p2p.request-kinds-of-client-server"),
    ("p2p.terminate-with-length", "mpa.crc-flipped"),
];

/// Deviations with which an end closes a connection that a correct end would not close. Each line
/// has the deviation, and the requirement that the deviating end reports as the reason.
const REFUSES: &[(&str, &str)] = &[
    ("mpa.accepts-any-revision", "MPA-7.1.1-22"),
    ("mpa.accepts-any-revision", "MPA-8-2"),
    ("mpa.checks-unused-crc", "MPA-8-2"),
    ("mpa.drops-first-fpdu", "DDP-7.1-7"),
    ("mpa.drops-first-fpdu", "DDP-7.1-9"),
    ("mpa.needs-alignment", "MPA-8-2"),
    ("mpa.refuses-good-reply", "MPA-7.1.1-4"),
    ("mpa.refuses-long-private-data", "MPA-7.1.1-4"),
    ("mpa.refuses-long-private-data", "MPA-7.1.1-2"),
    ("mpa.refuses-marker-bits", "MPA-8-2"),
    ("mpa.refuses-marker-reserved", "MPA-8-2"),
    ("mpa.refuses-markers", "MPA-7.1.1-2"),
    ("mpa.refuses-pad", "MPA-8-2"),
    ("mpa.refuses-request-r", "MPA-7.1.1-2"),
    ("mpa.refuses-reserved-bits", "MPA-7.1.1-4"),
    ("mpa.refuses-reserved-bits", "MPA-7.1.1-2"),
    ("mpa.refuses-revision-1", "MPA-7.1.1-2"),
    ("mpa.refuses-short-ulpdu", "MPA-8-2"),
    ("mpa.refuses-ulpdu-over-127", "MPA-8-2"),
    ("mpa.reply-markers-not-requested", "MPA-8-2"),
    ("p2p.checks-rtr-stag", "MPA-8-2"),
    ("p2p.closes-enhanced", "P2P-10-4"),
    ("p2p.takes-open-ord-for-a-number", "P2P-9.1-24"),
];

fn catch(
    deviation: &'static Deviation,
    correct: &HashMap<Scene, Run>,
    unexpected: &mut Vec<String>,
) -> Result<By, String> {
    let (own, none) = (Deviations::from(deviation), Deviations::NONE);
    let provoked = PROVOKED_BY.iter().filter(|(name, _)| *name == deviation.name).map(|(_, by)| Some(*by));
    let (mut refused, mut seen) = (None, false);
    for by in std::iter::once(None).chain(provoked) {
        let other = Deviations::from_names(by).unwrap();
        for (scene, end) in Scene::ALL.iter().flat_map(|scene| [(*scene, 0), (*scene, 1)]) {
            let run = Run::of_scene(scene, ends(end, &own, &other));
            let provoked = by.map(|_| Run::of_scene(scene, ends(end, &none, &other)));
            let Some(right) = provoked.as_ref().or_else(|| correct.get(&scene)) else { continue };
            if run.is_like(right) {
                continue;
            }
            seen |= run.outcome != right.outcome;
            let named = |end: usize, run: &Run| run.refuses[end].filter(|id| deviation.breaks.contains(id));
            // The rules about alignment are in an appendix, so their findings are notes.
            let (found, before) = (run.found(end, Severity::Note), right.found(end, Severity::Note));
            if found.difference(&before).any(|id| deviation.breaks.contains(id)) {
                unexpected.extend(beside(deviation, end, &run, right, by.is_none() && !scene.is_scripted()));
                return Ok(By::Monitor);
            }
            let ended = run.refuses[end].filter(|_| right.refuses[end].is_none());
            if named(1 - end, &run).is_some() && run.refuses[1 - end] != right.refuses[1 - end] {
                refused = refused.or(Some(By::Twin));
            } else if let Some(id) = ended {
                if !REFUSES.contains(&(deviation.name, id.as_str())) {
                    return Err(format!("{} refuses for {id} in {scene:?}, and no list has it", deviation.name));
                }
                refused = refused.or(Some(By::Reaction));
            } else if named(end, right).is_some() && run.refuses[end] != right.refuses[end] {
                refused = refused.or(Some(By::Reaction));
            }
        }
    }
    match refused {
        Some(by) => Ok(by),
        None => verdict::names(deviation, seen, unexpected),
    }
}

#[test]
fn each_deviation_of_mpa_is_caught() {
    let none = Deviations::NONE;
    let correct = Scene::ALL.iter().map(|scene| (*scene, Run::of_scene(*scene, [&none, &none]))).collect();
    let of_mpa = hostile::all().filter(|deviation| deviation.layer == Layer::Mpa);
    all_are_caught(of_mpa, |deviation, unexpected| catch(deviation, &correct, unexpected));
}
