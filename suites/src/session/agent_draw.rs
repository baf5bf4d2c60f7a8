//! Draws the steps of a session with an agent.

use fastrand::Rng;

use super::agent_step::{AgentAction, AgentStep, DEPTH, MessageFields, POSTED_ATOMICS, SEGMENT, WorkFields};
use super::fault::{AGENT_CRC_FAULTS, AGENT_FAULTS, Fault};
use super::profile::Profile;
use super::shared_draw::{LONG, connections, pick, scale, scaled, segment, size, step_count};
use super::step::Step;

/// The kinds of work requests that the target's user posts.
const KINDS: [&str; 3] = ["send", "write", "read"];
/// The Atomic Operations that the tester requests. A `miss` is a CmpSwap that finds another value.
const ATOMICS: [&str; 3] = ["add", "swap", "miss"];
/// Number of regions of a connection that the tester writes and reads.
const REGIONS: u32 = 3;
/// Maximum size in bytes of such a region.
const MAX_REGION: u32 = 200_000;
/// Maximum size in bytes of a message. If a step has several messages, the maximum is lower. Only
/// long steps have larger messages.
const MAX_SIZE: u32 = 131_072;
const MAX_SHORT: u32 = 4096;
/// Maximum number of steps of a session with few connections.
const MAX_STEPS: usize = 30;
/// Maximum number of bytes of the messages of a session.
const MAX_OCTETS: u32 = 2 << 20;

fn of(connection: u32, action: AgentAction) -> Step {
    Step::Agent(AgentStep { connection, action })
}

/// Draws the steps of a session.
pub(super) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let connections = connections(rng, profile);
    let (mut steps, mut left) = (Vec::new(), MAX_OCTETS);
    for connection in 1..=connections {
        if rng.bool() {
            steps.push(of(connection, open(rng, profile)));
        }
    }
    // The regions of all connections share the memory of the agent.
    let max_region = MAX_REGION / scale(connections);
    let count = steps.len() + step_count(rng, scaled(MAX_STEPS, connections));
    while steps.len() < count {
        let (connection, region) = (rng.u32(1..=connections), rng.u32(1..=REGIONS));
        let action = match rng.u32(..100) {
            0..3 => {
                steps.push(Step::Pause { ms: rng.u32(1..100) });
                continue;
            }
            3..9 => {
                steps.push(Step::Answers { connection });
                continue;
            }
            9..12 => {
                steps.push(Step::Close { connection });
                continue;
            }
            12..14 => {
                steps.push(Step::Reset { connection });
                continue;
            }
            14..16 => AgentAction::Disconnect,
            16..20 => open(rng, profile),
            20..26 => AgentAction::Region { region, size: size(rng, max_region).max(1) },
            26..29 => AgentAction::Fill { region },
            29..36 => AgentAction::Answer { count: rng.u32(1..=40), segment: pick(rng, &[1, 64, 1000, 1432, SEGMENT]) },
            36..41 => {
                let (count, size) = (rng.u32(1..=12), size(rng, 4 * MAX_SHORT));
                AgentAction::Receive { count, size, parts: parts(rng), pad: rng.u32(..64) }
            }
            41..44 if profile.atomics => AgentAction::Atomic(pick(rng, &ATOMICS)),
            44..46 if profile.atomics => AgentAction::Immediate { solicited: rng.bool() },
            46..66 => AgentAction::Post(work(rng, profile, &mut left)),
            66..76 => {
                let size = size(rng, MAX_SIZE.min(left));
                left -= size;
                AgentAction::Write { region, at: place(rng), size, segment: segment(rng, profile, size) }
            }
            76..86 => {
                let count: u32 = pick(rng, &[1, 1, 1, 2, 4, 5, 16]);
                let most = if count == 1 { MAX_SIZE } else { MAX_SHORT };
                let size = size(rng, most.min(left / count));
                left -= size * count;
                AgentAction::Read { region, at: place(rng), size, count }
            }
            86..90 if profile.faults => {
                steps.push(Step::Fault { connection, fault: fault(rng, profile), at_once: false });
                continue;
            }
            _ => {
                message(rng, profile, connection, &mut left, &mut steps);
                continue;
            }
        };
        steps.push(of(connection, action));
    }
    if profile.longest > MAX_SIZE && rng.u32(..LONG) == 0 {
        let (connection, place) = (rng.u32(1..=connections), rng.usize(..=steps.len()));
        steps.splice(place..place, long_steps(rng, profile, connection));
    }
    steps
}

