//! Every operation between two RNICs: data, completions, order.

use bytes::Bytes;
use weft_core::coverage::{By, Proof};
use weft_core::wire::mpa::Framing;
use weft_peer::memory::{
    Access, Bind, FastRegistration, PhysicalBufferList, RemoteAccess, Stag, StagKey, StagState, ToBase,
};
use weft_peer::verbs::{
    CompletedOperation, CompletionStatus, Fence, Operation, Payload, ReceiveWr, RemoteAddress, SendWr, Sge,
};

use crate::verbs::world::{VA, World, read, register, shows, ulpdus, write};

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + usize::from(seed)) as u8).collect()
}

fn send(payload: Payload) -> Operation {
    Operation::Send { payload, solicited: false, invalidate: None }
}

#[test]
fn a_send_fills_a_receive() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    world.a.octets()[..5000].copy_from_slice(&pattern(5000, 1));
    world.b.post_receive(70, 100, 6000);
    let wr = world.a.send_of(7, 0, 5000);
    world.a.post(wr);
    world.run();
    let (sent, received) = (world.a.poll(), world.b.poll());
    assert!(sent.len() == 1 && received.len() == 1);
    let (a, b) = (world.a.id, world.b.id);
    shows! { proof:
        "VERBS-8.1.2.1-1" => received.len() == 1 && received[0].wr_id == 70;
        "VERBS-8.1.2.1-7" => received[0].status == CompletionStatus::Success;
        "VERBS-8.1.2.1-8" => received[0].octets == 5000;
        "VERBS-9.3.2.1-10" => received[0].qp == b && sent[0].qp == a;
        "VERBS-8.1.2.1-12" => world.b.octets()[100..5100] == pattern(5000, 1);
        "VERBS-8.1.2.1-11" => sent[0].operation == CompletedOperation::Send && sent[0].wr_id == 7;
        "VERBS-9.3.1.1-13" => sent.len() == 1;
        "VERBS-8.1.2.1-13" => ulpdus(&world.from_a).len() == 4;
    }
}

#[test]
fn scatter_and_gather() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    world.a.octets()[..1000].copy_from_slice(&pattern(1000, 3));
    let scatter = vec![world.b.sge(10, 1), world.b.sge(500, 0), world.b.sge(2000, 98), world.b.sge(4000, 400)];
    world.b.rnic.post_receive(world.b.qp, vec![ReceiveWr { wr_id: 1, scatter }]).unwrap();
    let nowhere = Sge { stag: 0xdead_beef, tagged_offset: u64::MAX, length: 0 };
    let gather = vec![world.a.sge(300, 200), nowhere, world.a.sge(0, 99)];
    world.a.post(SendWr::new(2, send(Payload::Gather(gather))));
    world.run();
    let message = [&pattern(1000, 3)[300..500], &pattern(1000, 3)[..99]].concat();
    shows! { proof:
        "VERBS-8.1.3.2-1" => world.b.poll()[0].octets == 299;
        "VERBS-8.1.3.2-6" => world.a.statuses() == [(2, CompletionStatus::Success)];
        "VERBS-8.1.3.2-7" => world.b.octets()[10] == message[0] && world.b.octets()[2000..2098] == message[1..99]
            && world.b.octets()[4000..4200] == message[99..];
        "VERBS-8.1.3.2-12" => world.b.rnic.query().unwrap().settings.max_sges >= 4;
    }
    let empty = SendWr::new(3, send(Payload::Gather(Vec::new())));
    world.b.rnic.post_receive(world.b.qp, vec![ReceiveWr { wr_id: 9, scatter: Vec::new() }]).unwrap();
    world.a.post(empty);
    world.run();
    let received = world.b.poll();
    shows! { proof:
        "VERBS-8.1.3.2-8" => received[0].octets == 0 && received[0].status == CompletionStatus::Success;
        "VERBS-9.3.1.1-15" => world.a.statuses() == [(3, CompletionStatus::Success)];
        "RDMAP-5.3-17" => received[0].wr_id == 9;
    }
}

#[test]
fn inline_payload_is_copied_into_the_work_request() {
    let mut world = World::new();
    world.b.post_receive(1, 0, 4000);
    world.a.post(SendWr::new(1, send(Payload::Inline(Bytes::from(pattern(4000, 9))))));
    let remote = world.b.remote(9000);
    world.a.post(SendWr::new(2, Operation::Write { payload: Payload::Inline(Bytes::from_static(b"inline")), remote }));
    world.run();
    assert_eq!(world.a.statuses(), [(1, CompletionStatus::Success), (2, CompletionStatus::Success)]);
    assert_eq!(world.b.octets()[..4000], pattern(4000, 9));
    assert_eq!(world.b.octets()[9000..9006], *b"inline");
}

