//! Tests Memory Windows: the regions to which they can be bound, and the effects of a Bind
//! (draft-hilland-rddp-verbs, section 7.10, Figures 17, 19 and 20).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::Instant;
use weft_peer::memory::{
    Access, Bind, PdId, PhysicalBufferList, Registration, RemoteAccess, SharedRegistration, Stag, StagIndex, StagKey,
    StagState, ToBase,
};
use weft_peer::verbs::{
    CompletionStatus, EventId, LlpHandle, Operation, QpHandle, QpInit, QpModify, QpState, RnicSettings, SendWr,
};

use crate::verbs::peers::{Bench, LENGTH, PLAIN, Side, VA, llp_settings, register, shows, tagged};

const BOTH: RemoteAccess = RemoteAccess { read: true, write: true };

/// Binds `window` to octets 100 to 149 of the side's region, on the bench's Queue Pair. The
/// window's offsets begin at zero ("zero based"). `change` can modify the Bind.
pub(crate) fn bind(
    bench: &mut Bench,
    window: StagIndex,
    key: u8,
    change: impl FnOnce(&mut Bind),
) -> (Stag, CompletionStatus) {
    let window = Stag { index: window, key: StagKey(key) };
    let mut bind =
        Bind { window, region: bench.side.stag, address: VA + 100, length: 50, va_based: false, access: BOTH };
    change(&mut bind);
    bench.side.post(SendWr::new(1, Operation::Bind(bind)));
    bench.sent();
    let status = bench.side.rnic.poll_cq(bench.side.cq).map(|done| done.status);
    (window, status.unwrap())
}

pub(crate) fn window(bench: &mut Bench) -> StagIndex {
    bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap()
}

/// A bench with a bound window.
pub(crate) fn bound(change: impl FnOnce(&mut Bind)) -> (Stag, Bench) {
    let mut bench = Bench::new();
    let index = window(&mut bench);
    let (stag, status) = bind(&mut bench, index, 7, change);
    assert_eq!(status, CompletionStatus::Success);
    (stag, bench)
}

pub(crate) fn state(bench: &Bench, stag: Stag) -> StagState {
    bench.side.rnic.memory().query_window(stag.index).unwrap().state
}

/// Delivers a Write to the window. Returns the offset in the region at which its first octet was
/// placed, and the events.
pub(crate) fn written(bench: &mut Bench, stag: Stag, to: u64, payload: &[u8]) -> (Option<usize>, Vec<EventId>) {
    bench.hand_in(&tagged(Opcode::WRITE, stag.to_bits(), to, payload));
    (bench.side.octets().iter().position(|octet| *octet != 0), bench.side.event_ids())
}

pub(crate) fn done(bench: &mut Bench, operation: Operation) -> CompletionStatus {
    bench.side.post(SendWr::new(2, operation));
    bench.sent();
    bench.side.rnic.poll_cq(bench.side.cq).unwrap().status
}

/// Creates another Queue Pair of the side, in RTS. Its PD is `pd`, or the side's PD if `pd` is
/// `None`.
pub(crate) fn sibling(side: &mut Side, pd: Option<PdId>) -> (QpHandle, LlpHandle) {
    let pd = pd.unwrap_or(side.pd);
    let qp = side.rnic.create_qp(QpInit::new(pd, side.cq, side.cq), None).unwrap().0;
    let llp = side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
    side.rnic.modify_qp(Instant::ORIGIN, qp, &QpModify::to_rts(llp)).unwrap();
    (qp, llp)
}

/// Makes the bench use another Queue Pair of its side.
pub(crate) fn on(mut bench: Bench, (qp, llp): (QpHandle, LlpHandle)) -> Bench {
    (bench.side.qp, bench.side.llp) = (qp, llp);
    bench.side.id = bench.side.rnic.query_qp(qp).unwrap().id;
    bench
}

