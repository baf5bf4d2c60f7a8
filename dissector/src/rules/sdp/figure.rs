//! Lists the requirements of Figure 25 of the SDP draft for each pair of Modes, and the
//! requirements which define that a connection starts in Combined Mode.

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::{Mid, Mode};

use crate::follow::sdp::SenderState;

/// Returns the row of Figure 25 for the Modes of both half-connections. `None` if a Mode is
/// unknown.
pub(super) fn pair(sender: &SenderState) -> Option<RequirementId> {
    Some(match (sender.source_mode?, sender.sink_mode?) {
        (Mode::Buffered, Mode::Buffered) => requirement!("SDP-11-16"),
        (Mode::Buffered, Mode::Combined) => requirement!("SDP-11-17"),
        (Mode::Buffered, Mode::Pipelined) => requirement!("SDP-11-18"),
        (Mode::Combined, Mode::Buffered) => requirement!("SDP-11-19"),
        (Mode::Combined, Mode::Combined) => requirement!("SDP-11-20"),
        (Mode::Combined, Mode::Pipelined) => requirement!("SDP-11-21"),
        (Mode::Pipelined, Mode::Buffered) => requirement!("SDP-11-22"),
        (Mode::Pipelined, Mode::Combined) => requirement!("SDP-11-23"),
        (Mode::Pipelined, Mode::Pipelined) => requirement!("SDP-11-24"),
    })
}

/// The requirements by which Combined Mode is the first Mode. If Combined Mode does not allow a
/// message, and no ModeChange preceded the message, there are two possible errors. Either the
/// sender began in another Mode, which violates these requirements. Or the sender began in Combined
/// Mode, and the message violates only a requirement of Combined Mode. So findings with these ids
/// are notes.
pub(super) const FIRST_MODE: [RequirementId; 3] =
    [requirement!("SDP-11-2"), requirement!("SDP-12-2"), requirement!("SDP-12-23")];

/// Returns whether the sender has neither sent nor received a ModeChange so far.
pub(super) fn is_first(sender: &SenderState) -> bool {
    !sender.sent.has(Mid::MODE_CHANGE) && !sender.received.has(Mid::MODE_CHANGE)
}

/// The name of a Mode in findings.
pub(super) fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Buffered => "Buffered Mode",
        Mode::Combined => "Combined Mode",
        Mode::Pipelined => "Pipelined Mode",
    }
}
