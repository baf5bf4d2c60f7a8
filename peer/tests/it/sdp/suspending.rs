//! Tests socket duplication and managed failover (draft-pinkerton-iwarp-sdp-01 section 13). In both
//! cases, the socket continues on another TCP connection.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{
    CommandError, Event, Half, Policy, Profile, ReceiveId, ReceiveOutcome, SendId, SendOutcome, Settings,
};

use crate::sdp::host::Item;
use crate::sdp::peers::Peers;
use crate::sdp::shows;
use crate::sdp::wire::{HELLO, Hello, src_ah, word};
use crate::sdp::zcopy::{DATA, POLICY, RDMA_RD_COMPL, SRC_AVAIL, bench, pipelined, sent, serve_read};

const SUSP_COMM: u8 = 0x0d;
const SUSP_COMM_ACK: u8 = 0x0e;

/// SuspCH (Figure 15) for a port.
fn susp_ch(port: u32) -> Vec<u8> {
    [word(0), word(port << 16 | 1)].concat()
}

fn suspended(reconnect: Option<u16>) -> Event {
    Event::Suspended { reconnect }
}

#[test]
fn reports_its_reads_before_it_requests_to_suspend() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(Policy { read_batch: 1000, ..POLICY });
    bench.receive(1, 60);
    bench.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    bench.host.run(bench.now);
    bench.host.machine.suspend(7001).unwrap();
    assert_eq!(bench.host.machine.suspend(7001), Err(CommandError::Suspending));
    bench.host.run(bench.now);
    let only_reads = bench.host.outgoing.iter().all(|item| matches!(item, Item::ReadRequest { .. }));
    serve_read(&mut bench);
    shows!(proof:
        "SDP-13.1.1-5" => only_reads;
    );
    let messages = bench.messages();
    shows!(proof:
        "SDP-13.1.1-6" => messages.iter().map(|message| message.mid).eq([RDMA_RD_COMPL, SUSP_COMM]);
        "SDP-6.5.1-2" => messages[1].rest == susp_ch(7001) && messages[1].solicited;
    );
    bench.send(1, 10);
    bench.receive(2, 60);
    bench.deliver(DATA, &[]);
    shows!(proof:
        "SDP-13.1.1-8" => bench.messages().is_empty();
    );
    bench.deliver(SUSP_COMM_ACK, &[]);
    assert_eq!(bench.all(), [Item::Fin]);
    assert!(bench.events().contains(&suspended(None)));
    bench.host.arrive(bench.now, Item::Fin);
    assert!(bench.host.machine.is_suspended());
    // A SuspCommAck that this side has not requested ends the connection.
    let mut wrong = self::bench(POLICY);
    wrong.deliver(SUSP_COMM_ACK, &[]);
    assert!(wrong.is_aborted());
}

#[test]
fn the_remote_peer_answers_when_its_read_is_over_and_connects() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    bench.receive(1, 200);
    bench.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    let Some(Item::ReadRequest { op, len, .. }) = bench.all().pop() else { panic!("no read") };
    bench.deliver(SUSP_COMM, &susp_ch(7001));
    shows!(proof:
        "SDP-13.1.1-10" => bench.messages().is_empty();
    );
    bench.host.arrive(bench.now, Item::ReadResponse { op, octets: vec![9; len as usize] });
    bench.host.run(bench.now);
    bench.send(1, 50);
    let before = bench.host.outgoing.clone();
    let items = bench.all();
    let mid = |item: &Item| if let Item::Message { octets, .. } = item { octets[3] } else { 0xaa };
    shows!(proof:
        "SDP-13.1.1-11" => items.iter().map(mid).eq([RDMA_RD_COMPL, SUSP_COMM_ACK, 0xaa]);
        // The machine ends TCP after the RNIC has completed the SuspCommAck.
        "SDP-13.1.1-14" => before.iter().map(mid).eq([RDMA_RD_COMPL, SUSP_COMM_ACK]);
        "SDP-13.1.1-15" => items[2] == Item::Fin;
    );
    assert!(bench.events().contains(&suspended(Some(7001))));
    bench.host.reconnect(bench.now);
    let hello = bench.all().remove(0);
    shows!(proof:
        "SDP-13.1.1-19" => hello == Item::Streaming(Hello { local: 64, ..HELLO }.octets());
    );
    // The machine sends the user's octets after the HelloAck has arrived.
    bench.host.arrive(bench.now, Item::Message { octets: HELLO.ack(), solicited: true, invalidate: None });
    bench.restarted();
    assert_eq!(bench.messages().iter().map(|message| (message.mid, message.mseq)).collect::<Vec<_>>(), [(DATA, 1)]);
    assert_eq!(bench.events().last(), Some(&sent(1, 50, SendOutcome::Complete)));
}

