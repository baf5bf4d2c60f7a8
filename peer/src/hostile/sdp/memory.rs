//! Deviations in memory:
//! - Private Buffers that are too small, too few or not renewed (sections 5, 8.1.1, 10 and 13 of
//!   the SDP draft),
//! - advertised memory that becomes invalid while the peer may still use it (sections 9.2 and 9.3).

use weft_core::wire::rdmap::Opcode;
use weft_core::wire::sdp::Mid;

use crate::hostile::context::sdp::SdpOut;
use crate::hostile::context::segment::{is_tagged, opcode, word};
use crate::rdmap::Fault;
use crate::sdp::{Event, Output};

/// Offsets of STag and of the lower half of VA in SrcAH and SinkAH.
const STAG: usize = 20;
const VA_LOW: usize = 28;
/// Number of Private Buffers that are posted. The advertised number does not matter.
const POSTED_BUFFERS: u32 = 2;

/// When a message with MID `when` is sent, withdraws the memory that messages with MID `advert`
/// have advertised. If both MIDs are equal, the memory that this message advertises is also
/// withdrawn.
fn withdraw(out: &mut SdpOut<'_>, advert: Mid, when: Mid) {
    if let Some(Output::Send { head, .. }) = out.out.first().filter(|_| out.mid() == Some(advert)) {
        let stag = word(head, STAG);
        out.state.stags.push(stag);
    }
    if out.mid() == Some(when) {
        out.out.extend(out.state.stags.drain(..).map(|stag| Output::Withdraw { stag }));
    }
}

deviations! {
    "sdp.private-buffers-few" [SdpOut(|out| if matches!(out.out.first(), Some(Output::Receive { buffer, .. }) if buffer.0 >= POSTED_BUFFERS) {
        out.out.clear();
    })] ["SDP-8.1.1-7", "SDP-8.1.1-23"] "posts two Private Buffers, whatever number it advertises";
    "sdp.private-buffers-few-after-suspension" [SdpOut(|out| match out.out.first() {
        Some(Output::Event(Event::Suspended { .. })) => out.state.count = 1,
        Some(Output::Receive { .. }) if out.state.count > POSTED_BUFFERS => out.out.clear(),
        Some(Output::Receive { .. }) if out.state.count > 0 => out.state.count += 1,
        _ => {}
    })] ["SDP-13.1.1-18"] "posts two Private Buffers on the new connection after a suspension, whatever number it advertises";
    "sdp.private-buffers-of-before" [SdpOut(|out| if let Some(Output::Receive { octets, .. }) = out.out.first_mut() {
        if out.state.count == 0 {
            out.state.count = *octets;
        }
        *octets = out.state.count.min(*octets);
    })] ["SDP-10.6.2-1", "SDP-10.6-5"] "grants a ChRcvBuf for larger Private Buffers, but does not enlarge the buffers";
    "sdp.private-buffers-small" [SdpOut(|out| if let Some(Output::Receive { octets, .. }) = out.out.first_mut() {
        *octets /= 2;
    })] ["SDP-10-3", "SDP-5-1"] "posts Private Buffers half as large as it advertises";
    "sdp.sink-avail-by-size-to-come" [SdpOut(|out| match out.mid() {
        Some(Mid::CH_RCV_BUF_ACK) => out.state.held = out.out.pop(),
        Some(Mid::SINK_AVAIL) => {
            let held = out.state.held.take();
            out.out.extend(held);
        }
        _ => {}
    })] ["SDP-10.6-15", "SDP-9.3-2", "SDP-9-1", "SDP-9.5.1-1", "SDP-9.5.1-2", "SDP-10-2", "SDP-10-9"] "limits a SinkAvail by a smaller buffer size before the peer has the ChRcvBufAck for this size";
    "sdp.sink-avail-va-elsewhere" [SdpOut(|out| out.of(&[Mid::SINK_AVAIL], |message| message.word(VA_LOW, |va| va.wrapping_add(1 << 20))))]
        ["SDP-9.3-4"] "sends a SinkAvail whose VA is 2^20 bytes after the buffer of its STag";
    "sdp.reads-not-enabled" [Depths(|_, ird| *ird = 0)]
        ["SDP-14.1-1", "SDP-6.2.1.6-1", "SDP-6.2.2.5-1"] "accepts no Reads, whatever LocIRD it advertises";
    "sdp.sink-avail-withdrawn-at-once" [SdpOut(|out| withdraw(out, Mid::SINK_AVAIL, Mid::SINK_AVAIL))]
        ["SDP-9.3-17", "SDP-6.3.3.3-1"] "does not let the peer write to the memory of a SinkAvail";
    "sdp.sink-avail-withdrawn-on-cancel" [SdpOut(|out| withdraw(out, Mid::SINK_AVAIL, Mid::SINK_AVAIL_CANCEL))]
        ["SDP-9.3-18"] "withdraws the right to write to the memory of a SinkAvail when it sends the SinkAvailCancel";
    "sdp.src-avail-withdrawn-at-once" [SdpOut(|out| withdraw(out, Mid::SRC_AVAIL, Mid::SRC_AVAIL))]
        ["SDP-9.2-23", "SDP-6.3.2.3-1"] "does not let the peer read the memory of a SrcAvail";
    "sdp.src-avail-withdrawn-on-cancel" [SdpOut(|out| withdraw(out, Mid::SRC_AVAIL, Mid::SRC_AVAIL_CANCEL))]
        ["SDP-9.2-24"] "withdraws the right to read the memory of a SrcAvail when it sends the SrcAvailCancel";
    "sdp.stags-left-valid" [
        SdpConduct(|conduct| conduct.keeps_memory = true),
        SdpOut(|out| if matches!(out.out.first(), Some(Output::Withdraw { .. })) {
            out.out.clear();
        }),
    ] ["SDP-9.2-30", "SDP-9.3-13"] "never invalidates its own advertised STags";
    "sdp.writes-not-enabled" [RefusesSegment(|octets, _| {
        (opcode(octets) == Opcode::WRITE && is_tagged(octets)).then_some(Fault::Opcode)
    })] ["SDP-14.1-2"] "accepts no Writes";
}
