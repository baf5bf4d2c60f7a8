//! These tests call each verb of draft-hilland-rddp-verbs sections 9.2 to 9.4 once. Each verb has
//! the effect that its name describes.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::Instant;
use weft_peer::memory::{
    Access, PhysicalBufferList, RegionKind, Registration, SharedRegistration, StagKey, StagState, ToBase,
};
use weft_peer::verbs::{
    HandlerAddress, HandlerOperation, Node, NotifyKind, QpInit, QpModify, QpState, ReceiveWr, RnicSettings, SrqInit,
    SrqModify,
};

use crate::verbs::peers::{Side, shows};

#[test]
fn rnic_pd_and_cq_verbs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
    let (cq, entries) = rnic.create_cq(5, None).unwrap();
    let pd = rnic.memory_mut().allocate_pd().unwrap();
    shows! { proof:
        "VERBS-9.2.1.2-1" => rnic.query().is_ok();
        "VERBS-9.2.2.1-1" => rnic.memory_mut().allocate_window(pd).is_ok_and(|window| rnic.memory_mut().deallocate_stag(window).is_ok());
        "VERBS-9.2.2.2-1" => rnic.memory_mut().deallocate_pd(pd) == Ok(()) && rnic.memory_mut().allocate_window(pd).is_err();
        "VERBS-9.2.3.1-1" => entries >= 5;
        "VERBS-9.2.3.2-1" => rnic.query_cq(cq).unwrap().entries == entries;
        "VERBS-9.2.3.3-1" => rnic.modify_cq(cq, 50).unwrap() >= 50 && rnic.query_cq(cq).unwrap().entries >= 50;
        "VERBS-9.2.3.4-1" => rnic.destroy_cq(cq) == Ok(()) && rnic.query_cq(cq).is_err();
    }
}

#[test]
fn srq_and_qp_verbs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let rnic = &mut side.rnic;
    let init = SrqInit { pd: side.pd, max_wrs: 4, max_sges: 1, limit: 0 };
    let (srq, attributes) = rnic.create_srq(init).unwrap();
    let with = QpInit { srq: Some(srq), ..QpInit::new(side.pd, side.cq, side.cq) };
    let (qp, id, _) = rnic.create_qp(with, None).unwrap();
    let modify = SrqModify { max_wrs: Some(9), limit: None };
    shows! { proof:
        "VERBS-6.3-14" => attributes.max_wrs >= 4;
        "VERBS-6.3-15" => rnic.query_srq(srq) == Ok(attributes);
        "VERBS-6.3-16" => rnic.modify_srq(srq, modify) == Ok(9) && rnic.query_srq(srq).unwrap().max_wrs == 9;
        "VERBS-6.3-18" => rnic.query_qp(qp).unwrap().init.srq == Some(srq);
        "VERBS-6.3-20" => rnic.post_srq(srq, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]) == Ok(1);
        "VERBS-9.2.5.2-1" => rnic.query_qp(qp).unwrap().id == id;
        "VERBS-9.2.5.4-1" => rnic.destroy_qp(qp) == Ok(()) && rnic.query_qp(qp).is_err();
        "VERBS-6.3-17" => rnic.destroy_srq(srq) == Ok(()) && rnic.query_srq(srq).is_err();
    }
}

#[test]
fn qp_work_and_event_verbs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let rnic = &mut side.rnic;
    let modify = QpModify { ord: Some(1), ..QpModify::to(QpState::Idle) };
    shows! { proof:
        "VERBS-9.2.5.3-1" => rnic.modify_qp(Instant::ORIGIN, side.qp, &modify).unwrap().ord == 1;
        "VERBS-9.3.1.2-1" => rnic.post_receive(side.qp, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]) == Ok(1);
        "VERBS-9.3.2.2-1" => rnic.request_completion_notification(side.cq, NotifyKind::NextCompletion) == Ok(());
        "VERBS-9.4.1-1" => rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(2))).is_ok();
        "VERBS-9.4.2-1" => rnic.set_async_event_handler(Some(HandlerAddress(2))) == Ok(());
    }
}

#[test]
fn memory_verbs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let (pd, memory) = (side.pd, side.rnic.memory_mut());
    let list = PhysicalBufferList::of(side.buffer, 0, 10, 4096);
    let access = Access::LOCAL;
    let registration = Registration { pd, key: StagKey(1), list, base: ToBase::ZeroBased, remote: false, access };
    let shared = SharedRegistration { pd, key: StagKey(2), base: ToBase::ZeroBased, remote: false, access };
    let allocated = memory.allocate_stag(pd, 1, false).unwrap().stag;
    let region = memory.register(&registration).unwrap().stag;
    let window = memory.allocate_window(pd).unwrap();
    shows! { proof:
        "VERBS-9.2.6.1-1" => memory.query_region(allocated.index).unwrap().state == StagState::Invalid;
        "VERBS-9.2.6.2-1" => memory.query_region(region.index).unwrap().state == StagState::Valid;
        "VERBS-9.2.6.3-1" => memory.query_region(region.index).unwrap().access == Some(access);
        "VERBS-9.2.6.5-1" => memory.reregister(allocated.index, &registration).is_ok()
            && memory.query_region(allocated.index).unwrap().state == StagState::Valid;
        "VERBS-9.2.6.6-1" => memory.register_shared(region, &shared)
            .is_ok_and(|stag| memory.query_region(stag.index).unwrap().kind == RegionKind::Shared);
        "VERBS-9.2.6.7-1" => memory.query_window(window).is_ok();
        "VERBS-9.2.6.8-1" => memory.query_window(window).unwrap().state == StagState::Invalid;
        "VERBS-9.2.6.4-1" => memory.deallocate_stag(window) == Ok(()) && memory.query_window(window).is_err();
    }
}
