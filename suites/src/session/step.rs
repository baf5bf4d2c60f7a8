//! A session: the steps of a tester, and the Lua case that plays them.
//!
//! The case calls the functions of the Lua module `session` (`suites/library/session.lua`, and
//! `sdp_session.lua` for SDP). These functions keep every sequence of steps legal. So weft may
//! remove steps and make numbers smaller when it reduces a session.

use std::fmt::{self, Display, Formatter, Write as _};

use weft_core::RequirementId;

use super::sdp_step::SdpStep;
use crate::model::Role;
use crate::targets::Service;

/// The service of the target that a session uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionService {
    Echo,
    Rping,
    SdpEcho,
    SdpSink,
    SdpSource,
}

impl SessionService {
    /// Each service that has sessions.
    pub(crate) const ALL: [(Service, SessionService); 5] = [
        (Service::Echo, SessionService::Echo),
        (Service::Rping, SessionService::Rping),
        (Service::SdpEcho, SessionService::SdpEcho),
        (Service::SdpSink, SessionService::SdpSink),
        (Service::SdpSource, SessionService::SdpSource),
    ];

    /// Name of the capability.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SessionService::Echo => "echo",
            SessionService::Rping => "rping",
            SessionService::SdpEcho => "sdp-echo",
            SessionService::SdpSink => "sdp-sink",
            SessionService::SdpSource => "sdp-source",
        }
    }

    /// The roles in which a target can have sessions with this service.
    pub(crate) fn roles(self) -> &'static [Role] {
        match self {
            SessionService::Echo => &[Role::Responder, Role::Initiator],
            _ => &[Role::Responder],
        }
    }

    /// The field `roles` of a case, in Lua. Empty if a case has this role without the field.
    fn roles_field(self) -> &'static str {
        match self.roles() {
            [Role::Responder] => "",
            _ => "roles = { \"responder\", \"initiator\" },\n  ",
        }
    }

    /// Returns whether the service is an SDP socket.
    pub(crate) fn is_sdp(self) -> bool {
        !matches!(self, SessionService::Echo | SessionService::Rping)
    }

    /// Name of the constructor in the Lua module.
    fn constructor(self) -> String {
        self.name().replace('-', "_")
    }

    /// Name, in the Lua module, of the list of requirements that each session tests.
    fn rows(self) -> &'static str {
        match self {
            SessionService::Echo => "ECHO",
            SessionService::Rping => "RPING",
            SessionService::SdpEcho | SessionService::SdpSink | SessionService::SdpSource => "SDP",
        }
    }

    /// Folder of the saved cases in a folder of suites. It is also the beginning of their ids.
    pub(crate) fn topic(self) -> &'static str {
        if self.is_sdp() { "sdp/explored" } else { "rdmap/explored" }
    }
}

/// An illegal FPDU, by its name in the Lua module. The target has to end the connection. After a
/// `gap`, it may also wait for the missing bytes.
pub(crate) type Fault = &'static str;

/// Faults of an FPDU with a wrong CRC, for connections with CRCs.
pub(crate) const CRC_FAULTS: [Fault; 2] = ["wrong-crc", "wrong-crc-empty"];
/// Faults with a wrong CRC that need the service echo.
pub(crate) const ECHO_CRC_FAULTS: [Fault; 4] =
    ["wrong-crc-long", "wrong-crc-header", "wrong-crc-second", "wrong-crc-late"];
/// A fault with a wrong CRC in a Send of [`LARGE`] bytes in one segment, which needs the service
/// echo.
pub(crate) const LARGE_CRC_FAULT: Fault = "wrong-crc-large";
/// Payload in bytes of [`LARGE_CRC_FAULT`].
pub(crate) const LARGE: u32 = 20_000;
/// Faults with a wrong CRC that need the service rping.
pub(crate) const RPING_CRC_FAULTS: [Fault; 2] = ["wrong-crc-write", "wrong-crc-read"];
/// Other faults.
pub(crate) const FAULTS: [Fault; 4] = ["wrong-queue", "used-msn", "unknown-stag", "reserved-opcode"];
/// Other faults that need the service echo.
pub(crate) const ECHO_FAULTS: [Fault; 1] = ["gap"];
/// Other faults that need the service rping.
pub(crate) const RPING_FAULTS: [Fault; 5] = ["write-beyond", "write-far", "read-beyond", "closed-stag", "invalidated"];

