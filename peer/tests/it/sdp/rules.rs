//! Tests the machine with a peer that violates the rules of draft-pinkerton-iwarp-sdp-01. The
//! machine stays within its limits. If a violation would harm the user, the machine ends the
//! connection.

use weft_core::wire::sdp::{FieldOrder, Message, Mode};
use weft_peer::sdp::{Half, Policy, ReceiveId, ReceiveOutcome, Settings, SrcAvailAnswer};

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

/// A SrcAvailCancel waits for a Read that is never answered. Meanwhile, the machine posts a new
/// buffer for each message, up to a limit.
#[test]
fn an_unanswered_read_adds_few_private_buffers() {
    let mut bench = bench(POLICY);
    bench.receive(1, 100);
    bench.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    assert!(bench.all().iter().any(|item| matches!(item, Item::ReadRequest { .. })));
    bench.deliver(SRC_AVAIL_CANCEL, &[]);
    for _ in 0..200 {
        bench.deliver(DATA, &[]);
    }
    assert!(!bench.is_aborted());
    assert_eq!(bench.host.posted(), 64, "four times the normal number");
}

/// Section 10.6: a peer must not send a second ChRcvBuf before it receives the ChRcvBufAck. In this
/// test, the ChRcvBufAck waits until the old buffers are used up.
#[test]
fn a_second_resize_before_the_answer_ends_the_connection() {
    let mut bench = bench(POLICY);
    bench.deliver(CH_RCV_BUF, &word(500));
    assert!(!bench.is_aborted());
    bench.deliver(CH_RCV_BUF, &word(37));
    assert!(bench.is_aborted());
}

/// A SendSm waits for credit, and the peer revokes its SrcAvail repeatedly.
#[test]
fn repeated_revocations_cause_one_answer() {
    let mut bench = bench(POLICY);
    bench.send(1, 150);
    assert_eq!(bench.mids(), [SRC_AVAIL]);
    bench.bufs = 0;
    bench.deliver(SRC_AVAIL, &[src_ah(50, 7, 0), vec![1]].concat());
    bench.wait();
    for _ in 0..20_000 {
        bench.deliver(SRC_AVAIL_CANCEL, &[]);
    }
    bench.bufs = 16;
    bench.deliver(DATA, &[]);
    assert_eq!(bench.mids().first(), Some(&SEND_SM));
}

/// Without credit, this side cannot answer the peer. The number of pending answers is limited.
#[test]
fn limits_pending_answers() {
    let mut bench = pipelined(POLICY);
    bench.bufs = 0;
    // MaxAdverts is 16. The machine allows two pending answers for each of 16 SrcAvails, and a few
    // more answers.
    for pair in 0..41 {
        assert!(!bench.is_aborted(), "after {pair} pairs");
        bench.deliver(SRC_AVAIL, &src_ah(50, 7, 0));
        bench.deliver(SRC_AVAIL_CANCEL, &[]);
    }
    assert!(bench.is_aborted());
}

/// Without credit, a peer that follows the rules causes only one answer. All Reads of one SrcAvail
/// are reported together, even if there are many.
#[test]
fn many_reads_of_one_src_avail_cause_one_answer() {
    let mut bench = pipelined(Policy { max_read: 1, read_batch: 1, ..POLICY });
    bench.bufs = 0;
    bench.deliver(SRC_AVAIL, &src_ah(100, 7, 0));
    bench.receive(1, 100);
    for _ in 0..100 {
        serve_read(&mut bench);
    }
    bench.bufs = 16;
    bench.deliver(DATA, &[]);
    let messages = bench.messages();
    assert_eq!((messages[0].mid, messages[0].word(0), messages[0].invalidate), (RDMA_RD_COMPL, 100, Some(7)));
    assert_eq!(bench.events(), [received(1, 100, ReceiveOutcome::More)]);
}

/// Sections 11.2 and 11.3: payload after a SrcAvail would overtake the octets that the SrcAvail
/// advertises.
#[test]
fn payload_after_an_open_src_avail_ends_the_connection() {
    let mut combined = bench(POLICY);
    combined.deliver(SRC_AVAIL, &[src_ah(1000, 7, 0), vec![1; 10]].concat());
    assert!(!combined.is_aborted());
    combined.deliver(DATA, &[2; 10]);
    assert!(combined.is_aborted());
    let is_accepted = |octets| {
        let mut bench = pipelined(Policy { answer: SrcAvailAnswer::SendSm, ..POLICY });
        bench.deliver(SRC_AVAIL, &src_ah(20, 7, 0));
        bench.deliver(SRC_AVAIL, &src_ah(50, 8, 0));
        bench.receive(1, 10);
        assert_eq!(bench.mids(), [SEND_SM]);
        bench.deliver(DATA, &vec![2; octets]);
        !bench.is_aborted()
    };
    assert!(is_accepted(20));
    assert!(!is_accepted(21));
}

