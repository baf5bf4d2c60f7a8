//! Tests every operation between two RNICs. The tests check the data, the completions and their
//! order.

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::mpa::Framing;
use weft_peer::memory::{
    Access, Bind, FastRegistration, PhysicalBufferList, RemoteAccess, Stag, StagKey, StagState, ToBase,
};
use weft_peer::verbs::{
    CompletedOperation, CompletionStatus, Fence, Operation, Payload, ReceiveWr, RemoteAddress, SendWr, Sge,
};

use crate::verbs::peers::{Peers, VA, read, register, shows, ulpdus, write};

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + usize::from(seed)) as u8).collect()
}

fn send(payload: Payload) -> Operation {
    Operation::Send { payload, solicited: false, invalidate: None }
}

#[test]
fn a_send_fills_a_receive() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.a.octets()[..5000].copy_from_slice(&pattern(5000, 1));
    peers.b.post_receive(70, 100, 6000);
    let wr = peers.a.send_of(7, 0, 5000);
    peers.a.post(wr);
    peers.run();
    let (sent, received) = (peers.a.poll(), peers.b.poll());
    assert!(sent.len() == 1 && received.len() == 1);
    let (a, b) = (peers.a.id, peers.b.id);
    shows! { proof:
        "VERBS-8.1.2.1-1" => received.len() == 1 && received[0].wr_id == 70;
        "VERBS-8.1.2.1-7" => received[0].status == CompletionStatus::Success;
        "VERBS-8.1.2.1-8" => received[0].octets == 5000;
        "VERBS-9.3.2.1-10" => received[0].qp == b && sent[0].qp == a;
        "VERBS-8.1.2.1-12" => peers.b.octets()[100..5100] == pattern(5000, 1);
        "VERBS-8.1.2.1-11" => sent[0].operation == CompletedOperation::Send && sent[0].wr_id == 7;
        "VERBS-9.3.1.1-13" => sent.len() == 1;
        "VERBS-8.1.2.1-13" => ulpdus(&peers.from_a).len() == 4;
    }
}

#[test]
fn scatter_and_gather() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.a.octets()[..1000].copy_from_slice(&pattern(1000, 3));
    let scatter = vec![peers.b.sge(10, 1), peers.b.sge(500, 0), peers.b.sge(2000, 98), peers.b.sge(4000, 400)];
    peers.b.rnic.post_receive(peers.b.qp, vec![ReceiveWr { wr_id: 1, scatter }]).unwrap();
    let nowhere = Sge { stag: 0xdead_beef, tagged_offset: u64::MAX, length: 0 };
    let gather = vec![peers.a.sge(300, 200), nowhere, peers.a.sge(0, 99)];
    peers.a.post(SendWr::new(2, send(Payload::Gather(gather))));
    peers.run();
    let message = [&pattern(1000, 3)[300..500], &pattern(1000, 3)[..99]].concat();
    shows! { proof:
        "VERBS-8.1.3.2-1" => peers.b.poll()[0].octets == 299;
        "VERBS-8.1.3.2-6" => peers.a.statuses() == [(2, CompletionStatus::Success)];
        "VERBS-8.1.3.2-7" => peers.b.octets()[10] == message[0] && peers.b.octets()[2000..2098] == message[1..99]
            && peers.b.octets()[4000..4200] == message[99..];
        "VERBS-8.1.3.2-12" => peers.b.rnic.query().unwrap().settings.max_sges >= 4;
    }
    let empty = SendWr::new(3, send(Payload::Gather(Vec::new())));
    peers.b.rnic.post_receive(peers.b.qp, vec![ReceiveWr { wr_id: 9, scatter: Vec::new() }]).unwrap();
    peers.a.post(empty);
    peers.run();
    let received = peers.b.poll();
    shows! { proof:
        "VERBS-8.1.3.2-8" => received[0].octets == 0 && received[0].status == CompletionStatus::Success;
        "VERBS-9.3.1.1-15" => peers.a.statuses() == [(3, CompletionStatus::Success)];
        "RDMAP-5.3-17" => received[0].wr_id == 9;
    }
}

