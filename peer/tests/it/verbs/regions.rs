//! Tests Memory Regions that Queue Pairs and peers use: life cycle, keys, lists and invalidation
//! (draft-hilland-rddp-verbs, sections 7.1 to 7.9, Figures 17 and 18).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::memory::{
    Access, Bind, FastRegistration, ListMode, MemoryError, MemorySettings, PhysicalBufferList, Registration,
    RemoteAccess, SharedRegistration, Stag, StagIndex, StagKey, StagState, ToBase,
};
use weft_peer::verbs::{CompletionStatus, EventId, Operation, Payload, QpState, RnicSettings, SendWr, Sge};

use crate::verbs::peers::{Bench, LENGTH, PLAIN, Side, VA, llp_settings, register, shows, tagged, untagged};

fn registration(side: &Side, offset: u64, length: u64) -> Registration {
    let list = PhysicalBufferList::of(side.buffer, offset, length, 4096);
    Registration { pd: side.pd, key: StagKey(0x5a), list, base: ToBase::ZeroBased, remote: true, access: Access::ALL }
}

fn registered(bench: &mut Bench) -> Stag {
    let new = registration(&bench.side, 0, 9);
    bench.side.rnic.memory_mut().register(&new).unwrap().stag
}

fn reregistered(bench: &mut Bench, index: StagIndex, offset: u64, length: u64) -> Stag {
    let new = registration(&bench.side, offset, length);
    bench.side.rnic.memory_mut().reregister(index, &new).unwrap().stag
}

fn fresh(bench: &mut Bench, remote: bool) -> Stag {
    Stag { key: StagKey(0x31), ..bench.side.rnic.memory_mut().allocate_stag(bench.side.pd, 4, remote).unwrap().stag }
}

fn fast(bench: &Bench, stag: Stag, access: Access) -> Operation {
    let Registration { list, base, .. } = registration(&bench.side, 0, 4096);
    Operation::FastRegister(FastRegistration { stag, list, base, access })
}

fn done(bench: &mut Bench, operation: Operation) -> CompletionStatus {
    bench.side.post(SendWr::new(1, operation));
    bench.sent();
    bench.side.rnic.poll_cq(bench.side.cq).unwrap().status
}

fn send_from(stag: u32, to: u64) -> Operation {
    let payload = Payload::Gather(vec![Sge { stag, tagged_offset: to, length: 1 }]);
    Operation::Send { payload, solicited: false, invalidate: None }
}

fn state(bench: &Bench, stag: Stag) -> Option<StagState> {
    bench.side.rnic.memory().query_region(stag.index).ok().map(|region| region.state)
}

/// Delivers a peer's Write of one octet. Returns the events.
fn written(bench: &mut Bench, stag: Stag, to: u64) -> Vec<EventId> {
    bench.hand_in(&tagged(Opcode::WRITE, stag.to_bits(), to, b"x"));
    bench.side.event_ids()
}

