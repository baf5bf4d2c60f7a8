//! Registration, reregistration, deallocation and the bounds of access.

use weft_core::coverage::{By, Proof};
use weft_core::requirement;

use super::*;

#[test]
fn an_allocated_stag_is_invalid_until_it_is_registered() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::with(MemorySettings { max_pbl_entries: 16, ..MemorySettings::default() });
    let allocated = world.memory.allocate_stag(world.pd, 4, true).unwrap();
    let index = allocated.stag.index;
    shows! { proof:
        "VERBS-7.3.2.1-2" => allocated.pbl_entries >= 4;
        "VERBS-7.3.2.1-4" => world.memory.query_region(index).is_ok();
        "VERBS-7.3.2.1-5" => world.memory.allocate_stag(world.pd, 17, true) == Err(MemoryError::InsufficientResources);
        "VERBS-7.3.2.1-6" => world.memory.query_region(index).unwrap().remote;
        "VERBS-7.3.2.1-10" => !world.is_reachable(allocated.stag, 0);
        "VERBS-7.3.2.1-11" => world.state(index) == StagState::Invalid;
        "VERBS-9.5.1.6-14" => world.memory.allocate_stag(PdId(99), 1, true) == Err(MemoryError::InvalidPdId);
        "VERBS-9.5.1.6-1" => world.memory.allocate_stag(world.pd, u32::MAX, true)
            == Err(MemoryError::InsufficientResources);
    }
}

#[test]
fn ri_register_gives_a_valid_stag_with_the_requested_key_and_rights() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let registration = Registration { key: StagKey(0xc3), ..world.registration(100, 5000) };
    let registered = world.memory.register(&registration).unwrap();
    let query = world.memory.query_region(registered.stag.index).unwrap();
    shows! { proof:
        "VERBS-7.3.2.2-1" => registered.stag.key == StagKey(0xc3) && query.key == Some(StagKey(0xc3));
        "VERBS-7.3.2.2-6" => world.locate(registered.stag, 0, 5000, Right::LocalRead).is_ok();
        "VERBS-7.3.2.2-7" => world.memory.query_region(registered.stag.index).is_ok() && world.memory.deallocate_pd(world.pd).is_err();
        "VERBS-7.3.2.2-8" => registered.pbl_entries >= 2;
        "VERBS-7.3.2.2-9" => query.state == StagState::Valid;
        "VERBS-7.3.2.2-4" => world.locate(registered.stag, 0, 1, Right::RemoteWrite).is_ok();
        "VERBS-9.2.6.3-6" => query.access == Some(Access::ALL) && query.pd == world.pd && query.remote
            && query.kind == RegionKind::NonShared && query.pbl_entries == registered.pbl_entries;
    }
    proof.shows(requirement!("VERBS-7.3.2.2-2"), || {
        let place = world.locate(registered.stag, 4999, 1, Right::RemoteWrite).unwrap();
        world.memory.put(place, &[9]);
        assert_eq!(world.memory.buffer(world.buffer).unwrap()[5099], 9);
    });
}

#[test]
fn the_remote_access_flag_guards_remote_rights() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let local = Registration { remote: false, access: Access::LOCAL, ..world.registration(0, 10) };
    let asking = Registration { remote: false, ..world.registration(0, 10) };
    let stag = world.memory.register(&local).unwrap().stag;
    shows! { proof:
        "VERBS-7.3.2.2-5" => world.locate(stag, 0, 1, Right::RemoteRead) == Err(AccessError::Rights);
        "VERBS-7.4-4" => !world.memory.query_region(stag.index).unwrap().remote;
        "VERBS-7.4-6" => world.memory.register(&asking) == Err(MemoryError::InvalidAccessRights);
        "VERBS-7.3.2.2-3" => [false, true].map(|remote| {
            let stag = world.memory.register(&Registration { remote, ..local.clone() }).unwrap().stag;
            world.memory.query_region(stag.index).unwrap().remote
        }) == [false, true];
        "VERBS-7.4-5" => world.memory.register(&Registration { remote: true, ..asking.clone() }).is_ok();
    }
    let neither = Registration { access: Access { bind: true, ..Access::default() }, ..local.clone() };
    shows! { proof: "VERBS-7.4.1-2" => world.memory.register(&neither) == Err(MemoryError::InvalidAccessRights); }
    let write_only = Access { local_write: false, ..Access::ALL };
    let read_only = Access { local_read: false, ..Access::ALL };
    let with = |access| Registration { access, remote: true, ..local.clone() };
    shows! { proof:
        "VERBS-7.4.2-1" => world.memory.register(&with(write_only)) == Err(MemoryError::InvalidAccessRights);
        "VERBS-7.4.2-2" => world.memory.register(&with(read_only)) == Err(MemoryError::InvalidAccessRights);
    }
}

