//! The link over the tester's own TCP.

use std::net::SocketAddr;

use tokio::time::timeout;

use super::engine::ConnectOptions;
use super::stack::WireStack;
use super::tester::WireTester;
use crate::driver::link_error::LinkError;
use crate::driver::tcp::{RealLink, TcpSettings};
use crate::driver::tester::{Side, TesterConnection};

/// A target at a TCP address. The tester connects over its own TCP, so it can choose its TCP
/// segments.
#[derive(Debug)]
pub struct WireLink {
    stack: WireStack,
    pub(in crate::driver) target: SocketAddr,
    pub(in crate::driver) settings: TcpSettings,
    /// The sequence number of the SYN. `None` means a random number.
    pub(in crate::driver) first_sequence: Option<u32>,
    pub(in crate::driver) real: RealLink,
}

impl WireLink {
    /// Creates a link to `target`. Its clock starts now.
    #[must_use]
    pub fn new(stack: &WireStack, target: SocketAddr) -> Self {
        WireLink {
            stack: stack.clone(),
            target,
            settings: TcpSettings::default(),
            first_sequence: None,
            real: RealLink::start(),
        }
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
        let TcpSettings { connect_timeout, send_timeout, receive_buffer } = self.settings;
        let options = ConnectOptions {
            local_port: from.map(|from| from.port()).filter(|port| *port != 0),
            first_sequence: self.first_sequence,
            receive_buffer,
        };
        let timing = (self.real.clock, send_timeout);
        let tester = WireTester::connect(&self.stack, address, options, timing).map_err(failed)?;
        timeout(connect_timeout, tester.established())
            .await
            .map_err(|_| LinkError::ConnectTimeout { address, after: connect_timeout })?
            .map_err(failed)?;
        let (own, _) = tester.addresses();
        let number = self.real.next_number();
        Ok(TesterConnection::new(Side::Wire(tester), number, &self.real.traffic, (own, address)))
    }
}
