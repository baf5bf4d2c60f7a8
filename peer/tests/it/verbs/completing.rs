//! These tests check which work gets a completion and a notification (draft-hilland-rddp-verbs,
//! chapters 4 and 9, sections 8.1.3.1 and 8.2.3 to 8.2.5). They also check properties that many
//! verbs have in common.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::Instant;
use weft_peer::memory::{Bind, ListMode, MemorySettings, RemoteAccess, Stag, StagKey};
use weft_peer::verbs::{
    CompletionStatus, DequeueModel, EventId, HandlerAddress, HandlerOperation, NotifyKind, Operation, Payload,
    PostStatus, QpInit, QpModify, QpState, ReceiveWr, RnicSettings, SendWr, SrqInit, TransmitResult,
};

use crate::verbs::peers::{Bench, PLAIN, Peers, Side, VA, llp_settings, open, shows, write};

fn unsignaled(wr: SendWr) -> SendWr {
    SendWr { signaled: false, ..wr }
}

#[test]
fn each_work_request_completes_as_specified() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    (10..12).for_each(|n| peers.b.post_receive(n, 0, 9));
    let list = vec![
        peers.a.send_of(1, 0, 1),
        unsignaled(write(&peers.a, 2, 0, 1, peers.b.remote(50))),
        unsignaled(peers.a.send_of(3, 0, 1)),
        write(&peers.a, 4, 0, 1, peers.b.remote(60)),
        unsignaled(peers.a.send_of(5, 1 << 40, 1)),
        unsignaled(peers.a.send_of(6, 0, 1)),
    ];
    peers.a.octets()[0] = b'v';
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    peers.run();
    let (done, received) = (peers.a.statuses(), peers.b.statuses());
    use CompletionStatus::{BaseAndBounds, Flushed, Success};
    shows! { proof:
        "VERBS-8.2.3-1" => done == [(1, Success), (4, Success), (5, BaseAndBounds), (6, Flushed)];
        "VERBS-8.2.4-7" => received == [(10, Success), (11, Success)] && done.iter().any(|done| done.0 == 5);
        "VERBS-4-2" => !done.iter().any(|done| done.0 == 2) && done.iter().any(|done| done.0 == 6);
        "VERBS-8.1.3.1-10" => {
            // The Send Queue has two entries. The first request is unsignaled, and the completion
            // of the second request frees both entries.
            let mut peers = Peers::with(PLAIN, 1460, |init| init.max_sq_wrs = 2);
            let list = vec![unsignaled(write(&peers.a, 1, 0, 1, peers.b.remote(0))), write(&peers.a, 2, 0, 1, peers.b.remote(0))];
            peers.a.rnic.post_send(peers.a.qp, list.clone()).unwrap();
            peers.run();
            peers.a.statuses() == [(2, Success)] && peers.a.rnic.post_send(peers.a.qp, list) == Ok(2)
        };
    }
    shows! { proof:
        "VERBS-8.1.3.1-1" => [None, Some(())].into_iter().all(|shared| {
            let mut bench = Bench::new();
            let srq = bench.side.rnic.create_srq(SrqInit { pd: bench.side.pd, max_wrs: 1, max_sges: 1, limit: 0 }).unwrap().0;
            let init = QpInit { srq: shared.map(|()| srq), ..QpInit::new(bench.side.pd, bench.side.cq, bench.side.cq) };
            bench.side.qp = bench.side.rnic.create_qp(init, None).unwrap().0;
            bench.side.llp = bench.side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
            bench.side.modify(&QpModify::to_rts(bench.side.llp)).unwrap();
            let wr = unsignaled(write(&bench.side, 1, 0, 1, bench.side.remote(0)));
            bench.side.post(wr);
            bench.sent().0.len() == 1 && bench.side.poll().is_empty()
        });
        "VERBS-8.2.4-2" => QpState::ALL.into_iter().all(|state| {
            let mut peers = Peers::with(PLAIN, 1460, |_| ());
            let wr = write(&peers.a, 7, 0, 1, peers.b.remote(0));
            peers.a.post(wr);
            peers.run();
            let _ = peers.a.to(if state == QpState::Idle { QpState::Error } else { state });
            if state == QpState::Idle {
                peers.a.to(QpState::Idle).unwrap();
            }
            peers.a.state() == state && peers.a.statuses() == [(7, Success)]
        });
        "VERBS-8.2.1-15" => {
            // An unprivileged Queue Pair can post work and request notifications.
            let mut bench = Bench::new();
            let qp = bench.side.rnic.create_qp(QpInit::new(bench.side.pd, bench.side.cq, bench.side.cq), None).unwrap().0;
            let wr = bench.side.send_of(1, 0, 1);
            !bench.side.rnic.query_qp(qp).unwrap().privileged
                && bench.side.rnic.post_send(qp, vec![wr]) == Ok(1)
                && bench.side.rnic.post_receive(qp, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]) == Ok(1)
                && bench.side.rnic.request_completion_notification(bench.side.cq, NotifyKind::NextCompletion) == Ok(())
        };
    }
}

