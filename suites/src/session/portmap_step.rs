//! The steps of a session with a port mapper, and how they are drawn. The steps call the functions
//! of `suites/library/portmap_session.lua`.

use std::fmt::{self, Display, Formatter};

use fastrand::Rng;

use super::draw::{Profile, pick};
use super::fault::Fault;
use super::step::Step;

/// Maximum number of PMReqs in one burst of an exploration. Each of them has another port.
pub(crate) const MAX_PORTS: u32 = 64;
/// Maximum number of PMReqs in one burst of a case. Most port mappers have resources for all of
/// them.
pub(crate) const FEW_PORTS: u32 = 16;
/// A service that the target maps.
pub(crate) const MAPPED: &str = "mapped";
/// The services of the target file: a mapped service, a service that is not mapped, and a service
/// with a new port for each PMReq. Without the last one, `made` is the mapped service.
const SERVICES: [&str; 5] = [MAPPED, MAPPED, MAPPED, "unmapped", "made"];
/// The illegal datagrams, by their names in the Lua module.
const FAULTS: [Fault; 11] = [
    "pm-time",
    "reserved",
    "padding",
    "unknown-ack",
    "other-ipv",
    "other-version",
    "own-accept",
    "own-deny",
    "empty",
    "short",
    "long",
];
/// Maximum number of steps of a session.
const MAX_STEPS: usize = 40;
/// Maximum number of PMReqs of a session. The monitor keeps 1,024 transactions.
const MAX_REQUESTS: u32 = 500;

/// A step of the client with the number `connection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortmapStep {
    pub(crate) connection: u32,
    pub(crate) action: PortmapAction,
}

/// What a step does. `port` is a number from 1 to [`MAX_PORTS`], which selects the CpPort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortmapAction {
    /// Opens a client that uses IPv6.
    OpenV6,
    /// Sends a PMReq for a service.
    Request { port: u32, service: &'static str },
    /// Sends `count` PMReqs at once, with the ports from 1 to `count`.
    Burst { count: u32, service: &'static str },
    /// Sends copies of the last PMReq with this port.
    Resend { port: u32, copies: u32 },
    /// Sends copies of the PMAck to the last PMReq with this port.
    Ack { port: u32, copies: u32 },
}

impl PortmapStep {
    /// Returns simpler steps, the simplest first. `smaller` returns smaller values of a number.
    pub(crate) fn simpler(self, smaller: impl Fn(u32) -> Vec<u32>) -> Vec<PortmapStep> {
        let smaller = |value: u32| smaller(value).into_iter().filter(|less| *less > 0);
        let actions: Vec<PortmapAction> = match self.action {
            PortmapAction::OpenV6 => Vec::new(),
            PortmapAction::Request { port, service } => {
                let plain = (service != MAPPED).then_some(PortmapAction::Request { port, service: MAPPED });
                let ports = smaller(port).map(|port| PortmapAction::Request { port, service });
                plain.into_iter().chain(ports).collect()
            }
            PortmapAction::Burst { count, service } => {
                let plain = (service != MAPPED).then_some(PortmapAction::Burst { count, service: MAPPED });
                let counts = smaller(count).map(|count| PortmapAction::Burst { count, service });
                plain.into_iter().chain(counts).collect()
            }
            PortmapAction::Resend { port, copies } => {
                let fewer = smaller(copies).map(|copies| PortmapAction::Resend { port, copies });
                fewer.chain(smaller(port).map(|port| PortmapAction::Resend { port, copies })).collect()
            }
            PortmapAction::Ack { port, copies } => {
                let fewer = smaller(copies).map(|copies| PortmapAction::Ack { port, copies });
                fewer.chain(smaller(port).map(|port| PortmapAction::Ack { port, copies })).collect()
            }
        };
        actions.into_iter().map(|action| PortmapStep { action, ..self }).collect()
    }

    /// Returns whether the step needs a port mapper with a service over IPv6.
    pub(crate) fn needs_v6(self) -> bool {
        self.action == PortmapAction::OpenV6
    }
}

/// A call in Lua, with the session in `s`.
impl Display for PortmapStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let connection = self.connection;
        match self.action {
            PortmapAction::OpenV6 => write!(f, "s:open({connection}, {{ v6 = true }})"),
            PortmapAction::Request { port, service: MAPPED } => write!(f, "s:request({connection}, {port})"),
            PortmapAction::Request { port, service } => write!(f, "s:request({connection}, {port}, \"{service}\")"),
            PortmapAction::Burst { count, service: MAPPED } => write!(f, "s:burst({connection}, {count})"),
            PortmapAction::Burst { count, service } => write!(f, "s:burst({connection}, {count}, \"{service}\")"),
            PortmapAction::Resend { port, copies } => write!(f, "s:resend({connection}, {port}, {copies})"),
            PortmapAction::Ack { port, copies } => write!(f, "s:ack({connection}, {port}, {copies})"),
        }
    }
}

