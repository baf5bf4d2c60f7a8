//! The draws that several services share: the number of connections and of steps, sizes and
//! segments.
//!
//! Sizes are near the values at which implementations change their behaviour: a message in one
//! segment or in two, a full TCP segment, powers of two, and the largest message of the target. The
//! caller passes the maximum.

use fastrand::Rng;

use super::profile::Profile;

/// Number of connections that are few. If a session has more connections, it has more steps.
pub(super) const FEW: u32 = 4;
/// Maximum factor for the number of steps of a session with many connections.
const MAX_SCALE: u32 = 10;
/// If the sessions may have long steps, one of this number of sessions has them.
pub(super) const LONG: u32 = 30;
/// Maximum number of FPDUs of one message.
pub(super) const MAX_FPDUS: u32 = 400;

/// Draws the number of connections. Many sessions have one, because some faults need many steps on
/// one connection. If many connections are allowed, a quarter of the sessions have more than half
/// of them.
pub(super) fn connections(rng: &mut Rng, profile: &Profile) -> u32 {
    let most = profile.connections;
    if most > FEW && rng.u32(..4) == 0 {
        return rng.u32(most / 2 + 1..=most);
    }
    let most = rng.u32(1..=most);
    rng.u32(1..=most)
}

/// Returns the factor for the number of steps of a session with this number of connections.
pub(super) fn scale(connections: u32) -> u32 {
    connections.div_ceil(FEW).clamp(1, MAX_SCALE)
}

/// Returns the maximum number of steps of a session. `most` is this number with few connections.
pub(super) fn scaled(most: usize, connections: u32) -> usize {
    most * scale(connections) as usize
}

/// Draws the number of further steps, of at most `most`. Some sessions have few steps, others have
/// many.
pub(super) fn step_count(rng: &mut Rng, most: usize) -> usize {
    1 + rng.usize(..most) * rng.usize(1..=4) / 4
}

/// Draws a size in bytes, of at most `most`.
pub(super) fn size(rng: &mut Rng, most: u32) -> u32 {
    let size = match rng.u32(..10) {
        0 => 0,
        1..4 => rng.u32(1..=40),
        4..6 => pick(rng, &[64, 128, 256, 512, 1024, 1442, 1460, 2048]) * rng.u32(1..=3) + rng.u32(..5) - 2,
        6..8 => (1 << rng.u32(6..22)) + rng.u32(..5) - 2,
        8 => most.saturating_sub(rng.u32(..3)),
        _ => rng.u32(..=most.min(100_000)),
    };
    size.min(most)
}

/// Draws the maximum payload of the segments of a message.
pub(super) fn segment(rng: &mut Rng, profile: &Profile, size: u32) -> u32 {
    let most = profile.max_segment;
    let segment = match rng.u32(..6) {
        0 | 1 => most,
        2 => pick(rng, &[64, 128, 256, 512, 1024]) + rng.u32(..5) - 2,
        3 => rng.u32(1..=64),
        _ => rng.u32(1..=most),
    };
    // In short TCP segments, the longest messages need more FPDUs.
    segment.clamp(size.div_ceil(MAX_FPDUS).clamp(1, most), most)
}

pub(super) fn pick<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.usize(..values.len())]
}

#[cfg(test)]
mod tests {
    use super::super::service::SessionService;
    use super::*;
    use crate::targets::Target;

    /// A Send of 1 MiB needs more than [`MAX_FPDUS`] segments of Ethernet.
    #[test]
    fn the_longest_sends_fit_into_segments_of_ethernet() {
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 1);
        let profile = Profile { max_segment: 1432, ..profile };
        for seed in 0..100 {
            assert!(segment(&mut Rng::with_seed(seed), &profile, 1 << 20) <= 1432);
        }
    }
}
