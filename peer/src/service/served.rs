//! A connection and its user as one, for a driver that need not know what is inside.

use super::{Service, deliver_events};
use crate::connection::{Connection, Transmit};
use crate::time::Instant;

/// What is driven. The methods are those of [`Connection`]; after each that changes something, a
/// driver polls as it does there.
pub trait Served: Send {
    /// Octets came in, cut in any way.
    fn handle_octets(&mut self, now: Instant, octets: &[u8]);

    /// The peer closed its half.
    fn handle_fin(&mut self, now: Instant);

    /// The connection was reset.
    fn handle_reset(&mut self, now: Instant);

    /// Time has come to `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// Lets the user of the connection act.
    fn serve(&mut self, now: Instant);

    /// The next thing to send.
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit>;

    /// When it wants to be called, if nothing else happens.
    fn poll_timeout(&self) -> Option<Instant>;

    /// May the driver read on?
    fn is_ready(&self) -> bool {
        true
    }

    /// Nothing more happens.
    fn is_over(&self) -> bool;

    /// Its stream has ended, and it wants to connect anew to this port of the peer's address:
    /// reported once.
    fn poll_reconnect(&mut self) -> Option<u16> {
        None
    }

    /// It is connected there. Later events concern the new stream.
    fn handle_reconnected(&mut self, _now: Instant) {}
}

/// A connection with a service for user.
pub(crate) struct WithService {
    pub(crate) connection: Connection,
    pub(crate) service: Box<dyn Service>,
}

impl Served for WithService {
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
