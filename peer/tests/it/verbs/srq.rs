//! Tests the verbs for Shared Receive Queues (S-RQs), and their errors (draft-hilland-rddp-verbs,
//! sections 6.3.1 to 6.3.3 and 9.2.4, Figure 31).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::verbs::{
    PostStatus, QpError, QpInit, ReceiveWr, Rnic, RnicSettings, SrqAttributes, SrqError, SrqInit, SrqModify,
};

use crate::verbs::peers::{Side, open, shows};

fn srq(rnic: &mut Rnic, max_wrs: u32, limit: u32) -> SrqInit {
    let pd = rnic.memory_mut().allocate_pd().unwrap();
    SrqInit { pd, max_wrs, max_sges: 2, limit }
}

fn receives(count: u64) -> Vec<ReceiveWr> {
    (0..count).map(|wr_id| ReceiveWr { wr_id, scatter: Vec::new() }).collect()
}

fn small() -> Rnic {
    open(RnicSettings { max_srqs: 1, max_srq_wrs: 8, max_sges: 4, ..RnicSettings::default() })
}

/// An RNIC that does not support S-RQs.
fn without_any() -> Rnic {
    open(RnicSettings { max_srqs: 0, ..RnicSettings::default() })
}

#[test]
fn create_and_its_errors() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = small();
    let init = srq(&mut rnic, 4, 3);
    let dead = rnic.memory_mut().allocate_pd().unwrap();
    rnic.memory_mut().deallocate_pd(dead).unwrap();
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
}

#[test]
fn modify_and_its_errors() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = small();
    let init = srq(&mut rnic, 4, 3);
    let handle = rnic.create_srq(init).unwrap().0;
    let mut modify = |max_wrs, limit| rnic.modify_srq(handle, SrqModify { max_wrs, limit });
    shows! { proof:
        "VERBS-9.5.1.4-9" => modify(Some(9), None) == Err(SrqError::TooManyWrs);
        "VERBS-9.5.1.4-12" => modify(None, Some(5)) == Err(SrqError::LimitOutOfRange);
        "VERBS-6.3.8-9" => modify(Some(2), None) == Err(SrqError::InvalidModifier);
        "VERBS-6.3.8-8" => modify(None, Some(3)) == Ok(4);
        "VERBS-9.2.4.3-4" => modify(Some(8), Some(0)) == Ok(8);
    }
    let full = rnic.post_srq(handle, receives(9)).unwrap_err();
    shows! { proof:
        "VERBS-6.3.5-5" => full.posted == 8 && full.status == PostStatus::TooManyWrs;
        "VERBS-6.3.2-6" => rnic.modify_srq(handle, SrqModify { max_wrs: Some(7), limit: None }) == Err(SrqError::ShrinkFailed);
        "VERBS-6.3.3-2" => rnic.destroy_srq(handle) == Ok(());
    }
}

#[test]
fn a_destroyed_one_is_gone() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = small();
    let init = srq(&mut rnic, 4, 3);
    let handle = rnic.create_srq(init).unwrap().0;
    rnic.destroy_srq(handle).unwrap();
    let cq = rnic.create_cq(1, None).unwrap().0;
    shows! { proof:
        "VERBS-9.5.1.4-13" => rnic.query_srq(handle) == Err(SrqError::InvalidSrqHandle);
        "VERBS-9.5.1.4-14" => rnic.modify_srq(handle, SrqModify::default()) == Err(SrqError::InvalidSrqHandle);
        "VERBS-9.5.1.4-15" => rnic.destroy_srq(handle) == Err(SrqError::InvalidSrqHandle);
        "VERBS-9.5.1.7-5" => rnic.post_srq(handle, receives(1)).unwrap_err().status == PostStatus::InvalidSrqHandle;
        "VERBS-9.5.1.5-26" => rnic.create_qp(QpInit { srq: Some(handle), ..QpInit::new(init.pd, cq, cq) }, None)
            .unwrap_err() == QpError::InvalidSrqHandle;
        "VERBS-9.2.4.4-2" => rnic.create_srq(init).is_ok_and(|(again, _)| rnic.destroy_srq(again) == Ok(()) && again != handle);
    }
}

#[test]
fn the_rnic_reports_whether_it_supports_srqs() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut without = without_any();
    let init = srq(&mut without, 1, 0);
    let queried = without.query().unwrap();
    let mut two = open(RnicSettings { max_srqs: 2, max_srq_wrs: 8, ..RnicSettings::default() });
    let of_two = srq(&mut two, 8, 0);
    shows! { proof:
        "VERBS-6.3-2" => !queried.srqs && without.create_srq(init).is_err() && two.query().unwrap().srqs;
        "VERBS-6.3-5" => (queried.srqs, queried.settings.max_srqs) == (false, 0)
            && two.query().unwrap().srqs && two.query().unwrap().settings.max_srqs == 2;
        "VERBS-6.3-7" => queried.settings.max_srq_wrs == 0;
        "VERBS-6.3-6" => two.query().unwrap().settings.max_srq_wrs == 8
            && two.create_srq(SrqInit { max_wrs: 9, ..of_two }).is_err();
        "VERBS-6.3-4" => two.query().unwrap().settings.max_srqs == 2
            && (0..3).map(|_| two.create_srq(of_two).is_ok()).eq([true, true, false]);
    }
    shows! { proof:
        "VERBS-9.2.4.1-1" => {
            let mut rnic = open(RnicSettings::default());
            let init = srq(&mut rnic, 1, 0);
            rnic.create_srq(init).is_ok() && without_any().query().unwrap().settings.max_srqs == 0
        };
        "VERBS-9-3" => without.create_srq(init).unwrap_err() == SrqError::InsufficientResources;
    }
}