/// One step. `connection` is the number of a connection in the session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Opens a connection. `private` is the number of bytes of private data. With `markers`, the
    /// tester requests markers. With `enhanced`, the tester uses the enhanced set-up of RFC 6581,
    /// so that the target may permit several Reads at a time.
    Open { connection: u32, crc: Option<bool>, private: u32, markers: bool, enhanced: bool },
    /// Begins a Send of `size` bytes in segments of at most `segment` bytes. `every` is the size of
    /// the TCP segments into which the FPDUs are cut, or 0 for no cuts. `stall` is the number of
    /// bytes after which the tester waits, or 0 for no wait. With `empty`, the last segment has no
    /// payload. With `descending`, the segments before the last are sent in descending order of
    /// their offsets, and all at once.
    Message {
        connection: u32,
        size: u32,
        segment: u32,
        solicited: bool,
        every: u32,
        stall: u32,
        empty: bool,
        descending: bool,
    },
    /// Sends the next segments of the Send.
    Segments { connection: u32, count: u32 },
    /// Sends many Sends of one size.
    Burst { connection: u32, count: u32, size: u32 },
    /// Sends `count` Sends of `size` bytes in segments of at most `segment` bytes, and reads no
    /// echo before all of them are sent.
    Flood { connection: u32, count: u32, size: u32, segment: u32 },
    /// Writes to the buffer of rping.
    Write { connection: u32, at: u32, size: u32, segment: u32 },
    /// Reads from the buffer of rping.
    Read { connection: u32, at: u32, size: u32 },
    /// Sends `count` Read Requests in one TCP write, or fewer if the target permits fewer Reads.
    Reads { connection: u32, count: u32, size: u32 },
    /// Performs rounds of rping: the target reads `size` bytes, and writes them to the offset `to`
    /// of a buffer of the tester. The tester answers a Read in segments of at most `segment` bytes.
    /// With `between`, a Write comes between two segments of each Send. With `empty`, the last
    /// segment of each Read Response is empty.
    Rounds { connection: u32, count: u32, size: u32, segment: u32, to: u64, between: bool, empty: bool },
    /// Opens connections whose Requests the target must refuse.
    Refused { count: u32 },
    /// Waits for all answers.
    Answers { connection: u32 },
    /// Waits for this number of milliseconds.
    Pause { ms: u32 },
    /// Closes the connection after all answers.
    Close { connection: u32 },
    /// Resets the connection.
    Reset { connection: u32 },
    /// Sends an illegal FPDU after all answers.
    Fault { connection: u32, fault: Fault },
    /// A step with an SDP socket.
    Sdp(SdpStep),
}

impl Step {
    /// The connection of the step. `None` for a step without a connection.
    pub(crate) fn connection(&mut self) -> Option<&mut u32> {
        match self {
            Step::Open { connection, .. }
            | Step::Message { connection, .. }
            | Step::Segments { connection, .. }
            | Step::Burst { connection, .. }
            | Step::Flood { connection, .. }
            | Step::Write { connection, .. }
            | Step::Read { connection, .. }
            | Step::Reads { connection, .. }
            | Step::Rounds { connection, .. }
            | Step::Answers { connection }
            | Step::Close { connection }
            | Step::Reset { connection }
            | Step::Fault { connection, .. }
            | Step::Sdp(SdpStep { connection, .. }) => Some(connection),
            Step::Pause { .. } | Step::Refused { .. } => None,
        }
    }

