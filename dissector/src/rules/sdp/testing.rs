//! Proofs in both field orders.

use weft_core::RequirementId;
use weft_core::coverage::{By, Proof};
use weft_core::wire::sdp::FieldOrder;

use crate::testing::sdp::Talk;

/// A rule covers `id`: it fires on an open connection on which `bad` happens, and not on one on which `good` does, which differs
/// from it as little as possible; in both field orders.
pub(crate) fn proves(id: RequirementId, bad: impl Fn(&mut Talk), good: impl Fn(&mut Talk)) {
    let with = |happens: &dyn Fn(&mut Talk), order| {
        let mut talk = Talk::begun(order);
        happens(&mut talk);
        talk
    };
    proves_of(id, |order| with(&bad, order), |order| with(&good, order));
}

/// The same for whole conversations.
pub(crate) fn proves_of(id: RequirementId, bad: impl Fn(FieldOrder) -> Talk, good: impl Fn(FieldOrder) -> Talk) {
    let mut proof = Proof::new(By::Rule);
    proof.shows(id, || ORDERS.into_iter().for_each(|order| differ(id, &bad(order), &good(order))));
}

/// The same, whoever of the two does it: in both directions.
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

/// `id` is found in `bad`, and not in `good`.
fn differ(id: RequirementId, bad: &Talk, good: &Talk) {
    let names = |talk: &Talk| talk.wire.findings().iter().any(|finding| finding.requirement == id);
    let order = bad.order;
    assert!(names(bad), "{id} is not found, {order:?}: {:#?}", bad.wire.findings());
    assert!(!names(good), "{id} is found where nothing breaks it, {order:?}: {:#?}", good.wire.findings());
}
