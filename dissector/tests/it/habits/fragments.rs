//! These habits (effects of capturing) split IPv4 packets into fragments.

use super::packet::{ipv4_at, set_ip_length, tcp_at};
use super::{CapturedFrame, Dice, Frames};

/// The flag "More Fragments". All fragments of a packet except the last fragment have this flag.
const MORE: u8 = 0x20;

/// Splits a frame into two fragments if it has at least 64 octets after its IPv4 header. Otherwise
/// returns the frame.
fn split(mut frame: CapturedFrame, identification: u16) -> Vec<CapturedFrame> {
    let Some(ip) = ipv4_at(&frame).filter(|_| tcp_at(&frame).is_some() && !frame.is_cut()) else {
        return vec![frame];
    };
    let header = ip + usize::from(frame.octets[ip] & 0xf) * 4;
    let end = ip + usize::from(u16::from_be_bytes([frame.octets[ip + 2], frame.octets[ip + 3]]));
    if end < header + 64 {
        return vec![frame];
    }
    frame.octets[ip + 4..ip + 6].copy_from_slice(&identification.to_be_bytes());
    let middle = (end - header) / 16 * 8;
    let (mut first, mut second) = (frame.clone(), frame.clone());
    first.octets.truncate(header + middle);
    first.octets[ip + 6..ip + 8].copy_from_slice(&[MORE, 0]);
    second.octets.truncate(end);
    second.octets.drain(header..header + middle);
    second.octets[ip + 6..ip + 8].copy_from_slice(&u16::try_from(middle / 8).unwrap().to_be_bytes());
    set_ip_length(&mut first, ip);
    set_ip_length(&mut second, ip);
    vec![first, second]
}

/// Splits each frame. Each frame gets its own identification.
fn split_all(frames: &mut Frames) -> impl Iterator<Item = Vec<CapturedFrame>> {
    std::mem::take(frames).into_iter().zip(1..).map(|(frame, number)| split(frame, number))
}

pub(super) fn in_two(frames: &mut Frames, _: &mut Dice) {
    *frames = split_all(frames).flatten().collect();
}

pub(super) fn reversed(frames: &mut Frames, _: &mut Dice) {
    *frames = split_all(frames).flat_map(|fragments| fragments.into_iter().rev()).collect();
}

pub(super) fn some_lost(frames: &mut Frames, dice: &mut Dice) {
    in_two(frames, dice);
    frames.retain(|frame| ipv4_at(frame).is_some() || !dice.one_in(10));
}

/// Gives all frames the same identification, as if the counter of the sender were very short. Each
/// frame is a minute later than the previous frame.
pub(super) fn same_identification(frames: &mut Frames, dice: &mut Dice) {
    for (number, frame) in (0..).zip(frames.iter_mut()) {
        frame.time += number * 60_000_000_000;
    }
    *frames = std::mem::take(frames).into_iter().flat_map(|frame| split(frame, 9)).collect();
    frames.retain(|frame| ipv4_at(frame).is_some() || !dice.one_in(10));
}
