//! Markers and CRC of a direction, from the start-up frames of both (RFC 5044 sections 4.3, 4.4,
//! 7.1; Appendix C).

use weft_core::wire::mpa::StartupKind;

use super::{OwnStartup, Settings};

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
    pub hello: Option<super::Hello>,
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
