//! Tests the handlers of completion events and Asynchronous Events (draft-hilland-rddp-verbs,
//! sections 5.1.5, 8.2.5 and 9.4, Figure 35).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::memory::QpId;
use weft_peer::verbs::{
    AsyncEvent, CqHandle, EventError, EventId, HandlerAddress, HandlerOperation, Notification, NotifyKind, QpInit,
    QpModify, QpState, ReceiveWr, Resource, RnicSettings, SrqInit,
};

use crate::verbs::peers::{Bench, Side, open, shows, tagged};

#[test]
fn completion_event_handlers() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = open(RnicSettings { max_handlers: 2, ..RnicSettings::default() });
    let mut set = |operation| rnic.set_completion_event_handler(operation);
    let first = set(HandlerOperation::Register(HandlerAddress(1))).unwrap();
    let second = set(HandlerOperation::Register(HandlerAddress(1))).unwrap();
    shows! { proof:
        "VERBS-9.4.1-6" => first != second;
        "VERBS-9.5.1.8-7" => set(HandlerOperation::Register(HandlerAddress(1))) == Err(EventError::InsufficientResources);
        "VERBS-9.4.1-8" => set(HandlerOperation::Change(first, HandlerAddress(9))) == Ok(first);
        "VERBS-9.4.1-7" => set(HandlerOperation::Clear(first)) == Ok(first);
        "VERBS-9.5.1.8-6" => set(HandlerOperation::Change(first, HandlerAddress(9))) == Err(EventError::InvalidHandler);
    }
    let mut closed = open(RnicSettings::default());
    closed.close().unwrap();
    shows! { proof:
        "VERBS-9.4.1-10" => {
            let new = HandlerOperation::Register(HandlerAddress(2));
            let results = [set(new), set(new), set(HandlerOperation::Clear(first)), closed.set_completion_event_handler(new)];
            results[0].is_ok() && results[1..].iter().map(|result| result.unwrap_err())
                .eq([EventError::InsufficientResources, EventError::InvalidHandler, EventError::InvalidRnicHandle])
        };
    }
}

/// Arms `cq`, and creates a Queue Pair that adds a completion to `cq`. Returns the handler that has
/// to be called.
fn complete(side: &mut Side, cq: CqHandle) -> Option<HandlerAddress> {
    side.rnic.request_completion_notification(cq, NotifyKind::NextCompletion).unwrap();
    let qp = side.rnic.create_qp(QpInit::new(side.pd, cq, cq), None).unwrap().0;
    side.rnic.post_receive(qp, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]).unwrap();
    side.rnic.modify_qp(weft_peer::Instant::ORIGIN, qp, &QpModify::to(QpState::Error)).unwrap();
    side.rnic.destroy_qp(qp).unwrap();
    match side.rnic.poll_notification()? {
        Notification::Completion { handler, cq: notified } if notified == cq => Some(handler),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_cqs_own_handler_is_called() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let mut set = |operation| side.rnic.set_completion_event_handler(operation).unwrap();
    let (one, two) =
        (set(HandlerOperation::Register(HandlerAddress(1))), set(HandlerOperation::Register(HandlerAddress(2))));
    let (first, _) = side.rnic.create_cq(9, Some(one)).unwrap();
    let (second, _) = side.rnic.create_cq(9, Some(two)).unwrap();
    shows! { proof:
        "VERBS-8.2.5-3" => (complete(&mut side, first), complete(&mut side, second))
            == (Some(HandlerAddress(1)), Some(HandlerAddress(2)));
        "VERBS-8.2.5-15" => {
            let mut set = |operation| side.rnic.set_completion_event_handler(operation).unwrap();
            set(HandlerOperation::Change(one, HandlerAddress(7)));
            set(HandlerOperation::Clear(two));
            (complete(&mut side, first), complete(&mut side, second)) == (Some(HandlerAddress(7)), None)
        };
        "VERBS-9.4.1-2" => {
            let three = side.rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(3))).unwrap();
            let (third, _) = side.rnic.create_cq(9, Some(three)).unwrap();
            complete(&mut side, third) == Some(HandlerAddress(3))
        };
    }
}

/// Causes an event of the Queue Pair of `bench`.
fn provoke(bench: &mut Bench) {
    bench.hand_in_quietly(&tagged(weft_core::wire::rdmap::Opcode::WRITE, 0x5500, 0, b"x"));
}

