//! Draws the steps of a session with the service echo or rping: selects them at random.
//!
//! `echo_draw` and `rping_draw` draw the operations of the services, and `fault_draw` draws the
//! faults.

use fastrand::Rng;

use super::fault_draw::fault;
use super::profile::{DEPTHS, MAX_SEND, Profile};
use super::service::SessionService;
use super::shared_draw::{FEW, LONG, connections, pick, scale, scaled, size, step_count};
use super::step::{Rtr, Step};
use super::{echo_draw, rping_draw};

/// Maximum number of steps of a session with few connections.
const MAX_STEPS: usize = 40;
/// Maximum number of bytes that a session with few connections sends.
const MAX_OCTETS: u32 = 2 << 20;
/// Maximum factor for the number of bytes of a session with many connections.
const MAX_SCALE_OF_OCTETS: u32 = 4;
/// Maximum number of connections whose Sends are sent in turns.
const MAX_IN_TURNS: u32 = 16;
/// Lengths of private data. Some connection managers store this length in one byte.
const PRIVATE: [u32; 18] = [1, 3, 4, 64, 252, 253, 254, 255, 256, 504, 505, 507, 508, 509, 512, 512, 512, 512];

/// Draws the steps of a session with the service echo or rping.
pub(super) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let mut steps = Vec::new();
    let connections = connections(rng, profile);
    let mut left = MAX_OCTETS * scale(connections).min(MAX_SCALE_OF_OCTETS);
    // If a connection has no `Open` step, its start-up frame has the values of the target file.
    for connection in 1..=connections {
        if rng.bool() {
            steps.push(open(rng, profile, connection));
        }
    }
    let count = steps.len() + step_count(rng, scaled(MAX_STEPS, connections));
    while steps.len() < count {
        let connection = rng.u32(1..=connections);
        match rng.u32(..100) {
            0..6 => steps.push(open(rng, profile, connection)),
            6 if rng.u32(..6) == 0 => steps.push(Step::Pause { ms: rng.u32(1500..2500) }),
            6..12 => steps.push(Step::Pause { ms: rng.u32(1..200) }),
            12..20 => steps.push(Step::Answers { connection }),
            20..25 if profile.answers_after_fin && rng.u32(..3) == 0 => {
                let size = size(rng, MAX_SEND.min(profile.max_segment));
                let ms = if rng.bool() { 0 } else { rng.u32(1..300) };
                steps.push(Step::Finish { connection, size, ms });
            }
            20..25 => steps.push(Step::Close { connection }),
            25..29 => steps.push(Step::Reset { connection }),
            29 if !profile.is_initiator => steps.push(Step::Refused { count: rng.u32(1..=12) }),
            30..35 if profile.faults => {
                let (fault, at_once) = (fault(rng, profile, &steps, connection), rng.u32(..3) == 0);
                steps.push(Step::Fault { connection, fault, at_once });
            }
            // The target may reject these Requests, so the sessions of the suites have none.
            35..39 if profile.faults && !profile.is_initiator => {
                if profile.connections == 1 {
                    // The service may serve one connection at a time.
                    steps.push(Step::Close { connection });
                }
                steps.push(request(rng, profile));
            }
            39 if connections > FEW && profile.service == SessionService::Echo => {
                in_turns(rng, profile, connections, &mut left, &mut steps);
            }
            _ => {
                if !align(rng, profile, connection, &mut steps) {
                    operation(rng, profile, connection, &mut left, &mut steps);
                }
            }
        }
    }
    if profile.longest > profile.max_send && rng.u32(..LONG) == 0 {
        let (connection, place) = (rng.u32(1..=connections), rng.usize(..=steps.len()));
        steps.splice(place..place, long_steps(rng, profile, connection));
    }
    steps
}

/// Returns steps with a Send that is longer than the Sends of other sessions. The receives of the
/// target hold it.
fn long_steps(rng: &mut Rng, profile: &Profile, connection: u32) -> Vec<Step> {
    let size = match rng.u32(..3) {
        0 => profile.longest,
        1 => profile.longest.min(1 << 22) - rng.u32(..3),
        _ => rng.u32(profile.max_send..=profile.longest),
    };
    // Short segments would need many minutes.
    let most = profile.max_segment;
    let segment = if rng.bool() { most } else { rng.u32(most.min(1000)..=most) };
    let count = rng.u32(1..=size.div_ceil(segment));
    vec![
        Step::Answers { connection },
        Step::message(connection, size, segment),
        Step::Segments { connection, count },
        Step::Answers { connection },
    ]
}

