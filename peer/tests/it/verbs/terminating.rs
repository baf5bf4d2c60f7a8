//! Tests the states Terminate and Error of a Queue Pair (draft-hilland-rddp-verbs, sections
//! 6.2.2.3, 6.2.2.4, 6.2.3, 6.2.4 and 6.6.2.2 to 6.6.2.5, Figures 8 to 10).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::Instant;
use weft_peer::memory::{Access, Bind, RemoteAccess, Stag, StagKey};
use weft_peer::verbs::{
    CompletionStatus, EventId, Operation, PostStatus, QpError, QpModify, QpState, ReceiveWr, SendWr, TransmitResult,
};

use crate::verbs::peers::{
    Bench, PLAIN, Peers, Side, VA, llp_settings, number, read, register, shows, tagged, untagged, write,
};

fn bad_send(side: &Side, wr_id: u64) -> SendWr {
    side.send_of(wr_id, 1 << 40, 4)
}

fn terminate() -> Vec<u8> {
    untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0x12, 2, 0, 0])
}

fn lets_a_send(bench: &mut Bench) -> Option<PostStatus> {
    let wr = bench.side.send_of(50, 0, 1);
    bench.side.rnic.post_send(bench.side.qp, vec![wr]).err().map(|error| error.status)
}

fn lets_a_receive(bench: &mut Bench) -> Option<PostStatus> {
    let list = vec![ReceiveWr { wr_id: 51, scatter: Vec::new() }];
    bench.side.rnic.post_receive(bench.side.qp, list).err().map(|error| error.status)
}

#[test]
fn the_consumer_terminates() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.side.post_receive(1, 0, 9);
    let result = bench.side.to(QpState::Terminate);
    let state = bench.side.state();
    let (sent, end) = bench.sent();
    shows! { proof:
        "VERBS-6.2.2.3-1" => result == Ok(()) && sent.len() == 1 && end == Some(TransmitResult::Fin);
        "VERBS-6.2.2.4-15" => state == QpState::Terminate && sent[0][1] & 0xf == 7;
        "VERBS-6.2.3-5" => end == Some(TransmitResult::Fin);
        "VERBS-6.2.3-4" => sent[0][18..20] == [0, 0];
        "VERBS-6.6.2.2-1" => sent.last().is_some_and(|ulpdu| ulpdu[1] & 0xf == 7 && ulpdu[18..20] == [0, 0]);
        "VERBS-6.6.2.2-2" => bench.sent() == (Vec::new(), None);
    }
    bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
    shows! { proof:
        "VERBS-6.2.3-2" => bench.side.state() == QpState::Error;
        "VERBS-6.6.2.2-4" => bench.side.event_ids().is_empty();
    }
}

#[test]
fn terminate_stops_the_work_requests() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.side.post_receive(1, 0, 9);
    let wr = write(&bench.side, 2, 0, 4, bench.side.remote(0));
    bench.side.post(wr);
    bench.side.to(QpState::Terminate).unwrap();
    let (sent, _) = bench.sent();
    let refused = [lets_a_send(&mut bench), lets_a_receive(&mut bench)];
    bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), VA, b"late"));
    shows! { proof:
        "VERBS-6.2.3-3" => bench.side.octets()[..4] == [0; 4] && sent.iter().all(|ulpdu| ulpdu[1] & 0xf == 7);
        "VERBS-6.2.3-10" => (0..3).all(|_| lets_a_send(&mut bench).is_some() && lets_a_receive(&mut bench).is_some());
        "VERBS-6.2.3-11" => refused == [Some(PostStatus::InvalidQpState); 2];
        "VERBS-6.2.3-25" => lets_a_receive(&mut bench) == Some(PostStatus::InvalidQpState)
            && bench.side.state() == QpState::Terminate;
        "VERBS-6.2.3-12" => bench.side.rnic.poll_cq(bench.side.cq).is_ok_and(|done| done.status == CompletionStatus::Flushed);
        "VERBS-6.2.3-27" => bench.side.statuses() == [(1, CompletionStatus::Flushed)] && sent.len() == 1;
    }
}

