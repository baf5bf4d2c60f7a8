//! Tests the state Closing of a Queue Pair (draft-hilland-rddp-verbs, sections 6.2.2.2, 6.2.5 and
//! 6.6.2.1, Figures 8 and 11).

use core::time::Duration;

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_peer::Instant;
use weft_peer::verbs::{
    CompletionStatus, EventId, LateSegment, LlpHandle, PostStatus, QpModify, QpState, ReceiveWr, RnicSettings,
    TransmitResult,
};

use crate::verbs::peers::{Bench, PLAIN, Peers, VA, llp_settings, read, shows, tagged, untagged, write};

/// A side in Closing, with two receives that were posted before. The peer's FIN has not arrived.
fn closing() -> Bench {
    let mut bench = Bench::new();
    bench.side.post_receive(1, 0, 9);
    bench.side.post_receive(2, 0, 9);
    bench.side.to(QpState::Closing).unwrap();
    bench
}

fn fin(bench: &mut Bench) {
    bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
}

fn llp(bench: &Bench) -> Option<LlpHandle> {
    bench.side.rnic.query_qp(bench.side.qp).unwrap().llp
}

fn refused(bench: &mut Bench) -> [Option<PostStatus>; 2] {
    let send = bench.side.send_of(50, 0, 1);
    let receive = ReceiveWr { wr_id: 51, scatter: Vec::new() };
    [
        bench.side.rnic.post_send(bench.side.qp, vec![send]).err().map(|error| error.status),
        bench.side.rnic.post_receive(bench.side.qp, vec![receive]).err().map(|error| error.status),
    ]
}

#[test]
fn a_clean_close() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = closing();
    let (state, flushed) = (bench.side.state(), bench.side.statuses());
    let sent = bench.sent();
    let before = bench.side.event_ids();
    fin(&mut bench);
    shows! { proof:
        "VERBS-6.2.2.4-12" => state == QpState::Closing && sent == (Vec::new(), Some(TransmitResult::Fin));
        "VERBS-6.2.5-12" => sent.1 == Some(TransmitResult::Fin);
        "VERBS-6.2.5-9" => flushed == [(1, CompletionStatus::Flushed), (2, CompletionStatus::Flushed)] && before.is_empty();
        "VERBS-6.2.5-2" => bench.side.state() == QpState::Idle && llp(&bench).is_none();
        "VERBS-6.2.5-23" => llp(&bench).is_none() && bench.side.rnic.is_stream_over(bench.side.llp);
        "VERBS-6.2.5-34" => bench.side.event_ids() == [EventId::LlpCloseComplete];
        "VERBS-6.2.5-13" => bench.sent() == (Vec::new(), None);
        "VERBS-6.2.5-26" => {
            bench.side.llp = bench.side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
            bench.side.modify(&QpModify::to_rts(bench.side.llp)).unwrap();
            let wr = bench.side.send_of(7, 0, 1);
            bench.side.post(wr);
            bench.sent().0.len() == 1
        };
    }
}

#[test]
fn both_sides_of_a_normal_close() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.a.post_receive(1, 0, 9);
    peers.b.post_receive(2, 0, 9);
    let wr = write(&peers.a, 3, 0, 4, peers.b.remote(0));
    peers.a.post(wr);
    peers.run();
    assert_eq!(peers.a.poll().len(), 1);
    let result = peers.a.to(QpState::Closing);
    let closing = peers.a.state();
    peers.run();
    let (a_done, b_done) = (peers.a.statuses(), peers.b.statuses());
    let (a_events, b_events) = (peers.a.event_ids(), peers.b.event_ids());
    shows! { proof:
        "VERBS-6.6.2.1-2" => result == Ok(()) && peers.b.state() == QpState::Idle;
        "VERBS-6.2.2.2-10" => closing == QpState::Closing;
        "VERBS-6.6.2.1-4" => a_done == [(1, CompletionStatus::Flushed)] && b_done == [(2, CompletionStatus::Flushed)];
        "VERBS-6.6.2.1-5" => peers.a.rnic.is_stream_over(peers.a.llp) && peers.b.rnic.is_stream_over(peers.b.llp);
        "VERBS-6.6.2.1-6" => peers.a.state() == QpState::Idle && a_events == [EventId::LlpCloseComplete]
            && b_events == [EventId::LlpCloseComplete];
    }
}

#[test]
fn nothing_is_done_in_closing() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = closing();
    let first = refused(&mut bench);
    bench.sent();
    let second = refused(&mut bench);
    shows! { proof:
        "VERBS-6.2.5-8" => first == [Some(PostStatus::InvalidQpState); 2];
        "VERBS-6.2.5-7" => second.iter().all(Option::is_some);
        "VERBS-6.2.5-4" => bench.sent().0.is_empty() && bench.side.poll().iter().all(|done| done.wr_id < 50);
    }
    bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), VA, b"late"));
    shows! { proof:
        "VERBS-6.2.5-5" => bench.side.octets()[..4] == [0; 4];
        "VERBS-6.2.5-28" => bench.side.event_ids() == [EventId::BadClose];
    }
}

