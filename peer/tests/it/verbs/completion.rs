//! Completions: which work gets one, when entries are free again, notification, overflow (draft
//! sections 5.3, 8.1.3.1, 8.2).

use bytes::Bytes;
use weft_core::coverage::{By, Proof};
use weft_peer::verbs::{
    CompletionStatus, EventId, HandlerAddress, HandlerOperation, NotifyKind, Operation, Payload, PostStatus, QpInit,
    QpModify, QpState, SendWr,
};

use crate::verbs::world::{PLAIN, Side, World, llp_settings, number, shows};

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
    let mut proof = Proof::new(By::Test);
    let mut world = World::with(PLAIN, 1460, |init| init.max_sq_wrs = 2);
    let unsignaled = |wr: SendWr| SendWr { signaled: false, ..wr };
    let (first, second) = (write(&world.a, 1, &world.b), write(&world.a, 2, &world.b));
    world.a.post(unsignaled(first));
    world.a.post(unsignaled(second));
    world.run();
    let (third, fourth, fifth) =
        (write(&world.a, 3, &world.b), write(&world.a, 4, &world.b), write(&world.a, 5, &world.b));
    shows! { proof:
        "VERBS-5.3-6" => world.a.poll().is_empty();
        "VERBS-8.2.4-3" => {
            // An unsignaled request between two signaled ones.
            let mut world = World::with(PLAIN, 1460, |_| ());
            let list: Vec<_> = (1..4).map(|n| SendWr { signaled: n != 2, ..write(&world.a, n, &world.b) }).collect();
            world.a.rnic.post_send(world.a.qp, list).unwrap();
            world.run();
            world.a.statuses() == [(1, CompletionStatus::Success), (3, CompletionStatus::Success)]
        };
        "VERBS-8.2.1-12" => world.a.rnic.post_send(world.a.qp, vec![third, fourth]) == Ok(2);
    }
    world.run();
    shows! { proof:
        "VERBS-8.2.1-9" => world.a.rnic.post_send(world.a.qp, vec![fifth.clone()]).unwrap_err().status == PostStatus::TooManyWrs;
        "VERBS-5.3-5" => world.a.rnic.poll_cq(world.a.cq).map(|done| done.wr_id) == Ok(3);
        "VERBS-8.2.1-11" => world.a.rnic.post_send(world.a.qp, vec![fifth]) == Ok(1);
        "VERBS-8.2.4-6" => world.a.poll().len() == 1;
    }
}

#[test]
fn an_unsignaled_failure_generates_a_completion() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let bad = SendWr { signaled: false, ..world.a.send_of(1, 1 << 30, 1) };
    let second = SendWr { signaled: false, ..write(&world.a, 2, &world.b) };
    world.a.rnic.post_send(world.a.qp, vec![bad, second]).unwrap();
    world.run();
    let statuses = world.a.statuses();
    shows! { proof:
        "VERBS-5.3-7" => statuses[0] == (1, CompletionStatus::BaseAndBounds);
        "VERBS-8.1.3.1-3" => statuses[1] == (2, CompletionStatus::Flushed);
        "VERBS-6.2.4-5" => statuses.iter().filter(|(_, status)| *status != CompletionStatus::Flushed).count() == 1;
        "VERBS-6.2.3-15" => world.a.event_ids().is_empty();
    }
}

/// A side whose CQ has a handler.
fn with_handler() -> World {
    let mut world = World::new();
    let b = &mut world.b;
    let handler = b.rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(7))).unwrap();
    let cq = b.rnic.create_cq(16, Some(handler)).unwrap().0;
    b.rnic.destroy_qp(b.qp).unwrap();
    b.cq = cq;
    b.qp = b.rnic.create_qp(QpInit::new(b.pd, cq, cq), None).unwrap().0;
    let framing = weft_core::wire::mpa::Framing { markers: false, crc: true };
    b.llp = b.rnic.attach_stream(llp_settings(framing, 1460, true)).unwrap();
    b.modify(&QpModify::to_rts(b.llp)).unwrap();
    (0..10).for_each(|n| b.post_receive(n, 0, 10));
    world
}

