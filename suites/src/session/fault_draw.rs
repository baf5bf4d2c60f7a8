//! Draws a fault of a session with the service echo or rping.
//!
//! The earlier steps of the session determine which faults are possible on a connection. The files
//! of the other services draw their own faults.

use fastrand::Rng;

use super::fault::{
    CLOSED_STAG, CRC_FAULTS, ECHO_CRC_FAULTS, ECHO_FAULTS, FAULTS, Fault, LARGE, LARGE_CRC_FAULT, NEIGHBOUR_FAULTS,
    RESPONSE_FAULTS, RPING_CRC_FAULTS, RPING_FAULTS, UNKNOWN_STAG,
};
use super::profile::Profile;
use super::service::SessionService;
use super::shared_draw::pick;
use super::step::Step;

/// Draws a fault for a connection after these steps.
pub(super) fn fault(rng: &mut Rng, profile: &Profile, steps: &[Step], connection: u32) -> Fault {
    if profile.separate_domains && rng.u32(..6) == 0 {
        return pick(rng, &NEIGHBOUR_FAULTS);
    }
    // A fault with a wrong CRC needs a connection with CRC. If CRC is optional, a connection may be
    // without it.
    let with_crc = profile.crc && has_crc(steps, connection) && rng.bool();
    let (common, own): (&[Fault], &[Fault]) = match (with_crc, profile.service) {
        (true, SessionService::Echo) => (&CRC_FAULTS, &ECHO_CRC_FAULTS),
        (true, SessionService::Rping) => (&CRC_FAULTS, &RPING_CRC_FAULTS),
        (false, SessionService::Rping) => (&FAULTS, &RPING_FAULTS),
        (false, SessionService::Echo) => (&FAULTS, &ECHO_FAULTS),
        _ => (&FAULTS, &FAULTS),
    };
    let takes_large = profile.max_send.min(profile.max_segment) >= LARGE;
    if with_crc && profile.service == SessionService::Echo && takes_large && rng.u32(..6) == 0 {
        return LARGE_CRC_FAULT;
    }
    let faults = if rng.bool() { common } else { own };
    match pick(rng, faults) {
        // Each connection of an Initiator may belong to a new program, and another buffer of this
        // program may have the STag.
        CLOSED_STAG if profile.is_initiator => UNKNOWN_STAG,
        response if profile.is_initiator && RESPONSE_FAULTS.contains(&response) => common[0],
        fault => fault,
    }
}

/// Returns whether a connection has CRCs after these steps. If the tester sends C=0, the target
/// decides, so the result is `false`. If a step opens no connection with other fields, the tester
/// sends the C of the target file. The Lua module opens another connection if this C is 0.
fn has_crc(steps: &[Step], connection: u32) -> bool {
    let mut open = None;
    for step in steps.iter().filter(|step| step.number() == Some(connection)) {
        match step {
            Step::Close { .. } | Step::Finish { .. } | Step::Reset { .. } | Step::Fault { .. } => open = None,
            // `Open` has no effect on a connection that is already open.
            Step::Open { crc, .. } => open = open.or(Some(*crc != Some(false))),
            _ => open = open.or(Some(true)),
        }
    }
    open.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::super::draw::steps;
    use super::*;
    use crate::targets::Target;

    /// If the tester sends C=0, the target may send C=0, too.
    #[test]
    fn faults_with_a_wrong_crc_need_a_connection_with_crc() {
        let open = |crc| Step::Open { connection: 1, crc, private: 0, markers: false, enhanced: false, rtr: None };
        let (off, close) = (open(Some(false)), Step::Close { connection: 1 });
        for (steps, number, expected) in [
            (vec![], 1, true),
            (vec![off], 1, false),
            (vec![off], 2, true),
            (vec![off, close], 1, true),
            (vec![off, open(Some(true))], 1, false),
            (vec![open(None), off], 1, true),
            (vec![Step::Answers { connection: 1 }, off], 1, true),
        ] {
            assert_eq!(has_crc(&steps, number), expected, "{steps:?}");
        }
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 2);
        let profile = Profile { crc_is_optional: true, faults: true, ..profile };
        let (mut wrong, mut without) = (0, 0);
        for seed in 0..300 {
            let steps = steps(&mut Rng::with_seed(seed), &profile);
            for (at, step) in steps.iter().enumerate() {
                without += u32::from(matches!(step, Step::Open { crc: Some(false), .. }));
                let Step::Fault { connection, fault, .. } = *step else { continue };
                if fault.starts_with("wrong-crc") {
                    assert!(has_crc(&steps[..at], connection), "{steps:?}");
                    wrong += 1;
                }
            }
        }
        assert!(wrong > 20 && without > 20, "{wrong} {without}");
    }
}
