//! The steps of a tester in a session.
//!
//! The functions of the Lua module `session` keep every sequence of steps legal. So weft may remove
//! steps and make numbers smaller when it reduces a session.

use std::fmt::{self, Display, Formatter};
use std::mem::discriminant;

use super::agent_step::{AgentAction, AgentStep};
use super::drive_step::{DriveAction, DriveStep};
use super::fault::{Fault, NEIGHBOUR_FAULTS, keeps_connection};
use super::lua_table::LuaTable;
use super::portmap_step::PortmapStep;
use super::sdp_step::{SdpAction, SdpStep};

/// A ready-to-receive message of the peer-to-peer model (RFC 6581).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rtr {
    Send,
    Write,
}

impl Rtr {
    /// Name in the Lua module.
    fn name(self) -> &'static str {
        match self {
            Rtr::Send => "send",
            Rtr::Write => "write",
        }
    }
}

/// A Send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageFields {
    /// Number of the connection in the session, from 1.
    pub(crate) connection: u32,
    pub(crate) size: u32,
    /// Maximum payload in bytes of a segment.
    pub(crate) segment: u32,
    pub(crate) solicited: bool,
    /// Size in bytes of the TCP segments into which the FPDUs are cut, or 0 for no cuts.
    pub(crate) every: u32,
    /// Number of bytes after which the tester waits, or 0 for no wait.
    pub(crate) stall: u32,
    /// Whether the last segment has no payload.
    pub(crate) empty: bool,
    /// Whether the segments before the last are sent in descending order of their offsets, and all
    /// at once.
    pub(crate) descending: bool,
}

impl MessageFields {
    /// A Send without options.
    pub(crate) fn plain(connection: u32, size: u32, segment: u32) -> Self {
        MessageFields {
            connection,
            size,
            segment,
            solicited: false,
            every: 0,
            stall: 0,
            empty: false,
            descending: false,
        }
    }

    fn table(&self) -> LuaTable {
        LuaTable::of_size(self.size)
            .segment(self.segment, self.size)
            .flag("solicited", self.solicited)
            .number("every", self.every, 0)
            .number("stall", self.stall, 0)
            .flag("empty", self.empty)
            .flag("descending", self.descending)
    }
}

