//! Tests draft-hilland-rddp-verbs Figure 27: each modifier of a work request has its effect. The
//! figure also lists which operations have which modifiers. The types of the code ensure this part,
//! so no test checks it.

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::Instant;
use weft_peer::memory::{
    Access, Bind, FastRegistration, PhysicalBufferList, RemoteAccess, Stag, StagKey, StagState, ToBase,
};
use weft_peer::verbs::{
    CompletionStatus, Fence, Operation, Payload, QpInit, ReceiveWr, RemoteAddress, SendWr, Sge, WorkCompletion,
};

use crate::verbs::peers::{Bench, PLAIN, Peers, VA, read, register, shows, tagged, write};

fn octets(count: usize) -> Payload {
    Payload::Inline(Bytes::from(vec![7; count]))
}

/// Posts one work request. Returns the ULPDUs that it sends, its completions, and the bench.
fn run(wr: impl FnOnce(&mut Bench) -> SendWr) -> (Vec<Vec<u8>>, Vec<WorkCompletion>, Bench) {
    let mut bench = Bench::new();
    let wr = wr(&mut bench);
    bench.side.post(wr);
    let (sent, _) = bench.sent();
    let done = bench.side.poll();
    (sent, done, bench)
}

fn send(wr_id: u64, payload: Payload, solicited: bool, invalidate: Option<u32>) -> SendWr {
    SendWr::new(wr_id, Operation::Send { payload, solicited, invalidate })
}

#[test]
fn of_sends_writes_and_reads() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let word = |ulpdu: &[u8], at: usize| u32::from_be_bytes([ulpdu[at], ulpdu[at + 1], ulpdu[at + 2], ulpdu[at + 3]]);
    let offset = |ulpdu: &[u8], at: usize| u64::from(word(ulpdu, at)) << 32 | u64::from(word(ulpdu, at + 4));
    let remote = RemoteAddress { stag: 0x1234_5678, tagged_offset: 0x1122_3344_5566_7788 };
    shows! { proof:
        "VERBS-9.3.1.1-21" => [0, 42, u64::MAX].into_iter().all(|id| run(|_| send(id, octets(1), false, None)).1[0].wr_id == id);
        "VERBS-9.3.1.1-22" => run(|_| SendWr { signaled: false, ..send(1, octets(1), false, None) }).1.is_empty()
            && run(|_| send(1, octets(1), false, None)).1.len() == 1;
        "VERBS-9.3.1.1-23" => {
            let gathered = run(|bench| {
                bench.side.octets()[..6].copy_from_slice(b"abcdef");
                let list = vec![bench.side.sge(4, 2), bench.side.sge(0, 1), bench.side.sge(2, 1)];
                send(1, Payload::Gather(list), false, None)
            });
            gathered.0[0].ends_with(b"efac") && gathered.0[0].len() == 18 + 4
        };
        "VERBS-9.3.1.1-29" => {
            let sent = run(|_| send(1, octets(1), false, Some(0xcafe_f00d))).0;
            word(&sent[0], 2) == 0xcafe_f00d && sent[0][1] & 0xf == 4
        };
        "VERBS-9.3.1.1-28" => {
            let sent = run(|_| SendWr::new(1, Operation::Write { payload: octets(1), remote })).0;
            (word(&sent[0], 2), offset(&sent[0], 6)) == (0x1234_5678, 0x1122_3344_5566_7788)
        };
        "VERBS-8.1.3.3-4" => {
            let sent = run(|bench| SendWr::new(1, Operation::Read { local: bench.side.sge(0, 9), remote, invalidate_local: false })).0;
            (word(&sent[0], 18 + 16), offset(&sent[0], 18 + 20)) == (0x1234_5678, 0x1122_3344_5566_7788)
        };
        "VERBS-9.3.1.1-27" => {
            let (sent, _, bench) = run(|bench| SendWr::new(1, Operation::Read { local: bench.side.sge(5, 9), remote, invalidate_local: false }));
            (word(&sent[0], 18), offset(&sent[0], 22), word(&sent[0], 30)) == (bench.side.stag.to_bits(), VA + 5, 9)
        };
        "VERBS-8.1.3.3-1" => {
            let sent = run(|bench| SendWr::new(1, Operation::Read { local: bench.side.sge(77, 3), remote, invalidate_local: true })).0;
            offset(&sent[0], 22) == VA + 77
        };
    }
}

