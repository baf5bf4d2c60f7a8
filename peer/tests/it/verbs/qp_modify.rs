//! Tests the verb Modify QP: the attributes and transitions that the Consumer is allowed to request
//! (draft-hilland-rddp-verbs, section 6.1.3, Figures 4 to 6 and 32).

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::Instant;
use weft_peer::verbs::{LlpHandle, QpError, QpInit, QpModify, QpState, RnicSettings, SrqInit};

use crate::verbs::peers::{PLAIN, Peers, Side, llp_settings, shows};

fn small() -> RnicSettings {
    RnicSettings { max_qps: 1, max_wrs: 300, max_ird: 20, max_ord: 30, ..RnicSettings::default() }
}

fn ord(next: QpState, ord: u32) -> QpModify {
    QpModify { ord: Some(ord), ..QpModify::to(next) }
}

/// Draft Figures 4 and 5: the states in which each attribute can be changed, and the states in
/// which it cannot be changed.
#[test]
fn attributes_change_where_the_figures_let_them() {
    let mut proof = Coverage::new(CoverageKind::Test);
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
        let result = side.modify(&ord(next, 1));
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
fn modify_reports_the_error() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::with(small(), llp_settings(PLAIN, 1460, true), |_| ());
    side.post_receive(1, 0, 1);
    side.post_receive(2, 0, 1);
    let idle = QpModify::to(QpState::Idle);
    let gone: LlpHandle = side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
    side.rnic.detach_stream(Instant::ORIGIN, gone);
    let mut fails = |modify: QpModify| side.modify(&modify).unwrap_err();
    shows! { proof:
        "VERBS-9.5.1.5-9" => fails(QpModify { ord: Some(31), ..idle.clone() }) == QpError::OrdExceeds;
        "VERBS-9.5.1.5-11" => fails(QpModify { ird: Some(21), ..idle.clone() }) == QpError::IrdExceeds;
        "VERBS-9.5.1.5-13" => fails(QpModify { max_sq_wrs: Some(301), ..idle.clone() }) == QpError::TooManyWrs;
        "VERBS-6.1.3-13" => fails(QpModify { max_rq_wrs: Some(1), ord: Some(1), ..idle.clone() }) == QpError::ShrinkFailed;
        "VERBS-6.1.3-2" => fails(QpModify::to(QpState::Rts)) == QpError::InvalidModifier;
        "VERBS-9.5.1.5-23" => fails(QpModify::to_rts(gone)) == QpError::InvalidLlpStreamHandle;
        "VERBS-6.2.1-6" => fails(QpModify::to(QpState::Closing)) == QpError::InvalidStateChange
            && fails(QpModify::to(QpState::Terminate)) == QpError::InvalidStateChange;
        "VERBS-9.5.1.5-21" => fails(QpModify { max_rq_wrs: Some(1), ..idle }) == QpError::ShrinkFailed;
    }
}

#[test]
fn a_refusal_changes_nothing() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::with(small(), llp_settings(PLAIN, 1460, true), |_| ());
    side.post_receive(1, 0, 1);
    side.post_receive(2, 0, 1);
    let before = side.rnic.query_qp(side.qp).unwrap();
    let mut unchanged =
        |modify: &QpModify| side.modify(modify).is_err() && side.rnic.query_qp(side.qp).unwrap() == before;
    let idle = QpModify::to(QpState::Idle);
    shows! { proof:
        "VERBS-6.1.3-17" => unchanged(&QpModify { ord: Some(31), ..idle.clone() });
        "VERBS-6.1.3-1" => unchanged(&QpModify { ord: Some(2), ..QpModify::to(QpState::Rts) });
        "VERBS-6.1.3-5" => unchanged(&QpModify { ord: Some(2), ird: Some(99), ..idle.clone() });
        "VERBS-6.1.3-14" => unchanged(&QpModify { max_sq_wrs: Some(9), max_rq_wrs: Some(1), ..idle });
        "VERBS-8.3.1-4" => unchanged(&ord(QpState::Closing, 1)) && unchanged(&QpModify::to(QpState::Terminate));
    }
    shows! { proof:
        "VERBS-6.1.3-6" => side.modify(&ord(QpState::Closing, 1)) == Err(QpError::InvalidStateChange);
        "VERBS-6.1.3-16" => side.to(QpState::Terminate) == Err(QpError::InvalidStateChange) && side.state() == QpState::Idle;
        "VERBS-9.5.1.5-24" => side.to(QpState::Rts) == Err(QpError::InvalidModifier);
    }
}

