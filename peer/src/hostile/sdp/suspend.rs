//! Deviations in socket duplication and managed failover (sections 6.5, 13 and 14.2 of the SDP
//! draft). The deviations concern SuspComm, SuspCommAck, later messages, and the new connection
//! that replaces the previous connection.

use weft_core::wire::sdp::Mid;

use crate::hostile::context::sdp::{PAYLOAD, SdpOut, UNKNOWN_OP, ignore};
use crate::hostile::context::segment::set_word;
use crate::sdp::{Event, Output};
use crate::verbs::RemoteAddress;

/// Offset of MSeqAck in the BSDH.
const MSEQ_ACK: usize = 12;
/// Offsets of the fields of SuspCH.
const CONSTANT1: usize = 16;
const PORT: usize = 20;
const CONSTANT2: usize = 22;
/// SuspCH with port 7000.
const SUSP_CH: [u8; 8] = [0, 0, 0, 0, 0x1b, 0x58, 0, 1];

/// After the first message with this MID, sends the last payload again, in an RDMA Write to an STag
/// that does not exist.
fn write_after(out: &mut SdpOut<'_>, mid: Mid) {
    if let Some(Output::Send { payload: Some(piece), .. }) = out.out.first() {
        out.state.piece = Some(*piece);
    }
    if out.mid() == Some(mid)
        && let Some(data) = out.state.piece
        && out.once()
    {
        let remote = RemoteAddress { stag: 0x5511, tagged_offset: 0 };
        out.out.push(Output::Write { op: UNKNOWN_OP, data, remote });
    }
}

fn is_reconnection(out: &SdpOut<'_>) -> bool {
    matches!(out.out.first(), Some(Output::Event(Event::Suspended { reconnect: Some(_) })))
}

