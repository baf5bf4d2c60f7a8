//! A session: the steps of a tester, and the Lua case that plays them.
//!
//! The case calls the functions of the Lua module `session` (`suites/library/session.lua`), which
//! keep every sequence of steps legal. So steps may be removed, and numbers made smaller.

use std::fmt::{self, Display, Formatter, Write as _};

use weft_core::RequirementId;

/// The service of the target that a session uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionService {
    Echo,
    Rping,
}

impl SessionService {
    /// Name of the constructor in the Lua module, and of the capability.
    pub(super) fn name(self) -> &'static str {
        match self {
            SessionService::Echo => "echo",
            SessionService::Rping => "rping",
        }
    }
}

/// An illegal FPDU. The tester sends it, and the target has to end the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A wrong CRC field. Only on connections with CRCs.
    WrongCrc,
    /// A segment for a queue that does not exist.
    WrongQueue,
    /// A Send with the MSN of an earlier Send.
    UsedMsn,
    /// A Write to an STag that does not exist.
    UnknownStag,
    /// An opcode that no RFC defines.
    ReservedOpcode,
}

impl Fault {
    /// The faults that need no CRC.
    pub(super) const WITHOUT_CRC: [Fault; 4] =
        [Fault::WrongQueue, Fault::UsedMsn, Fault::UnknownStag, Fault::ReservedOpcode];

    /// Name of the fault in the Lua module.
    fn name(self) -> &'static str {
        match self {
            Fault::WrongCrc => "wrong-crc",
            Fault::WrongQueue => "wrong-queue",
            Fault::UsedMsn => "used-msn",
            Fault::UnknownStag => "unknown-stag",
            Fault::ReservedOpcode => "reserved-opcode",
        }
    }
}

/// One step. `connection` is the number of a connection in the session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Opens a connection. `private` is the number of bytes of private data.
    Open { connection: u32, crc: Option<bool>, private: u32 },
    /// Begins a Send of `size` bytes in segments of at most `segment` bytes. `every` cuts its FPDUs
    /// into TCP segments of this size; 0 does not cut them.
    Message { connection: u32, size: u32, segment: u32, solicited: bool, every: u32 },
    /// Sends the next segments of the Send.
    Segments { connection: u32, count: u32 },
    /// Writes to the buffer of rping.
    Write { connection: u32, at: u32, size: u32, segment: u32 },
    /// Reads from the buffer of rping.
    Read { connection: u32, at: u32, size: u32 },
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
}

impl Step {
    /// The connection of the step. `None` for a pause.
    pub(super) fn connection(&mut self) -> Option<&mut u32> {
        match self {
            Step::Open { connection, .. }
            | Step::Message { connection, .. }
            | Step::Segments { connection, .. }
            | Step::Write { connection, .. }
            | Step::Read { connection, .. }
            | Step::Answers { connection }
            | Step::Close { connection }
            | Step::Reset { connection }
            | Step::Fault { connection, .. } => Some(connection),
            Step::Pause { .. } => None,
        }
    }

