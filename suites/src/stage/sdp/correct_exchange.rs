//! The good exchange with an SDP service: start-up, the work of the service, and a graceful close.
//! An echo returns a few bytes. A socket that is driven by commands, or that connects, sends a few
//! bytes when it receives a command.

use std::time::Duration;

use weft_core::wire::sdp::Mid;
use weft_peer::sdp::Role;
use weft_peer::service::SdpUser;

use super::SdpSide;
use super::connection::{Item, SendFields};
use crate::sdp::ReceivedMessage;
use crate::stage::service::Sdp;
use crate::stage::{Arrival, Attempt, Expectation, Message};

/// The payload for an echo.
const PAYLOAD: &[u8] = b"weft good exchange";
/// A command for a driven socket. `COMMANDED` is the number of bytes that the socket then sends.
pub(super) const COMMAND: &[u8] = b"send 5\n";
pub(super) const COMMANDED: usize = 5;

impl SdpSide<'_> {
    pub(in crate::stage) async fn exchange(&mut self, service: &Sdp, expectation: &Expectation) -> Attempt {
        if service.role == Role::Connecting {
            let hello_ack = Message::of_mid(Mid::HELLO_ACK);
            let alive = self.connections.log.alive_before;
            self.answer_hello(&hello_ack, Duration::ZERO, expectation).await?;
            // Only the complete exchange shows that the target is alive.
            self.connections.log.alive_before = alive;
        } else {
            let profile = self.connections.target.description.sdp.start;
            self.start(&super::start::hello(), profile, expectation).await?;
        }
        let request = match service.user {
            SdpUser::Echo => Some((PAYLOAD, PAYLOAD.len())),
            SdpUser::Drive => Some((COMMAND, COMMANDED)),
            SdpUser::Sink | SdpUser::Source => None,
        };
        if let Some((payload, due)) = request {
            self.put(&Message::data(payload), SendFields::default()).await?;
            let mut got = Vec::new();
            let deadline = self.connections.link.now() + expectation.within;
            while got.len() < due {
                match self.next_item(deadline).await? {
                    Ok(Item::Message(received)) if received.mid == Mid::DATA => got.extend(received.payload),
                    // A target may change the Mode of its own half-connection at any time.
                    Ok(Item::Message(received)) if received.mid == Mid::MODE_CHANGE => {}
                    Ok(other) => return Err(format!("it sent {} when Data was expected", other.name()).into()),
                    Err(none) => return Err(format!("it {none} when Data was expected").into()),
                }
            }
            if service.user == SdpUser::Echo && got != PAYLOAD {
                return Err("it returned different bytes".into());
            }
        }
        self.put(&Message::of_mid(Mid::DIS_CONN), SendFields::default()).await?;
        let deadline = self.connections.link.now() + expectation.within;
        // The number of SrcAvails that no SendSm has answered, and whether Data is due because a
        // SendSm requested it.
        let (mut src_avails, mut is_due) = (0, false);
        loop {
            if src_avails > 0 && !is_due {
                // A source that has sent SrcAvail waits for an answer before it sends DisConn.
                self.put(&Message::of_mid(Mid::SEND_SM), SendFields::default()).await?;
                (src_avails, is_due) = (src_avails - 1, true);
            }
            match self.next_item(deadline).await? {
                Ok(Item::Message(received)) if received.mid == Mid::DIS_CONN => break,
                Ok(Item::Message(received)) if received.mid == Mid::SRC_AVAIL && service.user == SdpUser::Source => {
                    src_avails += 1;
                }
                Ok(Item::Message(received)) if service.user == SdpUser::Source && is_data(&received) => is_due = false,
                // A source may still send data.
                Ok(Item::Message(received)) if received.is_update() || service.user == SdpUser::Source => {}
                Ok(Item::Message(received)) if received.mid == Mid::MODE_CHANGE => {}
                Ok(other) => return Err(format!("it sent {} when DisConn was expected", other.name()).into()),
                Err(_) if service.user == SdpUser::Source => return Ok(()),
                Err(none) => return Err(format!("it {none} when DisConn was expected").into()),
            }
        }
        // The side that sent the last DisConn closes TCP.
        while self.connections.receive(self.number, deadline).await? == Arrival::Octets {}
        Ok(())
    }
}

/// Returns whether a message is Data with payload.
fn is_data(received: &ReceivedMessage) -> bool {
    received.mid == Mid::DATA && !received.is_update()
}
