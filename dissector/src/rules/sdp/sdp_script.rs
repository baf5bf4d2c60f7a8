//! Shared steps for the tests of several rules. Each step sends messages on an SDP connection.

use weft_core::wire::sdp::Mid;

pub(super) use super::testing::proves_each_way;
use crate::testing::sdp::{SdpScript, VA, advert, word};

/// The opcode of a Send with Solicited Event and Invalidate. The tests invalidate
/// [`crate::testing::sdp::STAG`].
pub(super) const SEND_SE_INV: u8 = 6;

/// The Data Source `source` changes its half-connection to Pipelined Mode.
pub(super) fn pipelined(script: &mut SdpScript, source: usize) {
    change(script, source, 4);
}

/// `direction` sends a ModeChange, and both endpoints receive all messages.
pub(super) fn change(script: &mut SdpScript, direction: usize, change: u32) {
    script.send(direction, Mid::MODE_CHANGE, &word(change), 0);
    script.both_receive_all();
}

/// `direction` sends a SrcAvail of `len` octets, and both endpoints receive all messages.
pub(super) fn src_avail(script: &mut SdpScript, direction: usize, len: u32, payload: usize) {
    script.send(direction, Mid::SRC_AVAIL, &advert(len, None), payload);
    script.both_receive_all();
}

/// `direction` sends a SinkAvail of `len` octets, and both endpoints receive all messages.
pub(super) fn sink_avail(script: &mut SdpScript, direction: usize, len: u32, non_discards: u32, payload: usize) {
    script.send(direction, Mid::SINK_AVAIL, &advert(len, Some(non_discards)), payload);
    script.both_receive_all();
}

/// The SrcAH or SinkAH of a buffer with this STag.
pub(super) fn advert_of(stag: u32, len: u32, non_discards: Option<u32>) -> String {
    let non_discards = non_discards.map_or(String::new(), |count| format!("{count:08x}"));
    format!("{len:08x} {stag:08x} {VA:016x} {non_discards}")
}

/// `direction` sends an RdmaRdCompl or RdmaWrCompl of `len` octets that invalidates the STag. Both
/// endpoints receive all messages.
pub(super) fn completes(script: &mut SdpScript, direction: usize, mid: Mid, len: u32) {
    script.send_in(SEND_SE_INV, direction, mid, &word(len), 0);
    script.both_receive_all();
}