#[test]
fn each_modifier_of_create_counts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let rnic = &mut side.rnic;
    let pds = [side.pd, rnic.memory_mut().allocate_pd().unwrap()];
    let make = |rnic: &mut Rnic, pd, max_wrs, max_sges, limit| {
        let (handle, _) = rnic.create_srq(SrqInit { pd, max_wrs, max_sges, limit }).unwrap();
        (handle, rnic.query_srq(handle).unwrap())
    };
    shows! { proof:
        "VERBS-9.2.4.1-2" => make(rnic, pds[1], 9, 3, 2).1
            == SrqAttributes { pd: pds[1], max_wrs: 9, max_sges: 3, limit: 2, armed: true };
        "VERBS-9.2.4.1-4" => make(rnic, pds[0], 9, 3, 0).1
            == SrqAttributes { pd: pds[0], max_wrs: 9, max_sges: 3, limit: 0, armed: false };
        "VERBS-6.3-8" => make(rnic, pds[1], 1, 1, 0).1.pd == pds[1] && make(rnic, pds[0], 1, 1, 0).1.pd == pds[0];
        "VERBS-6.3-9" => {
            let (one, two) = (make(rnic, pds[0], 1, 1, 0).0, make(rnic, pds[0], 1, 1, 0).0);
            rnic.post_srq(one, receives(1)) == Ok(1) && rnic.post_srq(two, receives(1)) == Ok(1)
        };
        "VERBS-6.3.1-1" => make(rnic, pds[1], 2, 2, 0).1.pd == pds[1];
        "VERBS-6.3.5-12" => {
            let dead = rnic.memory_mut().allocate_pd().unwrap();
            rnic.memory_mut().deallocate_pd(dead).unwrap();
            rnic.create_srq(SrqInit { pd: dead, max_wrs: 1, max_sges: 1, limit: 0 }).is_err()
                && rnic.memory_mut().deallocate_pd(pds[1]).is_err()
        };
        "VERBS-6.3.8-2" => {
            let (handle, before) = make(rnic, pds[0], 9, 1, 4);
            rnic.modify_srq(handle, SrqModify { max_wrs: None, limit: Some(6) }).unwrap();
            (before.limit, rnic.query_srq(handle).unwrap().limit) == (4, 6)
        };
        "VERBS-6.3.8-7" => !make(rnic, pds[0], 9, 1, 0).1.armed && make(rnic, pds[0], 9, 1, 1).1.armed;
    }
}

#[test]
fn results_of_each_verb() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut closed = Side::new(|_| ());
    let init = SrqInit { pd: closed.pd, max_wrs: 4, max_sges: 1, limit: 0 };
    let stale = closed.rnic.create_srq(init).unwrap().0;
    closed.rnic.close().unwrap();
    let mut rnic = small();
    let init = srq(&mut rnic, 4, 3);
    let dead = rnic.memory_mut().allocate_pd().unwrap();
    rnic.memory_mut().deallocate_pd(dead).unwrap();
    let invalid = |rnic: &mut Rnic, change: fn(SrqInit) -> SrqInit| rnic.create_srq(change(init)).unwrap_err();
    let (handle, _) = rnic.create_srq(init).unwrap();
    rnic.post_srq(handle, receives(4)).unwrap();
    let cq = rnic.create_cq(1, None).unwrap().0;
    let qp = rnic.create_qp(QpInit { srq: Some(handle), ..QpInit::new(init.pd, cq, cq) }, None).unwrap().0;
    use SrqError::{
        InsufficientResources, InvalidModifier, InvalidPdId, InvalidRnicHandle, InvalidSrqHandle, LimitOutOfRange,
        QpsStillAssociated, ShrinkFailed, TooManySges, TooManyWrs,
    };
    let size = |max_wrs| SrqModify { max_wrs: Some(max_wrs), limit: None };
    shows! { proof:
        "VERBS-9.2.4.1-6" => [
            invalid(&mut rnic, |init| init), closed.rnic.create_srq(init).unwrap_err(),
            invalid(&mut rnic, |init| SrqInit { max_wrs: 9, ..init }),
            invalid(&mut rnic, |init| SrqInit { max_sges: 9, ..init }),
            rnic.create_srq(SrqInit { pd: dead, ..init }).unwrap_err(),
            invalid(&mut rnic, |init| SrqInit { limit: 5, ..init }),
        ] == [InsufficientResources, InvalidRnicHandle, TooManyWrs, TooManySges, InvalidPdId, LimitOutOfRange];
        "VERBS-9.2.4.1-3" => invalid(&mut small(), |init| SrqInit { limit: 5, ..init }) == LimitOutOfRange
            && rnic.query_srq(handle).is_ok();
        "VERBS-9.2.4.2-4" => [rnic.query_srq(handle).err(), closed.rnic.query_srq(stale).err(), rnic.query_srq(stale).err()]
            == [None, Some(InvalidRnicHandle), Some(InvalidSrqHandle)];
        "VERBS-9.2.4.3-5" => [
            closed.rnic.modify_srq(stale, size(1)), rnic.modify_srq(stale, size(1)), rnic.modify_srq(handle, size(9)),
            rnic.modify_srq(handle, size(3)), rnic.modify_srq(handle, SrqModify { max_wrs: None, limit: Some(5) }),
            rnic.modify_srq(handle, size(4)),
        ] == [Err(InvalidRnicHandle), Err(InvalidSrqHandle), Err(TooManyWrs), Err(ShrinkFailed), Err(LimitOutOfRange), Ok(4)];
        "VERBS-9.2.4.4-3" => [closed.rnic.destroy_srq(stale), rnic.destroy_srq(stale), rnic.destroy_srq(handle)]
            == [Err(InvalidRnicHandle), Err(InvalidSrqHandle), Err(QpsStillAssociated)]
            && rnic.destroy_qp(qp).is_ok() && rnic.destroy_srq(handle) == Ok(());
        "VERBS-9.5.1.4-18" => {
            let mut rnic = small();
            let init = srq(&mut rnic, 4, 3);
            let handle = rnic.create_srq(init).unwrap().0;
            rnic.modify_srq(handle, size(2)) == Err(InvalidModifier) && rnic.query_srq(handle).unwrap().max_wrs == 4
        };
    }
}

