//! Unusual but legal SDP transfers, in both field orders: credit, sizes, advertisements and Modes
//! at their limits, and messages that cross. `rules::odd_tests` adds the usual defects of captures.

use weft_core::wire::sdp::{FieldOrder, Mid};

use super::talk::{SEND_SE_INV, advert_of, change, completes, pipelined, sink_avail, src_avail};
use crate::testing::Wire;
use crate::testing::sdp::{STAG, Talk, VA, advert, word};

fn closed(mut talk: Talk) -> Wire {
    talk.both_receive_all();
    talk.send(0, Mid::DIS_CONN, "", 0);
    talk.send(1, Mid::DIS_CONN, "", 0);
    talk.wire.fin(0);
    talk.wire.fin(1);
    talk.wire
}

/// The last credits: a message with payload at three credits, a message without payload at two, and
/// a message that grants credit at one.
fn last_credits(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    for _ in 0..14 {
        talk.send(0, Mid::DATA, "", 100);
    }
    talk.send(0, Mid::DATA, "", 0);
    talk.bufs = 17;
    talk.send(0, Mid::DATA, "", 0);
    talk.receive_all(1);
    talk.send(1, Mid::DATA, "", 0);
    talk.receive_all(0);
    talk.send(0, Mid::DATA, "", 100);
    closed(talk)
}

/// Larger buffers after the old buffers are used up, requests that cross, a rejected request, and a
/// request in the other direction.
fn sizes(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    talk.send(0, Mid::CH_RCV_BUF, &word(6000), 0);
    talk.receive_all(1);
    for _ in 0..15 {
        talk.send(1, Mid::DATA, "", 0);
        talk.receive_all(0);
        talk.send(0, Mid::DATA, "", 4080);
        talk.receive_all(1);
    }
    talk.send(1, Mid::CH_RCV_BUF_ACK, &word(7000), 0);
    talk.receive_all(0);
    talk.send(0, Mid::DATA, "", 6984);
    talk.send(0, Mid::CH_RCV_BUF, &word(1000), 0);
    talk.send(1, Mid::CH_RCV_BUF, &word(2000), 0);
    talk.both_receive_all();
    // The Connecting Peer answers, and sends another request.
    talk.send(0, Mid::CH_RCV_BUF_ACK, &word(4096), 0);
    talk.send(0, Mid::CH_RCV_BUF, &word(900), 0);
    talk.send(0, Mid::DATA, "", 884);
    talk.both_receive_all();
    talk.send(1, Mid::CH_RCV_BUF_ACK, &word(1024), 0);
    talk.receive_all(0);
    talk.send(0, Mid::DATA, "", 1008);
    talk.send(1, Mid::CH_RCV_BUF, &word(5000), 0);
    closed(talk)
}

/// The largest allowed number of SrcAvails. The peer declines the first, and reads the second in
/// several parts. The third is canceled.
fn many_src_avails(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    pipelined(&mut talk, 1);
    for stag in [2, STAG, 3, 4] {
        talk.send(1, Mid::SRC_AVAIL, &advert_of(stag, 300, None), 0);
    }
    talk.receive_all(0);
    talk.send(0, Mid::SEND_SM, "", 0);
    talk.reads(0, STAG, VA, 100);
    talk.receive_all(1);
    talk.send(1, Mid::DATA, "", 200);
    talk.send(1, Mid::DATA, "", 100);
    talk.receive_all(0);
    talk.send(0, Mid::RDMA_RD_COMPL, &word(100), 0);
    talk.reads(0, STAG, VA + 100, 200);
    talk.send(0, Mid::RDMA_RD_COMPL, &word(150), 0);
    talk.receive_all(1);
    talk.send(1, Mid::SRC_AVAIL_CANCEL, "", 0);
    talk.send_in(SEND_SE_INV, 0, Mid::RDMA_RD_COMPL, &word(50), 0);
    talk.both_receive_all();
    talk.send(0, Mid::SEND_SM, "", 0);
    talk.receive_all(1);
    talk.send(1, Mid::SRC_AVAIL, &advert(500, None), 0);
    talk.receive_all(0);
    talk.reads(0, STAG, VA, 500);
    completes(&mut talk, 0, Mid::RDMA_RD_COMPL, 500);
    talk.send(1, Mid::DATA, "", 20);
    closed(talk)
}

