//! Tests Shared regions. With Shared regions, several STags give access to the same memory.

use weft_core::coverage::{Coverage, CoverageKind};

use super::*;

fn sharing(pd: PdId) -> SharedRegistration {
    SharedRegistration { pd, key: StagKey(3), base: ToBase::ZeroBased, remote: false, access: Access::LOCAL }
}

#[test]
fn a_shared_region_has_its_own_name_rights_and_domain() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let old = setup.region(100);
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    let bound = setup.bind(window, 1, old, VA, 10).unwrap();
    let new = setup.memory.register_shared(old, &sharing(setup.other_pd)).unwrap();
    let query = setup.memory.query_region(new.index).unwrap();
    shows! { proof:
        "VERBS-7.3.2.4-2" => setup.locate(bound, 0, 10, Right::RemoteRead).is_ok();
        "VERBS-7.3.2.4-4" => query.key == Some(StagKey(3));
        "VERBS-7.3.2.4-7" => new.index != old.index;
        "VERBS-7.3.2.4-8" => query.pd == setup.other_pd && query.access == Some(Access::LOCAL);
        "VERBS-7.3.2.4-9" => setup.memory.query_region(old.index).unwrap().kind == RegionKind::Shared;
        "VERBS-7.3.2.4-10" => setup.is_reachable(old, VA) && setup.memory.query_region(old.index).unwrap().pd == setup.pd;
        "VERBS-7.3.2.4-11" => query.state == StagState::Valid && query.kind == RegionKind::Shared;
    }
    let place = setup.memory.locate(setup.other_pd_qp, new.to_bits(), 7, 1, Right::LocalWrite).unwrap();
    setup.memory.put(place, &[0xee]);
    let there = setup.locate(old, VA + 7, 1, Right::LocalRead).unwrap();
    shows! { proof: "VERBS-7.3.2.4-6" => setup.memory.slices(there).eq([&[0xee][..]]); }
}

#[test]
fn register_shared_names_what_is_wrong() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::with(MemorySettings { max_regions: 2, ..MemorySettings::default() });
    let (pd, old) = (setup.pd, setup.region(100));
    let good = sharing(pd);
    let other_key = Stag { key: StagKey(0), ..old };
    let remote = SharedRegistration { access: Access::ALL, ..good };
    let va = SharedRegistration { base: ToBase::VaBased(VA + 1), ..good };
    shows! { proof:
        "VERBS-7.3.2.4-3" => setup.memory.register_shared(other_key, &good) == Err(MemoryError::InvalidStagIndex);
        "VERBS-7.3.2.4-5" => (1..PAGE).step_by(511).all(|off| {
            let va = SharedRegistration { base: ToBase::VaBased(VA + off), ..good };
            setup.memory.register_shared(old, &va).is_err()
        });
        "VERBS-9.5.1.6-21" => setup.memory.register_shared(old, &va) == Err(MemoryError::InvalidVirtualAddress);
        "VERBS-9.5.1.6-17" => setup.memory.register_shared(old, &sharing(PdId(99))) == Err(MemoryError::InvalidPdId);
        "VERBS-9.5.1.6-26" => setup.memory.register_shared(old, &remote) == Err(MemoryError::InvalidAccessRights);
    }
    let invalid = setup.memory.allocate_stag(pd, 1, true).unwrap().stag;
    shows! { proof:
        "VERBS-7.2.2-16" => setup.memory.register_shared(invalid, &good) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-34" => setup.memory.register_shared(Stag { index: StagIndex::new(77).unwrap(), ..old }, &good)
            == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-4" => setup.memory.register_shared(old, &good) == Err(MemoryError::InsufficientResources);
    }
}

#[test]
fn a_shared_region_stays_valid_until_it_is_deallocated() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let old = setup.region(100);
    let shared: Vec<Stag> = (0..3).map(|_| setup.memory.register_shared(old, &sharing(setup.pd)).unwrap()).collect();
    let fast = setup.fast(old, 10);
    let plain = setup.registration(0, 10);
    shows! { proof:
        "VERBS-7.8-3" => setup.memory.invalidate(setup.qp, InvalidateBy::Local, old.to_bits())
            == Err(InvalidateError::InvalidStag);
        "VERBS-7.2.2-2" => shared.iter().all(|stag| setup.state(stag.index) == StagState::Valid);
        "VERBS-7.3.2.5-1" => setup.memory.fast_register(setup.pd, &fast) == Err(FastRegisterError::InvalidStag);
        "VERBS-7.3.2.3-1" => setup.memory.reregister(shared[0].index, &plain) == Err(MemoryError::InvalidStagIndex);
        "VERBS-7.4.3-4" => shared.iter().all(|stag| setup.is_reachable(*stag, 99));
        "VERBS-7.4.3-5" => setup.locate(shared[0], 0, 101, Right::LocalRead) == Err(AccessError::BaseAndBounds);
    }
    setup.memory.deallocate_stag(old.index).unwrap();
    setup.memory.deallocate_stag(shared[0].index).unwrap();
    shows! { proof:
        "VERBS-7.9-5" => setup.is_reachable(shared[1], 0);
        "VERBS-7.2.2-15" => setup.memory.query_region(shared[0].index) == Err(MemoryError::InvalidStagIndex);
    }
    assert!(matches!(setup.memory.free_buffer(setup.buffer), Err(BufferError::Pinned(_))));
    shared[1..].iter().for_each(|stag| setup.memory.deallocate_stag(stag.index).unwrap());
    assert_eq!(setup.memory.free_buffer(setup.buffer), Ok(()));
}
