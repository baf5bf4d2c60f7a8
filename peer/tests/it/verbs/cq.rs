//! Tests the verbs for Completion Queues, CQs (draft-hilland-rddp-verbs, sections 5.3 and 9.2.3,
//! Figure 30).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::verbs::{
    CompletedOperation, CompletionStatus, CqAttributes, CqError, EventError, HandlerAddress, HandlerOperation,
    NotifyKind, QpError, QpInit, QpModify, QpState, RnicSettings,
};

use crate::verbs::peers::{PLAIN, Peers, Side, llp_settings, open, shows, write};

#[test]
fn create_cq_and_its_errors() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = open(RnicSettings { max_cqs: 1, max_cqes: 10, ..RnicSettings::default() });
    let handler = rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(5))).unwrap();
    let gone = rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(5))).unwrap();
    rnic.set_completion_event_handler(HandlerOperation::Clear(gone)).unwrap();
    shows! { proof:
        "VERBS-9.5.1.3-3" => rnic.create_cq(11, None) == Err(CqError::TooManyEntries);
        "VERBS-9.5.1.3-17" => rnic.create_cq(1, Some(gone)) == Err(CqError::InvalidHandler);
    }
    let (cq, entries) = rnic.create_cq(4, Some(handler)).unwrap();
    shows! { proof:
        "VERBS-9.2.3.1-4" => entries >= 4;
        "VERBS-5.3.2-1" => rnic.query_cq(cq).unwrap().entries == entries;
        "VERBS-5.3.2-2" => rnic.query_cq(cq).unwrap().handler == Some(handler);
        "VERBS-9.5.1.3-1" => rnic.create_cq(1, None) == Err(CqError::InsufficientResources);
        "VERBS-9.5.1.3-16" => rnic.poll_cq(cq) == Err(CqError::Empty);
        "VERBS-9.5.1.3-4" => rnic.modify_cq(cq, 11) == Err(CqError::TooManyEntries);
    }
}

#[test]
fn a_handle_is_valid_only_on_its_rnic() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = open(RnicSettings::default());
    let foreign = open(RnicSettings::default()).create_cq(1, None).unwrap().0;
    let (cq, _) = rnic.create_cq(4, None).unwrap();
    shows! { proof:
        "VERBS-5.1-1" => rnic.poll_cq(foreign) == Err(CqError::InvalidCqHandle);
        "VERBS-9.5.1.3-11" => rnic.query_cq(foreign) == Err(CqError::InvalidCqHandle);
        "VERBS-9.5.1.3-12" => rnic.modify_cq(foreign, 1) == Err(CqError::InvalidCqHandle);
        "VERBS-9.5.1.3-13" => rnic.destroy_cq(foreign) == Err(CqError::InvalidCqHandle);
        "VERBS-9.5.1.8-4" => rnic.request_completion_notification(foreign, NotifyKind::NextCompletion)
            == Err(EventError::InvalidCqHandle);
        "VERBS-5.3.4-1" => rnic.destroy_cq(cq) == Ok(());
        "VERBS-9.5.1.3-14" => rnic.poll_cq(cq) == Err(CqError::InvalidCqHandle);
        "VERBS-5.3.4-5" => rnic.query_cq(cq) == Err(CqError::InvalidCqHandle);
    }
}

/// Two peers. The CQ of `a` contains `done` completions of Writes.
fn with_completions(done: u64) -> Peers {
    let mut peers = Peers::new();
    for n in 0..done {
        let wr = write(&peers.a, n, 0, 1, peers.b.remote(0));
        peers.a.post(wr);
    }
    peers.run();
    peers
}

