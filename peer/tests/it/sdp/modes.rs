//! These tests check transitions between Modes, revocation, and limits of advertisements
//! (draft-pinkerton-iwarp-sdp-01, sections 9.5.4, 9.5.5, 11.3 and 12).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{Half, Policy, ReceiveOutcome, SendOutcome};

use crate::sdp::bench::{Bench, SentMessage};
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::wire::{sink_ah, src_ah, word};
use crate::sdp::zcopy::{
    DATA, MODE_CHANGE, POLICY, RDMA_RD_COMPL, S, SEND_SM, SINK_AVAIL, SINK_AVAIL_CANCEL, SINK_CANCEL_ACK, SRC_AVAIL,
    SRC_AVAIL_CANCEL, TO_BUFFERED, TO_COMBINED, TO_PIPELINED, bench, pipelined, received, sent, summaries,
};

#[test]
fn only_the_master_requests_a_mode_transition() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    let change = |bench: &mut Bench, half, mode| {
        let taken = bench.host.machine.set_mode(half, mode).is_ok();
        if taken { bench.messages() } else { Vec::new() }
    };
    let word_of =
        |messages: &[SentMessage]| messages.iter().map(|message| (message.mid, message.word(0))).collect::<Vec<_>>();
    let pipe = change(&mut bench, Half::Out, Mode::Pipelined);
    shows!(proof:
        "SDP-12.3-1" => word_of(&pipe) == [(MODE_CHANGE, TO_PIPELINED)];
        "SDP-14.2-16" => !pipe[0].solicited;
    );
    // From Pipelined Mode to Buffered Mode, the machine needs two steps, through Combined Mode. The
    // second step waits until the peer has acknowledged the first step.
    let back = change(&mut bench, Half::Out, Mode::Buffered);
    shows!(proof:
        "SDP-12.4-1" => word_of(&back) == [(MODE_CHANGE, TO_COMBINED)];
    );
    bench.deliver_with(0, DATA, back[0].mseq - 1, &[], None);
    shows!(proof:
        "SDP-12.4-3" => bench.messages().is_empty();
    );
    bench.deliver_with(0, DATA, back[0].mseq, &[], None);
    shows!(proof:
        "SDP-12.1-1" => word_of(&bench.messages()) == [(MODE_CHANGE, TO_BUFFERED)];
        "SDP-12-9" => bench.host.machine.set_mode(Half::Out, Mode::Combined).is_err();
    );
    bench.send(1, 150);
    shows!(proof:
        "SDP-12-18" => bench.mids() == [DATA];
    );
    bench.deliver(MODE_CHANGE, &word(TO_COMBINED | S));
    bench.send(2, 150);
    shows!(proof:
        "SDP-12.5-17" => bench.mids() == [SRC_AVAIL];
    );
}

#[test]
fn the_sink_leads_out_of_buffered() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    bench.deliver(MODE_CHANGE, &word(TO_BUFFERED));
    assert_eq!(bench.host.machine.mode(Half::In), Mode::Buffered);
    bench.host.machine.set_mode(Half::In, Mode::Combined).unwrap();
    let messages = bench.messages();
    shows!(proof:
        "SDP-12.2-1" => messages.iter().map(|message| (message.mid, message.word(0))).eq([(MODE_CHANGE, TO_COMBINED | S)]);
        "SDP-12-15" => bench.host.machine.mode(Half::In) == Mode::Combined;
    );
    let aborts = |setup: &[u32], last: u32| {
        let mut bench = self::bench(POLICY);
        setup.iter().for_each(|change| bench.deliver(MODE_CHANGE, &word(*change)));
        bench.deliver(MODE_CHANGE, &word(last));
        bench.is_aborted()
    };
    shows!(proof:
        "SDP-12-12" => aborts(&[], TO_COMBINED);
        "SDP-12-7" => aborts(&[TO_PIPELINED], TO_BUFFERED);
        "SDP-12-8" => aborts(&[], TO_PIPELINED | S) && aborts(&[TO_BUFFERED], TO_COMBINED);
        "SDP-12-1" => !aborts(&[TO_PIPELINED, TO_COMBINED], TO_BUFFERED);
    );
    assert!(aborts(&[], 6), "a reserved Mode");
}