#[test]
fn inline_payload_is_copied_into_the_work_request() {
    let mut peers = Peers::new();
    peers.b.post_receive(1, 0, 4000);
    peers.a.post(SendWr::new(1, send(Payload::Inline(Bytes::from(pattern(4000, 9))))));
    let remote = peers.b.remote(9000);
    peers.a.post(SendWr::new(2, Operation::Write { payload: Payload::Inline(Bytes::from_static(b"inline")), remote }));
    peers.run();
    assert_eq!(peers.a.statuses(), [(1, CompletionStatus::Success), (2, CompletionStatus::Success)]);
    assert_eq!(peers.b.octets()[..4000], pattern(4000, 9));
    assert_eq!(peers.b.octets()[9000..9006], *b"inline");
}

#[test]
fn a_write_is_placed_without_completion() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.a.octets()[..20_000].copy_from_slice(&pattern(20_000, 5));
    let wr = write(&peers.a, 1, 0, 20_000, peers.b.remote(333));
    peers.a.post(wr);
    peers.run();
    shows! { proof:
        "VERBS-8.1.2.2-1" => peers.b.poll().is_empty();
        "VERBS-8.1.2.2-2" => peers.b.octets()[333..20_333] == pattern(20_000, 5);
        "VERBS-8.1.2.2-5" => peers.b.octets()[..333].iter().all(|octet| *octet == 0) && peers.b.octets()[20_333] == 0;
        "RDMAP-5.1-2" => peers.b.events.is_empty();
        "VERBS-8.1.2.2-17" => peers.a.statuses() == [(1, CompletionStatus::Success)];
    }
    let wr = write(&peers.a, 2, 0, 0, RemoteAddress { stag: 0xffff_ff00, tagged_offset: 1 });
    peers.a.post(wr);
    peers.run();
    shows! { proof:
        "RDMAP-5.1-12" => peers.a.statuses() == [(2, CompletionStatus::Success)] && peers.b.events.is_empty();
    }
}

#[test]
fn a_read_fetches_and_acknowledges() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.b.octets()[1000..31_000].copy_from_slice(&pattern(30_000, 8));
    let wr = read(&peers.a, 4, 77, 30_000, peers.b.remote(1000));
    peers.a.post(wr);
    let (there, _) = peers.a.transmit(peers.now, usize::MAX);
    shows! { proof: "VERBS-8.2.2-7" => peers.a.poll().is_empty(); }
    peers.b.rnic.handle_octets(peers.now, peers.b.llp, &there);
    peers.run();
    shows! { proof:
        "VERBS-8.1.2.2-3" => peers.a.octets()[77..30_077] == pattern(30_000, 8);
        "VERBS-7.5.2-4" => ulpdus(&there).len() == 1;
        "VERBS-8.1.2.2-14" => peers.a.statuses() == [(4, CompletionStatus::Success)];
        "RDMAP-5.2.1-4" => peers.b.poll().is_empty() && peers.b.events.is_empty();
    }
    let wr = read(&peers.a, 5, 0, 0, RemoteAddress { stag: 0, tagged_offset: 0 });
    peers.a.post(wr);
    peers.run();
    shows! { proof:
        "VERBS-8.2.2.2-7" => peers.a.statuses() == [(5, CompletionStatus::Success)];
    }
}

