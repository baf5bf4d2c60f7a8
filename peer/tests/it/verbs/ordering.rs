//! Tests the order of work requests, the order of their effects, and fences
//! (draft-hilland-rddp-verbs, sections 8.2.2 to 8.2.2.2, Figure 22). A fence makes a work request
//! wait for earlier work.

use bytes::Bytes;
use weft_core::RequirementId;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::requirement;
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_peer::memory::{Access, Stag, StagKey, StagState};
use weft_peer::verbs::{CompletionStatus, Fence, Operation, Payload, PostStatus, RemoteAddress, SendWr, Sge};

use crate::verbs::figure_23::{bind, fast};
use crate::verbs::peers::{Bench, PLAIN, Peers, VA, fpdu, read, register, shows, tagged, untagged, write};

/// A kind of work in Figure 22.
#[derive(Clone, Copy)]
enum Kind {
    Send,
    Write,
    Read,
    Bind,
    FastRegister,
    Invalidate,
}

fn make(bench: &mut Bench, wr_id: u64, kind: Kind, fence: Fence) -> SendWr {
    let operation = match kind {
        Kind::Send => {
            Operation::Send { payload: Payload::Inline(Bytes::from_static(b"x")), solicited: false, invalidate: None }
        }
        Kind::Write => write(&bench.side, 0, 0, 1, bench.side.remote(0)).operation,
        Kind::Read => read(&bench.side, 0, 0, 1, bench.side.remote(0)).operation,
        Kind::Bind => bind(bench, |_, _| ()),
        Kind::FastRegister => fast(bench, |_, _| ()),
        Kind::Invalidate => {
            Operation::InvalidateLocal(register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL))
        }
    };
    SendWr { fence, ..SendWr::new(wr_id, operation) }
}

/// Posts two work requests in one list. Returns the opcodes on the wire, the completions, and the
/// reason if a post was rejected.
fn pair(first: Kind, second: Kind, fence: Fence) -> (Vec<u8>, Vec<(u64, CompletionStatus)>, Option<PostStatus>) {
    let mut bench = Bench::new();
    let one = make(&mut bench, 1, first, Fence::None);
    let two = make(&mut bench, 2, second, fence);
    let refusal = bench.side.rnic.post_send(bench.side.qp, vec![one, two]).err().map(|error| error.status);
    let opcodes = bench.sent().0.iter().map(|ulpdu| ulpdu[1] & 0xf).collect();
    (opcodes, bench.side.statuses(), refusal)
}

const BOTH_DONE: [(u64, CompletionStatus); 2] = [(1, CompletionStatus::Success), (2, CompletionStatus::Success)];

/// Checks the cells NA-2: a Read Fence delays nothing if no Read is outstanding.
fn not_delayed(first: Kind) -> bool {
    [Kind::Send, Kind::Write].into_iter().all(|second| {
        let (wire, done, refusal) = pair(first, second, Fence::Read);
        refusal.is_none() && done == BOTH_DONE && wire.last() == Some(&if matches!(second, Kind::Send) { 3 } else { 0 })
    })
}

/// Checks the cells NA-1: a Bind or a Fast-Register cannot have a fence.
fn no_fence(first: Kind) -> bool {
    [Kind::Bind, Kind::FastRegister].into_iter().all(|second| {
        [Fence::Read, Fence::Local]
            .into_iter()
            .all(|fence| pair(first, second, fence).2 == Some(PostStatus::InvalidModifier))
            && pair(first, second, Fence::None).2.is_none()
    })
}

/// Checks that a Read needs no fence. The Read Request is sent directly after `first` and waits for
/// nothing.
fn read_follows(first: Kind) -> bool {
    pair(first, Kind::Read, Fence::None).0.last() == Some(&1)
        && pair(first, Kind::Read, Fence::Read).2 == Some(PostStatus::InvalidModifier)
}

/// Checks that a request with a Local Fence waits until all previous work has completed.
fn local_fence(first: Kind) -> bool {
    let (_, done, refusal) = pair(first, Kind::Invalidate, Fence::Local);
    refusal.is_none() && done == BOTH_DONE
}

