//! Deviations that react in a wrong or incomplete way to received messages (sections 6.1.2, 6.2.1,
//! 9 to 12 of the SDP draft). Deviations that ignore or reject a message are in `arrival`.

use weft_core::wire::sdp::{FLAG_REQ_PIPE, Mid, Mode};

use crate::hostile::context::sdp::{SdpArrived, SdpOut, UNKNOWN_OP, ignore, refuse};
use crate::sdp::Output;

/// Offset of the first word of any extended header, for example Len or DesSz.
const FIRST: usize = 16;
/// Offset of DesRemRcvSz in a Hello.
const DES_REM_RCV_SZ: usize = 20;
/// Offsets of LocalRcvSz in a Hello, ActRcvSz in a HelloAck, and LocORD in both.
const LOCAL_RCV_SZ: usize = 24;
const ACT_RCV_SZ: usize = 20;
const HELLO_ORD: usize = 30;
const HELLO_ACK_ORD: usize = 26;
const NON_DISCARDS: usize = 32;

/// Posts each Read twice, with the same local memory.
fn read_twice(out: &mut SdpOut<'_>) {
    if let Some(Output::Read { remote, receive, at, len, .. }) = out.out.first().cloned() {
        out.out.push(Output::Read { op: UNKNOWN_OP, remote, receive, at, len });
    }
}

/// Turns the received message into a SendSm.
fn make_send_sm(arrived: &mut SdpArrived<'_>) {
    arrived.octets.truncate(16);
    arrived.set_octet(3, Mid::SEND_SM.0);
    arrived.set_word(4, 16);
    arrived.invalidated = None;
}

fn has_req_pipe(arrived: &SdpArrived<'_>) -> bool {
    (arrived.is(Mid::RDMA_RD_COMPL) || arrived.is(Mid::RDMA_WR_COMPL)) && arrived.octet(2) & FLAG_REQ_PIPE != 0
}

