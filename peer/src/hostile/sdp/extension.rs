//! Deviations in extended headers, and in bytes after the headers (sections 6.2.3 to 6.4 of the SDP
//! draft).

use weft_core::wire::sdp::Mid;

use crate::hostile::context::sdp::{OutMessage, SdpOut};
use crate::hostile::context::segment::word;
use crate::sdp::Output;

/// Offset of the first word of an extended header. In SrcAH and SinkAH this word is Len.
const FIRST: usize = 16;
const STAG: usize = 20;
const VA_HIGH: usize = 24;
const VA_LOW: usize = 28;
const NON_DISCARDS: usize = 32;

/// Adds four bytes after the headers of a message without payload.
fn long(out: &mut SdpOut<'_>, mid: Mid) {
    out.of(&[mid], |message| message.resize(message.head.len() + 4));
}

/// Removes the last word of the extended header.
fn cut(out: &mut SdpOut<'_>, mid: Mid) {
    out.of(&[mid], |message| message.resize(message.head.len() - 4));
}

fn first(out: &mut SdpOut<'_>, mid: Mid, change: impl Fn(u32) -> u32) {
    out.of(&[mid], |message| message.word(FIRST, &change));
}

fn mode_change(out: &mut SdpOut<'_>, change: impl Fn(u32, u8, bool) -> (u32, u8, bool)) {
    out.of(&[Mid::MODE_CHANGE], |message| message.mode_change(&change));
}

fn swap_va(message: &mut OutMessage<'_>) {
    if let Some(va) = message.head.get_mut(VA_HIGH..VA_LOW + 4) {
        va.rotate_left(4);
    }
}