/// SinkAvails that are used, become stale, are canceled while partly written, or arrive after
/// Pipelined Mode has ended.
fn many_sink_avails(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    pipelined(&mut talk, 0);
    talk.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    talk.send(1, Mid::SINK_AVAIL, &advert_of(2, 9000, Some(0)), 30);
    talk.receive_all(0);
    talk.write(0, STAG, VA, 4000);
    talk.write(0, STAG, VA + 4000, 5000);
    talk.send_in(SEND_SE_INV, 0, Mid::RDMA_WR_COMPL, &word(9000), 0);
    // The second SinkAvail becomes stale, and the next one is partly used.
    talk.send(0, Mid::DATA, "", 10);
    talk.both_receive_all();
    sink_avail(&mut talk, 1, 9000, 0, 0);
    talk.write(0, STAG, VA, 100);
    talk.send(1, Mid::SINK_AVAIL_CANCEL, "", 0);
    talk.receive_all(0);
    talk.send_in(SEND_SE_INV, 0, Mid::RDMA_WR_COMPL, &word(100), 0);
    talk.receive_all(1);
    talk.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    talk.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    talk.send(1, Mid::SINK_AVAIL_CANCEL, "", 0);
    talk.receive_all(0);
    talk.send(0, Mid::SINK_CANCEL_ACK, "", 0);
    talk.receive_all(1);
    sink_avail(&mut talk, 1, 9000, 0, 0);
    talk.write(0, STAG, VA, 1);
    completes(&mut talk, 0, Mid::RDMA_WR_COMPL, 1);
    closed(talk)
}

/// A ModeChange ends Pipelined Mode while SinkAvails are in flight. The Data Source advertises its
/// buffer again.
fn leaves_pipelined(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    pipelined(&mut talk, 0);
    talk.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    talk.send(1, Mid::SINK_AVAIL, &advert_of(7, 9000, Some(0)), 0);
    talk.send(1, Mid::SINK_AVAIL, &advert_of(8, 9000, Some(0)), 0);
    talk.send(0, Mid::MODE_CHANGE, &word(2), 0);
    talk.receive_all(0);
    talk.send(0, Mid::SRC_AVAIL, &advert(9000, None), 1);
    talk.receive_all(1);
    talk.reads(1, STAG, VA + 1, 8999);
    completes(&mut talk, 1, Mid::RDMA_RD_COMPL, 8999);
    // After the acknowledgement of the ModeChange, the Data Source changes to Buffered Mode, and
    // the Data Sink changes back.
    change(&mut talk, 0, 0);
    talk.send(0, Mid::DATA, "", 50);
    change(&mut talk, 1, 3);
    src_avail(&mut talk, 0, 60, 50);
    talk.send(0, Mid::MODE_CHANGE, &word(4), 0);
    talk.both_receive_all();
    talk.send(1, Mid::SEND_SM, "", 0);
    talk.both_receive_all();
    talk.send(0, Mid::DATA, "", 10);
    talk.both_receive_all();
    sink_avail(&mut talk, 1, 9000, 4, 0);
    talk.write(0, STAG, VA, 9);
    completes(&mut talk, 0, Mid::RDMA_WR_COMPL, 9);
    closed(talk)
}

/// Both Data Sources send a SrcAvail at the same time. The half-connections are independent.
fn both_ways(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    talk.send(0, Mid::SRC_AVAIL, &advert_of(STAG, 50, None), 10);
    talk.send(1, Mid::SRC_AVAIL, &advert_of(STAG, 70, None), 10);
    talk.both_receive_all();
    talk.reads(0, STAG, VA, 70);
    talk.reads(1, STAG, VA + 10, 20);
    talk.send_in(SEND_SE_INV, 0, Mid::RDMA_RD_COMPL, &word(60), 0);
    talk.receive_all(1);
    talk.send(1, Mid::SEND_SM, "", 0);
    talk.send(1, Mid::DATA, "", 5);
    talk.receive_all(0);
    talk.send(0, Mid::DATA, "", 40);
    closed(talk)
}

/// An Out-Of-Band octet at the largest distance from its announcement.
fn far_octet(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    talk.flags = 2;
    talk.send(0, Mid::DATA, "", 0);
    talk.flags = 0;
    talk.both_receive_all();
    for part in [30_000, 30_000, 5_531] {
        src_avail(&mut talk, 0, part, 1);
        talk.reads(1, STAG, VA + 1, part - 1);
        completes(&mut talk, 1, Mid::RDMA_RD_COMPL, part - 1);
    }
    talk.flags = 1;
    talk.send(0, Mid::DATA, "", 5);
    talk.flags = 0;
    closed(talk)
}

/// All of these transfers, in both field orders.
pub(in crate::rules) fn stories() -> Vec<(&'static str, Wire)> {
    let mut stories = Vec::new();
    for order in [FieldOrder::Figure, FieldOrder::Mirrored] {
        stories.extend([
            ("SDP: the last credits", last_credits(order)),
            ("SDP: sizes of buffers", sizes(order)),
            ("SDP: many SrcAvails", many_src_avails(order)),
            ("SDP: many SinkAvails", many_sink_avails(order)),
            ("SDP: leaving Pipelined Mode", leaves_pipelined(order)),
            ("SDP: both ways", both_ways(order)),
            ("SDP: a far Out-Of-Band octet", far_octet(order)),
        ]);
    }
    stories
}