#[test]
fn a_write_is_placed_without_completion() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    world.a.octets()[..20_000].copy_from_slice(&pattern(20_000, 5));
    let wr = write(&world.a, 1, 0, 20_000, world.b.remote(333));
    world.a.post(wr);
    world.run();
    shows! { proof:
        "VERBS-8.1.2.2-1" => world.b.poll().is_empty();
        "VERBS-8.1.2.2-2" => world.b.octets()[333..20_333] == pattern(20_000, 5);
        "VERBS-8.1.2.2-5" => world.b.octets()[..333].iter().all(|octet| *octet == 0) && world.b.octets()[20_333] == 0;
        "RDMAP-5.1-2" => world.b.events.is_empty();
        "VERBS-8.1.2.2-17" => world.a.statuses() == [(1, CompletionStatus::Success)];
    }
    let wr = write(&world.a, 2, 0, 0, RemoteAddress { stag: 0xffff_ff00, tagged_offset: 1 });
    world.a.post(wr);
    world.run();
    shows! { proof:
        "RDMAP-5.1-12" => world.a.statuses() == [(2, CompletionStatus::Success)] && world.b.events.is_empty();
    }
}

#[test]
fn a_read_fetches_and_acknowledges() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    world.b.octets()[1000..31_000].copy_from_slice(&pattern(30_000, 8));
    let wr = read(&world.a, 4, 77, 30_000, world.b.remote(1000));
    world.a.post(wr);
    let (there, _) = world.a.transmit(world.now, usize::MAX);
    shows! { proof: "VERBS-8.2.2-7" => world.a.poll().is_empty(); }
    world.b.rnic.handle_octets(world.now, world.b.llp, &there);
    world.run();
    shows! { proof:
        "VERBS-8.1.2.2-3" => world.a.octets()[77..30_077] == pattern(30_000, 8);
        "VERBS-7.5.2-4" => ulpdus(&there).len() == 1;
        "VERBS-8.1.2.2-14" => world.a.statuses() == [(4, CompletionStatus::Success)];
        "RDMAP-5.2.1-4" => world.b.poll().is_empty() && world.b.events.is_empty();
    }
    let wr = read(&world.a, 5, 0, 0, RemoteAddress { stag: 0, tagged_offset: 0 });
    world.a.post(wr);
    world.run();
    shows! { proof:
        "VERBS-8.2.2.2-7" => world.a.statuses() == [(5, CompletionStatus::Success)];
    }
}

#[test]
fn messages_stay_in_order() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    for n in 0..4 {
        world.b.post_receive(n, n * 100, 100);
    }
    world.a.octets()[..8].copy_from_slice(b"12345678");
    let list = vec![
        world.a.send_of(0, 0, 1),
        write(&world.a, 1, 4, 4, world.b.remote(5000)),
        world.a.send_of(2, 1, 1),
        read(&world.a, 3, 900, 4, world.b.remote(5000)),
        world.a.send_of(4, 2, 1),
        world.a.send_of(5, 3, 1),
    ];
    assert_eq!(world.a.rnic.post_send(world.a.qp, list), Ok(6));
    world.run();
    let opcodes: Vec<u8> = ulpdus(&world.from_a).iter().map(|ulpdu| ulpdu[1] & 0xf).collect();
    let ids: Vec<u64> = world.a.poll().iter().map(|completion| completion.wr_id).collect();
    let received: Vec<u64> = world.b.poll().iter().map(|completion| completion.wr_id).collect();
    shows! { proof:
        "VERBS-8.2.2-1" => opcodes == [3, 0, 3, 1, 3, 3];
        "VERBS-8.2.2-2" => ids == [0, 1, 2, 3, 4, 5];
        "VERBS-8.2.2-9" => received == [0, 1, 2, 3];
        "VERBS-8.2.2-15" => world.a.octets()[900..904] == *b"5678";
        "VERBS-8.1.2.1-14" => (0..4).map(|n| world.b.octets()[n * 100]).eq(*b"1234");
        "VERBS-8.2.2-12" => opcodes[4] == 3;
        "RDMAP-5.5-12" => ids.is_sorted();
    }
}