#[test]
fn messages_stay_in_order() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    for n in 0..4 {
        peers.b.post_receive(n, n * 100, 100);
    }
    peers.a.octets()[..8].copy_from_slice(b"12345678");
    let list = vec![
        peers.a.send_of(0, 0, 1),
        write(&peers.a, 1, 4, 4, peers.b.remote(5000)),
        peers.a.send_of(2, 1, 1),
        read(&peers.a, 3, 900, 4, peers.b.remote(5000)),
        peers.a.send_of(4, 2, 1),
        peers.a.send_of(5, 3, 1),
    ];
    assert_eq!(peers.a.rnic.post_send(peers.a.qp, list), Ok(6));
    peers.run();
    let opcodes: Vec<u8> = ulpdus(&peers.from_a).iter().map(|ulpdu| ulpdu[1] & 0xf).collect();
    let ids: Vec<u64> = peers.a.poll().iter().map(|completion| completion.wr_id).collect();
    let received: Vec<u64> = peers.b.poll().iter().map(|completion| completion.wr_id).collect();
    shows! { proof:
        "VERBS-8.2.2-1" => opcodes == [3, 0, 3, 1, 3, 3];
        "VERBS-8.2.2-2" => ids == [0, 1, 2, 3, 4, 5];
        "VERBS-8.2.2-9" => received == [0, 1, 2, 3];
        "VERBS-8.2.2-15" => peers.a.octets()[900..904] == *b"5678";
        "VERBS-8.1.2.1-14" => (0..4).map(|n| peers.b.octets()[n * 100]).eq(*b"1234");
        "VERBS-8.2.2-12" => opcodes[4] == 3;
        "RDMAP-5.5-12" => ids.is_sorted();
    }
}

#[test]
fn a_read_fence_waits_for_reads() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.b.octets()[..4].copy_from_slice(b"data");
    peers.b.post_receive(1, 1000, 10);
    let list = vec![
        read(&peers.a, 1, 0, 4, peers.b.remote(0)),
        SendWr { fence: Fence::Read, ..peers.a.send_of(2, 0, 4) },
        write(&peers.a, 3, 0, 4, peers.b.remote(2000)),
    ];
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    let (before, _) = peers.a.transmit(peers.now, usize::MAX);
    shows! { proof:
        "VERBS-8.2.2.2-1" => ulpdus(&before).len() == 1;
        "VERBS-8.2.2.2-2" => ulpdus(&before)[0][1] & 0xf == 1;
    }
    peers.b.rnic.handle_octets(peers.now, peers.b.llp, &before);
    peers.run();
    shows! { proof:
        "VERBS-8.2.2.2-3" => ulpdus(&peers.from_a).len() == 2;
        "VERBS-8.2.2.2-17" => peers.b.octets()[1000..1004] == *b"data";
    }
    let mut fenced = write(&peers.a, 5, 0, 4, peers.b.remote(3000));
    fenced.fence = Fence::Read;
    let list = vec![read(&peers.a, 4, 0, 4, peers.b.remote(0)), fenced];
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    let (before, _) = peers.a.transmit(peers.now, usize::MAX);
    shows! { proof: "VERBS-8.2.2.2-18" => ulpdus(&before).len() == 1; }
    peers.b.rnic.handle_octets(peers.now, peers.b.llp, &before);
    peers.run();
    assert_eq!(peers.b.octets()[3000..3004], *b"data");
}