#[test]
fn a_cq_in_use_stays_and_is_resized() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = with_completions(3);
    let (rnic, cq) = (&mut peers.a.rnic, peers.a.cq);
    shows! { proof:
        "VERBS-5.3.4-3" => rnic.destroy_cq(cq) == Err(CqError::InUse);
        "VERBS-5.3.4-2" => rnic.query_cq(cq).is_ok();
        "VERBS-5.3.3-6" => rnic.modify_cq(cq, 2) == Err(CqError::ShrinkFailed);
        "VERBS-5.3.3-5" => rnic.query_cq(cq).unwrap().entries == 1024;
        "VERBS-5.3.3-1" => rnic.modify_cq(cq, 3) == Ok(3);
    }
    shows! { proof: "VERBS-5.3.3-2" => peers.a.poll().len() == 3; }
    peers.a.rnic.destroy_qp(peers.a.qp).unwrap();
    shows! { proof: "VERBS-5.1.1.2-4" => peers.a.rnic.destroy_cq(cq) == Ok(()); }
}

#[test]
fn creation_takes_all_or_nothing() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = open(RnicSettings { max_cqs: 2, max_cqes: 10, ..RnicSettings::default() });
    let handler = rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(5))).unwrap();
    let (first, entries) = rnic.create_cq(7, Some(handler)).unwrap();
    shows! { proof:
        "VERBS-5.3.1-4" => entries == rnic.query_cq(first).unwrap().entries;
        "VERBS-9.2.3.1-6" => rnic.query_cq(first).is_ok() && entries >= 7;
        "VERBS-5.3.1-5" => rnic.create_cq(u32::MAX, None) == Err(CqError::TooManyEntries);
        // The RNIC allows two CQs. The two rejected calls created none, so a second CQ is still
        // possible.
        "VERBS-5.3.1-6" => rnic.create_cq(12, None).is_err() && rnic.create_cq(1, None).is_ok();
        "VERBS-9.2.3.1-5" => rnic.query_cq(first) == Ok(CqAttributes { entries, handler: Some(handler) });
        "VERBS-9.2.3.1-3" => [1, 2, 10].into_iter().all(|wanted| {
            let mut rnic = open(RnicSettings { max_cqes: 10, ..RnicSettings::default() });
            rnic.create_cq(wanted, None).is_ok_and(|(_, entries)| entries >= wanted)
        });
    }
    let mut closed = open(RnicSettings::default());
    closed.close().unwrap();
    let mut results = vec![closed.create_cq(1, None).unwrap_err(), rnic.create_cq(1, None).unwrap_err()];
    rnic.destroy_cq(first).unwrap();
    rnic.set_completion_event_handler(HandlerOperation::Clear(handler)).unwrap();
    results.extend([rnic.create_cq(11, None).unwrap_err(), rnic.create_cq(1, Some(handler)).unwrap_err()]);
    use CqError::{InsufficientResources, InvalidHandler, InvalidRnicHandle, TooManyEntries};
    shows! { proof:
        "VERBS-9.2.3.1-7" => results == [InvalidRnicHandle, InsufficientResources, TooManyEntries, InvalidHandler]
            && rnic.create_cq(1, None).is_ok();
        "VERBS-9.2.3.1-2" => {
            let mut rnic = open(RnicSettings::default());
            let new = rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(5))).unwrap();
            let mut made = |entries, handler| {
                let (cq, given) = rnic.create_cq(entries, handler).unwrap();
                let queried = rnic.query_cq(cq).unwrap();
                rnic.destroy_cq(cq).unwrap();
                queried == CqAttributes { entries: given, handler } && given >= entries
            };
            made(3, None) && made(9, Some(new))
        };
    }
}

