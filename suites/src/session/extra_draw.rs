//! Adds rare legal steps to a drawn session of an exploration:
//!
//! - messages whose sizes are near a multiple of a full segment or of a Private Buffer
//! - the largest number of outstanding Reads that the target permits
//! - an orderly end while the target still sends
//! - receives that the target's user cancels
//! - a suspension by the target's user, or by the tester, which then resumes the connection
//! - messages of several connections in turns
//! - a long idle time, and traffic after it
//! - an exchange on each other connection after a fault
//!
//! `extra_socket_draw` draws those that only sessions with SDP sockets have.
//!
//! These steps have their own random numbers, which follow from the seed. So a seed determines the
//! same other steps with and without them.

use std::iter::repeat_n;
use std::ops::Range;

use fastrand::Rng;

use super::agent_step::{AgentAction, AgentStep, MessageFields, WorkFields};
use super::drive_draw::is_possible;
use super::drive_step::DriveAction;
use super::extra_socket_draw::{Socket, tester, user};
use super::profile::{MAX_SEND, Profile};
use super::sdp_step::{SdpAction, SdpStep};
use super::service::SessionService;
use super::shared_draw::{NEAR, full_segment, near, pick};
use super::step::Step;

/// One of this number of sessions has a sequence of these steps.
const RARE: u32 = 3;
/// One of this number of sessions has a long idle time.
const IDLE: u32 = 24;
/// The idle time in milliseconds.
const IDLE_TIME: Range<u32> = 2600..4000;
/// Maximum number of bytes of a message in a session with an agent.
const MAX_AGENT: u32 = 131_072;
/// Maximum number of connections that take turns. While Reads of the target are outstanding, a turn
/// takes a fraction of a second, so the maximum is smaller.
const MAX_IN_TURNS: u32 = 16;
const MAX_READS_IN_TURNS: u32 = 3;
/// Number of bytes at the end of rping's buffer that an announced Read leaves free.
const FREE: u32 = 16;

/// Adds steps to the steps of a session.
pub(super) fn add(rng: &mut Rng, profile: &Profile, steps: &mut Vec<Step>) {
    if profile.service == SessionService::PortMapper {
        return;
    }
    let connections = steps.iter().filter_map(|step| step.number()).max().unwrap_or(1);
    // The first steps open the connections with drawn fields.
    let first = steps.iter().take_while(|step| is_open(step)).count();
    if rng.u32(..RARE) == 0 {
        let added = sequence(rng, profile, connections, steps);
        insert(rng, profile, first, added, steps);
    }
    if rng.u32(..IDLE) == 0 {
        let connection = rng.u32(1..=connections);
        let added = idle(rng, profile, connection);
        insert(rng, profile, first, added, steps);
    }
    if profile.faults && connections > 1 {
        use_others(rng, steps);
    }
}

/// Inserts `added` at a random place that is not before the place `first`. Leaves out the commands
/// that a driven socket does not execute.
fn insert(rng: &mut Rng, profile: &Profile, first: usize, added: Vec<Step>, steps: &mut Vec<Step>) {
    let place = rng.usize(first..=steps.len());
    steps.splice(place..place, added.into_iter().filter(|step| is_possible(step, profile)));
}

fn is_open(step: &Step) -> bool {
    matches!(
        step,
        Step::Open { .. }
            | Step::Sdp(SdpStep { action: SdpAction::Open(_), .. })
            | Step::Agent(AgentStep { action: AgentAction::Open { .. }, .. })
    )
}

/// After half of the faults, uses the other connections.
fn use_others(rng: &mut Rng, steps: &mut Vec<Step>) {
    for place in (0..steps.len()).rev() {
        let Step::Fault { connection, .. } = steps[place] else { continue };
        if rng.bool() {
            steps.insert(place + 1, Step::UseOthers { connection });
        }
    }
}

