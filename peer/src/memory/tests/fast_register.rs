//! Tests Fast-Register. This Work Request changes an STag from Invalid to Valid.

use weft_core::coverage::{Coverage, CoverageKind};

use super::*;

#[test]
fn an_allocated_stag_is_registered_again_and_again() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let stag = setup.memory.allocate_stag(setup.pd, 2, true).unwrap().stag;
    let keyed = Stag { key: StagKey(0x42), ..stag };
    let fast = setup.fast(keyed, 5000);
    setup.memory.fast_register(setup.pd, &fast).unwrap();
    shows! { proof:
        "VERBS-7.2.2-7" => setup.state(stag.index) == StagState::Valid;
        "VERBS-7.3.2.5-2" => setup.memory.query_region(stag.index).unwrap().key == Some(StagKey(0x42));
        "VERBS-7.3.2.5-3" => setup.locate(keyed, 4999, 1, Right::RemoteWrite).is_ok();
        "VERBS-7.3.2.5-12" => setup.memory.query_region(stag.index).unwrap().access == Some(Access::ALL);
        "VERBS-7.3.2.5-9" => setup.memory.fast_register(setup.pd, &fast) == Err(FastRegisterError::NotInvalid);
        "VERBS-7.2-8" => !setup.is_reachable(stag, 0);
    }
    setup.memory.invalidate(setup.qp, InvalidateBy::Local, keyed.to_bits()).unwrap();
    let again = setup.fast(stag, 8192);
    shows! { proof:
        "VERBS-7.8-22" => setup.memory.fast_register(setup.pd, &again) == Ok(());
        "VERBS-7.3.2.5-17" => setup.locate(stag, 8191, 1, Right::LocalRead).is_ok();
    }
}

#[test]
fn fast_register_names_what_is_wrong() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let local = setup.memory.allocate_stag(setup.pd, 2, false).unwrap().stag;
    let stag = setup.memory.allocate_stag(setup.pd, 2, true).unwrap().stag;
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    let good = setup.fast(stag, 100);
    let on_window = FastRegistration { stag: Stag { index: window, key: StagKey(0) }, ..good.clone() };
    let on_local = FastRegistration { stag: local, ..good.clone() };
    let longer = setup.fast(stag, 3 * PAGE);
    let other_pd = setup.other_pd;
    shows! { proof:
        "VERBS-5.2-9" => setup.memory.fast_register(other_pd, &good) == Err(FastRegisterError::InvalidPdId);
        "VERBS-5.2-10" => setup.state(stag.index) == StagState::Invalid;
        "VERBS-7.3.2.5-6" => setup.memory.fast_register(setup.pd, &on_window) == Err(FastRegisterError::InvalidStag);
        "VERBS-7.3.2.5-10" => setup.memory.fast_register(setup.pd, &longer) == Err(MappingError::TooLong.into());
        "VERBS-7.3.2.5-11" => setup.memory.fast_register(setup.pd, &on_local) == Err(MappingError::AccessRights.into());
        "VERBS-7.3.2.1-8" => setup.memory.fast_register(setup.pd, &on_local).is_err();
        "VERBS-7.3.2.1-7" => setup.memory.fast_register(setup.pd, &good).is_ok();
    }
    let allowed = FastRegistration { access: Access::LOCAL, ..on_local };
    assert_eq!(setup.memory.fast_register(setup.pd, &allowed), Ok(()));
}