#[test]
fn results_of_query_modify_and_destroy() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = with_completions(2);
    let mut closed = Side::new(|_| ());
    closed.rnic.close().unwrap();
    let (foreign, stale) = (peers.b.cq, closed.cq);
    let (rnic, cq) = (&mut peers.a.rnic, peers.a.cq);
    use CqError::{InUse, InvalidCqHandle, InvalidRnicHandle, ShrinkFailed, TooManyEntries};
    shows! { proof:
        "VERBS-9.2.3.2-2" => rnic.query_cq(cq).unwrap() == CqAttributes { entries: 1024, handler: None };
        "VERBS-9.2.3.2-3" => {
            let handler = rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(1))).unwrap();
            let other = rnic.create_cq(3, Some(handler)).unwrap().0;
            rnic.query_cq(other) == Ok(CqAttributes { entries: 3, handler: Some(handler) })
        };
        "VERBS-9.2.3.2-4" => [rnic.query_cq(cq).err(), rnic.query_cq(foreign).err(), closed.rnic.query_cq(stale).err()]
            == [None, Some(InvalidCqHandle), Some(InvalidRnicHandle)];
        "VERBS-9.2.3.3-4" => rnic.modify_cq(cq, 1000) == Ok(1000) && rnic.query_cq(cq).unwrap().entries == 1000;
        "VERBS-9.2.3.3-5" => [
            rnic.modify_cq(cq, 9).err(), closed.rnic.modify_cq(stale, 9).err(), rnic.modify_cq(foreign, 9).err(),
            rnic.modify_cq(cq, u32::MAX).err(), rnic.modify_cq(cq, 1).err(),
        ] == [None, Some(InvalidRnicHandle), Some(InvalidCqHandle), Some(TooManyEntries), Some(ShrinkFailed)];
        "VERBS-9.2.3.4-3" => rnic.destroy_cq(cq).is_err() && rnic.poll_cq(cq).is_ok();
        "VERBS-9.2.3.4-4" => {
            let spare = rnic.create_cq(1, None).unwrap().0;
            [
                rnic.destroy_cq(spare).err(), closed.rnic.destroy_cq(stale).err(), rnic.destroy_cq(foreign).err(),
                rnic.destroy_cq(cq).err(),
            ] == [None, Some(InvalidRnicHandle), Some(InvalidCqHandle), Some(InUse)]
        };
        "VERBS-9.2.3.4-2" => {
            let spare = rnic.create_cq(1, None).unwrap().0;
            rnic.destroy_cq(spare).is_ok() && rnic.query_cq(spare).is_err() && rnic.query_cq(cq).is_ok()
        };
    }
}

#[test]
fn only_the_result_of_a_resize_reports_it() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = with_completions(4);
    let cq = peers.a.cq;
    for n in 10..14 {
        let wr = write(&peers.a, n, 0, 1, peers.b.remote(0));
        peers.a.post(wr);
    }
    shows! { proof:
        "VERBS-5.3.3-7" => peers.a.rnic.modify_cq(cq, 3).is_err() && peers.a.rnic.query_cq(cq).unwrap().entries == 1024;
        "VERBS-9.5.1.3-5" => peers.a.rnic.modify_cq(cq, 3) == Err(CqError::ShrinkFailed);
        "VERBS-9.2.3.3-2" => peers.a.rnic.modify_cq(cq, 8) == Ok(8);
    }
    peers.run();
    let polled: Vec<u64> = peers.a.poll().into_iter().map(|done| done.wr_id).collect();
    shows! { proof:
        "VERBS-5.3.3-3" => peers.a.event_ids().is_empty() && peers.a.state() == QpState::Rts;
        "VERBS-9.2.3.3-3" => polled == [0, 1, 2, 3, 10, 11, 12, 13];
        "VERBS-9.5.1.3-15" => peers.a.rnic.destroy_cq(cq) == Err(CqError::InUse);
        "VERBS-8.3.1-3" => {
            let before = peers.a.rnic.query_cq(cq);
            peers.a.rnic.modify_cq(cq, u32::MAX).unwrap_err();
            peers.a.rnic.destroy_cq(cq).unwrap_err();
            peers.a.rnic.query_cq(cq) == before
        };
    }
}

