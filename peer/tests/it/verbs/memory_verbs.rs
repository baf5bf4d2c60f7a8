//! Tests the verbs for PDs (Protection Domains) and memory. The tests check each modifier and each
//! result (draft-hilland-rddp-verbs, sections 9.2.2 and 9.2.6, Figures 26, 29 and 33). The module
//! `registering` tests the verbs that register memory.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::memory::{
    Access, Bind, FastRegistration, MemoryError, MemorySettings, PdId, PhysicalBufferList, RegionAttributes,
    RegionKind, Registration, RemoteAccess, SharedRegistration, Stag, StagIndex, StagKey, StagState, ToBase,
    WindowAttributes,
};
use weft_peer::verbs::{CompletedOperation, Operation, QpInit, Rnic, RnicSettings, SendWr, SrqInit};

use crate::verbs::peers::{Bench, PLAIN, Side, VA, llp_settings, shows};

/// A side that already has one region and no window. Its limits allow two regions and one window.
pub(crate) fn narrow() -> Side {
    let memory = MemorySettings { max_regions: 2, max_windows: 1, max_pds: 3, ..MemorySettings::default() };
    Side::with(RnicSettings { memory, ..RnicSettings::default() }, llp_settings(PLAIN, 1460, true), |_| ())
}

pub(crate) fn closed() -> Side {
    let mut side = Side::new(|_| ());
    side.rnic.close().unwrap();
    side
}

pub(crate) fn registration(side: &Side) -> Registration {
    let list = PhysicalBufferList::of(side.buffer, 0, 4096, 4096);
    let access = Access::LOCAL;
    Registration { pd: side.pd, key: StagKey(0x5a), list, base: ToBase::ZeroBased, remote: true, access }
}

pub(crate) fn shared(side: &Side) -> SharedRegistration {
    SharedRegistration { pd: side.pd, key: StagKey(2), base: ToBase::ZeroBased, remote: false, access: Access::LOCAL }
}

/// Binds a window to the region of a side whose Queue Pair is in RTS. Returns the STag of the
/// window.
pub(crate) fn bound(side: &mut Side) -> Stag {
    let window = Stag { index: side.rnic.memory_mut().allocate_window(side.pd).unwrap(), key: StagKey(1) };
    let access = RemoteAccess { read: true, write: false };
    let bind = Bind { window, region: side.stag, address: VA, length: 9, va_based: true, access };
    side.post(SendWr::new(1, Operation::Bind(bind)));
    side.transmit(weft_peer::Instant::ORIGIN, 9);
    window
}

pub(crate) fn dead(rnic: &mut Rnic) -> PdId {
    let pd = rnic.memory_mut().allocate_pd().unwrap();
    rnic.memory_mut().deallocate_pd(pd).unwrap();
    pd
}

