//! A target while a run lasts.

use std::net::SocketAddr;

use weft_peer::portmap::TableError;
use weft_peer::verbs::RnicError;
use weft_peer::workload::WorkloadError;

use super::Target;
use super::kind::{Connector, Reached};

/// Seconds that a connection attempt may take.
pub(super) const CONNECT_SECONDS: f64 = 5.0;

/// Why a target is not there.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its address means nothing.
    #[error("target unreachable: {address}: {}", unresolved(.error))]
    Resolve {
        /// As the target file has it.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// An initiator cannot be waited for there.
    #[error("cannot listen on {address}: {error}: name an address of this machine and a port that is free")]
    Listen {
        /// As the target file has it.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The builtin responder does not start.
    #[error("the builtin responder does not start: {0}")]
    Builtin(std::io::Error),
    /// Its SDP socket has no memory.
    #[error("the builtin responder has no SDP socket: {0}")]
    Sdp(WorkloadError),
    /// Its port mapper's table.
    #[error("the builtin responder has no port mapper: {0}")]
    Table(TableError),
    /// Its RNIC does not open.
    #[error("the builtin responder has no RNIC: {0}")]
    Rnic(#[from] RnicError),
}

/// The resolver's own words, without those of the library in front of them.
fn unresolved(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once("lookup address information: ").map_or(text.clone(), |(_, why)| why.to_owned())
}

/// A target that can be connected to.
pub struct Live(Box<dyn Connector>);

impl Live {
    /// Starts a builtin target; resolves the address of any other. Nothing is sent to it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(target: &Target) -> Result<Self, OpenError> {
        Ok(Live(target.reach.open(target).await?))
    }

    /// The number of cases that may run at the same time; `requested` is 0 if the user did not
    /// choose.
    pub(crate) fn jobs(&self, requested: usize) -> usize {
        self.0.jobs(requested)
    }

    /// A new link for one case, to the service of `target`; its clock starts now.
    ///
    /// # Errors
    /// The builtin target has no RNIC; no port is free.
    pub(crate) fn link(&self, target: &Target) -> Result<Reached, OpenError> {
        self.0.link(target)
    }
}