/// Returns a long idle time between two exchanges on a connection.
fn idle(rng: &mut Rng, profile: &Profile, connection: u32) -> Vec<Step> {
    let (ms, answers) = (rng.u32(IDLE_TIME), Step::Answers { connection });
    let pause = if profile.service.is_sdp() { tester(connection, SdpAction::Run(ms)) } else { Step::Pause { ms } };
    let mut steps = exchange(profile, connection);
    steps.extend([answers, pause]);
    steps.extend(exchange(profile, connection));
    steps.push(answers);
    steps
}

/// Returns a short exchange of the service.
fn exchange(profile: &Profile, connection: u32) -> Vec<Step> {
    match profile.service {
        SessionService::Echo => vec![Step::message(connection, 100, 100), Step::Segments { connection, count: 1 }],
        SessionService::Rping => vec![
            Step::Write { connection, at: 0, size: 40, segment: 40, align: 0 },
            Step::Read { connection, at: 0, size: 40, align: 0 },
        ],
        SessionService::SdpEcho | SessionService::SdpSink | SessionService::SdpSource => {
            vec![tester(connection, SdpAction::Send { size: 3000, urgent: false })]
        }
        SessionService::SdpDrive | SessionService::SdpConnect => {
            vec![user(connection, DriveAction::Send { size: 3000, urgent: false })]
        }
        SessionService::Agent => vec![
            agent(connection, AgentAction::Write { region: 1, at: 0, size: 40, segment: 40 }),
            agent(connection, AgentAction::Read { region: 1, at: 0, size: 40, count: 1 }),
        ],
        SessionService::PortMapper => Vec::new(),
    }
}

/// Draws a sequence of steps. The session has `connections` connections and the steps `steps`.
fn sequence(rng: &mut Rng, profile: &Profile, connections: u32, steps: &[Step]) -> Vec<Step> {
    let socket = Socket::of(rng.u32(1..=connections), steps);
    let connection = socket.connection;
    if connections > 1 && rng.u32(..3) == 0 {
        return in_turns(rng, profile, connections, socket.most);
    }
    match profile.service {
        SessionService::Echo if profile.answers_after_fin && rng.bool() => echo_end(rng, profile, connection),
        SessionService::Echo => echo_sizes(rng, profile, connection),
        SessionService::Rping if profile.enhanced && rng.bool() => window(rng, profile, connection),
        SessionService::Rping => rping_sizes(rng, profile, connection),
        SessionService::Agent => agent_sizes(rng, profile, connection),
        SessionService::SdpEcho | SessionService::SdpSink | SessionService::SdpSource => match rng.u32(..3) {
            0 => socket.end(rng),
            1 if profile.resumes => socket.resumption(rng),
            _ => socket.sizes(rng, profile),
        },
        SessionService::SdpDrive | SessionService::SdpConnect => match rng.u32(..6) {
            0 => socket.driven_sizes(rng, profile),
            1 | 2 => socket.driven_end(rng),
            3 if profile.suspends => socket.suspension(rng),
            _ => socket.cancelled_receives(rng),
        },
        SessionService::PortMapper => Vec::new(),
    }
}

fn agent(connection: u32, action: AgentAction) -> Step {
    Step::Agent(AgentStep { connection, action })
}

/// Returns Sends whose last segment is almost full or almost empty, also in the echo.
fn echo_sizes(rng: &mut Rng, profile: &Profile, connection: u32) -> Vec<Step> {
    let (segment, most) = (full_segment(rng, profile), profile.max_send);
    let mut steps = Vec::new();
    for _ in 0..rng.u32(2..=4) {
        let size = near(rng, segment, most);
        let count = size.div_ceil(segment).max(1);
        steps.extend([Step::message(connection, size, segment), Step::Segments { connection, count }]);
    }
    let (count, more) = (rng.u32(1..=8), pick(rng, &NEAR));
    steps.extend([Step::Fill { connection, count, more, most }, Step::Answers { connection }]);
    steps
}

