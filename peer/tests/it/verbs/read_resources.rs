//! Tests IRD and ORD, the limits of inbound and outbound Reads (draft-hilland-rddp-verbs, section
//! 6.5). Each Queue Pair has its own values, can take them from a pool, can change them, and obeys
//! them.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::Instant;
use weft_peer::verbs::{EventId, QpAllocated, QpError, QpHandle, QpInit, QpModify, QpState, Rnic, RnicSettings};

use crate::verbs::peers::{Bench, PLAIN, Peers, Side, llp_settings, number, open, read, shows, ulpdus, untagged};

/// An RNIC whose Queue Pairs share a pool of `ird` and a pool of `ord`.
fn pooled(ird: u32, ord: u32) -> (Rnic, QpInit) {
    let mut rnic = open(RnicSettings { rnic_ird: ird, rnic_ord: ord, ..RnicSettings::default() });
    let (pd, cq) = (rnic.memory_mut().allocate_pd().unwrap(), rnic.create_cq(9, None).unwrap().0);
    (rnic, QpInit::new(pd, cq, cq))
}

fn create(rnic: &mut Rnic, init: QpInit, ird: u32, ord: u32) -> Result<(QpHandle, QpAllocated), QpError> {
    rnic.create_qp(QpInit { ird, ord, ..init }, None).map(|(qp, _, allocated)| (qp, allocated))
}

#[test]
fn a_pool_grants_no_more_than_it_has() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut rnic, init) = pooled(10, 6);
    let first = create(&mut rnic, init, 4, 4).unwrap().1;
    let second = create(&mut rnic, init, 9, 1).unwrap().1;
    shows! { proof:
        "VERBS-6.5-1" => (first.ird, first.ord) == (4, 4) && rnic.query().unwrap().settings.rnic_ird == 10;
        "VERBS-9.2.5.1-4" => (second.ord, create(&mut rnic, init, 0, 9).unwrap().1.ord) == (1, 1);
        "VERBS-9.2.5.1-5" => create(&mut rnic, init, 0, 1).unwrap_err() == QpError::InsufficientResources;
        "VERBS-9.2.5.1-6" => second.ird == 6 && create(&mut rnic, init, 1, 0).unwrap_err() == QpError::InsufficientResources;
        "VERBS-6.5-3" => create(&mut rnic, init, 1, 1).unwrap_err() == QpError::InsufficientResources
            && create(&mut rnic, init, 0, 0).is_ok();
        "VERBS-6.5-4" => {
            let max = rnic.query().unwrap().settings;
            max.max_ird >= 4 && create(&mut rnic, init, 4, 0).is_err()
        };
    }
    let (mut rnic, init) = pooled(1, 200);
    shows! { proof:
        "VERBS-6.5-25" => create(&mut rnic, init, 1, 129).unwrap_err() == QpError::OrdExceeds;
    }
}

#[test]
fn modify_takes_from_the_pool_and_gives_back() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut rnic, init) = pooled(3, 3);
    let (one, _) = create(&mut rnic, init, 3, 3).unwrap();
    let (two, _) = create(&mut rnic, init, 0, 0).unwrap();
    let mut modify = |qp, ird, ord| {
        let modify = QpModify { ird, ord, ..QpModify::to(QpState::Idle) };
        rnic.modify_qp(Instant::ORIGIN, qp, &modify).map(|allocated| (allocated.ird, allocated.ord))
    };
    let none = Err(QpError::InsufficientResources);
    shows! { proof:
        "VERBS-6.5-18" => modify(two, None, Some(1)) == none;
        "VERBS-9.2.5.3-10" => modify(two, Some(1), None) == none;
        "VERBS-9.5.1.5-2" => modify(two, Some(1), Some(1)) == none && modify(one, None, None) == Ok((3, 3));
        "VERBS-9.2.5.3-4" => modify(one, None, Some(1)) == Ok((3, 1)) && modify(two, None, Some(9)) == Ok((0, 2));
    }
    let destroyed = rnic.destroy_qp(one);
    shows! { proof:
        "VERBS-6.5-20" => destroyed == Ok(()) && create(&mut rnic, init, 3, 1).unwrap().1.ord == 1
            && rnic.query().unwrap().settings.rnic_ord == 3;
        "VERBS-6.5-19" => rnic.query().unwrap().settings.rnic_ird == 3
            && open(RnicSettings::default()).query().unwrap().settings.rnic_ird == 0;
    }
}

