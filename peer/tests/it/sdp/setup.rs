//! These tests check the order of set-up, and the ranges of the fields in Hello and HelloAck
//! (draft-pinkerton-iwarp-sdp-01, sections 6.2, 8.1.1 and 10.3).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{Connection, Half, Output, Policy, PrivateBuffer, Profile, SendId, Settings};
use weft_peer::{Instant, sdp};

use crate::sdp::bench::{Bench, parse_message};
use crate::sdp::host::{Host, Item};
use crate::sdp::peers::Peers;
use crate::sdp::shows;
use crate::sdp::wire::{HELLO, Hello, message, src_ah, word};
use crate::sdp::zcopy::{DATA, MODE_CHANGE, POLICY, SINK_AVAIL, SRC_AVAIL, TO_PIPELINED};

/// Settings with values that are out of range.
fn wild() -> Settings {
    Settings {
        profile: Profile::Bare,
        bufs: 0,
        recv_size: 0,
        des_rem_rcv_sz: u32::MAX,
        max_adverts: 0,
        ird: 0,
        ord: 0,
        ..Settings::default()
    }
}

fn bare() -> Settings {
    Settings { profile: Profile::Bare, ..Settings::default() }
}

fn hello_of(settings: Settings) -> Vec<u8> {
    let mut host = Host::new(Connection::connect(Instant::ORIGIN, settings));
    host.run(Instant::ORIGIN);
    let Some(Item::Streaming(hello)) = host.outgoing.pop_front() else { panic!("no Hello") };
    hello
}

/// Returns the HelloAck with which a machine answers a Hello.
fn answer_of(settings: Settings, hello: Hello) -> (Vec<u8>, Host) {
    let mut host = Host::new(Connection::accept(Instant::ORIGIN, settings));
    host.arrive(Instant::ORIGIN, Item::Streaming(hello.octets()));
    let Some(Item::Message { octets, .. }) = host.outgoing.pop_front() else { panic!("no HelloAck") };
    (octets, host)
}

fn word16(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn word32(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(octets[at..at + 4].try_into().unwrap())
}

#[test]
fn the_hello_announces_only_limits_that_hold() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let hello = hello_of(wild());
    let own = Settings { bufs: 5, recv_size: 100, max_adverts: 7, ird: 4, ord: 3, ..bare() };
    let own_hello = hello_of(own);
    shows!(proof:
        "SDP-6.2.1.3-1" => word16(&hello, 16) == 1 && word16(&own_hello, 16) == 7;
        "SDP-6.2.1.8-1" => hello[18] == 0 && own_hello[18] == 0;
        "SDP-6.2.1.4-3" => word32(&hello, 20) == 1 << 31;
        "SDP-8.1.1-5" => word16(&hello, 0) >= 3 && word32(&hello, 24) >= 37 && word16(&own_hello, 0) == 5 && word32(&own_hello, 24) == 100;
        "SDP-6.2.1.6-2" => word16(&hello, 28) == 1 && word16(&own_hello, 28) == 4;
        "SDP-6.2.1.7-2" => word16(&hello, 30) == 1 && word16(&own_hello, 30) == 3;
        "SDP-10.3-1" => word16(&hello, 0) == 3;
        "SDP-10-5" => word16(&hello_of(bare()), 0) > 2 * 3;
    );
}

#[test]
fn the_hello_ack_announces_only_limits_that_hold() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let hello = Hello { des_rem: 0, ..HELLO };
    let (ack, host) = answer_of(wild(), hello);
    let own = Settings { bufs: 5, recv_size: 100, max_adverts: 7, ird: 4, ord: 3, ..bare() };
    let (own_ack, _) = answer_of(own, hello);
    shows!(proof:
        "SDP-6.2.2.3-1" => word16(&ack, 16) == 1 && word16(&own_ack, 16) == 7;
        "SDP-6.2.2.7-1" => ack[18] == 0 && own_ack[18] == 0;
        "SDP-9.1-3" => word32(&own_ack, 20) == 100 && word32(&hello_of(own), 24) == 100;
        "SDP-6.2.2.5-2" => word16(&ack, 24) == 1 && word16(&own_ack, 24) == 4;
        "SDP-6.2.2.6-2" => word16(&ack, 26) == 1 && word16(&own_ack, 26) == 3;
        "SDP-10.3-2" => word16(&ack, 0) == 3;
        "SDP-10-4" => host.posted() == 3;
    );
}

