//! These tests check the effect of each error of a work request (draft-hilland-rddp-verbs, Figure
//! 23).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::memory::{Access, Bind, FastRegistration, PhysicalBufferList, RemoteAccess, Stag, StagKey, ToBase};
use weft_peer::verbs::{CompletionStatus, Operation, Payload, QpInit, QpState, ReceiveWr, RemoteAddress, SendWr, Sge};

use crate::verbs::peers::{Bench, LENGTH, VA, register, shows, untagged};

/// Posts a work request that fails locally (Figure 23, Send Queue). Returns the status of its
/// completion. Checks that the Terminate has code 0x0000 and that no event is reported.
pub(crate) fn failing(
    change: impl FnOnce(&mut QpInit),
    operation: impl FnOnce(&mut Bench) -> Operation,
) -> Option<CompletionStatus> {
    let mut bench = Bench::with(change);
    let operation = operation(&mut bench);
    bench.side.post(SendWr { signaled: false, ..SendWr::new(1, operation) });
    let second = bench.side.send_of(2, 0, 1);
    bench.side.post(second);
    let outcome = bench.outcome();
    let as_expected = (outcome.code, outcome.events.len(), outcome.state) == (Some(0), 0, QpState::Terminate)
        && outcome.statuses.len() == 2
        && outcome.statuses[1] == CompletionStatus::Flushed;
    as_expected.then_some(outcome.statuses[0])
}

fn send(sge: Sge) -> Operation {
    Operation::Send { payload: Payload::Gather(vec![sge]), solicited: false, invalidate: None }
}

#[test]
fn figure_23_local_protection() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let of = |operation: fn(&mut Bench) -> Operation| failing(|_| (), operation);
    shows! { proof:
        "VERBS-8.3.2-16" => of(|bench| send(Sge { stag: bench.side.stag.to_bits() ^ 3, ..bench.side.sge(0, 1) }))
            == Some(CompletionStatus::InvalidStag);
        "VERBS-8.3.2-17" => of(|bench| send(bench.side.sge(LENGTH - 1, 2))) == Some(CompletionStatus::BaseAndBounds);
        "VERBS-8.3.2-18" => of(|bench| {
            let access = Access { local_write: true, ..Access::default() };
            let stag = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access);
            send(Sge { stag: stag.to_bits(), ..bench.side.sge(0, 1) })
        }) == Some(CompletionStatus::AccessViolation);
        "VERBS-8.3.2-19" => of(|bench| {
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            let stag = register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL);
            send(Sge { stag: stag.to_bits(), ..bench.side.sge(0, 1) })
        }) == Some(CompletionStatus::InvalidPdId);
        "VERBS-8.3.2-20" => of(|bench| send(Sge { tagged_offset: u64::MAX, ..bench.side.sge(0, 2) }))
            == Some(CompletionStatus::Wrap);
        "VERBS-8.3.2-15" => failing(|init| init.ord = 0, |bench| Operation::Read {
            local: bench.side.sge(0, 1),
            remote: RemoteAddress { stag: 1, tagged_offset: 0 },
            invalidate_local: false,
        }) == Some(CompletionStatus::ZeroReadResources);
        "VERBS-8.1.3.1-8" => of(|bench| send(bench.side.sge(LENGTH, 1))).is_some();
    }
}

pub(crate) fn bind(bench: &mut Bench, change: impl FnOnce(&mut Bind, &mut Bench)) -> Operation {
    let window = Stag { index: bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap(), key: StagKey(1) };
    let access = RemoteAccess { read: true, write: false };
    let mut bind = Bind { window, region: bench.side.stag, address: VA, length: 10, va_based: true, access };
    change(&mut bind, bench);
    Operation::Bind(bind)
}

#[test]
fn figure_23_bind() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let of = |change: fn(&mut Bind, &mut Bench)| failing(|_| (), |bench| bind(bench, change));
    shows! { proof:
        "VERBS-8.3.2-31" => of(|bind, _| bind.region.key = StagKey(0)) == Some(CompletionStatus::InvalidRegion);
        "VERBS-8.3.2-32" => of(|bind, _| bind.window = bind.region) == Some(CompletionStatus::InvalidWindow);
        "VERBS-8.3.2-33" => of(|bind, _| bind.length = LENGTH + 1) == Some(CompletionStatus::BaseAndBounds);
        "VERBS-8.3.2-34" => of(|bind, _| bind.access = RemoteAccess::default()) == Some(CompletionStatus::AccessViolation);
        "VERBS-8.3.2-35" => of(|bind, bench| {
            bench.side.post(SendWr { signaled: false, ..SendWr::new(9, Operation::Bind(*bind)) });
        }) == Some(CompletionStatus::NotInvalid);
        "VERBS-8.3.2-36" => of(|bind, bench| {
            bind.region = bench.side.rnic.memory_mut().allocate_stag(bench.side.pd, 1, true).unwrap().stag;
        }) == Some(CompletionStatus::InvalidRegion);
        "VERBS-8.3.2-37" => of(|bind, bench| {
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            bind.window.index = bench.side.rnic.memory_mut().allocate_window(pd).unwrap();
        }) == Some(CompletionStatus::InvalidPdId);
        "VERBS-7.10.2-29" => of(|bind, bench| {
            let access = Access { local_read: true, bind: true, ..Access::default() };
            bind.region = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access);
            bind.access.write = true;
        }) == Some(CompletionStatus::AccessViolation);
    }
}