/// Returns a FIN directly after Sends. The target still has to send their echoes.
fn echo_end(rng: &mut Rng, profile: &Profile, connection: u32) -> Vec<Step> {
    let size = rng.u32(1000..=8000).min(profile.max_send);
    let segment = size.clamp(1, profile.max_segment);
    let count = size.div_ceil(segment).max(1);
    let send = [Step::message(connection, size, segment), Step::Segments { connection, count }];
    let sends = repeat_n(send, rng.usize(2..=7)).flatten();
    sends.chain([Step::Finish { connection, size: rng.u32(..=1000), ms: 0 }]).collect()
}

/// Returns a window of Reads: the largest number that the target permits is outstanding. The
/// connection has the enhanced set-up, which negotiates this number.
fn window(rng: &mut Rng, profile: &Profile, connection: u32) -> Vec<Step> {
    let size: u32 = pick(rng, &[1, 64, 1500, 4096, 16_384]);
    vec![
        Step::Close { connection },
        Step::Open { connection, crc: None, private: 0, markers: false, enhanced: true, rtr: None },
        Step::Window { connection, count: rng.u32(20..=60), size: size.min(profile.buffer) },
        Step::Answers { connection },
    ]
}

/// Returns Writes, Reads and a round whose last segment is almost full or almost empty.
fn rping_sizes(rng: &mut Rng, profile: &Profile, connection: u32) -> Vec<Step> {
    let (segment, most) = (full_segment(rng, profile), profile.buffer);
    let mut steps = Vec::new();
    for _ in 0..rng.u32(2..=4) {
        let size = near(rng, segment, most);
        steps.push(Step::Write { connection, at: 0, size, segment, align: 0 });
        steps.push(Step::Read { connection, at: 0, size, align: 0 });
    }
    steps.push(Step::Fill { connection, count: rng.u32(1..=8), more: pick(rng, &NEAR), most });
    if !profile.is_initiator {
        let size = near(rng, segment, most).max(2);
        let (count, to, between, empty, busy) = (1, 0x1000, false, false, 0);
        steps.push(Step::Rounds { connection, count, size, segment, to, between, empty, busy });
    }
    steps.push(Step::Answers { connection });
    steps
}

/// Returns messages of both sides whose last segment is almost full or almost empty.
fn agent_sizes(rng: &mut Rng, profile: &Profile, connection: u32) -> Vec<Step> {
    let segment = full_segment(rng, profile);
    let mut size = || near(rng, segment, MAX_AGENT);
    let posts = ["send", "write", "read"].map(|kind| AgentAction::Post(WorkFields::plain(kind, size())));
    let write = AgentAction::Write { region: 1, at: 0, size: size(), segment };
    let read = AgentAction::Read { region: 1, at: 0, size: size(), count: 1 };
    let size = size();
    let message = MessageFields { size, segment, room: 0, parts: 1, pad: 0, every: 0, solicited: false };
    let actions = posts.into_iter().chain([write, read, AgentAction::Message(message)]);
    let segments = Step::Segments { connection, count: size.div_ceil(segment).max(1) };
    actions.map(|action| agent(connection, action)).chain([segments, Step::Answers { connection }]).collect()
}

/// Returns messages on several connections. Their parts are sent in turns, so the target has
/// incomplete messages, or open transfers, of all these connections at the same time. `most` is the
/// maximum number of bytes of a send with SDP.
fn in_turns(rng: &mut Rng, profile: &Profile, connections: u32, most: u32) -> Vec<Step> {
    let has_reads = profile.service == SessionService::Rping && !profile.is_initiator;
    let limit = if has_reads { MAX_READS_IN_TURNS } else { MAX_IN_TURNS };
    let mut numbers: Vec<u32> = (1..=connections).collect();
    rng.shuffle(&mut numbers);
    numbers.truncate(rng.u32(2..=connections.min(limit)) as usize);
    let turns = rng.u32(2..=3);
    let mut steps = Vec::new();
    for connection in &numbers {
        let size = rng.u32(8..=MAX_SEND);
        steps.extend(begun(profile, *connection, size, turns));
    }
    for _ in 0..turns {
        rng.shuffle(&mut numbers);
        for connection in &numbers {
            let size = rng.u32(1..=MAX_SEND).min(most);
            steps.push(turn(profile, *connection, size));
        }
    }
    steps.extend(numbers.iter().map(|connection| Step::Answers { connection: *connection }));
    steps
}

