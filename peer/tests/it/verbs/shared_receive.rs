//! Tests Queue Pairs that use a Shared Receive Queue (S-RQ): the order of receives, limits and
//! errors (draft-hilland-rddp-verbs, sections 6.3.4 to 6.3.8).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::Instant;
use weft_peer::memory::{Access, InvalidateError, PdId, STAG_ZERO, Stag};
use weft_peer::verbs::{
    AsyncEvent, CompletionStatus, EventId, Failure, LlpHandle, Operation, PostStatus, QpHandle, QpInit, QpModify,
    QpState, ReceiveWr, Resource, SendWr, Sge, SrqError, SrqHandle, SrqInit, SrqModify,
};

use crate::verbs::peers::{PLAIN, Side, fpdu, llp_settings, number, register, shows, ulpdus, untagged};

/// An S-RQ of one PD, with two Queue Pairs of another PD. Raw octets arrive on the streams of both
/// Queue Pairs.
struct Sharing {
    side: Side,
    srq: SrqHandle,
    pd: PdId,
    /// A region of the S-RQ's PD.
    stag: Stag,
    qps: [(QpHandle, weft_peer::memory::QpId, LlpHandle); 2],
    msn: [u32; 2],
}

impl Sharing {
    fn new(size: u32) -> Self {
        Sharing::with(size, 0, 0)
    }

    fn with(size: u32, limit: u32, rq_limit: u32) -> Self {
        let mut side = Side::new(|_| ());
        let pd = side.rnic.memory_mut().allocate_pd().unwrap();
        let srq = side.rnic.create_srq(SrqInit { pd, max_wrs: size, max_sges: 2, limit }).unwrap().0;
        let init = QpInit { srq: Some(srq), rq_limit, ..QpInit::new(side.pd, side.cq, side.cq) };
        let qps = [0, 1].map(|_| {
            let (qp, id, _) = side.rnic.create_qp(init, None).unwrap();
            let llp = side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
            side.rnic.modify_qp(Instant::ORIGIN, qp, &QpModify::to_rts(llp)).unwrap();
            (qp, id, llp)
        });
        let stag = register(&mut side.rnic, pd, side.buffer, Access::ALL);
        Sharing { side, srq, pd, stag, qps, msn: [1, 1] }
    }

    fn post(&mut self, wr_id: u64, scatter: Vec<Sge>) {
        assert_eq!(self.side.rnic.post_srq(self.srq, vec![ReceiveWr { wr_id, scatter }]), Ok(1));
    }

    fn fill(&mut self, count: u64) {
        (0..count).for_each(|wr_id| self.post(wr_id, Vec::new()));
    }

    /// The peer of Queue Pair `n` sends `payload`.
    fn send(&mut self, n: usize, payload: &[u8]) {
        let ulpdu = untagged(Opcode::SEND, 0, self.msn[n], 0, true, payload);
        self.msn[n] += 1;
        self.side.rnic.handle_octets(Instant::ORIGIN, self.qps[n].2, &fpdu(&ulpdu));
        self.side.settle();
    }

    /// The code of the Terminate that Queue Pair `n` sends now, as 0xLTCC (layer, type, code).
    fn code(&mut self, n: usize) -> Option<u16> {
        self.side.llp = self.qps[n].2;
        let (octets, _) = self.side.transmit(Instant::ORIGIN, usize::MAX);
        let last = ulpdus(&octets).pop().filter(|ulpdu| ulpdu[1] & 0xf == 7)?;
        weft_core::wire::rdmap::Terminate::parse(&last[18..]).ok().map(|terminate| number(terminate.error))
    }

    fn state(&self, n: usize) -> QpState {
        self.side.rnic.query_qp(self.qps[n].0).unwrap().state
    }

    fn sge(&self, stag: Stag, length: u32) -> Sge {
        Sge { stag: stag.to_bits(), tagged_offset: crate::verbs::peers::VA, length }
    }

    fn count(&mut self, event: EventId) -> usize {
        self.side.events.iter().filter(|raised| raised.event == event).count()
    }
}