/// A link can be slow without being dead. So the close time-out counts from the last octets that
/// TCP accepted.
#[test]
fn the_close_time_out_restarts_while_octets_flow() {
    let mut bench = Bench::new();
    let send = bench.side.send_of(1, 0, 40);
    bench.side.rnic.post_send(bench.side.qp, vec![send]).unwrap();
    let once = |bench: &mut Bench, now: Instant| {
        let take = |slices: &[std::io::IoSlice<'_>]| slices.iter().map(|slice| slice.len()).sum::<usize>().min(10);
        bench.side.rnic.poll_transmit(now, bench.side.llp, take)
    };
    let mut now = Instant::ORIGIN;
    assert_eq!(once(&mut bench, now), TransmitResult::Octets(10));
    bench.side.to(QpState::Closing).unwrap();
    let timeout = RnicSettings::default().close_timeout;
    loop {
        now = now + (timeout - Duration::from_nanos(1));
        bench.side.rnic.handle_timeout(now, bench.side.llp);
        assert_eq!(bench.side.state(), QpState::Closing);
        let sent = once(&mut bench, now);
        if sent == TransmitResult::Fin {
            break;
        }
        assert!(matches!(sent, TransmitResult::Octets(_)), "{sent:?}");
        assert_eq!(bench.side.rnic.poll_timeout(bench.side.llp), Some(now + timeout));
    }
    // From now on, TCP accepts no octets.
    now = now + timeout;
    bench.side.rnic.handle_timeout(now, bench.side.llp);
    assert_eq!((bench.side.state(), bench.side.event_ids()), (QpState::Error, vec![EventId::LlpConnectionLost]));
}

#[test]
fn an_error_in_closing() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let after = |fault: fn(&mut Bench)| {
        let mut bench = closing();
        bench.sent();
        fault(&mut bench);
        bench
    };
    let segment: fn(&mut Bench) = |bench| bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, b"x"));
    let reset: fn(&mut Bench) = |bench| bench.side.rnic.handle_reset(Instant::ORIGIN, bench.side.llp);
    let silence: fn(&mut Bench) = |bench| {
        let deadline = bench.side.rnic.poll_timeout(bench.side.llp).unwrap();
        bench.side.rnic.handle_timeout(deadline, bench.side.llp);
    };
    shows! { proof:
        "VERBS-6.2.5-20" => [segment, reset, silence].into_iter().all(|fault| llp(&after(fault)).is_none());
        "VERBS-6.2.5-21" => [segment, reset, silence].into_iter().all(|fault| after(fault).side.state() == QpState::Error);
        "VERBS-6.2.5-22" => [segment, reset, silence].map(|fault| after(fault).side.event_ids())
            == [vec![EventId::BadClose], vec![EventId::LlpConnectionLost], vec![EventId::LlpConnectionLost]];
        "VERBS-6.2.5-14" => {
            // In two other cases, the close has the same result. One is unfinished work on the Send
            // Queue, the other is a Read of the peer.
            let mut left = Bench::new();
            let wr = write(&left.side, 1, 0, 1, left.side.remote(0));
            left.side.post(wr);
            left.side.to(QpState::Closing).unwrap();
            after(segment).side.event_ids() == [EventId::BadClose] && left.side.event_ids() == [EventId::BadClose]
                && reading().side.event_ids() == [EventId::BadClose]
        };
        "VERBS-6.2.5-29" => reading().side.state() == QpState::Error;
        "VERBS-6.6.2.1-9" => after(reset).side.state() == QpState::Error;
        "VERBS-6.6.2.1-3" => {
            let mut bench = Bench::new();
            let wr = read(&bench.side, 1, 0, 1, bench.side.remote(0));
            bench.side.post(wr);
            bench.sent();
            bench.side.to(QpState::Closing).unwrap();
            bench.side.state() == QpState::Error && bench.side.statuses() == [(1, CompletionStatus::Flushed)]
        };
        "VERBS-6.2.5-31" => {
            let bench = after(|bench| bench.hand_in(&untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0, 0, 0, 0])));
            bench.side.state() == QpState::Error && llp(&bench).is_none()
        };
    }
}

/// The Consumer closes while a Read of the peer waits for its answer.
fn reading() -> Bench {
    let mut bench = Bench::new();
    let mut payload = Vec::new();
    let src_stag = bench.side.stag.to_bits();
    ReadRequest { sink_stag: 1, sink_to: 0, rdmardsz: 9, src_stag, src_to: VA }.emit(&mut payload);
    bench.hand_in(&untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &payload));
    bench.side.to(QpState::Closing).unwrap();
    bench
}

/// The upper-layer protocol decides whether its segments can arrive after this side has closed.
/// With a setting, the Queue Pair drops these late segments and continues the close.
#[test]
fn a_late_segment_may_be_dropped() {
    let mut bench = Bench::with(|init| init.late = LateSegment::Drop);
    bench.side.post_receive(1, 0, 9);
    bench.side.to(QpState::Closing).unwrap();
    bench.sent();
    bench.side.poll();
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, b"late"));
    bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), VA, b"late"));
    assert_eq!((bench.side.state(), bench.side.event_ids()), (QpState::Closing, vec![]));
    assert!(bench.side.poll().is_empty() && bench.side.octets()[..4] == [0; 4]);
    assert_eq!(bench.sent(), (Vec::new(), None));
    fin(&mut bench);
    assert_eq!((bench.side.state(), bench.side.event_ids()), (QpState::Idle, vec![EventId::LlpCloseComplete]));
    // The Queue Pair does not drop a late Terminate, because a Terminate does not belong to the
    // upper-layer protocol.
    let mut bench = Bench::with(|init| init.late = LateSegment::Drop);
    bench.side.to(QpState::Closing).unwrap();
    bench.hand_in(&untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0, 0, 0, 0]));
    assert_eq!(bench.side.state(), QpState::Error);
}

#[test]
fn remaining_work_at_a_close() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let wr = write(&bench.side, 1, 0, 1, bench.side.remote(0));
    bench.side.post(wr);
    let result = bench.side.to(QpState::Closing);
    let sent = bench.sent();
    shows! { proof:
        "VERBS-6.2.2.2-7" => result == Ok(()) && bench.side.state() == QpState::Error
            && sent == (Vec::new(), Some(TransmitResult::Reset));
    }
}
