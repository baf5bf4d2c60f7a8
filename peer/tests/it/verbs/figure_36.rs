//! Tests draft-hilland-rddp-verbs Figure 36. The tests check each completion status for each
//! operation that can have this status.

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::mpa::Framing;
use weft_core::wire::rdmap::{Opcode, RawReadRequest, ReadRequest, Terminate, TerminateError};
use weft_peer::memory::{Access, RemoteAccess, Stag, StagKey, ToBase};
use weft_peer::verbs::{
    CompletedOperation, CompletionStatus, EventId, Operation, Payload, QpState, RemoteAddress, RnicSettings, SendWr,
    Sge,
};

use crate::verbs::figure_23::{bind, failing, failing_receive, fast};
use crate::verbs::peers::{Bench, LENGTH, PLAIN, Peers, Side, VA, llp_settings, register, shows, untagged};

fn send(sge: Sge) -> Operation {
    Operation::Send { payload: Payload::Gather(vec![sge]), solicited: false, invalidate: None }
}

fn write(sge: Sge) -> Operation {
    Operation::Write { payload: Payload::Gather(vec![sge]), remote: RemoteAddress { stag: 1, tagged_offset: 0 } }
}

fn of(operation: impl FnOnce(&mut Bench) -> Operation) -> Option<CompletionStatus> {
    failing(|_| (), operation)
}

/// Returns whether three operations fail with `status`: a Send from the scatter/gather element of
/// `sge`, a Write from this element, and a receive into it.
fn local(sge: fn(&mut Bench) -> Sge, status: CompletionStatus) -> bool {
    [of(|bench| send(sge(bench))), of(|bench| write(sge(bench)))] == [Some(status); 2]
        && failing_receive(sge, b"xy").0[0] == status
}

fn with_access(bench: &mut Bench, access: Access) -> Sge {
    let stag = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access);
    Sge { stag: stag.to_bits(), ..bench.side.sge(0, 9) }
}

fn foreign(bench: &mut Bench) -> Stag {
    let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
    register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL)
}

#[test]
fn protection() {
    use CompletionStatus::{AccessViolation, BaseAndBounds, InvalidPdId, InvalidStag, Wrap};
    let mut proof = Coverage::new(CoverageKind::Test);
    let gone: fn(&mut Bench) -> Sge = |bench| Sge { stag: 0x7700, ..bench.side.sge(0, 9) };
    let other: fn(&mut Bench) -> Sge = |bench| Sge { stag: foreign(bench).to_bits(), ..bench.side.sge(0, 9) };
    let past_the_end: fn(&mut Bench) -> Sge = |bench| bench.side.sge(LENGTH - 1, 9);
    let wrapping: fn(&mut Bench) -> Sge = |bench| Sge { tagged_offset: u64::MAX, ..bench.side.sge(0, 9) };
    shows! { proof:
        "VERBS-9.5.2-6" => local(gone, InvalidStag)
            && of(|bench| Operation::InvalidateLocal(Stag { key: StagKey(9), ..bench.side.stag })) == Some(InvalidStag)
            && of(|bench| fast(bench, |new, bench| new.stag.index = bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap()))
                == Some(InvalidStag);
        "VERBS-9.5.2-7" => local(past_the_end, BaseAndBounds)
            && of(|bench| bind(bench, |bind, _| bind.length = LENGTH + 1)) == Some(BaseAndBounds);
        "VERBS-9.5.2-8" => of(|bench| send(with_access(bench, Access { local_write: true, ..Access::default() })))
                == Some(AccessViolation)
            && of(|bench| write(with_access(bench, Access { local_write: true, ..Access::default() }))) == Some(AccessViolation)
            && failing_receive(|bench| with_access(bench, Access { local_read: true, ..Access::default() }), b"x").0[0]
                == AccessViolation
            && of(|bench| bind(bench, |bind, _| bind.access = RemoteAccess::default())) == Some(AccessViolation);
        "VERBS-9.5.2-9" => local(other, InvalidPdId)
            && of(|bench| Operation::InvalidateLocal(foreign(bench))) == Some(InvalidPdId)
            && of(|bench| bind(bench, |bind, bench| bind.region = foreign(bench))) == Some(InvalidPdId);
        "VERBS-9.5.2-10" => local(wrapping, Wrap)
            && of(|bench| bind(bench, |bind, _| bind.length = u64::MAX)) == Some(Wrap);
        "VERBS-7.3-1" => of(|bench| send(gone(bench))) == Some(InvalidStag);
        "VERBS-8.1.3.2-2" => of(|bench| write(gone(bench))) == Some(InvalidStag)
            && failing_receive(gone, b"x").0[0] == InvalidStag;
        "VERBS-7.4-7" => of(|bench| send(Sge { stag: bench.side.stag.to_bits() ^ 0x80, ..bench.side.sge(0, 1) }))
            == Some(InvalidStag);
    }
}

