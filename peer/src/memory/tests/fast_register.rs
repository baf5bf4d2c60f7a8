//! Fast-Register: from Invalid to Valid by work request.

use weft_core::coverage::{By, Proof};

use super::*;

#[test]
fn an_allocated_stag_is_registered_again_and_again() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let stag = world.memory.allocate_stag(world.pd, 2, true).unwrap().stag;
    let keyed = Stag { key: StagKey(0x42), ..stag };
    let fast = world.fast(keyed, 5000);
    world.memory.fast_register(world.pd, &fast).unwrap();
    shows! { proof:
        "VERBS-7.2.2-7" => world.state(stag.index) == StagState::Valid;
        "VERBS-7.3.2.5-2" => world.memory.query_region(stag.index).unwrap().key == Some(StagKey(0x42));
        "VERBS-7.3.2.5-3" => world.locate(keyed, 4999, 1, Right::RemoteWrite).is_ok();
        "VERBS-7.3.2.5-12" => world.memory.query_region(stag.index).unwrap().access == Some(Access::ALL);
        "VERBS-7.3.2.5-9" => world.memory.fast_register(world.pd, &fast) == Err(FastRegisterError::NotInvalid);
        "VERBS-7.2-8" => !world.is_reachable(stag, 0);
    }
    world.memory.invalidate(world.qp, InvalidateBy::Local, keyed.to_bits()).unwrap();
    let again = world.fast(stag, 8192);
    shows! { proof:
        "VERBS-7.8-22" => world.memory.fast_register(world.pd, &again) == Ok(());
        "VERBS-7.3.2.5-17" => world.locate(stag, 8191, 1, Right::LocalRead).is_ok();
    }
}

#[test]
fn fast_register_names_what_is_wrong() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let local = world.memory.allocate_stag(world.pd, 2, false).unwrap().stag;
    let stag = world.memory.allocate_stag(world.pd, 2, true).unwrap().stag;
    let window = world.memory.allocate_window(world.pd).unwrap();
    let good = world.fast(stag, 100);
    let on_window = FastRegistration { stag: Stag { index: window, key: StagKey(0) }, ..good.clone() };
    let on_local = FastRegistration { stag: local, ..good.clone() };
    let longer = world.fast(stag, 3 * PAGE);
    let other_pd = world.other_pd;
    shows! { proof:
        "VERBS-5.2-9" => world.memory.fast_register(other_pd, &good) == Err(FastRegisterError::InvalidPdId);
        "VERBS-5.2-10" => world.state(stag.index) == StagState::Invalid;
        "VERBS-7.3.2.5-6" => world.memory.fast_register(world.pd, &on_window) == Err(FastRegisterError::InvalidStag);
        "VERBS-7.3.2.5-10" => world.memory.fast_register(world.pd, &longer) == Err(MappingError::TooLong.into());
        "VERBS-7.3.2.5-11" => world.memory.fast_register(world.pd, &on_local) == Err(MappingError::AccessRights.into());
        "VERBS-7.3.2.1-8" => world.memory.fast_register(world.pd, &on_local).is_err();
        "VERBS-7.3.2.1-7" => world.memory.fast_register(world.pd, &good).is_ok();
    }
    let allowed = FastRegistration { access: Access::LOCAL, ..on_local };
    assert_eq!(world.memory.fast_register(world.pd, &allowed), Ok(()));
}
