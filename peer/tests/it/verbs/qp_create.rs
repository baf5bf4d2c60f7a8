//! Tests the verbs that create, query and destroy Queue Pairs (draft-hilland-rddp-verbs, sections
//! 6.1.1, 6.1.2, 6.1.4 and 9.2.5, Figure 32).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::Instant;
use weft_peer::memory::{Access, Bind, RemoteAccess, Stag, StagKey};
use weft_peer::verbs::{
    CqError, Fence, Node, Operation, PostStatus, QpAllocated, QpError, QpInit, QpModify, QpState, ReceiveWr,
    RnicSettings, SendWr, SrqError, SrqInit, TransmitResult,
};

use crate::verbs::peers::{PLAIN, Peers, Side, llp_settings, open, shows};

fn small() -> RnicSettings {
    RnicSettings {
        max_qps: 1,
        max_wrs: 300,
        max_sges: 8,
        max_write_sges: 6,
        max_ird: 20,
        max_ord: 30,
        ..RnicSettings::default()
    }
}

fn small_side() -> Side {
    Side::with(small(), llp_settings(PLAIN, 1460, true), |_| ())
}

#[test]
fn create_reports_the_error() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = small_side();
    let good = side.rnic.query_qp(side.qp).unwrap().init;
    let dead = side.rnic.memory_mut().allocate_pd().unwrap();
    side.rnic.memory_mut().deallocate_pd(dead).unwrap();
    let cq = side.rnic.create_cq(1, None).unwrap().0;
    side.rnic.destroy_cq(cq).unwrap();
    let mut fails = |init| side.rnic.create_qp(init, None).unwrap_err();
    shows! { proof:
        "VERBS-9.5.1.5-1" => fails(good) == QpError::InsufficientResources;
        "VERBS-9.5.1.5-7" => fails(QpInit { rq_cq: cq, ..good }) == QpError::InvalidCqHandle;
        "VERBS-9.5.1.5-8" => fails(QpInit { ord: 31, ..good }) == QpError::OrdExceeds;
        "VERBS-9.5.1.5-10" => fails(QpInit { ird: 21, ..good }) == QpError::IrdExceeds;
        "VERBS-9.5.1.5-12" => fails(QpInit { max_sq_wrs: 301, ..good }) == QpError::TooManyWrs;
        "VERBS-8.1.3.2-11" => fails(QpInit { max_send_sges: 9, ..good }) == QpError::TooManySges
            && fails(QpInit { max_receive_sges: 9, ..good }) == QpError::TooManySges;
        "VERBS-9.5.1.5-14" => fails(QpInit { max_write_sges: 7, ..good }) == QpError::TooManySges;
        "VERBS-9.5.1.5-16" => fails(QpInit { pd: dead, ..good }) == QpError::InvalidPdId;
    }
}

#[test]
fn a_shared_receive_queue_belongs_to_the_queue_pair() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = small_side();
    let good = side.rnic.query_qp(side.qp).unwrap().init;
    let init = SrqInit { pd: side.pd, max_wrs: 4, max_sges: 2, limit: 0 };
    let srq = side.rnic.create_srq(init).unwrap().0;
    let with = QpInit { srq: Some(srq), max_rq_wrs: 999, ..good };
    shows! { proof:
        "VERBS-9.5.1.5-27" => side.rnic.create_qp(QpInit { rq_limit: 5, ..with }, None).unwrap_err()
            == QpError::RqLimitOutOfRange;
        "VERBS-5.1.1.2-5" => side.rnic.memory_mut().deallocate_pd(side.pd).is_err();
    }
    side.rnic.destroy_qp(side.qp).unwrap();
    let (qp, _, allocated) = side.rnic.create_qp(with, None).unwrap();
    shows! { proof:
        "VERBS-6.3.4-2" => allocated.max_rq_wrs.is_none();
        "VERBS-9.5.1.4-17" => side.rnic.destroy_srq(srq) == Err(SrqError::QpsStillAssociated);
        "VERBS-6.3.3-1" => side.rnic.query_srq(srq).is_ok();
        "VERBS-9.2.5.2-4" => side.rnic.query_qp(qp).unwrap().init.srq == Some(srq) && good.srq.is_none();
        "VERBS-6.1.1-16" => {
            side.rnic.destroy_qp(qp).unwrap();
            let (qp, _, _) = side.rnic.create_qp(QpInit { max_rq_wrs: 0, ..with }, None).unwrap();
            side.rnic.destroy_qp(qp).is_ok()
        };
        "VERBS-6.3.7-1" => side.rnic.create_qp(QpInit { max_rq_wrs: u32::MAX, max_receive_sges: u32::MAX, ..with }, None)
            .is_ok();
    }
}

