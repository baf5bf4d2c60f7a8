//! These tests check Write Zcopy, Transactions and stale SinkAvails on both sides. They check each
//! sentence of draft-pinkerton-iwarp-sdp-01 sections 9.3 to 9.5.2.2.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{Half, ReceiveId, ReceiveOutcome, SendOutcome, Settings};

use crate::sdp::bench::{Bench, SentMessage};
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::talk::Talk;
use crate::sdp::wire::{HELLO, Hello, sink_ah, src_ah, word};
use crate::sdp::zcopy::{
    DATA, MODE_CHANGE, POLICY, RDMA_WR_COMPL, SINK_AVAIL, SINK_AVAIL_CANCEL, SINK_CANCEL_ACK, SRC_AVAIL, TO_PIPELINED,
    bench, pipelined, received, sent, summaries,
};

/// A Data Sink in Pipelined Mode that has advertised receives of these lengths.
fn sink(lens: &[u64]) -> (Bench, Vec<SentMessage>) {
    let mut bench = pipelined(POLICY);
    for (id, len) in (1..).zip(lens) {
        bench.receive(id, *len);
    }
    let adverts = bench.messages();
    assert_eq!(adverts.len(), lens.len());
    (bench, adverts)
}

/// The peer writes these octets into an advertised buffer, at offset `at`.
fn write(bench: &mut Bench, advert: &SentMessage, at: u64, octets: Vec<u8>) {
    let va = u64::from(advert.word(8)) << 32 | u64::from(advert.word(12));
    bench.host.arrive(bench.now, Item::Write { stag: advert.word(4), va: va + at, octets });
}

fn writes(items: &[Item]) -> Vec<u32> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Write { stag, .. } => Some(*stag),
            _ => None,
        })
        .collect()
}

#[test]
fn an_advertised_buffer_can_be_written_until_it_is_processed() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut late, adverts) = sink(&[100]);
    write(&mut late, &adverts[0], 0, vec![1]);
    write(&mut late, &adverts[0], 99, vec![9]);
    let ends = (late.host.receives[&ReceiveId(1)][0], late.host.receives[&ReceiveId(1)][99]);
    late.now = late.now + core::time::Duration::from_secs(24 * 3600);
    late.host.machine.handle_timeout(late.now);
    late.all();
    let after_a_day = late.host.exposes(adverts[0].word(4));
    late.deliver(RDMA_WR_COMPL, &word(30));
    let processed = late.events();
    let withdrawn = !late.host.exposes(adverts[0].word(4));
    let reused = late.all();
    let (mut wrong, two) = sink(&[100, 101]);
    wrong.deliver_with(0, RDMA_WR_COMPL, two[1].mseq, &word(30), Some(two[1].word(4)));
    let (mut canceled, open) = sink(&[100, 101]);
    canceled.host.machine.cancel_receives();
    assert_eq!(canceled.mids(), [SINK_AVAIL_CANCEL]);
    write(&mut canceled, &open[0], 0, vec![5; 100]);
    let still = canceled.host.exposes(open[1].word(4));
    canceled.deliver(SINK_CANCEL_ACK, &[]);
    let (mut stale, one) = sink(&[100]);
    stale.deliver_with(0, DATA, 0, &[1], None);
    shows!(proof:
        "SDP-9.3-4" => ends == (1, 9);
        "SDP-9.3-17" => after_a_day;
        "SDP-9.3-16" => processed == [received(1, 30, ReceiveOutcome::More)] && reused.is_empty();
        "SDP-9.3-13" => withdrawn;
        "SDP-9.3-11" => wrong.is_aborted();
        "SDP-9.3-18" => still && canceled.host.registered() == 0 && !stale.host.exposes(one[0].word(4));
        "SDP-9.3-2" => adverts[0].word(0) > 64 && { let mut bench = pipelined(POLICY); bench.receive(1, 64); bench.mids().is_empty() };
    );
}

