//! The steps of a session with an agent, and how they are drawn. The steps call the functions of
//! `suites/library/agent_session.lua`.

use std::fmt::{self, Display, Formatter};

use fastrand::Rng;

use super::draw::{Profile, pick, segment, size};
use super::step::Step;

/// The kinds of work requests that the target's user posts.
const KINDS: [&str; 3] = ["send", "write", "read"];
/// The Atomic Operations that the target's user posts.
const POSTED_ATOMICS: [&str; 2] = ["add", "swap"];
/// The Atomic Operations that the tester requests. A `miss` is a CmpSwap that finds another value.
const ATOMICS: [&str; 3] = ["add", "swap", "miss"];
/// Payload in bytes of the tester's segments, if a step has no other number.
const SEGMENT: u32 = 1024;
/// Number of Reads that each side of a connection permits at a time, if a step has no other number.
const DEPTH: u32 = 4;
/// Number of regions of a connection that the tester writes and reads.
const REGIONS: u32 = 3;
/// Maximum size in bytes of such a region.
const MAX_REGION: u32 = 200_000;
/// Maximum size in bytes of a message. If a step has several messages, the maximum is lower.
const MAX_SIZE: u32 = 131_072;
const MAX_SHORT: u32 = 4096;
/// Maximum number of steps of a session.
const MAX_STEPS: usize = 30;
/// Maximum number of bytes of the messages of a session.
const MAX_OCTETS: u32 = 2 << 20;

/// Work requests that the target's user posts. Their fields are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkFields {
    /// `send`, `write` or `read`, or `add` or `swap` for an Atomic Operation.
    pub(crate) kind: &'static str,
    /// Number of work requests.
    pub(crate) count: u32,
    pub(crate) size: u32,
    /// Maximum number of parts of the user's memory.
    pub(crate) parts: u32,
    /// Offset of the user's memory in its region.
    pub(crate) at: u32,
    /// Tagged Offset of the tester's memory.
    pub(crate) to: u64,
    pub(crate) solicited: bool,
    pub(crate) invalidate: bool,
    pub(crate) fence: bool,
    pub(crate) inline: bool,
    /// Whether only the last work request has a completion.
    pub(crate) unsignaled: bool,
}

impl WorkFields {
    /// One work request without options.
    pub(crate) fn plain(kind: &'static str, size: u32) -> Self {
        WorkFields {
            kind,
            count: 1,
            size,
            parts: 1,
            at: 0,
            to: 0,
            solicited: false,
            invalidate: false,
            fence: false,
            inline: false,
            unsignaled: false,
        }
    }

    fn simpler(self, smaller: impl Fn(u32) -> Vec<u32>) -> Vec<WorkFields> {
        let tried = [
            WorkFields::plain(self.kind, self.size),
            WorkFields { count: 1, ..self },
            WorkFields { parts: 1, ..self },
            WorkFields { at: 0, ..self },
            WorkFields { to: 0, ..self },
            WorkFields { solicited: false, ..self },
            WorkFields { invalidate: false, ..self },
            WorkFields { fence: false, ..self },
            WorkFields { inline: false, ..self },
            WorkFields { unsignaled: false, ..self },
        ];
        let counts = smaller(self.count).into_iter().filter(|count| *count > 0);
        let counts = counts.map(|count| WorkFields { count, ..self });
        let sizes = smaller(self.size).into_iter().map(|size| WorkFields { size, ..self });
        tried.into_iter().chain(counts).chain(sizes).collect()
    }

    fn table(&self) -> LuaTable {
        let mut table = LuaTable::of_size(self.size)
            .number("count", self.count, 1)
            .number("parts", self.parts, 1)
            .number("at", self.at, 0)
            .flag("solicited", self.solicited)
            .flag("invalidate", self.invalidate)
            .flag("fence", self.fence)
            .flag("inline", self.inline)
            .flag("unsignaled", self.unsignaled);
        if self.to > 0 {
            table.0.push(format!("to = {:#x}", self.to));
        }
        table
    }
}

/// A Send of the tester.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageFields {
    pub(crate) size: u32,
    /// Maximum payload in bytes of a segment.
    pub(crate) segment: u32,
    /// Number of bytes by which the receive is longer than the Send.
    pub(crate) room: u32,
    /// Maximum number of parts of the receive.
    pub(crate) parts: u32,
    /// Offset of the receive in its region.
    pub(crate) pad: u32,
    /// Size in bytes of the TCP segments into which the FPDUs are cut, or 0 for no cuts.
    pub(crate) every: u32,
    pub(crate) solicited: bool,
}

