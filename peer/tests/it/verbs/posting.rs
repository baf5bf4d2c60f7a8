//! Tests PostSQ and PostRQ, the verbs that post work requests and receives
//! (draft-hilland-rddp-verbs, sections 8.1.1, 8.1.3, 8.2.1 and 9.3.1, Figures 27 and 34).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::memory::{Bind, RemoteAccess, STAG_ZERO, Stag, StagKey};
use weft_peer::verbs::{
    CompletionStatus, Fence, Operation, Payload, PostError, PostStatus, QpInit, QpState, ReceiveWr, RemoteAddress,
    SendWr, Sge, SrqInit,
};

use crate::verbs::peers::{PLAIN, Peers, Side, shows};

fn list_of(count: usize) -> Vec<Sge> {
    vec![Sge { stag: 1, tagged_offset: 0, length: u32::MAX }; count]
}

fn send(count: usize) -> SendWr {
    let payload = Payload::Gather(list_of(count));
    SendWr::new(2, Operation::Send { payload, solicited: false, invalidate: None })
}

fn receive(count: usize) -> ReceiveWr {
    ReceiveWr { wr_id: 1, scatter: list_of(count) }
}

fn narrow() -> Side {
    Side::new(|init| (init.max_sq_wrs, init.max_rq_wrs, init.bind) = (3, 2, false))
}

fn post(side: &mut Side, list: Vec<SendWr>) -> Result<usize, PostError> {
    side.rnic.post_send(side.qp, list)
}

#[test]
fn posting_stops_at_the_first_error() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = narrow();
    let good = side.send_of(1, 0, 1);
    let error = post(&mut side, vec![good.clone(), send(5), good.clone()]).unwrap_err();
    shows! { proof:
        "VERBS-8.2.1-6" => error.posted == 1;
        "VERBS-9.5.1.7-11" => error.status == PostStatus::InvalidSglFormat;
        "VERBS-9.5.1.7-13" => post(&mut side, vec![send(2)]).unwrap_err().status == PostStatus::InvalidSglLength;
        "VERBS-9.5.1.7-6" => post(&mut side, vec![good.clone(), good.clone(), good.clone()]).unwrap_err().posted == 2;
        "VERBS-8.2.1-10" => post(&mut side, vec![good.clone()]).unwrap_err().status == PostStatus::TooManyWrs;
        "VERBS-8.1.3.2-5" => post(&mut narrow(), vec![send(2)]).unwrap_err().status == PostStatus::InvalidSglLength
            && post(&mut narrow(), vec![send(1)]) == Ok(1);
    }
}

#[test]
fn the_rest_of_a_list_is_not_posted() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|init| init.max_sq_wrs = 3);
    let good = |wr_id| side.send_of(wr_id, 0, 1);
    let (first, third, more) = (good(1), good(3), [good(5), good(6), good(7)]);
    let error = post(&mut side, vec![first, send(5), third, send(2)]).unwrap_err();
    let free = post(&mut side, more.to_vec()).unwrap_err().posted;
    side.to(QpState::Error).unwrap();
    let flushed: Vec<u64> = side.statuses().into_iter().map(|(wr_id, _)| wr_id).collect();
    shows! { proof:
        "VERBS-8.2.1-3" => (error.posted, free) == (1, 2);
        "VERBS-8.2.1-4" => !flushed.contains(&3);
        "VERBS-8.2.1-5" => flushed[0] == 1;
        "VERBS-8.2.1-7" => error.status == PostStatus::InvalidSglFormat;
        "VERBS-8.2.1-1" => flushed == [1, 5, 6];
        "VERBS-9.3.1.1-19" => error == PostError { posted: 1, status: PostStatus::InvalidSglFormat };
    }
}

