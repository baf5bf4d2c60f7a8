//! Starts SDP on a TCP connection, in each start-up profile.

use std::time::Duration;

use weft_core::wire::mpa::startup::Enhanced;
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::sdp::{FieldOrder, Mid};

use super::SdpSide;
use super::connection::{Item, SdpConnection};
use crate::correct::{self, StartupFields};
use crate::model::SourceLocation;
use crate::sdp::{Counters, Draft, ReceivedMessage};
use crate::stage::Message;
use crate::stage::{Arrival, Expectation, NoFrame, Stop};
use crate::targets::SdpStart;

const EXPECTED: &str = "a HelloAck after a correct Hello";
/// Length of a Hello in bytes.
const HELLO_LEN: usize = 32;

/// The target's answer to a Hello.
pub(crate) type HelloAck = Box<ReceivedMessage>;

const fn counters(order: FieldOrder) -> Counters {
    Counters { bufs: 16, mseq: 0, mseq_ack: 0, order }
}

impl SdpSide<'_> {
    /// Sends `hello`, and follows the profile until HelloAck arrives.
    pub(in crate::stage) async fn open(
        &mut self,
        number: u32,
        hello: &Message,
        profile: SdpStart,
        expectation: &Expectation,
    ) -> Result<HelloAck, Stop> {
        match self.start(number, hello, profile, expectation).await? {
            Ok(hello_ack) => {
                self.connections.log.answered();
                self.recorder().met(number, expectation, EXPECTED, &hello_ack.describe());
                Ok(hello_ack)
            }
            Err(why) => Err(self.recorder().unmet(expectation, EXPECTED, &why)),
        }
    }

    /// Like [`open`](Self::open), without a verdict. The error describes what arrived instead.
    pub(in crate::stage) async fn start(
        &mut self,
        number: u32,
        hello: &Message,
        profile: SdpStart,
        expectation: &Expectation,
    ) -> Result<Result<HelloAck, String>, Stop> {
        let at = expectation.at.as_ref();
        let order =
            hello.draft.as_ref().and_then(|draft| draft.order).unwrap_or(self.connections.target.description.sdp.order);
        let hello = hello.filled(counters(order));
        let bufs = ReceivedMessage::read(&hello.octets, order).map_or(16, |hello| hello.bufs);
        if profile != self.connections.target.description.sdp.start {
            self.connections.log.exempt.extend(profile.breaks());
        }
        let mut request = request(profile);
        let crc = true;
        let mut acknowledged = None;
        match profile {
            SdpStart::Swapped => {
                self.connections.put(number, &hello, at).await?;
                let frame = match self.any_startup_frame(number, expectation).await? {
                    Ok(frame) => frame,
                    Err(none) => return Ok(Err(format!("it {none} where its MPA Request was expected"))),
                };
                let request = match Startup::parse(&frame) {
                    Ok(request) => request,
                    Err(error) => return Ok(Err(format!("its MPA Request is wrong: {error}"))),
                };
                if request.markers {
                    return Ok(Err("it requests markers, which SDP's exchanges do not send".into()));
                }
                let reply = StartupFields { revision: request.revision.min(1), ..StartupFields::REPLY };
                self.connections.put(number, &Message::new("MPA Reply", correct::startup(&reply)), at).await?;
            }
            SdpStart::Bare => self.connections.put(number, &hello, at).await?,
            SdpStart::Natural | SdpStart::Enhanced | SdpStart::PrivateData => {
                // Hello and Request are in one write, because a target that first receives only the
                // Hello would assume another profile.
                let sent = if profile == SdpStart::PrivateData {
                    request.private_data.clone_from(&hello.octets);
                    Message::new("MPA Request with Hello", correct::startup(&request))
                } else {
                    Message::new("Hello, MPA Request", [&hello.octets[..], &correct::startup(&request)].concat())
                };
                self.connections.put(number, &sent, at).await?;
                let reply = match self.connections.startup_frame(number, expectation, StartupKind::Reply).await? {
                    Ok(reply) => reply,
                    Err(none) => return Ok(Err(format!("it {none} where its MPA Reply was expected"))),
                };
                match Startup::parse(&reply) {
                    Ok(frame) if frame.reject || frame.markers => {
                        return Ok(Err("its MPA Reply rejects the connection or requests markers".into()));
                    }
                    Ok(frame) if profile == SdpStart::PrivateData => {
                        acknowledged =
                            ReceivedMessage::read(frame.private_data, order).filter(|ack| ack.mid == Mid::HELLO_ACK);
                    }
                    Ok(_) => {}
                    Err(error) => return Ok(Err(format!("its MPA Reply is wrong: {error}"))),
                }
                if profile == SdpStart::Enhanced {
                    let ready = correct::tagged(weft_core::wire::rdmap::Opcode::WRITE, 1, 0, b"", 1).remove(0);
                    self.connections
                        .put(number, &Message::new("ready to receive", correct::fpdu(&ready, crc)), at)
                        .await?;
                }
            }
        }
        let mut connection = SdpConnection::new(order, crc, false);
        connection.announced = (bufs, 0);
        self.list.insert(number, connection);
        if let Some(hello_ack) = acknowledged {
            // This HelloAck arrived in the MPA Reply. It used no buffer and no Send.
            self.connection(number, at)?.acknowledged(&hello_ack);
            return Ok(Ok(Box::new(hello_ack)));
        }
        let deadline = self.connections.link.now() + expectation.within;
        match self.next_item(number, deadline, at).await? {
            Ok(Item::Message(received)) if received.mid == Mid::HELLO_ACK => {
                self.connection(number, at)?.acknowledged(&received);
                Ok(Ok(received))
            }
            Ok(Item::Message(received)) => {
                Ok(Err(format!("it sent {} where HelloAck was expected", received.mid.name())))
            }
            Ok(other) => Ok(Err(format!("it sent {} where HelloAck was expected", other.name()))),
            Err(none) => Ok(Err(format!("it {none} where HelloAck was expected"))),
        }
    }

    /// Waits for the Hello of a target that connects, becomes MPA Initiator, and answers with this
    /// HelloAck. The tester sends the answer after `hold`. If bytes or a close arrive during this
    /// time, the expectation is not met. Returns the Hello.
    pub(in crate::stage) async fn answer_hello(
        &mut self,
        number: u32,
        hello_ack: &Message,
        hold: Duration,
        expectation: &Expectation,
    ) -> Result<Box<ReceivedMessage>, Stop> {
        let at = expectation.at.as_ref();
        let deadline = self.connections.link.now() + expectation.within;
        while self.connections.get(number, at)?.unread.len() < HELLO_LEN {
            if self.connections.receive(number, deadline, at).await? != Arrival::Octets {
                return Err(self.recorder().unmet(expectation, "a Hello", "it sent no Hello"));
            }
        }
        let hello: Vec<u8> = self.connections.get(number, at)?.unread.drain(..HELLO_LEN).collect();
        let order = FieldOrder::of_hello(&hello).unwrap_or_default();
        let Some(hello) = ReceivedMessage::read(&hello, order) else {
            return Err(self.recorder().unmet(expectation, "a Hello", "it sent other bytes"));
        };
        if hello.mid != Mid::HELLO {
            return Err(self.recorder().unmet(expectation, "a Hello", &hello.describe()));
        }
        self.connections.log.answered();
        self.connections
            .put(number, &Message::new("MPA Request", correct::startup(&StartupFields::REQUEST)), at)
            .await?;
        match self.connections.startup_frame(number, expectation, StartupKind::Reply).await? {
            Ok(_) => {}
            Err(none) => {
                return Err(self.recorder().unmet(expectation, "an MPA Reply after its Hello", &format!("it {none}")));
            }
        }
        let mut connection = SdpConnection::new(order, true, false);
        connection.mseq = 0;
        connection.note_hello(&hello);
        self.list.insert(number, connection);
        if !hold.is_zero() {
            let until = self.connections.link.now() + hold;
            if !self.connections.get(number, at)?.unread.is_empty()
                || self.connections.receive(number, until, at).await? != Arrival::TimedOut
            {
                return Err(self.recorder().unmet(
                    expectation,
                    "no byte before HelloAck",
                    "it sent bytes, or closed the connection",
                ));
            }
        }
        let send_fields = super::SendFields { solicited: Some(true), ..super::SendFields::default() };
        self.put(number, hello_ack, send_fields, at).await?;
        self.connection(number, at)?.mseq = 1;
        self.recorder().met(number, expectation, "a Hello, and an MPA Reply after the Request", &hello.describe());
        Ok(Box::new(hello))
    }

    /// Sends a Hello, with the MPA frames of the profile. Does not wait for an answer.
    pub(in crate::stage) async fn send_hello(
        &mut self,
        number: u32,
        hello: &Message,
        profile: SdpStart,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        let order =
            hello.draft.as_ref().and_then(|draft| draft.order).unwrap_or(self.connections.target.description.sdp.order);
        let hello = hello.filled(counters(order));
        if profile == SdpStart::PrivateData {
            let request = StartupFields { private_data: hello.octets, ..StartupFields::REQUEST };
            self.connections
                .send(number, &Message::new("MPA Request with Hello", correct::startup(&request)), at)
                .await?;
            return Ok(());
        }
        let startup = match profile {
            SdpStart::Natural | SdpStart::Enhanced => correct::startup(&request(profile)),
            _ => Vec::new(),
        };
        let mut sent = hello;
        sent.octets.extend_from_slice(&startup);
        self.connections.send(number, &sent, at).await?;
        Ok(())
    }

    /// Reads one complete start-up frame, a Request or a Reply, from the stream.
    async fn any_startup_frame(
        &mut self,
        number: u32,
        expectation: &Expectation,
    ) -> Result<Result<Vec<u8>, NoFrame>, Stop> {
        const LEN: usize = weft_core::wire::mpa::startup::HEADER_LEN;
        let deadline = self.connections.link.now() + expectation.within;
        let at = expectation.at.as_ref();
        loop {
            let unread = &mut self.connections.get(number, at)?.unread;
            let len = unread.get(LEN - 2..LEN).map(|len| LEN + usize::from(u16::from_be_bytes([len[0], len[1]])));
            if let Some(len) = len.filter(|len| unread.len() >= *len) {
                return Ok(Ok(unread.drain(..len).collect()));
            }
            match self.connections.receive(number, deadline, at).await? {
                Arrival::Octets => {}
                Arrival::Fin => return Ok(Err(NoFrame::Fin)),
                Arrival::Reset => return Ok(Err(NoFrame::Reset)),
                Arrival::TimedOut => return Ok(Err(NoFrame::TimedOut)),
            }
        }
    }
}

/// Returns the Request of a Connecting Peer that is MPA Initiator.
fn request(profile: SdpStart) -> StartupFields {
    let words = Enhanced { peer_to_peer: true, ird: 4, ord: 4, rtr_write: true, ..Enhanced::default() };
    let enhanced = (profile == SdpStart::Enhanced).then_some(words);
    let revision = if enhanced.is_some() { 2 } else { 1 };
    StartupFields { revision, enhanced, ..StartupFields::REQUEST }
}

/// Returns a Hello with the values of the tester.
pub(crate) fn hello() -> Message {
    let draft = Draft::new(Mid::HELLO);
    Message::of_draft("Hello", draft)
}
