//! Deviations in the Base Sockets Direct Header of messages after Hello and HelloAck (section 6.1
//! of the SDP draft).

use weft_core::wire::sdp::{FLAG_OOB_PRES, FLAG_REQ_PIPE, Mid};

use crate::hostile::context::sdp::{OutMessage, SdpOut};

/// Changes each message after Hello and HelloAck.
fn later(out: &mut SdpOut<'_>, mut change: impl FnMut(&mut OutMessage<'_>)) {
    out.each(|message| {
        if !matches!(message.mid(), Some(Mid::HELLO | Mid::HELLO_ACK) | None) {
            change(message);
        }
    });
}

/// Changes Data messages without payload.
fn empty(out: &mut SdpOut<'_>, mut change: impl FnMut(&mut OutMessage<'_>)) {
    out.of(&[Mid::DATA], |message| {
        if message.payload.is_none() {
            change(message);
        }
    });
}

deviations! {
    "sdp.bufs-goes-back" [SdpOut(|out| {
        let turn = out.state.count;
        later(out, |message| {
            let bufs = message.half_at(0);
            message.half(0, if turn % 2 == 1 { bufs.saturating_sub(3) } else { bufs });
        });
        out.state.count = turn.wrapping_add(u32::from(out.mid().is_some()));
    })] ["SDP-6.1.3-1", "SDP-10-1"] "takes credit back: lowers Bufs by three in every second message";
    "sdp.flags-from-the-top" [SdpOut(|out| later(out, |message| message.octet(2, |flags| *flags = flags.reverse_bits())))]
        ["SDP-6.1.2-5", "SDP-6.1.2-1", "SDP-6.1.2-2", "SDP-6.1.2-3", "SDP-6.1.2-4", "SDP-9.5.3-5"] "numbers the bits of Flags from the most significant bit";
    "sdp.flags-reserved" [SdpOut(|out| later(out, |message| message.octet(2, |flags| *flags |= 0xf8)))]
        ["SDP-6.1.2-5", "SDP-6.1.2-1"] "sets the reserved bits of Flags";
    "sdp.header-mirrored" [SdpOut(|out| later(out, |message| {
        let (bufs, mut rest) = (message.half_at(0), [0; 2]);
        message.octet(2, |flags| rest[1] = *flags);
        message.octet(3, |mid| rest[0] = *mid);
        message.half(0, u16::from_be_bytes(rest));
        message.half(2, bufs);
    }))] ["SDP-6.1-1", "SDP-6.1.1-1", "SDP-6.1.1-17", "SDP-6.1.1-18", "SDP-6-1"] "sends messages in another field order than Hello and HelloAck";
    "sdp.len-one-more" [SdpOut(|out| later(out, |message| message.word(4, |len| len + 1)))]
        ["SDP-6.1.4-1", "SDP-6.1-1", "SDP-6.1.1-1"] "sends a Len that is one greater than the length of the message";
    "sdp.len-of-payload" [SdpOut(|out| out.of(&[Mid::DATA], |message| message.word(4, |len| len - 16)))]
        ["SDP-6.1.4-1", "SDP-9.1-2", "SDP-6.3.1-1", "SDP-6.1.1-23", "SDP-6.1-1"] "counts only the payload in Len of Data";
    "sdp.len-little-endian" [SdpOut(|out| later(out, |message| message.word(4, u32::swap_bytes)))]
        ["SDP-6-4", "SDP-6.1.4-1", "SDP-6.1-1"] "sends Len in little-endian byte order";
    "sdp.mid-0f" [SdpOut(|out| empty(out, |message| message.octet(3, |mid| *mid = 0x0f)))]
        ["SDP-6.1.1-17", "SDP-6.1.1-1"] "sends MID 0x0F in Data without payload";
    "sdp.mid-20" [SdpOut(|out| empty(out, |message| message.octet(3, |mid| *mid = 0x20)))]
        ["SDP-6.1.1-18", "SDP-6.1.1-1"] "sends MID 0x20 in Data without payload";
    "sdp.mid-90" [SdpOut(|out| empty(out, |message| message.octet(3, |mid| *mid = 0x90)))]
        ["SDP-6.1.1-20", "SDP-6.1.1-1"] "sends MID 0x90 in Data without payload";
    "sdp.mseq-ack-ahead" [SdpOut(|out| later(out, |message| message.word(12, |ack| ack.wrapping_add(1000))))]
        ["SDP-6.1.6-1", "SDP-6.1.6-2"] "sends an MSeqAck for messages that the peer has not sent yet";
    "sdp.mseq-ack-goes-back" [SdpOut(|out| later(out, |message| message.word(12, |ack| if ack > 2 && ack % 2 == 0 { ack - 2 } else { ack })))]
        ["SDP-6.1.6-1", "SDP-6.1.3-1"] "subtracts two from every even MSeqAck above two";
    "sdp.mseq-skips" [SdpOut(|out| later(out, |message| message.word(8, |mseq| mseq.wrapping_mul(2))))]
        ["SDP-6.1.5-2", "SDP-10.1-1", "SDP-5-2"] "increments MSeq by two for each message";
    "sdp.mseq-constant" [SdpOut(|out| later(out, |message| message.word(8, |_| 1)))]
        ["SDP-6.1.5-2", "SDP-10.1-1"] "sends MSeq 1 in every message";
    "sdp.oob-pres-elsewhere" [SdpOut(|out| out.of(&[Mid::SEND_SM, Mid::RDMA_RD_COMPL, Mid::SRC_AVAIL, Mid::MODE_CHANGE], |message| {
        message.octet(2, |flags| *flags |= FLAG_OOB_PRES);
    }))] ["SDP-6.1.2-8", "SDP-6.1.2-1"] "sets OOB_PRES in messages other than Data";
    "sdp.oob-pres-without-payload" [SdpOut(|out| empty(out, |message| message.octet(2, |flags| *flags |= FLAG_OOB_PRES)))]
        ["SDP-6.1.2-7"] "sets OOB_PRES in Data without payload";
    "sdp.req-pipe-elsewhere" [SdpOut(|out| out.of(&[Mid::DATA, Mid::SEND_SM, Mid::SRC_AVAIL], |message| {
        message.octet(2, |flags| *flags |= FLAG_REQ_PIPE);
    }))] ["SDP-6.1.2-17", "SDP-6.1.2-16", "SDP-6.1.2-4", "SDP-6.1.2-1"] "sets REQ_PIPE in messages other than RdmaRdCompl and RdmaWrCompl";
    "sdp.short-header" [SdpOut(|out| empty(out, |message| message.resize(12)))]
        ["SDP-6-1", "SDP-6.1.4-1", "SDP-6.3.1-1"] "sends a header of 12 bytes in Data without payload";
}
