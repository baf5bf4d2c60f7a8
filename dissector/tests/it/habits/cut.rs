//! After these habits (effects of capturing), the capture begins late or ends early.

use super::{Dice, Frames};

pub(super) fn end_anywhere(frames: &mut Frames, dice: &mut Dice) {
    frames.truncate(dice.below(frames.len() + 1));
}

pub(super) fn end_early(frames: &mut Frames, dice: &mut Dice) {
    frames.truncate(dice.below(16));
}

pub(super) fn end_before_last(frames: &mut Frames, _: &mut Dice) {
    frames.pop();
}

pub(super) fn begin_anywhere(frames: &mut Frames, dice: &mut Dice) {
    frames.drain(..dice.below(frames.len() + 1));
}

pub(super) fn begin_after<const COUNT: usize>(frames: &mut Frames, _: &mut Dice) {
    frames.drain(..COUNT.min(frames.len()));
}

pub(super) fn middle(frames: &mut Frames, dice: &mut Dice) {
    begin_anywhere(frames, dice);
    end_anywhere(frames, dice);
}

pub(super) fn hole(frames: &mut Frames, dice: &mut Dice) {
    let from = dice.below(frames.len() + 1);
    let to = from + dice.below(frames.len() - from + 1);
    frames.drain(from..to);
}
