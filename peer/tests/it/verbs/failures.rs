//! Tests failures of a CQ, of a Queue Pair, of an S-RQ, and of the complete RNIC
//! (draft-hilland-rddp-verbs, Local Errors of Figures 24 and 25).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::Instant;
use weft_peer::verbs::{AsyncEvent, EventId, Failure, QpInit, QpModify, QpState, Resource};

use crate::verbs::peers::{Bench, PLAIN, Peers, Side, llp_settings, number, shows, ulpdus, untagged, write};

#[test]
fn a_cq_fails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let (cq, qp, id) = (bench.side.cq, bench.side.qp, bench.side.id);
    assert!(bench.side.rnic.fail(Instant::ORIGIN, Failure::Cq(cq)));
    bench.side.settle();
    let events = bench.side.events.clone();
    let quiet = (bench.sent(), bench.side.state());
    let wr = write(&bench.side, 1, 0, 1, bench.side.remote(0));
    bench.side.post(wr);
    let code = bench.code();
    bench.side.settle();
    shows! { proof:
        "VERBS-8.3.3-45" => events == [AsyncEvent { resource: Resource::Cq(cq), event: EventId::CqOperationError }]
            && quiet == ((Vec::new(), None), QpState::Rts);
        "VERBS-9.5.3-42" => events[0].event == EventId::CqOperationError && events.len() == 1;
        "VERBS-8.3.3-38" => code == Some(0x0207) && bench.side.state() == QpState::Terminate;
        "VERBS-9.5.3-37" => bench.side.events[1] == AsyncEvent { resource: Resource::Qp(qp, id), event: EventId::CqOperation };
    }
    let mut bench = Bench::new();
    bench.side.post_receive(1, 0, 9);
    bench.side.rnic.fail(Instant::ORIGIN, Failure::Cq(bench.side.cq));
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, b"x"));
    shows! { proof:
        "VERBS-8.3.3-40" => bench.code() == Some(0x0207)
            && bench.side.event_ids() == [EventId::CqOperationError, EventId::CqOperation];
    }
}

#[test]
fn a_queue_pair_fails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let (qp, id) = (bench.side.qp, bench.side.id);
    assert!(bench.side.rnic.fail(Instant::ORIGIN, Failure::Qp(qp)));
    bench.side.settle();
    let events = bench.side.events.clone();
    let code = bench.code();
    bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
    shows! { proof:
        "VERBS-9.5.3-39" => events == [AsyncEvent { resource: Resource::Qp(qp, id), event: EventId::LocalQpCatastrophic }];
        "VERBS-8.3.3-42" => code == Some(0x0207) && bench.side.state() == QpState::Error;
    }
    assert!(!bench.side.rnic.fail(Instant::ORIGIN, Failure::Qp(qp)), "the Queue Pair is not in RTS any more");
}

#[test]
fn the_rnic_fails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let side = &mut bench.side;
    let qp = side.rnic.create_qp(QpInit::new(side.pd, side.cq, side.cq), None).unwrap().0;
    let llp = side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
    side.rnic.modify_qp(Instant::ORIGIN, qp, &QpModify::to_rts(llp)).unwrap();
    assert!(side.rnic.fail(Instant::ORIGIN, Failure::Rnic));
    side.settle();
    let events = side.events.clone();
    let first = bench.code();
    bench.side.llp = llp;
    let second = bench.code();
    shows! { proof:
        "VERBS-8.3.3-47" => (first, second) == (Some(0x0208), Some(0x0208));
        "VERBS-9.5.3-45" => events == [AsyncEvent { resource: Resource::Rnic, event: EventId::RnicCatastrophic }];
    }
    let mut closed = Side::new(|_| ());
    closed.rnic.close().unwrap();
    assert!(!closed.rnic.fail(Instant::ORIGIN, Failure::Rnic));
}

#[test]
fn an_srq_fails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let side = &mut bench.side;
    let srq =
        side.rnic.create_srq(weft_peer::verbs::SrqInit { pd: side.pd, max_wrs: 2, max_sges: 1, limit: 0 }).unwrap().0;
    let init = QpInit { srq: Some(srq), ..QpInit::new(side.pd, side.cq, side.cq) };
    let (qp, id, _) = side.rnic.create_qp(init, None).unwrap();
    side.llp = side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
    side.rnic.modify_qp(Instant::ORIGIN, qp, &QpModify::to_rts(side.llp)).unwrap();
    side.rnic.fail(Instant::ORIGIN, Failure::Srq(srq));
    side.settle();
    let first = side.events.clone();
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, b"x"));
    let error = AsyncEvent { resource: Resource::Qp(qp, id), event: EventId::SrqErrorOnQp };
    shows! { proof:
        "VERBS-8.3.3-46" => first[0].resource == Resource::Srq(srq) && first.len() == 1;
        "VERBS-9.5.3-44" => first[0].event == EventId::SrqCatastrophic;
        "VERBS-9.5.3-38" => bench.side.events[1..] == [error];
        "VERBS-8.3.3-41" => bench.code() == Some(0x0207);
        // An event of Figure 25 carries the resource that the figure lists (here the S-RQ), and not
        // a Queue Pair.
        "VERBS-8.3.3-4" => !matches!(first[0].resource, Resource::Qp(..));
    }
}

/// A CQ has one entry, and the completions of a Send Queue overflow it.
#[test]
fn a_send_queues_completions_overflow() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    peers.a.rnic.modify_cq(peers.a.cq, 1).unwrap();
    for n in 0..3 {
        let wr = write(&peers.a, n, 0, 1, peers.b.remote(0));
        peers.a.post(wr);
    }
    peers.run();
    let record = peers.a.rnic.query_qp(peers.a.qp).unwrap().terminate.unwrap();
    let opcodes: Vec<u8> = ulpdus(&peers.from_a).iter().map(|ulpdu| ulpdu[1] & 0xf).collect();
    let of_qp = |side: &Side| side.events.iter().filter(|raised| raised.event == EventId::CqOverflow).count();
    let done = peers.a.poll();
    shows! { proof:
        "VERBS-8.3.3-37" => number(record.terminate.error) == 0x0207 && opcodes.last() == Some(&7);
        "VERBS-9.5.3-36" => of_qp(&peers.a) == 1 && peers.a.events.contains(&AsyncEvent {
            resource: Resource::Qp(peers.a.qp, peers.a.id), event: EventId::CqOverflow });
        // After the overflow, the side sends at most the message that is in progress, and then the
        // Terminate.
        "VERBS-6.4-15" => opcodes == [0, 0, 7];
        "VERBS-6.4-27" => record.terminate.ddp_header.is_none() && record.local;
        "VERBS-5.3.1-8" => peers.a.rnic.query().unwrap().detects_cq_overflow
            && peers.a.events.iter().any(|raised| raised.event == EventId::CqOverflowDetected);
        "VERBS-9.5.3-3" => peers.a.events.iter().any(|raised| raised.resource == Resource::Cq(peers.a.cq));
        "VERBS-5.3.1-7" => done.len() == 1 && done[0].wr_id == 0;
    }
}
