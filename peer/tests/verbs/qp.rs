//! Queue Pair verbs: creation, attributes, destruction, posting (draft Figures 4, 5, 32 and 34).

use bytes::Bytes;
use weft_core::coverage::{By, Proof};
use weft_core::wire::mpa::Framing;
use weft_peer::Instant;
use weft_peer::memory::{Bind, RemoteAccess, STAG_ZERO, Stag, StagKey};
use weft_peer::verbs::{
    CompletionStatus, CqError, EventId, Fence, LlpHandle, Node, Operation, Payload, PostStatus, QpAllocated, QpError,
    QpInit, QpModify, QpState, ReceiveWr, RemoteAddress, RnicSettings, SendWr, Sent, Sge, SrqError, SrqInit,
};

use crate::world::{PLAIN, Side, World, llp_settings, shows};

fn small() -> RnicSettings {
    RnicSettings { max_qps: 1, max_wrs: 300, max_sges: 8, max_ird: 20, max_ord: 30, ..RnicSettings::default() }
}

#[test]
fn create_names_what_is_wrong() {
    let mut proof = Proof::new(By::Test);
    let mut side = Side::with(small(), llp_settings(PLAIN, 1460, true), |_| ());
    let good = side.rnic.query_qp(side.qp).unwrap().init;
    let dead = side.rnic.allocate_pd().unwrap();
    side.rnic.deallocate_pd(dead).unwrap();
    let cq = side.rnic.create_cq(1, None).unwrap().0;
    side.rnic.destroy_cq(cq).unwrap();
    let mut fails = |init| side.rnic.create_qp(init, None).unwrap_err();
    shows! { proof:
        "VERBS-9.5.1.5-1" => fails(good) == QpError::InsufficientResources;
        "VERBS-9.5.1.5-7" => fails(QpInit { rq_cq: cq, ..good }) == QpError::InvalidCqHandle;
        "VERBS-9.5.1.5-8" => fails(QpInit { ord: 31, ..good }) == QpError::OrdExceeds;
        "VERBS-9.5.1.5-10" => fails(QpInit { ird: 21, ..good }) == QpError::IrdExceeds;
        "VERBS-9.5.1.5-12" => fails(QpInit { max_sq_wrs: 301, ..good }) == QpError::TooManyWrs;
        "VERBS-8.1.3.2-11" => fails(QpInit { max_write_sges: 9, ..good }) == QpError::TooManySges;
        "VERBS-9.5.1.5-16" => fails(QpInit { pd: dead, ..good }) == QpError::InvalidPdId;
    }
    let mut proof = Proof::new(By::Test);
    let init = SrqInit { pd: side.pd, max_wrs: 4, max_sges: 2, limit: 0 };
    let srq = side.rnic.create_srq(init).unwrap().0;
    let with = QpInit { srq: Some(srq), max_rq_wrs: 999, ..good };
    shows! { proof:
        "VERBS-9.5.1.5-27" => side.rnic.create_qp(QpInit { rq_limit: 5, ..with }, None).unwrap_err()
            == QpError::RqLimitOutOfRange;
        "VERBS-5.1.1.2-5" => side.rnic.deallocate_pd(side.pd).is_err();
    }
    side.rnic.destroy_qp(side.qp).unwrap();
    let (_, _, allocated) = side.rnic.create_qp(with, None).unwrap();
    shows! { proof:
        "VERBS-6.3.4-2" => allocated.max_rq_wrs.is_none();
        "VERBS-9.5.1.4-17" => side.rnic.destroy_srq(srq) == Err(SrqError::QpsStillAssociated);
        "VERBS-6.3.3-1" => side.rnic.query_srq(srq).is_ok();
    }
}