#[test]
fn each_queue_pair_can_have_one() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut rnic, init) = pooled(5, 7);
    let limits = rnic.query().unwrap().settings;
    let made = (0..9).filter(|_| create(&mut rnic, init, 1, 1).is_ok()).count();
    shows! { proof:
        "VERBS-6.5-15" => limits.rnic_ird as usize >= limits.max_qps && limits.rnic_ord as usize >= limits.max_qps;
        "VERBS-6.5-17" => made == limits.max_qps && made == 5;
        "VERBS-6.5-16" => {
            let mut rnic = open(RnicSettings { max_qps: 50, ..RnicSettings::default() });
            let (pd, cq) = (rnic.memory_mut().allocate_pd().unwrap(), rnic.create_cq(9, None).unwrap().0);
            (0..50).all(|_| create(&mut rnic, QpInit::new(pd, cq, cq), 1, 1).is_ok_and(|(_, given)| given.ird == 1 && given.ord == 1))
        };
        "VERBS-6.5-2" => limits.rnic_ird != 0 && open(RnicSettings::default()).query().unwrap().settings.rnic_ord == 0;
        "VERBS-6.5-21" => {
            let (mut rnic, init) = pooled(0, 0);
            create(&mut rnic, init, limits.max_ird + 1, 1).unwrap_err() == QpError::IrdExceeds
                && create(&mut rnic, init, limits.max_ird, 1).unwrap().1.ird == limits.max_ird
        };
    }
}

#[test]
fn limits_of_a_queue_pair() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut rnic, init) = pooled(0, 0);
    let limits = rnic.query().unwrap().settings;
    shows! { proof:
        "VERBS-6.5-22" => create(&mut rnic, init, 1, limits.max_ord + 1).unwrap_err() == QpError::OrdExceeds
            && create(&mut rnic, init, 1, limits.max_ord).is_ok();
        "VERBS-4-5" => create(&mut rnic, init, limits.max_ird + 1, 1).unwrap_err() == QpError::IrdExceeds
            && create(&mut rnic, init, limits.max_ird, 1).is_ok();
    }
}

#[test]
fn ord_and_ird_change_in_idle_and_rts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let fixed = RnicSettings { modifies_ird: false, raises_ord: false, ..RnicSettings::default() };
    let change = |settings, started: bool, modify: fn(&mut QpModify)| {
        let mut side = Side::with(settings, llp_settings(PLAIN, 1460, true), |init| (init.ird, init.ord) = (8, 8));
        if started {
            side = side.start();
        }
        let mut to = QpModify::to(side.state());
        modify(&mut to);
        side.modify(&to)
            .map(|()| side.rnic.query_qp(side.qp).map(|queried| (queried.init.ird, queried.init.ord)).unwrap())
    };
    let able = RnicSettings::default();
    let cannot = Err(QpError::CannotChangeAttribute);
    shows! { proof:
        "VERBS-6.5-12" => [false, true].map(|started| change(fixed, started, |modify| modify.ord = Some(1)))
            == [Ok((8, 1)), Ok((8, 1))];
        "VERBS-6.5-13" => change(fixed, false, |modify| modify.ord = Some(9)) == cannot
            && change(able, false, |modify| modify.ord = Some(9)) == Ok((8, 9));
        "VERBS-6.5-14" => change(fixed, true, |modify| modify.ird = Some(1)) == cannot
            && change(able, true, |modify| modify.ird = Some(1)) == Ok((1, 8));
        "VERBS-6.5-9" => [false, true].map(|started| change(able, started, |modify| {
            (modify.ird, modify.ord) = (Some(20), Some(20));
        })) == [Ok((20, 20)), Ok((20, 20))];
        "VERBS-6.1.3-4" => change(fixed, false, |modify| modify.ird = Some(9)) == cannot;
    }
}

