//! RNIC, CQ, S-RQ and event verbs: what they give, and each of their Immediate Errors (draft Figures 28 to 31 and 35).

use weft_core::coverage::{By, Proof};
use weft_peer::memory::{
    Access, ListMode, MemoryError, MemorySettings, PhysicalBufferList, Registration, SharedRegistration, Stag,
    StagIndex, StagKey, ToBase,
};
use weft_peer::verbs::{
    CqError, EventError, HandlerAddress, HandlerOperation, Node, NotifyKind, QpError, QpInit, ReceiveWr, Rnic,
    RnicError, RnicSettings, SrqError, SrqInit, SrqModify,
};

use crate::world::{Side, World, shows};

fn open(settings: RnicSettings) -> Rnic {
    Node::new(["weft0"]).open("weft0", settings).unwrap().0
}

#[test]
fn an_rnic_is_open_once() {
    let mut proof = Proof::new(By::Test);
    let node = Node::new(["weft0", "weft1"]);
    let settings = RnicSettings::default();
    let (mut rnic, _) = node.open("weft0", settings).unwrap();
    let status = |result: Result<_, RnicError>| result.map(|_: (Rnic, _)| ()).unwrap_err();
    shows! { proof:
        "VERBS-9.5.1.1-3" => status(node.open("weft9", settings)) == RnicError::InvalidName;
        "VERBS-9.5.1.1-5" => status(node.open("weft0", settings)) == RnicError::InUse;
        "VERBS-5.1.2-5" => status(node.clone().open("weft0", settings)) == RnicError::InUse;
        "VERBS-9.2.1.3-3" => rnic.close() == Ok(());
        "VERBS-9.5.1.1-7" => rnic.close() == Err(RnicError::InvalidRnicHandle);
        "VERBS-9.5.1.1-6" => rnic.query() == Err(RnicError::InvalidRnicHandle);
        "VERBS-9.2.1.3-1" => node.open("weft0", settings).is_ok();
    }
}

#[test]
fn page_and_block_mode_are_chosen_at_opening() {
    let mut proof = Proof::new(By::Test);
    let block = MemorySettings { mode: ListMode::Block, ..MemorySettings::default() };
    let pages = open(RnicSettings::default());
    let blocks = open(RnicSettings { memory: block, ..RnicSettings::default() });
    shows! { proof:
        "VERBS-5.1.2-3" => pages.list_mode() == ListMode::Page;
        "VERBS-7.6.2-3" => blocks.list_mode() == ListMode::Block;
        "VERBS-9.2.1.2-25" => blocks.query().unwrap().settings.memory.mode == ListMode::Block;
    }
}

#[test]
fn query_tells_limits_and_abilities() {
    let mut proof = Proof::new(By::Test);
    let settings = RnicSettings {
        max_qps: 3,
        max_wrs: 5,
        max_srq_wrs: 7,
        max_srqs: 2,
        max_sges: 6,
        max_cqs: 4,
        max_cqes: 9,
        ..RnicSettings::default()
    };
    let told = open(settings).query().unwrap();
    shows! { proof:
        "VERBS-9.2.1.2-6" => told.settings.max_qps == 3;
        "VERBS-9.2.1.2-7" => told.settings.max_wrs == 5;
        "VERBS-9.2.1.2-8" => told.settings.max_srq_wrs == 7;
        "VERBS-9.2.1.2-9" => told.settings.max_sges == 6;
        "VERBS-9.2.1.2-11" => told.settings.max_cqs == 4;
        "VERBS-9.2.1.2-12" => told.settings.max_cqes == 9;
        "VERBS-9.2.1.2-30" => told.settings.max_srqs == 2;
        "VERBS-9.2.1.2-3" => told.rnic_ird == 0;
    }
    let mut proof = Proof::new(By::Test);
    shows! { proof:
        "VERBS-9.2.1.2-18" => told.rnic_ord == 0;
        "VERBS-9.2.1.2-19" => told.settings.max_ird == 128;
        "VERBS-9.2.1.2-20" => told.settings.max_ord == 128;
        "VERBS-9.2.1.2-21" => told.modifies_ird;
        "VERBS-9.2.1.2-22" => told.raises_ord;
        "VERBS-9.2.1.2-24" => told.resizes_queues;
        "VERBS-9.2.1.2-28" => told.srqs;
        "VERBS-9.2.1.2-29" => told.detects_cq_overflow;
    }
}