#[test]
fn fast_register() {
    use CompletionStatus::{
        InvalidAccessRights, InvalidFirstByteOffset, InvalidLength, InvalidPhysicalBufferSize, InvalidVirtualAddress,
        ListTooLong, NotInvalid,
    };
    let mut proof = Coverage::new(CoverageKind::Test);
    shows! { proof:
        "VERBS-9.5.2-16" => of(|bench| fast(bench, |new, _| new.list.entry_size = 3000)) == Some(InvalidPhysicalBufferSize);
        "VERBS-9.5.2-18" => of(|bench| fast(bench, |new, _| new.list.first_byte_offset = 5000)) == Some(InvalidFirstByteOffset);
        "VERBS-9.5.2-19" => of(|bench| fast(bench, |new, _| new.list.length = 0)) == Some(InvalidLength);
        "VERBS-9.5.2-20" => of(|bench| fast(bench, |new, _| new.access = Access { remote_read: true, ..Access::LOCAL }))
            == Some(InvalidAccessRights);
        "VERBS-9.5.2-21" => of(|bench| fast(bench, |new, _| new.list.entries = vec![new.list.entries[0]; 9])) == Some(ListTooLong);
        "VERBS-9.5.2-22" => of(|bench| fast(bench, |new, _| new.base = ToBase::VaBased(8))) == Some(InvalidVirtualAddress);
        "VERBS-9.5.2-14" => of(|bench| fast(bench, |new, bench| new.stag = bench.side.stag)) == Some(NotInvalid)
            && of(|bench| bind(bench, |bind, bench| {
                bench.side.post(SendWr { signaled: false, ..SendWr::new(9, Operation::Bind(*bind)) });
            })) == Some(NotInvalid);
        "VERBS-8.2.2.1-11" => of(|bench| {
            let first = fast(bench, |_, _| ());
            bench.side.post(SendWr { signaled: false, ..SendWr::new(9, first.clone()) });
            first
        }) == Some(NotInvalid);
    }
}

