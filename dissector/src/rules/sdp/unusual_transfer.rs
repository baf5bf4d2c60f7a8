//! Unusual but legal SDP transfers, in both field orders: credit, sizes, advertisements and Modes
//! at their limits, and messages that cross. `rules::unusual_tests` adds the usual defects of
//! captures.

use weft_core::wire::sdp::{FieldOrder, Mid};

use super::sdp_script::{SEND_SE_INV, advert_of, change, completes, pipelined, sink_avail, src_avail};
use crate::testing::Wire;
use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};

fn closed(mut script: SdpScript) -> Wire {
    script.both_receive_all();
    script.send(0, Mid::DIS_CONN, "", 0);
    script.send(1, Mid::DIS_CONN, "", 0);
    script.wire.fin(0);
    script.wire.fin(1);
    script.wire
}

/// Uses the last credits. When three credits are left, the sender sends a message with payload.
/// When two credits are left, it sends a message without payload. When one credit is left, it sends
/// a message that grants credit.
fn last_credits(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    for _ in 0..14 {
        script.send(0, Mid::DATA, "", 100);
    }
    script.send(0, Mid::DATA, "", 0);
    script.bufs = 17;
    script.send(0, Mid::DATA, "", 0);
    script.receive_all(1);
    script.send(1, Mid::DATA, "", 0);
    script.receive_all(0);
    script.send(0, Mid::DATA, "", 100);
    closed(script)
}

/// Changes of buffer sizes: larger buffers after the old buffers are used up, ChRcvBufs that cross,
/// a rejected ChRcvBuf, and a ChRcvBuf in the other direction.
fn sizes(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    script.send(0, Mid::CH_RCV_BUF, &word(6000), 0);
    script.receive_all(1);
    for _ in 0..15 {
        script.send(1, Mid::DATA, "", 0);
        script.receive_all(0);
        script.send(0, Mid::DATA, "", 4080);
        script.receive_all(1);
    }
    script.send(1, Mid::CH_RCV_BUF_ACK, &word(7000), 0);
    script.receive_all(0);
    script.send(0, Mid::DATA, "", 6984);
    script.send(0, Mid::CH_RCV_BUF, &word(1000), 0);
    script.send(1, Mid::CH_RCV_BUF, &word(2000), 0);
    script.both_receive_all();
    // The Connecting Peer answers, and sends another request.
    script.send(0, Mid::CH_RCV_BUF_ACK, &word(4096), 0);
    script.send(0, Mid::CH_RCV_BUF, &word(900), 0);
    script.send(0, Mid::DATA, "", 884);
    script.both_receive_all();
    script.send(1, Mid::CH_RCV_BUF_ACK, &word(1024), 0);
    script.receive_all(0);
    script.send(0, Mid::DATA, "", 1008);
    script.send(1, Mid::CH_RCV_BUF, &word(5000), 0);
    closed(script)
}

/// The largest allowed number of SrcAvails. The peer declines the first SrcAvail, and reads the
/// second SrcAvail in several parts. The third SrcAvail is canceled.
fn many_src_avails(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    pipelined(&mut script, 1);
    for stag in [2, STAG, 3, 4] {
        script.send(1, Mid::SRC_AVAIL, &advert_of(stag, 300, None), 0);
    }
    script.receive_all(0);
    script.send(0, Mid::SEND_SM, "", 0);
    script.reads(0, STAG, VA, 100);
    script.receive_all(1);
    script.send(1, Mid::DATA, "", 200);
    script.send(1, Mid::DATA, "", 100);
    script.receive_all(0);
    script.send(0, Mid::RDMA_RD_COMPL, &word(100), 0);
    script.reads(0, STAG, VA + 100, 200);
    script.send(0, Mid::RDMA_RD_COMPL, &word(150), 0);
    script.receive_all(1);
    script.send(1, Mid::SRC_AVAIL_CANCEL, "", 0);
    script.send_in(SEND_SE_INV, 0, Mid::RDMA_RD_COMPL, &word(50), 0);
    script.both_receive_all();
    script.send(0, Mid::SEND_SM, "", 0);
    script.receive_all(1);
    script.send(1, Mid::SRC_AVAIL, &advert(500, None), 0);
    script.receive_all(0);
    script.reads(0, STAG, VA, 500);
    completes(&mut script, 0, Mid::RDMA_RD_COMPL, 500);
    script.send(1, Mid::DATA, "", 20);
    closed(script)
}