fn row(proof: &mut Coverage, first: Kind, ids: [Option<RequirementId>; 4]) {
    let checks: [fn(Kind) -> bool; 4] = [not_delayed, read_follows, no_fence, local_fence];
    for (id, check) in ids.into_iter().zip(checks) {
        if let Some(id) = id {
            proof.verify(id, || assert!(check(first), "{id}"));
        }
    }
}

#[test]
fn figure_22_after_sends_and_writes() {
    let mut proof = Coverage::new(CoverageKind::Test);
    row(
        &mut proof,
        Kind::Send,
        [
            Some(requirement!("VERBS-8.2.2.2-9")),
            Some(requirement!("VERBS-8.2.2.2-10")),
            Some(requirement!("VERBS-8.2.2.2-11")),
            Some(requirement!("VERBS-8.2.2.2-12")),
        ],
    );
    row(
        &mut proof,
        Kind::Write,
        [
            Some(requirement!("VERBS-8.2.2.2-13")),
            Some(requirement!("VERBS-8.2.2.2-14")),
            Some(requirement!("VERBS-8.2.2.2-15")),
            Some(requirement!("VERBS-8.2.2.2-16")),
        ],
    );
}

#[test]
fn figure_22_after_reads_and_binds() {
    let mut proof = Coverage::new(CoverageKind::Test);
    row(
        &mut proof,
        Kind::Read,
        [None, Some(requirement!("VERBS-8.2.2.2-19")), Some(requirement!("VERBS-8.2.2.2-20")), None],
    );
    row(
        &mut proof,
        Kind::Bind,
        [
            Some(requirement!("VERBS-8.2.2.2-22")),
            Some(requirement!("VERBS-8.2.2.2-23")),
            Some(requirement!("VERBS-8.2.2.2-24")),
            Some(requirement!("VERBS-8.2.2.2-25")),
        ],
    );
}

#[test]
fn figure_22_after_fast_register_and_invalidate() {
    let mut proof = Coverage::new(CoverageKind::Test);
    row(
        &mut proof,
        Kind::FastRegister,
        [
            Some(requirement!("VERBS-8.2.2.2-26")),
            Some(requirement!("VERBS-8.2.2.2-27")),
            Some(requirement!("VERBS-8.2.2.2-28")),
            Some(requirement!("VERBS-8.2.2.2-29")),
        ],
    );
    row(
        &mut proof,
        Kind::Invalidate,
        [
            Some(requirement!("VERBS-8.2.2.2-30")),
            Some(requirement!("VERBS-8.2.2.2-31")),
            Some(requirement!("VERBS-8.2.2.2-32")),
            Some(requirement!("VERBS-8.2.2.2-33")),
        ],
    );
}

#[test]
fn earlier_operations_of_the_peer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    peers.b.post_receive(9, 500, 9);
    peers.a.octets()[..6].copy_from_slice(b"abcdef");
    let list = vec![write(&peers.a, 1, 0, 3, peers.b.remote(0)), peers.a.send_of(2, 3, 3)];
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    let (there, _) = peers.a.transmit(peers.now, usize::MAX);
    let mut seen = Vec::new();
    // Deliver the octets one at a time. When the receive completes, the data of the earlier Write
    // is in memory.
    for octet in &there {
        peers.b.rnic.handle_octets(peers.now, peers.b.llp, std::slice::from_ref(octet));
        if !peers.b.poll().is_empty() {
            seen = peers.b.octets()[..3].to_vec();
        }
    }
    shows! { proof:
        "VERBS-8.2.2-10" => seen == b"abc";
    }
    // A Read Request that arrives after a Write returns the written octets.
    let mut bench = Bench::new();
    let stag = bench.side.stag.to_bits();
    let mut payload = Vec::new();
    ReadRequest { sink_stag: 1, sink_to: 0, rdmardsz: 3, src_stag: stag, src_to: VA }.emit(&mut payload);
    bench.hand_in(&tagged(Opcode::WRITE, stag, VA, b"new"));
    bench.hand_in(&untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &payload));
    shows! { proof: "VERBS-8.2.2-14" => bench.sent().0[0].ends_with(b"new"); }
    // A completed Read acknowledges everything that was sent before it.
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    peers.a.octets()[..3].copy_from_slice(b"xyz");
    let list = vec![write(&peers.a, 1, 0, 3, peers.b.remote(0)), read(&peers.a, 2, 100, 0, peers.b.remote(0))];
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    peers.run();
    shows! { proof:
        "VERBS-6.6.2.5-7" => peers.a.poll().iter().any(|done| done.wr_id == 2) && peers.b.octets()[..3] == *b"xyz";
    }
}