/// Two peers whose CQs have handlers. The address of the handler is 1 at `a`, and 2 at `b`.
fn watched() -> Peers {
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    for (side, address) in [(&mut peers.a, 1), (&mut peers.b, 2)] {
        let handler = HandlerOperation::Register(HandlerAddress(address));
        let handler = side.rnic.set_completion_event_handler(handler).unwrap();
        side.cq = side.rnic.create_cq(64, Some(handler)).unwrap().0;
        side.rnic.destroy_qp(side.qp).unwrap();
        side.qp = side.rnic.create_qp(QpInit::new(side.pd, side.cq, side.cq), None).unwrap().0;
        side.llp = side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
        side.modify(&QpModify::to_rts(side.llp)).unwrap();
        (0..9).for_each(|n| side.post_receive(n, 0, 9));
    }
    peers
}

fn arm(side: &mut Side, kind: NotifyKind) {
    side.rnic.request_completion_notification(side.cq, kind).unwrap();
}

/// Lets `a` send one message. Returns how often the handler of `b` is called.
fn calls(peers: &mut Peers, solicited: bool) -> usize {
    let payload = Payload::Inline(Bytes::from_static(b"x"));
    peers.a.post(SendWr::new(1, Operation::Send { payload, solicited, invalidate: None }));
    peers.run();
    std::mem::take(&mut peers.b.calls).len()
}

#[test]
fn notifications() {
    let mut proof = Coverage::new(CoverageKind::Test);
    shows! { proof:
        "VERBS-4-3" => {
            let mut peers = watched();
            let unarmed = calls(&mut peers, true);
            arm(&mut peers.b, NotifyKind::NextSolicited);
            (unarmed, calls(&mut peers, false), calls(&mut peers, true)) == (0, 0, 1)
        };
        "VERBS-8.2.5-5" => {
            let fires = |kind, solicited| {
                let mut peers = watched();
                arm(&mut peers.b, kind);
                calls(&mut peers, solicited)
            };
            [fires(NotifyKind::NextSolicited, false), fires(NotifyKind::NextSolicited, true), fires(NotifyKind::NextCompletion, false)]
                == [0, 1, 1]
        };
        "VERBS-8.2.5-7" => {
            let mut peers = watched();
            arm(&mut peers.b, NotifyKind::NextCompletion);
            let inbound = calls(&mut peers, false);
            peers.a.calls.clear();
            arm(&mut peers.a, NotifyKind::NextCompletion);
            let wr = write(&peers.a, 2, 0, 1, peers.b.remote(0));
            peers.a.post(wr);
            peers.run();
            (inbound, peers.a.calls.len()) == (1, 1)
        };
        "VERBS-8.2.5-14" => {
            let mut peers = watched();
            arm(&mut peers.b, NotifyKind::NextCompletion);
            let first = calls(&mut peers, false);
            let second = calls(&mut peers, false);
            arm(&mut peers.b, NotifyKind::NextCompletion);
            (first, second, calls(&mut peers, false)) == (1, 0, 1)
        };
        // A Consumer polls until the CQ is empty, arms the CQ, and polls once more. A message
        // arrives before or after one of these steps. The Consumer finds the completion for this
        // message in a poll, or gets a notification.
        "VERBS-8.2.5-10" => (0..4).all(|moment| {
            let mut peers = watched();
            let mut found = 0;
            for step in 0..4 {
                if step == moment {
                    let payload = Payload::Inline(Bytes::from_static(b"x"));
                    peers.a.post(SendWr::new(1, Operation::Send { payload, solicited: false, invalidate: None }));
                    peers.run();
                }
                match step {
                    0 | 2 => found += peers.b.poll().len(),
                    1 => arm(&mut peers.b, NotifyKind::NextCompletion),
                    _ => {}
                }
            }
            found + peers.b.calls.len() >= 1
        });
        "VERBS-8.3.3-2" => {
            let mut bench = Bench::new();
            bench.side.rnic.set_async_event_handler(None).unwrap();
            bench.hand_in(&crate::verbs::peers::tagged(weft_core::wire::rdmap::Opcode::WRITE, 0x7700, 0, b"x"));
            bench.side.events.is_empty() && bench.side.state() == QpState::Terminate
        };
    }
}