    /// Returns simpler steps of the same kind, the simplest first.
    pub(super) fn simpler(self) -> Vec<Step> {
        // With these differences, a few tries lead near the smallest value that still fails.
        let smaller = |value: u32| {
            let tried = [1, value / 2, value - value / 4, value - value / 16, value.saturating_sub(1)];
            tried.into_iter().filter(move |less| *less < value)
        };
        match self {
            Step::Message { connection, size, segment, solicited, every } => {
                let plain = Step::Message { connection, size, segment: size.max(1), solicited: false, every: 0 };
                let sizes = smaller(size).map(|size| Step::Message { connection, size, segment, solicited, every });
                let cuts = [
                    Step::Message { connection, size, segment: size.max(1), solicited, every },
                    Step::Message { connection, size, segment, solicited: false, every },
                    Step::Message { connection, size, segment, solicited, every: 0 },
                ];
                [plain].into_iter().chain(sizes).chain(cuts).filter(|step| *step != self).collect()
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
            Step::Segments { connection, count } => {
                smaller(count).map(|count| Step::Segments { connection, count }).collect()
            }
            Step::Pause { ms } => smaller(ms).filter(|ms| *ms > 0).map(|ms| Step::Pause { ms }).collect(),
            Step::Open { connection, crc, private } => {
                let plain = [Step::Open { connection, crc: None, private }, Step::Open { connection, crc, private: 0 }];
                let sizes = smaller(private).map(|private| Step::Open { connection, crc, private });
                plain.into_iter().chain(sizes).filter(|step| *step != self).collect()
            }
            Step::Answers { .. } | Step::Close { .. } | Step::Reset { .. } | Step::Fault { .. } => Vec::new(),
        }
    }
}

/// A call in Lua, with the session in `s`.
impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Step::Open { connection, crc, private } => {
                let crc = crc.map(|crc| format!("crc = {crc}"));
                let private = (private > 0).then(|| format!("private = {private}"));
                let fields: Vec<String> = crc.into_iter().chain(private).collect();
                match fields.is_empty() {
                    true => write!(f, "s:open({connection})"),
                    false => write!(f, "s:open({connection}, {{ {} }})", fields.join(", ")),
                }
            }
            Step::Message { connection, size, segment, solicited, every } => {
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
            Step::Answers { connection } => write!(f, "s:answers({connection})"),
            Step::Pause { ms } => write!(f, "s:pause({}.{:03})", ms / 1000, ms % 1000),
            Step::Close { connection } => write!(f, "s:close({connection})"),
            Step::Reset { connection } => write!(f, "s:reset({connection})"),
            Step::Fault { connection, fault } => write!(f, "s:fault({connection}, \"{}\")", fault.name()),
        }
    }
}

/// Folder of the saved cases in a folder of suites. It is also the beginning of their ids.
pub(super) const TOPIC: &str = "rdmap/explored";

/// Returns the Lua case with these steps. `name` is the last part of its id, and `origin` describes
/// in one line where the session comes from. `observed` has the requirements that only the monitor
/// judges in the session, and whose violation fails the case.
pub(super) fn lua(
    service: SessionService,
    name: &str,
    origin: &str,
    steps: &[Step],
    observed: &[RequirementId],
) -> String {
    let service = service.name();
    let faults = steps.iter().filter_map(|step| match step {
        Step::Fault { fault, .. } => Some(fault.name()),
        _ => None,
    });
    let observed: Vec<&str> = observed.iter().map(|id| id.as_str()).collect();
    let also: String = faults.chain(observed.iter().copied()).map(|name| format!(", \"{name}\"")).collect();
    let mut text = format!(
        "-- {origin}\n\
         case {{\n  \
         id = \"{TOPIC}/{name}\",\n  \
         title = \"The target serves an explored session\",\n  \
         requirements = session.requirements(session.{}{also}),\n  \
         capabilities = {{ \"{service}\" }},\n  \
         tags = {{ \"explored\" }},\n\n  \
         run = function(t)\n    \
         local s = session.{service}(t)\n",
        service.to_uppercase()
    );
    for step in steps {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "    {step}");
    }
    let shown: Vec<String> = observed.iter().map(|id| format!("\"{id}\"")).collect();
    let shown = if shown.is_empty() { "()".to_owned() } else { format!(" {{ {} }}", shown.join(", ")) };
    let _ = writeln!(text, "    s:finish{shown}\n  end,\n}}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_shows_its_steps() {
        let steps = [
            Step::Open { connection: 1, crc: Some(true), private: 12 },
            Step::Message { connection: 1, size: 70, segment: 16, solicited: true, every: 5 },
            Step::Segments { connection: 1, count: 2 },
            Step::Pause { ms: 50 },
            Step::Fault { connection: 1, fault: Fault::WrongCrc },
        ];
        insta::assert_snapshot!(lua(SessionService::Echo, "7-12", "Session 12 of seed 7.", &steps, &[]));
    }

    #[test]
    fn simpler_steps_end() {
        let mut step = Step::Message { connection: 1, size: 1_000_000, segment: 7, solicited: true, every: 3 };
        for _ in 0..200 {
            let simpler = step.simpler();
            assert!(!simpler.contains(&step));
            let Some(next) = simpler.first() else { return };
            step = *next;
        }
        assert!(step.simpler().is_empty(), "{step}");
    }
}
