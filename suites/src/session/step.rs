//! The steps of a tester in a session.
//!
//! The functions of the Lua module `session` keep every sequence of steps legal. So weft may remove
//! steps and make numbers smaller when it reduces a session.

use std::fmt::{self, Display, Formatter};

use super::agent_step::AgentStep;
use super::fault::Fault;
use super::portmap_step::PortmapStep;
use super::sdp_step::SdpStep;

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

/// One step. `connection` is the number of a connection in the session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Opens a connection. `private` is the number of bytes of private data. With `markers`, the
    /// tester requests markers. With `enhanced`, the tester uses the enhanced set-up of RFC 6581,
    /// so that the target may permit several Reads at a time. With `rtr`, the tester requests the
    /// peer-to-peer model, and begins with this ready-to-receive message.
    Open { connection: u32, crc: Option<bool>, private: u32, markers: bool, enhanced: bool, rtr: Option<Rtr> },
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
    /// at most `most` bytes.
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
    /// A step with an SDP socket.
    Sdp(SdpStep),
    /// A step with an agent.
    Agent(AgentStep),
    /// A step with a port mapper.
    Portmap(PortmapStep),
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
            | Step::Batch { connection, .. }
            | Step::Half { connection, .. }
            | Step::Fill { connection, .. }
            | Step::Empty { connection, .. }
            | Step::Pad { connection, .. }
            | Step::Align { connection, .. }
            | Step::Write { connection, .. }
            | Step::Read { connection, .. }
            | Step::Reads { connection, .. }
            | Step::Rounds { connection, .. }
            | Step::Announce { connection, .. }
            | Step::Respond { connection, .. }
            | Step::Answers { connection }
            | Step::Close { connection }
            | Step::Finish { connection, .. }
            | Step::Reset { connection }
            | Step::Fault { connection, .. }
            | Step::Sdp(SdpStep { connection, .. })
            | Step::Agent(AgentStep { connection, .. })
            | Step::Portmap(PortmapStep { connection, .. }) => Some(connection),
            Step::Pause { .. } | Step::Refused { .. } | Step::Request { .. } => None,
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
            Step::Rounds { connection, count, size, segment, to, between, empty, busy } => {
                let of =
                    |count, size, busy| Step::Rounds { connection, count, size, segment, to, between, empty, busy };
                let plain = [
                    Step::Rounds { connection, count, size, segment, to: 0, between, empty, busy },
                    Step::Rounds { connection, count, size, segment, to, between: false, empty, busy },
                    Step::Rounds { connection, count, size, segment, to, between, empty: false, busy },
                    Step::Rounds { connection, count, size, segment: size.max(1), to, between, empty, busy },
                    of(count, size, 0),
                ];
                let counts = smaller(count).map(|count| of(count, size, busy));
                let sizes = smaller(size).map(|size| of(count, size, busy));
                let busier = smaller(busy).map(|busy| of(count, size, busy));
                let all = plain.into_iter().chain(counts).chain(sizes).chain(busier);
                all.filter(|step| *step != self).collect()
            }
            Step::Announce { connection, size, segment, to, empty } => {
                let sizes = smaller(size).map(|size| Step::Announce { connection, size, segment, to, empty });
                let plain = [
                    Step::Announce { connection, size, segment: size.max(1), to, empty },
                    Step::Announce { connection, size, segment, to: 0, empty },
                    Step::Announce { connection, size, segment, to, empty: false },
                ];
                sizes.chain(plain).filter(|step| *step != self).collect()
            }
            Step::Respond { connection, count } => {
                // All segments are simpler than some of them, because no other message can then
                // come between the segments.
                let counts = [0].into_iter().chain(smaller(count)).filter(|less| *less < count);
                counts.map(|count| Step::Respond { connection, count }).collect()
            }
            Step::Write { connection, at, size, segment, align } => {
                let sizes = smaller(size).map(|size| Step::Write { connection, at, size, segment, align });
                let places = smaller(at).map(|at| Step::Write { connection, at, size, segment, align });
                let plain = [
                    Step::Write { connection, at, size, segment: 1024, align },
                    Step::Write { connection, at, size, segment, align: 0 },
                ];
                sizes.chain(places).chain(plain).filter(|step| *step != self).collect()
            }
            Step::Read { connection, at, size, align } => {
                let sizes = smaller(size).map(|size| Step::Read { connection, at, size, align });
                let places = smaller(at).map(|at| Step::Read { connection, at, size, align });
                let plain = [Step::Read { connection, at, size, align: 0 }];
                sizes.chain(places).chain(plain).filter(|step| *step != self).collect()
            }
            Step::Batch { connection, count, size } => {
                let counts = smaller(count).map(|count| Step::Batch { connection, count, size });
                counts.chain(smaller(size).map(|size| Step::Batch { connection, count, size })).collect()
            }
            Step::Half { connection, size } => smaller(size).map(|size| Step::Half { connection, size }).collect(),
            Step::Fill { connection, count, more, most } => {
                smaller(count).map(|count| Step::Fill { connection, count, more, most }).collect()
            }
            Step::Empty { .. } => Vec::new(),
            Step::Pad { connection, size, value } => {
                smaller(size).map(|size| Step::Pad { connection, size, value }).collect()
            }
            Step::Align { connection, at, by_target } => {
                smaller(at).map(|at| Step::Align { connection, at, by_target }).collect()
            }
            Step::Burst { connection, count, size, spread } => {
                let of = |count, size, spread| Step::Burst { connection, count, size, spread };
                let counts = smaller(count).map(|count| of(count, size, spread));
                let sizes = smaller(size).map(|size| of(count, size, spread));
                let plain = (spread > 0).then(|| of(count, size, 0));
                plain.into_iter().chain(counts).chain(sizes).collect()
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
            Step::Request { crc, private, markers, depths, rtr } => {
                let plain = [
                    Step::Request { crc, private, markers, depths: None, rtr: [false; 3] },
                    Step::Request { crc, private, markers, depths, rtr: [false; 3] },
                    Step::Request { crc, private: 0, markers, depths, rtr },
                    Step::Request { crc, private, markers: false, depths, rtr },
                    Step::Request { crc: None, private, markers, depths, rtr },
                ];
                let sizes = smaller(private).map(|private| Step::Request { crc, private, markers, depths, rtr });
                plain.into_iter().chain(sizes).filter(|step| *step != self).collect()
            }
            Step::Segments { connection, count } => {
                smaller(count).map(|count| Step::Segments { connection, count }).collect()
            }
            Step::Finish { connection, size, ms } => {
                let sizes = smaller(size).map(|size| Step::Finish { connection, size, ms });
                sizes.chain(smaller(ms).map(|ms| Step::Finish { connection, size, ms })).collect()
            }
            Step::Fault { connection, fault, at_once } => {
                at_once.then_some(Step::Fault { connection, fault, at_once: false }).into_iter().collect()
            }
            Step::Pause { ms } => smaller(ms).filter(|ms| *ms > 0).map(|ms| Step::Pause { ms }).collect(),
            Step::Open { connection, crc, private, markers, enhanced, rtr } => {
                let plain = [
                    Step::Open { connection, crc: None, private, markers, enhanced, rtr },
                    Step::Open { connection, crc, private: 0, markers, enhanced, rtr },
                    Step::Open { connection, crc, private, markers: false, enhanced, rtr },
                    Step::Open { connection, crc, private, markers, enhanced, rtr: None },
                    Step::Open { connection, crc, private, markers, enhanced: false, rtr: None },
                ];
                let of = |private| Step::Open { connection, crc, private, markers, enhanced, rtr };
                let sizes = smaller(private).map(of);
                plain.into_iter().chain(sizes).filter(|step| *step != self).collect()
            }
            Step::Sdp(step) => step.simpler(|value| smaller(value).collect()).into_iter().map(Step::Sdp).collect(),
            Step::Agent(step) => step.simpler(|value| smaller(value).collect()).into_iter().map(Step::Agent).collect(),
            Step::Portmap(step) => {
                step.simpler(|value| smaller(value).collect()).into_iter().map(Step::Portmap).collect()
            }
            Step::Answers { .. } | Step::Close { .. } | Step::Reset { .. } => Vec::new(),
        }
    }
}

