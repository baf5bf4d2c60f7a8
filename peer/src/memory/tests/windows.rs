//! Memory Windows: conditions of a bind, and access through a window.

use weft_core::coverage::{By, Proof};

use super::*;

#[test]
fn a_window_is_allocated_bound_used_and_dropped() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let region = world.region(100);
    let window = world.memory.allocate_window(world.pd).unwrap();
    shows! { proof: "VERBS-7.10.5-1" => world.state(window) == StagState::Invalid; }
    let stag = world.bind(window, 7, region, VA + 10, 20).unwrap();
    let query = world.memory.query_window(window).unwrap();
    shows! { proof:
        "VERBS-7.10.5-2" => query.state == StagState::Valid;
        "VERBS-7.10.2-17" => query.key == Some(StagKey(7));
        "VERBS-7.10.2-16" => query.access == RemoteAccess { read: true, write: true };
        "VERBS-7.10.2-15" => world.memory.windows_bound_to(world.qp.qp) == 1;
        "VERBS-7.10.2-32" => stag.index == window;
        "VERBS-7.10.5-6" => world.memory.deallocate(window) == Ok(());
        "VERBS-7.10.4.1-4" => world.locate(stag, 0, 1, Right::RemoteRead) == Err(AccessError::InvalidStag);
    }
    assert_eq!(world.memory.windows_bound_to(world.qp.qp), 0);
    assert_eq!(world.memory.deallocate(region.index), Ok(()));
}

#[test]
fn access_through_a_window_is_checked() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let local = Registration {
        access: Access { bind: true, ..Access::LOCAL },
        base: ToBase::VaBased(VA),
        ..world.registration(0, 100)
    };
    let region = world.memory.register(&local).unwrap().stag;
    let window = world.memory.allocate_window(world.pd).unwrap();
    let stag = world.bind(window, 7, region, VA + 10, 20).unwrap();
    let at = |to, len, right| world.locate(stag, to, len, right);
    shows! { proof:
        "VERBS-7.10.6.2-7" => at(0, 20, Right::RemoteWrite).is_ok() && world.locate(region, VA, 1, Right::RemoteWrite).is_err();
        "VERBS-7.10.6.2-5" => at(0, 21, Right::RemoteRead) == Err(AccessError::BaseAndBounds)
            && at(19, 1, Right::RemoteRead).is_ok() && at(20, 1, Right::RemoteRead).is_err();
        "VERBS-7.10.6.2-3" => world.memory.locate(world.sibling, stag.to_bits(), 0, 1, Right::RemoteRead)
            == Err(AccessError::NotAssociated);
        "VERBS-5.2-13" => world.memory.locate(Accessor { pd: world.other_pd, ..world.qp }, stag.to_bits(), 0, 1, Right::RemoteRead).is_ok();
        "VERBS-8.1.3.2-4" => at(0, 1, Right::LocalRead) == Err(AccessError::InvalidStag)
            && at(0, 1, Right::LocalWrite) == Err(AccessError::InvalidStag);
        "VERBS-7.10.2-33" => world.locate(Stag { key: StagKey(6), ..stag }, 0, 1, Right::RemoteRead).is_err();
        "VERBS-7.10.6.2-11" => world.memory.locate(world.stranger, stag.to_bits(), 999, 0, Right::RemoteRead).is_ok();
        "VERBS-7.10.2-37" => at(0, 1, Right::RemoteRead).is_ok();
    }
}

#[test]
fn a_windows_rights_are_its_own() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let region = world.region(100);
    let mut bind = |key, read, write, va_based| {
        let window = Stag { index: world.memory.allocate_window(world.pd).unwrap(), key: StagKey(key) };
        let access = RemoteAccess { read, write };
        let bind = Bind { window, region, address: VA + 50, length: 10, va_based, access };
        world.memory.bind(world.qp, &bind).map(|()| window)
    };
    let read = bind(1, true, false, false).unwrap();
    let write = bind(2, false, true, true).unwrap();
    let neither = bind(3, false, false, true);
    shows! { proof:
        "VERBS-7.10.6.2-6" => world.locate(read, 0, 1, Right::RemoteWrite) == Err(AccessError::Rights);
        "VERBS-7.10.2-26" => world.locate(read, 0, 1, Right::RemoteRead).is_ok()
            && world.locate(write, VA + 50, 1, Right::RemoteWrite).is_ok();
        "VERBS-7.10.2-38" => world.locate(write, VA + 50, 1, Right::RemoteRead) == Err(AccessError::Rights);
        "VERBS-7.10.2-41" => world.locate(read, 9, 1, Right::RemoteRead).is_ok();
        "VERBS-7.10.2-42" => world.locate(write, VA + 59, 1, Right::RemoteWrite).is_ok();
        "VERBS-7.10.2-19" => world.locate(write, VA + 49, 1, Right::RemoteWrite) == Err(AccessError::BaseAndBounds);
        "VERBS-7.10.2-36" => neither == Err(BindError::AccessViolation);
        "VERBS-7.10.2-3" => world.memory.windows_bound_to(world.qp.qp) == 2;
    }
}

