//! Generates unusual but legal SDP connections for tests, in both field orders.
//! `rules::unusual_tests` adds the usual defects of captures.

use weft_core::wire::sdp::{FieldOrder, Mid};

use crate::testing::sdp::{STAG, SdpScript, VA, advert, hello_ack, ordered, word};
use crate::testing::{Wire, fpdu, hello, hex, reply, request, startup_frame};

const TO_BUFFERED: u32 = 0;
const TO_COMBINED: u32 = 2;
const SINK_TO_COMBINED: u32 = 3;
const TO_PIPELINED: u32 = 4;
const SUSP_COMM: &str = "00000000 1388 0001";

/// The Hello is sent in streaming mode, and its receiver sends the MPA Request.
fn swapped(order: FieldOrder) -> SdpScript {
    let mut wire = Wire::connected();
    wire.send(0, &ordered(order, hello()));
    wire.send(1, &request());
    wire.send(0, &reply());
    let mut script = SdpScript::after_hello(wire, order);
    script.send_octets(5, 1, &hello_ack());
    script
}

/// Acknowledges all received messages, then sends Data.
fn data(script: &mut SdpScript, direction: usize, payload: usize) {
    script.receive_all(direction);
    script.send(direction, Mid::DATA, "", payload);
}

/// Acknowledges all received messages, then sends a message.
fn send(script: &mut SdpScript, direction: usize, mid: Mid, extension: &str, payload: usize) {
    script.receive_all(direction);
    script.send(direction, mid, extension, payload);
}

/// Sends the last RdmaRdCompl, or the RdmaWrCompl, for a buffer. The message invalidates the STag.
fn completes(script: &mut SdpScript, direction: usize, mid: Mid, len: u32) {
    script.receive_all(direction);
    script.send_in(6, direction, mid, &word(len), 0);
}

fn closed(mut script: SdpScript) -> Wire {
    send(&mut script, 0, Mid::DIS_CONN, "", 0);
    send(&mut script, 1, Mid::DIS_CONN, "", 0);
    script.wire.fin(1);
    script.wire.fin(0);
    script.wire
}

