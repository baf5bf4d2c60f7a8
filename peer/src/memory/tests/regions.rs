//! Tests registration, reregistration, deallocation, and the bounds of access.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::requirement;

use super::*;

#[test]
fn an_allocated_stag_is_invalid_until_it_is_registered() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::with(MemorySettings { max_pbl_entries: 16, ..MemorySettings::default() });
    let allocated = setup.memory.allocate_stag(setup.pd, 4, true).unwrap();
    let index = allocated.stag.index;
    shows! { proof:
        "VERBS-7.3.2.1-2" => allocated.pbl_entries >= 4;
        "VERBS-7.3.2.1-4" => setup.memory.query_region(index).is_ok();
        "VERBS-7.3.2.1-5" => setup.memory.allocate_stag(setup.pd, 17, true) == Err(MemoryError::InsufficientResources);
        "VERBS-7.3.2.1-6" => setup.memory.query_region(index).unwrap().remote;
        "VERBS-7.3.2.1-10" => !setup.is_reachable(allocated.stag, 0);
        "VERBS-7.3.2.1-11" => setup.state(index) == StagState::Invalid;
        "VERBS-9.5.1.6-14" => setup.memory.allocate_stag(PdId(99), 1, true) == Err(MemoryError::InvalidPdId);
        "VERBS-9.5.1.6-1" => setup.memory.allocate_stag(setup.pd, u32::MAX, true)
            == Err(MemoryError::InsufficientResources);
    }
}

#[test]
fn ri_register_gives_a_valid_stag_with_the_requested_key_and_rights() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let registration = Registration { key: StagKey(0xc3), ..setup.registration(100, 5000) };
    let registered = setup.memory.register(&registration).unwrap();
    let query = setup.memory.query_region(registered.stag.index).unwrap();
    shows! { proof:
        "VERBS-7.3.2.2-1" => registered.stag.key == StagKey(0xc3) && query.key == Some(StagKey(0xc3));
        "VERBS-7.3.2.2-6" => setup.locate(registered.stag, 0, 5000, Right::LocalRead).is_ok();
        "VERBS-7.3.2.2-7" => setup.memory.query_region(registered.stag.index).is_ok() && setup.memory.deallocate_pd(setup.pd).is_err();
        "VERBS-7.3.2.2-8" => registered.pbl_entries >= 2;
        "VERBS-7.3.2.2-9" => query.state == StagState::Valid;
        "VERBS-7.3.2.2-4" => setup.locate(registered.stag, 0, 1, Right::RemoteWrite).is_ok();
        "VERBS-9.2.6.3-6" => query.access == Some(Access::ALL) && query.pd == setup.pd && query.remote
            && query.kind == RegionKind::NonShared && query.pbl_entries == registered.pbl_entries;
    }
    proof.verify(requirement!("VERBS-7.3.2.2-2"), || {
        let place = setup.locate(registered.stag, 4999, 1, Right::RemoteWrite).unwrap();
        setup.memory.put(place, &[9]);
        assert_eq!(setup.memory.buffer(setup.buffer).unwrap()[5099], 9);
    });
}

#[test]
fn the_remote_access_flag_guards_remote_rights() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let local = Registration { remote: false, access: Access::LOCAL, ..setup.registration(0, 10) };
    let asking = Registration { remote: false, ..setup.registration(0, 10) };
    let stag = setup.memory.register(&local).unwrap().stag;
    shows! { proof:
        "VERBS-7.3.2.2-5" => setup.locate(stag, 0, 1, Right::RemoteRead) == Err(AccessError::Rights);
        "VERBS-7.4-4" => !setup.memory.query_region(stag.index).unwrap().remote;
        "VERBS-7.4-6" => setup.memory.register(&asking) == Err(MemoryError::InvalidAccessRights);
        "VERBS-7.3.2.2-3" => [false, true].map(|remote| {
            let stag = setup.memory.register(&Registration { remote, ..local.clone() }).unwrap().stag;
            setup.memory.query_region(stag.index).unwrap().remote
        }) == [false, true];
        "VERBS-7.4-5" => setup.memory.register(&Registration { remote: true, ..asking.clone() }).is_ok();
    }
    let neither = Registration { access: Access { bind: true, ..Access::default() }, ..local.clone() };
    shows! { proof: "VERBS-7.4.1-2" => setup.memory.register(&neither) == Err(MemoryError::InvalidAccessRights); }
    let write_only = Access { local_write: false, ..Access::ALL };
    let read_only = Access { local_read: false, ..Access::ALL };
    let with = |access| Registration { access, remote: true, ..local.clone() };
    shows! { proof:
        "VERBS-7.4.2-1" => setup.memory.register(&with(write_only)) == Err(MemoryError::InvalidAccessRights);
        "VERBS-7.4.2-2" => setup.memory.register(&with(read_only)) == Err(MemoryError::InvalidAccessRights);
    }
}

