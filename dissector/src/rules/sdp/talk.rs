//! Steps of SDP conversations that several rules are tried with.

use weft_core::wire::sdp::Mid;

pub(super) use super::testing::proves_each_way;
use crate::testing::sdp::{Talk, VA, advert, word};

/// Send with Solicited Event and Invalidate; [`crate::testing::sdp::STAG`] is what it invalidates.
pub(super) const SEND_SE_INV: u8 = 6;

/// What `source` sends goes in Pipelined Mode.
pub(super) fn pipelined(talk: &mut Talk, source: usize) {
    change(talk, source, 4);
}

/// A ModeChange that both know.
pub(super) fn change(talk: &mut Talk, direction: usize, change: u32) {
    talk.say(direction, Mid::MODE_CHANGE, &word(change), 0);
    talk.both_hear();
}

/// `direction` advertises a buffer of `len` octets for reading; both know.
pub(super) fn src_avail(talk: &mut Talk, direction: usize, len: u32, payload: usize) {
    talk.say(direction, Mid::SRC_AVAIL, &advert(len, None), payload);
    talk.both_hear();
}

/// The same, for writing.
pub(super) fn sink_avail(talk: &mut Talk, direction: usize, len: u32, non_discards: u32, payload: usize) {
    talk.say(direction, Mid::SINK_AVAIL, &advert(len, Some(non_discards)), payload);
    talk.both_hear();
}

/// SrcAH or SinkAH of a buffer with this STag.
pub(super) fn advert_of(stag: u32, len: u32, non_discards: Option<u32>) -> String {
    let non_discards = non_discards.map_or(String::new(), |count| format!("{count:08x}"));
    format!("{len:08x} {stag:08x} {VA:016x} {non_discards}")
}

/// `direction` tells that `len` octets were read, or written, and invalidates the STag; both know.
pub(super) fn completes(talk: &mut Talk, direction: usize, mid: Mid, len: u32) {
    talk.say_in(SEND_SE_INV, direction, mid, &word(len), 0);
    talk.both_hear();
}