#[test]
fn a_local_fence_waits_for_all_work() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let (stag, buffer, pd) = (peers.a.stag, peers.a.buffer, peers.a.pd);
    let other = register(&mut peers.a.rnic, pd, buffer, Access::ALL);
    let invalidate = SendWr { fence: Fence::Local, ..SendWr::new(2, Operation::InvalidateLocal(other)) };
    let list =
        vec![read(&peers.a, 1, 0, 4, peers.b.remote(0)), invalidate, write(&peers.a, 3, 0, 4, peers.b.remote(8))];
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    let (before, _) = peers.a.transmit(peers.now, usize::MAX);
    shows! { proof:
        "VERBS-8.2.2.2-4" => ulpdus(&before).len() == 1;
        "VERBS-8.2.2.2-5" => peers.a.rnic.memory().query_region(other.index).unwrap().state == StagState::Valid;
        "VERBS-8.2.2.2-8" => ulpdus(&before)[0][1] & 0xf == 1;
    }
    peers.b.rnic.handle_octets(peers.now, peers.b.llp, &before);
    peers.run();
    shows! { proof:
        "VERBS-8.2.2.2-6" => peers.a.poll().len() == 3;
        "VERBS-8.2.2.2-21" => peers.a.rnic.memory().query_region(other.index).unwrap().state == StagState::Invalid;
        "VERBS-7.8-1" => peers.a.rnic.memory().query_region(stag.index).unwrap().state == StagState::Valid;
    }
    // Without the fence, the operation starts while the Read is outstanding.
    let again = register(&mut peers.a.rnic, pd, buffer, Access::ALL);
    let list = vec![read(&peers.a, 1, 0, 4, peers.b.remote(0)), SendWr::new(2, Operation::InvalidateLocal(again))];
    peers.a.rnic.post_send(peers.a.qp, list).unwrap();
    peers.a.transmit(peers.now, usize::MAX);
    shows! { proof:
        "VERBS-8.2.2.1-8" => peers.a.rnic.memory().query_region(again.index).unwrap().state == StagState::Invalid;
    }
}

#[test]
fn reads_stay_within_ord() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::with(Framing { markers: false, crc: false }, 1460, |init| init.ord = 2);
    let list = (0..5).map(|n| read(&peers.a, n, n * 10, 10, peers.b.remote(0)));
    let list: Vec<SendWr> = list.chain([write(&peers.a, 9, 0, 1, peers.b.remote(100))]).collect();
    shows! { proof: "VERBS-6.5-6" => peers.a.rnic.post_send(peers.a.qp, list.clone()) == Ok(6); }
    let (first, _) = peers.a.transmit(peers.now, usize::MAX);
    shows! { proof:
        "VERBS-6.5-5" => ulpdus(&first).len() == 2;
        "VERBS-6.5-23" => ulpdus(&first).iter().all(|ulpdu| ulpdu[1] & 0xf == 1);
        "VERBS-8.2.2-17" => ulpdus(&first).len() == 2 && peers.a.poll().is_empty();
    }
    peers.b.rnic.handle_octets(peers.now, peers.b.llp, &first);
    peers.run();
    shows! { proof:
        "VERBS-6.5-7" => peers.a.poll().len() == 6;
    }
}

#[test]
fn send_with_invalidate_and_solicited_event() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let (pd, buffer) = (peers.b.pd, peers.b.buffer);
    let stags: Vec<Stag> = (0..2).map(|_| register(&mut peers.b.rnic, pd, buffer, Access::ALL)).collect();
    let state = |peers: &Peers, n: usize| peers.b.rnic.memory().query_region(stags[n].index).unwrap().state;
    peers.b.post_receive(1, 0, 10);
    peers.b.post_receive(2, 0, 10);
    for (n, solicited) in [(0, false), (1, true)] {
        let payload = Payload::Inline(Bytes::from_static(b"x"));
        let operation = Operation::Send { payload, solicited, invalidate: Some(stags[n].to_bits()) };
        peers.a.post(SendWr::new(n as u64, operation));
    }
    peers.run();
    let received = peers.b.poll();
    shows! { proof:
        "VERBS-7.2.2-10" => state(&peers, 1) == StagState::Invalid;
        "VERBS-8.2.2.1-9" => received[0].invalidated == Some(stags[0].to_bits());
        "VERBS-9.3.2.1-9" => received[1].invalidated == Some(stags[1].to_bits());
        "VERBS-8.2.2.1-2" => state(&peers, 0) == StagState::Invalid && received[0].octets == 1;
        "RDMAP-5.3-8" => state(&peers, 0) == StagState::Invalid;
        "RDMAP-3.2-10" => received.iter().map(|done| done.invalidated).eq(stags.iter().map(|stag| Some(stag.to_bits())));
    }
}

