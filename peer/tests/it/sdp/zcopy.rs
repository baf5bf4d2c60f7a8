//! Tests Read Zcopy, Write Zcopy and Transactions, and stale and crossing advertisements
//! (draft-pinkerton-iwarp-sdp-01, sections 9.2 to 9.5.2 and 11).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{Event, Half, OpId, Policy, ReceiveId, ReceiveOutcome, SendId, SendOutcome, SrcAvailAnswer};

use crate::sdp::bench::Bench;
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::wire::{sink_ah, src_ah, word};

pub(crate) const POLICY: Policy = crate::sdp::POLICY;
pub(crate) const SEND_SM: u8 = 4;
pub(crate) const RDMA_WR_COMPL: u8 = 5;
pub(crate) const RDMA_RD_COMPL: u8 = 6;
pub(crate) const MODE_CHANGE: u8 = 7;
pub(crate) const SRC_AVAIL_CANCEL: u8 = 8;
pub(crate) const SINK_AVAIL_CANCEL: u8 = 9;
pub(crate) const SINK_CANCEL_ACK: u8 = 0xa;
pub(crate) const SINK_AVAIL: u8 = 0xfd;
pub(crate) const SRC_AVAIL: u8 = 0xfe;
pub(crate) const DATA: u8 = 0xff;
/// Values of the MCH, the header of a ModeChange (Figures 11 and 12). The Mode is in bits 1 to 3,
/// and S is in bit 0.
pub(crate) const TO_BUFFERED: u32 = 0;
pub(crate) const TO_PIPELINED: u32 = 4;
pub(crate) const TO_COMBINED: u32 = 2;
pub(crate) const S: u32 = 1;

pub(crate) fn bench(policy: Policy) -> Bench {
    Bench::new(policy, 16, 200)
}

/// A bench with both half-connections in Pipelined Mode.
pub(crate) fn pipelined(policy: Policy) -> Bench {
    let mut bench = bench(policy);
    bench.host.machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
    bench.deliver(MODE_CHANGE, &word(TO_PIPELINED));
    assert_eq!(bench.mids(), [MODE_CHANGE]);
    bench.events();
    bench
}

pub(crate) fn sent(send: u64, octets: u64, end: SendOutcome) -> Event {
    Event::Sent { send: SendId(send), octets, end }
}

pub(crate) fn received(receive: u64, octets: u64, end: ReceiveOutcome) -> Event {
    Event::Received { receive: ReceiveId(receive), octets, urgent: false, end }
}

#[test]
fn a_src_avail_in_combined_mode() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    bench.send(1, 150);
    bench.send(2, 5);
    let messages = bench.messages();
    let (stag, va) = (messages[0].word(4), u64::from(messages[0].word(8)) << 32 | u64::from(messages[0].word(12)));
    shows!(proof:
        "SDP-9.2-2" => messages[0].mid == SRC_AVAIL && messages[0].rest[16..] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        "SDP-9.2-4" => messages[0].word(0) == 150;
        "SDP-11.2-6" => messages.len() == 1;
        "SDP-14.2-13" => !messages[0].solicited;
    );
    // The peer can read the complete buffer, including its first octets.
    bench.host.arrive(bench.now, Item::ReadRequest { op: OpId(0), stag, va, len: 150 });
    let read = bench.all();
    shows!(proof:
        "SDP-9.2-5" => read == [Item::ReadResponse { op: OpId(0), octets: (1..=150).collect() }];
    );
    bench.deliver(RDMA_RD_COMPL, &word(100));
    shows!(proof:
        "SDP-9.2-22" => bench.mids().is_empty() && bench.events().is_empty();
    );
    bench.deliver_with(0, RDMA_RD_COMPL, 1, &word(40), Some(stag));
    shows!(proof:
        "SDP-9.2-38" => bench.events() == [sent(1, 150, SendOutcome::Complete)] && bench.host.registered() == 0;
        "SDP-11-10" => bench.mids() == [DATA];
    );
}

