//! A peer that breaks the rules: the machine stays within its bounds, and ends the connection where going on would harm the user.

use weft_core::wire::sdp::{FieldOrder, Message, Mode};
use weft_peer::sdp::{Half, Policy, ReceiveEnd, ReceiveId, Settings, SrcAvailAnswer};

use crate::sdp::bench::Bench;
use crate::sdp::host::Item;
use crate::sdp::wire::{HELLO, Hello, message, src_ah, word};
use crate::sdp::zcopy::{
    DATA, POLICY, RDMA_RD_COMPL, RDMA_WR_COMPL, SEND_SM, SINK_AVAIL, SRC_AVAIL, SRC_AVAIL_CANCEL, bench, pipelined,
    received, serve_read,
};

const DIS_CONN: u8 = 2;
const ABORT_CONN: u8 = 3;
const CH_RCV_BUF: u8 = 0x0b;

/// While a SrcAvailCancel waits for a read that is never answered, each message has its buffer made up for; not without end.
#[test]
fn a_read_that_is_never_answered_makes_few_private_buffers() {
    let mut bench = bench(POLICY);
    bench.receive(1, 100);
    bench.hear(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    assert!(bench.all().iter().any(|item| matches!(item, Item::ReadRequest { .. })));
    bench.hear(SRC_AVAIL_CANCEL, &[]);
    for _ in 0..200 {
        bench.hear(DATA, &[]);
    }
    assert!(!bench.is_aborted());
    assert_eq!(bench.host.posted(), 64, "four times as many as there are otherwise");
}

/// Section 10.6: no second ChRcvBuf before the ChRcvBufAck, which waits for the old buffers here.
#[test]
fn a_change_of_size_in_front_of_the_last_ones_answer_ends_the_connection() {
    let mut bench = bench(POLICY);
    bench.hear(CH_RCV_BUF, &word(500));
    assert!(!bench.is_aborted());
    bench.hear(CH_RCV_BUF, &word(37));
    assert!(bench.is_aborted());
}

/// A SendSm waits for credit, and the peer revokes its SrcAvail over and over.
#[test]
fn many_revocations_are_one() {
    let mut bench = bench(POLICY);
    bench.send(1, 150);
    assert_eq!(bench.mids(), [SRC_AVAIL]);
    bench.bufs = 0;
    bench.hear(SRC_AVAIL, &[src_ah(50, 7, 0), vec![1]].concat());
    bench.wait();
    for _ in 0..20_000 {
        bench.hear(SRC_AVAIL_CANCEL, &[]);
    }
    bench.bufs = 16;
    bench.hear(DATA, &[]);
    assert_eq!(bench.mids().first(), Some(&SEND_SM));
}

/// A peer that gives no credit cannot be answered; what it asks for is not kept without end.
#[test]
fn answers_that_cannot_go_out_are_few() {
    let mut bench = pipelined(POLICY);
    bench.bufs = 0;
    // MaxAdverts is 16: two answers for each SrcAvail, and a few.
    for pair in 0..41 {
        assert!(!bench.is_aborted(), "after {pair} pairs");
        bench.hear(SRC_AVAIL, &src_ah(50, 7, 0));
        bench.hear(SRC_AVAIL_CANCEL, &[]);
    }
    assert!(bench.is_aborted());
}

/// The same with a peer that keeps the rules: what was read of one SrcAvail is told at once, however many reads it took.
#[test]
fn many_reads_of_one_src_avail_are_one_answer() {
    let mut bench = pipelined(Policy { max_read: 1, read_batch: 1, ..POLICY });
    bench.bufs = 0;
    bench.hear(SRC_AVAIL, &src_ah(100, 7, 0));
    bench.receive(1, 100);
    for _ in 0..100 {
        serve_read(&mut bench);
    }
    bench.bufs = 16;
    bench.hear(DATA, &[]);
    let said = bench.said();
    assert_eq!((said[0].mid, said[0].word(0), said[0].invalidate), (RDMA_RD_COMPL, 100, Some(7)));
    assert_eq!(bench.events(), [received(1, 100, ReceiveEnd::More)]);
}

/// Sections 11.2 and 11.3: payload behind a SrcAvail would come before the octets that the SrcAvail advertises.
#[test]
fn payload_behind_an_open_src_avail_ends_the_connection() {
    let mut combined = bench(POLICY);
    combined.hear(SRC_AVAIL, &[src_ah(1000, 7, 0), vec![1; 10]].concat());
    assert!(!combined.is_aborted());
    combined.hear(DATA, &[2; 10]);
    assert!(combined.is_aborted());
    let asked_for = |octets| {
        let mut bench = pipelined(Policy { answer: SrcAvailAnswer::SendSm, ..POLICY });
        bench.hear(SRC_AVAIL, &src_ah(20, 7, 0));
        bench.hear(SRC_AVAIL, &src_ah(50, 8, 0));
        bench.receive(1, 10);
        assert_eq!(bench.mids(), [SEND_SM]);
        bench.hear(DATA, &vec![2; octets]);
        !bench.is_aborted()
    };
    assert!(asked_for(20));
    assert!(!asked_for(21));
}

/// A SinkAvail advertises 2^31 octets at most; nobody wrote what lies behind them.
#[test]
fn no_more_is_believed_to_be_written_than_was_advertised() {
    let tells = |octets| {
        let mut bench = pipelined(POLICY);
        bench.host.machine.receive(ReceiveId(1), 3 << 30, false).unwrap();
        assert_eq!(bench.said()[0].word(0), 1 << 31);
        bench.hear(RDMA_WR_COMPL, &word(octets));
        !bench.is_aborted()
    };
    assert!(tells(1 << 31));
    assert!(!tells((1 << 31) + 1));
}

/// Section 9.2: what a SendSm asks for goes as Data, not in a SinkAvail that is due, too.
#[test]
fn what_a_send_sm_asks_for_goes_as_data() {
    let mut bench = pipelined(POLICY);
    bench.send(1, 150);
    assert_eq!(bench.mids(), [SRC_AVAIL]);
    bench.host.machine.receive(ReceiveId(1), 1000, false).unwrap();
    bench.hear(SEND_SM, &[]);
    let said = bench.said();
    assert_eq!(said.iter().map(|said| said.mid).collect::<Vec<u8>>(), [DATA, SINK_AVAIL]);
    assert_eq!(said[0].rest.len(), 150);
}

/// Section 9.2: the last RdmaRdCompl in front of a SendSm may invalidate the STag, too.
#[test]
fn the_completion_of_a_part_may_invalidate_the_stag() {
    let mut bench = pipelined(POLICY);
    bench.send(1, 150);
    let advert = bench.said().remove(0);
    bench.hear_so(0, RDMA_RD_COMPL, advert.mseq, &word(50), Some(advert.word(4)));
    bench.hear(SEND_SM, &[]);
    let said = bench.said();
    assert_eq!((said[0].mid, &said[0].rest[..]), (DATA, &(51..=150).collect::<Vec<u8>>()[..]));
}

/// An AbortConn that comes while this side waits before it ends TCP: it is reset, and that is all.
#[test]
fn an_abort_conn_behind_the_dis_conns_ends_the_connection_once() {
    let mut bench = bench(POLICY);
    bench.hear(DIS_CONN, &[]);
    bench.host.machine.shut_down();
    assert_eq!(bench.mids(), [DIS_CONN]);
    bench.hear(ABORT_CONN, &[]);
    assert_eq!(bench.all(), [Item::Reset]);
}

/// Figure 3 has MIDs for experiments, without a meaning: such a message counts, and does nothing.
#[test]
fn a_message_of_an_experiment_is_passed_over() {
    for mid in [0x40, 0x7f] {
        let mut bench = bench(POLICY);
        bench.receive(1, 10);
        bench.hear(mid, &[1, 2, 3]);
        bench.hear(DATA, &[9]);
        assert_eq!(bench.events(), [received(1, 1, ReceiveEnd::More)]);
        bench.send(1, 1);
        assert_eq!(bench.said()[0].mseq_ack, 2);
    }
    for mid in [0x0f, 0x3f, 0x80] {
        let mut bench = bench(POLICY);
        bench.hear(mid, &[]);
        assert!(bench.is_aborted());
    }
}

/// This side's SinkAvails are all that the peer keeps: octets above the threshold go as Data.
#[test]
fn own_sink_avails_do_not_keep_octets_back() {
    let settings = Settings { recv_size: 64, policy: POLICY, ..Settings::default() };
    let mut bench = Bench::with(settings, Hello { max_adverts: 1, local: 200, ..HELLO });
    bench.hear(0x07, &word(4));
    bench.receive(1, 1000);
    assert_eq!(bench.mids(), [SINK_AVAIL]);
    bench.send(1, 150);
    assert_eq!(bench.mids(), [DATA]);
    bench.host.machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
    bench.send(2, 150);
    assert_eq!(bench.mids(), [0x07, DATA]);
}

/// A receive that could not be registered: the next one is tried when it has ended, however it did.
#[test]
fn a_sink_avail_is_tried_again_when_a_receive_ended() {
    let mut bench = pipelined(POLICY);
    bench.host.no_memory = true;
    bench.receive(1, 1000);
    assert_eq!(bench.mids(), []);
    bench.host.no_memory = false;
    bench.hear(DATA, &[1]);
    assert_eq!(bench.events(), [received(1, 1, ReceiveEnd::More)]);
    bench.receive(2, 1000);
    assert_eq!(bench.mids(), [SINK_AVAIL]);
}

/// Section 6.3.7.1: of a SrcAvail whose payload is all of it nothing is read, and the RdmaRdCompl says so.
#[test]
fn a_src_avail_whose_payload_is_all_of_it_is_completed_with_nothing() {
    let mut bench = bench(POLICY);
    bench.receive(1, 100);
    bench.hear(SRC_AVAIL, &[src_ah(10, 7, 0), vec![1; 10]].concat());
    let said = bench.said();
    assert_eq!((said[0].mid, &said[0].rest[..], said[0].invalidate), (RDMA_RD_COMPL, &[0; 4][..], Some(7)));
    let octets = message(16, 0, RDMA_RD_COMPL, 1, 1, &said[0].rest);
    assert!(Message::parse(&octets, FieldOrder::Figure).is_ok());
}
