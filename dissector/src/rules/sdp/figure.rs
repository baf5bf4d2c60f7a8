//! Figure 25: what each pair of Modes lets an end do; and what a wrong Mode says of the first one.

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::{Mid, Mode};

use crate::follow::sdp::Before;

/// The row of Figure 25 for the Modes of what the sender sends, and of what it receives.
pub(super) fn pair(before: &Before) -> Option<RequirementId> {
    Some(match (before.source_mode?, before.sink_mode?) {
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

/// Every row of [`pair`].
pub(super) const PAIRS: [RequirementId; 9] = [
    requirement!("SDP-11-16"),
    requirement!("SDP-11-17"),
    requirement!("SDP-11-18"),
    requirement!("SDP-11-19"),
    requirement!("SDP-11-20"),
    requirement!("SDP-11-21"),
    requirement!("SDP-11-22"),
    requirement!("SDP-11-23"),
    requirement!("SDP-11-24"),
];

/// What may be broken besides when the Mode is still the first one: that this is Combined Mode. Its sender may as well have broken the
/// rule of Combined Mode alone, so these are notes.
pub(super) const FIRST_MODE: [RequirementId; 3] =
    [requirement!("SDP-11-2"), requirement!("SDP-12-2"), requirement!("SDP-12-23")];

/// Has no ModeChange passed, as far as the sender knows?
pub(super) fn is_first(before: &Before) -> bool {
    !before.said.has(Mid::MODE_CHANGE) && !before.heard.has(Mid::MODE_CHANGE)
}

/// A Mode, as findings name it.
pub(super) fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Buffered => "Buffered Mode",
        Mode::Combined => "Combined Mode",
        Mode::Pipelined => "Pipelined Mode",
    }
}
