//! Draws the operations of the service rping.

use fastrand::Rng;

use super::profile::Profile;
use super::shared_draw::{pick, segment, size};
use super::step::Step;

/// Number of bytes at the end of rping's buffer that an announced Read leaves free, as in the Lua
/// module.
const FREE: u32 = 16;

/// Draws an operation of the service rping.
pub(super) fn operation(rng: &mut Rng, profile: &Profile, connection: u32, steps: &mut Vec<Step>) {
    if is_announced(steps, connection) && rng.u32(..4) == 0 {
        let count = if profile.interleaves { rng.u32(..=4) } else { 0 };
        return steps.push(Step::Respond { connection, count });
    }
    // Writes and Reads often begin at the same place.
    let at = match rng.u32(..4) {
        0 | 1 => 0,
        2 => profile.buffer / 2,
        _ => rng.u32(..=profile.buffer),
    };
    let size = size(rng, profile.buffer - at);
    let busy = if rng.u32(..3) == 0 { pick(rng, &[1, 8, 16]) } else { 0 };
    // An Initiator is rping's client, which may close after each round.
    if !profile.is_initiator && rng.u32(..5) == 0 {
        if rng.bool() {
            return announce(rng, profile, connection, steps);
        }
        let count = if rng.u32(..6) == 0 { rng.u32(1..=300) } else { rng.u32(1..=3) };
        let size = if count > 3 { rng.u32(2..=64) } else { size };
        let segment = segment(rng, profile, size);
        let to = offset(rng, size);
        let (between, empty) = (rng.u32(..3) == 0, rng.u32(..3) == 0);
        return steps.push(Step::Rounds { connection, count, size, segment, to, between, empty, busy });
    }
    if rng.u32(..8) == 0 {
        return steps.push(Step::Reads { connection, count: pick(rng, &[2, 3, 5, 8, 15, 16, 16]), size });
    }
    // Many targets translate addresses in pages, and carry bits at 2^16 and 2^32.
    let align = if rng.u32(..6) == 0 { pick(rng, &[4096, 4096, 1 << 16, 1 << 32]) } else { 0 };
    let (at, size) = match align {
        0 => (at, size),
        _ => {
            let before = pick(rng, &[0, 0, 1, 2, 3, 4, 8, 60]);
            (before, if before > 0 && rng.bool() { before } else { before + rng.u32(1..=64) })
        }
    };
    match rng.bool() {
        true => steps.push(Step::Read { connection, at, size, align }),
        false => {
            let segment = segment(rng, profile, size);
            steps.push(Step::Write { connection, at, size, segment, align });
        }
    }
}

/// Draws a Read of the target, which stays outstanding. Often, a part of its Response follows at
/// once, and then a Write or a Read.
fn announce(rng: &mut Rng, profile: &Profile, connection: u32, steps: &mut Vec<Step>) {
    let size = size(rng, profile.buffer.saturating_sub(FREE)).max(2);
    let segment = match rng.bool() {
        true => segment(rng, profile, size),
        false => size.div_ceil(rng.u32(2..=6)).min(profile.max_segment),
    };
    let (to, empty) = (offset(rng, size), rng.u32(..3) == 0);
    steps.push(Step::Announce { connection, size, segment, to, empty });
    let segments = size.div_ceil(segment);
    match rng.u32(..4) {
        0 => steps.push(Step::Respond { connection, count: 0 }),
        1 | 2 if profile.interleaves && segments > 1 => {
            steps.push(Step::Respond { connection, count: rng.u32(1..segments) });
            let size = rng.u32(..=FREE);
            match rng.u32(..3) {
                0 => steps.push(Step::Write { connection, at: 0, size, segment: FREE, align: 0 }),
                1 => steps.push(Step::Read { connection, at: 0, size, align: 0 }),
                _ => {}
            }
        }
        _ => {}
    }
}

/// Draws the offset of a buffer of the tester with `size` bytes. Often, bit 31 or bit 32 changes
/// within the buffer.
fn offset(rng: &mut Rng, size: u32) -> u64 {
    match rng.u32(..4) {
        0 | 1 => rng.u64(..),
        2 => (1 << 32) - u64::from(rng.u32(..=size)),
        _ => (1 << 31) - u64::from(rng.u32(..=size)),
    }
}

