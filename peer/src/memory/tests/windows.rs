//! Tests the conditions of a Bind, and the access through a Memory Window.

use weft_core::coverage::{Coverage, CoverageKind};

use super::*;

#[test]
fn a_window_is_allocated_bound_used_and_dropped() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let region = setup.region(100);
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    shows! { proof: "VERBS-7.10.5-1" => setup.state(window) == StagState::Invalid; }
    let stag = setup.bind(window, 7, region, VA + 10, 20).unwrap();
    let query = setup.memory.query_window(window).unwrap();
    shows! { proof:
        "VERBS-7.10.5-2" => query.state == StagState::Valid;
        "VERBS-7.10.2-17" => query.key == Some(StagKey(7));
        "VERBS-7.10.2-16" => query.access == RemoteAccess { read: true, write: true };
        "VERBS-7.10.2-15" => setup.memory.windows_bound_to(setup.qp.qp) == 1;
        "VERBS-7.10.2-32" => stag.index == window;
        "VERBS-7.10.5-6" => setup.memory.deallocate_stag(window) == Ok(());
        "VERBS-7.10.4.1-4" => setup.locate(stag, 0, 1, Right::RemoteRead) == Err(AccessError::InvalidStag);
    }
    assert_eq!(setup.memory.windows_bound_to(setup.qp.qp), 0);
    assert_eq!(setup.memory.deallocate_stag(region.index), Ok(()));
}

#[test]
fn access_through_a_window_is_checked() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let local = Registration {
        access: Access { bind: true, ..Access::LOCAL },
        base: ToBase::VaBased(VA),
        ..setup.registration(0, 100)
    };
    let region = setup.memory.register(&local).unwrap().stag;
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    let stag = setup.bind(window, 7, region, VA + 10, 20).unwrap();
    let at = |to, len, right| setup.locate(stag, to, len, right);
    shows! { proof:
        "VERBS-7.10.6.2-7" => at(0, 20, Right::RemoteWrite).is_ok() && setup.locate(region, VA, 1, Right::RemoteWrite).is_err();
        "VERBS-7.10.6.2-5" => at(0, 21, Right::RemoteRead) == Err(AccessError::BaseAndBounds)
            && at(19, 1, Right::RemoteRead).is_ok() && at(20, 1, Right::RemoteRead).is_err();
        "VERBS-7.10.6.2-3" => setup.memory.locate(setup.same_pd_qp, stag.to_bits(), 0, 1, Right::RemoteRead)
            == Err(AccessError::NotAssociated);
        "VERBS-5.2-13" => setup.memory.locate(Accessor { pd: setup.other_pd, ..setup.qp }, stag.to_bits(), 0, 1, Right::RemoteRead).is_ok();
        "VERBS-8.1.3.2-4" => at(0, 1, Right::LocalRead) == Err(AccessError::InvalidStag)
            && at(0, 1, Right::LocalWrite) == Err(AccessError::InvalidStag);
        "VERBS-7.10.2-33" => setup.locate(Stag { key: StagKey(6), ..stag }, 0, 1, Right::RemoteRead).is_err();
        "VERBS-7.10.6.2-11" => setup.memory.locate(setup.other_pd_qp, stag.to_bits(), 999, 0, Right::RemoteRead).is_ok();
        "VERBS-7.10.2-37" => at(0, 1, Right::RemoteRead).is_ok();
    }
}

#[test]
fn a_windows_rights_are_its_own() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let region = setup.region(100);
    let mut bind = |key, read, write, va_based| {
        let window = Stag { index: setup.memory.allocate_window(setup.pd).unwrap(), key: StagKey(key) };
        let access = RemoteAccess { read, write };
        let bind = Bind { window, region, address: VA + 50, length: 10, va_based, access };
        setup.memory.bind(setup.qp, &bind).map(|()| window)
    };
    let read = bind(1, true, false, false).unwrap();
    let write = bind(2, false, true, true).unwrap();
    let neither = bind(3, false, false, true);
    shows! { proof:
        "VERBS-7.10.6.2-6" => setup.locate(read, 0, 1, Right::RemoteWrite) == Err(AccessError::Rights);
        "VERBS-7.10.2-26" => setup.locate(read, 0, 1, Right::RemoteRead).is_ok()
            && setup.locate(write, VA + 50, 1, Right::RemoteWrite).is_ok();
        "VERBS-7.10.2-38" => setup.locate(write, VA + 50, 1, Right::RemoteRead) == Err(AccessError::Rights);
        "VERBS-7.10.2-41" => setup.locate(read, 9, 1, Right::RemoteRead).is_ok();
        "VERBS-7.10.2-42" => setup.locate(write, VA + 59, 1, Right::RemoteWrite).is_ok();
        "VERBS-7.10.2-19" => setup.locate(write, VA + 49, 1, Right::RemoteWrite) == Err(AccessError::BaseAndBounds);
        "VERBS-7.10.2-36" => neither == Err(BindError::AccessViolation);
        "VERBS-7.10.2-3" => setup.memory.windows_bound_to(setup.qp.qp) == 2;
    }
}

