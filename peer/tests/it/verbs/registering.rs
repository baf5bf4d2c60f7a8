//! Tests the verbs that register memory: Register, Reregister and Register Shared, with lists of
//! pages and of blocks (draft-hilland-rddp-verbs, sections 9.2.6.2, 9.2.6.5 and 9.2.6.6, Figure
//! 33).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::memory::{
    Access, ListMode, MemoryError, MemorySettings, PdId, PhysicalAddress, PhysicalBufferList, RegionAttributes,
    RegionKind, Registration, SharedRegistration, Stag, StagIndex, StagKey, StagState, ToBase,
};
use weft_peer::verbs::RnicSettings;

use crate::verbs::memory_verbs::{bound, closed, dead, narrow, registration, shared};
use crate::verbs::peers::{Side, open, shows};

#[test]
fn register() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let good = registration(&side);
    let stale = dead(&mut side.rnic);
    let registered = side.rnic.memory_mut().register(&good).unwrap();
    let fails = |side: &mut Side, change: &dyn Fn(&mut Registration)| {
        let mut registration = good.clone();
        change(&mut registration);
        side.rnic.memory_mut().register(&registration).unwrap_err()
    };
    use MemoryError::{
        InsufficientResources, InvalidAccessRights, InvalidFirstByteOffset, InvalidLength, InvalidPdId,
        InvalidPhysicalBufferListEntry, InvalidPhysicalBufferSize, InvalidRnicHandle, InvalidVirtualAddress,
    };
    shows! { proof:
        "VERBS-9.2.6.2-2" => side.rnic.memory().query_region(registered.stag.index).unwrap() == RegionAttributes {
            pd: side.pd, key: Some(StagKey(0x5a)), state: StagState::Valid, kind: RegionKind::NonShared, remote: true,
            pbl_entries: 1, access: Some(Access::LOCAL),
        };
        "VERBS-9.2.6.2-3" => fails(&mut side, &|new| new.list.entry_size = 3000) == InvalidPhysicalBufferSize
            && fails(&mut side, &|new| new.list.entry_size = 6144) == InvalidPhysicalBufferSize;
        "VERBS-9.2.6.2-10" => registered.stag.key == StagKey(0x5a) && registered.pbl_entries >= 1;
        "VERBS-9.2.6.2-11" => [
            fails(&mut side, &|new| new.pd = stale),
            fails(&mut side, &|new| new.base = ToBase::VaBased(1)),
            fails(&mut side, &|new| new.list.length = 4097),
            fails(&mut side, &|new| new.list.first_byte_offset = 4096),
            fails(&mut side, &|new| new.access = Access::default()),
            fails(&mut side, &|new| new.list.entries[0].0 += 1),
            fails(&mut side, &|new| new.list.entry_size = 5),
            closed().rnic.memory_mut().register(&good).unwrap_err(),
        ] == [
            InvalidPdId, InvalidVirtualAddress, InvalidLength, InvalidFirstByteOffset, InvalidAccessRights,
            InvalidPhysicalBufferListEntry, InvalidPhysicalBufferSize, InvalidRnicHandle,
        ];
        "VERBS-7.3-4" => {
            let mut narrow = narrow();
            let good = registration(&narrow);
            narrow.rnic.memory_mut().register(&good).unwrap();
            narrow.rnic.memory_mut().register(&good) == Err(InsufficientResources)
                && narrow.rnic.memory_mut().allocate_stag(narrow.pd, 1, true) == Err(InsufficientResources)
        };
        "VERBS-7.3-3" => {
            let mut narrow = narrow();
            let mut long = registration(&narrow);
            long.list.entries = vec![PhysicalAddress(0); 1 << 20 | 1];
            narrow.rnic.memory_mut().register(&long) == Err(InsufficientResources)
        };
        // Ten registrations fail. If they kept a resource, the registration after them would fail
        // too.
        "VERBS-7.3-5" => {
            let mut narrow = narrow();
            let good = registration(&narrow);
            let bad = Registration { base: ToBase::VaBased(1), ..good.clone() };
            (0..10).all(|_| narrow.rnic.memory_mut().register(&bad).is_err())
                && narrow.rnic.memory_mut().register(&good).is_ok_and(|new| narrow.rnic.memory_mut().deallocate_stag(new.stag.index).is_ok())
                && { let spare = narrow.rnic.memory_mut().allocate_pd().unwrap(); narrow.rnic.memory_mut().deallocate_pd(spare).is_ok() }
        };
    }
}

