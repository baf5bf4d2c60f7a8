//! An SDP socket with a simple user, as a state machine: SDP on a Queue Pair of its own software
//! RNIC.
//!
//! [`SdpServer`] creates one socket for each connection. All Private Buffers, receives and
//! advertised sends are memory of that RNIC. This module opens no TCP connections. If the peer
//! suspends a connection, the owner of the socket opens the new TCP connection. A connection that
//! this side suspends cannot be resumed.

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
    /// Size in bytes of a Private Buffer. It is small, so that small receives are advertised too.
    pub const RECV_SIZE: u32 = 1000;

    /// A server whose settings use every transfer mechanism with sends of a few thousand bytes.
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