/// Checks each error in the column RI-Register of Figure 33 in draft-hilland-rddp-verbs.
#[test]
fn register_names_what_is_wrong() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::with(MemorySettings { max_regions: 1, ..MemorySettings::default() });
    let good = setup.registration(0, 100);
    let list = |change: fn(&mut PhysicalBufferList)| {
        let mut list = good.list.clone();
        change(&mut list);
        Registration { list, ..good.clone() }
    };
    let with_va = Registration { base: ToBase::VaBased(VA + 1), ..good.clone() };
    let mut fails = |registration: &Registration, error| setup.memory.register(registration) == Err(error);
    shows! { proof:
        "VERBS-9.5.1.6-15" => fails(&Registration { pd: PdId(9), ..good.clone() }, MemoryError::InvalidPdId);
        "VERBS-9.5.1.6-19" => fails(&with_va, MemoryError::InvalidVirtualAddress);
        "VERBS-9.5.1.6-22" => fails(&list(|list| list.length = 4097), MemoryError::InvalidLength);
        "VERBS-9.5.1.6-24" => fails(&Registration { remote: false, ..good.clone() }, MemoryError::InvalidAccessRights);
        "VERBS-9.5.1.6-27" => fails(&list(|list| list.entries[0].0 += 1), MemoryError::InvalidPhysicalBufferListEntry);
        "VERBS-9.5.1.6-29" => fails(&list(|list| list.entry_size = 4095), MemoryError::InvalidPhysicalBufferSize);
        "VERBS-9.5.1.6-36" => fails(&list(|list| list.first_byte_offset = 4096), MemoryError::InvalidFirstByteOffset);
    }
    setup.memory.register(&good).unwrap();
    shows! { proof: "VERBS-9.5.1.6-2" => setup.memory.register(&good) == Err(MemoryError::InsufficientResources); }
}

#[test]
fn lists_are_checked_as_their_mode_asks() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut pages = Setup::new();
    let mut blocks = Setup::with(MemorySettings { mode: ListMode::Block, ..MemorySettings::default() });
    let list = |setup: &Setup, entry_size, first: u64, second: u64| {
        let at = |offset| PhysicalAddress(setup.buffer.address().0 + offset);
        let entries = vec![at(first), at(second)];
        let list = PhysicalBufferList { entry_size, entries, first_byte_offset: 3, length: 20 };
        Registration { list, ..setup.registration(0, 1) }
    };
    let odd = list(&pages, 12, 7, 100);
    let odd_block = list(&blocks, 12, 7, 100);
    let unaligned = list(&pages, 4096, 7, 4096);
    shows! { proof:
        "VERBS-4-6" => pages.memory.register(&unaligned).is_err() && blocks.memory.register(&odd_block).is_ok();
        "VERBS-7.6.2.1-1" => pages.memory.register(&odd) == Err(MemoryError::InvalidPhysicalBufferSize);
        "VERBS-7.6.2.1-2" => pages.memory.register(&unaligned) == Err(MemoryError::InvalidPhysicalBufferListEntry);
        "VERBS-7.6.2.2-2" => blocks.memory.register(&odd_block).is_ok();
        "VERBS-9.2.6.2-4" => {
            let of_1001 = list(&blocks, 1001, 4096, 8192);
            blocks.memory.register(&of_1001).is_ok()
        };
    }
    let based = |va| Registration { base: ToBase::VaBased(va), ..odd_block.clone() };
    let page = pages.registration(9, 20);
    shows! { proof:
        "VERBS-7.6.2.2-3" => blocks.memory.register(&based(12_003)).is_ok()
            && blocks.memory.register(&based(12_004)) == Err(MemoryError::InvalidVirtualAddress);
        "VERBS-7.6.2.1-4" => pages.memory.register(&Registration { base: ToBase::VaBased(VA + 9), ..page.clone() }).is_ok()
            && pages.memory.register(&Registration { base: ToBase::VaBased(VA), ..page.clone() }).is_err();
        "VERBS-4-4" => {
            let mut list = page.list.clone();
            list.first_byte_offset = 4096;
            pages.memory.register(&Registration { list, ..page.clone() }) == Err(MemoryError::InvalidFirstByteOffset)
        };
    }
}

