//! Tests the life cycle of a Queue Pair: start, close, Terminate and abort
//! (draft-hilland-rddp-verbs, sections 6.2 and 6.6).

use std::time::Duration;

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::Instant;
use weft_peer::verbs::{
    CompletionStatus, EventId, PostStatus, QpError, QpModify, QpState, ReceiveWr, RnicSettings, TransmitResult,
};

use crate::verbs::peers::{Bench, PLAIN, Peers, Side, llp_settings, number, shows, ulpdus, untagged};

#[test]
fn work_waits_in_idle() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    shows! { proof: "VERBS-6.1.1-15" => side.state() == QpState::Idle; }
    let wr = side.send_of(1, 0, 4);
    side.post(wr);
    side.post_receive(2, 0, 4);
    shows! { proof:
        "VERBS-6.2.1-3" => side.transmit(Instant::ORIGIN, 99).0.is_empty();
        "VERBS-6.2.1-4" => side.poll().is_empty();
        "VERBS-6.2.1.3-5" => side.state() == QpState::Idle;
        "VERBS-6.1.1-13" => side.rnic.query_qp(side.qp).unwrap().llp.is_none();
    }
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    let (sent, _) = side.transmit(Instant::ORIGIN, usize::MAX);
    shows! { proof:
        "VERBS-6.2.2-7" => ulpdus(&sent).len() == 1;
        "VERBS-6.2.1.2-16" => side.state() == QpState::Rts;
        "VERBS-6.2.1.2-15" => ulpdus(&sent)[0][1] == 0x43;
    }
}

#[test]
fn idle_to_error_and_back_clears_the_queues() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let wr = side.send_of(1, 0, 4);
    side.post(weft_peer::verbs::SendWr { signaled: false, ..wr });
    side.post_receive(2, 0, 4);
    side.to(QpState::Error).unwrap();
    let receive = side.rnic.post_receive(side.qp, vec![ReceiveWr { wr_id: 3, scatter: Vec::new() }]);
    shows! { proof:
        "VERBS-6.2.1.3-1" => side.state() == QpState::Error;
        "VERBS-6.2.1.3-4" => side.transmit(Instant::ORIGIN, 99) == (Vec::new(), None);
        "VERBS-6.2.1.3-2" => side.statuses() == [(1, CompletionStatus::Flushed), (2, CompletionStatus::Flushed)];
        "VERBS-6.2.4-6" => receive.unwrap_err().status == PostStatus::InvalidQpState;
        "VERBS-6.2.4-12" => [QpState::Rts, QpState::Closing, QpState::Terminate, QpState::Error].into_iter()
            .all(|state| side.to(state) == Err(QpError::InvalidStateChange));
        "VERBS-6.2.4-17" => side.to(QpState::Idle) == Ok(());
        "VERBS-6.2.1-7" => side.poll().is_empty();
        "VERBS-6.2.1-2" => {
            let wr = side.send_of(1, 0, 4);
            side.rnic.post_send(side.qp, vec![wr]) == Ok(1)
        };
    }
}

#[test]
fn the_stream_message_goes_first_and_raw() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let wr = side.send_of(1, 0, 0);
    side.post(wr);
    let message = Some(Bytes::from_static(b"last streaming message"));
    side.modify(&QpModify { stream_message: message, ..QpModify::to_rts(side.llp) }).unwrap();
    let (sent, _) = side.transmit(Instant::ORIGIN, 5);
    shows! { proof:
        "VERBS-6.2.1.2-10" => sent.starts_with(b"last streaming message");
        "VERBS-6.2.1.2-6" => ulpdus(&sent[22..]).len() == 1;
        "VERBS-6.6.1.1-3" => ulpdus(&sent[22..])[0][1] == 0x43;
    }
}

