//! Requests to a PM Client, and their results.

use core::fmt;
use core::net::SocketAddr;

use weft_core::wire::portmap::{Addresses, Message, MessageType, PmTime};

/// One question: where is SDP spoken for this service?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ask {
    /// UDP address of the port mapper: of the service's own host, or of another one that maps for
    /// it.
    pub mapper: SocketAddr,
    /// The Conventional Address of the service, where TCP without SDP would go.
    pub service: SocketAddr,
    /// The source of the future connection: CpIPAddr and CpPort. Its family is that of `service`.
    pub connecting: SocketAddr,
}

impl Ask {
    /// The PMReq (section 7.4).
    ///
    /// # Errors
    /// A port is 0, or the addresses are of two families, for which the message has no room.
    pub(crate) fn request(&self, assoc_handle: u64) -> Result<Message, AskError> {
        if self.service.port() == 0 || self.connecting.port() == 0 || self.mapper.port() == 0 {
            return Err(AskError::NoPort);
        }
        let addresses = match (self.connecting, self.service) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => Addresses::V4 { connecting: *from.ip(), accepting: *to.ip() },
            (SocketAddr::V6(from), SocketAddr::V6(to)) => Addresses::V6 { connecting: *from.ip(), accepting: *to.ip() },
            _ => return Err(AskError::Families),
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

/// Why a request is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Of a service, a connecting end or a port mapper.
    #[error("a request needs a source port and a service port other than 0")]
    NoPort,
    /// A message has one IPV for both addresses.
    #[error("the connecting and the accepting address are of different families")]
    Families,
    /// The same service is being requested from the same end: one connection at a time can come
    /// from there.
    #[error("the same connection is already being requested")]
    InFlight,
    /// Too many questions are open.
    #[error("too many requests are outstanding")]
    Busy,
}

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Connect here and set up SDP; soon, when `pm_time` is 0 (section 7.3.1.4).
    Sdp {
        /// The SDP Address.
        address: SocketAddr,
        /// How long the answer may be kept.
        pm_time: PmTime,
        /// It was kept from an earlier answer; nothing was sent.
        cached: bool,
    },
    /// Connect here, in plain streaming mode.
    Conventional {
        /// The Conventional Address.
        address: SocketAddr,
        /// Why.
        why: Fallback,
    },
}

impl Resolution {
    /// Where to connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        match self {
            Resolution::Sdp { address, .. } | Resolution::Conventional { address, .. } => *address,
        }
    }
}

/// Why a service is reached without SDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// A PMDeny.
    Denied,
    /// No answer to the last repetition either (section 7.5.1).
    Silent,
    /// Its host has no port mapper: ICMP reported that the port is closed.
    Absent,
    /// The SDP Address reset the connection (section 7.5.1).
    Reset,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fallback::Denied => "denied",
            Fallback::Silent => "no answer",
            Fallback::Absent => "no port mapper there",
            Fallback::Reset => "the SDP Address reset the connection",
        })
    }
}
