//! Tests completions (draft-hilland-rddp-verbs, sections 5.3, 8.1.3.1 and 8.2). The tests check
//! which work gets a completion, when a queue entry is free again, notifications, and the overflow
//! of a CQ.

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::verbs::{
    CompletionStatus, EventId, HandlerAddress, HandlerOperation, NotifyKind, Operation, Payload, PostStatus, QpInit,
    QpModify, QpState, SendWr,
};

use crate::verbs::peers::{PLAIN, Peers, Side, llp_settings, number, shows};

fn write(side: &Side, wr_id: u64, peer: &Side) -> SendWr {
    let payload = Payload::Gather(vec![side.sge(0, 1)]);
    SendWr::new(wr_id, Operation::Write { payload, remote: peer.remote(0) })
}

fn send(wr_id: u64, solicited: bool) -> SendWr {
    let payload = Payload::Inline(Bytes::from_static(b"x"));
    SendWr::new(wr_id, Operation::Send { payload, solicited, invalidate: None })
}

#[test]
fn unsignaled_work_completes_silently() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |init| init.max_sq_wrs = 2);
    let unsignaled = |wr: SendWr| SendWr { signaled: false, ..wr };
    let (first, second) = (write(&peers.a, 1, &peers.b), write(&peers.a, 2, &peers.b));
    peers.a.post(unsignaled(first));
    peers.a.post(unsignaled(second));
    peers.run();
    let (third, fourth, fifth) =
        (write(&peers.a, 3, &peers.b), write(&peers.a, 4, &peers.b), write(&peers.a, 5, &peers.b));
    shows! { proof:
        "VERBS-5.3-6" => peers.a.poll().is_empty();
        "VERBS-8.2.4-3" => {
            // The second of three requests is unsignaled.
            let mut peers = Peers::with(PLAIN, 1460, |_| ());
            let list: Vec<_> = (1..4).map(|n| SendWr { signaled: n != 2, ..write(&peers.a, n, &peers.b) }).collect();
            peers.a.rnic.post_send(peers.a.qp, list).unwrap();
            peers.run();
            peers.a.statuses() == [(1, CompletionStatus::Success), (3, CompletionStatus::Success)]
        };
        "VERBS-8.2.1-12" => peers.a.rnic.post_send(peers.a.qp, vec![third, fourth]) == Ok(2);
    }
    peers.run();
    shows! { proof:
        "VERBS-8.2.1-9" => peers.a.rnic.post_send(peers.a.qp, vec![fifth.clone()]).unwrap_err().status == PostStatus::TooManyWrs;
        "VERBS-5.3-5" => peers.a.rnic.poll_cq(peers.a.cq).map(|done| done.wr_id) == Ok(3);
        "VERBS-8.2.1-11" => peers.a.rnic.post_send(peers.a.qp, vec![fifth]) == Ok(1);
        "VERBS-8.2.4-6" => peers.a.poll().len() == 1;
    }
}

#[test]
fn an_unsignaled_failure_generates_a_completion() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let bad = SendWr { signaled: false, ..peers.a.send_of(1, 1 << 30, 1) };
    let second = SendWr { signaled: false, ..write(&peers.a, 2, &peers.b) };
    peers.a.rnic.post_send(peers.a.qp, vec![bad, second]).unwrap();
    peers.run();
    let statuses = peers.a.statuses();
    shows! { proof:
        "VERBS-5.3-7" => statuses[0] == (1, CompletionStatus::BaseAndBounds);
        "VERBS-8.1.3.1-3" => statuses[1] == (2, CompletionStatus::Flushed);
        "VERBS-6.2.4-5" => statuses.iter().filter(|(_, status)| *status != CompletionStatus::Flushed).count() == 1;
        "VERBS-6.2.3-15" => peers.a.event_ids().is_empty();
    }
}

/// Two peers. The CQ of `b` has a handler.
fn with_handler() -> Peers {
    let mut peers = Peers::new();
    let b = &mut peers.b;
    let handler = b.rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(7))).unwrap();
    let cq = b.rnic.create_cq(16, Some(handler)).unwrap().0;
    b.rnic.destroy_qp(b.qp).unwrap();
    b.cq = cq;
    b.qp = b.rnic.create_qp(QpInit::new(b.pd, cq, cq), None).unwrap().0;
    let framing = weft_core::wire::mpa::Framing { markers: false, crc: true };
    b.llp = b.rnic.attach_stream(llp_settings(framing, 1460, true)).unwrap();
    b.modify(&QpModify::to_rts(b.llp)).unwrap();
    (0..10).for_each(|n| b.post_receive(n, 0, 10));
    peers
}