impl MessageFields {
    fn simpler(self, smaller: impl Fn(u32) -> Vec<u32>) -> Vec<MessageFields> {
        let tried = [
            MessageFields { segment: SEGMENT, room: 0, parts: 1, pad: 0, every: 0, solicited: false, ..self },
            MessageFields { segment: SEGMENT, ..self },
            MessageFields { room: 0, ..self },
            MessageFields { parts: 1, ..self },
            MessageFields { pad: 0, ..self },
            MessageFields { every: 0, ..self },
            MessageFields { solicited: false, ..self },
        ];
        tried.into_iter().chain(smaller(self.size).into_iter().map(|size| MessageFields { size, ..self })).collect()
    }

    fn table(&self) -> LuaTable {
        LuaTable::of_size(self.size)
            .number("segment", self.segment, SEGMENT)
            .number("room", self.room, 0)
            .number("parts", self.parts, 1)
            .number("pad", self.pad, 0)
            .number("every", self.every, 0)
            .flag("solicited", self.solicited)
    }
}

/// A step on the connection with the number `connection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentStep {
    pub(crate) connection: u32,
    pub(crate) action: AgentAction,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentAction {
    /// Opens the connection. Each side permits `depth` Reads at a time.
    Open { depth: u32, markers: bool, enhanced: bool },
    /// Registers a region of `size` bytes, which replaces the region with the same number.
    Region { region: u32, size: u32 },
    /// Changes all bytes of a region, as a program on the target does.
    Fill { region: u32 },
    /// Posts work requests of the target.
    Post(WorkFields),
    /// Sends segments of the answers to the target's Reads.
    Answer { count: u32, segment: u32 },
    /// Posts receives.
    Receive { count: u32, size: u32, parts: u32, pad: u32 },
    /// Begins a Send of the tester. `Step::Segments` sends its segments.
    Message(MessageFields),
    /// Sends Immediate Data.
    Immediate { solicited: bool },
    /// Writes to a region.
    Write { region: u32, at: u32, size: u32, segment: u32 },
    /// Sends Read Requests for a region, at most as many as the target permits.
    Read { region: u32, at: u32, size: u32, count: u32 },
    /// Sends an Atomic Request.
    Atomic(&'static str),
    /// Lets the target's user end the connection.
    Disconnect,
}

impl AgentStep {
    /// Returns whether the step needs Atomic Operations or Immediate Data.
    pub(crate) fn is_extension(&self) -> bool {
        match self.action {
            AgentAction::Post(fields) => POSTED_ATOMICS.contains(&fields.kind),
            AgentAction::Immediate { .. } | AgentAction::Atomic(_) => true,
            _ => false,
        }
    }

    /// Returns simpler steps, the simplest first. `smaller` returns smaller values of a number.
    pub(crate) fn simpler(self, smaller: impl Fn(u32) -> Vec<u32>) -> Vec<AgentStep> {
        let positive = |value: u32| smaller(value).into_iter().filter(|less| *less > 0);
        let actions: Vec<AgentAction> = match self.action {
            AgentAction::Open { depth, markers, enhanced } => vec![
                AgentAction::Open { depth: DEPTH, markers, enhanced },
                AgentAction::Open { depth, markers: false, enhanced },
                AgentAction::Open { depth, markers, enhanced: false },
            ],
            AgentAction::Region { region, size } => {
                positive(size).map(|size| AgentAction::Region { region, size }).collect()
            }
            AgentAction::Post(fields) => fields.simpler(&smaller).into_iter().map(AgentAction::Post).collect(),
            AgentAction::Answer { count, segment } => {
                let counts = positive(count).map(|count| AgentAction::Answer { count, segment });
                [AgentAction::Answer { count, segment: SEGMENT }].into_iter().chain(counts).collect()
            }
            AgentAction::Receive { count, size, parts, pad } => {
                let counts = positive(count).map(|count| AgentAction::Receive { count, size, parts, pad });
                let sizes = smaller(size).into_iter().map(|size| AgentAction::Receive { count, size, parts, pad });
                let plain = AgentAction::Receive { count, size, parts: 1, pad: 0 };
                [plain].into_iter().chain(counts).chain(sizes).collect()
            }
            AgentAction::Message(fields) => fields.simpler(&smaller).into_iter().map(AgentAction::Message).collect(),
            AgentAction::Immediate { .. } => vec![AgentAction::Immediate { solicited: false }],
            AgentAction::Write { region, at, size, segment } => {
                let sizes = smaller(size).into_iter().map(|size| AgentAction::Write { region, at, size, segment });
                let places = smaller(at).into_iter().map(|at| AgentAction::Write { region, at, size, segment });
                let plain = AgentAction::Write { region, at, size, segment: SEGMENT };
                [plain].into_iter().chain(sizes).chain(places).collect()
            }
            AgentAction::Read { region, at, size, count } => {
                let counts = positive(count).map(|count| AgentAction::Read { region, at, size, count });
                let sizes = smaller(size).into_iter().map(|size| AgentAction::Read { region, at, size, count });
                let places = smaller(at).into_iter().map(|at| AgentAction::Read { region, at, size, count });
                counts.chain(sizes).chain(places).collect()
            }
            AgentAction::Fill { .. } | AgentAction::Atomic(_) | AgentAction::Disconnect => Vec::new(),
        };
        let actions = actions.into_iter().filter(|action| *action != self.action);
        actions.map(|action| AgentStep { action, ..self }).collect()
    }
}

/// A table in Lua. A field that has its default is left out.
#[derive(Debug, Default)]
struct LuaTable(Vec<String>);

impl LuaTable {
    fn of_size(size: u32) -> Self {
        LuaTable(vec![format!("size = {size}")])
    }

    fn number(mut self, name: &str, value: u32, default: u32) -> Self {
        if value != default {
            self.0.push(format!("{name} = {value}"));
        }
        self
    }

    fn flag(mut self, name: &str, is_set: bool) -> Self {
        if is_set {
            self.0.push(format!("{name} = true"));
        }
        self
    }
}

impl Display for LuaTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{ {} }}", self.0.join(", "))
    }
}