#[test]
fn terminate_ends_in_error_without_a_stream() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let ended = |end: fn(&mut Bench)| {
        let mut bench = Bench::new();
        bench.side.to(QpState::Terminate).unwrap();
        bench.sent();
        end(&mut bench);
        bench
    };
    let llp = |bench: &Bench| bench.side.rnic.query_qp(bench.side.qp).unwrap().llp;
    let closed = || ended(|bench| bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp));
    let reset = || ended(|bench| bench.side.rnic.handle_reset(Instant::ORIGIN, bench.side.llp));
    let late = || {
        ended(|bench| {
            let deadline = bench.side.rnic.poll_timeout(bench.side.llp).unwrap();
            bench.side.rnic.handle_timeout(deadline, bench.side.llp);
        })
    };
    shows! { proof:
        "VERBS-6.2.3-1" => llp(&closed()).is_none();
        "VERBS-6.2.3-8" => llp(&reset()).is_none();
        "VERBS-6.2.3-7" => late().sent() == (Vec::new(), Some(TransmitResult::Reset));
        "VERBS-6.6.2.5-5" => late().side.state() == QpState::Error;
        "VERBS-6.6.2.2-3" => late().side.event_ids() == [EventId::BadClose];
        "VERBS-6.2.4-1" => llp(&late()).is_none();
        "VERBS-6.2.3-18" => {
            let mut bench = closed();
            bench.side.to(QpState::Idle).unwrap();
            bench.side.llp = bench.side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
            bench.side.modify(&QpModify::to_rts(bench.side.llp)).unwrap();
            let wr = bench.side.send_of(7, 0, 1);
            bench.side.post(wr);
            bench.sent().0[0][10..14] == [0, 0, 0, 1]
        };
        "VERBS-6.2.3-6" => {
            let bench = closed();
            bench.side.rnic.is_stream_over(bench.side.llp)
        };
    }
}

#[test]
fn a_received_terminate() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.side.post_receive(1, 0, 9);
    bench.hand_in(&terminate());
    let reported = (bench.side.state(), bench.side.event_ids());
    let (sent, end) = bench.sent();
    shows! { proof:
        "VERBS-6.2.2.3-11" => reported.0 == QpState::Terminate;
        "VERBS-6.6.2.4-2" => (sent.len(), end) == (0, Some(TransmitResult::Fin));
    }
    let mut open = Bench::new();
    open.hand_in(&terminate());
    open.sent();
    let deadline = open.side.rnic.poll_timeout(open.side.llp).unwrap();
    open.side.rnic.handle_timeout(deadline, open.side.llp);
    shows! { proof:
        "VERBS-6.6.2-1" => {
            // There are five ways to end a stream. The Consumer closes it, terminates it or aborts
            // it, the peer terminates it, or an error occurs on this side.
            let ways: [fn(&mut Bench); 5] = [
                |bench| bench.side.to(QpState::Closing).unwrap(),
                |bench| bench.side.to(QpState::Terminate).unwrap(),
                |bench| bench.side.to(QpState::Error).unwrap(),
                |bench| bench.hand_in(&terminate()),
                |bench| {
                    let wr = bad_send(&bench.side, 1);
                    bench.side.post(wr);
                },
            ];
            ways.map(|way| {
                let mut bench = Bench::new();
                way(&mut bench);
                let (sent, end) = bench.sent();
                (sent.len(), end)
            }) == [(0, Some(TransmitResult::Fin)), (1, Some(TransmitResult::Fin)), (0, Some(TransmitResult::Reset)),
                (0, Some(TransmitResult::Fin)), (1, Some(TransmitResult::Fin))]
        };
        // In the state Error, Query QP returns the Terminate, and whether this side sent or
        // received it.
        "VERBS-6.2.4-8" => {
            let received = open.side.rnic.query_qp(open.side.qp).unwrap().terminate.unwrap();
            let mut own = Bench::new();
            own.hand_in(&tagged(Opcode::WRITE, 0x7700, 0, b"x"));
            own.side.rnic.handle_reset(Instant::ORIGIN, own.side.llp);
            let sent = own.side.rnic.query_qp(own.side.qp).unwrap();
            sent.state == QpState::Error && (received.local, number(received.terminate.error)) == (false, 0x1202)
                && sent.terminate.is_some_and(|record| record.local && number(record.terminate.error) == 0x1100)
        };
        "VERBS-9.2.5.2-15" => {
            let mut own = Bench::new();
            own.side.to(QpState::Terminate).unwrap();
            let of = |bench: &Bench| bench.side.rnic.query_qp(bench.side.qp).unwrap().terminate.unwrap().local;
            of(&own) && !of(&open)
        };
        "VERBS-6.1.1-18" => open.side.rnic.query_qp(open.side.qp).unwrap().terminate.is_some();
    }
}

