//! The good exchange with an SDP service: start-up; with an echo a few octets there and back, with
//! a socket that is driven (the target that connects is one) a few that it is told to send; a
//! graceful close.

use std::time::Duration;

use weft_core::wire::sdp::Mid;
use weft_peer::sdp::Role;
use weft_peer::service::SdpUser;

use super::talk::{Carrier, Item};
use crate::script::message::Message;
use crate::sdp::Draft;
use crate::stage::service::Sdp;
use crate::stage::{Arrival, Expectation, Stage, Stop};

/// What an echo gets.
const PAYLOAD: &[u8] = b"weft good exchange";
/// A command for a driven socket, and how many octets it sends then.
pub(super) const COMMAND: &[u8] = b"send 5\n";
pub(super) const COMMANDED: usize = 5;

impl Stage {
    pub(in crate::stage) async fn sdp_work(
        &mut self,
        service: &Sdp,
        number: u32,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        let at = expectation.at.as_ref();
        if service.role == Role::Connecting {
            let draft = Draft::new(Mid::HELLO_ACK);
            let hello_ack = Message::of_draft("HelloAck", draft);
            let alive = self.log.alive_before;
            self.sdp_welcome(number, &hello_ack, Duration::ZERO, expectation).await?;
            // Only the whole exchange says so.
            self.log.alive_before = alive;
        } else {
            let profile = self.target.description.sdp.start;
            if let Err(why) = self.sdp_greet(number, &super::start::hello(), profile, expectation).await? {
                return Ok(Err(why));
            }
        }
        let asked = match service.user {
            SdpUser::Echo => Some((PAYLOAD, PAYLOAD.len())),
            SdpUser::Drive => Some((COMMAND, COMMANDED)),
            SdpUser::Sink | SdpUser::Source => None,
        };
        if let Some((payload, due)) = asked {
            let mut draft = Draft::new(Mid::DATA);
            draft.payload = payload.to_vec();
            let data = Message::of_draft("Data", draft);
            self.sdp_put(number, &data, Carrier::default(), at).await?;
            let mut got = Vec::new();
            let deadline = self.link.now() + expectation.within;
            while got.len() < due {
                match self.next_item(number, deadline, at).await? {
                    Ok(Item::Message(heard)) if heard.mid == Mid::DATA => got.extend(heard.payload),
                    Ok(other) => return Ok(Err(format!("it sent {} where Data was due", other.name()))),
                    Err(none) => return Ok(Err(format!("it {none} where Data was due"))),
                }
            }
            if service.user == SdpUser::Echo && got != PAYLOAD {
                return Ok(Err("it sent other octets back".into()));
            }
        }
        let dis_conn = Message::of_draft("DisConn", Draft::new(Mid::DIS_CONN));
        self.sdp_put(number, &dis_conn, Carrier::default(), at).await?;
        let deadline = self.link.now() + expectation.within;
        loop {
            match self.next_item(number, deadline, at).await? {
                Ok(Item::Message(heard)) if heard.mid == Mid::DIS_CONN => break,
                // A source still has something to say.
                Ok(Item::Message(heard)) if heard.is_update() || service.user == SdpUser::Source => {}
                Ok(other) => return Ok(Err(format!("it sent {} where DisConn was due", other.name()))),
                Err(_) if service.user == SdpUser::Source => return Ok(Ok(())),
                Err(none) => return Ok(Err(format!("it {none} where DisConn was due"))),
            }
        }
        // The side whose DisConn was the last ends TCP.
        while self.receive(number, deadline, at).await? == Arrival::Octets {}
        Ok(Ok(()))
    }
}
