//! Deviations in sequences: messages and RDMA operations that are additional, missing or out of
//! order (sections 8 to 12 of the SDP draft).

use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, Mid, Mode};

use crate::hostile::context::sdp::{PAYLOAD, SdpOut, UNKNOWN_OP};
use crate::sdp::Output;

/// Extended headers with an STag that does not exist: a SrcAH for 100 bytes, and a SinkAH for 2^20
/// bytes.
const SRC_AH: [u8; 16] = [0, 0, 0, 100, 0, 0, 0x55, 0x11, 0, 0, 0, 0, 0, 0, 0, 0];
const SINK_AH: [u8; 20] = [0, 16, 0, 0, 0, 0, 0x55, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Sends more messages after the first message with payload.
fn add(out: &mut SdpOut<'_>, more: &[(Mid, &[u8])]) {
    if out.mid() == Some(Mid::DATA) && out.has_payload() && out.once() {
        out.follow(Mid::DATA, more);
    }
}

/// Sends a second ModeChange after a ModeChange to `after`.
fn change_again(out: &mut SdpOut<'_>, after: Mode, to: Mode, s: bool) {
    if out.is_change_to(after) {
        let word = out.mch(to, s);
        out.follow(Mid::MODE_CHANGE, &[(Mid::MODE_CHANGE, &word)]);
    }
}

/// Sends a ModeChange after the first Data message with payload. At this time the Mode is Combined.
fn change_at_once(out: &mut SdpOut<'_>, to: Mode, s: bool) {
    let word = out.mch(to, s);
    add(out, &[(Mid::MODE_CHANGE, &word)]);
}

/// Sends each message with this MID twice.
fn twice(out: &mut SdpOut<'_>, mid: Mid) {
    if out.mid() == Some(mid) {
        let mut again = out.out.clone();
        for output in &mut again {
            if let Output::Send { op, invalidate, .. } = output {
                (*op, *invalidate) = (None, None);
            }
        }
        out.out.append(&mut again);
    }
}

/// Replaces each message with this MID by the outputs `with`.
fn replace(out: &mut SdpOut<'_>, mid: Mid, with: Vec<Output>) {
    if out.mid() == Some(mid) {
        out.out = with;
    }
}

deviations! {
    "sdp.wr-compl-before-write" [SdpOut(|out| match out.out.first() {
        Some(Output::Write { data, .. }) => {
            let compl = out.compose(Mid::RDMA_WR_COMPL, &data.len.to_be_bytes());
            out.out.insert(0, compl);
        }
        _ => out.suppress(Mid::RDMA_WR_COMPL),
    })] ["SDP-9.3-1", "SDP-6.3.6.1-1", "SDP-9.3-14"] "sends the RdmaWrCompl before the write";
    "sdp.abort-conn-unrequested" [SdpOut(|out| add(out, &[(Mid::ABORT_CONN, &[])]))]
        ["SDP-6.2.4-2"] "sends an AbortConn without a DisConn before it";
    "sdp.buffered-with-open-src-avail" [SdpOut(|out| {
        let word = out.mch(Mode::Buffered, false);
        out.follow(Mid::SRC_AVAIL, &[(Mid::MODE_CHANGE, &word)]);
    })] ["SDP-12.1-2", "SDP-12.5-13", "SDP-12-1", "SDP-6.3.8.2-2"] "changes a half-connection to Buffered Mode while a SrcAvail is open";
    "sdp.ch-rcv-buf-ack-left-out" [SdpOut(|out| out.suppress(Mid::CH_RCV_BUF_ACK))]
        ["SDP-10.6-11", "SDP-10.6-14", "SDP-10.6.1-2"] "sends no ChRcvBufAck after a ChRcvBuf";
    "sdp.ch-rcv-buf-ack-twice" [SdpOut(|out| twice(out, Mid::CH_RCV_BUF_ACK))]
        ["SDP-6.4.2-3", "SDP-8.2.2-10"] "answers a ChRcvBuf with two ChRcvBufAcks";
    "sdp.ch-rcv-buf-ack-unrequested" [SdpOut(|out| add(out, &[(Mid::CH_RCV_BUF_ACK, &[0, 0, 8, 0])]))]
        ["SDP-6.4.2-3", "SDP-8.2.2-10"] "sends an unsolicited ChRcvBufAck";
    "sdp.ch-rcv-buf-twice" [SdpOut(|out| twice(out, Mid::CH_RCV_BUF))]
        ["SDP-10.6-19", "SDP-8.2.2-10"] "sends a second ChRcvBuf before the ChRcvBufAck";
    "sdp.combined-src-avail-without-payload" [SdpOut(|out| out.of(&[Mid::SRC_AVAIL], |message| {
        *message.payload = None;
        message.resize(32);
    }))] ["SDP-9.2-2", "SDP-11.2-9", "SDP-11-9", "SDP-6.3.2-2", "SDP-8.1.1-29", "SDP-8.1.1-39", "SDP-11-2", "SDP-12-2", "SDP-12-17", "SDP-12-23", "SDP-12.4-2"]
        "sends a SrcAvail without payload in Combined Mode";
    "sdp.data-after-dis-conn" [SdpOut(|out| out.follow(Mid::DIS_CONN, &[(Mid::DATA, &PAYLOAD)]))]
        ["SDP-6.2.3-2", "SDP-8.2.1-9", "SDP-8.2.1-4", "SDP-8.2.2-10"] "sends payload after a DisConn";
    "sdp.data-after-src-avail" [SdpOut(|out| out.follow(Mid::SRC_AVAIL, &[(Mid::DATA, &PAYLOAD)]))]
        ["SDP-11.2-6", "SDP-11-10", "SDP-11.3-8", "SDP-11-15", "SDP-11.2-8"] "sends payload while a SrcAvail is open";
    "sdp.dis-conn-and-end" [SdpOut(|out| if out.mid() == Some(Mid::DIS_CONN) {
        out.out.push(Output::Disconnect { abortive: false });
    })] ["SDP-8.2.1-11", "SDP-8.2.1-3", "SDP-8.2.1-10"] "closes TCP after a DisConn although the peer still has data to send";
    "sdp.dis-conn-left-out" [SdpOut(|out| replace(out, Mid::DIS_CONN, vec![Output::Disconnect { abortive: false }]))]
        ["SDP-6.2-2", "SDP-8.2.1-4", "SDP-8.2.1-32", "SDP-8.2.1-21"] "closes a connection without a DisConn";
    "sdp.mode-change-buffered-to-pipelined" [SdpOut(|out| change_again(out, Mode::Buffered, Mode::Pipelined, false))]
        ["SDP-12-7", "SDP-12-1", "SDP-6.3.8.2-4", "SDP-12-5", "SDP-12-9", "SDP-5-4"] "changes a half-connection from Buffered to Pipelined Mode";
    "sdp.mode-change-by-sink" [SdpOut(|out| change_at_once(out, Mode::Buffered, true))]
        ["SDP-12-3", "SDP-12-10", "SDP-12-8", "SDP-12-1", "SDP-12.1-1", "SDP-5-4", "SDP-6.3.8.2-2"] "requests Buffered Mode as Data Sink of a half-connection in Combined Mode";
    "sdp.mode-change-by-sink-in-pipelined" [SdpOut(|out| change_again(out, Mode::Pipelined, Mode::Combined, true))]
        ["SDP-12-6", "SDP-12-11", "SDP-12-8", "SDP-12-1", "SDP-12.4-1", "SDP-5-4", "SDP-6.3.8.2-3"] "requests Combined Mode as Data Sink of a half-connection in Pipelined Mode";
    "sdp.mode-change-by-sink-to-pipelined" [SdpOut(|out| change_at_once(out, Mode::Pipelined, true))]
        ["SDP-12-5", "SDP-12-10", "SDP-12-8", "SDP-12-1", "SDP-12.3-1", "SDP-5-4", "SDP-6.3.8.2-4"] "requests Pipelined Mode as Data Sink of a half-connection in Combined Mode";
    "sdp.mode-change-by-source-in-buffered" [SdpOut(|out| change_again(out, Mode::Buffered, Mode::Combined, false))]
        ["SDP-12-4", "SDP-12-9", "SDP-12-8", "SDP-12-1", "SDP-12.2-1", "SDP-5-4", "SDP-6.3.8.2-3", "SDP-12.5-23"] "requests Combined Mode as Data Source of a half-connection in Buffered Mode";
    "sdp.mode-change-pipelined-to-buffered" [SdpOut(|out| change_again(out, Mode::Pipelined, Mode::Buffered, false))]
        ["SDP-12-7", "SDP-12-1", "SDP-6.3.8.2-2", "SDP-12-3"] "changes a half-connection from Pipelined to Buffered Mode";
    "sdp.mode-change-left-out" [SdpOut(|out| out.suppress(Mid::MODE_CHANGE))]
        ["SDP-12.3-1", "SDP-12.5-14", "SDP-12.1-1", "SDP-12.4-1", "SDP-12.5-3", "SDP-12-17", "SDP-9.2-2"]
        "changes the Mode of a half-connection, but sends no ModeChange";
    "sdp.mode-change-same" [SdpOut(|out| change_at_once(out, Mode::Combined, false))]
        ["SDP-12-12", "SDP-12-1", "SDP-6.3.8.2-3", "SDP-12-6"] "sends a ModeChange to the current Mode";
    "sdp.mode-change-unacknowledged" [SdpOut(|out| {
        if out.is_change_to(Mode::Pipelined) {
            out.state.count = 1;
        } else if out.is_change_to(Mode::Combined) && out.state.count == 1 {
            change_again(out, Mode::Combined, Mode::Pipelined, false);
        }
    })] ["SDP-12.4-3", "SDP-12.5-8"] "sends a second ModeChange before its ModeChange out of Pipelined Mode is acknowledged";
    "sdp.oob-pend-late" [SdpOut(|out| {
        let owes = out.state.count;
        let mut now = owes;
        out.of(&[Mid::DATA], |message| message.octet(2, |flags| {
            *flags = *flags & !FLAG_OOB_PEND | if owes == 1 { FLAG_OOB_PEND } else { 0 };
            now = u32::from(*flags & FLAG_OOB_PRES != 0);
        }));
        out.state.count = now;
    })] ["SDP-9.5.3-5", "SDP-6.1.2-3"] "sets OOB_PEND too late, in the Data after the Out-Of-Band byte";
    "sdp.oob-pend-left-out" [SdpOut(|out| out.each(|message| message.octet(2, |flags| *flags &= !FLAG_OOB_PEND)))]
        ["SDP-9.5.3-5", "SDP-6.1.2-3"] "never sets OOB_PEND";
    "sdp.pipelined-src-avail-with-payload" [SdpOut(|out| out.of(&[Mid::SRC_AVAIL], |message| if message.payload.is_none() {
        message.head.extend(PAYLOAD);
        message.resize(message.head.len());
    }))] ["SDP-9.2-3", "SDP-11.3-7", "SDP-11-13", "SDP-6.3.2-2", "SDP-12-15", "SDP-12-17"] "sends a SrcAvail with payload in Pipelined Mode";
    "sdp.rd-compl-before-read" [SdpOut(|out| match out.out.first() {
        Some(Output::Read { len, .. }) => {
            let compl = out.compose(Mid::RDMA_RD_COMPL, &len.to_be_bytes());
            out.out.insert(0, compl);
        }
        _ => out.suppress(Mid::RDMA_RD_COMPL),
    })] ["SDP-9.2-12", "SDP-9.2-1", "SDP-6.3.7.1-1", "SDP-9.2-11", "SDP-9.2-34", "SDP-9.2-36", "SDP-9.5.4-8", "SDP-9.2-15"] "sends the RdmaRdCompl before the read";
    "sdp.rd-compl-left-out" [SdpOut(|out| out.suppress(Mid::RDMA_RD_COMPL))]
        ["SDP-9.2-11", "SDP-9.2-1", "SDP-9.5.4-7"] "sends no RdmaRdCompl after a read";
    "sdp.rd-compl-unrequested" [SdpOut(|out| add(out, &[(Mid::RDMA_RD_COMPL, &[0, 0, 0, 9])]))]
        ["SDP-9.2-1", "SDP-8.2.2-10", "SDP-9.2-15"] "sends an RdmaRdCompl without a SrcAvail";
    "sdp.reads-other-stag" [SdpOut(|out| if let Some(Output::Read { remote, .. }) = out.out.first_mut() {
        remote.stag ^= 0x00ff_ff00;
    })] ["SDP-6.3.2.3-2", "SDP-9.2-1"] "reads from an STag that is not the STag of the SrcAvail";
    "sdp.send-sm-left-out" [SdpOut(|out| out.suppress(Mid::SEND_SM))]
        ["SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-9.5.4-9", "SDP-9-8", "SDP-9-9"] "sends no SendSm for a SrcAvail that it does not read or that was revoked";
    "sdp.send-sm-twice" [SdpOut(|out| twice(out, Mid::SEND_SM))]
        ["SDP-9.2-18", "SDP-9.5.4-9", "SDP-8.2.2-10"] "sends the SendSm for a SrcAvail twice";
    "sdp.send-sm-unrequested" [SdpOut(|out| add(out, &[(Mid::SEND_SM, &[])]))]
        ["SDP-9.2-18", "SDP-8.2.2-10"] "sends a SendSm without a SrcAvail";
    "sdp.sink-avail-after-cancel" [SdpOut(|out| out.follow(Mid::SINK_AVAIL_CANCEL, &[(Mid::SINK_AVAIL, &SINK_AH)]))]
        ["SDP-9.5.5-11"] "sends a SinkAvail while an earlier SinkAvailCancel is not yet Processed";
    "sdp.sink-avail-cancel-twice" [SdpOut(|out| twice(out, Mid::SINK_AVAIL_CANCEL))]
        ["SDP-9.5.5-11"] "sends a second SinkAvailCancel before the first is Processed";
    "sdp.sink-avail-in-combined" [SdpOut(|out| add(out, &[(Mid::SINK_AVAIL, &SINK_AH)]))]
        ["SDP-12-20", "SDP-11-8", "SDP-9.4-2", "SDP-12-17", "SDP-8.1.1-29", "SDP-8.1.1-39", "SDP-11-2", "SDP-12-23", "SDP-11-20", "SDP-12-21", "SDP-12.5-16", "SDP-12.5-9"]
        "sends a SinkAvail in Combined Mode";
    "sdp.sink-cancel-ack-left-out" [SdpOut(|out| out.suppress(Mid::SINK_CANCEL_ACK))]
        ["SDP-6.3.11-1", "SDP-9.5.5-10"] "sends no SinkCancelAck after a SinkAvailCancel";
    "sdp.sink-cancel-ack-twice" [SdpOut(|out| twice(out, Mid::SINK_CANCEL_ACK))]
        ["SDP-9.5.5-10"] "answers a SinkAvailCancel with two SinkCancelAcks";
    "sdp.sink-cancel-ack-unrequested" [SdpOut(|out| add(out, &[(Mid::SINK_CANCEL_ACK, &[])]))]
        ["SDP-9.5.5-10", "SDP-9.5.5-4", "SDP-8.2.2-10"] "sends a SinkCancelAck without a SinkAvailCancel";
    "sdp.speaks-before-hello-ack" [SdpOut(|out| if out.mid() == Some(Mid::HELLO) {
        out.state.count = 1;
    } else if let Some(Output::Start(start)) = out.out.first_mut().filter(|_| out.state.count == 1) {
        // Without this flag, an MPA Responder would hold back the message until an FPDU arrives.
        start.speaks_first = true;
        let early = out.compose(Mid::DATA, &[]);
        out.out.push(early);
    })] ["SDP-8.1.1-13", "SDP-8.1.1-4"] "sends a message as Connecting Peer before it has a HelloAck";
    "sdp.src-avail-after-cancel" [SdpOut(|out| out.follow(Mid::SRC_AVAIL_CANCEL, &[(Mid::SRC_AVAIL, &SRC_AH)]))]
        ["SDP-9.5.4-10"] "sends a SrcAvail while an earlier SrcAvailCancel is not yet Processed";
    "sdp.src-avail-after-dis-conn" [SdpOut(|out| {
        out.follow(Mid::DIS_CONN, &[(Mid::SRC_AVAIL, &[&SRC_AH[..], &PAYLOAD].concat())]);
    })] ["SDP-8.2.1-9", "SDP-6.2.3-2", "SDP-8.2.2-10"] "sends a SrcAvail after a DisConn";
    "sdp.src-avail-in-buffered" [SdpOut(|out| if out.is_change_to(Mode::Buffered) {
        out.follow(Mid::MODE_CHANGE, &[(Mid::SRC_AVAIL, &[&SRC_AH[..], &PAYLOAD].concat())]);
    })] ["SDP-12-18", "SDP-11-6", "SDP-11.1-2", "SDP-12-17", "SDP-12-15", "SDP-11-16"] "sends a SrcAvail in Buffered Mode";
    "sdp.src-avail-twice" [SdpOut(|out| twice(out, Mid::SRC_AVAIL))]
        ["SDP-11.2-7", "SDP-11-7", "SDP-12.4-10", "SDP-11.2-6"] "sends a second SrcAvail in Combined Mode while the first is open";
    "sdp.susp-comm-ack-unrequested" [SdpOut(|out| add(out, &[(Mid::SUSP_COMM_ACK, &[])]))]
        ["SDP-8.2.2-10", "SDP-6.5.2-2"] "sends a SuspCommAck without a SuspComm";
    "sdp.transaction-in-combined" [SdpOut(|out| add(out, &[(Mid::SINK_AVAIL, &[&SINK_AH[..], &PAYLOAD].concat())]))]
        ["SDP-9.4-6", "SDP-9.4-2", "SDP-12-20", "SDP-12-2", "SDP-11-8", "SDP-12-17", "SDP-8.1.1-29", "SDP-8.1.1-39", "SDP-11-2", "SDP-12-23", "SDP-11-20", "SDP-12-21", "SDP-12.5-16", "SDP-12.5-9"]
        "sends a SinkAvail with payload in Combined Mode";
    "sdp.updates-left-out" [SdpOut(|out| if !out.has_payload() { out.suppress(Mid::DATA); })]
        ["SDP-10.4-1", "SDP-10.5-9", "SDP-10.5-10"] "never sends Data without payload, whatever credit the peer has left";
    "sdp.wr-compl-after-mode-change" [SdpOut(|out| {
        if out.mid() == Some(Mid::RDMA_WR_COMPL) {
            out.state.count = 1;
        } else if out.is_change_to(Mode::Combined) && out.state.count == 1 {
            out.follow(Mid::MODE_CHANGE, &[(Mid::RDMA_WR_COMPL, &[0, 0, 0, 9])]);
        }
    })] ["SDP-12.4-7", "SDP-12.5-2", "SDP-9.3-1", "SDP-12.5-19", "SDP-8.2.2-10"] "sends an RdmaWrCompl after the ModeChange out of Pipelined Mode";
    "sdp.wr-compl-left-out" [SdpOut(|out| out.suppress(Mid::RDMA_WR_COMPL))]
        ["SDP-9.3-8", "SDP-9.5.5-5", "SDP-9.5.5-8"] "sends no RdmaWrCompl after a write";
    "sdp.wr-compl-twice" [SdpOut(|out| twice(out, Mid::RDMA_WR_COMPL))]
        ["SDP-9.3-8", "SDP-9.3-1", "SDP-8.2.2-10", "SDP-6.3.4-1"] "answers a SinkAvail with two RdmaWrCompls";
    "sdp.wr-compl-unrequested" [SdpOut(|out| add(out, &[(Mid::RDMA_WR_COMPL, &[0, 0, 0, 9])]))]
        ["SDP-9.3-1", "SDP-8.2.2-10"] "sends an RdmaWrCompl without a SinkAvail";
    "sdp.writes-again" [SdpOut(|out| {
        if let Some(Output::Write { data, remote, .. }) = out.out.first() {
            let again = Output::Write { op: UNKNOWN_OP, data: *data, remote: *remote };
            out.state.held = Some(again);
        }
        out.of(&[Mid::RDMA_WR_COMPL], |message| *message.invalidate = None);
        if out.mid() == Some(Mid::DIS_CONN) {
            let again = out.state.held.take();
            out.out.splice(0..0, again);
        }
    })] ["SDP-9.3-9"] "sends an RdmaWrCompl that does not invalidate the STag, and repeats the last write right before the DisConn";
    "sdp.writes-other-stag" [SdpOut(|out| if let Some(Output::Write { remote, .. }) = out.out.first_mut() {
        remote.stag ^= 0x00ff_ff00;
    })] ["SDP-6.3.3.3-2", "SDP-9.3-1", "SDP-6.3.4-1"] "writes to an STag that is not the STag of the SinkAvail";
}