#[test]
fn each_input_of_register_counts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let good = registration(&side);
    let other = side.rnic.memory_mut().allocate_pd().unwrap();
    let mut attributes_after = |change: fn(&mut Registration, PdId)| {
        let mut registration = good.clone();
        change(&mut registration, other);
        let new = side.rnic.memory_mut().register(&registration).unwrap();
        (side.rnic.memory().query_region(new.stag.index).unwrap(), new)
    };
    shows! { proof:
        "VERBS-9.2.6.2-8" => attributes_after(|new, pd| new.pd = pd).0.pd == other
            && attributes_after(|new, _| new.key = StagKey(9)).0.key == Some(StagKey(9))
            && !attributes_after(|new, _| new.remote = false).0.remote
            && attributes_after(|new, _| new.list.length = 3).0.pbl_entries == 1;
        "VERBS-9.2.6.2-9" => attributes_after(|new, _| new.access.bind = true).0.access == Some(Access { bind: true, ..Access::LOCAL });
        "VERBS-7.6.2.1-5" => attributes_after(|new, _| {
            new.list = PhysicalBufferList { first_byte_offset: 17, length: 5, ..new.list.clone() };
        }).1.pbl_entries == 1;
        "VERBS-7.5-2" => attributes_after(|_, _| ()).0.state == StagState::Valid;
    }
}

#[test]
fn reregister() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ()).start();
    let good = registration(&side);
    let index = side.rnic.memory_mut().register(&good).unwrap().stag.index;
    let other = side.rnic.memory_mut().allocate_pd().unwrap();
    let changed = Registration {
        pd: other,
        key: StagKey(0x77),
        remote: false,
        access: Access { local_read: true, ..Access::default() },
        ..good.clone()
    };
    let reregistered = side.rnic.memory_mut().reregister(index, &changed).unwrap();
    let attributes = side.rnic.memory().query_region(reregistered.stag.index).unwrap();
    let failing = |change: fn(&mut Registration)| {
        let mut side = Side::new(|_| ());
        let mut new = registration(&side);
        let index = side.rnic.memory_mut().register(&new).unwrap().stag.index;
        change(&mut new);
        let error = side.rnic.memory_mut().reregister(index, &new).unwrap_err();
        (error, side.rnic.memory().query_region(index).is_err())
    };
    use MemoryError::{
        InvalidAccessRights, InvalidFirstByteOffset, InvalidLength, InvalidPhysicalBufferListEntry,
        InvalidPhysicalBufferSize, InvalidRnicHandle, InvalidStagIndex, InvalidVirtualAddress, WindowsStillBound,
    };
    shows! { proof:
        "VERBS-9.2.6.5-2" => (attributes.pd, attributes.remote, attributes.access) == (other, false, changed.access.into());
        "VERBS-9.2.6.5-11" => attributes.key == Some(StagKey(0x77));
        "VERBS-9.2.6.5-12" => reregistered.pbl_entries >= 1 && side.rnic.memory().query_region(reregistered.stag.index).is_ok();
        "VERBS-9.2.6.5-4" => failing(|new| new.list.entry_size = 3000) == (InvalidPhysicalBufferSize, true);
        "VERBS-9.2.6.5-3" => {
            let window = bound(&mut side);
            let region = side.stag.index;
            side.rnic.memory_mut().reregister(region, &good) == Err(WindowsStillBound)
                && side.rnic.memory().query_region(region).unwrap().access == Some(Access::ALL) && side.rnic.memory().query_window(window.index).is_ok()
        };
        "VERBS-9.2.6.5-13" => [
            failing(|new| new.access = Access::default()).0, failing(|new| new.list.first_byte_offset = 9999).0,
            failing(|new| new.list.length = 0).0, failing(|new| new.list.entries[0].0 += 7).0,
            failing(|new| new.base = ToBase::VaBased(3)).0,
            side.rnic.memory_mut().reregister(StagIndex::new(0x00ab_cdef).unwrap(), &good).unwrap_err(),
            closed().rnic.memory_mut().reregister(index, &good).unwrap_err(),
        ] == [
            InvalidAccessRights, InvalidFirstByteOffset, InvalidLength, InvalidPhysicalBufferListEntry, InvalidVirtualAddress,
            InvalidStagIndex, InvalidRnicHandle,
        ];
        "VERBS-7.3.2.3-16" => {
            let index = side.rnic.memory_mut().register(&good).unwrap().stag.index;
            (0..1000u32).all(|n| {
                let key = StagKey(n as u8);
                side.rnic.memory_mut().reregister(index, &Registration { key, ..good.clone() }).is_ok_and(|new| new.stag == Stag { index, key })
            })
        };
        "VERBS-8.3.1-6" => {
            let before = side.rnic.memory().query_region(side.stag.index);
            side.rnic.memory_mut().deallocate_stag(side.stag.index).unwrap_err();
            let new = shared(&side);
            side.rnic.memory_mut().register_shared(Stag { key: StagKey(0xff), ..side.stag }, &new).unwrap_err();
            side.rnic.memory().query_region(side.stag.index) == before
        };
    }
}