#[test]
fn both_ways_to_count() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let zero = |to| {
        let (stag, mut bench) = bound(|_| ());
        written(&mut bench, stag, to, b"x").0
    };
    let based = |to| {
        let (stag, mut bench) = bound(|bind| bind.va_based = true);
        written(&mut bench, stag, to, b"x").0
    };
    shows! { proof:
        "VERBS-7.10.2-10" => zero(0) == Some(100);
        "VERBS-7.10.2-11" => based(VA + 100) == Some(100);
        "VERBS-7.10.2-18" => zero(VA + 100).is_none() && based(0).is_none();
        "VERBS-7.10.2-24" => [zero(49), zero(50), based(VA + 99), based(VA + 149), based(VA + 150)] == [Some(149), None, None, Some(149), None];
        "VERBS-7.10-1" => {
            let (stag, mut bench) = bound(|bind| (bind.address, bind.length) = (VA, LENGTH));
            written(&mut bench, stag, LENGTH - 1, b"x").0 == Some(LENGTH as usize - 1) && zero(0).is_some()
        };
        "VERBS-8.1.2.3.1-3" => zero(7) == Some(107) && {
            let (stag, bench) = bound(|bind| bind.access.write = false);
            bench.side.rnic.memory().query_window(stag.index).unwrap().access == RemoteAccess { read: true, write: false }
        };
    }
}

#[test]
fn regions_that_a_window_can_be_bound_to() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let to_region = |base: ToBase, va_based: bool, shared: bool| {
        let mut bench = Bench::new();
        let (pd, list) = (bench.side.pd, PhysicalBufferList::of(bench.side.buffer, 0, 4096, 4096));
        let registration = Registration { pd, key: StagKey(1), list, base, remote: true, access: Access::ALL };
        let mut region = bench.side.rnic.memory_mut().register(&registration).unwrap().stag;
        if shared {
            let new = SharedRegistration { pd, key: StagKey(2), base, remote: true, access: Access::ALL };
            region = bench.side.rnic.memory_mut().register_shared(region, &new).unwrap();
        }
        let index = window(&mut bench);
        let (stag, status) = bind(&mut bench, index, 7, |bind| {
            (bind.region, bind.address, bind.va_based) = (region, base.first() + 10, va_based);
        });
        (status, state(&bench, stag))
    };
    let good = (CompletionStatus::Success, StagState::Valid);
    let refused = (CompletionStatus::InvalidRegion, StagState::Invalid);
    shows! { proof:
        "VERBS-7.10.2-1" => to_region(ToBase::VaBased(VA), true, false) == good;
        "VERBS-7.10.2-2" => to_region(ToBase::VaBased(VA), true, true) == good;
        "VERBS-7.10.2-12" => to_region(ToBase::VaBased(VA), false, false) == good;
        "VERBS-7.10.2-21" => to_region(ToBase::ZeroBased, true, false) == refused && to_region(ToBase::ZeroBased, true, true) == refused;
        "VERBS-7.10.2-39" => to_region(ToBase::ZeroBased, false, false) == refused;
        "VERBS-7.10.2-40" => to_region(ToBase::ZeroBased, true, false).1 == StagState::Invalid;
        "VERBS-7.6.1.2-4" => [true, false].map(|based| to_region(ToBase::ZeroBased, based, false).0) == [CompletionStatus::InvalidRegion; 2];
        "VERBS-7.3.2-1" => {
            let mut bench = Bench::new();
            let region = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access { bind: false, ..Access::ALL });
            let index = window(&mut bench);
            bind(&mut bench, index, 1, |bind| bind.region = region).1 == CompletionStatus::AccessViolation
        };
    }
}

