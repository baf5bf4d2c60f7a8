//! Determines markers and CRC of a direction from the start-up frames of both directions (RFC 5044
//! sections 4.3, 4.4, 7.1; Appendix C).

use weft_core::wire::mpa::startup::{FLAG_C, FLAG_M, FLAG_R};
use weft_core::wire::mpa::{RawStartup, StartupKind};

use super::hello::Hello;

/// The start-up frame of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnStartup {
    /// Request or Reply.
    pub kind: StartupKind,
    /// The fixed part of the frame (20 octets).
    pub header: RawStartup,
}

impl OwnStartup {
    /// Returns whether flag M is set. A set flag M means that the sender wants to receive markers.
    pub(crate) fn wants_markers(&self) -> bool {
        self.header.flags & FLAG_M != 0
    }

    /// Returns whether flag C is set. A set flag C means that the sender wants CRCs in both
    /// directions.
    pub(crate) fn wants_crc(&self) -> bool {
        self.header.flags & FLAG_C != 0
    }

    /// Returns whether flag R is set. A set flag R means that the sender rejects the connection.
    pub(crate) fn rejects(&self) -> bool {
        self.header.flags & FLAG_R != 0
    }
}

/// The settings for markers and CRC in one direction. An unknown setting is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether the direction has markers.
    pub markers: Option<bool>,
    /// Whether CRCs are in use.
    pub crc: Option<bool>,
    /// Whether the connection was rejected.
    pub rejected: bool,
}

/// The state of the other direction, as far as a reader needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PeerView {
    /// The start-up frame of the other direction.
    pub startup: Option<OwnStartup>,
    /// Whether a start-up frame of the other direction may still be found.
    pub undecided: bool,
    /// Whether the other direction is not read yet, because octets before its first captured octet
    /// may still arrive.
    pub held_back: bool,
    /// Whether the other direction certainly does not start with a start-up frame.
    pub has_no_startup: bool,
    /// The SDP Hello of the other direction.
    pub hello: Option<Hello>,
}

/// Determines the settings of a direction from its start-up frame `own` and the start-up frame
/// `peer` of the other direction. Unknown settings stay `None`.
pub(super) fn negotiate(own: Option<&OwnStartup>, peer: Option<&OwnStartup>) -> Settings {
    let frames = [own, peer];
    let reply = frames.into_iter().flatten().find(|frame| frame.kind == StartupKind::Reply);
    let rdmac = reply.is_some_and(|frame| frame.header.revision == 0 && frame.wants_markers());
    let markers = if rdmac { Some(true) } else { peer.map(OwnStartup::wants_markers) };
    let wanted = frames.into_iter().flatten().any(OwnStartup::wants_crc);
    let crc = if rdmac || wanted {
        Some(true)
    } else if frames.iter().all(Option::is_some) {
        Some(false)
    } else {
        None
    };
    Settings { markers, crc, rejected: reply.is_some_and(OwnStartup::rejects) }
}