#[test]
fn queues_can_share_a_cq() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let other = side.rnic.create_cq(9, None).unwrap().0;
    let empty = side.rnic.create_cq(9, None).unwrap().0;
    let init = QpInit::new(side.pd, side.cq, side.cq);
    let mut qps = Vec::new();
    for (sq_cq, rq_cq) in [(side.cq, side.cq), (other, side.cq), (side.cq, other)] {
        let (qp, id, _) = side.rnic.create_qp(QpInit { sq_cq, rq_cq, ..init }, None).unwrap();
        side.rnic.post_receive(qp, vec![weft_peer::verbs::ReceiveWr { wr_id: 1, scatter: Vec::new() }]).unwrap();
        let wr = side.send_of(2, 0, 1);
        side.rnic.post_send(qp, vec![wr]).unwrap();
        side.rnic.modify_qp(weft_peer::Instant::ORIGIN, qp, &QpModify::to(QpState::Error)).unwrap();
        qps.push(id);
    }
    let mut all = |cq| std::iter::from_fn(|| side.rnic.poll_cq(cq).ok()).map(|done| (done.qp, done.wr_id)).collect();
    let (here, there): (Vec<_>, Vec<_>) = (all(side.cq), all(other));
    shows! { proof:
        "VERBS-5.3-2" => side.rnic.poll_cq(empty) == Err(CqError::Empty);
        "VERBS-5.3-3" => there == [(qps[1], 2), (qps[2], 1)];
        "VERBS-5.3-4" => here == [(qps[0], 2), (qps[0], 1), (qps[1], 1), (qps[2], 2)];
        "VERBS-9.2.5.1-8" => !here.contains(&(qps[1], 2)) && there.contains(&(qps[1], 2));
        "VERBS-6.1.1-5" => {
            let queried = |rnic: &weft_peer::verbs::Rnic| rnic.query_qp(side.qp).unwrap().init;
            (queried(&side.rnic).sq_cq, queried(&side.rnic).rq_cq) == (side.cq, side.cq)
        };
        "VERBS-6.1.1-7" => {
            let foreign = open(RnicSettings::default()).create_cq(1, None).unwrap().0;
            side.rnic.create_qp(QpInit { sq_cq: foreign, ..init }, None).unwrap_err() == QpError::InvalidCqHandle
        };
    }
}

#[test]
fn entries_of_a_cq() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |init| (init.max_sq_wrs, init.max_rq_wrs) = (4, 4));
    peers.a.rnic.modify_cq(peers.a.cq, 1).unwrap();
    let one = |peers: &mut Peers, n| {
        let wr = write(&peers.a, n, 0, 1, peers.b.remote(0));
        peers.a.post(wr);
        peers.run();
        peers.a.poll().len() == 1
    };
    shows! { proof:
        "VERBS-5.3-8" => one(&mut peers, 1) && one(&mut peers, 2);
        "VERBS-8.2.4-4" => (0..100).all(|n| one(&mut peers, n)) && peers.a.event_ids().is_empty();
        // A CQ can have fewer entries than the queues that use it.
        "VERBS-5.3.1-11" => {
            let one = peers.a.rnic.create_cq(1, None).unwrap().0;
            let init = QpInit { max_sq_wrs: 100, max_rq_wrs: 100, ..QpInit::new(peers.a.pd, one, one) };
            peers.a.rnic.create_qp(init, None).is_ok()
        };
    }
    // The CQ has as many entries as the work on both queues. So all completions fit when the work
    // is flushed.
    peers.a.rnic.modify_cq(peers.a.cq, 8).unwrap();
    for n in 0..4 {
        let wr = peers.a.send_of(n, 0, 1);
        peers.a.post(wr);
        peers.a.post_receive(10 + n, 0, 1);
    }
    peers.a.to(QpState::Error).unwrap();
    shows! { proof: "VERBS-5.3.1-14" => peers.a.poll().len() == 8 && peers.a.event_ids().is_empty(); }
    // This CQ has one entry too few for a flush. The completions that are already in the CQ stay
    // intact, and the remaining completions are lost.
    let mut small = Side::with(RnicSettings::default(), llp_settings(PLAIN, 1460, true), |_| ());
    small.rnic.modify_cq(small.cq, 2).unwrap();
    (0..3).for_each(|n| small.post_receive(n, 0, 1));
    small.to(QpState::Error).unwrap();
    shows! { proof:
        "VERBS-5.3.1-15" => small.statuses() == [(0, CompletionStatus::Flushed), (1, CompletionStatus::Flushed)];
    }
}