#[test]
fn query_returns_all_attributes() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let memory = MemorySettings {
        mode: ListMode::Block,
        max_octets: 1 << 20,
        max_pds: 5,
        max_pbl_entries: 6,
        max_regions: 7,
        max_windows: 8,
        stag_seed: 9,
    };
    let settings = RnicSettings {
        memory,
        max_qps: 10,
        max_wrs: 300,
        max_srq_wrs: 12,
        max_srqs: 13,
        max_sges: 14,
        max_write_sges: 15,
        max_message: 16_000,
        max_cqs: 17,
        max_cqes: 18,
        max_handlers: 19,
        max_ird: 20,
        max_ord: 21,
        rnic_ird: 22,
        rnic_ord: 23,
        modifies_ird: false,
        raises_ord: false,
        resizes_queues: false,
        close_timeout: Duration::from_secs(24),
        extensions: false,
        dequeue: DequeueModel::Sequential,
    };
    let queried = open(settings).query().unwrap();
    let mut side = Side::new(|_| ());
    let init = QpInit {
        max_sq_wrs: 3,
        max_rq_wrs: 4,
        max_send_sges: 1,
        max_write_sges: 2,
        max_receive_sges: 3,
        ord: 5,
        ird: 6,
        inbound_read: false,
        inbound_write: false,
        bind: false,
        ..QpInit::new(side.pd, side.cq, side.cq)
    };
    let (qp, id, _) = side.rnic.create_qp(init, None).unwrap();
    let attributes = side.rnic.query_qp(qp).unwrap();
    side.rnic.modify_qp(Instant::ORIGIN, qp, &QpModify::to_rts(side.llp)).unwrap();
    let started = side.rnic.query_qp(qp).unwrap();
    shows! { proof:
        "VERBS-9.2.1.2-2" => queried.settings == settings;
        "VERBS-5.1.3-1" => (queried.settings.max_sges, queried.settings.max_cqes, queried.settings.rnic_ord, queried.settings.memory.max_windows) == (14, 18, 23, 8);
        "VERBS-6.1.2-1" => (attributes.init, attributes.id, attributes.state, attributes.privileged) == (init, id, QpState::Idle, false);
        "VERBS-9.2.5.2-2" => (started.state, started.llp, started.terminate) == (QpState::Rts, Some(side.llp), None)
            && !started.rq_limit_armed;
        "VERBS-9-4" => {
            let mut bench = Bench::with(|init| init.max_sq_wrs = 1);
            let wr = bench.side.send_of(1, 0, 1);
            bench.side.rnic.post_send(bench.side.qp, vec![wr.clone(), wr]).unwrap_err().status == PostStatus::TooManyWrs
        };
        "VERBS-9-5" => queried.srqs && queried.settings.memory.mode == ListMode::Block;
    }
}

/// Draft Figures 36 and 37: every status and event is in the figures, and the figures are complete.
#[test]
fn identifiers() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // The events are in the order of Figure 37.
    use EventId as E;
    let events = [
        E::LlpCloseComplete,
        E::TerminateReceived,
        E::LlpConnectionReset,
        E::LlpConnectionLost,
        E::LlpIntegritySegmentSize,
        E::LlpIntegrityCrc,
        E::LlpIntegrityBadFpdu,
        E::InvalidDdpVersion,
        E::InvalidRdmapVersion,
        E::UnexpectedOpcode,
        E::InvalidDdpQueue,
        E::ReadNotEnabled,
        E::WriteNotEnabled,
        E::ReadRequestFormat,
        E::MissingLast,
        E::ProtectionInvalidStag,
        E::ProtectionBaseAndBounds,
        E::ProtectionAccessRights,
        E::ProtectionInvalidPd,
        E::ProtectionWrap,
        E::BadClose,
        E::BadLlpClose,
        E::RqMsnRange,
        E::RqMsnGap,
        E::IrrqTooManyReads,
        E::IrrqMsnGap,
        E::IrrqMsnRange,
        E::IrrqInvalidStag,
        E::IrrqBaseAndBounds,
        E::IrrqAccessRights,
        E::IrrqInvalidPd,
        E::IrrqWrap,
        E::CqOverflow,
        E::CqOperation,
        E::SrqErrorOnQp,
        E::LocalQpCatastrophic,
        E::CqOverflowDetected,
        E::CqOperationError,
        E::SrqLimitReached,
        E::QpRqLimitReached,
        E::SrqCatastrophic,
        E::RnicCatastrophic,
    ];
    let of_figure_37 = |event: &EventId| events.contains(event);
    shows! { proof:
        "VERBS-9.5.3-1" => events.iter().collect::<HashSet<_>>().len() == 42;
        "VERBS-9.4.2-7" => {
            let mut bench = Bench::new();
            bench.hand_in(&[0x41; 10]);
            bench.side.event_ids().iter().all(of_figure_37)
        };
        "VERBS-9.3.2.1-4" => {
            let mut bench = Bench::new();
            let bad = bench.side.send_of(1, 1 << 40, 1);
            bench.side.post(bad);
            bench.side.post_receive(2, 0, 1);
            bench.sent();
            bench.side.statuses().iter().map(|done| done.1.to_string()).eq(["base and bounds violation", "flushed"])
        };
    }
}