#[test]
fn a_bind_makes_the_window_valid() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (stag, mut bench) = bound(|_| ());
    let other = window(&mut bench);
    shows! { proof:
        "VERBS-7.10.2-14" => bench.side.rnic.memory_mut().deallocate_stag(bench.side.stag.index).is_err();
        "VERBS-7.10.2-20" => state(&bench, stag) == StagState::Valid;
        "VERBS-7.1-6" => bench.side.rnic.memory().query_window(other).unwrap().state == StagState::Invalid
            && bind(&mut bench, other, 1, |_| ()).1 == CompletionStatus::Success;
        "VERBS-5.1.1.2-2" => bench.side.rnic.memory_mut().deallocate_stag(bench.side.stag.index).is_err()
            && written(&mut bench, stag, 3, b"x").0 == Some(103);
        "VERBS-7.10.2-4" => {
            let memory = weft_peer::memory::MemorySettings { max_windows: 50, ..Default::default() };
            let settings = RnicSettings { memory, ..Default::default() };
            let mut bench = Bench { side: Side::with(settings, llp_settings(PLAIN, 1460, true), |_| ()).start() };
            (0..50).all(|_| {
                let index = window(&mut bench);
                bind(&mut bench, index, 1, |_| ()).1 == CompletionStatus::Success
            }) && bench.side.rnic.memory_mut().allocate_window(bench.side.pd).is_err()
        };
        "VERBS-7.10.2-31" => {
            let (stag, mut bench) = bound(|_| ());
            assert_eq!(done(&mut bench, Operation::InvalidateLocal(stag)), CompletionStatus::Success);
            let (again, _) = bind(&mut bench, stag.index, 9, |_| ());
            written(&mut bench, again, 0, b"x").0 == Some(100) && written(&mut bench, stag, 1, b"x").1 == [EventId::ProtectionInvalidStag]
        };
        // A window with the right to write needs a region with the local right to write. The remote
        // rights of the region make no difference.
        "VERBS-8.1.2.2-10" => {
            let mut bench = Bench::new();
            let region = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access { bind: true, ..Access::LOCAL });
            let index = window(&mut bench);
            let (stag, _) = bind(&mut bench, index, 1, |bind| bind.region = region);
            written(&mut bench, stag, 0, b"x").0 == Some(100)
        };
        "VERBS-7.5.2-6" => {
            let mut region = Bench::new();
            region.hand_in(&tagged(Opcode::WRITE, region.side.stag.to_bits(), VA, b"x"));
            let (stag, mut bench) = bound(|_| ());
            region.side.octets()[0] == b'x' && written(&mut bench, stag, 0, b"x").0.is_some()
        };
    }
}

/// Draft section 7.10.6.1: a Bind fails if one of the conditions of this section is not met.
#[test]
fn a_bind_fails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let fails = |change: fn(&mut Bind, &mut Bench)| {
        let mut bench = Bench::new();
        let index = window(&mut bench);
        let mut good = Bind {
            window: Stag { index, key: StagKey(7) },
            region: bench.side.stag,
            address: VA,
            length: 5,
            va_based: true,
            access: BOTH,
        };
        change(&mut good, &mut bench);
        let status = done(&mut bench, Operation::Bind(good));
        let state = bench.side.state();
        bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
        (status, state, bench.side.state())
    };
    // Returns whether a window can be bound to a region with the rights `access`. The result has
    // one value for each set of rights of the window.
    let with = |access: Access| {
        [RemoteAccess { read: true, write: false }, RemoteAccess { read: false, write: true }, BOTH].map(|rights| {
            let mut bench = Bench::new();
            let region = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access);
            let index = window(&mut bench);
            bind(&mut bench, index, 1, |bind| (bind.region, bind.access) = (region, rights)).1
                == CompletionStatus::Success
        })
    };
    use CompletionStatus::{AccessViolation, BaseAndBounds, InvalidPdId, InvalidRegion, InvalidWindow, NotInvalid};
    let read_only = Access { local_read: true, bind: true, ..Access::default() };
    let write_only = Access { local_write: true, bind: true, ..Access::default() };
    shows! { proof:
        "VERBS-7.10.6.1-1" => [
            fails(|bind, _| bind.window = bind.region).0, fails(|bind, _| bind.region.key = StagKey(0)).0,
            fails(|bind, _| bind.length = LENGTH + 1).0, fails(|bind, _| bind.access = RemoteAccess::default()).0,
            fails(|bind, bench| {
                let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
                bind.region = register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL);
            }).0,
        ] == [InvalidWindow, InvalidRegion, BaseAndBounds, AccessViolation, InvalidPdId];
        "VERBS-7.10.6.1-2" => fails(|bind, _| bind.address = VA - 1) == (BaseAndBounds, QpState::Terminate, QpState::Error);
        "VERBS-7.10.2-34" => fails(|bind, _| bind.window = bind.region).2 == QpState::Error;
        "VERBS-7.10.2-13" => fails(|bind, _| bind.address = VA - 1).0 == BaseAndBounds && fails(|bind, _| bind.address = VA + LENGTH).0 == BaseAndBounds;
        "VERBS-7.10.6.1-8" => [with(read_only), with(write_only), with(Access { bind: true, ..Access::LOCAL })]
            == [[true, false, false], [false, true, false], [true, true, true]];
        "VERBS-7.10.2-27" => !with(read_only)[1] && with(write_only)[1];
        "VERBS-7.10.2-28" => !with(write_only)[0] && with(read_only)[0];
        "VERBS-7.10.2-30" => {
            let (stag, mut bench) = bound(|_| ());
            bind(&mut bench, stag.index, 8, |_| ()).1 == NotInvalid
        };
    }
}

