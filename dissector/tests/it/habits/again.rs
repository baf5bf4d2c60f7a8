//! After these habits (effects of capturing), the capture has a frame or an octet more than once.

use super::packet::{FIN, RST, SYN, Tcp, set_ip_length, tcp_at};
use super::sides::sides;
use super::{Dice, Frames};

/// Inserts `frame` at index `at`, with the time of its neighbour.
pub(super) fn insert(frames: &mut Frames, at: usize, mut frame: super::CapturedFrame) {
    let at = at.min(frames.len());
    if let Some(before) = at.checked_sub(1) {
        frame.delay_to(frames[before].time);
    }
    frames.insert(at, frame);
}

pub(super) fn one(frames: &mut Frames, dice: &mut Dice) {
    if !frames.is_empty() {
        let at = dice.below(frames.len());
        let again = frames[at].clone();
        insert(frames, at + 1 + dice.below(6), again);
    }
}

/// Duplicates each frame. A mirror port does this if it mirrors the ports of both endpoints.
pub(super) fn every(frames: &mut Frames, _: &mut Dice) {
    *frames = frames.iter().flat_map(|frame| [frame.clone(), frame.clone()]).collect();
}

pub(super) fn every_late(frames: &mut Frames, _: &mut Dice) {
    let once = frames.clone();
    for (number, frame) in once.into_iter().enumerate() {
        insert(frames, 2 * number + 4, frame);
    }
}

/// Returns the segments that have payload and neither SYN, FIN nor RST.
fn data(frames: &Frames) -> Vec<(usize, Tcp)> {
    let plain = |(at, frame): (usize, &super::CapturedFrame)| {
        let tcp = tcp_at(frame)?;
        (tcp.has_payload() && tcp.flags(frame) & (SYN | FIN | RST) == 0 && !frame.is_cut()).then_some((at, tcp))
    };
    frames.iter().enumerate().filter_map(plain).collect()
}

/// Removes a segment, and inserts a retransmission of this segment at a later place. The
/// retransmission acknowledges the octets that its sender has received at that time.
pub(super) fn retransmitted(frames: &mut Frames, dice: &mut Dice) {
    let data = data(frames);
    if data.is_empty() {
        return;
    }
    let (at, tcp) = data[dice.below(data.len())];
    let ends = tcp.ends(&frames[at]);
    let mut again = frames.remove(at);
    let to = (at + 1 + dice.below(12)).min(frames.len());
    let same = |frame: &super::CapturedFrame| {
        tcp_at(frame).filter(|other| other.ends(frame) == ends).map(|other| other.ack(frame))
    };
    if let Some(ack) = frames[at..to].iter().rev().find_map(same) {
        tcp.set_ack(&mut again, ack);
    }
    insert(frames, to, again);
}

/// Inserts a TCP keep-alive before a segment. The keep-alive has one octet, at the position of the
/// last octet of the segment. The values of the two octets can differ.
pub(super) fn keep_alive_early(frames: &mut Frames, dice: &mut Dice) {
    let sides = sides(frames);
    let data: Vec<(usize, Tcp)> = data(frames).into_iter().filter(|(at, _)| sides[*at].is_some()).collect();
    if data.is_empty() {
        return;
    }
    let (at, tcp) = data[dice.below(data.len())];
    let mut probe = frames[at].clone();
    let length = u32::try_from(tcp.end - tcp.payload).unwrap();
    tcp.set_seq(&mut probe, tcp.seq(&frames[at]).wrapping_add(length - 1));
    probe.octets.truncate(tcp.payload);
    probe.octets.push(0xff);
    set_ip_length(&mut probe, tcp.ip);
    insert(frames, at, probe);
}