#[test]
fn query_returns_the_attributes_of_creation() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let side = Side::new(|init| {
        (init.ord, init.ird, init.max_sq_wrs, init.max_rq_wrs) = (3, 5, 7, 9);
        (init.inbound_read, init.inbound_write, init.bind) = (true, false, true);
    });
    let queried = side.rnic.query_qp(side.qp).unwrap();
    shows! { proof:
        "VERBS-9.2.5.2-3" => queried.init.sq_cq == side.cq && queried.init.rq_cq == side.cq;
        "VERBS-9.2.5.2-5" => (queried.init.max_sq_wrs, queried.init.max_rq_wrs) == (7, 9);
        "VERBS-9.2.5.2-7" => (queried.init.ord, queried.init.ird) == (3, 5);
        "VERBS-9.2.5.2-8" => queried.state == QpState::Idle;
        "VERBS-9.2.5.2-9" => queried.init.pd == side.pd && queried.id == side.id;
        "VERBS-9.2.5.2-10" => queried.privileged;
        "VERBS-9.2.5.2-12" => !queried.init.inbound_write;
        "VERBS-9.2.5.2-13" => queried.init.bind;
    }
}

#[test]
fn creation_returns_the_allocated_sizes() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|init| (init.ord, init.ird, init.max_sq_wrs, init.max_rq_wrs) = (3, 5, 7, 9));
    let queried = side.rnic.query_qp(side.qp).unwrap();
    let allocated = QpAllocated {
        max_sq_wrs: 7,
        max_rq_wrs: Some(9),
        max_send_sges: 4,
        max_write_sges: 4,
        max_receive_sges: Some(4),
        ord: 3,
        ird: 5,
    };
    let again = side.rnic.create_qp(queried.init, None).unwrap();
    shows! { proof:
        "VERBS-9.2.5.1-18" => (again.2.max_sq_wrs, again.2.max_rq_wrs) == (7, Some(9));
        "VERBS-9.2.5.1-19" => again.2 == allocated;
        "VERBS-6.1.1-11" => again.1 != side.id;
        "VERBS-9.2.5.2-14" => queried.terminate.is_none();
        "VERBS-9.2.5.2-17" => queried.llp.is_none();
        "VERBS-6-2" => side.rnic.query_qp(again.0).unwrap().init.ird == 5;
        "VERBS-6.5-8" => (again.2.ird, again.2.ord) == (5, 3);
        "VERBS-9.2.5.1-17" => side.rnic.query_qp(again.0).unwrap().id == again.1;
    }
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    assert_eq!(side.rnic.query_qp(side.qp).unwrap().llp, Some(side.llp));
}

#[test]
fn each_size_is_independent() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|init| {
        (init.max_sq_wrs, init.max_rq_wrs) = (4, 6);
        (init.max_send_sges, init.max_write_sges, init.max_receive_sges) = (1, 2, 3);
    });
    let queried = side.rnic.query_qp(side.qp).unwrap();
    let sends = (0..9).filter(|n| {
        let wr = side.send_of(*n, 0, 1);
        side.rnic.post_send(side.qp, vec![wr]).is_ok()
    });
    let sends = sends.count();
    let receives = (0..9).map(|wr_id| ReceiveWr { wr_id, scatter: Vec::new() });
    let receives = receives.filter(|wr| side.rnic.post_receive(side.qp, vec![wr.clone()]).is_ok()).count();
    shows! { proof:
        "VERBS-6.1.1-2" => (queried.init.max_sq_wrs, queried.init.max_rq_wrs) == (4, 6);
        "VERBS-6.1.1-3" => (sends, receives) == (4, 6);
        "VERBS-9.2.5.1-9" => sends >= 4 && receives >= 6;
        "VERBS-9.2.5.2-6" => (queried.init.max_send_sges, queried.init.max_write_sges, queried.init.max_receive_sges) == (1, 2, 3);
        "VERBS-6.1.1-4" => [1, 100, 16_384].into_iter().all(|wrs| {
            let mut rnic = open(RnicSettings::default());
            let (pd, cq) = (rnic.memory_mut().allocate_pd().unwrap(), rnic.create_cq(1, None).unwrap().0);
            let init = QpInit { max_sq_wrs: wrs, max_rq_wrs: wrs, ..QpInit::new(pd, cq, cq) };
            rnic.create_qp(init, None).is_ok_and(|qp| qp.2.max_sq_wrs >= wrs && qp.2.max_rq_wrs >= Some(wrs))
        });
        "VERBS-9.2.5.1-14" => {
            let mut side = Side::new(|init| {
                (init.max_send_sges, init.max_write_sges, init.max_receive_sges) = (1, 2, 3);
            });
            let fits = |side: &mut Side, count| {
                let list = vec![side.sge(0, 1); count];
                let gather = weft_peer::verbs::Payload::Gather(list.clone());
                let send = Operation::Send { payload: gather.clone(), solicited: false, invalidate: None };
                let write = Operation::Write { payload: gather, remote: side.remote(0) };
                [
                    side.rnic.post_send(side.qp, vec![SendWr::new(1, send)]).is_ok(),
                    side.rnic.post_send(side.qp, vec![SendWr::new(1, write)]).is_ok(),
                    side.rnic.post_receive(side.qp, vec![ReceiveWr { wr_id: 1, scatter: list }]).is_ok(),
                ]
            };
            [1, 2, 3, 4].map(|count| fits(&mut side, count))
                == [[true; 3], [false, true, true], [false, false, true], [false; 3]]
        };
    }
}