#[test]
fn in_rts_neither_stream_nor_idle() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ()).start();
    let message = QpModify { stream_message: Some(Bytes::new()), ..QpModify::to(QpState::Rts) };
    shows! { proof:
        "VERBS-6.2.2-6" => side.to(QpState::Idle) == Err(QpError::InvalidStateChange);
        "VERBS-9.2.5.3-8" => side.modify(&QpModify::to_rts(side.llp)) == Err(QpError::CannotChangeAttribute);
        "VERBS-9.5.1.5-20" => side.modify(&message) == Err(QpError::CannotChangeAttribute);
        "VERBS-6.2.2.4-17" => side.to(QpState::Idle).is_err() && side.state() == QpState::Rts;
        "VERBS-9.5.1.5-22" => side.to(QpState::Idle) == Err(QpError::InvalidStateChange);
    }
    let mut side = Side::new(|_| ());
    side.rnic.handle_reset(Instant::ORIGIN, side.llp);
    shows! { proof:
        "VERBS-6.2.1.2-2" => side.modify(&QpModify::to_rts(side.llp)) == Err(QpError::InvalidLlpStreamHandle);
        "VERBS-6.2.1.3-12" => side.state() == QpState::Idle;
        "VERBS-6.2.2-2" => {
            let mut side = Side::new(|_| ());
            side.rnic.handle_fin(Instant::ORIGIN, side.llp);
            side.modify(&QpModify::to_rts(side.llp)) == Err(QpError::InvalidLlpStreamHandle)
        };
    }
}

/// A side in `state`.
fn in_state(state: QpState) -> Side {
    let mut side = Side::new(|_| ());
    if state == QpState::Idle {
        return side;
    }
    if state == QpState::Error {
        side.to(QpState::Error).unwrap();
        return side;
    }
    side = side.start();
    if state != QpState::Rts {
        side.to(state).unwrap();
    }
    side
}

/// Draft Figure 6: the result of Modify QP for each pair of states.
#[test]
fn figure_6_pair_by_pair() {
    let mut proof = Coverage::new(CoverageKind::Test);
    use QpState::{Closing, Error, Idle, Rts, Terminate};
    let reached = |from: QpState, to: QpState| {
        let mut side = in_state(from);
        let modify = if (from, to) == (Idle, Rts) { QpModify::to_rts(side.llp) } else { QpModify::to(to) };
        let result = side.modify(&modify);
        result.map(|()| side.state()).map_err(|error| (error, side.state()))
    };
    let allowed = [
        (Idle, Idle),
        (Idle, Rts),
        (Idle, Error),
        (Rts, Rts),
        (Rts, Closing),
        (Rts, Terminate),
        (Rts, Error),
        (Error, Idle),
    ];
    let pairs = QpState::ALL.into_iter().flat_map(|from| QpState::ALL.map(|to| (from, to)));
    let refused = |from| Err((QpError::InvalidStateChange, from));
    shows! { proof:
        "VERBS-6.2-2" => pairs.clone().filter(|pair| !allowed.contains(pair)).all(|(from, to)| reached(from, to) == refused(from));
        "VERBS-6.1.3-15" => allowed.into_iter().all(|(from, to)| reached(from, to) == Ok(to));
        "VERBS-6.2.1-1" => Side::new(|_| ()).state() == Idle && reached(Error, Idle) == Ok(Idle);
        "VERBS-6.2.1.2-1" => reached(Idle, Rts) == Ok(Rts);
        "VERBS-6.2.4-2" => [Rts, Terminate, Closing].map(|to| reached(Error, to)) == [refused(Error); 3];
        "VERBS-6.2.4-20" => reached(Error, Rts) == refused(Error) && reached(Error, Error) == refused(Error);
        "VERBS-6.2.3-19" => QpState::ALL.map(|to| reached(Terminate, to)) == [refused(Terminate); 5];
        "VERBS-6.2.5-3" => QpState::ALL.map(|to| reached(Closing, to)) == [refused(Closing); 5];
    }
}