#[test]
fn of_fences_and_lists() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // Returns whether a second work request starts while a Read is outstanding.
    let starts_before_the_read_completes = |second: fn(&Bench) -> SendWr| {
        let mut bench = Bench::new();
        let list = vec![read(&bench.side, 1, 0, 4, bench.side.remote(0)), second(&bench)];
        bench.side.rnic.post_send(bench.side.qp, list).unwrap();
        bench.sent().0.len() == 2
    };
    let spare = |fence| {
        let mut bench = Bench::new();
        let stag = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
        let invalidate = SendWr { fence, ..SendWr::new(2, Operation::InvalidateLocal(stag)) };
        let list = vec![read(&bench.side, 1, 0, 4, bench.side.remote(0)), invalidate];
        bench.side.rnic.post_send(bench.side.qp, list).unwrap();
        bench.sent();
        bench.side.rnic.memory().query_region(stag.index).unwrap().state
    };
    shows! { proof:
        "VERBS-9.3.1.1-25" => starts_before_the_read_completes(|bench| bench.side.send_of(2, 0, 1))
            && !starts_before_the_read_completes(|bench| SendWr { fence: Fence::Read, ..bench.side.send_of(2, 0, 1) })
            && !starts_before_the_read_completes(|bench| SendWr { fence: Fence::Read, ..write(&bench.side, 2, 0, 1, bench.side.remote(0)) });
        "VERBS-9.3.1.1-26" => (spare(Fence::None), spare(Fence::Local)) == (StagState::Invalid, StagState::Valid);
        "VERBS-8.1.3.3-3" => run(|bench| {
            bench.side.octets()[..2].copy_from_slice(b"yz");
            let payload = Payload::Gather(vec![bench.side.sge(1, 1), bench.side.sge(0, 1)]);
            SendWr::new(1, Operation::Write { payload, remote: bench.side.remote(9) })
        }).0[0].ends_with(b"zy");
        "VERBS-8.1.3.1-7" => run(|bench| SendWr { signaled: false, ..write(&bench.side, 1, 0, 1, bench.side.remote(0)) }).1.is_empty();
        "VERBS-8.1.3.2-10" => {
            let bench = Bench::new();
            let limits = bench.side.rnic.query().unwrap().settings;
            let init = QpInit::new(bench.side.pd, bench.side.cq, bench.side.cq);
            let mut bench = bench;
            bench.side.rnic.create_qp(QpInit { max_send_sges: limits.max_sges + 1, ..init }, None).is_err()
                && bench.side.rnic.create_qp(QpInit { max_write_sges: limits.max_write_sges + 1, ..init }, None).is_err()
                && bench.side.rnic.create_qp(QpInit { max_send_sges: limits.max_sges, max_write_sges: limits.max_write_sges, ..init }, None).is_ok()
        };
        "VERBS-8.1.3.2-9" => run(|bench| send(1, Payload::Gather(vec![bench.side.sge(0, 1); 4]), false, None)).0[0].len() == 22;
        "VERBS-8.1.3.2-13" => Bench::new().side.rnic.query().unwrap().settings.max_write_sges >= 1
            && run(|bench| {
                let payload = Payload::Gather(vec![bench.side.sge(0, 1); 4]);
                SendWr::new(1, Operation::Write { payload, remote: bench.side.remote(0) })
            }).0[0].len() == 18;
    }
}

/// Posts a Bind that `change` has modified. Returns the window's STag if the Bind succeeded, and
/// the bench.
fn bound(change: impl FnOnce(&mut Bind, &mut Bench)) -> (Option<Stag>, Bench) {
    let mut bench = Bench::new();
    let window =
        Stag { index: bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap(), key: StagKey(0x21) };
    let access = RemoteAccess { read: true, write: true };
    let mut bind = Bind { window, region: bench.side.stag, address: VA + 100, length: 10, va_based: true, access };
    change(&mut bind, &mut bench);
    bench.side.post(SendWr::new(1, Operation::Bind(bind)));
    bench.sent();
    let done = bench.side.statuses()[0].1;
    ((done == CompletionStatus::Success).then_some(bind.window), bench)
}

/// Lets a peer write an octet at offset `to` of a window that `change` has modified. Returns the
/// offset of this octet in the region.
fn lands(change: impl FnOnce(&mut Bind, &mut Bench), to: u64) -> Option<usize> {
    let (window, mut bench) = bound(change);
    bench.hand_in(&tagged(weft_core::wire::rdmap::Opcode::WRITE, window?.to_bits(), to, b"x"));
    bench.side.octets().iter().position(|octet| *octet == b'x')
}