#[test]
fn query_gives_back_what_was_created() {
    let mut proof = Proof::new(By::Test);
    let mut side = Side::new(|init| {
        (init.ord, init.ird, init.max_sq_wrs, init.max_rq_wrs) = (3, 5, 7, 9);
        (init.inbound_read, init.inbound_write, init.bind) = (true, false, true);
    });
    let told = side.rnic.query_qp(side.qp).unwrap();
    shows! { proof:
        "VERBS-9.2.5.2-3" => told.init.sq_cq == side.cq && told.init.rq_cq == side.cq;
        "VERBS-9.2.5.2-5" => (told.init.max_sq_wrs, told.init.max_rq_wrs) == (7, 9);
        "VERBS-9.2.5.2-7" => (told.init.ord, told.init.ird) == (3, 5);
        "VERBS-9.2.5.2-8" => told.state == QpState::Idle;
        "VERBS-9.2.5.2-9" => told.init.pd == side.pd && told.id == side.id;
        "VERBS-9.2.5.2-10" => told.privileged;
        "VERBS-9.2.5.2-12" => !told.init.inbound_write;
        "VERBS-9.2.5.2-13" => told.init.bind;
    }
    let mut proof = Proof::new(By::Test);
    let allocated = QpAllocated { max_sq_wrs: 7, max_rq_wrs: Some(9), ord: 3, ird: 5 };
    let again = side.rnic.create_qp(told.init, None).unwrap();
    shows! { proof:
        "VERBS-9.2.5.1-18" => (again.2.max_sq_wrs, again.2.max_rq_wrs) == (7, Some(9));
        "VERBS-9.2.5.1-19" => again.2 == allocated;
        "VERBS-6.1.1-11" => again.1 != side.id;
        "VERBS-9.2.5.2-14" => told.terminate.is_none();
        "VERBS-9.2.5.2-17" => told.llp.is_none();
    }
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    assert_eq!(side.rnic.query_qp(side.qp).unwrap().llp, Some(side.llp));
}

/// Draft Figures 4 and 5: each attribute where it may be changed, and where it may not.
#[test]
fn attributes_change_where_the_figures_let_them() {
    let mut proof = Proof::new(By::Test);
    let all = |next, side: &Side| QpModify {
        ord: Some(2),
        ird: Some(3),
        max_sq_wrs: Some(40),
        max_rq_wrs: Some(50),
        ..if next == QpState::Rts && side.state() == QpState::Idle {
            QpModify::to_rts(side.llp)
        } else {
            QpModify::to(next)
        }
    };
    let set = |side: &Side| {
        let init = side.rnic.query_qp(side.qp).unwrap().init;
        (init.ord, init.ird, init.max_sq_wrs, init.max_rq_wrs) == (2, 3, 40, 50)
    };
    let mut idle = Side::new(|_| ());
    let modify = all(QpState::Idle, &idle);
    shows! { proof: "VERBS-6.1.3-18" => idle.modify(&modify) == Ok(()) && set(&idle); }
    let mut side = Side::new(|_| ());
    let modify = all(QpState::Rts, &side);
    shows! { proof: "VERBS-6.1.3-27" => side.modify(&modify) == Ok(()) && set(&side); }
    let mut side = Side::new(|_| ()).start();
    let modify = all(QpState::Rts, &side);
    shows! { proof: "VERBS-6.1.3-28" => side.modify(&modify) == Ok(()) && set(&side); }
    let refused = |from_idle: bool, next| {
        let mut side = Side::new(|_| ());
        if !from_idle {
            side = side.start();
        }
        let before = side.rnic.query_qp(side.qp).unwrap();
        let result = side.modify(&QpModify { ord: Some(1), ..QpModify::to(next) });
        result == Err(QpError::CannotChangeAttribute) && side.rnic.query_qp(side.qp).unwrap() == before
    };
    shows! { proof:
        "VERBS-6.1.3-20" => refused(true, QpState::Error);
        "VERBS-6.1.3-22" => refused(false, QpState::Closing);
        "VERBS-6.1.3-23" => refused(false, QpState::Terminate);
        "VERBS-6.1.3-24" => refused(false, QpState::Error);
    }
}

