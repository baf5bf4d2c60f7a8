//! Draws the steps of a session with a port mapper.

use fastrand::Rng;

use super::fault::PORTMAP_FAULTS;
use super::portmap_step::{MAPPED, PortmapAction, PortmapStep};
use super::profile::Profile;
use super::shared_draw::{connections, pick, scaled, step_count};
use super::step::Step;

/// The services of the target file: a mapped service, a service that is not mapped, and a service
/// with a new port for each PMReq. Without the last one, `made` is the mapped service.
const SERVICES: [&str; 5] = [MAPPED, MAPPED, MAPPED, "unmapped", "made"];
/// Maximum number of steps of a session with few clients.
const MAX_STEPS: usize = 40;
/// Maximum number of PMReqs of a session. The monitor keeps 1,024 transactions.
const MAX_REQUESTS: u32 = 500;

/// Draws the steps of a session.
pub(super) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let of = |connection, action| Step::Portmap(PortmapStep { connection, action });
    let clients = connections(rng, profile);
    // Each client keeps its IP family in all of the session.
    let uses_v6: Vec<bool> = (0..clients).map(|_| profile.v6 && rng.u32(..4) == 0).collect();
    let v6 = (1..).zip(&uses_v6).filter(|(_, is_v6)| **is_v6);
    let mut steps: Vec<Step> = v6.map(|(client, _)| of(client, PortmapAction::OpenV6)).collect();
    // Most steps use only a few ports, so that many steps belong to the same transaction.
    let ports = rng.u32(1..=profile.ports.min(6));
    let mut left = MAX_REQUESTS;
    let count = steps.len() + step_count(rng, scaled(MAX_STEPS, clients));
    while steps.len() < count && left > 0 {
        let connection = rng.u32(1..=clients);
        let is_v6 = uses_v6[connection as usize - 1];
        let port = rng.u32(1..=ports);
        let service = if is_v6 { MAPPED } else { pick(rng, &SERVICES) };
        let action = match rng.u32(..100) {
            0..8 => {
                steps.push(Step::Pause { ms: pick(rng, &[1, 10, 50, 200, 200, 1000, 3000]) });
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
                let fault = pick(rng, &PORTMAP_FAULTS);
                steps.push(Step::Fault { connection, fault, at_once: false });
                continue;
            }
            35..37 if is_v6 => PortmapAction::OpenV6,
            37..48 => PortmapAction::Ack { port, copies: pick(rng, &[1, 1, 1, 2, 3]) },
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
        1 => pick(rng, &[2, 8, 16, 32, 63]),
        _ => rng.u32(1..=most),
    };
    count.min(most)
}

#[cfg(test)]
mod tests {
    use super::super::portmap_step::MAX_PORTS;
    use super::super::service::SessionService;
    use super::super::simpler::assert_simpler_steps_end;
    use super::*;
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
            for step in steps {
                assert_simpler_steps_end(step);
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
        assert_eq!((kinds.len(), faults.len()), (5, PORTMAP_FAULTS.len()));
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
}