#[test]
fn attributes_of_creation_do_not_change() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let init = QpInit::new(side.pd, side.cq, side.cq);
    let (plain, id, _) = side.rnic.create_qp(init, None).unwrap();
    let queried = side.rnic.query_qp(plain).unwrap();
    side.rnic.post_receive(plain, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]).unwrap();
    side.rnic.modify_qp(Instant::ORIGIN, plain, &QpModify::to(QpState::Error)).unwrap();
    let done = side.poll().remove(0);
    let after = side.rnic.query_qp(plain).unwrap();
    let clone = plain;
    shows! { proof:
        "VERBS-6.1.1-8" => (queried.privileged, after.privileged) == (false, false)
            && side.rnic.query_qp(side.qp).unwrap().privileged;
        "VERBS-6.1.1-9" => queried.init.pd == side.pd;
        "VERBS-6.1.1-10" => queried.id == id && id != side.id;
        "VERBS-6.1.1-12" => (after.id, done.qp) == (id, id);
        "VERBS-5.2-1" => after.init.pd == queried.init.pd;
        "VERBS-5.2-2" => side.rnic.query_qp(side.qp).unwrap().init.pd == queried.init.pd;
        "VERBS-6.1.4-1" => {
            #[expect(dropping_copy_types, reason = "the test shows that this call has no effect")]
            drop(clone);
            side.rnic.query_qp(plain).is_ok()
        };
        "VERBS-6.3.4-1" => after.init.srq.is_none() && queried.init.srq.is_none();
    }
}

#[test]
fn each_modifier_of_create_counts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let srq = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 4, max_sges: 2, limit: 0 }).unwrap().0;
    let pd = side.rnic.memory_mut().allocate_pd().unwrap();
    let init = QpInit::new(side.pd, side.cq, side.cq);
    let mut create = |init| {
        let qp = side.rnic.create_qp(init, None).unwrap().0;
        side.rnic.query_qp(qp).unwrap()
    };
    shows! { proof:
        "VERBS-9.2.5.1-10" => {
            let queried = create(QpInit { srq: Some(srq), rq_limit: 3, ..init });
            (queried.init.srq, queried.init.rq_limit, queried.rq_limit_armed) == (Some(srq), 3, true)
        };
        "VERBS-9.2.5.2-16" => create(QpInit { srq: Some(srq), rq_limit: 2, ..init }).rq_limit_armed && !create(init).rq_limit_armed;
        "VERBS-9.2.5.2-11" => create(QpInit { inbound_read: true, ..init }).init.inbound_read
            && !create(QpInit { inbound_read: false, ..init }).init.inbound_read;
        "VERBS-9.2.5.1-15" => {
            let queried = create(QpInit { ord: 9, ird: 8, ..init }).init;
            (queried.ord, queried.ird) == (9, 8)
        };
        "VERBS-9.2.5.1-16" => create(QpInit { pd, ..init }).init.pd == pd && !create(init).privileged;
        "VERBS-9.2.5.1-2" => create(QpInit { bind: false, inbound_write: false, ..init }).init
            == QpInit { bind: false, inbound_write: false, ..init };
        "VERBS-6.3.8-11" => create(QpInit { srq: Some(srq), rq_limit: 1, ..init }).rq_limit_armed;
        "VERBS-6.3.8-15" => !create(QpInit { srq: Some(srq), rq_limit: 0, ..init }).rq_limit_armed;
    }
}

