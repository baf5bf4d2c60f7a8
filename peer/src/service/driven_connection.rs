//! The driver's interface to one side of a connection. The interface is the same for all protocols
//! that a connection can use.

use super::{Service, deliver_events};
use crate::connection::{Connection, Transmit};
use crate::time::Instant;
use crate::verbs::{LlpHandle, Rnic, TransmitResult};

/// One side of a connection, together with its user. The methods correspond to the methods of
/// [`Connection`]. After each call that changes the state of the connection, the driver has to poll
/// in the same way as for a [`Connection`].
pub trait DrivenConnection: Send {
    /// Handles received bytes. The driver can split the stream into calls at any position.
    fn handle_octets(&mut self, now: Instant, octets: &[u8]);

    /// Handles the peer's FIN: the peer closed its half of the connection.
    fn handle_fin(&mut self, now: Instant);

    /// Handles a reset of the connection.
    fn handle_reset(&mut self, now: Instant);

    /// Handles the deadlines that have passed at `now`.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// Lets the user of the connection act.
    fn serve(&mut self, _now: Instant) {}

    /// Returns the next action on TCP: bytes to send, FIN or reset.
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit>;

    /// Returns the time at which the driver has to call [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Returns whether the driver may continue to read.
    fn is_ready(&self) -> bool {
        true
    }

    /// Returns whether the connection is over and everything was sent.
    fn is_over(&self) -> bool;

    /// Returns the peer's port if the peer has suspended the connection and its TCP stream has
    /// ended. This side then has to open a new TCP connection to this port. Later calls return
    /// `None`.
    fn poll_reconnect(&mut self) -> Option<u16> {
        None
    }

    /// Continues on a new, established TCP connection. All later calls concern the new TCP
    /// connection.
    fn handle_reconnected(&mut self, _now: Instant) {}
}

/// Returns the next action of the stream `llp` on TCP, with at most `most` bytes.
pub fn poll_transmit(rnic: &mut Rnic, now: Instant, llp: LlpHandle, most: usize) -> Option<Transmit> {
    let mut octets = Vec::new();
    let sent = rnic.poll_transmit(now, llp, |slices| {
        slices.iter().for_each(|slice| octets.extend_from_slice(slice));
        octets.truncate(most);
        octets.len()
    });
    match sent {
        TransmitResult::Nothing => None,
        TransmitResult::Octets(_) => Some(Transmit::Octets(octets.into())),
        TransmitResult::Fin => Some(Transmit::Fin),
        TransmitResult::Reset => Some(Transmit::Reset),
    }
}

/// A [`Connection`] with its [`Service`].
pub(crate) struct WithService {
    pub(crate) connection: Connection,
    pub(crate) service: Box<dyn Service>,
}

impl DrivenConnection for WithService {
    fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        self.connection.handle_octets(now, octets);
    }

    fn handle_fin(&mut self, now: Instant) {
        self.connection.handle_fin(now);
    }

    fn handle_reset(&mut self, now: Instant) {
        self.connection.handle_reset(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }

    fn serve(&mut self, now: Instant) {
        deliver_events(now, &mut self.connection, &mut *self.service);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.connection.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    fn is_ready(&self) -> bool {
        self.service.is_ready(&self.connection)
    }

    fn is_over(&self) -> bool {
        self.connection.is_over()
    }
}