#[test]
fn figure_17() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let good = registration(&bench.side, 0, 100);
    let allocated = fresh(&mut bench, true);
    let first = state(&bench, allocated);
    let registered = bench.side.rnic.memory_mut().register(&good).unwrap().stag;
    let second = state(&bench, registered);
    let from_invalid = bench.side.rnic.memory_mut().reregister(allocated.index, &good).map(|new| new.stag).unwrap();
    let from_valid = bench.side.rnic.memory_mut().reregister(registered.index, &good).map(|new| new.stag).unwrap();
    let (third, fourth) = (state(&bench, from_invalid), state(&bench, from_valid));
    let fast_registered = fresh(&mut bench, true);
    let operation = fast(&bench, fast_registered, Access::ALL);
    assert_eq!(done(&mut bench, operation), CompletionStatus::Success);
    let invalid = fresh(&mut bench, true);
    shows! { proof:
        "VERBS-7.2.2-4" => first == Some(StagState::Invalid);
        "VERBS-7.2.2-5" => second == Some(StagState::Valid);
        "VERBS-7.2.2-6" => (third, fourth) == (Some(StagState::Valid), Some(StagState::Valid));
        "VERBS-7.1-4" => {
            let shared = SharedRegistration { pd: bench.side.pd, key: StagKey(1), base: ToBase::ZeroBased, remote: true, access: Access::ALL };
            let shared = bench.side.rnic.memory_mut().register_shared(registered, &shared).unwrap();
            [registered, fast_registered, shared].into_iter().all(|stag| written(&mut bench, stag, 0).is_empty())
        };
        "VERBS-7.2.2-12" => bench.side.rnic.memory_mut().deallocate_stag(invalid.index) == Ok(())
            && bench.side.rnic.memory_mut().deallocate_stag(fast_registered.index) == Ok(())
            && state(&bench, invalid).is_none() && state(&bench, fast_registered).is_none();
        "VERBS-7.2.2-3" => bench.side.rnic.memory().query_region(fast_registered.index) == Err(MemoryError::InvalidStagIndex);
        "VERBS-7.3.2-2" => {
            let mut bench = Bench::new();
            let unused = fresh(&mut bench, true);
            done(&mut bench, send_from(unused.to_bits(), 0)) == CompletionStatus::InvalidStag
        };
    }
}

#[test]
fn the_key_that_the_consumer_chose() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // Returns whether a peer's Write through this STag is rejected.
    let refused = |bench: Bench, stag: Stag, to| {
        let mut bench = bench;
        written(&mut bench, stag, to) == [EventId::ProtectionInvalidStag]
    };
    let only_its_key = |make: fn(&mut Bench) -> (Stag, u64)| {
        let (mut one, mut two) = (Bench::new(), Bench::new());
        let ((right, to), (wrong, _)) = (make(&mut one), make(&mut two));
        !refused(one, right, to) && refused(two, Stag { key: StagKey(wrong.key.0 ^ 0x10), ..wrong }, to)
    };
    shows! { proof:
        "VERBS-7.2-1" => [
            (|bench: &mut Bench| (registered(bench), 0)) as fn(&mut Bench) -> (Stag, u64),
            |bench| {
                let index = fresh(bench, true).index;
                (reregistered(bench, index, 0, 9), 0)
            },
            |bench| {
                let old = registered(bench);
                let pd = bench.side.pd;
                let new = SharedRegistration { pd, key: StagKey(3), base: ToBase::ZeroBased, remote: true, access: Access::ALL };
                (bench.side.rnic.memory_mut().register_shared(old, &new).unwrap(), 0)
            },
            |bench| {
                let stag = fresh(bench, true);
                let operation = fast(bench, stag, Access::ALL);
                done(bench, operation);
                (stag, 0)
            },
            |bench| {
                let window = Stag { index: bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap(), key: StagKey(4) };
                let access = RemoteAccess { read: true, write: true };
                let bind = Bind { window, region: bench.side.stag, address: VA, length: 9, va_based: false, access };
                done(bench, Operation::Bind(bind));
                (window, 0)
            },
        ].into_iter().all(only_its_key);
        "VERBS-7.8-18" => {
            let mut bench = Bench::new();
            let wrong = Stag { key: StagKey(0), ..bench.side.stag };
            done(&mut bench, Operation::InvalidateLocal(wrong)) == CompletionStatus::InvalidStag && bench.side.state() == QpState::Terminate
        };
    }
}

