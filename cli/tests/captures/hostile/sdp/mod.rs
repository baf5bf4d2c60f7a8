//! Tests two SDP endpoints together with the monitor. Each deviation (named fault of an endpoint)
//! is caught, and the monitor has no findings about correct ends.
//!
//! The test tries each deviation in every scene, first at one end and then at the other. It first
//! searches for a finding about the requirement that the deviation violates. The finding must
//! appear in both field orders: in the order of the SDP draft's figures, and in the mirrored order.
//! If there is no finding, the test searches for a run in which the other end closes the connection
//! because of this requirement. If there is no such run, the test searches for a case that fails.

mod act;
mod clean;
mod end;
pub(crate) mod net;
mod random;
mod scene;
mod tcp;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use weft_core::error::Layer;
use weft_core::requirement::Severity;
use weft_core::wire::sdp::FieldOrder;
use weft_peer::sdp::Event;
use weft_peer::{Deviation, Deviations, hostile};

use crate::hostile::proof::{By, all_are_caught, ends, errors_beside};
use crate::hostile::verdict;
use scene::{Run, Scene};

/// Deviations that are visible only if the other end deviates too. Each line has the deviation, and
/// the deviation of the other end.
const PROVOKED_BY: &[(&str, &str)] = &[
    ("sdp.accepts-hello-ack-loc-ird-0", "sdp.hello-ack-loc-ird-0"),
    ("sdp.accepts-hello-ack-loc-ord-0", "sdp.hello-ack-loc-ord-0"),
    ("sdp.accepts-hello-ack-majv", "sdp.hello-ack-majv-2"),
    ("sdp.accepts-hello-ack-max-adverts-0", "sdp.hello-ack-max-adverts-0"),
    ("sdp.accepts-hello-loc-ird-0", "sdp.hello-loc-ird-0"),
    ("sdp.accepts-hello-loc-ord-0", "sdp.hello-loc-ord-0"),
    ("sdp.accepts-hello-majv", "sdp.hello-majv-2"),
    ("sdp.accepts-hello-max-adverts-0", "sdp.hello-max-adverts-0"),
    ("sdp.overlooks-invalidated-stag", "sdp.rd-compl-invalidates-other"),
    ("sdp.overlooks-length", "sdp.wr-compl-len-more"),
    ("sdp.overlooks-malformed", "sdp.send-sm-long"),
    ("sdp.overlooks-mode", "sdp.mode-change-pipelined-to-buffered"),
    ("sdp.overlooks-unmatched", "sdp.rd-compl-unrequested"),
    ("sdp.refuses-flags", "sdp.flags-reserved"),
    ("sdp.refuses-hello-ack-minv", "sdp.hello-ack-minv-0"),
    ("sdp.refuses-hello-ack-mseq", "sdp.hello-ack-mseq"),
    ("sdp.refuses-hello-ack-mseq-ack", "sdp.hello-ack-mseq-ack"),
    ("sdp.refuses-hello-ack-rsvd", "sdp.hello-ack-rsvd"),
    ("sdp.refuses-hello-minv", "sdp.hello-minv-0"),
    ("sdp.refuses-hello-mseq", "sdp.hello-mseq"),
    ("sdp.refuses-hello-mseq-ack", "sdp.hello-mseq-ack"),
    ("sdp.refuses-hello-rsvd", "sdp.hello-rsvd"),
    ("sdp.refuses-mode-change-rsvd", "sdp.mode-change-rsvd"),
    ("sdp.refuses-req-pipe-elsewhere", "sdp.req-pipe-elsewhere"),
    ("sdp.stags-left-valid", "sdp.writes-again"),
];

/// Results of runs in which the end under test is correct. A key has four parts: the deviation of
/// the other end, if any; the scene; the number of the end under test (0 if both ends are correct);
/// the field order.
type Rights = RefCell<HashMap<(Option<&'static str>, Scene, usize, FieldOrder), Rc<Run>>>;

fn catch(deviation: &'static Deviation, rights: &Rights, unexpected: &mut Vec<String>) -> Result<By, String> {
    let (own, none) = (Deviations::from(deviation), Deviations::NONE);
    let provoked = PROVOKED_BY.iter().filter(|(name, _)| *name == deviation.name).map(|(_, by)| Some(*by));
    let (mut refused, mut seen) = (false, false);
    for by in std::iter::once(None).chain(provoked) {
        let other = Deviations::from_names(by).unwrap();
        for (scene, end) in Scene::ALL.iter().flat_map(|scene| [(*scene, 0), (*scene, 1)]) {
            let right = |order| {
                let right = || Rc::new(scene.run(order, ends(end, &none, &other)));
                let key = (by, scene, by.map_or(0, |_| end), order);
                Rc::clone(rights.borrow_mut().entry(key).or_insert_with(right))
            };
            // The severity of a finding about advice is "note", so notes count too.
            let names = |run: &Run, right: &Run| {
                let (found, before) = (run.found(end, Severity::Note), right.found(end, Severity::Note));
                found.difference(&before).any(|id| deviation.breaks.contains(id))
            };
            let (run, order) = (scene.run(FieldOrder::Figure, ends(end, &own, &other)), FieldOrder::Mirrored);
            let right = (right(FieldOrder::Figure), || right(order));
            if names(&run, &right.0) {
                let mirrored = || names(&scene.run(order, ends(end, &own, &other)), &right.1());
                if !mirrored() {
                    return Err(format!("{}: nothing names it in the mirrored order", deviation.name));
                }
                let right = right.0;
                let errors = |run: &Run, end| run.found(end, Severity::Error);
                let errors = [0, 1].map(|end| errors(&run, end).difference(&errors(&right, end)).copied().collect());
                unexpected.extend(errors_beside(deviation, end, &errors, by.is_none()));
                return Ok(By::Monitor);
            }
            let right = right.0;
            refused |= run.refuses[1 - end] != right.refuses[1 - end]
                && run.refuses[1 - end].is_some_and(|id| deviation.breaks.contains(&id));
            seen |= run.outcome != right.outcome;
        }
    }
    if refused { Ok(By::Twin) } else { verdict::names(deviation, seen, unexpected) }
}

#[test]
fn each_deviation_of_sdp_is_caught() {
    let rights = Rights::default();
    let of_sdp = hostile::all().filter(|deviation| deviation.layer == Layer::Sdp);
    all_are_caught(of_sdp, |deviation, unexpected| catch(deviation, &rights, unexpected));
}

/// Correct ends complete each scene. In the scenes with a suspension, the socket really moves to
/// another connection.
#[test]
fn scenes_are_what_they_are_called() {
    let none = Deviations::NONE;
    for scene in Scene::ALL {
        let net = scene.play(FieldOrder::Figure, [&none, &none]);
        let times = match scene {
            Scene::Suspended | Scene::SuspendedReading | Scene::SuspendedRead | Scene::SuspendsCrossing => 2,
            _ => 0,
        };
        for end in &net.ends {
            let suspended = end.events.iter().filter(|event| matches!(event, Event::Suspended { .. })).count();
            let resumed = end.events.iter().filter(|event| matches!(event, Event::Resumed(_))).count();
            assert_eq!((suspended, resumed), (times, times), "{scene:?}: {:?}", end.events);
        }
        let blamed: Vec<_> = net.capture.findings().into_iter().filter(|it| it.severity >= Severity::Warning).collect();
        let blamed: Vec<_> =
            blamed.iter().map(|it| format!("{} of {}: {}", it.requirement, it.direction, it.found)).collect();
        assert!(*scene == Scene::Natural || blamed.is_empty(), "{scene:?}: {blamed:#?}");
    }
}
