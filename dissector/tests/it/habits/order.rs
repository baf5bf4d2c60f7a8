//! These habits (effects of capturing) change the order of the frames.

use super::packet::{SYN, tcp_at};
use super::{Dice, Frames};

/// Changes the order of the frames. The times stay in order, because each frame gets the time of
/// its new place. If that time differs too much from the frame's own time, the frame keeps its own
/// time.
fn keep_times(frames: &mut Frames, change: impl FnOnce(&mut Frames)) {
    let times: Vec<u64> = frames.iter().map(|frame| frame.time).collect();
    change(frames);
    frames.iter_mut().zip(times).for_each(|(frame, time)| frame.delay_to(time));
}

pub(super) fn swap_one(frames: &mut Frames, dice: &mut Dice) {
    if frames.len() > 1 {
        let at = dice.below(frames.len() - 1);
        keep_times(frames, |frames| frames.swap(at, at + 1));
    }
}

pub(super) fn swap_many(frames: &mut Frames, dice: &mut Dice) {
    keep_times(frames, |frames| {
        for at in 1..frames.len() {
            if dice.one_in(8) {
                frames.swap(at - 1, at);
            }
        }
    });
}

fn move_one(frames: &mut Frames, from: usize, to: usize) {
    keep_times(frames, |frames| {
        let frame = frames.remove(from);
        frames.insert(to, frame);
    });
}

pub(super) fn late<const BY: usize>(frames: &mut Frames, dice: &mut Dice) {
    if !frames.is_empty() {
        let at = dice.below(frames.len());
        move_one(frames, at, (at + BY).min(frames.len() - 1));
    }
}

pub(super) fn early<const BY: usize>(frames: &mut Frames, dice: &mut Dice) {
    if !frames.is_empty() {
        let at = dice.below(frames.len());
        move_one(frames, at, at.saturating_sub(BY));
    }
}

pub(super) fn syns(frames: &mut Frames, _: &mut Dice) {
    keep_times(frames, |frames| {
        for at in 1..frames.len() {
            let is_syn = |at: usize| tcp_at(&frames[at]).is_some_and(|tcp| tcp.flags(&frames[at]) & SYN != 0);
            if is_syn(at - 1) && is_syn(at) {
                frames.swap(at - 1, at);
            }
        }
    });
}

pub(super) fn reversed(frames: &mut Frames, _: &mut Dice) {
    keep_times(frames, |frames| frames.chunks_mut(4).for_each(<[_]>::reverse));
}