#[test]
fn any_octets_of_a_buffer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // The test registers each piece of a buffer in three ways. The octets of the piece are
    // accessible. The octet directly before the piece and the octet directly after it are not.
    let pieces = [(0, 1), (1, 1), (4095, 2), (5, 9000), (4096, 4096), (12_287, 1), (100, LENGTH - 100)];
    let exact = |offset: u64, length: u64, how: u8| {
        let with = |to: u64| {
            let mut bench = Bench::new();
            let new = registration(&bench.side, offset, length);
            let stag = match how {
                0 => bench.side.rnic.memory_mut().register(&new).unwrap().stag,
                1 => {
                    let index = fresh(&mut bench, true).index;
                    bench.side.rnic.memory_mut().reregister(index, &new).unwrap().stag
                }
                _ => {
                    let stag = bench.side.rnic.memory_mut().allocate_stag(bench.side.pd, 99, true).unwrap().stag;
                    let fast = FastRegistration { stag, list: new.list, base: ToBase::ZeroBased, access: Access::ALL };
                    done(&mut bench, Operation::FastRegister(fast));
                    stag
                }
            };
            written(&mut bench, stag, to);
            bench.side.octets().iter().position(|octet| *octet == b'x').map(|at| at as u64)
        };
        with(0) == Some(offset) && with(length - 1) == Some(offset + length - 1) && with(length).is_none()
    };
    let entry = |residue: u64| {
        let mut side = Side::new(|_| ());
        let mut new = registration(&side, 0, 100);
        new.list.entries[0].0 += residue;
        side.rnic.memory_mut().register(&new).map(|_| ())
    };
    shows! { proof:
        "VERBS-7.6.1.1-2" => pieces.into_iter().all(|(offset, length)| (0..3).all(|how| exact(offset, length, how)));
        "VERBS-7.6.1.1-4" => {
            let mut side = Side::new(|_| ());
            let new = registration(&side, 123, 50);
            let memory = side.rnic.memory_mut();
            let mut at = |va| memory.register(&Registration { base: ToBase::VaBased(va), ..new.clone() }).map(|_| ());
            at(123) == Ok(()) && at(8192 + 123) == Ok(()) && at(8192 + 122) == Err(MemoryError::InvalidVirtualAddress)
        };
        "VERBS-7.6.2.1-3" => [0, 1, 2048, 4095].map(entry)
            == [Ok(()), Err(MemoryError::InvalidPhysicalBufferListEntry), Err(MemoryError::InvalidPhysicalBufferListEntry),
                Err(MemoryError::InvalidPhysicalBufferListEntry)];
        "VERBS-9.3.1.1-7" => {
            let memory = MemorySettings { mode: ListMode::Block, ..MemorySettings::default() };
            let settings = RnicSettings { memory, ..RnicSettings::default() };
            let mut bench = Bench { side: block_side(settings) };
            let stag = fresh(&mut bench, true);
            let Operation::FastRegister(mut new) = fast(&bench, stag, Access::ALL) else { unreachable!() };
            new.list.entry_size = (1 << 30) + 1;
            done(&mut bench, Operation::FastRegister(new)) == CompletionStatus::InvalidPhysicalBufferSize
        };
        "VERBS-7.4.2-8" => (0u8..16).filter(|bits| {
            let mut side = Side::new(|_| ());
            let access = Access {
                local_read: bits & 1 > 0, local_write: bits & 2 > 0, remote_read: bits & 4 > 0, remote_write: bits & 8 > 0, bind: false,
            };
            let new = Registration { access, ..registration(&side, 0, 9) };
            side.rnic.memory_mut().register(&new).is_ok()
        }).eq([1, 2, 3, 5, 7, 10, 11, 15]);
    }
}

/// A side in Block Mode. The list of its region contains blocks instead of pages.
fn block_side(settings: RnicSettings) -> Side {
    Side::with(settings, llp_settings(PLAIN, 1460, true), |_| ()).start()
}

