//! The capture has one direction only, or for a while.

use std::collections::HashMap;

use super::packet::tcp_at;
use super::{Dice, Frames};

/// Of each frame with TCP the side that sent it: 0 for the end that sent the connection's first
/// frame.
pub(super) fn sides(frames: &Frames) -> Vec<Option<usize>> {
    let mut first = HashMap::new();
    let side = |frame| {
        let (src, dst) = tcp_at(frame)?.ends(frame);
        let opener = *first.entry((src.min(dst), src.max(dst))).or_insert(src);
        Some(usize::from(src != opener))
    };
    frames.iter().map(side).collect()
}

/// Keeps the frames for which `is_kept` is true, by their index and side.
fn keep(frames: &mut Frames, is_kept: impl Fn(usize, usize) -> bool) {
    let mut each = sides(frames).into_iter().enumerate();
    frames.retain(|_| each.next().is_none_or(|(index, side)| side.is_none_or(|side| is_kept(index, side))));
}

pub(super) fn only<const SIDE: usize>(frames: &mut Frames, _: &mut Dice) {
    keep(frames, |_, side| side == SIDE);
}

/// The side is captured until some frame only.
pub(super) fn from<const SIDE: usize>(frames: &mut Frames, dice: &mut Dice) {
    let at = dice.below(frames.len() + 1);
    keep(frames, |index, side| side == SIDE || index < at);
}

/// The side is captured from some frame on only.
pub(super) fn until<const SIDE: usize>(frames: &mut Frames, dice: &mut Dice) {
    let at = dice.below(frames.len() + 1);
    keep(frames, |index, side| side == SIDE || index >= at);
}