#[test]
fn placed_and_delivered() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.side.post_receive(1, 0, 9);
    let half = fpdu(&untagged(Opcode::SEND, 0, 1, 0, false, b"abc"));
    bench.side.rnic.handle_octets(weft_peer::Instant::ORIGIN, bench.side.llp, &half);
    let before = bench.side.poll().len();
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 3, true, b"def"));
    shows! { proof:
        "VERBS-4-9" => before == 0 && bench.side.statuses() == [(1, CompletionStatus::Success)] && bench.side.octets()[..6] == *b"abcdef";
    }
    // Sent octets belong to the peer. A later change of the buffer has no effect on these octets.
    let mut peers = Peers::with(PLAIN, 1460, |_| ());
    peers.b.post_receive(1, 0, 9);
    peers.a.octets()[..3].copy_from_slice(b"old");
    let wr = peers.a.send_of(2, 0, 3);
    peers.a.post(wr);
    let (there, _) = peers.a.transmit(peers.now, usize::MAX);
    let done = peers.a.poll().len();
    peers.a.octets()[..3].copy_from_slice(b"new");
    peers.b.rnic.handle_octets(peers.now, peers.b.llp, &there);
    shows! { proof:
        "VERBS-8.2.4-5" => done == 1 && peers.b.octets()[..3] == *b"old";
        "VERBS-8.1.3.2-3" => {
            // The RNIC reads the buffer when it sends the request, not when the request is posted.
            // Until then, the buffer of the region cannot be freed.
            let mut bench = Bench::new();
            let wr = bench.side.send_of(1, 0, 2);
            bench.side.post(wr);
            bench.side.rnic.memory_mut().free_buffer(bench.side.buffer).is_err()
        };
        "VERBS-8.2.2-20" => {
            let mut bench = Bench::with(|init| init.max_sq_wrs = 1);
            let wr = bench.side.send_of(1, 0, 2);
            bench.side.post(wr.clone());
            bench.sent();
            let held = bench.side.rnic.post_send(bench.side.qp, vec![wr.clone()]).is_err();
            bench.side.poll();
            held && bench.side.rnic.post_send(bench.side.qp, vec![wr]).is_ok()
        };
    }
}

#[test]
fn after_a_read_with_invalidate() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let sent = |fence| {
        let mut bench = Bench::new();
        let sink = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
        let local = Sge { stag: sink.to_bits(), tagged_offset: VA, length: 1 };
        let remote = RemoteAddress { stag: 9, tagged_offset: 0 };
        let list = vec![
            SendWr::new(1, Operation::Read { local, remote, invalidate_local: true }),
            SendWr { fence, ..bench.side.send_of(2, 0, 1) },
        ];
        bench.side.rnic.post_send(bench.side.qp, list).unwrap();
        let before: Vec<u8> = bench.sent().0.iter().map(|ulpdu| ulpdu[1] & 0xf).collect();
        bench.hand_in(&tagged(Opcode::READ_RESPONSE, sink.to_bits(), VA, b"x"));
        let after: Vec<u8> = bench.sent().0.iter().map(|ulpdu| ulpdu[1] & 0xf).collect();
        (before, after)
    };
    shows! { proof:
        "VERBS-8.1.2.2-13" => sent(Fence::None) == (vec![1, 3], vec![]);
        "VERBS-8.2.2.1-4" => sent(Fence::Read) == (vec![1], vec![3]);
    }
}