/// A call in Lua, with the session in `s`.
impl Display for AgentStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let connection = self.connection;
        match self.action {
            AgentAction::Open { depth, markers, enhanced } => {
                let table = LuaTable::default().number("depth", depth, DEPTH);
                let table = table.flag("markers", markers).flag("enhanced", enhanced);
                match table.0.is_empty() {
                    true => write!(f, "s:open({connection})"),
                    false => write!(f, "s:open({connection}, {table})"),
                }
            }
            AgentAction::Region { region, size } => write!(f, "s:region({connection}, {region}, {size})"),
            AgentAction::Fill { region } => write!(f, "s:fill({connection}, {region})"),
            AgentAction::Post(fields) => {
                write!(f, "s:post({connection}, \"{}\", {})", fields.kind, fields.table())
            }
            AgentAction::Answer { count, segment } => write!(f, "s:answer({connection}, {count}, {segment})"),
            AgentAction::Receive { count, size, parts, pad } => {
                let table = LuaTable::of_size(size).number("parts", parts, 1).number("pad", pad, 0);
                write!(f, "s:receive({connection}, {count}, {table})")
            }
            AgentAction::Message(fields) => write!(f, "s:message({connection}, {})", fields.table()),
            AgentAction::Immediate { solicited } => write!(f, "s:immediate({connection}, {solicited})"),
            AgentAction::Write { region, at, size, segment } => {
                let table = LuaTable::of_size(size).number("region", region, 1).number("at", at, 0);
                write!(f, "s:write({connection}, {})", table.number("segment", segment, SEGMENT))
            }
            AgentAction::Read { region, at, size, count } => {
                let table = LuaTable::of_size(size).number("region", region, 1).number("at", at, 0);
                write!(f, "s:read({connection}, {})", table.number("count", count, 1))
            }
            AgentAction::Atomic(kind) => write!(f, "s:atomic({connection}, \"{kind}\")"),
            AgentAction::Disconnect => write!(f, "s:disconnect({connection})"),
        }
    }
}

fn of(connection: u32, action: AgentAction) -> Step {
    Step::Agent(AgentStep { connection, action })
}

