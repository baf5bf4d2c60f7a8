//! The link over real TCP to a target that connects to the tester.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::time::timeout_at;

use super::accept_error::is_connection_error;
use super::link_error::LinkError;
use super::tcp::{RealLink, SEND_TIMEOUT, bound_socket};
use super::tcp_tester::reset;
use super::tester::TesterConnection;
use crate::time::Instant;

/// Listens for the connections of targets. Clones listen on the same address.
#[derive(Debug, Clone)]
pub struct LinkListener {
    listener: Arc<TcpListener>,
    address: SocketAddr,
}

/// Maximum number of connections that TCP queues until the tester accepts them.
const BACKLOG: u32 = 16;

impl LinkListener {
    /// Listens on `address`. Port 0 picks a free port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = Arc::new(bound_socket(address)?.listen(BACKLOG)?);
        let address = listener.local_addr()?;
        Ok(LinkListener { listener, address })
    }

    /// Returns the address that the listener is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Creates a new link on this listener. Its clock starts now, and its traffic log is empty.
    #[must_use]
    pub fn link(&self) -> AcceptLink {
        AcceptLink { listener: self.clone(), real: RealLink::start() }
    }

    /// Resets the connections that arrived while no link was accepting.
    pub async fn reset_pending(&self) {
        // Even if the deadline has passed, `timeout_at` returns a connection that is queued.
        while let Ok(Ok((stream, _))) = timeout_at(tokio::time::Instant::now(), self.listener.accept()).await {
            // The connection is closed even if no RST could be sent.
            let _ = reset(stream);
        }
    }
}

/// The link to a target that connects to the tester.
#[derive(Debug)]
pub struct AcceptLink {
    listener: LinkListener,
    pub(super) real: RealLink,
}

impl AcceptLink {
    /// Returns the address that the listener is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.address
    }

    pub(super) async fn accept(&mut self, deadline: Instant) -> Result<Option<TesterConnection>, LinkError> {
        let failed = |source| LinkError::Io { doing: "accept", source };
        loop {
            let accepted = timeout_at(self.real.clock.to_tokio(deadline), self.listener.listener.accept()).await;
            let (stream, target) = match accepted {
                Err(_) => return Ok(None),
                Ok(Ok(accepted)) => accepted,
                Ok(Err(error)) if is_connection_error(&error) => continue,
                Ok(Err(error)) => return Err(failed(error)),
            };
            return self.real.connection(stream, target, SEND_TIMEOUT).map(Some).map_err(failed);
        }
    }
}