#[test]
fn a_local_error() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let list = vec![bench.side.send_of(1, 0, 1), bad_send(&bench.side, 2), bench.side.send_of(3, 0, 1)];
    bench.side.rnic.post_send(bench.side.qp, list).unwrap();
    let (sent, end) = bench.sent();
    let statuses = bench.side.statuses();
    let opcodes: Vec<u8> = sent.iter().map(|ulpdu| ulpdu[1] & 0xf).collect();
    shows! { proof:
        "VERBS-6.2.2.3-4" => statuses[1] == (2, CompletionStatus::BaseAndBounds);
        "VERBS-6.2.2.4-22" => bench.side.state() == QpState::Terminate && sent[1][18..20] == [0, 0];
        "VERBS-6.6.2.5-1" => (opcodes.as_slice(), end) == (&[3, 7][..], Some(TransmitResult::Fin))
            && bench.side.event_ids().is_empty();
        "VERBS-8.1.3.1-9" => statuses[0] == (1, CompletionStatus::Success);
        "VERBS-6.4-11" => opcodes.iter().filter(|opcode| **opcode == 3).count() == 1;
        "VERBS-6.4-12" => opcodes.last() == Some(&7);
    }
    // A Read is outstanding when a later Send fails.
    let mut bench = Bench::new();
    let list =
        vec![read(&bench.side, 1, 0, 4, bench.side.remote(0)), bad_send(&bench.side, 2), bench.side.send_of(3, 0, 1)];
    bench.side.rnic.post_send(bench.side.qp, list).unwrap();
    bench.sent();
    use CompletionStatus::{BaseAndBounds, Flushed};
    shows! { proof: "VERBS-6.2.4-13" => bench.side.statuses() == [(1, Flushed), (2, BaseAndBounds), (3, Flushed)]; }
}

#[test]
fn the_consumer_aborts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let wr = write(&bench.side, 1, 0, 4, bench.side.remote(0));
    bench.side.post(wr);
    let result = bench.side.to(QpState::Error);
    let queried = bench.side.rnic.query_qp(bench.side.qp).unwrap();
    bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), VA, b"late"));
    let sent = bench.sent();
    shows! { proof:
        "VERBS-6.2.2.4-1" => result == Ok(()) && sent == (Vec::new(), Some(TransmitResult::Reset));
        "VERBS-6.2.2.4-3" => bench.side.octets()[..4] == [0; 4];
        "VERBS-6.2.2.4-4" => sent.1 == Some(TransmitResult::Reset);
        "VERBS-6.2.2.4-5" => queried.llp.is_none();
        "VERBS-6.2.2.4-7" => queried.state == QpState::Error && bench.side.state() == QpState::Error;
        "VERBS-6.4-24" => sent.0.is_empty() && queried.terminate.is_none();
        "VERBS-6.2.2.4-14" => bench.side.rnic.is_stream_over(bench.side.llp);
        "VERBS-6.2.4-19" => lets_a_send(&mut bench) == Some(PostStatus::InvalidQpState) && bench.side.state() == QpState::Error;
    }
}

