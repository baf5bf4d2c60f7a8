//! Deviations in Hello and HelloAck (sections 6.2.1 and 6.2.2 of the SDP draft).

use weft_core::wire::sdp::Mid;

use crate::hostile::context::sdp::{OutMessage, SdpOut};

/// Offsets of the fields that Hello and HelloAck have in common.
const MAX_ADVERTS: usize = 16;
const RSVD: usize = 18;
/// Offsets of fields that exist only in a Hello.
const DES_REM_RCV_SZ: usize = 20;
const LOCAL_RCV_SZ: usize = 24;
const LOC_IRD: usize = 28;
const LOC_ORD: usize = 30;
/// Offsets of fields that exist only in a HelloAck.
const ACT_RCV_SZ: usize = 20;
const ACK_LOC_IRD: usize = 24;
const ACK_LOC_ORD: usize = 26;

fn hello(out: &mut SdpOut<'_>, change: impl FnMut(&mut OutMessage<'_>)) {
    out.of(&[Mid::HELLO], change);
}

fn ack(out: &mut SdpOut<'_>, change: impl FnMut(&mut OutMessage<'_>)) {
    out.of(&[Mid::HELLO_ACK], change);
}

/// Converts the word that begins with MaxAdverts to the other field order.
fn mirrored(word: u32) -> u32 {
    let [high, low, rsvd, version] = word.to_be_bytes();
    u32::from_be_bytes([version, rsvd, high, low])
}