#[test]
fn a_read_fence_waits_for_reads() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    world.b.octets()[..4].copy_from_slice(b"data");
    world.b.post_receive(1, 1000, 10);
    let list = vec![
        read(&world.a, 1, 0, 4, world.b.remote(0)),
        SendWr { fence: Fence::Read, ..world.a.send_of(2, 0, 4) },
        write(&world.a, 3, 0, 4, world.b.remote(2000)),
    ];
    world.a.rnic.post_send(world.a.qp, list).unwrap();
    let (before, _) = world.a.transmit(world.now, usize::MAX);
    shows! { proof:
        "VERBS-8.2.2.2-1" => ulpdus(&before).len() == 1;
        "VERBS-8.2.2.2-2" => ulpdus(&before)[0][1] & 0xf == 1;
    }
    world.b.rnic.handle_octets(world.now, world.b.llp, &before);
    world.run();
    shows! { proof:
        "VERBS-8.2.2.2-3" => ulpdus(&world.from_a).len() == 2;
        "VERBS-8.2.2.2-17" => world.b.octets()[1000..1004] == *b"data";
    }
    let mut fenced = write(&world.a, 5, 0, 4, world.b.remote(3000));
    fenced.fence = Fence::Read;
    let list = vec![read(&world.a, 4, 0, 4, world.b.remote(0)), fenced];
    world.a.rnic.post_send(world.a.qp, list).unwrap();
    let (before, _) = world.a.transmit(world.now, usize::MAX);
    shows! { proof: "VERBS-8.2.2.2-18" => ulpdus(&before).len() == 1; }
    world.b.rnic.handle_octets(world.now, world.b.llp, &before);
    world.run();
    assert_eq!(world.b.octets()[3000..3004], *b"data");
}

#[test]
fn a_local_fence_waits_for_all_work() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let (stag, buffer, pd) = (world.a.stag, world.a.buffer, world.a.pd);
    let other = register(&mut world.a.rnic, pd, buffer, Access::ALL);
    let invalidate = SendWr { fence: Fence::Local, ..SendWr::new(2, Operation::InvalidateLocal(other)) };
    let list =
        vec![read(&world.a, 1, 0, 4, world.b.remote(0)), invalidate, write(&world.a, 3, 0, 4, world.b.remote(8))];
    world.a.rnic.post_send(world.a.qp, list).unwrap();
    let (before, _) = world.a.transmit(world.now, usize::MAX);
    shows! { proof:
        "VERBS-8.2.2.2-4" => ulpdus(&before).len() == 1;
        "VERBS-8.2.2.2-5" => world.a.rnic.query_region(other.index).unwrap().state == StagState::Valid;
        "VERBS-8.2.2.2-8" => ulpdus(&before)[0][1] & 0xf == 1;
    }
    world.b.rnic.handle_octets(world.now, world.b.llp, &before);
    world.run();
    shows! { proof:
        "VERBS-8.2.2.2-6" => world.a.poll().len() == 3;
        "VERBS-8.2.2.2-21" => world.a.rnic.query_region(other.index).unwrap().state == StagState::Invalid;
        "VERBS-7.8-1" => world.a.rnic.query_region(stag.index).unwrap().state == StagState::Valid;
    }
    // Without the fence it starts while the Read is outstanding.
    let again = register(&mut world.a.rnic, pd, buffer, Access::ALL);
    let list = vec![read(&world.a, 1, 0, 4, world.b.remote(0)), SendWr::new(2, Operation::InvalidateLocal(again))];
    world.a.rnic.post_send(world.a.qp, list).unwrap();
    world.a.transmit(world.now, usize::MAX);
    shows! { proof:
        "VERBS-8.2.2.1-8" => world.a.rnic.query_region(again.index).unwrap().state == StagState::Invalid;
    }
}

#[test]
fn reads_stay_within_ord() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::with(Framing { markers: false, crc: false }, 1460, |init| init.ord = 2);
    let list = (0..5).map(|n| read(&world.a, n, n * 10, 10, world.b.remote(0)));
    let list: Vec<SendWr> = list.chain([write(&world.a, 9, 0, 1, world.b.remote(100))]).collect();
    shows! { proof: "VERBS-6.5-6" => world.a.rnic.post_send(world.a.qp, list.clone()) == Ok(6); }
    let (first, _) = world.a.transmit(world.now, usize::MAX);
    shows! { proof:
        "VERBS-6.5-5" => ulpdus(&first).len() == 2;
        "VERBS-6.5-23" => ulpdus(&first).iter().all(|ulpdu| ulpdu[1] & 0xf == 1);
        "VERBS-8.2.2-17" => ulpdus(&first).len() == 2 && world.a.poll().is_empty();
    }
    world.b.rnic.handle_octets(world.now, world.b.llp, &first);
    world.run();
    shows! { proof:
        "VERBS-6.5-7" => world.a.poll().len() == 6;
    }
}

