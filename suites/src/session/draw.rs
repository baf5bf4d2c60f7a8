//! Draws the steps of a session: selects them at random.
//!
//! Sizes are near the values at which implementations change their behaviour: a message in one
//! segment or in two, a full TCP segment, powers of two, and the largest message of the target.

use fastrand::Rng;

use crate::model::{Capability, Role};
use crate::targets::Target;

use super::fault::{
    CLOSED_STAG, CRC_FAULTS, ECHO_CRC_FAULTS, ECHO_FAULTS, FAULTS, Fault, LARGE, LARGE_CRC_FAULT, RPING_CRC_FAULTS,
    RPING_FAULTS, UNKNOWN_STAG,
};
use super::portmap_step::FEW_PORTS;
use super::service::SessionService;
use super::step::{Rtr, Step};

/// What sessions with a target may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) service: SessionService,
    /// Maximum number of connections at a time.
    pub(crate) connections: u32,
    /// Largest Send in bytes that the echo service accepts.
    pub(crate) max_send: u32,
    /// Size in bytes of rping's buffer.
    pub(crate) buffer: u32,
    /// Maximum payload in bytes of a segment.
    pub(crate) max_segment: u32,
    /// Whether connections may be without CRC as well as with CRC.
    pub(crate) crc_is_optional: bool,
    /// Whether the target checks CRCs.
    pub(crate) crc: bool,
    /// Whether the target supports the enhanced set-up of RFC 6581.
    pub(crate) enhanced: bool,
    /// Whether the target sends markers on request.
    pub(crate) markers: bool,
    /// Whether the target receives the segments of a Send in any order of their offsets.
    pub(crate) any_order: bool,
    /// Whether the target serves Atomic Operations, and its agent's user posts them.
    pub(crate) atomics: bool,
    /// Whether the target receives large Sends although its echoes are not read.
    pub(crate) floods: bool,
    /// Whether the sessions have illegal FPDUs, SDP messages or datagrams.
    pub(crate) faults: bool,
    /// Whether the target connects to the tester.
    pub(crate) is_initiator: bool,
    /// Maximum number of PMReqs in one burst.
    pub(crate) ports: u32,
    /// Whether the port mapper maps a service over IPv6.
    pub(crate) v6: bool,
}

impl Profile {
    /// Returns what each target of this description must support. The sessions have no faults.
    pub(crate) fn of(target: &Target, service: SessionService, connections: u32) -> Self {
        let supports = |capability| target.capabilities().contains(&capability);
        Profile {
            service,
            connections: connections.max(1),
            max_send: MAX_SEND,
            buffer: target.rping_size(),
            max_segment: target.max_segment(),
            crc_is_optional: false,
            crc: supports(Capability::Crc),
            // The tester's Reply to an Initiator always has the revision of the Request.
            enhanced: target.role() != Role::Initiator && supports(Capability::Revision2),
            markers: supports(Capability::Markers),
            any_order: false,
            atomics: false,
            floods: false,
            faults: false,
            is_initiator: target.role() == Role::Initiator,
            ports: FEW_PORTS,
            v6: service == SessionService::PortMapper && target.maps_v6(),
        }
    }
}

/// Size in bytes of a Send that every echo service is assumed to accept.
pub(crate) const MAX_SEND: u32 = 4000;
/// Maximum number of steps of a session.
const MAX_STEPS: usize = 40;
/// Maximum number of bytes that a session sends.
const MAX_OCTETS: u32 = 2 << 20;
/// Maximum number of FPDUs of one message.
const MAX_FPDUS: u32 = 400;

/// Draws the steps of a session with the service echo or rping.
pub(super) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut left = MAX_OCTETS;
    // Many sessions have one connection, because some faults need many steps on one connection.
    let connections = rng.u32(1..=profile.connections);
    let connections = rng.u32(1..=connections);
    // If a connection has no `Open` step, its start-up frame has the values of the target file.
    for connection in 1..=connections {
        if rng.bool() {
            steps.push(open(rng, profile, connection));
        }
    }
    // The number of steps varies: some sessions have few steps, others have many.
    let count = steps.len() + 1 + rng.usize(..MAX_STEPS) * rng.usize(1..=4) / 4;
    while steps.len() < count {
        let connection = rng.u32(1..=connections);
        match rng.u32(..100) {
            0..6 => steps.push(open(rng, profile, connection)),
            6 if rng.u32(..6) == 0 => steps.push(Step::Pause { ms: rng.u32(1500..2500) }),
            6..12 => steps.push(Step::Pause { ms: rng.u32(1..200) }),
            12..20 => steps.push(Step::Answers { connection }),
            20..25 => steps.push(Step::Close { connection }),
            25..29 => steps.push(Step::Reset { connection }),
            29 if !profile.is_initiator => steps.push(Step::Refused { count: rng.u32(1..=12) }),
            30..35 if profile.faults => steps.push(Step::Fault { connection, fault: fault(rng, profile) }),
            _ => operation(rng, profile, connection, &mut left, &mut steps),
        }
    }
    steps
}