deviations! {
    "sdp.susp-comm-not-repeated" [SdpOut(|out| {
        // A SuspComm that crossed the peer's SuspComm is void and must be repeated. This deviation
        // drops the repeated SuspComm.
        if out.mid() == Some(Mid::SUSP_COMM) && !out.once() {
            out.suppress(Mid::SUSP_COMM);
        }
    })] ["SDP-13.1.2-3"] "does not repeat a SuspComm that crossed the peer's SuspComm";
    "sdp.data-after-susp-comm" [SdpOut(|out| out.follow(Mid::SUSP_COMM, &[(Mid::DATA, &PAYLOAD)]))]
        ["SDP-13.1.1-8", "SDP-13.1-2"] "sends payload after a SuspComm";
    "sdp.data-after-susp-comm-ack" [SdpOut(|out| out.follow(Mid::SUSP_COMM_ACK, &[(Mid::DATA, &PAYLOAD)]))]
        ["SDP-13.1.1-12", "SDP-6.5.2-2"] "sends payload after a SuspCommAck";
    "sdp.ignores-susp-comm" [SdpArrived(|arrived| ignore(arrived, Mid::SUSP_COMM))]
        ["SDP-13.1-1", "SDP-13.1.1-11", "SDP-13.1.2-2"] "ignores a SuspComm";
    "sdp.reconnects-elsewhere" [SdpOut(|out| if let Some(Output::Event(Event::Suspended { reconnect: Some(port) })) = out.out.first_mut() {
        *port ^= 0x100;
    })] ["SDP-13.1.1-16", "SDP-13.1.1-7", "SDP-6.5.1.1-1"] "connects to another port than the port in the SuspComm";
    "sdp.reconnects-with-mseq" [SdpOut(|out| if out.mid() == Some(Mid::HELLO) && !out.once() {
        out.of(&[Mid::HELLO], |message| message.word(8, |mseq| mseq + 7));
    } else if matches!(out.out.first(), Some(Output::Event(Event::Suspended { .. }))) {
        out.state.count = 1;
    })] ["SDP-13.1.1-19", "SDP-6.2.1-7"] "does not restart MSeq in the Hello of the new connection after a suspension";
    "sdp.stays-away" [SdpOut(|out| if is_reconnection(out) { out.out.clear() })]
        ["SDP-13.1-1", "SDP-13.1.1-7", "SDP-13.1.1-16"] "does not open the new connection after a SuspComm";
    "sdp.stays-connected" [SdpOut(|out| match out.out.first() {
        Some(Output::Send { .. }) if out.mid() == Some(Mid::SUSP_COMM_ACK) => out.state.count = 1,
        Some(Output::Disconnect { .. }) if out.state.count == 1 => out.out.clear(),
        _ => {}
    })] ["SDP-13.1.1-15"] "leaves TCP open after a SuspCommAck";
    "sdp.susp-comm-ack-after-own" [SdpOut(|out| out.follow(Mid::SUSP_COMM, &[(Mid::SUSP_COMM_ACK, &[])]))]
        ["SDP-13.1.2-1", "SDP-13.1.1-8", "SDP-13.1-2"] "sends a SuspCommAck right after it has sent a SuspComm";
    "sdp.susp-comm-ack-early" [
        SdpArrived(|arrived| arrived.state.count = u32::from(arrived.state.count == 1 || arrived.is(Mid::SUSP_COMM))),
        SdpOut(|out| if out.mid() == Some(Mid::RDMA_RD_COMPL) && out.state.count == 1 {
            out.state.count = 2;
            out.follow(Mid::RDMA_RD_COMPL, &[(Mid::SUSP_COMM_ACK, &[])]);
            out.out.reverse();
        } else if out.state.count == 2 {
            out.suppress(Mid::SUSP_COMM_ACK);
        }),
    ] ["SDP-13.1.1-10", "SDP-13-2", "SDP-13.1.1-12", "SDP-6.5.2-2"] "sends a SuspCommAck before the RdmaRdCompl of a read";
    "sdp.susp-comm-ack-left-out" [SdpOut(|out| out.suppress(Mid::SUSP_COMM_ACK))]
        ["SDP-13.1.1-11", "SDP-13.1-1"] "sends no SuspCommAck after a SuspComm";
    "sdp.susp-comm-ack-long" [SdpOut(|out| out.of(&[Mid::SUSP_COMM_ACK], |message| message.resize(20)))]
        ["SDP-6.5.2-1", "SDP-6.1.1-16", "SDP-6.1.1-1"] "sends four bytes after the header of a SuspCommAck";
    "sdp.susp-comm-ack-lost-in-reset" [SdpOut(|out| if out.mid() == Some(Mid::SUSP_COMM_ACK) {
        out.out = vec![Output::Disconnect { abortive: true }];
    })] ["SDP-13.1.1-14", "SDP-13.1.1-15", "SDP-13.1.1-11"] "resets TCP before it sends the SuspCommAck";
    "sdp.susp-comm-ack-unsolicited" [SdpOut(|out| out.of(&[Mid::SUSP_COMM_ACK], |message| *message.solicited = false))]
        ["SDP-14.2-3"] "sends a SuspCommAck without Solicited Event";
    "sdp.susp-comm-constant1" [SdpOut(|out| out.of(&[Mid::SUSP_COMM], |message| message.word(CONSTANT1, |_| 1)))]
        ["SDP-6.5.1.2-1"] "sends a SuspComm with Constant1 1";
    "sdp.susp-comm-constant2" [SdpOut(|out| out.of(&[Mid::SUSP_COMM], |message| message.half(CONSTANT2, 2)))]
        ["SDP-6.5.1.3-1"] "sends a SuspComm with Constant2 2";
    "sdp.susp-comm-cut" [SdpOut(|out| out.of(&[Mid::SUSP_COMM], |message| message.resize(20)))]
        ["SDP-6.5.1-1", "SDP-6.1.1-15", "SDP-6.1.1-1"] "sends a SuspComm without a port";
    "sdp.susp-comm-early" [SdpOut(|out| if matches!(out.out.first(), Some(Output::Read { .. })) && out.once() {
        let mut early = out.compose(Mid::SUSP_COMM, &SUSP_CH);
        if let Output::Send { head, .. } = &mut early {
            set_word(head, MSEQ_ACK, out.state.mseq_ack);
        }
        out.out.push(early);
    })] ["SDP-13.1.1-5", "SDP-13-2", "SDP-13.1-2"] "sends a SuspComm while a read is outstanding";
    "sdp.susp-comm-fields-exchanged" [SdpOut(|out| out.of(&[Mid::SUSP_COMM], |message| {
        let port = message.half_at(PORT);
        message.half(PORT, 1);
        message.half(CONSTANT2, port);
    }))] ["SDP-6.5.1-2", "SDP-6.5.1.3-1"] "sends a SuspComm with the port after Constant2";
    "sdp.susp-comm-port-0" [SdpOut(|out| out.of(&[Mid::SUSP_COMM], |message| message.half(PORT, 0)))]
        ["SDP-13.1.1-6", "SDP-13.1-2"] "sends a SuspComm with port 0";
    "sdp.susp-comm-unsolicited" [SdpOut(|out| out.of(&[Mid::SUSP_COMM], |message| *message.solicited = false))]
        ["SDP-14.2-2"] "sends a SuspComm without Solicited Event";
    "sdp.trusts-advertisement-of-before" [
        SdpArrived(|arrived| arrived.note(Mid::SRC_AVAIL)),
        SdpOut(|out| match out.out.first_mut() {
            Some(Output::Event(Event::Resumed(_))) => out.state.count = 1,
            Some(Output::Read { remote, .. }) if out.state.count == 1 => {
                remote.stag = out.state.stags.first().copied().unwrap_or(remote.stag);
            }
            _ => {}
        }),
    ] ["SDP-13-3", "SDP-6.3.2.3-2", "SDP-9.2-1"] "reads from an STag that was advertised on the previous connection";
    "sdp.write-after-susp-comm" [SdpOut(|out| write_after(out, Mid::SUSP_COMM))]
        ["SDP-13.1.1-9", "SDP-13.1-2"] "sends a write after a SuspComm";
    "sdp.write-after-susp-comm-ack" [SdpOut(|out| write_after(out, Mid::SUSP_COMM_ACK))]
        ["SDP-13.1.1-13", "SDP-6.5.2-2"] "sends a write after a SuspCommAck";
}
