//! Converts a datagram to a message, or returns the reason why the datagram is discarded. Section
//! numbers are those of the SDP draft.

use core::net::SocketAddr;

use weft_core::error::WireError;
use weft_core::wire::portmap::{Message, MessageType};

/// Why a datagram was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Discarded {
    /// The datagram is not a valid message of this version.
    #[error("{0}")]
    Malformed(WireError),
    /// The message has a type that only the other role receives.
    #[error("{0} is a message for the other role (client or server)")]
    WrongRole(MessageType),
    /// The message belongs to no known Request (sections 7.5.1 and 7.5.2).
    #[error("{0} matches no known Request")]
    Unknown(MessageType),
    /// A PMAccept has an SDP Address to which no connection is possible. Its port is 0, or its IP
    /// address is not the address of a single host.
    #[error("PMAccept has the SDP Address {0}, to which no connection is possible")]
    Nowhere(SocketAddr),
}

/// Returns the SDP Address of a PMAccept, if a connection to it is possible.
pub(super) fn sdp_address(accept: &Message) -> Result<SocketAddr, Discarded> {
    let address = SocketAddr::new(accept.addresses.accepting(), accept.ap_port);
    let nowhere = address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast();
    if nowhere { Err(Discarded::Nowhere(address)) } else { Ok(address) }
}

/// Parses a datagram. Discards a message whose type is not in `taken`.
pub(super) fn read(octets: &[u8], taken: [MessageType; 2]) -> Result<Message, Discarded> {
    let message = Message::parse(octets).map_err(Discarded::Malformed)?;
    if taken.contains(&message.message_type) { Ok(message) } else { Err(Discarded::WrongRole(message.message_type)) }
}