/// The MPA Responder is the side that the draft calls active. It sends nothing until the first FPDU
/// has arrived.
#[test]
fn octets_from_before_rts_are_kept() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::with(RnicSettings::default(), llp_settings(PLAIN, 1460, false), |_| ());
    side.post_receive(1, 0, 10);
    let wr = side.send_of(2, 0, 0);
    side.post(wr);
    let fpdu = crate::verbs::peers::fpdu(&untagged(Opcode::SEND, 0, 1, 0, true, b"early"));
    side.rnic.handle_octets(Instant::ORIGIN, side.llp, &fpdu[..9]);
    assert!(side.poll().is_empty());
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    assert_eq!(side.transmit(Instant::ORIGIN, 99).0, []);
    side.rnic.handle_octets(Instant::ORIGIN, side.llp, &fpdu[9..]);
    let received = side.poll();
    shows! { proof:
        "VERBS-13.1-6" => received.len() == 1 && received[0].octets == 5;
        "VERBS-6.2.1.2-7" => side.octets()[..5] == *b"early";
        "MPA-7.1.2-17" => !side.transmit(Instant::ORIGIN, 99).0.is_empty();
    }
}

#[test]
fn a_normal_close_ends_in_idle_on_both_sides() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.a.post_receive(1, 0, 4);
    peers.b.post_receive(2, 0, 4);
    peers.a.to(QpState::Closing).unwrap();
    let posted = peers.a.rnic.post_receive(peers.a.qp, vec![ReceiveWr { wr_id: 3, scatter: Vec::new() }]);
    shows! { proof:
        "VERBS-6.2.2.2-5" => peers.a.state() == QpState::Closing;
        "VERBS-6.2.2.2-6" => peers.a.event_ids().is_empty();
        "VERBS-6.2.5-39" => peers.a.to(QpState::Error) == Err(QpError::InvalidStateChange);
        "VERBS-6.2.5-38" => posted.unwrap_err().status == PostStatus::InvalidQpState;
        "VERBS-6.2.5-10" => peers.a.statuses() == [(1, CompletionStatus::Flushed)];
    }
    peers.run();
    shows! { proof:
        "VERBS-6.2.5-24" => peers.a.event_ids() == [EventId::LlpCloseComplete];
        "VERBS-6.2.5-25" => peers.a.state() == QpState::Idle;
        "VERBS-6.6.2.1-8" => peers.b.event_ids() == [EventId::LlpCloseComplete] && peers.b.state() == QpState::Idle;
    }
    assert_eq!(peers.b.statuses(), [(2, CompletionStatus::Flushed)]);
    assert_eq!(peers.a.rnic.query_qp(peers.a.qp).unwrap().llp, None);
    assert!(peers.a.rnic.is_stream_over(peers.a.llp) && peers.b.rnic.is_stream_over(peers.b.llp));
}

#[test]
fn a_queue_pair_is_used_again_on_another_stream() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.b.post_receive(1, 0, 4);
    let wr = peers.a.send_of(1, 0, 4);
    peers.a.post(wr);
    peers.run();
    peers.a.to(QpState::Closing).unwrap();
    peers.run();
    for side in [&mut peers.a, &mut peers.b] {
        side.poll();
        side.llp = side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
        side.modify(&QpModify::to_rts(side.llp)).unwrap();
    }
    peers.b.post_receive(5, 0, 4);
    let wr = peers.a.send_of(6, 0, 4);
    peers.a.post(wr);
    peers.from_a.clear();
    peers.run();
    shows! { proof:
        "VERBS-6.6.2.1-7" => peers.b.statuses() == [(5, CompletionStatus::Success)];
        "VERBS-6.2.1.2-9" => ulpdus(&peers.from_a)[0][10..14] == [0, 0, 0, 1];
    }
}

#[test]
fn closing_with_work_left_is_a_bad_close() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let wr = peers.a.send_of(1, 0, 4);
    peers.a.post(wr);
    peers.a.to(QpState::Closing).unwrap();
    shows! { proof:
        "VERBS-6.2.2.2-8" => peers.a.state() == QpState::Error;
        "VERBS-6.2.5-27" => peers.a.event_ids() == [EventId::BadClose];
        "VERBS-6.2.5-35" => peers.a.transmit(peers.now, 99) == (Vec::new(), Some(TransmitResult::Reset));
    }
    assert_eq!(peers.a.statuses(), [(1, CompletionStatus::Flushed)]);
    let mut bench = Bench::new();
    bench.side.to(QpState::Closing).unwrap();
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, b""));
    shows! { proof:
        "VERBS-6.2.5-37" => bench.side.event_ids() == [EventId::BadClose] && bench.side.state() == QpState::Error;
        "VERBS-6.2.5-19" => bench.sent() == (Vec::new(), Some(TransmitResult::Reset));
    }
}