/// A peer that requests the suspension grants no more credit. Messages before the SuspCommAck use
/// some of the remaining credit. The last credit is reserved for a message that frees buffers
/// (section 10.5), but the SuspCommAck is allowed to use it.
#[test]
fn the_last_credit_is_enough_for_the_answer() {
    let mut bench = bench(POLICY);
    bench.receive(1, 200);
    bench.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    let Some(Item::ReadRequest { op, len, .. }) = bench.all().pop() else { panic!("no read") };
    bench.bufs = 2;
    bench.deliver(SUSP_COMM, &susp_ch(7001));
    bench.host.arrive(bench.now, Item::ReadResponse { op, octets: vec![9; len as usize] });
    let messages = bench.messages();
    assert_eq!(messages.iter().map(|message| message.mid).collect::<Vec<_>>(), [RDMA_RD_COMPL, SUSP_COMM_ACK]);
    let edges = messages.iter().map(|message| message.mseq_ack + u32::from(message.bufs)).collect::<Vec<_>>();
    assert!(edges[1] > edges[0], "{edges:?}");
    assert!(bench.events().contains(&suspended(Some(7001))));
}

/// Sections 6.5.2 and 13.1.2: two requests to suspend cross. The Connecting Peer answers the
/// request of the Accepting Peer, and repeats its own request later.
#[test]
fn of_crossed_requests_the_connecting_peer_answers_and_repeats_its_own() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let settings = Settings { profile: Profile::Bare, policy: POLICY, ..Settings::default() };
    let mut peers = Peers::new(settings, settings);
    peers.settle();
    for side in 0..2 {
        peers.hosts[side].machine.suspend(7000 + side as u16).unwrap();
        peers.run(side);
    }
    let mid_of = |octets: &Vec<u8>| octets[3];
    let before: Vec<usize> = peers.sent.iter().map(Vec::len).collect();
    while peers.wires.iter().any(|wire| !wire.is_empty()) {
        let _ = peers.deliver(0) | peers.deliver(1) | peers.complete(0) | peers.complete(1);
    }
    let sent_later = |side: usize| peers.sent[side][before[side]..].iter().map(mid_of).collect::<Vec<u8>>();
    shows!(proof:
        "SDP-13.1.2-1" => sent_later(1).is_empty();
        "SDP-13.1.2-2" => sent_later(0) == [SUSP_COMM_ACK];
    );
    peers.settle();
    shows!(proof:
        "SDP-13.1.2-3" => peers.sent[0].iter().filter(|octets| mid_of(octets) == SUSP_COMM).count() == 2;
    );
    assert_eq!(peers.reconnected, 2);
    assert!(peers.hosts.iter().all(|host| host.machine.is_open()));
}

/// Octets arrive exactly once. It makes no difference whether they were already sent or already
/// read when the suspension began.
#[test]
fn no_octet_is_lost_or_repeated() {
    for mode in [Mode::Combined, Mode::Pipelined, Mode::Buffered] {
        let settings = Settings { recv_size: 64, des_rem_rcv_sz: 64, policy: POLICY, ..Settings::default() };
        let mut peers = Peers::new(settings, settings);
        peers.settle();
        peers.hosts[0].machine.set_mode(Half::Out, mode).unwrap();
        peers.run(0);
        for (id, len) in [(1, 30), (2, 500), (3, 300), (4, 7)] {
            peers.hosts[0].sends.insert(SendId(id), (0..len).map(|octet| (octet * id) as u8).collect());
            peers.hosts[0].machine.send(SendId(id), len, false).unwrap();
        }
        peers.run(0);
        let mut got = Vec::new();
        let mut receive = |peers: &mut Peers, id: u64, len: usize| {
            peers.hosts[1].receives.insert(ReceiveId(id), vec![0; len]);
            peers.hosts[1].machine.receive(ReceiveId(id), len as u64, true).unwrap();
            peers.run(1);
            peers.settle();
            let ended = |event: &Event| {
                let Event::Received { receive, octets, end: ReceiveOutcome::More, .. } = event else { return None };
                (*receive == ReceiveId(id)).then_some(*octets)
            };
            let octets = peers.events(1).iter().find_map(ended).unwrap();
            got.extend_from_slice(&peers.hosts[1].receives[&ReceiveId(id)][..usize::try_from(octets).unwrap()]);
        };
        receive(&mut peers, 1, 100);
        for (side, id) in [(0, 2), (1, 3), (0, 4)] {
            peers.hosts[side].machine.suspend(7000).unwrap();
            peers.run(side);
            receive(&mut peers, id, 200);
        }
        receive(&mut peers, 5, 137);
        let expected: Vec<u8> = [(1u64, 30), (2, 500), (3, 300), (4, 7)]
            .iter()
            .flat_map(|(id, len)| (0..*len).map(move |n| (n * id) as u8))
            .collect();
        assert_eq!(got, expected, "{mode}");
        assert_eq!(peers.reconnected, 3);
        // The requested Mode is restored.
        assert_eq!(peers.hosts[0].machine.mode(Half::Out), mode);
    }
}

