//! Deviations in the options of Sends that carry messages: Solicited Event and Invalidate (section
//! 14 of the SDP draft).

use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, Mid};

use crate::hostile::context::sdp::{OutMessage, SdpOut};

fn turn(out: &mut SdpOut<'_>, mid: Mid) {
    out.of(&[mid], |message| *message.solicited ^= true);
}

fn invalidate_newest(out: &mut SdpOut<'_>, mid: Mid) {
    let newest = out.state.stags.last().copied();
    out.of(&[mid], |message| *message.invalidate = message.invalidate.and(newest));
}

fn has_oob(message: &mut OutMessage<'_>) -> bool {
    let mut has = false;
    message.octet(2, |flags| has = *flags & (FLAG_OOB_PEND | FLAG_OOB_PRES) != 0);
    has
}

deviations! {
    "sdp.wr-compl-keeps-stag" [SdpOut(|out| out.of(&[Mid::RDMA_WR_COMPL], |message| *message.invalidate = None))]
        ["SDP-9.3-9"] "sends an RdmaWrCompl that does not invalidate the STag";
    "sdp.rd-compl-keeps-stag" [SdpOut(|out| out.of(&[Mid::RDMA_RD_COMPL], |message| *message.invalidate = None))]
        ["SDP-9.2-26"] "sends an RdmaRdCompl that does not invalidate the STag, even if it is the last RdmaRdCompl for a SrcAvail";
    "sdp.abort-conn-unsolicited" [SdpOut(|out| turn(out, Mid::ABORT_CONN))] ["SDP-14.2-1"] "sends an AbortConn without Solicited Event";
    "sdp.ch-rcv-buf-ack-solicited" [SdpOut(|out| turn(out, Mid::CH_RCV_BUF_ACK))] ["SDP-14.2-18"] "sends a ChRcvBufAck with Solicited Event";
    "sdp.ch-rcv-buf-solicited" [SdpOut(|out| turn(out, Mid::CH_RCV_BUF))] ["SDP-14.2-17"] "sends a ChRcvBuf with Solicited Event";
    "sdp.data-solicited" [SdpOut(|out| out.of(&[Mid::DATA], |message| *message.solicited |= !has_oob(message)))]
        ["SDP-14.2-15"] "uses Solicited Event for Data that has no OOB flag";
    "sdp.dis-conn-solicited" [SdpOut(|out| turn(out, Mid::DIS_CONN))] ["SDP-14.2-12"] "sends a DisConn with Solicited Event";
    "sdp.hello-ack-unsolicited" [SdpOut(|out| turn(out, Mid::HELLO_ACK))]
        ["SDP-14.2-7", "SDP-8.1.1-28"] "sends a HelloAck without Solicited Event";
    "sdp.mode-change-solicited" [SdpOut(|out| turn(out, Mid::MODE_CHANGE))] ["SDP-14.2-16"] "sends a ModeChange with Solicited Event";
    "sdp.oob-unsolicited" [SdpOut(|out| out.of(&[Mid::DATA], |message| *message.solicited &= !has_oob(message)))]
        ["SDP-14.2-11"] "omits Solicited Event for Data that has an OOB flag";
    "sdp.rd-compl-invalidates-other" [
        SdpArrived(|arrived| arrived.note(Mid::SRC_AVAIL)),
        SdpOut(|out| invalidate_newest(out, Mid::RDMA_RD_COMPL)),
    ] ["SDP-9.2-26", "SDP-9.5.2.1-3", "SDP-9.2-15"] "sends an RdmaRdCompl that invalidates the STag of the newest SrcAvail, not of the completed SrcAvail";
    "sdp.rd-compl-unsolicited" [SdpOut(|out| turn(out, Mid::RDMA_RD_COMPL))]
        ["SDP-14.2-9", "SDP-9.2-27"] "sends an RdmaRdCompl without Solicited Event";
    "sdp.send-sm-unsolicited" [SdpOut(|out| turn(out, Mid::SEND_SM))] ["SDP-14.2-4"] "sends a SendSm without Solicited Event";
    "sdp.sink-avail-cancel-unsolicited" [SdpOut(|out| turn(out, Mid::SINK_AVAIL_CANCEL))]
        ["SDP-14.2-6"] "sends a SinkAvailCancel without Solicited Event";
    "sdp.sink-avail-solicited" [SdpOut(|out| turn(out, Mid::SINK_AVAIL))] ["SDP-14.2-14"] "sends a SinkAvail with Solicited Event";
    "sdp.sink-cancel-ack-unsolicited" [SdpOut(|out| turn(out, Mid::SINK_CANCEL_ACK))]
        ["SDP-14.2-10"] "sends a SinkCancelAck without Solicited Event";
    "sdp.src-avail-cancel-unsolicited" [SdpOut(|out| turn(out, Mid::SRC_AVAIL_CANCEL))]
        ["SDP-14.2-5"] "sends a SrcAvailCancel without Solicited Event";
    "sdp.src-avail-solicited" [SdpOut(|out| turn(out, Mid::SRC_AVAIL))] ["SDP-14.2-13"] "sends a SrcAvail with Solicited Event";
    "sdp.wr-compl-invalidates-other" [
        SdpArrived(|arrived| arrived.note(Mid::SINK_AVAIL)),
        SdpOut(|out| invalidate_newest(out, Mid::RDMA_WR_COMPL)),
    ] ["SDP-9.3-12", "SDP-9.3-9"] "sends an RdmaWrCompl that invalidates the STag of the newest SinkAvail, not of the completed SinkAvail";
    "sdp.wr-compl-unsolicited" [SdpOut(|out| turn(out, Mid::RDMA_WR_COMPL))]
        ["SDP-14.2-8", "SDP-9.3-10"] "sends an RdmaWrCompl without Solicited Event";
}