#[test]
fn offsets_count_from_the_va_or_from_zero() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let first = VA + 300;
    let based = Registration { base: ToBase::VaBased(first), ..setup.registration(300, 1000) };
    let va = setup.memory.register(&based).unwrap().stag;
    let zero = setup.memory.register(&setup.registration(300, 1000)).unwrap().stag;
    let mut reaches = |stag, to, octet| {
        let place = setup.locate(stag, to, 1, Right::RemoteWrite).unwrap();
        setup.memory.buffer_mut(setup.buffer).unwrap().fill(0);
        setup.memory.put(place, &[1]);
        setup.memory.buffer(setup.buffer).unwrap()[octet] == 1
    };
    shows! { proof:
        "VERBS-7.3.1.1-2" => reaches(va, first, 300);
        "VERBS-7.3.1.1-3" => reaches(zero, 0, 300);
        "VERBS-7.6.1.2-1" => reaches(zero, 999, 1299);
        "VERBS-7.3.1-1" => reaches(va, first + 999, 1299);
    }
    shows! { proof:
        "VERBS-7.3.1.1-1" => setup.locate(va, 0, 1, Right::LocalRead) == Err(AccessError::BaseAndBounds)
            && setup.locate(zero, first, 1, Right::LocalRead) == Err(AccessError::BaseAndBounds);
        "VERBS-7.6.1.2-3" => setup.locate(zero, 0, 1000, Right::LocalRead).is_ok();
        "VERBS-7.6.1.1-1" => {
            let top = u64::MAX - 4095 + 300;
            let high = Registration { base: ToBase::VaBased(top), ..setup.registration(300, 3796) };
            let stag = setup.memory.register(&high).unwrap().stag;
            setup.locate(stag, u64::MAX, 1, Right::LocalRead).is_ok()
        };
        "VERBS-7.6.1.1-5" => {
            let wrong = Registration { base: ToBase::VaBased(VA + 299), ..setup.registration(300, 1000) };
            setup.memory.register(&wrong) == Err(MemoryError::InvalidVirtualAddress)
        };
    }
}

#[test]
fn bounds_are_exact_to_the_octet() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let stag = setup.memory.register(&setup.registration(7, 1000)).unwrap().stag;
    shows! { proof:
        "VERBS-7.6.3-2" => setup.locate(stag, 0, 1000, Right::RemoteRead).is_ok()
            && setup.locate(stag, 0, 1001, Right::RemoteRead) == Err(AccessError::BaseAndBounds);
        "VERBS-7.5.1-4" => setup.locate(stag, 999, 1, Right::LocalWrite).is_ok()
            && setup.locate(stag, 1000, 1, Right::LocalWrite) == Err(AccessError::BaseAndBounds);
        "VERBS-7.6.3-9" => setup.locate(stag, 500, 501, Right::RemoteWrite) == Err(AccessError::BaseAndBounds);
        "VERBS-7.6.3-3" => setup.memory.locate(setup.other_pd_qp, 0xffff_ffff, u64::MAX, 0, Right::RemoteWrite).is_ok();
        "VERBS-7.6.3-6" => setup.memory.locate(setup.other_pd_qp, stag.to_bits(), 0, 1, Right::RemoteRead)
            == Err(AccessError::NotAssociated);
        "DDP-7.1-12" => setup.locate(stag, u64::MAX, 1, Right::RemoteWrite) == Err(AccessError::BaseAndBounds);
        "DDP-7.1-13" => setup.locate(stag, 1, 1000, Right::RemoteWrite) == Err(AccessError::BaseAndBounds);
        "DDP-7.1-14" => setup.locate(stag, u64::MAX, 2, Right::RemoteWrite) == Err(AccessError::Wrap);
    }
}

