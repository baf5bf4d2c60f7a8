//! One counted step in place of two steps, for a reduction.

use super::agent_step::{AgentAction, AgentStep, WorkFields};
use super::echo_draw::LONG_BURST;
use super::portmap_step::{MAX_PORTS, PortmapAction, PortmapStep};
use super::sdp_step::{SdpAction, SdpStep};
use super::step::Step;

/// Maximum number of Read Requests in a merged step. A target permits at most 16 of the tester.
const MAX_READS: u32 = 16;
/// Maximum count of another merged step.
const MAX_COUNT: u32 = 1000;
/// Maximum number of milliseconds of a merged wait.
const MAX_WAIT: u32 = 5000;
/// Maximum numbers of work requests, receives and segments that an agent gets in a merged step.
/// They are the largest numbers that are drawn.
const MAX_POSTS: u32 = 8;
const MAX_RECEIVES: u32 = 12;
const MAX_ANSWERS: u32 = 40;

/// Returns the sum, if it is not greater than `most`.
fn sum(first: u32, second: u32, most: u32) -> Option<u32> {
    first.checked_add(second).filter(|sum| *sum <= most)
}

impl Step {
    /// Returns a counted step that plays about the same as this step and `next`, one directly after
    /// the other. Without such a step, the result is `None`. Sizes may become larger, and options
    /// may be lost, so the session may pass with the merged step.
    pub(crate) fn merged(self, next: Step) -> Option<Step> {
        let number = self.number();
        if number != next.number() {
            return None;
        }
        if let (Some(connection), Some(first), Some(second)) = (number, self.sends(), next.sends()) {
            let count = sum(first[0], second[0], LONG_BURST)?;
            return Some(Step::Burst { connection, count, size: first[1].max(second[1]), spread: 0 });
        }
        if let (Some(connection), Some(first), Some(second)) = (number, self.reads(), next.reads()) {
            let count = sum(first[0], second[0], MAX_READS)?;
            return Some(Step::Reads { connection, count, size: first[1].max(second[1]) });
        }
        Some(match (self, next) {
            (Step::Segments { connection, count }, Step::Segments { count: more, .. }) => {
                Step::Segments { connection, count: sum(count, more, u32::MAX)? }
            }
            // Without a number, the step sends all segments.
            (Step::Respond { connection, count: count @ 1.. }, Step::Respond { count: more @ 1.., .. }) => {
                Step::Respond { connection, count: sum(count, more, u32::MAX)? }
            }
            (
                Step::Rounds { connection, count, size, segment, to, between, empty, busy },
                Step::Rounds { count: more, .. },
            ) => {
                let count = sum(count, more, MAX_COUNT)?;
                Step::Rounds { connection, count, size, segment, to, between, empty, busy }
            }
            (Step::Refused { count }, Step::Refused { count: more }) => {
                Step::Refused { count: sum(count, more, MAX_COUNT)? }
            }
            (Step::Pause { ms }, Step::Pause { ms: more }) => Step::Pause { ms: sum(ms, more, MAX_WAIT)? },
            (Step::Agent(AgentStep { connection, action }), Step::Agent(next)) => {
                Step::Agent(AgentStep { connection, action: merged_work(action, next.action)? })
            }
            (Step::Portmap(PortmapStep { connection, action }), Step::Portmap(next)) => {
                Step::Portmap(PortmapStep { connection, action: merged_requests(action, next.action)? })
            }
            _ => return None,
        })
    }

    /// Returns the number and the largest size of the Sends of a step, if `s:burst` can send them.
    /// A Send in several segments is not a part of a burst.
    fn sends(self) -> Option<[u32; 2]> {
        match self {
            Step::Message(fields) => (fields.segment >= fields.size).then_some([1, fields.size]),
            Step::Burst { count, size, spread, .. } => Some([count, size.saturating_add(spread)]),
            Step::Sdp(SdpStep { action: SdpAction::Send { size, .. }, .. }) => Some([1, size]),
            _ => None,
        }
    }

    /// Returns the number and the size of the Read Requests of a step, if the step only reads.
    fn reads(self) -> Option<[u32; 2]> {
        match self {
            Step::Read { size, .. } => Some([1, size]),
            Step::Reads { count, size, .. } => Some([count, size]),
            _ => None,
        }
    }
}