pub(crate) fn fast(bench: &mut Bench, change: impl FnOnce(&mut FastRegistration, &mut Bench)) -> Operation {
    let stag = bench.side.rnic.memory_mut().allocate_stag(bench.side.pd, 2, false).unwrap().stag;
    let list = PhysicalBufferList::of(bench.side.buffer, 0, 4096, 4096);
    let mut new = FastRegistration { stag, list, base: ToBase::ZeroBased, access: Access::LOCAL };
    change(&mut new, bench);
    Operation::FastRegister(new)
}

#[test]
fn figure_23_fast_register() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let of = |change: fn(&mut FastRegistration, &mut Bench)| failing(|_| (), |bench| fast(bench, change));
    shows! { proof:
        "VERBS-8.3.2-22" => of(|new, bench| new.stag.index = bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap())
            == Some(CompletionStatus::InvalidStag);
        "VERBS-8.3.2-23" => of(|new, _| new.list.entry_size = 5) == Some(CompletionStatus::InvalidPhysicalBufferSize);
        "VERBS-8.3.2-24" => of(|new, _| new.list.entries = vec![new.list.entries[0]; 3]) == Some(CompletionStatus::ListTooLong);
        "VERBS-8.3.2-25" => of(|new, bench| new.stag = bench.side.stag) == Some(CompletionStatus::NotInvalid);
        "VERBS-8.3.2-26" => of(|new, bench| {
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            new.stag = bench.side.rnic.memory_mut().allocate_stag(pd, 2, true).unwrap().stag;
        }) == Some(CompletionStatus::InvalidPdId);
        "VERBS-8.3.2-27" => of(|new, _| new.access = Access::ALL) == Some(CompletionStatus::InvalidAccessRights);
        "VERBS-8.3.2-28" => of(|new, _| new.base = ToBase::VaBased(1)) == Some(CompletionStatus::InvalidVirtualAddress);
        "VERBS-8.3.2-29" => of(|new, _| new.list.first_byte_offset = 4096) == Some(CompletionStatus::InvalidFirstByteOffset);
    }
}

#[test]
fn figure_23_fast_register_and_invalidate() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let of = |operation: fn(&mut Bench) -> Operation| failing(|_| (), operation);
    shows! { proof:
        "VERBS-8.3.2-30" => of(|bench| fast(bench, |new, _| new.list.length = 4097)) == Some(CompletionStatus::InvalidLength);
        "VERBS-9.5.2-17" => of(|bench| fast(bench, |new, _| new.list.entries[0].0 += 1)) == Some(CompletionStatus::InvalidListEntry);
        "VERBS-8.3.2-38" => of(|bench| Operation::InvalidateLocal(Stag { key: StagKey(0), ..bench.side.stag }))
            == Some(CompletionStatus::InvalidStag);
        "VERBS-8.3.2-39" => of(|bench| {
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            Operation::InvalidateLocal(register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL))
        }) == Some(CompletionStatus::InvalidPdId);
        "VERBS-8.3.2-40" => of(|bench| {
            let operation = bind(bench, |_, _| ());
            bench.side.post(SendWr { signaled: false, ..SendWr::new(9, operation) });
            Operation::InvalidateLocal(bench.side.stag)
        }) == Some(CompletionStatus::AccessViolation);
    }
    let settings = weft_peer::verbs::RnicSettings::default();
    let llp = crate::verbs::peers::llp_settings(crate::verbs::peers::PLAIN, 1460, true);
    let mut side = crate::verbs::peers::Side::with(settings, llp, |_| ());
    let init = side.rnic.query_qp(side.qp).unwrap().init;
    side.rnic.destroy_qp(side.qp).unwrap();
    side.qp = side.rnic.create_qp(init, None).unwrap().0;
    side.llp = side.rnic.attach_stream(llp).unwrap();
    let mut bench = Bench { side: side.start() };
    let operation = fast(&mut bench, |_, _| ());
    bench.side.post(SendWr::new(1, operation));
    let code = bench.code();
    shows! { proof:
        "VERBS-8.3.2-21" => code == Some(0) && bench.side.statuses() == [(1, CompletionStatus::NotPrivileged)];
        "VERBS-6.1.1-14" => !bench.side.rnic.query_qp(bench.side.qp).unwrap().privileged;
    }
}