#[test]
fn modify_names_what_is_wrong_and_changes_nothing() {
    let mut proof = Proof::new(By::Test);
    let mut side = Side::with(small(), llp_settings(PLAIN, 1460, true), |_| ());
    side.post_receive(1, 0, 1);
    side.post_receive(2, 0, 1);
    let before = side.rnic.query_qp(side.qp).unwrap();
    let idle = QpModify::to(QpState::Idle);
    let gone: LlpHandle = side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
    side.rnic.detach_stream(Instant::ORIGIN, gone);
    let mut fails = |modify: QpModify| side.modify(&modify).unwrap_err();
    shows! { proof:
        "VERBS-9.5.1.5-9" => fails(QpModify { ord: Some(31), ..idle.clone() }) == QpError::OrdExceeds;
        "VERBS-9.5.1.5-11" => fails(QpModify { ird: Some(21), ..idle.clone() }) == QpError::IrdExceeds;
        "VERBS-9.5.1.5-13" => fails(QpModify { max_sq_wrs: Some(301), ..idle.clone() }) == QpError::TooManyWrs;
        "VERBS-6.1.3-13" => fails(QpModify { max_rq_wrs: Some(1), ord: Some(1), ..idle }) == QpError::ShrinkFailed;
        "VERBS-6.1.3-2" => fails(QpModify::to(QpState::Rts)) == QpError::InvalidModifier;
        "VERBS-9.5.1.5-23" => fails(QpModify::to_rts(gone)) == QpError::InvalidLlpStreamHandle;
        "VERBS-6.2.1-6" => fails(QpModify::to(QpState::Closing)) == QpError::InvalidStateChange
            && fails(QpModify::to(QpState::Terminate)) == QpError::InvalidStateChange;
    }
    shows! { proof: "VERBS-6.1.3-17" => side.rnic.query_qp(side.qp).unwrap() == before; }
    let mut proof = Proof::new(By::Test);
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    let second = side.rnic.create_qp(before.init, None);
    let message = QpModify { stream_message: Some(Bytes::new()), ..QpModify::to(QpState::Rts) };
    shows! { proof:
        "VERBS-6.2.2-6" => side.to(QpState::Idle) == Err(QpError::InvalidStateChange);
        "VERBS-9.2.5.3-8" => side.modify(&message) == Err(QpError::CannotChangeAttribute);
        "VERBS-9.5.1.5-20" => side.modify(&message) == Err(QpError::CannotChangeAttribute);
    }
    assert_eq!(second.unwrap_err(), QpError::InsufficientResources);
}

#[test]
fn a_stream_that_was_reset_is_no_stream() {
    let mut proof = Proof::new(By::Test);
    let mut side = Side::new(|_| ());
    side.rnic.handle_reset(Instant::ORIGIN, side.llp);
    shows! { proof:
        "VERBS-6.2.1.2-2" => side.modify(&QpModify::to_rts(side.llp)) == Err(QpError::InvalidLlpStreamHandle);
        "VERBS-6.2.1.3-12" => side.state() == QpState::Idle;
    }
}

#[test]
fn a_destroyed_queue_pair_is_gone() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let mut foreign = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0;
    shows! { proof: "VERBS-9.5.1.5-17" => foreign.query_qp(world.a.qp).unwrap_err() == QpError::InvalidQpHandle; }
    world.a.post_receive(1, 0, 1);
    let wr = world.a.send_of(2, 0, 1);
    world.a.post(wr);
    let qp = world.a.qp;
    let a = &mut world.a;
    shows! { proof:
        "VERBS-6.1.4-14" => a.rnic.destroy_qp(qp) == Ok(());
        "VERBS-6.1.4-3" => a.rnic.query_qp(qp).unwrap_err() == QpError::InvalidQpHandle;
        "VERBS-6.1.4-13" => a.poll().is_empty();
        "VERBS-6.1.4-4" => a.transmit(Instant::ORIGIN, 99) == (Vec::new(), Some(Sent::Reset));
        "VERBS-9.5.1.5-19" => a.rnic.destroy_qp(qp) == Err(QpError::InvalidQpHandle);
        "VERBS-9.5.1.7-3" => a.rnic.post_send(qp, Vec::new()).unwrap_err().status == PostStatus::InvalidQpHandle;
        "VERBS-9.5.1.7-4" => a.rnic.post_receive(qp, Vec::new()).unwrap_err().status == PostStatus::InvalidQpHandle;
    }
    assert_eq!(foreign.destroy_qp(world.b.qp), Err(QpError::InvalidQpHandle));
}

#[test]
fn every_state_lets_go() {
    let mut proof = Proof::new(By::Test);
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
    shows! { proof: "VERBS-6.1.4-8" => QpState::ALL.into_iter().all(in_state); }
}