#[test]
fn each_use_needs_its_right() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let read = Access { local_read: true, remote_read: true, ..Access::default() };
    let write = Access { local_write: true, remote_write: true, ..Access::default() };
    let local = Access::LOCAL;
    let [read, write, local] = [read, write, local].map(|access| {
        let registration = Registration { access, ..setup.registration(0, 10) };
        setup.memory.register(&registration).unwrap().stag
    });
    let refused = |stag, right| setup.locate(stag, 0, 1, right) == Err(AccessError::Rights);
    let allowed = |stag, right| setup.locate(stag, 0, 1, right).is_ok();
    shows! { proof:
        "VERBS-8.1.2.2-20" => allowed(read, Right::LocalRead);
        "VERBS-8.1.2.2-21" => refused(write, Right::LocalRead);
        "VERBS-8.1.2.2-22" => allowed(write, Right::LocalWrite);
        "VERBS-8.1.2.2-23" => refused(read, Right::LocalWrite);
        "VERBS-7.4.1-5" => allowed(local, Right::LocalRead) && allowed(local, Right::LocalWrite);
        "VERBS-7.4.1-6" => refused(read, Right::LocalWrite) && refused(write, Right::LocalRead);
        "VERBS-7.4.2-6" => refused(local, Right::RemoteRead) && refused(local, Right::RemoteWrite);
        "VERBS-7.1-2" => allowed(read, Right::RemoteRead) && allowed(write, Right::RemoteWrite)
            && refused(read, Right::RemoteWrite) && refused(write, Right::RemoteRead);
    }
}

#[test]
fn reregistering_changes_everything_but_the_index() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let stag = setup.region(100);
    let new = Registration {
        pd: setup.other_pd,
        key: StagKey(0x77),
        access: Access { bind: false, ..Access::LOCAL },
        remote: false,
        ..setup.registration(50, 9000)
    };
    let registered = setup.memory.reregister(stag.index, &new).unwrap();
    let query = setup.memory.query_region(registered.stag.index).unwrap();
    shows! { proof:
        "VERBS-7.3.2.3-3" => query.key == Some(StagKey(0x77));
        "VERBS-7.3.2.3-9" => setup.memory.locate(setup.other_pd_qp, registered.stag.to_bits(), 0, 9000, Right::LocalRead).is_ok();
        "VERBS-7.3.2.3-12" => registered.pbl_entries >= 3;
        "VERBS-7.3.2.3-13" => !query.remote && query.access == Some(Access::LOCAL);
        "VERBS-7.3.2.3-14" => query.state == StagState::Valid;
        "VERBS-7.3.2.3-18" => query.pd == setup.other_pd;
        "VERBS-7.3.2.3-19" => !setup.is_reachable(stag, VA);
        "VERBS-9.2.6.5-10" => setup.memory.locate(setup.other_pd_qp, stag.to_bits(), 0, 1, Right::LocalRead)
            == Err(AccessError::InvalidStag);
    }
}

#[test]
fn reregister_refuses_some_stags_and_drops_others() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let good = setup.registration(0, 10);
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    let region = setup.region(100);
    setup.bind(window, 1, region, VA, 1).unwrap();
    let index = region.index;
    shows! { proof:
        "VERBS-9.5.1.6-39" => setup.memory.reregister(index, &good) == Err(MemoryError::WindowsStillBound);
        "VERBS-7.3.2.3-4" => setup.state(index) == StagState::Valid && setup.is_reachable(region, VA);
        "VERBS-7.3.2.3-7" => setup.memory.reregister(StagIndex::new(999).unwrap(), &good)
            == Err(MemoryError::InvalidStagIndex) && setup.is_reachable(region, VA);
        "VERBS-9.5.1.6-32" => setup.memory.reregister(window, &good) == Err(MemoryError::InvalidStagIndex);
    }
    setup.memory.deallocate_stag(window).unwrap();
    let bad = Registration { pd: PdId(99), ..good.clone() };
    shows! { proof:
        "VERBS-9.5.1.6-16" => setup.memory.reregister(index, &bad) == Err(MemoryError::InvalidPdId);
        "VERBS-7.3.2.3-8" => setup.memory.query_region(index) == Err(MemoryError::InvalidStagIndex);
    }
    let invalid = setup.memory.allocate_stag(setup.pd, 1, true).unwrap().stag;
    let longer = setup.registration(0, 3 * PAGE);
    shows! { proof:
        "VERBS-7.3.2.3-2" => setup.memory.reregister(invalid.index, &good).is_ok();
        "VERBS-7.3.2.3-5" => setup.memory.reregister(invalid.index, &longer).unwrap().pbl_entries == 3;
    }
}