#[test]
fn protection_domains() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = narrow();
    let stale = dead(&mut side.rnic);
    let mut closed = closed();
    use MemoryError::{InsufficientResources, InvalidPdId, InvalidRnicHandle, PdInUse};
    let spare = [side.rnic.memory_mut().allocate_pd().unwrap(), side.rnic.memory_mut().allocate_pd().unwrap()];
    shows! { proof:
        "VERBS-9.2.2.1-2" => spare[0] != spare[1] && side.rnic.memory_mut().allocate_window(spare[0]).is_ok();
        "VERBS-9.2.2.1-4" => [side.rnic.memory_mut().allocate_pd(), closed.rnic.memory_mut().allocate_pd()]
            == [Err(InsufficientResources), Err(InvalidRnicHandle)];
        "VERBS-9.2.2.2-4" => side.rnic.memory_mut().deallocate_pd(spare[1]) == Ok(()) && side.rnic.memory_mut().allocate_stag(spare[0], 1, false).is_ok();
        "VERBS-9.2.2.2-2" => [side.rnic.memory_mut().deallocate_pd(stale), side.rnic.memory_mut().deallocate_pd(side.pd), closed.rnic.memory_mut().deallocate_pd(stale)]
            == [Err(InvalidPdId), Err(PdInUse), Err(InvalidRnicHandle)];
        "VERBS-8.3.1-7" => side.rnic.memory_mut().deallocate_pd(side.pd).is_err()
            && side.rnic.query_qp(side.qp).is_ok() && side.rnic.create_qp(QpInit::new(side.pd, side.cq, side.cq), None).is_ok();
        "VERBS-9.5.1.2-5" => {
            // Returns whether one object, alone in its PD, prevents the deallocation of the PD.
            let holds = |make: fn(&mut Side, PdId)| {
                let mut side = Side::new(|_| ());
                let pd = side.rnic.memory_mut().allocate_pd().unwrap();
                make(&mut side, pd);
                side.rnic.memory_mut().deallocate_pd(pd) == Err(PdInUse)
            };
            holds(|side, pd| { side.rnic.memory_mut().allocate_window(pd).unwrap(); })
                && holds(|side, pd| { side.rnic.memory_mut().allocate_stag(pd, 1, true).unwrap(); })
                && holds(|side, pd| { side.rnic.create_srq(SrqInit { pd, max_wrs: 1, max_sges: 1, limit: 0 }).unwrap(); })
                && holds(|side, pd| { side.rnic.create_qp(QpInit::new(pd, side.cq, side.cq), None).unwrap(); })
                && !holds(|_, _| ())
        };
    }
}

#[test]
fn allocate_stag() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let allocated = side.rnic.memory_mut().allocate_stag(side.pd, 7, true).unwrap();
    let local = side.rnic.memory_mut().allocate_stag(side.pd, 1, false).unwrap();
    let attributes = side.rnic.memory().query_region(allocated.stag.index).unwrap();
    let max = side.rnic.query().unwrap().settings.memory.max_pbl_entries;
    shows! { proof:
        "VERBS-9.2.6.1-2" => attributes == RegionAttributes {
            pd: side.pd, key: None, state: StagState::Invalid, kind: RegionKind::NonShared, remote: true, pbl_entries: 7, access: None,
        };
        "VERBS-9.2.6.1-4" => !side.rnic.memory().query_region(local.stag.index).unwrap().remote && attributes.remote;
        "VERBS-9.2.6.1-5" => allocated.pbl_entries >= 7 && side.rnic.memory().query_region(allocated.stag.index).is_ok();
        "VERBS-9.2.6.1-6" => {
            let mut narrow = narrow();
            let stale = dead(&mut narrow.rnic);
            let pd = narrow.pd;
            [
                narrow.rnic.memory_mut().allocate_stag(pd, 1, true).err(), narrow.rnic.memory_mut().allocate_stag(pd, 1, true).err(),
                closed().rnic.memory_mut().allocate_stag(pd, 1, true).err(), narrow.rnic.memory_mut().allocate_stag(stale, 1, true).err(),
            ] == [None, Some(MemoryError::InsufficientResources), Some(MemoryError::InvalidRnicHandle), Some(MemoryError::InvalidPdId)]
        };
        "VERBS-7.3.2.1-1" => side.rnic.memory_mut().allocate_stag(side.pd, max + 1, true) == Err(MemoryError::InsufficientResources)
            && side.rnic.memory_mut().allocate_stag(side.pd, max, true).is_ok();
        "VERBS-7.3.2.1-3" => [1, 2, 100, max].into_iter()
            .all(|wanted| side.rnic.memory_mut().allocate_stag(side.pd, wanted, true).unwrap().pbl_entries >= wanted);
        "VERBS-7.3.2.1-9" => {
            let new = registration(&side);
            let reregistered = side.rnic.memory_mut().reregister(allocated.stag.index, &new);
            let mut bench = Bench { side: Side::new(|_| ()).start() };
            let operation = crate::verbs::figure_23::fast(&mut bench, |_, _| ());
            bench.side.post(SendWr::new(1, operation));
            bench.sent();
            reregistered.is_ok() && bench.side.statuses()[0].1 == weft_peer::verbs::CompletionStatus::Success
        };
    }
}