/// Draws a fault. After each fault, the session compares the memory of the agent with the bytes that
/// legal messages placed there.
fn fault(rng: &mut Rng, profile: &Profile) -> Fault {
    let with_crc = profile.crc && rng.bool();
    if with_crc { pick(rng, &AGENT_CRC_FAULTS) } else { pick(rng, &AGENT_FAULTS) }
}

/// Returns steps with a message of several MiB.
fn long_steps(rng: &mut Rng, profile: &Profile, connection: u32) -> Vec<Step> {
    let size = match rng.u32(..3) {
        0 => profile.longest,
        1 => (1 << 22) + rng.u32(..5) - 2,
        _ => rng.u32(1 << 20..=profile.longest),
    };
    let (region, segment) = (1, profile.max_segment);
    let of = |action| of(connection, action);
    let mut steps = match rng.u32(..4) {
        0 => {
            let write = AgentAction::Write { region, at: 0, size, segment };
            vec![of(AgentAction::Region { region, size }), of(write)]
        }
        1 => {
            let read = AgentAction::Read { region, at: 0, size, count: 1 };
            vec![of(AgentAction::Region { region, size }), of(read)]
        }
        2 => {
            let plain = MessageFields { size, segment, room: 0, parts: 1, pad: 0, every: 0, solicited: false };
            let message = MessageFields { parts: parts(rng), ..plain };
            let count = rng.u32(1..=size.div_ceil(segment));
            vec![of(AgentAction::Message(message)), Step::Segments { connection, count }]
        }
        _ => {
            let kind = pick(rng, &KINDS);
            let parts = if kind == "read" { 1 } else { parts(rng) };
            vec![of(AgentAction::Post(WorkFields { parts, ..WorkFields::plain(kind, size) }))]
        }
    };
    // A receive that was posted before would make the message shorter. After these steps, the close
    // deregisters the large region.
    steps.insert(0, Step::Close { connection });
    steps.extend([Step::Answers { connection }, Step::Close { connection }]);
    steps
}

fn open(rng: &mut Rng, profile: &Profile) -> AgentAction {
    // The tester sends the correct Reply to an Initiator, without options.
    let markers = profile.markers && !profile.is_initiator && rng.u32(..4) == 0;
    let enhanced = profile.enhanced && rng.u32(..3) == 0;
    AgentAction::Open { depth: pick(rng, &[1, 2, DEPTH, DEPTH, 8, 16]), markers, enhanced }
}

/// Draws the maximum number of parts of a work request.
fn parts(rng: &mut Rng) -> u32 {
    if rng.bool() { 1 } else { rng.u32(2..=4) }
}

/// Draws an offset in a region. Several Writes and Reads often begin at the same place.
fn place(rng: &mut Rng) -> u32 {
    match rng.u32(..3) {
        0 => 0,
        1 => rng.u32(..4096),
        _ => rng.u32(..MAX_REGION),
    }
}

/// Draws work requests of the target.
fn work(rng: &mut Rng, profile: &Profile, left: &mut u32) -> WorkFields {
    let is_atomic = profile.atomics && rng.u32(..8) == 0;
    let kind = if is_atomic { pick(rng, &POSTED_ATOMICS) } else { pick(rng, &KINDS) };
    let count = if rng.u32(..3) == 0 { rng.u32(2..=8) } else { 1 };
    let most = if count == 1 { MAX_SIZE } else { MAX_SHORT };
    let size = if is_atomic { 8 } else { size(rng, most.min(*left / count)) };
    *left = left.saturating_sub(size * count);
    let to = match rng.u32(..4) {
        0 => 0,
        1 => rng.u64(..u64::MAX / 4),
        2 => (1 << 31) - u64::from(rng.u32(..=size)),
        _ => (1 << 32) - u64::from(rng.u32(..=size)),
    };
    let (is_send, is_data) = (kind == "send", kind == "send" || kind == "write");
    WorkFields {
        count,
        parts: if is_data { parts(rng) } else { 1 },
        at: rng.u32(..MAX_SIZE),
        // The memory of an Atomic Operation has an address that is a multiple of eight.
        to: if is_send { 0 } else { to & !7 },
        solicited: is_send && rng.u32(..4) == 0,
        invalidate: is_send && rng.u32(..4) == 0,
        fence: is_data && rng.u32(..4) == 0,
        inline: is_data && size <= 32 && rng.bool(),
        unsignaled: count > 1 && rng.bool(),
        ..WorkFields::plain(kind, size)
    }
}