#[test]
fn posting_stops_at_the_first_error() {
    let mut proof = Proof::new(By::Test);
    let mut side = Side::new(|init| (init.max_sq_wrs, init.max_rq_wrs, init.bind) = (3, 2, false));
    let good = side.send_of(1, 0, 1);
    let sges = |count| Payload::Gather(vec![Sge { stag: 1, tagged_offset: 0, length: u32::MAX }; count]);
    let send = |payload| SendWr::new(2, Operation::Send { payload, solicited: false, invalidate: None });
    let post = |side: &mut Side, list| side.rnic.post_send(side.qp, list);
    let error = post(&mut side, vec![good.clone(), send(sges(5)), good.clone()]).unwrap_err();
    shows! { proof:
        "VERBS-8.2.1-6" => error.posted == 1;
        "VERBS-9.5.1.7-11" => error.status == PostStatus::InvalidSglFormat;
        "VERBS-9.5.1.7-13" => post(&mut side, vec![send(sges(2))]).unwrap_err().status == PostStatus::InvalidSglLength;
        "VERBS-9.5.1.7-6" => post(&mut side, vec![good.clone(), good.clone(), good.clone()]).unwrap_err().posted == 2;
        "VERBS-8.2.1-10" => post(&mut side, vec![good.clone()]).unwrap_err().status == PostStatus::TooManyWrs;
    }
    let mut proof = Proof::new(By::Test);
    let window = Stag { index: side.rnic.allocate_window(side.pd).unwrap(), key: StagKey(1) };
    let access = RemoteAccess { read: true, write: true };
    let bind = Bind { window, region: side.stag, address: 0, length: 1, va_based: true, access };
    let local = Sge { stag: STAG_ZERO, tagged_offset: 0, length: 1 };
    let remote = RemoteAddress { stag: 1, tagged_offset: 0 };
    let zero = SendWr::new(1, Operation::Read { local, remote, invalidate_local: true });
    let fenced = SendWr { fence: Fence::Local, ..good };
    let receive =
        |count| ReceiveWr { wr_id: 1, scatter: vec![Sge { stag: 1, tagged_offset: 0, length: u32::MAX }; count] };
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

#[test]
fn a_shared_receive_queue_serves_its_queue_pairs() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::with(Framing { markers: false, crc: true }, 1460, |_| ());
    let b = &mut world.b;
    b.rnic.destroy_qp(b.qp).unwrap();
    let init = SrqInit { pd: b.pd, max_wrs: 3, max_sges: 1, limit: 2 };
    let srq = b.rnic.create_srq(init).unwrap().0;
    let with = QpInit { srq: Some(srq), rq_limit: 1, ..QpInit::new(b.pd, b.cq, b.cq) };
    b.qp = b.rnic.create_qp(with, None).unwrap().0;
    b.llp = b.rnic.attach_stream(llp_settings(Framing { markers: false, crc: true }, 1460, true)).unwrap();
    b.modify(&QpModify::to_rts(b.llp)).unwrap();
    let receives = (0..3).map(|wr_id| ReceiveWr { wr_id, scatter: vec![b.sge(wr_id * 10, 10)] }).collect();
    b.rnic.post_srq(srq, receives).unwrap();
    let refused = b.rnic.post_receive(b.qp, vec![ReceiveWr { wr_id: 9, scatter: Vec::new() }]).unwrap_err();
    shows! { proof: "VERBS-6.3.5-3" => refused.status == PostStatus::RqAssociatedWithSrq; }
    world.a.octets()[..2].copy_from_slice(b"ab");
    for n in 0..2 {
        let wr = world.a.send_of(n, n, 1);
        world.a.post(wr);
    }
    world.run();
    let events = world.b.event_ids();
    let full = world.b.rnic.post_srq(srq, vec![ReceiveWr { wr_id: 7, scatter: Vec::new() }]).unwrap_err();
    shows! { proof:
        "VERBS-6.3.8-5" => events.contains(&EventId::SrqLimitReached);
        "VERBS-6.3.8-18" => events.iter().filter(|event| **event == EventId::SrqLimitReached).count() == 1;
        "VERBS-6.3.8-13" => events.contains(&EventId::QpRqLimitReached);
        "VERBS-6.3.5-18" => full.status == PostStatus::TooManyWrs;
        "VERBS-6.3-3" => world.b.statuses() == [(0, CompletionStatus::Success), (1, CompletionStatus::Success)];
        "VERBS-6.3.5-9" => world.b.rnic.post_srq(srq, vec![ReceiveWr { wr_id: 7, scatter: Vec::new() }]) == Ok(1);
        "VERBS-6.3.5-8" => world.b.octets()[0] == b'a' && world.b.octets()[10] == b'b';
    }
    let mut proof = Proof::new(By::Test);
    world.b.to(QpState::Error).unwrap();
    shows! { proof:
        "VERBS-6.3.6-7" => world.b.poll().is_empty() && world.b.rnic.query_srq(srq).is_ok();
        "VERBS-5.1.1.2-3" => world.b.rnic.destroy_srq(srq) == Err(SrqError::QpsStillAssociated);
    }
    world.b.rnic.destroy_qp(world.b.qp).unwrap();
    assert_eq!(world.b.rnic.destroy_srq(srq), Ok(()));
    assert_eq!(world.b.rnic.poll_cq(world.b.cq), Err(CqError::Empty));
}