#[test]
fn the_remote_access_flag() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let status = |flag: bool, access: Access| {
        let mut bench = Bench::new();
        let stag = fresh(&mut bench, flag);
        let operation = fast(&bench, stag, access);
        done(&mut bench, operation)
    };
    use CompletionStatus::{InvalidAccessRights, InvalidPdId, InvalidStag, Success};
    shows! { proof:
        "VERBS-7.5.2-3" => (status(false, Access::ALL), status(true, Access::ALL)) == (InvalidAccessRights, Success);
        "VERBS-7.4-3" => {
            let mut bench = Bench::new();
            let stag = fresh(&mut bench, false);
            let operation = fast(&bench, stag, Access::LOCAL);
            done(&mut bench, operation);
            done(&mut bench, Operation::InvalidateLocal(stag));
            let still = bench.side.rnic.memory().query_region(stag.index).unwrap().remote;
            let new = registration(&bench.side, 0, 9);
            let again = bench.side.rnic.memory_mut().reregister(stag.index, &new).is_ok();
            !still && again && bench.side.rnic.memory().query_region(stag.index).unwrap().remote
        };
        "VERBS-7.3.2.5-4" => {
            let mut bench = Bench::new();
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            let stag = bench.side.rnic.memory_mut().allocate_stag(pd, 4, true).unwrap().stag;
            let operation = fast(&bench, stag, Access::ALL);
            done(&mut bench, operation) == InvalidPdId && state(&bench, stag) == Some(StagState::Invalid)
        };
        "VERBS-7.3.2.5-7" => {
            let mut bench = Bench::new();
            let window = Stag { index: bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap(), key: StagKey(1) };
            let operation = fast(&bench, window, Access::ALL);
            done(&mut bench, operation) == InvalidStag
        };
        "VERBS-7.8-8" => {
            let mut bench = Bench::new();
            let stag = fresh(&mut bench, true);
            let before = bench.side.rnic.memory().query_region(stag.index).unwrap();
            let operation = fast(&bench, stag, Access::ALL);
            done(&mut bench, operation);
            done(&mut bench, Operation::InvalidateLocal(stag));
            bench.side.rnic.memory().query_region(stag.index).unwrap() == before && before.pbl_entries == 4
        };
        "VERBS-7.8-9" => {
            let mut bench = Bench::new();
            let pd = bench.side.pd;
            let index = bench.side.rnic.memory_mut().allocate_stag(pd, 1, false).unwrap().stag.index;
            let stag = reregistered(&mut bench, index, 0, 3 * 4096);
            done(&mut bench, Operation::InvalidateLocal(stag));
            let region = bench.side.rnic.memory().query_region(index).unwrap();
            (region.pbl_entries, region.pd, region.state) == (3, pd, StagState::Invalid)
        };
        "VERBS-7.7-1" => {
            let mut bench = Bench::new();
            let stag = registered(&mut bench);
            let region = bench.side.rnic.memory().query_region(stag.index).unwrap();
            (region.pd, region.key, region.state, region.remote, region.pbl_entries, region.access)
                == (bench.side.pd, Some(StagKey(0x5a)), StagState::Valid, true, 1, Some(Access::ALL))
        };
        "VERBS-7.8-23" => {
            let mut bench = Bench::new();
            let stag = registered(&mut bench);
            done(&mut bench, Operation::InvalidateLocal(stag));
            let region = bench.side.rnic.memory().query_region(stag.index).unwrap();
            region.access.is_none() && region.key.is_none() && region.pbl_entries == 1
        };
    }
}

#[test]
fn invalid_and_gone_regions_give_no_access() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let after = |gone: bool| {
        let mut bench = Bench::new();
        let stag = registered(&mut bench);
        let twin = registered(&mut bench);
        if gone {
            bench.side.rnic.memory_mut().deallocate_stag(stag.index).unwrap();
        } else {
            done(&mut bench, Operation::InvalidateLocal(stag));
        }
        (bench, stag, twin)
    };
    let local = |gone| {
        let (mut bench, stag, _) = after(gone);
        done(&mut bench, send_from(stag.to_bits(), 0))
    };
    let remote = |gone| {
        let (mut bench, stag, _) = after(gone);
        (written(&mut bench, stag, 0), bench.code())
    };
    let refused = (vec![EventId::ProtectionInvalidStag], Some(0x1100));
    shows! { proof:
        "VERBS-7.8-5" => local(false) == CompletionStatus::InvalidStag && remote(false) == refused;
        "VERBS-7.9-7" => local(true) == CompletionStatus::InvalidStag && remote(true) == refused;
        "VERBS-7.9-3" => {
            let (mut bench, _, twin) = after(true);
            written(&mut bench, twin, 0).is_empty() && done(&mut bench, send_from(twin.to_bits(), 0)) == CompletionStatus::Success
        };
    }
}