#[test]
fn one_message_for_one_advertised_receive() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut three, _) = sink(&[100, 101, 102]);
    (1..=3).for_each(|octet| three.deliver_with(0, DATA, 0, &[octet], None));
    let events = three.events();
    let mut plain = bench(POLICY);
    plain.receive_so(1, 3, true);
    (1..=3).for_each(|octet| plain.deliver(DATA, &[octet]));
    let (mut waitall, mut by_data) = (pipelined(POLICY), bench(POLICY));
    waitall.receive_so(1, 200, true);
    let not_advertised = waitall.all().is_empty();
    for len in [120, 80] {
        waitall.deliver(SRC_AVAIL, &src_ah(len, 7, 0));
        crate::sdp::zcopy::serve_read(&mut waitall);
    }
    by_data.receive_so(1, 60, true);
    by_data.deliver(DATA, &[1; 30]);
    by_data.deliver(DATA, &[2; 30]);
    let filled = by_data.events();
    shows!(proof:
        "SDP-9.5.1-6" => events == [1, 2, 3].map(|id| received(id, 1, ReceiveOutcome::More));
        "SDP-9.3-20" => events[0] == received(1, 1, ReceiveOutcome::More);
        "SDP-9.5.1-7" => plain.events() == [received(1, 3, ReceiveOutcome::More)];
        "SDP-9.3-21" => waitall.events() == [received(1, 200, ReceiveOutcome::More)]
            && filled == [received(1, 60, ReceiveOutcome::More)];
        "SDP-9.5.1-16" => not_advertised;
    );
}

/// Lets a Data Source send `payloads` messages with payload. Then delivers SinkAvails to it, with
/// the NonDiscards values `adverts`. Returns the STags of the SinkAvails that the source uses.
fn uses(payloads: u64, adverts: &[u32]) -> Vec<u32> {
    let mut bench = pipelined(POLICY);
    (0..payloads).for_each(|id| bench.send(100 + id, 5));
    assert_eq!(bench.messages().len() as u64, payloads);
    for (stag, non_discards) in (1..).zip(adverts) {
        bench.deliver_with(0, SINK_AVAIL, 1, &sink_ah(300, stag, 0, *non_discards), None);
    }
    bench.send(1, 150);
    writes(&bench.all())
}

#[test]
fn stale_sink_avails_are_detected_by_their_count() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut forced = pipelined(POLICY);
    forced.deliver(SINK_AVAIL, &sink_ah(300, 1, 0, 0));
    forced.send(1, 5);
    let by_data = forced.mids();
    forced.send(2, 150);
    let not_written = writes(&forced.all());
    shows!(proof:
        "SDP-9.5.1-9" => uses(0, &[0]) == [1];
        "SDP-9.5.1-14" => uses(2, &[2]) == [1];
        "SDP-9.5.1-12" => uses(1, &[0]).is_empty();
        // The source sent two messages. The peer sent three SinkAvails before it received these
        // messages, so two of the SinkAvails became stale.
        "SDP-9.5.1-8" => uses(2, &[0, 0, 0]) == [3] && uses(3, &[1, 1, 1]) == [3];
        "SDP-9.5.1-3" => uses(1, &[0, 0]) == [2] && uses(1, &[1, 1]) == [1];
        "SDP-9.5.2.2-1" => by_data == [DATA];
        "SDP-9.3-7" => by_data == [DATA] && !forced.is_aborted();
        "SDP-9.5.2.2-2" => not_written.is_empty();
    );
}

