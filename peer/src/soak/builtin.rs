//! The endpoint without an RNIC. It is a [`Connection`] whose user echoes messages or sends
//! messages.

use bytes::Bytes;
use fastrand::Rng;

use super::Remote;
use super::endpoint::Endpoint;
use crate::connection::{Connection, Event, Settings, Transmit};
use crate::mpa::PrivateDataTooLong;
use crate::service::{Echo, Service, deliver_events};
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct BuiltinEndpoint {
    connection: Connection,
    service: User,
}

/// The user of the connection.
#[derive(Debug)]
enum User {
    Echo,
    Sender,
}

impl Service for User {
    fn handle_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        match (&self, event) {
            (User::Echo, event) => Echo.handle_event(now, connection, event),
            // Ignore an error: a call fails only if the connection is ending.
            (User::Sender, Event::Established { .. }) => {
                let _ = (0..64).try_for_each(|_| connection.post_receive(8000));
            }
            (User::Sender, Event::HalfClosed | Event::Rejected(_) | Event::Unusable(_)) => connection.close(now),
            (User::Sender, _) => {}
        }
    }

    fn is_ready(&self, connection: &Connection) -> bool {
        matches!(self, User::Sender) || Echo.is_ready(connection)
    }
}

impl BuiltinEndpoint {
    pub(super) fn initiator(now: Instant, settings: Settings) -> Result<Self, PrivateDataTooLong> {
        Ok(BuiltinEndpoint { connection: Connection::initiate(now, settings)?, service: User::Sender })
    }

    pub(super) fn responder(now: Instant, settings: Settings) -> Self {
        BuiltinEndpoint { connection: Connection::respond(now, settings), service: User::Echo }
    }
}

impl Endpoint for BuiltinEndpoint {
    fn arrived(&mut self, now: Instant, arrived: &Transmit) {
        match arrived {
            Transmit::Octets(octets) => self.connection.handle_octets(now, octets),
            Transmit::Fin => self.connection.handle_fin(now),
            Transmit::Reset => self.connection.handle_reset(now),
        }
    }

    fn reads(&self) -> bool {
        self.service.is_ready(&self.connection)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }

    fn transmit(&mut self, now: Instant, _: &mut Rng) -> Option<Transmit> {
        deliver_events(now, &mut self.connection, &mut self.service);
        let transmit = self.connection.poll_transmit(now);
        deliver_events(now, &mut self.connection, &mut self.service);
        transmit
    }

    fn perform_action(&mut self, rng: &mut Rng, _: Option<&Remote>) {
        if matches!(self.service, User::Sender) {
            for _ in 0..rng.u32(1..=8) {
                // Ignore an error: the post fails if the connection is ending.
                let _ = self.connection.post_send(Bytes::from(vec![0x42; rng.usize(0..8000)]));
            }
        }
    }

    fn close(&mut self, now: Instant) {
        self.connection.close(now);
    }

    fn is_over(&self) -> bool {
        self.connection.is_over()
    }
}
