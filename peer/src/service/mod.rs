//! What an endpoint does with a connection: code above the protocol, still without IO.
//!
//! A [`Service`] gets each event of one connection and answers with commands. The same service runs
//! over TCP and over the virtual link. [`Echo`] is the builtin responder's, [`EchoClient`] the
//! builtin initiator's, [`Exchange`] that of one Send there and one back. [`RpingServer`] is `rping
//! -s`, and `RpingClient` `rping -c`, on Queue Pairs in place of connections, and [`SdpServer`] an
//! SDP socket.

mod echo;
mod echo_client;
mod exchange;
mod plain;
mod rping;
mod sdp;
mod served;

pub use echo::Echo;
pub use echo_client::EchoClient;
pub use exchange::{Exchange, Outcome};
pub(crate) use plain::PlainEnd;
pub(crate) use rping::RpingClient;
pub use rping::RpingServer;
pub use sdp::{SdpServer, SdpUser};
pub use served::Served;
pub(crate) use served::WithService;

use crate::connection::{Connection, Event};
use crate::time::Instant;

/// The user of one connection.
pub trait Service: Send {
    /// `event` happened; commands may be given.
    fn handle_event(&mut self, now: Instant, connection: &mut Connection, event: Event);

    /// May the driver read on? A service that answers what it reads returns false while its answers
    /// pile up; TCP then holds the peer back.
    fn is_ready(&self, connection: &Connection) -> bool {
        let _ = connection;
        true
    }
}

/// Hands all events to the service. Drivers call it before they poll transmits, and again after
/// them.
pub(crate) fn deliver_events(now: Instant, connection: &mut Connection, service: &mut (impl Service + ?Sized)) {
    while let Some(event) = connection.poll_event() {
        service.handle_event(now, connection, event);
    }
}