#[test]
fn closing_ends_in_time() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.a.to(QpState::Closing).unwrap();
    peers.a.transmit(peers.now, 99);
    peers.pass(Duration::from_secs(9));
    assert_eq!(peers.a.state(), QpState::Closing);
    peers.pass(Duration::from_secs(2));
    shows! { proof:
        "VERBS-6.2.5-16" => peers.a.state() == QpState::Error;
        "VERBS-6.2.5-36" => peers.a.event_ids() == [EventId::LlpConnectionLost];
    }
}

#[test]
fn termination_by_the_consumer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.a.post_receive(1, 0, 4);
    peers.b.post_receive(2, 0, 4);
    peers.a.to(QpState::Terminate).unwrap();
    shows! { proof:
        "VERBS-6.2.2.3-10" => peers.a.state() == QpState::Terminate;
        "VERBS-6.2.3-26" => QpState::ALL.into_iter().all(|state| peers.a.to(state) == Err(QpError::InvalidStateChange));
    }
    peers.run();
    let record = |side: &Side| side.rnic.query_qp(side.qp).unwrap().terminate.unwrap();
    shows! { proof:
        "VERBS-6.2.2.3-8" => number(record(&peers.a).terminate.error) == 0 && record(&peers.a).local;
        "VERBS-6.2.2.3-9" => !record(&peers.b).local && number(record(&peers.b).terminate.error) == 0;
        "VERBS-6.2.3-13" => peers.a.event_ids().is_empty();
        "VERBS-6.2.2.3-6" => peers.b.event_ids() == [EventId::TerminateReceived];
        "VERBS-6.2.3-17" => peers.a.state() == QpState::Error;
        "VERBS-6.6.2.4-3" => peers.b.state() == QpState::Error && peers.b.statuses() == [(2, CompletionStatus::Flushed)];
    }
}

#[test]
fn a_terminate_is_not_answered() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.hand_in(&untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0x12, 2, 0, 0]));
    shows! { proof:
        "VERBS-6.2.2.3-5" => bench.side.state() == QpState::Terminate;
        "VERBS-6.2.2.3-7" => bench.sent() == (Vec::new(), Some(TransmitResult::Fin));
        "VERBS-6.6.2.4-1" => bench.side.event_ids() == [EventId::TerminateReceived];
        "VERBS-6.2.3-20" => bench.side.rnic.query_qp(bench.side.qp).unwrap().terminate.is_some();
    }
    bench.hand_in(&untagged(Opcode::SEND, 0, 9, 0, true, b""));
    shows! { proof: "VERBS-6.2.3-24" => bench.side.state() == QpState::Terminate && bench.side.event_ids().is_empty(); }
    bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
    shows! { proof: "VERBS-6.2.3-22" => bench.side.state() == QpState::Error; }
}

#[test]
fn an_abort_resets_without_a_terminate() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let wr = peers.a.send_of(1, 0, 4);
    peers.a.post(wr);
    peers.a.post_receive(2, 0, 4);
    peers.a.to(QpState::Error).unwrap();
    shows! { proof:
        "VERBS-6.6.2.3-1" => peers.a.transmit(peers.now, 99) == (Vec::new(), Some(TransmitResult::Reset));
        "VERBS-6.6.2.3-2" => peers.a.statuses() == [(1, CompletionStatus::Flushed), (2, CompletionStatus::Flushed)];
        "VERBS-6.2.2.4-2" => peers.a.rnic.query_qp(peers.a.qp).unwrap().llp.is_none();
    }
    peers.b.rnic.handle_reset(peers.now, peers.b.llp);
    shows! { proof:
        "VERBS-8.3.3-10" => peers.b.event_ids() == [EventId::LlpConnectionReset];
        "VERBS-6.2.2.4-8" => peers.b.state() == QpState::Error;
        "VERBS-6.2.2.4-18" => peers.b.rnic.query_qp(peers.b.qp).unwrap().llp.is_none();
    }
}

