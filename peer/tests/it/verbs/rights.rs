//! Tests access rights that peers and work requests need (draft-hilland-rddp-verbs, Figure 21 and
//! sections 7.4, 7.5, 7.6.3 and 8.1.2.2).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_peer::memory::{Access, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use weft_peer::verbs::{CompletionStatus, EventId, Operation, Payload, QpState, ReceiveWr, RemoteAddress, SendWr, Sge};

use crate::verbs::peers::{Bench, LENGTH, VA, register, shows, tagged, untagged};

const R: Access = Access { local_read: true, local_write: false, remote_read: false, remote_write: false, bind: false };
const W: Access = Access { local_read: false, local_write: true, remote_read: false, remote_write: false, bind: false };

/// Why an access failed: the event that was reported, or the status of the completion.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Event(EventId),
    Status(CompletionStatus),
}

use Refusal::{Event, Status};

fn outcome(bench: &mut Bench) -> Option<Refusal> {
    let status = bench.side.poll().iter().map(|done| done.status).find(|status| *status != CompletionStatus::Success);
    let event = bench.side.event_ids().pop();
    event.map(Event).or(status.map(Status))
}

fn bench(read: bool, write: bool) -> Bench {
    Bench::with(|init| (init.inbound_read, init.inbound_write) = (read, write))
}

fn region(bench: &mut Bench, access: Access) -> Stag {
    register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access)
}

/// Delivers an inbound Write of one octet. Returns whether the octet was placed, and why the access
/// failed (if it failed).
fn inbound_write(enabled: bool, access: Access) -> (bool, Option<Refusal>) {
    let mut bench = bench(true, enabled);
    let stag = region(&mut bench, access);
    bench.hand_in(&tagged(Opcode::WRITE, stag.to_bits(), VA, b"x"));
    (bench.side.octets()[0] == b'x', outcome(&mut bench))
}

/// Delivers an inbound Read of one octet. Returns whether the Read was answered, and why the access
/// failed (if it failed).
fn inbound_read(enabled: bool, access: Access) -> (bool, Option<Refusal>) {
    let mut bench = bench(enabled, true);
    let stag = region(&mut bench, access);
    let mut payload = Vec::new();
    ReadRequest { sink_stag: 1, sink_to: 0, rdmardsz: 1, src_stag: stag.to_bits(), src_to: VA }.emit(&mut payload);
    bench.hand_in(&untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &payload));
    let answered = bench.sent().0.first().is_some_and(|ulpdu| ulpdu[1] & 0xf == 2);
    (answered, outcome(&mut bench))
}

/// Posts a Read into a region. Returns whether the request was sent, whether the data arrived, and
/// why the access failed (if it failed).
fn own_read(enabled: bool, access: Access) -> (bool, bool, Option<Refusal>) {
    let mut bench = bench(true, enabled);
    let stag = region(&mut bench, access).to_bits();
    let local = Sge { stag, tagged_offset: VA, length: 1 };
    let remote = RemoteAddress { stag: 9, tagged_offset: 0 };
    bench.side.post(SendWr::new(1, Operation::Read { local, remote, invalidate_local: false }));
    let sent_request = bench.sent().0.first().is_some_and(|ulpdu| ulpdu[1] & 0xf == 1);
    bench.hand_in(&tagged(Opcode::READ_RESPONSE, stag, VA, b"x"));
    (sent_request, bench.side.octets()[0] == b'x', outcome(&mut bench))
}

fn gather(access: Access, write: bool) -> Option<Refusal> {
    let mut bench = Bench::new();
    let stag = region(&mut bench, access).to_bits();
    let payload = Payload::Gather(vec![Sge { stag, tagged_offset: VA, length: 1 }]);
    let remote = RemoteAddress { stag: 9, tagged_offset: 0 };
    let operation = if write {
        Operation::Write { payload, remote }
    } else {
        Operation::Send { payload, solicited: false, invalidate: None }
    };
    bench.side.post(SendWr::new(1, operation));
    bench.sent();
    outcome(&mut bench)
}

fn scatter(access: Access) -> Option<Refusal> {
    let mut bench = Bench::new();
    let stag = region(&mut bench, access).to_bits();
    let list = vec![ReceiveWr { wr_id: 1, scatter: vec![Sge { stag, tagged_offset: VA, length: 9 }] }];
    bench.side.rnic.post_receive(bench.side.qp, list).unwrap();
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, b"x"));
    outcome(&mut bench)
}

