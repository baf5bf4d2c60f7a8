//! Draws the steps of a session with a driven SDP socket: commands for the target's user, and steps
//! of the tester's own socket.

use fastrand::Rng;

use super::drive_step::{DriveAction, DriveStep};
use super::fault::{DRIVE_FAULTS, Fault, SUSPENSION};
use super::profile::Profile;
use super::sdp_step::{SdpAction, SdpStep, SocketFields};
use super::service::SessionService;
use super::shared_draw::{connections, pick, scaled, step_count};
use super::socket_draw::{ANSWERS, FAULTY, MODES, SHORT, add_faults, fields, is_small, size};
use super::step::Step;
use crate::targets::DriverCommand;

/// Commands that change Modes, sizes of Private Buffers, and settings. The Modes are in the list
/// more often. The smallest size of a Private Buffer holds many bytes, so that a long send does not
/// need too many messages.
const CHANGES: [&str; 28] = [
    "mode out pipelined",
    "mode out pipelined",
    "mode out pipelined",
    "mode out combined",
    "mode out combined",
    "mode out buffered",
    "mode in combined",
    "mode in combined",
    "resize 500",
    "resize 1000",
    "resize 3000",
    "resize 20000",
    "threshold 0",
    "threshold 64",
    "threshold 500",
    "threshold 3000",
    "threshold 1073741824",
    "payload 1",
    "payload 40",
    "payload 1000",
    "answer read",
    "answer send-sm",
    "answer both",
    "max-read 500",
    "max-read 3000",
    "max-read 20000",
    "hints",
    "follow",
];
/// Sizes in bytes that the tester requests for the target's Private Buffers.
const SIZES: &[u32] = &[500, 1000, 3000, 8192, 20_000];
/// Maximum number of steps of a session with few connections. A pattern of steps may exceed it.
const MAX_STEPS: usize = 30;
/// Maximum number of bytes that the target's user sends in single steps of a session.
const MAX_OCTETS: u32 = 1 << 20;
/// Maximum number of bytes in the receives of a step.
const MAX_READ: u32 = 20_000;
/// Maximum number of sends into which the tester divides the bytes for a step's receives.
const MAX_PIECES: u32 = 40;
/// Maximum number of times that the user waits on a connection, and the times in milliseconds. The
/// sum is much shorter than the time after which a missing answer is a failure.
const MAX_WAITS: u32 = 5;
const WAITS: &[u32] = &[1, 10, 50, 100];

/// A step of the tester's socket.
fn tester(connection: u32, action: SdpAction) -> Step {
    Step::Sdp(SdpStep { connection, action })
}

/// A command for the target's user.
fn user(connection: u32, action: DriveAction) -> Step {
    Step::Drive(DriveStep { connection, action })
}