#[test]
fn bind_reads_and_lengths() {
    use CompletionStatus::{InvalidLength, InvalidRegion, InvalidWindow, NotPrivileged, ZeroReadResources};
    let mut proof = Coverage::new(CoverageKind::Test);
    let zero = |invalidate_local| {
        failing(
            |init| init.ord = 0,
            |bench| Operation::Read { local: bench.side.sge(0, 1), remote: bench.side.remote(0), invalidate_local },
        )
    };
    let short = RnicSettings { max_message: 10, ..RnicSettings::default() };
    let too_long = |operation: fn(&Side) -> Operation| {
        let mut side = Side::with(short, llp_settings(PLAIN, 1460, true), |_| ()).start();
        let operation = operation(&side);
        side.post(SendWr::new(1, operation));
        side.transmit(weft_peer::Instant::ORIGIN, usize::MAX);
        side.statuses() == [(1, InvalidLength)]
    };
    let unprivileged = || {
        let mut bench = Bench::new();
        let init = bench.side.rnic.query_qp(bench.side.qp).unwrap().init;
        bench.side.rnic.destroy_qp(bench.side.qp).unwrap();
        bench.side.qp = bench.side.rnic.create_qp(init, None).unwrap().0;
        bench.side.llp = bench.side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
        let mut bench = Bench { side: bench.side.start() };
        let operation = fast(&mut bench, |_, _| ());
        bench.side.post(SendWr::new(1, operation));
        let code = bench.code();
        (bench.side.statuses(), code)
    };
    shows! { proof:
        "VERBS-9.5.2-23" => of(|bench| bind(bench, |bind, _| bind.region.key = StagKey(0))) == Some(InvalidRegion)
            && of(|bench| bind(bench, |bind, bench| {
                let index = bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap();
                bind.region = Stag { index, key: StagKey(1) };
            })) == Some(InvalidRegion);
        "VERBS-9.5.2-24" => of(|bench| bind(bench, |bind, bench| bind.window = bench.side.stag)) == Some(InvalidWindow);
        "VERBS-9.5.2-12" => zero(false) == Some(ZeroReadResources) && zero(true) == Some(ZeroReadResources);
        "VERBS-8.2.2-18" => zero(false) == Some(ZeroReadResources);
        "VERBS-9.5.2-25" => too_long(|side| send(side.sge(0, 11))) && too_long(|side| write(side.sge(0, 11)))
            && too_long(|side| Operation::Read { local: side.sge(0, 11), remote: side.remote(0), invalidate_local: false })
            && !too_long(|side| send(side.sge(0, 10)));
        "VERBS-9.5.2-13" => unprivileged().0 == [(1, NotPrivileged)];
        "VERBS-7.3.2.5-15" => unprivileged() == (vec![(1, NotPrivileged)], Some(0));
        "VERBS-7.3.2.5-14" => of(|bench| fast(bench, |_, _| ())).is_none() && unprivileged().0.len() == 1;
    }
}

/// One work request of each kind, and a receive.
fn one_of_each(bench: &mut Bench) -> Vec<SendWr> {
    let sends = [(false, None), (true, None), (false, Some(7)), (true, Some(7))];
    let payload = || Payload::Inline(Bytes::from_static(b"x"));
    let mut operations: Vec<Operation> =
        sends.map(|(solicited, invalidate)| Operation::Send { payload: payload(), solicited, invalidate }).into();
    let side = &bench.side;
    operations.push(Operation::Write { payload: payload(), remote: side.remote(0) });
    for invalidate_local in [false, true] {
        operations.push(Operation::Read { local: side.sge(0, 1), remote: side.remote(0), invalidate_local });
    }
    operations.extend([bind(bench, |_, _| ()), fast(bench, |_, _| ())]);
    let spare = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
    operations.push(Operation::InvalidateLocal(spare));
    operations.into_iter().enumerate().map(|(n, operation)| SendWr::new(n as u64, operation)).collect()
}

const KINDS: [CompletedOperation; 10] = [
    CompletedOperation::Send,
    CompletedOperation::SendSolicited,
    CompletedOperation::SendInvalidate,
    CompletedOperation::SendSolicitedInvalidate,
    CompletedOperation::Write,
    CompletedOperation::Read,
    CompletedOperation::ReadInvalidateLocal,
    CompletedOperation::Bind,
    CompletedOperation::FastRegister,
    CompletedOperation::InvalidateLocal,
];

#[test]
fn any_work_request_can_be_flushed() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench { side: Side::new(|_| ()) };
    let list = one_of_each(&mut bench);
    assert_eq!(bench.side.rnic.post_send(bench.side.qp, list), Ok(10));
    bench.side.post_receive(99, 0, 1);
    bench.side.to(QpState::Error).unwrap();
    let done = bench.side.poll();
    shows! { proof:
        "VERBS-9.5.2-2" => done.len() == 11 && done.iter().all(|done| done.status == CompletionStatus::Flushed);
        "VERBS-9.3.1.1-4" => done[..10].iter().map(|done| done.operation).eq(KINDS);
        "VERBS-9.3.2.1-6" => done.iter().all(|done| done.octets == 0 && done.invalidated.is_none());
        "VERBS-8.1.2.1-9" => done[10].operation == CompletedOperation::Receive && done[10].octets == 0;
    }
}