#[test]
fn domains_and_rights_of_a_bind() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // One of three objects has a different PD: the window (0), the region (1) or the Queue Pair
    // (2). With 3, all objects have the same PD.
    let status = |of: usize| {
        let mut bench = Bench::new();
        let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
        let own = bench.side.pd;
        let index = bench.side.rnic.memory_mut().allocate_window(if of == 0 { pd } else { own }).unwrap();
        let region =
            if of == 1 { register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL) } else { bench.side.stag };
        if of == 2 {
            let pair = sibling(&mut bench.side, Some(pd));
            bench = on(bench, pair);
        }
        bind(&mut bench, index, 1, |bind| bind.region = region).1
    };
    let all = [0, 1, 2, 3].map(status);
    use CompletionStatus::{AccessViolation, InvalidPdId, Success};
    shows! { proof:
        "VERBS-5.2-8" => all == [InvalidPdId, InvalidPdId, InvalidPdId, Success];
        "VERBS-7.10.2-6" => status(0) == InvalidPdId && status(1) == InvalidPdId && status(2) == InvalidPdId;
        "VERBS-5.2-11" => status(1) == InvalidPdId && {
            let mut bench = Bench::new();
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            let stag = bench.side.rnic.memory_mut().allocate_stag(pd, 1, true).unwrap().stag;
            let operation = crate::verbs::figure_23::fast(&mut bench, |new, _| new.stag = stag);
            done(&mut bench, operation) == InvalidPdId
        };
        "VERBS-7.10.2-25" => {
            let mut bench = Bench::new();
            let region = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access { local_read: true, bind: true, ..Access::default() });
            let index = window(&mut bench);
            bind(&mut bench, index, 1, |bind| (bind.region, bind.access.read) = (region, false)).1 == AccessViolation
        };
        "VERBS-5.1.1.1-6" => {
            let mut bench = Bench::new();
            let nothing = StagIndex::new(0x00ab_cdef).unwrap();
            let index = window(&mut bench);
            let no_window = bind(&mut bench, nothing, 1, |_| ()).1;
            let mut bench = Bench::new();
            let _ = index;
            let index = window(&mut bench);
            no_window == CompletionStatus::InvalidWindow
                && bind(&mut bench, index, 1, |bind| bind.region = Stag { index: nothing, key: StagKey(0) }).1 == CompletionStatus::InvalidRegion
        };
    }
}