#[test]
fn a_notification_calls_the_handler_once() {
    let mut proof = Proof::new(By::Test);
    let mut world = with_handler();
    let mut sent = 0;
    let mut go = |world: &mut World, solicited| {
        sent += 1;
        world.a.post(send(sent, solicited));
        world.run();
        std::mem::take(&mut world.b.calls).len()
    };
    let arm = |world: &mut World, kind| world.b.rnic.request_completion_notification(world.b.cq, kind).unwrap();
    shows! { proof: "VERBS-9.4.1-5" => go(&mut world, true) == 0; }
    arm(&mut world, NotifyKind::NextCompletion);
    world.b.settle();
    shows! { proof:
        "VERBS-8.2.5-13" => world.b.calls.is_empty();
        "VERBS-8.2.5-4" => go(&mut world, false) == 1;
        "VERBS-8.2.5-2" => go(&mut world, false) == 0;
    }
    arm(&mut world, NotifyKind::NextSolicited);
    shows! { proof:
        "VERBS-8.2.5-16" => go(&mut world, false) == 0;
        "VERBS-8.2.5-6" => go(&mut world, true) == 1;
    }
    arm(&mut world, NotifyKind::NextCompletion);
    arm(&mut world, NotifyKind::NextSolicited);
    shows! { proof:
        "VERBS-8.2.5-8" => go(&mut world, false) == 1;
        "VERBS-8.2.5-9" => go(&mut world, true) == 0;
    }
}

#[test]
fn an_error_is_solicited_and_a_cleared_handler_is_not_called() {
    let mut proof = Proof::new(By::Test);
    let mut world = with_handler();
    world.b.rnic.request_completion_notification(world.b.cq, NotifyKind::NextSolicited).unwrap();
    world.b.to(QpState::Error).unwrap();
    world.b.settle();
    let cq = world.b.cq;
    shows! { proof: "VERBS-8.2.5-11" => world.b.calls == [cq]; }
    assert!(world.b.poll().iter().all(|done| done.status == CompletionStatus::Flushed));
    let mut world = with_handler();
    let handler = world.b.rnic.query_cq(world.b.cq).unwrap().handler.unwrap();
    world.b.rnic.request_completion_notification(world.b.cq, NotifyKind::NextCompletion).unwrap();
    world.b.rnic.set_completion_event_handler(HandlerOperation::Clear(handler)).unwrap();
    world.a.post(send(1, true));
    world.run();
    shows! { proof:
        "VERBS-9.3.2.2-4" => world.b.calls.is_empty();
        "VERBS-8.2.5-1" => world.b.rnic.query_cq(world.b.cq).unwrap().handler == Some(handler);
        "VERBS-8.2.5-12" => world.b.poll().len() == 1;
    }
}

#[test]
fn an_overflow_ends_its_queue_pair_and_no_other() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    world.b.rnic.modify_cq(world.b.cq, 1).unwrap();
    let other = world.b.rnic.create_cq(9, None).unwrap().0;
    let bystander = world.b.rnic.create_qp(QpInit::new(world.b.pd, other, other), None).unwrap().0;
    (0..3).for_each(|n| world.b.post_receive(n, 0, 10));
    world.a.post(send(1, false));
    world.a.post(send(2, false));
    world.run();
    let events = world.b.event_ids();
    let record = world.b.rnic.query_qp(world.b.qp).unwrap().terminate.unwrap();
    shows! { proof:
        "VERBS-9.5.3-41" => events.contains(&EventId::CqOverflowDetected);
        "VERBS-8.3.3-39" => events.contains(&EventId::CqOverflow) && number(record.terminate.error) == 0x0207;
        "VERBS-5.3.1-9" => world.b.rnic.query_qp(bystander).unwrap().state == QpState::Idle;
        "VERBS-5.3.1-10" => world.b.rnic.query_cq(other).unwrap().entries == 9;
    }
}

#[test]
fn without_a_handler_events_are_lost() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    world.b.rnic.set_async_event_handler(None).unwrap();
    world.a.to(QpState::Terminate).unwrap();
    world.run();
    world.b.rnic.set_async_event_handler(Some(HandlerAddress(3))).unwrap();
    shows! { proof:
        "VERBS-8.3.3-6" => world.b.event_ids().is_empty() && world.b.state() == QpState::Error;
    }
}
