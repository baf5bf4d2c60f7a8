//! The steps of a session with an SDP socket, and how they are drawn. The steps call the functions
//! of `suites/library/sdp_session.lua`.

use std::fmt::{self, Display, Formatter};

use fastrand::Rng;

use super::draw::{Profile, pick};
use super::fault::{Fault, SDP_ANSWER_FAULTS, SDP_FAULTS};
use super::service::SessionService;
use super::step::Step;

/// The Modes of a half-connection.
const MODES: [&str; 3] = ["combined", "pipelined", "buffered"];
/// How the tester answers a SrcAvail.
const ANSWERS: [&str; 3] = ["read", "send-sm", "both"];
/// Sizes in bytes of Private Buffers to request.
const SIZES: &[u32] = &[500, 1000, 3000, 8192, 10_000, 20_000, 50_000];
/// Virtual addresses of the tester's buffers. In most buffers, bit 31 or bit 32 of the address
/// changes between the first and the last byte.
const ADDRESSES: &[u64] = &[0xffff_f001, 0xffff_0003, 0x7fff_f007, 0x7fff_fff7_ffff_fc01, 0x1234_5678_ffff_fe05];
/// Maximum number of steps of a session. A pattern of steps may exceed it.
const MAX_STEPS: usize = 30;
/// Maximum number of bytes that a session sends in single steps.
const MAX_OCTETS: u32 = 1 << 20;
/// If the sessions may have faults, one of this number of sessions has faults. A target that
/// continues after a fault violates only a recommendation, and ends the session early.
const FAULTY: u32 = 3;

/// Fields of a new socket. They are fields of `t:sdp_socket`, except for `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketFields {
    pub(crate) crc: bool,
    pub(crate) mode: &'static str,
    pub(crate) bufs: u32,
    pub(crate) recv_size: u32,
    pub(crate) source_threshold: u32,
    pub(crate) sink_threshold: u32,
    pub(crate) max_src_avail: u32,
    pub(crate) src_avail_payload: u32,
    pub(crate) answer: &'static str,
    pub(crate) max_read: u32,
    pub(crate) read_batch: u32,
    pub(crate) receive: u32,
    pub(crate) receives: u32,
    pub(crate) max_adverts: u32,
    pub(crate) src_avails: u32,
    pub(crate) sink_avails: u32,
    pub(crate) ird: u32,
    pub(crate) wants_pipelined: bool,
    pub(crate) follows_hints: bool,
    /// Virtual address of the tester's buffers. If it is 0, weft selects the address.
    pub(crate) buffers_at: u64,
    pub(crate) cut: u32,
    pub(crate) cut_fpdus: bool,
}

impl Default for SocketFields {
    /// The fields of `t:sdp_socket {}`.
    fn default() -> Self {
        SocketFields {
            crc: true,
            mode: "combined",
            bufs: 16,
            recv_size: 8192,
            source_threshold: 16384,
            sink_threshold: 16384,
            max_src_avail: 1 << 30,
            src_avail_payload: u32::MAX,
            answer: "read",
            max_read: 1 << 30,
            read_batch: u32::MAX,
            receive: 16384,
            receives: 2,
            max_adverts: 16,
            src_avails: 4,
            sink_avails: 4,
            ird: 16,
            wants_pipelined: false,
            follows_hints: false,
            buffers_at: 0,
            cut: 0,
            cut_fpdus: false,
        }
    }
}