#[test]
fn src_avails_in_pipelined_mode() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.send(1, 150);
    bench.send(2, 160);
    bench.send(3, 5);
    let messages = bench.messages();
    shows!(proof:
        "SDP-9.2-3" => messages.iter().all(|message| message.mid == SRC_AVAIL && message.rest.len() == 16);
        "SDP-11.3-22" => messages.iter().map(|message| message.word(0)).eq([150, 160]);
        "SDP-11.3-8" => messages.len() == 2;
    );
    bench.deliver(RDMA_RD_COMPL, &word(50));
    bench.deliver(SEND_SM, &[]);
    let data = bench.messages();
    shows!(proof:
        // The machine sends only the rest of the oldest send.
        "SDP-9.2-33" => data.len() == 1 && data[0].mid == DATA && data[0].rest == (51..=150).collect::<Vec<u8>>();
        "SDP-9.2-32" => { bench.deliver(RDMA_RD_COMPL, &word(160)); bench.mids() == [DATA] };
    );
    assert_eq!(
        bench.events(),
        [1, 2, 3].map(|send| sent(send, [150, 160, 5][send as usize - 1], SendOutcome::Complete))
    );
    let aborts = |len| {
        let mut wrong = pipelined(POLICY);
        wrong.send(1, 150);
        wrong.messages();
        wrong.deliver(RDMA_RD_COMPL, &word(len));
        wrong.is_aborted()
    };
    shows!(proof:
        "SDP-9.2-21" => aborts(151) && aborts(0) && !aborts(149);
    );
    let mut wrong = pipelined(POLICY);
    wrong.send(1, 150);
    wrong.send(2, 150);
    let second = wrong.messages()[1].word(4);
    wrong.deliver_with(0, RDMA_RD_COMPL, 2, &word(150), Some(second));
    proof.verify(weft_core::requirement!("SDP-9.2-29"), || assert!(wrong.is_aborted()));
}

/// Returns the read that the machine requests, and answers it.
pub(crate) fn serve_read(bench: &mut Bench) -> (u32, u64, u32) {
    let items = bench.all();
    let Some(Item::ReadRequest { op, stag, va, len }) =
        items.iter().find(|item| matches!(item, Item::ReadRequest { .. })).cloned()
    else {
        panic!("no read: {items:?}");
    };
    bench.host.arrive(bench.now, Item::ReadResponse { op, octets: vec![9; len as usize] });
    (stag, va, len)
}

#[test]
fn a_src_avail_is_read_and_completed_in_parts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    let advert = [src_ah(100, 0x77, 0x1_0000_0003), vec![1, 2]].concat();
    bench.deliver(SRC_AVAIL, &advert);
    assert!(bench.all().is_empty(), "no receive is posted");
    bench.receive(1, 42);
    shows!(proof:
        // The SrcAvail carried two octets, so the Read begins after them.
        "SDP-9.2-10" => serve_read(&mut bench) == (0x77, 0x1_0000_0005, 40);
    );
    let messages = bench.messages();
    shows!(proof:
        "SDP-9.2-13" => messages[0].mid == RDMA_RD_COMPL && messages[0].word(0) == 40;
        "SDP-9.2-27" => messages[0].solicited && messages[0].invalidate.is_none();
    );
    bench.receive(2, 500);
    assert_eq!(serve_read(&mut bench), (0x77, 0x1_0000_002d, 58));
    let messages = bench.messages();
    shows!(proof:
        "SDP-9.2-17" => messages[0].mid == RDMA_RD_COMPL && messages[0].word(0) == 58;
        "SDP-9.2-26" => messages[0].solicited && messages[0].invalidate == Some(0x77);
    );
    assert_eq!(bench.events(), [received(1, 42, ReceiveOutcome::More), received(2, 58, ReceiveOutcome::More)]);
    assert_eq!(bench.host.receives[&ReceiveId(1)][..3], [1, 2, 9]);
}

#[test]
fn send_sm_requests_the_rest() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(Policy { answer: SrcAvailAnswer::ReadThenSendSm, max_read: 30, ..POLICY });
    bench.deliver(SRC_AVAIL, &src_ah(50, 0x77, 0));
    bench.deliver(SRC_AVAIL, &src_ah(60, 0x78, 0));
    bench.receive_so(1, 200, true);
    assert_eq!(serve_read(&mut bench), (0x77, 0, 30));
    let messages = bench.messages();
    shows!(proof:
        "SDP-9.2-19" => messages.iter().map(|message| message.mid).eq([RDMA_RD_COMPL, SEND_SM]) && messages[0].word(0) == 30;
        "SDP-14.2-4" => messages[1].solicited;
    );
    bench.deliver(DATA, &[5; 12]);
    shows!(proof:
        "SDP-9.2-36" => bench.all().is_empty();
    );
    bench.deliver(DATA, &[5; 8]);
    shows!(proof:
        "SDP-9.2-34" => serve_read(&mut bench) == (0x78, 0, 30);
        "SDP-9.2-18" => bench.mids() == [RDMA_RD_COMPL, SEND_SM];
    );
}

