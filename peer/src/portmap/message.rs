//! Converts a datagram to a message. Datagrams that are not valid messages are discarded, with the
//! reason.

use core::fmt;
use core::net::SocketAddr;

use weft_core::error::WireError;
use weft_core::wire::portmap::{Message, MessageType};

/// Why a datagram was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discarded {
    /// The datagram is not a valid message of this version.
    Malformed(WireError),
    /// The message has a type that this role sends and never receives.
    WrongRole(MessageType),
    /// The message belongs to no known Request (sections 7.5.1 and 7.5.2).
    Unknown(MessageType),
    /// A PMAccept has an SDP Address to which no connection is possible: port 0, or an address that
    /// is not that of one host.
    Nowhere(SocketAddr),
}

impl fmt::Display for Discarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Discarded::Malformed(error) => error.fmt(f),
            Discarded::WrongRole(what) => write!(f, "{what} goes the other way"),
            Discarded::Unknown(what) => write!(f, "{what} that belongs to nothing known"),
            Discarded::Nowhere(address) => write!(f, "PMAccept that names {address}, where nobody can listen"),
        }
    }
}

/// Returns the SDP Address of a PMAccept, if a connection to it is possible.
pub(super) fn sdp_address(accept: &Message) -> Result<SocketAddr, Discarded> {
    let address = SocketAddr::new(accept.addresses.accepting(), accept.ap_port);
    let nowhere = address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast();
    if nowhere { Err(Discarded::Nowhere(address)) } else { Ok(address) }
}

/// Reads a datagram that must contain a message of one of these types.
pub(super) fn read(octets: &[u8], taken: [MessageType; 2]) -> Result<Message, Discarded> {
    let message = Message::parse(octets).map_err(Discarded::Malformed)?;
    if taken.contains(&message.message_type) { Ok(message) } else { Err(Discarded::WrongRole(message.message_type)) }
}