#[test]
fn receives_go_where_messages_come() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut sharing = Sharing::with(3, 2, 1);
    let sge = sharing.sge(sharing.stag, 5);
    (0..3).for_each(|wr_id| sharing.post(wr_id, vec![Sge { tagged_offset: sge.tagged_offset + wr_id * 10, ..sge }]));
    let refused = sharing.side.rnic.post_receive(sharing.qps[0].0, vec![ReceiveWr { wr_id: 9, scatter: Vec::new() }]);
    sharing.send(0, b"a");
    sharing.send(0, b"b");
    let full = sharing.side.rnic.post_srq(sharing.srq, vec![ReceiveWr { wr_id: 7, scatter: Vec::new() }]);
    shows! { proof:
        "VERBS-6.3.5-3" => refused.unwrap_err().status == PostStatus::RqAssociatedWithSrq;
        "VERBS-6.3.8-5" => sharing.side.events.iter().any(|raised| raised.resource == Resource::Srq(sharing.srq));
        "VERBS-6.3.8-18" => sharing.count(EventId::SrqLimitReached) == 1;
        "VERBS-6.3.8-13" => sharing.count(EventId::QpRqLimitReached) == 1;
        "VERBS-6.3.5-18" => full.unwrap_err().status == PostStatus::TooManyWrs;
        "VERBS-6.3-3" => sharing.side.statuses() == [(0, CompletionStatus::Success), (1, CompletionStatus::Success)];
        "VERBS-6.3.5-9" => sharing.side.rnic.post_srq(sharing.srq, vec![ReceiveWr { wr_id: 7, scatter: Vec::new() }]) == Ok(1);
        "VERBS-6.3.5-8" => sharing.side.octets()[0] == b'a' && sharing.side.octets()[10] == b'b';
    }
}

#[test]
fn an_error_of_a_queue_pair_leaves_the_queue_to_the_others() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut sharing = Sharing::new(3);
    sharing.fill(3);
    sharing.side.rnic.modify_qp(Instant::ORIGIN, sharing.qps[0].0, &QpModify::to(QpState::Error)).unwrap();
    shows! { proof:
        "VERBS-6.3.6-7" => sharing.side.poll().is_empty();
        "VERBS-5.1.1.2-3" => sharing.side.rnic.destroy_srq(sharing.srq) == Err(SrqError::QpsStillAssociated);
        "VERBS-6.3.6-3" => sharing.side.rnic.query_srq(sharing.srq).is_ok()
            && sharing.side.rnic.post_srq(sharing.srq, vec![ReceiveWr { wr_id: 9, scatter: Vec::new() }])
                .unwrap_err().status == PostStatus::TooManyWrs;
        "VERBS-6.3.6-4" => {
            sharing.send(1, b"");
            sharing.side.statuses() == [(0, CompletionStatus::Success)] && sharing.state(1) == QpState::Rts
        };
    }
    // While a message in progress uses a receive of the S-RQ, this receive belongs to the Queue
    // Pair.
    let mut sharing = Sharing::new(3);
    let sge = sharing.sge(sharing.stag, 9);
    sharing.post(4, vec![sge]);
    sharing.post(5, vec![sge]);
    let half = untagged(Opcode::SEND, 0, 1, 0, false, b"half");
    sharing.side.rnic.handle_octets(Instant::ORIGIN, sharing.qps[0].2, &fpdu(&half));
    sharing.side.rnic.handle_reset(Instant::ORIGIN, sharing.qps[0].2);
    shows! { proof: "VERBS-6.3.6-8" => sharing.side.statuses() == [(4, CompletionStatus::Flushed)]; }
    for (qp, _, _) in sharing.qps {
        sharing.side.rnic.destroy_qp(qp).unwrap();
    }
    assert_eq!(sharing.side.rnic.destroy_srq(sharing.srq), Ok(()));
}