deviations! {
    "sdp.sink-avail-len-small" [SdpOut(|out| first(out, Mid::SINK_AVAIL, |_| 64))]
        ["SDP-9.3-2", "SDP-9-1", "SDP-9.5.1-1", "SDP-9.5.1-2", "SDP-10-9", "SDP-9.4-3", "SDP-10-2"] "sends a SinkAvail for fewer bytes than a Private Buffer has";
    "sdp.abort-conn-long" [SdpOut(|out| long(out, Mid::ABORT_CONN))]
        ["SDP-6.2.4-1", "SDP-6.1.1-5", "SDP-6.1.1-1", "SDP-8.2.2-11"] "sends four bytes after the header of an AbortConn";
    "sdp.ch-rcv-buf-ack-cut" [SdpOut(|out| cut(out, Mid::CH_RCV_BUF_ACK))]
        ["SDP-6.4.2-2", "SDP-6.4.2-1", "SDP-6.1.1-1", "SDP-6.1.1-14"] "sends a ChRcvBufAck without ActSz";
    "sdp.ch-rcv-buf-ack-long" [SdpOut(|out| long(out, Mid::CH_RCV_BUF_ACK))]
        ["SDP-6.4.2-1", "SDP-6.1.1-14", "SDP-6.1.1-1"] "sends four bytes after the headers of a ChRcvBufAck";
    "sdp.ch-rcv-buf-ack-opposite" [SdpOut(|out| first(out, Mid::CH_RCV_BUF_ACK, |size| if size > 1000 { size - 900 } else { size + 900 }))]
        ["SDP-10.6-10", "SDP-10.6-8", "SDP-6.4.2-2", "SDP-8.2.2-10"] "sends a ChRcvBufAck whose ActSz changes the size in the wrong direction, for example to a smaller instead of a larger size";
    "sdp.ch-rcv-buf-ack-36" [SdpOut(|out| first(out, Mid::CH_RCV_BUF_ACK, |_| 36))]
        ["SDP-10-7", "SDP-10.6-9", "SDP-6.4.2-2"] "sends a ChRcvBufAck with ActSz 36";
    "sdp.ch-rcv-buf-cut" [SdpOut(|out| cut(out, Mid::CH_RCV_BUF))]
        ["SDP-6.4.1-2", "SDP-6.4.1-1", "SDP-6.1.1-1", "SDP-6.1.1-13"] "sends a ChRcvBuf without DesSz";
    "sdp.ch-rcv-buf-long" [SdpOut(|out| long(out, Mid::CH_RCV_BUF))]
        ["SDP-6.4.1-1", "SDP-6.1.1-13", "SDP-6.1.1-1"] "sends four bytes after the headers of a ChRcvBuf";
    "sdp.dis-conn-long" [SdpOut(|out| long(out, Mid::DIS_CONN))]
        ["SDP-6.2.3-1", "SDP-6.1.1-4", "SDP-6.1.1-1"] "sends four bytes after the header of a DisConn";
    "sdp.extension-with-gap" [SdpOut(|out| out.of(&[Mid::MODE_CHANGE, Mid::SRC_AVAIL, Mid::SINK_AVAIL], |message| {
        message.head.splice(16..16, [0; 4]);
        message.resize(message.head.len());
    }))] ["SDP-6-2", "SDP-6.1.1-1", "SDP-6.1.1-9", "SDP-6.3.8-2", "SDP-6.3.2.1-1", "SDP-6.3.3.1-2"] "sends four bytes between the BSDH and the extended header";
    "sdp.mode-change-cut" [SdpOut(|out| cut(out, Mid::MODE_CHANGE))]
        ["SDP-6.3.8-1", "SDP-6.3.8-2", "SDP-6.1.1-1", "SDP-6.1.1-9"] "sends a ModeChange without the four bytes that contain the Mode";
    "sdp.mode-change-long" [SdpOut(|out| long(out, Mid::MODE_CHANGE))]
        ["SDP-6.3.8-2", "SDP-6.1.1-9", "SDP-6.1.1-1"] "sends four bytes after the headers of a ModeChange";
    "sdp.mode-change-mode-3" [SdpOut(|out| mode_change(out, |rsvd, _, s| (rsvd, 3, s)))]
        ["SDP-6.3.8.2-5", "SDP-6.3.8.2-1", "SDP-6.3.8-1", "SDP-8.2.2-11"] "sends a ModeChange with Mode 3";
    "sdp.mode-change-rsvd" [SdpOut(|out| mode_change(out, |_, mode, s| (0x0fff_ffff, mode, s)))]
        ["SDP-6.3.8.3-1", "SDP-6.3.8-1"] "sends a ModeChange whose Rsvd is not zero";
    "sdp.mode-change-s" [SdpOut(|out| mode_change(out, |rsvd, mode, s| (rsvd, mode, !s)))]
        ["SDP-12-8", "SDP-12-5", "SDP-12-1", "SDP-12.3-1", "SDP-12.1-1", "SDP-12.2-1", "SDP-12.4-1", "SDP-5-4"] "inverts S of a ModeChange";
    "sdp.rd-compl-cut" [SdpOut(|out| cut(out, Mid::RDMA_RD_COMPL))]
        ["SDP-6.3.7-1", "SDP-6.3.7-2", "SDP-6.1.1-1", "SDP-6.1.1-8"] "sends an RdmaRdCompl without the Len of the extended header";
    "sdp.rd-compl-len-0" [SdpOut(|out| first(out, Mid::RDMA_RD_COMPL, |_| 0))]
        ["SDP-6.3.7.1-1", "SDP-9.2-13", "SDP-9.2-1"] "sends an RdmaRdCompl for zero bytes";
    "sdp.rd-compl-len-less" [SdpOut(|out| first(out, Mid::RDMA_RD_COMPL, |len| len - 1))]
        ["SDP-6.3.7.1-1", "SDP-6.3.7.1-3", "SDP-9.2-38"] "sends an RdmaRdCompl for one byte less than it read";
    "sdp.rd-compl-len-more" [SdpOut(|out| first(out, Mid::RDMA_RD_COMPL, |len| len + 8))]
        ["SDP-6.3.7.1-2", "SDP-6.3.7.1-1", "SDP-9.2-13", "SDP-6.3.7-1", "SDP-6.3.7.1-3", "SDP-9.2-14"] "counts eight bytes too many in Len of an RdmaRdCompl";
    "sdp.rd-compl-long" [SdpOut(|out| long(out, Mid::RDMA_RD_COMPL))]
        ["SDP-6.3.7-2", "SDP-6.1.1-8", "SDP-6.1.1-1"] "sends four bytes after the headers of an RdmaRdCompl";
    "sdp.send-sm-long" [SdpOut(|out| long(out, Mid::SEND_SM))]
        ["SDP-6.3.5-2", "SDP-6.1.1-6", "SDP-6.1.1-1"] "sends four bytes after the header of a SendSm";
    "sdp.sink-avail-cancel-long" [SdpOut(|out| long(out, Mid::SINK_AVAIL_CANCEL))]
        ["SDP-6.3.10-1", "SDP-6.1.1-11", "SDP-6.1.1-1"] "sends four bytes after the header of a SinkAvailCancel";
    "sdp.sink-avail-cut" [SdpOut(|out| cut(out, Mid::SINK_AVAIL))]
        ["SDP-6.3.3-2", "SDP-6.3.3-1", "SDP-6.1.1-1", "SDP-6.1.1-21"] "sends a SinkAvail without NonDiscards";
    "sdp.sink-avail-len-0" [SdpOut(|out| first(out, Mid::SINK_AVAIL, |_| 0))]
        ["SDP-6.3.3.1-2", "SDP-9.3-2"] "sends a SinkAvail for zero bytes";
    "sdp.sink-avail-len-large" [SdpOut(|out| first(out, Mid::SINK_AVAIL, |_| (1 << 31) + 1))]
        ["SDP-6.3.3.1-3"] "sends a SinkAvail for more than 2^31 bytes";
    "sdp.sink-avail-non-discards" [SdpOut(|out| out.of(&[Mid::SINK_AVAIL], |message| message.word(NON_DISCARDS, |count| count.wrapping_add(1))))]
        ["SDP-9.3-5", "SDP-6.3.3.4-1", "SDP-6.3.3.4-2"] "sends a SinkAvail whose NonDiscards is one too high";
    "sdp.sink-avail-of-buffer-size" [SdpOut(|out| {
        if let Some(Output::Send { head, .. }) = out.out.first().filter(|_| out.mid() == Some(Mid::CH_RCV_BUF_ACK)) {
            out.state.count = word(head, FIRST);
        }
        let size = out.state.count;
        if size > 0 {
            first(out, Mid::SINK_AVAIL, |_| size);
        }
    })] ["SDP-10.6-16", "SDP-9.3-2", "SDP-9-1", "SDP-9.5.1-1", "SDP-9.5.1-2", "SDP-10-2", "SDP-10-9", "SDP-9.4-3"]
        "sends SinkAvails for exactly the size of its Private Buffers after it has sent a ChRcvBufAck";
    "sdp.sink-avail-stag-of-nobody" [SdpOut(|out| out.of(&[Mid::SINK_AVAIL], |message| message.word(STAG, |stag| stag ^ 0x00ff_ff00)))]
        ["SDP-6.3.3.3-1", "SDP-9.3-3"] "sends a SinkAvail with an STag that does not exist";
    "sdp.sink-avail-va-words-exchanged" [SdpOut(|out| out.of(&[Mid::SINK_AVAIL], swap_va))]
        ["SDP-6.3.3-4", "SDP-6.3.3-1", "SDP-6.3.3.2-1", "SDP-6.3.3.1-1"] "swaps the upper and the lower half of VA of a SinkAvail";
    "sdp.sink-cancel-ack-long" [SdpOut(|out| long(out, Mid::SINK_CANCEL_ACK))]
        ["SDP-6.3.11-2", "SDP-6.1.1-12", "SDP-6.1.1-1"] "sends four bytes after the header of a SinkCancelAck";
    "sdp.src-avail-cancel-long" [SdpOut(|out| long(out, Mid::SRC_AVAIL_CANCEL))]
        ["SDP-6.3.9-1", "SDP-6.1.1-10", "SDP-6.1.1-1"] "sends four bytes after the header of a SrcAvailCancel";
    "sdp.src-avail-cut" [SdpOut(|out| out.of(&[Mid::SRC_AVAIL], |message| {
        *message.payload = None;
        message.resize(28);
    }))] ["SDP-6.3.2-1", "SDP-6.3.2-3", "SDP-6.1.1-1", "SDP-6.1.1-22"] "sends a SrcAvail with only the upper half of VA";
    "sdp.src-avail-len-0" [SdpOut(|out| first(out, Mid::SRC_AVAIL, |_| 0))]
        ["SDP-6.3.2.1-1"] "sends a SrcAvail for zero bytes";
    "sdp.src-avail-len-large" [SdpOut(|out| first(out, Mid::SRC_AVAIL, |_| (1 << 31) + 1))]
        ["SDP-6.3.2.1-2"] "sends a SrcAvail for more than 2^31 bytes";
    "sdp.src-avail-stag-of-nobody" [SdpOut(|out| out.of(&[Mid::SRC_AVAIL], |message| message.word(STAG, |stag| stag ^ 0x00ff_ff00)))]
        ["SDP-6.3.2.3-1", "SDP-9.2-4"] "sends a SrcAvail with an STag that does not exist";
    "sdp.src-avail-va-after-payload" [SdpOut(|out| out.of(&[Mid::SRC_AVAIL], |message| {
        let payload = message.payload.map_or(0, |piece| piece.len);
        message.word(VA_LOW, |va| va.wrapping_add(payload));
    }))] ["SDP-6.3.2.2-2", "SDP-9.2-5", "SDP-9.2-4"] "sends a SrcAvail whose VA points after the bytes that are in the payload";
    "sdp.src-avail-va-words-exchanged" [SdpOut(|out| out.of(&[Mid::SRC_AVAIL], swap_va))]
        ["SDP-6.3.2-4", "SDP-6.3.2-3"] "swaps the upper and the lower half of VA of a SrcAvail";
    "sdp.wr-compl-cut" [SdpOut(|out| cut(out, Mid::RDMA_WR_COMPL))]
        ["SDP-6.3.6-1", "SDP-6.3.6-2", "SDP-6.1.1-1", "SDP-6.1.1-7"] "sends an RdmaWrCompl without the Len of the extended header";
    "sdp.wr-compl-len-0" [SdpOut(|out| first(out, Mid::RDMA_WR_COMPL, |_| 0))]
        ["SDP-6.3.6.1-1", "SDP-9.3-14", "SDP-9.3-1"] "sends an RdmaWrCompl for zero bytes";
    "sdp.wr-compl-len-less" [SdpOut(|out| first(out, Mid::RDMA_WR_COMPL, |len| len - 1))]
        ["SDP-6.3.6.1-1", "SDP-9.3-14"] "sends an RdmaWrCompl for one byte less than it wrote";
    "sdp.wr-compl-len-more" [SdpOut(|out| first(out, Mid::RDMA_WR_COMPL, |len| len + 1_000_000))]
        ["SDP-9.3-14", "SDP-6.3.6-1", "SDP-6.3.6.1-1"] "sends an RdmaWrCompl for more bytes than the SinkAvail has";
    "sdp.wr-compl-long" [SdpOut(|out| long(out, Mid::RDMA_WR_COMPL))]
        ["SDP-6.3.6-2", "SDP-6.1.1-7", "SDP-6.1.1-1"] "sends four bytes after the headers of an RdmaWrCompl";
}