fn open(rng: &mut Rng, profile: &Profile, connection: u32) -> Step {
    let crc = (profile.crc_is_optional && rng.bool()).then(|| rng.bool());
    let private = if rng.u32(..4) == 0 { *pick(rng, &[1, 3, 4, 64, 252, 255, 256]) } else { 0 };
    // Only sessions with the echo service send drawn private data. The server of rping may expect
    // the private data of its own client.
    let markers = profile.markers && rng.u32(..3) == 0;
    let enhanced = profile.enhanced && rng.bool();
    let has_rtr = enhanced && profile.service == SessionService::Echo && rng.bool();
    Step::Open {
        connection,
        crc,
        markers,
        enhanced,
        rtr: has_rtr.then(|| *pick(rng, &[Rtr::Send, Rtr::Write])),
        private: if profile.service == SessionService::Echo { private } else { 0 },
    }
}

fn fault(rng: &mut Rng, profile: &Profile) -> Fault {
    // A fault with a wrong CRC needs a connection with CRC. If CRC is optional, a connection may be
    // without it.
    let with_crc = profile.crc && !profile.crc_is_optional && rng.bool();
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
    match faults[rng.usize(..faults.len())] {
        // Each connection of an Initiator may belong to a new program, and another buffer of this
        // program may have the STag.
        CLOSED_STAG if profile.is_initiator => UNKNOWN_STAG,
        fault => fault,
    }
}

/// Draws an operation of the service.
fn operation(rng: &mut Rng, profile: &Profile, connection: u32, left: &mut u32, steps: &mut Vec<Step>) {
    match profile.service {
        SessionService::Echo => {
            if rng.u32(..20) == 0 {
                let size = rng.u32(4..=64);
                return steps.push(Step::Burst { connection, count: rng.u32(2..=320), size });
            }
            if profile.floods && rng.u32(..40) == 0 {
                let size = if rng.bool() { profile.max_send } else { size(rng, profile.max_send) };
                let segment = segment(rng, profile, size);
                return steps.push(Step::Flood { connection, count: rng.u32(2..=8), size, segment });
            }
            match rng.u32(..40) {
                0 => {
                    let size = size(rng, MAX_SEND.min(profile.max_segment));
                    return steps.push(Step::Batch { connection, count: rng.u32(2..=8), size });
                }
                1 => return steps.push(Step::Half { connection, size: rng.u32(..=1000) }),
                2 => {
                    let (count, more) = (*pick(rng, &[1, 2, 3, 4, 8, 16, 32]), rng.i32(-1..=1));
                    return steps.push(Step::Fill { connection, count, more, most: profile.max_send });
                }
                _ => {}
            }
            let (size, segment) = segmented(rng, profile, profile.max_send.min(*left));
            *left -= size;
            let every = if size < 3000 && rng.u32(..6) == 0 { rng.u32(1..=40) } else { 0 };
            let stall = if every == 0 && rng.u32(..20) == 0 { *pick(rng, &[1, 2, 20, 22, 60]) } else { 0 };
            let (solicited, empty) = (rng.u32(..5) == 0, rng.u32(..12) == 0);
            let descending = profile.any_order && !empty && every == 0 && stall == 0 && rng.u32(..8) == 0;
            steps.push(Step::Message { connection, size, segment, solicited, every, stall, empty, descending });
            // The segments that are not sent here follow with a later step on this connection.
            let count = size.div_ceil(segment).max(1);
            let now = if rng.bool() { count } else { rng.u32(0..=count) };
            if now > 0 {
                steps.push(Step::Segments { connection, count: now });
            }
        }
        SessionService::Rping => {
            // Writes and Reads often begin at the same place.
            let at = match rng.u32(..4) {
                0 | 1 => 0,
                2 => profile.buffer / 2,
                _ => rng.u32(..=profile.buffer),
            };
            let size = size(rng, profile.buffer - at);
            let busy = if rng.u32(..3) == 0 { *pick(rng, &[1, 8, 16]) } else { 0 };
            // An Initiator is rping's client, which may close after each round.
            if !profile.is_initiator && rng.u32(..8) == 0 {
                let count = if rng.u32(..6) == 0 { rng.u32(1..=300) } else { rng.u32(1..=3) };
                let size = if count > 3 { rng.u32(2..=64) } else { size };
                let segment = segment(rng, profile, size);
                let to = match rng.u32(..4) {
                    0 | 1 => rng.u64(..),
                    2 => (1 << 32) - u64::from(rng.u32(..=size)),
                    _ => (1 << 31) - u64::from(rng.u32(..=size)),
                };
                let (between, empty) = (rng.u32(..3) == 0, rng.u32(..3) == 0);
                return steps.push(Step::Rounds { connection, count, size, segment, to, between, empty, busy });
            }
            if rng.u32(..8) == 0 {
                return steps.push(Step::Reads { connection, count: *pick(rng, &[2, 3, 5, 8, 15, 16, 16]), size });
            }
            // Many targets translate addresses in pages, and carry bits at 2^16 and 2^32.
            let align = if rng.u32(..6) == 0 { *pick(rng, &[4096, 4096, 1 << 16, 1 << 32]) } else { 0 };
            let (at, size) = match align {
                0 => (at, size),
                _ => {
                    let before = *pick(rng, &[1, 2, 3, 4, 8, 60]);
                    (before, if rng.bool() { before } else { before + rng.u32(1..=64) })
                }
            };
            match rng.bool() {
                true => steps.push(Step::Read { connection, at, size, align }),
                false => {
                    let segment = segment(rng, profile, size);
                    steps.push(Step::Write { connection, at, size, segment, align });
                }
            }
        }
        // Other modules draw the steps of other sessions.
        _ => {}
    }
}