/// LocORD of this side is 2. The machine obeys this limit, although the peer allows many more Reads
/// at a time.
#[test]
fn reads_stay_within_loc_ord() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let policy = Policy { max_read: 10, ..POLICY };
    let settings = Settings { recv_size: 64, ord: 2, policy, ..Settings::default() };
    let most = |mut bench: Bench| {
        bench.deliver(MODE_CHANGE, &word(TO_PIPELINED));
        for stag in 1..=3 {
            bench.deliver(SRC_AVAIL, &src_ah(40, stag, 0));
        }
        bench.receive(1, 1000);
        let mut outstanding = Vec::new();
        let (mut most, mut reads) = (0, 0);
        loop {
            outstanding.extend(bench.all().into_iter().filter(|item| matches!(item, Item::ReadRequest { .. })));
            most = outstanding.len().max(most);
            let Some(Item::ReadRequest { op, len, .. }) = outstanding.pop() else { return (most, reads) };
            reads += 1;
            bench.host.arrive(bench.now, Item::ReadResponse { op, octets: vec![0; len as usize] });
        }
    };
    let (connecting, accepting) = (most(Bench::with(settings, HELLO)), most(Bench::accepting(settings, HELLO)));
    shows!(proof:
        "SDP-6.2.1.7-1" => (1..=2).contains(&connecting.0) && connecting.1 == 12;
        "SDP-6.2.2.6-1" => (1..=2).contains(&accepting.0) && accepting.1 == 12;
        "SDP-8.1.1-9" => word16(&hello_of(Settings { ord: 2, ..bare() }), 30) == 2;
    );
}

/// Both users post sends and receives before the connection exists.
#[test]
fn set_up_follows_its_order() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let settings = || Settings { recv_size: 64, des_rem_rcv_sz: 64, policy: POLICY, ..bare() };
    let mut peers = Peers::new(settings(), settings());
    peers.log = Some(vec![(0, Item::Streaming(peers.sent[0][0].clone()))]);
    for side in 0..2 {
        peers.hosts[side].sends.insert(SendId(1), vec![7; 150]);
        peers.hosts[side].machine.send(SendId(1), 150, false).unwrap();
        peers.hosts[side].receives.insert(sdp::ReceiveId(1), vec![0; 150]);
        peers.hosts[side].machine.receive(sdp::ReceiveId(1), 150, false).unwrap();
    }
    peers.settle();
    for side in 0..2 {
        peers.hosts[side].machine.shut_down();
    }
    peers.settle();
    peers.wait();
    peers.settle();
    let log = peers.log.take().unwrap();
    let messages: Vec<_> = log.iter().filter_map(|(side, item)| Some((*side, parse_message(item.clone())?))).collect();
    let streaming = log.iter().filter(|(_, item)| matches!(item, Item::Streaming(_))).count();
    let first =
        |side: usize, mid: u8| messages.iter().find(|(from, message)| *from == side && message.mid == mid).cloned();
    let expected = Hello { des_rem: 64, local: 64, ..HELLO };
    shows!(proof:
        "SDP-5-3" => log[0] == (0, Item::Streaming(expected.octets()));
        "SDP-8.1.1-12" => matches!(&log[0], (0, Item::Streaming(hello)) if hello.len() == 32);
        "SDP-6.2-1" => messages[0].0 == 1 && messages[0].1.mid == 1;
        "SDP-8.1.1-4" => matches!(&log[1], (1, Item::Message { octets, .. }) if octets[3] == 1) && messages.len() > 4;
        "SDP-8.1.1-1" => streaming == 1;
        "SDP-8.1.1-41" => log[1..].iter().all(|(_, item)| !matches!(item, Item::Streaming(_)));
        "SDP-8.1.1-39" => (0..2).all(|side| first(side, SRC_AVAIL).unwrap().1.rest.len() > 16);
        "SDP-6.2-2" => (0..2).all(|side| first(side, 2).is_some()) && matches!(log.last(), Some((_, Item::Fin)));
    );
}

