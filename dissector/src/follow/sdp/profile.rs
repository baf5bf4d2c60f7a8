//! The sequence that started iWARP under an SDP connection, derived from the carrier of the Hello
//! and from the start-up frames.

use weft_core::wire::mpa::StartupKind;

use crate::direction::Direction;
use crate::follow::connection::Connection;
use crate::parse::Carrier;

/// The sequence that started iWARP. Rules decide which of the two texts it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Hello in streaming mode; its receiver sends the MPA Request.
    Swapped,
    /// Hello in streaming mode, and no start-up frames.
    Bare,
    /// Hello in streaming mode, then the MPA Request of the same end.
    Natural,
    /// The same with MPA revision 2.
    Enhanced,
    /// Hello in the private data of the MPA Request.
    PrivateData,
}

impl Profile {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Profile::Swapped => "swapped",
            Profile::Bare => "bare",
            Profile::Natural => "natural",
            Profile::Enhanced => "enhanced",
            Profile::PrivateData => "private-data",
        }
    }

    /// The profile, once something shows it. `connecting` sent the Hello, which came by `carrier`.
    pub(super) fn of(carrier: Carrier, connecting: Direction, is_acked: bool, connection: &Connection) -> Option<Self> {
        if carrier == Carrier::PrivateData {
            return Some(Profile::PrivateData);
        }
        let of = |direction: Direction| connection.startup[direction].filter(|seen| seen.kind == StartupKind::Request);
        if of(connecting.peer()).is_some() {
            return Some(Profile::Swapped);
        }
        match of(connecting) {
            Some(request) if request.revision >= 2 => Some(Profile::Enhanced),
            Some(_) => Some(Profile::Natural),
            None if is_acked && connection.startup == [None; 2] => Some(Profile::Bare),
            None => None,
        }
    }
}
