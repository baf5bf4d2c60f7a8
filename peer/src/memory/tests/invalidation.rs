//! Invalidation, local and by peers.

use weft_core::coverage::{By, Proof};

use super::*;

const PEER: InvalidateBy = InvalidateBy::Peer { enabled: true };

#[test]
fn an_invalidated_region_gives_no_access_and_keeps_its_frame() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let (stag, overlapping) = (world.region(5000), world.region(100));
    let before = world.memory.query_region(stag.index).unwrap();
    shows! { proof: "VERBS-7.2.2-8" => world.memory.invalidate(world.qp, InvalidateBy::Local, stag.to_bits()) == Ok(()); }
    let after = world.memory.query_region(stag.index).unwrap();
    shows! { proof:
        "VERBS-7.8-4" => after.state == StagState::Invalid && after.key.is_none();
        "VERBS-7.8-6" => !world.is_reachable(stag, VA);
        "VERBS-7.8-2" => world.is_reachable(overlapping, VA);
        "VERBS-7.8-7" => (after.pbl_entries, after.remote, after.pd) == (before.pbl_entries, true, before.pd);
        "VERBS-7.8-21" => world.memory.invalidate(world.qp, InvalidateBy::Local, stag.to_bits()) == Ok(());
        "VERBS-7.2-5" => world.memory.invalidate(world.qp, InvalidateBy::Local, stag.to_bits() ^ 0xff) == Ok(());
        "VERBS-7.2.2-1" => world.locate(stag, VA, 1, Right::LocalRead) == Err(AccessError::InvalidStag);
    }
}

#[test]
fn each_check_of_a_local_invalidation() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let stag = world.region(100);
    let bits = stag.to_bits();
    let window = world.memory.allocate_window(world.pd).unwrap();
    world.bind(window, 1, stag, VA, 1).unwrap();
    let (qp, stranger) = (world.qp, world.stranger);
    let mut refused = |accessor, bits, error| {
        world.memory.invalidate(accessor, InvalidateBy::Local, bits) == Err(error)
            && world.state(stag.index) == StagState::Valid
    };
    shows! { proof:
        "VERBS-7.8-12" => refused(qp, STAG_ZERO, InvalidateError::InvalidStag);
        "VERBS-7.2.1-12" => refused(qp, 0x77, InvalidateError::InvalidStag);
        "VERBS-7.8-13" => refused(stranger, bits, InvalidateError::NotAssociated);
        "VERBS-7.8-14" => refused(qp, bits, InvalidateError::WindowsBound);
        "VERBS-7.8-20" => refused(qp, bits ^ 1, InvalidateError::InvalidStag);
        "VERBS-7.8-16" => refused(qp, 0x0012_3400, InvalidateError::InvalidStag);
    }
    world.memory.deallocate(window).unwrap();
    world.memory.deallocate(stag.index).unwrap();
    shows! { proof:
        "VERBS-7.8-17" => world.memory.invalidate(qp, InvalidateBy::Local, bits) == Err(InvalidateError::InvalidStag);
    }
}

#[test]
fn a_peer_needs_a_remote_right_on_both() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let local = Registration { access: Access::LOCAL, ..world.registration(0, 10) };
    let local = world.memory.register(&local).unwrap().stag;
    let region = world.region(10);
    let bits = region.to_bits();
    let disabled = InvalidateBy::Peer { enabled: false };
    shows! { proof:
        "VERBS-7.4.2-7" => world.memory.invalidate(world.qp, PEER, local.to_bits()) == Err(InvalidateError::NoRight);
        "VERBS-7.8-15" => world.memory.invalidate(world.qp, disabled, bits) == Err(InvalidateError::NoRight)
            && world.state(region.index) == StagState::Valid;
        "VERBS-7.2.2-9" => world.memory.invalidate(world.qp, PEER, bits) == Ok(())
            && world.state(region.index) == StagState::Invalid;
    }
    assert_eq!(world.memory.invalidate(world.stranger, PEER, bits), Err(InvalidateError::NotAssociated));
}

#[test]
fn windows_are_invalidated_by_their_queue_pair() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let region = world.region(100);
    let window = world.memory.allocate_window(world.pd).unwrap();
    let stag = world.bind(window, 7, region, VA, 10).unwrap();
    let (qp, sibling, stranger) = (world.qp, world.sibling, world.stranger);
    shows! { proof:
        "VERBS-7.10.4-3" => world.memory.invalidate(sibling, PEER, stag.to_bits()) == Err(InvalidateError::NotAssociated);
        "VERBS-7.10.6.3-4" => world.state(window) == StagState::Valid;
        "VERBS-7.10.4-1" => world.memory.invalidate(qp, PEER, stag.to_bits()) == Ok(());
        "VERBS-7.10.4-8" => world.state(window) == StagState::Invalid;
        "VERBS-7.10.4-5" => world.memory.invalidate(stranger, PEER, stag.to_bits()) == Err(InvalidateError::NotAssociated);
        "VERBS-7.10.4-4" => world.memory.invalidate(sibling, PEER, stag.to_bits()) == Ok(());
        "VERBS-7.10.4-11" => world.memory.deallocate(region.index) == Ok(());
    }
    let region = world.region(100);
    shows! { proof: "VERBS-7.10.4-12" => world.bind(window, 8, region, VA, 10).is_ok(); }
}