#[test]
fn uses_the_mechanisms_that_a_peer_requests() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.receive(1, 10);
    bench.deliver(SINK_AVAIL, &[sink_ah(300, 7, 0, 0), vec![1, 2]].concat());
    let payload = bench.events();
    bench.send(1, 150);
    let reply = bench.all();
    let mut stale = pipelined(POLICY);
    stale.send(9, 5);
    stale.messages();
    stale.deliver_with(0, SINK_AVAIL, 1, &[sink_ah(300, 7, 0, 0), vec![1, 2]].concat(), None);
    stale.send(1, 150);
    let talk = Talk::held();
    let used = |what: &dyn Fn(&Item) -> bool| talk.items.iter().any(|(_, item)| what(item));
    let message = |item: &Item, mid: u8, least: usize| matches!(item, Item::Message { octets, .. } if octets[3] == mid && octets.len() > least);
    let mut one = self::bench(POLICY);
    one.send(1, 1);
    let data = one.messages();
    shows!(proof:
        "SDP-9.4-1" => writes(&reply) == [7] && writes(&stale.all()).is_empty();
        "SDP-9-7" => payload == [received(1, 2, ReceiveOutcome::More)] && summaries(&reply)[0].0 == RDMA_WR_COMPL;
        "SDP-9-6" => used(&|item| message(item, DATA, 16)) && used(&|item| matches!(item, Item::ReadRequest { .. }))
            && used(&|item| matches!(item, Item::Write { .. })) && used(&|item| message(item, SINK_AVAIL, 36));
        "SDP-9-4" => data.iter().map(|message| (message.mid, message.rest.clone())).eq([(DATA, vec![1])]);
        "SDP-9-5" => {
            let mut bench = self::bench(POLICY);
            bench.receive(1, 10);
            bench.deliver(DATA, &[7, 8]);
            bench.host.receives[&ReceiveId(1)][..2] == [7, 8]
                && bench.events() == [received(1, 2, ReceiveOutcome::More)]
        };
        "SDP-11.3-5" => {
            let (mut bench, adverts) = sink(&[100]);
            write(&mut bench, &adverts[0], 0, vec![3; 100]);
            bench.deliver(RDMA_WR_COMPL, &word(100));
            bench.events() == [received(1, 100, ReceiveOutcome::More)]
        };
        "SDP-11.3-6" => payload == [received(1, 2, ReceiveOutcome::More)];
        "SDP-11.2-5" => {
            // The half-connection of the payload is in Combined Mode. The half-connection of the
            // SinkAvail is in Pipelined Mode.
            let mut bench = self::bench(POLICY);
            bench.host.machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
            bench.messages();
            bench.receive(1, 10);
            bench.deliver(SINK_AVAIL, &[sink_ah(300, 7, 0, 0), vec![1, 2]].concat());
            bench.host.machine.mode(Half::In) == Mode::Combined
                && bench.events().contains(&received(1, 2, ReceiveOutcome::More))
        };
    );
}

#[test]
fn transactions_of_this_side() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let transaction = |mut bench: Bench, len: u64| {
        bench.send(1, 10);
        bench.receive(1, len);
        let messages = bench.messages();
        (bench, messages)
    };
    let (mut written, messages) = transaction(pipelined(POLICY), 100);
    written.deliver(RDMA_WR_COMPL, &word(40));
    let (mut answered, _) = transaction(pipelined(POLICY), 100);
    answered.deliver(DATA, &[1, 2]);
    let (_, combined) = transaction(bench(POLICY), 100);
    let (_, small) = transaction(pipelined(POLICY), 64);
    let settings = Settings { recv_size: 64, policy: POLICY, ..Settings::default() };
    let mut full = Bench::with(settings, Hello { max_adverts: 1, bufs: 16, local: 200, ..HELLO });
    full.deliver(MODE_CHANGE, &word(TO_PIPELINED));
    full.receive(9, 100);
    assert_eq!(full.mids(), [SINK_AVAIL]);
    let (_, beyond) = transaction(full, 100);
    let alone =
        |messages: &[SentMessage]| messages.iter().map(|message| (message.mid, message.rest.len())).eq([(DATA, 10)]);
    let ends = |bench: &mut Bench, octets| {
        let events = bench.events();
        events.contains(&received(1, octets, ReceiveOutcome::More))
            && events.contains(&sent(1, 10, SendOutcome::Complete))
    };
    shows!(proof:
        "SDP-9.4-4" => ends(&mut written, 40);
        "SDP-9.4-5" => ends(&mut answered, 2);
        "SDP-9.4-2" => messages[0].mid == SINK_AVAIL && messages[0].rest.len() == 30 && alone(&combined);
        "SDP-9.4-3" => messages[0].word(0) > 64 && alone(&small);
        "SDP-9.4-6" => alone(&beyond);
        "SDP-9.5.1-2" => small.iter().all(|message| message.mid != SINK_AVAIL);
    );
}