#[test]
fn a_queue_pair_rejects_invalid_work_requests() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = narrow();
    let window = Stag { index: side.rnic.memory_mut().allocate_window(side.pd).unwrap(), key: StagKey(1) };
    let access = RemoteAccess { read: true, write: true };
    let bind = Bind { window, region: side.stag, address: 0, length: 1, va_based: true, access };
    let local = Sge { stag: STAG_ZERO, tagged_offset: 0, length: 1 };
    let remote = RemoteAddress { stag: 1, tagged_offset: 0 };
    let zero = SendWr::new(1, Operation::Read { local, remote, invalidate_local: true });
    let fenced = SendWr { fence: Fence::Local, ..side.send_of(1, 0, 1) };
    let mut status = |wr| side.rnic.post_receive(side.qp, vec![wr]).unwrap_err().status;
    shows! { proof:
        "VERBS-9.5.1.7-12" => status(receive(5)) == PostStatus::InvalidSglFormat;
        "VERBS-9.5.1.7-14" => status(receive(2)) == PostStatus::InvalidSglLength;
    }
    side.post_receive(1, 0, 1);
    side.post_receive(1, 0, 1);
    shows! { proof:
        "VERBS-9.5.1.7-7" => side.rnic.post_receive(side.qp, vec![receive(1)]).unwrap_err().status == PostStatus::TooManyWrs;
        "VERBS-9.5.1.7-8" => post(&mut side, vec![SendWr::new(1, Operation::Bind(bind))]).unwrap_err().status
            == PostStatus::InvalidOperation;
        "VERBS-9.5.1.7-16" => post(&mut side, vec![zero]).unwrap_err().status == PostStatus::InvalidModifier;
        "VERBS-9.3.1.1-16" => post(&mut side, vec![fenced]).unwrap_err().status == PostStatus::InvalidModifier;
        "VERBS-9.5.1.7-9" => {
            side.to(QpState::Error).unwrap();
            let wr = side.send_of(1, 0, 1);
            post(&mut side, vec![wr]).unwrap_err().status == PostStatus::InvalidQpState
        };
    }
}

/// A Queue Pair accepts a Bind only if Bind was enabled when the Queue Pair was created.
#[test]
fn bind_is_enabled_at_creation() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let bind = |enabled: bool| {
        let mut side = Side::new(|init| init.bind = enabled).start();
        let window = Stag { index: side.rnic.memory_mut().allocate_window(side.pd).unwrap(), key: StagKey(1) };
        let access = RemoteAccess { read: true, write: true };
        let bind =
            Bind { window, region: side.stag, address: crate::verbs::peers::VA, length: 1, va_based: true, access };
        let posted = post(&mut side, vec![SendWr::new(1, Operation::Bind(bind))]);
        side.transmit(weft_peer::Instant::ORIGIN, 9);
        (posted.map_err(|error| error.status), side.rnic.memory().query_window(window.index).unwrap().key)
    };
    let refused = Err(PostStatus::InvalidOperation);
    shows! { proof:
        "VERBS-9.2.5.1-13" => bind(false).0 == refused && bind(true).0 == Ok(1);
        "VERBS-7.10.2-8" => bind(false).1.is_none() && bind(true).1 == Some(StagKey(1));
        "VERBS-7.10.6.1-4" => bind(false) == (refused, None);
    }
}