#[test]
fn each_condition_of_a_bind() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let region = world.region(100);
    let zero = world.memory.register(&world.registration(0, 100)).unwrap().stag;
    let unbindable = Registration {
        access: Access { bind: false, ..Access::ALL },
        base: ToBase::VaBased(VA),
        ..world.registration(0, 100)
    };
    let unbindable = world.memory.register(&unbindable).unwrap().stag;
    let foreign = world.memory.allocate_window(world.other_pd).unwrap();
    let window = world.memory.allocate_window(world.pd).unwrap();
    let bound = world.memory.allocate_window(world.pd).unwrap();
    let bound_stag = world.bind(bound, 1, region, VA, 1).unwrap();
    let other_key = Stag { key: StagKey(0), ..region };
    shows! { proof:
        "VERBS-7.10.6.1-3" => world.bind(region.index, 1, region, VA, 1) == Err(BindError::InvalidWindow)
            && world.bind(bound, 1, region, VA, 1) == Err(BindError::NotInvalid);
        "VERBS-7.10.6.1-5" => world.bind(window, 1, other_key, VA, 1) == Err(BindError::InvalidRegion)
            && world.bind(window, 1, bound_stag, VA, 1) == Err(BindError::InvalidRegion);
        "VERBS-7.10.6.1-6" => world.bind(foreign, 1, region, VA, 1) == Err(BindError::InvalidPdId);
        "VERBS-7.10.6.1-7" => world.bind(window, 1, unbindable, VA, 1) == Err(BindError::AccessViolation);
        "VERBS-7.10.6.1-9" => world.bind(window, 1, zero, 0, 1) == Err(BindError::InvalidRegion);
        "VERBS-7.10.6.1-10" => world.bind(window, 1, region, VA - 1, 1) == Err(BindError::BaseAndBounds);
        "VERBS-7.10.6.1-11" => world.bind(window, 1, region, VA + 99, 2) == Err(BindError::BaseAndBounds);
    }
    assert_eq!(world.bind(window, 1, region, u64::MAX, 1), Err(BindError::Wrap));
    shows! { proof: "VERBS-7.10.2-9" => world.bind(window, 1, region, VA + 99, 1).is_ok(); }
}

#[test]
fn a_windows_stag_is_no_regions() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::with(MemorySettings { max_windows: 1, ..MemorySettings::default() });
    let window = world.memory.allocate_window(world.pd).unwrap();
    let stag = Stag { index: window, key: StagKey(0) };
    let registration = world.registration(0, 10);
    let shared = SharedRegistration {
        pd: world.pd,
        key: StagKey(1),
        base: ToBase::ZeroBased,
        remote: false,
        access: Access::LOCAL,
    };
    let region = world.region(10);
    shows! { proof:
        "VERBS-7.10.1-2" => world.memory.reregister(window, &registration) == Err(MemoryError::InvalidStagIndex)
            && world.memory.register_shared(stag, &shared) == Err(MemoryError::InvalidStagIndex)
            && world.memory.query_region(window) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-31" => world.memory.query_region(window) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-35" => world.memory.query_window(region.index) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-5" => world.memory.allocate_window(world.pd) == Err(MemoryError::InsufficientResources);
        "VERBS-7.10.1-1" => world.memory.query_window(window).unwrap().state == StagState::Invalid;
        "VERBS-7.10.1-3" => world.memory.query_window(window).unwrap().pd == world.pd;
    }
    world.memory.deallocate(window).unwrap();
    shows! { proof: "VERBS-9.5.1.6-18" => world.memory.allocate_window(PdId(99)) == Err(MemoryError::InvalidPdId); }
}
