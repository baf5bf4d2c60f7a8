//! Deviations in what is made of messages that arrive.

use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, FLAG_REQ_PIPE, Mid, Mode};

use super::said::VERSION;
use crate::hostile::sdp::SdpArrived;
use crate::sdp::Violation;

/// Where fields of Hello and HelloAck stand.
const MAX_ADVERTS: usize = 17;
const IRD: usize = 29;
const ORD: usize = 31;
const ACK_IRD: usize = 25;
const ACK_ORD: usize = 27;

/// Puts an octet right that is not good in a message of this MID.
fn mend(arrived: &mut SdpArrived<'_>, mid: Mid, figure: usize, bad: impl Fn(u8) -> bool, good: u8) {
    if arrived.is(mid) && bad(arrived.octet(figure)) {
        arrived.set_octet(figure, good);
    }
}

/// Puts a 16-bit field right that is zero; `figure` is its lower octet.
fn mend_zero(arrived: &mut SdpArrived<'_>, mid: Mid, figure: usize) {
    if arrived.octet(figure - 1) == 0 {
        mend(arrived, mid, figure, |octet| octet == 0, 1);
    }
}

fn refuse(arrived: &mut SdpArrived<'_>, mid: Mid, bad: impl Fn(&SdpArrived<'_>) -> bool) {
    if arrived.is(mid) && bad(arrived) {
        arrived.refuse();
    }
}

fn ignore(arrived: &mut SdpArrived<'_>, mid: Mid) {
    if arrived.is(mid) {
        arrived.ignore();
    }
}

const HELLO: Mid = Mid::HELLO;
const ACK: Mid = Mid::HELLO_ACK;

