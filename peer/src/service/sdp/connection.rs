//! The driver's interface to an SDP endpoint and its user.

use super::SdpServer;
use super::user::{UserRequest, UserState};
use crate::connection::Transmit;
use crate::sdp::{Event, ReceiveOutcome};
use crate::sdp_rnic::{Endpoint, Progress, Queues};
use crate::service::DrivenConnection;
use crate::time::Instant;
use crate::verbs::LateSegment;
use crate::workload::WorkloadError;

/// After this side closes, segments can still arrive, for example the peer's credit updates. The
/// RNIC drops these segments. If the RNIC reset the connection instead, bytes that TCP has not sent
/// yet would be lost.
const QUEUES: Queues = Queues { sends: 256, receives: 256, late: LateSegment::Drop };

/// One SDP endpoint and its user. See the [module](super).
#[derive(Debug)]
pub(crate) struct SdpConnection {
    endpoint: Endpoint,
    user: UserState,
    /// The peer has reset the TCP connection.
    reset: bool,
    /// The port to connect to after the TCP connection has ended.
    reconnect: Option<u16>,
}

impl SdpConnection {
    pub(super) fn new(now: Instant, server: &SdpServer) -> Result<Self, WorkloadError> {
        let endpoint = Endpoint::new(now, server.role, server.settings, QUEUES, &server.deviations)?;
        let mut end = SdpConnection { endpoint, user: UserState::new(server.user), reset: false, reconnect: None };
        end.run(now);
        Ok(end)
    }

    /// Performs everything that the user, the SDP state machine and the RNIC require now.
    fn run(&mut self, now: Instant) {
        loop {
            while let Some(request) = self.user.next(now, self.endpoint.machine_mut()) {
                self.execute(request);
            }
            match self.endpoint.advance(now) {
                Some(Progress::Event(event, octets)) => self.event(event, octets),
                Some(_) => {}
                None if self.endpoint.settle(now) => {}
                None => return,
            }
        }
    }

    fn execute(&mut self, request: UserRequest) {
        match request {
            UserRequest::Send { octets, urgent } => _ = self.endpoint.send(octets, urgent),
            UserRequest::Receive(len) => _ = self.endpoint.receive(len, false),
        }
    }

    fn event(&mut self, event: Event, octets: Vec<u8>) {
        match event {
            Event::Opened(_) => self.user.opened(),
            Event::Received { urgent, end, .. } => {
                let more = matches!(end, ReceiveOutcome::More | ReceiveOutcome::Canceled);
                self.user.received(octets, urgent, more);
            }
            Event::Suspended { reconnect } => self.reconnect = reconnect,
            _ => {}
        }
    }
}

impl DrivenConnection for SdpConnection {
    fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        self.endpoint.handle_octets(now, octets);
        self.run(now);
    }

    fn handle_fin(&mut self, now: Instant) {
        self.endpoint.handle_fin(now);
        self.run(now);
    }

    fn handle_reset(&mut self, now: Instant) {
        self.endpoint.handle_reset(now);
        self.run(now);
        self.reset = true;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.run(now);
    }

    fn serve(&mut self, now: Instant) {
        self.run(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.reset {
            return None;
        }
        let transmit = self.endpoint.poll_transmit(now);
        self.run(now);
        transmit
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.reset || self.endpoint.has_reset() {
            return None;
        }
        self.endpoint.poll_timeout().into_iter().chain(self.user.wait).min()
    }

    fn poll_reconnect(&mut self) -> Option<u16> {
        self.reconnect.take_if(|_| self.endpoint.awaits_reconnect())
    }

    fn handle_reconnected(&mut self, now: Instant) {
        self.reset = false;
        self.endpoint.reconnect(now);
        self.run(now);
    }

    fn is_over(&self) -> bool {
        self.reset || self.endpoint.is_over()
    }
}