#[test]
fn every_queue_pair_may_use_all_receives() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let one_takes_all = |sharing: &mut Sharing, count: u64| {
        (0..count).for_each(|_| sharing.send(1, b""));
        sharing.side.statuses() == (0..count).map(|n| (n, CompletionStatus::Success)).collect::<Vec<_>>()
            && sharing.state(1) == QpState::Rts
    };
    shows! { proof:
        "VERBS-6.3.7-3" => {
            let mut sharing = Sharing::new(5);
            sharing.fill(5);
            one_takes_all(&mut sharing, 5)
        };
        "VERBS-6.3.5-10" => {
            let mut sharing = Sharing::new(5);
            sharing.fill(5);
            sharing.send(0, b"");
            let first = sharing.side.poll();
            (0..4).for_each(|_| sharing.send(1, b""));
            first[0].qp == sharing.qps[0].1 && sharing.side.poll().len() == 4
        };
        "VERBS-6.3.7-4" => {
            let mut sharing = Sharing::new(2);
            sharing.side.rnic.modify_srq(sharing.srq, SrqModify { max_wrs: Some(7), limit: None }).unwrap();
            sharing.fill(7);
            one_takes_all(&mut sharing, 7)
        };
        "VERBS-6.3.7-2" => {
            let mut sharing = Sharing::new(1);
            let again = |sharing: &mut Sharing| {
                sharing.side.rnic.post_srq(sharing.srq, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]).is_ok()
            };
            sharing.fill(1);
            sharing.send(0, b"");
            let before = again(&mut sharing);
            sharing.side.poll();
            !before && again(&mut sharing)
        };
        "VERBS-6.3.5-7" => {
            let mut sharing = Sharing::new(6);
            let sge = sharing.sge(sharing.stag, 1);
            (0..6).for_each(|n| sharing.post(n, vec![Sge { tagged_offset: sge.tagged_offset + n, ..sge }]));
            for (n, octet) in [(0, b"a"), (1, b"x"), (0, b"b"), (1, b"y"), (0, b"c"), (1, b"z")] {
                sharing.send(n, octet);
            }
            let done = sharing.side.poll();
            let of = |sharing: &mut Sharing, n: usize| -> Vec<u8> {
                let id = sharing.qps[n].1;
                let mine: Vec<u64> = done.iter().filter(|done| done.qp == id).map(|done| done.wr_id).collect();
                mine.into_iter().map(|at| sharing.side.octets()[at as usize]).collect()
            };
            of(&mut sharing, 0) == b"abc" && of(&mut sharing, 1) == b"xyz"
        };
        "VERBS-6.3.5-1" => {
            let mut sharing = Sharing::new(1);
            sharing.post(77, Vec::new());
            sharing.send(1, b"");
            sharing.side.statuses() == [(77, CompletionStatus::Success)]
        };
        "VERBS-6.3.5-17" => {
            let mut sharing = Sharing::new(2);
            sharing.fill(2);
            sharing.send(1, b"");
            sharing.send(0, b"");
            sharing.side.poll().iter().map(|done| done.qp).eq([sharing.qps[1].1, sharing.qps[0].1])
        };
    }
}

#[test]
fn which_protection_domain_applies() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // Uses a region of one of the two PDs as the scatter list of a receive. Returns the status of
    // the receive.
    let received = |of_srq: bool| {
        let mut sharing = Sharing::new(2);
        let stag = if of_srq { sharing.stag } else { sharing.side.stag };
        let sge = sharing.sge(stag, 9);
        sharing.post(1, vec![sge]);
        sharing.send(0, b"x");
        sharing.side.statuses()[0].1
    };
    // Uses a region of one of the two PDs as the gather list of a Send.
    let sent = |of_srq: bool| {
        let mut sharing = Sharing::new(2);
        let stag = if of_srq { sharing.stag } else { sharing.side.stag };
        let payload = weft_peer::verbs::Payload::Gather(vec![sharing.sge(stag, 9)]);
        let send = SendWr::new(1, Operation::Send { payload, solicited: false, invalidate: None });
        sharing.side.rnic.post_send(sharing.qps[0].0, vec![send]).unwrap();
        sharing.code(0);
        sharing.side.statuses()[0].1
    };
    shows! { proof:
        "VERBS-6.3.5-13" => received(true) == CompletionStatus::Success;
        "VERBS-6.3.5-14" => received(false) == CompletionStatus::InvalidPdId;
        "VERBS-7.6.3-7" => (received(true), received(false)) == (CompletionStatus::Success, CompletionStatus::InvalidPdId);
        "VERBS-7.6.3-8" => (sent(true), sent(false)) == (CompletionStatus::InvalidPdId, CompletionStatus::Success);
        "VERBS-6.3.5-22" => {
            let mut sharing = Sharing::new(2);
            let invalidate = SendWr::new(1, Operation::InvalidateLocal(sharing.stag));
            sharing.side.rnic.post_send(sharing.qps[0].0, vec![invalidate]).unwrap();
            sharing.code(0);
            sharing.side.statuses()[0].1 == CompletionStatus::from(InvalidateError::NotAssociated)
        };
        "VERBS-6.3-10" => {
            let mut sharing = Sharing::new(2);
            let gather = vec![sharing.sge(sharing.side.stag, 3)];
            let send = SendWr::new(8, Operation::Write {
                payload: weft_peer::verbs::Payload::Gather(gather), remote: sharing.side.remote(0),
            });
            sharing.side.rnic.post_send(sharing.qps[0].0, vec![send]).unwrap();
            sharing.code(0);
            sharing.side.statuses() == [(8, CompletionStatus::Success)]
        };
    }
}