#[test]
fn completion_queues_and_their_errors() {
    let mut proof = Proof::new(By::Test);
    let mut rnic = open(RnicSettings { max_cqs: 1, max_cqes: 10, ..RnicSettings::default() });
    let mut other = open(RnicSettings::default());
    let foreign = other.create_cq(1, None).unwrap().0;
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
    let mut proof = Proof::new(By::Test);
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

#[test]
fn a_cq_in_use_stays_and_is_resized() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    for n in 0..3 {
        let wr = world.b.remote(0);
        let payload = weft_peer::verbs::Payload::Gather(vec![world.a.sge(0, 1)]);
        let operation = weft_peer::verbs::Operation::Write { payload, remote: wr };
        world.a.post(weft_peer::verbs::SendWr::new(n, operation));
    }
    world.run();
    let (rnic, cq) = (&mut world.a.rnic, world.a.cq);
    shows! { proof:
        "VERBS-5.3.4-3" => rnic.destroy_cq(cq) == Err(CqError::InUse);
        "VERBS-5.3.4-2" => rnic.query_cq(cq).is_ok();
        "VERBS-5.3.3-6" => rnic.modify_cq(cq, 2) == Err(CqError::ShrinkFailed);
        "VERBS-5.3.3-5" => rnic.query_cq(cq).unwrap().entries == 1024;
        "VERBS-5.3.3-1" => rnic.modify_cq(cq, 3) == Ok(3);
    }
    shows! { proof: "VERBS-5.3.3-2" => world.a.poll().len() == 3; }
    world.a.rnic.destroy_qp(world.a.qp).unwrap();
    shows! { proof: "VERBS-5.1.1.2-4" => world.a.rnic.destroy_cq(cq) == Ok(()); }
}

#[test]
fn event_handlers() {
    let mut proof = Proof::new(By::Test);
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
}

fn srq(rnic: &mut Rnic, max_wrs: u32, limit: u32) -> SrqInit {
    let pd = rnic.allocate_pd().unwrap();
    SrqInit { pd, max_wrs, max_sges: 2, limit }
}

#[test]
fn shared_receive_queues_and_their_errors() {
    let mut proof = Proof::new(By::Test);
    let mut rnic = open(RnicSettings { max_srqs: 1, max_srq_wrs: 8, max_sges: 4, ..RnicSettings::default() });
    let init = srq(&mut rnic, 4, 3);
    let dead = rnic.allocate_pd().unwrap();
    rnic.deallocate_pd(dead).unwrap();
    let mut fails = |init| rnic.create_srq(init).unwrap_err();
    shows! { proof:
        "VERBS-9.5.1.4-8" => fails(SrqInit { max_wrs: 9, ..init }) == SrqError::TooManyWrs;
        "VERBS-9.5.1.4-10" => fails(SrqInit { max_sges: 5, ..init }) == SrqError::TooManySges;
        "VERBS-9.5.1.4-11" => fails(SrqInit { limit: 5, ..init }) == SrqError::LimitOutOfRange;
        "VERBS-9.5.1.4-7" => fails(SrqInit { pd: dead, ..init }) == SrqError::InvalidPdId;
    }
    let (handle, attributes) = rnic.create_srq(init).unwrap();
    shows! { proof:
        "VERBS-9.5.1.4-1" => rnic.create_srq(init).unwrap_err() == SrqError::InsufficientResources;
        "VERBS-9.2.4.1-5" => attributes.max_wrs >= 4 && attributes.max_sges >= 2;
        "VERBS-9.2.4.2-3" => rnic.query_srq(handle) == Ok(attributes) && attributes.pd == init.pd;
        "VERBS-6.3.8-3" => attributes.armed && attributes.limit == 3;
    }
    let mut proof = Proof::new(By::Test);
    let mut modify = |max_wrs, limit| rnic.modify_srq(handle, SrqModify { max_wrs, limit });
    shows! { proof:
        "VERBS-9.5.1.4-9" => modify(Some(9), None) == Err(SrqError::TooManyWrs);
        "VERBS-9.5.1.4-12" => modify(None, Some(5)) == Err(SrqError::LimitOutOfRange);
        "VERBS-6.3.8-9" => modify(Some(2), None) == Err(SrqError::InvalidModifier);
        "VERBS-6.3.8-8" => modify(None, Some(3)) == Ok(4);
        "VERBS-9.2.4.3-4" => modify(Some(8), Some(0)) == Ok(8);
    }
    let receives = |count: u64| (0..count).map(|wr_id| ReceiveWr { wr_id, scatter: Vec::new() }).collect::<Vec<_>>();
    let full = rnic.post_srq(handle, receives(9)).unwrap_err();
    shows! { proof:
        "VERBS-6.3.5-5" => full.posted == 8 && full.status == weft_peer::verbs::PostStatus::TooManyWrs;
        "VERBS-6.3.2-6" => rnic.modify_srq(handle, SrqModify { max_wrs: Some(7), limit: None }) == Err(SrqError::ShrinkFailed);
        "VERBS-6.3.3-2" => rnic.destroy_srq(handle) == Ok(());
    }
    let mut proof = Proof::new(By::Test);
    shows! { proof:
        "VERBS-9.5.1.4-13" => rnic.query_srq(handle) == Err(SrqError::InvalidSrqHandle);
        "VERBS-9.5.1.4-14" => rnic.modify_srq(handle, SrqModify::default()) == Err(SrqError::InvalidSrqHandle);
        "VERBS-9.5.1.4-15" => rnic.destroy_srq(handle) == Err(SrqError::InvalidSrqHandle);
        "VERBS-9.5.1.7-5" => rnic.post_srq(handle, receives(1)).unwrap_err().status
            == weft_peer::verbs::PostStatus::InvalidSrqHandle;
    }
}