#[test]
fn post_receive_reports_the_error() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = narrow();
    let srq = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 4, max_sges: 2, limit: 0 }).unwrap().0;
    let init = QpInit { srq: Some(srq), ..QpInit::new(side.pd, side.cq, side.cq) };
    let shared = side.rnic.create_qp(init, None).unwrap().0;
    let empty = |wr_id| ReceiveWr { wr_id, scatter: Vec::new() };
    let mut closed = Side::new(|_| ());
    closed.rnic.close().unwrap();
    let rnic = &mut side.rnic;
    shows! { proof:
        "VERBS-9.5.1.7-15" => rnic.post_receive(shared, vec![empty(1)]).unwrap_err().status == PostStatus::RqAssociatedWithSrq;
        "VERBS-6.3.5-2" => rnic.post_receive(shared, vec![empty(1), empty(2)]).unwrap_err().posted == 0
            && rnic.post_srq(srq, (0..4).map(empty).collect::<Vec<_>>()) == Ok(4);
        "VERBS-6.3-12" => rnic.post_receive(shared, vec![empty(1)]).is_err() && rnic.post_receive(side.qp, vec![empty(1)]).is_ok();
        "VERBS-9.3.1.2-5" => rnic.post_srq(srq, vec![empty(9)]).unwrap_err().status == PostStatus::TooManyWrs
            && rnic.post_receive(shared, vec![empty(9)]).unwrap_err().status == PostStatus::RqAssociatedWithSrq;
        "VERBS-9.3.1.2-7" => rnic.post_receive(side.qp, vec![empty(2), empty(3)])
            == Err(PostError { posted: 1, status: PostStatus::TooManyWrs });
        "VERBS-9.3.1.2-8" => {
            let error = |result: Result<usize, PostError>| result.unwrap_err().status;
            [
                error(closed.rnic.post_receive(closed.qp, vec![empty(1)])), error(rnic.post_receive(closed.qp, vec![empty(1)])),
                error(rnic.post_receive(side.qp, vec![receive(5)])), error(rnic.post_receive(side.qp, vec![receive(2)])),
                error(rnic.post_receive(side.qp, vec![empty(1)])), error(rnic.post_receive(shared, vec![empty(1)])),
            ] == [
                PostStatus::InvalidRnicHandle, PostStatus::InvalidQpHandle, PostStatus::InvalidSglFormat,
                PostStatus::InvalidSglLength, PostStatus::TooManyWrs, PostStatus::RqAssociatedWithSrq,
            ]
        };
    }
    side.to(QpState::Error).unwrap();
    shows! { proof:
        "VERBS-9.5.1.7-10" => side.rnic.post_receive(side.qp, vec![empty(1)]).unwrap_err().status == PostStatus::InvalidQpState;
    }
}

#[test]
fn post_send_reports_the_error() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = narrow();
    let mut closed = Side::new(|_| ());
    closed.rnic.close().unwrap();
    let good = side.send_of(1, 0, 1);
    let bind = Bind {
        window: side.stag,
        region: side.stag,
        address: 0,
        length: 1,
        va_based: true,
        access: RemoteAccess::default(),
    };
    let error = |result: Result<usize, PostError>| result.unwrap_err().status;
    shows! { proof:
        "VERBS-9.3.1.1-20" => {
            let mut results = vec![
                error(closed.rnic.post_send(closed.qp, vec![good.clone()])),
                error(side.rnic.post_send(closed.qp, vec![good.clone()])),
                error(post(&mut side, vec![SendWr::new(1, Operation::Bind(bind))])),
                error(post(&mut side, vec![send(5)])),
                error(post(&mut side, vec![send(2)])),
                error(post(&mut side, vec![SendWr { fence: Fence::Local, ..good.clone() }])),
                error(post(&mut side, vec![good.clone(); 4])),
            ];
            side.to(QpState::Error).unwrap();
            results.push(error(post(&mut side, vec![good.clone()])));
            results == [
                PostStatus::InvalidRnicHandle, PostStatus::InvalidQpHandle, PostStatus::InvalidOperation,
                PostStatus::InvalidSglFormat, PostStatus::InvalidSglLength, PostStatus::InvalidModifier,
                PostStatus::TooManyWrs, PostStatus::InvalidQpState,
            ]
        };
        "VERBS-9.3.1.1-1" => {
            let mut side = narrow();
            post(&mut side, vec![good.clone(), good.clone()]) == Ok(2)
        };
        "VERBS-8.2.1-14" => [QpState::Idle, QpState::Rts, QpState::Closing, QpState::Terminate, QpState::Error].map(|state| {
            let mut side = Side::new(|_| ());
            if state != QpState::Idle {
                side = side.start();
            }
            if state != QpState::Idle && state != QpState::Rts {
                side.to(state).unwrap();
            }
            let wr = side.send_of(1, 0, 1);
            post(&mut side, vec![wr]).is_ok() && side.rnic.post_receive(side.qp, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]).is_ok()
        }) == [true, true, false, false, false];
        "VERBS-6.2.1.3-11" => {
            let mut side = narrow();
            post(&mut side, vec![send(5)]).is_err() && side.state() == QpState::Idle
        };
        "VERBS-6.2.2.4-16" => {
            let mut side = narrow().start();
            post(&mut side, vec![send(5)]).is_err() && side.rnic.post_receive(side.qp, vec![receive(5)]).is_err()
                && side.state() == QpState::Rts
        };
    }
}