#[test]
fn the_stream_fails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let wr = write(&bench.side, 1, 0, 4, bench.side.remote(0));
    bench.side.post(wr);
    bench.side.rnic.handle_reset(Instant::ORIGIN, bench.side.llp);
    shows! { proof:
        "VERBS-6.2.2.4-6" => bench.side.event_ids() == [EventId::LlpConnectionReset];
        "VERBS-6.4-30" => bench.sent().0.is_empty();
        "VERBS-6.6.2.5-2" => bench.side.state() == QpState::Error
            && bench.side.rnic.query_qp(bench.side.qp).unwrap().terminate.is_none();
        "VERBS-6.2-6" => {
            let faults: [fn(&mut Bench); 3] = [
                |bench| bench.hand_in(&tagged(Opcode::WRITE, 0x7700, 0, b"x")),
                |bench| bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, b"no receive")),
                |bench| {
                    let wr = bad_send(&bench.side, 1);
                    bench.side.post(wr);
                },
            ];
            faults.into_iter().all(|fault| {
                let mut bench = Bench::new();
                fault(&mut bench);
                bench.sent();
                bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
                bench.side.state() == QpState::Error
            })
        };
    }
}

#[test]
fn flushing() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let sq_cq = bench.side.rnic.create_cq(99, None).unwrap().0;
    bench.side.rnic.destroy_qp(bench.side.qp).unwrap();
    let init = weft_peer::verbs::QpInit {
        sq_cq,
        ..weft_peer::verbs::QpInit::new(bench.side.pd, bench.side.cq, bench.side.cq)
    };
    bench.side.qp = bench.side.rnic.create_qp(init, None).unwrap().0;
    bench.side.llp = bench.side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
    let mut bench = Bench { side: bench.side.start() };
    (0..3).for_each(|n| bench.side.post_receive(10 + n, 0, 9));
    let list = vec![bad_send(&bench.side, 1), bench.side.send_of(2, 0, 1), bench.side.send_of(3, 0, 1)];
    bench.side.rnic.post_send(bench.side.qp, list).unwrap();
    bench.sent();
    let of_sq: Vec<_> =
        std::iter::from_fn(|| bench.side.rnic.poll_cq(sq_cq).ok()).map(|done| (done.wr_id, done.status)).collect();
    let of_rq = bench.side.statuses();
    use CompletionStatus::{BaseAndBounds, Flushed};
    shows! { proof:
        "VERBS-6.2.4-3" => of_sq.len() == 3 && of_rq.len() == 3;
        "VERBS-6.2.4-4" => of_sq == [(1, BaseAndBounds), (2, Flushed), (3, Flushed)]
            && of_rq == [(10, Flushed), (11, Flushed), (12, Flushed)];
        "VERBS-8.3.2-1" => of_sq.iter().any(|done| done.1 == BaseAndBounds) && of_rq.iter().all(|done| done.1 == Flushed);
    }
    bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
    let back = bench.side.to(QpState::Idle);
    shows! { proof:
        "VERBS-6.2.4-11" => back == Ok(()) && bench.side.state() == QpState::Idle;
        "VERBS-6.6.2.2-5" => bench.side.poll().is_empty();
        "VERBS-8.2.4-8" => {
            let mut bench = Bench::new();
            let wr = SendWr { signaled: false, ..bench.side.send_of(9, 0, 1) };
            bench.side.post(wr);
            bench.side.to(QpState::Error).unwrap();
            bench.side.to(QpState::Idle).unwrap();
            bench.side.statuses() == [(9, Flushed)]
        };
        "VERBS-6.6.2.3-3" => {
            let mut bench = Bench::new();
            bench.side.post_receive(1, 0, 9);
            bench.side.to(QpState::Error).unwrap();
            bench.side.poll();
            bench.side.to(QpState::Idle).unwrap();
            bench.side.llp = bench.side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
            bench.side.modify(&QpModify::to_rts(bench.side.llp)) == Ok(())
        };
    }
}

#[test]
fn earlier_completions_keep_their_status() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let wr = write(&peers.a, 1, 0, 4, peers.b.remote(0));
    peers.a.post(wr);
    peers.run();
    peers.a.to(QpState::Error).unwrap();
    peers.a.to(QpState::Idle).unwrap();
    shows! { proof: "VERBS-6.2.1.3-3" => peers.a.statuses() == [(1, CompletionStatus::Success)]; }
}