#[test]
fn any_work_request_can_succeed() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(Framing { markers: false, crc: true }, 1460, |_| ());
    let at_peer = [0, 1].map(|_| register(&mut peers.b.rnic, peers.b.pd, peers.b.buffer, Access::ALL));
    (0..4).for_each(|n| peers.b.post_receive(n, 0, 4));
    let mut bench = Bench { side: peers.a };
    let mut list = one_of_each(&mut bench);
    peers.a = bench.side;
    let mut of_peer = at_peer.into_iter();
    for wr in &mut list {
        match &mut wr.operation {
            Operation::Send { invalidate: Some(stag), .. } => *stag = of_peer.next().unwrap().to_bits(),
            Operation::Write { remote, .. } => *remote = peers.b.remote(0),
            Operation::Read { remote, local, invalidate_local } => {
                *remote = peers.b.remote(0);
                if *invalidate_local {
                    local.stag = register(&mut peers.a.rnic, peers.a.pd, peers.a.buffer, Access::ALL).to_bits();
                }
            }
            _ => {}
        }
    }
    assert_eq!(peers.a.rnic.post_send(peers.a.qp, list), Ok(10));
    peers.run();
    let (done, received) = (peers.a.poll(), peers.b.poll());
    let success = |done: &weft_peer::verbs::WorkCompletion| done.status == CompletionStatus::Success;
    shows! { proof:
        "VERBS-9.5.2-1" => done.len() == 10 && done.iter().all(success) && received.len() == 4 && received.iter().all(success);
        "VERBS-4-11" => received.iter().map(|done| done.invalidated.is_some()).eq([false, false, true, true]);
        "VERBS-8.1.2.3-1" => done[6..].iter().map(|done| done.operation).eq(KINDS[6..].iter().copied());
        "VERBS-9-1" => done.iter().map(|done| done.operation).eq(KINDS);
        "VERBS-8.2.1-2" => done.iter().map(|done| done.wr_id).eq(0..10);
    }
}

/// The peer's Terminate contains the Read Request that the peer rejected.
#[test]
fn remote_termination() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    for n in 0..3 {
        let local = bench.side.sge(n * 100, 10);
        let remote = RemoteAddress { stag: 0x99, tagged_offset: n };
        bench.side.post(SendWr::new(n, Operation::Read { local, remote, invalidate_local: false }));
    }
    let (requests, _) = bench.sent();
    let refused = &requests[1];
    let mut payload = Vec::new();
    let request = RawReadRequest::LEN;
    assert_eq!(refused.len(), 18 + request);
    let error = TerminateError::RDMAP_INVALID_STAG;
    let refused_request = ReadRequest {
        sink_stag: bench.side.stag.to_bits(),
        sink_to: VA + 100,
        rdmardsz: 10,
        src_stag: 0x99,
        src_to: 1,
    };
    let header = weft_core::wire::ddp::RawHeader::from_prefix(refused).map(|(header, _)| header);
    Terminate { error, segment_length: Some(46), ddp_header: header, read_request: Some(refused_request) }
        .emit(&mut payload);
    bench.hand_in(&untagged(Opcode::TERMINATE, 2, 1, 0, true, &payload));
    use CompletionStatus::{Flushed, RemoteTermination};
    shows! { proof:
        "VERBS-9.5.2-5" => bench.side.statuses() == [(0, Flushed), (1, RemoteTermination), (2, Flushed)];
        "VERBS-6.2.2.4-23" => bench.side.event_ids() == [EventId::TerminateReceived]
            && bench.side.state() == QpState::Terminate && bench.sent().0.is_empty();
    }
}
