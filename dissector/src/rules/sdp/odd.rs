//! Unusual but legal SDP connections, in both field orders. `rules::odd_tests` adds the usual
//! defects of captures.

use weft_core::wire::sdp::{FieldOrder, Mid};

use crate::testing::sdp::{STAG, Talk, VA, advert, hello_ack, ordered, word};
use crate::testing::{Wire, fpdu, hello, hex, reply, request, startup_frame};

const TO_BUFFERED: u32 = 0;
const TO_COMBINED: u32 = 2;
const SINK_TO_COMBINED: u32 = 3;
const TO_PIPELINED: u32 = 4;
const SUSP_COMM: &str = "00000000 1388 0001";

/// The Hello is sent in streaming mode, and its receiver sends the MPA Request.
fn swapped(order: FieldOrder) -> Talk {
    let mut wire = Wire::connected();
    wire.send(0, &ordered(order, hello()));
    wire.send(1, &request());
    wire.send(0, &reply());
    let mut talk = Talk::upon(wire, order);
    talk.send_octets(5, 1, &hello_ack());
    talk
}

/// Acknowledges all received messages, then sends Data.
fn data(talk: &mut Talk, direction: usize, payload: usize) {
    talk.receive_all(direction);
    talk.send(direction, Mid::DATA, "", payload);
}

/// Acknowledges all received messages, then sends a message.
fn send(talk: &mut Talk, direction: usize, mid: Mid, extension: &str, payload: usize) {
    talk.receive_all(direction);
    talk.send(direction, mid, extension, payload);
}

/// Sends the last RdmaRdCompl, or the RdmaWrCompl, for a buffer. The message invalidates the STag.
fn completes(talk: &mut Talk, direction: usize, mid: Mid, len: u32) {
    talk.receive_all(direction);
    talk.send_in(6, direction, mid, &word(len), 0);
}

fn closed(mut talk: Talk) -> Wire {
    send(&mut talk, 0, Mid::DIS_CONN, "", 0);
    send(&mut talk, 1, Mid::DIS_CONN, "", 0);
    talk.wire.fin(1);
    talk.wire.fin(0);
    talk.wire
}

