//! Draws the steps of a session: selects them at random.
//!
//! Sizes are near the values at which implementations change their behaviour: a message in one
//! segment or in two, a full TCP segment, powers of two, and the largest message of the target.

use fastrand::Rng;

use crate::model::{Capability, Role};
use crate::targets::Target;

use super::draw_echo::{self, SHORT_BATCH, SHORT_BURST};
use super::fault::{
    CLOSED_STAG, CRC_FAULTS, ECHO_CRC_FAULTS, ECHO_FAULTS, FAULTS, Fault, LARGE, LARGE_CRC_FAULT, NEIGHBOUR_FAULTS,
    RPING_CRC_FAULTS, RPING_FAULTS, UNKNOWN_STAG,
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
    /// Maximum number of bytes of private data in a start-up frame. In an enhanced frame, 4 of them
    /// are IRD and ORD.
    pub(crate) private: u32,
    /// Whether connections may be without CRC as well as with CRC.
    pub(crate) crc_is_optional: bool,
    /// Whether the target checks CRCs.
    pub(crate) crc: bool,
    /// Whether the target supports the enhanced set-up of RFC 6581.
    pub(crate) enhanced: bool,
    /// Whether the target sends markers on request.
    pub(crate) markers: bool,
    /// Whether the target requests markers.
    pub(crate) requests_markers: bool,
    /// Whether the target receives the segments of a Send in any order of their offsets.
    pub(crate) any_order: bool,
    /// Whether the target receives other messages between the segments of a Read Response.
    pub(crate) interleaves: bool,
    /// Whether the target serves Atomic Operations, and its agent's user posts them.
    pub(crate) atomics: bool,
    /// Whether the target receives large Sends although its echoes are not read.
    pub(crate) floods: bool,
    /// Maximum number of Sends in one burst.
    pub(crate) burst: u32,
    /// Maximum number of Sends in one TCP write.
    pub(crate) batch: u32,
    /// Whether sessions with the service echo have Writes of 0 bytes.
    pub(crate) empty_writes: bool,
    /// Whether the target answers Reads of 0 bytes.
    pub(crate) empty_reads: bool,
    /// Whether the service echo sends echoes after the tester's FIN.
    pub(crate) answers_after_fin: bool,
    /// Whether the connections of rping have different Protection Domains.
    pub(crate) separate_domains: bool,
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
            // If the target file makes each frame enhanced, each frame has IRD and ORD.
            private: if target.description.request.enhanced.is_some() { FEW_PRIVATE - DEPTHS } else { FEW_PRIVATE },
            crc_is_optional: false,
            crc: supports(Capability::Crc),
            // The tester's Reply to an Initiator always has the revision of the Request.
            enhanced: target.role() != Role::Initiator && supports(Capability::Revision2),
            markers: supports(Capability::Markers),
            // A builtin target requests markers only if a case or a run requires it.
            requests_markers: target.options.requests_markers
                || target.remote().is_some() && supports(Capability::AsksForMarkers),
            any_order: false,
            interleaves: false,
            atomics: false,
            floods: false,
            burst: SHORT_BURST,
            batch: SHORT_BATCH,
            empty_writes: false,
            empty_reads: false,
            answers_after_fin: false,
            separate_domains: false,
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
/// Maximum number of bytes of private data in the sessions of the suites. Some known
/// implementations accept no more.
pub(crate) const FEW_PRIVATE: u32 = 256;
/// Maximum number of bytes of private data (RFC 5044 section 7.1.1).
pub(crate) const MAX_PRIVATE: u32 = 512;
/// Number of bytes of IRD and ORD in an enhanced frame. They are a part of the private data.
const DEPTHS: u32 = 4;
/// Lengths of private data. Some connection managers store this length in one byte.
const PRIVATE: [u32; 18] = [1, 3, 4, 64, 252, 253, 254, 255, 256, 504, 505, 507, 508, 509, 512, 512, 512, 512];
/// Number of bytes at the end of rping's buffer that an announced Read leaves free, as in the Lua
/// module.
const FREE: u32 = 16;

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
            20..25 if profile.answers_after_fin && rng.u32(..3) == 0 => {
                let size = size(rng, MAX_SEND.min(profile.max_segment));
                let ms = if rng.bool() { 0 } else { rng.u32(1..300) };
                steps.push(Step::Finish { connection, size, ms });
            }
            20..25 => steps.push(Step::Close { connection }),
            25..29 => steps.push(Step::Reset { connection }),
            29 if !profile.is_initiator => steps.push(Step::Refused { count: rng.u32(1..=12) }),
            30..35 if profile.faults => {
                let (fault, at_once) = (fault(rng, profile), rng.u32(..3) == 0);
                steps.push(Step::Fault { connection, fault, at_once });
            }
            // The target may reject these Requests, so the sessions of the suites have none.
            35..39 if profile.faults && !profile.is_initiator => {
                if profile.connections == 1 {
                    // The service may serve one connection at a time.
                    steps.push(Step::Close { connection });
                }
                steps.push(request(rng, profile));
            }
            _ => {
                if !align(rng, profile, connection, &mut steps) {
                    operation(rng, profile, connection, &mut left, &mut steps);
                }
            }
        }
    }
    steps
}

