//! These tests check Private Buffers and send credit as the peer observes them
//! (draft-pinkerton-iwarp-sdp-01 section 10).

use std::time::Duration;

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::sdp::{Policy, SendId, Settings};

use crate::sdp::bench::Bench;
use crate::sdp::peers::Peers;
use crate::sdp::shows;
use crate::sdp::talk::{SIZE, Talk};
use crate::sdp::wire::{HELLO, Hello, word};
use crate::sdp::zcopy::{DATA, MODE_CHANGE, POLICY, SINK_AVAIL, TO_PIPELINED, bench, pipelined};

const BCOPY: Policy = Policy { source_threshold: u64::MAX, ..POLICY };
const CH_RCV_BUF: u8 = 0x0b;
const CH_RCV_BUF_ACK: u8 = 0x0c;

#[test]
fn each_reserved_credit_serves_its_purpose() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // Returns the number of octets after the header, for each message that the machine sends with
    // `bufs` credits left. Payload waits for credit. The machine has no SrcAvailCancel or similar
    // message to send.
    let with = |bufs: u16, widens: bool| {
        let mut bench = Bench::new(BCOPY, 16, 50);
        bench.bufs = bufs;
        if widens {
            // The peer has used half of its window, so an update is due.
            (0..15).for_each(|id| bench.receive(id, 50));
            (0..14).for_each(|_| bench.deliver(DATA, &[]));
        }
        bench.deliver(DATA, &[1]);
        bench.send(1, 34);
        bench.messages().iter().map(|message| message.rest.len()).collect::<Vec<usize>>()
    };
    let mut mode = Bench::new(BCOPY, 16, 50);
    mode.bufs = 1;
    // The user does not read, so this message stays in its Private Buffer. Therefore no message of
    // this side would widen the peer's window.
    mode.deliver(DATA, &[1]);
    mode.host.machine.shut_down();
    let not_at_one = mode.all().is_empty();
    mode.bufs = 2;
    mode.deliver(DATA, &[1]);
    shows!(proof:
        "SDP-10.5-5" => with(0, true).is_empty() && with(1, true) == [0] && with(2, false).is_empty() && with(3, false) == [34];
        "SDP-10.5-2" => not_at_one && with(1, false).is_empty();
        "SDP-10.5-3" => mode.mids() == [2] && with(2, true) == [0];
        "SDP-10.3-3" => {
            let mut bench = Bench::new(BCOPY, 3, 50);
            bench.send(1, 34 * 20);
            let before = bench.messages().len();
            bench.bufs = 20;
            bench.deliver(DATA, &[]);
            before == 1 && bench.messages().len() == 18
        };
    );
}

#[test]
fn private_buffers_obey_their_constraints() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let least = Settings { bufs: 1, recv_size: 1, policy: POLICY, ..Settings::default() };
    let mut small = Bench::with(least, Hello { local: 37, bufs: 16, ..HELLO });
    small.deliver(MODE_CHANGE, &word(TO_PIPELINED));
    small.receive(1, 37);
    let none = small.mids();
    small.receive(2, 38);
    small.host.machine.cancel_receives();
    small.receive(3, 38);
    small.send(1, 50);
    let sent = small.messages();
    let mut full = bench(POLICY);
    full.receive(1, 4096);
    // Sixteen messages of 64 octets each fill sixteen Private Buffers.
    (0..16).for_each(|octet| full.deliver(DATA, &[octet; 48]));
    let talk = Talk::held();
    let numbers = |side: usize| {
        talk.messages()
            .iter()
            .filter(|(from, message)| *from == side && message.mid != 1)
            .map(|(_, message)| message.mseq)
            .collect::<Vec<u32>>()
    };
    shows!(proof:
        "SDP-10-2" => small.host.machine.recv_size() == 37 && small.host.posted() == 3
            && sent.iter().all(|message| message.rest.len() + 16 <= 37);
        "SDP-10-3" => !full.is_aborted();
        "SDP-10-9" => none.iter().all(|mid| *mid != SINK_AVAIL) && sent.iter().any(|message| message.mid == SINK_AVAIL && message.word(0) == 38);
        "SDP-10.1-1" => (0..2).all(|side| numbers(side).windows(2).all(|pair| pair[1] == pair[0] + 1));
    );
    assert!(talk.of(SINK_AVAIL).iter().all(|message| message.word(0) > SIZE));
}

#[test]
fn a_larger_size_applies_to_advertisements_after_its_acknowledgement() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // The sixteen buffers of the old size are still posted.
    let pending = |len: u64| {
        let mut bench = pipelined(POLICY);
        bench.deliver(CH_RCV_BUF, &word(100));
        assert!(bench.mids().is_empty(), "the ChRcvBufAck waits");
        bench.receive(1, len);
        bench.mids()
    };
    // The peer is allowed to grant more than requested.
    let mut more = self::bench(POLICY);
    more.host.machine.resize(300);
    more.messages();
    more.deliver(CH_RCV_BUF_ACK, &word(320));
    more.send(1, 100);
    shows!(proof:
        "SDP-10.6-15" => pending(64).is_empty() && pending(101) == [SINK_AVAIL];
        "SDP-10.6-6" => !more.is_aborted() && more.events()[0] == weft_peer::sdp::Event::Resized(320);
    );
}

/// Each side has three Private Buffers. The user does not read the message in one of them, so two
/// are free. Each update uses a buffer of the side that receives the update, so this side then owes
/// an update too. Nevertheless, the two sides send only a few messages in ten seconds.
#[test]
fn updates_do_not_answer_each_other_forever() {
    let three = || Settings { bufs: 3, recv_size: 64, policy: BCOPY, ..Settings::default() };
    let mut peers = Peers::new(three(), three());
    peers.settle();
    for side in 0..2 {
        peers.hosts[side].sends.insert(SendId(1), vec![7; 400]);
        peers.hosts[side].machine.send(SendId(1), 400, false).unwrap();
    }
    let begun = peers.now;
    let messages = |peers: &Peers| peers.sent[0].len() + peers.sent[1].len();
    let before = messages(&peers);
    // The loop has a bound. Therefore an endless exchange fails the test. The test does not use
    // `settle`, because `settle` has no bound and would hang.
    let mut moved = 0;
    loop {
        (0..2).for_each(|side| peers.run(side));
        while moved < 1000 && (peers.deliver(0) | peers.deliver(1) | peers.complete(0) | peers.complete(1)) {
            moved += 1;
        }
        if moved >= 1000 || peers.now >= begun + Duration::from_secs(10) || !peers.wait() {
            break;
        }
    }
    let sent = messages(&peers) - before;
    assert!(moved < 1000 && sent < 80, "{sent} messages, {moved} moves");
}
