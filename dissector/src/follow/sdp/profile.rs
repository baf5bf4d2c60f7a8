//! The start-up sequence of iWARP below an SDP connection. The monitor derives it from the start-up
//! frames, and from the position of the Hello. The Hello is in streaming mode or in private data.

use weft_core::wire::mpa::StartupKind;

use crate::direction::Direction;
use crate::follow::connection::Connection;
use crate::format::named;
use crate::parse::Carrier;

named! {
    /// The start-up sequence of iWARP below an SDP connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Profile {
        /// Hello in streaming mode, then the MPA Request of the Hello's receiver.
        Swapped = "swapped",
        /// Hello in streaming mode, and no start-up frames.
        Bare = "bare",
        /// Hello in streaming mode, then the MPA Request of the Hello's sender.
        Natural = "natural",
        /// Hello in streaming mode, then the MPA Request of the Hello's sender, with MPA revision
        /// 2.
        Enhanced = "enhanced",
        /// Hello in the private data of the MPA Request.
        PrivateData = "private-data",
    }
}

impl Profile {
    /// Returns the start-up sequence; `None` until the capture shows it. `connecting` is the
    /// direction of the Hello, and `is_acked` means that the HelloAck was sent.
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