/// One step. `connection` is the number of a connection in the session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Opens a connection. `private` is the number of bytes of private data. With `markers`, the
    /// tester requests markers. With `enhanced`, the tester uses the enhanced set-up of RFC 6581,
    /// so that the target may permit several Reads at a time. With `rtr`, the tester requests the
    /// peer-to-peer model, and begins with this ready-to-receive message.
    Open { connection: u32, crc: Option<bool>, private: u32, markers: bool, enhanced: bool, rtr: Option<Rtr> },
    /// Begins a Send. `Segments` sends its segments.
    Message(MessageFields),
    /// Sends the next segments of the Send.
    Segments { connection: u32, count: u32 },
    /// Sends many Sends of `size` to `size + spread` bytes. Without `spread`, each Send has `size`
    /// bytes.
    Burst { connection: u32, count: u32, size: u32, spread: u32 },
    /// Sends `count` Sends of `size` bytes in segments of at most `segment` bytes, and reads no
    /// echo before all of them are sent.
    Flood { connection: u32, count: u32, size: u32, segment: u32 },
    /// Sends `count` Sends of `size` bytes in one TCP write. Every second Send has a Solicited Event.
    Batch { connection: u32, count: u32, size: u32 },
    /// Sends the first half of the FPDU of a Send. The next step on the connection sends the rest.
    Half { connection: u32, size: u32 },
    /// Sends a Send whose echo fills `count` segments of the target, and `more` bytes. The Send has
    /// at most `most` bytes. With rping, reads such a number of bytes.
    Fill { connection: u32, count: u32, more: i32, most: u32 },
    /// Sends a Read Request of 0 bytes, or without `read` a Write of 0 bytes. It may come between
    /// two segments of a Send.
    Empty { connection: u32, read: bool },
    /// Sends a Send in an FPDU whose bytes of PAD have the value `value`. MPA requires zero of the
    /// sender, but a receiver must ignore the value.
    Pad { connection: u32, size: u32, value: u8 },
    /// Sends messages until the next FPDU of the target or, without `by_target`, of the tester
    /// begins `at` bytes before a marker.
    Align { connection: u32, at: u32, by_target: bool },
    /// Writes to the buffer of rping. If `align` is not 0, the Write begins `at` bytes before a
    /// tagged offset that is a multiple of `align`.
    Write { connection: u32, at: u32, size: u32, segment: u32, align: u64 },
    /// Reads from the buffer of rping. `at` and `align` are those of `Write`.
    Read { connection: u32, at: u32, size: u32, align: u64 },
    /// Sends `count` Read Requests in one TCP write, or fewer if the target permits fewer Reads.
    Reads { connection: u32, count: u32, size: u32 },
    /// Sends `count` Read Requests. The number of outstanding Read Requests is the largest number
    /// that the target permits: after each Response, the tester sends the next Read Request.
    Window { connection: u32, count: u32, size: u32 },
    /// Performs rounds with rping's server: the target reads `size` bytes, and writes them to the
    /// offset `to` of a buffer of the tester. The tester answers a Read in segments of at most
    /// `segment` bytes. With `between`, a Write comes between two segments of each Send. With
    /// `empty`, the last segment of each Read Response is empty. While the target's Read is
    /// outstanding, and before the target's Write, the tester sends `busy` Read Requests.
    Rounds { connection: u32, count: u32, size: u32, segment: u32, to: u64, between: bool, empty: bool, busy: u32 },
    /// Lets rping's server send a Read Request for `size` bytes at the offset `to` of a buffer of
    /// the tester. The Read stays unanswered, so other steps may follow while it is outstanding.
    /// The Response has segments of at most `segment` bytes. With `empty`, its last segment is
    /// empty.
    Announce { connection: u32, size: u32, segment: u32, to: u64, empty: bool },
    /// Sends the next `count` segments of the Response to the Read of `Announce`, or all segments
    /// if `count` is 0.
    Respond { connection: u32, count: u32 },
    /// Opens connections whose Requests the target must refuse.
    Refused { count: u32 },
    /// Sends a Request, which the target may accept or reject, on a separate connection. `private`
    /// is the number of bytes of private data. `depths` are IRD and ORD of an enhanced Request.
    /// `rtr` has the flags B, C and D: the Initiator can send a Send, a Write or a Read as
    /// ready-to-receive message. With one of these flags, the Request is for the peer-to-peer
    /// model.
    Request { crc: Option<bool>, private: u32, markers: bool, depths: Option<[u16; 2]>, rtr: [bool; 3] },
    /// Waits for all answers.
    Answers { connection: u32 },
    /// Waits for this number of milliseconds.
    Pause { ms: u32 },
    /// Closes the connection after all answers.
    Close { connection: u32 },
    /// Sends a Send of `size` bytes and, after `ms` milliseconds, a FIN. Waits for all echoes.
    Finish { connection: u32, size: u32, ms: u32 },
    /// Resets the connection.
    Reset { connection: u32 },
    /// Sends an illegal FPDU, SDP message or datagram. Most faults follow after all answers. With
    /// `at_once`, the target may still owe answers.
    Fault { connection: u32, fault: Fault, at_once: bool },
    /// Plays the next `steps` steps `count` times. No repetition is inside another one. Only
    /// reduced sessions have this step.
    Repeat { count: u32, steps: u32 },
    /// Performs a short exchange on each open connection except `connection`.
    UseOthers { connection: u32 },
    /// A step with an SDP socket.
    Sdp(SdpStep),
    /// A command for a driven SDP socket.
    Drive(DriveStep),
    /// A step with an agent.
    Agent(AgentStep),
    /// A step with a port mapper.
    Portmap(PortmapStep),
}

impl Step {
    /// Returns whether the tester violates no requirement in this step.
    pub(crate) fn is_legal(&self) -> bool {
        !matches!(self, Step::Fault { .. } | Step::Refused { .. } | Step::Pad { .. })
    }

    /// Begins a Send without options.
    pub(crate) fn message(connection: u32, size: u32, segment: u32) -> Self {
        Step::Message(MessageFields::plain(connection, size, segment))
    }

    /// The number of the step's connection. `None` for a step without a connection.
    pub(crate) fn number(mut self) -> Option<u32> {
        self.connection().copied()
    }