/// Returns whether a Read of the target is outstanding on a connection after these steps.
fn is_announced(steps: &[Step], connection: u32) -> bool {
    let last = steps.iter().rev().find(|step| match step {
        Step::Announce { connection: other, .. }
        | Step::Respond { connection: other, count: 0 }
        | Step::Rounds { connection: other, .. }
        | Step::Answers { connection: other }
        | Step::Align { connection: other, .. }
        | Step::Close { connection: other }
        | Step::Finish { connection: other, .. }
        | Step::Reset { connection: other }
        | Step::Fault { connection: other, .. } => *other == connection,
        _ => false,
    });
    matches!(last, Some(Step::Announce { .. }))
}

#[cfg(test)]
mod tests {
    use super::super::draw::steps;
    use super::super::fault::{CLOSED_STAG, RESPONSE_FAULTS};
    use super::super::profile::MAX_PRIVATE;
    use super::super::service::SessionService;
    use super::super::shared_draw::MAX_FPDUS;
    use super::*;
    use crate::targets::Target;

    #[test]
    fn sessions_with_a_client_of_rping_have_no_rounds() {
        let profile = Profile::of(&Target::builtin_initiator(), SessionService::Rping, 2);
        let profile = Profile { faults: true, ..profile };
        let mut reads = 0;
        for seed in 0..200 {
            for step in steps(&mut Rng::with_seed(seed), &profile) {
                assert!(!matches!(step, Step::Rounds { .. } | Step::Announce { .. }), "{step}");
                assert!(!matches!(step, Step::Refused { .. } | Step::Request { .. }), "{step}");
                assert!(!matches!(step, Step::Fault { fault: CLOSED_STAG, .. }), "{step}");
                assert!(!matches!(step, Step::Fault { fault, .. } if RESPONSE_FAULTS.contains(&fault)), "{step}");
                reads += u32::from(matches!(step, Step::Read { .. } | Step::Reads { .. }));
            }
        }
        assert!(reads > 200, "{reads} reads");
    }

    /// Carries are wrong most often exactly at the multiple.
    #[test]
    fn some_parts_of_the_buffer_begin_at_a_multiple() {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 1);
        let mut at = std::collections::BTreeSet::new();
        for seed in 0..200 {
            for step in steps(&mut Rng::with_seed(seed), &profile) {
                if let Step::Write { at: before, align: 1.., size: 1.., .. } = step {
                    at.insert(before);
                }
            }
        }
        assert!(at.contains(&0) && at.contains(&1) && at.contains(&60), "{at:?}");
    }

    /// Returns sessions with rping's server. With `interleaves`, other messages may come between
    /// the segments of a Response.
    fn announcing(interleaves: bool) -> impl Iterator<Item = Vec<Step>> {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 3);
        let profile = Profile { interleaves, faults: true, private: MAX_PRIVATE, ..profile };
        (0..300).map(move |seed| steps(&mut Rng::with_seed(seed), &profile))
    }

    /// Other steps follow while a Read of the target is outstanding, on one connection and on
    /// several connections.
    #[test]
    fn reads_of_the_target_stay_outstanding() {
        let (mut partial, mut between, mut at_once) = (0, 0, 0);
        for steps in announcing(true) {
            for (at, step) in steps.iter().enumerate() {
                match *step {
                    Step::Announce { size, segment, .. } => {
                        // The buffer of the builtin target has 65,535 bytes.
                        assert!((2..=65_535 - FREE).contains(&size) && segment > 0, "{step}");
                        assert!(size.div_ceil(segment) <= MAX_FPDUS, "{step}");
                    }
                    Step::Respond { count, .. } => partial += u32::from(count > 0),
                    Step::Write { connection, .. } => between += u32::from(is_announced(&steps[..at], connection)),
                    _ => {}
                }
                let is_outstanding = |number: &u32| is_announced(&steps[..=at], *number);
                at_once += u32::from((1..=3).filter(is_outstanding).count() > 1);
            }
        }
        assert!(partial > 10 && between > 10 && at_once > 3, "{partial} {between} {at_once}");
    }

    /// If the target receives no other message between the segments of a Response, each step sends
    /// all segments.
    #[test]
    fn a_response_is_sent_at_once_unless_the_target_interleaves() {
        let mut responses = 0;
        for step in announcing(false).flatten() {
            assert!(!matches!(step, Step::Respond { count: 1.., .. }), "{step}");
            responses += u32::from(matches!(step, Step::Respond { .. }));
        }
        assert!(responses > 20, "{responses} responses");
    }
}