/// Draft Figure 33, the column of RI-Register.
#[test]
fn register_names_what_is_wrong() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::with(MemorySettings { max_regions: 1, ..MemorySettings::default() });
    let good = world.registration(0, 100);
    let list = |change: fn(&mut PhysicalBufferList)| {
        let mut list = good.list.clone();
        change(&mut list);
        Registration { list, ..good.clone() }
    };
    let with_va = Registration { base: ToBase::VaBased(VA + 1), ..good.clone() };
    let mut fails = |registration: &Registration, error| world.memory.register(registration) == Err(error);
    shows! { proof:
        "VERBS-9.5.1.6-15" => fails(&Registration { pd: PdId(9), ..good.clone() }, MemoryError::InvalidPdId);
        "VERBS-9.5.1.6-19" => fails(&with_va, MemoryError::InvalidVirtualAddress);
        "VERBS-9.5.1.6-22" => fails(&list(|list| list.length = 4097), MemoryError::InvalidLength);
        "VERBS-9.5.1.6-24" => fails(&Registration { remote: false, ..good.clone() }, MemoryError::InvalidAccessRights);
        "VERBS-9.5.1.6-27" => fails(&list(|list| list.entries[0].0 += 1), MemoryError::InvalidPhysicalBufferListEntry);
        "VERBS-9.5.1.6-29" => fails(&list(|list| list.entry_size = 4095), MemoryError::InvalidPhysicalBufferSize);
        "VERBS-9.5.1.6-36" => fails(&list(|list| list.first_byte_offset = 4096), MemoryError::InvalidFirstByteOffset);
    }
    world.memory.register(&good).unwrap();
    shows! { proof: "VERBS-9.5.1.6-2" => world.memory.register(&good) == Err(MemoryError::InsufficientResources); }
}

#[test]
fn lists_are_checked_as_their_mode_asks() {
    let mut proof = Proof::new(By::Test);
    let mut pages = World::new();
    let mut blocks = World::with(MemorySettings { mode: ListMode::Block, ..MemorySettings::default() });
    let list = |world: &World, entry_size, first: u64, second: u64| {
        let at = |offset| PhysicalAddress(world.buffer.address().0 + offset);
        let entries = vec![at(first), at(second)];
        let list = PhysicalBufferList { entry_size, entries, first_byte_offset: 3, length: 20 };
        Registration { list, ..world.registration(0, 1) }
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
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let first = VA + 300;
    let based = Registration { base: ToBase::VaBased(first), ..world.registration(300, 1000) };
    let va = world.memory.register(&based).unwrap().stag;
    let zero = world.memory.register(&world.registration(300, 1000)).unwrap().stag;
    let mut reaches = |stag, to, octet| {
        let place = world.locate(stag, to, 1, Right::RemoteWrite).unwrap();
        world.memory.buffer_mut(world.buffer).unwrap().fill(0);
        world.memory.put(place, &[1]);
        world.memory.buffer(world.buffer).unwrap()[octet] == 1
    };
    shows! { proof:
        "VERBS-7.3.1.1-2" => reaches(va, first, 300);
        "VERBS-7.3.1.1-3" => reaches(zero, 0, 300);
        "VERBS-7.6.1.2-1" => reaches(zero, 999, 1299);
        "VERBS-7.3.1-1" => reaches(va, first + 999, 1299);
    }
    shows! { proof:
        "VERBS-7.3.1.1-1" => world.locate(va, 0, 1, Right::LocalRead) == Err(AccessError::BaseAndBounds)
            && world.locate(zero, first, 1, Right::LocalRead) == Err(AccessError::BaseAndBounds);
        "VERBS-7.6.1.2-3" => world.locate(zero, 0, 1000, Right::LocalRead).is_ok();
        "VERBS-7.6.1.1-1" => {
            let top = u64::MAX - 4095 + 300;
            let high = Registration { base: ToBase::VaBased(top), ..world.registration(300, 3796) };
            let stag = world.memory.register(&high).unwrap().stag;
            world.locate(stag, u64::MAX, 1, Right::LocalRead).is_ok()
        };
        "VERBS-7.6.1.1-5" => {
            let wrong = Registration { base: ToBase::VaBased(VA + 299), ..world.registration(300, 1000) };
            world.memory.register(&wrong) == Err(MemoryError::InvalidVirtualAddress)
        };
    }
}

#[test]
fn bounds_are_exact_to_the_octet() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let stag = world.memory.register(&world.registration(7, 1000)).unwrap().stag;
    shows! { proof:
        "VERBS-7.6.3-2" => world.locate(stag, 0, 1000, Right::RemoteRead).is_ok()
            && world.locate(stag, 0, 1001, Right::RemoteRead) == Err(AccessError::BaseAndBounds);
        "VERBS-7.5.1-4" => world.locate(stag, 999, 1, Right::LocalWrite).is_ok()
            && world.locate(stag, 1000, 1, Right::LocalWrite) == Err(AccessError::BaseAndBounds);
        "VERBS-7.6.3-9" => world.locate(stag, 500, 501, Right::RemoteWrite) == Err(AccessError::BaseAndBounds);
        "VERBS-7.6.3-3" => world.memory.locate(world.stranger, 0xffff_ffff, u64::MAX, 0, Right::RemoteWrite).is_ok();
        "VERBS-7.6.3-6" => world.memory.locate(world.stranger, stag.to_bits(), 0, 1, Right::RemoteRead)
            == Err(AccessError::NotAssociated);
        "DDP-7.1-12" => world.locate(stag, u64::MAX, 1, Right::RemoteWrite) == Err(AccessError::BaseAndBounds);
        "DDP-7.1-13" => world.locate(stag, 1, 1000, Right::RemoteWrite) == Err(AccessError::BaseAndBounds);
        "DDP-7.1-14" => world.locate(stag, u64::MAX, 2, Right::RemoteWrite) == Err(AccessError::Wrap);
    }
}