#[test]
fn figures_4_and_5_row_by_row() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let queried = |side: &Side| side.rnic.query_qp(side.qp).unwrap().init;
    let each: [fn(&mut QpModify); 5] = [
        |modify| modify.ord = Some(5),
        |modify| modify.ird = Some(5),
        |modify| modify.max_sq_wrs = Some(5),
        |modify| modify.max_rq_wrs = Some(5),
        |modify| modify.stream_message = Some(Bytes::from_static(b"x")),
    ];
    // The attributes that this transition accepts.
    let accepted = |from: QpState, to: QpState| {
        each.map(|give| {
            let mut side = in_state(from);
            let mut modify = QpModify::to(to);
            if (from, to) == (QpState::Idle, QpState::Rts) {
                modify.llp = Some(side.llp);
            }
            give(&mut modify);
            side.modify(&modify).is_ok()
        })
    };
    use QpState::{Closing, Error, Idle, Rts, Terminate};
    shows! { proof:
        "VERBS-6.1.3-3" => accepted(Idle, Idle)[0] && accepted(Idle, Rts)[0] && accepted(Rts, Rts)[0] && accepted(Idle, Rts)[4];
        "VERBS-6.1.3-19" => Side::new(|_| ()).to(Rts) == Err(QpError::InvalidModifier) && accepted(Idle, Rts) == [true; 5];
        "VERBS-6.1.3-21" => {
            let mut side = in_state(Rts);
            side.modify(&ord(Rts, 3)).is_ok() && queried(&side).ord == 3 && !accepted(Rts, Rts)[4]
        };
        "VERBS-6.1.3-25" => accepted(Error, Idle) == [false; 5] && in_state(Error).to(Idle).is_ok();
        "VERBS-6.1.3-26" => accepted(Idle, Idle) == [true, true, true, true, false];
        "VERBS-6.1.3-29" => [(Idle, Error), (Rts, Closing), (Rts, Terminate), (Rts, Error)]
            .into_iter().all(|(from, to)| accepted(from, to) == [false; 5]);
        "VERBS-6.2.1.1-1" => {
            let mut side = in_state(Idle);
            side.modify(&ord(Idle, 7)).is_ok() && queried(&side).ord == 7 && side.state() == Idle
        };
        "VERBS-6.2.1.3-7" => {
            let mut side = in_state(Idle);
            side.modify(&ord(Idle, 1)) == Ok(()) && (queried(&side).ord, side.state()) == (1, Idle)
        };
    }
}