impl SocketFields {
    /// The names and values of the fields that differ from their default.
    fn changed(&self) -> Vec<String> {
        let usual = SocketFields::default();
        let mut fields = Vec::new();
        let numbers = [
            ("bufs", self.bufs, usual.bufs),
            ("recv_size", self.recv_size, usual.recv_size),
            ("source_threshold", self.source_threshold, usual.source_threshold),
            ("sink_threshold", self.sink_threshold, usual.sink_threshold),
            ("max_src_avail", self.max_src_avail, usual.max_src_avail),
            ("src_avail_payload", self.src_avail_payload, usual.src_avail_payload),
            ("max_read", self.max_read, usual.max_read),
            ("read_batch", self.read_batch, usual.read_batch),
            ("receive", self.receive, usual.receive),
            ("receives", self.receives, usual.receives),
            ("max_adverts", self.max_adverts, usual.max_adverts),
            ("src_avails", self.src_avails, usual.src_avails),
            ("sink_avails", self.sink_avails, usual.sink_avails),
            ("ird", self.ird, usual.ird),
            ("cut", self.cut, usual.cut),
        ];
        fields.extend(numbers.iter().filter(|(_, is, was)| is != was).map(|(name, is, _)| format!("{name} = {is}")));
        let names = [("mode", self.mode, usual.mode), ("answer", self.answer, usual.answer)];
        fields.extend(names.iter().filter(|(_, is, was)| is != was).map(|(name, is, _)| format!("{name} = \"{is}\"")));
        let flags = [
            ("crc", self.crc, usual.crc),
            ("wants_pipelined", self.wants_pipelined, usual.wants_pipelined),
            ("follows_hints", self.follows_hints, usual.follows_hints),
            ("cut_fpdus", self.cut_fpdus, usual.cut_fpdus),
        ];
        fields.extend(flags.iter().filter(|(_, is, was)| is != was).map(|(name, is, _)| format!("{name} = {is}")));
        if self.buffers_at != usual.buffers_at {
            fields.push(format!("buffers_at = {:#x}", self.buffers_at));
        }
        fields
    }

    /// Returns simpler fields: first the defaults of all fields, then variants in which one field,
    /// or a group of related fields, has its default.
    fn simpler(self) -> Vec<SocketFields> {
        let usual = SocketFields::default();
        let tried = [
            usual,
            SocketFields { crc: usual.crc, ..self },
            SocketFields { mode: usual.mode, ..self },
            SocketFields { bufs: usual.bufs, ..self },
            SocketFields { recv_size: usual.recv_size, ..self },
            SocketFields { source_threshold: usual.source_threshold, ..self },
            SocketFields { sink_threshold: usual.sink_threshold, ..self },
            SocketFields { max_src_avail: usual.max_src_avail, ..self },
            SocketFields { src_avail_payload: usual.src_avail_payload, ..self },
            SocketFields { answer: usual.answer, ..self },
            SocketFields { max_read: usual.max_read, read_batch: usual.read_batch, ..self },
            SocketFields { receive: usual.receive, receives: usual.receives, ..self },
            SocketFields { max_adverts: usual.max_adverts, ..self },
            SocketFields { src_avails: usual.src_avails, sink_avails: usual.sink_avails, ..self },
            SocketFields { ird: usual.ird, ..self },
            SocketFields { wants_pipelined: false, follows_hints: false, ..self },
            SocketFields { buffers_at: usual.buffers_at, ..self },
            SocketFields { cut: usual.cut, cut_fpdus: usual.cut_fpdus, ..self },
        ];
        tried.into_iter().filter(|fields| *fields != self).collect()
    }
}