    /// Returns simpler steps of the same kind, the simplest first.
    pub(crate) fn simpler(self) -> Vec<Step> {
        // These values become denser near `value`. So a few tries find a value near the smallest
        // value with which the session still fails.
        let smaller = |value: u32| {
            let tried = [1, value / 2, value - value / 4, value - value / 16, value.saturating_sub(1)];
            tried.into_iter().filter(move |less| *less < value)
        };
        match self {
            Step::Message { connection, size, segment, solicited, every, stall, empty, descending } => {
                let all = size.max(1);
                let with =
                    |size| Step::Message { connection, size, segment, solicited, every, stall, empty, descending };
                let plain = Step::Message {
                    connection,
                    size,
                    segment: all,
                    solicited: false,
                    every: 0,
                    stall: 0,
                    empty: false,
                    descending: false,
                };
                let cuts = [
                    Step::Message { connection, size, segment: all, solicited, every, stall, empty, descending },
                    Step::Message { connection, size, segment, solicited: false, every, stall, empty, descending },
                    Step::Message { connection, size, segment, solicited, every: 0, stall, empty, descending },
                    Step::Message { connection, size, segment, solicited, every, stall: 0, empty, descending },
                    Step::Message { connection, size, segment, solicited, every, stall, empty: false, descending },
                    Step::Message { connection, size, segment, solicited, every, stall, empty, descending: false },
                ];
                [plain].into_iter().chain(smaller(size).map(with)).chain(cuts).filter(|step| *step != self).collect()
            }
            Step::Rounds { connection, count, size, segment, to, between, empty } => {
                let plain = [
                    Step::Rounds { connection, count, size, segment, to: 0, between, empty },
                    Step::Rounds { connection, count, size, segment, to, between: false, empty },
                    Step::Rounds { connection, count, size, segment, to, between, empty: false },
                    Step::Rounds { connection, count, size, segment: size.max(1), to, between, empty },
                ];
                let counts =
                    smaller(count).map(|count| Step::Rounds { connection, count, size, segment, to, between, empty });
                let sizes =
                    smaller(size).map(|size| Step::Rounds { connection, count, size, segment, to, between, empty });
                plain.into_iter().chain(counts).chain(sizes).filter(|step| *step != self).collect()
            }
            Step::Write { connection, at, size, segment } => {
                let sizes = smaller(size).map(|size| Step::Write { connection, at, size, segment });
                let places = smaller(at).map(|at| Step::Write { connection, at, size, segment });
                let unsegmented = [Step::Write { connection, at, size, segment: 1024 }];
                sizes.chain(places).chain(unsegmented).filter(|step| *step != self).collect()
            }
            Step::Read { connection, at, size } => {
                let sizes = smaller(size).map(|size| Step::Read { connection, at, size });
                sizes.chain(smaller(at).map(|at| Step::Read { connection, at, size })).collect()
            }
            Step::Burst { connection, count, size } => {
                let counts = smaller(count).map(|count| Step::Burst { connection, count, size });
                counts.chain(smaller(size).map(|size| Step::Burst { connection, count, size })).collect()
            }
            Step::Flood { connection, count, size, segment } => {
                let counts = smaller(count).map(|count| Step::Flood { connection, count, size, segment });
                counts.chain(smaller(size).map(|size| Step::Flood { connection, count, size, segment })).collect()
            }
            Step::Reads { connection, count, size } => {
                let counts = smaller(count).map(|count| Step::Reads { connection, count, size });
                counts.chain(smaller(size).map(|size| Step::Reads { connection, count, size })).collect()
            }
            Step::Refused { count } => {
                smaller(count).filter(|count| *count > 0).map(|count| Step::Refused { count }).collect()
            }
            Step::Segments { connection, count } => {
                smaller(count).map(|count| Step::Segments { connection, count }).collect()
            }
            Step::Pause { ms } => smaller(ms).filter(|ms| *ms > 0).map(|ms| Step::Pause { ms }).collect(),
            Step::Open { connection, crc, private, markers, enhanced } => {
                let plain = [
                    Step::Open { connection, crc: None, private, markers, enhanced },
                    Step::Open { connection, crc, private: 0, markers, enhanced },
                    Step::Open { connection, crc, private, markers: false, enhanced },
                    Step::Open { connection, crc, private, markers, enhanced: false },
                ];
                let sizes = smaller(private).map(|private| Step::Open { connection, crc, private, markers, enhanced });
                plain.into_iter().chain(sizes).filter(|step| *step != self).collect()
            }
            Step::Sdp(step) => step.simpler(|value| smaller(value).collect()).into_iter().map(Step::Sdp).collect(),
            Step::Answers { .. } | Step::Close { .. } | Step::Reset { .. } | Step::Fault { .. } => Vec::new(),
        }
    }
}