/// Merges two steps with an agent. The merged step has the options of the first step.
fn merged_work(first: AgentAction, second: AgentAction) -> Option<AgentAction> {
    Some(match (first, second) {
        (AgentAction::Post(fields), AgentAction::Post(next)) if fields.kind == next.kind => {
            AgentAction::Post(WorkFields { count: sum(fields.count, next.count, MAX_POSTS)?, ..fields })
        }
        (AgentAction::Receive { count, size, parts, pad }, AgentAction::Receive { count: more, .. }) => {
            AgentAction::Receive { count: sum(count, more, MAX_RECEIVES)?, size, parts, pad }
        }
        (AgentAction::Answer { count, segment }, AgentAction::Answer { count: more, .. }) => {
            AgentAction::Answer { count: sum(count, more, MAX_ANSWERS)?, segment }
        }
        (AgentAction::Read { region, at, size, count }, AgentAction::Read { region: same, count: more, .. })
            if region == same =>
        {
            AgentAction::Read { region, at, size, count: sum(count, more, MAX_READS)? }
        }
        _ => return None,
    })
}

/// Merges two steps with a port mapper.
fn merged_requests(first: PortmapAction, second: PortmapAction) -> Option<PortmapAction> {
    let requests = |action: PortmapAction| match action {
        PortmapAction::Request { service, .. } => Some((1, service)),
        PortmapAction::Burst { count, service } => Some((count, service)),
        _ => None,
    };
    if let (Some((count, service)), Some((more, other))) = (requests(first), requests(second)) {
        let count = sum(count, more, MAX_PORTS).filter(|_| service == other)?;
        return Some(PortmapAction::Burst { count, service });
    }
    Some(match (first, second) {
        (PortmapAction::Resend { port, copies }, PortmapAction::Resend { port: other, copies: more })
            if port == other =>
        {
            PortmapAction::Resend { port, copies: sum(copies, more, MAX_PORTS)? }
        }
        (PortmapAction::Ack { port, copies }, PortmapAction::Ack { port: other, copies: more }) if port == other => {
            PortmapAction::Ack { port, copies: sum(copies, more, MAX_PORTS)? }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::portmap_step::MAPPED;
    use super::*;

    #[test]
    fn repeated_steps_become_one_counted_step() {
        let send = |size| Step::message(1, size, 2000);
        let burst = |count, size| Step::Burst { connection: 1, count, size, spread: 0 };
        let read = Step::Read { connection: 1, at: 5, size: 8, align: 0 };
        let sdp = |size| Step::Sdp(SdpStep { connection: 1, action: SdpAction::Send { size, urgent: true } });
        let post = |count| {
            let fields = WorkFields { count, fence: true, ..WorkFields::plain("write", 70) };
            Step::Agent(AgentStep { connection: 1, action: AgentAction::Post(fields) })
        };
        let portmap = |action| Step::Portmap(PortmapStep { connection: 1, action });
        let request = |port| portmap(PortmapAction::Request { port, service: MAPPED });
        let requests = |count| portmap(PortmapAction::Burst { count, service: MAPPED });
        for (first, second, merged) in [
            (send(30), send(500), burst(2, 500)),
            (burst(9, 60), send(30), burst(10, 60)),
            (sdp(7), sdp(9), burst(2, 9)),
            (read, read, Step::Reads { connection: 1, count: 2, size: 8 }),
            (post(1), post(3), post(4)),
            (request(3), request(9), requests(2)),
            (requests(5), request(1), requests(6)),
            (Step::Refused { count: 2 }, Step::Refused { count: 3 }, Step::Refused { count: 5 }),
            (Step::Pause { ms: 20 }, Step::Pause { ms: 30 }, Step::Pause { ms: 50 }),
        ] {
            assert_eq!(first.merged(second), Some(merged), "{first} and {second}");
        }
    }

    #[test]
    fn other_steps_and_too_many_are_not_merged() {
        let send = |connection| Step::message(connection, 30, 30);
        let reads = |count| Step::Reads { connection: 1, count, size: 8 };
        let unmapped = PortmapAction::Request { port: 1, service: "unmapped" };
        let mapped = PortmapAction::Request { port: 1, service: MAPPED };
        let portmap = |action| Step::Portmap(PortmapStep { connection: 1, action });
        for (first, second) in [
            (send(1), send(2)),
            // The echo service may not accept the Send in one segment.
            (Step::message(1, 30, 10), send(1)),
            (send(1), reads(1)),
            (reads(15), reads(2)),
            (portmap(mapped), portmap(unmapped)),
            (Step::Close { connection: 1 }, Step::Close { connection: 1 }),
            (Step::Respond { connection: 1, count: 0 }, Step::Respond { connection: 1, count: 2 }),
        ] {
            assert_eq!(first.merged(second), None, "{first} and {second}");
        }
    }
}