/// Draws the steps of a session.
pub(super) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let connections = connections(rng, profile);
    let opened: Vec<SocketFields> = (1..=connections).map(|_| fields(rng, profile.service)).collect();
    let mut steps: Vec<Step> =
        (1..).zip(&opened).map(|(number, fields)| tester(number, SdpAction::Open(*fields))).collect();
    // With small buffers, the same number of bytes needs more messages.
    let is_small = opened.iter().any(is_small);
    let (most, mut left) = if is_small { (SHORT, MAX_OCTETS / 40) } else { (u32::MAX, MAX_OCTETS) };
    let mut waits = vec![0; opened.len()];
    let count = steps.len() + step_count(rng, scaled(MAX_STEPS, connections));
    while steps.len() < count {
        let connection = rng.u32(1..=connections);
        let index = connection as usize - 1;
        let step = match rng.u32(..100) {
            0..3 => tester(connection, SdpAction::Open(opened[index])),
            3..12 => tester(connection, SdpAction::Run(pick(rng, &[0, 1, 1, 3, 10, 30, 100]))),
            12..19 => Step::Answers { connection },
            19..22 => Step::Close { connection },
            22 => Step::Reset { connection },
            23 => tester(connection, SdpAction::Abort),
            24..26 => user(connection, DriveAction::Abort),
            26..29 => user(connection, DriveAction::Shut),
            29..34 => user(connection, DriveAction::CancelSends),
            34..37 => tester(connection, SdpAction::StopReading(pick(rng, &[1, 5, 30, 100, 300]))),
            37..39 => tester(connection, SdpAction::Hold(pick(rng, &[1, 30, 100, 300]))),
            39..43 => tester(connection, SdpAction::Mode(pick(rng, &MODES))),
            43..46 => tester(connection, SdpAction::Unbuffer),
            46..48 => tester(connection, SdpAction::Resize(pick(rng, SIZES))),
            48..51 => tester(connection, SdpAction::Answer(pick(rng, &ANSWERS))),
            51..54 if waits[index] < MAX_WAITS => {
                waits[index] += 1;
                user(connection, DriveAction::Wait(pick(rng, WAITS)))
            }
            54..68 => user(connection, DriveAction::Change(pick(rng, &CHANGES))),
            68..72 if !is_small => {
                steps.extend(pattern(rng, connection, &opened[index]));
                continue;
            }
            72..82 => read(rng, connection, most),
            _ => {
                let size = size(rng).min(left).min(most);
                left -= size;
                if size == 0 {
                    break;
                }
                user(connection, DriveAction::Send { size, urgent: rng.u32(..8) == 0 })
            }
        };
        steps.push(step);
    }
    steps.retain(|step| is_possible(step, profile));
    // The faults are drawn last. So a seed determines the same legal steps with and without faults.
    if profile.faults && rng.u32(..FAULTY) == 0 {
        let own: &[Fault] = if accepts(profile) { &[SUSPENSION] } else { &[] };
        let faults: Vec<Fault> = DRIVE_FAULTS.iter().chain(own).copied().collect();
        add_faults(rng, &faults, &opened, &mut steps);
    }
    steps
}

/// Returns whether the driven socket accepts connections. Only these sessions have suspensions.
fn accepts(profile: &Profile) -> bool {
    profile.service == SessionService::SdpDrive
}

/// Returns whether the target executes the command of a step, and the session may have the step.
pub(super) fn is_possible(step: &Step, profile: &Profile) -> bool {
    let Step::Drive(DriveStep { action, .. }) = step else { return true };
    let is_allowed = match action {
        DriveAction::Shut | DriveAction::Abort => profile.user_ends,
        DriveAction::Suspend(_) => profile.suspends && accepts(profile),
        _ => true,
    };
    let further: &[DriverCommand] = match action {
        DriveAction::CancelReceive { .. } => &[DriverCommand::Read, DriverCommand::Wait],
        _ => &[],
    };
    let is_executed = |command: DriverCommand| profile.commands.contains(command);
    is_allowed && action.command().is_some_and(is_executed) && further.iter().copied().all(is_executed)
}

/// Returns a step with receives of the target's user, of at most `most` bytes in total.
fn read(rng: &mut Rng, connection: u32, most: u32) -> Step {
    let count: u32 = pick(rng, &[1, 1, 2, 3, 4]);
    let size = size(rng).min(MAX_READ.min(most) / count);
    let piece: u32 = pick(rng, &[30, 700, 3000]);
    let piece = if rng.bool() { 0 } else { piece.max((count * size).div_ceil(MAX_PIECES)) };
    user(connection, DriveAction::Read { count, size, piece })
}