/// A call in Lua, with the session in `s`.
impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Step::Open { connection, crc, private, markers, enhanced } => {
                let crc = crc.map(|crc| format!("crc = {crc}"));
                let private = (private > 0).then(|| format!("private = {private}"));
                let markers = markers.then(|| "markers = true".to_owned());
                let enhanced = enhanced.then(|| "enhanced = true".to_owned());
                let fields: Vec<String> = crc.into_iter().chain(private).chain(markers).chain(enhanced).collect();
                match fields.is_empty() {
                    true => write!(f, "s:open({connection})"),
                    false => write!(f, "s:open({connection}, {{ {} }})", fields.join(", ")),
                }
            }
            Step::Message { connection, size, segment, solicited, every, stall, empty, descending } => {
                write!(f, "s:message({connection}, {{ size = {size}")?;
                if segment < size {
                    write!(f, ", segment = {segment}")?;
                }
                if solicited {
                    f.write_str(", solicited = true")?;
                }
                if every > 0 {
                    write!(f, ", every = {every}")?;
                }
                if stall > 0 {
                    write!(f, ", stall = {stall}")?;
                }
                if empty {
                    f.write_str(", empty = true")?;
                }
                if descending {
                    f.write_str(", descending = true")?;
                }
                f.write_str(" })")
            }
            Step::Rounds { connection, count, size, segment, to, between, empty } => {
                write!(f, "s:rounds({connection}, {count}, {{ size = {size}, to = {to:#x}")?;
                if segment < size {
                    write!(f, ", segment = {segment}")?;
                }
                for (name, is_set) in [("between", between), ("empty", empty)] {
                    if is_set {
                        write!(f, ", {name} = true")?;
                    }
                }
                f.write_str(" })")
            }
            Step::Burst { connection, count, size } => write!(f, "s:burst({connection}, {count}, {size})"),
            Step::Flood { connection, count, size, segment } => {
                write!(f, "s:flood({connection}, {count}, {{ size = {size}")?;
                if segment < size {
                    write!(f, ", segment = {segment}")?;
                }
                f.write_str(" })")
            }
            Step::Segments { connection, count } => write!(f, "s:segments({connection}, {count})"),
            Step::Write { connection, at, size, segment } => {
                write!(f, "s:write({connection}, {{ at = {at}, size = {size}")?;
                if segment < size {
                    write!(f, ", segment = {segment}")?;
                }
                f.write_str(" })")
            }
            Step::Read { connection, at, size } => {
                write!(f, "s:read({connection}, {{ at = {at}, size = {size} }})")
            }
            Step::Reads { connection, count, size } => write!(f, "s:reads({connection}, {count}, {size})"),
            Step::Refused { count } => write!(f, "s:refused({count})"),
            Step::Answers { connection } => write!(f, "s:answers({connection})"),
            Step::Pause { ms } => write!(f, "s:pause({}.{:03})", ms / 1000, ms % 1000),
            Step::Close { connection } => write!(f, "s:close({connection})"),
            Step::Reset { connection } => write!(f, "s:reset({connection})"),
            Step::Fault { connection, fault } => write!(f, "s:fault({connection}, \"{fault}\")"),
            Step::Sdp(step) => step.fmt(f),
        }
    }
}

/// Returns the steps as Lua statements, with the session in `s`.
pub(crate) fn lua_steps(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("    {step}\n")).collect()
}