#[test]
fn a_notification_calls_the_handler_once() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = with_handler();
    let mut sent = 0;
    let mut go = |peers: &mut Peers, solicited| {
        sent += 1;
        peers.a.post(send(sent, solicited));
        peers.run();
        std::mem::take(&mut peers.b.calls).len()
    };
    let arm = |peers: &mut Peers, kind| peers.b.rnic.request_completion_notification(peers.b.cq, kind).unwrap();
    shows! { proof: "VERBS-9.4.1-5" => go(&mut peers, true) == 0; }
    arm(&mut peers, NotifyKind::NextCompletion);
    peers.b.settle();
    shows! { proof:
        "VERBS-8.2.5-13" => peers.b.calls.is_empty();
        "VERBS-8.2.5-4" => go(&mut peers, false) == 1;
        "VERBS-8.2.5-2" => go(&mut peers, false) == 0;
    }
    arm(&mut peers, NotifyKind::NextSolicited);
    shows! { proof:
        "VERBS-8.2.5-16" => go(&mut peers, false) == 0;
        "VERBS-8.2.5-6" => go(&mut peers, true) == 1;
    }
    arm(&mut peers, NotifyKind::NextCompletion);
    arm(&mut peers, NotifyKind::NextSolicited);
    shows! { proof:
        "VERBS-8.2.5-8" => go(&mut peers, false) == 1;
        "VERBS-8.2.5-9" => go(&mut peers, true) == 0;
    }
}

#[test]
fn an_error_is_solicited_and_a_cleared_handler_is_not_called() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = with_handler();
    peers.b.rnic.request_completion_notification(peers.b.cq, NotifyKind::NextSolicited).unwrap();
    peers.b.to(QpState::Error).unwrap();
    peers.b.settle();
    let cq = peers.b.cq;
    shows! { proof: "VERBS-8.2.5-11" => peers.b.calls == [cq]; }
    assert!(peers.b.poll().iter().all(|done| done.status == CompletionStatus::Flushed));
    let mut peers = with_handler();
    let handler = peers.b.rnic.query_cq(peers.b.cq).unwrap().handler.unwrap();
    peers.b.rnic.request_completion_notification(peers.b.cq, NotifyKind::NextCompletion).unwrap();
    peers.b.rnic.set_completion_event_handler(HandlerOperation::Clear(handler)).unwrap();
    peers.a.post(send(1, true));
    peers.run();
    shows! { proof:
        "VERBS-9.3.2.2-4" => peers.b.calls.is_empty();
        "VERBS-8.2.5-1" => peers.b.rnic.query_cq(peers.b.cq).unwrap().handler == Some(handler);
        "VERBS-8.2.5-12" => peers.b.poll().len() == 1;
    }
}

#[test]
fn an_overflow_ends_its_queue_pair_and_no_other() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.b.rnic.modify_cq(peers.b.cq, 1).unwrap();
    let other = peers.b.rnic.create_cq(9, None).unwrap().0;
    let bystander = peers.b.rnic.create_qp(QpInit::new(peers.b.pd, other, other), None).unwrap().0;
    (0..3).for_each(|n| peers.b.post_receive(n, 0, 10));
    peers.a.post(send(1, false));
    peers.a.post(send(2, false));
    peers.run();
    let events = peers.b.event_ids();
    let record = peers.b.rnic.query_qp(peers.b.qp).unwrap().terminate.unwrap();
    shows! { proof:
        "VERBS-9.5.3-41" => events.contains(&EventId::CqOverflowDetected);
        "VERBS-8.3.3-39" => events.contains(&EventId::CqOverflow) && number(record.terminate.error) == 0x0207;
        "VERBS-5.3.1-9" => peers.b.rnic.query_qp(bystander).unwrap().state == QpState::Idle;
        "VERBS-5.3.1-10" => peers.b.rnic.query_cq(other).unwrap().entries == 9;
    }
}

#[test]
fn without_a_handler_events_are_lost() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.b.rnic.set_async_event_handler(None).unwrap();
    peers.a.to(QpState::Terminate).unwrap();
    peers.run();
    peers.b.rnic.set_async_event_handler(Some(HandlerAddress(3))).unwrap();
    shows! { proof:
        "VERBS-8.3.3-6" => peers.b.event_ids().is_empty() && peers.b.state() == QpState::Error;
    }
}