#[test]
fn queues_are_resized_with_work_on_them() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let sizes = |sq, rq| QpModify { max_sq_wrs: Some(sq), max_rq_wrs: Some(rq), ..QpModify::to(QpState::Idle) };
    let loaded = || {
        let mut side = Side::new(|_| ());
        for n in 0..3 {
            let wr = side.send_of(n, 0, 1);
            side.post(wr);
            side.post_receive(n, 0, 1);
        }
        side
    };
    let fixed = RnicSettings { resizes_queues: false, ..RnicSettings::default() };
    shows! { proof:
        "VERBS-6.1.3-9" => {
            let mut side = loaded();
            side.modify(&sizes(500, 600)).is_ok() && side.modify(&sizes(3, 3)).is_ok() && side.modify(&sizes(2, 3)).is_err()
        };
        "VERBS-6.1.3-10" => {
            let mut side = loaded();
            let init = QpInit::new(side.pd, side.cq, side.cq);
            let more = [0, 1, 2].map(|_| side.rnic.create_qp(init, None).unwrap().0);
            more.into_iter().chain([side.qp]).all(|qp| {
                side.rnic.modify_qp(Instant::ORIGIN, qp, &sizes(4, 5))
                    .is_ok_and(|given| (given.max_sq_wrs, given.max_rq_wrs) == (4, Some(5)))
            })
        };
        "VERBS-6.1.3-8" => {
            let mut side = Side::with(fixed, llp_settings(PLAIN, 1460, true), |_| ());
            let able = side.rnic.query().unwrap().settings.resizes_queues;
            !able && side.modify(&sizes(4, 5)) == Err(QpError::CannotChangeAttribute)
        };
        "VERBS-6.1.3-7" => {
            let mut side = loaded();
            side.rnic.query().unwrap().settings.resizes_queues && side.modify(&sizes(40, 50)).is_ok()
                && side.rnic.query_qp(side.qp).is_ok_and(|queried| queried.init.max_sq_wrs == 40)
        };
        "VERBS-6.1.3-11" => {
            let mut side = loaded();
            side.modify(&sizes(500, 600)).unwrap();
            side.poll().is_empty() && side.event_ids().is_empty() && side.state() == QpState::Idle
        };
        "VERBS-6.2.2.1-3" => {
            let mut peers = Peers::new();
            for n in 0..3 {
                let wr = crate::verbs::peers::write(&peers.a, n, 0, 1, peers.b.remote(0));
                peers.a.post(wr);
            }
            let shrink = QpModify { max_sq_wrs: Some(2), ..QpModify::to(QpState::Rts) };
            let refused = peers.a.modify(&shrink);
            peers.run();
            peers.a.poll();
            refused == Err(QpError::ShrinkFailed) && peers.a.modify(&shrink) == Ok(())
        };
    }
}

#[test]
fn attributes_in_rts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let change = |modify: QpModify| {
        let mut side = Side::new(|_| ()).start();
        let result = side.rnic.modify_qp(Instant::ORIGIN, side.qp, &modify).unwrap();
        (result, side.rnic.query_qp(side.qp).unwrap())
    };
    let rts = QpModify::to(QpState::Rts);
    shows! { proof:
        "VERBS-6.2.2.1-1" => {
            let (result, queried) = change(ord(QpState::Rts, 4));
            (result.ord, queried.init.ord, queried.state) == (4, 4, QpState::Rts)
        };
        "VERBS-6.2.2.4-13" => change(ord(QpState::Rts, 1)).1.init.ord == 1;
        "VERBS-6.2.2.1-2" => {
            let all = QpModify { ird: Some(2), ord: Some(3), max_sq_wrs: Some(7), max_rq_wrs: Some(8), ..rts.clone() };
            let queried = change(all).1.init;
            (queried.ird, queried.ord, queried.max_sq_wrs, queried.max_rq_wrs) == (2, 3, 7, 8)
        };
        "VERBS-9.2.5.3-6" => change(QpModify { max_sq_wrs: Some(9), ..rts.clone() }).1.init.max_sq_wrs == 9
            && change(QpModify { max_rq_wrs: Some(9), ..rts.clone() }).1.init.max_rq_wrs == 9;
        "VERBS-9.2.5.3-9" => {
            let result = change(QpModify { ird: Some(2), ..ord(QpState::Rts, 3) }).0;
            (result.max_sq_wrs, result.max_rq_wrs, result.ord, result.ird) == (256, Some(256), 3, 2)
        };
        "VERBS-9.2.5.3-5" => {
            let mut side = Side::new(|_| ());
            side.modify(&QpModify { ord: Some(2), ..QpModify::to_rts(side.llp) }).unwrap();
            let queried = side.rnic.query_qp(side.qp).unwrap();
            (queried.init.ord, queried.state) == (2, QpState::Rts)
        };
    }
}