/// Draws the size in bytes of a message, of at most `most`, and the payload of its segments.
fn segmented(rng: &mut Rng, profile: &Profile, most: u32) -> (u32, u32) {
    match rng.u32(..16) {
        // A number of segments near a power of two.
        0 => {
            let count = (1 << rng.u32(1..=8)) + rng.u32(..3) - 1;
            let payload = rng.u32(1..=64).min(profile.max_segment);
            ((count * payload).min(most), payload)
        }
        // A single FPDU whose length is near a multiple of 4096. Of its bytes, 24 are headers and CRC.
        1 => {
            let size = (4096 * rng.u32(1..=15) - 24 - rng.u32(..5)).min(most).min(profile.max_segment);
            (size, profile.max_segment)
        }
        _ => {
            let size = size(rng, most);
            (size, segment(rng, profile, size))
        }
    }
}

/// Draws a size in bytes, of at most `most`.
pub(super) fn size(rng: &mut Rng, most: u32) -> u32 {
    let size = match rng.u32(..10) {
        0 => 0,
        1..4 => rng.u32(1..=40),
        4..6 => pick(rng, &[64, 128, 256, 512, 1024, 1442, 1460, 2048]) * rng.u32(1..=3) + rng.u32(..5) - 2,
        6..8 => (1 << rng.u32(6..22)) + rng.u32(..5) - 2,
        8 => most.saturating_sub(rng.u32(..3)),
        _ => rng.u32(..=most.min(100_000)),
    };
    size.min(most)
}

/// Draws the maximum payload of the segments of a message.
pub(super) fn segment(rng: &mut Rng, profile: &Profile, size: u32) -> u32 {
    let most = profile.max_segment;
    let segment = match rng.u32(..6) {
        0 | 1 => most,
        2 => pick(rng, &[64, 128, 256, 512, 1024]) + rng.u32(..5) - 2,
        3 => rng.u32(1..=64),
        _ => rng.u32(1..=most),
    };
    segment.clamp(size.div_ceil(MAX_FPDUS).max(1), most)
}

pub(super) fn pick<'v, T>(rng: &mut Rng, values: &'v [T]) -> &'v T {
    &values[rng.usize(..values.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_stays_inside_its_profile_and_follows_from_its_seed() {
        let profile = Profile {
            service: SessionService::Echo,
            connections: 3,
            max_send: 50_000,
            buffer: 64,
            max_segment: 1442,
            crc_is_optional: false,
            crc: true,
            enhanced: true,
            markers: true,
            any_order: true,
            atomics: false,
            floods: true,
            faults: true,
            is_initiator: false,
            ports: 1,
            v6: false,
        };
        let (mut sizes, mut kinds) = (std::collections::BTreeSet::new(), std::collections::HashSet::new());
        for seed in 0..200 {
            let steps = super::steps(&mut Rng::with_seed(seed), &profile);
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile));
            for step in steps {
                kinds.insert(std::mem::discriminant(&step));
                if let Step::Message { connection, size, segment, .. } = step {
                    assert!((1..=3).contains(&connection) && size <= 50_000 && (1..=1442).contains(&segment), "{step}");
                    assert!(size.div_ceil(segment) <= MAX_FPDUS, "{step}");
                    sizes.insert(size);
                }
            }
        }
        assert_eq!(kinds.len(), 14);
        assert!(sizes.contains(&0) && sizes.contains(&50_000) && sizes.len() > 200, "{} sizes", sizes.len());
    }

    #[test]
    fn sessions_with_a_client_of_rping_have_no_rounds() {
        let profile = Profile::of(&Target::builtin_initiator(), SessionService::Rping, 2);
        let profile = Profile { faults: true, ..profile };
        let mut reads = 0;
        for seed in 0..200 {
            for step in super::steps(&mut Rng::with_seed(seed), &profile) {
                assert!(!matches!(step, Step::Rounds { .. } | Step::Refused { .. }), "{step}");
                assert!(!matches!(step, Step::Fault { fault: CLOSED_STAG, .. }), "{step}");
                reads += u32::from(matches!(step, Step::Read { .. } | Step::Reads { .. }));
            }
        }
        assert!(reads > 200, "{reads} reads");
    }
}
