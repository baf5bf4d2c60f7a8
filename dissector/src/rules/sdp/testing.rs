//! Helpers that prove a rule in both field orders: the rule reports a violation, and does not
//! report correct traffic.

use weft_core::RequirementId;
use weft_core::coverage::{By, Proof};
use weft_core::wire::sdp::FieldOrder;

use crate::testing::sdp::Talk;

/// Proves that a rule covers `id`, in both field orders. The rule reports a finding on an open
/// connection after `bad`, and none after `good`. `good` differs from `bad` as little as possible.
pub(crate) fn proves(id: RequirementId, bad: impl Fn(&mut Talk), good: impl Fn(&mut Talk)) {
    let with = |happens: &dyn Fn(&mut Talk), order| {
        let mut talk = Talk::begun(order);
        happens(&mut talk);
        talk
    };
    proves_of(id, |order| with(&bad, order), |order| with(&good, order));
}

/// Like [`proves`], for complete connections.
pub(crate) fn proves_of(id: RequirementId, bad: impl Fn(FieldOrder) -> Talk, good: impl Fn(FieldOrder) -> Talk) {
    let mut proof = Proof::new(By::Rule);
    proof.shows(id, || ORDERS.into_iter().for_each(|order| differ(id, &bad(order), &good(order))));
}

/// Like [`proves`], in both directions: the second argument is the direction under test.
pub(crate) fn proves_each_way(id: RequirementId, bad: impl Fn(&mut Talk, usize), good: impl Fn(&mut Talk, usize)) {
    let with = |happens: &dyn Fn(&mut Talk, usize), order, way| {
        let mut talk = Talk::begun(order);
        happens(&mut talk, way);
        talk
    };
    let mut proof = Proof::new(By::Rule);
    proof.shows(id, || {
        for (order, way) in ORDERS.into_iter().flat_map(|order| [(order, 0), (order, 1)]) {
            differ(id, &with(&bad, order, way), &with(&good, order, way));
        }
    });
}

const ORDERS: [FieldOrder; 2] = [FieldOrder::Figure, FieldOrder::Mirrored];

/// Asserts that `bad` has a finding with `id`, and that `good` has none.
fn differ(id: RequirementId, bad: &Talk, good: &Talk) {
    let names = |talk: &Talk| talk.wire.findings().iter().any(|finding| finding.requirement == id);
    let order = bad.order;
    assert!(names(bad), "{id} is not found, {order:?}: {:#?}", bad.wire.findings());
    assert!(!names(good), "{id} is found although nothing violates it, {order:?}: {:#?}", good.wire.findings());
}