/// A step on the SDP connection with the number `connection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SdpStep {
    pub(crate) connection: u32,
    pub(crate) action: SdpAction,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SdpAction {
    /// Opens the connection.
    Open(SocketFields),
    /// Sends `size` bytes. With `urgent`, the last byte is Out-Of-Band data.
    Send { size: u32, urgent: bool },
    /// Requests a Mode of the half-connection to the target.
    Mode(&'static str),
    /// Ends Buffered Mode of the half-connection from the target.
    Unbuffer,
    /// Requests another size of the target's Private Buffers.
    Resize(u32),
    /// Sends `count` requests for other sizes of the target's Private Buffers. Each size is one
    /// byte less than the previous size. After each request, sends 20 bytes one by one.
    Resizes { count: u32, size: u32 },
    /// Leaves the target's bytes unread for this number of milliseconds.
    StopReading(u32),
    /// Changes how the tester answers a SrcAvail.
    Answer(&'static str),
    /// Cancels the sends.
    Cancel,
    /// Lets the connection continue for this number of milliseconds.
    Run(u32),
    /// Ends the connection abortively.
    Abort,
}

impl SdpStep {
    /// Returns simpler steps, the simplest first. `smaller` returns smaller values of a number.
    pub(crate) fn simpler(self, smaller: impl Fn(u32) -> Vec<u32>) -> Vec<SdpStep> {
        let actions: Vec<SdpAction> = match self.action {
            SdpAction::Open(fields) => fields.simpler().into_iter().map(SdpAction::Open).collect(),
            SdpAction::Send { size, urgent } => {
                let plain = urgent.then_some(SdpAction::Send { size, urgent: false });
                let sizes = smaller(size).into_iter().filter(|size| *size > 0);
                plain.into_iter().chain(sizes.map(|size| SdpAction::Send { size, urgent })).collect()
            }
            SdpAction::Resize(size) => {
                smaller(size).into_iter().filter(|size| *size >= 37).map(SdpAction::Resize).collect()
            }
            SdpAction::Resizes { count, size } => {
                smaller(count).into_iter().map(|count| SdpAction::Resizes { count, size }).collect()
            }
            SdpAction::StopReading(ms) => {
                smaller(ms).into_iter().filter(|ms| *ms > 0).map(SdpAction::StopReading).collect()
            }
            SdpAction::Run(ms) => smaller(ms).into_iter().map(SdpAction::Run).collect(),
            SdpAction::Mode(_) | SdpAction::Unbuffer | SdpAction::Answer(_) | SdpAction::Cancel | SdpAction::Abort => {
                Vec::new()
            }
        };
        actions.into_iter().map(|action| SdpStep { action, ..self }).collect()
    }
}

/// A call in Lua, with the session in `s`.
impl Display for SdpStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let connection = self.connection;
        match self.action {
            SdpAction::Open(fields) => match fields.changed() {
                changed if changed.is_empty() => write!(f, "s:open({connection})"),
                changed => write!(f, "s:open({connection}, {{ {} }})", changed.join(", ")),
            },
            SdpAction::Send { size, urgent } => {
                let urgent = if urgent { ", urgent = true" } else { "" };
                write!(f, "s:send({connection}, {{ size = {size}{urgent} }})")
            }
            SdpAction::Mode(mode) => write!(f, "s:mode({connection}, \"{mode}\")"),
            SdpAction::Unbuffer => write!(f, "s:unbuffer({connection})"),
            SdpAction::Resize(size) => write!(f, "s:resize({connection}, {size})"),
            SdpAction::Resizes { count, size } => write!(f, "s:resizes({connection}, {count}, {size})"),
            SdpAction::StopReading(ms) => {
                write!(f, "s:stop_reading({connection}, {}.{:03})", ms / 1000, ms % 1000)
            }
            SdpAction::Answer(how) => write!(f, "s:answer({connection}, \"{how}\")"),
            SdpAction::Cancel => write!(f, "s:cancel({connection})"),
            SdpAction::Run(ms) => write!(f, "s:run({connection}, {}.{:03})", ms / 1000, ms % 1000),
            SdpAction::Abort => write!(f, "s:abort({connection})"),
        }
    }
}

/// Draws the steps of a session.
pub(crate) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let of = |connection, action| Step::Sdp(SdpStep { connection, action });
    let most = rng.u32(1..=profile.connections);
    let connections = rng.u32(1..=most);
    let opened: Vec<SocketFields> = (1..=connections).map(|_| fields(rng)).collect();
    let mut steps: Vec<Step> =
        (1..).zip(&opened).map(|(number, fields)| of(number, SdpAction::Open(*fields))).collect();
    // With small buffers, the same number of bytes needs more messages. So a session with small
    // buffers sends fewer bytes.
    let is_small = opened.iter().any(|fields| fields.recv_size < 1000 || fields.bufs < 5);
    let (most, mut left) = if is_small { (4000, MAX_OCTETS / 40) } else { (u32::MAX, MAX_OCTETS) };
    let count = steps.len() + 1 + rng.usize(..MAX_STEPS) * rng.usize(1..=4) / 4;
    while steps.len() < count {
        let connection = rng.u32(1..=connections);
        let action = match rng.u32(..100) {
            0..4 => SdpAction::Open(opened[connection as usize - 1]),
            4..16 => SdpAction::Run(*pick(rng, &[0, 1, 1, 3, 10, 30, 100])),
            16..24 => {
                steps.push(Step::Answers { connection });
                continue;
            }
            24..27 => {
                steps.push(Step::Close { connection });
                continue;
            }
            27 => SdpAction::Abort,
            28 => {
                steps.push(Step::Reset { connection });
                continue;
            }
            29..34 => SdpAction::Mode(MODES[rng.usize(..MODES.len())]),
            34..37 => SdpAction::Unbuffer,
            37..40 => SdpAction::Resize(*pick(rng, SIZES)),
            40 => SdpAction::Resizes { count: rng.u32(2..=30), size: *pick(rng, SIZES) },
            41..45 => SdpAction::Answer(ANSWERS[rng.usize(..ANSWERS.len())]),
            45..50 => SdpAction::Cancel,
            50..53 => SdpAction::StopReading(*pick(rng, &[1, 5, 30, 100, 300])),
            53..55 if !is_small => {
                steps.extend(pattern(rng, connection));
                continue;
            }
            55..58 => {
                steps.push(Step::Burst { connection, count: rng.u32(2..=400), size: rng.u32(1..=16) });
                continue;
            }
            _ => {
                let size = size(rng).min(left).min(most);
                left -= size;
                if size == 0 {
                    break;
                }
                SdpAction::Send { size, urgent: rng.u32(..8) == 0 }
            }
        };
        steps.push(of(connection, action));
    }
    // The faults are drawn last. So a seed determines the same legal steps with and without faults.
    if profile.faults && rng.u32(..FAULTY) == 0 {
        add_faults(rng, profile.service, &opened, &mut steps);
    }
    steps
}