/// Draws a Send on each of several connections. Their segments are sent in turns, so the target has
/// incomplete messages of all these connections at the same time.
fn in_turns(rng: &mut Rng, profile: &Profile, connections: u32, left: &mut u32, steps: &mut Vec<Step>) {
    let mut numbers: Vec<u32> = (1..=connections).collect();
    rng.shuffle(&mut numbers);
    numbers.truncate(rng.u32(2..=connections.min(MAX_IN_TURNS)) as usize);
    let turns = rng.u32(2..=4);
    for connection in &numbers {
        let size = size(rng, MAX_SEND.min(profile.max_send).min(*left));
        *left -= size;
        steps.push(Step::message(*connection, size, size.div_ceil(turns).clamp(1, profile.max_segment)));
    }
    for _ in 0..turns {
        rng.shuffle(&mut numbers);
        steps.extend(numbers.iter().map(|connection| Step::Segments { connection: *connection, count: 1 }));
    }
}

fn open(rng: &mut Rng, profile: &Profile, connection: u32) -> Step {
    let crc = (profile.crc_is_optional && rng.bool()).then(|| rng.bool());
    let markers = profile.markers && rng.u32(..3) == 0;
    let enhanced = profile.enhanced && rng.bool();
    // Only sessions with the echo service send drawn private data. The server of rping may expect
    // the private data of its own client.
    let private = if rng.u32(..4) == 0 { private_data(rng, profile, enhanced) } else { 0 };
    let has_rtr = enhanced && profile.service == SessionService::Echo && rng.bool();
    Step::Open {
        connection,
        crc,
        markers,
        enhanced,
        rtr: has_rtr.then(|| pick(rng, &[Rtr::Send, Rtr::Write])),
        private: if profile.service == SessionService::Echo { private } else { 0 },
    }
}

/// Draws a step that aligns a marker, if the connection has markers. Returns whether it adds steps.
fn align(rng: &mut Rng, profile: &Profile, connection: u32, steps: &mut Vec<Step>) -> bool {
    let from_target = profile.markers && requests_markers(steps, connection);
    if !(from_target || profile.requests_markers) || rng.u32(..8) != 0 {
        return false;
    }
    let by_target = from_target && (!profile.requests_markers || rng.bool());
    // A marker before an FPDU, in its headers, or after them.
    let at = if rng.bool() { pick(rng, &[0, 4, 8, 12, 16, 20, 24, 40]) } else { 4 * rng.u32(..=126) };
    steps.push(Step::Align { connection, at, by_target });
    if by_target && profile.faults && rng.u32(..3) == 0 {
        // The next FPDU of the target is a Terminate.
        let fault = fault(rng, profile, steps, connection);
        steps.push(Step::Fault { connection, fault, at_once: false });
    }
    true
}

/// Returns whether the tester requests markers on this connection. The result may be wrong if a
/// step opens a connection that is already open. Then `Align` has no effect.
fn requests_markers(steps: &[Step], connection: u32) -> bool {
    let requests = |step: &Step| match *step {
        Step::Open { connection: opened, markers, .. } if opened == connection => Some(markers),
        Step::Close { connection: ended }
        | Step::Finish { connection: ended, .. }
        | Step::Reset { connection: ended }
        | Step::Fault { connection: ended, .. }
            if ended == connection =>
        {
            Some(false)
        }
        _ => None,
    };
    steps.iter().rev().find_map(requests).unwrap_or(false)
}

/// Draws a number of bytes of private data.
fn private_data(rng: &mut Rng, profile: &Profile, enhanced: bool) -> u32 {
    let most = if enhanced { profile.private.saturating_sub(DEPTHS) } else { profile.private };
    (pick(rng, &PRIVATE)).min(most)
}

/// Draws a Request that the target may accept or reject. Often, IRD is 0, so a service that reads
/// from its peer may reject the Request.
fn request(rng: &mut Rng, profile: &Profile) -> Step {
    let crc = (profile.crc_is_optional && rng.bool()).then(|| rng.bool());
    let markers = profile.markers && rng.u32(..3) == 0;
    let enhanced = profile.enhanced && rng.u32(..4) > 0;
    let values = [0, 0, 1, 2, 15, 16, 17, 128, 0x3ffe, 0x3fff];
    let depths = enhanced.then(|| [pick(rng, &values), pick(rng, &values)]);
    // At least one bit is set, because a Request for the peer-to-peer model has to offer a message.
    let offered = if enhanced && rng.bool() { rng.u8(1..8) } else { 0 };
    let private = if rng.bool() { private_data(rng, profile, enhanced) } else { 0 };
    Step::Request { crc, private, markers, depths, rtr: [1, 2, 4].map(|bit| offered & bit != 0) }
}

