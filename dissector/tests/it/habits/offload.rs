//! In this habit (effect of capturing), the network card joins segments before they are captured.

use super::packet::{FIN, RST, SYN, set_ip_length, tcp_at};
use super::{CapturedFrame, Dice, Frames};

/// The longest packet that receive offload creates, in octets.
const LONGEST: usize = 65_000;

/// Returns whether `next` continues where `frame` ends. Both frames must have payload and no SYN,
/// FIN or RST.
fn follows(frame: &CapturedFrame, next: &CapturedFrame) -> bool {
    let (Some(tcp), Some(other)) = (tcp_at(frame), tcp_at(next)) else { return false };
    let plain = |frame: &CapturedFrame, flags: u8| flags & (SYN | FIN | RST) == 0 && !frame.is_cut();
    let end = tcp.seq(frame).wrapping_add(u32::try_from(tcp.end - tcp.payload).unwrap());
    plain(frame, tcp.flags(frame))
        && plain(next, other.flags(next))
        && tcp.has_payload()
        && other.has_payload()
        && tcp.ends(frame) == other.ends(next)
        && other.seq(next) == end
        && tcp.end + other.end - other.payload < LONGEST
}

pub(super) fn merged(frames: &mut Frames, _: &mut Dice) {
    let mut joined: Frames = Vec::new();
    for next in std::mem::take(frames) {
        match (joined.last_mut(), tcp_at(&next)) {
            (Some(frame), Some(other)) if follows(frame, &next) => {
                let Some(tcp) = tcp_at(frame) else { continue };
                frame.octets.truncate(tcp.end);
                frame.octets.extend_from_slice(&next.octets[other.payload..other.end]);
                tcp.set_ack(frame, other.ack(&next));
                set_ip_length(frame, tcp.ip);
            }
            _ => joined.push(next),
        }
    }
    *frames = joined;
}