deviations! {
    "sdp.accepts-hello-ack-loc-ird-0" [SdpArrived(|arrived| mend_zero(arrived, ACK, ACK_IRD))]
        ["SDP-8.1.1-34"] "A HelloAck with LocIRD 0 is taken.";
    "sdp.accepts-hello-ack-loc-ord-0" [SdpArrived(|arrived| mend_zero(arrived, ACK, ACK_ORD))]
        ["SDP-8.1.1-33"] "A HelloAck with LocORD 0 is taken.";
    "sdp.accepts-hello-ack-majv" [SdpArrived(|arrived| mend(arrived, ACK, VERSION, |octet| octet & 15 != 1, 0x11))]
        ["SDP-6.2.2.1-2", "SDP-8.1.1-31"] "A HelloAck is taken whatever its MajV.";
    "sdp.accepts-hello-ack-max-adverts-0" [SdpArrived(|arrived| mend_zero(arrived, ACK, MAX_ADVERTS))]
        ["SDP-6.2.2.3-2", "SDP-8.1.1-32"] "A HelloAck with MaxAdverts 0 is taken.";
    "sdp.accepts-hello-loc-ird-0" [SdpArrived(|arrived| mend_zero(arrived, HELLO, IRD))]
        ["SDP-8.1.1-16"] "A Hello with LocIRD 0 is taken.";
    "sdp.accepts-hello-loc-ord-0" [SdpArrived(|arrived| mend_zero(arrived, HELLO, ORD))]
        ["SDP-8.1.1-17"] "A Hello with LocORD 0 is taken.";
    "sdp.accepts-hello-majv" [SdpArrived(|arrived| mend(arrived, HELLO, VERSION, |octet| octet & 15 != 1, 0x11))]
        ["SDP-6.2.1.1-2", "SDP-8.1.1-14"] "A Hello is taken whatever its MajV.";
    "sdp.accepts-hello-max-adverts-0" [SdpArrived(|arrived| mend_zero(arrived, HELLO, MAX_ADVERTS))]
        ["SDP-6.2.1.3-2", "SDP-8.1.1-15"] "A Hello with MaxAdverts 0 is taken.";
    "sdp.exceeds-buffer-size" [SdpArrived(|arrived| {
        let at = if arrived.is(HELLO) { 24 } else { 20 };
        if arrived.is(HELLO) || arrived.is(ACK) {
            arrived.set_word(at, arrived.word(at) + 500);
        }
    })] ["SDP-10-6", "SDP-9.1-1", "SDP-10.6-3"] "Messages are 500 octets longer than the peer's Private Buffers.";
    "sdp.exceeds-max-adverts" [SdpArrived(|arrived| if arrived.is(HELLO) || arrived.is(ACK) {
        arrived.set_octet(MAX_ADVERTS, 200);
    })] ["SDP-11.3-23", "SDP-6.2.1.3-3", "SDP-6.2.2.3-3"] "More advertisements are open than MaxAdverts of the peer allows.";
    "sdp.forgets-acknowledgements" [SdpArrived(|arrived| if arrived.is(Mid::DATA) && arrived.octets.len() == 16 {
        arrived.set_word(12, 0);
    })] ["SDP-10.2-2", "SDP-6.3.1-4", "SDP-10.3-4"] "MSeqAck of Data without payload gives no credit.";
    "sdp.ignores-ch-rcv-buf" [SdpArrived(|arrived| ignore(arrived, Mid::CH_RCV_BUF))]
        ["SDP-10.6-11", "SDP-10.6.1-2"] "A ChRcvBuf is ignored.";
    "sdp.ignores-data" [SdpArrived(|arrived| ignore(arrived, Mid::DATA))]
        ["SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3", "SDP-11.3-3", "SDP-9.5.5-13"] "Payload of Data is lost.";
    "sdp.ignores-dis-conn" [SdpArrived(|arrived| ignore(arrived, Mid::DIS_CONN))]
        ["SDP-8.2.1-21"] "A DisConn is ignored.";
    "sdp.ignores-mode-change" [SdpArrived(|arrived| ignore(arrived, Mid::MODE_CHANGE))]
        ["SDP-6.3.8-3", "SDP-12-19", "SDP-6.3.8.1-1", "SDP-6.3.8.1-2", "SDP-12.2-2", "SDP-12.5-17", "SDP-12.5-20", "SDP-12.5-21", "SDP-12.5-24", "SDP-11-5", "SDP-12.4-14", "SDP-12.5-10", "SDP-12.5-11"]
        "A ModeChange is ignored.";
    "sdp.ignores-mode-change-to-combined" [SdpArrived(|arrived| if arrived.is_change_to(Mode::Combined) {
        arrived.ignore();
    })] ["SDP-12.5-24", "SDP-12-21", "SDP-12.4-14", "SDP-12.5-9", "SDP-12.5-10", "SDP-12.5-11"] "A ModeChange out of Pipelined Mode is ignored.";
    "sdp.ignores-rd-compl" [SdpArrived(|arrived| ignore(arrived, Mid::RDMA_RD_COMPL))]
        ["SDP-9.2-17", "SDP-9.5.4-11"] "A RdmaRdCompl is ignored.";
    "sdp.ignores-send-sm" [SdpArrived(|arrived| ignore(arrived, Mid::SEND_SM))]
        ["SDP-9.2-33", "SDP-9.2-31", "SDP-9.2-32", "SDP-9.2-35", "SDP-9.5.2.1-2", "SDP-9.5.2.1-6", "SDP-11.3-9", "SDP-9.5.4-12", "SDP-11-4"]
        "A SendSm is ignored.";
    "sdp.ignores-sink-avail" [SdpArrived(|arrived| ignore(arrived, Mid::SINK_AVAIL))]
        ["SDP-9.3-6", "SDP-11.3-15", "SDP-9.4-1", "SDP-9.5.1-9", "SDP-9.5.1-14", "SDP-11.3-12", "SDP-11.3-16"] "A SinkAvail is ignored.";
    "sdp.ignores-sink-avail-cancel" [SdpArrived(|arrived| ignore(arrived, Mid::SINK_AVAIL_CANCEL))]
        ["SDP-9.5.5-2", "SDP-6.3.10-2", "SDP-6.3.11-1", "SDP-9.5.5-10"] "A SinkAvailCancel is ignored.";
    "sdp.ignores-sink-avail-payload" [SdpArrived(|arrived| if arrived.is(Mid::SINK_AVAIL) {
        arrived.octets.truncate(36);
        arrived.set_word(4, 36);
    })] ["SDP-6.3.3-3", "SDP-9.5.1-15", "SDP-11.2-5", "SDP-11.3-6"] "The payload of a SinkAvail is lost.";
    "sdp.ignores-src-avail" [SdpArrived(|arrived| ignore(arrived, Mid::SRC_AVAIL))]
        ["SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-9-8", "SDP-11.2-4", "SDP-11.3-4"] "A SrcAvail is ignored.";
    "sdp.ignores-src-avail-cancel" [SdpArrived(|arrived| ignore(arrived, Mid::SRC_AVAIL_CANCEL))]
        ["SDP-9.5.4-2", "SDP-6.3.9-2", "SDP-9.5.4-9", "SDP-9.5.4-3", "SDP-9.5.4-6"] "A SrcAvailCancel is ignored.";
    "sdp.ignores-wr-compl" [SdpArrived(|arrived| ignore(arrived, Mid::RDMA_WR_COMPL))]
        ["SDP-11.3-5", "SDP-9.5.5-12"] "A RdmaWrCompl is ignored.";
    "sdp.overlooks-invalidated-stag" [SdpOverlooks(|violation| matches!(violation, Violation::Invalidated { .. }))]
        ["SDP-9.2-29", "SDP-9.2-28", "SDP-9.3-11", "SDP-9.3-12", "SDP-8.2.2-8"] "A completion that invalidates another STag ends nothing.";
    "sdp.overlooks-length" [SdpOverlooks(|violation| matches!(violation, Violation::Length { .. }))]
        ["SDP-9.2-21", "SDP-8.2.2-10", "SDP-8.2.2-8"] "A completion of more octets than were advertised ends nothing.";
    "sdp.overlooks-malformed" [SdpOverlooks(|violation| matches!(violation, Violation::Malformed(_)))]
        ["SDP-8.2.2-11", "SDP-8.2.2-8"] "A malformed message ends nothing.";
    "sdp.overlooks-unmatched" [SdpOverlooks(|violation| matches!(violation, Violation::Unmatched(_) | Violation::Resize { .. }))]
        ["SDP-8.2.2-10", "SDP-8.2.2-8"] "A completion without advertisement, or a ChRcvBufAck without ChRcvBuf, ends nothing.";
    "sdp.overlooks-mode" [SdpOverlooks(|violation| matches!(violation, Violation::Mode { .. } | Violation::Transition { .. }))]
        ["SDP-12-7", "SDP-11-16", "SDP-11-17", "SDP-11-18", "SDP-11-19", "SDP-11-20", "SDP-11-21", "SDP-11-22", "SDP-11-23", "SDP-11-24", "SDP-8.2.2-8"]
        "What the Mode does not allow ends nothing.";
    "sdp.refuses-data-behind-dis-conn" [
        SdpOut(|out| out.kept.count |= u32::from(out.mid() == Some(Mid::DIS_CONN))),
        SdpArrived(|arrived| {
            let closes = arrived.kept.count == 1;
            refuse(arrived, Mid::DATA, |it| closes && it.octets.len() > 16);
        }),
    ] ["SDP-8.2.1-10", "SDP-8.2.1-3"] "Payload that comes behind one's own DisConn is refused.";
    "sdp.refuses-flags" [SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| it.octet(2) & 0xf8 != 0))]
        ["SDP-6.1.2-6"] "Data with reserved bits in Flags is refused.";
    "sdp.refuses-hello-ack-minv" [SdpArrived(|arrived| refuse(arrived, ACK, |it| it.octet(VERSION) >> 4 != 1))]
        ["SDP-6.2.2.2-2", "SDP-8.1.1-35"] "A HelloAck whose MinV is not 1 is refused.";
    "sdp.refuses-hello-ack-mseq" [SdpArrived(|arrived| refuse(arrived, ACK, |it| it.word(8) != 0))]
        ["SDP-6.2.2-8"] "A HelloAck whose MSeq is not 0 is refused.";
    "sdp.refuses-hello-ack-mseq-ack" [SdpArrived(|arrived| refuse(arrived, ACK, |it| it.word(12) != 0))]
        ["SDP-6.2.2-10"] "A HelloAck whose MSeqAck is not 0 is refused.";
    "sdp.refuses-hello-ack-rsvd" [SdpArrived(|arrived| refuse(arrived, ACK, |it| it.octet(18) != 0))]
        ["SDP-6.2.2.7-2"] "A HelloAck whose Rsvd is not 0 is refused.";
    "sdp.refuses-hello-minv" [SdpArrived(|arrived| refuse(arrived, HELLO, |it| it.octet(VERSION) >> 4 != 1))]
        ["SDP-6.2.1.2-2", "SDP-8.1.1-19"] "A Hello whose MinV is not 1 is refused.";
    "sdp.refuses-hello-mseq" [SdpArrived(|arrived| refuse(arrived, HELLO, |it| it.word(8) != 0))]
        ["SDP-6.2.1-8"] "A Hello whose MSeq is not 0 is refused.";
    "sdp.refuses-hello-mseq-ack" [SdpArrived(|arrived| refuse(arrived, HELLO, |it| it.word(12) != 0))]
        ["SDP-6.2.1-10"] "A Hello whose MSeqAck is not 0 is refused.";
    "sdp.refuses-hello-rsvd" [SdpArrived(|arrived| refuse(arrived, HELLO, |it| it.octet(18) != 0))]
        ["SDP-6.2.1.8-2"] "A Hello whose Rsvd is not 0 is refused.";
    "sdp.refuses-odd-sink-avail" [SdpArrived(|arrived| refuse(arrived, Mid::SINK_AVAIL, |it| it.word(28) & 1 != 0))]
        ["SDP-6.3.3.2-2"] "A SinkAvail with an odd VA is refused.";
    "sdp.refuses-odd-src-avail" [SdpArrived(|arrived| refuse(arrived, Mid::SRC_AVAIL, |it| it.word(28) & 1 != 0))]
        ["SDP-6.3.2.2-1"] "A SrcAvail with an odd VA is refused.";
    "sdp.refuses-oob-behind-octets" [SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| {
        it.octet(2) & FLAG_OOB_PRES != 0 && it.octets.len() > 17
    }))] ["SDP-6.1.2-9"] "Data with ordinary octets in front of the Out-Of-Band octet is refused.";
    "sdp.refuses-oob-pend-elsewhere" [SdpArrived(|arrived| for mid in [Mid::SRC_AVAIL, Mid::SINK_AVAIL, Mid::RDMA_RD_COMPL, Mid::MODE_CHANGE] {
        refuse(arrived, mid, |it| it.octet(2) & FLAG_OOB_PEND != 0);
    })] ["SDP-6.1.2-10"] "OOB_PEND in another message than Data is refused.";
    "sdp.refuses-oob-pend-without-octet" [SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| {
        it.octet(2) & (FLAG_OOB_PEND | FLAG_OOB_PRES) == FLAG_OOB_PEND
    }))] ["SDP-6.1.2-11", "SDP-9.5.3-7"] "Data with OOB_PEND that does not have the octet itself is refused.";
    "sdp.refuses-req-pipe-elsewhere" [SdpArrived(|arrived| refuse(arrived, Mid::DATA, |it| it.octet(2) & FLAG_REQ_PIPE != 0))]
        ["SDP-6.1.2-19", "SDP-6.1.2-18"] "Data with REQ_PIPE is refused.";
    "sdp.refuses-mode-change-rsvd" [SdpArrived(|arrived| refuse(arrived, Mid::MODE_CHANGE, |it| it.octet(17) != 0))]
        ["SDP-6.3.8.3-2"] "A ModeChange whose Rsvd is not 0 is refused.";
}