#[test]
fn pipelined_to_combined_advertises_dropped_buffers_again() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.send(1, 150);
    bench.send(2, 150);
    assert_eq!(bench.mids(), [SRC_AVAIL, SRC_AVAIL]);
    bench.host.machine.set_mode(Half::Out, Mode::Combined).unwrap();
    assert_eq!(bench.mids(), [MODE_CHANGE]);
    // The peer sent this SinkAvail before it received the ModeChange. The SinkAvail crosses the two
    // SrcAvails and is not stale, so the peer has dropped both SrcAvails.
    bench.deliver_with(0, SINK_AVAIL, 3, &sink_ah(150, 0x55, 0, 0), None);
    let items = bench.all();
    let messages = summaries(&items);
    shows!(proof:
        "SDP-12.4-11" => messages.len() == 1 && messages[0].0 == SRC_AVAIL;
        "SDP-12.4-10" => messages[0].1.len() == 16 + 10;
        "SDP-12.4-8" => items.iter().all(|item| !matches!(item, Item::Write { .. }));
    );
    bench.deliver_with(0, SINK_AVAIL, 3, &sink_ah(150, 0x56, 0, 0), None);
    shows!(proof:
        "SDP-12.4-12" => bench.mids().is_empty();
    );
    bench.deliver_with(0, SINK_AVAIL, 4, &sink_ah(150, 0x57, 0, 0), None);
    shows!(proof:
        "SDP-12-21" => bench.is_aborted();
    );
    // Test the same transition from the side of the Data Sink.
    let mut sink = pipelined(POLICY);
    sink.receive(1, 100);
    assert_eq!(sink.mids(), [SINK_AVAIL]);
    sink.deliver_with(0, MODE_CHANGE, 1, &word(TO_COMBINED), None);
    sink.receive(2, 100);
    shows!(proof:
        "SDP-12.4-14" => sink.mids().is_empty() && sink.host.registered() == 0;
    );
}

#[test]
fn revoking_src_avails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.send(1, 150);
    bench.send(2, 150);
    bench.messages();
    bench.host.machine.cancel_sends();
    let messages = bench.messages();
    bench.send(3, 150);
    shows!(proof:
        "SDP-9.5.4-1" => messages.len() == 1 && messages[0].mid == SRC_AVAIL_CANCEL;
        "SDP-14.2-5" => messages[0].solicited;
        "SDP-9.5.4-10" => bench.mids().is_empty();
    );
    bench.deliver_with(0, RDMA_RD_COMPL, messages[0].mseq - 1, &word(60), None);
    bench.deliver_with(0, SEND_SM, messages[0].mseq, &[], None);
    let events = bench.events();
    shows!(proof:
        "SDP-9.5.4-12" => events == [sent(1, 60, SendOutcome::Canceled), sent(2, 0, SendOutcome::Canceled)];
    );
    assert_eq!(bench.mids(), [SRC_AVAIL], "the third send continues");
    // Test the Data Sink, which gets the revocation while a Read is in progress.
    let mut sink = pipelined(Policy { max_read: 30, ..POLICY });
    sink.deliver(SRC_AVAIL, &src_ah(100, 0x77, 0));
    sink.receive(1, 500);
    let read = sink.all();
    let Item::ReadRequest { op, .. } = read[0] else { panic!() };
    sink.deliver(SRC_AVAIL_CANCEL, &[]);
    sink.send(9, 5);
    let meanwhile = sink.messages();
    sink.host.arrive(sink.now, Item::ReadResponse { op, octets: vec![7; 30] });
    let after = sink.messages();
    shows!(proof:
        // The MSeq of the SrcAvailCancel is 3.
        "SDP-9.5.4-5" => meanwhile.iter().chain(&after[..1]).all(|message| message.mseq_ack < 3);
        "SDP-9.5.4-7" => after[0].mid == RDMA_RD_COMPL && after[0].word(0) == 30;
        "SDP-9.5.4-9" => after[1..].iter().map(|message| (message.mid, message.mseq_ack)).eq([(SEND_SM, 3)]);
    );
    let mut idle = pipelined(POLICY);
    idle.deliver(SRC_AVAIL_CANCEL, &[]);
    shows!(proof:
        "SDP-9.5.4-4" => idle.mids().iter().all(|mid| *mid == DATA);
    );
}

