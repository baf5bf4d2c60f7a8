//! These tests call every verb on a closed RNIC. The result is "invalid RNIC handle"
//! (draft-hilland-rddp-verbs, Figures 28 to 35).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::Instant;
use weft_peer::memory::{
    Access, MemoryError, PhysicalBufferList, Registration, SharedRegistration, Stag, StagIndex, StagKey, ToBase,
};
use weft_peer::verbs::{
    CqError, EventError, HandlerAddress, HandlerOperation, NotifyKind, PostStatus, QpError, QpInit, QpModify, QpState,
    SrqError, SrqHandle, SrqInit, SrqModify,
};

use crate::verbs::peers::{Side, shows};

/// A side whose RNIC was closed, and a Shared Receive Queue (S-RQ) of this RNIC.
fn closed() -> (Side, SrqHandle) {
    let mut side = Side::new(|_| ());
    let srq = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 1, max_sges: 1, limit: 0 }).unwrap().0;
    side.rnic.close().unwrap();
    (side, srq)
}

#[test]
fn cq_and_qp_verbs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut side, _) = closed();
    let (cq, qp, pd) = (side.cq, side.qp, side.pd);
    let rnic = &mut side.rnic;
    shows! { proof:
        "VERBS-9.5.1.3-6" => rnic.create_cq(1, None) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.3-7" => rnic.query_cq(cq) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.3-8" => rnic.modify_cq(cq, 1) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.3-9" => rnic.destroy_cq(cq) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.3-10" => rnic.poll_cq(cq) == Err(CqError::InvalidRnicHandle);
        "VERBS-9.5.1.5-3" => rnic.create_qp(QpInit::new(pd, cq, cq), None).unwrap_err() == QpError::InvalidRnicHandle;
        "VERBS-9.5.1.5-4" => rnic.query_qp(qp).unwrap_err() == QpError::InvalidRnicHandle;
        "VERBS-9.5.1.5-6" => rnic.destroy_qp(qp) == Err(QpError::InvalidRnicHandle);
    }
}

#[test]
fn work_and_event_verbs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut side, _) = closed();
    let (cq, qp, rnic) = (side.cq, side.qp, &mut side.rnic);
    let modify = QpModify::to(QpState::Error);
    shows! { proof:
        "VERBS-9.5.1.5-5" => rnic.modify_qp(Instant::ORIGIN, qp, &modify) == Err(QpError::InvalidRnicHandle);
        "VERBS-9.5.1.7-1" => rnic.post_send(qp, Vec::new()).unwrap_err().status == PostStatus::InvalidRnicHandle;
        "VERBS-9.5.1.7-2" => rnic.post_receive(qp, Vec::new()).unwrap_err().status == PostStatus::InvalidRnicHandle;
        "VERBS-9.5.1.8-1" => rnic.request_completion_notification(cq, NotifyKind::NextCompletion)
            == Err(EventError::InvalidRnicHandle);
        "VERBS-9.5.1.8-2" => rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(1)))
            == Err(EventError::InvalidRnicHandle);
        "VERBS-9.5.1.8-3" => rnic.set_async_event_handler(None) == Err(EventError::InvalidRnicHandle);
        "VERBS-9.5.1.2-2" => rnic.memory_mut().allocate_pd() == Err(MemoryError::InvalidRnicHandle);
    }
}

#[test]
fn srq_and_pd_verbs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut side, srq) = closed();
    let (pd, rnic) = (side.pd, &mut side.rnic);
    let init = SrqInit { pd, max_wrs: 1, max_sges: 1, limit: 0 };
    shows! { proof:
        "VERBS-9.5.1.2-3" => rnic.memory_mut().deallocate_pd(pd) == Err(MemoryError::InvalidRnicHandle);
        "VERBS-9.5.1.4-3" => rnic.create_srq(init).unwrap_err() == SrqError::InvalidRnicHandle;
        "VERBS-9.5.1.4-4" => rnic.query_srq(srq) == Err(SrqError::InvalidRnicHandle);
        "VERBS-9.5.1.4-5" => rnic.modify_srq(srq, SrqModify::default()) == Err(SrqError::InvalidRnicHandle);
        "VERBS-9.5.1.4-6" => rnic.destroy_srq(srq) == Err(SrqError::InvalidRnicHandle);
    }
}

#[test]
fn memory_verbs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut side, _) = closed();
    let (pd, stag) = (side.pd, side.stag);
    let list = PhysicalBufferList::of(side.buffer, 0, 10, 4096);
    let registration =
        Registration { pd, key: StagKey(1), list, base: ToBase::ZeroBased, remote: false, access: Access::LOCAL };
    let shared =
        SharedRegistration { pd, key: StagKey(1), base: ToBase::ZeroBased, remote: false, access: Access::LOCAL };
    let (index, closed) = (StagIndex::new(1).unwrap(), MemoryError::InvalidRnicHandle);
    let memory = side.rnic.memory_mut();
    shows! { proof:
        "VERBS-9.5.1.6-6" => memory.allocate_stag(pd, 1, true) == Err(closed);
        "VERBS-9.5.1.6-7" => memory.register(&registration) == Err(closed);
        "VERBS-9.5.1.6-8" => memory.query_region(index) == Err(closed);
        "VERBS-9.5.1.6-9" => memory.deallocate_stag(index) == Err(closed);
        "VERBS-9.5.1.6-10" => memory.reregister(index, &registration) == Err(closed);
        "VERBS-9.5.1.6-11" => memory.register_shared(Stag { key: StagKey(1), ..stag }, &shared) == Err(closed);
        "VERBS-9.5.1.6-12" => memory.allocate_window(pd) == Err(closed);
        "VERBS-9.5.1.6-13" => memory.query_window(index) == Err(closed);
    }
}