/// A call in Lua, with the session in `s`.
impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Step::Open { connection, crc, private, markers, enhanced, rtr } => {
                let crc = crc.map(|crc| format!("crc = {crc}"));
                let private = (private > 0).then(|| format!("private = {private}"));
                let markers = markers.then(|| "markers = true".to_owned());
                let enhanced = enhanced.then(|| "enhanced = true".to_owned());
                let rtr = rtr.map(|rtr| format!("rtr = \"{}\"", rtr.name()));
                let fields = crc.into_iter().chain(private).chain(markers).chain(enhanced).chain(rtr);
                let fields: Vec<String> = fields.collect();
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
            Step::Rounds { connection, count, size, segment, to, between, empty, busy } => {
                write!(f, "s:rounds({connection}, {count}, {{ size = {size}, to = {to:#x}")?;
                if segment < size {
                    write!(f, ", segment = {segment}")?;
                }
                for (name, is_set) in [("between", between), ("empty", empty)] {
                    if is_set {
                        write!(f, ", {name} = true")?;
                    }
                }
                if busy > 0 {
                    write!(f, ", busy = {busy}")?;
                }
                f.write_str(" })")
            }
            Step::Burst { connection, count, size, spread: 0 } => write!(f, "s:burst({connection}, {count}, {size})"),
            Step::Burst { connection, count, size, spread } => {
                write!(f, "s:burst({connection}, {count}, {size}, {spread})")
            }
            Step::Empty { connection, read } => write!(f, "s:empty({connection}, {read})"),
            Step::Pad { connection, size, value } => write!(f, "s:pad({connection}, {size}, {value:#04x})"),
            Step::Align { connection, at, by_target } => write!(f, "s:align({connection}, {at}, {by_target})"),
            Step::Announce { connection, size, segment, to, empty } => {
                write!(f, "s:announce({connection}, {{ size = {size}, segment = {segment}, to = {to:#x}")?;
                f.write_str(if empty { ", empty = true })" } else { " })" })
            }
            Step::Respond { connection, count: 0 } => write!(f, "s:respond({connection})"),
            Step::Respond { connection, count } => write!(f, "s:respond({connection}, {count})"),
            Step::Flood { connection, count, size, segment } => {
                write!(f, "s:flood({connection}, {count}, {{ size = {size}")?;
                if segment < size {
                    write!(f, ", segment = {segment}")?;
                }
                f.write_str(" })")
            }
            Step::Segments { connection, count } => write!(f, "s:segments({connection}, {count})"),
            Step::Write { connection, at, size, segment, align } => {
                write!(f, "s:write({connection}, {{ at = {at}, size = {size}")?;
                if segment < size {
                    write!(f, ", segment = {segment}")?;
                }
                write_align(f, align)
            }
            Step::Read { connection, at, size, align } => {
                write!(f, "s:read({connection}, {{ at = {at}, size = {size}")?;
                write_align(f, align)
            }
            Step::Batch { connection, count, size } => write!(f, "s:batch({connection}, {count}, {size})"),
            Step::Half { connection, size } => write!(f, "s:half({connection}, {size})"),
            Step::Fill { connection, count, more, most } => write!(f, "s:fill({connection}, {count}, {more}, {most})"),
            Step::Reads { connection, count, size } => write!(f, "s:reads({connection}, {count}, {size})"),
            Step::Refused { count } => write!(f, "s:refused({count})"),
            Step::Request { crc, private, markers, depths, rtr } => {
                let crc = crc.map(|crc| format!("crc = {crc}"));
                let private = (private > 0).then(|| format!("private = {private}"));
                let markers = markers.then(|| "markers = true".to_owned());
                let depths = depths.map(|[ird, ord]| format!("ird = {ird:#x}, ord = {ord:#x}"));
                let rtr = ["rtr_send", "rtr_write", "rtr_read"].into_iter().zip(rtr);
                let rtr = rtr.filter(|(_, is_set)| *is_set).map(|(name, _)| format!("{name} = true"));
                let fields = crc.into_iter().chain(private).chain(markers).chain(depths).chain(rtr);
                let fields: Vec<String> = fields.collect();
                match fields.is_empty() {
                    true => f.write_str("s:request {}"),
                    false => write!(f, "s:request {{ {} }}", fields.join(", ")),
                }
            }
            Step::Answers { connection } => write!(f, "s:answers({connection})"),
            Step::Pause { ms } => write!(f, "s:pause({}.{:03})", ms / 1000, ms % 1000),
            Step::Close { connection } => write!(f, "s:close({connection})"),
            Step::Finish { connection, size, ms } => {
                write!(f, "s:fin({connection}, {size}, {}.{:03})", ms / 1000, ms % 1000)
            }
            Step::Reset { connection } => write!(f, "s:reset({connection})"),
            Step::Fault { connection, fault, at_once: false } => write!(f, "s:fault({connection}, \"{fault}\")"),
            Step::Fault { connection, fault, at_once: true } => write!(f, "s:fault_now({connection}, \"{fault}\")"),
            Step::Sdp(step) => step.fmt(f),
            Step::Agent(step) => step.fmt(f),
            Step::Portmap(step) => step.fmt(f),
        }
    }
}

