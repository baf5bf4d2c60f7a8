//! Finds the start-up sequence of iWARP below an SDP connection. The monitor derives this sequence
//! from the start-up frames, and from the position of the Hello. The Hello is in streaming mode or
//! in private data.

use weft_core::wire::mpa::StartupKind;

use crate::direction::Direction;
use crate::follow::connection::Connection;
use crate::format::named;
use crate::parse::Carrier;

named! {
    /// The start-up sequence of iWARP below an SDP connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Profile {
        /// Hello in streaming mode, then an MPA Request from the receiver of the Hello.
        Swapped = "swapped",
        /// Hello in streaming mode, and no start-up frames.
        Bare = "bare",
        /// Hello in streaming mode, then an MPA Request from the sender of the Hello.
        Natural = "natural",
        /// Hello in streaming mode, then an MPA Request of revision 2 from the sender of the Hello.
        Enhanced = "enhanced",
        /// Hello in the private data of the MPA Request.
        PrivateData = "private-data",
    }
}

impl Profile {
    /// Returns the start-up sequence; `None` until the capture shows which sequence it is.
    /// `connecting` is the direction of the Hello. `is_acked` is set if the HelloAck was sent.
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
