//! The kinds of problems. The requirement of a finding determines the kind.

use serde::Serialize;
use weft_core::requirement::{Catalogue, Level};
use weft_core::{RequirementId, requirement};

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// A wrong or missing CRC.
    Crc,
    /// Wrong lengths, padding or contents of FPDUs, so the receiver cannot find the next FPDU.
    Framing,
    /// Wrong or misplaced markers.
    Markers,
    /// An FPDU that is longer or shorter than the segments of TCP require.
    Size,
    /// A wrong key of a start-up frame.
    Key,
    /// Another violation of the start-up.
    Startup,
    /// Another violation of MPA.
    Mpa,
    /// More outstanding Read Requests than the endpoints negotiated.
    ReadDepth,
    /// A wrong header, or a wrong order of messages, of DDP or RDMAP.
    Message,
    /// A violation of SDP.
    Sdp,
    /// A violation of the port mapper.
    PortMapper,
    /// A violation of another protocol above RDMAP.
    Upper,
}

const CRC: &[RequirementId] = &[
    requirement!("MPA-4.1-6"),
    requirement!("MPA-4.3-1"),
    requirement!("MPA-4.3-8"),
    requirement!("MPA-4.4-1"),
    requirement!("MPA-4.4-9"),
    requirement!("MPA-4.4-14"),
    requirement!("MPA-4.4-15"),
    requirement!("MPA-4.4-16"),
    requirement!("MPA-4.4-17"),
    requirement!("MPA-4.4-18"),
    requirement!("MPA-4.4-21"),
    requirement!("MPA-4.4-22"),
    requirement!("MPA-7.1.1-12"),
    requirement!("MPA-B.1-1"),
    requirement!("MPA-C.1-8"),
    requirement!("DDP-3-7"),
];

const FRAMING: &[RequirementId] = &[
    requirement!("MPA-2-5"),
    requirement!("MPA-3-7"),
    requirement!("MPA-4.1-1"),
    requirement!("MPA-4.1-2"),
    requirement!("MPA-4.1-5"),
    requirement!("MPA-4.1-8"),
    requirement!("MPA-4.1-9"),
    requirement!("MPA-4.4-13"),
    requirement!("MPA-7.1.1-13"),
    requirement!("DDP-6.1-2"),
    requirement!("RDMAP-6.1-3"),
];

const MARKERS: &[RequirementId] = &[
    requirement!("MPA-1.2-5"),
    requirement!("MPA-2-3"),
    requirement!("MPA-4.2-1"),
    requirement!("MPA-4.2-2"),
    requirement!("MPA-4.2-4"),
    requirement!("MPA-4.2-5"),
    requirement!("MPA-4.3-3"),
    requirement!("MPA-4.3-4"),
    requirement!("MPA-4.3-5"),
    requirement!("MPA-4.3-7"),
    requirement!("MPA-4.3-10"),
    requirement!("MPA-4.3-11"),
    requirement!("MPA-4.3-12"),
    requirement!("MPA-4.3-13"),
    requirement!("MPA-4.3-14"),
    requirement!("MPA-4.3-15"),
    requirement!("MPA-4.3-16"),
    requirement!("MPA-7.1.1-6"),
    requirement!("MPA-7.1.1-7"),
    requirement!("MPA-7.1.1-8"),
    requirement!("MPA-7.1.1-9"),
    requirement!("MPA-7.1.2-21"),
];

const SIZE: &[RequirementId] = &[
    requirement!("MPA-3-2"),
    requirement!("MPA-3-3"),
    requirement!("MPA-3-4"),
    requirement!("MPA-3-8"),
    requirement!("MPA-4.5-1"),
    requirement!("MPA-4.5-2"),
    requirement!("MPA-4.5-3"),
    requirement!("MPA-4.5-6"),
    requirement!("MPA-4.5-8"),
    requirement!("MPA-5.1-1"),
    requirement!("MPA-5.1-4"),
    requirement!("MPA-5.1-6"),
    requirement!("MPA-A.1-1"),
    requirement!("MPA-A.1-3"),
    requirement!("MPA-A.1-4"),
    requirement!("MPA-A.3-3"),
    requirement!("MPA-A.5.1-1"),
    requirement!("MPA-7.2-1"),
    requirement!("DDP-5.2-12"),
];