#[test]
fn revoking_sink_avails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.receive(1, 100);
    bench.receive(2, 100);
    bench.messages();
    bench.host.machine.cancel_receives();
    let messages = bench.messages();
    bench.receive(3, 100);
    shows!(proof:
        "SDP-9.5.5-1" => messages.len() == 1 && messages[0].mid == SINK_AVAIL_CANCEL;
        "SDP-14.2-6" => messages[0].solicited;
        "SDP-9.5.5-11" => bench.mids().is_empty();
    );
    bench.deliver_with(0, SINK_CANCEL_ACK, messages[0].mseq, &[], None);
    shows!(proof:
        "SDP-9.5.5-14" => bench.events()
            == [received(1, 0, ReceiveOutcome::Canceled), received(2, 0, ReceiveOutcome::Canceled)];
    );
    assert_eq!(bench.mids(), [SINK_AVAIL]);
    // Test the Data Source, which gets the revocation.
    let mut source = pipelined(POLICY);
    source.deliver(SINK_AVAIL, &sink_ah(150, 0x55, 0, 0));
    source.deliver(SINK_AVAIL_CANCEL, &[]);
    source.send(1, 150);
    let messages = source.messages();
    shows!(proof:
        "SDP-9.5.5-10" => messages.iter().map(|message| message.mid).eq([SINK_CANCEL_ACK, SRC_AVAIL]);
        "SDP-14.2-10" => messages[0].solicited;
    );
    let mut idle = pipelined(POLICY);
    idle.deliver(SINK_AVAIL_CANCEL, &[]);
    shows!(proof:
        "SDP-9.5.5-4" => idle.mids().iter().all(|mid| *mid == DATA);
    );
}

/// Section 9.2: each side waits until its peer has read the advertised send, but neither user
/// reads.
#[test]
fn the_deadlock_of_crossed_src_avails_is_resolved() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    bench.send(1, 150);
    assert_eq!(bench.mids(), [SRC_AVAIL]);
    bench.deliver(SRC_AVAIL, &[src_ah(50, 0x77, 0), vec![1]].concat());
    assert!(bench.mids().is_empty());
    let deadline = bench.host.machine.poll_timeout().unwrap();
    bench.host.machine.handle_timeout(deadline);
    let messages = bench.messages();
    shows!(proof:
        "SDP-9.2-39" => deadline == bench.now + POLICY.deadlock_wait;
        "SDP-9.2-40" => messages.iter().map(|message| message.mid).eq([SEND_SM]);
    );
}

#[test]
fn adverts_stay_within_the_peers_limit() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let hello = crate::sdp::wire::Hello { max_adverts: 2, bufs: 16, local: 200, ..crate::sdp::wire::HELLO };
    let settings = weft_peer::sdp::Settings { recv_size: 64, policy: POLICY, ..Default::default() };
    let mut bench = Bench::with(settings, hello);
    bench.host.machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
    bench.deliver(MODE_CHANGE, &word(TO_PIPELINED));
    bench.messages();
    bench.receive(1, 100);
    (1..=3).for_each(|id| bench.send(id, 150));
    shows!(proof:
        "SDP-11.3-23" => bench.mids().iter().filter(|mid| matches!(**mid, SRC_AVAIL | SINK_AVAIL)).count() == 2;
    );
}