#[test]
fn the_peer_terminates_if_reads_exceed_its_ird() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    let less = QpModify { ird: Some(1), ..QpModify::to(QpState::Rts) };
    peers.b.modify(&less).unwrap();
    for n in 0..2 {
        let wr = read(&peers.a, n, 0, 4, peers.b.remote(0));
        peers.a.post(wr);
    }
    peers.run();
    let record = peers.b.rnic.query_qp(peers.b.qp).unwrap().terminate.unwrap();
    shows! { proof: "VERBS-6.5-24" => number(record.terminate.error) == 0x1203 && peers.b.event_ids() == [EventId::IrrqTooManyReads]; }
    // After ORD is lowered to the peer's IRD, the same work succeeds.
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    peers.b.modify(&less).unwrap();
    peers.a.modify(&QpModify { ord: Some(1), ..QpModify::to(QpState::Rts) }).unwrap();
    for n in 0..2 {
        let wr = read(&peers.a, n, 0, 4, peers.b.remote(0));
        peers.a.post(wr);
    }
    let (first, _) = peers.a.transmit(peers.now, usize::MAX);
    peers.b.rnic.handle_octets(peers.now, peers.b.llp, &first);
    peers.run();
    shows! { proof:
        "VERBS-6.5.1-1" => ulpdus(&first).len() == 1 && peers.a.poll().len() == 2;
        "VERBS-6.6.1.1-7" => peers.b.event_ids().is_empty() && peers.b.state() == QpState::Rts;
    }
}

#[test]
fn a_change_with_reads_in_flight_affects_no_other_qp() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let bystander =
        bench.side.rnic.create_qp(QpInit::new(bench.side.pd, bench.side.cq, bench.side.cq), None).unwrap().0;
    for n in 0..4 {
        let wr = read(&bench.side, n, 0, 4, bench.side.remote(0));
        bench.side.post(wr);
    }
    bench.sent();
    let changed = bench.side.modify(&QpModify { ord: Some(0), ird: Some(0), ..QpModify::to(QpState::Rts) });
    let before = bench.side.rnic.query_qp(bystander).unwrap();
    bench.hand_in(&untagged(Opcode::SEND, 0, 9, 0, true, b""));
    shows! { proof:
        "VERBS-6.5-11" => changed.is_ok() && bench.side.rnic.query_qp(bystander).unwrap() == before;
        // IRD and ORD stay unchanged after the error.
        "VERBS-6.5-10" => bench.side.rnic.query_qp(bench.side.qp).is_ok_and(|queried| queried.state == QpState::Terminate);
    }
}

#[test]
fn requests_are_answered_in_their_order() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::with(|init| (init.ird, init.ord) = (3, 2));
    let request = |msn: u32, sink_to: u64, bench: &Bench| {
        let mut payload = Vec::new();
        weft_core::wire::rdmap::ReadRequest {
            sink_stag: 7,
            sink_to,
            rdmardsz: 1,
            src_stag: bench.side.stag.to_bits(),
            src_to: crate::verbs::peers::VA,
        }
        .emit(&mut payload);
        untagged(Opcode::READ_REQUEST, 1, msn, 0, true, &payload)
    };
    for (msn, to) in [(1, 30), (2, 10), (3, 20)] {
        let ulpdu = request(msn, to, &bench);
        bench.hand_in(&ulpdu);
    }
    let (responses, _) = bench.sent();
    let offsets: Vec<u8> = responses.iter().map(|ulpdu| ulpdu[13]).collect();
    shows! { proof: "VERBS-6-3" => offsets == [30, 10, 20]; }
    for n in 0..4 {
        let wr = read(&bench.side, n, 0, 4, bench.side.remote(0));
        bench.side.post(wr);
    }
    let (requests, _) = bench.sent();
    shows! { proof: "VERBS-6.5-5" => requests.len() == 2; }
}