    /// The connection of the step. `None` for a step without a connection.
    pub(crate) fn connection(&mut self) -> Option<&mut u32> {
        match self {
            Step::Open { connection, .. }
            | Step::Message(MessageFields { connection, .. })
            | Step::Segments { connection, .. }
            | Step::Burst { connection, .. }
            | Step::Flood { connection, .. }
            | Step::Batch { connection, .. }
            | Step::Half { connection, .. }
            | Step::Fill { connection, .. }
            | Step::Empty { connection, .. }
            | Step::Pad { connection, .. }
            | Step::Align { connection, .. }
            | Step::Write { connection, .. }
            | Step::Read { connection, .. }
            | Step::Reads { connection, .. }
            | Step::Window { connection, .. }
            | Step::Rounds { connection, .. }
            | Step::Announce { connection, .. }
            | Step::Respond { connection, .. }
            | Step::Answers { connection }
            | Step::Close { connection }
            | Step::Finish { connection, .. }
            | Step::Reset { connection }
            | Step::Fault { connection, .. }
            | Step::UseOthers { connection }
            | Step::Sdp(SdpStep { connection, .. })
            | Step::Drive(DriveStep { connection, .. })
            | Step::Agent(AgentStep { connection, .. })
            | Step::Portmap(PortmapStep { connection, .. }) => Some(connection),
            Step::Pause { .. } | Step::Refused { .. } | Step::Request { .. } | Step::Repeat { .. } => None,
        }
    }

    /// Returns whether the connection of the step has ended after it. Without a connection, the
    /// result is `false`.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            Step::Close { .. }
            | Step::Finish { .. }
            | Step::Reset { .. }
            | Step::Sdp(SdpStep { action: SdpAction::Abort | SdpAction::CloseEarly, .. })
            | Step::Drive(DriveStep { action: DriveAction::Abort | DriveAction::Suspend(_), .. })
            | Step::Agent(AgentStep { action: AgentAction::Disconnect, .. }) => true,
            Step::Fault { fault, .. } => !keeps_connection(fault),
            _ => false,
        }
    }

    /// Returns whether the step needs another open connection, and opens one if no other is open.
    pub(crate) fn needs_neighbour(&self) -> bool {
        matches!(self, Step::Fault { fault, .. } if NEIGHBOUR_FAULTS.contains(fault))
    }

    /// Returns whether two steps have the same kind and the same connection. Their other fields may
    /// differ. A repetition is like no other step.
    pub(crate) fn is_like(&self, other: &Step) -> bool {
        let has_same_kind = match (self, other) {
            (Step::Repeat { .. }, _) => false,
            (Step::Sdp(step), Step::Sdp(other)) => discriminant(&step.action) == discriminant(&other.action),
            (Step::Drive(step), Step::Drive(other)) => discriminant(&step.action) == discriminant(&other.action),
            (Step::Agent(step), Step::Agent(other)) => discriminant(&step.action) == discriminant(&other.action),
            (Step::Portmap(step), Step::Portmap(other)) => discriminant(&step.action) == discriminant(&other.action),
            _ => discriminant(self) == discriminant(other),
        };
        has_same_kind && self.number() == other.number()
    }
}