#[test]
fn only_the_result_of_a_resize_reports_it() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = open(RnicSettings::default());
    let init = srq(&mut rnic, 4, 2);
    let handle = rnic.create_srq(init).unwrap().0;
    rnic.set_async_event_handler(Some(weft_peer::verbs::HandlerAddress(1))).unwrap();
    rnic.post_srq(handle, receives(4)).unwrap();
    let size = |max_wrs| SrqModify { max_wrs: Some(max_wrs), limit: None };
    shows! { proof:
        "VERBS-6.3.2-7" => rnic.modify_srq(handle, size(3)).is_err() && rnic.query_srq(handle).unwrap().max_wrs == 4;
        "VERBS-9.5.1.4-16" => rnic.modify_srq(handle, size(3)) == Err(SrqError::ShrinkFailed);
        "VERBS-6.3.2-2" => rnic.modify_srq(handle, size(6)) == Ok(6) && rnic.post_srq(handle, receives(2)) == Ok(2);
        "VERBS-6.3.2-4" => rnic.poll_notification().is_none();
        "VERBS-9.2.4.3-2" => rnic.modify_srq(handle, SrqModify { max_wrs: Some(7), limit: Some(5) }) == Ok(7)
            && rnic.query_srq(handle).unwrap().limit == 5;
        "VERBS-8.3.1-5" => {
            let before = rnic.query_srq(handle).unwrap();
            rnic.modify_srq(handle, SrqModify { max_wrs: Some(2), limit: Some(1) }).unwrap_err();
            rnic.query_srq(handle) == Ok(before)
        };
        "VERBS-6.3.2-1" => {
            let mut fixed = open(RnicSettings { resizes_queues: false, ..RnicSettings::default() });
            let init = srq(&mut fixed, 4, 2);
            let handle = fixed.create_srq(init).unwrap().0;
            fixed.modify_srq(handle, size(5)) == Err(SrqError::InvalidModifier) && !fixed.query().unwrap().settings.resizes_queues
        };
        "VERBS-6.3.8-17" => rnic.modify_srq(handle, SrqModify { max_wrs: None, limit: Some(8) })
            == Err(SrqError::LimitOutOfRange);
    }
}

#[test]
fn each_part_of_modify_works_alone() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = open(RnicSettings::default());
    let init = srq(&mut rnic, 4, 2);
    let handle = rnic.create_srq(init).unwrap().0;
    let mut modify = |max_wrs, limit| {
        rnic.modify_srq(handle, SrqModify { max_wrs, limit }).unwrap();
        let srq = rnic.query_srq(handle).unwrap();
        (srq.max_wrs, srq.limit, srq.armed)
    };
    shows! { proof:
        "VERBS-9.2.4.3-1" => modify(None, None) == (4, 2, true);
        "VERBS-9.2.4.3-3" => [modify(Some(6), None), modify(None, Some(3)), modify(Some(9), Some(0)), modify(None, Some(2))]
            == [(6, 2, true), (6, 3, true), (9, 0, false), (9, 2, true)];
        "VERBS-9.2.4.2-1" => rnic.query_srq(handle).is_ok();
        "VERBS-9.2.4.2-2" => rnic.query_srq(handle)
            == Ok(SrqAttributes { pd: init.pd, max_wrs: 9, max_sges: 2, limit: 2, armed: true });
        "VERBS-9.2.4.4-1" => rnic.destroy_srq(handle) == Ok(());
    }
}