#[test]
fn of_bind() {
    let mut proof = Coverage::new(CoverageKind::Test);
    shows! { proof:
        "VERBS-9.3.1.1-30" => {
            let (window, mut bench) = bound(|bind, _| bind.window.key = StagKey(0x99));
            let attributes = bench.side.rnic.memory().query_window(window.unwrap().index).unwrap();
            bench.hand_in(&tagged(weft_core::wire::rdmap::Opcode::WRITE, window.unwrap().to_bits() ^ 1, VA + 100, b"x"));
            attributes.key == Some(StagKey(0x99)) && bench.side.event_ids().len() == 1
        };
        "VERBS-9.3.1.1-31" => {
            let mut other = None;
            let (window, bench) = bound(|bind, bench| {
                other = Some(bind.window.index);
                bind.window.index = bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap();
            });
            let state = |index| bench.side.rnic.memory().query_window(index).unwrap().state;
            (state(window.unwrap().index), state(other.unwrap())) == (StagState::Valid, StagState::Invalid)
        };
        "VERBS-9.3.1.1-32" => {
            let (window, mut bench) = bound(|bind, bench| {
                let buffer = bench.side.rnic.memory_mut().allocate_buffer(4096).unwrap();
                let pd = bench.side.pd;
                let list = PhysicalBufferList::of(buffer, 0, 4096, 4096);
                let registration = weft_peer::memory::Registration {
                    pd, key: StagKey(3), list, base: ToBase::VaBased(VA), remote: false, access: Access { bind: true, ..Access::LOCAL },
                };
                bind.region = bench.side.rnic.memory_mut().register(&registration).unwrap().stag;
            });
            bench.hand_in(&tagged(weft_core::wire::rdmap::Opcode::WRITE, window.unwrap().to_bits(), VA + 100, b"x"));
            bench.side.event_ids().is_empty() && bench.side.octets().iter().all(|octet| *octet == 0)
        };
        "VERBS-9.3.1.1-33" => lands(|bind, _| bind.length = 3, VA + 102) == Some(102) && lands(|bind, _| bind.length = 3, VA + 103).is_none();
        "VERBS-9.3.1.1-34" => lands(|bind, _| bind.va_based = false, 0) == Some(100) && lands(|_, _| (), VA + 100) == Some(100)
            && lands(|bind, _| bind.va_based = false, VA + 100).is_none();
        "VERBS-9.3.1.1-35" => lands(|bind, _| bind.address = VA + 500, VA + 500) == Some(500);
        "VERBS-9.3.1.1-18" => bound(|bind, _| bind.region.key = StagKey(0xaa)).0.is_none() && bound(|_, _| ()).0.is_some();
        "VERBS-9.3.1.1-17" => bound(|bind, _| bind.access = RemoteAccess::default()).0.is_none()
            && bound(|bind, _| bind.access.read = false).0.is_some() && bound(|bind, _| bind.access.write = false).0.is_some();
    }
}

/// Allocates an STag with two entries, and builds a Fast-Register for this STag. `change` modifies
/// the Fast-Register before this function posts it.
fn fast(remote: bool, change: impl FnOnce(&mut FastRegistration, &mut Bench)) -> (CompletionStatus, Stag, Bench) {
    let mut bench = Bench::new();
    let fresh = bench.side.rnic.memory_mut().allocate_stag(bench.side.pd, 2, remote).unwrap().stag;
    let list = PhysicalBufferList::of(bench.side.buffer, 0, 4096, 4096);
    let stag = Stag { key: StagKey(0x42), ..fresh };
    let mut new = FastRegistration { stag, list, base: ToBase::ZeroBased, access: Access::LOCAL };
    change(&mut new, &mut bench);
    let stag = new.stag;
    bench.side.post(SendWr::new(1, Operation::FastRegister(new)));
    bench.sent();
    (bench.side.statuses()[0].1, stag, bench)
}

fn access(remote: bool, access: Access) -> Option<Access> {
    let (_, stag, bench) = fast(remote, |new, _| new.access = access);
    bench.side.rnic.memory().query_region(stag.index).ok()?.access
}

