//! Probes an SDP socket that accepts connections: how the socket answers a Hello, and Data. A probe
//! gives no verdict.

use std::time::Duration;

use weft_core::wire::sdp::{FieldOrder, Mid};
use weft_peer::Instant;

use super::SdpSide;
use super::connection::{Item, SendFields};
use super::start::HelloAck;
use crate::stage::{Arrival, Attempt, Expectation, Message, Stop};
use crate::targets::{SdpStart, Service};

/// The payload that the tester sends.
const PAYLOAD: &[u8] = b"weft target check";

/// The behaviour of a socket.
#[derive(Debug)]
pub(crate) struct Behaviour {
    pub(crate) hello_ack: HelloAck,
    /// Bytes that the socket sent.
    pub(crate) sent: Vec<u8>,
    /// Whether the socket advertised bytes in its memory with a SrcAvail.
    pub(crate) advertised: bool,
    /// Whether the socket sent DisConn.
    pub(crate) closed: bool,
}

impl Behaviour {
    /// Returns the service with this behaviour. `None` if no known service behaves like this.
    pub(crate) fn service(&self) -> Option<Service> {
        match () {
            () if self.sent == PAYLOAD => Some(Service::SdpEcho),
            () if self.advertised || !self.sent.is_empty() => Some(Service::SdpSource),
            () if self.closed => Some(Service::SdpSink),
            () => None,
        }
    }
}

impl SdpSide<'_> {
    /// Starts SDP in this profile. Returns the HelloAck, or what arrived instead.
    pub(in crate::stage) async fn probe_hello(
        &mut self,
        profile: SdpStart,
        order: FieldOrder,
        within: Duration,
    ) -> Attempt<HelloAck> {
        let mut hello = super::start::hello();
        if let Some(draft) = &mut hello.draft {
            draft.order = Some(order);
        }
        let expectation = Expectation::preparation(within);
        self.start(&hello, profile, &expectation).await
    }

    /// Like [`probe_hello`](Self::probe_hello). Then sends a few bytes and closes the connection.
    /// Returns what the socket did. `quiet` is the wait for data. `within` is the wait for the
    /// HelloAck, and for the close.
    pub(in crate::stage) async fn probe(
        &mut self,
        profile: SdpStart,
        order: FieldOrder,
        (quiet, within): (Duration, Duration),
    ) -> Attempt<Behaviour> {
        let hello_ack = self.probe_hello(profile, order, within).await?;
        let mut behaviour = Behaviour { hello_ack, sent: Vec::new(), advertised: false, closed: false };
        self.put(&Message::data(PAYLOAD), SendFields::default()).await?;
        self.gather(self.connections.link.now() + quiet, &mut behaviour, true).await?;
        self.put(&Message::of_mid(Mid::DIS_CONN), SendFields::default()).await?;
        let deadline = self.connections.link.now() + within;
        self.gather(deadline, &mut behaviour, false).await?;
        if behaviour.closed {
            // The side that sent the last DisConn closes TCP.
            while self.connections.receive(self.number, deadline).await? == Arrival::Octets {}
        }
        Ok(behaviour)
    }

    /// Notes what arrives until the deadline. With `briefly`, stops when Data with payload, or a
    /// SrcAvail, has arrived.
    async fn gather(&mut self, deadline: Instant, behaviour: &mut Behaviour, briefly: bool) -> Result<(), Stop> {
        while !behaviour.closed && !(briefly && (behaviour.advertised || !behaviour.sent.is_empty())) {
            match self.next_item(deadline).await? {
                Ok(Item::Message(received)) => match received.mid {
                    Mid::DATA => behaviour.sent.extend(received.payload),
                    Mid::SRC_AVAIL => behaviour.advertised = true,
                    Mid::DIS_CONN => behaviour.closed = true,
                    _ => {}
                },
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok(())
    }
}