#[test]
fn each_use_needs_its_right() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let read = Access { local_read: true, remote_read: true, ..Access::default() };
    let write = Access { local_write: true, remote_write: true, ..Access::default() };
    let local = Access::LOCAL;
    let [read, write, local] = [read, write, local].map(|access| {
        let registration = Registration { access, ..world.registration(0, 10) };
        world.memory.register(&registration).unwrap().stag
    });
    let refused = |stag, right| world.locate(stag, 0, 1, right) == Err(AccessError::Rights);
    let allowed = |stag, right| world.locate(stag, 0, 1, right).is_ok();
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
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let stag = world.region(100);
    let new = Registration {
        pd: world.other_pd,
        key: StagKey(0x77),
        access: Access { bind: false, ..Access::LOCAL },
        remote: false,
        ..world.registration(50, 9000)
    };
    let registered = world.memory.reregister(stag.index, &new).unwrap();
    let query = world.memory.query_region(registered.stag.index).unwrap();
    shows! { proof:
        "VERBS-7.3.2.3-3" => query.key == Some(StagKey(0x77));
        "VERBS-7.3.2.3-9" => world.memory.locate(world.stranger, registered.stag.to_bits(), 0, 9000, Right::LocalRead).is_ok();
        "VERBS-7.3.2.3-12" => registered.pbl_entries >= 3;
        "VERBS-7.3.2.3-13" => !query.remote && query.access == Some(Access::LOCAL);
        "VERBS-7.3.2.3-14" => query.state == StagState::Valid;
        "VERBS-7.3.2.3-18" => query.pd == world.other_pd;
        "VERBS-7.3.2.3-19" => !world.is_reachable(stag, VA);
        "VERBS-9.2.6.5-10" => world.memory.locate(world.stranger, stag.to_bits(), 0, 1, Right::LocalRead)
            == Err(AccessError::InvalidStag);
    }
}