const KEY: &[RequirementId] = &[requirement!("MPA-7.1.1-1"), requirement!("MPA-7.1.1-3"), requirement!("MPA-7.1.2-1")];

const READ_DEPTH: &[RequirementId] = &[
    requirement!("P2P-3-2"),
    requirement!("P2P-4.1-2"),
    requirement!("P2P-9.1-2"),
    requirement!("P2P-9.1-3"),
    requirement!("P2P-9.1-4"),
    requirement!("P2P-9.1-5"),
    requirement!("P2P-9.1-9"),
    requirement!("SDP-6.2.1.7-1"),
    requirement!("SDP-6.2.2.6-1"),
    requirement!("SDP-8.1.1-9"),
    requirement!("SDP-8.1.1-25"),
    requirement!("SDP-8.1.1-27"),
    requirement!("SDP-8.1.1-38"),
];

/// The requirements on the layout of a header. If the layout is wrong, the values of the fields are
/// wrong, too.
const LAYOUT: &[RequirementId] = &[requirement!("RDMAP-4.8-37")];

/// The requirements whose violation every receiver must detect. It must then end the connection.
const FATAL: &[RequirementId] = &[
    requirement!("MPA-4.1-1"),
    requirement!("MPA-4.1-2"),
    requirement!("MPA-4.1-6"),
    requirement!("MPA-4.2-4"),
    requirement!("MPA-4.3-4"),
    requirement!("MPA-7.1.1-1"),
    requirement!("MPA-7.1.1-3"),
    requirement!("P2P-9.1-4"),
    requirement!("P2P-9.1-5"),
    requirement!("DDP-4.1-2"),
    requirement!("DDP-4.1-3"),
    requirement!("DDP-4.1-12"),
    requirement!("DDP-4.3-5"),
    requirement!("DDP-4.3-6"),
    requirement!("DDP-4.3-7"),
    requirement!("DDP-4.3-9"),
    requirement!("DDP-4.3-10"),
    requirement!("DDP-4.4-1"),
    requirement!("RDMAP-4.4-1"),
];

/// The requirements whose violation is a Terminate without a reason: the sender of the Terminate
/// rejects a message that it must accept.
pub(super) const UNJUSTIFIED_TERMINATE: &[RequirementId] = &[
    requirement!("P2P-3-1"),
    requirement!("SDP-9.2-24"),
    requirement!("SDP-6.3.2.3-1"),
    requirement!("SDP-9.3-18"),
    requirement!("SDP-6.3.3.3-1"),
];

/// The requirements on start-up frames whose violation an endpoint cannot tolerate. Reserved bits
/// are not among them, because a receiver ignores them. Rev is not among them, because the
/// revisions of the receiver are unknown.
const STARTUP_FATAL: &[RequirementId] = &[
    requirement!("MPA-7.1.1-24"),
    requirement!("MPA-7.1.2-11"),
    requirement!("MPA-7.1.2-12"),
    requirement!("P2P-10-3"),
];

/// The requirements whose violation is an SDP message that is longer than the receive buffers.
pub(super) const SDP_TOO_LONG: &[RequirementId] = &[requirement!("SDP-10-2"), requirement!("SDP-10-6")];

/// The requirements whose violation is an SDP message without a credit.
pub(super) const SDP_NO_CREDIT: &[RequirementId] =
    &[requirement!("SDP-10.5-5"), requirement!("SDP-10.5-6"), requirement!("SDP-10.5-7")];

