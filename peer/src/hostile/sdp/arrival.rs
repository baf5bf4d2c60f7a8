//! Deviations in the processing of received SDP messages.

use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, FLAG_REQ_PIPE, Mid, Mode};

use crate::hostile::context::sdp::{SdpArrived, VERSION, ignore, refuse};
use crate::sdp::Violation;

/// Offsets of the lower bytes of 16-bit fields in Hello and HelloAck.
const MAX_ADVERTS: usize = 17;
const IRD: usize = 29;
const ORD: usize = 31;
const ACK_IRD: usize = 25;
const ACK_ORD: usize = 27;

/// Hides a wrong byte from the state machine. If `bad` returns true for the byte at offset `figure`
/// of a message with this MID, `good` replaces the byte.
fn fix(arrived: &mut SdpArrived<'_>, mid: Mid, figure: usize, bad: impl Fn(u8) -> bool, good: u8) {
    if arrived.is(mid) && bad(arrived.octet(figure)) {
        arrived.set_octet(figure, good);
    }
}

/// Sets a 16-bit field to 1 if its value is 0. `figure` is the offset of the lower byte of the
/// field.
fn fix_zero(arrived: &mut SdpArrived<'_>, mid: Mid, figure: usize) {
    if arrived.octet(figure - 1) == 0 {
        fix(arrived, mid, figure, |octet| octet == 0, 1);
    }
}

const HELLO: Mid = Mid::HELLO;
const ACK: Mid = Mid::HELLO_ACK;