/// Draws the steps of a session.
pub(crate) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let of = |connection, action| Step::Portmap(PortmapStep { connection, action });
    let most = rng.u32(1..=profile.connections);
    let clients = rng.u32(1..=most);
    // Each client keeps its IP family in all of the session.
    let uses_v6: Vec<bool> = (0..clients).map(|_| profile.v6 && rng.u32(..4) == 0).collect();
    let v6 = (1..).zip(&uses_v6).filter(|(_, is_v6)| **is_v6);
    let mut steps: Vec<Step> = v6.map(|(client, _)| of(client, PortmapAction::OpenV6)).collect();
    // Most steps use only a few ports, so that many steps belong to the same transaction.
    let ports = rng.u32(1..=profile.ports.min(6));
    let mut left = MAX_REQUESTS;
    let count = steps.len() + 1 + rng.usize(..MAX_STEPS) * rng.usize(1..=4) / 4;
    while steps.len() < count && left > 0 {
        let connection = rng.u32(1..=clients);
        let is_v6 = uses_v6[connection as usize - 1];
        let port = rng.u32(1..=ports);
        let service = if is_v6 { MAPPED } else { *pick(rng, &SERVICES) };
        let action = match rng.u32(..100) {
            0..8 => {
                steps.push(Step::Pause { ms: *pick(rng, &[1, 10, 50, 200, 200, 1000, 3000]) });
                continue;
            }
            8..18 => {
                steps.push(Step::Answers { connection });
                continue;
            }
            18..22 => {
                steps.push(Step::Close { connection });
                continue;
            }
            22..25 => {
                steps.push(Step::Reset { connection });
                continue;
            }
            25..35 if profile.faults && !is_v6 => {
                let fault = FAULTS[rng.usize(..FAULTS.len())];
                steps.push(Step::Fault { connection, fault, at_once: false });
                continue;
            }
            35..37 if is_v6 => PortmapAction::OpenV6,
            37..48 => PortmapAction::Ack { port, copies: *pick(rng, &[1, 1, 1, 2, 3]) },
            48..62 => {
                let copies = rng.u32(1..=4).min(left);
                left -= copies;
                PortmapAction::Resend { port, copies }
            }
            62..68 => {
                let count = burst(rng, profile.ports).min(left);
                left -= count;
                PortmapAction::Burst { count, service }
            }
            _ => {
                left -= 1;
                PortmapAction::Request { port, service }
            }
        };
        steps.push(of(connection, action));
    }
    steps
}

/// Draws the number of PMReqs in a burst, from 1 to `most`.
fn burst(rng: &mut Rng, most: u32) -> u32 {
    let count = match rng.u32(..4) {
        0 => most,
        1 => *pick(rng, &[2, 8, 16, 32, 63]),
        _ => rng.u32(1..=most),
    };
    count.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionService;
    use crate::targets::Target;

    fn profile() -> Profile {
        let profile = Profile::of(&Target::builtin(), SessionService::PortMapper, 4);
        Profile { faults: true, ports: MAX_PORTS, ..profile }
    }

    #[test]
    fn the_seed_determines_the_steps_and_simpler_steps_end() {
        for seed in 0..100 {
            let steps = steps(&mut Rng::with_seed(seed), &profile());
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile()));
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
    fn a_session_has_every_step_and_stays_inside_its_profile() {
        let (mut kinds, mut faults) = (std::collections::HashSet::new(), std::collections::BTreeSet::new());
        for seed in 0..300 {
            let (mut requests, steps) = (0, steps(&mut Rng::with_seed(seed), &profile()));
            for step in steps {
                assert!(!step.simpler().contains(&step), "{step}");
                match step {
                    Step::Portmap(PortmapStep { connection, action }) => {
                        assert!((1..=4).contains(&connection), "{step}");
                        kinds.insert(std::mem::discriminant(&action));
                        match action {
                            PortmapAction::Burst { count, .. } => {
                                assert!((1..=MAX_PORTS).contains(&count), "{step}");
                                requests += count;
                            }
                            PortmapAction::Resend { copies, .. } => requests += copies,
                            PortmapAction::Request { .. } => requests += 1,
                            PortmapAction::OpenV6 | PortmapAction::Ack { .. } => {}
                        }
                    }
                    Step::Fault { fault, .. } => {
                        faults.insert(fault);
                    }
                    _ => {}
                }
            }
            assert!(requests <= MAX_REQUESTS, "{requests}");
        }
        assert_eq!((kinds.len(), faults.len()), (5, FAULTS.len()));
    }

    #[test]
    fn a_target_without_ipv6_gets_no_client_with_ipv6() {
        let profile = Profile { v6: false, faults: false, ..profile() };
        for seed in 0..100 {
            let steps = steps(&mut Rng::with_seed(seed), &profile);
            let is_wrong = |step: &Step| match step {
                Step::Portmap(step) => step.needs_v6(),
                step => matches!(step, Step::Fault { .. }),
            };
            assert!(!steps.iter().any(is_wrong), "{seed}");
        }
    }

    #[test]
    fn a_step_is_a_call() {
        let shown = |action| PortmapStep { connection: 2, action }.to_string();
        assert_eq!(shown(PortmapAction::Request { port: 3, service: MAPPED }), "s:request(2, 3)");
        assert_eq!(shown(PortmapAction::Request { port: 3, service: "made" }), "s:request(2, 3, \"made\")");
        assert_eq!(shown(PortmapAction::Burst { count: 64, service: MAPPED }), "s:burst(2, 64)");
        assert_eq!(shown(PortmapAction::OpenV6), "s:open(2, { v6 = true })");
    }
}