/// Returns a sequence of steps that single drawn steps rarely produce. `fields` are those of the
/// connection.
fn pattern(rng: &mut Rng, connection: u32, fields: &SocketFields) -> Vec<Step> {
    let user = |action| user(connection, action);
    let tester = |action| tester(connection, action);
    let send = |size| user(DriveAction::Send { size, urgent: false });
    let run = |ms| tester(SdpAction::Run(ms));
    let (pipelined, answers) = (user(DriveAction::Change("mode out pipelined")), Step::Answers { connection });
    match rng.u32(..6) {
        // The target's SrcAvailCancel crosses the tester's answer, or its RDMA Reads.
        0 => {
            let size = pick(rng, &[600, 2000, 9000, 30_000]);
            let stop_reading = tester(SdpAction::StopReading(100));
            vec![stop_reading, send(size), run(20), user(DriveAction::CancelSends), send(20), run(100), answers]
        }
        // Many SrcAvails of the target at once, and Out-Of-Band data after them.
        1 => {
            let sends = std::iter::repeat_n(send(pick(rng, &[600, 3000, 9000])), rng.usize(2..=20));
            let urgent = user(DriveAction::Send { size: 30, urgent: true });
            [pipelined].into_iter().chain(sends).chain([urgent, run(20), answers]).collect()
        }
        // The receives are longer than a Private Buffer, so the target sends SinkAvails for them.
        2 => {
            let (count, piece) = (pick(rng, &[1, 2, 4]), pick(rng, &[0, 700, 6000]));
            let read = user(DriveAction::Read { count, size: 5000, piece });
            vec![tester(SdpAction::Mode("pipelined")), read, run(10), read, answers]
        }
        // The target sends much data before its DisConn, and receives data after it.
        3 => {
            let read = user(DriveAction::Read { count: 2, size: 3000, piece: 0 });
            vec![
                tester(SdpAction::StopReading(50)),
                send(30_000),
                user(DriveAction::Shut),
                read,
                run(10),
                read,
                Step::Close { connection },
                tester(SdpAction::Open(*fields)),
            ]
        }
        // The user aborts the connection during the transfer of its data.
        4 => vec![
            tester(SdpAction::StopReading(30)),
            send(30_000),
            send(100),
            run(pick(rng, &[0, 1, 10, 40])),
            user(DriveAction::Abort),
            tester(SdpAction::Open(*fields)),
        ],
        // The Mode changes between sends, before the earlier sends have ended.
        _ => vec![
            pipelined,
            send(3000),
            send(9000),
            user(DriveAction::Change("mode out combined")),
            send(9000),
            send(40),
            pipelined,
            send(9000),
            answers,
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::discriminant;

    use super::super::case::lua;
    use super::super::simpler::assert_simpler_steps_end;
    use super::*;
    use crate::script::Suites;
    use crate::targets::Target;

    /// The profile of an exploration, or of a case with fixed seeds.
    fn profile(explores: bool) -> Profile {
        Profile { user_ends: explores, ..Profile::of(&Target::builtin(), SessionService::SdpDrive, 3) }
    }

    #[test]
    fn the_seed_determines_the_steps_and_simpler_steps_end() {
        let (mut users, mut testers, mut lines) = (HashSet::new(), HashSet::new(), HashSet::new());
        for seed in 0..600 {
            let steps = steps(&mut Rng::with_seed(seed), &profile(true));
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile(true)));
            for step in steps {
                match step {
                    Step::Drive(DriveStep { action, .. }) => {
                        users.insert(discriminant(&action));
                        if let DriveAction::Change(line) = action {
                            lines.insert(line);
                        }
                    }
                    Step::Sdp(SdpStep { action, .. }) => {
                        testers.insert(discriminant(&action));
                    }
                    _ => {}
                }
                assert_simpler_steps_end(step);
            }
        }
        // Every variant of DriveAction except CancelReceive and Suspend, which only `extra_draw`
        // draws, nine variants of SdpAction, and the different changes.
        assert_eq!((users.len(), testers.len(), lines.len()), (7, 9, 24));
    }

    #[test]
    fn faults_are_added_to_the_legal_steps_of_the_seed() {
        let fault = |step: &Step| match step {
            Step::Fault { fault, .. } => Some(*fault),
            _ => None,
        };
        for (service, is_suspended) in [(SessionService::SdpDrive, true), (SessionService::SdpConnect, false)] {
            let profile = Profile { service, ..profile(true) };
            let mut faults = HashSet::new();
            for seed in 0..900 {
                let legal = steps(&mut Rng::with_seed(seed), &profile);
                let mut rest = steps(&mut Rng::with_seed(seed), &Profile { faults: true, ..profile });
                faults.extend(rest.iter().filter_map(fault));
                while let Some(place) = rest.iter().position(|step| fault(step).is_some()) {
                    // The step after a fault opens the connection again.
                    rest.drain(place..place + 2);
                }
                assert_eq!(rest, legal, "{seed}");
            }
            assert_eq!(faults.len(), DRIVE_FAULTS.len() + usize::from(is_suspended));
            assert_eq!(faults.contains(SUSPENSION), is_suspended);
        }
    }

    #[test]
    fn receives_are_neither_empty_nor_too_long() {
        for step in (0..600).flat_map(|seed| steps(&mut Rng::with_seed(seed), &profile(true))) {
            if let Step::Drive(DriveStep { action: DriveAction::Read { count, size, piece }, .. }) = step {
                assert!(count * size > 0 && count * size <= MAX_READ, "{step}");
                assert!(piece == 0 || count * size / piece <= MAX_PIECES, "{step}");
            }
        }
    }

    #[test]
    fn a_session_has_only_commands_that_the_target_executes() {
        let file = "name = \"d\"\nkind = \"builtin\"\nservice = \"sdp-drive\"\n";
        let text = format!("{file}[sdp]\ncommands = [\"send\", \"shut\"]\n");
        let target = Target::from_toml("d.toml", &text).unwrap();
        let (send, shut) = (DriverCommand::Send, DriverCommand::Shut);
        for (user_ends, expected) in [(false, vec![send]), (true, vec![send, shut])] {
            let profile = Profile { user_ends, ..Profile::of(&target, SessionService::SdpDrive, 3) };
            let mut found = Vec::new();
            for step in (0..200).flat_map(|seed| steps(&mut Rng::with_seed(seed), &profile)) {
                if let Step::Drive(DriveStep { action, .. }) = step {
                    found.extend(action.command().filter(|command| !found.contains(command)));
                }
            }
            assert!(found.len() == expected.len() && expected.iter().all(|it| found.contains(it)), "{found:?}");
        }
    }

    #[test]
    fn a_case_with_each_command_loads() {
        let actions = [
            DriveAction::Send { size: 70, urgent: true },
            DriveAction::Read { count: 2, size: 300, piece: 30 },
            DriveAction::Read { count: 1, size: 5000, piece: 0 },
            DriveAction::Wait(50),
            DriveAction::Change("mode out pipelined"),
            DriveAction::CancelSends,
            DriveAction::CancelReceive { size: 5000, ms: 0, piece: 0 },
            DriveAction::CancelReceive { size: 300, ms: 10, piece: 30 },
            DriveAction::Shut,
            DriveAction::Abort,
            DriveAction::Suspend(20_000),
        ];
        let calls = [
            "s:target_send(1, { size = 70, urgent = true })",
            "s:target_read(1, { size = 300, count = 2, piece = 30 })",
            "s:target_read(1, { size = 5000 })",
            "s:command(1, \"wait 50\")",
            "s:command(1, \"mode out pipelined\")",
            "s:target_cancel(1)",
            "s:target_cancel_receive(1, { size = 5000 })",
            "s:target_cancel_receive(1, { size = 300, wait = 10, piece = 30 })",
            "s:target_shut(1)",
            "s:target_abort(1)",
            "s:target_suspend(1, 20000)",
        ];
        for (service, constructor, roles) in
            [(SessionService::SdpDrive, "sdp_drive", false), (SessionService::SdpConnect, "sdp_connect", true)]
        {
            let text = lua(service, "7-1", "Session 1 of seed 7.", &actions.map(|action| user(1, action)), &[]);
            assert!(text.contains(&format!("    {}\n", calls.join("\n    "))), "{text}");
            assert!(text.contains(&format!("local s = session.{constructor}(t)\n")), "{text}");
            assert_eq!(text.contains("\"initiator\""), roles, "{text}");
            let case = Suites::generated("sdp/explored/7-1.lua", text).unwrap();
            // Three requirements of each session with SDP, and one each of `shut`, `abort` and
            // `suspend`.
            assert_eq!(case.info.requirements.len(), 6);
        }
    }
}