/// Checks errors in the column RI-Reregister of Figure 33 in draft-hilland-rddp-verbs. Each of
/// these errors deallocates the region. The previous test checks the two errors that keep the
/// region.
#[test]
fn reregister_names_what_is_wrong() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::with(MemorySettings { max_pbl_entries: 4, ..MemorySettings::default() });
    let good = setup.registration(0, 100);
    let mut fails = |error, change: fn(&mut Registration)| {
        let stag = setup.region(10);
        let mut registration = good.clone();
        change(&mut registration);
        let result = setup.memory.reregister(stag.index, &registration);
        result == Err(error) && setup.memory.query_region(stag.index).is_err()
    };
    shows! { proof:
        "VERBS-9.5.1.6-20" => fails(MemoryError::InvalidVirtualAddress, |r| r.base = ToBase::VaBased(5));
        "VERBS-9.5.1.6-23" => fails(MemoryError::InvalidLength, |r| r.list.length = 0);
        "VERBS-9.5.1.6-25" => fails(MemoryError::InvalidAccessRights, |r| r.access.local_read = false);
        "VERBS-9.5.1.6-28" => fails(MemoryError::InvalidPhysicalBufferListEntry, |r| r.list.entries[0].0 = 0);
        "VERBS-9.5.1.6-30" => fails(MemoryError::InvalidPhysicalBufferSize, |r| r.list.entry_size = 3);
        "VERBS-9.5.1.6-37" => fails(MemoryError::InvalidFirstByteOffset, |r| r.list.first_byte_offset = 5000);
        "VERBS-7.3.2.3-6" => fails(MemoryError::InsufficientResources, |r| r.list.entries = vec![r.list.entries[0]; 5]);
        "VERBS-9.5.1.6-3" => fails(MemoryError::InsufficientResources, |r| r.list.entries = vec![r.list.entries[0]; 9]);
    }
}

#[test]
fn deallocation_ends_access_through_one_stag_alone() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut setup = Setup::new();
    let (region, overlapping) = (setup.region(100), setup.region(200));
    setup.memory.deallocate_stag(region.index).unwrap();
    shows! { proof:
        "VERBS-7.9-1" => !setup.is_reachable(region, VA);
        "VERBS-7.9-4" => setup.is_reachable(overlapping, VA);
        "VERBS-7.4.3-1" => overlapping.index != region.index;
        "VERBS-7.9-2" => setup.memory.deallocate_stag(region.index) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-33" => setup.memory.deallocate_stag(StagIndex::new(StagIndex::MAX).unwrap())
            == Err(MemoryError::InvalidStagIndex);
    }
    let invalid = setup.memory.allocate_stag(setup.pd, 1, true).unwrap().stag;
    shows! { proof: "VERBS-7.9-9" => setup.memory.deallocate_stag(invalid.index) == Ok(()); }
    let window = setup.memory.allocate_window(setup.pd).unwrap();
    setup.bind(window, 1, overlapping, VA, 1).unwrap();
    shows! { proof:
        "VERBS-7.9-10" => setup.memory.deallocate_stag(overlapping.index) == Err(MemoryError::WindowsStillBound);
        "VERBS-7.9-11" => setup.is_reachable(overlapping, VA);
    }
}

#[test]
fn stag_zero_is_physical_local_and_privileged() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let setup = Setup::new();
    let privileged = Accessor { physical: true, ..setup.qp };
    let at = setup.buffer.address().0;
    let locate = |accessor, to, len, right| setup.memory.locate(accessor, STAG_ZERO, to, len, right);
    let end = at + setup.buffer.len() as u64;
    shows! { proof:
        "VERBS-7.2.1-1" => locate(privileged, at, 8, Right::LocalRead).is_ok();
        "VERBS-7.2.1-5" => locate(setup.qp, at, 8, Right::LocalRead).is_err();
        "VERBS-7.2.1-6" => locate(setup.qp, at, 8, Right::LocalWrite) == Err(AccessError::InvalidStag);
        "VERBS-7.2.1-7" => locate(privileged, at, 8, Right::RemoteRead).is_err();
        "VERBS-7.2.1-8" => locate(privileged, at, 8, Right::RemoteWrite) == Err(AccessError::InvalidStag);
        "VERBS-7.2.1-4" => locate(Accessor { physical: true, ..setup.other_pd_qp }, at, 8, Right::LocalWrite).is_ok();
        "VERBS-7.2.1-9" => locate(privileged, at, 8, Right::LocalWrite).is_ok();
        "VERBS-7.2.1-19" => locate(privileged, end - 1, 2, Right::LocalRead) == Err(AccessError::BaseAndBounds);
    }
}
