//! Applications on top of the protocol layers, without IO.
//!
//! A [`Service`] gets each event of one connection and answers with commands. The same service runs
//! over TCP and over the virtual link. These are the applications:
//!
//! - [`Echo`]: the service of the builtin responder;
//! - [`EchoClient`]: the service of the builtin initiator;
//! - [`Exchange`]: one Send in each direction;
//! - [`RpingServer`] and `RpingClient`: `rping -s` and `rping -c`, on Queue Pairs;
//! - [`SdpServer`]: an SDP socket with a simple user.

mod driven_connection;
mod echo;
mod echo_client;
mod exchange;
mod plain_client;
mod rping;
mod sdp;

pub(crate) use driven_connection::WithService;
pub use driven_connection::{DrivenConnection, poll_transmit};
pub use echo::Echo;
pub use echo_client::EchoClient;
pub use exchange::{Exchange, Outcome};
pub(crate) use plain_client::PlainClient;
pub(crate) use rping::RpingClient;
pub use rping::RpingServer;
pub use sdp::{SdpServer, SdpUser};

use crate::connection::{Connection, Event};
use crate::time::Instant;

/// The application of one connection.
pub trait Service: Send {
    /// Handles an event of the connection. The service can call commands of `connection`.
    fn handle_event(&mut self, now: Instant, connection: &mut Connection, event: Event);

    /// Returns whether the driver may continue to read. A service that sends answers returns false
    /// while too many answers wait to be sent. TCP's window then stops the peer.
    fn is_ready(&self, connection: &Connection) -> bool {
        let _ = connection;
        true
    }
}

/// Passes all pending events to the service. Drivers call this function before and after they call
/// `poll_transmit`.
pub(crate) fn deliver_events(now: Instant, connection: &mut Connection, service: &mut (impl Service + ?Sized)) {
    while let Some(event) = connection.poll_event() {
        service.handle_event(now, connection, event);
    }
}
