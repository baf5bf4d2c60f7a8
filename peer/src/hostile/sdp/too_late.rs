//! Deviations that continue an action after an event that ends this action. The event is one of:
//! - a revocation (sections 9.5.4 and 9.5.5 of the SDP draft),
//! - a ModeChange out of Pipelined Mode (section 12.4),
//! - a ChRcvBuf of this side that crosses the peer's ChRcvBuf (section 10.6.1).

use weft_core::wire::sdp::{Mid, Mode};

use crate::hostile::context::sdp::UNKNOWN_OP;
use crate::sdp::Output;
use crate::verbs::RemoteAddress;

deviations! {
    "sdp.ch-rcv-buf-ack-after-own" [SdpOut(|out| out.follow(Mid::CH_RCV_BUF, &[(Mid::CH_RCV_BUF_ACK, &[0, 0, 4, 0])]))]
        ["SDP-10.6.1-1", "SDP-6.4.2-3"] "sends a ChRcvBufAck right after it has sent a ChRcvBuf";
    "sdp.pipelined-after-mode-change" [SdpOut(|out| {
        if out.is_change_to(Mode::Pipelined) {
            out.state.count = 1;
        } else if out.mid() == Some(Mid::DATA) && out.has_payload() && out.state.count == 1 {
            out.state.count = 2;
            let word = out.mch(Mode::Combined, false);
            out.follow(Mid::DATA, &[(Mid::MODE_CHANGE, &word)]);
        }
    })] ["SDP-12.4-8", "SDP-12.4-6", "SDP-12.4-11", "SDP-12.4-12", "SDP-12.5-4", "SDP-12.5-7", "SDP-9.5.1-17"]
        "uses SinkAvails after it has sent a ModeChange out of Pipelined Mode";
    "sdp.writes-after-cancel" [
        SdpArrived(|arrived| if arrived.is(Mid::SINK_AVAIL) {
            let tagged_offset = u64::from(arrived.word(24)) << 32 | u64::from(arrived.word(28));
            arrived.state.sink = Some(RemoteAddress { stag: arrived.word(20), tagged_offset });
        }),
        SdpOut(|out| {
            if let Some(Output::Send { payload: Some(piece), .. }) = out.out.first() {
                out.state.piece = Some(*piece);
            }
            if out.mid() == Some(Mid::SINK_CANCEL_ACK)
                && let (Some(data), Some(remote)) = (out.state.piece, out.state.sink)
            {
                // Before the write, send Data without payload. The MSeqAck of this Data shows that
                // the SinkAvailCancel has arrived.
                out.follow(Mid::SINK_CANCEL_ACK, &[(Mid::DATA, &[])]);
                out.out.reverse();
                out.out.insert(1, Output::Write { op: UNKNOWN_OP, data, remote });
            }
        }),
    ] ["SDP-9.5.5-7", "SDP-9.5.5-6", "SDP-9.5.5-3", "SDP-6.3.10-2"] "starts a write after a SinkAvailCancel";
}