#[test]
fn both_halves_begin_in_combined_mode() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let settings = || Settings { recv_size: 64, des_rem_rcv_sz: 64, policy: POLICY, ..bare() };
    let begin = |mut bench: Bench| {
        let modes = (bench.host.machine.mode(Half::In), bench.host.machine.mode(Half::Out));
        bench.receive(1, 1000);
        bench.send(1, 150);
        bench.send(2, 150);
        (modes, bench.messages())
    };
    let hello = Hello { local: 200, des_rem: 64, ..HELLO };
    let (connecting, accepting) = (begin(Bench::with(settings(), hello)), begin(Bench::accepting(settings(), hello)));
    let combined = (Mode::Combined, Mode::Combined);
    shows!(proof:
        "SDP-12-23" => connecting.0 == combined && accepting.0 == combined;
        "SDP-12-2" => connecting.1.iter().map(|message| (message.mid, message.rest.len() > 16)).eq([(SRC_AVAIL, true)]);
        "SDP-11-2" => accepting.1.iter().all(|message| message.mid != SINK_AVAIL) && accepting.1[0].rest.len() > 16;
    );
}

/// Polls a machine until it has no more output.
fn outputs(machine: &mut Connection) -> Vec<Output> {
    std::iter::from_fn(|| machine.poll(Instant::ORIGIN, &mut |_| None)).collect()
}

#[test]
fn iwarp_is_ready_once_the_hello_is_sent() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut machine = Connection::connect(Instant::ORIGIN, bare());
    machine.send(SendId(1), 5, false).unwrap();
    let before = outputs(&mut machine);
    // The HelloAck and a message arrive directly after the Hello was sent, with no other step in
    // between.
    machine.handle_streaming(Instant::ORIGIN, &[0, 46]);
    machine.handle_message(Instant::ORIGIN, PrivateBuffer(0), &HELLO.ack(), sdp::Arrival::default());
    let data = message(16, 0, DATA, 1, 0, &[]);
    machine.handle_message(Instant::ORIGIN, PrivateBuffer(1), &data, sdp::Arrival::default());
    let opened = machine.is_open();
    let after = outputs(&mut machine);
    let opens_after = |wait: u64| {
        let now = Instant::ORIGIN + core::time::Duration::from_millis(wait);
        let mut machine = Connection::connect(Instant::ORIGIN, bare());
        outputs(&mut machine);
        machine.handle_streaming(now, &[0, 46]);
        machine.handle_message(now, PrivateBuffer(0), &HELLO.ack(), sdp::Arrival::default());
        machine.is_open()
    };
    shows!(proof:
        "SDP-8.1.1-10" => opened && before[..16].iter().all(|output| matches!(output, Output::Receive { .. }));
        "SDP-8.1.1-11" => (0..1000).all(opens_after);
        "SDP-8.1.1-40" => after.iter().any(|output| matches!(output, Output::Send { head, payload: Some(piece), .. }
            if head[3] == DATA && piece.len == 5));
    );
    let mut accepting = Connection::accept(Instant::ORIGIN, bare());
    accepting.send(SendId(1), 5, false).unwrap();
    accepting.handle_streaming(Instant::ORIGIN, &HELLO.octets());
    let all = outputs(&mut accepting);
    let posted = all.iter().take_while(|output| matches!(output, Output::Receive { octets: 8192, .. })).count();
    let sends: Vec<u8> = all
        .iter()
        .filter_map(|output| match output {
            Output::Send { head, .. } => Some(head[3]),
            _ => None,
        })
        .collect();
    let mut full = Bench::accepting(bare(), HELLO);
    for _ in 0..16 {
        full.deliver_with(0, DATA, 0, &[7], None);
    }
    shows!(proof:
        "SDP-8.1.1-30" => sends == [1, DATA];
        "SDP-8.1.1-23" => posted == 16 && !full.is_aborted();
    );
}