/// Draws an operation of the service.
fn operation(rng: &mut Rng, profile: &Profile, connection: u32, left: &mut u32, steps: &mut Vec<Step>) {
    match profile.service {
        SessionService::Echo => echo_draw::operation(rng, profile, connection, left, steps),
        SessionService::Rping => rping_draw::operation(rng, profile, connection, steps),
        // Other modules draw the steps of other sessions.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::drive_step::Commands;
    use super::super::fault::NEIGHBOUR_FAULTS;
    use super::super::profile::MAX_PRIVATE;
    use super::super::shared_draw::MAX_FPDUS;
    use super::super::step::MessageFields;
    use super::*;
    use crate::targets::Target;

    #[test]
    fn a_session_stays_inside_its_profile_and_follows_from_its_seed() {
        let profile = Profile {
            service: SessionService::Echo,
            connections: 3,
            max_send: 50_000,
            longest: 50_000,
            buffer: 64,
            max_segment: 1442,
            private: MAX_PRIVATE,
            crc_is_optional: false,
            crc: true,
            enhanced: true,
            markers: true,
            requests_markers: false,
            any_order: true,
            interleaves: true,
            atomics: false,
            floods: true,
            burst: 4100,
            batch: 300,
            empty_writes: true,
            empty_reads: true,
            answers_after_fin: true,
            separate_domains: false,
            faults: true,
            extras: false,
            is_initiator: false,
            ports: 1,
            v6: false,
            commands: Commands::of(&Target::builtin()),
            user_ends: false,
            suspends: false,
            resumes: false,
        };
        let (mut sizes, mut kinds) = (std::collections::BTreeSet::new(), std::collections::HashSet::new());
        let (mut batches, mut bursts) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        let mut longest = [0_u32; 2];
        for seed in 0..200 {
            let steps = super::steps(&mut Rng::with_seed(seed), &profile);
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile));
            for step in steps {
                kinds.insert(std::mem::discriminant(&step));
                if let Step::Open { private, enhanced, .. } = step {
                    longest[usize::from(enhanced)] = longest[usize::from(enhanced)].max(private);
                }
                if let Step::Message(MessageFields { connection, size, segment, .. }) = step {
                    assert!((1..=3).contains(&connection) && size <= 50_000 && (1..=1442).contains(&segment), "{step}");
                    assert!(size.div_ceil(segment) <= MAX_FPDUS, "{step}");
                    sizes.insert(size);
                }
                match step {
                    // 64 KiB always fit into the buffers of TCP.
                    Step::Batch { count, size, .. } => {
                        assert!((2..=300).contains(&count) && count * size <= 65_536, "{step}");
                        batches.insert(count);
                    }
                    Step::Burst { count, size, spread, .. } => {
                        assert!((2..=4100).contains(&count) && size + spread <= 124, "{step}");
                        bursts.insert(count);
                    }
                    Step::Align { at, by_target, .. } => {
                        assert!(at % 4 == 0 && at <= 504 && by_target, "{step}");
                    }
                    _ => {}
                }
            }
        }
        // Every kind of step that the service echo has.
        assert_eq!(kinds.len(), 19);
        // Both are on either side of powers of two.
        for (counts, power) in [(&batches, 64), (&bursts, 1024)] {
            assert!(
                counts.iter().any(|count| *count > power) && counts.iter().any(|count| *count < power),
                "{counts:?}"
            );
        }
        // Private data of 512 bytes is the longest (RFC 5044 section 7.1.1). In an enhanced frame,
        // 4 of these bytes are IRD and ORD (RFC 6581 section 9).
        assert_eq!(longest, [512, 508]);
        assert!(sizes.contains(&0) && sizes.contains(&50_000) && sizes.len() > 200, "{} sizes", sizes.len());
    }

    /// Not every target can do what these steps need, and `explore::limits` measures that only
    /// before an exploration.
    #[test]
    fn sessions_of_the_suites_need_no_measured_limits() {
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 2);
        for seed in 0..200 {
            for step in super::steps(&mut Rng::with_seed(seed), &profile) {
                match step {
                    Step::Burst { count, .. } => assert!(count <= 320, "{step}"),
                    Step::Batch { count, .. } => assert!(count <= 8, "{step}"),
                    Step::Empty { .. } | Step::Pad { .. } | Step::Finish { .. } => panic!("{step}"),
                    Step::Flood { .. } | Step::Fault { .. } | Step::Request { .. } => panic!("{step}"),
                    _ => {}
                }
            }
        }
    }

    /// A session of 320 steps has at most 32 steps that open its connections. The last step may be
    /// 16 Sends in turns, with up to 5 steps for each of them.
    #[test]
    fn sessions_with_many_connections_have_many_steps() {
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 32);
        let (mut large, mut in_turns) = (0, 0);
        for seed in 0..200 {
            let steps = super::steps(&mut Rng::with_seed(seed), &profile);
            assert!(steps.len() < 320 + 32 + 80, "{} steps", steps.len());
            let used: std::collections::BTreeSet<u32> = steps.iter().filter_map(|step| step.number()).collect();
            assert!(used.last().is_none_or(|last| *last <= 32), "{used:?}");
            large += u32::from(used.len() > 16 && steps.len() > 100);
            let is_segment = |step: &Step| matches!(step, Step::Segments { count: 1, .. });
            in_turns += u32::from(steps.windows(4).any(|steps| steps.iter().all(is_segment)));
        }
        assert!(large > 10 && in_turns > 20, "{large} {in_turns}");
        assert_eq!([1, 4, 5, 32, 1000].map(scale), [1, 1, 2, 8, 10]);
    }

    #[test]
    fn few_sessions_have_a_long_send() {
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 3);
        let profile = Profile { max_send: 1 << 20, longest: 1 << 24, max_segment: 1432, ..profile };
        let mut sizes = Vec::new();
        for step in (0..600).flat_map(|seed| super::steps(&mut Rng::with_seed(seed), &profile)) {
            let Step::Message(MessageFields { size, segment, .. }) = step else { continue };
            if size > 1 << 20 {
                assert!(size <= 1 << 24 && (1000..=1432).contains(&segment), "{step}");
                sizes.push(size);
            }
        }
        assert!((5..60).contains(&sizes.len()) && sizes.contains(&(1 << 24)), "{sizes:?}");
    }

    #[test]
    fn only_connections_with_markers_have_steps_that_align_them() {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 3);
        let requesting = Profile { requests_markers: true, ..profile };
        let aligned = |profile: &Profile| {
            let mut aligned = 0;
            for seed in 0..200 {
                let steps = super::steps(&mut Rng::with_seed(seed), profile);
                for (at, step) in steps.iter().enumerate() {
                    if let Step::Align { connection, by_target, .. } = *step {
                        assert!(!by_target || super::requests_markers(&steps[..at], connection), "{steps:?}");
                        aligned += 1;
                    }
                }
            }
            aligned
        };
        assert_eq!(aligned(&Profile { markers: false, ..profile }), 0);
        assert!(aligned(&profile) > 5 && aligned(&requesting) > 100);
    }

    #[test]
    fn faults_follow_while_answers_are_owed_and_name_neighbours_only_if_the_target_separates_them() {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 2);
        for separate_domains in [false, true] {
            let profile = Profile { faults: true, separate_domains, ..profile };
            let (mut now, mut neighbours) = (0, 0);
            for seed in 0..200 {
                for step in super::steps(&mut Rng::with_seed(seed), &profile) {
                    let Step::Fault { fault, at_once, .. } = step else { continue };
                    now += u32::from(at_once);
                    neighbours += u32::from(NEIGHBOUR_FAULTS.contains(&fault));
                }
            }
            assert!(now > 10, "{now}");
            assert_eq!(neighbours > 0, separate_domains);
        }
    }

    #[test]
    fn a_fault_follows_some_floods_at_once() {
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 1);
        let profile = Profile { faults: true, floods: true, max_send: 1 << 20, ..profile };
        let mut pairs = 0;
        for seed in 0..400 {
            for pair in super::steps(&mut Rng::with_seed(seed), &profile).windows(2) {
                pairs += u32::from(matches!(pair, [Step::Flood { .. }, Step::Fault { at_once: true, .. }]));
            }
        }
        assert!(pairs > 5, "{pairs}");
    }

    #[test]
    fn requests_have_all_depths_and_legal_flags() {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 3);
        let profile = Profile { interleaves: true, faults: true, private: MAX_PRIVATE, ..profile };
        let (mut depths_drawn, mut without_reads, mut longest) = (std::collections::BTreeSet::new(), 0, 0_u32);
        for step in (0..300).flat_map(|seed| super::steps(&mut Rng::with_seed(seed), &profile)) {
            let Step::Request { private, depths, rtr, .. } = step else { continue };
            let most = if depths.is_some() { MAX_PRIVATE - DEPTHS } else { MAX_PRIVATE };
            assert!(private <= most && (depths.is_some() || rtr == [false; 3]), "{step}");
            longest = longest.max(private);
            depths_drawn.extend(depths.into_iter().flatten());
            without_reads += u32::from(depths.is_some_and(|[ird, _]| ird == 0));
        }
        assert!(longest >= MAX_PRIVATE - DEPTHS && without_reads > 5, "{longest} {without_reads}");
        assert!(depths_drawn.len() == 9 && depths_drawn.last() == Some(&0x3fff), "{depths_drawn:?}");
    }
}
