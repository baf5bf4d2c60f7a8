//! Draws the steps of a session with an SDP socket.

use fastrand::Rng;

use super::fault::{Fault, SDP_ANSWER_FAULTS, SDP_FAULTS};
use super::profile::Profile;
use super::sdp_step::{SdpAction, SdpStep, SocketFields};
use super::service::SessionService;
use super::shared_draw::{LONG, connections, pick, scaled, step_count};
use super::socket_draw::{ANSWERS, FAULTY, MODES, SHORT, add_faults, both_pipelined, fields, is_small, size};
use super::step::Step;

/// Sizes in bytes of Private Buffers to request.
const SIZES: &[u32] = &[500, 1000, 3000, 8192, 10_000, 20_000, 50_000];
/// Sizes in bytes that are larger than the first Private Buffers of most targets.
const LARGER_SIZES: &[u32] = &[10_000, 16_400, 20_000, 50_000];
/// Sizes in bytes of huge sends. Some echoes stop receiving while more than 1 MiB waits. Some
/// targets report a transfer of more than 4 MiB in several parts.
const HUGE_SIZES: &[u32] = &[1_300_000, 5_000_000];
/// Maximum number of steps of a session with few connections. A pattern of steps may exceed it.
const MAX_STEPS: usize = 30;
/// Maximum number of bytes that a session sends in single steps.
const MAX_OCTETS: u32 = 1 << 20;
/// Some targets cancel a SrcAvail that the tester does not answer. After this time in milliseconds,
/// they have canceled it.
const PATIENCE: u32 = 6000;

fn of(connection: u32, action: SdpAction) -> Step {
    Step::Sdp(SdpStep { connection, action })
}

/// Draws the steps of a session.
pub(super) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let connections = connections(rng, profile);
    let opened: Vec<SocketFields> = (1..=connections).map(|_| fields(rng, profile.service)).collect();
    let mut steps: Vec<Step> =
        (1..).zip(&opened).map(|(number, fields)| of(number, SdpAction::Open(*fields))).collect();
    // With small buffers, the same number of bytes needs more messages. So a session with small
    // buffers sends fewer bytes. One of its sends may be longer, because a target may use Zcopy
    // only for long sends.
    let is_small = opened.iter().any(is_small);
    let (most, mut left) = if is_small { (SHORT, MAX_OCTETS / 40) } else { (u32::MAX, MAX_OCTETS) };
    let mut longer = if is_small { longer_send(&opened) } else { 0 };
    let count = steps.len() + step_count(rng, scaled(MAX_STEPS, connections));
    while steps.len() < count {
        let connection = rng.u32(1..=connections);
        let fields = &opened[connection as usize - 1];
        let action = match rng.u32(..100) {
            0..4 => SdpAction::Open(*fields),
            4..14 => SdpAction::Run(pick(rng, &[0, 1, 1, 3, 10, 30, 100])),
            14..22 => {
                steps.push(Step::Answers { connection });
                continue;
            }
            22..25 => {
                steps.push(Step::Close { connection });
                continue;
            }
            25 => SdpAction::Abort,
            26 => {
                steps.push(Step::Reset { connection });
                continue;
            }
            27..32 => SdpAction::Mode(pick(rng, &MODES)),
            32..35 => SdpAction::Unbuffer,
            35..38 => SdpAction::Resize(pick(rng, SIZES)),
            38 => SdpAction::Resizes { count: rng.u32(2..=30), size: pick(rng, SIZES) },
            39..43 => SdpAction::Answer(pick(rng, &ANSWERS)),
            43..48 => SdpAction::Cancel,
            48..51 => SdpAction::StopReading(pick(rng, &[1, 5, 30, 100, 300])),
            51..54 if !is_small => {
                steps.extend(pattern(rng, connection, fields));
                continue;
            }
            54..57 => {
                let (count, size) = (rng.u32(2..=400), rng.u32(1..=16));
                steps.push(Step::Burst { connection, count, size, spread: 0 });
                continue;
            }
            57..59 => SdpAction::Hold(pick(rng, &[1, 30, 100, 300])),
            59 => {
                let (ms, size): (u32, u32) = (pick(rng, &[50, 300]), pick(rng, &[0, 9000, 30_000]));
                SdpAction::LateAnswer { ms, size: size.min(most) }
            }
            60 if !is_small => {
                steps.extend(grow(rng, connection, fields));
                continue;
            }
            _ => {
                let wanted = size(rng);
                let size = if wanted > SHORT && longer > 0 {
                    wanted.min(std::mem::take(&mut longer))
                } else {
                    wanted.min(left).min(most)
                };
                left = left.saturating_sub(size);
                if size == 0 {
                    break;
                }
                SdpAction::Send { size, urgent: rng.u32(..8) == 0 }
            }
        };
        steps.push(of(connection, action));
    }
    // Only sessions of an exploration may have long steps.
    if profile.floods && rng.u32(..LONG) == 0 {
        let (connection, place) = (rng.u32(1..=connections), rng.usize(opened.len()..=steps.len()));
        steps.splice(place..place, long_steps(rng, connection));
    }
    // The faults are drawn last. So a seed determines the same legal steps with and without faults.
    if profile.faults && rng.u32(..FAULTY) == 0 {
        let own: &[Fault] = if profile.service == SessionService::SdpSource { &[] } else { &SDP_ANSWER_FAULTS };
        let faults: Vec<Fault> = SDP_FAULTS.iter().chain(own).copied().collect();
        add_faults(rng, &faults, &opened, &mut steps);
    }
    steps
}