deviations! {
    "sdp.accepts-hello-ack-loc-ird-0" [SdpArrived(|arrived| fix_zero(arrived, ACK, ACK_IRD))]
        ["SDP-8.1.1-34"] "accepts a HelloAck with LocIRD 0";
    "sdp.accepts-hello-ack-loc-ord-0" [SdpArrived(|arrived| fix_zero(arrived, ACK, ACK_ORD))]
        ["SDP-8.1.1-33"] "accepts a HelloAck with LocORD 0";
    "sdp.accepts-hello-ack-majv" [SdpArrived(|arrived| fix(arrived, ACK, VERSION, |octet| octet & 15 != 1, 0x11))]
        ["SDP-6.2.2.1-2", "SDP-8.1.1-31"] "accepts a HelloAck with any MajV";
    "sdp.accepts-hello-ack-max-adverts-0" [SdpArrived(|arrived| fix_zero(arrived, ACK, MAX_ADVERTS))]
        ["SDP-6.2.2.3-2", "SDP-8.1.1-32"] "accepts a HelloAck with MaxAdverts 0";
    "sdp.accepts-hello-loc-ird-0" [SdpArrived(|arrived| fix_zero(arrived, HELLO, IRD))]
        ["SDP-8.1.1-16"] "accepts a Hello with LocIRD 0";
    "sdp.accepts-hello-loc-ord-0" [SdpArrived(|arrived| fix_zero(arrived, HELLO, ORD))]
        ["SDP-8.1.1-17"] "accepts a Hello with LocORD 0";
    "sdp.accepts-hello-majv" [SdpArrived(|arrived| fix(arrived, HELLO, VERSION, |octet| octet & 15 != 1, 0x11))]
        ["SDP-6.2.1.1-2", "SDP-8.1.1-14"] "accepts a Hello with any MajV";
    "sdp.accepts-hello-max-adverts-0" [SdpArrived(|arrived| fix_zero(arrived, HELLO, MAX_ADVERTS))]
        ["SDP-6.2.1.3-2", "SDP-8.1.1-15"] "accepts a Hello with MaxAdverts 0";
    "sdp.exceeds-buffer-size" [SdpArrived(|arrived| {
        let at = if arrived.is(HELLO) { 24 } else { 20 };
        if arrived.is(HELLO) || arrived.is(ACK) {
            arrived.set_word(at, arrived.word(at) + 500);
        }
    })] ["SDP-10-6", "SDP-9.1-1", "SDP-10.6-3"] "sends messages that are 500 bytes longer than the peer's Private Buffers";
    "sdp.exceeds-max-adverts" [SdpArrived(|arrived| if arrived.is(HELLO) || arrived.is(ACK) {
        arrived.set_octet(MAX_ADVERTS, 200);
    })] ["SDP-11.3-23", "SDP-6.2.1.3-3", "SDP-6.2.2.3-3"] "opens more advertisements than MaxAdverts of the peer allows";
    "sdp.loses-long-data" [SdpArrived(|arrived| if arrived.is(Mid::DATA) && arrived.octets.len() > 260 {
        arrived.octets.truncate(16);
        arrived.set_word(4, 16);
    })] ["SDP-8.2-1"] "loses the payload of Data if the payload has more than 244 bytes";
    "sdp.ignores-later-src-avails" [SdpArrived(|arrived| if arrived.is(Mid::SRC_AVAIL) {
        arrived.state.count += 1;
        if arrived.state.count > 2 {
            ignore(arrived, Mid::SRC_AVAIL);
        }
    })] ["SDP-8.2-1"] "ignores all SrcAvails on a connection except the first two";
    "sdp.forgets-acknowledgements" [SdpArrived(|arrived| if arrived.is(Mid::DATA) && arrived.octets.len() == 16 {
        arrived.set_word(12, 0);
    })] ["SDP-10.2-2", "SDP-6.3.1-4", "SDP-10.3-4"] "ignores the MSeqAck of Data without payload, and therefore gains no credit";
    "sdp.ignores-abort-conn" [SdpArrived(|arrived| ignore(arrived, Mid::ABORT_CONN))]
        ["SDP-8.2.2-6", "SDP-8.2.2-7", "SDP-8.2.2-12"] "ignores an AbortConn";
    "sdp.ignores-ch-rcv-buf" [SdpArrived(|arrived| ignore(arrived, Mid::CH_RCV_BUF))]
        ["SDP-10.6-11", "SDP-10.6.1-2"] "ignores a ChRcvBuf";
    "sdp.ignores-data" [SdpArrived(|arrived| ignore(arrived, Mid::DATA))]
        ["SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3", "SDP-11.3-3", "SDP-9.5.5-13"] "loses the payload of Data";
    "sdp.ignores-dis-conn" [SdpArrived(|arrived| ignore(arrived, Mid::DIS_CONN))]
        ["SDP-8.2.1-21"] "ignores a DisConn";
    "sdp.ignores-mode-change" [SdpArrived(|arrived| ignore(arrived, Mid::MODE_CHANGE))]
        ["SDP-6.3.8-3", "SDP-12-19", "SDP-6.3.8.1-1", "SDP-6.3.8.1-2", "SDP-12.2-2", "SDP-12.5-17", "SDP-12.5-20", "SDP-12.5-21", "SDP-12.5-24", "SDP-11-5", "SDP-12.4-14", "SDP-12.5-10", "SDP-12.5-11"]
        "ignores a ModeChange";
    "sdp.ignores-mode-change-to-combined" [SdpArrived(|arrived| if arrived.is_change_to(Mode::Combined) {
        arrived.ignore();
    })] ["SDP-12.5-24", "SDP-12-21", "SDP-12.4-14", "SDP-12.5-9", "SDP-12.5-10", "SDP-12.5-11"] "ignores a ModeChange out of Pipelined Mode";
    "sdp.ignores-rd-compl" [SdpArrived(|arrived| ignore(arrived, Mid::RDMA_RD_COMPL))]
        ["SDP-9.2-17", "SDP-9.5.4-11"] "ignores an RdmaRdCompl";
    "sdp.ignores-send-sm" [SdpArrived(|arrived| ignore(arrived, Mid::SEND_SM))]
        ["SDP-9.2-33", "SDP-9.2-31", "SDP-9.2-32", "SDP-9.2-35", "SDP-9.5.2.1-2", "SDP-9.5.2.1-6", "SDP-11.3-9", "SDP-9.5.4-12", "SDP-11-4"]
        "ignores a SendSm";
    "sdp.ignores-sink-avail" [SdpArrived(|arrived| ignore(arrived, Mid::SINK_AVAIL))]
        ["SDP-9.3-6", "SDP-11.3-15", "SDP-9.4-1", "SDP-9.5.1-9", "SDP-9.5.1-14", "SDP-11.3-12", "SDP-11.3-16"] "ignores a SinkAvail";
    "sdp.ignores-sink-avail-cancel" [SdpArrived(|arrived| ignore(arrived, Mid::SINK_AVAIL_CANCEL))]
        ["SDP-9.5.5-2", "SDP-6.3.10-2", "SDP-6.3.11-1", "SDP-9.5.5-10"] "ignores a SinkAvailCancel";
    "sdp.ignores-sink-avail-payload" [SdpArrived(|arrived| if arrived.is(Mid::SINK_AVAIL) {
        arrived.octets.truncate(36);
        arrived.set_word(4, 36);
    })] ["SDP-6.3.3-3", "SDP-9.5.1-15", "SDP-11.2-5", "SDP-11.3-6"] "loses the payload of a SinkAvail";
    "sdp.ignores-src-avail" [SdpArrived(|arrived| ignore(arrived, Mid::SRC_AVAIL))]
        ["SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-9-8", "SDP-11.2-4", "SDP-11.3-4"] "ignores a SrcAvail";
    "sdp.ignores-src-avail-cancel" [SdpArrived(|arrived| ignore(arrived, Mid::SRC_AVAIL_CANCEL))]
        ["SDP-9.5.4-2", "SDP-6.3.9-2", "SDP-9.5.4-9", "SDP-9.5.4-3", "SDP-9.5.4-6"] "ignores a SrcAvailCancel";
    "sdp.ignores-wr-compl" [SdpArrived(|arrived| ignore(arrived, Mid::RDMA_WR_COMPL))]
        ["SDP-11.3-5", "SDP-9.5.5-12"] "ignores an RdmaWrCompl";
    "sdp.overlooks-invalidated-stag" [SdpOverlooks(|violation| matches!(violation, Violation::Invalidated { .. }))]
        ["SDP-9.2-29", "SDP-9.2-28", "SDP-9.3-11", "SDP-9.3-12", "SDP-8.2.2-8"] "continues after an RdmaRdCompl or RdmaWrCompl that invalidates the wrong STag";
    "sdp.overlooks-length" [SdpOverlooks(|violation| matches!(violation, Violation::Length { .. }))]
        ["SDP-9.2-21", "SDP-8.2.2-10", "SDP-8.2.2-8"] "continues after an RdmaRdCompl or RdmaWrCompl for more bytes than were advertised";
    "sdp.overlooks-malformed" [SdpOverlooks(|violation| matches!(violation, Violation::Malformed(_)))]
        ["SDP-8.2.2-11", "SDP-8.2.2-8"] "continues after a malformed message";
    "sdp.overlooks-unmatched" [SdpOverlooks(|violation| matches!(violation, Violation::Unmatched(_) | Violation::Resize { .. }))]
        ["SDP-8.2.2-10", "SDP-8.2.2-8"] "continues after an RdmaRdCompl, RdmaWrCompl or SendSm without an advertisement, and after a ChRcvBufAck without a ChRcvBuf";
    "sdp.overlooks-mode" [SdpOverlooks(|violation| matches!(violation, Violation::Mode { .. } | Violation::Transition { .. }))]
        ["SDP-12-7", "SDP-11-16", "SDP-11-17", "SDP-11-18", "SDP-11-19", "SDP-11-20", "SDP-11-21", "SDP-11-22", "SDP-11-23", "SDP-11-24", "SDP-8.2.2-8"]
        "continues after a message that the Mode does not allow";
    "sdp.refuses-data-after-dis-conn" [
        SdpOut(|out| out.state.count |= u32::from(out.mid() == Some(Mid::DIS_CONN))),
        SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| it.state.count == 1 && it.octets.len() > 16)),
    ] ["SDP-8.2.1-10", "SDP-8.2.1-3"] "rejects payload that arrives after it has sent a DisConn";
    "sdp.refuses-flags" [SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| it.octet(2) & 0xf8 != 0))]
        ["SDP-6.1.2-6"] "rejects Data with reserved bits in Flags";
    "sdp.refuses-hello-ack-minv" [SdpArrived(|arrived| refuse(arrived, ACK, |it| it.octet(VERSION) >> 4 != 1))]
        ["SDP-6.2.2.2-2", "SDP-8.1.1-35"] "rejects a HelloAck whose MinV is not 1";
    "sdp.refuses-hello-ack-mseq" [SdpArrived(|arrived| refuse(arrived, ACK, |it| it.word(8) != 0))]
        ["SDP-6.2.2-8"] "rejects a HelloAck whose MSeq is not 0";
    "sdp.refuses-hello-ack-mseq-ack" [SdpArrived(|arrived| refuse(arrived, ACK, |it| it.word(12) != 0))]
        ["SDP-6.2.2-10"] "rejects a HelloAck whose MSeqAck is not 0";
    "sdp.refuses-hello-ack-rsvd" [SdpArrived(|arrived| refuse(arrived, ACK, |it| it.octet(18) != 0))]
        ["SDP-6.2.2.7-2"] "rejects a HelloAck whose Rsvd is not 0";
    "sdp.refuses-hello-minv" [SdpArrived(|arrived| refuse(arrived, HELLO, |it| it.octet(VERSION) >> 4 != 1))]
        ["SDP-6.2.1.2-2", "SDP-8.1.1-19"] "rejects a Hello whose MinV is not 1";
    "sdp.refuses-hello-mseq" [SdpArrived(|arrived| refuse(arrived, HELLO, |it| it.word(8) != 0))]
        ["SDP-6.2.1-8"] "rejects a Hello whose MSeq is not 0";
    "sdp.refuses-hello-mseq-ack" [SdpArrived(|arrived| refuse(arrived, HELLO, |it| it.word(12) != 0))]
        ["SDP-6.2.1-10"] "rejects a Hello whose MSeqAck is not 0";
    "sdp.refuses-hello-rsvd" [SdpArrived(|arrived| refuse(arrived, HELLO, |it| it.octet(18) != 0))]
        ["SDP-6.2.1.8-2"] "rejects a Hello whose Rsvd is not 0";
    "sdp.refuses-odd-sink-avail" [SdpArrived(|arrived| refuse(arrived, Mid::SINK_AVAIL, |it| it.word(28) & 1 != 0))]
        ["SDP-6.3.3.2-2"] "rejects a SinkAvail with an odd VA";
    "sdp.refuses-odd-src-avail" [SdpArrived(|arrived| refuse(arrived, Mid::SRC_AVAIL, |it| it.word(28) & 1 != 0))]
        ["SDP-6.3.2.2-1"] "rejects a SrcAvail with an odd VA";
    "sdp.refuses-oob-after-bytes" [SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| {
        it.octet(2) & FLAG_OOB_PRES != 0 && it.octets.len() > 17
    }))] ["SDP-6.1.2-9"] "rejects Data with ordinary bytes before the Out-Of-Band byte";
    "sdp.refuses-oob-pend-elsewhere" [SdpArrived(|arrived| for mid in [Mid::SRC_AVAIL, Mid::SINK_AVAIL, Mid::RDMA_RD_COMPL, Mid::MODE_CHANGE] {
        refuse(arrived, mid, |it| it.octet(2) & FLAG_OOB_PEND != 0);
    })] ["SDP-6.1.2-10"] "rejects OOB_PEND in messages other than Data";
    "sdp.refuses-oob-pend-without-octet" [SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| {
        it.octet(2) & (FLAG_OOB_PEND | FLAG_OOB_PRES) == FLAG_OOB_PEND
    }))] ["SDP-6.1.2-11", "SDP-9.5.3-7"] "rejects Data that has OOB_PEND set but contains no Out-Of-Band byte";
    "sdp.refuses-req-pipe-elsewhere" [SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| it.octet(2) & FLAG_REQ_PIPE != 0))]
        ["SDP-6.1.2-19", "SDP-6.1.2-18"] "rejects Data with REQ_PIPE";
    "sdp.refuses-mode-change-rsvd" [SdpArrived(|arrived| refuse(arrived, Mid::MODE_CHANGE, |it| it.octet(17) != 0))]
        ["SDP-6.3.8.3-2"] "rejects a ModeChange whose Rsvd is not 0";
}