impl ProblemKind {
    /// The kind of a violation of `requirement`.
    pub(super) fn of(requirement: RequirementId) -> Self {
        let lists = [
            (CRC, ProblemKind::Crc),
            (FRAMING, ProblemKind::Framing),
            (MARKERS, ProblemKind::Markers),
            (SIZE, ProblemKind::Size),
            (KEY, ProblemKind::Key),
            (READ_DEPTH, ProblemKind::ReadDepth),
        ];
        if let Some((_, kind)) = lists.iter().find(|(ids, _)| ids.contains(&requirement)) {
            return *kind;
        }
        let row = requirement.row();
        match row.catalogue {
            Catalogue::Mpa if !row.section.starts_with("7.1") => ProblemKind::Mpa,
            Catalogue::Mpa | Catalogue::MpaP2p => ProblemKind::Startup,
            Catalogue::Ddp | Catalogue::Rdmap | Catalogue::Verbs => ProblemKind::Message,
            Catalogue::Sdp => ProblemKind::Sdp,
            Catalogue::SdpPm => ProblemKind::PortMapper,
            Catalogue::Iser | Catalogue::RpcRdma => ProblemKind::Upper,
        }
    }

    /// Returns whether the violation of `requirement`, and not that of `other`, is the root of a
    /// problem. Both violations are about the same frame, and have the same severity.
    #[must_use]
    pub fn is_root(requirement: RequirementId, other: RequirementId) -> bool {
        ProblemKind::rank_of(requirement) < ProblemKind::rank_of(other)
    }

    /// Rank of a violation of `requirement` as the root of a problem. The lowest rank of all
    /// violations in a frame is the root: for example, a wrong CRC also makes the message unusable.
    /// Of violations with the same kind, the requirement with the strongest level is the root.
    fn rank_of(requirement: RequirementId) -> (u8, bool, u8) {
        let level = match requirement.row().level {
            Level::Must | Level::MustNot | Level::Required => 0,
            Level::MustLower => 1,
            Level::Should | Level::ShouldNot | Level::Recommended | Level::May | Level::Optional => 2,
        };
        (ProblemKind::of(requirement).rank(), !LAYOUT.contains(&requirement), level)
    }

    fn rank(self) -> u8 {
        match self {
            ProblemKind::Key => 0,
            ProblemKind::Framing => 1,
            ProblemKind::Markers => 2,
            ProblemKind::Crc => 3,
            ProblemKind::Startup => 4,
            ProblemKind::ReadDepth => 5,
            ProblemKind::Message => 6,
            ProblemKind::Sdp => 7,
            ProblemKind::PortMapper => 8,
            ProblemKind::Mpa => 9,
            ProblemKind::Size => 10,
            ProblemKind::Upper => 11,
        }
    }
}

/// Returns whether every receiver must end the connection because of a violation of `requirement`.
pub(super) fn is_fatal(requirement: RequirementId) -> bool {
    FATAL.contains(&requirement)
}

/// Returns whether an endpoint that sent nothing after the start-up frames ends the connection
/// because of a violation of `requirement` in a start-up frame of MPA, or in a Hello or HelloAck.
pub(super) fn is_fatal_in_startup(requirement: RequirementId) -> bool {
    let row = requirement.row();
    STARTUP_FATAL.contains(&requirement) || row.catalogue == Catalogue::Sdp && row.section.starts_with("6.2.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requirement_determines_the_kind() {
        for (id, kind) in [
            (requirement!("MPA-4.1-6"), ProblemKind::Crc),
            (requirement!("MPA-7.1.1-1"), ProblemKind::Key),
            (requirement!("MPA-7.1.1-20"), ProblemKind::Startup),
            (requirement!("MPA-4.1-3"), ProblemKind::Mpa),
            (requirement!("P2P-9.1-4"), ProblemKind::ReadDepth),
            (requirement!("DDP-4.3-6"), ProblemKind::Message),
            (requirement!("SDP-6.2-1"), ProblemKind::Sdp),
            (requirement!("ISER-9.2-1"), ProblemKind::Upper),
        ] {
            assert_eq!(ProblemKind::of(id), kind, "{id}");
        }
    }
}