fn open(rng: &mut Rng, profile: &Profile, connection: u32) -> Step {
    let crc = (profile.crc_is_optional && rng.bool()).then(|| rng.bool());
    // Only sessions with the echo service send drawn private data. The server of rping may expect
    // the private data of its own client.
    let markers = profile.markers && rng.u32(..3) == 0;
    let enhanced = profile.enhanced && rng.bool();
    let private = if rng.u32(..4) == 0 { private_data(rng, profile, enhanced) } else { 0 };
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

/// Draws a step that aligns a marker, if the connection has markers. Returns whether it adds steps.
fn align(rng: &mut Rng, profile: &Profile, connection: u32, steps: &mut Vec<Step>) -> bool {
    let from_target = profile.markers && requests_markers(steps, connection);
    if !(from_target || profile.requests_markers) || rng.u32(..8) != 0 {
        return false;
    }
    let by_target = from_target && (!profile.requests_markers || rng.bool());
    // A marker before an FPDU, in its headers, or after them.
    let at = if rng.bool() { *pick(rng, &[0, 4, 8, 12, 16, 20, 24, 40]) } else { 4 * rng.u32(..=126) };
    steps.push(Step::Align { connection, at, by_target });
    if by_target && profile.faults && rng.u32(..3) == 0 {
        // The next FPDU of the target is a Terminate.
        steps.push(Step::Fault { connection, fault: fault(rng, profile), at_once: false });
    }
    true
}

/// Returns whether the tester requests markers on this connection. The result may be wrong if a
/// step opens a connection that is already open. Then `Align` has no effect.
fn requests_markers(steps: &[Step], connection: u32) -> bool {
    let requests = |step: &Step| match *step {
        Step::Open { connection: opened, markers, .. } if opened == connection => Some(markers),
        Step::Close { connection: ended }
        | Step::Finish { connection: ended, .. }
        | Step::Reset { connection: ended }
        | Step::Fault { connection: ended, .. }
            if ended == connection =>
        {
            Some(false)
        }
        _ => None,
    };
    steps.iter().rev().find_map(requests).unwrap_or(false)
}

/// Draws a number of bytes of private data.
fn private_data(rng: &mut Rng, profile: &Profile, enhanced: bool) -> u32 {
    let most = if enhanced { profile.private.saturating_sub(DEPTHS) } else { profile.private };
    (*pick(rng, &PRIVATE)).min(most)
}

/// Draws a Request that the target may accept or reject. Often, IRD is 0, so a service that reads
/// from its peer may reject the Request.
fn request(rng: &mut Rng, profile: &Profile) -> Step {
    let crc = (profile.crc_is_optional && rng.bool()).then(|| rng.bool());
    let markers = profile.markers && rng.u32(..3) == 0;
    let enhanced = profile.enhanced && rng.u32(..4) > 0;
    let values = [0, 0, 1, 2, 15, 16, 17, 128, 0x3ffe, 0x3fff];
    let depths = enhanced.then(|| [*pick(rng, &values), *pick(rng, &values)]);
    // At least one bit is set, because a Request for the peer-to-peer model has to offer a message.
    let offered = if enhanced && rng.bool() { rng.u8(1..8) } else { 0 };
    let private = if rng.bool() { private_data(rng, profile, enhanced) } else { 0 };
    Step::Request { crc, private, markers, depths, rtr: [1, 2, 4].map(|bit| offered & bit != 0) }
}

pub(super) fn fault(rng: &mut Rng, profile: &Profile) -> Fault {
    if profile.separate_domains && rng.u32(..6) == 0 {
        return NEIGHBOUR_FAULTS[rng.usize(..NEIGHBOUR_FAULTS.len())];
    }
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
        SessionService::Echo => draw_echo::operation(rng, profile, connection, left, steps),
        SessionService::Rping => {
            if is_announced(steps, connection) && rng.u32(..4) == 0 {
                let count = if profile.interleaves { rng.u32(..=4) } else { 0 };
                return steps.push(Step::Respond { connection, count });
            }
            // Writes and Reads often begin at the same place.
            let at = match rng.u32(..4) {
                0 | 1 => 0,
                2 => profile.buffer / 2,
                _ => rng.u32(..=profile.buffer),
            };
            let size = size(rng, profile.buffer - at);
            let busy = if rng.u32(..3) == 0 { *pick(rng, &[1, 8, 16]) } else { 0 };
            // An Initiator is rping's client, which may close after each round.
            if !profile.is_initiator && rng.u32(..5) == 0 {
                if rng.bool() {
                    return announce(rng, profile, connection, steps);
                }
                let count = if rng.u32(..6) == 0 { rng.u32(1..=300) } else { rng.u32(1..=3) };
                let size = if count > 3 { rng.u32(2..=64) } else { size };
                let segment = segment(rng, profile, size);
                let to = offset(rng, size);
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
                    let before = *pick(rng, &[0, 0, 1, 2, 3, 4, 8, 60]);
                    (before, if before > 0 && rng.bool() { before } else { before + rng.u32(1..=64) })
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

/// Draws a Read of the target, which stays outstanding. Often, a part of its Response follows at
/// once, and then a Write or a Read.
fn announce(rng: &mut Rng, profile: &Profile, connection: u32, steps: &mut Vec<Step>) {
    let size = size(rng, profile.buffer.saturating_sub(FREE)).max(2);
    let segment = match rng.bool() {
        true => segment(rng, profile, size),
        false => size.div_ceil(rng.u32(2..=6)).min(profile.max_segment),
    };
    let (to, empty) = (offset(rng, size), rng.u32(..3) == 0);
    steps.push(Step::Announce { connection, size, segment, to, empty });
    let segments = size.div_ceil(segment);
    match rng.u32(..4) {
        0 => steps.push(Step::Respond { connection, count: 0 }),
        1 | 2 if profile.interleaves && segments > 1 => {
            steps.push(Step::Respond { connection, count: rng.u32(1..segments) });
            let size = rng.u32(..=FREE);
            match rng.u32(..3) {
                0 => steps.push(Step::Write { connection, at: 0, size, segment: FREE, align: 0 }),
                1 => steps.push(Step::Read { connection, at: 0, size, align: 0 }),
                _ => {}
            }
        }
        _ => {}
    }
}

/// Draws the offset of a buffer of the tester with `size` bytes. Often, bit 31 or bit 32 changes
/// within the buffer.
fn offset(rng: &mut Rng, size: u32) -> u64 {
    match rng.u32(..4) {
        0 | 1 => rng.u64(..),
        2 => (1 << 32) - u64::from(rng.u32(..=size)),
        _ => (1 << 31) - u64::from(rng.u32(..=size)),
    }
}

/// Returns whether a Read of the target is outstanding on a connection after these steps.
fn is_announced(steps: &[Step], connection: u32) -> bool {
    let last = steps.iter().rev().find(|step| match step {
        Step::Announce { connection: other, .. }
        | Step::Respond { connection: other, count: 0 }
        | Step::Rounds { connection: other, .. }
        | Step::Answers { connection: other }
        | Step::Align { connection: other, .. }
        | Step::Close { connection: other }
        | Step::Finish { connection: other, .. }
        | Step::Reset { connection: other }
        | Step::Fault { connection: other, .. } => *other == connection,
        _ => false,
    });
    matches!(last, Some(Step::Announce { .. }))
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
    // In short TCP segments, the longest messages need more FPDUs.
    segment.clamp(size.div_ceil(MAX_FPDUS).clamp(1, most), most)
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
            private: MAX_PRIVATE,
            crc_is_optional: false,
            crc: true,
            enhanced: true,
            markers: true,
            requests_markers: false,
            any_order: true,
            interleaves: true,
            atomics: false,
            floods: true,
            burst: 4100,
            batch: 300,
            empty_writes: true,
            empty_reads: true,
            answers_after_fin: true,
            separate_domains: false,
            faults: true,
            is_initiator: false,
            ports: 1,
            v6: false,
        };
        let (mut sizes, mut kinds) = (std::collections::BTreeSet::new(), std::collections::HashSet::new());
        let (mut batches, mut bursts) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        let mut longest = [0_u32; 2];
        for seed in 0..200 {
            let steps = super::steps(&mut Rng::with_seed(seed), &profile);
            assert_eq!(steps, super::steps(&mut Rng::with_seed(seed), &profile));
            for step in steps {
                kinds.insert(std::mem::discriminant(&step));
                if let Step::Open { private, enhanced, .. } = step {
                    longest[usize::from(enhanced)] = longest[usize::from(enhanced)].max(private);
                }
                if let Step::Message { connection, size, segment, .. } = step {
                    assert!((1..=3).contains(&connection) && size <= 50_000 && (1..=1442).contains(&segment), "{step}");
                    assert!(size.div_ceil(segment) <= MAX_FPDUS, "{step}");
                    sizes.insert(size);
                }
                match step {
                    // 64 KiB always fit into the buffers of TCP.
                    Step::Batch { count, size, .. } => {
                        assert!((2..=300).contains(&count) && count * size <= 65_536, "{step}");
                        batches.insert(count);
                    }
                    Step::Burst { count, size, spread, .. } => {
                        assert!((2..=4100).contains(&count) && size + spread <= 124, "{step}");
                        bursts.insert(count);
                    }
                    Step::Align { at, by_target, .. } => {
                        assert!(at % 4 == 0 && at <= 504 && by_target, "{step}");
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(kinds.len(), 19);
        // Both are on either side of powers of two.
        for (counts, power) in [(&batches, 64), (&bursts, 1024)] {
            assert!(
                counts.iter().any(|count| *count > power) && counts.iter().any(|count| *count < power),
                "{counts:?}"
            );
        }
        // Private data of 512 bytes is the longest (RFC 5044 section 7.1.1). In an enhanced frame,
        // 4 of these bytes are IRD and ORD (RFC 6581 section 9).
        assert_eq!(longest, [512, 508]);
        assert!(sizes.contains(&0) && sizes.contains(&50_000) && sizes.len() > 200, "{} sizes", sizes.len());
    }

    #[test]
    fn sessions_with_a_client_of_rping_have_no_rounds() {
        let profile = Profile::of(&Target::builtin_initiator(), SessionService::Rping, 2);
        let profile = Profile { faults: true, ..profile };
        let mut reads = 0;
        for seed in 0..200 {
            for step in super::steps(&mut Rng::with_seed(seed), &profile) {
                assert!(!matches!(step, Step::Rounds { .. } | Step::Announce { .. }), "{step}");
                assert!(!matches!(step, Step::Refused { .. } | Step::Request { .. }), "{step}");
                assert!(!matches!(step, Step::Fault { fault: CLOSED_STAG, .. }), "{step}");
                reads += u32::from(matches!(step, Step::Read { .. } | Step::Reads { .. }));
            }
        }
        assert!(reads > 200, "{reads} reads");
    }

    /// Not every target can do what these steps need, and `explore::limits` measures that only
    /// before an exploration.
    #[test]
    fn sessions_of_the_suites_need_no_measured_limits() {
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 2);
        for seed in 0..200 {
            for step in super::steps(&mut Rng::with_seed(seed), &profile) {
                match step {
                    Step::Burst { count, .. } => assert!(count <= 320, "{step}"),
                    Step::Batch { count, .. } => assert!(count <= 8, "{step}"),
                    Step::Empty { .. } | Step::Pad { .. } | Step::Finish { .. } => panic!("{step}"),
                    Step::Flood { .. } | Step::Fault { .. } | Step::Request { .. } => panic!("{step}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn only_connections_with_markers_have_steps_that_align_them() {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 3);
        let requesting = Profile { requests_markers: true, ..profile };
        let aligned = |profile: &Profile| {
            let mut aligned = 0;
            for seed in 0..200 {
                let steps = super::steps(&mut Rng::with_seed(seed), profile);
                for (at, step) in steps.iter().enumerate() {
                    if let Step::Align { connection, by_target, .. } = *step {
                        assert!(!by_target || super::requests_markers(&steps[..at], connection), "{steps:?}");
                        aligned += 1;
                    }
                }
            }
            aligned
        };
        assert_eq!(aligned(&Profile { markers: false, ..profile }), 0);
        assert!(aligned(&profile) > 5 && aligned(&requesting) > 100);
    }

    #[test]
    fn faults_follow_while_answers_are_owed_and_name_neighbours_only_if_the_target_separates_them() {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 2);
        for separate_domains in [false, true] {
            let profile = Profile { faults: true, separate_domains, ..profile };
            let (mut now, mut neighbours) = (0, 0);
            for seed in 0..200 {
                for step in super::steps(&mut Rng::with_seed(seed), &profile) {
                    let Step::Fault { fault, at_once, .. } = step else { continue };
                    now += u32::from(at_once);
                    neighbours += u32::from(NEIGHBOUR_FAULTS.contains(&fault));
                }
            }
            assert!(now > 10, "{now}");
            assert_eq!(neighbours > 0, separate_domains);
        }
    }

    #[test]
    fn a_fault_follows_some_floods_at_once() {
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 1);
        let profile = Profile { faults: true, floods: true, max_send: 1 << 20, ..profile };
        let mut pairs = 0;
        for seed in 0..400 {
            for pair in super::steps(&mut Rng::with_seed(seed), &profile).windows(2) {
                pairs += u32::from(matches!(pair, [Step::Flood { .. }, Step::Fault { at_once: true, .. }]));
            }
        }
        assert!(pairs > 5, "{pairs}");
    }

    /// A Send of 1 MiB needs more than [`MAX_FPDUS`] segments of Ethernet.
    #[test]
    fn the_longest_sends_fit_into_segments_of_ethernet() {
        let profile = Profile::of(&Target::builtin(), SessionService::Echo, 1);
        let profile = Profile { max_segment: 1432, ..profile };
        for seed in 0..100 {
            assert!(segment(&mut Rng::with_seed(seed), &profile, 1 << 20) <= 1432);
        }
    }

    /// Carries are wrong most often exactly at the multiple.
    #[test]
    fn some_parts_of_the_buffer_begin_at_a_multiple() {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 1);
        let mut at = std::collections::BTreeSet::new();
        for seed in 0..200 {
            for step in super::steps(&mut Rng::with_seed(seed), &profile) {
                if let Step::Write { at: before, align: 1.., size: 1.., .. } = step {
                    at.insert(before);
                }
            }
        }
        assert!(at.contains(&0) && at.contains(&1) && at.contains(&60), "{at:?}");
    }

    /// Returns sessions with rping's server. With `interleaves`, other messages may come between
    /// the segments of a Response.
    fn announcing(interleaves: bool) -> impl Iterator<Item = Vec<Step>> {
        let profile = Profile::of(&Target::builtin(), SessionService::Rping, 3);
        let profile = Profile { interleaves, faults: true, private: MAX_PRIVATE, ..profile };
        (0..300).map(move |seed| super::steps(&mut Rng::with_seed(seed), &profile))
    }

    /// Other steps follow while a Read of the target is outstanding, on one connection and on
    /// several connections.
    #[test]
    fn reads_of_the_target_stay_outstanding() {
        let (mut partial, mut between, mut at_once) = (0, 0, 0);
        for steps in announcing(true) {
            for (at, step) in steps.iter().enumerate() {
                match *step {
                    Step::Announce { size, segment, .. } => {
                        // The buffer of the builtin target has 65,535 bytes.
                        assert!((2..=65_535 - FREE).contains(&size) && segment > 0, "{step}");
                        assert!(size.div_ceil(segment) <= MAX_FPDUS, "{step}");
                    }
                    Step::Respond { count, .. } => partial += u32::from(count > 0),
                    Step::Write { connection, .. } => between += u32::from(is_announced(&steps[..at], connection)),
                    _ => {}
                }
                let is_outstanding = |number: &u32| is_announced(&steps[..=at], *number);
                at_once += u32::from((1..=3).filter(is_outstanding).count() > 1);
            }
        }
        assert!(partial > 10 && between > 10 && at_once > 3, "{partial} {between} {at_once}");
    }

    /// If the target receives no other message between the segments of a Response, each step sends
    /// all segments.
    #[test]
    fn a_response_is_sent_at_once_unless_the_target_interleaves() {
        let mut responses = 0;
        for step in announcing(false).flatten() {
            assert!(!matches!(step, Step::Respond { count: 1.., .. }), "{step}");
            responses += u32::from(matches!(step, Step::Respond { .. }));
        }
        assert!(responses > 20, "{responses} responses");
    }

    #[test]
    fn requests_have_all_depths_and_legal_flags() {
        let (mut depths_drawn, mut without_reads, mut longest) = (std::collections::BTreeSet::new(), 0, 0_u32);
        for step in announcing(true).flatten() {
            let Step::Request { private, depths, rtr, .. } = step else { continue };
            let most = if depths.is_some() { MAX_PRIVATE - DEPTHS } else { MAX_PRIVATE };
            assert!(private <= most && (depths.is_some() || rtr == [false; 3]), "{step}");
            longest = longest.max(private);
            depths_drawn.extend(depths.into_iter().flatten());
            without_reads += u32::from(depths.is_some_and(|[ird, _]| ird == 0));
        }
        assert!(longest >= MAX_PRIVATE - DEPTHS && without_reads > 5, "{longest} {without_reads}");
        assert!(depths_drawn.len() == 9 && depths_drawn.last() == Some(&0x3fff), "{depths_drawn:?}");
    }
}
