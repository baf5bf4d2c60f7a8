//! These tests check SrcAvailCancel and SinkAvailCancel on both sides, step by step as in
//! draft-pinkerton-iwarp-sdp-01 sections 9.5.4 and 9.5.5.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::sdp::{Policy, ReceiveOutcome, SendOutcome};

use crate::sdp::bench::parse_message;
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::wire::{sink_ah, src_ah, word};
use crate::sdp::zcopy::{
    DATA, POLICY, RDMA_RD_COMPL, RDMA_WR_COMPL, SEND_SM, SINK_AVAIL, SINK_AVAIL_CANCEL, SINK_CANCEL_ACK, SRC_AVAIL,
    SRC_AVAIL_CANCEL, bench, pipelined, received, sent,
};

const CH_RCV_BUF: u8 = 0x0b;
const CH_RCV_BUF_ACK: u8 = 0x0c;

fn mids(items: &[Item]) -> Vec<u8> {
    items.iter().filter_map(|item| Some(parse_message(item.clone())?.mid)).collect()
}

fn reads(items: &[Item]) -> usize {
    items.iter().filter(|item| matches!(item, Item::ReadRequest { .. })).count()
}

#[test]
fn the_sink_ends_its_read_and_drops_the_rest() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(Policy { max_read: 30, ..POLICY });
    for stag in 1..=3 {
        bench.deliver(SRC_AVAIL, &src_ah(100, stag, 0));
    }
    bench.receive_so(1, 500, true);
    let items = bench.all();
    let Item::ReadRequest { op, .. } = items[0] else { panic!("no read") };
    bench.deliver(SRC_AVAIL_CANCEL, &[]);
    let meanwhile = bench.all();
    bench.host.arrive(bench.now, Item::ReadResponse { op, octets: vec![7; 30] });
    let after = bench.all();
    bench.deliver(SRC_AVAIL, &src_ah(50, 9, 0));
    let anew = bench.all();
    let mut unprocessed = pipelined(POLICY);
    for stag in 1..=3 {
        unprocessed.deliver(SRC_AVAIL, &src_ah(100, stag, 0));
    }
    unprocessed.deliver(SRC_AVAIL_CANCEL, &[]);
    let answer = unprocessed.all();
    unprocessed.receive_so(1, 500, true);
    shows!(proof:
        "SDP-9.5.4-6" => reads(&items) == 1 && reads(&meanwhile) == 0;
        "SDP-9.5.4-8" => mids(&after) == [RDMA_RD_COMPL, SEND_SM] && reads(&after) == 0;
        "SDP-9.5.4-3" => parse_message(after[0].clone()).unwrap().word(0) == 30;
        "SDP-9.5.4-2" => mids(&answer) == [SEND_SM] && reads(&unprocessed.all()) == 0;
    );
    assert!(matches!(anew[..], [Item::ReadRequest { stag: 9, .. }]), "a later SrcAvail is read as usual");
}

#[test]
fn the_source_treats_revoked_buffers_as_processed() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let canceled = || {
        let mut bench = pipelined(POLICY);
        bench.send(1, 150);
        bench.send(2, 160);
        let mseq = bench.messages()[1].mseq;
        bench.host.machine.cancel_sends();
        assert_eq!(bench.mids(), [SRC_AVAIL_CANCEL]);
        bench.send(3, 170);
        assert!(bench.all().is_empty(), "no SrcAvail before the revocation is Processed");
        (bench, mseq + 1)
    };
    let (mut read, cancel) = canceled();
    read.deliver_with(0, RDMA_RD_COMPL, cancel - 1, &word(150), None);
    assert!(read.all().is_empty());
    read.deliver_with(0, RDMA_RD_COMPL, cancel - 1, &word(160), None);
    let by_reads = read.mids();
    let (mut crossed, cancel) = canceled();
    crossed.deliver_with(0, SINK_AVAIL, cancel - 1, &sink_ah(300, 7, 0, 0), None);
    let by_sink_avail = crossed.all();
    shows!(proof:
        "SDP-9.5.4-11" => by_reads == [SRC_AVAIL] && matches!(&by_sink_avail[0], Item::Write { stag: 7, octets, .. } if octets.len() == 170);
    );
    assert_eq!(read.events(), [sent(1, 150, SendOutcome::Complete), sent(2, 160, SendOutcome::Complete)]);
}

