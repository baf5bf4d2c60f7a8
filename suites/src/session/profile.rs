//! What the sessions with a target may do.

use super::drive_step::Commands;
use super::echo_draw::{SHORT_BATCH, SHORT_BURST};
use super::portmap_step::FEW_PORTS;
use super::service::SessionService;
use crate::model::{Capability, Role};
use crate::targets::Target;

/// Size in bytes of a Send that every echo service is assumed to accept.
pub(crate) const MAX_SEND: u32 = 4000;
/// Maximum number of bytes of private data in the sessions of the suites. Some known
/// implementations accept no more.
pub(crate) const FEW_PRIVATE: u32 = 256;
/// Maximum number of bytes of private data (RFC 5044 section 7.1.1).
pub(crate) const MAX_PRIVATE: u32 = 512;
/// Number of bytes of IRD and ORD in an enhanced frame. They are a part of the private data.
pub(super) const DEPTHS: u32 = 4;

/// What sessions with a target may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) service: SessionService,
    /// Maximum number of connections at a time.
    pub(crate) connections: u32,
    /// Largest Send in bytes of most sessions. The echo service accepts it.
    pub(crate) max_send: u32,
    /// Largest message in bytes of the few sessions with long steps. If it is not greater than
    /// `max_send`, no session has long steps.
    pub(crate) longest: u32,
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
    /// Whether some sessions have the rare steps of `extra_draw`.
    pub(crate) extras: bool,
    /// The commands that a driven SDP socket executes.
    pub(crate) commands: Commands,
    /// Whether the user of a driven SDP socket shuts down or aborts connections.
    pub(crate) user_ends: bool,
    /// Whether the user of a driven SDP socket suspends connections. The target then also serves
    /// the next connection.
    pub(crate) suspends: bool,
    /// Whether the tester suspends and resumes connections of an SDP socket. The target then
    /// connects to another port of the tester.
    pub(crate) resumes: bool,
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
            longest: 0,
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
            extras: false,
            commands: Commands::of(target),
            user_ends: false,
            suspends: false,
            resumes: false,
            is_initiator: target.role() == Role::Initiator,
            ports: FEW_PORTS,
            v6: service == SessionService::PortMapper && target.maps_v6(),
        }
    }
}