/// Uses each Mode and each transfer mechanism.
fn all_modes(order: FieldOrder) -> Wire {
    let mut script = swapped(order);
    data(&mut script, 0, 10);
    data(&mut script, 1, 10);
    // Combined Mode: two RDMA Reads, which also read the octets that the SrcAvail carried as
    // payload.
    send(&mut script, 0, Mid::SRC_AVAIL, &advert(9000, None), 10);
    script.reads(1, STAG, VA, 5000);
    send(&mut script, 1, Mid::RDMA_RD_COMPL, &word(4990), 0);
    script.reads(1, STAG, VA + 5000, 4000);
    completes(&mut script, 1, Mid::RDMA_RD_COMPL, 4000);
    // The Data Sink declines the SrcAvail, and the remaining octets follow as Data.
    send(&mut script, 0, Mid::SRC_AVAIL, &advert(100, None), 10);
    send(&mut script, 1, Mid::SEND_SM, "", 0);
    data(&mut script, 0, 50);
    data(&mut script, 0, 40);
    send(&mut script, 0, Mid::MODE_CHANGE, &word(TO_BUFFERED), 0);
    data(&mut script, 0, 10);
    send(&mut script, 1, Mid::MODE_CHANGE, &word(SINK_TO_COMBINED), 0);
    send(&mut script, 0, Mid::MODE_CHANGE, &word(TO_PIPELINED), 0);
    send(&mut script, 1, Mid::SINK_AVAIL, &advert(9000, Some(6)), 0);
    script.receive_all(0);
    script.write(0, STAG, VA, 5000);
    script.write(0, STAG, VA + 5000, 2000);
    completes(&mut script, 0, Mid::RDMA_WR_COMPL, 7000);
    // A Transaction is a SinkAvail with payload.
    send(&mut script, 1, Mid::SINK_AVAIL, &advert(9000, Some(6)), 20);
    script.receive_all(0);
    script.write(0, STAG, VA, 1);
    completes(&mut script, 0, Mid::RDMA_WR_COMPL, 1);
    send(&mut script, 0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.reads(1, STAG, VA, 9000);
    completes(&mut script, 1, Mid::RDMA_RD_COMPL, 9000);
    send(&mut script, 0, Mid::MODE_CHANGE, &word(TO_COMBINED), 0);
    data(&mut script, 1, 10);
    closed(script)
}

/// Data makes SinkAvails stale, and a SinkAvail crosses SrcAvails.
fn crossing(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    send(&mut script, 0, Mid::MODE_CHANGE, &word(TO_PIPELINED), 0);
    script.receive_all(1);
    for _ in 0..2 {
        script.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    }
    script.send(0, Mid::DATA, "", 9);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.both_receive_all();
    script.write(0, STAG, VA, 3000);
    completes(&mut script, 0, Mid::RDMA_WR_COMPL, 3000);
    data(&mut script, 1, 0);
    send(&mut script, 1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
    send(&mut script, 1, Mid::SINK_AVAIL_CANCEL, "", 0);
    send(&mut script, 0, Mid::SINK_CANCEL_ACK, "", 0);
    closed(script)
}

/// A SrcAvailCancel arrives during an RDMA Read. Until a SendSm answers the SrcAvailCancel, MSeqAck
/// does not advance and Bufs decreases.
fn held_back(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    data(&mut script, 1, 0);
    send(&mut script, 0, Mid::SRC_AVAIL, &advert(9000, None), 10);
    script.receive_all(1);
    script.request_read(1, STAG, VA, 100);
    script.send(0, Mid::SRC_AVAIL_CANCEL, "", 0);
    script.send(0, Mid::DATA, "", 0);
    // The Response to the RDMA Read above.
    let mut response = hex("c142 00005101 0000000000000000");
    response.resize(response.len() + 100, 0x5a);
    script.wire.send(0, &fpdu(&response));
    script.bufs = 14;
    script.send(1, Mid::RDMA_RD_COMPL, &word(90), 0);
    script.bufs = 16;
    send(&mut script, 1, Mid::SEND_SM, "", 0);
    data(&mut script, 0, 20);
    closed(script)
}

/// An Out-Of-Band octet that a message without payload announces, new buffer sizes, and a message
/// in two segments.
fn small_things(order: FieldOrder) -> Wire {
    let mut script = swapped(order);
    script.flags = 2;
    data(&mut script, 0, 0);
    script.flags = 0;
    data(&mut script, 0, 7);
    script.flags = 1;
    data(&mut script, 0, 3);
    script.flags = 3;
    data(&mut script, 1, 1);
    script.flags = 0;
    send(&mut script, 1, Mid::CH_RCV_BUF, &word(8192), 0);
    send(&mut script, 0, Mid::CH_RCV_BUF_ACK, &word(4096), 0);
    send(&mut script, 0, Mid::CH_RCV_BUF, &word(100), 0);
    send(&mut script, 1, Mid::CH_RCV_BUF_ACK, &word(2048), 0);
    script.send_in_two(0, 40);
    send(&mut script, 1, Mid(0x41), "", 5);
    closed(script)
}

/// Both endpoints close at the same time. Then one endpoint aborts.
fn crossed_dis_conns(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    data(&mut script, 0, 10);
    script.send(0, Mid::DIS_CONN, "", 0);
    script.send(1, Mid::DIS_CONN, "", 0);
    data(&mut script, 0, 0);
    send(&mut script, 1, Mid::ABORT_CONN, "", 0);
    script.wire.rst(1);
    script.wire
}

/// One half-connection is closed, and the other half-connection continues.
fn half_closed(order: FieldOrder) -> Wire {
    let mut script = swapped(order);
    send(&mut script, 0, Mid::DIS_CONN, "", 0);
    data(&mut script, 1, 10);
    data(&mut script, 0, 0);
    send(&mut script, 1, Mid::SRC_AVAIL, &advert(100, None), 10);
    script.receive_all(0);
    script.reads(0, STAG, VA + 10, 90);
    completes(&mut script, 0, Mid::RDMA_RD_COMPL, 90);
    send(&mut script, 1, Mid::DIS_CONN, "", 0);
    script.wire.fin(1);
    script.wire.fin(0);
    script.wire
}

/// One endpoint hands its socket over to another process. If `crossing` is true, both endpoints
/// hand their sockets over.
fn suspended(order: FieldOrder, crossing: bool) -> Wire {
    let mut script = swapped(order);
    data(&mut script, 1, 10);
    if crossing {
        script.send(0, Mid::SUSP_COMM, SUSP_COMM, 0);
    }
    send(&mut script, 1, Mid::SUSP_COMM, SUSP_COMM, 0);
    send(&mut script, 0, Mid::SUSP_COMM_ACK, "", 0);
    script.wire.fin(0);
    script.wire.fin(1);
    script.wire
}

/// The peer rejects the Hello by closing TCP.
fn refused(order: FieldOrder) -> Wire {
    let mut script = SdpScript::with_hello(order, |_| {});
    script.wire.fin(1);
    script.wire.fin(0);
    script.wire
}

fn given_up(order: FieldOrder) -> Wire {
    let mut script = swapped(order);
    data(&mut script, 0, 10);
    data(&mut script, 1, 10);
    script.wire.fin(0);
    script.wire.fin(1);
    script.wire
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
    let mut script = SdpScript::after_hello(wire, order);
    if private_data {
        data(&mut script, 0, 0);
        script.send_octets(5, 1, &hello_ack());
        data(&mut script, 1, 10);
        return closed(script);
    }
    // RFC 5044 requires that the Initiator sends first, but SDP requires that the Responder sends
    // first. No connection can meet both requirements, so this script ends here.
    script.wire
}

/// By another interpretation of section 6.1.5 of the SDP draft, the first message after the
/// HelloAck has MSeq 0.
fn numbers_from_0(order: FieldOrder) -> Wire {
    let mut script = SdpScript::open(order);
    script.mseq = [u32::MAX; 2];
    for (direction, ack) in [(0, 0), (1, 0), (0, 0), (1, 1)] {
        script.ack[direction] = ack;
        script.send(direction, Mid::DATA, "", 4);
    }
    script.wire
}

/// All of these connections, in both field orders.
pub(crate) fn scenarios() -> Vec<(&'static str, Wire)> {
    let mut scenarios = Vec::new();
    for order in [FieldOrder::Figure, FieldOrder::Mirrored] {
        scenarios.extend([
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
    scenarios
}