/// A call in Lua, with the session in `s`. A repetition is the first line of a loop.
impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Step::Open { connection, crc, private, markers, enhanced, rtr } => {
                let table = LuaTable::default()
                    .option("crc", crc)
                    .number("private", private, 0)
                    .flag("markers", markers)
                    .flag("enhanced", enhanced)
                    .option("rtr", rtr.map(|rtr| format!("\"{}\"", rtr.name())));
                write!(f, "s:open({connection}{})", table.last_argument())
            }
            Step::Message(fields) => write!(f, "s:message({}, {})", fields.connection, fields.table()),
            Step::Rounds { connection, count, size, segment, to, between, empty, busy } => {
                let table = LuaTable::of_size(size)
                    .field("to", format_args!("{to:#x}"))
                    .segment(segment, size)
                    .flag("between", between)
                    .flag("empty", empty)
                    .number("busy", busy, 0);
                write!(f, "s:rounds({connection}, {count}, {table})")
            }
            Step::Burst { connection, count, size, spread: 0 } => write!(f, "s:burst({connection}, {count}, {size})"),
            Step::Burst { connection, count, size, spread } => {
                write!(f, "s:burst({connection}, {count}, {size}, {spread})")
            }
            Step::Empty { connection, read } => write!(f, "s:empty({connection}, {read})"),
            Step::Pad { connection, size, value } => write!(f, "s:pad({connection}, {size}, {value:#04x})"),
            Step::Align { connection, at, by_target } => write!(f, "s:align({connection}, {at}, {by_target})"),
            Step::Announce { connection, size, segment, to, empty } => {
                let table = LuaTable::of_size(size)
                    .field("segment", segment)
                    .field("to", format_args!("{to:#x}"))
                    .flag("empty", empty);
                write!(f, "s:announce({connection}, {table})")
            }
            Step::Respond { connection, count: 0 } => write!(f, "s:respond({connection})"),
            Step::Respond { connection, count } => write!(f, "s:respond({connection}, {count})"),
            Step::Flood { connection, count, size, segment } => {
                let table = LuaTable::of_size(size).segment(segment, size);
                write!(f, "s:flood({connection}, {count}, {table})")
            }
            Step::Segments { connection, count } => write!(f, "s:segments({connection}, {count})"),
            Step::Write { connection, at, size, segment, align } => {
                let table = LuaTable::default().field("at", at).field("size", size);
                write!(f, "s:write({connection}, {})", table.segment(segment, size).hex("align", align))
            }
            Step::Read { connection, at, size, align } => {
                let table = LuaTable::default().field("at", at).field("size", size).hex("align", align);
                write!(f, "s:read({connection}, {table})")
            }
            Step::Batch { connection, count, size } => write!(f, "s:batch({connection}, {count}, {size})"),
            Step::Half { connection, size } => write!(f, "s:half({connection}, {size})"),
            Step::Fill { connection, count, more, most } => write!(f, "s:fill({connection}, {count}, {more}, {most})"),
            Step::Reads { connection, count, size } => write!(f, "s:reads({connection}, {count}, {size})"),
            Step::Window { connection, count, size } => write!(f, "s:window({connection}, {count}, {size})"),
            Step::UseOthers { connection } => write!(f, "s:use_others({connection})"),
            Step::Refused { count } => write!(f, "s:refused({count})"),
            Step::Request { crc, private, markers, depths, rtr } => {
                let [send, write, read] = rtr;
                let table = LuaTable::default()
                    .option("crc", crc)
                    .number("private", private, 0)
                    .flag("markers", markers)
                    .option("ird", depths.map(|[ird, _]| format!("{ird:#x}")))
                    .option("ord", depths.map(|[_, ord]| format!("{ord:#x}")))
                    .flag("rtr_send", send)
                    .flag("rtr_write", write)
                    .flag("rtr_read", read);
                write!(f, "s:request {table}")
            }
            Step::Answers { connection } => write!(f, "s:answers({connection})"),
            Step::Pause { ms } => write!(f, "s:pause({})", seconds(ms)),
            Step::Close { connection } => write!(f, "s:close({connection})"),
            Step::Finish { connection, size, ms } => write!(f, "s:fin({connection}, {size}, {})", seconds(ms)),
            Step::Reset { connection } => write!(f, "s:reset({connection})"),
            Step::Fault { connection, fault, at_once: false } => write!(f, "s:fault({connection}, \"{fault}\")"),
            Step::Fault { connection, fault, at_once: true } => write!(f, "s:fault_now({connection}, \"{fault}\")"),
            Step::Repeat { count, .. } => write!(f, "for _ = 1, {count} do"),
            Step::Sdp(step) => step.fmt(f),
            Step::Drive(step) => step.fmt(f),
            Step::Agent(step) => step.fmt(f),
            Step::Portmap(step) => step.fmt(f),
        }
    }
}