#[test]
fn access_to_all_memory_requires_privilege() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let other = Node::new(["other"]);
    let (_rnic, foreign) = other.open("other", RnicSettings::default()).unwrap();
    let mut side = Side::new(|_| ());
    let init = QpInit::new(side.pd, side.cq, side.cq);
    let mut privileged = |token: Option<&_>| {
        let qp = side.rnic.create_qp(init, token).unwrap().0;
        side.rnic.query_qp(qp).unwrap().privileged
    };
    shows! { proof:
        "VERBS-9.2.5.1-3" => !privileged(None) && !privileged(Some(&foreign));
        "VERBS-9.2.5.1-1" => side.rnic.create_qp(init, None).is_ok();
        "VERBS-9.1-2" => side.rnic.query_qp(side.qp).unwrap().privileged && side.rnic.memory_mut().allocate_stag(side.pd, 1, true).is_ok();
    }
}

#[test]
fn results_of_create_query_and_destroy() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut closed = Side::new(|_| ());
    closed.rnic.close().unwrap();
    let mut side = Side::with(RnicSettings { max_qps: 2, ..small() }, llp_settings(PLAIN, 1460, true), |_| ());
    let good = side.rnic.query_qp(side.qp).unwrap().init;
    let foreign = closed.cq;
    let srq = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 4, max_sges: 2, limit: 0 }).unwrap().0;
    let dead = side.rnic.memory_mut().allocate_pd().unwrap();
    side.rnic.memory_mut().deallocate_pd(dead).unwrap();
    let stale = {
        let gone = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 4, max_sges: 2, limit: 0 }).unwrap().0;
        side.rnic.destroy_srq(gone).unwrap();
        gone
    };
    let bad = [
        QpInit { sq_cq: foreign, ..good },
        QpInit { srq: Some(stale), ..good },
        QpInit { ord: 31, ..good },
        QpInit { ird: 21, ..good },
        QpInit { max_sq_wrs: 301, ..good },
        QpInit { max_rq_wrs: 301, ..good },
        QpInit { max_send_sges: 9, ..good },
        QpInit { max_receive_sges: 9, ..good },
        QpInit { pd: dead, ..good },
        QpInit { srq: Some(srq), rq_limit: 5, ..good },
    ];
    let results = bad.map(|init| side.rnic.create_qp(init, None).unwrap_err());
    use QpError::{
        InsufficientResources, InvalidCqHandle, InvalidPdId, InvalidQpHandle, InvalidRnicHandle, InvalidSrqHandle,
        IrdExceeds, OrdExceeds, RqLimitOutOfRange, TooManySges, TooManyWrs, WindowsStillBound,
    };
    let expected = [
        InvalidCqHandle,
        InvalidSrqHandle,
        OrdExceeds,
        IrdExceeds,
        TooManyWrs,
        TooManyWrs,
        TooManySges,
        TooManySges,
        InvalidPdId,
        RqLimitOutOfRange,
    ];
    shows! { proof:
        "VERBS-9.2.5.1-20" => results == expected && closed.rnic.create_qp(good, None).unwrap_err() == InvalidRnicHandle;
        // The rejected calls created no Queue Pair, so a second Queue Pair is still possible.
        "VERBS-9.2.5.1-7" => side.rnic.create_qp(good, None).is_ok()
            && side.rnic.create_qp(good, None).unwrap_err() == InsufficientResources;
        "VERBS-9.2.5.2-18" => [side.rnic.query_qp(side.qp).err(), side.rnic.query_qp(closed.qp).err(),
            closed.rnic.query_qp(closed.qp).err()] == [None, Some(InvalidQpHandle), Some(InvalidRnicHandle)];
    }
    let window = bound(&mut side);
    shows! { proof:
        "VERBS-9.2.5.4-4" => [side.rnic.destroy_qp(side.qp), side.rnic.destroy_qp(closed.qp), closed.rnic.destroy_qp(closed.qp)]
            == [Err(WindowsStillBound), Err(InvalidQpHandle), Err(InvalidRnicHandle)];
        "VERBS-9.2.5.4-3" => side.rnic.query_qp(side.qp).is_ok() && side.rnic.memory().query_window(window.index).unwrap().key.is_some();
        "VERBS-9.5.1.5-29" => side.rnic.destroy_qp(side.qp) == Err(WindowsStillBound);
        "VERBS-9.2.5.4-2" => side.rnic.memory_mut().deallocate_stag(window.index).is_ok() && side.rnic.destroy_qp(side.qp) == Ok(());
        "VERBS-9.5.1.5-18" => side.modify(&QpModify::to(QpState::Error)) == Err(InvalidQpHandle);
    }
}

