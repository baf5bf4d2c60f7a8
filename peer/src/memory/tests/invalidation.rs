//! Tests how local Work Requests and peers invalidate STags.

use weft_core::coverage::{Coverage, CoverageKind};

use super::*;

const PEER: InvalidateBy = InvalidateBy::Peer { enabled: true };

#[test]
fn an_invalidated_region_gives_no_access_and_keeps_its_frame() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let (stag, overlapping) = (setup.region(5000), setup.region(100));
    let before = setup.memory.query_region(stag.index).unwrap();
    shows! { proof: "VERBS-7.2.2-8" => setup.memory.invalidate(setup.qp, InvalidateBy::Local, stag.to_bits()) == Ok(()); }
    let after = setup.memory.query_region(stag.index).unwrap();
    shows! { proof:
        "VERBS-7.8-4" => after.state == StagState::Invalid && after.key.is_none();
        "VERBS-7.8-6" => !setup.is_reachable(stag, VA);
        "VERBS-7.8-2" => setup.is_reachable(overlapping, VA);
        "VERBS-7.8-7" => (after.pbl_entries, after.remote, after.pd) == (before.pbl_entries, true, before.pd);
        "VERBS-7.8-21" => setup.memory.invalidate(setup.qp, InvalidateBy::Local, stag.to_bits()) == Ok(());
        "VERBS-7.2-5" => setup.memory.invalidate(setup.qp, InvalidateBy::Local, stag.to_bits() ^ 0xff) == Ok(());
        "VERBS-7.2.2-1" => setup.locate(stag, VA, 1, Right::LocalRead) == Err(AccessError::InvalidStag);
    }
}

#[test]
fn each_check_of_a_local_invalidation() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let stag = setup.region(100);
    let bits = stag.to_bits();
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    setup.bind(window, 1, stag, VA, 1).unwrap();
    let (qp, other_pd_qp) = (setup.qp, setup.other_pd_qp);
    let mut refused = |accessor, bits, error| {
        setup.memory.invalidate(accessor, InvalidateBy::Local, bits) == Err(error)
            && setup.state(stag.index) == StagState::Valid
    };
    shows! { proof:
        "VERBS-7.8-12" => refused(qp, STAG_ZERO, InvalidateError::InvalidStag);
        "VERBS-7.2.1-12" => refused(qp, 0x77, InvalidateError::InvalidStag);
        "VERBS-7.8-13" => refused(other_pd_qp, bits, InvalidateError::NotAssociated);
        "VERBS-7.8-14" => refused(qp, bits, InvalidateError::WindowsBound);
        "VERBS-7.8-20" => refused(qp, bits ^ 1, InvalidateError::InvalidStag);
        "VERBS-7.8-16" => refused(qp, 0x0012_3400, InvalidateError::InvalidStag);
    }
    setup.memory.deallocate_stag(window).unwrap();
    setup.memory.deallocate_stag(stag.index).unwrap();
    shows! { proof:
        "VERBS-7.8-17" => setup.memory.invalidate(qp, InvalidateBy::Local, bits) == Err(InvalidateError::InvalidStag);
    }
}

#[test]
fn a_peer_needs_a_remote_right_on_both() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let local = Registration { access: Access::LOCAL, ..setup.registration(0, 10) };
    let local = setup.memory.register(&local).unwrap().stag;
    let region = setup.region(10);
    let bits = region.to_bits();
    let disabled = InvalidateBy::Peer { enabled: false };
    shows! { proof:
        "VERBS-7.4.2-7" => setup.memory.invalidate(setup.qp, PEER, local.to_bits()) == Err(InvalidateError::NoRight);
        "VERBS-7.8-15" => setup.memory.invalidate(setup.qp, disabled, bits) == Err(InvalidateError::NoRight)
            && setup.state(region.index) == StagState::Valid;
        "VERBS-7.2.2-9" => setup.memory.invalidate(setup.qp, PEER, bits) == Ok(())
            && setup.state(region.index) == StagState::Invalid;
    }
    assert_eq!(setup.memory.invalidate(setup.other_pd_qp, PEER, bits), Err(InvalidateError::NotAssociated));
}

#[test]
fn windows_are_invalidated_by_their_queue_pair() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let region = setup.region(100);
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    let stag = setup.bind(window, 7, region, VA, 10).unwrap();
    let (qp, same_pd_qp, other_pd_qp) = (setup.qp, setup.same_pd_qp, setup.other_pd_qp);
    shows! { proof:
        "VERBS-7.10.4-3" => setup.memory.invalidate(same_pd_qp, PEER, stag.to_bits()) == Err(InvalidateError::NotAssociated);
        "VERBS-7.10.6.3-4" => setup.state(window) == StagState::Valid;
        "VERBS-7.10.4-1" => setup.memory.invalidate(qp, PEER, stag.to_bits()) == Ok(());
        "VERBS-7.10.4-8" => setup.state(window) == StagState::Invalid;
        "VERBS-7.10.4-5" => setup.memory.invalidate(other_pd_qp, PEER, stag.to_bits()) == Err(InvalidateError::NotAssociated);
        "VERBS-7.10.4-4" => setup.memory.invalidate(same_pd_qp, PEER, stag.to_bits()) == Ok(());
        "VERBS-7.10.4-11" => setup.memory.deallocate_stag(region.index) == Ok(());
    }
    let region = setup.region(100);
    shows! { proof: "VERBS-7.10.4-12" => setup.bind(window, 8, region, VA, 10).is_ok(); }
}
