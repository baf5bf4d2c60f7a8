//! Deviations that reject or ignore permitted actions of a peer (sections 6, 8.1.1 and 9 to 12 of
//! the SDP draft). If an endpoint does not use an option itself, it must still accept the option
//! from a peer.

use weft_core::wire::sdp::{FLAG_REQ_PIPE, Mid};

use crate::hostile::context::sdp::{SdpArrived, SdpOut, refuse};
use crate::hostile::context::segment::word;
use crate::sdp::Output;

const BUFS: usize = 0;
/// Offset of the first word of any extended header, for example Len, DesSz or ActSz.
const FIRST: usize = 16;
/// Offsets of LocalRcvSz in a Hello and of ActRcvSz in a HelloAck.
const LOCAL_RCV_SZ: usize = 24;
const ACT_RCV_SZ: usize = 20;
const BSDH_LEN: usize = 16;

/// Returns whether the bytes are an SDP message. In streaming mode, the bytes can also be an MPA
/// start-up frame.
fn is_message(arrived: &SdpArrived<'_>) -> bool {
    arrived.octets.len() >= BSDH_LEN && !arrived.octets.starts_with(b"MPA ")
}

fn is_first(arrived: &SdpArrived<'_>) -> bool {
    arrived.is(Mid::HELLO) || arrived.is(Mid::HELLO_ACK)
}

fn has_payload(arrived: &SdpArrived<'_>) -> bool {
    arrived.octets.len() > BSDH_LEN
}

/// When a message with this MID is sent, sets `count` to the number of bytes that the message
/// advertises. Bytes in the payload of a SrcAvail do not count.
fn note_advertised(out: &mut SdpOut<'_>, mid: Mid) {
    if out.mid() == Some(mid)
        && let Some(Output::Send { head, payload, .. }) = out.out.first()
    {
        out.state.count = word(head, FIRST) - payload.filter(|_| mid == Mid::SRC_AVAIL).map_or(0, |piece| piece.len);
    }
}

/// Sets `count` to 1 when a message with this MID is sent.
fn note_sent(out: &mut SdpOut<'_>, mid: Mid) {
    if out.mid() == Some(mid) {
        out.state.count = 1;
    }
}