/// Writes the field `align`, and the end of a call.
fn write_align(f: &mut Formatter<'_>, align: u64) -> fmt::Result {
    if align > 0 {
        write!(f, ", align = {align:#x}")?;
    }
    f.write_str(" })")
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn simpler_steps_of_a_kind_differ_from_the_step() {
        for step in [
            Step::Burst { connection: 1, count: 4100, size: 4, spread: 60 },
            Step::Pad { connection: 1, size: 5, value: 0xff },
            Step::Align { connection: 1, at: 24, by_target: true },
            Step::Finish { connection: 1, size: 4000, ms: 300 },
            Step::Fault { connection: 1, fault: "wrong-crc", at_once: true },
        ] {
            let simpler = step.simpler();
            assert!(!simpler.is_empty() && !simpler.contains(&step), "{step}");
            let kind = std::mem::discriminant(&step);
            assert!(simpler.iter().all(|step| std::mem::discriminant(step) == kind), "{step}");
        }
        assert!(Step::Fault { connection: 1, fault: "wrong-crc", at_once: false }.simpler().is_empty());
        assert!(Step::Empty { connection: 1, read: true }.simpler().is_empty());
    }

    #[test]
    fn a_step_calls_a_function_of_the_lua_module() {
        for (step, call) in [
            (Step::Burst { connection: 1, count: 3, size: 4, spread: 0 }, "s:burst(1, 3, 4)"),
            (Step::Burst { connection: 1, count: 3, size: 4, spread: 60 }, "s:burst(1, 3, 4, 60)"),
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

    /// The simplest steps of a reduction. A Response in one call has no other message between its
    /// segments, so it is the simplest Response.
    #[test]
    fn simpler_announcements_and_requests_end() {
        let announce = Step::Announce { connection: 1, size: 60_000, segment: 9, to: 1 << 40, empty: true };
        let request =
            Step::Request { crc: Some(true), private: 508, markers: true, depths: Some([0, 16]), rtr: [true; 3] };
        for (step, simplest) in [
            (announce, "s:announce(1, { size = 0, segment = 1, to = 0x0 })"),
            (Step::Respond { connection: 2, count: 7 }, "s:respond(2)"),
            (request, "s:request {}"),
        ] {
            let mut step = step;
            for _ in 0..200 {
                let simpler = step.simpler();
                assert!(!simpler.contains(&step), "{step}");
                let Some(next) = simpler.first() else { break };
                step = *next;
            }
            assert_eq!(step.to_string(), simplest);
        }
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