#[test]
fn send_with_invalidate_and_solicited_event() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let (pd, buffer) = (world.b.pd, world.b.buffer);
    let stags: Vec<Stag> = (0..2).map(|_| register(&mut world.b.rnic, pd, buffer, Access::ALL)).collect();
    let state = |world: &World, n: usize| world.b.rnic.query_region(stags[n].index).unwrap().state;
    world.b.post_receive(1, 0, 10);
    world.b.post_receive(2, 0, 10);
    for (n, solicited) in [(0, false), (1, true)] {
        let payload = Payload::Inline(Bytes::from_static(b"x"));
        let operation = Operation::Send { payload, solicited, invalidate: Some(stags[n].to_bits()) };
        world.a.post(SendWr::new(n as u64, operation));
    }
    world.run();
    let received = world.b.poll();
    shows! { proof:
        "VERBS-7.2.2-10" => state(&world, 1) == StagState::Invalid;
        "VERBS-8.2.2.1-9" => received[0].invalidated == Some(stags[0].to_bits());
        "VERBS-9.3.2.1-9" => received[1].invalidated == Some(stags[1].to_bits());
        "VERBS-8.2.2.1-2" => state(&world, 0) == StagState::Invalid && received[0].octets == 1;
        "RDMAP-5.3-8" => state(&world, 0) == StagState::Invalid;
        "RDMAP-3.2-10" => received.iter().map(|done| done.invalidated).eq(stags.iter().map(|stag| Some(stag.to_bits())));
    }
}

#[test]
fn a_read_with_invalidate_ends_its_own_sink() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let (pd, buffer) = (world.a.pd, world.a.buffer);
    let sink = register(&mut world.a.rnic, pd, buffer, Access::ALL);
    world.b.octets()[..3].copy_from_slice(b"abc");
    let local = Sge { stag: sink.to_bits(), tagged_offset: VA, length: 3 };
    world.a.post(SendWr::new(1, Operation::Read { local, remote: world.b.remote(0), invalidate_local: true }));
    let (there, _) = world.a.transmit(world.now, usize::MAX);
    shows! { proof: "VERBS-8.1.2.2-12" => world.a.rnic.query_region(sink.index).unwrap().state == StagState::Valid; }
    world.b.rnic.handle_octets(world.now, world.b.llp, &there);
    world.run();
    let done = world.a.poll();
    shows! { proof:
        "VERBS-8.2.2.1-3" => world.a.octets()[..3] == *b"abc";
        "VERBS-7.2.2-11" => world.a.rnic.query_region(sink.index).unwrap().state == StagState::Invalid;
        "VERBS-4-12" => done[0].operation == CompletedOperation::ReadInvalidateLocal;
        "VERBS-8.1.2.3.3-5" => {
            let other = register(&mut world.a.rnic, pd, buffer, Access::ALL);
            world.a.post(SendWr::new(2, Operation::InvalidateLocal(other)));
            world.run();
            [sink, other].map(|stag| world.a.rnic.query_region(stag.index).unwrap().state) == [StagState::Invalid; 2]
        };
    }
}