/// The peer advertises two buffers, and revokes them while the RNIC writes into the first buffer.
fn revoked_while_writing() -> (Vec<Item>, Vec<Item>) {
    let mut bench = pipelined(POLICY);
    for stag in 1..=2 {
        bench.deliver(SINK_AVAIL, &sink_ah(101, stag, 0, 0));
    }
    bench.send(1, 101);
    bench.send(2, 150);
    bench.host.run(bench.now);
    let writing: Vec<Item> = bench.host.outgoing.drain(..).collect();
    assert!(matches!(writing[..], [Item::Write { stag: 1, .. }]));
    bench.deliver(SINK_AVAIL_CANCEL, &[]);
    bench.host.run(bench.now);
    let meanwhile: Vec<Item> = bench.host.outgoing.drain(..).collect();
    let after = bench.all();
    (meanwhile, after)
}

#[test]
fn the_source_ends_its_write_and_drops_the_rest() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (meanwhile, after) = revoked_while_writing();
    let writes = |items: &[Item]| items.iter().filter(|item| matches!(item, Item::Write { .. })).count();
    let mut idle = pipelined(POLICY);
    for stag in 1..=2 {
        idle.deliver(SINK_AVAIL, &sink_ah(100, stag, 0, 0));
    }
    idle.deliver(SINK_AVAIL_CANCEL, &[]);
    let dropped = idle.mids();
    idle.send(1, 150);
    shows!(proof:
        "SDP-9.5.5-7" => meanwhile.is_empty() && writes(&after) == 0;
        "SDP-9.5.5-5" => mids(&after)[0] == RDMA_WR_COMPL && parse_message(after[0].clone()).unwrap().word(0) == 101;
        "SDP-9.5.5-8" => mids(&after)[..2] == [RDMA_WR_COMPL, SINK_CANCEL_ACK];
        "SDP-9.5.5-6" => mids(&after) == [RDMA_WR_COMPL, SINK_CANCEL_ACK, SRC_AVAIL];
        "SDP-9.5.5-3" => mids(&after).iter().filter(|mid| **mid == SINK_CANCEL_ACK).count() == 1;
        "SDP-9.5.5-2" => dropped == [SINK_CANCEL_ACK] && writes(&idle.all()) == 0;
    );
}

#[test]
fn the_sink_treats_revoked_buffers_as_processed() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let canceled = |receives: u64| {
        let mut bench = pipelined(POLICY);
        (1..=receives).for_each(|id| bench.receive(id, 100));
        bench.messages();
        bench.host.machine.cancel_receives();
        assert_eq!(bench.mids(), [SINK_AVAIL_CANCEL]);
        bench.receive(9, 100);
        bench.host.machine.cancel_receives();
        bench.receive(10, 100);
        assert!(bench.all().is_empty(), "no SinkAvail or SinkAvailCancel before the revocation is Processed");
        bench
    };
    let mut written = canceled(2);
    written.deliver_with(0, RDMA_WR_COMPL, 0, &word(100), None);
    assert!(written.all().is_empty());
    written.deliver_with(0, RDMA_WR_COMPL, 0, &word(30), None);
    let events = written.events();
    let mut stale = canceled(1);
    stale.deliver_with(0, DATA, 0, &[1, 2], None);
    shows!(proof:
        "SDP-9.5.5-12" => written.mids() == [SINK_AVAIL];
        "SDP-9.5.5-9" => events[1] == received(2, 30, ReceiveOutcome::Canceled);
        "SDP-9.5.5-13" => stale.mids() == [SINK_AVAIL];
    );
    // This SinkCancelAck is redundant and has no effect.
    written.deliver(SINK_CANCEL_ACK, &[]);
    assert!(!written.is_aborted());
}

/// While its Read is in progress, the machine does not handle the SrcAvailCancel, and MSeqAck does
/// not advance. So the machine cannot answer the later ChRcvBuf before the SrcAvailCancel.
#[test]
fn a_resize_after_a_revocation_is_answered_after_it() {
    let mut bench = bench(POLICY);
    bench.receive(1, 60);
    bench.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    let Some(Item::ReadRequest { op, len, .. }) = bench.all().pop() else { panic!("no read") };
    bench.deliver(SRC_AVAIL_CANCEL, &[]);
    bench.deliver(CH_RCV_BUF, &word(40));
    assert!(bench.messages().is_empty());
    bench.host.arrive(bench.now, Item::ReadResponse { op, octets: vec![9; len as usize] });
    let messages: Vec<_> = bench.messages().iter().map(|message| (message.mid, message.mseq_ack)).collect();
    assert_eq!(messages, [(RDMA_RD_COMPL, 1), (SEND_SM, 3), (CH_RCV_BUF_ACK, 3)]);
}