#[test]
fn reports_a_peer_that_closes_too_early() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let read = weft_peer::verbs::Operation::Read {
        local: bench.side.sge(0, 4),
        remote: weft_peer::verbs::RemoteAddress { stag: 1, tagged_offset: 0 },
        invalidate_local: false,
    };
    bench.side.post(weft_peer::verbs::SendWr::new(1, read));
    bench.sent();
    bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
    shows! { proof:
        "VERBS-6.2.2.2-3" => bench.side.state() == QpState::Terminate;
        "VERBS-8.3.3-26" => bench.code() == Some(0x0207) && bench.side.event_ids() == [EventId::BadLlpClose];
    }
    assert_eq!(bench.side.state(), QpState::Error, "both halves are closed");
    assert_eq!(bench.side.statuses(), [(1, CompletionStatus::Flushed)]);
}

#[test]
fn terminate_reports_a_lost_connection_without_earlier_event() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.side.to(QpState::Terminate).unwrap();
    bench.side.rnic.handle_reset(Instant::ORIGIN, bench.side.llp);
    shows! { proof:
        "VERBS-6.2.3-14" => bench.side.event_ids() == [EventId::BadClose];
        "VERBS-6.2.3-23" => bench.side.state() == QpState::Error;
    }
    let mut bench = Bench::new();
    let wr = bench.side.send_of(1, 1 << 40, 4);
    bench.side.post(wr);
    bench.sent();
    assert!(bench.side.event_ids().is_empty());
    let deadline = bench.side.rnic.poll_timeout(bench.side.llp).unwrap();
    bench.side.rnic.handle_timeout(deadline, bench.side.llp);
    shows! { proof:
        "VERBS-6.2.3-16" => bench.side.event_ids() == [EventId::BadClose];
        "VERBS-6.2.3-9" => bench.side.state() == QpState::Error;
    }
}

/// RFC 6581: each kind of ready-to-receive message allows the Responder to send. The message uses
/// no receive of the Queue Pair.
#[test]
fn queue_pairs_do_not_receive_ready_to_receive_messages() {
    use weft_peer::mpa::{Rtr, RtrKinds};
    use weft_peer::verbs::{LlpSettings, Operation, SendWr};
    for kind in Rtr::ALL {
        let settings =
            |speaks_first| LlpSettings { rtr: RtrKinds::only(kind), ..llp_settings(PLAIN, 1460, speaks_first) };
        let side = |first| Side::with(RnicSettings::default(), settings(first), |init| init.ird = 1).start();
        let (a, b) = (side(true), side(false));
        let mut peers = Peers { now: Instant::ORIGIN, a, b, segment: usize::MAX, take: usize::MAX, from_a: Vec::new() };
        let wr = peers.b.send_of(1, 0, 4);
        peers.b.post(wr);
        peers.a.post_receive(2, 0, 4);
        peers.run();
        assert_eq!(peers.a.statuses(), [(2, CompletionStatus::Success)], "{kind:?}");
        assert_eq!(peers.b.statuses(), [(1, CompletionStatus::Success)], "{kind:?}");
        peers.b.post_receive(3, 0, 4);
        let wr = peers.a.send_of(4, 0, 4);
        peers.a.post(wr);
        let read = Operation::Read { local: peers.a.sge(0, 4), remote: peers.b.remote(0), invalidate_local: false };
        peers.a.post(SendWr::new(5, read));
        peers.run();
        assert_eq!(peers.a.statuses(), [(4, CompletionStatus::Success), (5, CompletionStatus::Success)], "{kind:?}");
        assert_eq!(peers.b.statuses(), [(3, CompletionStatus::Success)], "{kind:?}");
        assert_eq!(peers.a.event_ids(), []);
    }
}
