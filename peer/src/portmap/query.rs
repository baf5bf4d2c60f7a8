//! Queries to a PM Client, and their results. Section numbers are those of the SDP draft.

use core::net::SocketAddr;

use weft_core::wire::portmap::{Addresses, Message, MessageType, PmTime};

/// A query for the SDP Address of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Query {
    /// UDP address of the port mapper. The port mapper is on the host of the service, or on another
    /// host that answers for the host of the service.
    pub mapper: SocketAddr,
    /// Conventional Address of the service, to which TCP connections without SDP go.
    pub service: SocketAddr,
    /// Source address of the future connection: CpIPAddr and CpPort. It has the same address family
    /// as `service`.
    pub connecting: SocketAddr,
}

impl Query {
    /// Returns the PMReq (section 7.4).
    ///
    /// # Errors
    /// A port is 0, or the addresses have different families. A PMReq has one IP version field
    /// (IPV) for both addresses.
    pub(crate) fn request(&self, assoc_handle: u64) -> Result<Message, QueryError> {
        if self.service.port() == 0 || self.connecting.port() == 0 || self.mapper.port() == 0 {
            return Err(QueryError::NoPort);
        }
        let addresses = match (self.connecting, self.service) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => Addresses::V4 { connecting: *from.ip(), accepting: *to.ip() },
            (SocketAddr::V6(from), SocketAddr::V6(to)) => Addresses::V6 { connecting: *from.ip(), accepting: *to.ip() },
            _ => return Err(QueryError::Families),
        };
        Ok(Message {
            message_type: MessageType::PM_REQ,
            pm_time: PmTime::ONCE,
            ap_port: self.service.port(),
            cp_port: self.connecting.port(),
            assoc_handle,
            addresses,
            mapped: None,
        })
    }
}

/// Why no PMReq is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The port of the service, of the connecting address or of the port mapper is 0.
    #[error("the ports of the source, of the service and of the port mapper must not be 0")]
    NoPort,
    /// The addresses have different families, but a message has one IPV for both.
    #[error("the source address and the service address are of different IP families")]
    Families,
    /// The same service is already being requested from the same connecting address and port. TCP
    /// permits only one connection at a time between the same two addresses and ports.
    #[error("a request for the same connection is already in progress")]
    InFlight,
    /// Too many queries are open.
    #[error("too many requests are outstanding; wait until one of them is answered")]
    Busy,
}

/// Result of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Connect to this address and use SDP. If `pm_time` is 0, connect soon (section 7.3.1.4).
    Sdp {
        /// The SDP Address.
        address: SocketAddr,
        /// How long the answer may be kept.
        pm_time: PmTime,
        /// The answer comes from the cache, and no PMReq was sent.
        cached: bool,
    },
    /// Connect to this address and use TCP without SDP.
    Conventional {
        /// The Conventional Address.
        address: SocketAddr,
        /// Why SDP is not used.
        why: Fallback,
    },
}

impl Resolution {
    /// Returns the address to connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        match self {
            Resolution::Sdp { address, .. } | Resolution::Conventional { address, .. } => *address,
        }
    }
}

/// Why a connection does not use SDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fallback {
    /// The port mapper answered with a PMDeny.
    #[error("the port mapper denied the request")]
    Denied,
    /// The port mapper answered none of the PMReqs (section 7.5.1).
    #[error("the port mapper did not answer")]
    Silent,
    /// The host has no port mapper: ICMP reported that the port is closed.
    #[error("the host has no port mapper")]
    Absent,
    /// The SDP Address reset the connection (section 7.5.1).
    #[error("the SDP Address reset the connection")]
    Reset,
}