/// Inserts one or two faults at random places after the first steps, which open the connections.
/// `opened` has the fields of each connection. After each fault, a step opens the connection again
/// with these fields.
fn add_faults(rng: &mut Rng, service: SessionService, opened: &[SocketFields], steps: &mut Vec<Step>) {
    let own: &[Fault] = if service == SessionService::SdpSource { &[] } else { &SDP_ANSWER_FAULTS };
    let faults: Vec<Fault> = SDP_FAULTS.iter().chain(own).copied().collect();
    let mut places: Vec<usize> = (0..rng.usize(1..=2)).map(|_| rng.usize(opened.len()..=steps.len())).collect();
    places.sort_unstable();
    // A step that is inserted at a later place does not change the earlier places.
    for place in places.into_iter().rev() {
        let connection = rng.usize(..opened.len());
        let open = SdpAction::Open(opened[connection]);
        let connection = u32::try_from(connection + 1).unwrap_or(1);
        let fault = Step::Fault { connection, fault: faults[rng.usize(..faults.len())] };
        steps.splice(place..place, [fault, Step::Sdp(SdpStep { connection, action: open })]);
    }
}

/// Returns a sequence of steps that single drawn steps rarely produce: the tester's messages cross
/// those of the target, or a Mode ends soon after it began.
fn pattern(rng: &mut Rng, connection: u32) -> Vec<Step> {
    let of = |action| Step::Sdp(SdpStep { connection, action });
    let send = |size| of(SdpAction::Send { size, urgent: false });
    let urgent = |size| of(SdpAction::Send { size, urgent: true });
    let deaf = |ms| of(SdpAction::StopReading(ms));
    let run = |ms| of(SdpAction::Run(ms));
    let answers = Step::Answers { connection };
    match rng.u32(..6) {
        // A SrcAvailCancel crosses the target's completion, or its RDMA Reads.
        0 => {
            let size = *pick(rng, &[400, 600, 2000, 9000, 30_000]);
            vec![deaf(100), send(size), run(20), of(SdpAction::Cancel), send(20), answers]
        }
        // Many SrcAvails at once.
        1 => {
            let (count, size) = (rng.usize(2..=32), *pick(rng, &[600, 3000, 9000]));
            let sends = std::iter::repeat_n(send(size), count);
            let before = [of(SdpAction::Mode("pipelined")), deaf(100)];
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
        4 => vec![deaf(200), send(100_000), urgent(20), urgent(20), run(50), answers],
        // SinkAvails cross SrcAvails.
        _ => {
            let sends = std::iter::repeat_n(send(8000), rng.usize(3..=6));
            [deaf(50)].into_iter().chain(sends).chain([run(100), answers]).collect()
        }
    }
}

/// Draws the size of a send in bytes, at least 1.
fn size(rng: &mut Rng) -> u32 {
    match rng.u32(..10) {
        0 => rng.u32(1..=3),
        1..4 => rng.u32(1..=600),
        4..6 => pick(rng, &[1000, 1460, 4096, 8176, 8192, 16_384]) * rng.u32(1..=2) + rng.u32(..5) - 2,
        6..8 => (1 << rng.u32(9..18)) + rng.u32(..5) - 2,
        _ => rng.u32(1..=150_000),
    }
}

/// Draws the fields of a socket. Each field has its default in most sockets.
fn fields(rng: &mut Rng) -> SocketFields {
    let mut fields = SocketFields::default();
    let mut rarely = |fields: &mut SocketFields, change: &dyn Fn(&mut Rng, &mut SocketFields)| {
        if rng.u32(..3) == 0 {
            change(rng, fields);
        }
    };
    rarely(&mut fields, &|rng, fields| fields.crc = rng.bool());
    rarely(&mut fields, &|rng, fields| fields.mode = MODES[rng.usize(..MODES.len())]);
    rarely(&mut fields, &|rng, fields| fields.bufs = *pick(rng, &[3, 4, 5, 8, 64]));
    rarely(&mut fields, &|rng, fields| fields.recv_size = *pick(rng, &[37, 100, 1000, 3000, 20_000]));
    rarely(&mut fields, &|rng, fields| fields.source_threshold = *pick(rng, &[0, 64, 500, 3000, 1 << 30]));
    rarely(&mut fields, &|rng, fields| fields.sink_threshold = *pick(rng, &[0, 500, 5000, 1 << 30]));
    rarely(&mut fields, &|rng, fields| fields.max_src_avail = *pick(rng, &[1000, 5000, 20_000, 70_000]));
    rarely(&mut fields, &|rng, fields| fields.src_avail_payload = *pick(rng, &[1, 40, 1000]));
    rarely(&mut fields, &|rng, fields| fields.answer = ANSWERS[rng.usize(..ANSWERS.len())]);
    rarely(&mut fields, &|rng, fields| fields.max_read = *pick(rng, &[500, 3000, 20_000]));
    rarely(&mut fields, &|rng, fields| fields.read_batch = *pick(rng, &[1, 2000, 10_000]));
    rarely(&mut fields, &|rng, fields| fields.receive = *pick(rng, &[50, 1000, 4000, 40_000, 200_000]));
    rarely(&mut fields, &|rng, fields| fields.receives = *pick(rng, &[1, 4, 16]));
    // The smallest value is 4. With fewer advertisements, the SinkAvails of a target may use up the
    // advertisements that its SrcAvails need.
    rarely(&mut fields, &|rng, fields| fields.max_adverts = *pick(rng, &[4, 8, 32]));
    rarely(&mut fields, &|rng, fields| fields.src_avails = *pick(rng, &[1, 2, 20, 32]));
    rarely(&mut fields, &|rng, fields| fields.sink_avails = *pick(rng, &[0, 1, 8]));
    rarely(&mut fields, &|rng, fields| fields.ird = *pick(rng, &[1, 2, 4]));
    rarely(&mut fields, &|rng, fields| fields.wants_pipelined = rng.bool());
    rarely(&mut fields, &|rng, fields| fields.follows_hints = rng.bool());
    rarely(&mut fields, &|rng, fields| fields.buffers_at = *pick(rng, ADDRESSES));
    rarely(&mut fields, &|rng, fields| match rng.u32(..3) {
        0 => fields.cut_fpdus = true,
        1 => fields.cut = *pick(rng, &[100, 1440, 1448, 2000, 3000]),
        _ => {}
    });
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Target;

    fn profile(service: SessionService, faults: bool) -> Profile {
        Profile { faults, ..Profile::of(&Target::builtin(), service, 3) }
    }

    #[test]
    fn the_seed_determines_the_steps_and_simpler_steps_end() {
        let profile = profile(SessionService::SdpEcho, true);
        for seed in 0..100 {
            let steps = steps(&mut Rng::with_seed(seed), &profile);
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile));
            for mut step in steps {
                let tries = std::iter::from_fn(|| {
                    step = *step.simpler().first()?;
                    Some(step)
                });
                assert!(tries.take(1000).count() < 1000, "a step has simpler steps without end");
            }
        }
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
            let mut faults = std::collections::BTreeSet::new();
            for seed in 0..600 {
                let legal = steps(&mut Rng::with_seed(seed), &profile(service, false));
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
}