#[test]
fn bind_and_fast_register_take_effect_in_order() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let window = Stag { index: world.b.rnic.allocate_window(world.b.pd).unwrap(), key: StagKey(9) };
    let access = RemoteAccess { read: true, write: true };
    let region = world.b.stag;
    let bind = Bind { window, region, address: VA + 100, length: 50, va_based: false, access };
    world.b.post(SendWr::new(1, Operation::Bind(bind)));
    let fast = world.b.rnic.allocate_stag(world.b.pd, 4, true).unwrap().stag;
    let list = PhysicalBufferList::of(world.b.buffer, 8192, 4096, 4096);
    let stag = Stag { key: StagKey(3), ..fast };
    let registration = FastRegistration { stag, list, base: ToBase::ZeroBased, access: Access::ALL };
    world.b.post(SendWr::new(2, Operation::FastRegister(registration)));
    let gather = Payload::Gather(vec![Sge { stag: stag.to_bits(), tagged_offset: 0, length: 5 }]);
    world.b.octets()[8192..8197].copy_from_slice(b"hello");
    let remote = world.a.remote(0);
    world.b.post(SendWr::new(3, Operation::Write { payload: gather, remote }));
    let (there, _) = world.b.transmit(world.now, usize::MAX);
    shows! { proof:
        "VERBS-8.1.2.3.1-2" => there.len() == 2 + 14 + 5 + 3 + 4;
        "VERBS-8.1.2.3.2-2" => world.b.statuses() == [1, 2, 3].map(|n| (n, CompletionStatus::Success));
    }
    world.a.rnic.handle_octets(world.now, world.a.llp, &there);
    let through = RemoteAddress { stag: window.to_bits(), tagged_offset: 10 };
    let wr = write(&world.a, 4, 0, 5, through);
    world.a.post(wr);
    world.run();
    shows! { proof:
        "VERBS-8.2.2.1-5" => world.a.octets()[..5] == *b"hello";
        "VERBS-8.2.2.1-6" => world.b.octets()[110..115] == *b"hello";
        "VERBS-6.1.4-7" => world.b.rnic.destroy_qp(world.b.qp) == Err(weft_peer::verbs::QpError::WindowsStillBound);
        "VERBS-6.1.4-6" => world.b.rnic.query_qp(world.b.qp).is_ok();
    }
    world.b.post(SendWr::new(5, Operation::InvalidateLocal(window)));
    world.run();
    shows! { proof:
        "VERBS-7.10.5-3" => world.b.rnic.query_window(window.index).unwrap().state == StagState::Invalid;
        "VERBS-5.1.1.2-1" => world.b.rnic.destroy_qp(world.b.qp) == Ok(());
    }
}

/// Markers, CRC, and the way in which TCP accepts and splits the octets make no difference.
#[test]
fn framing_and_cuts_change_nothing() {
    for markers in [false, true] {
        for crc in [false, true] {
            for (emss, segment, take) in
                [(128, 1, 7), (536, 13, 100), (1460, 1460, 3000), (65_495, usize::MAX, usize::MAX)]
            {
                let mut world = World::with(Framing { markers, crc }, emss, |_| ());
                (world.segment, world.take) = (segment, take);
                world.a.octets()[..3000].copy_from_slice(&pattern(3000, 2));
                world.b.octets()[10_000..12_000].copy_from_slice(&pattern(2000, 4));
                world.b.post_receive(1, 20_000, 3000);
                let list = vec![
                    write(&world.a, 1, 0, 3000, world.b.remote(0)),
                    world.a.send_of(2, 0, 3000),
                    read(&world.a, 3, 40_000, 2000, world.b.remote(10_000)),
                ];
                world.a.rnic.post_send(world.a.qp, list).unwrap();
                world.run();
                assert_eq!(world.a.poll().len(), 3, "markers {markers}, CRC {crc}, EMSS {emss}");
                assert_eq!(world.b.octets()[..3000], pattern(3000, 2));
                assert_eq!(world.b.octets()[20_000..23_000], pattern(3000, 2));
                assert_eq!(world.a.octets()[40_000..42_000], pattern(2000, 4));
            }
        }
    }
}

/// Regions of many scattered pages, more than one write call has slices for.
#[test]
fn scattered_memory_is_sent_as_one_message() {
    let mut world = World::with(Framing { markers: false, crc: true }, 65_495, |_| ());
    let buffer = world.a.rnic.allocate_buffer(300 * 4096).unwrap();
    world.a.rnic.buffer_mut(buffer).unwrap().copy_from_slice(&pattern(300 * 4096, 0));
    let mut list = PhysicalBufferList::of(buffer, 0, 300 * 4096, 4096);
    // Every second page, backwards.
    list.entries = list.entries.into_iter().rev().step_by(20).collect();
    list.length = list.entries.len() as u64 * 4096;
    let expected: Vec<u8> =
        (0..15).flat_map(|n| pattern(300 * 4096, 0)[(299 - n * 20) * 4096..][..4096].to_vec()).collect();
    let registration = weft_peer::memory::Registration {
        pd: world.a.pd,
        key: StagKey(1),
        list,
        base: ToBase::ZeroBased,
        remote: false,
        access: Access::LOCAL,
    };
    let stag = world.a.rnic.register(&registration).unwrap().stag;
    let remote = world.b.remote(0);
    for n in 0..10 {
        let payload = Payload::Gather(vec![Sge { stag: stag.to_bits(), tagged_offset: 0, length: 15 * 4096 }]);
        world.a.post(SendWr::new(n, Operation::Write { payload, remote }));
    }
    world.run();
    assert_eq!(world.a.poll().len(), 10);
    assert_eq!(world.b.octets()[..15 * 4096], expected);
}