/// Begins a message of at most `size` bytes in `turns` segments. Returns `None` if each turn has its
/// own message.
fn begun(profile: &Profile, connection: u32, size: u32, turns: u32) -> Option<Step> {
    let segment = |size: u32| size.div_ceil(turns).clamp(1, profile.max_segment);
    match profile.service {
        SessionService::Echo => {
            let size = size.min(profile.max_send);
            Some(Step::message(connection, size, segment(size)))
        }
        SessionService::Rping if !profile.is_initiator => {
            let size = size.min(profile.buffer.saturating_sub(FREE)).max(2);
            Some(Step::Announce { connection, size, segment: segment(size), to: 0x1000, empty: false })
        }
        SessionService::Agent => {
            let segment = segment(size);
            let fields = MessageFields { size, segment, room: 0, parts: 1, pad: 0, every: 0, solicited: false };
            Some(agent(connection, AgentAction::Message(fields)))
        }
        _ => None,
    }
}

/// Returns the next part of a connection's message, or another message of `size` bytes.
fn turn(profile: &Profile, connection: u32, size: u32) -> Step {
    match profile.service {
        SessionService::Echo | SessionService::Agent => Step::Segments { connection, count: 1 },
        SessionService::Rping if profile.is_initiator => Step::Read { connection, at: 0, size, align: 0 },
        SessionService::Rping => Step::Respond { connection, count: 1 },
        SessionService::SdpDrive | SessionService::SdpConnect => {
            user(connection, DriveAction::Send { size, urgent: false })
        }
        SessionService::SdpEcho | SessionService::SdpSink | SessionService::SdpSource => {
            tester(connection, SdpAction::Send { size, urgent: false })
        }
        SessionService::PortMapper => Step::Answers { connection },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::discriminant;

    use super::super::case::lua;
    use super::super::drive_step::DriveStep;
    use super::super::simpler::assert_simpler_steps_end;
    use super::super::steps;
    use super::*;
    use crate::script::Suites;
    use crate::targets::Target;

    const SERVICES: [SessionService; 8] = [
        SessionService::Echo,
        SessionService::Rping,
        SessionService::SdpEcho,
        SessionService::SdpSink,
        SessionService::SdpSource,
        SessionService::SdpDrive,
        SessionService::SdpConnect,
        SessionService::Agent,
    ];

    /// Profiles without and with the rare steps.
    fn profiles(service: SessionService) -> [Profile; 2] {
        let profile = Profile::of(&Target::builtin(), service, 3);
        let usual = Profile {
            faults: true,
            user_ends: true,
            suspends: true,
            resumes: service == SessionService::SdpEcho,
            answers_after_fin: true,
            enhanced: true,
            extras: false,
            ..profile
        };
        [usual, Profile { extras: true, ..usual }]
    }

    /// Returns whether `all` has the steps `some` in this order, and perhaps other steps.
    fn contains(all: &[Step], some: &[Step]) -> bool {
        let mut rest = all.iter();
        some.iter().all(|step| rest.any(|other| other == step))
    }

    fn is_idle(step: &Step) -> bool {
        match step {
            Step::Pause { ms } | Step::Sdp(SdpStep { action: SdpAction::Run(ms), .. }) => IDLE_TIME.contains(ms),
            _ => false,
        }
    }

    #[test]
    fn rare_steps_are_added_to_the_steps_of_the_seed() {
        for service in SERVICES {
            let [usual, extended] = profiles(service);
            let (mut changed, mut idle, mut others) = (0, 0, 0);
            for seed in 0..400 {
                let before = steps(&mut Rng::with_seed(seed), &usual);
                let after = steps(&mut Rng::with_seed(seed), &extended);
                assert_eq!(after, steps(&mut Rng::with_seed(seed), &extended));
                assert!(contains(&after, &before), "{service:?}, {seed}");
                let idle_times = after.iter().filter(|step| is_idle(step)).count();
                assert!(idle_times <= 1, "{service:?}, {seed}");
                changed += u32::from(after != before);
                idle += idle_times;
                for pair in after.windows(2) {
                    if let Step::UseOthers { connection } = pair[1] {
                        let is_fault = matches!(pair[0], Step::Fault { connection: at, .. } if at == connection);
                        assert!(is_fault, "{service:?}, {seed}");
                        others += 1;
                    }
                }
                for step in after {
                    assert_simpler_steps_end(step);
                }
            }
            assert!((80..320).contains(&changed), "{service:?}: {changed} of 400 sessions");
            assert!((4..40).contains(&idle) && others > 5, "{service:?}: {idle}, {others}");
        }
    }

    #[test]
    fn each_rare_step_is_drawn() {
        let drawn = |service| {
            let profile = profiles(service)[1];
            (0..400).flat_map(move |seed| steps(&mut Rng::with_seed(seed), &profile))
        };
        let mut sizes = HashSet::new();
        for step in drawn(SessionService::Echo) {
            if let Step::Fill { more, .. } = step {
                sizes.insert(more);
            }
        }
        assert!(NEAR.iter().all(|more| sizes.contains(more)), "{sizes:?}");
        assert!(drawn(SessionService::Echo).any(|step| matches!(step, Step::Finish { ms: 0, .. })));
        assert!(drawn(SessionService::Rping).any(|step| matches!(step, Step::Window { count: 20.., .. })));
        assert!(drawn(SessionService::Rping).any(|step| matches!(step, Step::Fill { .. })));
        for service in [SessionService::SdpEcho, SessionService::SdpSink, SessionService::SdpSource] {
            let is_fill = |step: Step| matches!(step, Step::Sdp(SdpStep { action: SdpAction::Fill { .. }, .. }));
            assert!(drawn(service).any(is_fill), "{service:?}");
            let is_resumed = |step: Step| matches!(step, Step::Sdp(SdpStep { action: SdpAction::Resume, .. }));
            assert_eq!(drawn(service).any(is_resumed), service == SessionService::SdpEcho);
        }
        for service in [SessionService::SdpDrive, SessionService::SdpConnect] {
            let actions: HashSet<_> = drawn(service)
                .filter_map(|step| match step {
                    Step::Drive(DriveStep { action, .. }) => Some(discriminant(&action)),
                    _ => None,
                })
                .collect();
            let cancel = DriveAction::CancelReceive { size: 1, ms: 0, piece: 0 };
            assert!(actions.contains(&discriminant(&cancel)), "{service:?}");
            // Only a socket that accepts connections suspends them.
            let suspends = actions.contains(&discriminant(&DriveAction::Suspend(1)));
            assert_eq!(suspends, service == SessionService::SdpDrive);
            let is_end = |step: Step| matches!(step, Step::Sdp(SdpStep { action: SdpAction::CloseEarly, .. }));
            assert!(drawn(service).any(is_end), "{service:?}");
        }
    }

    #[test]
    fn a_driven_socket_gets_only_commands_that_it_executes() {
        let file = "name = \"d\"\nkind = \"builtin\"\nservice = \"sdp-drive\"\n[sdp]\ncommands = [\"send\"]\n";
        let target = Target::from_toml("d.toml", file).unwrap();
        let profile = Profile { extras: true, ..Profile::of(&target, SessionService::SdpDrive, 3) };
        for step in (0..400).flat_map(|seed| steps(&mut Rng::with_seed(seed), &profile)) {
            assert!(!matches!(step, Step::Drive(_)) || step.to_string().starts_with("s:target_send("), "{step}");
        }
    }

    #[test]
    fn the_cases_of_sessions_with_rare_steps_load() {
        for service in SERVICES {
            for seed in 0..12 {
                let steps = steps(&mut Rng::with_seed(seed), &profiles(service)[1]);
                let text = lua(service, "one", "One session.", &steps, &[]);
                let loaded = Suites::generated(&format!("{}/one.lua", service.topic()), text);
                assert!(loaded.is_ok(), "{service:?}, {seed}");
            }
        }
    }
}