deviations! {
    "sdp.ch-rcv-buf-ack-as-requested" [
        SdpArrived(|arrived| if arrived.is(Mid::CH_RCV_BUF) {
            arrived.state.count = arrived.word(FIRST);
        }),
        SdpOut(|out| {
            let requested = out.state.count;
            out.of(&[Mid::CH_RCV_BUF_ACK], |message| message.word(FIRST, |_| requested));
        }),
    ] ["SDP-10.6-14"] "copies DesSz into ActSz, whatever size the Private Buffers have";
    "sdp.ch-rcv-buf-half-met" [
        SdpOut(|out| if let Some(Output::Receive { octets, .. }) = out.out.first() {
            out.state.count = *octets;
        }),
        SdpArrived(|arrived| if arrived.is(Mid::CH_RCV_BUF) && arrived.word(FIRST) > arrived.state.count {
            let half = arrived.word(FIRST).midpoint(arrived.state.count);
            arrived.set_word(FIRST, half);
        }),
    ] ["SDP-10.6-7", "SDP-10.6-5"] "grants half of the increase that a ChRcvBuf requests although it could grant the complete increase";
    "sdp.ch-rcv-buf-in-words" [SdpOut(|out| out.of(&[Mid::CH_RCV_BUF], |message| message.word(FIRST, |size| size / 4)))]
        ["SDP-6.4.1.1-1"] "sends DesSz of a ChRcvBuf in units of four bytes instead of bytes";
    "sdp.data-in-sink-avail-cancel-lost" [
        SdpOut(|out| if out.mid() == Some(Mid::SINK_AVAIL_CANCEL) {
            out.state.count = 1;
        }),
        SdpArrived(|arrived| if arrived.is(Mid::DATA) && arrived.octets.len() > 16 && arrived.state.count == 1 {
            arrived.state.count = 2;
            arrived.ignore();
        }),
    ] ["SDP-9.5.5-13"] "loses the first Data payload that arrives after it has sent a SinkAvailCancel, so this payload makes no SinkAvail stale";
    "sdp.does-not-wait-for-rd-compls" [
        SdpOut(|out| if out.mid() == Some(Mid::SRC_AVAIL) && let Some(Output::Send { head, payload, .. }) = out.out.first() {
            out.state.count =
                crate::hostile::context::segment::word(head, FIRST) - payload.map_or(0, |piece| piece.len);
        }),
        SdpArrived(|arrived| if arrived.is(Mid::RDMA_RD_COMPL) && arrived.word(FIRST) < arrived.state.count {
            make_send_sm(arrived);
        }),
    ] ["SDP-9.2-22"] "treats an RdmaRdCompl for a part of the data as a SendSm";
    "sdp.forgets-credit-of-late-sink-avail" [
        SdpOut(|out| if out.is_change_to(Mode::Combined) {
            out.state.count = 1;
        }),
        SdpArrived(|arrived| if arrived.is(Mid::SINK_AVAIL) && arrived.state.count == 1 {
            arrived.set_octet(0, 0);
            arrived.set_octet(1, 0);
        }),
    ] ["SDP-12.4-13"] "treats Bufs as 0 in a SinkAvail that arrives after it has sent a ModeChange out of Pipelined Mode";
    "sdp.heeds-req-pipe-in-buffered" [
        SdpArrived(|arrived| if has_req_pipe(arrived) && arrived.state.count == 1 {
            arrived.state.count = 2;
        }),
        SdpOut(|out| if out.is_change_to(Mode::Buffered) {
            out.state.count = 1;
        } else if out.state.count == 2 && matches!(out.out.first(), Some(Output::Send { .. })) {
            out.state.count = 3;
            let word = out.mch(Mode::Pipelined, false);
            let change = out.compose(Mid::MODE_CHANGE, &word);
            out.out.insert(0, change);
        }),
    ] ["SDP-6.1.2-15", "SDP-6.3.8.2-4"] "answers REQ_PIPE with a ModeChange, even in Buffered Mode";
    "sdp.ignores-ch-rcv-buf-ack" [SdpArrived(|arrived| if arrived.is(Mid::HELLO) {
        arrived.state.count = arrived.word(LOCAL_RCV_SZ);
    } else if arrived.is(Mid::HELLO_ACK) {
        arrived.state.count = arrived.word(ACT_RCV_SZ);
    } else if arrived.is(Mid::CH_RCV_BUF_ACK) {
        let size = arrived.state.count;
        arrived.set_word(FIRST, size);
    })] ["SDP-10.6-4"] "does not change the size of its messages after a ChRcvBufAck";
    "sdp.ignores-des-rem-rcv-sz" [SdpArrived(|arrived| if arrived.is(Mid::HELLO) {
        arrived.set_word(DES_REM_RCV_SZ, 300);
    })] ["SDP-6.2.1.4-1"] "posts Private Buffers of 300 bytes, whatever DesRemRcvSz of the Hello is";
    "sdp.ignores-sink-cancel-ack" [SdpArrived(|arrived| ignore(arrived, Mid::SINK_CANCEL_ACK))]
        ["SDP-9.5.5-14"] "ignores a SinkCancelAck";
    "sdp.misses-hello-ack" [SdpArrived(|arrived| refuse(arrived, Mid::HELLO_ACK, |_| true))]
        ["SDP-8.1.1-10", "SDP-8.1.1-11"] "closes the connection when the HelloAck arrives";
    "sdp.rd-compls-exchanged" [SdpOut(|out| if out.mid() == Some(Mid::RDMA_RD_COMPL) {
        match out.state.held.take() {
            Some(second) => out.out.push(second),
            None => out.state.held = out.out.pop(),
        }
    })] ["SDP-10.1-2", "SDP-9.2-15", "SDP-9.5.2.1-3"] "reports the second of two SrcAvails as read before it reports the first";
    "sdp.reads-after-payload" [SdpOut(|out| if let Some(Output::Read { remote, .. }) = out.out.first_mut() {
        remote.tagged_offset += 8;
    })] ["SDP-9.2-10"] "reads the data of a SrcAvail from an address that is eight bytes too high";
    "sdp.reads-beyond-own-ord" [SdpOut(|out| {
        out.of(&[Mid::HELLO], |message| message.half(HELLO_ORD, 1));
        out.of(&[Mid::HELLO_ACK], |message| message.half(HELLO_ACK_ORD, 1));
        read_twice(out);
    })] ["SDP-6.2.1.7-1", "SDP-6.2.2.6-1", "SDP-8.1.1-9", "SDP-8.1.1-25"] "sends two outstanding Reads although its LocORD is 1";
    "sdp.reads-beyond-peers-ird" [SdpOut(read_twice)]
        ["SDP-8.1.1-27", "SDP-8.1.1-38"] "sends two outstanding Reads although LocIRD of the peer is 1";
    "sdp.refuses-late-src-avail-cancel" [
        SdpOut(|out| {
            if matches!(out.mid(), Some(Mid::SEND_SM | Mid::RDMA_RD_COMPL)) {
                out.state.count = out.state.count.saturating_sub(1);
            }
        }),
        SdpArrived(|arrived| {
            arrived.state.count += u32::from(arrived.is(Mid::SRC_AVAIL));
            refuse(arrived, Mid::SRC_AVAIL_CANCEL, |it| it.state.count == 0);
        }),
    ] ["SDP-9.5.4-4"] "rejects a SrcAvailCancel that arrives when all SrcAvails are Processed";
    "sdp.req-pipe-of-other-half" [
        SdpArrived(|arrived| if has_req_pipe(arrived) {
            arrived.set_octet(2, 0);
            arrived.state.count = 1;
        }),
        SdpOut(|out| if out.state.count == 1 && matches!(out.out.first(), Some(Output::Send { .. })) {
            out.state.count = 2;
            let word = out.mch(Mode::Pipelined, true);
            let change = out.compose(Mid::MODE_CHANGE, &word);
            out.out.insert(0, change);
        }),
    ] ["SDP-6.1.2-20", "SDP-6.1.2-21", "SDP-12.5-12"] "answers REQ_PIPE with a ModeChange for the wrong half-connection";
    "sdp.send-sm-only-once" [SdpOut(|out| if out.mid() == Some(Mid::SEND_SM) && !out.once() {
        out.suppress(Mid::SEND_SM);
    })] ["SDP-11.3-10"] "sends only one SendSm, even if it must answer further SrcAvails";
    "sdp.sink-avail-miscounted" [SdpArrived(|arrived| if arrived.is(Mid::SINK_AVAIL) {
        let non_discards = arrived.word(NON_DISCARDS);
        arrived.set_word(NON_DISCARDS, non_discards.wrapping_sub(1));
    })] ["SDP-9.5.1-11", "SDP-9.5.1-8"] "counts one message too many in PotentialNonDiscards";
    "sdp.src-avail-misread" [SdpArrived(|arrived| if arrived.is(Mid::SRC_AVAIL) {
        let len = arrived.word(FIRST);
        arrived.set_word(FIRST, len - 8);
    })] ["SDP-9.2-37"] "treats Len of a SrcAvail as eight lower than its value";
    "sdp.src-avails-not-repeated" [
        SdpArrived(|arrived| if arrived.is(Mid::SINK_AVAIL) && arrived.state.count == 1 {
            arrived.state.count = 2;
        }),
        SdpOut(|out| {
            if out.is_change_to(Mode::Combined) {
                out.state.count = 1;
            } else if out.state.count == 2 {
                out.suppress(Mid::SRC_AVAIL);
            }
        }),
    ] ["SDP-12.4-9", "SDP-12.5-5", "SDP-12.5-6"] "does not repeat SrcAvails if the peer's SinkAvail crosses a ModeChange out of Pipelined Mode";
    "sdp.src-avail-of-rest-left-out" [SdpOut(|out| match out.mid() {
        Some(Mid::RDMA_WR_COMPL) => out.state.count = 1,
        Some(Mid::SRC_AVAIL) if out.state.count == 1 => out.suppress(Mid::SRC_AVAIL),
        _ => {}
    })] ["SDP-11.3-17"] "sends no SrcAvail for the rest of the data after a write";
}