/// Returns the Lua case with these steps. `name` is the last part of its id, and `origin` describes
/// in one line where the session comes from. `observed` has the requirements that only the monitor
/// judges in the session, and whose violation fails the case.
pub(crate) fn lua(
    service: SessionService,
    name: &str,
    origin: &str,
    steps: &[Step],
    observed: &[RequirementId],
) -> String {
    let (name_of_service, topic, roles) = (service.name(), service.topic(), service.roles_field());
    let (constructor, rows) = (service.constructor(), service.rows());
    let faults = steps.iter().filter_map(|step| match step {
        Step::Fault { fault, .. } => Some(*fault),
        _ => None,
    });
    let has_rounds = steps.iter().any(|step| matches!(step, Step::Rounds { .. }));
    let rounds = if has_rounds { ", table.unpack(session.ROUNDS)" } else { "" };
    let observed: Vec<&str> = observed.iter().map(|id| id.as_str()).collect();
    let also: String = faults.chain(observed.iter().copied()).map(|name| format!(", \"{name}\"")).collect();
    let mut text = format!(
        "-- {origin}\n\
         case {{\n  \
         id = \"{topic}/{name}\",\n  \
         title = \"The target serves an explored session\",\n  \
         requirements = session.requirements(session.{rows}{also}{rounds}),\n  \
         {roles}\
         capabilities = {{ \"{name_of_service}\" }},\n  \
         tags = {{ \"explored\" }},\n\n  \
         run = function(t)\n    \
         local s = session.{constructor}(t)\n"
    );
    text.push_str(&lua_steps(steps));
    let shown: Vec<String> = observed.iter().map(|id| format!("\"{id}\"")).collect();
    let shown = if shown.is_empty() { "()".to_owned() } else { format!(" {{ {} }}", shown.join(", ")) };
    // Writing to a text cannot fail.
    let _ = writeln!(text, "    s:finish{shown}\n  end,\n}}");
    text
}

/// Returns the Lua case of a target that no longer works after a session: a good exchange fails,
/// without further steps. `name` and `origin` are those of [`lua`]. `rows` are the requirements that
/// the target then violates.
pub(crate) fn lua_damaged<'r>(
    service: SessionService,
    name: &str,
    origin: &str,
    rows: impl IntoIterator<Item = &'r RequirementId>,
) -> String {
    let (name_of_service, topic, roles) = (service.name(), service.topic(), service.roles_field());
    let rows: Vec<String> = rows.into_iter().map(|id| format!("\"{id}\"")).collect();
    let rows = rows.join(", ");
    format!(
        "-- {origin}\n\
         case {{\n  \
         id = \"{topic}/{name}\",\n  \
         title = \"The target still works after an explored session\",\n  \
         requirements = {{ {rows} }},\n  \
         {roles}\
         capabilities = {{ \"{name_of_service}\" }},\n  \
         tags = {{ \"explored\" }},\n\n  \
         run = function(t)\n    \
         t:good_exchange {{ requirement = {{ {rows} }} }}\n  \
         end,\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_shows_its_steps() {
        let steps = [
            Step::Open { connection: 1, crc: Some(true), private: 12, markers: true, enhanced: true },
            Step::Message {
                connection: 1,
                size: 70,
                segment: 16,
                solicited: true,
                every: 5,
                stall: 0,
                empty: true,
                descending: false,
            },
            Step::Segments { connection: 1, count: 2 },
            Step::Pause { ms: 50 },
            Step::Fault { connection: 1, fault: "wrong-crc" },
        ];
        insta::assert_snapshot!(lua(SessionService::Echo, "7-12", "Session 12 of seed 7.", &steps, &[]));
    }

    #[test]
    fn simpler_steps_end() {
        let mut step = Step::Message {
            connection: 1,
            size: 1_000_000,
            segment: 7,
            solicited: true,
            every: 3,
            stall: 9,
            empty: true,
            descending: true,
        };
        for _ in 0..200 {
            let simpler = step.simpler();
            assert!(!simpler.contains(&step));
            let Some(next) = simpler.first() else { return };
            step = *next;
        }
        assert!(step.simpler().is_empty(), "{step}");
    }
}