#[test]
fn attributes_of_a_queue_pair_with_an_srq() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = Side::new(|_| ());
    let srq = side.rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 4, max_sges: 2, limit: 0 }).unwrap().0;
    let init = QpInit { srq: Some(srq), rq_limit: 1, ..QpInit::new(side.pd, side.cq, side.cq) };
    let plain = side.qp;
    side.qp = side.rnic.create_qp(init, None).unwrap().0;
    let limit = |rq_limit| QpModify { rq_limit: Some(rq_limit), ..QpModify::to(QpState::Idle) };
    let before = side.rnic.query_qp(side.qp).unwrap();
    shows! { proof:
        "VERBS-6.1.3-30" => side.modify(&QpModify { max_rq_wrs: Some(99), ..QpModify::to(QpState::Idle) }).is_ok()
            && side.rnic.query_qp(side.qp).unwrap() == before && side.rnic.query_srq(srq).unwrap().max_wrs == 4;
        "VERBS-9.5.1.5-28" => side.modify(&limit(5)) == Err(QpError::RqLimitOutOfRange);
        "VERBS-9.2.5.3-3" => side.modify(&limit(2)) == Ok(()) && side.modify(&limit(2)) == Ok(());
        "VERBS-6.3.8-16" => side.rnic.query_qp(side.qp).unwrap().rq_limit_armed && side.modify(&limit(3)) == Ok(());
        "VERBS-9.2.5.3-7" => side.rnic.query_qp(side.qp).unwrap().init.rq_limit == 3
            && side.rnic.modify_qp(Instant::ORIGIN, plain, &limit(1)) == Err(QpError::CannotChangeAttribute);
    }
}

#[test]
fn results_of_modify() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut closed = Side::new(|_| ());
    closed.rnic.close().unwrap();
    let mut side = Side::with(small(), llp_settings(PLAIN, 1460, true), |_| ());
    side.post_receive(1, 0, 1);
    let idle = QpModify::to(QpState::Idle);
    let cases = [
        (QpModify { ord: Some(31), ..idle.clone() }, QpError::OrdExceeds),
        (QpModify { ird: Some(21), ..idle.clone() }, QpError::IrdExceeds),
        (QpModify { max_sq_wrs: Some(301), ..idle.clone() }, QpError::TooManyWrs),
        (QpModify { max_rq_wrs: Some(301), ..idle.clone() }, QpError::TooManyWrs),
        (QpModify { max_rq_wrs: Some(0), ..idle.clone() }, QpError::ShrinkFailed),
        (QpModify { llp: Some(side.llp), ..idle.clone() }, QpError::CannotChangeAttribute),
        (QpModify::to(QpState::Terminate), QpError::InvalidStateChange),
        (QpModify::to(QpState::Rts), QpError::InvalidModifier),
        (QpModify::to_rts(closed.llp), QpError::InvalidLlpStreamHandle),
    ];
    shows! { proof:
        "VERBS-9.2.5.3-11" => cases.iter().all(|(modify, error)| side.modify(modify) == Err(*error))
            && side.rnic.modify_qp(Instant::ORIGIN, closed.qp, &idle) == Err(QpError::InvalidQpHandle)
            && closed.modify(&idle) == Err(QpError::InvalidRnicHandle);
        "VERBS-9.2.5.3-2" => side.modify(&QpModify {
            stream_message: Some(Bytes::from_static(b"hi")), ord: Some(1), ird: Some(2), max_sq_wrs: Some(3),
            max_rq_wrs: Some(4), ..QpModify::to_rts(side.llp)
        }).is_ok() && side.rnic.query_qp(side.qp).is_ok_and(|queried| {
            (queried.init.ord, queried.init.ird, queried.init.max_sq_wrs, queried.init.max_rq_wrs, queried.llp)
                == (1, 2, 3, 4, Some(side.llp))
        }) && side.transmit(Instant::ORIGIN, 9).0 == b"hi";
    }
}