#[test]
fn query_and_deallocate() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ()).start();
    let window = bound(&mut side);
    let allocated = side.rnic.memory_mut().allocate_stag(side.pd, 3, false).unwrap().stag;
    let gone = StagIndex::new(0x00ab_cdef).unwrap();
    let mut closed = closed();
    use MemoryError::{InvalidRnicHandle, InvalidStagIndex, WindowsStillBound};
    let region = side.stag.index;
    shows! { proof:
        "VERBS-9.2.6.3-2" => side.rnic.memory().query_region(region).unwrap().access == Some(Access::ALL)
            && side.rnic.memory().query_region(allocated.index).unwrap().pbl_entries == 3;
        "VERBS-9.2.6.3-7" => [side.rnic.memory().query_region(region).err(), side.rnic.memory().query_region(gone).err(), closed.rnic.memory().query_region(region).err()]
            == [None, Some(InvalidStagIndex), Some(InvalidRnicHandle)];
        "VERBS-9.2.6.8-2" => side.rnic.memory().query_window(window.index) == Ok(WindowAttributes {
            pd: side.pd, key: Some(StagKey(1)), state: StagState::Valid, access: RemoteAccess { read: true, write: false },
        });
        "VERBS-9.2.6.8-4" => [side.rnic.memory().query_window(window.index).err(), side.rnic.memory().query_window(region).err(),
            closed.rnic.memory().query_window(window.index).err()] == [None, Some(InvalidStagIndex), Some(InvalidRnicHandle)];
        "VERBS-9.2.6.4-6" => [side.rnic.memory_mut().deallocate_stag(gone), closed.rnic.memory_mut().deallocate_stag(region), side.rnic.memory_mut().deallocate_stag(region)]
            == [Err(InvalidStagIndex), Err(InvalidRnicHandle), Err(WindowsStillBound)];
        "VERBS-9.2.6.4-3" => side.rnic.memory().query_region(region).unwrap().state == StagState::Valid
            && side.rnic.memory().query_window(window.index).unwrap().state == StagState::Valid;
        "VERBS-9.5.1.6-38" => side.rnic.memory_mut().deallocate_stag(region) == Err(WindowsStillBound);
        // The Index of a region or window is sufficient. The Key is not needed.
        "VERBS-9.2.6.4-5" => side.rnic.memory_mut().deallocate_stag(window.index) == Ok(()) && side.rnic.memory_mut().deallocate_stag(region) == Ok(());
    }
}