#[test]
fn register_shared() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let based = Registration {
        base: ToBase::VaBased(8192 + 100),
        list: PhysicalBufferList::of(side.buffer, 100, 500, 4096),
        ..registration(&side)
    };
    let existing = side.rnic.memory_mut().register(&based).unwrap().stag;
    let stale = dead(&mut side.rnic);
    let good = shared(&side);
    let invalid = side.rnic.memory_mut().allocate_stag(side.pd, 1, true).unwrap().stag;
    use MemoryError::{
        InsufficientResources, InvalidAccessRights, InvalidPdId, InvalidRnicHandle, InvalidStagIndex,
        InvalidVirtualAddress,
    };
    shows! { proof:
        "VERBS-9.2.6.6-7" => [
            side.rnic.memory_mut().register_shared(invalid, &good).unwrap_err(),
            side.rnic.memory_mut().register_shared(existing, &SharedRegistration { base: ToBase::VaBased(1), ..good }).unwrap_err(),
            side.rnic.memory_mut().register_shared(existing, &SharedRegistration { pd: stale, ..good }).unwrap_err(),
            side.rnic.memory_mut().register_shared(existing, &SharedRegistration { access: Access::ALL, ..good }).unwrap_err(),
            closed().rnic.memory_mut().register_shared(existing, &good).unwrap_err(),
            {
                let mut narrow = narrow();
                let (new, again) = (registration(&narrow), shared(&narrow));
                let memory = narrow.rnic.memory_mut();
                let stag = memory.register(&new).unwrap().stag;
                memory.register_shared(stag, &again).unwrap_err()
            },
        ] == [InvalidStagIndex, InvalidVirtualAddress, InvalidPdId, InvalidAccessRights, InvalidRnicHandle, InsufficientResources];
        "VERBS-7.4.3-2" => side.rnic.memory_mut().register_shared(existing, &SharedRegistration { base: ToBase::VaBased(4096 + 101), ..good })
            == Err(InvalidVirtualAddress);
        "VERBS-7.3.2.4-1" => side.rnic.memory_mut().register_shared(invalid, &good) == Err(InvalidStagIndex);
        "VERBS-9.2.6.6-5" => side.rnic.memory_mut().register_shared(existing, &SharedRegistration {
            base: ToBase::VaBased(40_960 + 100), remote: true, access: Access::ALL, ..good
        }).is_ok_and(|stag| side.rnic.memory().query_region(stag.index).unwrap().access == Some(Access::ALL) && stag.key == StagKey(2));
        "VERBS-7.4.3-3" => {
            let pd = side.rnic.memory_mut().allocate_pd().unwrap();
            let one = side.rnic.memory_mut().register_shared(existing, &SharedRegistration { pd, ..good }).unwrap();
            let rights = |stag: Stag| side.rnic.memory().query_region(stag.index).map(|region| (region.pd, region.access)).unwrap();
            rights(one) == (pd, Some(Access::LOCAL)) && rights(existing).0 == side.pd
        };
        "VERBS-7.2.2-13" => side.rnic.memory().query_region(existing.index).unwrap().kind == RegionKind::Shared
            && side.rnic.memory_mut().reregister(existing.index, &based) == Err(InvalidStagIndex);
        "VERBS-9.2.6.6-2" => side.rnic.memory_mut().register_shared(existing, &SharedRegistration { key: StagKey(0xee), ..good })
            .is_ok_and(|stag| stag.key == StagKey(0xee));
    }
}

/// A block can have any size, but all blocks of a list have the same size.
#[test]
fn block_lists() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let memory = MemorySettings { mode: ListMode::Block, ..MemorySettings::default() };
    let mut rnic = open(RnicSettings { memory, ..RnicSettings::default() });
    let pd = rnic.memory_mut().allocate_pd().unwrap();
    let buffer = rnic.memory_mut().allocate_buffer(10_000).unwrap();
    let at = |offset: u64| PhysicalAddress(buffer.address().0 + offset);
    let list = PhysicalBufferList {
        entry_size: 1001,
        entries: vec![at(5000), at(13), at(3000)],
        first_byte_offset: 1,
        length: 3002,
    };
    let registration =
        Registration { pd, key: StagKey(1), list, base: ToBase::ZeroBased, remote: false, access: Access::LOCAL };
    let longer =
        Registration { list: PhysicalBufferList { length: 3003, ..registration.list.clone() }, ..registration.clone() };
    shows! { proof:
        "VERBS-7.6.2.2-1" => rnic.memory_mut().register(&registration).is_ok() && rnic.memory_mut().register(&longer) == Err(MemoryError::InvalidLength);
        "VERBS-9.2.6.5-5" => {
            let index = rnic.memory_mut().allocate_stag(pd, 3, false).unwrap().stag.index;
            rnic.memory_mut().reregister(index, &registration).is_ok()
        };
    }
}