deviations! {
    "sdp.counts-one-credit-less" [SdpArrived(|arrived| if is_message(arrived) && !is_first(arrived) {
        arrived.set_half(BUFS, arrived.half(BUFS).saturating_sub(1));
    })] ["SDP-10.5-11"] "treats Bufs of each message as one less than its value";
    "sdp.heeds-first-bufs-only" [SdpArrived(|arrived| {
        if is_first(arrived) {
            arrived.state.count = arrived.half(BUFS).into();
        } else if is_message(arrived) && u32::from(arrived.half(BUFS)) > arrived.state.count {
            let first = u16::try_from(arrived.state.count).unwrap_or(u16::MAX);
            arrived.set_half(BUFS, first);
        }
    })] ["SDP-10.3-3"] "uses Bufs of the Hello or HelloAck if Bufs of a later message is higher";
    "sdp.refuses-ch-rcv-buf" [SdpArrived(|arrived| refuse(arrived, Mid::CH_RCV_BUF, |_| true))]
        ["SDP-10.6-1"] "rejects a ChRcvBuf";
    "sdp.refuses-ch-rcv-buf-again" [SdpArrived(|arrived| {
        let again = arrived.state.count > 0;
        arrived.state.count += u32::from(arrived.is(Mid::CH_RCV_BUF));
        refuse(arrived, Mid::CH_RCV_BUF, |_| again);
    })] ["SDP-10.6.1-3"] "rejects a second ChRcvBuf";
    "sdp.refuses-ch-rcv-buf-ack-of-less" [SdpArrived(|arrived| {
        if is_first(arrived) {
            arrived.state.count = arrived.word(if arrived.is(Mid::HELLO) { LOCAL_RCV_SZ } else { ACT_RCV_SZ });
        }
        refuse(arrived, Mid::CH_RCV_BUF_ACK, |it| it.word(FIRST) < it.state.count);
    })] ["SDP-10.6-12"] "rejects every ChRcvBufAck for smaller Private Buffers";
    "sdp.refuses-ch-rcv-buf-ack-of-other-size" [
        SdpOut(|out| if let Some(Output::Send { head, .. }) = out.out.first().filter(|_| out.mid() == Some(Mid::CH_RCV_BUF)) {
            out.state.count = word(head, FIRST);
        }),
        SdpArrived(|arrived| refuse(arrived, Mid::CH_RCV_BUF_ACK, |it| it.word(FIRST) != it.state.count)),
    ] ["SDP-10.6-6", "SDP-6.4.2.1-1"] "rejects a ChRcvBufAck whose ActSz is not the requested DesSz";
    "sdp.refuses-crossing-sink-avail" [
        SdpOut(|out| note_sent(out, Mid::SRC_AVAIL)),
        SdpArrived(|arrived| {
            let is_open = arrived.state.count == 1;
            if arrived.is(Mid::RDMA_RD_COMPL) || arrived.is(Mid::SEND_SM) {
                arrived.state.count = 0;
            }
            refuse(arrived, Mid::SINK_AVAIL, |_| is_open);
        }),
    ] ["SDP-11-12"] "rejects a SinkAvail while a SrcAvail is open";
    "sdp.refuses-data-after-hello" [SdpArrived(|arrived| {
        let first = arrived.state.count == 1;
        if is_first(arrived) {
            arrived.state.count = 1;
        } else if first && arrived.is(Mid::DATA) {
            arrived.state.count = 2;
            arrived.refuse();
        }
    })] ["SDP-8.1.1-30", "SDP-8.1.1-40"] "rejects Data that is the first message after Hello or HelloAck";
    "sdp.refuses-data-after-sink-avail" [
        SdpOut(|out| note_sent(out, Mid::SINK_AVAIL)),
        SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| it.state.count == 1 && has_payload(it))),
    ] ["SDP-9.5.2.2-1", "SDP-11-14"] "rejects payload of Data after it has sent a SinkAvail";
    "sdp.refuses-mode-change-beside-src-avail" [
        SdpArrived(|arrived| {
            let is_open = arrived.state.count == 1;
            if arrived.is(Mid::SRC_AVAIL) {
                arrived.state.count = 1;
            }
            refuse(arrived, Mid::MODE_CHANGE, |_| is_open);
        }),
        SdpOut(|out| if matches!(out.mid(), Some(Mid::RDMA_RD_COMPL | Mid::SEND_SM)) {
            out.state.count = 0;
        }),
    ] ["SDP-12.3-2"] "rejects the peer's ModeChange while a SrcAvail of the peer is open";
    "sdp.refuses-rd-compl-of-part" [
        SdpOut(|out| note_advertised(out, Mid::SRC_AVAIL)),
        SdpArrived(|arrived| refuse(arrived, Mid::RDMA_RD_COMPL, |it| it.word(FIRST) < it.state.count)),
    ] ["SDP-9.2-16"] "rejects an RdmaRdCompl for a part of the bytes that a SrcAvail advertises";
    "sdp.refuses-req-pipe" [SdpArrived(|arrived| for mid in [Mid::RDMA_RD_COMPL, Mid::RDMA_WR_COMPL] {
        refuse(arrived, mid, |it| it.octet(2) & FLAG_REQ_PIPE != 0);
    })] ["SDP-12-13"] "rejects an RdmaRdCompl or RdmaWrCompl with REQ_PIPE";
    "sdp.refuses-second-advert" [
        SdpArrived(|arrived| {
            let is_advert = arrived.is(Mid::SRC_AVAIL) || arrived.is(Mid::SINK_AVAIL);
            arrived.state.count += u32::from(is_advert);
            if is_advert && arrived.state.count > 1 {
                arrived.refuse();
            }
        }),
        SdpOut(|out| if matches!(out.mid(), Some(Mid::RDMA_RD_COMPL | Mid::RDMA_WR_COMPL | Mid::SEND_SM)) {
            out.state.count = out.state.count.saturating_sub(1);
        }),
    ] ["SDP-11-11", "SDP-11.3-22"] "rejects a second SrcAvail or SinkAvail while the first is open, whatever MaxAdverts is";
    "sdp.refuses-send-sm" [SdpArrived(|arrived| refuse(arrived, Mid::SEND_SM, |_| true))]
        ["SDP-9.5.2.1-1", "SDP-9.2-6", "SDP-9.2-19", "SDP-9.2-40", "SDP-11-3", "SDP-12-13"] "rejects a SendSm";
    "sdp.refuses-sink-avail" [SdpArrived(|arrived| refuse(arrived, Mid::SINK_AVAIL, |_| true))]
        ["SDP-11-22", "SDP-11-23", "SDP-11-24"] "rejects every SinkAvail, even in Pipelined Mode";
    "sdp.refuses-src-avail" [SdpArrived(|arrived| refuse(arrived, Mid::SRC_AVAIL, |_| true))]
        ["SDP-11-17", "SDP-11-18", "SDP-11-20", "SDP-11-21", "SDP-11-23", "SDP-11-24"] "rejects every SrcAvail, even in Combined and Pipelined Mode";
    "sdp.refuses-transaction-reply" [
        SdpOut(|out| if out.mid() == Some(Mid::SINK_AVAIL) && out.has_payload() { out.state.count = 1; }),
        SdpArrived(|arrived| {
            refuse(arrived, Mid::RDMA_WR_COMPL, |it| it.state.count == 1);
            refuse(arrived, Mid::DATA, |it| it.state.count == 1 && has_payload(it));
        }),
    ] ["SDP-9.4-4", "SDP-9.4-5"] "rejects an RdmaWrCompl or payload of Data after it has sent a SinkAvail with payload";
    "sdp.refuses-wr-compl-of-part" [
        SdpOut(|out| note_advertised(out, Mid::SINK_AVAIL)),
        SdpArrived(|arrived| refuse(arrived, Mid::RDMA_WR_COMPL, |it| it.word(FIRST) < it.state.count)),
    ] ["SDP-6.3.6.1-2"] "rejects an RdmaWrCompl for a part of the bytes that a SinkAvail advertises";
}
