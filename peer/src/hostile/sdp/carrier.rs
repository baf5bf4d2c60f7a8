//! Deviations in how messages travel: Solicited Event and Invalidate (section 14).

use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, Mid};

use super::said::Said;
use crate::hostile::sdp::SdpOut;

fn turn(out: &mut SdpOut<'_>, mid: Mid) {
    out.of(&[mid], |said| *said.solicited ^= true);
}

fn invalidate_newest(out: &mut SdpOut<'_>, mid: Mid) {
    let newest = out.kept.stags.last().copied();
    out.of(&[mid], |said| *said.invalidate = said.invalidate.and(newest));
}

fn has_oob(said: &mut Said<'_>) -> bool {
    let mut has = false;
    said.octet(2, |flags| has = *flags & (FLAG_OOB_PEND | FLAG_OOB_PRES) != 0);
    has
}

deviations! {
    "sdp.wr-compl-keeps-stag" [SdpOut(|out| out.of(&[Mid::RDMA_WR_COMPL], |said| *said.invalidate = None))]
        ["SDP-9.3-9"] "A RdmaWrCompl does not invalidate the STag.";
    "sdp.rd-compl-keeps-stag" [SdpOut(|out| out.of(&[Mid::RDMA_RD_COMPL], |said| *said.invalidate = None))]
        ["SDP-9.2-26"] "The last RdmaRdCompl does not invalidate the STag.";
    "sdp.abort-conn-unsolicited" [SdpOut(|out| turn(out, Mid::ABORT_CONN))] ["SDP-14.2-1"] "An AbortConn has no Solicited Event.";
    "sdp.ch-rcv-buf-ack-solicited" [SdpOut(|out| turn(out, Mid::CH_RCV_BUF_ACK))] ["SDP-14.2-18"] "A ChRcvBufAck has Solicited Event.";
    "sdp.ch-rcv-buf-solicited" [SdpOut(|out| turn(out, Mid::CH_RCV_BUF))] ["SDP-14.2-17"] "A ChRcvBuf has Solicited Event.";
    "sdp.data-solicited" [SdpOut(|out| out.of(&[Mid::DATA], |said| *said.solicited |= !has_oob(said)))]
        ["SDP-14.2-15"] "Data without an OOB flag has Solicited Event.";
    "sdp.dis-conn-solicited" [SdpOut(|out| turn(out, Mid::DIS_CONN))] ["SDP-14.2-12"] "A DisConn has Solicited Event.";
    "sdp.hello-ack-unsolicited" [SdpOut(|out| turn(out, Mid::HELLO_ACK))]
        ["SDP-14.2-7", "SDP-8.1.1-28"] "A HelloAck has no Solicited Event.";
    "sdp.mode-change-solicited" [SdpOut(|out| turn(out, Mid::MODE_CHANGE))] ["SDP-14.2-16"] "A ModeChange has Solicited Event.";
    "sdp.oob-unsolicited" [SdpOut(|out| out.of(&[Mid::DATA], |said| *said.solicited &= !has_oob(said)))]
        ["SDP-14.2-11"] "Data with an OOB flag has no Solicited Event.";
    "sdp.rd-compl-invalidates-other" [
        SdpArrived(|arrived| arrived.note(Mid::SRC_AVAIL)),
        SdpOut(|out| invalidate_newest(out, Mid::RDMA_RD_COMPL)),
    ] ["SDP-9.2-26", "SDP-9.5.2.1-3", "SDP-9.2-15"] "A RdmaRdCompl invalidates the STag of the newest SrcAvail, not that of its own.";
    "sdp.rd-compl-unsolicited" [SdpOut(|out| turn(out, Mid::RDMA_RD_COMPL))]
        ["SDP-14.2-9", "SDP-9.2-27"] "A RdmaRdCompl has no Solicited Event.";
    "sdp.send-sm-unsolicited" [SdpOut(|out| turn(out, Mid::SEND_SM))] ["SDP-14.2-4"] "A SendSm has no Solicited Event.";
    "sdp.sink-avail-cancel-unsolicited" [SdpOut(|out| turn(out, Mid::SINK_AVAIL_CANCEL))]
        ["SDP-14.2-6"] "A SinkAvailCancel has no Solicited Event.";
    "sdp.sink-avail-solicited" [SdpOut(|out| turn(out, Mid::SINK_AVAIL))] ["SDP-14.2-14"] "A SinkAvail has Solicited Event.";
    "sdp.sink-cancel-ack-unsolicited" [SdpOut(|out| turn(out, Mid::SINK_CANCEL_ACK))]
        ["SDP-14.2-10"] "A SinkCancelAck has no Solicited Event.";
    "sdp.src-avail-cancel-unsolicited" [SdpOut(|out| turn(out, Mid::SRC_AVAIL_CANCEL))]
        ["SDP-14.2-5"] "A SrcAvailCancel has no Solicited Event.";
    "sdp.src-avail-solicited" [SdpOut(|out| turn(out, Mid::SRC_AVAIL))] ["SDP-14.2-13"] "A SrcAvail has Solicited Event.";
    "sdp.wr-compl-invalidates-other" [
        SdpArrived(|arrived| arrived.note(Mid::SINK_AVAIL)),
        SdpOut(|out| invalidate_newest(out, Mid::RDMA_WR_COMPL)),
    ] ["SDP-9.3-12", "SDP-9.3-9"] "A RdmaWrCompl invalidates the STag of the newest SinkAvail, not that of its own.";
    "sdp.wr-compl-unsolicited" [SdpOut(|out| turn(out, Mid::RDMA_WR_COMPL))]
        ["SDP-14.2-8", "SDP-9.3-10"] "A RdmaWrCompl has no Solicited Event.";
}