/// Draws a Send of the tester, and its first segments. The segments that are not sent here follow
/// with a later step on this connection.
fn message(rng: &mut Rng, profile: &Profile, connection: u32, left: &mut u32, steps: &mut Vec<Step>) {
    let size = size(rng, MAX_SIZE.min(*left));
    *left -= size;
    let segment = segment(rng, profile, size);
    let fields = MessageFields {
        size,
        segment,
        room: if rng.bool() { rng.u32(..100) } else { 0 },
        parts: parts(rng),
        pad: if rng.bool() { rng.u32(..64) } else { 0 },
        every: if size < 3000 && rng.u32(..6) == 0 { rng.u32(1..=40) } else { 0 },
        solicited: rng.u32(..5) == 0,
    };
    steps.push(of(connection, AgentAction::Message(fields)));
    let count = size.div_ceil(segment).max(1);
    let now = if rng.bool() { count } else { rng.u32(0..=count) };
    if now > 0 {
        steps.push(Step::Segments { connection, count: now });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::super::service::SessionService;
    use super::super::simpler::assert_simpler_steps_end;
    use super::*;
    use crate::targets::Target;

    fn profile() -> Profile {
        Profile { atomics: true, ..Profile::of(&Target::builtin(), SessionService::Agent, 3) }
    }

    /// The profile of an exploration.
    fn exploring() -> Profile {
        Profile { faults: true, longest: 1 << 23, ..profile() }
    }

    /// Returns the size of the region that a step registers.
    fn region_of(step: &Step) -> Option<u32> {
        match *step {
            Step::Agent(AgentStep { action: AgentAction::Region { size, .. }, .. }) => Some(size),
            _ => None,
        }
    }

    #[test]
    fn only_explored_sessions_have_faults_and_long_messages() {
        let (mut faults, mut largest) = (HashSet::new(), 0);
        for seed in 0..1500 {
            for step in steps(&mut Rng::with_seed(seed), &exploring()) {
                largest = largest.max(region_of(&step).unwrap_or(0));
                if let Step::Fault { fault, at_once, .. } = step {
                    assert!(!at_once, "{step}");
                    faults.insert(fault);
                }
            }
            for step in steps(&mut Rng::with_seed(seed), &profile()) {
                assert!(!matches!(step, Step::Fault { .. }), "{step}");
                assert!(region_of(&step).unwrap_or(0) <= MAX_REGION, "{step}");
            }
        }
        assert_eq!(faults.len(), AGENT_CRC_FAULTS.len() + AGENT_FAULTS.len());
        assert_eq!(largest, 1 << 23);
    }

    /// The tester sends the correct Reply to an Initiator.
    #[test]
    fn sessions_with_an_initiator_open_connections_without_markers() {
        let profile = Profile::of(&Target::builtin_initiator(), SessionService::Agent, 2);
        let mut opens = 0;
        for step in (0..200).flat_map(|seed| steps(&mut Rng::with_seed(seed), &profile)) {
            if let Step::Agent(AgentStep { action: AgentAction::Open { markers, enhanced, .. }, .. }) = step {
                assert!(!markers && !enhanced, "{step}");
                opens += 1;
            }
        }
        assert!(opens > 100, "{opens}");
    }

    /// An agent can register 64 MiB for all regions and receives of a session.
    #[test]
    fn sessions_with_many_connections_have_small_regions() {
        let profile = Profile { connections: 32, longest: 0, ..exploring() };
        let mut most = 0;
        for seed in 0..300 {
            let steps = steps(&mut Rng::with_seed(seed), &profile);
            let numbers: BTreeSet<u32> = steps.iter().filter_map(|step| step.number()).collect();
            most = most.max(numbers.len());
            if numbers.len() > 16 {
                let largest = steps.iter().filter_map(region_of).max();
                assert!(largest.is_none_or(|largest| largest <= MAX_REGION / 5), "{largest:?}");
            }
        }
        assert!(most > 16, "{most}");
    }

    #[test]
    fn the_seed_determines_the_steps_and_simpler_steps_end() {
        let (profile, mut kinds) = (profile(), HashSet::new());
        for seed in 0..200 {
            let steps = steps(&mut Rng::with_seed(seed), &profile);
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile));
            for step in steps {
                if let Step::Agent(step) = step {
                    assert!((1..=3).contains(&step.connection), "{step}");
                    kinds.insert(std::mem::discriminant(&step.action));
                }
                assert_simpler_steps_end(step);
            }
        }
        // Every variant of AgentAction.
        assert_eq!(kinds.len(), 12);
    }
}
