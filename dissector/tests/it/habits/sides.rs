//! After these habits (effects of capturing), the capture lacks one direction, completely or in
//! part.

use std::collections::HashMap;

use super::packet::tcp_at;
use super::{Dice, Frames};

/// Returns the side that sent each frame. Side 0 is the endpoint that sent the first frame of the
/// connection, and side 1 is its peer. The value is `None` for a frame without TCP.
pub(super) fn sides(frames: &Frames) -> Vec<Option<usize>> {
    let mut first = HashMap::new();
    let side = |frame| {
        let (src, dst) = tcp_at(frame)?.ends(frame);
        let opener = *first.entry((src.min(dst), src.max(dst))).or_insert(src);
        Some(usize::from(src != opener))
    };
    frames.iter().map(side).collect()
}

/// Removes each frame for whose index and side `is_kept` returns `false`. Keeps frames without a
/// side.
fn keep(frames: &mut Frames, is_kept: impl Fn(usize, usize) -> bool) {
    let mut each = sides(frames).into_iter().enumerate();
    frames.retain(|_| each.next().is_none_or(|(index, side)| side.is_none_or(|side| is_kept(index, side))));
}

pub(super) fn only<const SIDE: usize>(frames: &mut Frames, _: &mut Dice) {
    keep(frames, |_, side| side == SIDE);
}

/// Keeps all frames of `SIDE`. Keeps the frames of the other side only before a random frame.
pub(super) fn from<const SIDE: usize>(frames: &mut Frames, dice: &mut Dice) {
    let at = dice.below(frames.len() + 1);
    keep(frames, |index, side| side == SIDE || index < at);
}

/// Keeps all frames of `SIDE`. Keeps the frames of the other side only from a random frame on.
pub(super) fn until<const SIDE: usize>(frames: &mut Frames, dice: &mut Dice) {
    let at = dice.below(frames.len() + 1);
    keep(frames, |index, side| side == SIDE || index >= at);
}
