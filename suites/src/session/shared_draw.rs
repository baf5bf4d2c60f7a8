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
/// Differences in bytes between a size and a multiple.
pub(super) const NEAR: [i32; 4] = [-2, -1, 1, 2];
/// Maximum payload in bytes of a segment on Ethernet.
const ETHERNET: u32 = 1432;
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

/// Draws the payload in bytes of a full segment.
pub(super) fn full_segment(rng: &mut Rng, profile: &Profile) -> u32 {
    if rng.bool() { profile.max_segment } else { profile.max_segment.min(ETHERNET) }
}

/// Draws a size in bytes near a multiple of `full`, of at most `most`.
pub(super) fn near(rng: &mut Rng, full: u32, most: u32) -> u32 {
    let count = rng.u32(1..=(most / full).clamp(1, 8));
    (count * full).saturating_add_signed(pick(rng, &NEAR)).min(most)
}

pub(super) fn pick<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.usize(..values.len())]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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

    #[test]
    fn sizes_are_near_multiples_and_within_their_limit() {
        let mut rng = Rng::with_seed(1);
        for (full, most) in [(1432, 65_535), (64_750, 65_535), (64_750, 4000), (21, 4000), (8176, 60_000)] {
            let sizes: HashSet<u32> = (0..200).map(|_| near(&mut rng, full, most)).collect();
            for size in &sizes {
                let distance = (size % full).min(full - size % full);
                assert!(*size <= most && ((1..=2).contains(&distance) || *size == most), "{size} of {full}");
            }
            assert!(sizes.len() > 3 || full > most, "{sizes:?}");
        }
    }
}
