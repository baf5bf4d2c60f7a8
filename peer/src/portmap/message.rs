//! From a datagram to a message: other datagrams are discarded, with the reason.

use core::fmt;
use core::net::SocketAddr;

use weft_core::error::WireError;
use weft_core::wire::portmap::{Message, MessageType};

/// Why a datagram was not acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discarded {
    /// It is no message of this version.
    Malformed(WireError),
    /// A message that this role sends and does not get.
    WrongRole(MessageType),
    /// It belongs to nothing that is known (sections 7.5.1 and 7.5.2).
    Unknown(MessageType),
    /// A PMAccept with an SDP Address that nobody can listen at: port 0, or no address of one host.
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

/// Where a PMAccept leads to, if that is a place to connect to.
pub(super) fn sdp_address(accept: &Message) -> Result<SocketAddr, Discarded> {
    let address = SocketAddr::new(accept.addresses.accepting(), accept.ap_port);
    let nowhere = address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast();
    if nowhere { Err(Discarded::Nowhere(address)) } else { Ok(address) }
}

/// Reads a datagram that one of these message types may be in.
pub(super) fn read(octets: &[u8], taken: [MessageType; 2]) -> Result<Message, Discarded> {
    let message = Message::parse(octets).map_err(Discarded::Malformed)?;
    if taken.contains(&message.message_type) { Ok(message) } else { Err(Discarded::WrongRole(message.message_type)) }
}