/// SinkAvails that are used, become stale, are canceled while partly written, or arrive after
/// Pipelined Mode has ended.
fn many_sink_avails(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    pipelined(&mut script, 0);
    script.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    script.send(1, Mid::SINK_AVAIL, &advert_of(2, 9000, Some(0)), 30);
    script.receive_all(0);
    script.write(0, STAG, VA, 4000);
    script.write(0, STAG, VA + 4000, 5000);
    script.send_in(SEND_SE_INV, 0, Mid::RDMA_WR_COMPL, &word(9000), 0);
    // The second SinkAvail becomes stale, and the next SinkAvail is partly used.
    script.send(0, Mid::DATA, "", 10);
    script.both_receive_all();
    sink_avail(&mut script, 1, 9000, 0, 0);
    script.write(0, STAG, VA, 100);
    script.send(1, Mid::SINK_AVAIL_CANCEL, "", 0);
    script.receive_all(0);
    script.send_in(SEND_SE_INV, 0, Mid::RDMA_WR_COMPL, &word(100), 0);
    script.receive_all(1);
    script.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    script.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    script.send(1, Mid::SINK_AVAIL_CANCEL, "", 0);
    script.receive_all(0);
    script.send(0, Mid::SINK_CANCEL_ACK, "", 0);
    script.receive_all(1);
    sink_avail(&mut script, 1, 9000, 0, 0);
    script.write(0, STAG, VA, 1);
    completes(&mut script, 0, Mid::RDMA_WR_COMPL, 1);
    closed(script)
}

/// A ModeChange ends Pipelined Mode while SinkAvails are in flight. The Data Source advertises its
/// buffer again.
fn leaves_pipelined(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    pipelined(&mut script, 0);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.send(1, Mid::SINK_AVAIL, &advert_of(7, 9000, Some(0)), 0);
    script.send(1, Mid::SINK_AVAIL, &advert_of(8, 9000, Some(0)), 0);
    script.send(0, Mid::MODE_CHANGE, &word(2), 0);
    script.receive_all(0);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 1);
    script.receive_all(1);
    script.reads(1, STAG, VA + 1, 8999);
    completes(&mut script, 1, Mid::RDMA_RD_COMPL, 8999);
    // After the acknowledgement of the ModeChange, the Data Source changes to Buffered Mode, and
    // the Data Sink changes back.
    change(&mut script, 0, 0);
    script.send(0, Mid::DATA, "", 50);
    change(&mut script, 1, 3);
    src_avail(&mut script, 0, 60, 50);
    script.send(0, Mid::MODE_CHANGE, &word(4), 0);
    script.both_receive_all();
    script.send(1, Mid::SEND_SM, "", 0);
    script.both_receive_all();
    script.send(0, Mid::DATA, "", 10);
    script.both_receive_all();
    sink_avail(&mut script, 1, 9000, 4, 0);
    script.write(0, STAG, VA, 9);
    completes(&mut script, 0, Mid::RDMA_WR_COMPL, 9);
    closed(script)
}

/// Both Data Sources send a SrcAvail at the same time. The half-connections are independent.
fn both_ways(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    script.send(0, Mid::SRC_AVAIL, &advert_of(STAG, 50, None), 10);
    script.send(1, Mid::SRC_AVAIL, &advert_of(STAG, 70, None), 10);
    script.both_receive_all();
    script.reads(0, STAG, VA, 70);
    script.reads(1, STAG, VA + 10, 20);
    script.send_in(SEND_SE_INV, 0, Mid::RDMA_RD_COMPL, &word(60), 0);
    script.receive_all(1);
    script.send(1, Mid::SEND_SM, "", 0);
    script.send(1, Mid::DATA, "", 5);
    script.receive_all(0);
    script.send(0, Mid::DATA, "", 40);
    closed(script)
}

/// An Out-Of-Band octet at the largest distance from its announcement.
fn far_octet(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    script.flags = 2;
    script.send(0, Mid::DATA, "", 0);
    script.flags = 0;
    script.both_receive_all();
    for part in [30_000, 30_000, 5_531] {
        src_avail(&mut script, 0, part, 1);
        script.reads(1, STAG, VA + 1, part - 1);
        completes(&mut script, 1, Mid::RDMA_RD_COMPL, part - 1);
    }
    script.flags = 1;
    script.send(0, Mid::DATA, "", 5);
    script.flags = 0;
    closed(script)
}

/// All of these transfers, in both field orders.
pub(in crate::rules) fn scenarios() -> Vec<(&'static str, Wire)> {
    let mut scenarios = Vec::new();
    for order in [FieldOrder::Figure, FieldOrder::Mirrored] {
        scenarios.extend([
            ("SDP: the last credits", last_credits(order)),
            ("SDP: sizes of buffers", sizes(order)),
            ("SDP: many SrcAvails", many_src_avails(order)),
            ("SDP: many SinkAvails", many_sink_avails(order)),
            ("SDP: leaving Pipelined Mode", leaves_pipelined(order)),
            ("SDP: both ways", both_ways(order)),
            ("SDP: a far Out-Of-Band octet", far_octet(order)),
        ]);
    }
    scenarios
}
