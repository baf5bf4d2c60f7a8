//! After these habits (effects of capturing), the capture lacks frames that the endpoints received.

use super::packet::{ACK, FIN, RST, SYN, Tcp, tcp_at};
use super::sides::sides;
use super::{CapturedFrame, Dice, Frames};

pub(super) fn one(frames: &mut Frames, dice: &mut Dice) {
    if !frames.is_empty() {
        frames.remove(dice.below(frames.len()));
    }
}

pub(super) fn one_early(frames: &mut Frames, dice: &mut Dice) {
    if !frames.is_empty() {
        frames.remove(dice.below(frames.len().min(12)));
    }
}

pub(super) fn one_in<const COUNT: usize>(frames: &mut Frames, dice: &mut Dice) {
    frames.retain(|_| !dice.one_in(COUNT));
}

pub(super) fn burst<const COUNT: usize>(frames: &mut Frames, dice: &mut Dice) {
    let from = dice.below(frames.len() + 1);
    frames.drain(from..(from + COUNT).min(frames.len()));
}

/// Removes the segments for which `is_lost` returns `true`.
fn lose(frames: &mut Frames, is_lost: impl Fn(Tcp, &CapturedFrame) -> bool) {
    frames.retain(|frame| !tcp_at(frame).is_some_and(|tcp| is_lost(tcp, frame)));
}

pub(super) fn syn(frames: &mut Frames, _: &mut Dice) {
    lose(frames, |tcp, frame| tcp.flags(frame) & (SYN | ACK) == SYN);
}

pub(super) fn syn_ack(frames: &mut Frames, _: &mut Dice) {
    lose(frames, |tcp, frame| tcp.flags(frame) & (SYN | ACK) == SYN | ACK);
}

pub(super) fn both_syns(frames: &mut Frames, _: &mut Dice) {
    lose(frames, |tcp, frame| tcp.flags(frame) & SYN != 0);
}

pub(super) fn ends(frames: &mut Frames, _: &mut Dice) {
    lose(frames, |tcp, frame| tcp.flags(frame) & (FIN | RST) != 0);
}

pub(super) fn bare_acks(frames: &mut Frames, _: &mut Dice) {
    lose(frames, |tcp, frame| !tcp.has_payload() && tcp.flags(frame) & (SYN | FIN | RST) == 0);
}

pub(super) fn one_each_way(frames: &mut Frames, dice: &mut Dice) {
    for side in 0..2 {
        let sides = sides(frames);
        let mine = |at: &usize| sides[*at] == Some(side) && tcp_at(&frames[*at]).is_some_and(Tcp::has_payload);
        let with_payload: Vec<usize> = (0..frames.len()).filter(mine).collect();
        if !with_payload.is_empty() {
            frames.remove(with_payload[dice.below(with_payload.len())]);
        }
    }
}
