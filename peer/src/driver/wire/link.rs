//! The link over the tester's own TCP.

use core::time::Duration;
use std::net::SocketAddr;

use tokio::time::timeout;

use super::engine::ConnectOptions;
use super::stack::WireStack;
use super::tester::WireTester;
use crate::driver::link_error::LinkError;
use crate::driver::tcp::{RealLink, SEND_TIMEOUT};
use crate::driver::tester::{Side, TesterConnection};

/// A target at a TCP address. The tester connects over its own TCP, so it can choose its TCP
/// segments.
#[derive(Debug)]
pub struct WireLink {
    stack: WireStack,
    pub(in crate::driver) target: SocketAddr,
    connect_timeout: Duration,
    send_timeout: Duration,
    /// Size in bytes of TCP's receive buffer. `None` means the default.
    pub(in crate::driver) receive_buffer: Option<u32>,
    /// The sequence number of the SYN. `None` means a random number.
    pub(in crate::driver) first_sequence: Option<u32>,
    pub(in crate::driver) real: RealLink,
}

impl WireLink {
    /// Creates a link to `target`. Its clock starts now. The connect time-out is 5 s, and the send
    /// time-out is 10 s.
    #[must_use]
    pub fn new(stack: &WireStack, target: SocketAddr) -> Self {
        WireLink {
            stack: stack.clone(),
            target,
            connect_timeout: Duration::from_secs(5),
            send_timeout: SEND_TIMEOUT,
            receive_buffer: None,
            first_sequence: None,
            real: RealLink::start(),
        }
    }

    /// Sets the time after which a connection attempt fails.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the time after which a send fails if the target accepts no bytes.
    #[must_use]
    pub fn with_send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// Returns the address that the next connection will come from.
    pub(in crate::driver) fn next_address(&self) -> SocketAddr {
        self.stack.next_address()
    }

    /// Connects to an address. `from` sets the tester's port. The tester has only one IP address.
    pub(in crate::driver) async fn connect_to(
        &mut self,
        address: SocketAddr,
        from: Option<SocketAddr>,
    ) -> Result<TesterConnection, LinkError> {
        let failed = |source| LinkError::Connect { address, source };
        let options = ConnectOptions {
            local_port: from.map(|from| from.port()).filter(|port| *port != 0),
            first_sequence: self.first_sequence,
            receive_buffer: self.receive_buffer,
        };
        let timing = (self.real.clock, self.send_timeout);
        let tester = WireTester::connect(&self.stack, address, options, timing).map_err(failed)?;
        timeout(self.connect_timeout, tester.established())
            .await
            .map_err(|_| LinkError::ConnectTimeout { address, after: self.connect_timeout })?
            .map_err(failed)?;
        let (own, _) = tester.addresses();
        let number = self.real.next_number();
        Ok(TesterConnection::new(Side::Wire(tester), number, &self.real.traffic, (own, address)))
    }
}