#[test]
fn poll_gives_the_head() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.b.post_receive(u64::MAX, 0, 9);
    peers.a.octets()[..3].copy_from_slice(b"abc");
    let list = vec![peers.a.send_of(u64::MAX, 0, 3), write(&peers.a, 7, 0, 3, peers.b.remote(100))];
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    peers.run();
    let first = peers.a.rnic.poll_cq(peers.a.cq).unwrap();
    let second = peers.a.rnic.poll_cq(peers.a.cq).unwrap();
    let received = peers.b.rnic.poll_cq(peers.b.cq).unwrap();
    shows! { proof:
        "VERBS-9.3.2.1-1" => first.status == CompletionStatus::Success;
        "VERBS-9.3.2.1-2" => (first.qp, first.operation) == (peers.a.id, CompletedOperation::Send);
        "VERBS-9.3.2.1-3" => (first.wr_id, second.wr_id) == (u64::MAX, 7);
        "VERBS-9.3.2.1-8" => (first.octets, second.octets, received.octets) == (0, 0, 3);
        "VERBS-9.3.2.1-7" => (second.operation, received.operation) == (CompletedOperation::Write, CompletedOperation::Receive);
        "VERBS-9.3.1.1-14" => first.wr_id == u64::MAX && received.wr_id == u64::MAX;
    }
    let mut closed = Side::new(|_| ());
    closed.rnic.close().unwrap();
    peers.b.post_receive(3, 0, 9);
    peers.b.to(QpState::Error).unwrap();
    let flushed = peers.b.rnic.poll_cq(peers.b.cq).unwrap();
    shows! { proof:
        "VERBS-9.3.2.1-11" => [peers.a.rnic.poll_cq(peers.a.cq).err(), peers.a.rnic.poll_cq(peers.b.cq).err(),
            closed.rnic.poll_cq(closed.cq).err()]
            == [Some(CqError::Empty), Some(CqError::InvalidCqHandle), Some(CqError::InvalidRnicHandle)];
        "VERBS-9.3.2.1-5" => (flushed.wr_id, flushed.status) == (3, CompletionStatus::Flushed);
    }
}

#[test]
fn request_completion_notification() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let handler = side.rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(4))).unwrap();
    let cq = side.rnic.create_cq(9, Some(handler)).unwrap().0;
    let init = QpInit::new(side.pd, cq, cq);
    let mut closed = Side::new(|_| ());
    closed.rnic.close().unwrap();
    // If a notification of either kind is requested, a completion with an error triggers it.
    // Without a request, there is no notification.
    let mut fires = |kind: Option<NotifyKind>| {
        let qp = side.rnic.create_qp(init, None).unwrap().0;
        side.rnic.post_receive(qp, vec![weft_peer::verbs::ReceiveWr { wr_id: 1, scatter: Vec::new() }]).unwrap();
        let armed = kind.map(|kind| side.rnic.request_completion_notification(cq, kind));
        side.rnic.modify_qp(weft_peer::Instant::ORIGIN, qp, &QpModify::to(QpState::Error)).unwrap();
        let called = side.rnic.poll_notification();
        side.rnic.destroy_qp(qp).unwrap();
        (armed, called)
    };
    let called = |address| Some(weft_peer::verbs::Notification::Completion { handler: HandlerAddress(address), cq });
    shows! { proof:
        "VERBS-9.3.2.2-2" => fires(Some(NotifyKind::NextCompletion)) == (Some(Ok(())), called(4));
        "VERBS-9.3.2.2-3" => fires(Some(NotifyKind::NextSolicited)).1 == called(4);
        "VERBS-9.3.2.2-5" => fires(None) == (None, None);
        "VERBS-9.4.1-9" => matches!(fires(Some(NotifyKind::NextCompletion)).1,
            Some(weft_peer::verbs::Notification::Completion { cq: notified, .. }) if notified == cq);
    }
    let kind = NotifyKind::NextCompletion;
    shows! { proof:
        "VERBS-9.3.2.2-6" => [
            side.rnic.request_completion_notification(cq, kind), side.rnic.request_completion_notification(closed.cq, kind),
            closed.rnic.request_completion_notification(closed.cq, kind),
        ] == [Ok(()), Err(EventError::InvalidCqHandle), Err(EventError::InvalidRnicHandle)];
    }
}