#[test]
fn stag_zero_is_the_queue_pairs_to_use() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let received = |privileged: bool| {
        let mut sharing = Sharing::new(2);
        if privileged {
            // A privileged Queue Pair is allowed to use STag 0. The test creates it on another
            // RNIC, with the token of this RNIC.
            let (node, mut settings) = (weft_peer::verbs::Node::new(["p"]), weft_peer::verbs::RnicSettings::default());
            settings.max_qps = 1;
            let (mut rnic, token) = node.open("p", settings).unwrap();
            let pd = rnic.memory_mut().allocate_pd().unwrap();
            let cq = rnic.create_cq(9, None).unwrap().0;
            let srq = rnic.create_srq(SrqInit { pd, max_wrs: 2, max_sges: 1, limit: 0 }).unwrap().0;
            let (qp, _, _) =
                rnic.create_qp(QpInit { srq: Some(srq), ..QpInit::new(pd, cq, cq) }, Some(&token)).unwrap();
            let llp = rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
            rnic.modify_qp(Instant::ORIGIN, qp, &QpModify::to_rts(llp)).unwrap();
            let buffer = rnic.memory_mut().allocate_buffer(16).unwrap();
            let scatter = vec![Sge { stag: STAG_ZERO, tagged_offset: buffer.address().0, length: 9 }];
            rnic.post_srq(srq, vec![ReceiveWr { wr_id: 1, scatter }]).unwrap();
            rnic.handle_octets(Instant::ORIGIN, llp, &fpdu(&untagged(Opcode::SEND, 0, 1, 0, true, b"zero")));
            let state = rnic.query_qp(qp).unwrap().state;
            return (rnic.poll_cq(cq).unwrap().status, state);
        }
        let at = sharing.side.buffer.address().0;
        sharing.post(1, vec![Sge { stag: STAG_ZERO, tagged_offset: at, length: 9 }]);
        sharing.send(0, b"zero");
        (sharing.side.statuses()[0].1, sharing.state(0))
    };
    shows! { proof:
        "VERBS-6.3.5-15" => received(true) == (CompletionStatus::Success, QpState::Rts);
        "VERBS-6.3.5-16" => received(false) == (CompletionStatus::InvalidStag, QpState::Terminate);
    }
}

#[test]
fn a_limit_only_raises_its_event() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut sharing = Sharing::with(4, 3, 0);
    sharing.fill(4);
    sharing.send(0, b"");
    let first = sharing.count(EventId::SrqLimitReached);
    sharing.send(0, b"");
    let second = sharing.count(EventId::SrqLimitReached);
    shows! { proof:
        "VERBS-6.3.8-1" => (first, second) == (0, 1);
        "VERBS-6.3.8-4" => {
            sharing.send(0, b"");
            sharing.state(0) == QpState::Rts && sharing.side.poll().len() == 3
        };
        "VERBS-6.3.8-6" => {
            sharing.fill(3);
            sharing.side.rnic.modify_srq(sharing.srq, SrqModify { max_wrs: None, limit: Some(4) }).unwrap();
            sharing.send(0, b"");
            sharing.count(EventId::SrqLimitReached) == 2 && !sharing.side.rnic.query_srq(sharing.srq).unwrap().armed
        };
        "VERBS-6.3.8-19" => {
            let mut sharing = Sharing::with(2, 2, 0);
            sharing.fill(2);
            sharing.send(0, b"");
            sharing.count(EventId::SrqLimitReached) == 1
                && sharing.side.rnic.post_srq(sharing.srq, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]).is_err()
        };
    }
    let mut sharing = Sharing::with(8, 0, 1);
    sharing.fill(8);
    sharing.send(0, b"");
    let at_limit = sharing.count(EventId::QpRqLimitReached);
    sharing.send(0, b"");
    let above = sharing.side.events.clone();
    let rearm = QpModify { rq_limit: Some(1), ..QpModify::to(QpState::Rts) };
    let (qp, id, _) = sharing.qps[0];
    shows! { proof:
        "VERBS-6.3.8-10" => at_limit == 0 && above.len() == 1;
        "VERBS-9.5.3-40" => above == [AsyncEvent { resource: Resource::Qp(qp, id), event: EventId::QpRqLimitReached }];
        "VERBS-6.3.8-12" => {
            sharing.send(0, b"");
            sharing.state(0) == QpState::Rts && sharing.count(EventId::QpRqLimitReached) == 1
        };
        "VERBS-6.3.8-14" => {
            sharing.side.rnic.modify_qp(Instant::ORIGIN, qp, &rearm).unwrap();
            sharing.send(0, b"");
            sharing.count(EventId::QpRqLimitReached) == 2
        };
    }
}

