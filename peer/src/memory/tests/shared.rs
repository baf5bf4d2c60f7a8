//! Shared regions: several STags for one memory.

use weft_core::coverage::{By, Proof};

use super::*;

fn sharing(pd: PdId) -> SharedRegistration {
    SharedRegistration { pd, key: StagKey(3), base: ToBase::ZeroBased, remote: false, access: Access::LOCAL }
}

#[test]
fn a_shared_region_has_its_own_name_rights_and_domain() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let old = world.region(100);
    let window = world.memory.allocate_window(world.pd).unwrap();
    let bound = world.bind(window, 1, old, VA, 10).unwrap();
    let new = world.memory.register_shared(old, &sharing(world.other_pd)).unwrap();
    let query = world.memory.query_region(new.index).unwrap();
    shows! { proof:
        "VERBS-7.3.2.4-2" => world.locate(bound, 0, 10, Right::RemoteRead).is_ok();
        "VERBS-7.3.2.4-4" => query.key == Some(StagKey(3));
        "VERBS-7.3.2.4-7" => new.index != old.index;
        "VERBS-7.3.2.4-8" => query.pd == world.other_pd && query.access == Some(Access::LOCAL);
        "VERBS-7.3.2.4-9" => world.memory.query_region(old.index).unwrap().kind == RegionKind::Shared;
        "VERBS-7.3.2.4-10" => world.is_reachable(old, VA) && world.memory.query_region(old.index).unwrap().pd == world.pd;
        "VERBS-7.3.2.4-11" => query.state == StagState::Valid && query.kind == RegionKind::Shared;
    }
    let place = world.memory.locate(world.stranger, new.to_bits(), 7, 1, Right::LocalWrite).unwrap();
    world.memory.put(place, &[0xee]);
    let there = world.locate(old, VA + 7, 1, Right::LocalRead).unwrap();
    shows! { proof: "VERBS-7.3.2.4-6" => world.memory.slices(there).eq([&[0xee][..]]); }
}

#[test]
fn register_shared_names_what_is_wrong() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::with(MemorySettings { max_regions: 2, ..MemorySettings::default() });
    let (pd, old) = (world.pd, world.region(100));
    let good = sharing(pd);
    let other_key = Stag { key: StagKey(0), ..old };
    let remote = SharedRegistration { access: Access::ALL, ..good };
    let va = SharedRegistration { base: ToBase::VaBased(VA + 1), ..good };
    shows! { proof:
        "VERBS-7.3.2.4-3" => world.memory.register_shared(other_key, &good) == Err(MemoryError::InvalidStagIndex);
        "VERBS-7.3.2.4-5" => (1..PAGE).step_by(511).all(|off| {
            let va = SharedRegistration { base: ToBase::VaBased(VA + off), ..good };
            world.memory.register_shared(old, &va).is_err()
        });
        "VERBS-9.5.1.6-21" => world.memory.register_shared(old, &va) == Err(MemoryError::InvalidVirtualAddress);
        "VERBS-9.5.1.6-17" => world.memory.register_shared(old, &sharing(PdId(99))) == Err(MemoryError::InvalidPdId);
        "VERBS-9.5.1.6-26" => world.memory.register_shared(old, &remote) == Err(MemoryError::InvalidAccessRights);
    }
    let invalid = world.memory.allocate_stag(pd, 1, true).unwrap().stag;
    shows! { proof:
        "VERBS-7.2.2-16" => world.memory.register_shared(invalid, &good) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-34" => world.memory.register_shared(Stag { index: StagIndex::new(77).unwrap(), ..old }, &good)
            == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-4" => world.memory.register_shared(old, &good) == Err(MemoryError::InsufficientResources);
    }
}

#[test]
fn a_shared_region_stays_valid_until_it_is_deallocated() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let old = world.region(100);
    let shared: Vec<Stag> = (0..3).map(|_| world.memory.register_shared(old, &sharing(world.pd)).unwrap()).collect();
    let fast = world.fast(old, 10);
    let plain = world.registration(0, 10);
    shows! { proof:
        "VERBS-7.8-3" => world.memory.invalidate(world.qp, InvalidateBy::Local, old.to_bits())
            == Err(InvalidateError::InvalidStag);
        "VERBS-7.2.2-2" => shared.iter().all(|stag| world.state(stag.index) == StagState::Valid);
        "VERBS-7.3.2.5-1" => world.memory.fast_register(world.pd, &fast) == Err(FastRegisterError::InvalidStag);
        "VERBS-7.3.2.3-1" => world.memory.reregister(shared[0].index, &plain) == Err(MemoryError::InvalidStagIndex);
        "VERBS-7.4.3-4" => shared.iter().all(|stag| world.is_reachable(*stag, 99));
        "VERBS-7.4.3-5" => world.locate(shared[0], 0, 101, Right::LocalRead) == Err(AccessError::BaseAndBounds);
    }
    world.memory.deallocate(old.index).unwrap();
    world.memory.deallocate(shared[0].index).unwrap();
    shows! { proof:
        "VERBS-7.9-5" => world.is_reachable(shared[1], 0);
        "VERBS-7.2.2-15" => world.memory.query_region(shared[0].index) == Err(MemoryError::InvalidStagIndex);
    }
    assert!(matches!(world.memory.free_buffer(world.buffer), Err(BufferError::Pinned(_))));
    shared[1..].iter().for_each(|stag| world.memory.deallocate(stag.index).unwrap());
    assert_eq!(world.memory.free_buffer(world.buffer), Ok(()));
}
