//! A state machine that acts as an SDP socket with a simple user. It runs SDP on a Queue Pair of
//! its own software RNIC.
//!
//! [`SdpServer`] creates one socket for each connection. All Private Buffers, posted receives and
//! advertised sends of a socket are memory of the socket's RNIC. This module opens no TCP
//! connections. If the peer suspends a connection, the owner of the socket opens the new TCP
//! connection. A connection that this side suspends cannot be resumed.

mod connection;
mod user;

pub(crate) use connection::SdpConnection;
pub use user::SdpUser;

use crate::hostile::Deviations;
use crate::sdp::{Policy, Role, Settings};
use crate::time::Instant;
use crate::workload::WorkloadError;

/// Creates this side of each SDP connection.
#[derive(Debug, Clone)]
pub struct SdpServer {
    /// The user of the socket.
    pub user: SdpUser,
    /// The role in SDP start-up.
    pub role: Role,
    /// The SDP settings.
    pub settings: Settings,
    /// The deviations from the specification.
    pub deviations: Deviations,
}

impl SdpServer {
    /// Size in bytes of a Private Buffer. A receive is advertised only if it is larger than a
    /// Private Buffer. With this size, receives of a few thousand bytes are advertised.
    pub const RECV_SIZE: u32 = 1000;

    /// Creates a server. With its settings, the transfer of a few thousand bytes uses every
    /// transfer mechanism.
    #[must_use]
    pub fn new(user: SdpUser, role: Role, deviations: Deviations) -> Self {
        let policy = Policy { source_threshold: 500, sink_threshold: 0, src_avail_payload: 40, ..Policy::default() };
        let settings = Settings {
            recv_size: Self::RECV_SIZE,
            max_recv_size: 3 * Self::RECV_SIZE,
            des_rem_rcv_sz: Self::RECV_SIZE,
            policy,
            ..Settings::default()
        };
        SdpServer { user, role, settings, deviations }
    }

    /// Starts this side of a new TCP connection.
    ///
    /// # Errors
    /// The RNIC cannot create the objects of a connection.
    pub(crate) fn start(&self, now: Instant) -> Result<SdpConnection, WorkloadError> {
        SdpConnection::new(now, self)
    }
}