const REMOTE_READ: Access = Access { remote_read: true, ..R };
const REMOTE_WRITE: Access = Access { remote_write: true, ..W };

#[test]
fn figure_21_read_source() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let refused = |event| (false, Some(Event(event)));
    shows! { proof:
        "VERBS-8.1.2.2-15" => [REMOTE_READ, R].map(|access| inbound_read(false, access))
            == [refused(EventId::ReadNotEnabled), refused(EventId::ReadNotEnabled)];
        "VERBS-8.1.2.2-16" => !inbound_read(false, R).0 && inbound_read(true, R) == refused(EventId::IrrqAccessRights);
        "VERBS-7.5.2-1" => inbound_read(true, REMOTE_READ) == (true, None) && !inbound_read(true, W).0;
        "VERBS-7.4.2-4" => inbound_read(true, Access { remote_read: false, ..Access::ALL }) == refused(EventId::IrrqAccessRights);
        "VERBS-7.6.3-5" => inbound_read(false, Access::ALL) == refused(EventId::ReadNotEnabled);
        "VERBS-8.1.2.2-7" => [(false, R), (false, REMOTE_READ), (true, R), (true, REMOTE_READ)]
            .map(|(enabled, access)| inbound_read(enabled, access).0) == [false, false, false, true];
    }
}

#[test]
fn figure_21_write_sink() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let refused = |event| (false, Some(Event(event)));
    shows! { proof:
        "VERBS-8.1.2.2-19" => [inbound_write(false, W).0, inbound_write(true, W).0] == [false, false]
            && !own_read(true, W).1 && !own_read(false, W).1;
        "VERBS-7.4.2-3" => inbound_write(true, Access { remote_write: false, ..Access::ALL })
            == refused(EventId::ProtectionAccessRights);
        "VERBS-8.1.2.2-8" => [(false, W), (false, REMOTE_WRITE), (true, W), (true, REMOTE_WRITE)]
            .map(|(enabled, access)| inbound_write(enabled, access).0) == [false, false, false, true];
        "VERBS-8.1.2.2-9" => inbound_write(false, REMOTE_WRITE) == refused(EventId::WriteNotEnabled)
            && inbound_write(true, W) == refused(EventId::ProtectionAccessRights);
        "VERBS-7.6.3-4" => inbound_write(true, REMOTE_WRITE) == (true, None) && inbound_write(true, R).1.is_some();
        "VERBS-7.5.2-5" => [inbound_write(true, R), inbound_read(true, W)]
            == [refused(EventId::ProtectionAccessRights), refused(EventId::IrrqAccessRights)];
    }
}

#[test]
fn a_reads_own_sink() {
    let mut proof = Coverage::new(CoverageKind::Test);
    shows! { proof:
        "VERBS-7.4.2-5" => own_read(true, Access { remote_write: false, ..Access::ALL })
            == (true, false, Some(Event(EventId::ProtectionAccessRights)));
        "VERBS-7.4.2-9" => own_read(true, R).0 && !own_read(true, R).1;
        "VERBS-7.5.2-2" => own_read(true, REMOTE_WRITE) == (true, true, None) && !own_read(true, W).1;
        // The side cannot use this sink as the source of a Send, and peers cannot read it.
        "VERBS-7.5.1-3" => own_read(true, REMOTE_WRITE).1 && gather(REMOTE_WRITE, false).is_some();
        "VERBS-8.1.2.2-4" => {
            let mut bench = Bench::new();
            let window = bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap();
            let stag = Stag { index: window, key: StagKey(7) }.to_bits();
            let local = Sge { stag, tagged_offset: 0, length: 1 };
            let remote = RemoteAddress { stag: 9, tagged_offset: 0 };
            bench.side.post(SendWr::new(1, Operation::Read { local, remote, invalidate_local: false }));
            bench.sent();
            bench.hand_in(&tagged(Opcode::READ_RESPONSE, stag, 0, b"x"));
            outcome(&mut bench) == Some(Event(EventId::ProtectionInvalidStag))
        };
        "VERBS-8.1.2.2-11" => {
            let mut bench = Bench::new();
            let payload = Payload::Gather(vec![bench.side.sge(0, 1)]);
            let remote = RemoteAddress { stag: 0xbad_0000, tagged_offset: 1 };
            bench.side.post(SendWr::new(1, Operation::Write { payload, remote }));
            bench.sent().0.len() == 1 && bench.side.statuses() == [(1, CompletionStatus::Success)]
        };
        "VERBS-8.1.2.2-6" => {
            let mut peers = crate::verbs::peers::Peers::new();
            let payload = Payload::Gather(vec![peers.a.sge(0, 1)]);
            let remote = RemoteAddress { stag: 0xbad_0000, tagged_offset: 1 };
            peers.a.post(SendWr::new(1, Operation::Write { payload, remote }));
            peers.run();
            peers.b.event_ids() == [EventId::ProtectionInvalidStag] && peers.a.event_ids() == [EventId::TerminateReceived]
        };
    }
}

