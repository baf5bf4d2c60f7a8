//! An SDP socket with a simple user, as a machine: SDP on a Queue Pair of a software RNIC of its
//! own.
//!
//! [`SdpServer`] makes one for each connection. Every one of its Private Buffers, receives and
//! advertised sends is memory of that RNIC. What is absent: sockets, and accepting the connection
//! that resumes one that this side suspended; the owner of the socket connects where the peer
//! suspended.

mod end;
mod user;

pub(crate) use end::SdpEnd;
pub use user::SdpUser;

use crate::hostile::Deviations;
use crate::sdp::{Policy, Role, Settings};
use crate::time::Instant;
use crate::workload::WorkloadError;

/// Makes the SDP end of each connection.
#[derive(Debug, Clone)]
pub struct SdpServer {
    /// What runs on it.
    pub user: SdpUser,
    /// Which part it plays in SDP's start-up.
    pub role: Role,
    /// What its side wants.
    pub settings: Settings,
    /// What it does wrong.
    pub deviations: Deviations,
}

impl SdpServer {
    /// Octets of a Private Buffer: few, so that small receives are advertised.
    pub const RECV_SIZE: u32 = 1000;

    /// An end whose settings use each mechanism with sends of a few thousand octets.
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

    /// TCP is there.
    ///
    /// # Errors
    /// There is no such RNIC.
    pub(crate) fn start(&self, now: Instant) -> Result<SdpEnd, WorkloadError> {
        SdpEnd::new(now, self)
    }
}