deviations! {
    "sdp.hello-ack-act-rcv-sz-36" [SdpOut(|out| ack(out, |message| message.word(ACT_RCV_SZ, |_| 36)))]
        ["SDP-6.2.2.4-1", "SDP-10-7", "SDP-10-2"] "sends a HelloAck with ActRcvSz 36";
    "sdp.hello-ack-act-rcv-sz-large" [SdpOut(|out| ack(out, |message| message.word(ACT_RCV_SZ, |_| (1 << 31) + 1)))]
        ["SDP-6.2.2.4-1"] "sends a HelloAck with an ActRcvSz of more than 2^31";
    "sdp.hello-ack-bufs-2" [SdpOut(|out| ack(out, |message| message.half(0, 2)))]
        ["SDP-6.2.2-6", "SDP-10.3-2", "SDP-10-4", "SDP-10-2"] "sends a HelloAck with Bufs 2";
    "sdp.hello-ack-flags" [SdpOut(|out| ack(out, |message| message.octet(2, |flags| *flags = 2)))]
        ["SDP-6.2.2-5"] "sends a HelloAck with OOB_PEND set";
    "sdp.hello-ack-left-out" [SdpOut(|out| out.suppress(Mid::HELLO_ACK))]
        ["SDP-8.1.1-21", "SDP-6.2-1", "SDP-8.1.1-4"] "answers a valid Hello with other messages and sends no HelloAck";
    "sdp.hello-ack-len" [SdpOut(|out| ack(out, |message| message.word(4, |len| len + 4)))]
        ["SDP-6.2.2-4", "SDP-6.1.4-1", "SDP-6.1.1-3", "SDP-6.1.1-1", "SDP-6.1-1"] "sends a HelloAck with Len 32";
    "sdp.hello-ack-loc-ird-0" [SdpOut(|out| ack(out, |message| message.half(ACK_LOC_IRD, 0)))]
        ["SDP-6.2.2.5-2", "SDP-8.1.1-24"] "sends a HelloAck with LocIRD 0";
    "sdp.hello-ack-loc-ord-0" [SdpOut(|out| ack(out, |message| message.half(ACK_LOC_ORD, 0)))]
        ["SDP-6.2.2.6-2", "SDP-8.1.1-25"] "sends a HelloAck with LocORD 0";
    "sdp.hello-ack-long" [SdpOut(|out| ack(out, |message| message.resize(32)))]
        ["SDP-6.2.2-1", "SDP-6.2.2-4", "SDP-6.1.1-3", "SDP-6.1.1-1"] "sends a HelloAck with four additional bytes, and counts these bytes in Len";
    "sdp.hello-ack-majv-2" [SdpOut(|out| ack(out, |message| message.version(2, 2)))]
        ["SDP-6.2.2.1-1", "SDP-6.2.2.1-2", "SDP-6.2.2.2-1"] "sends a HelloAck with MajV 2 and MinV 2";
    "sdp.hello-ack-max-adverts-0" [SdpOut(|out| ack(out, |message| message.half(MAX_ADVERTS, 0)))]
        ["SDP-6.2.2.3-1"] "sends a HelloAck with MaxAdverts 0";
    "sdp.hello-ack-mid" [SdpOut(|out| ack(out, |message| message.octet(3, |mid| *mid = Mid::HELLO.0)))]
        ["SDP-6.2.2-3", "SDP-6.2-1", "SDP-6.1.1-3"] "sends a HelloAck with the MID of a Hello";
    "sdp.hello-ack-minv-0" [SdpOut(|out| ack(out, |message| message.version(0, 1)))]
        ["SDP-6.2.2.2-1"] "sends a HelloAck with MinV 0";
    "sdp.hello-ack-mirrored" [SdpOut(|out| ack(out, |message| message.word(MAX_ADVERTS, mirrored)))]
        ["SDP-6.2.2-2", "SDP-6.2.2.1-1"] "sends the extended header of a HelloAck in another field order than its BSDH";
    "sdp.hello-ack-mseq" [SdpOut(|out| ack(out, |message| message.word(8, |_| 1)))]
        ["SDP-6.2.2-7", "SDP-6.1.5-1"] "sends a HelloAck with MSeq 1";
    "sdp.hello-ack-mseq-ack" [SdpOut(|out| ack(out, |message| message.word(12, |_| 1)))]
        ["SDP-6.2.2-9", "SDP-6.1.6-2"] "sends a HelloAck with MSeqAck 1";
    "sdp.hello-ack-rsvd" [SdpOut(|out| ack(out, |message| message.octet(RSVD, |octet| *octet = 0xff)))]
        ["SDP-6.2.2.7-1"] "sends a HelloAck whose Rsvd is not zero";
    "sdp.hello-bufs-2" [SdpOut(|out| hello(out, |message| message.half(0, 2)))]
        ["SDP-6.2.1-6", "SDP-10.3-1", "SDP-10-4", "SDP-8.1.1-5", "SDP-10-2"] "sends a Hello with Bufs 2";
    "sdp.hello-des-rem-rcv-sz-large" [SdpOut(|out| hello(out, |message| message.word(DES_REM_RCV_SZ, |_| (1 << 31) + 1)))]
        ["SDP-6.2.1.4-3"] "sends a Hello with a DesRemRcvSz of more than 2^31";
    "sdp.hello-flags" [SdpOut(|out| hello(out, |message| message.octet(2, |flags| *flags = 2)))]
        ["SDP-6.2.1-5"] "sends a Hello with OOB_PEND set";
    "sdp.hello-in-fpdu" [SdpOut(|out| hello(out, |message| {
        message.head.splice(0..0, [0, 50, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    }))] ["SDP-8.1.1-2", "SDP-8.1.1-12", "SDP-5-3", "SDP-6.2-1"] "sends the Hello with MPA and DDP headers";
    "sdp.hello-len" [SdpOut(|out| hello(out, |message| message.word(4, |len| len - 4)))]
        ["SDP-6.2.1-4", "SDP-6.1.4-1", "SDP-6.1.1-2", "SDP-6.1.1-1", "SDP-6.1-1"] "sends a Hello with Len 28";
    "sdp.hello-little-endian" [SdpOut(|out| hello(out, |message| for at in [4, DES_REM_RCV_SZ, LOCAL_RCV_SZ] { message.word(at, u32::swap_bytes); }))]
        ["SDP-6-4", "SDP-6.2.1-4", "SDP-6.1.4-1", "SDP-6.1.1-2", "SDP-6.1-1"] "sends Len, DesRemRcvSz and LocalRcvSz of a Hello in little-endian byte order";
    "sdp.hello-loc-ird-0" [SdpOut(|out| hello(out, |message| message.half(LOC_IRD, 0)))]
        ["SDP-6.2.1.6-2", "SDP-8.1.1-8"] "sends a Hello with LocIRD 0";
    "sdp.hello-loc-ord-0" [SdpOut(|out| hello(out, |message| message.half(LOC_ORD, 0)))]
        ["SDP-6.2.1.7-2", "SDP-8.1.1-9"] "sends a Hello with LocORD 0";
    "sdp.hello-local-rcv-sz-36" [SdpOut(|out| hello(out, |message| message.word(LOCAL_RCV_SZ, |_| 36)))]
        ["SDP-6.2.1.5-1", "SDP-10-7", "SDP-8.1.1-5", "SDP-10-2"] "sends a Hello with LocalRcvSz 36";
    "sdp.hello-local-rcv-sz-large" [SdpOut(|out| hello(out, |message| message.word(LOCAL_RCV_SZ, |_| (1 << 31) + 1)))]
        ["SDP-6.2.1.5-1"] "sends a Hello with a LocalRcvSz of more than 2^31";
    "sdp.hello-long" [SdpOut(|out| hello(out, |message| message.resize(36)))]
        ["SDP-6.2.1-1", "SDP-6.2.1-4", "SDP-6.1.4-1", "SDP-6.1.1-2"] "sends a Hello with four additional bytes, and counts these bytes in Len";
    "sdp.hello-majv-2" [SdpOut(|out| hello(out, |message| message.version(2, 2)))]
        ["SDP-6.2.1.1-1", "SDP-6.2.1.1-2", "SDP-6.2.1.2-1"] "sends a Hello with MajV 2 and MinV 2";
    "sdp.hello-max-adverts-0" [SdpOut(|out| hello(out, |message| message.half(MAX_ADVERTS, 0)))]
        ["SDP-6.2.1.3-1"] "sends a Hello with MaxAdverts 0";
    "sdp.hello-mid" [SdpOut(|out| hello(out, |message| message.octet(3, |mid| *mid = Mid::DATA.0)))]
        ["SDP-6.2.1-3", "SDP-6.2-1", "SDP-6.1.1-2"] "sends a Hello with the MID of Data";
    "sdp.hello-minv-0" [SdpOut(|out| hello(out, |message| message.version(0, 1)))]
        ["SDP-6.2.1.2-1"] "sends a Hello with MinV 0";
    "sdp.hello-mirrored" [SdpOut(|out| hello(out, |message| message.word(MAX_ADVERTS, mirrored)))]
        ["SDP-6.2.1-2", "SDP-6.2.1.1-1"] "sends the extended header of a Hello in another field order than its BSDH";
    "sdp.hello-mseq" [SdpOut(|out| hello(out, |message| message.word(8, |_| 1)))]
        ["SDP-6.2.1-7", "SDP-6.1.5-1"] "sends a Hello with MSeq 1";
    "sdp.hello-mseq-ack" [SdpOut(|out| hello(out, |message| message.word(12, |_| 1)))]
        ["SDP-6.2.1-9", "SDP-6.1.6-2"] "sends a Hello with MSeqAck 1";
    "sdp.hello-rsvd" [SdpOut(|out| hello(out, |message| message.octet(RSVD, |octet| *octet = 0xff)))]
        ["SDP-6.2.1.8-1"] "sends a Hello whose Rsvd is not zero";
}
