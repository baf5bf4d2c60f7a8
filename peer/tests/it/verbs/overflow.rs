//! Tests messages for which no receive is posted (draft-hilland-rddp-verbs, sections 8.1.2.1 and
//! 13.2).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::Instant;
use weft_peer::verbs::{
    CompletionStatus, EventId, QpInit, QpModify, QpState, ReceiveOverflow, ReceiveWr, SrqInit, TransmitResult,
};

use crate::verbs::peers::{Bench, PLAIN, Peers, fpdu, shows, untagged, write};

fn patient() -> Bench {
    Bench::with(|init| init.overflow = ReceiveOverflow::Wait)
}

fn send(msn: u32, payload: &[u8]) -> Vec<u8> {
    untagged(Opcode::SEND, 0, msn, 0, true, payload)
}

#[test]
fn an_overflow_ends_the_stream_by_default() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut plain = Bench::new();
    plain.hand_in(&send(1, b"x"));
    let code = plain.code();
    let mut shared = Bench::new();
    let srq = shared.side.rnic.create_srq(SrqInit { pd: shared.side.pd, max_wrs: 2, max_sges: 1, limit: 0 }).unwrap().0;
    shared.side.rnic.destroy_qp(shared.side.qp).unwrap();
    let init = QpInit { srq: Some(srq), ..QpInit::new(shared.side.pd, shared.side.cq, shared.side.cq) };
    shared.side.qp = shared.side.rnic.create_qp(init, None).unwrap().0;
    shared.side.llp = shared.side.rnic.attach_stream(crate::verbs::peers::llp_settings(PLAIN, 1460, true)).unwrap();
    shared.side.modify(&QpModify::to_rts(shared.side.llp)).unwrap();
    shared.hand_in(&send(1, b"x"));
    shows! { proof:
        "VERBS-13.2-3" => code == Some(0x1202) && plain.side.event_ids() == [EventId::RqMsnRange];
        "VERBS-6.3.5-11" => shared.code() == Some(0x1202) && shared.side.event_ids() == [EventId::RqMsnRange];
        "VERBS-8.1.2.1-2" => plain.side.state() == QpState::Terminate;
    }
}

#[test]
fn a_message_waits_for_its_receive() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = patient();
    bench.hand_in(&send(1, b"first"));
    let waits = (bench.side.state(), bench.side.rnic.wants_octets(bench.side.llp));
    // These octets were already in flight. They arrive in two pieces.
    let second = fpdu(&send(2, b"second"));
    bench.side.rnic.handle_octets(Instant::ORIGIN, bench.side.llp, &second[..7]);
    bench.side.rnic.handle_octets(Instant::ORIGIN, bench.side.llp, &second[7..]);
    let quiet = (bench.sent(), bench.side.event_ids().len(), bench.side.poll().len());
    bench.side.post_receive(1, 0, 10);
    bench.sent();
    let one = (bench.side.statuses(), bench.side.rnic.wants_octets(bench.side.llp));
    bench.side.post_receive(2, 100, 10);
    bench.sent();
    let two = (bench.side.statuses(), bench.side.rnic.wants_octets(bench.side.llp));
    shows! { proof:
        "VERBS-13.2-2" => waits == (QpState::Rts, false) && two.1;
        "VERBS-13.2-1" => one == (vec![(1, CompletionStatus::Success)], false)
            && two.0 == [(2, CompletionStatus::Success)]
            && bench.side.octets()[..5] == *b"first" && bench.side.octets()[100..106] == *b"second";
    }
    assert_eq!(quiet, ((Vec::new(), None), 0, 0));
}

/// Nothing overtakes a message that waits for a receive. A later Write is not placed, and the side
/// does not react to the peer's close.
#[test]
fn later_messages_wait_too() {
    let mut peers = Peers::with(PLAIN, 1460, |init| init.overflow = ReceiveOverflow::Wait);
    peers.a.octets()[..4].copy_from_slice(b"data");
    let list = vec![peers.a.send_of(1, 0, 4), write(&peers.a, 2, 0, 4, peers.b.remote(500))];
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    peers.run();
    peers.a.to(QpState::Closing).unwrap();
    peers.run();
    assert_eq!((peers.b.state(), peers.b.octets()[500]), (QpState::Rts, 0));
    peers.b.post_receive(7, 0, 4);
    peers.run();
    assert_eq!(peers.b.statuses(), [(7, CompletionStatus::Success)]);
    assert_eq!(peers.b.octets()[500..504], *b"data");
    assert_eq!(peers.b.event_ids(), [EventId::LlpCloseComplete]);
}

/// A Queue Pair that leaves RTS discards the waiting message. If the peer sends too many octets
/// while a message waits, the connection is reset.
#[test]
fn waiting_has_bounds() {
    let mut bench = patient();
    bench.hand_in(&send(1, b"first"));
    bench.side.to(QpState::Terminate).unwrap();
    assert!(matches!(bench.sent().1, Some(TransmitResult::Fin)));
    let mut bench = patient();
    bench.hand_in(&send(1, b"first"));
    for _ in 0..5 {
        bench.side.rnic.handle_octets(Instant::ORIGIN, bench.side.llp, &[0; 1 << 16]);
    }
    assert_eq!(bench.sent().1, Some(TransmitResult::Reset));
    // A receive that is posted to a Shared Receive Queue (S-RQ) also ends the wait.
    let mut bench = patient();
    let srq = bench.side.rnic.create_srq(SrqInit { pd: bench.side.pd, max_wrs: 2, max_sges: 1, limit: 0 }).unwrap().0;
    let init = QpInit {
        srq: Some(srq),
        overflow: ReceiveOverflow::Wait,
        ..QpInit::new(bench.side.pd, bench.side.cq, bench.side.cq)
    };
    bench.side.qp = bench.side.rnic.create_qp(init, None).unwrap().0;
    bench.side.llp = bench.side.rnic.attach_stream(crate::verbs::peers::llp_settings(PLAIN, 1460, true)).unwrap();
    bench.side.modify(&QpModify::to_rts(bench.side.llp)).unwrap();
    bench.hand_in(&send(1, b""));
    bench.side.rnic.post_srq(srq, vec![ReceiveWr { wr_id: 3, scatter: Vec::new() }]).unwrap();
    bench.sent();
    assert_eq!(bench.side.statuses(), [(3, CompletionStatus::Success)]);
}