#[test]
fn a_read_with_invalidate_ends_its_own_sink() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let (pd, buffer) = (peers.a.pd, peers.a.buffer);
    let sink = register(&mut peers.a.rnic, pd, buffer, Access::ALL);
    peers.b.octets()[..3].copy_from_slice(b"abc");
    let local = Sge { stag: sink.to_bits(), tagged_offset: VA, length: 3 };
    peers.a.post(SendWr::new(1, Operation::Read { local, remote: peers.b.remote(0), invalidate_local: true }));
    let (there, _) = peers.a.transmit(peers.now, usize::MAX);
    shows! { proof: "VERBS-8.1.2.2-12" => peers.a.rnic.memory().query_region(sink.index).unwrap().state == StagState::Valid; }
    peers.b.rnic.handle_octets(peers.now, peers.b.llp, &there);
    peers.run();
    let done = peers.a.poll();
    shows! { proof:
        "VERBS-8.2.2.1-3" => peers.a.octets()[..3] == *b"abc";
        "VERBS-7.2.2-11" => peers.a.rnic.memory().query_region(sink.index).unwrap().state == StagState::Invalid;
        "VERBS-4-12" => done[0].operation == CompletedOperation::ReadInvalidateLocal;
        "VERBS-8.1.2.3.3-5" => {
            let other = register(&mut peers.a.rnic, pd, buffer, Access::ALL);
            peers.a.post(SendWr::new(2, Operation::InvalidateLocal(other)));
            peers.run();
            [sink, other].map(|stag| peers.a.rnic.memory().query_region(stag.index).unwrap().state) == [StagState::Invalid; 2]
        };
    }
}

#[test]
fn bind_and_fast_register_take_effect_in_order() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let window = Stag { index: peers.b.rnic.memory_mut().allocate_window(peers.b.pd).unwrap(), key: StagKey(9) };
    let access = RemoteAccess { read: true, write: true };
    let region = peers.b.stag;
    let bind = Bind { window, region, address: VA + 100, length: 50, va_based: false, access };
    peers.b.post(SendWr::new(1, Operation::Bind(bind)));
    let fast = peers.b.rnic.memory_mut().allocate_stag(peers.b.pd, 4, true).unwrap().stag;
    let list = PhysicalBufferList::of(peers.b.buffer, 8192, 4096, 4096);
    let stag = Stag { key: StagKey(3), ..fast };
    let registration = FastRegistration { stag, list, base: ToBase::ZeroBased, access: Access::ALL };
    peers.b.post(SendWr::new(2, Operation::FastRegister(registration)));
    let gather = Payload::Gather(vec![Sge { stag: stag.to_bits(), tagged_offset: 0, length: 5 }]);
    peers.b.octets()[8192..8197].copy_from_slice(b"hello");
    let remote = peers.a.remote(0);
    peers.b.post(SendWr::new(3, Operation::Write { payload: gather, remote }));
    let (there, _) = peers.b.transmit(peers.now, usize::MAX);
    shows! { proof:
        "VERBS-8.1.2.3.1-2" => there.len() == 2 + 14 + 5 + 3 + 4;
        "VERBS-8.1.2.3.2-2" => peers.b.statuses() == [1, 2, 3].map(|n| (n, CompletionStatus::Success));
    }
    peers.a.rnic.handle_octets(peers.now, peers.a.llp, &there);
    let through = RemoteAddress { stag: window.to_bits(), tagged_offset: 10 };
    let wr = write(&peers.a, 4, 0, 5, through);
    peers.a.post(wr);
    peers.run();
    shows! { proof:
        "VERBS-8.2.2.1-5" => peers.a.octets()[..5] == *b"hello";
        "VERBS-8.2.2.1-6" => peers.b.octets()[110..115] == *b"hello";
        "VERBS-6.1.4-7" => peers.b.rnic.destroy_qp(peers.b.qp) == Err(weft_peer::verbs::QpError::WindowsStillBound);
        "VERBS-6.1.4-6" => peers.b.rnic.query_qp(peers.b.qp).is_ok();
    }
    peers.b.post(SendWr::new(5, Operation::InvalidateLocal(window)));
    peers.run();
    shows! { proof:
        "VERBS-7.10.5-3" => peers.b.rnic.memory().query_window(window.index).unwrap().state == StagState::Invalid;
        "VERBS-5.1.1.2-1" => peers.b.rnic.destroy_qp(peers.b.qp) == Ok(());
    }
}