/// Draws the steps of a session.
pub(super) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let most = rng.u32(1..=profile.connections);
    let connections = rng.u32(1..=most);
    let (mut steps, mut left) = (Vec::new(), MAX_OCTETS);
    for connection in 1..=connections {
        if rng.bool() {
            steps.push(of(connection, open(rng, profile)));
        }
    }
    let count = steps.len() + 1 + rng.usize(..MAX_STEPS) * rng.usize(1..=4) / 4;
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
            20..26 => AgentAction::Region { region, size: size(rng, MAX_REGION).max(1) },
            26..29 => AgentAction::Fill { region },
            29..36 => {
                AgentAction::Answer { count: rng.u32(1..=40), segment: *pick(rng, &[1, 64, 1000, 1432, SEGMENT]) }
            }
            36..41 => {
                let (count, size) = (rng.u32(1..=12), size(rng, 4 * MAX_SHORT));
                AgentAction::Receive { count, size, parts: parts(rng), pad: rng.u32(..64) }
            }
            41..44 if profile.atomics => AgentAction::Atomic(ATOMICS[rng.usize(..ATOMICS.len())]),
            44..46 if profile.atomics => AgentAction::Immediate { solicited: rng.bool() },
            46..66 => AgentAction::Post(work(rng, profile, &mut left)),
            66..76 => {
                let size = size(rng, MAX_SIZE.min(left));
                left -= size;
                AgentAction::Write { region, at: place(rng), size, segment: segment(rng, profile, size) }
            }
            76..86 => {
                let count: u32 = *pick(rng, &[1, 1, 1, 2, 4, 5, 16]);
                let most = if count == 1 { MAX_SIZE } else { MAX_SHORT };
                let size = size(rng, most.min(left / count));
                left -= size * count;
                AgentAction::Read { region, at: place(rng), size, count }
            }
            _ => {
                message(rng, profile, connection, &mut left, &mut steps);
                continue;
            }
        };
        steps.push(of(connection, action));
    }
    steps
}

fn open(rng: &mut Rng, profile: &Profile) -> AgentAction {
    let markers = profile.markers && rng.u32(..4) == 0;
    let enhanced = profile.enhanced && rng.u32(..3) == 0;
    AgentAction::Open { depth: *pick(rng, &[1, 2, DEPTH, DEPTH, 8, 16]), markers, enhanced }
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
    let kind = if is_atomic { *pick(rng, &POSTED_ATOMICS) } else { *pick(rng, &KINDS) };
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
    use super::super::case::lua;
    use super::super::service::SessionService;
    use super::*;
    use crate::script::Suites;
    use crate::targets::Target;

    fn profile() -> Profile {
        Profile { atomics: true, ..Profile::of(&Target::builtin(), SessionService::Agent, 3) }
    }

    #[test]
    fn the_seed_determines_the_steps_and_simpler_steps_end() {
        let (profile, mut kinds) = (profile(), std::collections::HashSet::new());
        for seed in 0..200 {
            let steps = steps(&mut Rng::with_seed(seed), &profile);
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile));
            for mut step in steps {
                if let Step::Agent(step) = step {
                    assert!((1..=3).contains(&step.connection), "{step}");
                    kinds.insert(std::mem::discriminant(&step.action));
                }
                let tries = std::iter::from_fn(|| {
                    step = *step.simpler().first()?;
                    Some(step)
                });
                assert!(tries.take(1000).count() < 1000, "a step has simpler steps without end");
            }
        }
        assert_eq!(kinds.len(), 12);
    }

    #[test]
    fn a_case_with_an_agent_loads() {
        let fields = WorkFields { count: 2, fence: true, to: 0x10, ..WorkFields::plain("write", 70) };
        let steps = [of(1, AgentAction::Post(fields)), of(2, AgentAction::Atomic("add"))];
        let text = lua(SessionService::Agent, "7-1", "Session 1 of seed 7.", &steps, &[]);
        assert!(
            text.contains("    s:post(1, \"write\", { size = 70, count = 2, fence = true, to = 0x10 })\n"),
            "{text}"
        );
        assert!(text.contains("run = function(t, p, target)\n    local s = session.agent(t, target)\n"), "{text}");
        let case = Suites::generated("rdmap/explored/7-1.lua", text).unwrap();
        assert_eq!(case.info.requirements.len(), 21);
    }
}