/// Returns the maximum number of bytes of the longer send in a session with small buffers. The
/// target can return the bytes in about 200 messages.
fn longer_send(opened: &[SocketFields]) -> u32 {
    let recv_size = opened.iter().map(|fields| fields.recv_size).min().unwrap_or_default();
    // The header of a message has 16 bytes.
    (200 * recv_size.saturating_sub(16)).clamp(SHORT + 200, 20_000)
}

/// Returns steps that take long or transfer much data, on a new connection.
fn long_steps(rng: &mut Rng, connection: u32) -> Vec<Step> {
    let (reset, answers) = (Step::Reset { connection }, Step::Answers { connection });
    if rng.u32(..4) == 0 {
        // The tester's answer crosses the target's SrcAvailCancel. A source first needs time for
        // Pipelined Mode. After a longer time, it may have sent all its data.
        let open = SdpAction::Open(both_pipelined(rng, SocketFields::default()));
        let run = SdpAction::Run(pick(rng, &[5, 10, 20, 40]));
        let late = SdpAction::LateAnswer { ms: PATIENCE, size: 9000 };
        return vec![reset, of(connection, open), of(connection, run), of(connection, late), answers];
    }
    let open = SdpAction::Open(SocketFields::default());
    let huge = SdpAction::Huge { size: pick(rng, HUGE_SIZES), count: rng.u32(40..=100) };
    vec![reset, of(connection, open), of(connection, huge), answers]
}

/// Returns steps that request larger Private Buffers of the target, and use all of them. `fields`
/// are those of the connection.
fn grow(rng: &mut Rng, connection: u32, fields: &SocketFields) -> Vec<Step> {
    let grow = SdpAction::Grow { size: pick(rng, LARGER_SIZES), before: pick(rng, &[0, 1, 3, 5]) };
    let mut steps = Vec::new();
    if rng.bool() {
        // The messages before the request arrive together with the request.
        let open = SdpAction::Open(SocketFields { data_first: true, ..*fields });
        steps.extend([Step::Close { connection }, of(connection, open)]);
    }
    steps.push(of(connection, grow));
    steps
}