/// One half-connection has ended before the suspension. The new connection does not know this. So
/// the side that has closed sends its DisConn again, and the other half-connection continues.
#[test]
fn a_closed_half_sends_dis_conn_again_after_the_suspension() {
    for by in [0, 1] {
        let mut peers = Peers::new(Settings::default(), Settings::default());
        peers.settle();
        peers.hosts[0].machine.shut_down();
        peers.run(0);
        peers.settle();
        // A side that has closed its half-connection cannot request a suspension. So the other side
        // requests the suspension, on the first connection and then (if `by` is 1) on the second.
        for side in [1, 1].into_iter().take(by + 1) {
            peers.hosts[side].machine.suspend(7000).unwrap();
            peers.run(side);
            peers.settle();
        }
        let dis_conns = |peers: &Peers, side: usize| {
            peers.sent[side].iter().filter(|octets| !octets.starts_with(b"MPA ") && octets[3] == 2).count()
        };
        assert_eq!((peers.reconnected, dis_conns(&peers, 0)), (by as u64 + 1, by + 2));
        let events: Vec<Event> = peers.events(1);
        assert_eq!(events.iter().filter(|event| **event == Event::PeerClosed).count(), 1, "{events:?}");
        peers.hosts[1].sends.insert(SendId(1), vec![7; 300]);
        peers.hosts[1].machine.send(SendId(1), 300, false).unwrap();
        peers.hosts[1].machine.shut_down();
        peers.hosts[0].receives.insert(ReceiveId(1), vec![0; 300]);
        peers.hosts[0].machine.receive(ReceiveId(1), 300, true).unwrap();
        peers.run(0);
        peers.run(1);
        peers.settle();
        peers.wait();
        peers.settle();
        assert_eq!(peers.hosts[0].receives[&ReceiveId(1)], [7; 300]);
        for side in 0..2 {
            let closed = Event::Closed { graceful: true, violation: None };
            assert!(peers.events(side).contains(&closed), "{side}");
        }
    }
}

/// Section 13: advertisements end with the connection, and Private Buffers keep their size.
#[test]
fn advertisements_end_and_buffer_sizes_stay() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.receive(1, 1000);
    bench.send(1, 150);
    bench.messages();
    assert_eq!(bench.host.registered(), 2);
    bench.deliver(0x0b, &word(40));
    bench.messages();
    bench.host.machine.suspend(7001).unwrap();
    assert_eq!(bench.mids(), [SUSP_COMM]);
    bench.deliver(SUSP_COMM_ACK, &[]);
    bench.all();
    shows!(proof:
        "SDP-13-3" => bench.host.registered() == 0 && bench.events().iter().all(|event| !matches!(event, Event::Received { .. }));
    );
    bench.host.reconnect(bench.now);
    bench.host.arrive(bench.now, Item::Streaming(HELLO.octets()));
    let items = bench.all();
    let [Item::Message { octets, .. }, Item::Message { octets: change, .. }, ..] = &items[..] else {
        panic!("{items:?}")
    };
    shows!(proof:
            "SDP-13.1.1-24" => octets[3] == 1;
            "SDP-13.1.1-25" => octets[20..24] == word(40);
    // MSeq and the Modes restart, so the machine again sends a ModeChange to Pipelined Mode.
            "SDP-13.1.1-23" => octets[8..16] == [0; 8] && change[3] == 7 && change[8..12] == word(1) && change[16..] == word(4);
        );
}

/// The peer does not answer the SuspComm, or it does not connect again. Both waits have a limit.
#[test]
fn a_failed_suspension_ends_the_connection() {
    let mut mute = bench(POLICY);
    mute.host.machine.suspend(7001).unwrap();
    assert_eq!(mute.mids(), [SUSP_COMM]);
    mute.wait();
    assert!(mute.is_aborted());
    let mut alone = bench(POLICY);
    alone.host.machine.suspend(7001).unwrap();
    alone.messages();
    alone.deliver(SUSP_COMM_ACK, &[]);
    alone.events();
    alone.wait();
    assert_eq!(alone.events().pop(), Some(Event::Closed { graceful: false, violation: None }));
    let mut closing = bench(POLICY);
    closing.host.machine.shut_down();
    assert_eq!(closing.host.machine.suspend(7001), Err(CommandError::Closed));
}

/// If the user aborts after a SuspComm or SuspCommAck, the machine ends TCP. It sends no AbortConn,
/// because no message is allowed after a SuspComm or SuspCommAck.
#[test]
fn an_abort_after_the_suspension_sends_no_message() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut local = bench(POLICY);
    local.host.machine.suspend(7001).unwrap();
    assert_eq!(local.mids(), [SUSP_COMM]);
    local.host.machine.shut_down();
    local.host.machine.abort(local.now);
    let mut remote = bench(POLICY);
    remote.host.machine.shut_down();
    assert_eq!(remote.mids(), [2]);
    remote.deliver(SUSP_COMM, &susp_ch(7001));
    remote.host.run(remote.now);
    remote.host.machine.abort(remote.now);
    shows!(proof:
        "SDP-13.1.1-8" => local.all() == [Item::Reset];
        "SDP-13.1.1-12" => matches!(&remote.all()[..], [Item::Message { octets, .. }, Item::Reset] if octets[3] == SUSP_COMM_ACK);
    );
    for mut bench in [local, remote] {
        assert_eq!(bench.events().last(), Some(&Event::Closed { graceful: false, violation: None }));
    }
}