#[test]
fn both_limits_have_their_event() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut sharing = Sharing::with(4, 4, 1);
    sharing.fill(4);
    (0..2).for_each(|_| sharing.send(0, b""));
    shows! { proof:
        "VERBS-6.3-19" => sharing.side.events.iter().map(|raised| raised.event)
            .eq([EventId::SrqLimitReached, EventId::QpRqLimitReached]);
    }
}

#[test]
fn errors_of_the_queue_itself() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut sharing = Sharing::new(3);
    let bad = sharing.sge(Stag { key: weft_peer::memory::StagKey(0), ..sharing.stag }, 9);
    sharing.post(6, vec![bad]);
    sharing.send(0, b"x");
    shows! { proof: "VERBS-6.3.6-1" => sharing.side.statuses() == [(6, CompletionStatus::InvalidStag)] && sharing.side.events.is_empty(); }
    // This Queue Pair has its own CQs.
    let mut sharing = Sharing::new(1);
    let (sq_cq, rq_cq) = [(); 2].map(|()| sharing.side.rnic.create_cq(9, None).unwrap().0).into();
    let init = QpInit { srq: Some(sharing.srq), ..QpInit::new(sharing.side.pd, sq_cq, rq_cq) };
    let (qp, id, _) = sharing.side.rnic.create_qp(init, None).unwrap();
    let llp = sharing.side.rnic.attach_stream(llp_settings(PLAIN, 1460, true)).unwrap();
    sharing.side.rnic.modify_qp(Instant::ORIGIN, qp, &QpModify::to_rts(llp)).unwrap();
    sharing.qps[1] = (qp, id, llp);
    let bad = sharing.sge(Stag { key: weft_peer::memory::StagKey(0), ..sharing.stag }, 9);
    sharing.post(6, vec![bad]);
    let full = sharing.side.rnic.post_srq(sharing.srq, vec![ReceiveWr { wr_id: 1, scatter: Vec::new() }]);
    sharing.send(1, b"x");
    shows! { proof:
        "VERBS-6.3.6-9" => full.unwrap_err().status == PostStatus::TooManyWrs
            && sharing.side.rnic.poll_cq(rq_cq).is_ok_and(|done| (done.wr_id, done.status) == (6, CompletionStatus::InvalidStag))
            && sharing.side.rnic.poll_cq(sq_cq).is_err();
    }
    let mut sharing = Sharing::new(3);
    sharing.fill(3);
    assert!(sharing.side.rnic.fail(Instant::ORIGIN, Failure::Srq(sharing.srq)));
    sharing.side.settle();
    let raised = AsyncEvent { resource: Resource::Srq(sharing.srq), event: EventId::SrqCatastrophic };
    shows! { proof:
        "VERBS-6.3.6-2" => sharing.side.events == [raised];
        "VERBS-6.3.6-10" => [sharing.state(0), sharing.state(1)] == [QpState::Rts; 2];
    }
    sharing.send(0, b"x");
    let (qp, id, _) = sharing.qps[0];
    shows! { proof:
        "VERBS-6.3.6-6" => sharing.count(EventId::SrqErrorOnQp) == 1 && sharing.code(0) == Some(0x0207);
        "VERBS-6.3.6-5" => sharing.side.events[1].resource == Resource::Qp(qp, id);
    }
    assert_eq!(sharing.state(1), QpState::Rts);
    assert_eq!(sharing.side.rnic.query_srq(sharing.srq).unwrap().pd, sharing.pd);
}