fn called(bench: &mut Bench) -> Vec<(HandlerAddress, AsyncEvent)> {
    std::iter::from_fn(|| bench.side.rnic.poll_notification())
        .filter_map(|notification| match notification {
            Notification::Asynchronous { handler, event } => Some((handler, event)),
            Notification::Completion { .. } => None,
        })
        .collect()
}

#[test]
fn the_asynchronous_event_handler() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let with = |addresses: &[Option<HandlerAddress>]| {
        let mut bench = Bench::new();
        addresses.iter().for_each(|address| bench.side.rnic.set_async_event_handler(*address).unwrap());
        provoke(&mut bench);
        let id = bench.side.id;
        (called(&mut bench), id, bench.side.qp)
    };
    let (a, b) = (Some(HandlerAddress(10)), Some(HandlerAddress(20)));
    shows! { proof:
        "VERBS-8.3.3-1" => with(&[a, b]).0.iter().map(|call| call.0).eq([HandlerAddress(20)]);
        "VERBS-8.3.3-5" => with(&[a, b, a]).0.len() == 1;
        "VERBS-9.4.2-3" => with(&[a, None]).0.is_empty();
        "VERBS-8.3.3-3" => with(&[a]).0.len() == 1;
        "VERBS-8.3.3-7" => {
            let (calls, id, qp) = with(&[a]);
            matches!(calls[0].1.resource, Resource::Qp(handle, value) if (handle, value) == (qp, id))
        };
        "VERBS-9.4.2-6" => matches!(with(&[a]).0[0].1.resource, Resource::Qp(_, QpId(_)));
        "VERBS-9.4.2-4" => with(&[a]).0[0].0 == HandlerAddress(10)
            && with(&[a]).0[0].1.event == EventId::ProtectionInvalidStag;
    }
    let mut closed = open(RnicSettings::default());
    closed.close().unwrap();
    shows! { proof:
        "VERBS-9.4.2-8" => [open(RnicSettings::default()).set_async_event_handler(a), closed.set_async_event_handler(a)]
            == [Ok(()), Err(EventError::InvalidRnicHandle)];
    }
}

#[test]
fn events_from_before_are_lost_and_none_after_an_error() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.side.rnic.set_async_event_handler(None).unwrap();
    provoke(&mut bench);
    bench.side.rnic.set_async_event_handler(Some(HandlerAddress(1))).unwrap();
    shows! { proof: "VERBS-5.1.1.1-7" => called(&mut bench).is_empty(); }
    let mut bench = Bench::new();
    let handler = bench.side.rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(1))).unwrap();
    bench.side.rnic.set_completion_event_handler(HandlerOperation::Clear(handler)).unwrap();
    shows! { proof:
        "VERBS-8.3.1-8" => {
            bench.side.rnic.set_completion_event_handler(HandlerOperation::Clear(handler)).unwrap_err();
            provoke(&mut bench);
            called(&mut bench).len() == 1
        };
        "VERBS-9.4.2-2" => bench.side.rnic.set_async_event_handler(None) == Ok(()) && called(&mut bench).is_empty();
    }
}

/// An event of an S-RQ identifies the S-RQ, and an event of a Queue Pair identifies the Queue Pair.
#[test]
fn resources_of_events() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let (srq, _) = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 2, max_sges: 1, limit: 2 }).unwrap();
    let init = QpInit { srq: Some(srq), ..QpInit::new(side.pd, side.cq, side.cq) };
    let (qp, id, _) = side.rnic.create_qp(init, None).unwrap();
    side.rnic.modify_qp(weft_peer::Instant::ORIGIN, qp, &QpModify::to_rts(side.llp)).unwrap();
    side.rnic.post_srq(srq, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]).unwrap();
    let mut bench = Bench { side };
    for msn in 1..3 {
        let send = crate::verbs::peers::untagged(weft_core::wire::rdmap::Opcode::SEND, 0, msn, 0, true, b"");
        bench.hand_in_quietly(&send);
    }
    let calls: Vec<AsyncEvent> = called(&mut bench).into_iter().map(|call| call.1).collect();
    shows! { proof:
        "VERBS-6.3-21" => calls[0].resource == Resource::Srq(srq);
        "VERBS-9.5.3-43" => calls[0] == AsyncEvent { resource: Resource::Srq(srq), event: EventId::SrqLimitReached };
        "VERBS-9.5.3-2" => calls[1].resource == Resource::Qp(qp, id);
        "VERBS-9.4.2-5" => calls.iter().map(|call| matches!(call.resource, Resource::Srq(_))).eq([true, false]);
    }
}