#[test]
fn advertises_receives_only_in_pipelined_mode() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut combined = bench(POLICY);
    combined.receive(1, 1000);
    shows!(proof:
        "SDP-12-20" => combined.all().is_empty();
    );
    let mut bench = pipelined(POLICY);
    bench.receive(1, 64);
    shows!(proof:
        // The receive is not larger than a Private Buffer, so the machine does not advertise it.
        "SDP-9.5.1-1" => bench.all().is_empty();
    );
    let mut bench = pipelined(POLICY);
    bench.receive_so(1, 1000, true);
    shows!(proof:
        "SDP-9.3-19" => bench.all().is_empty();
    );
    let mut bench = pipelined(POLICY);
    bench.receive(1, 65);
    bench.receive(2, 66);
    let messages = bench.messages();
    let stags: Vec<u32> = messages.iter().map(|message| message.word(4)).collect();
    shows!(proof:
        "SDP-9.3-3" => messages.iter().map(|message| (message.mid, message.word(0))).eq([(SINK_AVAIL, 65), (SINK_AVAIL, 66)]);
        "SDP-9.3-5" => messages.iter().all(|message| message.word(16) == 0);
        "SDP-14.2-14" => messages.iter().all(|message| !message.solicited);
    );
    let va = u64::from(messages[0].word(8)) << 32 | u64::from(messages[0].word(12));
    bench.host.arrive(bench.now, Item::Write { stag: stags[0], va, octets: vec![8; 20] });
    bench.deliver_with(0, RDMA_WR_COMPL, 2, &word(20), Some(stags[0]));
    shows!(proof:
        "SDP-9.3-15" => bench.events() == [received(1, 20, ReceiveOutcome::More)];
    );
    bench.receive(3, 70);
    assert_eq!(bench.mids(), [SINK_AVAIL]);
    let newest = stags[1] + 0x101;
    bench.deliver_with(0, RDMA_WR_COMPL, 3, &word(20), Some(newest));
    shows!(proof:
        "SDP-9.3-12" => bench.is_aborted();
    );
}

#[test]
fn one_message_makes_one_sink_avail_stale() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.receive(1, 100);
    bench.receive(2, 100);
    assert_eq!(bench.mids(), [SINK_AVAIL, SINK_AVAIL]);
    bench.deliver_with(0, DATA, 1, &[1, 2, 3], None);
    shows!(proof:
        "SDP-9.5.1-4" => bench.host.receives[&ReceiveId(1)][..4] == [1, 2, 3, 0];
        "SDP-9.5.1-5" => bench.events() == [received(1, 3, ReceiveOutcome::More)];
    );
    bench.deliver_with(0, DATA, 1, &[4], None);
    assert_eq!(bench.events(), [received(2, 1, ReceiveOutcome::More)]);
    // No receive is advertised. From now on, each message with payload counts in NonDiscards.
    bench.deliver_with(0, DATA, 1, &[5; 10], None);
    bench.receive(3, 10);
    bench.receive(4, 100);
    let messages = bench.messages();
    shows!(proof:
        "SDP-6.3.3.4-2" => messages.last().map(|message| (message.mid, message.word(16))) == Some((SINK_AVAIL, 1));
    );
}

#[test]
fn a_sink_avail_is_written_to() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.deliver(SINK_AVAIL, &sink_ah(120, 0x55, 0x2_0000_0007, 0));
    bench.send(1, 150);
    let items = bench.all();
    shows!(proof:
        "SDP-9.3-6" => items[0] == Item::Write { stag: 0x55, va: 0x2_0000_0007, octets: (1..=120).collect() };
        "SDP-9.3-8" => items.len() == 3;
    );
    let messages = summaries(&items);
    shows!(proof:
        "SDP-9.3-14" => messages[0].0 == RDMA_WR_COMPL && messages[0].1 == word(120);
        "SDP-9.3-9" => messages[0].2 == (true, Some(0x55));
        // The remaining 30 octets do not exceed the threshold, so the machine sends them as Data.
        "SDP-11.3-1" => messages[1].0 == DATA && messages[1].1.len() == 30;
    );
}