/// Regions and windows survive an error of a Queue Pair.
#[test]
fn memory_after_an_error() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let window = Stag { index: bench.side.rnic.memory_mut().allocate_window(bench.side.pd).unwrap(), key: StagKey(1) };
    let access = RemoteAccess { read: true, write: true };
    let region = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
    let bind = Bind { window, region, address: VA, length: 9, va_based: true, access };
    bench.side.post(SendWr::new(1, Operation::Bind(bind)));
    bench.sent();
    bench.side.to(QpState::Error).unwrap();
    let before = bench.side.rnic.destroy_qp(bench.side.qp);
    shows! { proof:
        "VERBS-6.2.4-9" => before == Err(QpError::WindowsStillBound)
            && bench.side.rnic.memory_mut().deallocate_stag(window.index).is_ok()
            && bench.side.rnic.destroy_qp(bench.side.qp) == Ok(());
        "VERBS-6.2.4-15" => {
            let init = weft_peer::verbs::QpInit::new(bench.side.pd, bench.side.cq, bench.side.cq);
            bench.side.qp = bench.side.rnic.create_qp(init, None).unwrap().0;
            bench.side.llp = bench.side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
            bench.side.modify(&QpModify::to_rts(bench.side.llp)).unwrap();
            bench.hand_in(&tagged(Opcode::WRITE, region.to_bits(), VA, b"still"));
            bench.side.octets()[..5] == *b"still"
        };
    }
}

/// Checks the rows of inbound messages in draft Figure 8, and the codes of Figures 23 and 24 on the
/// wire.
#[test]
fn inbound_errors_end_in_terminate() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let of = |ulpdu: fn(&mut Bench) -> Vec<u8>| {
        let mut bench = Bench::new();
        let ulpdu = ulpdu(&mut bench);
        bench.hand_in(&ulpdu);
        (bench.side.state(), bench.code())
    };
    let too_long: fn(&mut Bench) -> Vec<u8> = |bench| {
        bench.side.post_receive(1, 0, 1);
        untagged(Opcode::SEND, 0, 1, 0, true, b"xy")
    };
    shows! { proof:
        "VERBS-6.2.2.4-20" => of(|_| tagged(Opcode::WRITE, 0x7700, 0, b"x")) == (QpState::Terminate, Some(0x1100))
            && of(|_| untagged(Opcode::READ_REQUEST, 1, 2, 0, true, &[0; 28])) == (QpState::Terminate, Some(0x1203));
        "VERBS-6.2.2.4-21" => of(too_long) == (QpState::Terminate, Some(0x1205));
        "VERBS-8.1.2.1-5" => of(too_long).0 == QpState::Terminate && of(|bench| {
            bench.side.post_receive(1, 0, 2);
            untagged(Opcode::SEND, 0, 1, 0, true, b"xy")
        }) == (QpState::Rts, None);
        "VERBS-8.3.2-2" => [too_long, |bench: &mut Bench| {
            let sge = weft_peer::verbs::Sge { stag: 0x7700, ..bench.side.sge(0, 9) };
            bench.side.rnic.post_receive(bench.side.qp, vec![ReceiveWr { wr_id: 1, scatter: vec![sge] }]).unwrap();
            untagged(Opcode::SEND, 0, 1, 0, true, b"xy")
        }].map(of) == [(QpState::Terminate, Some(0x1205)), (QpState::Terminate, Some(0x0000))];
        "VERBS-8.3-1" => {
            let mut bench = Bench::new();
            let ulpdu = too_long(&mut bench);
            bench.hand_in(&ulpdu);
            bench.side.event_ids().is_empty() && bench.side.poll().len() == 1
        };
        "VERBS-5-3" => {
            let mut bench = Bench::new();
            bench.side.post_receive(1, 0, 9);
            bench.hand_in(&tagged(Opcode::WRITE, 0x7700, 0, b"x"));
            bench.side.event_ids() == [EventId::ProtectionInvalidStag]
                && bench.side.statuses() == [(1, CompletionStatus::Flushed)]
        };
    }
}