/// Posts a receive that fails (Figure 23, upper part). Returns the statuses of the completions, and
/// the code of the Terminate that the peer gets.
pub(crate) fn failing_receive(
    scatter: impl FnOnce(&mut Bench) -> Sge,
    payload: &[u8],
) -> (Vec<CompletionStatus>, Option<u16>) {
    let mut bench = Bench::new();
    let sge = scatter(&mut bench);
    let list = vec![ReceiveWr { wr_id: 1, scatter: vec![sge] }, ReceiveWr { wr_id: 2, scatter: Vec::new() }];
    bench.side.rnic.post_receive(bench.side.qp, list).unwrap();
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, payload));
    let outcome = bench.outcome();
    assert!(outcome.events.is_empty() && outcome.state == QpState::Terminate);
    (outcome.statuses, outcome.code)
}

#[test]
fn figure_23_receives() {
    use CompletionStatus::{AccessViolation, BaseAndBounds, Flushed, InvalidPdId, InvalidStag, Wrap};
    let mut proof = Coverage::new(CoverageKind::Test);
    let of = |scatter: fn(&mut Bench) -> Sge| failing_receive(scatter, b"xy");
    shows! { proof:
        "VERBS-8.3.2-5" => of(|bench| Sge { stag: 0x7700, ..bench.side.sge(0, 9) }) == (vec![InvalidStag, Flushed], Some(0));
        "VERBS-8.3.2-6" => of(|bench| bench.side.sge(0, 1)) == (vec![BaseAndBounds, Flushed], Some(0x1205));
        "VERBS-8.3.2-7" => of(|bench| {
            let access = Access { local_read: true, ..Access::default() };
            let stag = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access);
            Sge { stag: stag.to_bits(), ..bench.side.sge(0, 9) }
        }) == (vec![AccessViolation, Flushed], Some(0));
        "VERBS-8.3.2-8" => of(|bench| {
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            let stag = register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL);
            Sge { stag: stag.to_bits(), ..bench.side.sge(0, 9) }
        }) == (vec![InvalidPdId, Flushed], Some(0));
        "VERBS-8.3.2-9" => of(|bench| Sge { tagged_offset: u64::MAX, ..bench.side.sge(0, 9) })
            == (vec![Wrap, Flushed], Some(0));
        "VERBS-8.1.2.1-6" => of(|bench| bench.side.sge(LENGTH - 1, 9)) == (vec![BaseAndBounds, Flushed], Some(0));
        "DDP-1.2-4" => of(|bench| bench.side.sge(0, 1)).1 == Some(0x1205);
    }
}

#[test]
fn figure_23_invalidation_by_the_peer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let of = |stag: fn(&mut Bench) -> Stag| {
        let mut bench = Bench::new();
        bench.side.post_receive(1, 0, 10);
        let stag = stag(&mut bench).to_bits();
        let mut ulpdu = untagged(Opcode::SEND_INVALIDATE, 0, 1, 0, true, b"x");
        ulpdu[2..6].copy_from_slice(&stag.to_be_bytes());
        bench.hand_in(&ulpdu);
        let outcome = bench.outcome();
        assert!(outcome.events.is_empty());
        (outcome.statuses, outcome.code)
    };
    use CompletionStatus::{InvalidStag, InvalidateRefused};
    shows! { proof:
        "VERBS-8.3.2-10" => of(|bench| Stag { key: StagKey(0), ..bench.side.stag }) == (vec![InvalidStag], Some(0x0100));
        "VERBS-8.3.2-11" => of(|bench| register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::LOCAL))
            == (vec![InvalidateRefused], Some(0x0102));
        "VERBS-8.3.2-12" => of(|bench| {
            let pd = bench.side.rnic.memory_mut().allocate_pd().unwrap();
            register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL)
        }) == (vec![InvalidateRefused], Some(0x0103));
        "VERBS-8.3.2-13" => of(|bench| {
            let operation = bind(bench, |_, _| ());
            bench.side.post(SendWr { signaled: false, ..SendWr::new(9, operation) });
            bench.sent();
            bench.side.stag
        }) == (vec![InvalidateRefused], Some(0x0109));
        "VERBS-9.5.2-11" => of(|bench| register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::LOCAL)).0
            == [InvalidateRefused];
    }
}