#[test]
fn everything_is_over_when_the_rnic_is_closed() {
    let mut proof = Proof::new(By::Test);
    let mut side = Side::new(|_| ());
    side.rnic.close().unwrap();
    let (cq, qp, pd) = (side.cq, side.qp, side.pd);
    let init = QpInit::new(pd, cq, cq);
    let rnic = &mut side.rnic;
    shows! { proof:
        "VERBS-5.1.4-2" => rnic.buffer(side.buffer).is_err();
        "VERBS-9.5.1.3-6" => rnic.create_cq(1, None) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.3-7" => rnic.query_cq(cq) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.3-8" => rnic.modify_cq(cq, 1) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.3-9" => rnic.destroy_cq(cq) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.3-10" => rnic.poll_cq(cq) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.5-3" => rnic.create_qp(init, None).unwrap_err() == QpError::InvalidRnicHandle;
        "VERBS-9.5.1.5-4" => rnic.query_qp(qp).unwrap_err() == QpError::InvalidRnicHandle;
    }
    let mut proof = Proof::new(By::Test);
    let modify = weft_peer::verbs::QpModify::to(weft_peer::verbs::QpState::Error);
    let closed = weft_peer::verbs::PostStatus::InvalidRnicHandle;
    shows! { proof:
        "VERBS-9.5.1.5-5" => rnic.modify_qp(weft_peer::Instant::ORIGIN, qp, &modify) == Err(QpError::InvalidRnicHandle);
        "VERBS-9.5.1.5-6" => rnic.destroy_qp(qp) == Err(QpError::InvalidRnicHandle);
        "VERBS-9.5.1.7-1" => rnic.post_send(qp, Vec::new()).unwrap_err().status == closed;
        "VERBS-9.5.1.7-2" => rnic.post_receive(qp, Vec::new()).unwrap_err().status == closed;
        "VERBS-9.5.1.8-1" => rnic.request_completion_notification(cq, NotifyKind::NextCompletion)
            == Err(EventError::InvalidRnicHandle);
        "VERBS-9.5.1.8-2" => rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(1)))
            == Err(EventError::InvalidRnicHandle);
        "VERBS-9.5.1.8-3" => rnic.set_async_event_handler(None) == Err(EventError::InvalidRnicHandle);
        "VERBS-9.5.1.2-2" => rnic.allocate_pd() == Err(MemoryError::InvalidRnicHandle);
    }
}

/// Draft Figures 29, 31 and 33: the RNIC is closed.
#[test]
fn memory_verbs_when_the_rnic_is_closed() {
    let mut proof = Proof::new(By::Test);
    let mut side = Side::new(|_| ());
    let (pd, stag) = (side.pd, side.stag);
    let list = PhysicalBufferList::of(side.buffer, 0, 10, 4096);
    let registration =
        Registration { pd, key: StagKey(1), list, base: ToBase::ZeroBased, remote: false, access: Access::LOCAL };
    let shared =
        SharedRegistration { pd, key: StagKey(1), base: ToBase::ZeroBased, remote: false, access: Access::LOCAL };
    let (index, closed) = (StagIndex::new(1).unwrap(), MemoryError::InvalidRnicHandle);
    side.rnic.close().unwrap();
    let rnic = &mut side.rnic;
    shows! { proof:
        "VERBS-9.5.1.6-6" => rnic.allocate_stag(pd, 1, true) == Err(closed);
        "VERBS-9.5.1.6-7" => rnic.register(&registration) == Err(closed);
        "VERBS-9.5.1.6-8" => rnic.query_region(index) == Err(closed);
        "VERBS-9.5.1.6-9" => rnic.deallocate_stag(index) == Err(closed);
        "VERBS-9.5.1.6-10" => rnic.reregister(index, &registration) == Err(closed);
        "VERBS-9.5.1.6-11" => rnic.register_shared(Stag { key: StagKey(1), ..stag }, &shared) == Err(closed);
        "VERBS-9.5.1.6-12" => rnic.allocate_window(pd) == Err(closed);
        "VERBS-9.5.1.6-13" => rnic.query_window(index) == Err(closed);
    }
    let mut proof = Proof::new(By::Test);
    let init = SrqInit { pd, max_wrs: 1, max_sges: 1, limit: 0 };
    shows! { proof:
        "VERBS-9.5.1.2-3" => rnic.deallocate_pd(pd) == Err(closed);
        "VERBS-9.5.1.4-3" => rnic.create_srq(init).unwrap_err() == SrqError::InvalidRnicHandle;
    }
}