/// Puts `side` in RTS, and binds a window on its Queue Pair.
fn bound(side: &mut Side) -> Stag {
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    let window = Stag { index: side.rnic.memory_mut().allocate_window(side.pd).unwrap(), key: StagKey(1) };
    let access = RemoteAccess { read: true, write: true };
    let region = crate::verbs::peers::register(&mut side.rnic, side.pd, side.buffer, Access::ALL);
    let bind = Bind { window, region, address: crate::verbs::peers::VA, length: 9, va_based: true, access };
    side.post(SendWr { fence: Fence::None, ..SendWr::new(1, Operation::Bind(bind)) });
    side.transmit(Instant::ORIGIN, 9);
    window
}

#[test]
fn a_destroyed_queue_pair_is_gone() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let mut foreign = open(RnicSettings::default());
    shows! { proof: "VERBS-9.5.1.5-17" => foreign.query_qp(peers.a.qp).unwrap_err() == QpError::InvalidQpHandle; }
    peers.a.post_receive(1, 0, 1);
    let wr = peers.a.send_of(2, 0, 1);
    peers.a.post(wr);
    let qp = peers.a.qp;
    let a = &mut peers.a;
    shows! { proof:
        "VERBS-6.1.4-14" => a.rnic.destroy_qp(qp) == Ok(());
        "VERBS-6.1.4-3" => a.rnic.query_qp(qp).unwrap_err() == QpError::InvalidQpHandle;
        "VERBS-6.1.4-13" => a.poll().is_empty();
        "VERBS-6.1.4-4" => a.transmit(Instant::ORIGIN, 99) == (Vec::new(), Some(TransmitResult::Reset));
        "VERBS-9.5.1.5-19" => a.rnic.destroy_qp(qp) == Err(QpError::InvalidQpHandle);
        "VERBS-9.5.1.7-3" => a.rnic.post_send(qp, Vec::new()).unwrap_err().status == PostStatus::InvalidQpHandle;
        "VERBS-9.5.1.7-4" => a.rnic.post_receive(qp, Vec::new()).unwrap_err().status == PostStatus::InvalidQpHandle;
    }
    assert_eq!(foreign.destroy_qp(peers.b.qp), Err(QpError::InvalidQpHandle));
}

#[test]
fn a_queue_pair_can_be_destroyed_in_every_state() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let in_state = |state| {
        let mut side = Side::new(|_| ());
        if state != QpState::Idle {
            side = side.start();
            if state != QpState::Rts {
                side.to(state).unwrap();
            }
        }
        side.state() == state && side.rnic.destroy_qp(side.qp).is_ok()
    };
    shows! { proof:
        "VERBS-6.1.4-8" => QpState::ALL.into_iter().all(in_state);
        // When a Queue Pair is destroyed, its flushed completions that were not polled are removed
        // from the CQ.
        "VERBS-6.1.4-12" => {
            let mut side = Side::new(|_| ());
            side.post_receive(1, 0, 1);
            side.to(QpState::Error).unwrap();
            side.rnic.destroy_qp(side.qp).unwrap();
            side.rnic.poll_cq(side.cq) == Err(CqError::Empty)
        };
        "VERBS-6.1.4-15" => {
            let mut side = Side::new(|_| ());
            let cq = side.rnic.create_cq(2, None).unwrap().0;
            (0..100).all(|_| {
                let qp = side.rnic.create_qp(QpInit::new(side.pd, cq, cq), None).unwrap().0;
                let list: Vec<_> = (0..2).map(|wr_id| ReceiveWr { wr_id, scatter: Vec::new() }).collect();
                side.rnic.post_receive(qp, list).unwrap();
                side.rnic.modify_qp(Instant::ORIGIN, qp, &QpModify::to(QpState::Error)).unwrap();
                side.rnic.destroy_qp(qp).is_ok()
            }) && side.event_ids().is_empty()
        };
    }
}