#[test]
fn local_rights() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let violation = Some(Status(CompletionStatus::AccessViolation));
    shows! { proof:
        "VERBS-7.4.1-3" => [gather(W, false), gather(W, true)] == [violation, Some(Status(CompletionStatus::AccessViolation))];
        "VERBS-7.4.1-4" => scatter(R) == Some(Status(CompletionStatus::AccessViolation));
        "VERBS-7.5.1-1" => [gather(R, false), gather(R, true)] == [None, None] && gather(REMOTE_WRITE, true).is_some();
        "VERBS-7.5.1-2" => scatter(W).is_none() && scatter(REMOTE_READ).is_some();
        "VERBS-7.4.1-1" => [gather(R, false), scatter(W), gather(Access::LOCAL, false), scatter(Access::LOCAL)]
            == [None, None, None, None];
        "VERBS-7.4.2-14" => [gather(R, false), gather(R, true)] == [None, None] && scatter(R).is_some()
            && !inbound_read(true, R).0 && !inbound_write(true, R).0;
        "VERBS-7.4-1" => inbound_read(true, REMOTE_READ).0 && inbound_write(true, REMOTE_WRITE).0
            && gather(R, false).is_none() && scatter(W).is_none();
        "VERBS-4-7" => gather(R, false).is_none() && !inbound_read(true, R).0 && scatter(W).is_none() && !inbound_write(true, W).0;
    }
}

#[test]
fn each_octet_and_no_other() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let at = |to: u64| {
        let mut bench = Bench::new();
        bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), to, b"x"));
        bench.side.event_ids().is_empty()
    };
    let zero_based = |to: u64| {
        let mut bench = Bench::new();
        let list = PhysicalBufferList::of(bench.side.buffer, 100, 50, 4096);
        let pd = bench.side.pd;
        let base = ToBase::ZeroBased;
        let registration = Registration { pd, key: StagKey(1), list, base, remote: true, access: Access::ALL };
        let stag = bench.side.rnic.memory_mut().register(&registration).unwrap().stag;
        bench.hand_in(&tagged(Opcode::WRITE, stag.to_bits(), to, b"x"));
        bench.side.octets().iter().position(|octet| *octet == b'x')
    };
    shows! { proof:
        "VERBS-7.4-2" => [VA, VA + LENGTH / 2, VA + LENGTH - 1].into_iter().all(at) && !at(VA - 1) && !at(VA + LENGTH);
        "VERBS-7.6.1-1" => zero_based(0) == Some(100) && at(VA);
        "VERBS-7.6.1-2" => zero_based(VA).is_none() && !at(0);
        "VERBS-7.6.3-1" => {
            let mut foreign = Bench::new();
            let pd = foreign.side.rnic.memory_mut().allocate_pd().unwrap();
            let stag = register(&mut foreign.side.rnic, pd, foreign.side.buffer, Access::ALL);
            foreign.hand_in(&tagged(Opcode::WRITE, stag.to_bits(), VA, b"x"));
            !inbound_write(true, W).0 && !inbound_write(false, Access::ALL).0 && !at(VA + LENGTH)
                && foreign.side.event_ids() == [EventId::ProtectionInvalidPd] && inbound_write(true, Access::ALL).0
        };
        "VERBS-7.3-2" => {
            let mut bench = Bench::new();
            let send = SendWr::new(1, Operation::Send {
                payload: Payload::Gather(vec![Sge { stag: 0x7700, tagged_offset: 0, length: 1 }]), solicited: false, invalidate: None,
            });
            bench.side.post(send);
            bench.sent();
            let mut remote = Bench::new();
            remote.hand_in(&tagged(Opcode::WRITE, 0x7700, 0, b"x"));
            outcome(&mut bench) == Some(Status(CompletionStatus::InvalidStag)) && remote.code() == Some(0x1100)
        };
    }
}