#[test]
fn reregister_refuses_some_stags_and_drops_others() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let good = world.registration(0, 10);
    let window = world.memory.allocate_window(world.pd).unwrap();
    let region = world.region(100);
    world.bind(window, 1, region, VA, 1).unwrap();
    let index = region.index;
    shows! { proof:
        "VERBS-9.5.1.6-39" => world.memory.reregister(index, &good) == Err(MemoryError::WindowsStillBound);
        "VERBS-7.3.2.3-4" => world.state(index) == StagState::Valid && world.is_reachable(region, VA);
        "VERBS-7.3.2.3-7" => world.memory.reregister(StagIndex::new(999).unwrap(), &good)
            == Err(MemoryError::InvalidStagIndex) && world.is_reachable(region, VA);
        "VERBS-9.5.1.6-32" => world.memory.reregister(window, &good) == Err(MemoryError::InvalidStagIndex);
    }
    world.memory.deallocate(window).unwrap();
    let bad = Registration { pd: PdId(99), ..good.clone() };
    shows! { proof:
        "VERBS-9.5.1.6-16" => world.memory.reregister(index, &bad) == Err(MemoryError::InvalidPdId);
        "VERBS-7.3.2.3-8" => world.memory.query_region(index) == Err(MemoryError::InvalidStagIndex);
    }
    let invalid = world.memory.allocate_stag(world.pd, 1, true).unwrap().stag;
    let longer = world.registration(0, 3 * PAGE);
    shows! { proof:
        "VERBS-7.3.2.3-2" => world.memory.reregister(invalid.index, &good).is_ok();
        "VERBS-7.3.2.3-5" => world.memory.reregister(invalid.index, &longer).unwrap().pbl_entries == 3;
    }
}

/// Draft Figure 33, the column of RI-Reregister: all errors except two deallocate the region.
#[test]
fn reregister_names_what_is_wrong() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::with(MemorySettings { max_pbl_entries: 4, ..MemorySettings::default() });
    let good = world.registration(0, 100);
    let mut fails = |error, change: fn(&mut Registration)| {
        let stag = world.region(10);
        let mut registration = good.clone();
        change(&mut registration);
        let result = world.memory.reregister(stag.index, &registration);
        result == Err(error) && world.memory.query_region(stag.index).is_err()
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
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let (region, overlapping) = (world.region(100), world.region(200));
    world.memory.deallocate(region.index).unwrap();
    shows! { proof:
        "VERBS-7.9-1" => !world.is_reachable(region, VA);
        "VERBS-7.9-4" => world.is_reachable(overlapping, VA);
        "VERBS-7.4.3-1" => overlapping.index != region.index;
        "VERBS-7.9-2" => world.memory.deallocate(region.index) == Err(MemoryError::InvalidStagIndex);
        "VERBS-9.5.1.6-33" => world.memory.deallocate(StagIndex::new(StagIndex::MAX).unwrap())
            == Err(MemoryError::InvalidStagIndex);
    }
    let invalid = world.memory.allocate_stag(world.pd, 1, true).unwrap().stag;
    shows! { proof: "VERBS-7.9-9" => world.memory.deallocate(invalid.index) == Ok(()); }
    let window = world.memory.allocate_window(world.pd).unwrap();
    world.bind(window, 1, overlapping, VA, 1).unwrap();
    shows! { proof:
        "VERBS-7.9-10" => world.memory.deallocate(overlapping.index) == Err(MemoryError::WindowsStillBound);
        "VERBS-7.9-11" => world.is_reachable(overlapping, VA);
    }
}

#[test]
fn stag_zero_is_physical_local_and_privileged() {
    let mut proof = Proof::new(By::Test);
    let world = World::new();
    let privileged = Accessor { physical: true, ..world.qp };
    let at = world.buffer.address().0;
    let locate = |accessor, to, len, right| world.memory.locate(accessor, STAG_ZERO, to, len, right);
    let end = at + world.buffer.len() as u64;
    shows! { proof:
        "VERBS-7.2.1-1" => locate(privileged, at, 8, Right::LocalRead).is_ok();
        "VERBS-7.2.1-5" => locate(world.qp, at, 8, Right::LocalRead).is_err();
        "VERBS-7.2.1-6" => locate(world.qp, at, 8, Right::LocalWrite) == Err(AccessError::InvalidStag);
        "VERBS-7.2.1-7" => locate(privileged, at, 8, Right::RemoteRead).is_err();
        "VERBS-7.2.1-8" => locate(privileged, at, 8, Right::RemoteWrite) == Err(AccessError::InvalidStag);
        "VERBS-7.2.1-4" => locate(Accessor { physical: true, ..world.stranger }, at, 8, Right::LocalWrite).is_ok();
        "VERBS-7.2.1-9" => locate(privileged, at, 8, Right::LocalWrite).is_ok();
        "VERBS-7.2.1-19" => locate(privileged, end - 1, 2, Right::LocalRead) == Err(AccessError::BaseAndBounds);
    }
}