#[test]
fn memory_operations_take_effect_in_turn() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let send_from = |stag: Stag, wr_id| {
        let payload = Payload::Gather(vec![Sge { stag: stag.to_bits(), tagged_offset: VA, length: 1 }]);
        SendWr::new(wr_id, Operation::Send { payload, solicited: false, invalidate: None })
    };
    let mut bench = Bench::new();
    let spare = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
    let list = vec![send_from(spare, 1), SendWr::new(2, Operation::InvalidateLocal(spare)), send_from(spare, 3)];
    bench.side.rnic.post_send(bench.side.qp, list).unwrap();
    let (sent, _) = bench.sent();
    use CompletionStatus::{InvalidStag, Success};
    shows! { proof: "VERBS-8.1.2.3.3-4" => bench.side.statuses() == [(1, Success), (2, Success), (3, InvalidStag)] && sent.len() == 2; }
    // One list invalidates an STag, registers it again, and uses it.
    let cycle = |bench: &mut Bench, stag: Stag, key: u8| {
        let Operation::FastRegister(mut new) = fast(bench, |_, _| ()) else { unreachable!() };
        new.stag = Stag { key: StagKey(key), ..stag };
        let fresh = new.stag;
        let payload = Payload::Gather(vec![Sge { stag: fresh.to_bits(), tagged_offset: 0, length: 1 }]);
        let list = vec![
            SendWr::new(1, Operation::InvalidateLocal(stag)),
            SendWr::new(2, Operation::FastRegister(new)),
            SendWr::new(3, Operation::Send { payload, solicited: false, invalidate: None }),
        ];
        bench.side.rnic.post_send(bench.side.qp, list).unwrap();
        let sent = bench.sent().0.len();
        let good = bench.side.statuses() == [1, 2, 3].map(|n| (n, Success));
        (fresh, sent == 1 && good)
    };
    shows! { proof:
        "VERBS-8.2.2.1-7" => {
            let mut bench = Bench::new();
            let stag = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
            let stag = { let region = bench.side.rnic.memory().query_region(stag.index).unwrap(); assert!(region.pbl_entries >= 1); stag };
            cycle(&mut bench, stag, 9).1
        };
        "VERBS-7.3.2.5-16" => {
            let mut bench = Bench::new();
            let stag = bench.side.rnic.memory_mut().allocate_stag(bench.side.pd, 1, false).unwrap().stag;
            cycle(&mut bench, stag, 1).1
        };
        "VERBS-7.3.2.5-8" => {
            let mut bench = Bench::new();
            let stag = bench.side.rnic.memory_mut().allocate_stag(bench.side.pd, 1, false).unwrap().stag;
            let (valid, first) = cycle(&mut bench, stag, 1);
            let Operation::FastRegister(mut new) = fast(&mut bench, |_, _| ()) else { unreachable!() };
            new.stag = valid;
            bench.side.post(SendWr::new(4, Operation::FastRegister(new)));
            bench.sent();
            first && bench.side.statuses() == [(4, CompletionStatus::NotInvalid)]
        };
        "VERBS-8.2.2.1-12" => {
            let mut bench = Bench::new();
            let mut stag = bench.side.rnic.memory_mut().allocate_stag(bench.side.pd, 1, false).unwrap().stag;
            (0..1000u32).all(|n| {
                let (next, good) = cycle(&mut bench, stag, n as u8);
                stag = next;
                good
            }) && bench.side.rnic.memory_mut().deallocate_stag(stag.index).is_ok()
        };
        "VERBS-7.1-7" => {
            let mut bench = Bench::new();
            let valid = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
            let operation = fast(&mut bench, |new, _| new.stag = valid);
            bench.side.post(SendWr::new(4, operation));
            bench.sent();
            bench.side.statuses() == [(4, CompletionStatus::NotInvalid)]
                && bench.side.rnic.memory().query_region(valid.index).unwrap().state == StagState::Valid
        };
        "VERBS-8.1.2.3.2-1" => {
            let mut bench = Bench::new();
            let operation = fast(&mut bench, |_, _| ());
            bench.side.post(SendWr::new(4, operation));
            let before = bench.side.poll().len();
            bench.sent();
            before == 0 && bench.side.poll()[0].operation == weft_peer::verbs::CompletedOperation::FastRegister
        };
        "VERBS-8.1.2.3.3-2" => {
            let mut bench = Bench::new();
            let spare = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::ALL);
            bench.side.post(SendWr::new(4, Operation::InvalidateLocal(spare)));
            bench.sent();
            bench.side.poll()[0].operation == weft_peer::verbs::CompletedOperation::InvalidateLocal
        };
    }
}