#[test]
fn stag_zero_is_for_local_use() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let posted = |operation: fn(&Bench) -> Operation| {
        let mut bench = Bench::new();
        let operation = operation(&bench);
        bench.side.post(SendWr::new(1, operation));
        bench.sent();
        bench.side.statuses().pop().map(|done| done.1)
    };
    let invalid = Some(CompletionStatus::InvalidStag);
    shows! { proof:
        "VERBS-8.1.3.2.1-2" => [
            posted(|bench| Operation::Read {
                local: Sge { stag: 0, ..bench.side.sge(0, 1) }, remote: bench.side.remote(0), invalidate_local: false,
            }),
            posted(|bench| Operation::Read {
                local: bench.side.sge(0, 1), remote: RemoteAddress { stag: 0, tagged_offset: 0 }, invalidate_local: false,
            }),
            posted(|bench| Operation::Write {
                payload: Payload::Gather(vec![bench.side.sge(0, 1)]), remote: RemoteAddress { stag: 0, tagged_offset: 0 },
            }),
        ] == [invalid; 3];
        "VERBS-7.2.1-20" => {
            let mut bench = Bench::new();
            bench.side.octets()[..9].copy_from_slice(b"abcdefghi");
            let at = bench.side.buffer.address().0;
            let gather = [(6, 3), (0, 2), (4, 1)].map(|(offset, length)| Sge { stag: 0, tagged_offset: at + offset, length });
            let payload = Payload::Gather(gather.to_vec());
            bench.side.post(SendWr::new(1, Operation::Send { payload, solicited: false, invalidate: None }));
            bench.sent().0[0].ends_with(b"ghiabe")
        };
        "VERBS-7.2.1-14" => {
            let mut bench = Bench::new();
            let at = bench.side.buffer.address().0;
            let send = || SendWr::new(1, Operation::Send {
                payload: Payload::Gather(vec![Sge { stag: 0, tagged_offset: at, length: 1 }]), solicited: false, invalidate: None,
            });
            bench.side.post(send());
            bench.sent();
            // The peer requests the invalidation of STag 0. STag 0 stays usable nevertheless.
            bench.side.post_receive(2, 0, 9);
            bench.hand_in(&untagged(Opcode::SEND_INVALIDATE, 0, 1, 0, true, b"x"));
            bench.side.rnic.handle_reset(weft_peer::Instant::ORIGIN, bench.side.llp);
            bench.side.to(QpState::Idle).unwrap();
            bench.side.poll();
            bench.side.llp = bench.side.rnic.attach_stream(crate::verbs::peers::llp_settings(crate::verbs::peers::PLAIN, 1460, true)).unwrap();
            bench.side.modify(&weft_peer::verbs::QpModify::to_rts(bench.side.llp)).unwrap();
            bench.side.post(send());
            bench.sent();
            bench.side.statuses() == [(1, CompletionStatus::Success)]
        };
        "VERBS-7.2.1-13" => {
            let mut bench = Bench::new();
            bench.side.post_receive(2, 0, 9);
            bench.hand_in(&untagged(Opcode::SEND_INVALIDATE, 0, 1, 0, true, b"x"));
            bench.code() == Some(0x0100) && bench.side.statuses() == [(2, CompletionStatus::InvalidStag)]
        };
        "VERBS-7.2.1-18" => {
            let mut bench = Bench::new();
            let at = bench.side.buffer.address().0;
            bench.hand_in(&tagged(Opcode::WRITE, 0, at, b"x"));
            bench.side.octets()[0] == 0 && bench.side.event_ids() == [EventId::ProtectionInvalidStag]
        };
        "VERBS-8.1.3.2.1-1" => {
            let mut bench = Bench::new();
            let init = bench.side.rnic.query_qp(bench.side.qp).unwrap().init;
            bench.side.qp = bench.side.rnic.create_qp(init, None).unwrap().0;
            bench.side.llp = bench.side.rnic.attach_stream(crate::verbs::peers::llp_settings(crate::verbs::peers::PLAIN, 1460, true)).unwrap();
            bench.side.modify(&weft_peer::verbs::QpModify::to_rts(bench.side.llp)).unwrap();
            let at = bench.side.buffer.address().0;
            let payload = Payload::Gather(vec![Sge { stag: 0, tagged_offset: at, length: 1 }]);
            bench.side.post(SendWr::new(1, Operation::Send { payload, solicited: false, invalidate: None }));
            bench.sent();
            bench.side.statuses() == [(1, CompletionStatus::InvalidStag)]
        };
    }
}
