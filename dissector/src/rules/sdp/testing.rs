//! Helpers that prove a rule in both field orders. They check that the rule reports a violation,
//! and that it does not report correct traffic.

use weft_core::RequirementId;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::FieldOrder;

use crate::testing::sdp::SdpScript;

/// Proves that a rule covers `id`, in both field orders. On an open connection, the rule reports a
/// finding after `bad`, and no finding after `good`. `good` differs from `bad` as little as
/// possible.
pub(crate) fn proves(id: RequirementId, bad: impl Fn(&mut SdpScript), good: impl Fn(&mut SdpScript)) {
    let with = |happens: &dyn Fn(&mut SdpScript), order| {
        let mut script = SdpScript::open(order);
        happens(&mut script);
        script
    };
    proves_of(id, |order| with(&bad, order), |order| with(&good, order));
}

/// Like [`proves`], but `bad` and `good` create complete connections.
pub(crate) fn proves_of(
    id: RequirementId,
    bad: impl Fn(FieldOrder) -> SdpScript,
    good: impl Fn(FieldOrder) -> SdpScript,
) {
    let mut proof = Coverage::new(CoverageKind::Rule);
    proof.verify(id, || ORDERS.into_iter().for_each(|order| differ(id, &bad(order), &good(order))));
}

/// Like [`proves`], but in both directions. The second argument of `bad` and of `good` is the
/// direction under test.
pub(crate) fn proves_each_way(
    id: RequirementId,
    bad: impl Fn(&mut SdpScript, usize),
    good: impl Fn(&mut SdpScript, usize),
) {
    let with = |happens: &dyn Fn(&mut SdpScript, usize), order, way| {
        let mut script = SdpScript::open(order);
        happens(&mut script, way);
        script
    };
    let mut proof = Coverage::new(CoverageKind::Rule);
    proof.verify(id, || {
        for (order, way) in ORDERS.into_iter().flat_map(|order| [(order, 0), (order, 1)]) {
            differ(id, &with(&bad, order, way), &with(&good, order, way));
        }
    });
}

const ORDERS: [FieldOrder; 2] = [FieldOrder::Figure, FieldOrder::Mirrored];

/// Asserts that `bad` has a finding with `id`, and that `good` has no such finding.
fn differ(id: RequirementId, bad: &SdpScript, good: &SdpScript) {
    let names = |script: &SdpScript| script.wire.findings().iter().any(|finding| finding.requirement == id);
    let order = bad.order;
    assert!(names(bad), "{id} is not found, {order:?}: {:#?}", bad.wire.findings());
    assert!(!names(good), "{id} is found although nothing violates it, {order:?}: {:#?}", good.wire.findings());
}
