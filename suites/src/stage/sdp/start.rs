//! Starts SDP on a TCP connection, in each start-up profile.

use std::time::Duration;

use weft_core::wire::mpa::startup::Enhanced;
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::sdp::{FieldOrder, Mid};

use super::connection::{Item, SdpConnection};
use super::{HELLO_LEN, SdpSide};
use crate::correct::{self, StartupFields};
use crate::sdp::{Counters, ReceivedMessage};
use crate::stage::{Arrival, Attempt, Expectation, Message, NoFrame, StepFailure, Stop};
use crate::targets::SdpStart;

const EXPECTED: &str = "a HelloAck after a correct Hello";

/// The target's answer to a Hello.
pub(crate) type HelloAck = Box<ReceivedMessage>;

impl SdpSide<'_> {
    /// Sends `hello`, and follows the profile until HelloAck arrives.
    pub(in crate::stage) async fn open(
        &mut self,
        hello: &Message,
        profile: SdpStart,
        expectation: &Expectation,
    ) -> Result<HelloAck, Stop> {
        match self.start(hello, profile, expectation).await {
            Ok(hello_ack) => {
                self.connections.log.answered();
                self.recorder().met(expectation, EXPECTED, &hello_ack.describe());
                Ok(hello_ack)
            }
            Err(StepFailure::Reason(why)) => Err(self.recorder().unmet(expectation, EXPECTED, &why)),
            Err(StepFailure::Decided) => Err(Stop),
        }
    }

    /// Like [`open`](Self::open), without a verdict. The error describes what arrived instead of
    /// HelloAck.
    pub(in crate::stage) async fn start(
        &mut self,
        hello: &Message,
        profile: SdpStart,
        expectation: &Expectation,
    ) -> Attempt<HelloAck> {
        let (order, hello) = self.filled_hello(hello);
        let bufs = ReceivedMessage::read(&hello.octets, order).map_or(16, |hello| hello.bufs);
        if profile != self.connections.target.description.sdp.start {
            self.connections.log.exempt.extend(profile.breaks());
        }
        let markers = self.connections.target.description.request.markers;
        let mut request = StartupFields { markers, ..request(profile) };
        let mut acknowledged = None;
        match profile {
            SdpStart::Swapped => {
                self.connections.put(self.number, &hello).await?;
                let frame = self.any_startup_frame(expectation).await?;
                let frame = frame.map_err(|none| format!("it {none} when its MPA Request was expected"))?;
                let request = Startup::parse(&frame).map_err(|error| format!("its MPA Request is wrong: {error}"))?;
                let reply = StartupFields { revision: request.revision.min(1), markers, ..StartupFields::REPLY };
                self.connections.put(self.number, &Message::new("MPA Reply", correct::startup(&reply))).await?;
            }
            SdpStart::Bare => self.connections.put(self.number, &hello).await?,
            SdpStart::Natural | SdpStart::Enhanced | SdpStart::PrivateData => {
                // Hello and Request are in one write, because a target that first receives only the
                // Hello would assume another profile.
                let sent = if profile == SdpStart::PrivateData {
                    request.private_data.clone_from(&hello.octets);
                    Message::new("MPA Request with Hello", correct::startup(&request))
                } else {
                    Message::new("Hello, MPA Request", [&hello.octets[..], &correct::startup(&request)].concat())
                };
                self.connections.put(self.number, &sent).await?;
                let reply = self.connections.startup_frame(self.number, expectation, StartupKind::Reply).await?;
                let reply = reply.map_err(|none| format!("it {none} when its MPA Reply was expected"))?;
                let frame = Startup::parse(&reply).map_err(|error| format!("its MPA Reply is wrong: {error}"))?;
                if frame.reject {
                    return Err("its MPA Reply rejects the connection".into());
                }
                if profile == SdpStart::PrivateData {
                    acknowledged =
                        ReceivedMessage::read(frame.private_data, order).filter(|ack| ack.mid == Mid::HELLO_ACK);
                }
                if profile == SdpStart::Enhanced {
                    let ready = correct::tagged(weft_core::wire::rdmap::Opcode::WRITE, 1, 0, b"", 1).remove(0);
                    self.put_ulpdu("ready to receive", &ready).await?;
                }
            }
        }
        let mut connection = SdpConnection::new(order, self.connections.target.description.sdp.first_mseq);
        connection.announced = (bufs, 0);
        self.list.insert(self.number, connection);
        if let Some(hello_ack) = acknowledged {
            // This HelloAck arrived in the MPA Reply, so it used no receive buffer and no Send.
            self.connection()?.acknowledged(&hello_ack);
            return Ok(Box::new(hello_ack));
        }
        let deadline = self.connections.link.now() + expectation.within;
        let actual = match self.next_item(deadline).await? {
            Ok(Item::Message(received)) if received.mid == Mid::HELLO_ACK => {
                self.connection()?.acknowledged(&received);
                return Ok(received);
            }
            Ok(Item::Message(received)) => format!("sent {}", received.mid.name()),
            Ok(other) => format!("sent {}", other.name()),
            Err(none) => none.to_string(),
        };
        Err(format!("it {actual} when HelloAck was expected").into())
    }

    /// Returns the field order of a Hello, and the Hello with its counters.
    fn filled_hello(&self, hello: &Message) -> (FieldOrder, Message) {
        let order = hello.draft.as_ref().and_then(|draft| draft.order);
        let order = order.unwrap_or(self.connections.target.description.sdp.order);
        (order, hello.filled(Counters { bufs: 16, mseq: 0, mseq_ack: 0, order }))
    }

    /// Waits for the Hello of a target that connects. The tester then becomes MPA Initiator, waits
    /// for the time `hold`, and answers with this HelloAck. If bytes or a close arrive during
    /// `hold`, the expectation is not met. If the MID or the length of the Hello is wrong, the case
    /// is inconclusive. Returns the Hello.
    pub(in crate::stage) async fn answer_hello(
        &mut self,
        hello_ack: &Message,
        hold: Duration,
        expectation: &Expectation,
    ) -> Result<Box<ReceivedMessage>, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        while self.connections.get(self.number)?.unread.len() < HELLO_LEN {
            if self.connections.receive(self.number, deadline).await? != Arrival::Octets {
                return Err(self.recorder().unmet(expectation, "a Hello", "it sent no Hello"));
            }
        }
        let hello: Vec<u8> = self.connections.get(self.number)?.unread.drain(..HELLO_LEN).collect();
        let order = FieldOrder::of_hello(&hello).unwrap_or_default();
        let Some(hello) = ReceivedMessage::read(&hello, order) else {
            return Err(self.recorder().unmet(expectation, "a Hello", "it sent other bytes"));
        };
        if hello.mid != Mid::HELLO && hello.len as usize == HELLO_LEN {
            // The target sent a Hello with a wrong MID. The monitor judges the fields of a Hello.
            return Err(self.recorder().undecided(expectation, "a Hello", &hello.describe()));
        }
        if hello.mid != Mid::HELLO {
            return Err(self.recorder().unmet(expectation, "a Hello", &hello.describe()));
        }
        self.connections.log.answered();
        let markers = self.connections.target.description.request.markers;
        let request = StartupFields { markers, ..StartupFields::REQUEST };
        let request = Message::new("MPA Request", correct::startup(&request));
        self.connections.put(self.number, &request).await?;
        if let Err(none) = self.connections.startup_frame(self.number, expectation, StartupKind::Reply).await? {
            let (expected, actual) = ("an MPA Reply after the Hello", format!("it {none}"));
            // The rest of a Hello that is too long is in the place of the MPA Reply. The monitor judges
            // the length of a Hello.
            let is_too_long = hello.len as usize > HELLO_LEN;
            let mut recorder = self.recorder();
            return Err(if is_too_long {
                recorder.undecided(expectation, expected, &actual)
            } else {
                recorder.unmet(expectation, expected, &actual)
            });
        }
        let mut connection = SdpConnection::new(order, self.connections.target.description.sdp.first_mseq);
        connection.mseq = 0;
        connection.note_hello(&hello);
        self.list.insert(self.number, connection);
        if !hold.is_zero() {
            let until = self.connections.link.now() + hold;
            if !self.connections.get(self.number)?.unread.is_empty()
                || self.connections.receive(self.number, until).await? != Arrival::TimedOut
            {
                let actual = "it sent bytes, or closed the connection";
                return Err(self.recorder().unmet(expectation, "no byte before HelloAck", actual));
            }
        }
        let send_fields = super::SendFields { solicited: Some(true), ..super::SendFields::default() };
        self.put(hello_ack, send_fields).await?;
        let connection = self.connection()?;
        connection.mseq = connection.first_mseq;
        self.recorder().met(expectation, "a Hello, and an MPA Reply after the Request", &hello.describe());
        Ok(Box::new(hello))
    }

    /// Sends a Hello, with the MPA frames of the profile. Does not wait for an answer.
    pub(in crate::stage) async fn send_hello(&mut self, hello: &Message, profile: SdpStart) -> Result<(), Stop> {
        let (_, hello) = self.filled_hello(hello);
        let sent = match profile {
            SdpStart::PrivateData => {
                let request = StartupFields { private_data: hello.octets, ..StartupFields::REQUEST };
                Message::new("MPA Request with Hello", correct::startup(&request))
            }
            SdpStart::Natural | SdpStart::Enhanced => {
                let octets = [hello.octets, correct::startup(&request(profile))].concat();
                Message { octets, ..hello }
            }
            SdpStart::Swapped | SdpStart::Bare => hello,
        };
        self.connections.send(self.number, &sent).await
    }

    /// Reads one complete start-up frame, a Request or a Reply, from the stream.
    async fn any_startup_frame(&mut self, expectation: &Expectation) -> Result<Result<Vec<u8>, NoFrame>, Stop> {
        const LEN: usize = weft_core::wire::mpa::startup::HEADER_LEN;
        let deadline = self.connections.link.now() + expectation.within;
        loop {
            let unread = &mut self.connections.get(self.number)?.unread;
            let len = unread.get(LEN - 2..LEN).map(|len| LEN + usize::from(u16::from_be_bytes([len[0], len[1]])));
            if let Some(len) = len.filter(|len| unread.len() >= *len) {
                let frame: Vec<u8> = unread.drain(..len).collect();
                self.connections.get(self.number)?.started(&frame);
                return Ok(Ok(frame));
            }
            match self.connections.receive(self.number, deadline).await? {
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
    Message::of_mid(Mid::HELLO)
}
