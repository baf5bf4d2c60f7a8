//! Markers and CRC of a direction, from the start-up frames of both (RFC 5044 sections 4.3, 4.4,
//! 7.1; Appendix C).

use weft_core::wire::mpa::startup::{FLAG_C, FLAG_M, FLAG_R};
use weft_core::wire::mpa::{RawStartup, StartupKind};

use super::hello::Hello;

/// A start-up frame that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnStartup {
    /// Request or Reply.
    pub kind: StartupKind,
    /// Its 20 octets.
    pub header: RawStartup,
}

impl OwnStartup {
    /// M.
    #[must_use]
    pub(crate) fn wants_markers(&self) -> bool {
        self.header.flags & FLAG_M != 0
    }

    /// C.
    #[must_use]
    pub(crate) fn wants_crc(&self) -> bool {
        self.header.flags & FLAG_C != 0
    }

    /// R.
    #[must_use]
    pub(crate) fn rejects(&self) -> bool {
        self.header.flags & FLAG_R != 0
    }
}

/// The known settings for markers and CRC in one direction; `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Does it have markers?
    pub markers: Option<bool>,
    /// Are CRCs in use?
    pub crc: Option<bool>,
    /// Was the connection rejected?
    pub rejected: bool,
}

/// What one direction knows of the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PeerView {
    /// The other direction's start-up frame.
    pub startup: Option<OwnStartup>,
    /// May the other direction's start-up frame still come?
    pub undecided: bool,
    /// Does the other direction wait for lower octets before it is read at all?
    pub held_back: bool,
    /// Does the other direction certainly begin with octets that are not a start-up frame?
    pub begins_otherwise: bool,
    /// The SDP Hello of the other direction.
    pub hello: Option<Hello>,
}

/// Markers and CRC in the direction that sent `own`, by both frames. Unknown settings stay `None`.
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