#[test]
fn checks_of_an_invalidation() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let stags: [fn(&mut Bench) -> Stag; 4] = [
        |bench| Stag { key: StagKey(0xfe), ..bench.side.stag },
        |bench| {
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL)
        },
        |bench| {
            let new = SharedRegistration {
                pd: bench.side.pd,
                key: StagKey(3),
                base: ToBase::ZeroBased,
                remote: true,
                access: Access::ALL,
            };
            bench
                .side
                .rnic
                .memory_mut()
                .register_shared(bench.side.stag, &SharedRegistration { base: ToBase::VaBased(VA), ..new })
                .unwrap()
        },
        |bench| {
            let window =
                Stag { index: bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap(), key: StagKey(4) };
            let access = RemoteAccess { read: true, write: true };
            let bind = Bind { window, region: bench.side.stag, address: VA, length: 9, va_based: true, access };
            done(bench, Operation::Bind(bind));
            bench.side.stag
        },
    ];
    let locally = stags.map(|stag| {
        let mut bench = Bench::new();
        let stag = stag(&mut bench);
        (done(&mut bench, Operation::InvalidateLocal(stag)), bench.side.state())
    });
    let remotely = stags.map(|stag| {
        let mut bench = Bench::new();
        let stag = stag(&mut bench);
        bench.side.post_receive(2, 0, 9);
        let mut ulpdu = untagged(Opcode::SEND_INVALIDATE, 0, 1, 0, true, b"x");
        ulpdu[2..6].copy_from_slice(&stag.to_bits().to_be_bytes());
        bench.hand_in(&ulpdu);
        (bench.side.statuses()[0].1, bench.code(), bench.side.state())
    });
    use CompletionStatus::{AccessViolation, InvalidPdId, InvalidStag, InvalidateRefused};
    shows! { proof:
        "VERBS-7.8-10" => locally.map(|result| result.0) == [InvalidStag, InvalidPdId, InvalidStag, AccessViolation];
        "VERBS-7.8-11" => locally[2].0 == InvalidStag && remotely[2].1 == Some(0x0100);
        "VERBS-7.8-19" => remotely.map(|result| (result.0, result.2)) == [
            (InvalidStag, QpState::Terminate), (InvalidateRefused, QpState::Terminate),
            (InvalidStag, QpState::Terminate), (InvalidateRefused, QpState::Terminate),
        ];
        "VERBS-8.1.2.3.3-1" => locally[2] == (InvalidStag, QpState::Terminate) && {
            let mut bench = Bench::new();
            let spare = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
            let window = Stag { index: bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap(), key: StagKey(4) };
            [spare, window].into_iter().all(|stag| done(&mut bench, Operation::InvalidateLocal(stag)) == CompletionStatus::Success)
        };
        // The region is replaced between two Writes of the peer. The first Write goes to the old
        // memory, and the second Write goes to the new memory.
        "VERBS-7.3.2.3-17" => {
            let mut bench = Bench::new();
            let stag = registered(&mut bench);
            written(&mut bench, stag, 0);
            reregistered(&mut bench, stag.index, 500, 9);
            written(&mut bench, stag, 1);
            let octets = bench.side.octets();
            (octets[0], octets[1], octets[500], octets[501]) == (b'x', 0, 0, b'x')
        };
    }
}