/// Uses each Mode and each transfer mechanism.
fn all_modes(order: FieldOrder) -> Wire {
    let mut talk = swapped(order);
    data(&mut talk, 0, 10);
    data(&mut talk, 1, 10);
    // Combined Mode: two RDMA Reads, which also read the octets that the SrcAvail carried as
    // payload.
    send(&mut talk, 0, Mid::SRC_AVAIL, &advert(9000, None), 10);
    talk.reads(1, STAG, VA, 5000);
    send(&mut talk, 1, Mid::RDMA_RD_COMPL, &word(4990), 0);
    talk.reads(1, STAG, VA + 5000, 4000);
    completes(&mut talk, 1, Mid::RDMA_RD_COMPL, 4000);
    // The Data Sink declines the SrcAvail, and the remaining octets follow as Data.
    send(&mut talk, 0, Mid::SRC_AVAIL, &advert(100, None), 10);
    send(&mut talk, 1, Mid::SEND_SM, "", 0);
    data(&mut talk, 0, 50);
    data(&mut talk, 0, 40);
    send(&mut talk, 0, Mid::MODE_CHANGE, &word(TO_BUFFERED), 0);
    data(&mut talk, 0, 10);
    send(&mut talk, 1, Mid::MODE_CHANGE, &word(SINK_TO_COMBINED), 0);
    send(&mut talk, 0, Mid::MODE_CHANGE, &word(TO_PIPELINED), 0);
    send(&mut talk, 1, Mid::SINK_AVAIL, &advert(9000, Some(6)), 0);
    talk.receive_all(0);
    talk.write(0, STAG, VA, 5000);
    talk.write(0, STAG, VA + 5000, 2000);
    completes(&mut talk, 0, Mid::RDMA_WR_COMPL, 7000);
    // A Transaction is a SinkAvail with payload.
    send(&mut talk, 1, Mid::SINK_AVAIL, &advert(9000, Some(6)), 20);
    talk.receive_all(0);
    talk.write(0, STAG, VA, 1);
    completes(&mut talk, 0, Mid::RDMA_WR_COMPL, 1);
    send(&mut talk, 0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    talk.reads(1, STAG, VA, 9000);
    completes(&mut talk, 1, Mid::RDMA_RD_COMPL, 9000);
    send(&mut talk, 0, Mid::MODE_CHANGE, &word(TO_COMBINED), 0);
    data(&mut talk, 1, 10);
    closed(talk)
}

/// Data makes SinkAvails stale, and a SinkAvail crosses SrcAvails.
fn crossing(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    send(&mut talk, 0, Mid::MODE_CHANGE, &word(TO_PIPELINED), 0);
    talk.receive_all(1);
    for _ in 0..2 {
        talk.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    }
    talk.send(0, Mid::DATA, "", 9);
    talk.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    talk.both_receive_all();
    talk.write(0, STAG, VA, 3000);
    completes(&mut talk, 0, Mid::RDMA_WR_COMPL, 3000);
    data(&mut talk, 1, 0);
    send(&mut talk, 1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    send(&mut talk, 1, Mid::SINK_AVAIL_CANCEL, "", 0);
    send(&mut talk, 0, Mid::SINK_CANCEL_ACK, "", 0);
    closed(talk)
}

/// A SrcAvailCancel arrives during an RDMA Read. Until a SendSm settles the cancel, MSeqAck does
/// not advance and Bufs decreases.
fn held_back(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    data(&mut talk, 1, 0);
    send(&mut talk, 0, Mid::SRC_AVAIL, &advert(9000, None), 10);
    talk.receive_all(1);
    talk.request_read(1, STAG, VA, 100);
    talk.send(0, Mid::SRC_AVAIL_CANCEL, "", 0);
    talk.send(0, Mid::DATA, "", 0);
    // The Response to the RDMA Read above.
    let mut response = hex("c142 00005101 0000000000000000");
    response.resize(response.len() + 100, 0x5a);
    talk.wire.send(0, &fpdu(&response));
    talk.bufs = 14;
    talk.send(1, Mid::RDMA_RD_COMPL, &word(90), 0);
    talk.bufs = 16;
    send(&mut talk, 1, Mid::SEND_SM, "", 0);
    data(&mut talk, 0, 20);
    closed(talk)
}

/// An Out-Of-Band octet that a message without payload announces, new buffer sizes, and a message
/// in two segments.
fn small_things(order: FieldOrder) -> Wire {
    let mut talk = swapped(order);
    talk.flags = 2;
    data(&mut talk, 0, 0);
    talk.flags = 0;
    data(&mut talk, 0, 7);
    talk.flags = 1;
    data(&mut talk, 0, 3);
    talk.flags = 3;
    data(&mut talk, 1, 1);
    talk.flags = 0;
    send(&mut talk, 1, Mid::CH_RCV_BUF, &word(8192), 0);
    send(&mut talk, 0, Mid::CH_RCV_BUF_ACK, &word(4096), 0);
    send(&mut talk, 0, Mid::CH_RCV_BUF, &word(100), 0);
    send(&mut talk, 1, Mid::CH_RCV_BUF_ACK, &word(2048), 0);
    talk.send_in_two(0, 40);
    send(&mut talk, 1, Mid(0x41), "", 5);
    closed(talk)
}

/// Both endpoints close at the same time. Then one of them aborts.
fn crossed_dis_conns(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    data(&mut talk, 0, 10);
    talk.send(0, Mid::DIS_CONN, "", 0);
    talk.send(1, Mid::DIS_CONN, "", 0);
    data(&mut talk, 0, 0);
    send(&mut talk, 1, Mid::ABORT_CONN, "", 0);
    talk.wire.rst(1);
    talk.wire
}

/// One half-connection is closed, and the other one continues.
fn half_closed(order: FieldOrder) -> Wire {
    let mut talk = swapped(order);
    send(&mut talk, 0, Mid::DIS_CONN, "", 0);
    data(&mut talk, 1, 10);
    data(&mut talk, 0, 0);
    send(&mut talk, 1, Mid::SRC_AVAIL, &advert(100, None), 10);
    talk.receive_all(0);
    talk.reads(0, STAG, VA + 10, 90);
    completes(&mut talk, 0, Mid::RDMA_RD_COMPL, 90);
    send(&mut talk, 1, Mid::DIS_CONN, "", 0);
    talk.wire.fin(1);
    talk.wire.fin(0);
    talk.wire
}

/// One endpoint hands its socket over to another process. If `crossing`, both endpoints do.
fn suspended(order: FieldOrder, crossing: bool) -> Wire {
    let mut talk = swapped(order);
    data(&mut talk, 1, 10);
    if crossing {
        talk.send(0, Mid::SUSP_COMM, SUSP_COMM, 0);
    }
    send(&mut talk, 1, Mid::SUSP_COMM, SUSP_COMM, 0);
    send(&mut talk, 0, Mid::SUSP_COMM_ACK, "", 0);
    talk.wire.fin(0);
    talk.wire.fin(1);
    talk.wire
}

/// The peer rejects the Hello by closing TCP.
fn refused(order: FieldOrder) -> Wire {
    let mut talk = Talk::greeted(order, |_| {});
    talk.wire.fin(1);
    talk.wire.fin(0);
    talk.wire
}

fn given_up(order: FieldOrder) -> Wire {
    let mut talk = swapped(order);
    data(&mut talk, 0, 10);
    data(&mut talk, 1, 10);
    talk.wire.fin(0);
    talk.wire.fin(1);
    talk.wire
}

/// Hello and MPA Request are in one segment, or the Hello is in the Request's private data. The
/// Connecting Peer sends first.
fn other_start(order: FieldOrder, private_data: bool) -> Wire {
    let mut wire = Wire::connected();
    let hello = ordered(order, hello());
    if private_data {
        wire.send(0, &startup_frame(0x40, 1, &hello));
    } else {
        wire.send(0, &[hello, startup_frame(0x40, 1, &[])].concat());
    }
    wire.send(1, &reply());
    let mut talk = Talk::upon(wire, order);
    if private_data {
        data(&mut talk, 0, 0);
        talk.send_octets(5, 1, &hello_ack());
        data(&mut talk, 1, 10);
        return closed(talk);
    }
    // RFC 5044 requires that the Initiator sends first, SDP that the Responder does. So both cannot
    // be met.
    talk.wire
}

/// By another interpretation of section 6.1.5 (C4), the first message after the HelloAck has MSeq
/// 0.
fn numbers_from_0(order: FieldOrder) -> Wire {
    let mut talk = Talk::begun(order);
    talk.mseq = [u32::MAX; 2];
    for (direction, ack) in [(0, 0), (1, 0), (0, 0), (1, 1)] {
        talk.ack[direction] = ack;
        talk.send(direction, Mid::DATA, "", 4);
    }
    talk.wire
}

/// All of these connections, in both field orders.
pub(crate) fn stories() -> Vec<(&'static str, Wire)> {
    let mut stories = Vec::new();
    for order in [FieldOrder::Figure, FieldOrder::Mirrored] {
        stories.extend([
            ("SDP: all Modes", all_modes(order)),
            ("SDP: crossing advertisements", crossing(order)),
            ("SDP: MSeqAck held back", held_back(order)),
            ("SDP: small things", small_things(order)),
            ("SDP: DisConns cross", crossed_dis_conns(order)),
            ("SDP: half-closed", half_closed(order)),
            ("SDP: suspended", suspended(order, false)),
            ("SDP: SuspComms cross", suspended(order, true)),
            ("SDP: refused", refused(order)),
            ("SDP: given up", given_up(order)),
            ("SDP: Hello in private data", other_start(order, true)),
            ("SDP: Hello and Request at once", other_start(order, false)),
            ("SDP: numbers from 0", numbers_from_0(order)),
        ]);
    }
    stories
}