/// A SinkAvail advertises at most 2^31 octets, so no write can have written more octets.
#[test]
fn rejects_a_completion_beyond_the_advertised_length() {
    let may_advertise = |octets| {
        let mut bench = pipelined(POLICY);
        bench.host.machine.receive(ReceiveId(1), 3 << 30, false).unwrap();
        assert_eq!(bench.messages()[0].word(0), 1 << 31);
        bench.deliver(RDMA_WR_COMPL, &word(octets));
        !bench.is_aborted()
    };
    assert!(may_advertise(1 << 31));
    assert!(!may_advertise((1 << 31) + 1));
}

/// Section 9.2: a SendSm requests octets. The machine sends them as Data, and not as the payload of
/// a SinkAvail that it also has to send.
#[test]
fn send_sm_is_answered_with_data() {
    let mut bench = pipelined(POLICY);
    bench.send(1, 150);
    assert_eq!(bench.mids(), [SRC_AVAIL]);
    bench.host.machine.receive(ReceiveId(1), 1000, false).unwrap();
    bench.deliver(SEND_SM, &[]);
    let messages = bench.messages();
    assert_eq!(messages.iter().map(|message| message.mid).collect::<Vec<u8>>(), [DATA, SINK_AVAIL]);
    assert_eq!(messages[0].rest.len(), 150);
}

/// By section 9.2, the last RdmaRdCompl before a SendSm is also allowed to invalidate the STag.
#[test]
fn the_completion_of_a_part_may_invalidate_the_stag() {
    let mut bench = pipelined(POLICY);
    bench.send(1, 150);
    let advert = bench.messages().remove(0);
    bench.deliver_with(0, RDMA_RD_COMPL, advert.mseq, &word(50), Some(advert.word(4)));
    bench.deliver(SEND_SM, &[]);
    let messages = bench.messages();
    assert_eq!((messages[0].mid, &messages[0].rest[..]), (DATA, &(51..=150).collect::<Vec<u8>>()[..]));
}

/// An AbortConn arrives after both DisConns, while this side waits before it ends TCP. The machine
/// resets the connection and does nothing else.
#[test]
fn an_abort_conn_after_both_dis_conns_ends_the_connection_once() {
    let mut bench = bench(POLICY);
    bench.deliver(DIS_CONN, &[]);
    bench.host.machine.shut_down();
    assert_eq!(bench.mids(), [DIS_CONN]);
    bench.deliver(ABORT_CONN, &[]);
    assert_eq!(bench.all(), [Item::Reset]);
}

/// Figure 3 reserves MIDs for experiments. MSeqAck acknowledges a message with such a MID, but the
/// message has no other effect.
#[test]
fn ignores_experimental_messages() {
    for mid in [0x40, 0x7f] {
        let mut bench = bench(POLICY);
        bench.receive(1, 10);
        bench.deliver(mid, &[1, 2, 3]);
        bench.deliver(DATA, &[9]);
        assert_eq!(bench.events(), [received(1, 1, ReceiveOutcome::More)]);
        bench.send(1, 1);
        assert_eq!(bench.messages()[0].mseq_ack, 2);
    }
    for mid in [0x0f, 0x3f, 0x80] {
        let mut bench = bench(POLICY);
        bench.deliver(mid, &[]);
        assert!(bench.is_aborted());
    }
}

/// The peer allows one advertisement at a time, and this side's SinkAvail uses it. So this side
/// sends octets above the threshold as Data.
#[test]
fn own_sink_avails_do_not_delay_data() {
    let settings = Settings { recv_size: 64, policy: POLICY, ..Settings::default() };
    let mut bench = Bench::with(settings, Hello { max_adverts: 1, local: 200, ..HELLO });
    bench.deliver(0x07, &word(4));
    bench.receive(1, 1000);
    assert_eq!(bench.mids(), [SINK_AVAIL]);
    bench.send(1, 150);
    assert_eq!(bench.mids(), [DATA]);
    bench.host.machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
    bench.send(2, 150);
    assert_eq!(bench.mids(), [0x07, DATA]);
}

/// The RNIC could not register a receive. When this receive has ended (in any way), the machine
/// tries to register the next receive.
#[test]
fn a_sink_avail_is_tried_again_when_a_receive_ended() {
    let mut bench = pipelined(POLICY);
    bench.host.no_memory = true;
    bench.receive(1, 1000);
    assert_eq!(bench.mids(), []);
    bench.host.no_memory = false;
    bench.deliver(DATA, &[1]);
    assert_eq!(bench.events(), [received(1, 1, ReceiveOutcome::More)]);
    bench.receive(2, 1000);
    assert_eq!(bench.mids(), [SINK_AVAIL]);
}

/// Section 6.3.7.1: if a SrcAvail carries all of its data as payload, nothing is read. The
/// RdmaRdCompl then reports 0 octets.
#[test]
fn a_src_avail_with_its_complete_payload_completes_without_a_read() {
    let mut bench = bench(POLICY);
    bench.receive(1, 100);
    bench.deliver(SRC_AVAIL, &[src_ah(10, 7, 0), vec![1; 10]].concat());
    let messages = bench.messages();
    assert_eq!((messages[0].mid, &messages[0].rest[..], messages[0].invalidate), (RDMA_RD_COMPL, &[0; 4][..], Some(7)));
    let octets = message(16, 0, RDMA_RD_COMPL, 1, 1, &messages[0].rest);
    assert!(Message::parse(&octets, FieldOrder::Figure).is_ok());
}