/// Returns a sequence of steps that single drawn steps rarely produce: the tester's messages cross
/// those of the target, a Mode ends soon after it began, or a connection ends during RDMA Reads.
/// `fields` are those of the connection.
fn pattern(rng: &mut Rng, connection: u32, fields: &SocketFields) -> Vec<Step> {
    let of = |action| of(connection, action);
    let send = |size| of(SdpAction::Send { size, urgent: false });
    let urgent = |size| of(SdpAction::Send { size, urgent: true });
    let stop_reading = |ms| of(SdpAction::StopReading(ms));
    let run = |ms| of(SdpAction::Run(ms));
    let (reset, answers) = (Step::Reset { connection }, Step::Answers { connection });
    // Some connections end before the answers arrive.
    let end = |rng: &mut Rng| match rng.u32(..4) {
        0 => vec![reset, of(SdpAction::Open(*fields))],
        _ => vec![answers],
    };
    match rng.u32(..9) {
        // A SrcAvailCancel crosses the target's completion, or its RDMA Reads.
        0 => {
            let size = pick(rng, &[400, 600, 2000, 9000, 30_000]);
            let mut steps = vec![stop_reading(100), send(size), run(20), of(SdpAction::Cancel), send(20)];
            steps.extend(end(rng));
            steps
        }
        // Many SrcAvails at once.
        1 => {
            let (count, size) = (rng.usize(2..=32), pick(rng, &[600, 3000, 9000]));
            let sends = std::iter::repeat_n(send(size), count);
            let before = [of(SdpAction::Mode("pipelined")), stop_reading(100)];
            before.into_iter().chain(sends).chain([run(20), answers]).collect()
        }
        2 => vec![
            of(SdpAction::Mode("pipelined")),
            send(3000),
            answers,
            run(30),
            of(SdpAction::Mode("combined")),
            send(100),
            answers,
            of(SdpAction::Mode("pipelined")),
            send(30_000),
            answers,
        ],
        3 => {
            let pair = [urgent(30), run(30), send(30_000)];
            let pairs = std::iter::repeat_n(pair, rng.usize(1..=4)).flatten();
            [of(SdpAction::Mode("pipelined"))].into_iter().chain(pairs).chain([answers]).collect()
        }
        // The target's Out-Of-Band byte waits after many other bytes.
        4 => vec![stop_reading(200), send(100_000), urgent(20), urgent(20), run(50), answers],
        // SinkAvails cross SrcAvails.
        5 => {
            let sends = std::iter::repeat_n(send(8000), rng.usize(3..=6));
            let mut steps: Vec<Step> = [stop_reading(50)].into_iter().chain(sends).chain([run(100)]).collect();
            steps.extend(end(rng));
            steps
        }
        // Connections end while the target waits for many Read Responses. Then other connections
        // still need RDMA Reads.
        6 => {
            let (count, size) = pick(rng, &[(16, 600), (16, 9000), (2, 100_000)]);
            let open = SocketFields {
                mode: "pipelined",
                source_threshold: 500,
                max_src_avail: SocketFields::default().max_src_avail,
                src_avails: 32,
                ird: 16,
                cut: 0,
                cut_fpdus: false,
                ..*fields
            };
            let mut steps = vec![reset];
            for _ in 0..rng.usize(1..=2) {
                steps.extend([of(SdpAction::Open(open)), stop_reading(100)]);
                steps.extend(std::iter::repeat_n(send(size), count));
                steps.extend([run(20), if rng.bool() { reset } else { of(SdpAction::Abort) }]);
            }
            steps.extend([of(SdpAction::Open(*fields)), send(30_000), answers]);
            steps
        }
        // The target writes into SinkAvails after more messages than a counter of 8 bits can count.
        7 => {
            let open = both_pipelined(rng, SocketFields::default());
            let burst = Step::Burst { connection, count: rng.u32(260..=400), size: rng.u32(1..=8), spread: 0 };
            vec![reset, of(SdpAction::Open(open)), burst, answers, send(30_000), answers, send(120_000), answers]
        }
        // A source may have sent DisConn before these messages.
        _ => vec![run(300), Step::Burst { connection, count: 60, size: 9, spread: 0 }, answers],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::super::case::lua;
    use super::super::simpler::assert_simpler_steps_end;
    use super::*;
    use crate::script::Suites;
    use crate::targets::Target;

    /// The profile of an exploration, or of a case with fixed seeds.
    fn profile(service: SessionService, explores: bool) -> Profile {
        Profile { faults: explores, floods: explores, ..Profile::of(&Target::builtin(), service, 3) }
    }

    fn sdp_actions(steps: &[Step]) -> impl Iterator<Item = SdpAction> {
        steps.iter().filter_map(|step| match step {
            Step::Sdp(step) => Some(step.action),
            _ => None,
        })
    }

    #[test]
    fn the_seed_determines_the_steps_and_simpler_steps_end() {
        let profile = profile(SessionService::SdpEcho, true);
        let mut kinds = HashSet::new();
        for seed in 0..600 {
            let steps = steps(&mut Rng::with_seed(seed), &profile);
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile));
            kinds.extend(sdp_actions(&steps).map(|action| std::mem::discriminant(&action)));
            for step in steps {
                assert_simpler_steps_end(step);
            }
        }
        // Every variant of SdpAction except those that only `extra_draw` draws: Fill, Resume and
        // CloseEarly.
        assert_eq!(kinds.len(), 15);
    }

    #[test]
    fn faults_are_added_to_the_legal_steps_of_the_seed() {
        let fault = |step: &Step| match step {
            Step::Fault { fault, .. } => Some(*fault),
            _ => None,
        };
        let all = SDP_FAULTS.len() + SDP_ANSWER_FAULTS.len();
        for (service, kinds) in [
            (SessionService::SdpEcho, all),
            (SessionService::SdpSink, all),
            (SessionService::SdpSource, SDP_FAULTS.len()),
        ] {
            let mut faults = BTreeSet::new();
            for seed in 0..900 {
                let legal = Profile { faults: false, ..profile(service, true) };
                let legal = steps(&mut Rng::with_seed(seed), &legal);
                let mut rest = steps(&mut Rng::with_seed(seed), &profile(service, true));
                faults.extend(rest.iter().filter_map(fault));
                while let Some(place) = rest.iter().position(|step| fault(step).is_some()) {
                    // The step after a fault opens the connection again.
                    rest.drain(place..place + 2);
                }
                assert_eq!(rest, legal, "{seed}");
            }
            assert_eq!(faults.len(), kinds);
        }
    }

    #[test]
    fn only_explorations_have_long_steps() {
        let mut longest = [0, 0];
        for (explores, longest) in [false, true].into_iter().zip(&mut longest) {
            for seed in 0..2000 {
                let steps = steps(&mut Rng::with_seed(seed), &profile(SessionService::SdpEcho, explores));
                for action in sdp_actions(&steps) {
                    assert!(explores || !matches!(action, SdpAction::Huge { .. }), "{seed}");
                    if let SdpAction::LateAnswer { ms, .. } = action {
                        *longest = ms.max(*longest);
                    }
                }
            }
        }
        assert_eq!(longest, [300, PATIENCE]);
    }

    #[test]
    fn a_session_with_small_buffers_has_at_most_one_longer_send() {
        let mut counts = BTreeSet::new();
        for seed in 0..600 {
            let steps = steps(&mut Rng::with_seed(seed), &profile(SessionService::SdpEcho, false));
            let is_small = sdp_actions(&steps).any(|action| match action {
                SdpAction::Open(fields) => fields.recv_size < 1000 || fields.bufs < 5,
                _ => false,
            });
            if is_small {
                let is_longer = |action: &SdpAction| matches!(action, SdpAction::Send { size, .. } if *size > SHORT);
                counts.insert(sdp_actions(&steps).filter(is_longer).count());
            }
        }
        assert_eq!(counts, BTreeSet::from([0, 1]));
        let fields = |recv_size| [SocketFields { recv_size, ..SocketFields::default() }];
        assert_eq!([37, 100, 1000].map(|recv_size| longer_send(&fields(recv_size))), [4200, 16_800, 20_000]);
    }

    #[test]
    fn a_case_with_each_sdp_step_loads() {
        let fields = SocketFields {
            crc: false,
            mode: "pipelined",
            recv_size: 1000,
            data_first: true,
            max_received: 300,
            buffers_at: 0xffff_f001,
            ..SocketFields::default()
        };
        let steps = [
            SdpAction::Open(fields),
            SdpAction::Send { size: 70, urgent: true },
            SdpAction::Mode("combined"),
            SdpAction::Unbuffer,
            SdpAction::Resize(3000),
            SdpAction::Resizes { count: 4, size: 3000 },
            SdpAction::Grow { size: 20_000, before: 3 },
            SdpAction::Fill { count: 3, more: -1 },
            SdpAction::StopReading(5),
            SdpAction::Hold(30),
            SdpAction::LateAnswer { ms: 300, size: 9000 },
            SdpAction::Huge { size: 1_300_000, count: 40 },
            SdpAction::Answer("both"),
            SdpAction::Cancel,
            SdpAction::Run(1050),
            SdpAction::Abort,
            SdpAction::Resume,
        ];
        let text = lua(SessionService::SdpSink, "7-1", "Session 1 of seed 7.", &steps.map(|step| of(1, step)), &[]);
        let calls = [
            "s:open(1, { recv_size = 1000, max_received = 300, mode = \"pipelined\", crc = false, data_first = true, \
             buffers_at = 0xfffff001 })",
            "s:send(1, { size = 70, urgent = true })",
            "s:mode(1, \"combined\")",
            "s:unbuffer(1)",
            "s:resize(1, 3000)",
            "s:resizes(1, 4, 3000)",
            "s:grow(1, 20000, 3)",
            "s:fill(1, 3, -1)",
            "s:stop_reading(1, 0.005)",
            "s:hold(1, 0.030)",
            "s:late_answer(1, 0.300, 9000)",
            "s:huge(1, 1300000, 40)",
            "s:answer(1, \"both\")",
            "s:cancel(1)",
            "s:run(1, 1.050)",
            "s:abort(1)",
            "s:resume(1)",
        ];
        assert!(text.contains(&format!("    {}\n", calls.join("\n    "))), "{text}");
        let case = Suites::generated("sdp/explored/7-1.lua", text).unwrap();
        // Three requirements of each session with SDP, and three of `resume`.
        assert_eq!(case.info.requirements.len(), 6);
    }
}