/// The test destroys all objects in the order of section 5.1.1.2, and each step succeeds.
#[test]
fn destroys_everything_in_order() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    let window = Stag { index: peers.a.rnic.memory_mut().allocate_window(peers.a.pd).unwrap(), key: StagKey(1) };
    let access = RemoteAccess { read: true, write: true };
    let bind = Bind { window, region: peers.a.stag, address: VA, length: 9, va_based: true, access };
    peers.a.post(SendWr::new(1, Operation::Bind(bind)));
    peers.a.post(SendWr::new(2, Operation::InvalidateLocal(window)));
    peers.run();
    let drained = peers.a.poll().len();
    peers.a.to(QpState::Closing).unwrap();
    peers.run();
    let (idle, a) = (peers.a.state(), &mut peers.a);
    let steps = [
        a.rnic.memory_mut().deallocate_stag(window.index).is_ok(),
        a.rnic.memory_mut().deallocate_stag(a.stag.index).is_ok(),
        a.rnic.destroy_qp(a.qp).is_ok(),
        a.rnic.destroy_cq(a.cq).is_ok(),
        a.rnic.memory_mut().deallocate_pd(a.pd).is_ok(),
        a.rnic.memory_mut().free_buffer(a.buffer).is_ok(),
        a.rnic.close().is_ok(),
    ];
    shows! { proof:
        "VERBS-5.1.1.2-7" => drained == 2 && idle == QpState::Idle && steps == [true; 7];
        "VERBS-9.5.1-1" => {
            let mut side = Side::new(|_| ());
            let rnic = &mut side.rnic;
            let pd = rnic.memory_mut().allocate_pd().unwrap();
            let cq = rnic.create_cq(1, None).map(|cq| cq.0).unwrap();
            let srq = rnic.create_srq(SrqInit { pd, max_wrs: 1, max_sges: 1, limit: 0 }).map(|srq| srq.0).unwrap();
            let qp = rnic.create_qp(QpInit::new(pd, cq, cq), None).map(|qp| qp.0).unwrap();
            let window = rnic.memory_mut().allocate_window(pd).unwrap();
            let stag = rnic.memory_mut().allocate_stag(pd, 1, true).unwrap().stag.index;
            [rnic.query_cq(cq).is_ok(), rnic.query_srq(srq).is_ok(), rnic.query_qp(qp).is_ok(), rnic.memory().query_window(window).is_ok(),
                rnic.memory().query_region(stag).is_ok(), rnic.query().is_ok()] == [true; 6]
        };
    }
    // A close sends FIN. An abort resets the connection.
    let mut bench = Bench::new();
    bench.side.to(QpState::Closing).unwrap();
    let close = bench.sent().1;
    let mut bench = Bench::new();
    bench.side.to(QpState::Error).unwrap();
    shows! { proof:
        "VERBS-4-13" => (close, bench.sent().1) == (Some(TransmitResult::Fin), Some(TransmitResult::Reset));
        "VERBS-8.3.1-1" => {
            let mut side = Side::new(|_| ());
            let before = (side.rnic.query_qp(side.qp), side.rnic.query_cq(side.cq), side.rnic.memory().query_region(side.stag.index));
            let refusals = [
                side.to(QpState::Closing).is_err(),
                side.rnic.modify_cq(side.cq, u32::MAX).is_err(),
                side.rnic.destroy_cq(side.cq).is_err(),
                side.rnic.memory_mut().deallocate_pd(side.pd).is_err(),
            ];
            refusals == [true; 4]
                && before == (side.rnic.query_qp(side.qp), side.rnic.query_cq(side.cq), side.rnic.memory().query_region(side.stag.index))
        };
        "VERBS-6.3-13" => {
            let mut side = Side::new(|_| ());
            let init = SrqInit { pd: side.pd, max_wrs: 2, max_sges: 1, limit: 2 };
            let (srq, attributes) = side.rnic.create_srq(init).unwrap();
            let qp = side.rnic.create_qp(QpInit { srq: Some(srq), rq_limit: 1, ..QpInit::new(side.pd, side.cq, side.cq) }, None);
            let posted = side.rnic.post_srq(srq, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]);
            let modified = side.rnic.modify_srq(srq, weft_peer::verbs::SrqModify::default());
            side.rnic.query_srq(srq) == Ok(attributes) && posted == Ok(1) && modified == Ok(2)
                && qp.is_ok_and(|(qp, _, _)| side.rnic.destroy_qp(qp).is_ok()) && side.rnic.destroy_srq(srq).is_ok()
        };
    }
}
