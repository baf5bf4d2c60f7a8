//! These habits (effects of capturing) make captures of several taps in one file, and captures of
//! connections that reuse ports.

use super::packet::{SYN, tcp_at};
use super::sides::sides;
use super::{Dice, Frames};

/// Changes the times and the order of the frames. After that, the capture looks as if each
/// direction had its own tap, and the files of the taps were merged by time. `ahead` has, for each
/// tap, the nanoseconds by which its clock is ahead.
fn skew(frames: &mut Frames, ahead: [u64; 2]) {
    let sides = sides(frames);
    frames.iter_mut().zip(sides).for_each(|(frame, side)| frame.time += side.map_or(0, |side| ahead[side]));
    frames.sort_by_key(|frame| frame.time);
}

pub(super) fn skewed<const AHEAD: u64>(frames: &mut Frames, _: &mut Dice) {
    skew(frames, [0, AHEAD]);
}

pub(super) fn other_skewed<const AHEAD: u64>(frames: &mut Frames, _: &mut Dice) {
    skew(frames, [AHEAD, 0]);
}

/// Puts all frames of side `FIRST` before the frames of the other side, as if the files of two taps
/// were appended and not merged.
pub(super) fn appended<const FIRST: usize>(frames: &mut Frames, _: &mut Dice) {
    let sides = sides(frames);
    let mut numbered: Vec<_> = std::mem::take(frames).into_iter().zip(sides).collect();
    numbered.sort_by_key(|(_, side)| side.is_some_and(|side| side != FIRST));
    *frames = numbered.into_iter().map(|(frame, _)| frame).collect();
}

/// Repeats all connections. The repetitions have the same ports and other sequence numbers.
pub(super) fn ports_again(frames: &mut Frames, _: &mut Dice) {
    // The differences between the initial sequence numbers of the original and of the repetition.
    // The values are arbitrary.
    const APART: [u32; 2] = [0x2345_6789, 0x5432_1987];
    let sides = sides(frames);
    let minute = 60_000_000_000 + frames.last().map_or(0, |last| last.time - frames[0].time.min(last.time));
    for (mut frame, side) in frames.clone().into_iter().zip(sides) {
        let (Some(tcp), Some(side)) = (tcp_at(&frame), side) else { continue };
        let (seq, ack) = (tcp.seq(&frame), tcp.ack(&frame));
        tcp.set_seq(&mut frame, seq.wrapping_add(APART[side]));
        tcp.set_ack(&mut frame, ack.wrapping_add(APART[1 - side]));
        frame.time += minute;
        frames.push(frame);
    }
}

pub(super) fn ports_again_without_syns(frames: &mut Frames, dice: &mut Dice) {
    let count = frames.len();
    ports_again(frames, dice);
    let mut again = frames.split_off(count);
    again.retain(|frame| tcp_at(frame).is_none_or(|tcp| tcp.flags(frame) & SYN == 0));
    frames.append(&mut again);
}