#[test]
fn query_by_any_index() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ()).start();
    let allocated = side.rnic.memory_mut().allocate_stag(side.pd, 3, false).unwrap().stag.index;
    let good = registration(&side);
    let registered = side.rnic.memory_mut().register(&good).unwrap().stag;
    let again = side.rnic.memory_mut().allocate_stag(side.pd, 3, false).unwrap().stag.index;
    let again = side.rnic.memory_mut().reregister(again, &good).unwrap().stag.index;
    let new = shared(&side);
    let second = side.rnic.memory_mut().register_shared(registered, &new).unwrap();
    let window = side.rnic.memory_mut().allocate_window(side.pd).unwrap();
    shows! { proof:
        "VERBS-9.2.6.3-5" => [allocated, registered.index, again, second.index].into_iter().all(|index| side.rnic.memory().query_region(index).is_ok())
            && side.rnic.memory().query_region(window).is_err();
        "VERBS-7.2-2" => {
            let all = [allocated, registered.index, again, second.index, window];
            (0..all.len()).all(|n| !all[..n].contains(&all[n])) && side.rnic.memory().query_window(window).is_ok()
        };
        "VERBS-7.2.1-17" => [allocated, registered.index, again, second.index, window].into_iter().all(|index| index.get() != 0);
        "VERBS-9.2.6.3-4" => (0u8..32).all(|bits| {
            let access = Access {
                local_read: bits & 1 > 0, local_write: bits & 2 > 0, remote_read: bits & 4 > 0, remote_write: bits & 8 > 0,
                bind: bits & 16 > 0,
            };
            match side.rnic.memory_mut().register(&Registration { access, ..good.clone() }) {
                Ok(new) => side.rnic.memory().query_region(new.stag.index).unwrap().access == Some(access),
                Err(error) => error == MemoryError::InvalidAccessRights,
            }
        });
        "VERBS-7.1-5" => side.rnic.memory().query_region(registered.index).unwrap().kind == RegionKind::Shared
            && side.rnic.memory().query_region(again).unwrap().kind == RegionKind::NonShared;
        "VERBS-9.2.6.6-6" => second.index != registered.index && side.rnic.memory().query_region(second.index).unwrap().state == StagState::Valid;
        "VERBS-7.2-3" => {
            side.rnic.memory_mut().deallocate_stag(again).unwrap();
            side.rnic.memory().query_region(again).is_err() && side.rnic.memory().query_region(allocated).is_ok()
        };
        "VERBS-9.2.6.4-2" => side.rnic.memory_mut().deallocate_stag(window) == Ok(()) && side.rnic.memory().query_window(window).is_err()
            && side.rnic.memory().query_region(second.index).is_ok();
    }
}

#[test]
fn windows() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = narrow();
    let stale = dead(&mut side.rnic);
    let pd = side.pd;
    let window = side.rnic.memory_mut().allocate_window(pd).unwrap();
    use MemoryError::{InsufficientResources, InvalidPdId, InvalidRnicHandle};
    shows! { proof:
        "VERBS-9.2.6.7-3" => side.rnic.memory().query_window(window)
            == Ok(WindowAttributes { pd, key: None, state: StagState::Invalid, access: RemoteAccess::default() });
        "VERBS-9.2.6.7-4" => [side.rnic.memory_mut().allocate_window(pd), closed().rnic.memory_mut().allocate_window(pd)]
            == [Err(InsufficientResources), Err(InvalidRnicHandle)]
            && side.rnic.memory_mut().deallocate_stag(window).is_ok() && side.rnic.memory_mut().allocate_window(stale) == Err(InvalidPdId);
        "VERBS-9.2.6.7-2" => {
            let other = side.rnic.memory_mut().allocate_pd().unwrap();
            let window = side.rnic.memory_mut().allocate_window(other).unwrap();
            side.rnic.memory().query_window(window).unwrap().pd == other
        };
        "VERBS-9.2.6.8-3" => {
            let mut side = Side::new(|_| ()).start();
            let window = bound(&mut side);
            let queried = side.rnic.memory().query_window(window.index).unwrap();
            (queried.key, queried.state, queried.access.read, queried.access.write) == (Some(StagKey(1)), StagState::Valid, true, false)
        };
        "VERBS-7.1-3" => {
            let mut side = Side::new(|_| ()).start();
            let window = bound(&mut side);
            side.rnic.memory().query_window(window.index).unwrap().access == RemoteAccess { read: true, write: false }
        };
        "VERBS-7.10.3-1" => {
            let mut side = Side::new(|_| ()).start();
            let window = bound(&mut side);
            side.post(SendWr::new(2, Operation::InvalidateLocal(window)));
            side.transmit(weft_peer::Instant::ORIGIN, 9);
            let queried = side.rnic.memory().query_window(window.index).unwrap();
            (queried.key, queried.state, queried.access, queried.pd) == (None, StagState::Invalid, RemoteAccess::default(), side.pd)
        };
    }
}

