//! After these habits (effects of capturing), the capture has only the beginning of each frame.

use super::{CapturedFrame, Dice, Frames};

fn cut(frame: &mut CapturedFrame, length: usize) {
    frame.octets.truncate(length);
}

pub(super) fn to<const LENGTH: usize>(frames: &mut Frames, _: &mut Dice) {
    frames.iter_mut().for_each(|frame| cut(frame, LENGTH));
}

pub(super) fn anywhere(frames: &mut Frames, dice: &mut Dice) {
    let length = 40 + dice.below(400);
    frames.iter_mut().for_each(|frame| cut(frame, length));
}
