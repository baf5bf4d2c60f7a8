//! The steps of a session with an agent. The steps call the functions of
//! `suites/library/agent_session.lua`.

use std::fmt::{self, Display, Formatter};

use super::lua_table::LuaTable;

/// The Atomic Operations that the target's user posts.
pub(super) const POSTED_ATOMICS: [&str; 2] = ["add", "swap"];
/// Payload in bytes of the tester's segments, if a step has no other number.
pub(super) const SEGMENT: u32 = 1024;
/// Number of Reads that each side of a connection permits at a time, if a step has no other number.
pub(super) const DEPTH: u32 = 4;

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
        let parts = smaller(self.parts).into_iter().filter(|parts| *parts > 0);
        let parts = parts.map(|parts| WorkFields { parts, ..self });
        tried.into_iter().chain(counts).chain(sizes).chain(parts).collect()
    }

    fn table(&self) -> LuaTable {
        LuaTable::of_size(self.size)
            .number("count", self.count, 1)
            .number("parts", self.parts, 1)
            .number("at", self.at, 0)
            .flag("solicited", self.solicited)
            .flag("invalidate", self.invalidate)
            .flag("fence", self.fence)
            .flag("inline", self.inline)
            .flag("unsignaled", self.unsignaled)
            .hex("to", self.to)
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

/// A call in Lua, with the session in `s`.
impl Display for AgentStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let connection = self.connection;
        match self.action {
            AgentAction::Open { depth, markers, enhanced } => {
                let table = LuaTable::default().number("depth", depth, DEPTH);
                let table = table.flag("markers", markers).flag("enhanced", enhanced);
                write!(f, "s:open({connection}{})", table.last_argument())
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

#[cfg(test)]
mod tests {
    use super::super::case::lua;
    use super::super::service::SessionService;
    use super::super::step::Step;
    use super::*;
    use crate::script::Suites;

    #[test]
    fn a_case_with_an_agent_loads() {
        let of = |connection, action| Step::Agent(AgentStep { connection, action });
        let fields = WorkFields { count: 2, fence: true, to: 0x10, ..WorkFields::plain("write", 70) };
        let steps = [of(1, AgentAction::Post(fields)), of(2, AgentAction::Atomic("add"))];
        let text = lua(SessionService::Agent, "7-1", "Session 1 of seed 7.", &steps, &[]);
        assert!(
            text.contains("    s:post(1, \"write\", { size = 70, count = 2, fence = true, to = 0x10 })\n"),
            "{text}"
        );
        assert!(text.contains("run = function(t, p, target)\n    local s = session.agent(t, target)\n"), "{text}");
        let case = Suites::generated("rdmap/explored/7-1.lua", text).unwrap();
        // 18 of AGENT, and 3 of ATOMICS.
        assert_eq!(case.info.requirements.len(), 21);
    }
}