/// The MID of a message, the octets after its BSDH (the header of every message), and its Send
/// options (solicited, and the STag to invalidate).
pub(crate) type MessageSummary = (u8, Vec<u8>, (bool, Option<u32>));

/// The messages among the sent items.
pub(crate) fn summaries(items: &[Item]) -> Vec<MessageSummary> {
    let message = |item: &Item| match item {
        Item::Message { octets, solicited, invalidate } => {
            Some((octets[3], octets[16..].to_vec(), (*solicited, *invalidate)))
        }
        _ => None,
    };
    items.iter().filter_map(message).collect()
}

/// The draft's example of section 9.5.1: PotentialNonDiscards is 2, and three SinkAvails have
/// NonDiscards 0.
#[test]
fn stale_sink_avails_are_dropped_as_the_draft_counts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.send(1, 10);
    bench.send(2, 10);
    assert_eq!(bench.mids(), [DATA, DATA]);
    for stag in 1..=3 {
        bench.deliver_with(0, SINK_AVAIL, 1, &sink_ah(300, stag, 0, 0), None);
    }
    bench.send(3, 150);
    let items = bench.all();
    shows!(proof:
        "SDP-9.5.1-13" => matches!(items[0], Item::Write { stag: 3, .. });
        "SDP-9.5.1-11" => summaries(&items).len() == 1;
    );
    // Payload that arrives with a stale SinkAvail is accepted nevertheless.
    bench.send(4, 10);
    bench.messages();
    bench.receive(1, 50);
    bench.deliver_with(0, SINK_AVAIL, 1, &[sink_ah(300, 4, 0, 0), vec![6, 6]].concat(), None);
    shows!(proof:
        "SDP-9.5.1-15" => bench.events().contains(&received(1, 2, ReceiveOutcome::More));
    );
    bench.send(5, 150);
    assert_eq!(summaries(&bench.all())[0].0, SRC_AVAIL);
}

#[test]
fn crossing_sink_avails_win() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.send(1, 150);
    bench.send(2, 150);
    assert_eq!(bench.mids(), [SRC_AVAIL, SRC_AVAIL]);
    bench.deliver_with(0, SINK_AVAIL, 1, &sink_ah(150, 0x55, 0, 0), None);
    let items = bench.all();
    shows!(proof:
        "SDP-11.3-15" => items[0] == Item::Write { stag: 0x55, va: 0, octets: (1..=150).collect() };
        "SDP-11.3-16" => summaries(&items)[0].0 == RDMA_WR_COMPL;
        "SDP-11.3-17" => summaries(&items)[1].0 == SRC_AVAIL && summaries(&items)[1].1[..4] == word(150)[..];
    );
    // Test how the Data Sink handles advertisements that cross.
    let mut sink = pipelined(POLICY);
    sink.receive(1, 100);
    assert_eq!(sink.mids(), [SINK_AVAIL]);
    sink.deliver_with(0, SRC_AVAIL, 1, &src_ah(500, 1, 0), None);
    shows!(proof:
        "SDP-11.3-21" => sink.all().iter().all(|item| matches!(item, Item::Message { octets, .. } if octets[3] == DATA));
    );
    let mut first = pipelined(POLICY);
    first.deliver(SRC_AVAIL, &src_ah(500, 1, 0));
    first.receive(1, 100);
    shows!(proof:
        "SDP-11.3-18" => summaries(&first.all()).is_empty();
    );
}

#[test]
fn a_small_send_travels_with_a_sink_avail() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.send(1, 10);
    bench.receive(1, 100);
    let messages = bench.messages();
    shows!(proof:
        "SDP-5-8" => messages.len() == 1 && messages[0].mid == SINK_AVAIL;
        "SDP-6.3.3-3" => messages[0].rest[20..] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    );
    let mut other = bench_with_in_pipelined();
    other.host.machine.set_mode(Half::Out, Mode::Buffered).unwrap();
    other.messages();
    other.send(1, 10);
    other.receive(1, 100);
    shows!(proof:
        "SDP-11.1-1" => other.mids() == [SINK_AVAIL];
    );
}

fn bench_with_in_pipelined() -> Bench {
    let mut bench = bench(POLICY);
    bench.deliver(MODE_CHANGE, &word(TO_PIPELINED));
    bench
}