/// Returns milliseconds as a number of seconds in Lua.
pub(super) fn seconds(ms: u32) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_calls_a_function_of_the_lua_module() {
        let open = Step::Open { connection: 1, crc: None, private: 0, markers: false, enhanced: false, rtr: None };
        let rounds =
            Step::Rounds { connection: 1, count: 2, size: 9, segment: 4, to: 0, between: true, empty: true, busy: 8 };
        let rtr = Some(Rtr::Write);
        for (step, call) in [
            (open, "s:open(1)"),
            (
                Step::Open { connection: 1, crc: Some(false), private: 4, markers: true, enhanced: true, rtr },
                "s:open(1, { crc = false, private = 4, markers = true, enhanced = true, rtr = \"write\" })",
            ),
            (Step::message(2, 70, 70), "s:message(2, { size = 70 })"),
            (
                Step::Message(MessageFields { stall: 9, descending: true, ..MessageFields::plain(2, 70, 16) }),
                "s:message(2, { size = 70, segment = 16, stall = 9, descending = true })",
            ),
            (rounds, "s:rounds(1, 2, { size = 9, to = 0x0, segment = 4, between = true, empty = true, busy = 8 })"),
            (
                Step::Announce { connection: 1, size: 9, segment: 9, to: 0x1000, empty: true },
                "s:announce(1, { size = 9, segment = 9, to = 0x1000, empty = true })",
            ),
            (Step::Flood { connection: 1, count: 8, size: 9, segment: 4 }, "s:flood(1, 8, { size = 9, segment = 4 })"),
            (
                Step::Write { connection: 1, at: 2, size: 9, segment: 4, align: 4096 },
                "s:write(1, { at = 2, size = 9, segment = 4, align = 0x1000 })",
            ),
            (Step::Read { connection: 1, at: 0, size: 9, align: 0 }, "s:read(1, { at = 0, size = 9 })"),
            (Step::Burst { connection: 1, count: 3, size: 4, spread: 0 }, "s:burst(1, 3, 4)"),
            (Step::Burst { connection: 1, count: 3, size: 4, spread: 60 }, "s:burst(1, 3, 4, 60)"),
            (Step::Window { connection: 1, count: 40, size: 9 }, "s:window(1, 40, 9)"),
            (Step::UseOthers { connection: 2 }, "s:use_others(2)"),
            (Step::Empty { connection: 2, read: true }, "s:empty(2, true)"),
            (Step::Pad { connection: 1, size: 5, value: 1 }, "s:pad(1, 5, 0x01)"),
            (Step::Align { connection: 1, at: 24, by_target: false }, "s:align(1, 24, false)"),
            (Step::Finish { connection: 3, size: 64, ms: 1050 }, "s:fin(3, 64, 1.050)"),
            (Step::Fault { connection: 1, fault: "gap", at_once: false }, "s:fault(1, \"gap\")"),
            (Step::Fault { connection: 1, fault: "gap", at_once: true }, "s:fault_now(1, \"gap\")"),
        ] {
            assert_eq!(step.to_string(), call);
        }
    }

    #[test]
    fn only_some_faults_and_ends_end_a_connection() {
        let fault = |fault| Step::Fault { connection: 1, fault, at_once: false };
        let sdp = |action| Step::Sdp(SdpStep { connection: 1, action });
        let drive = |action| Step::Drive(DriveStep { connection: 1, action });
        for (step, ends) in [
            (fault("wrong-crc"), true),
            (fault("reserved-mid"), true),
            (fault("fin"), true),
            (fault("reserved-flags"), false),
            (fault("updates"), false),
            // The client of a port mapper.
            (fault("own-accept"), false),
            (sdp(SdpAction::Abort), true),
            (sdp(SdpAction::CloseEarly), true),
            (sdp(SdpAction::Cancel), false),
            // The connection continues on another TCP connection.
            (sdp(SdpAction::Resume), false),
            (drive(DriveAction::Abort), true),
            (drive(DriveAction::Suspend(7200)), true),
            (drive(DriveAction::Shut), false),
            (Step::Reset { connection: 1 }, true),
            (Step::Answers { connection: 1 }, false),
        ] {
            assert_eq!(step.ends_connection(), ends, "{step}");
        }
    }

    #[test]
    fn steps_of_the_same_kind_and_connection_are_alike() {
        let of = |connection, action| Step::Sdp(SdpStep { connection, action });
        let send = |connection, size| of(connection, SdpAction::Send { size, urgent: false });
        assert!(send(1, 5).is_like(&send(1, 9)) && !send(1, 5).is_like(&send(2, 5)));
        assert!(!send(1, 5).is_like(&of(1, SdpAction::Cancel)));
        assert!(Step::Pause { ms: 1 }.is_like(&Step::Pause { ms: 2 }));
        let repeat = Step::Repeat { count: 2, steps: 1 };
        assert!(!repeat.is_like(&repeat));
    }

    #[test]
    fn a_request_shows_only_the_fields_that_are_set() {
        let request =
            |private, depths, rtr| Step::Request { crc: None, private, markers: false, depths, rtr }.to_string();
        assert_eq!(request(512, None, [false; 3]), "s:request { private = 512 }");
        let enhanced = request(0, Some([0x3fff, 0]), [true, false, true]);
        assert_eq!(enhanced, "s:request { ird = 0x3fff, ord = 0x0, rtr_send = true, rtr_read = true }");
    }
}