#[test]
fn of_fast_register_rights() {
    let mut proof = Coverage::new(CoverageKind::Test);
    use CompletionStatus::InvalidAccessRights;
    let remote_write = Access { remote_write: true, ..Access::LOCAL };
    let remote_read = Access { remote_read: true, ..Access::LOCAL };
    shows! { proof:
        "VERBS-9.3.1.1-36" => access(false, Access { local_write: false, ..Access::LOCAL }).is_some_and(|access| access.local_read && !access.local_write);
        "VERBS-9.3.1.1-38" => access(false, Access { local_read: false, ..Access::LOCAL }).is_some_and(|access| access.local_write && !access.local_read);
        "VERBS-9.3.1.1-37" => access(true, remote_read).is_some_and(|access| access.remote_read && !access.remote_write);
        "VERBS-9.3.1.1-39" => access(true, remote_write).is_some_and(|access| access.remote_write && !access.remote_read);
        "VERBS-9.3.1.1-40" => access(false, Access { bind: true, ..Access::LOCAL }).is_some_and(|access| access.bind)
            && access(false, Access::LOCAL).is_some_and(|access| !access.bind);
        "VERBS-9.3.1.1-10" => fast(false, |new, _| new.access = Access { remote_write: true, ..Access::LOCAL }).0 == InvalidAccessRights
            && access(true, remote_write).is_some();
        "VERBS-9.3.1.1-11" => fast(false, |new, _| new.access = Access { remote_read: true, ..Access::LOCAL }).0 == InvalidAccessRights
            && access(true, remote_read).is_some();
        "VERBS-7.3.2.5-13" => [remote_read, remote_write, Access::ALL].into_iter().all(|rights| access(false, rights).is_none());
    }
}

#[test]
fn of_fast_register_lists() {
    let mut proof = Coverage::new(CoverageKind::Test);
    use CompletionStatus::{InvalidLength, InvalidListEntry, InvalidPhysicalBufferSize, Success};
    // Returns the first octet that a Send from offset 0 of the new region carries.
    let first = |change: fn(&mut FastRegistration, &mut Bench)| {
        let (status, stag, mut bench) = fast(false, change);
        assert_eq!(status, Success);
        for n in 0..8192 {
            bench.side.octets()[n] = (n / 100) as u8;
        }
        let payload = Payload::Gather(vec![Sge { stag: stag.to_bits(), tagged_offset: 0, length: 1 }]);
        bench.side.post(SendWr::new(2, Operation::Send { payload, solicited: false, invalidate: None }));
        bench.sent().0[0].last().copied()
    };
    shows! { proof:
        "VERBS-9.3.1.1-41" => fast(false, |new, _| new.list.entry_size = 8192).0 == InvalidPhysicalBufferSize
            && fast(false, |_, _| ()).0 == Success;
        "VERBS-9.3.1.1-42" => first(|new, bench| new.list.entries[0].0 = bench.side.buffer.address().0 + 4096) == Some(40);
        "VERBS-9.3.1.1-43" => first(|new, _| (new.list.first_byte_offset, new.list.length) = (200, 9)) == Some(2);
        "VERBS-9.3.1.1-46" => fast(false, |new, _| new.list.length = 4097).0 == InvalidLength
            && fast(false, |new, _| new.list.entries.clear()).0 == InvalidLength;
        "VERBS-9.3.1.1-6" => fast(false, |new, _| new.list.entry_size = 5000).0 == InvalidPhysicalBufferSize;
        "VERBS-9.3.1.1-44" => {
            let (status, stag, bench) = fast(false, |_, _| ());
            status == Success && bench.side.rnic.memory().query_region(stag.index).unwrap().state == StagState::Valid
                && fast(false, |new, bench| new.stag.index = bench.side.stag.index).0 != Success
        };
        "VERBS-9.3.1.1-45" => {
            let (_, stag, mut bench) = fast(false, |new, _| new.stag.key = StagKey(0x17));
            let wrong = SendWr::new(3, Operation::InvalidateLocal(Stag { key: StagKey(0x18), ..stag }));
            let key = bench.side.rnic.memory().query_region(stag.index).unwrap().key;
            bench.side.post(wrong);
            bench.sent();
            key == Some(StagKey(0x17)) && bench.side.statuses() == [(3, CompletionStatus::InvalidStag)]
        };
        "VERBS-7.3.2.5-18" => fast(false, |new, _| new.list.entries[0].0 = 1 << 40).0 == InvalidListEntry;
    }
}

#[test]
fn of_receives() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    let scatter = vec![peers.b.sge(10, 1), peers.b.sge(20, 1)];
    peers.b.rnic.post_receive(peers.b.qp, vec![ReceiveWr { wr_id: 5, scatter }]).unwrap();
    peers.a.post(send(1, Payload::Inline(Bytes::from_static(b"pq")), false, None));
    peers.run();
    shows! { proof:
        "VERBS-9.3.1.2-1" => peers.b.statuses() == [(5, CompletionStatus::Success)];
        "VERBS-8.1.3.1-2" => (peers.b.octets()[10], peers.b.octets()[20]) == (b'p', b'q');
    }
    assert_eq!(peers.b.rnic.query_qp(peers.b.qp).unwrap().llp, Some(peers.b.llp));
    assert_eq!(peers.b.transmit(Instant::ORIGIN, 9).0, []);
}