#[test]
fn lists_are_posted_in_their_order_and_at_once() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    peers.a.octets()[..3].copy_from_slice(b"xyz");
    let sends: Vec<SendWr> = (0..3).map(|n| peers.a.send_of(n, n, 1)).collect();
    let receives: Vec<ReceiveWr> = (10..13).map(|n| ReceiveWr { wr_id: n, scatter: vec![peers.b.sge(n, 1)] }).collect();
    let posted = (post(&mut peers.a, sends), peers.b.rnic.post_receive(peers.b.qp, receives.clone()));
    // The RNIC copies work requests. Later changes by the caller have no effect.
    drop(receives);
    let before = peers.a.poll().len();
    peers.run();
    let (sent, received) = (peers.a.statuses(), peers.b.statuses());
    shows! { proof:
        "VERBS-8.1.1-3" => posted.0 == Ok(3) && sent.iter().map(|done| done.0).eq(0..3);
        "VERBS-9.3.1.2-4" => posted.1 == Ok(3) && received.iter().map(|done| done.0).eq(10..13);
        "VERBS-8.2.1-8" => before == 0;
        "VERBS-8.1.1-5" => peers.b.octets()[10..13] == *b"xyz";
        "VERBS-8.1.1-2" => received[2] == (12, CompletionStatus::Success);
        "VERBS-9.3.1.1-2" => sent == [0, 1, 2].map(|n| (n, CompletionStatus::Success));
        "VERBS-9.3.1.2-2" => received == [10, 11, 12].map(|n| (n, CompletionStatus::Success));
    }
    let empty = vec![ReceiveWr { wr_id: 7, scatter: Vec::new() }];
    shows! { proof: "VERBS-9.3.1.2-6" => peers.b.rnic.post_receive(peers.b.qp, empty) == Ok(1); }
}

#[test]
fn each_work_request_goes_to_its_queue() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let srq = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 4, max_sges: 2, limit: 0 }).unwrap().0;
    let sq_cq = side.rnic.create_cq(9, None).unwrap().0;
    let qp = side.rnic.create_qp(QpInit { sq_cq, ..QpInit::new(side.pd, side.cq, side.cq) }, None).unwrap().0;
    let wr = side.send_of(1, 0, 1);
    side.rnic.post_send(qp, vec![wr]).unwrap();
    side.rnic.post_receive(qp, vec![ReceiveWr { wr_id: 2, scatter: Vec::new() }]).unwrap();
    side.rnic.post_srq(srq, vec![ReceiveWr { wr_id: 3, scatter: Vec::new() }]).unwrap();
    side.qp = qp;
    side.to(QpState::Error).unwrap();
    let of_sq: Vec<u64> = std::iter::from_fn(|| side.rnic.poll_cq(sq_cq).ok()).map(|done| done.wr_id).collect();
    let of_rq: Vec<u64> = side.poll().into_iter().map(|done| done.wr_id).collect();
    shows! { proof:
        "VERBS-8.1.1-4" => (of_sq.as_slice(), of_rq.as_slice()) == (&[1][..], &[2][..]);
        "VERBS-6.3-11" => side.rnic.post_srq(srq, (0..4).map(|wr_id| ReceiveWr { wr_id, scatter: Vec::new() }).collect::<Vec<_>>())
            .unwrap_err().posted == 3;
        "VERBS-6.3.5-4" => {
            let other = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 2, max_sges: 2, limit: 0 }).unwrap().0;
            let receive = |wr_id, sges| ReceiveWr { wr_id, scatter: vec![side.sge(0, 1); sges] };
            let (good, bad) = (receive(5, 2), receive(6, 3));
            // The first is posted, the second is invalid, the third is not posted. Then there is
            // space for one more.
            let refused = side.rnic.post_srq(other, vec![good.clone(), bad, good.clone()]).unwrap_err();
            refused == PostError { posted: 1, status: PostStatus::InvalidSglFormat }
                && side.rnic.post_srq(other, vec![good.clone(), good]).unwrap_err().posted == 1
        };
    }
}