/// Draft Figure 26: verbs act at once. Work requests act in their order on the Send Queue.
#[test]
fn figure_26() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench { side: Side::new(|_| ()) };
    let side = &mut bench.side;
    let good = registration(side);
    let new = shared(side);
    let region = side.rnic.memory_mut().register(&good).unwrap().stag;
    let allocated = side.rnic.memory_mut().allocate_stag(side.pd, 1, true).unwrap().stag;
    let state = |side: &Side, index| side.rnic.memory().query_region(index).unwrap().state;
    shows! { proof:
        "VERBS-9.2.6-1" => state(side, allocated.index) == StagState::Invalid && side.poll().is_empty();
        "VERBS-9.2.6-2" => state(side, region.index) == StagState::Valid && side.poll().is_empty();
        "VERBS-9.2.6-3" => side.rnic.memory_mut().reregister(allocated.index, &good).is_ok() && state(side, allocated.index) == StagState::Valid;
        "VERBS-9.2.6-4" => side.rnic.memory_mut().register_shared(region, &new).is_ok_and(|stag| state(side, stag.index) == StagState::Valid);
        "VERBS-9.2.6-6" => side.rnic.memory().query_region(region.index).is_ok_and(|queried| queried.kind == RegionKind::Shared);
        "VERBS-9.2.6-8" => side.rnic.memory_mut().deallocate_stag(region.index).is_ok() && side.rnic.memory().query_region(region.index).is_err();
    }
}

#[test]
fn figure_26_work_requests() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench { side: Side::new(|_| ()) };
    let side = &mut bench.side;
    let window = side.rnic.memory_mut().allocate_window(side.pd).unwrap();
    shows! { proof:
        "VERBS-9.2.6-9" => side.rnic.memory().query_window(window).unwrap().state == StagState::Invalid;
        "VERBS-9.2.6-10" => side.rnic.memory().query_window(window).is_ok_and(|queried| queried.pd == side.pd);
    }
    let fresh = side.rnic.memory_mut().allocate_stag(side.pd, 1, true).unwrap().stag;
    let new = registration(side);
    let spare = side.rnic.memory_mut().register(&new).unwrap().stag;
    let access = RemoteAccess { read: true, write: false };
    let named = Stag { index: window, key: StagKey(1) };
    let bind = Bind { window: named, region: side.stag, address: VA, length: 9, va_based: true, access };
    let fast = FastRegistration { stag: fresh, list: new.list, base: ToBase::ZeroBased, access: Access::LOCAL };
    let work = [Operation::Bind(bind), Operation::FastRegister(fast), Operation::InvalidateLocal(spare)];
    let list: Vec<_> = work.into_iter().enumerate().map(|(n, operation)| SendWr::new(n as u64, operation)).collect();
    side.rnic.post_send(side.qp, list).unwrap();
    let states = |side: &Side| {
        (
            side.rnic.memory().query_window(window).unwrap().state,
            side.rnic.memory().query_region(fresh.index).unwrap().state,
            side.rnic.memory().query_region(spare.index).unwrap().state,
        )
    };
    let before = states(side);
    let mut bench = Bench { side: bench.side.start() };
    let wire = bench.sent();
    let after = states(&bench.side);
    let done: Vec<CompletedOperation> = bench.side.poll().iter().map(|done| done.operation).collect();
    use StagState::{Invalid, Valid};
    shows! { proof:
        "VERBS-9.2.6-11" => (before.0, after.0, done[0]) == (Invalid, Valid, CompletedOperation::Bind);
        "VERBS-9.2.6-5" => (before.1, after.1, done[1]) == (Invalid, Valid, CompletedOperation::FastRegister);
        "VERBS-9.2.6-7" => (before.2, after.2, done[2]) == (Valid, Invalid, CompletedOperation::InvalidateLocal);
        "VERBS-8.1.2.3.1-1" => before.0 == Invalid && done.contains(&CompletedOperation::Bind);
        "VERBS-8.1.2.3.3-3" => wire.0.is_empty() && done.len() == 3;
    }
}