#[test]
fn each_condition_of_a_bind() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let region = setup.region(100);
    let zero = setup.memory.register(&setup.registration(0, 100)).unwrap().stag;
    let unbindable = Registration {
        access: Access { bind: false, ..Access::ALL },
        base: ToBase::VaBased(VA),
        ..setup.registration(0, 100)
    };
    let unbindable = setup.memory.register(&unbindable).unwrap().stag;
    let foreign = setup.memory.allocate_window(setup.other_pd).unwrap();
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    let bound = setup.memory.allocate_window(setup.pd).unwrap();
    let bound_stag = setup.bind(bound, 1, region, VA, 1).unwrap();
    let other_key = Stag { key: StagKey(0), ..region };
    shows! { proof:
        "VERBS-7.10.6.1-3" => setup.bind(region.index, 1, region, VA, 1) == Err(BindError::InvalidWindow)
            && setup.bind(bound, 1, region, VA, 1) == Err(BindError::NotInvalid);
        "VERBS-7.10.6.1-5" => setup.bind(window, 1, other_key, VA, 1) == Err(BindError::InvalidRegion)
            && setup.bind(window, 1, bound_stag, VA, 1) == Err(BindError::InvalidRegion);
        "VERBS-7.10.6.1-6" => setup.bind(foreign, 1, region, VA, 1) == Err(BindError::InvalidPdId);
        "VERBS-7.10.6.1-7" => setup.bind(window, 1, unbindable, VA, 1) == Err(BindError::AccessViolation);
        "VERBS-7.10.6.1-9" => setup.bind(window, 1, zero, 0, 1) == Err(BindError::InvalidRegion);
        "VERBS-7.10.6.1-10" => setup.bind(window, 1, region, VA - 1, 1) == Err(BindError::BaseAndBounds);
        "VERBS-7.10.6.1-11" => setup.bind(window, 1, region, VA + 99, 2) == Err(BindError::BaseAndBounds);
    }
    assert_eq!(setup.bind(window, 1, region, u64::MAX, 1), Err(BindError::Wrap));
    shows! { proof: "VERBS-7.10.2-9" => setup.bind(window, 1, region, VA + 99, 1).is_ok(); }
}

#[test]
fn a_windows_stag_is_no_regions() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::with(MemorySettings { max_windows: 1, ..MemorySettings::default() });
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    let stag = Stag { index: window, key: StagKey(0) };
    let registration = setup.registration(0, 10);
    let shared = SharedRegistration {
        pd: setup.pd,
        key: StagKey(1),
        base: ToBase::ZeroBased,
        remote: false,
        access: Access::LOCAL,
    };
    let region = setup.region(10);
    shows! { proof:
        "VERBS-7.10.1-2" => setup.memory.reregister(window, &registration) == Err(MemoryError::InvalidStagIndex)
            && setup.memory.register_shared(stag, &shared) == Err(MemoryError::InvalidStagIndex)
            && setup.memory.query_region(window) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-31" => setup.memory.query_region(window) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-35" => setup.memory.query_window(region.index) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-5" => setup.memory.allocate_window(setup.pd) == Err(MemoryError::InsufficientResources);
        "VERBS-7.10.1-1" => setup.memory.query_window(window).unwrap().state == StagState::Invalid;
        "VERBS-7.10.1-3" => setup.memory.query_window(window).unwrap().pd == setup.pd;
    }
    setup.memory.deallocate_stag(window).unwrap();
    shows! { proof: "VERBS-9.5.1.6-18" => setup.memory.allocate_window(PdId(99)) == Err(MemoryError::InvalidPdId); }
}