/// The result is the same with and without markers, and with and without CRCs. It does not depend
/// on the pieces in which TCP accepts and delivers the octets.
#[test]
fn framing_and_cuts_change_nothing() {
    for markers in [false, true] {
        for crc in [false, true] {
            for (emss, segment, take) in
                [(128, 1, 7), (536, 13, 100), (1460, 1460, 3000), (65_495, usize::MAX, usize::MAX)]
            {
                let mut peers = Peers::with(Framing { markers, crc }, emss, |_| ());
                (peers.segment, peers.take) = (segment, take);
                peers.a.octets()[..3000].copy_from_slice(&pattern(3000, 2));
                peers.b.octets()[10_000..12_000].copy_from_slice(&pattern(2000, 4));
                peers.b.post_receive(1, 20_000, 3000);
                let list = vec![
                    write(&peers.a, 1, 0, 3000, peers.b.remote(0)),
                    peers.a.send_of(2, 0, 3000),
                    read(&peers.a, 3, 40_000, 2000, peers.b.remote(10_000)),
                ];
                peers.a.rnic.post_send(peers.a.qp, list).unwrap();
                peers.run();
                assert_eq!(peers.a.poll().len(), 3, "markers {markers}, CRC {crc}, EMSS {emss}");
                assert_eq!(peers.b.octets()[..3000], pattern(3000, 2));
                assert_eq!(peers.b.octets()[20_000..23_000], pattern(3000, 2));
                assert_eq!(peers.a.octets()[40_000..42_000], pattern(2000, 4));
            }
        }
    }
}

/// A region has many scattered pages. One message with the data of all pages needs more slices than
/// one write call can have.
#[test]
fn scattered_memory_is_sent_as_one_message() {
    let mut peers = Peers::with(Framing { markers: false, crc: true }, 65_495, |_| ());
    let buffer = peers.a.rnic.memory_mut().allocate_buffer(300 * 4096).unwrap();
    peers.a.rnic.memory_mut().buffer_mut(buffer).unwrap().copy_from_slice(&pattern(300 * 4096, 0));
    let mut list = PhysicalBufferList::of(buffer, 0, 300 * 4096, 4096);
    // The list has every 20th page, in reversed order.
    list.entries = list.entries.into_iter().rev().step_by(20).collect();
    list.length = list.entries.len() as u64 * 4096;
    let expected: Vec<u8> =
        (0..15).flat_map(|n| pattern(300 * 4096, 0)[(299 - n * 20) * 4096..][..4096].to_vec()).collect();
    let registration = weft_peer::memory::Registration {
        pd: peers.a.pd,
        key: StagKey(1),
        list,
        base: ToBase::ZeroBased,
        remote: false,
        access: Access::LOCAL,
    };
    let stag = peers.a.rnic.memory_mut().register(&registration).unwrap().stag;
    let remote = peers.b.remote(0);
    for n in 0..10 {
        let payload = Payload::Gather(vec![Sge { stag: stag.to_bits(), tagged_offset: 0, length: 15 * 4096 }]);
        peers.a.post(SendWr::new(n, Operation::Write { payload, remote }));
    }
    peers.run();
    assert_eq!(peers.a.poll().len(), 10);
    assert_eq!(peers.b.octets()[..15 * 4096], expected);
}
